//! The recurrence as plain loops for the CPU: one string at a time, strings on all cores.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use crate::cpu::{Real, Values, share, tensor};

/// Operations for each value, about: the sigmoid is most of them.
const OPERATIONS: usize = 30;

/// The sigmoid of the gate and the states, each [batch, n, d].
pub(super) fn forward<T: Real>([gate, input]: [&FlexTensor; 2], signed: bool) -> [FlexTensor; 2] {
    let shape = input.shape();
    let (batch, n, d) = (shape[0], shape[1], shape[2]);
    let (gate, input) = (Values::of(gate), Values::of(input));
    let (gate, input): (&[T], &[T]) = (gate.get(), input.get());
    let (mut sigmoid, mut states) = (vec![T::zero(); batch * n * d], vec![T::zero(); batch * n * d]);
    let (factor, shift) = stretch::<T>(signed);
    let strings =
        (gate.par_chunks(n * d), input.par_chunks(n * d), sigmoid.par_chunks_mut(n * d), states.par_chunks_mut(n * d));
    share(
        OPERATIONS * batch * n * d,
        strings.into_par_iter(),
        #[inline(always)]
        |(gate, input, sigmoid, states)| {
            for (sigmoid, gate) in sigmoid.iter_mut().zip(gate) {
                *sigmoid = gate.sigmoid();
            }
            states[..d].copy_from_slice(&input[..d]);
            for t in 1..n {
                let (before, now) = states[(t - 1) * d..(t + 1) * d].split_at_mut(d);
                let (sigmoid, input) = (&sigmoid[t * d..][..d], &input[t * d..][..d]);
                for j in 0..d {
                    now[j] = (factor * sigmoid[j] + shift) * before[j] + input[j];
                }
            }
        },
    );
    [tensor(sigmoid, &[batch, n, d]), tensor(states, &[batch, n, d])]
}

/// The gradients of gate and input.
pub(super) fn backward<T: Real>(
    [sigmoid, states]: [&FlexTensor; 2],
    gradient: &FlexTensor,
    signed: bool,
) -> [FlexTensor; 2] {
    let shape = states.shape();
    let (batch, n, d) = (shape[0], shape[1], shape[2]);
    let (sigmoid, states, gradient) = (Values::of(sigmoid), Values::of(states), Values::of(gradient));
    let (sigmoid, states, gradient): (&[T], &[T], &[T]) = (sigmoid.get(), states.get(), gradient.get());
    let (mut d_gate, mut d_input) = (vec![T::zero(); batch * n * d], vec![T::zero(); batch * n * d]);
    let (factor, shift) = stretch::<T>(signed);
    let strings = (
        sigmoid.par_chunks(n * d),
        states.par_chunks(n * d),
        gradient.par_chunks(n * d),
        d_gate.par_chunks_mut(n * d),
        d_input.par_chunks_mut(n * d),
    );
    share(
        OPERATIONS * batch * n * d,
        strings.into_par_iter(),
        #[inline(always)]
        |(sigmoid, states, gradient, d_gate, d_input)| {
            d_input.copy_from_slice(gradient);
            for t in (1..n).rev() {
                let (earlier, now) = d_input[(t - 1) * d..(t + 1) * d].split_at_mut(d);
                let (sigmoid, before) = (&sigmoid[t * d..][..d], &states[(t - 1) * d..][..d]);
                let d_gate = &mut d_gate[t * d..][..d];
                for j in 0..d {
                    earlier[j] += (factor * sigmoid[j] + shift) * now[j];
                    d_gate[j] = now[j] * before[j] * factor * sigmoid[j] * (T::one() - sigmoid[j]);
                }
            }
        },
    );
    [tensor(d_gate, &[batch, n, d]), tensor(d_input, &[batch, n, d])]
}

/// The factor and the shift that take a sigmoid to an eigenvalue.
fn stretch<T: Real>(signed: bool) -> (T, T) {
    match signed {
        true => (T::one() + T::one(), -T::one()),
        false => (T::one(), T::zero()),
    }
}
