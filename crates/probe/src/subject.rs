//! What is measured: anything that answers to inputs.

use pudica_data::Stream;
use rayon::prelude::*;

use crate::{Nudge, ProbeError};

/// What is done with the answers to a batch of touches.
pub type Take<'a, In, N, Out, Error> = dyn FnMut(&Touches<In, N>, Vec<Out>) -> Result<(), Error> + 'a;

/// Something that answers to inputs: a function, a network, a program that somebody brings. A closure on batches is one.
///
/// Who can answer to nudged inputs without their being made writes an own [`Subject::answer_nudged`]: it may compute once what many
/// touches of an input share, draw noise on a device, or move weights that the inputs know nothing of.
pub trait Subject<In: Send + Sync, N: Nudge<In> + ?Sized> {
    /// The answer to one input.
    type Out;
    /// Why it cannot answer.
    type Error: From<ProbeError>;

    /// The answers to these inputs, one for each, in order.
    fn answer(&mut self, inputs: &[In]) -> Result<Vec<Self::Out>, Self::Error>;

    /// The answers to these touches, one for each, in order.
    fn answer_nudged(&mut self, touches: &Touches<In, N>) -> Result<Vec<Self::Out>, Self::Error> {
        self.answer(&touches.made())
    }

    /// The answers to batches of touches, one after the other, each given to `take`. Who waits for a network may make the next batch meanwhile.
    fn answer_in_turn(
        &mut self,
        batches: &[Touches<In, N>],
        take: &mut Take<In, N, Self::Out, Self::Error>,
    ) -> Result<(), Self::Error> {
        batches.iter().try_for_each(|touches| take(touches, self.answer_nudged(touches)?))
    }
}

impl<In, N, Out, E, F> Subject<In, N> for F
where
    In: Send + Sync,
    N: Nudge<In> + ?Sized,
    E: From<ProbeError>,
    F: FnMut(&[In]) -> Result<Vec<Out>, E>,
{
    type Out = Out;
    type Error = E;

    fn answer(&mut self, inputs: &[In]) -> Result<Vec<Out>, E> {
        self(inputs)
    }
}

/// One touch of one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Touch {
    /// Which of the inputs at hand.
    pub input: usize,
    /// Where it is touched.
    pub site: usize,
    /// Which of the independent touches there.
    pub draw: usize,
}

/// Touches to answer to at once. Those of one input stand beside each other.
pub struct Touches<'a, In, N: ?Sized> {
    /// The inputs at hand, untouched.
    pub inputs: &'a [In],
    /// How many inputs were measured before these.
    pub before: usize,
    /// How they are touched.
    pub nudge: &'a N,
    /// Which is touched where.
    pub touches: &'a [Touch],
    /// The run's seed.
    pub seed: u64,
    /// The name of the measure.
    pub purpose: &'a str,
}

impl<In: Send + Sync, N: Nudge<In> + ?Sized> Touches<'_, In, N> {
    /// The touched inputs, made on all cores.
    pub fn made(&self) -> Vec<In> {
        let made = |touch: &Touch| {
            let mut noise = self.nudge.stream(&self.name(touch));
            self.nudge.apply(&self.inputs[touch.input], touch.site, &mut noise)
        };
        self.touches.par_iter().map(made).collect()
    }

    /// The name of a touch's noise.
    pub fn name(&self, touch: &Touch) -> NoiseName<'_> {
        let Touch { input, site, draw } = *touch;
        NoiseName { seed: self.seed, purpose: self.purpose, input: (self.before + input) as u64, site, draw }
    }
}

/// The name of one touch's noise: independent for every touch, and the same in whatever order touches are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoiseName<'a> {
    /// The run's seed.
    pub seed: u64,
    /// The name of the measure.
    pub purpose: &'a str,
    /// Which input, of all that are measured.
    pub input: u64,
    /// Where it is touched.
    pub site: usize,
    /// Which of the independent touches there.
    pub draw: usize,
}

impl NoiseName<'_> {
    /// The stream (seed, "purpose/site/draw", input).
    pub fn stream(&self) -> Stream {
        Stream::new(self.seed, &format!("{}/{}/{}", self.purpose, self.site, self.draw), self.input)
    }
}
