//! Rows of numbers, and bits.

use std::sync::Arc;

use pudica_data::Stream;
use pudica_model::Input;
use pudica_probe::{BitFlip, Nudge};

use super::{Material, Setting, Touch, Touching, boxed};
use crate::MeasureResult;
use crate::results::Sites;

/// The nudge a setting means.
pub fn touching(setting: &Setting, material: &Material) -> MeasureResult<Touching> {
    let about = material.inputs.about();
    let columns = about.columns.len().max(about.shape.first().copied().unwrap_or(0));
    let names = (0..columns).map(|at| about.columns.get(at).cloned().unwrap_or_else(|| format!("column {}", at + 1)));
    let sites = Sites::Features { names: names.collect() };
    let draws = setting.draws()?;
    Ok(match setting.kind.name {
        "feature-noise" => {
            let scale = setting.positive("scale")?;
            let deviations = about.spread.iter().map(|spread| scale * spread).collect();
            boxed(FeatureNoise { deviations }, sites, draws)
        }
        _ => {
            let values = (0..columns).map(|column| Arc::from(material.inputs.column(column))).collect();
            boxed(FeatureResample { values }, sites, draws)
        }
    })
}

/// Flips of bits.
pub fn bits() -> Touching {
    boxed(Flip, Sites::Bits, 1)
}

struct FeatureNoise {
    deviations: Vec<f64>,
}

impl Touch for FeatureNoise {
    fn sites(&self, input: &Input) -> usize {
        row(input).len().min(self.deviations.len())
    }

    fn apply(&self, input: &Input, site: usize, noise: &mut Stream) -> Input {
        changed(input, site, |value| value + (self.deviations[site] * noise.normal()) as f32)
    }
}

struct FeatureResample {
    /// The values of each column.
    values: Vec<Arc<[f32]>>,
}

impl Touch for FeatureResample {
    fn sites(&self, input: &Input) -> usize {
        row(input).len().min(self.values.len())
    }

    fn apply(&self, input: &Input, site: usize, noise: &mut Stream) -> Input {
        let values = &self.values[site];
        changed(input, site, |value| match values.len() {
            0 => value,
            count => values[noise.below(count as u64) as usize],
        })
    }
}

struct Flip;

impl Touch for Flip {
    fn sites(&self, input: &Input) -> usize {
        if let Input::Bits(bits) = input { BitFlip.sites(bits) } else { 0 }
    }

    fn apply(&self, input: &Input, site: usize, noise: &mut Stream) -> Input {
        match input {
            Input::Bits(bits) => Input::Bits(BitFlip.apply(bits, site, noise)),
            other => other.clone(),
        }
    }
}

fn row(input: &Input) -> &[f32] {
    if let Input::Row(values) = input { values } else { &[] }
}

fn changed(input: &Input, site: usize, change: impl FnOnce(f32) -> f32) -> Input {
    let mut values = row(input).to_vec();
    values[site] = change(values[site]);
    Input::Row(values)
}
