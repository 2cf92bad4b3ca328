//! Times training steps of the paper's encoder (d = 128, 2 layers, 2 heads, batch 1024) on this machine's cores and, where given a
//! Python with PyTorch, PyTorch eager's beside them. `bench/encoder/run` sets everything up.
//!
//! `pudica-bench-encoder [N...] [-- PYTHON...]`: the lengths, and the command that starts Python; without it, ours alone.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use pudica_data::{Target, Task};
use pudica_ensemble::{Engine, Member, Precision, Shape, cpu};
use pudica_nn::{AdamWConfig, Architecture, EncoderConfig, TrainingState};

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
    let mut torch = halves.next().map(Torch::start).transpose()?;
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
                torch_times.extend(torch.steps(n, STEPS)?);
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

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// PyTorch in a process of its own: it is told a length and a number of steps, and answers with their times.
struct Torch {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    description: String,
}

impl Torch {
    fn start(python: &[String]) -> Result<Self, Failure> {
        let (program, leading) = python.split_first().ok_or("a command must follow --")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/torch_steps.py");
        let threads = rayon::current_num_threads().to_string();
        let mut process = Command::new(program)
            .args(leading)
            .args([script, &threads, &BATCH.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let questions = process.stdin.take().ok_or("no pipe to PyTorch")?;
        let mut answers = BufReader::new(process.stdout.take().ok_or("no pipe from PyTorch")?);
        let mut description = String::new();
        answers.read_line(&mut description)?;
        Ok(Self { process, questions, answers, description: description.trim().to_string() })
    }

    fn steps(&mut self, n: usize, steps: usize) -> Result<Vec<f64>, Failure> {
        writeln!(self.questions, "{n} {steps}")?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer)?;
        let times = answer.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
        if times.is_empty() { Err("PyTorch gave no times".into()) } else { Ok(times) }
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
