//! Hand-built transformers against PyTorch: the files and the script that checked them there are in `tests/golden`.

use std::path::PathBuf;

use pudica_data::Bits;
use pudica_theory::constructions::Construction;
use pudica_theory::{ExactEncoder, load_encoder, save_encoder};
use safetensors::SafeTensors;

const N: usize = 8;

fn golden(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/{name}.safetensors"))
}

#[test]
fn saved_constructions_are_the_files_pytorch_was_right_with() {
    let folder = tempfile::tempdir().unwrap();
    for construction in Construction::ALL {
        let (config, path) = (construction.default_config(N), folder.path().join("built.safetensors"));
        let weights = construction.build(&config, construction.default_gain(N)).unwrap();
        save_encoder(&path, &config, &weights).unwrap();
        let stored = golden(&format!("built-{construction}"));
        if std::env::var_os("PUDICA_WRITE").is_some() {
            std::fs::copy(&path, &stored).unwrap();
        }
        assert!(
            std::fs::read(&path).unwrap() == std::fs::read(&stored).unwrap(),
            "{construction} is saved differently now"
        );
        assert_eq!(load_encoder(&stored, None).unwrap(), (config, weights));
    }
}

#[test]
fn pytorch_computes_the_same_outputs() {
    for construction in Construction::ALL {
        let (config, weights) = load_encoder(&golden(&format!("built-{construction}")), None).unwrap();
        let ours = ExactEncoder::new(&config, &weights).unwrap().outputs(&Bits::cube(N).unwrap());
        let bytes = std::fs::read(golden(&format!("built-{construction}-outputs"))).unwrap();
        let theirs = SafeTensors::deserialize(&bytes).unwrap();
        let theirs = theirs.tensor("outputs").unwrap();
        let theirs: Vec<f64> =
            theirs.data().chunks_exact(8).map(|eight| f64::from_le_bytes(eight.try_into().unwrap())).collect();
        assert_eq!(theirs.len(), 1 << N);
        for (ours, theirs) in ours.iter().zip(&theirs) {
            assert!((ours - theirs).abs() < 1e-9, "{construction}: {ours} {theirs}");
        }
    }
}
