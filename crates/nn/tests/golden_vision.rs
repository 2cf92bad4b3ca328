//! The image networks against PyTorch: outputs, gradients, running statistics, steps of the optimisers; then resuming and learning.
//! The files and the script that wrote them are in `tests/golden`.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pudica_data::Stream;
use pudica_nn::classifier::{Classifier, Learner, Model, Optimiser, accuracy};
use pudica_nn::vision::{
    Activation, Attention, CnnConfig, ConvMixerConfig, DenseNetConfig, Images, MlpConfig, Pictures, ResNetConfig,
    VisionConfig, VitSimpleConfig, VitSmallConfig,
};
use pudica_nn::{Device, Weights};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

/// The networks of `vision.py`.
fn cases() -> Vec<(VisionConfig, Golden)> {
    let images = |channels, side, classes| Images { channels, side, classes };
    let mlp = |images, hidden: &[usize], activation| {
        VisionConfig::Mlp(MlpConfig { images, hidden: hidden.to_vec(), activation })
    };
    [
        ("mlp", mlp(images(1, 5, 4), &[7, 6], Activation::LeakyRelu)),
        ("mlp-sigmoid", mlp(images(2, 4, 3), &[6], Activation::Sigmoid)),
        ("cnn", VisionConfig::Cnn(CnnConfig { images: images(2, 9, 4), width: 3, hidden: 5, ..CnnConfig::default() })),
        ("vit-small", vit_small(Attention::Softmax)),
        ("vit-small-relu", vit_small(Attention::Relu)),
        (
            "vit-simple",
            VisionConfig::VitSimple(VitSimpleConfig {
                images: images(2, 6, 3),
                patch: 2,
                dim: 12,
                depth: 2,
                heads: 3,
                dim_head: 4,
                mlp: 7,
            }),
        ),
        ("resnet18", VisionConfig::ResNet18(ResNetConfig { images: images(3, 8, 4), width: 3, blocks: vec![1, 2] })),
        (
            "densenet121",
            VisionConfig::DenseNet121(DenseNetConfig { images: images(3, 8, 4), growth: 2, blocks: vec![2, 1, 2] }),
        ),
        ("convmixer", conv_mixer()),
    ]
    .into_iter()
    .map(|(name, config)| (config, Golden::read(name)))
    .collect()
}

fn vit_small(attention: Attention) -> VisionConfig {
    VisionConfig::VitSmall(VitSmallConfig {
        images: Images { channels: 2, side: 6, classes: 3 },
        patch: 3,
        dim: 8,
        depth: 2,
        heads: 2,
        dim_head: 5,
        mlp: 7,
        attention,
        dropout: 0.0,
        emb_dropout: 0.0,
    })
}

fn conv_mixer() -> VisionConfig {
    let images = Images { channels: 3, side: 8, classes: 4 };
    VisionConfig::ConvMixer(ConvMixerConfig { images, dim: 6, depth: 2, kernel: 3, patch: 2 })
}

/// Dropout's generator is one for the whole process: tests that use it take turns.
fn generator() -> MutexGuard<'static, ()> {
    static GENERATOR: Mutex<()> = Mutex::new(());
    GENERATOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Every device this binary and this machine have.
fn devices() -> Vec<Device> {
    ["cpu", "torch", "cuda"].into_iter().filter_map(|name| Device::parse(name).ok()).collect()
}

/// In f64, the processor only: the same numbers to the last digits or different formulas.
fn doubles() -> Vec<Device> {
    ["cpu", "torch"].into_iter().filter_map(|name| Device::parse(name).ok()).map(Device::double).collect()
}

struct Golden {
    name: &'static str,
    bytes: Vec<u8>,
}

impl Golden {
    fn read(name: &'static str) -> Self {
        let path = format!("../../tests/golden/vision-{name}.safetensors");
        Self { name, bytes: std::fs::read(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap() }
    }

    fn has(&self, name: &str) -> bool {
        SafeTensors::deserialize(&self.bytes).unwrap().tensor(name).is_ok()
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

    fn pictures(&self, name: &str, images: &Images) -> Pictures {
        let values = self.get(name).into_iter().map(|x| x as f32).collect();
        Pictures::new(values, [images.channels, images.side, images.side]).unwrap()
    }

    fn labels(&self, name: &str) -> Vec<usize> {
        self.get(name).into_iter().map(|label| label as usize).collect()
    }

    /// The tensors PREFIX.NAME of all names of `layout`.
    fn weights(&self, prefix: &str, mut layout: Weights) -> Weights {
        let names: Vec<String> = layout.layout().iter().map(|parameter| parameter.name.clone()).collect();
        for name in names {
            let values: Vec<f32> = self.get(&format!("{prefix}.{name}")).into_iter().map(|x| x as f32).collect();
            layout.get_mut(&name).unwrap().copy_from_slice(&values);
        }
        layout
    }

    fn model(&self, config: &VisionConfig, device: &Device) -> Model<VisionConfig> {
        let weights = self.weights("weight", config.empty_weights().unwrap());
        let buffers = self.weights("weight", config.initial_buffers());
        Model::new(config, &weights, &buffers, device).unwrap()
    }

    #[track_caller]
    fn assert_close(&self, what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(found.len(), expected.len(), "{}: {what}", self.name);
        let largest = expected.iter().fold(0.0f64, |largest, x| largest.max(x.abs()));
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            let off = (found - expected).abs();
            // A tensor that is 0 but for rounding, such as the gradient of a bias before BatchNorm, has no size of its own.
            assert!(
                off <= tolerance * largest.max(1e-3),
                "{}: {what}[{i}] is {found}, PyTorch has {expected}; the largest is {largest}",
                self.name
            );
        }
    }

    /// Compares a vector in the order of the weights with PyTorch's tensors PREFIX.NAME, each by its own size.
    #[track_caller]
    fn assert_all_close(&self, prefix: &str, layout: &Weights, found: &[f64], tolerance: f64) {
        for parameter in layout.layout() {
            let name = format!("{prefix}.{}", parameter.name);
            self.assert_close(&name, &found[parameter.range.clone()], &self.get(&name), tolerance);
        }
    }
}

fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

#[test]
fn names_and_shapes_are_those_of_the_state_dict() {
    for (config, golden) in cases() {
        let weights = config.empty_weights().unwrap();
        let ours: Vec<String> = weights.layout().iter().map(|p| format!("[\"{}\", {:?}]", p.name, p.shape)).collect();
        let (_, header) = SafeTensors::read_metadata(&golden.bytes).unwrap();
        assert_eq!(format!("[{}]", ours.join(", ")), header.metadata().as_ref().unwrap()["names"], "{}", golden.name);
    }
}

#[test]
fn outputs_agree_in_f32_and_f64() {
    for (config, golden) in cases() {
        let pictures = golden.pictures("images", config.images());
        let expected = golden.get("outputs");
        for device in devices() {
            let single = golden.model(&config, &device).predict(&pictures).unwrap();
            golden.assert_close("outputs", &widen(&single), &expected, 1e-5);
        }
        for device in doubles() {
            let double = golden.model(&config, &device).predict_f64(&pictures).unwrap();
            golden.assert_close("outputs in f64", &double, &expected, 1e-9);
        }
    }
}

#[test]
fn gradients_agree_in_f32_and_f64() {
    for (config, golden) in cases() {
        let (pictures, labels) = (golden.pictures("images", config.images()), golden.labels("labels"));
        let (layout, expected) = (config.empty_weights().unwrap(), golden.get("loss"));
        for device in devices() {
            let (loss, single) = golden.model(&config, &device).loss_and_gradient::<f32>(&pictures, &labels).unwrap();
            golden.assert_close("loss", &widen(&[loss]), &expected, 1e-5);
            golden.assert_all_close("grad", &layout, &widen(&single), 2e-5);
        }
        for device in doubles() {
            let (loss, double) = golden.model(&config, &device).loss_and_gradient::<f64>(&pictures, &labels).unwrap();
            golden.assert_close("loss in f64", &[loss], &expected, 1e-9);
            golden.assert_all_close("grad", &layout, &double, 1e-9);
        }
    }
}

/// A learner whose weights and running statistics are those of the golden file.
fn learner(golden: &Golden, config: &VisionConfig, optimiser: Optimiser, device: &Device) -> Learner<VisionConfig> {
    let weights = golden.weights("weight", config.empty_weights().unwrap());
    let buffers = golden.weights("weight", config.initial_buffers());
    Learner::with_buffers(config, &weights, &buffers, optimiser, 0, device).unwrap()
}

/// What BatchNorm does in training shows in a step: of plain SGD at a large rate, so that rounding the weights to f32 loses nothing.
#[test]
fn training_mode_agrees() {
    let _turn = generator();
    let rate = 1e4;
    for (config, golden) in cases().into_iter().filter(|(_, golden)| golden.has("train_loss")) {
        let (pictures, labels) = (golden.pictures("images", config.images()), golden.labels("labels"));
        let before = golden.weights("weight", config.empty_weights().unwrap());
        let runs = devices().into_iter().map(|device| (device, 2e-5));
        for (device, tolerance) in runs.chain(doubles().into_iter().map(|device| (device, 1e-6))) {
            let mut learner = learner(&golden, &config, Optimiser::SGD, &device);
            learner.step(&pictures, &labels, None, rate).unwrap();
            let loss = learner.loss().unwrap().unwrap();
            golden.assert_close("train_loss", &widen(&[loss]), &golden.get("train_loss"), tolerance);
            let after = learner.model().weights().unwrap();
            let gradient = before.data().iter().zip(after.data());
            let gradient: Vec<f64> = gradient.map(|(b, a)| (f64::from(*b) - f64::from(*a)) / rate).collect();
            golden.assert_all_close("train_grad", &before, &gradient, tolerance);
            let running = learner.model().buffers().unwrap();
            golden.assert_all_close("running", &running, &widen(running.data()), 1e-6);
        }
    }
}

#[test]
fn three_steps_of_each_optimiser_agree() {
    let _turn = generator();
    let (config, golden) = (conv_mixer(), Golden::read("steps"));
    let adam = |weight_decay, decoupled| Optimiser::Adam { betas: (0.8, 0.95), eps: 1e-6, weight_decay, decoupled };
    for (name, optimiser, rate) in [
        ("sgd", Optimiser::Sgd { momentum: 0.9, weight_decay: 0.01 }, 0.05),
        ("adam", adam(0.02, false), 0.002),
        ("adamw", adam(0.5, true), 0.002),
    ] {
        for device in doubles() {
            let mut learner = learner(&golden, &config, optimiser, &device);
            for at in 0..3 {
                let pictures = golden.pictures(&format!("images.{at}"), config.images());
                learner.step(&pictures, &golden.labels(&format!("labels.{at}")), None, rate).unwrap();
            }
            let (weights, running) = (learner.model().weights().unwrap(), learner.model().buffers().unwrap());
            golden.assert_all_close(name, &weights, &widen(weights.data()), 1e-6);
            golden.assert_all_close(name, &running, &widen(running.data()), 1e-6);
        }
    }
}

/// Noisy images of four patterns: stripes down, across, narrow and wide, and a chessboard.
fn patterns(count: usize, seed: u64) -> (Pictures, Vec<usize>) {
    let mut stream = Stream::new(seed, "patterns", 0);
    let labels: Vec<usize> = (0..count).map(|_| stream.below(4) as usize).collect();
    let mut values = Vec::new();
    for label in &labels {
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let field = [column, row, row / 2, row + column][*label];
            values.push(stream.normal_f32() * 0.3 + if field % 2 == 0 { 1.0 } else { -1.0 });
        }
    }
    (Pictures::new(values, [1, 8, 8]).unwrap(), labels)
}

fn small_networks() -> [VisionConfig; 7] {
    let images = Images { channels: 1, side: 8, classes: 4 };
    let vit = VitSmallConfig { patch: 4, dim: 16, depth: 1, heads: 2, dim_head: 8, mlp: 16, ..Default::default() };
    let simple = VitSimpleConfig { patch: 4, dim: 16, depth: 1, heads: 2, dim_head: 8, mlp: 16, ..Default::default() };
    [
        VisionConfig::Mlp(MlpConfig { hidden: vec![16], ..Default::default() }),
        VisionConfig::Cnn(CnnConfig { width: 4, hidden: 8, ..Default::default() }),
        VisionConfig::VitSmall(vit),
        VisionConfig::VitSimple(simple),
        VisionConfig::ResNet18(ResNetConfig { width: 4, blocks: vec![1, 1], ..Default::default() }),
        VisionConfig::DenseNet121(DenseNetConfig { growth: 4, blocks: vec![1, 1], ..Default::default() }),
        VisionConfig::ConvMixer(ConvMixerConfig { dim: 8, depth: 1, kernel: 3, patch: 2, ..Default::default() }),
    ]
    .map(|config| config.with_images(images))
}

#[test]
fn small_networks_learn() {
    let _turn = generator();
    let ((pictures, labels), (others, other_labels)) = (patterns(32, 1), patterns(64, 2));
    for device in devices() {
        for config in small_networks() {
            let start = config.initial_weights(3).unwrap();
            let mut learner = Learner::new(&config, &start, Optimiser::ADAM, 0, &device).unwrap();
            for _ in 0..60 {
                learner.step(&pictures, &labels, None, 0.01).unwrap();
            }
            let scores = learner.model().predict(&others).unwrap();
            let share = accuracy(&scores, &other_labels, 4);
            assert!(share > 0.9, "{config:?} on {}: {share}", device.name());
        }
    }
}

/// Stopping, storing and going on is as if nothing had happened, dropout and BatchNorm included.
#[test]
fn a_resumed_training_goes_on_to_the_bit() {
    let _turn = generator();
    let (pictures, labels) = patterns(16, 4);
    for device in devices().into_iter().filter(|device| device.name() != "cuda") {
        for config in small_networks() {
            let optimiser = Optimiser::adamw(0.01);
            let start = config.initial_weights(5).unwrap();
            let mut straight = Learner::new(&config, &start, optimiser, 6, &device).unwrap();
            let mut stopped = None;
            for step in 0..4 {
                if step == 2 {
                    stopped = Some(straight.checkpoint().unwrap());
                }
                straight.step(&pictures, &labels, None, 0.01).unwrap();
            }
            let mut resumed = Learner::resume(&config, &stopped.unwrap(), optimiser, 6, &device).unwrap();
            for _ in 2..4 {
                resumed.step(&pictures, &labels, None, 0.01).unwrap();
            }
            assert_eq!(resumed.checkpoint().unwrap(), straight.checkpoint().unwrap(), "{config:?}");
        }
    }
}

/// Dropout is at work in training only: two seeds part ways, prediction does not change.
#[test]
fn dropout_depends_on_the_seed_in_training_only() {
    let _turn = generator();
    let (pictures, labels) = patterns(16, 4);
    let [_, _, config, ..] = small_networks();
    for device in devices() {
        let start = config.initial_weights(5).unwrap();
        let trained = |seed| {
            let mut learner = Learner::new(&config, &start, Optimiser::SGD, seed, &device).unwrap();
            learner.step(&pictures, &labels, None, 0.1).unwrap();
            let predict = || learner.model().predict(&pictures).unwrap();
            assert_eq!(predict(), predict());
            learner.model().weights().unwrap()
        };
        assert_ne!(trained(1), trained(2));
    }
}
