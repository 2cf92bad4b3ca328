//! Encoders in safetensors files that say by themselves what they are.

use std::collections::HashMap;
use std::io::Write;
use std::path::Path;

use pudica_boolean::write_atomically;
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
    write_atomically(path, |file| file.write_all(&bytes)).map_err(TheoryError::io("write", path))
}

/// Reads an encoder: its shape from the shapes of its tensors, its heads from `heads`, the metadata, or else 2 (1 where the width
/// is odd).
pub fn load_encoder(path: &Path, heads: Option<usize>) -> Result<(EncoderConfig, Weights)> {
    let metadata = std::fs::metadata(path).map_err(TheoryError::io("read", path))?;
    if !metadata.is_file() {
        return Err(bad(path, "is not a file".into())); // a device might never end
    }
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
    if heads == 0 || !d.is_multiple_of(heads) {
        return Err(bad(path, format!("has a width of {d}, which {heads} heads do not divide")));
    }
    let embed = if width == d { Embed::Add } else { Embed::Concat };
    let config = EncoderConfig { n, d, layers, heads, ff, embed, same_init: false };
    // Memory is asked for by these sizes, so a file that is too short for them must not get that far.
    let least = layers as u128 * (4 * (d as u128).pow(2) + 2 * d as u128 * ff as u128);
    if least > bytes.len() as u128 {
        return Err(bad(path, format!("is too short for an encoder of width {d}, {layers} layers and ff {ff}")));
    }
    let architecture = Architecture::Encoder(config.clone());
    let weights = architecture.read_weights(&bytes).map_err(|error| bad(path, error.to_string()))?;
    Ok((config, weights))
}

/// Reads the weights of a run whose network is `architecture`; only encoders have the bounds' form.
pub fn load_run_encoder(architecture: &Architecture, path: &Path) -> Result<(EncoderConfig, Weights)> {
    let Architecture::Encoder(config) = architecture else {
        return Err(bad(path, "belongs to another network; the bounds are about the paper's encoder".into()));
    };
    let bytes = std::fs::read(path).map_err(TheoryError::io("read", path))?;
    let weights = architecture.read_weights(&bytes).map_err(|error| bad(path, error.to_string()))?;
    Ok((config.clone(), weights))
}

/// The same encoder on shorter strings: only the first `n` positions of its table.
pub fn shortened(config: &EncoderConfig, weights: &Weights, n: usize) -> Result<(EncoderConfig, Weights)> {
    if n == 0 || n > config.n {
        let problem =
            format!("this encoder has {} positions, so strings can have 1 to {} bits, not {n}", config.n, config.n);
        return Err(TheoryError::argument(problem));
    }
    let config = EncoderConfig { n, ..config.clone() };
    let mut short = Architecture::Encoder(config.clone()).empty_weights()?;
    for parameter in weights.layout() {
        let values = &weights.data()[parameter.range.clone()];
        if let Some(kept) = short.get_mut(&parameter.name) {
            kept.copy_from_slice(&values[..kept.len()]);
        }
    }
    Ok((config, short))
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
    fn a_shortened_encoder_keeps_its_first_positions() {
        let config = EncoderConfig { d: 4, heads: 1, ff: 4, ..EncoderConfig::paper(5) };
        let weights = Architecture::Encoder(config.clone()).initial_weights(1).unwrap();
        let (short, kept) = shortened(&config, &weights, 3).unwrap();
        assert_eq!(short.n, 3);
        assert_eq!(kept.get("pos.weight").unwrap().1, &weights.get("pos.weight").unwrap().1[..6]);
        assert_eq!(kept.get("head.weight"), weights.get("head.weight"));
        assert!(shortened(&config, &weights, 6).unwrap_err().to_string().contains("1 to 5 bits, not 6"));
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
        let (wide, one) = ([1usize, 300_000], [1usize, 1]);
        let names = ["pos.weight", "head.weight", "enc.layers.0.linear1.weight", "enc.layers.0.norm1.weight"];
        Weights::zeros(names.into_iter().zip([&one[..], &wide, &one, &one])).save(&path).unwrap();
        assert!(refusal(&path).contains("too short for an encoder of width 300000"), "{}", refusal(&path));
        assert!(refusal(folder.path()).contains("is not a file"));
        #[cfg(unix)]
        assert!(refusal(Path::new("/dev/zero")).contains("is not a file"));
    }
}
