//! `pudica-fuzz TARGET|all`: tries readers and parsers with damaged and hostile input, and prints what it found.

use clap::Parser;
use pudica_fuzz::campaign::{Campaign, Found, work};
use pudica_fuzz::{Fuzzer, State, TARGETS, Target, watch};
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Try readers and parsers with damaged and hostile input: no panic, no hang, no memory out of proportion to the file
#[derive(Parser)]
#[command(name = "pudica-fuzz", max_term_width = 110, after_help = EXAMPLES)]
struct Arguments {
    /// Targets by name, or `all`; without any, a list of them
    targets: Vec<String>,
    /// Executions of each target
    #[arg(long, value_name = "N", default_value_t = 10_000_000)]
    executions: u64,
    /// Names the executions: the same seed and threads try the same
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,
    /// Processes at a time; default: one per core
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// End after so many seconds, whatever is left; targets share the time equally
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    seconds: u64,
    /// Go on from what this file says that earlier calls have found, and write into it what was found since (JSON)
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Where the input of failed executions is written
    #[arg(long, value_name = "DIR", default_value = "fuzz-failures")]
    failures: PathBuf,
    /// Read this file, which a failed execution left, once
    #[arg(long, value_name = "FILE", conflicts_with = "executions")]
    file: Option<PathBuf>,
    /// One process of a campaign: seed, place, start
    #[arg(long, hide = true, num_args = 3)]
    worker: Option<Vec<u64>>,
}

const EXAMPLES: &str = "\
Examples:
  pudica-fuzz all --executions 10000 --threads 2
  pudica-fuzz expression onnx --seconds 60
  pudica-fuzz all --seconds 600 --state fuzz.json      # and again, until each target has its executions
  pudica-fuzz onnx --file fuzz-failures/onnx.0.panic-1a2b3c4d";

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(problem) => {
            eprintln!("pudica-fuzz: {problem}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(names) = &arguments.worker {
        return one_process(arguments, names.clone());
    }
    if arguments.targets.is_empty() {
        TARGETS.iter().for_each(|target| println!("{:<20} {}", target.name, target.about));
        return Ok(ExitCode::SUCCESS);
    }
    let targets: Vec<&Target> = match arguments.targets.as_slice() {
        [all] if all == "all" => TARGETS.iter().collect(),
        names => names.iter().map(|name| find(name)).collect::<Result<_, _>>()?,
    };
    if let Some(file) = &arguments.file {
        return one_file(targets[0], file);
    }
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut state = match &arguments.state {
        Some(file) => State::read(file)?,
        None => State::default(),
    };
    let campaign = Campaign {
        before: targets.iter().map(|target| state.of(target.name)).collect(),
        targets,
        executions: arguments.executions,
        seed: arguments.seed + state.calls, // what was tried is not tried again
        processes: arguments.threads.unwrap_or(cores).max(1),
        time: Duration::from_secs(arguments.seconds),
        failures: arguments.failures.clone(),
    };
    let begun = Instant::now();
    state.calls += 1;
    let found = campaign.run(|found| {
        let all: u64 = found.iter().map(|found| found.tally.executions).sum();
        eprintln!("{all} executions after {} s", begun.elapsed().as_secs());
        let state = state.with(campaign.targets.iter().map(|target| target.name).zip(found));
        arguments.state.as_ref().map_or(Ok(()), |file| state.write(file))
    })?;
    print(&campaign.targets, &found);
    let failures: u64 = found.iter().map(|found| found.tally.failures() + found.ends).sum();
    Ok(if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn find(name: &str) -> Result<&'static Target, String> {
    TARGETS.iter().find(|target| target.name == name).ok_or_else(|| {
        let hint = pudica_boolean::did_you_mean(name, TARGETS.iter().map(|target| target.name));
        format!("there is no target '{name}'{hint}; without arguments all are listed")
    })
}

/// A process of a campaign. It computes in a thread with as little stack as any thread of the program has, and this one looks at the clock.
fn one_process(arguments: &Arguments, names: Vec<u64>) -> Result<ExitCode, Box<dyn Error>> {
    let mut targets = Vec::new();
    for text in &arguments.targets {
        let (name, left) = text.split_once('=').ok_or("a process needs targets and their executions")?;
        targets.push((find(name)?, left.parse::<u64>()?));
    }
    let failures = arguments.failures.clone();
    let thread = std::thread::spawn(move || work(&targets, &names, &failures));
    while !thread.is_finished() {
        std::thread::sleep(Duration::from_millis(100));
        watch::check();
    }
    thread.join().map_err(|_| "a panic outside of a target")??;
    Ok(ExitCode::SUCCESS)
}

/// Reads one file, with everything that it prints.
fn one_file(target: &'static Target, file: &std::path::Path) -> Result<ExitCode, Box<dyn Error>> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let part = name.split('.').nth(1).and_then(|part| part.parse().ok()).unwrap_or(0);
    let bytes = std::fs::read(file)?;
    let failures = std::env::temp_dir();
    let mut fuzzer = Fuzzer::new(target, &[0], &std::env::temp_dir().join("pudica-fuzz"), &failures)?;
    match fuzzer.read(part, &bytes) {
        Some(sentence) => println!("refused: {sentence}"),
        None => println!("accepted"),
    }
    println!("{:#?}", fuzzer.tally);
    Ok(if fuzzer.tally.failures() == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn print(targets: &[&Target], found: &[Found]) {
    println!(
        "{:<20} {:>11} {:>9} {:>11} {:>11} {:>6} {:>6} {:>5} {:>5}  {:<34} {:>8}",
        "target",
        "executions",
        "per s",
        "accepted",
        "refused",
        "panics",
        "greedy",
        "slow",
        "ends",
        "most memory",
        "slowest"
    );
    let mut all = Found::default();
    for (target, found) in targets.iter().zip(found) {
        line(target.name, found, &format!("{} MiB + {} per byte", target.memory.constant, target.memory.factor));
        all.add(found);
    }
    line("all", &all, "");
}

fn line(name: &str, found: &Found, bound: &str) {
    let tally = &found.tally;
    let rate = tally.executions as f64 / tally.spent.as_secs_f64().max(1e-9);
    let (memory, length) = tally.most_memory;
    let memory = format!("{:.1} MiB for {length} bytes", memory as f64 / f64::from(1 << 20));
    let memory = if bound.is_empty() { String::new() } else { format!("{memory} (of {bound})") };
    println!(
        "{name:<20} {:>11} {rate:>9.0} {:>11} {:>11} {:>6} {:>6} {:>5} {:>5}  {memory:<34} {:>5.0} ms",
        tally.executions,
        tally.accepted,
        tally.refused(),
        tally.panics,
        tally.greedy,
        tally.slow,
        found.ends,
        1000.0 * tally.slowest.as_secs_f64(),
    );
}
