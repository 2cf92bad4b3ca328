//! Whether a network and a batch can fit in memory at all, asked before anything is allocated.

use pudica_data::Split;
use pudica_nn::classifier::Classifier;
use pudica_nn::{Device, ParamList};

use super::config::{ClassifierConfig, ModelConfig, ModelKind};
use super::dataset::Dataset;
use crate::error::{Error, Result};
use crate::size::{self, Dimension};

/// The settings that make networks large, with the most that each may be: beyond, numbers of weights cannot even be counted.
const LARGEST: [(Dimension<ClassifierConfig>, usize); 11] = [
    (("model.depth", |config| config.model.depth, |config, value| config.model.depth = value), 1 << 10),
    (("model.heads", |config| config.model.heads, |config, value| config.model.heads = value), 1 << 12),
    (("model.dim", |config| config.model.dim, |config, value| config.model.dim = value), 1 << 16),
    (("model.dim_head", |config| config.model.dim_head, |config, value| config.model.dim_head = value), 1 << 16),
    (("model.mlp", |config| config.model.mlp, |config, value| config.model.mlp = value), 1 << 20),
    (("model.kernel", |config| config.model.kernel, |config, value| config.model.kernel = value), 1 << 10),
    (("model.width", |config| config.model.width, |config, value| config.model.width = value), 1 << 16),
    (("model.length", |config| config.model.length, |config, value| config.model.length = value), 1 << 16),
    (
        (
            "model.hidden",
            |config| largest(&config.model.hidden),
            |config, value| lower(&mut config.model.hidden, value),
        ),
        1 << 24,
    ),
    (
        (
            "model.blocks",
            |config| largest(&config.model.blocks),
            |config, value| lower(&mut config.model.blocks, value),
        ),
        1 << 10,
    ),
    (("model.patch", |config| config.model.patch, |config, value| config.model.patch = value), 1 << 10),
];

/// The most layers or stages that `model.hidden` and `model.blocks` may list.
const LONGEST_LIST: usize = 64;

/// The largest of sizes as in `512-128`.
fn largest(sizes: &str) -> usize {
    // What is no number is refused elsewhere; what is too large for one is the largest there is.
    sizes
        .split('-')
        .filter(|size| !size.trim().is_empty())
        .map(|size| size.trim().parse().unwrap_or(usize::MAX))
        .max()
        .unwrap_or(0)
}

/// Makes every size of a list at most so large.
fn lower(sizes: &mut String, most: usize) {
    let lowered: Vec<String> = sizes.split('-').map(|size| largest(size).min(most).to_string()).collect();
    *sizes = lowered.join("-");
}

impl ClassifierConfig {
    /// Refuses sizes that no network has.
    pub(super) fn check_sizes(&self) -> Result<()> {
        for ((key, get, _), most) in &LARGEST {
            let value = get(self);
            // Words in a list of sizes get their own sentence.
            let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit() || b"- ".contains(&byte));
            let typed = match *key {
                "model.hidden" => self.model.hidden.as_str(),
                "model.blocks" => self.model.blocks.as_str(),
                _ => "",
            };
            if value > *most && is_number(typed) {
                let value = if typed.is_empty() { value.to_string() } else { format!("\"{typed}\"") };
                return Err(Error::setting(key, format!("must be at most {most}, not {value}")));
            }
            if typed.split('-').count() > LONGEST_LIST {
                return Err(Error::setting(key, format!("may list at most {LONGEST_LIST} sizes")));
            }
        }
        for (key, value) in
            [("measure.draws", self.measure.draws), ("measure.sharpness_draws", self.measure.sharpness_draws)]
        {
            if value > MOST_DRAWS {
                return Err(Error::setting(key, format!("must be at most {MOST_DRAWS}, not {value}")));
            }
        }
        Ok(())
    }
}

/// The most draws of noise.
const MOST_DRAWS: usize = 1_000_000;

/// Refuses a run that does not fit into the memory that is `free`, naming the setting to change.
pub(super) fn check_fits<D: Dataset>(
    config: &ClassifierConfig,
    dataset: &D,
    device: &Device,
    free: Option<u64>,
) -> Result<()> {
    if device.name() == "cuda" {
        return Ok(()); // its memory is its own
    }
    dataset.network(config)?; // what cannot be built has its own sentence
    let batch: Dimension<ClassifierConfig> =
        ("train.batch", |config| config.train.batch, |config, value| config.train.batch = value);
    let dimensions: Vec<_> = std::iter::once(batch).chain(LARGEST.map(|(dimension, _)| dimension)).collect();
    size::check_fits(config, &dimensions, free, |config| bytes(config, dataset))
}

/// Bytes that a run needs at least: weights with gradients and what the optimiser keeps, and the activations of a batch.
fn bytes<D: Dataset>(config: &ClassifierConfig, dataset: &D) -> f64 {
    let Ok(network) = dataset.network(config) else { return f64::INFINITY }; // no such network
    let (_, parameters) = ParamList::of(|scope| network.network(scope));
    let count = |shape: &[usize]| shape.iter().map(|side| *side as f64).product::<f64>();
    let weights: f64 = parameters.shapes().map(|(_, shape)| count(shape)).sum();
    let copies = match config.train.optimiser.as_str() {
        "sgd" => 2.0,
        _ => 4.0,
    };
    let inputs = config.train.batch.min(dataset.count(Split::Train)) as f64;
    4.0 * (copies * weights + inputs * activations(&config.model, dataset.side() as f64))
}

/// Numbers that a network keeps per input for the backward pass, at least; of images, `side` pixels in height and width.
fn activations(model: &ModelConfig, side: f64) -> f64 {
    let (depth, dim, width) = (model.depth as f64, model.dim as f64, model.width as f64);
    let numbers = |text: &str| text.split('-').map(|size| largest(size) as f64).collect::<Vec<f64>>();
    let tokens = (side / model.patch.max(1) as f64).floor().powi(2);
    match model.kind {
        ModelKind::Mlp => numbers(&model.hidden).iter().sum(),
        ModelKind::Cnn => width * side * side / 4.0,
        ModelKind::VitSmall | ModelKind::VitSimple => {
            let heads = model.heads as f64 * model.dim_head as f64;
            depth * tokens * (dim + 3.0 * heads + model.mlp as f64)
        }
        ModelKind::Resnet18 | ModelKind::Densenet121 => {
            width * side * side / 16.0 * numbers(&model.blocks).iter().sum::<f64>()
        }
        ModelKind::Convmixer => depth * tokens * dim,
        // At least one token.
        ModelKind::Roberta | ModelKind::Gpt2 | ModelKind::Lstm => depth * (dim + model.mlp as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_sizes_are_refused_and_lists_lowered() {
        let refusal = |change: fn(&mut ModelConfig)| {
            let mut config = ClassifierConfig::default();
            change(&mut config.model);
            config.check_sizes().unwrap_err().to_string()
        };
        assert_eq!(refusal(|model| model.depth = 1 << 30), "model.depth: must be at most 1024, not 1073741824");
        let hidden = refusal(|model| model.hidden = "512-18446744073709551616".into());
        assert_eq!(hidden, "model.hidden: must be at most 16777216, not \"512-18446744073709551616\"");
        assert!(refusal(|model| model.blocks = "2-".repeat(100) + "2").contains("at most 64 sizes"));
        ClassifierConfig::default().check_sizes().unwrap();
        let mut sizes = "512-128-4".to_string();
        lower(&mut sizes, 100);
        assert_eq!((sizes.as_str(), largest("512-128"), largest("")), ("100-100-4", 512, 0));
    }
}
