//! What is computed once from a replica's weights before strings are put through it.

use std::ops::Range;

use super::layout::Layout;
use super::passes::transpose;
use super::real::Real;
use super::tables::Tables;

/// What is computed once for all strings.
pub(crate) struct Prepared<T> {
    /// The matrices of the layers, each transposed in the place it has in the parameters: products of few rows are faster so.
    transposed: Vec<T>,
    /// The first layer's attention.
    pub(crate) tables: Tables<T>,
}

impl<T: Real> Prepared<T> {
    pub(crate) fn new(layout: &Layout) -> Self {
        Self { transposed: vec![T::zero(); layout.len], tables: Tables::new(layout) }
    }

    /// Prepare these parameters.
    pub(crate) fn prepare(&mut self, layout: &Layout, parameters: &[T]) {
        let Layout { d, ff, .. } = *layout;
        for (index, at) in layout.layers.iter().enumerate() {
            let mut turn = |range: &Range<usize>, rows, columns| {
                transpose(&parameters[range.clone()], &mut self.transposed[range.clone()], rows, columns, rows);
            };
            turn(&at.linear1_weight, ff, d);
            turn(&at.linear2_weight, d, ff);
            // The first layer's projections are in the tables.
            if index > 0 {
                turn(&at.in_weight, 3 * d, d);
                turn(&at.out_weight, d, d);
            }
        }
        let linear1 = &self.transposed[layout.layers[0].linear1_weight.clone()];
        self.tables.fill(layout, parameters, linear1);
    }
}

/// Parameters that strings can be put through.
#[derive(Clone, Copy)]
pub(crate) struct Ready<'a, T> {
    pub(crate) layout: &'a Layout,
    pub(crate) parameters: &'a [T],
    pub(crate) prepared: &'a Prepared<T>,
}

impl<'a, T> Ready<'a, T> {
    /// One parameter.
    pub(crate) fn of(&self, range: &Range<usize>) -> &'a [T] {
        &self.parameters[range.clone()]
    }

    /// One matrix of a layer, transposed.
    pub(crate) fn transposed(&self, range: &Range<usize>) -> &'a [T] {
        &self.prepared.transposed[range.clone()]
    }
}
