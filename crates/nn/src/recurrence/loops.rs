//! Recurrent layers as plain loops for the CPU: a block of strings at a time through all steps, its states in cache, blocks on all cores.

use burn::backend::TensorMetadata;
use burn::backend::flex::FlexTensor;
use rayon::prelude::*;

use super::Cell;
use crate::cpu::{Real, Values, share, tensor};
use crate::product::{Matrix, product};

/// Strings of a block; fixed, so that sums over blocks do not depend on how many cores there are.
const BLOCK: usize = 64;

/// `each!(|x, y, z| value)` sets every value of the slice x to `value`, where x, y and z are the values in its place of slices of these names. A few
/// slices at a time vectorise; all of a step's at once do not. (A macro, for a closure is not inlined where it must be.)
macro_rules! each {
    (|$out:ident $(, $of:ident)*| $value:expr) => {{
        let length = $out.len();
        $(let $of = &$of[..length];)*
        for j in 0..length {
            #[allow(unused_variables)]
            let value = {
                let $out = $out[j];
                $(let $of = $of[j];)*
                $value
            };
            $out[j] = value;
        }
    }};
}

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
                    each!(|own, bias| own + bias);
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

/// `N` parts of length d.
#[inline(always)]
fn parts<T, const N: usize>(x: &[T], d: usize) -> [&[T]; N] {
    std::array::from_fn(|at| &x[at * d..][..d])
}

/// `N` parts of length d.
#[inline(always)]
fn parts_mut<T, const N: usize>(mut x: &mut [T], d: usize) -> [&mut [T]; N] {
    std::array::from_fn(|_| {
        let (part, rest) = std::mem::take(&mut x).split_at_mut(d);
        x = rest;
        part
    })
}

#[inline(always)]
fn lstm_step<T: Real>(given: &[T], own: &[T], hidden: &mut [T], cells: &mut [T], kept: &mut [T]) {
    let d = hidden.len();
    let ([g0, g1, g2, g3], [o0, o1, o2, o3]) = (parts(given, d), parts(own, d));
    let [input, forget, new, output, cell] = parts_mut(kept, d);
    each!(|input, g0, o0| (g0 + o0).sigmoid());
    each!(|forget, g1, o1| (g1 + o1).sigmoid());
    each!(|new, g2, o2| (g2 + o2).fast_tanh());
    each!(|output, g3, o3| (g3 + o3).sigmoid());
    each!(|cells, forget, input, new| forget * cells + input * new);
    cell.copy_from_slice(cells);
    each!(|hidden, output, cell| output * cell.fast_tanh());
}

#[inline(always)]
fn gru_step<T: Real>(given: &[T], own: &[T], hidden: &mut [T], kept: &mut [T]) {
    let d = hidden.len();
    let ([g0, g1, g2], [o0, o1, o2]) = (parts(given, d), parts(own, d));
    let [reset, update, new, from_state] = parts_mut(kept, d);
    each!(|reset, g0, o0| (g0 + o0).sigmoid());
    each!(|update, g1, o1| (g1 + o1).sigmoid());
    from_state.copy_from_slice(o2);
    each!(|new, g2, reset, o2| (g2 + reset * o2).fast_tanh());
    each!(|hidden, update, new| new + update * (hidden - new));
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
            let mut d_own = vec![T::zero(); strings * gates];
            let (zeros, mut tanh) = (vec![T::zero(); d], vec![T::zero(); d]);
            for t in (0..n).rev() {
                for string in 0..strings {
                    let at = string * n + t;
                    let now = &kept[at * kept_width..][..kept_width];
                    let dh = &mut d_hidden[string * d..][..d];
                    let d_given = &mut d_given[at * gates..][..gates];
                    let d_own = &mut d_own[string * gates..][..gates];
                    let gradient = &gradient[at * d..];
                    each!(|dh, gradient| dh + gradient);
                    match cell {
                        Cell::Lstm => {
                            let before = match t {
                                0 => &zeros[..],
                                _ => &kept[(at - 1) * kept_width + 4 * d..][..d],
                            };
                            lstm_back(now, dh, before, &mut d_cells[string * d..][..d], d_given, &mut tanh);
                            d_own.copy_from_slice(d_given);
                        }
                        Cell::Gru => {
                            let before = if t == 0 { &zeros[..] } else { &states[(at - 1) * d..][..d] };
                            gru_back(now, dh, before, d_given, d_own);
                        }
                    }
                    each!(|d_bias, d_own| d_bias + d_own);
                }
                if t > 0 {
                    // What the GRU's state passes on past its gates stays; the LSTM's passes nothing.
                    let (by_weight, passes) = (Matrix::new(weight, d), cell == Cell::Gru);
                    product([strings, d, gates], &mut d_hidden, d, Matrix::new(&d_own, gates), by_weight, passes);
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

/// Of one string's step, the gates' gradient from what the step kept, the gradient of its state and the cell before. The gradient of the cell is
/// taken over to the step before.
#[inline(always)]
fn lstm_back<T: Real>(kept: &[T], dh: &[T], cell_before: &[T], d_cells: &mut [T], d_gates: &mut [T], tanh: &mut [T]) {
    let (d, one) = (dh.len(), T::one());
    let [input, forget, new, output, cell] = parts(kept, d);
    let [d_input, d_forget, d_new, d_output] = parts_mut(d_gates, d);
    each!(|tanh, cell| cell.fast_tanh());
    each!(|d_cells, dh, output, tanh| d_cells + dh * output * (one - tanh * tanh));
    each!(|d_input, d_cells, new, input| d_cells * new * input * (one - input));
    each!(|d_forget, d_cells, cell_before, forget| d_cells * cell_before * forget * (one - forget));
    each!(|d_new, d_cells, input, new| d_cells * input * (one - new * new));
    each!(|d_output, dh, tanh, output| dh * tanh * output * (one - output));
    each!(|d_cells, forget| d_cells * forget);
}

/// Of one string's step, the gates' gradient as the inputs and as the state before have it; `dh` becomes what passes to the latter past the gates.
#[inline(always)]
fn gru_back<T: Real>(kept: &[T], dh: &mut [T], before: &[T], d_given: &mut [T], d_own: &mut [T]) {
    let (d, one) = (dh.len(), T::one());
    let [reset, update, new, from_state] = parts(kept, d);
    let [d_reset, d_update, d_new] = parts_mut(d_given, d);
    each!(|d_new, dh, update, new| dh * (one - update) * (one - new * new));
    each!(|d_update, dh, before, new| dh * (before - new));
    each!(|d_update, update| d_update * update * (one - update));
    each!(|d_reset, d_new, from_state, reset| d_new * from_state * reset * (one - reset));
    each!(|dh, update| dh * update);
    let [own_reset, own_update, own_new] = parts_mut(d_own, d);
    own_reset.copy_from_slice(d_reset);
    own_update.copy_from_slice(d_update);
    each!(|own_new, d_new, reset| d_new * reset);
}
