//! ViT.

use std::path::Path;

use pudica_nn::vision::{ImageShape, VisionConfig, VitConfig, VitStyle};
use serde_json::Value;

use super::Files;
use super::config::Config;
use crate::native::Label;
use crate::{Choices, Model, ModelResult, Normalisation, native};

/// The file that says how images are normalised.
const PREPROCESSOR: &str = "preprocessor_config.json";

/// `ViTForImageClassification`.
pub(super) fn vit(folder: &Path, config: &Config, choices: &Choices) -> ModelResult<Box<dyn Model>> {
    let files = Files::read(folder, "vit.", &["classifier."], |name| name.starts_with("vit.pooler."))?;
    let network = VisionConfig::Vit(VitConfig {
        images: ImageShape {
            channels: config.size_or("num_channels", Some(3))?,
            side: square(config, "image_size", 224)?,
            classes: config.classes()?,
        },
        patch: square(config, "patch_size", 16)?,
        dim: config.size("hidden_size")?,
        depth: config.layers("num_hidden_layers")?,
        heads: config.size("num_attention_heads")?,
        mlp: config.size("intermediate_size")?,
        style: VitStyle::HuggingFace { qkv_bias: config.flag_or("qkv_bias", true)? },
        activation: config.activation("hidden_act", "gelu")?,
        norm_eps: config.number_or("layer_norm_eps", 1e-12)?,
    });
    let (weights, buffers) = files.fill(&network)?;
    let device = choices.network_device()?;
    let preprocessor = folder.join(PREPROCESSOR);
    let own = match preprocessor.is_file() {
        true => own_normalisation(&Config::read(&preprocessor)?)?,
        false => None,
    };
    let mut notes = Vec::new();
    let normalisation = choices.normalisation_or(own, &mut notes);
    let words = format!("{} {normalisation:?}", device.name());
    let label = Label { notes, ..files.label(folder, config, choices, &[], &words)? };
    Ok(Box::new(native::images(&network, &weights, &buffers, normalisation, &device, label)?))
}

/// A side, given as one number or as two equal ones.
fn square(config: &Config, name: &str, default: usize) -> ModelResult<usize> {
    match config.get(name) {
        Some(Value::Array(sides)) => match &sides[..] {
            [height, width] if height == width => {
                let side = height.as_u64().filter(|side| (1..=1 << 16).contains(side));
                Ok(side.ok_or_else(|| config.wrong(format!("\"{name}\" is not a size")))? as usize)
            }
            _ => Err(config.wrong(format!("\"{name}\" is not that of a square"))),
        },
        _ => config.size_or(name, Some(default)),
    }
}

/// What the preprocessor does to pixels from 0 to 1.
fn own_normalisation(config: &Config) -> ModelResult<Option<Normalisation>> {
    if !config.flag_or("do_normalize", true)? {
        return Ok(None);
    }
    let numbers = |name: &str| -> ModelResult<Option<Vec<f32>>> {
        let Some(list) = config.get(name) else { return Ok(None) };
        let numbers: Option<Vec<f32>> =
            list.as_array().and_then(|list| list.iter().map(|x| x.as_f64().map(|x| x as f32)).collect());
        let fits = |numbers: &Vec<f32>| {
            !numbers.is_empty() && numbers.iter().all(|x| x.is_finite() && (name == "image_mean" || *x > 0.0))
        };
        let problem = || config.wrong(format!("\"{name}\" is not a list of a number for each channel"));
        Ok(Some(numbers.filter(fits).ok_or_else(problem)?))
    };
    let (Some(mean), Some(std)) = (numbers("image_mean")?, numbers("image_std")?) else { return Ok(None) };
    // Bytes that are not divided by 255 first are normalised by numbers 255 times as large.
    let rescaled = config.flag_or("do_rescale", true)?;
    let scale = |x: Vec<f32>| if rescaled { x } else { x.into_iter().map(|x| x / 255.0).collect() };
    Ok(Some(Normalisation { mean: scale(mean), std: scale(std) }))
}
