//! Weights (Hahn & Rofin 2024; Section 7.2 of Vasudeva et al. 2024): all of them get noise.

use std::borrow::Cow;

use pudica_data::Stream;
use pudica_nn::Weights;

use crate::{NoiseName, Nudge};

/// What a network computes from: its weights, and a batch of inputs.
#[derive(Debug, Clone)]
pub struct Weighted<'a, B> {
    /// The weights.
    pub weights: Cow<'a, Weights>,
    /// The inputs.
    pub batch: B,
}

/// Noise on all weights but the positional embeddings: one site.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WeightNoise {
    /// Standard deviation on each weight; on a sphere, root mean square.
    pub rho: f64,
    /// How it is distributed.
    pub law: WeightLaw,
    /// How its streams are named.
    pub names: WeightNames,
}

/// How weight noise is distributed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightLaw {
    /// Normal, independent for each weight.
    Normal,
    /// Uniform on the sphere of radius rho sqrt(weights).
    Sphere,
}

/// The streams weight noise is drawn from. Three measures have three ways to name them; what is stored was drawn so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WeightNames {
    /// (seed, "purpose/0/draw", batch), as all other nudges have it: sharpness.
    SiteAndDraw,
    /// (seed, "purpose/draw", batch): ShOp and ShPred.
    Draw,
    /// (seed, "purpose", draw): Theorem 6.
    DrawOnly,
}

impl WeightNoise {
    /// Independent normal noise.
    pub fn normal(rho: f64) -> Self {
        Self { rho, law: WeightLaw::Normal, names: WeightNames::SiteAndDraw }
    }
}

impl<'a, B: Clone> Nudge<Weighted<'a, B>> for WeightNoise {
    fn sites(&self, _: &Weighted<'a, B>) -> usize {
        1
    }

    fn apply(&self, input: &Weighted<'a, B>, _: usize, noise: &mut Stream) -> Weighted<'a, B> {
        let weights = match self.law {
            WeightLaw::Normal => input.weights.perturbed(self.rho, noise),
            WeightLaw::Sphere => input.weights.perturbed_on_sphere(self.rho, noise),
        };
        Weighted { weights: Cow::Owned(weights), batch: input.batch.clone() }
    }

    fn stream(&self, name: &NoiseName) -> Stream {
        let NoiseName { seed, purpose, input, draw, .. } = *name;
        match self.names {
            WeightNames::SiteAndDraw => name.stream(),
            WeightNames::Draw => Stream::new(seed, &format!("{purpose}/{draw}"), input),
            WeightNames::DrawOnly => Stream::new(seed, purpose, draw as u64),
        }
    }
}
