//! Recurrent layers as plain loops for the CPU: a block of strings at a time through all steps, its states in cache, blocks on all cores.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::Cell;
use crate::cpu::{Real, Values, share, tensor};
use crate::product::{Matrix, product};

/// Strings of a block; fixed, so that sums over blocks do not depend on how many cores there are.
const BLOCK: usize = 64;

/// The sizes of one layer.
#[derive(Clone, Copy)]
struct Sizes {
    batch: usize,
    n: usize,
    d: usize,
    /// The width of the gates.
    gates: usize,
    /// The width of what a step keeps.
    kept: usize,
}

impl Sizes {
    fn new(cell: Cell, [batch, n, d]: [usize; 3]) -> Self {
        Self { batch, n, d, gates: cell.gates() * d, kept: cell.kept() * d }
    }

    fn operations(&self) -> usize {
        2 * self.batch * self.n * self.gates * self.d
    }
}

/// The states [batch, n, d] and what steps keep [batch, n, kept d].
pub(super) fn forward<T: Real>([projected, weight, bias]: [&FlexTensor; 3], cell: Cell) -> [FlexTensor; 2] {
    let shape = projected.shape();
    let sizes = Sizes::new(cell, [shape[0], shape[1], weight.shape()[1]]);
    let Sizes { batch, n, d, gates, kept } = sizes;
    let (projected, weight, bias) = (Values::of(projected), Values::of(weight), Values::of(bias));
    let (projected, weight, bias): (&[T], &[T], &[T]) = (projected.get(), weight.get(), bias.get());
    let (mut states, mut all_kept) = (vec![T::zero(); batch * n * d], vec![T::zero(); batch * n * kept]);
    let blocks = (
        projected.par_chunks(BLOCK * n * gates),
        states.par_chunks_mut(BLOCK * n * d),
        all_kept.par_chunks_mut(BLOCK * n * kept),
    );
    share(
        sizes.operations(),
        blocks.into_par_iter(),
        #[inline(always)]
        |(projected, states, all_kept)| {
            let strings = states.len() / (n * d);
            let (mut own, mut hidden) = (vec![T::zero(); strings * gates], vec![T::zero(); strings * d]);
            let mut cells = vec![T::zero(); strings * d];
            for t in 0..n {
                let (by, turned) = (Matrix::new(&hidden, d), Matrix::new(weight, d).transposed());
                product([strings, gates, d], &mut own, gates, by, turned, false);
                for string in 0..strings {
                    let at = string * n + t;
                    let given = &projected[at * gates..][..gates];
                    let own = &mut own[string * gates..][..gates];
                    let (hidden, cells) = (&mut hidden[string * d..][..d], &mut cells[string * d..][..d]);
                    let kept = &mut all_kept[at * kept..][..kept];
                    own.iter_mut().zip(bias).for_each(|(own, bias)| *own += *bias);
                    match cell {
                        Cell::Lstm => lstm_step(given, own, hidden, cells, kept),
                        Cell::Gru => gru_step(given, own, hidden, kept),
                    }
                    states[at * d..][..d].copy_from_slice(hidden);
                }
            }
        },
    );
    [tensor(states, &[batch, n, d]), tensor(all_kept, &[batch, n, kept])]
}

/// `N` parts of equal length.
#[inline(always)]
fn parts<T, const N: usize>(x: &[T]) -> [&[T]; N] {
    let d = x.len() / N;
    std::array::from_fn(|at| &x[at * d..][..d])
}

/// `N` parts of equal length.
#[inline(always)]
fn parts_mut<T, const N: usize>(mut x: &mut [T]) -> [&mut [T]; N] {
    let d = x.len() / N;
    std::array::from_fn(|_| {
        let (part, rest) = std::mem::take(&mut x).split_at_mut(d);
        x = rest;
        part
    })
}

#[inline(always)]
fn lstm_step<T: Real>(given: &[T], own: &[T], hidden: &mut [T], cells: &mut [T], kept: &mut [T]) {
    let d = hidden.len();
    let ([gi, gf, gc, go], [oi, of, oc, oo]) = (parts::<T, 4>(given), parts::<T, 4>(own));
    let [input, forget, new, output, cell] = parts_mut::<T, 5>(kept);
    let cells = &mut cells[..d];
    for j in 0..d {
        input[j] = (gi[j] + oi[j]).sigmoid();
        forget[j] = (gf[j] + of[j]).sigmoid();
        new[j] = (gc[j] + oc[j]).fast_tanh();
        output[j] = (go[j] + oo[j]).sigmoid();
        cells[j] = forget[j] * cells[j] + input[j] * new[j];
        cell[j] = cells[j];
        hidden[j] = output[j] * cells[j].fast_tanh();
    }
}

#[inline(always)]
fn gru_step<T: Real>(given: &[T], own: &[T], hidden: &mut [T], kept: &mut [T]) {
    let d = hidden.len();
    let ([gr, gz, gn], [or, oz, on]) = (parts::<T, 3>(given), parts::<T, 3>(own));
    let [reset, update, new, from_state] = parts_mut::<T, 4>(kept);
    for j in 0..d {
        reset[j] = (gr[j] + or[j]).sigmoid();
        update[j] = (gz[j] + oz[j]).sigmoid();
        from_state[j] = on[j];
        new[j] = (gn[j] + reset[j] * on[j]).fast_tanh();
        hidden[j] = new[j] + update[j] * (hidden[j] - new[j]);
    }
}

/// The gradients of the projected inputs, the weight and the bias.
pub(super) fn backward<T: Real>(
    [weight, states, kept]: [&FlexTensor; 3],
    gradient: &FlexTensor,
    cell: Cell,
) -> [FlexTensor; 3] {
    let shape = states.shape();
    let sizes = Sizes::new(cell, [shape[0], shape[1], shape[2]]);
    let Sizes { batch, n, d, gates, kept: kept_width } = sizes;
    let (weight, states) = (Values::of(weight), Values::of(states));
    let (weight, states): (&[T], &[T]) = (weight.get(), states.get());
    let (kept, gradient) = (Values::of(kept), Values::of(gradient));
    let (kept, gradient): (&[T], &[T]) = (kept.get(), gradient.get());
    let mut d_given = vec![T::zero(); batch * n * gates];
    let blocks = batch.div_ceil(BLOCK);
    // For each block its own sums of the weight's and of the bias's gradient.
    let mut sums = vec![T::zero(); blocks * (gates * d + gates)];
    let pieces = (
        d_given.par_chunks_mut(BLOCK * n * gates),
        sums.par_chunks_mut(gates * d + gates),
        states.par_chunks(BLOCK * n * d),
        kept.par_chunks(BLOCK * n * kept_width),
        gradient.par_chunks(BLOCK * n * d),
    );
    share(
        2 * sizes.operations(),
        pieces.into_par_iter(),
        #[inline(always)]
        |(d_given, sums, states, kept, gradient)| {
            let strings = states.len() / (n * d);
            let (d_weight, d_bias) = sums.split_at_mut(gates * d);
            let (mut d_hidden, mut d_cells) = (vec![T::zero(); strings * d], vec![T::zero(); strings * d]);
            let (mut d_own, mut passed) = (vec![T::zero(); strings * gates], vec![T::zero(); strings * d]);
            let zeros = vec![T::zero(); d];
            for t in (0..n).rev() {
                for string in 0..strings {
                    let at = string * n + t;
                    let own = string * d..(string + 1) * d;
                    let now = &kept[at * kept_width..][..kept_width];
                    let step = Step { kept: now, gradient: &gradient[at * d..][..d], d_hidden: &d_hidden[own.clone()] };
                    let d_given = &mut d_given[at * gates..][..gates];
                    let d_own = &mut d_own[string * gates..][..gates];
                    match cell {
                        Cell::Lstm => {
                            let cell_before = match t {
                                0 => &zeros[..],
                                _ => &kept[(at - 1) * kept_width + 4 * d..][..d],
                            };
                            step.lstm(cell_before, &mut d_cells[own], d_given);
                            d_own.copy_from_slice(d_given);
                        }
                        Cell::Gru => {
                            let before = if t == 0 { &zeros[..] } else { &states[(at - 1) * d..][..d] };
                            step.gru(before, &mut passed[own], d_given, d_own);
                        }
                    }
                    d_bias.iter_mut().zip(d_own).for_each(|(sum, own)| *sum += *own);
                }
                if t > 0 {
                    let by_weight = Matrix::new(weight, d);
                    product([strings, d, gates], &mut d_hidden, d, Matrix::new(&d_own, gates), by_weight, false);
                    if cell == Cell::Gru {
                        d_hidden.iter_mut().zip(&passed).for_each(|(sum, passed)| *sum += *passed);
                    }
                    let before = Matrix::new(&states[(t - 1) * d..], n * d);
                    let turned = Matrix::new(&d_own, gates).transposed();
                    product([gates, d, strings], d_weight, d, turned, before, true);
                }
            }
        },
    );
    let mut both = vec![T::zero(); gates * d + gates];
    for block in sums.chunks_exact(gates * d + gates) {
        both.iter_mut().zip(block).for_each(|(sum, x)| *sum += *x);
    }
    let d_bias = both.split_off(gates * d);
    [tensor(d_given, &[batch, n, gates]), tensor(both, &[gates, d]), tensor(d_bias, &[gates])]
}

/// What the backward pass of one string's step starts from: what the step kept, the gradient of its state as others use it, and as the next
/// step does.
struct Step<'a, T> {
    kept: &'a [T],
    gradient: &'a [T],
    d_hidden: &'a [T],
}

impl<T: Real> Step<'_, T> {
    /// The gates' gradient; that of the cell is taken over to the step before.
    #[inline(always)]
    fn lstm(&self, cell_before: &[T], d_cells: &mut [T], d_gates: &mut [T]) {
        let d = d_cells.len();
        let [input, forget, new, output, cell] = parts::<T, 5>(self.kept);
        let [d_input, d_forget, d_new, d_output] = parts_mut::<T, 4>(d_gates);
        let (gradient, d_hidden, cell_before) = (&self.gradient[..d], &self.d_hidden[..d], &cell_before[..d]);
        let one = T::one();
        for j in 0..d {
            let dh = gradient[j] + d_hidden[j];
            let tanh = cell[j].fast_tanh();
            let dc = d_cells[j] + dh * output[j] * (one - tanh * tanh);
            d_input[j] = dc * new[j] * input[j] * (one - input[j]);
            d_forget[j] = dc * cell_before[j] * forget[j] * (one - forget[j]);
            d_new[j] = dc * input[j] * (one - new[j] * new[j]);
            d_output[j] = dh * tanh * output[j] * (one - output[j]);
            d_cells[j] = dc * forget[j];
        }
    }

    /// The gates' gradient as the inputs and as the state before have it, and what passes to the latter past the gates.
    #[inline(always)]
    fn gru(&self, before: &[T], passed: &mut [T], d_given: &mut [T], d_own: &mut [T]) {
        let d = passed.len();
        let [reset, update, new, from_state] = parts::<T, 4>(self.kept);
        let [given_reset, given_update, given_new] = parts_mut::<T, 3>(d_given);
        let [own_reset, own_update, own_new] = parts_mut::<T, 3>(d_own);
        let (gradient, d_hidden, before) = (&self.gradient[..d], &self.d_hidden[..d], &before[..d]);
        let one = T::one();
        for j in 0..d {
            let dh = gradient[j] + d_hidden[j];
            let d_new = dh * (one - update[j]) * (one - new[j] * new[j]);
            let d_update = dh * (before[j] - new[j]) * update[j] * (one - update[j]);
            let d_reset = d_new * from_state[j] * reset[j] * (one - reset[j]);
            (given_reset[j], given_update[j], given_new[j]) = (d_reset, d_update, d_new);
            (own_reset[j], own_update[j], own_new[j]) = (d_reset, d_update, d_new * reset[j]);
            passed[j] = dh * update[j];
        }
    }
}
