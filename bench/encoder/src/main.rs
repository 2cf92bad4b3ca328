//! Times training steps of the paper's encoder (d = 128, 2 layers, 2 heads, batch 1024) on this machine's cores and, where given a
//! Python with PyTorch, PyTorch eager's beside them. `bench/encoder/run` sets everything up.
//!
//! `pudica-bench-encoder [N...] [-- PYTHON...]`: the lengths, and the command that starts Python; without it, ours alone.

#[path = "../../torch.rs"]
mod torch;

use std::time::Instant;

use pudica_data::{Target, Task};
use pudica_ensemble::{Engine, Member, Precision, Shape, cpu};
use pudica_nn::{AdamWConfig, Architecture, EncoderConfig, TrainingState};
use torch::{Torch, median};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

type Failure = Box<dyn std::error::Error>;

const BATCH: usize = 1024;
/// Times both sides are timed in turns.
const ROUNDS: usize = 3;
/// Steps of either side in a round.
const STEPS: usize = 5;

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut halves = arguments.splitn(2, |argument| argument == "--");
    let lengths = halves.next().unwrap_or_default().iter().map(|n| n.parse()).collect::<Result<Vec<usize>, _>>()?;
    let lengths = if lengths.is_empty() { vec![10, 20, 30] } else { lengths };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/torch_steps.py");
    let (threads, batch) = (rayon::current_num_threads().to_string(), BATCH.to_string());
    let mut torch = halves.next().map(|python| Torch::start(python, &[script, &threads, &batch])).transpose()?;
    println!("one training step, d = 128, 2 layers, 2 heads, ff = 128, batch {BATCH}; medians of {}", ROUNDS * STEPS);
    println!("ours:    {} threads, mimalloc, one replica; two replicas: time for each", rayon::current_num_threads());
    println!("PyTorch: {}\n", torch.as_ref().map_or("not compared", |torch| &torch.description));
    println!(
        "{:>4} {:>17} {:>9} {:>7} {:>7} {:>19} {:>7}",
        "n", "PyTorch eager, ms", "ours, ms", "ratio", "floor", "of 2 replicas, ms", "ratio"
    );
    for n in lengths {
        let (mut one, mut two) = (ensemble(n, 1)?, ensemble(n, 2)?);
        let [mut torch_times, mut one_times, mut two_times] = [const { Vec::new() }; 3];
        one.advance(3)?;
        two.advance(3)?;
        for _ in 0..ROUNDS {
            if let Some(torch) = &mut torch {
                torch_times.extend(torch.steps(&n.to_string(), STEPS)?);
            }
            one_times.extend(times(one.as_mut(), STEPS)?);
            two_times.extend(times(two.as_mut(), STEPS)?.iter().map(|time| time / 2.0));
        }
        let (one, two) = (median(one_times), median(two_times));
        let floor = if n <= 10 { "7x" } else { "5x" };
        match torch.is_some() {
            true => {
                let torch = median(torch_times);
                let (ratio, ratio_of_two) = (torch / one, torch / two);
                println!("{n:>4} {torch:>17.1} {one:>9.2} {ratio:>6.2}x {floor:>7} {two:>19.2} {ratio_of_two:>6.2}x");
            }
            false => println!("{n:>4} {:>17} {one:>9.2} {:>7} {floor:>7} {two:>19.2}", "-", "-"),
        }
    }
    Ok(())
}

/// The paper's encoder, so many of them.
fn ensemble(n: usize, replicas: u64) -> Result<Box<dyn Engine>, Failure> {
    let encoder = EncoderConfig::paper(n);
    let member = |seed| -> Result<Member, Failure> {
        let weights = Architecture::Encoder(encoder.clone()).initial_weights(seed)?;
        let task = Task::new(Target::parse("parity", n)?);
        Ok(Member { task, seed, adamw: AdamWConfig::default(), state: TrainingState::new(weights) })
    };
    let members = (0..replicas).map(member).collect::<Result<_, _>>()?;
    Ok(cpu(Shape { encoder, batch: BATCH }, members, Precision::F32)?)
}

/// Milliseconds of each of `steps` steps.
fn times(engine: &mut dyn Engine, steps: usize) -> Result<Vec<f64>, Failure> {
    let one = |_| {
        let started = Instant::now();
        engine.advance(1)?;
        Ok(started.elapsed().as_secs_f64() * 1e3)
    };
    (0..steps).map(one).collect()
}
