//! Outputs, gradients, normalisation factors, decoding and ten training losses against PyTorch.
//! The files and the scripts that wrote them (`write.py`, `networks.py`) are in `tests/golden`.

use pudica_data::{Bits, Target, prefix_parities};
use pudica_nn::{
    AdamWConfig, Architecture, Cell, Device, Eigenvalues, Embed, EncoderConfig, EncoderDecoderConfig, LAYER_NORM_EPS,
    MlpConfig, Network, Nonlinearity, Normalisation, Placed, Position, Read, RecurrentConfig, Span, StateSpaceConfig,
    Trainer, TransformerConfig, Variant, loss_and_gradient,
};

mod golden_files;
use golden_files::{Golden, devices, path, widen};

/// What `write.py` trains with.
const ADAMW: AdamWConfig = AdamWConfig { lr: 1e-2, betas: (0.9, 0.98), eps: 1e-8, weight_decay: 0.1 };

fn encoder(n: usize, d: usize, layers: usize, heads: usize, ff: usize, embed: Embed) -> Architecture {
    Architecture::Encoder(EncoderConfig { n, d, layers, heads, ff, embed, same_init: true })
}

fn encoder_decoder(n: usize, d: usize, layers: usize, heads: usize, ff: usize, embed: Embed) -> Architecture {
    Architecture::EncoderDecoder(EncoderDecoderConfig { n, d, layers, heads, ff, embed })
}

fn mlp(n: usize, d: usize, layers: usize, activation: Nonlinearity) -> Architecture {
    Architecture::Mlp(MlpConfig { n, d, layers, activation })
}

fn recurrent(cell: Cell, n: usize, d: usize, layers: usize, read: Read) -> Architecture {
    Architecture::Recurrent(RecurrentConfig { cell, n, d, layers, read })
}

/// `STATES` of `networks.py`, changed.
fn state_space(change: impl FnOnce(&mut StateSpaceConfig)) -> Architecture {
    let (eigenvalues, variant) = (Eigenvalues::Positive, Variant::default());
    let mut config = StateSpaceConfig { n: 5, d: 6, layers: 2, ff: 7, eigenvalues, same_init: true, variant };
    change(&mut config);
    Architecture::StateSpace(config)
}

/// `PLAIN` of `networks.py`, changed.
fn transformer(change: impl FnOnce(&mut TransformerConfig)) -> Architecture {
    let encoder = EncoderConfig { n: 5, d: 8, layers: 2, heads: 2, ff: 6, embed: Embed::Concat, same_init: true };
    let (variant, position, span) = (Variant::default(), Position::Learned, Span::Full);
    let mut config = TransformerConfig { encoder, variant, position, positions: 5, span };
    change(&mut config);
    Architecture::Transformer(config)
}

fn cases() -> Vec<(Architecture, Golden)> {
    let (gelu, mean) = (Nonlinearity::Gelu, Read::Mean);
    [
        ("encoder-concat-1", encoder(6, 12, 1, 2, 10, Embed::Concat)),
        ("encoder-concat-2", encoder(6, 16, 2, 2, 16, Embed::Concat)),
        ("encoder-add-3", encoder(5, 9, 3, 1, 12, Embed::Add)),
        ("encoder-add-2", encoder(7, 12, 2, 3, 12, Embed::Add)),
        ("encoder-decoder-concat-2", encoder_decoder(6, 12, 2, 2, 10, Embed::Concat)),
        ("encoder-decoder-add-1", encoder_decoder(5, 8, 1, 1, 8, Embed::Add)),
        ("bits-mlp", mlp(5, 7, 2, Nonlinearity::Relu)),
        ("bits-mlp-gelu", mlp(6, 5, 3, gelu)),
        ("bits-lstm", recurrent(Cell::Lstm, 6, 5, 2, Read::Last)),
        ("bits-lstm-mean", recurrent(Cell::Lstm, 5, 4, 1, mean)),
        ("bits-gru", recurrent(Cell::Gru, 6, 5, 2, Read::Last)),
        ("bits-gru-mean", recurrent(Cell::Gru, 5, 4, 1, mean)),
        ("bits-ssm", state_space(|_| {})),
        (
            "bits-ssm-signed",
            state_space(|c| {
                c.eigenvalues = Eigenvalues::Signed;
                c.variant = Variant { norm: Normalisation::Pre, activation: gelu, read: mean };
            }),
        ),
        ("bits-ssm-none", state_space(|c| (c.layers, c.variant.norm) = (1, Normalisation::None))),
        ("bits-pre", transformer(|c| (c.variant.norm, c.variant.activation) = (Normalisation::Pre, gelu))),
        ("bits-rms", transformer(|c| (c.variant.norm, c.variant.read) = (Normalisation::Rms, mean))),
        ("bits-none", transformer(|c| c.variant.norm = Normalisation::None)),
        ("bits-mean", transformer(|c| c.variant.read = mean)),
        ("bits-sinusoidal", transformer(|c| (c.position, c.encoder.embed) = (Position::Sinusoidal, Embed::Add))),
        (
            "bits-sinusoidal-concat",
            transformer(|c| (c.position, c.encoder.d, c.span) = (Position::Sinusoidal, 10, Span::Causal)),
        ),
        ("bits-rotary", transformer(|c| c.position = Position::Rotary)),
        (
            "bits-rotary-pre",
            transformer(|c| {
                (c.position, c.span) = (Position::Rotary, Span::Causal);
                (c.variant.norm, c.variant.read) = (Normalisation::Pre, mean);
            }),
        ),
        ("bits-causal", transformer(|c| (c.position, c.span) = (Position::None, Span::Causal))),
        ("bits-positions", transformer(|c| c.positions = 9)),
    ]
    .into_iter()
    .map(|(name, architecture)| (architecture, Golden::read(name)))
    .collect()
}

impl Golden {
    fn strings(&self, name: &str, n: usize) -> Bits {
        Bits::new(n, self.get(name).into_iter().map(|x| x as u8).collect()).unwrap()
    }
}

#[test]
fn names_and_shapes_are_those_of_the_state_dict() {
    for (architecture, golden) in cases() {
        golden.assert_same_layout(&architecture.empty_weights().unwrap());
    }
}

#[test]
fn outputs_agree_in_f32_and_f64() {
    for (architecture, golden) in cases() {
        let strings = golden.strings("strings", architecture.n());
        let expected = golden.get("outputs");
        let network = |device| {
            Network::new(&architecture, golden.weights("weight", architecture.empty_weights().unwrap()), &device)
                .unwrap()
        };
        for device in devices() {
            let single = network(device).predict(&strings).unwrap();
            golden.assert_close("outputs", &widen(&single), &expected, 1e-4);
        }
        let double = network(Device::cpu().double()).predict_f64(&strings).unwrap();
        golden.assert_close("outputs in f64", &double, &expected, 1e-9);
    }
}

#[test]
fn gradients_agree_in_f32_and_f64() {
    for (architecture, golden) in cases() {
        let (strings, labels) = (golden.strings("strings", architecture.n()), golden.get_f32("labels"));
        let weights = golden.weights("weight", architecture.empty_weights().unwrap());
        let expected = golden.flat("grad", &weights);
        let (_, single) = loss_and_gradient::<f32>(&architecture, &weights, &strings, &labels, &Device::cpu()).unwrap();
        golden.assert_close("gradient", &widen(&single), &expected, 1e-4);
        let double = Device::cpu().double();
        let (_, double) = loss_and_gradient::<f64>(&architecture, &weights, &strings, &labels, &double).unwrap();
        golden.assert_close("gradient in f64", &double, &expected, 1e-9);
    }
}

#[test]
fn normalisation_factors_agree() {
    for (architecture, golden) in cases() {
        let (strings, d) = (golden.strings("strings", architecture.n()), golden.get("weight.head.weight").len() as f64);
        let network = Network::new(
            &architecture,
            golden.weights("weight", architecture.empty_weights().unwrap()),
            &Device::cpu(),
        )
        .unwrap();
        let is_rms =
            matches!(&architecture, Architecture::Transformer(config) if config.variant.norm == Normalisation::Rms);
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
            let unbiasing = if is_rms { 1.0 } else { d / (d - 1.0) };
            let code: Vec<f64> = variances.iter().map(|v| 1.0 / (v * unbiasing).sqrt()).collect();
            let theory: Vec<f64> = variances.iter().map(|v| 1.0 / (v + LAYER_NORM_EPS).sqrt()).collect();
            golden.assert_close(&norm.name, &widen(&norm.unbiased), &code, 1e-4);
            golden.assert_close(&norm.name, &widen(&norm.theory), &theory, 1e-4);
        }
    }
}

#[test]
fn decoding_agrees_with_computing_everything_anew() {
    for (architecture, golden) in cases() {
        let strings = golden.strings("strings", architecture.n());
        let expected = golden.get(if architecture.outputs() > 1 { "decoded" } else { "outputs" });
        for device in devices() {
            let network =
                Network::new(&architecture, golden.weights("weight", architecture.empty_weights().unwrap()), &device)
                    .unwrap();
            golden.assert_close("decoded", &widen(&network.decode(&strings).unwrap()), &expected, 1e-4);
        }
    }
}

#[test]
fn ten_training_losses_agree() {
    for (architecture, golden) in cases() {
        let strings = golden.strings("trajectory_strings", architecture.n());
        let labels = |batch: &Bits| match architecture.outputs() {
            1 => Target::parse("parity", batch.n()).unwrap().labels(batch).unwrap(),
            _ => prefix_parities(batch),
        };
        for device in devices() {
            let mut trainer = Trainer::new(
                &architecture,
                golden.weights("weight", architecture.empty_weights().unwrap()),
                ADAMW,
                &device,
            )
            .unwrap();
            let losses: Vec<f64> =
                strings.pieces(16).map(|batch| trainer.step(&batch, &labels(&batch)).unwrap()).collect();
            golden.assert_close("losses", &losses, &golden.get("losses"), 1e-4);
        }
    }
}

/// Strings of other lengths, and strings that begin elsewhere: `lengths.*` of the files, from `networks.py`.
#[test]
fn other_lengths_and_places_agree() {
    let mut compared = 0;
    for (architecture, golden) in cases() {
        let weights = || golden.weights("weight", architecture.empty_weights().unwrap());
        let network = Network::new(&architecture, weights(), &Device::cpu().double()).unwrap();
        for name in golden.names().iter().filter(|name| name.starts_with("lengths.")) {
            let (length, offset) = name["lengths.".len()..].split_once('.').unwrap();
            let (length, offset): (usize, usize) = (length.parse().unwrap(), offset.parse().unwrap());
            let all = golden.strings("trajectory_strings", 1);
            let strings = &Bits::new(length, all.data()[..7 * length].to_vec()).unwrap();
            let found = network.predict_f64(Placed { strings, offset }).unwrap();
            golden.assert_close(name, &found, &golden.get(name), 1e-9);
            compared += 1;
        }
    }
    assert!(compared > 10);
}

#[test]
fn strings_that_a_network_does_not_read_are_refused() {
    let refusal = |architecture: &Architecture, length: usize, offset: usize| {
        let network = Network::new(architecture, architecture.initial_weights(0).unwrap(), &Device::cpu()).unwrap();
        let strings = &Bits::new(length, vec![1; length]).unwrap();
        network.predict(Placed { strings, offset }).unwrap_err().to_string()
    };
    let perceptron = mlp(5, 4, 1, Nonlinearity::Relu);
    assert!(refusal(&perceptron, 4, 0).contains("reads strings of 5 bits, these have 4"));
    let long = transformer(|c| c.positions = 9);
    assert!(refusal(&long, 10, 0).contains("up to 9 bits, these have 10"));
    assert!(refusal(&long, 5, 5).contains("has 9 positions, and strings of 5 bits from position 5 on need more"));
    assert!(refusal(&encoder(6, 12, 1, 2, 10, Embed::Concat), 7, 0).contains("up to 6 bits"));
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
