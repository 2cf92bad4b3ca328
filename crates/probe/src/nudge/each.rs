//! Several networks that answer together, each to an input of its own.

use pudica_data::Stream;

use super::Nudge;
use crate::Response;

/// One input for each of several networks. A touch is at the same site of all of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Each<T>(pub Vec<T>);

impl<T, N: Nudge<T> + ?Sized> Nudge<Each<T>> for N {
    fn sites(&self, inputs: &Each<T>) -> usize {
        inputs.0.first().map_or(0, |input| self.sites(input))
    }

    fn apply(&self, inputs: &Each<T>, site: usize, noise: &mut Stream) -> Each<T> {
        Each(inputs.0.iter().map(|input| self.apply(input, site, noise)).collect())
    }
}

/// How one of several networks responds: its number, and the response.
#[derive(Debug, Clone, Copy)]
pub struct OfOne<R>(pub usize, pub R);

impl<Out, R: Response<Out>> Response<Vec<Out>> for OfOne<R> {
    fn compare(&self, before: &Vec<Out>, after: &Vec<Out>) -> f64 {
        self.1.compare(&before[self.0], &after[self.0])
    }

    fn most(&self) -> f64 {
        self.1.most()
    }
}
