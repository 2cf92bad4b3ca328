//! `pudica construct`: transformers, programs and automata built by hand, and whether they do what they should.

use crate::Ending;
use crate::arguments::whole;
use crate::text::{bar, grouped, number, seconds};
use clap::{Args, Subcommand};
use pudica_theory::automata::{Automaton, StepSensitivity, sensitivities};
use pudica_theory::constructions::{
    Accuracy, Check, Construction, LARGEST_EXHAUSTIVE, PROGRAM, TwoMajority, Worked, check,
};
use pudica_theory::{TheoryError, save_encoder};
use serde_json::json;
use std::path::PathBuf;
use std::time::Instant;

type Outcome = Result<Ending, Box<dyn std::error::Error>>;

/// The longest strings built for: attention takes n^2 numbers per string.
const LONGEST: u64 = 10_000;
/// The most bits in all strings that are sampled: each takes a byte.
const MOST_BITS: usize = 1 << 30;

/// Build what the theory says exists, and check that it works.
///
/// Transformers for PARITY (Chiang & Cholak 2022), MAJORITY and FIRST in exactly the form that is trained here; PARITY as two
/// nested majorities; automata with and without a scratchpad.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

const EXAMPLES: &str = "\
Examples:
  pudica construct parity --n 16                       built, and tried on all 65,536 strings
  pudica construct parity --n 1000                     tried on strings with 0 to 1,000 ones, in f32 and f64
  pudica construct parity --n 40 --gain 1              weights that do not grow with n: LayerNorm amplifies
  pudica construct majority --n 31 --save majority.safetensors
  pudica construct two-majority --n 20                 Lemma 8 on all strings
  pudica construct two-majority --n 5 --string 10110   and worked out on one
  pudica construct automaton mod:3 --n 20              sensitivity of every step, with and without scratchpad
  pudica construct automaton mine.toml --n 100 --json  your own automaton (format: docs/theory.md)";

#[derive(Subcommand)]
enum What {
    /// A transformer that computes the sum of the bits modulo 2
    Parity(Transformer),
    /// A transformer that computes whether more bits are 1 than 0
    Majority(Transformer),
    /// A transformer that computes the first bit
    First(Transformer),
    /// PARITY as a majority of majorities (Lemma 8)
    TwoMajority(Program),
    /// Sensitivity of each step of an automaton, with and without a scratchpad (Theorem 7)
    Automaton(Simulation),
}

#[derive(Args)]
struct Transformer {
    /// Bits per string
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=LONGEST))]
    n: usize,
    /// How much weights amplify the difference of 1/n that one bit makes; LayerNorm must do the rest. Default: n, so that
    /// LayerNorm need not (first: 1)
    #[arg(long, value_name = "G", allow_hyphen_values = true)]
    gain: Option<f64>,
    /// Strings to try beyond n = 16, their numbers of ones spread evenly from 0 to n
    #[arg(long, value_name = "S", default_value_t = 101, value_parser = whole::<usize>(2..=MOST_BITS as u64))]
    samples: usize,
    /// Seed of the random strings
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write the weights (safetensors, PyTorch's names), for `pudica bounds` and PyTorch
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Program {
    /// Bits per string; up to 20, all strings are tried
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=LONGEST))]
    n: usize,
    /// Show the steps on this string of N bits
    #[arg(long, value_name = "BITS")]
    string: Option<String>,
    /// Uniform strings to try beyond n = 20
    #[arg(long, value_name = "S", default_value_t = 10_000, value_parser = whole::<usize>(1..=MOST_BITS as u64))]
    samples: usize,
    /// Seed of the random strings
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct Simulation {
    /// parity, mod:K (ones modulo K), or a transition table FILE.toml
    #[arg(value_name = "AUTOMATON")]
    automaton: String,
    /// Symbols to read
    #[arg(long, value_name = "N", value_parser = whole::<usize>(1..=LONGEST))]
    n: usize,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        let transformer = |of: &Transformer| match of.n {
            ..=LARGEST_EXHAUSTIVE => format!("trying the transformer on all {} strings", grouped(1 << of.n)),
            n => format!("trying the transformer on {} strings of {n} bits", grouped(of.samples as u64)),
        };
        match &self.what {
            What::Parity(of) | What::Majority(of) | What::First(of) => transformer(of),
            What::TwoMajority(program) => format!("trying the program on strings of {} bits", program.n),
            What::Automaton(simulation) => format!("going through {} steps of {}", simulation.n, simulation.automaton),
        }
    }
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Outcome {
    match &arguments.what {
        What::Parity(transformer) => build(Construction::Parity, transformer),
        What::Majority(transformer) => build(Construction::Majority, transformer),
        What::First(transformer) => build(Construction::First, transformer),
        What::TwoMajority(program) => two_majority(program),
        What::Automaton(simulation) => automaton(simulation),
    }
}

/// Strings that are sampled must fit in memory.
fn check_samples(n: usize, samples: usize) -> Result<(), TheoryError> {
    let most = MOST_BITS / n;
    match samples <= most {
        true => Ok(()),
        false => Err(TheoryError::Argument(format!(
            "--samples {samples}: strings of {n} bits are too long for that; {} fit",
            grouped(most as u64)
        ))),
    }
}

fn build(construction: Construction, arguments: &Transformer) -> Outcome {
    let n = arguments.n;
    check_samples(n, arguments.samples)?;
    let started = Instant::now();
    let gain = arguments.gain.unwrap_or_else(|| construction.default_gain(n));
    let config = construction.default_config(n);
    let weights = construction.build(&config, gain)?;
    let found = check(construction, n, gain, arguments.samples, arguments.seed)?;
    if [&found.double, &found.single].iter().any(|accuracy| !accuracy.worst_error.is_finite()) {
        let problem = format!("with the gain {} the outputs are not numbers: choose a smaller --gain", number(gain));
        return Err(TheoryError::Argument(problem).into());
    }
    if let Some(path) = &arguments.save {
        save_encoder(path, &config, &weights)?;
    }
    if arguments.json {
        let object = json!({ "construction": construction.name(), "shape": config, "parameters": weights.data().len(),
            "check": found, "saved": arguments.save });
        println!("{object}");
        return Ok(Ending::Done);
    }
    println!("{construction} on strings of {n} bits, built by hand");
    let (d, layers, heads, ff) = (config.d, config.layers, config.heads, config.ff);
    println!(
        "  {:<12} post-norm encoder, d = {d}, layers {layers}, heads {heads}, ff {ff}, LayerNorm eps 1e-5",
        "shape"
    );
    println!("  {:<12} {}, gain {}", "parameters", grouped(weights.data().len() as u64), number(gain));
    println!("  {:<12} {}", "tried on", tried(&found));
    println!("\n  {:<12} {:>12} {:>16}", "", "right", "worst error");
    for (name, accuracy) in [("in f64", &found.double), ("in f32", &found.single)] {
        println!("  {name:<12} {:>12} {:>16}", share(accuracy, found.strings), number(accuracy.worst_error));
    }
    println!(
        "\n  An error is |prediction - label|, labels being 0 and 1; a prediction is right if its error is below 1/2."
    );
    if let Some(path) = &arguments.save {
        println!("  saved to {}; see it bounded: pudica bounds {}", path.display(), path.display());
    }
    println!("  {}", seconds(started.elapsed().as_secs_f64()));
    Ok(Ending::Done)
}

fn tried(found: &Check) -> String {
    let strings = grouped(found.strings);
    match found.exhaustive {
        true => format!("all {strings} strings"),
        false => format!("{strings} random strings with 0 to {} ones; nothing is verified about the others", found.n),
    }
}

fn share(accuracy: &Accuracy, strings: u64) -> String {
    match accuracy.correct == strings {
        true => "all".into(),
        false => format!("{} of {}", grouped(accuracy.correct), grouped(strings)),
    }
}

fn two_majority(arguments: &Program) -> Outcome {
    check_samples(arguments.n, arguments.samples)?;
    if let Some(string) = arguments.string.as_deref().filter(|string| string.chars().count() != arguments.n) {
        let problem = format!("--string has {} bits, but --n is {}", string.chars().count(), arguments.n);
        return Err(TheoryError::Argument(problem).into());
    }
    let worked = arguments.string.as_deref().map(Worked::of).transpose()?;
    let found = TwoMajority::check(arguments.n, arguments.samples, arguments.seed)?;
    if arguments.json {
        println!("{}", json!({ "check": found, "program": PROGRAM.lines().collect::<Vec<_>>(), "worked": worked }));
        return Ok(Ending::Done);
    }
    println!("PARITY as a majority of majorities (Hahn & Rofin, Lemma 8)\n");
    PROGRAM.lines().for_each(|line| println!("  {line}"));
    let (strings, agreeing) = (grouped(found.strings), grouped(found.agreeing));
    let which = if found.exhaustive { "all strings" } else { "uniform strings; nothing is verified about the others" };
    println!("\n  {:<26} {agreeing} of {strings}, {which} of {} bits", "equals parity on", found.n);
    let one = found.majority_sensitivity;
    println!("  {:<26} {} for one majority, {} for both nested", "average sensitivity", number(one), found.n);
    if let (Some(worked), Some(string)) = (worked, &arguments.string) {
        print_worked(&worked, string);
    }
    Ok(Ending::Done)
}

fn print_worked(worked: &Worked, string: &str) {
    let row = |name: &str, values: Vec<String>| {
        println!("  {name:<26} {}", values.iter().map(|value| format!("{value:>4}")).collect::<String>());
    };
    let numbers = |values: &[usize]| values.iter().map(usize::to_string).collect::<Vec<_>>();
    println!("\n  {string}");
    row("positions holding a 1", numbers(&worked.positions));
    row("A: 1s no later", numbers(&worked.no_later));
    row("B: 1s later", numbers(&worked.later));
    row("A > B", worked.inner.iter().map(|yes| if *yes { "yes" } else { "no" }.to_string()).collect());
    let yes = worked.inner.iter().filter(|yes| **yes).count();
    println!("  {yes} of {} say yes: {}", worked.inner.len(), if worked.odd { "odd" } else { "even" });
}

fn automaton(arguments: &Simulation) -> Outcome {
    let automaton = Automaton::find(&arguments.automaton)?;
    let steps = sensitivities(&automaton, arguments.n);
    if arguments.json {
        let object = json!({ "automaton": automaton.name, "alphabet": automaton.alphabet, "states": automaton.states,
            "n": arguments.n, "method": "exact", "steps": steps });
        println!("{object}");
        return Ok(Ending::Done);
    }
    let (states, symbols) = (automaton.states.len(), automaton.alphabet.len());
    println!("{}: {states} states, {symbols} symbols, uniform strings, exact\n", automaton.name);
    println!("  sensitivity of the state after i symbols");
    println!("  {:>6} {:>12} {:>12} {:>12}", "step i", "in one go", "(accepting)", "scratchpad");
    let widest = steps.iter().map(|step| step.without.max(step.with)).fold(0.0, f64::max);
    for step in shown(&steps) {
        let StepSensitivity { step, without, without_accept, with, .. } = step;
        let bar = bar(without / widest, 24);
        println!("  {step:>6} {:>12} {:>12} {:>12}  {bar}", number(*without), number(*without_accept), number(*with));
    }
    println!(
        "\n  With a scratchpad a step reads the state before and one symbol: two tokens, so never more than 2 (Theorem 7)."
    );
    Ok(Ending::Done)
}

/// All steps, or of many only some: the first ten, then about twenty more.
fn shown(steps: &[StepSensitivity]) -> impl Iterator<Item = &StepSensitivity> {
    let every = steps.len().div_ceil(20).max(1);
    let few = steps.len() <= 40;
    let last = steps.len();
    steps.iter().filter(move |s| few || s.step <= 10 || s.step.is_multiple_of(every) || s.step == last)
}
