//! LayerNorm blowup: how strongly the normalisations stretch.

use std::collections::BTreeMap;

use pudica_ensemble::{Engine, Strings};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Estimate, Moments, ProbeError};

/// Blowup by both definitions of a LayerNorm's factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blowups {
    /// 1/std with the unbiased std and no epsilon: the paper's code.
    pub code: Blowup,
    /// N = 1/sqrt(var + eps): the paper's theory.
    pub theory: Blowup,
}

/// Blowup by one definition, averaged over inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Blowup {
    /// Each LayerNorm, in the order of application.
    pub norms: Vec<NormBlowup>,
    /// All LayerNorms together.
    pub total: BlowupTotals,
    /// The LayerNorms of the encoder and of the decoder, for networks that have both.
    pub parts: BTreeMap<String, BlowupTotals>,
}

/// One LayerNorm's factor, averaged over inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NormBlowup {
    /// PyTorch's name.
    pub name: String,
    /// The largest over positions (in an encoder's last layer there is only the last position).
    pub max: Estimate,
    /// The mean over positions.
    pub mean: Estimate,
}

/// Several LayerNorms' factors taken together for each input, then averaged over inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlowupTotals {
    /// The product of the maxima over positions: the paper's blowup.
    pub product_of_max: Estimate,
    /// The product of the means over positions.
    pub product_of_mean: Estimate,
    /// The sum of the maxima.
    pub sum_of_max: Estimate,
    /// The sum of the means.
    pub sum_of_mean: Estimate,
    /// The product of (1 + maximum): the theory's Blowup(x), when the factors are the theory's.
    pub product_of_one_plus_max: Estimate,
}

/// Measure the blowup of every network of an ensemble on batches of strings; the standard errors are over strings. Say `exact` when
/// the strings are all there are.
pub fn blowup<'a>(
    engine: &mut dyn Engine,
    batches: impl IntoIterator<Item = Strings<'a>>,
    exact: bool,
) -> Result<Vec<Blowups>, ProbeError> {
    let mut gathered: Vec<(Gathering, Gathering)> = Vec::new();
    gathered.resize_with(engine.replicas(), Default::default);
    for strings in batches {
        let norms = engine.norms(strings)?;
        if norms.iter().any(|norms| norms.names.is_empty()) {
            return Err(ProbeError::NoNorms);
        }
        // Millions of strings for each of many networks: the averaging is work too.
        gathered.par_iter_mut().zip(norms).for_each(|((code, theory), norms)| {
            code.add(&norms.names, &norms.unbiased_max, &norms.unbiased_mean);
            theory.add(&norms.names, &norms.theory_max, &norms.theory_mean);
        });
    }
    let finish = |(code, theory): (Gathering, Gathering)| match code.norms.is_empty() {
        true => Err(ProbeError::NoBatches("blowup")),
        false => Ok(Blowups { code: code.finish(exact), theory: theory.finish(exact) }),
    };
    gathered.into_iter().map(finish).collect()
}

/// One definition's averages on the way.
#[derive(Default)]
struct Gathering {
    norms: Vec<(String, Moments, Moments)>,
    total: Totals,
    parts: BTreeMap<String, Totals>,
}

#[derive(Default)]
struct Totals {
    product_of_max: Moments,
    product_of_mean: Moments,
    sum_of_max: Moments,
    sum_of_mean: Moments,
    product_of_one_plus_max: Moments,
}

impl Gathering {
    /// Take in a batch: the names of the LayerNorms, and row-major [rows, norms] the largest and the mean factor over positions.
    fn add(&mut self, names: &[String], maxima: &[f32], means: &[f32]) {
        if self.norms.is_empty() {
            self.norms = names.iter().map(|name| (name.clone(), Moments::default(), Moments::default())).collect();
        }
        let belonging =
            |part: &str| names.iter().map(|name| name.starts_with(&format!("transformer.{part}."))).collect();
        let parts: [(&str, Vec<bool>); 2] = ["encoder", "decoder"].map(|part| (part, belonging(part)));
        for (maxima, means) in maxima.chunks_exact(names.len()).zip(means.chunks_exact(names.len())) {
            let each = maxima.iter().zip(means).map(|(max, mean)| (f64::from(*max), f64::from(*mean)));
            for ((_, maxima, means), (max, mean)) in self.norms.iter_mut().zip(each.clone()) {
                maxima.add(max);
                means.add(mean);
            }
            self.total.add(each.clone());
            for (part, belongs) in parts.iter().filter(|(_, belongs)| belongs.contains(&true)) {
                let own = each.clone().zip(belongs).filter(|(_, belongs)| **belongs).map(|(pair, _)| pair);
                self.parts.entry(part.to_string()).or_default().add(own);
            }
        }
    }

    fn finish(self, exact: bool) -> Blowup {
        let estimate = |moments: &Moments| Estimate::of(moments, exact);
        let totals = |totals: Totals| BlowupTotals {
            product_of_max: estimate(&totals.product_of_max),
            product_of_mean: estimate(&totals.product_of_mean),
            sum_of_max: estimate(&totals.sum_of_max),
            sum_of_mean: estimate(&totals.sum_of_mean),
            product_of_one_plus_max: estimate(&totals.product_of_one_plus_max),
        };
        let norms = self.norms.into_iter();
        Blowup {
            norms: norms
                .map(|(name, max, mean)| NormBlowup { name, max: estimate(&max), mean: estimate(&mean) })
                .collect(),
            total: totals(self.total),
            parts: self.parts.into_iter().map(|(part, gathered)| (part, totals(gathered))).collect(),
        }
    }
}

impl Totals {
    /// Take in one string's (max, mean) of each LayerNorm.
    fn add(&mut self, norms: impl Iterator<Item = (f64, f64)> + Clone) {
        self.product_of_max.add(norms.clone().map(|(max, _)| max).product());
        self.product_of_mean.add(norms.clone().map(|(_, mean)| mean).product());
        self.sum_of_max.add(norms.clone().map(|(max, _)| max).sum());
        self.sum_of_mean.add(norms.clone().map(|(_, mean)| mean).sum());
        self.product_of_one_plus_max.add(norms.map(|(max, _)| 1.0 + max).product());
    }
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Target, Task};
    use pudica_ensemble::{Member, one_by_one};
    use pudica_nn::{Architecture, Device, EncoderConfig, EncoderDecoderConfig, TrainingState};

    use super::*;

    fn of(architecture: &Architecture, exact: bool) -> Blowups {
        let mut task = Task::new(Target::parse("parity", architecture.n()).unwrap());
        if architecture.outputs() > 1 {
            task = task.with_scratchpad().unwrap();
        }
        let state = TrainingState::new(architecture.initial_weights(3).unwrap());
        let member = Member { task, seed: 3, adamw: Default::default(), state };
        let mut engine = one_by_one(architecture, 1, vec![member], &Device::cpu()).unwrap();
        let cube = Bits::cube(architecture.n()).unwrap();
        blowup(engine.as_mut(), [Strings::Shared(&cube)], exact).unwrap().remove(0)
    }

    #[test]
    fn products_and_sums_follow_from_factors_known_by_hand() {
        let mut gathering = Gathering::default();
        // Two strings and two LayerNorms; the second sees one position only, so its largest factor is its mean.
        gathering.add(&["a".into(), "b".into()], &[3.0, 5.0, 2.0, 7.0], &[2.0, 5.0, 2.0, 7.0]);
        let found = gathering.finish(false);
        let total = found.total;
        assert_eq!(total.product_of_max.mean, (3.0 * 5.0 + 2.0 * 7.0) / 2.0);
        assert_eq!(total.product_of_mean.mean, (2.0 * 5.0 + 2.0 * 7.0) / 2.0);
        assert_eq!((total.sum_of_max.mean, total.sum_of_mean.mean), (8.5, 8.0));
        assert_eq!(total.product_of_one_plus_max.mean, (4.0 * 6.0 + 3.0 * 8.0) / 2.0);
        assert_eq!((found.norms[0].max.mean, found.norms[0].mean.mean), (2.5, 2.0));
        assert!(found.parts.is_empty());
    }

    #[test]
    fn every_layer_norm_of_an_encoder_is_there() {
        let config = EncoderConfig { d: 8, ff: 8, ..EncoderConfig::paper(5) };
        let found = of(&Architecture::Encoder(config), false);
        let names: Vec<&str> = found.code.norms.iter().map(|norm| norm.name.as_str()).collect();
        let expected = ["enc.layers.0.norm1", "enc.layers.0.norm2", "enc.layers.1.norm1", "enc.layers.1.norm2"];
        assert_eq!(names, expected);
        // In the last layer there is one position, so its maximum is its mean.
        assert_eq!(found.code.norms[2].max, found.code.norms[2].mean);
        assert!(found.code.norms[0].max.mean > found.code.norms[0].mean.mean);
        // Unbiased std is larger by sqrt(8/7), and epsilon only makes the theory's factor smaller.
        let ratio = found.theory.norms[0].max.mean / found.code.norms[0].max.mean;
        assert!((ratio - (8.0f64 / 7.0).sqrt()).abs() < 1e-3, "{ratio}");
        assert!(found.code.total.product_of_max.std_error.unwrap() > 0.0);
    }

    #[test]
    fn an_encoder_decoder_reports_its_parts() {
        let config = EncoderDecoderConfig { d: 8, ff: 8, ..EncoderDecoderConfig::paper(4) };
        let found = of(&Architecture::EncoderDecoder(config), true);
        assert_eq!(found.code.norms.len(), (2 * 2 + 1) + (2 * 3 + 1));
        let sums = found.code.parts["encoder"].sum_of_max.mean + found.code.parts["decoder"].sum_of_max.mean;
        assert!((sums - found.code.total.sum_of_max.mean).abs() < 1e-6);
        assert_eq!(found.code.total.sum_of_max.std_error, Some(0.0));
    }
}
