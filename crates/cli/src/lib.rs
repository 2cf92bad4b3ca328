//! The `pudica` command: argument parsing and printing, no science. A library, so that the Python package has the same command
//! ([`main_with`]) without a second program.

#[macro_use]
mod out; // first: its macros are those of all that follow

mod arguments;
mod bench;
mod boolean;
mod bounds;
mod construct;
mod data;
mod download;
mod experiments;
mod fetch;
mod machine;
mod measure;
mod merge;
mod progress;
mod signals;
mod slurm;
mod spectrum;
mod status;
mod text;

use arguments::Refusal;
use clap::{Parser, Subcommand};
use std::ffi::OsString;
use std::sync::OnceLock;

/// Readers that only the command has.
#[doc(hidden)]
pub mod readers {
    pub use crate::slurm::read_defaults;
}

/// The most threads that can be asked for: more than any machine has cores, fewer than any refuses.
pub(crate) const MOST_THREADS: u64 = 1024;

/// The program's version and the commit it was built from.
const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), env!("PUDICA_COMMIT"));

/// The program, for the record of what it makes.
pub const PROGRAM: &str = concat!("pudica ", env!("CARGO_PKG_VERSION"), env!("PUDICA_COMMIT"));

/// Says on standard error, before networks compute, that some of them are slow in this build (`--profile fast-build`).
pub(crate) fn tell_fast_build() {
    if cfg!(fast_build) {
        eprintln!(
            "note: built with --profile fast-build: encoders and Boolean functions have full speed, all other networks are slower than with --release"
        );
    }
}

/// A laboratory for sensitivity: nudge functions and neural networks, and measure how they respond.
#[derive(Parser)]
#[command(name = "pudica", version = VERSION, max_term_width = 110, after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "\
Examples:
  pudica list                                    the experiments on offer
  pudica run hahn/length-scaling                 one of them, at a scale for two CPU cores, with a report to open
  pudica measure net.onnx --inputs photos/       how sensitive is a model of yours, with a page to open
  pudica boolean majority --n 21                 exact sensitivity and Fourier-Walsh spectrum of a function
  pudica boolean --expr \"x1 & (x2 | !x3) ^ x4\"   the same for an expression
  pudica construct parity --n 16                 a transformer for PARITY built by hand, tried on every string
  pudica bounds RUN_OR_WEIGHTS                   both sides of the theory's inequalities for a network
  pudica spectrum relu --dim 128 --depth 4       eigenvalues of a network's kernel by degree
  pudica data show cifar10 --data DIR            the images of a data set, as one picture

`pudica COMMAND --help` explains each command, with examples.";

#[derive(Subcommand)]
enum Command {
    List(experiments::List),
    Show(experiments::Show),
    Run(Box<experiments::Run>),
    Report(experiments::Report),
    Settings(experiments::SettingsOf),
    Bench(bench::Arguments),
    Boolean(boolean::Arguments),
    Bounds(bounds::Arguments),
    Construct(construct::Arguments),
    Data(data::Arguments),
    Measure(Box<measure::Arguments>),
    Merge(merge::Arguments),
    Spectrum(spectrum::Arguments),
    Status(status::Arguments),
    Stop(slurm::Stop),
}

impl Command {
    /// What it does, for who waits; empty where it never takes long.
    fn doing(&self) -> String {
        match self {
            Command::List(_) | Command::Settings(_) | Command::Status(_) | Command::Stop(_) => String::new(),
            Command::Show(show) => show.doing(),
            Command::Run(run) => run.doing(),
            Command::Report(report) => report.doing(),
            Command::Bench(bench) => bench.doing(),
            Command::Boolean(boolean) => boolean.doing(),
            Command::Bounds(bounds) => bounds.doing(),
            Command::Construct(construct) => construct.doing(),
            Command::Data(data) => data.doing(),
            Command::Measure(_) => "opening models and inputs".into(),
            Command::Merge(_) => "reading all runs of these folders, and copying what is missing".into(),
            Command::Spectrum(spectrum) => spectrum.doing(),
        }
    }
}

/// How a command ended, when it did not fail.
enum Ending {
    Done,
    /// Stopped by a signal, with everything saved.
    Interrupted,
}

/// What was typed, the program's name first.
static TYPED: OnceLock<Vec<OsString>> = OnceLock::new();

/// Runs the command with these arguments, the program's name first, and gives its exit code. It handles signals and reads its arguments for
/// the whole process, so it can be called once.
pub fn main_with(typed: Vec<OsString>) -> u8 {
    let_long_files_be_errors();
    let _ = signals::end_on_signals(); // where they cannot be handled, the system ends it
    let typed = TYPED.get_or_init(|| typed);
    let code = match arguments::parse::<Arguments>(typed) {
        Ok(arguments) => {
            if !typed.iter().any(|word| word == "--json") {
                out::say_if_silent(arguments.command.doing());
            }
            exit_code(check_threads().and_then(|()| run(arguments.command)))
        }
        Err(Refusal::Sentence(sentence)) => {
            eprintln!("pudica: {sentence}");
            2
        }
        Err(Refusal::Help(page)) => {
            out::note(page.print().or_else(|problem| if page.use_stderr() { Ok(()) } else { Err(problem) }));
            page.exit_code() as u8
        }
    };
    match out::finish() {
        Some(problem) => {
            eprintln!("pudica: cannot write to standard output: {problem}");
            if code == 0 { 2 } else { code }
        }
        None => code,
    }
}

fn run(command: Command) -> Result<Ending, Box<dyn std::error::Error>> {
    match command {
        Command::List(arguments) => experiments::list(&arguments),
        Command::Show(arguments) => experiments::show(&arguments),
        Command::Run(arguments) => experiments::run(&arguments),
        Command::Report(arguments) => experiments::report(&arguments),
        Command::Settings(arguments) => experiments::settings(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Boolean(arguments) => boolean::run(&arguments),
        Command::Bounds(arguments) => bounds::run(&arguments),
        Command::Construct(arguments) => construct::run(&arguments),
        Command::Data(arguments) => data::run(&arguments),
        Command::Measure(arguments) => measure::run(&arguments),
        Command::Merge(arguments) => merge::run(&arguments),
        Command::Spectrum(arguments) => spectrum::run(&arguments),
        Command::Status(arguments) => status::run(&arguments),
        Command::Stop(arguments) => slurm::stop(&arguments),
    }
}

/// Threads are started when they are first needed, and what rayon makes of an impossible number of them is a panic.
fn check_threads() -> Result<(), Box<dyn std::error::Error>> {
    for name in ["RAYON_NUM_THREADS", "RAYON_RS_NUM_CPUS"] {
        let Some(asked) = std::env::var_os(name).filter(|text| !text.is_empty()) else { continue };
        let threads = asked.to_str().and_then(|text| text.trim().parse::<u64>().ok());
        if threads.is_none_or(|threads| threads > MOST_THREADS) {
            let asked = arguments::repeated(&asked.to_string_lossy());
            return Err(format!("{name}={asked}: give a number of threads, at most {MOST_THREADS}").into());
        }
    }
    Ok(())
}

fn exit_code(result: Result<Ending, Box<dyn std::error::Error>>) -> u8 {
    match result {
        Ok(Ending::Done) => 0,
        Ok(Ending::Interrupted) => signals::exit_code(),
        Err(problem) => {
            eprintln!("pudica: {}", text::brief(&problem.to_string()));
            2
        }
    }
}

/// A file beyond `ulimit -f` is an error of its write, to be told in a sentence, not a signal that ends the program.
fn let_long_files_be_errors() {
    // SAFETY: ignores a signal, before any thread is started.
    #[cfg(unix)]
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
