//! Encoders in safetensors files that say by themselves what they are.

use std::collections::HashMap;
use std::path::Path;

use pudica_nn::{Architecture, Embed, EncoderConfig, Weights};
use safetensors::SafeTensors;

use crate::{Result, TheoryError};

/// The one part of an encoder's shape that its tensors do not show; written into the file's metadata.
const HEADS: &str = "heads";

/// Writes weights under PyTorch's names, with the number of heads in the metadata.
pub fn save_encoder(path: &Path, config: &EncoderConfig, weights: &Weights) -> Result<()> {
    let bytes = weights.to_bytes()?;
    let unwritable = |error: safetensors::SafeTensorError| bad(path, format!("cannot be written ({error})"));
    let tensors = SafeTensors::deserialize(&bytes).map_err(unwritable)?;
    let metadata = HashMap::from([(HEADS.to_string(), config.heads.to_string())]);
    let bytes = safetensors::serialize(tensors.tensors(), Some(metadata)).map_err(unwritable)?;
    std::fs::write(path, bytes).map_err(TheoryError::io("write", path))
}

/// Reads an encoder: its shape from the shapes of its tensors, its heads from `heads`, the metadata, or else 2 (1 where the width
/// is odd).
pub fn load_encoder(path: &Path, heads: Option<usize>) -> Result<(EncoderConfig, Weights)> {
    let bytes = std::fs::read(path).map_err(TheoryError::io("read", path))?;
    let (_, header) = SafeTensors::read_metadata(&bytes)
        .map_err(|error| bad(path, format!("is not a readable safetensors file ({error})")))?;
    let shape = |name: &str| -> Result<Vec<usize>> {
        let info = header.info(name).ok_or_else(|| {
            bad(
                path,
                format!(
                    "has no tensor {name}, so it does not hold an encoder of pudica (docs/theory.md names its tensors)"
                ),
            )
        })?;
        Ok(info.shape.clone())
    };
    let matrix = |name: &str| match shape(name)?[..] {
        [rows, columns] => Ok((rows, columns)),
        _ => Err(bad(path, format!("holds {name}, which should be a matrix"))),
    };
    let (n, width) = matrix("pos.weight")?;
    let (_, d) = matrix("head.weight")?;
    let (ff, _) = matrix("enc.layers.0.linear1.weight")?;
    let layers = (0..).take_while(|k| header.info(&format!("enc.layers.{k}.norm1.weight")).is_some()).count();
    let noted = header.metadata().as_ref().and_then(|metadata| metadata.get(HEADS)?.parse().ok());
    let heads = heads.or(noted).unwrap_or(if d.is_multiple_of(2) { 2 } else { 1 });
    let embed = if width == d { Embed::Add } else { Embed::Concat };
    let config = EncoderConfig { n, d, layers, heads, ff, embed, same_init: false };
    let architecture = Architecture::Encoder(config.clone());
    let weights = architecture.empty_weights()?.from_bytes(&bytes).map_err(|error| bad(path, error.to_string()))?;
    Ok((config, weights))
}

fn bad(path: &Path, problem: String) -> TheoryError {
    TheoryError::BadFile { path: path.into(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_saved_encoder_says_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("encoder.safetensors");
        let config = EncoderConfig { d: 12, heads: 3, ff: 7, same_init: false, ..EncoderConfig::paper(5) };
        for config in [config.clone(), EncoderConfig { embed: Embed::Add, layers: 1, ..config }] {
            let weights = Architecture::Encoder(config.clone()).initial_weights(1).unwrap();
            save_encoder(&path, &config, &weights).unwrap();
            assert_eq!(load_encoder(&path, None).unwrap(), (config.clone(), weights));
            assert_eq!(load_encoder(&path, Some(4)).unwrap().0.heads, 4);
        }
    }

    #[test]
    fn other_files_are_refused_with_a_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("no.safetensors");
        let refusal = |path: &Path| load_encoder(path, None).unwrap_err().to_string();
        assert!(refusal(&path).contains("cannot read"));
        std::fs::write(&path, "hello").unwrap();
        assert!(refusal(&path).contains("not a readable safetensors file"));
        Weights::zeros([("a", &[2usize, 2][..])]).save(&path).unwrap();
        assert!(refusal(&path).contains("has no tensor pos.weight"));
    }
}
