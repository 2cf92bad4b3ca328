//! Outputs, gradients, normalisation factors, decoding and ten training losses against PyTorch.
//! The files and the script that wrote them are in `tests/golden`.

use std::path::PathBuf;

use pudica_data::{Bits, Target, prefix_parities};
use pudica_nn::{
    AdamWConfig, Architecture, Device, Embed, EncoderConfig, EncoderDecoderConfig, LAYER_NORM_EPS, Network, Trainer,
    Weights, loss_and_gradient,
};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

/// What `write.py` trains with.
const ADAMW: AdamWConfig = AdamWConfig { lr: 1e-2, betas: (0.9, 0.98), eps: 1e-8, weight_decay: 0.1 };

fn encoder(n: usize, d: usize, layers: usize, heads: usize, ff: usize, embed: Embed) -> Architecture {
    Architecture::Encoder(EncoderConfig { n, d, layers, heads, ff, embed, same_init: true })
}

fn encoder_decoder(n: usize, d: usize, layers: usize, heads: usize, ff: usize, embed: Embed) -> Architecture {
    Architecture::EncoderDecoder(EncoderDecoderConfig { n, d, layers, heads, ff, embed })
}

fn cases() -> Vec<(Architecture, Golden)> {
    [
        ("encoder-concat-1", encoder(6, 12, 1, 2, 10, Embed::Concat)),
        ("encoder-concat-2", encoder(6, 16, 2, 2, 16, Embed::Concat)),
        ("encoder-add-3", encoder(5, 9, 3, 1, 12, Embed::Add)),
        ("encoder-add-2", encoder(7, 12, 2, 3, 12, Embed::Add)),
        ("encoder-decoder-concat-2", encoder_decoder(6, 12, 2, 2, 10, Embed::Concat)),
        ("encoder-decoder-add-1", encoder_decoder(5, 8, 1, 1, 8, Embed::Add)),
    ]
    .into_iter()
    .map(|(name, architecture)| (architecture, Golden::read(name)))
    .collect()
}

/// Every device this binary and this machine have.
fn devices() -> Vec<Device> {
    ["cpu", "torch", "cuda"].into_iter().filter_map(|name| Device::parse(name).ok()).collect()
}

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/{name}.safetensors"))
}

struct Golden {
    name: &'static str,
    bytes: Vec<u8>,
}

impl Golden {
    fn read(name: &'static str) -> Self {
        Self { name, bytes: std::fs::read(path(name)).unwrap() }
    }

    fn names(&self) -> Vec<String> {
        SafeTensors::deserialize(&self.bytes).unwrap().names().into_iter().map(String::from).collect()
    }

    /// The names and shapes of PyTorch's `state_dict()`, in its order.
    fn state_dict(&self) -> String {
        let (_, header) = SafeTensors::read_metadata(&self.bytes).unwrap();
        header.metadata().as_ref().unwrap()["names"].clone()
    }

    fn get(&self, name: &str) -> Vec<f64> {
        let file = SafeTensors::deserialize(&self.bytes).unwrap();
        let view = file.tensor(name).unwrap_or_else(|_| panic!("{name} is not in {}", self.name));
        let chunks = |size| view.data().chunks_exact(size);
        match view.dtype() {
            Dtype::F64 => chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
            Dtype::F32 => chunks(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect(),
            Dtype::U8 => view.data().iter().map(|b| f64::from(*b)).collect(),
            other => panic!("{name} is {other:?}"),
        }
    }

    fn get_f32(&self, name: &str) -> Vec<f32> {
        self.get(name).into_iter().map(|x| x as f32).collect()
    }

    fn strings(&self, name: &str, n: usize) -> Bits {
        Bits::new(n, self.get(name).into_iter().map(|x| x as u8).collect()).unwrap()
    }

    fn weights(&self, architecture: &Architecture) -> Weights {
        let mut weights = architecture.empty_weights().unwrap();
        let names: Vec<String> = weights.layout().iter().map(|parameter| parameter.name.clone()).collect();
        for name in names {
            weights.get_mut(&name).unwrap().copy_from_slice(&self.get_f32(&format!("weight.{name}")));
        }
        weights
    }

    /// A vector of PyTorch's in the order of our weights.
    fn flat(&self, prefix: &str, weights: &Weights) -> Vec<f64> {
        weights.layout().iter().flat_map(|parameter| self.get(&format!("{prefix}.{}", parameter.name))).collect()
    }

    #[track_caller]
    fn assert_close(&self, what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(found.len(), expected.len(), "{}: {what}", self.name);
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            let off = (found - expected).abs() / expected.abs().max(1.0);
            assert!(off <= tolerance, "{}: {what}[{i}] is {found}, PyTorch has {expected}", self.name);
        }
    }
}

fn widen(values: Vec<f32>) -> Vec<f64> {
    values.into_iter().map(f64::from).collect()
}

#[test]
fn names_and_shapes_are_those_of_the_state_dict() {
    for (architecture, golden) in cases() {
        let weights = architecture.empty_weights().unwrap();
        let ours: Vec<String> = weights.layout().iter().map(|p| format!("[\"{}\", {:?}]", p.name, p.shape)).collect();
        assert_eq!(format!("[{}]", ours.join(", ")), golden.state_dict());
    }
}

#[test]
fn outputs_agree_in_f32_and_f64() {
    for (architecture, golden) in cases() {
        let strings = golden.strings("strings", architecture.n());
        let expected = golden.get("outputs");
        let network = |device| Network::new(&architecture, golden.weights(&architecture), &device).unwrap();
        for device in devices() {
            let single = network(device).predict(&strings).unwrap();
            golden.assert_close("outputs", &widen(single), &expected, 1e-4);
        }
        let double = network(Device::cpu().double()).predict_f64(&strings).unwrap();
        golden.assert_close("outputs in f64", &double, &expected, 1e-9);
    }
}

#[test]
fn gradients_agree_in_f32_and_f64() {
    for (architecture, golden) in cases() {
        let (strings, labels) = (golden.strings("strings", architecture.n()), golden.get_f32("labels"));
        let weights = golden.weights(&architecture);
        let expected = golden.flat("grad", &weights);
        let (_, single) = loss_and_gradient::<f32>(&architecture, &weights, &strings, &labels, &Device::cpu()).unwrap();
        golden.assert_close("gradient", &widen(single), &expected, 1e-4);
        let double = Device::cpu().double();
        let (_, double) = loss_and_gradient::<f64>(&architecture, &weights, &strings, &labels, &double).unwrap();
        golden.assert_close("gradient in f64", &double, &expected, 1e-9);
    }
}

#[test]
fn normalisation_factors_agree() {
    for (architecture, golden) in cases() {
        let (strings, d) = (golden.strings("strings", architecture.n()), golden.get("weight.head.weight").len() as f64);
        let network = Network::new(&architecture, golden.weights(&architecture), &Device::cpu()).unwrap();
        let (_, norms) = network.predict_with_norms(&strings).unwrap();
        let recorded = golden.names().iter().filter(|name| name.starts_with("norm.")).count();
        assert_eq!(norms.len(), recorded);
        for (index, norm) in norms.iter().enumerate() {
            // PyTorch's module computes all positions; ours only the last where only the last is read.
            let n = architecture.n();
            let variances: Vec<f64> = golden
                .get(&format!("norm.{index}.{}", norm.name))
                .chunks_exact(n)
                .flat_map(|row| row[n - norm.positions..].to_vec())
                .collect();
            let code: Vec<f64> = variances.iter().map(|v| 1.0 / (v * d / (d - 1.0)).sqrt()).collect();
            let theory: Vec<f64> = variances.iter().map(|v| 1.0 / (v + LAYER_NORM_EPS).sqrt()).collect();
            golden.assert_close(&norm.name, &widen(norm.unbiased.clone()), &code, 1e-4);
            golden.assert_close(&norm.name, &widen(norm.theory.clone()), &theory, 1e-4);
        }
    }
}

#[test]
fn decoding_agrees_with_computing_everything_anew() {
    for (architecture, golden) in cases() {
        let strings = golden.strings("strings", architecture.n());
        let expected = match &architecture {
            Architecture::Encoder(_) => golden.get("outputs"),
            Architecture::EncoderDecoder(_) => golden.get("decoded"),
        };
        for device in devices() {
            let network = Network::new(&architecture, golden.weights(&architecture), &device).unwrap();
            golden.assert_close("decoded", &widen(network.decode(&strings).unwrap()), &expected, 1e-4);
        }
    }
}

#[test]
fn ten_training_losses_agree() {
    for (architecture, golden) in cases() {
        let strings = golden.strings("trajectory_strings", architecture.n());
        let labels = |batch: &Bits| match &architecture {
            Architecture::Encoder(_) => Target::parse("parity", batch.n()).unwrap().labels(batch).unwrap(),
            Architecture::EncoderDecoder(_) => prefix_parities(batch),
        };
        for device in devices() {
            let mut trainer = Trainer::new(&architecture, golden.weights(&architecture), ADAMW, &device).unwrap();
            let losses: Vec<f64> =
                strings.pieces(16).map(|batch| trainer.step(&batch, &labels(&batch)).unwrap()).collect();
            golden.assert_close("losses", &losses, &golden.get("losses"), 1e-4);
        }
    }
}

/// `write.py` shows that PyTorch's `load_state_dict(strict=True)` accepts these files; here, that they are what we write.
/// After a deliberate change: `PUDICA_WRITE=1 cargo test -p pudica-nn --test golden saved`, then run `write.py`.
#[test]
fn saved_weights_are_the_files_pytorch_loads() {
    for (name, architecture) in [
        ("pudica-encoder", encoder(4, 8, 2, 2, 8, Embed::Concat)),
        ("pudica-encoder-decoder", encoder_decoder(4, 8, 2, 2, 8, Embed::Concat)),
    ] {
        let weights = architecture.initial_weights(7).unwrap();
        if std::env::var_os("PUDICA_WRITE").is_some() {
            weights.save(&path(name)).unwrap();
        }
        assert_eq!(weights.to_bytes().unwrap(), std::fs::read(path(name)).unwrap(), "{name}");
        assert_eq!(architecture.empty_weights().unwrap().load(&path(name)).unwrap(), weights);
    }
}
