//! The image networks against PyTorch: outputs, gradients, running statistics, steps of the optimisers; then resuming and learning.
//! The files and the script that wrote them are in `tests/golden`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use pudica_data::Stream;
use pudica_nn::classifier::{Classifier, Learner, Model, Optimiser, accuracy};
use pudica_nn::vision::{
    Activation, Attention, CnnConfig, ConvMixerConfig, DenseNetConfig, ImageBatch, ImageShape, MlpConfig, ResNetConfig,
    VisionConfig, VitSimpleConfig, VitSmallConfig,
};
use pudica_nn::{Device, Weights};

mod golden_files;
use golden_files::{Golden, devices, widen};

/// The networks of `vision.py`.
fn cases() -> Vec<(VisionConfig, Golden)> {
    let images = |channels, side, classes| ImageShape { channels, side, classes };
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
    .map(|(name, config)| (config, Golden::read(&format!("vision-{name}"))))
    .collect()
}

fn vit_small(attention: Attention) -> VisionConfig {
    VisionConfig::VitSmall(VitSmallConfig {
        images: ImageShape { channels: 2, side: 6, classes: 3 },
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
    let images = ImageShape { channels: 3, side: 8, classes: 4 };
    VisionConfig::ConvMixer(ConvMixerConfig { images, dim: 6, depth: 2, kernel: 3, patch: 2 })
}

/// Dropout's generator is one for the whole process: tests that use it take turns.
fn generator() -> MutexGuard<'static, ()> {
    static GENERATOR: Mutex<()> = Mutex::new(());
    GENERATOR.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In f64, the processor only: the same numbers to the last digits or different formulas.
fn doubles() -> Vec<Device> {
    ["cpu", "torch"].into_iter().filter_map(|name| Device::parse(name).ok()).map(Device::double).collect()
}

impl Golden {
    fn pictures(&self, name: &str, images: &ImageShape) -> ImageBatch {
        ImageBatch::new(self.get_f32(name), [images.channels, images.side, images.side]).unwrap()
    }

    fn model(&self, config: &VisionConfig, device: &Device) -> Model<VisionConfig> {
        let weights = self.weights("weight", config.empty_weights().unwrap());
        let buffers = self.weights("weight", config.initial_buffers());
        Model::new(config, &weights, &buffers, device).unwrap()
    }

    /// Compares a vector in the order of the weights with PyTorch's tensors PREFIX.NAME, each by its own size.
    #[track_caller]
    fn assert_all_close(&self, prefix: &str, layout: &Weights, found: &[f64], tolerance: f64) {
        for parameter in layout.layout() {
            let name = format!("{prefix}.{}", parameter.name);
            self.assert_close_to_largest(&name, &found[parameter.range.clone()], &self.get(&name), tolerance);
        }
    }
}

#[test]
fn names_and_shapes_are_those_of_the_state_dict() {
    for (config, golden) in cases() {
        golden.assert_same_layout(&config.empty_weights().unwrap());
    }
}

#[test]
fn outputs_agree_in_f32_and_f64() {
    for (config, golden) in cases() {
        let pictures = golden.pictures("images", config.images());
        let expected = golden.get("outputs");
        for device in devices() {
            let single = golden.model(&config, &device).predict(&pictures).unwrap();
            golden.assert_close_to_largest("outputs", &widen(&single), &expected, 1e-5);
        }
        for device in doubles() {
            let double = golden.model(&config, &device).predict_f64(&pictures).unwrap();
            golden.assert_close_to_largest("outputs in f64", &double, &expected, 1e-9);
        }
    }
}

#[test]
fn gradients_agree_in_f32_and_f64() {
    for (config, golden) in cases() {
        let (pictures, labels) = (golden.pictures("images", config.images()), golden.numbers("labels"));
        let (layout, expected) = (config.empty_weights().unwrap(), golden.get("loss"));
        for device in devices() {
            let (loss, single) = golden.model(&config, &device).loss_and_gradient::<f32>(&pictures, &labels).unwrap();
            golden.assert_close_to_largest("loss", &widen(&[loss]), &expected, 1e-5);
            golden.assert_all_close("grad", &layout, &widen(&single), 2e-5);
        }
        for device in doubles() {
            let (loss, double) = golden.model(&config, &device).loss_and_gradient::<f64>(&pictures, &labels).unwrap();
            golden.assert_close_to_largest("loss in f64", &[loss], &expected, 1e-9);
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
        let (pictures, labels) = (golden.pictures("images", config.images()), golden.numbers("labels"));
        let before = golden.weights("weight", config.empty_weights().unwrap());
        let runs = devices().into_iter().map(|device| (device, 2e-5));
        for (device, tolerance) in runs.chain(doubles().into_iter().map(|device| (device, 1e-6))) {
            let mut learner = learner(&golden, &config, Optimiser::SGD, &device);
            learner.step(&pictures, &labels, None, rate).unwrap();
            let loss = learner.loss().unwrap().unwrap();
            golden.assert_close_to_largest("train_loss", &widen(&[loss]), &golden.get("train_loss"), tolerance);
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
    let (config, golden) = (conv_mixer(), Golden::read("vision-steps"));
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
                learner.step(&pictures, &golden.numbers(&format!("labels.{at}")), None, rate).unwrap();
            }
            let (weights, running) = (learner.model().weights().unwrap(), learner.model().buffers().unwrap());
            golden.assert_all_close(name, &weights, &widen(weights.data()), 1e-6);
            golden.assert_all_close(name, &running, &widen(running.data()), 1e-6);
        }
    }
}

/// Noisy images of four patterns: stripes down, across, narrow and wide, and a chessboard.
fn patterns(count: usize, seed: u64) -> (ImageBatch, Vec<usize>) {
    let mut stream = Stream::new(seed, "patterns", 0);
    let labels: Vec<usize> = (0..count).map(|_| stream.below(4) as usize).collect();
    let mut values = Vec::new();
    for label in &labels {
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let field = [column, row, row / 2, row + column][*label];
            values.push(stream.normal_f32() * 0.3 + if field % 2 == 0 { 1.0 } else { -1.0 });
        }
    }
    (ImageBatch::new(values, [1, 8, 8]).unwrap(), labels)
}

fn small_networks() -> [VisionConfig; 7] {
    let images = ImageShape { channels: 1, side: 8, classes: 4 };
    let vit =
        VitSmallConfig { images, patch: 4, dim: 16, depth: 1, heads: 2, dim_head: 8, mlp: 16, ..Default::default() };
    let simple = VitSimpleConfig { images, patch: 4, dim: 16, depth: 1, heads: 2, dim_head: 8, mlp: 16 };
    [
        VisionConfig::Mlp(MlpConfig { images, hidden: vec![16], ..Default::default() }),
        VisionConfig::Cnn(CnnConfig { images, width: 4, hidden: 8, ..Default::default() }),
        VisionConfig::VitSmall(vit),
        VisionConfig::VitSimple(simple),
        VisionConfig::ResNet18(ResNetConfig { images, width: 4, blocks: vec![1, 1] }),
        VisionConfig::DenseNet121(DenseNetConfig { images, growth: 4, blocks: vec![1, 1] }),
        VisionConfig::ConvMixer(ConvMixerConfig { images, dim: 8, depth: 1, kernel: 3, patch: 2 }),
    ]
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
