//! Recorded training steps: on a GPU they move weights and buffers as steps that are computed one by one do, dropout included. Without a GPU
//! there is nothing to record, and the tests say so.
#![cfg(feature = "torch")]

use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pudica_data::Stream;
use pudica_nn::classifier::{Classifier, ConsistencyTerm, Learner, Optimiser};
use pudica_nn::text::{Attention, Gpt2Config, RobertaConfig, Sequences, TextConfig};
use pudica_nn::vision::{
    Activation, CnnConfig, ConvMixerConfig, DenseNetConfig, ImageBatch, ImageShape, MlpConfig, ResNetConfig,
    VisionConfig, VitSimpleConfig, VitSmallConfig,
};
use pudica_nn::{Device, Weights};

/// Batches of each size: computed, recorded, then done again.
const STEPS: usize = 12;

/// The GPU, for one test at a time, as dropout draws from its one generator.
fn gpu() -> Option<(Device, MutexGuard<'static, ()>)> {
    static TURN: Mutex<()> = Mutex::new(());
    match Device::parse("cuda") {
        Ok(device) => Some((device, TURN.lock().unwrap_or_else(PoisonError::into_inner))),
        Err(problem) => {
            eprintln!("not tested: {problem}");
            None
        }
    }
}

const IMAGES: ImageShape = ImageShape { channels: 3, side: 8, classes: 4 };

fn vit_small(dropout: f64) -> VisionConfig {
    let vit = VitSmallConfig {
        images: IMAGES,
        patch: 2,
        dim: 16,
        depth: 2,
        heads: 2,
        dim_head: 8,
        mlp: 24,
        ..VitSmallConfig::default()
    };
    VisionConfig::VitSmall(VitSmallConfig { dropout, emb_dropout: dropout, ..vit })
}

fn resnet() -> VisionConfig {
    VisionConfig::ResNet18(ResNetConfig { images: IMAGES, width: 8, blocks: vec![1, 1] })
}

/// The other image networks.
fn others() -> [VisionConfig; 5] {
    let vit = VitSimpleConfig { images: IMAGES, patch: 2, dim: 16, depth: 2, heads: 2, dim_head: 8, mlp: 24 };
    [
        VisionConfig::Mlp(MlpConfig { images: IMAGES, hidden: vec![32, 16], activation: Activation::LeakyRelu }),
        VisionConfig::Cnn(CnnConfig { images: IMAGES, width: 6, hidden: 24, ..CnnConfig::default() }),
        VisionConfig::VitSimple(vit),
        VisionConfig::DenseNet121(DenseNetConfig { images: IMAGES, growth: 4, blocks: vec![2, 1] }),
        VisionConfig::ConvMixer(ConvMixerConfig { images: IMAGES, dim: 8, depth: 2, kernel: 3, patch: 2 }),
    ]
}

fn roberta(attention: Attention) -> TextConfig {
    let (vocabulary, length, d, layers, heads, ff, classes) = (30, 24, 16, 2, 2, 32, 2);
    TextConfig::Roberta(RobertaConfig {
        vocabulary,
        length,
        d,
        layers,
        heads,
        ff,
        classes,
        attention,
        ..RobertaConfig::default()
    })
}

fn gpt2() -> TextConfig {
    let (vocabulary, length, d, layers, heads, ff, classes) = (30, 24, 16, 2, 2, 32, 2);
    TextConfig::Gpt2(Gpt2Config { vocabulary, length, d, layers, heads, ff, classes, ..Gpt2Config::default() })
}

fn images(count: usize, step: usize) -> ImageBatch {
    let mut noise = Stream::new(1, "images", step as u64);
    ImageBatch::new((0..count * 3 * 64).map(|_| noise.normal_f32()).collect(), [3, 8, 8]).unwrap()
}

/// Sequences of other lengths in every step, the longest of them the same.
fn texts(count: usize, step: usize) -> Sequences {
    let mut noise = Stream::new(2, "texts", step as u64);
    let length = |at: usize| if at == 0 { 16 } else { 9 + (at + step) % 7 };
    Sequences::new((0..count).map(|at| (0..length(at)).map(|_| noise.below(30) as u32).collect()).collect())
}

/// What is trained, and how.
struct Case<'a, C: Classifier> {
    network: C,
    optimiser: Optimiser,
    /// A batch of so many inputs for a step.
    input: &'a dyn Fn(usize, usize) -> C::Input,
    /// Whether a second batch is kept near.
    beside: bool,
}

/// Every fourth batch is smaller, as the last one of an epoch.
fn size(step: usize) -> usize {
    if step % 4 == 3 { 6 } else { 10 }
}

/// Makes these steps, at a rate that changes with every one; the losses before them.
fn train<C: Classifier>(learner: &mut Learner<C>, steps: Range<usize>, case: &Case<C>) -> Vec<f32> {
    let step = |step: usize| {
        let (batch, other) = ((case.input)(size(step), step), (case.input)(size(step), 100 + step));
        let labels: Vec<usize> = (0..size(step)).map(|at| (at + step) % 2).collect();
        let beside = case.beside.then_some(ConsistencyTerm { input: &other, weight: 0.5 });
        learner.step(&batch, &labels, beside, 0.02 / (1.0 + step as f64)).unwrap();
        learner.loss().unwrap().unwrap()
    };
    steps.map(step).collect()
}

/// How far two vectors are from each other, beside the length of the way from `start` to the first.
fn apart(found: &Weights, expected: &Weights, start: &Weights) -> f64 {
    let distance = |a: &Weights, b: &Weights| {
        a.data().iter().zip(b.data()).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>().sqrt()
    };
    distance(found, expected) / distance(expected, start)
}

/// Trains with recorded steps, without, and with recorded ones after a stop in the middle.
fn assert_the_same<C: Classifier>(device: &Device, case: &Case<C>) {
    let start = case.network.initial_weights(3).unwrap();
    let new = || Learner::new(&case.network, &start, case.optimiser, 4, device).unwrap();
    let (mut recorded, mut computed) = (new(), new().unrecorded());
    let losses = [train(&mut recorded, 0..STEPS, case), train(&mut computed, 0..STEPS, case)];
    // One recording for each size of batch; none where none was wanted.
    assert_eq!((recorded.recorded_shapes(), computed.recorded_shapes()), (2, 0));
    let expected = computed.model().weights().unwrap();
    let far = |learner: &Learner<C>| apart(&learner.model().weights().unwrap(), &expected, &start);
    // cuDNN and cuBLAS may sum in another order; other dropout or a step left out is far more.
    assert!(far(&recorded) < 1e-3, "weights: {}", far(&recorded));
    let buffers = [&recorded, &computed].map(|learner| learner.model().buffers().unwrap());
    if !buffers[0].data().is_empty() {
        assert!(apart(&buffers[0], &buffers[1], &case.network.initial_buffers()) < 1e-3);
    }
    for (recorded, computed) in losses[0].iter().zip(&losses[1]) {
        assert!((recorded - computed).abs() < 1e-3 * computed.abs(), "{losses:?}");
    }
    let mut stopped = new();
    train(&mut stopped, 0..STEPS / 2, case);
    let checkpoint = stopped.checkpoint().unwrap();
    let mut resumed = Learner::resume(&case.network, &checkpoint, case.optimiser, 4, device).unwrap();
    train(&mut resumed, STEPS / 2..STEPS, case);
    assert!(far(&resumed) < 1e-3, "resumed: {}", far(&resumed));
}

#[test]
fn recorded_steps_of_image_networks_are_steps() {
    let Some((device, _turn)) = gpu() else { return };
    for (network, optimiser, beside) in [
        (resnet(), Optimiser::SGD, false),
        (resnet(), Optimiser::Sgd { momentum: 0.9, weight_decay: 1e-3 }, false),
        (vit_small(0.1), Optimiser::SGD, false),
        (vit_small(0.1), Optimiser::ADAM, true),
    ] {
        assert_the_same(&device, &Case { network, optimiser, input: &images, beside });
    }
    for network in others() {
        assert_the_same(&device, &Case { network, optimiser: Optimiser::SGD, input: &images, beside: false });
    }
}

#[test]
fn recorded_steps_of_text_networks_are_steps() {
    let Some((device, _turn)) = gpu() else { return };
    for network in [roberta(Attention::Softmax), roberta(Attention::Relu), gpt2()] {
        assert_the_same(&device, &Case { network, optimiser: Optimiser::adamw(1e-2), input: &texts, beside: false });
    }
}

/// Dropout differs from step to step and follows the seed when it is recorded.
#[test]
fn recorded_dropout_follows_the_seed() {
    let Some((device, _turn)) = gpu() else { return };
    let losses = |dropout: f64, seed: u64| {
        let network = vit_small(dropout);
        let start = network.initial_weights(3).unwrap();
        let mut learner = Learner::new(&network, &start, Optimiser::SGD, seed, &device).unwrap();
        let (batch, labels) = (images(10, 0), vec![1; 10]);
        let step = |_| {
            // No step moves anything, so that nothing but dropout makes losses differ.
            learner.step(&batch, &labels, None, 0.0).unwrap();
            learner.loss().unwrap().unwrap()
        };
        (0..6).map(step).collect::<Vec<f32>>()
    };
    let (own, again, other) = (losses(0.3, 1), losses(0.3, 1), losses(0.3, 2));
    assert!(own.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-4), "{own:?} {again:?}");
    assert!(own.iter().zip(&other).all(|(a, b)| (a - b).abs() > 1e-4), "{own:?} {other:?}");
    assert!((1..6).all(|at| (own[at] - own[at - 1]).abs() > 1e-4), "{own:?}");
    assert!(losses(0.0, 1).iter().all(|loss| (loss - losses(0.0, 2)[0]).abs() < 1e-4));
}
