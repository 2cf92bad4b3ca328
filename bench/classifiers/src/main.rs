//! Times training steps of ViT-small, ResNet-18, RoBERTa and the LSTM and, where given a Python with PyTorch, PyTorch eager's beside
//! them, in turns. `bench/classifiers/run` sets everything up.
//!
//! `pudica-bench-classifiers DEVICE [MODEL...] [-- PYTHON SCRIPT]`: DEVICE as in `pudica run --device`; the command that starts
//! `torch_steps.py`; without it, ours alone.

#[path = "../../torch.rs"]
mod torch;

use std::time::Instant;

use pudica_data::Stream;
use pudica_nn::classifier::{Classifier, Learner, Optimiser};
use pudica_nn::text::{LstmConfig, RobertaConfig, Sequences, TextConfig};
use pudica_nn::vision::{ImageBatch, ResNetConfig, VisionConfig, VitSmallConfig};
use pudica_nn::{Device, NnError};
use torch::{Torch, median};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

const MODELS: [&str; 4] = ["vit-small", "resnet18", "roberta", "lstm"];
/// Times both sides are timed in turns.
const ROUNDS: usize = 5;
/// Images of CIFAR-10's shape in a step.
const IMAGES: usize = 100;
/// Sequences of so many tokens in a step.
const SEQUENCES: (usize, usize) = (32, 128);

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut halves = arguments.splitn(2, |argument| argument == "--");
    let (device, models) = match halves.next().unwrap_or_default() {
        [device, models @ ..] => (Device::parse(device)?, models.to_vec()),
        [] => (Device::cpu(), Vec::new()),
    };
    let models = if models.is_empty() { MODELS.map(String::from).to_vec() } else { models };
    let (torch_device, threads) = (if device.name() == "cuda" { "cuda" } else { "cpu" }, rayon::current_num_threads());
    let start = |command| Torch::start(command, &[torch_device, &threads.to_string()]);
    let mut torch = halves.next().map(start).transpose()?;
    // A reading is the mean over so many steps, with one wait for the device at its end.
    let steps = if device.name() == "cuda" { 20 } else { 1 };
    println!("one training step; medians of {ROUNDS} readings of {steps}, both sides in turns");
    println!(
        "images: batch {IMAGES} of 3 x 32 x 32, SGD; texts: batch {} of {} tokens, AdamW",
        SEQUENCES.0, SEQUENCES.1
    );
    println!("ours:    device {}, {} threads, mimalloc", device.name(), rayon::current_num_threads());
    println!("PyTorch: {}\n", torch.as_ref().map_or("not compared", |torch| &torch.description));
    println!("{:<10} {:>17} {:>9} {:>7}", "model", "PyTorch eager, ms", "ours, ms", "ratio");
    for model in &models {
        let mut ours = training(model, &device)?;
        ours(steps)?;
        let (mut our_times, mut torch_times) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            if let Some(torch) = &mut torch {
                torch_times.extend(torch.steps(model, steps)?);
            }
            let started = Instant::now();
            ours(steps)?;
            our_times.push(started.elapsed().as_secs_f64() * 1e3 / steps as f64);
        }
        let ours = median(our_times);
        match torch.is_some() {
            true => {
                let torch = median(torch_times);
                println!("{model:<10} {torch:>17.2} {ours:>9.2} {:>6.2}x", torch / ours);
            }
            false => println!("{model:<10} {:>17} {ours:>9.2} {:>7}", "-", "-"),
        }
    }
    Ok(())
}

/// Makes so many training steps and waits for the last one.
type Steps = Box<dyn FnMut(usize) -> Result<(), Failure>>;

fn training(model: &str, device: &Device) -> Result<Steps, Failure> {
    let images = |config| {
        let mut noise = Stream::new(0, "images", 0);
        let values = (0..IMAGES * 3 * 32 * 32).map(|_| noise.normal_f32()).collect();
        let labels = (0..IMAGES).map(|_| noise.below(10) as usize).collect();
        steps(config, ImageBatch::new(values, [3, 32, 32])?, labels, Optimiser::SGD, 0.1, device)
    };
    let texts = |config: TextConfig| {
        let mut noise = Stream::new(0, "texts", 0);
        let token = |noise: &mut Stream| noise.below(config.vocabulary() as u64) as u32;
        let ids = (0..SEQUENCES.0).map(|_| (0..SEQUENCES.1).map(|_| token(&mut noise)).collect()).collect();
        let labels = (0..SEQUENCES.0).map(|_| noise.below(2) as usize).collect();
        steps(config, Sequences::new(ids), labels, Optimiser::adamw(1e-4), 1e-4, device)
    };
    match model {
        "vit-small" => images(VisionConfig::VitSmall(VitSmallConfig::default())),
        "resnet18" => images(VisionConfig::ResNet18(ResNetConfig::default())),
        "roberta" => texts(TextConfig::Roberta(RobertaConfig::default())),
        "lstm" => texts(TextConfig::Lstm(LstmConfig::default())),
        _ => Err(format!("no model {model}; there are {}", MODELS.join(", ")).into()),
    }
}

fn steps<C: Classifier + 'static>(
    config: C,
    input: C::Input,
    labels: Vec<usize>,
    optimiser: Optimiser,
    lr: f64,
    device: &Device,
) -> Result<Steps, Failure> {
    let mut learner = Learner::new(&config, &config.initial_weights(0)?, optimiser, 0, device)?;
    Ok(Box::new(move |count| {
        (0..count).try_for_each(|_| learner.step(&input, &labels, None, lr))?;
        learner.loss()?.map(|_| ()).ok_or_else(|| NnError::Computation("no step was made".into()).into())
    }))
}
