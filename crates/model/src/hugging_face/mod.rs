//! Folders as Hugging Face's `save_pretrained` writes them: `config.json`, `model.safetensors` or its shards, `tokenizer.json`.
//!
//! RoBERTa and GPT-2 that classify texts, and ViT that classifies images, on pudica's own layers.

mod config;
mod images;
mod texts;

use std::path::{Path, PathBuf};

use pudica_boolean::did_you_mean;
use pudica_data::{digest, identity};
use pudica_nn::Weights;
use pudica_nn::classifier::Classifier;

use self::config::Config;
use crate::checkpoint::{StateDict, misfit};
use crate::native::Label;
use crate::{Choices, Model, ModelError, ModelResult};

/// The file that names the model.
const CONFIG: &str = "config.json";

/// What is read here, by the name in `architectures`.
const KINDS: [&str; 3] =
    ["RobertaForSequenceClassification", "GPT2ForSequenceClassification", "ViTForImageClassification"];

/// Files of weights, the first that is there: shards are listed in an index.
const WEIGHTS: [&str; 3] = ["model.safetensors", "model.safetensors.index.json", "pytorch_model.bin"];

/// Whether a path is such a folder.
pub(crate) fn is_folder(path: &Path) -> bool {
    path.is_dir() && path.join(CONFIG).is_file() && WEIGHTS.iter().any(|name| path.join(name).is_file())
}

/// Opens such a folder.
pub(crate) fn open(folder: &Path, choices: &Choices) -> ModelResult<Box<dyn Model>> {
    let config = Config::read(&folder.join(CONFIG))?;
    let kind = config.architecture()?;
    match KINDS.iter().position(|known| *known == kind) {
        Some(0) => texts::roberta(folder, &config, choices),
        Some(1) => texts::gpt2(folder, &config, choices),
        Some(2) => images::vit(folder, &config, choices),
        _ => {
            let (like, known) = (did_you_mean(&kind, KINDS), KINDS.join(", "));
            Err(config.wrong(format!(
                "is of a {kind}{like}, which pudica cannot compute; it has {known}: export others to ONNX"
            )))
        }
    }
}

/// The weights of a folder, and the files they lie in.
struct Files {
    state: StateDict,
    files: Vec<PathBuf>,
}

impl Files {
    /// Reads names and shapes. Names begin with `prefix` but for those of the parts in `heads`, whether they do so in the files or not;
    /// `unused` says which tensors play no part.
    fn read(folder: &Path, prefix: &str, heads: &[&str], unused: impl Fn(&str) -> bool) -> ModelResult<Self> {
        let found = WEIGHTS.iter().map(|name| folder.join(name)).find(|path| path.is_file());
        let found = found.ok_or_else(|| ModelError::file(folder, format!("has none of {}", WEIGHTS.join(", "))))?;
        let files = match found.extension().is_some_and(|ending| ending == "json") {
            true => shards(folder, &found)?,
            false => vec![found],
        };
        let mut state: Option<StateDict> = None;
        for file in &files {
            let read = StateDict::read(file)?;
            match &mut state {
                Some(state) => state.extend(read),
                None => state = Some(read),
            }
        }
        let mut state = state.ok_or_else(|| ModelError::file(folder, "its index of shards names no file"))?;
        let is_head = |name: &str| heads.iter().any(|head| name.starts_with(head));
        state.rename(|name| {
            let name = match name.starts_with(prefix) || is_head(name) {
                true => name.to_string(),
                false => format!("{prefix}{name}"),
            };
            (!unused(&name)).then_some(name)
        });
        Ok(Self { state, files })
    }

    /// The weights of a network, which must be all that the files have; and what is known of it.
    fn fill<C: Classifier>(&self, network: &C) -> ModelResult<(Weights, Weights)> {
        match misfit(&self.state, network) {
            Some(misfit) => Err(self.state.wrong(format!("does not fit config.json: {}", misfit.first))),
            None => Ok((self.state.fill(network.empty_weights()?)?, self.state.fill(network.initial_buffers())?)),
        }
    }

    /// What the model is called and known by; `others` are files beside the weights that decide its answers, `words` choices that do.
    fn label(
        &self,
        folder: &Path,
        config: &Config,
        choices: &Choices,
        others: &[PathBuf],
        words: &str,
    ) -> ModelResult<Label> {
        let own = folder.join(CONFIG);
        let files: Vec<PathBuf> = std::iter::once(&own).chain(&self.files).chain(others).cloned().collect();
        Ok(Label {
            name: choices.name_of(folder),
            digest: identity([&digest(folder, &files)?, words]),
            notes: Vec::new(),
            class_names: config.class_names(),
            batch: choices.batch,
        })
    }
}

/// The files that an index of shards names, each once.
fn shards(folder: &Path, index: &Path) -> ModelResult<Vec<PathBuf>> {
    let wrong = |problem: &str| ModelError::file(index, problem);
    let index_of = Config::read(index)?;
    let map = index_of.object("weight_map").ok_or_else(|| wrong("has no weight_map, which says where tensors lie"))?;
    let mut names: Vec<&str> = map.values().filter_map(|name| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    // Files of this folder only: an index that somebody else wrote is not to reach others.
    if names.iter().any(|name| name.contains(['/', '\\']) || name.starts_with('.')) {
        return Err(wrong("names files outside of its folder"));
    }
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}
