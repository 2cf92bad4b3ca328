//! The network of a finished run, of whatever kind, for whoever measures it.

use std::path::Path;

use pudica_data::text::PairEncoder;
use pudica_nn::grokking::ModularTransformer;
use pudica_nn::text::TextConfig;
use pudica_nn::token_attention::TokenAttention;
use pudica_nn::vision::VisionConfig;
use pudica_nn::{Network, Weights};
use serde::Deserialize;

use crate::error::{Error, Result};
use crate::kinds::{KINDS, Kind};
use crate::store::{RunFolder, read_json};

/// A trained network.
pub enum Trained {
    /// One that learnt a Boolean function: towards 0 or 1, cut at 1/2.
    Bits {
        /// The network.
        network: Box<Network>,
        /// Bits of a string.
        n: usize,
    },
    /// A classifier of images, which it takes with values from -1 to 1.
    Images {
        /// The network.
        network: VisionConfig,
        /// Its weights and its buffers.
        weights: (Weights, Weights),
        /// The names of its classes.
        classes: Vec<String>,
    },
    /// A classifier of texts.
    Texts {
        /// The network.
        network: TextConfig,
        /// Its weights and its buffers.
        weights: (Weights, Weights),
        /// The names of its classes.
        classes: Vec<String>,
        /// What makes tokens of texts, where the data folder has it, and how many at most.
        encoder: Option<Box<(PairEncoder, usize)>>,
    },
    /// The layer on synthetic tokens: the sign of its output is the label.
    Tokens(Box<TokenAttention>),
    /// The network of modular arithmetic, on pairs of numbers.
    Modular {
        /// The network.
        network: ModularTransformer,
        /// Its weights.
        weights: Weights,
    },
}

/// Reads the network of the run in a folder.
pub fn trained_network(folder: &RunFolder, data: Option<&Path>) -> Result<Trained> {
    #[derive(Deserialize)]
    struct OfSweep {
        kind: String,
    }
    let sweep = folder.path().parent().and_then(Path::parent).map(|sweep| sweep.join("sweep.json"));
    if let Some(OfSweep { kind }) = sweep.map(|file| read_json(&file)).transpose()?.flatten() {
        return (Kind::find(&kind)?.trained)(folder, data);
    }
    // A folder that was taken out of its sweep: its settings are those of one kind only.
    let found = KINDS.iter().find_map(|kind| (kind.trained)(folder, data).ok());
    found.ok_or_else(|| {
        let problem = "is not the folder of a finished run: config.json and weights.safetensors do not tell its kind";
        Error::Folder { path: folder.path().into(), problem: problem.into() }
    })
}

/// The weights of a finished run.
pub(crate) fn weights_of(folder: &RunFolder) -> Result<Vec<u8>> {
    let path = folder.weights_path();
    pudica_boolean::plain::bytes(&path).map_err(Error::io("read", &path))
}

/// The settings of a run as its kind has them.
pub(crate) fn settings_of<T: serde::de::DeserializeOwned>(folder: &RunFolder) -> Result<T> {
    let settings = folder.settings()?.ok_or_else(|| Error::Folder {
        path: folder.path().into(),
        problem: "is not a run's folder: it has no config.json".into(),
    })?;
    settings.read()
}
