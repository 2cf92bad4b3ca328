//! PyTorch checkpoints and safetensors of architectures that pudica has.

mod architectures;
mod state_dict;

pub(crate) use architectures::misfit;
pub(crate) use state_dict::{StateDict, is_state_dict};

use std::path::Path;

use pudica_data::{digest, identity};
use pudica_nn::classifier::Classifier;

use crate::native::{Label, images};
use crate::{Choices, Model, ModelResult};

/// Names that checkpoints have as a rule: files of such a name are refused as checkpoints, not as something unknown.
const ENDINGS: [&str; 7] = ["pt", "pth", "th", "bin", "ckpt", "pkl", "safetensors"];

/// Whether a file is to be read as a checkpoint, by its first bytes or its name.
pub(crate) fn is_checkpoint(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    path.is_file() && (is_state_dict(path) || ENDINGS.contains(&ending))
}

/// Opens a checkpoint, of the architecture that `choices` name or of the one that fits.
pub(crate) fn open(path: &Path, choices: &Choices) -> ModelResult<Box<dyn Model>> {
    let state = StateDict::read(path)?;
    let found = architectures::find(&state, choices)?;
    let config = found.config;
    let (weights, buffers) = (state.fill(config.empty_weights()?)?, state.fill(config.initial_buffers())?);
    let mut notes = found.notes;
    let normalisation = choices.normalisation_or(None, &mut notes);
    let device = choices.network_device()?;
    let contents = digest(path, &[path.into()])?;
    let digest = identity([&contents, device.name(), &format!("{config:?} {normalisation:?}")]);
    let label = Label { name: choices.name_of(path), digest, notes, batch: choices.batch, ..Label::default() };
    Ok(Box::new(images(&config, &weights, &buffers, normalisation, &device, label)?))
}
