//! Times training steps of the paper's encoder (d = 128, 2 layers, 2 heads, batch 1024) on this machine's cores and, where given a
//! Python with PyTorch, PyTorch eager's beside them. `bench/encoder/run` sets everything up.
//!
//! `pudica-bench-encoder [N...] [-- PYTHON...]`: the lengths, and the command that starts Python; without it, ours alone.
//! `pudica-bench-encoder networks [N...] [-- PYTHON...]`: the networks that burn computes instead, as wide and deep as the encoder.

#[path = "../../torch.rs"]
mod torch;

use std::time::Instant;

use pudica_data::{Target, Task};
use pudica_ensemble::{Engine, Member, Precision, Shape, cpu, one_by_one};
use pudica_nn::{
    AdamWConfig, Architecture, Cell, Device, Eigenvalues, EncoderConfig, MlpConfig, Nonlinearity, Normalisation,
    Position, Read, RecurrentConfig, Span, StateSpaceConfig, TrainingState, TransformerConfig, Variant,
};
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
    let own = halves.next().unwrap_or_default();
    let (networks, own) = match own.split_first() {
        Some((first, rest)) if first == "networks" => (true, rest),
        _ => (false, own),
    };
    let lengths = own.iter().map(|n| n.parse()).collect::<Result<Vec<usize>, _>>()?;
    let lengths = if lengths.is_empty() { vec![10, 20, 30] } else { lengths };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/torch_steps.py");
    let (threads, batch) = (rayon::current_num_threads().to_string(), BATCH.to_string());
    let mut torch = halves.next().map(|python| Torch::start(python, &[script, &threads, &batch])).transpose()?;
    println!("one training step, d = 128, 2 layers, 2 heads, ff = 128, batch {BATCH}; medians of {}", ROUNDS * STEPS);
    println!("ours:    {} threads, mimalloc, one replica; two replicas: time for each", rayon::current_num_threads());
    println!("PyTorch: {}\n", torch.as_ref().map_or("not compared", |torch| &torch.description));
    if networks {
        return time_networks(&lengths, torch);
    }
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

/// One table for the networks that burn computes, one line for each and each length.
fn time_networks(lengths: &[usize], mut torch: Option<Torch>) -> Result<(), Failure> {
    println!("{:<6} {:>4} {:>17} {:>9} {:>7} {:>7}", "network", "n", "PyTorch eager, ms", "ours, ms", "ratio", "floor");
    for n in lengths.iter().copied() {
        for (name, architecture) in networks(n) {
            let mut engine = one_by_one(&architecture, BATCH, vec![member(&architecture, 0)?], &Device::cpu())?;
            let [mut torch_times, mut own_times] = [const { Vec::new() }; 2];
            engine.advance(3)?;
            for _ in 0..ROUNDS {
                if let Some(torch) = &mut torch {
                    torch_times.extend(torch.steps(&format!("{name}:{n}"), STEPS)?);
                }
                own_times.extend(times(engine.as_mut(), STEPS)?);
            }
            let own = median(own_times);
            match torch.is_some() {
                true => {
                    let (torch, ratio) = (median(torch_times.clone()), median(torch_times) / own);
                    println!("{name:<7} {n:>4} {torch:>17.2} {own:>9.2} {ratio:>6.2}x {:>7}", "0.7x");
                }
                false => println!("{name:<7} {n:>4} {:>17} {own:>9.2} {:>7} {:>7}", "-", "-", "0.7x"),
            }
        }
    }
    Ok(())
}

/// The networks that burn computes, as `torch_steps.py` names them.
fn networks(n: usize) -> [(&'static str, Architecture); 5] {
    let (d, layers, read) = (128, 2, Read::Last);
    let recurrent = |cell| Architecture::Recurrent(RecurrentConfig { cell, n, d, layers, read });
    let (variant, eigenvalues) = (Variant::default(), Eigenvalues::Positive);
    let states = StateSpaceConfig { n, d, layers, ff: d, eigenvalues, same_init: true, variant };
    let pre = Variant { norm: Normalisation::Pre, ..variant };
    let (encoder, position, span) = (EncoderConfig::paper(n), Position::Learned, Span::Full);
    [
        ("mlp", Architecture::Mlp(MlpConfig { n, d, layers, activation: Nonlinearity::Relu })),
        ("lstm", recurrent(Cell::Lstm)),
        ("gru", recurrent(Cell::Gru)),
        ("ssm", Architecture::StateSpace(states)),
        ("pre", Architecture::Transformer(TransformerConfig { encoder, variant: pre, position, positions: n, span })),
    ]
}

/// The paper's encoder, so many of them.
fn ensemble(n: usize, replicas: u64) -> Result<Box<dyn Engine>, Failure> {
    let encoder = EncoderConfig::paper(n);
    let one = |seed| member(&Architecture::Encoder(encoder.clone()), seed);
    let members = (0..replicas).map(one).collect::<Result<_, _>>()?;
    Ok(cpu(Shape { encoder, batch: BATCH }, members, Precision::F32)?)
}

/// One that learns PARITY.
fn member(architecture: &Architecture, seed: u64) -> Result<Member, Failure> {
    let task = Task::new(Target::parse("parity", architecture.n())?);
    let state = TrainingState::new(architecture.initial_weights(seed)?);
    Ok(Member { task, seed, adamw: AdamWConfig::default(), state })
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
