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
use crate::settings::{Settings, flatten};
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
    check_sizes(folder, &settings)?;
    settings.read()
}

/// Refuses sizes that no run has: a config.json that was changed must not ask for more memory than there is. The estimate of sizes (`size.rs` of
/// each kind) cannot tell: it is about what this machine can train, and a network that fits there may still be none that these weights are of.
pub(crate) fn check_sizes(folder: &RunFolder, settings: &Settings) -> Result<()> {
    const LARGEST: u64 = 1 << 20;
    let weights = std::fs::metadata(folder.weights_path()).map_or(0, |weights| weights.len());
    for (key, value) in flatten(&settings.tree()) {
        let is_size = key.starts_with("model.") || ["n", "data.size", "length", "modulus"].contains(&key.as_str());
        // Each layer has weights.
        let is_depth = ["model.layers", "model.depth", "model.blocks"].contains(&key.as_str());
        let most = if is_depth { weights.min(LARGEST) } else { LARGEST };
        // Sizes such as `512-128`, too.
        let text = value.as_str().map_or_else(|| value.to_string(), String::from);
        if is_size && text.split('-').any(|size| size.parse::<u64>().is_ok_and(|size| size > most)) {
            let text = pudica_boolean::shortened(&text, 40);
            return Err(Error::damaged(
                &folder.config_path(),
                format!("{key} is {text}, which no trained network has"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Found by fuzzing: settings that were changed asked for terabytes.
    #[test]
    fn sizes_that_no_network_has_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("weights.safetensors"), [0; 1000]).unwrap();
        let run = RunFolder::new(folder.path().into());
        let check = |config: serde_json::Value| {
            std::fs::write(folder.path().join("config.json"), config.to_string()).unwrap();
            settings_of::<serde_json::Value>(&run).map_err(|error| error.to_string())
        };
        let fine = json!({"model": {"layers": 2, "hidden": "512-128", "init_scale": 1.5}, "seed": u64::MAX});
        assert_eq!(check(fine.clone()), Ok(fine));
        for (wrong, part) in [
            (json!({"model": {"layers": 2000}}), "model.layers is 2000"),
            (json!({"model": {"d": 9_007_199_254_740_993_u64}}), "model.d is 9007199254740993"),
            (json!({"model": {"hidden": "4-99999999"}}), "model.hidden is 4-99999999"),
            (json!({"n": 1e3 as u64 * 2000}), "n is 2000000"),
        ] {
            let refusal = check(wrong).unwrap_err();
            assert!(refusal.contains(part) && refusal.contains("config.json"), "{refusal}");
        }
    }
}
