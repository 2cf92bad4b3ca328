//! Times training steps of ViT-small, ResNet-18, RoBERTa and the LSTM and, where given a Python with PyTorch, PyTorch's beside
//! them, in turns: eager, and on a GPU through torch.compile. `bench/classifiers/run` sets everything up.
//!
//! `pudica-bench-classifiers DEVICE [MODEL...] [-- PYTHON SCRIPT]`: DEVICE as in `pudica run --device`, or `cuda-tf32`; the command that
//! starts `torch_steps.py`; without it, ours alone.

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
/// Steps before the first reading, beyond as many as in one: a GPU's are recorded then.
const FIRST: usize = 10;
/// Images of CIFAR-10's shape in a step.
const IMAGES: usize = 100;
/// Sequences of so many tokens in a step.
const SEQUENCES: (usize, usize) = (32, 128);

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut halves = arguments.splitn(2, |argument| argument == "--");
    let (name, models) = match halves.next().unwrap_or_default() {
        [name, models @ ..] => (name.as_str(), models.to_vec()),
        [] => ("cpu", Vec::new()),
    };
    let (device, dtype) = match name.strip_suffix("-tf32") {
        Some(name) => (Device::parse(name)?.with_tf32(true)?, "tf32"),
        None => (Device::parse(name)?, "f32"),
    };
    let gpu = device.name() == "cuda";
    let models = if models.is_empty() { MODELS.map(String::from).to_vec() } else { models };
    let (torch_device, threads) = (if gpu { "cuda" } else { "cpu" }, rayon::current_num_threads());
    let start = |command| Torch::start(command, &[torch_device, &threads.to_string(), dtype]);
    let mut torch = halves.next().map(start).transpose()?;
    // A reading is the mean over so many steps, with one wait for the device at its end.
    let steps = if gpu { 20 } else { 1 };
    println!("one training step; medians of {ROUNDS} readings of {steps}, both sides in turns");
    println!(
        "images: batch {IMAGES} of 3 x 32 x 32, SGD; texts: batch {} of {} tokens, AdamW",
        SEQUENCES.0, SEQUENCES.1
    );
    println!("ours:    device {}, {dtype}, {threads} threads, mimalloc", device.name());
    println!("PyTorch: {}\n", torch.as_ref().map_or("not compared", |torch| &torch.description));
    println!("{:<10} {:>17} {:>17} {:>9} {:>7}", "model", "PyTorch eager, ms", "compiled, ms", "ours, ms", "ratios");
    for model in &models {
        let mut ours = training(model, &device)?;
        ours(steps + FIRST)?;
        let (mut our_times, mut eager, mut compiled) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            if let Some(torch) = &mut torch {
                eager.extend(torch.steps(model, steps)?);
                if gpu {
                    compiled.extend(torch.steps(&format!("{model}:compiled"), steps)?);
                }
            }
            let started = Instant::now();
            ours(steps)?;
            our_times.push(started.elapsed().as_secs_f64() * 1e3 / steps as f64);
        }
        let ours = median(our_times);
        let shown = |times: Vec<f64>| match times.is_empty() {
            true => ("-".to_string(), "-".to_string()),
            false => (format!("{:.2}", median(times.clone())), format!("{:.2}x", median(times) / ours)),
        };
        let ((eager, than_eager), (compiled, than_compiled)) = (shown(eager), shown(compiled));
        println!("{model:<10} {eager:>17} {compiled:>17} {ours:>9.2} {than_eager:>7} {than_compiled:>7}");
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
