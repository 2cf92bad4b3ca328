//! `pudica bounds`: the theory's inequalities on a given network.

use crate::Ending;
use crate::arguments::whole;
use crate::text::{grouped, number, seconds};
use clap::Args;
use pudica_lab::kinds::boolean::{architecture, config_of_run};
use pudica_lab::store::RunFolder;
use pudica_theory::bounds::{Checked, Claim, Lemma11, Report, Sampling, Verdict, Versus};
use pudica_theory::{EncoderConfig, TheoryError, Weights, load_encoder, load_run_encoder, shortened};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Compute the constants and both sides of every bound of Hahn & Rofin (2024) for a network.
///
/// The network is a run's folder (config.json and weights.safetensors) or a safetensors file with the names PyTorch gives
/// (tok.weight, pos.weight, enc.layers.0..., head.weight; docs/theory.md lists them), as `pudica construct --save` writes it.
/// What was only sampled is never called verified.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// A run's folder, or a .safetensors file
    #[arg(value_name = "RUN_OR_WEIGHTS")]
    network: PathBuf,
    /// Shorten strings to N bits: use only the first N positions
    #[arg(long, value_name = "N")]
    n: Option<usize>,
    /// Attention heads, if the file does not say [default: what it says, else 2]
    #[arg(long, value_name = "H")]
    heads: Option<usize>,
    /// Inputs to sample beyond n = 14, up to which all are tried [default: as many as a minute allows, at most 256]
    #[arg(long, value_name = "S", value_parser = whole::<usize>(1..=MOST))]
    samples: Option<usize>,
    /// Sizes of the noise per weight (root mean square) for Theorem 6, separated by commas
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', allow_hyphen_values = true)]
    rho: Option<Vec<f64>>,
    /// Noise draws per size
    #[arg(long, value_name = "D", default_value_t = 10, value_parser = whole::<usize>(2..=MOST))]
    draws: usize,
    /// Compare by Lemma 21 with a function (parity, first, ...) or another network (n <= 20)
    #[arg(long, value_name = "FUNCTION_OR_NETWORK")]
    versus: Option<String>,
    /// Seed of the random inputs and noise
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        format!("computing both sides of every bound for {}", self.network.display())
    }
}

/// The most inputs and draws: each is computed in f64, some of them with all their neighbours.
const MOST: u64 = 100_000;

const EXAMPLES: &str = "\
Examples:
  pudica bounds runs/hahn/length-scaling-quick/runs/3dc637f520fa
  pudica construct parity --n 12 --save parity.safetensors && pudica bounds parity.safetensors
  pudica bounds parity.safetensors --versus first           how far apart Lemma 21 says they must be
  pudica bounds parity.safetensors --rho 0.1,0.01,0.001      sharpness for other sizes of noise
  pudica bounds parity.safetensors --json | jq '.claims[] | {name, verdict, slack}'";

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<Ending, Box<dyn std::error::Error>> {
    let started = Instant::now();
    let (mut shape, mut weights) = read(&arguments.network, arguments.heads)?;
    if let Some(n) = arguments.n {
        (shape, weights) = shortened(&shape, &weights, n)?;
    }
    let versus = arguments.versus.as_deref().map(|text| versus(text, arguments.heads)).transpose()?;
    let mut sampling =
        Sampling { samples: arguments.samples, draws: arguments.draws, seed: arguments.seed, ..Sampling::default() };
    if let Some(rhos) = &arguments.rho {
        sampling.rhos.clone_from(rhos);
    }
    let report = Report::of(&shape, &weights, versus.as_ref(), &sampling)?;
    if arguments.json {
        let mut object = json!(report);
        object["network"] = json!(arguments.network);
        println!("{object}");
    } else {
        print(&report, &arguments.network);
        println!("\n  {}", seconds(started.elapsed().as_secs_f64()));
    }
    Ok(Ending::Done)
}

/// A network from a run's folder or a file.
fn read(path: &Path, heads: Option<usize>) -> Result<(EncoderConfig, Weights), Box<dyn std::error::Error>> {
    if !path.exists() {
        let problem = format!("there is no {}; give a run's folder or a .safetensors file", path.display());
        return Err(TheoryError::Argument(problem).into());
    }
    if !path.is_dir() {
        return Ok(load_encoder(path, heads)?);
    }
    if heads.is_some() {
        return Err("--heads is for a file that does not say; a run's folder does: leave it out".into());
    }
    let config = config_of_run(&RunFolder::new(path.into()))?;
    Ok(load_run_encoder(&architecture(&config), &path.join("weights.safetensors"))?)
}

fn versus(text: &str, heads: Option<usize>) -> Result<Versus, Box<dyn std::error::Error>> {
    let path = Path::new(text);
    if path.exists() || text.ends_with(".safetensors") {
        let (shape, weights) = read(path, heads)?;
        return Ok(Versus::Encoder(text.into(), shape, weights));
    }
    Ok(Versus::Function(text.into()))
}

fn print(report: &Report, network: &Path) {
    let shape = &report.shape;
    println!("{}", network.display());
    println!(
        "  encoder on strings of {} bits: d = {}, layers {}, heads {}, ff {}\n",
        shape.n, shape.d, shape.layers, shape.heads, shape.ff
    );
    println!("  constants of Appendix B, each at least 1");
    println!("  {:<8} {:>5} {:>12} {:>12}  made of", "", "Eq.", "ln", "value");
    for constant in &report.constants.list {
        let value = if constant.ln < 20.0 { number(constant.ln.exp()) } else { format!("e^{}", number(constant.ln)) };
        println!(
            "  {:<8} {:>5} {:>12} {:>12}  {}",
            constant.symbol,
            format!("({})", constant.equation),
            number(constant.ln),
            value,
            constant.formula
        );
    }
    print_attention(&report.lemma11);
    println!("\n  {:<12} {:>12} {:>12} {:>12}  {:<22} how checked", "claim", "left", "right", "slack", "");
    report.claims.iter().for_each(print_claim);
    println!(
        "\n  Slack is the room that is left, negative where a claim fails (as a power of e where both sides are). \
         A claim holds\n  trivially where no network with outputs in [-1, 1] could break it."
    );
}

/// The sums of Lemma 11: all positions of short strings, the largest of long ones.
fn print_attention(lemma: &Lemma11) {
    const SHOWN: usize = 12;
    println!(
        "\n  Lemma 11: how far all bits together move the first layer's attention (bound {})",
        number(lemma.bound)
    );
    println!("  {:>5} {:>9} {:>12} {:>12}", "head", "position", "mean", "largest");
    for (head, (largest, mean)) in lemma.largest.iter().zip(&lemma.mean).enumerate() {
        let mut positions: Vec<usize> = (0..largest.len()).collect();
        if largest.len() > SHOWN {
            positions.sort_by(|a, b| largest[*b].total_cmp(&largest[*a]));
            positions.truncate(3);
        }
        for position in &positions {
            let (mean, largest) = (number(mean[*position]), number(largest[*position]));
            println!("  {:>5} {:>9} {mean:>12} {largest:>12}", head + 1, position + 1);
        }
        if positions.len() < largest.len() {
            println!("  {:>5} {:>9}   the largest 3 of {} positions; --json has all", "", "...", largest.len());
        }
    }
}

fn print_claim(claim: &Claim) {
    let side = |value: f64| match claim.in_ln {
        true if value == f64::NEG_INFINITY => "0".into(),
        true => format!("e^{}", number(value)),
        false => number(value),
    };
    let verdict = match (claim.verdict, claim.vacuous) {
        (Verdict::Fails, _) => "FAILS",
        (Verdict::NotDecided, _) => "not decidable",
        (_, true) => "holds trivially",
        (Verdict::Holds, false) => "holds",
        (Verdict::HeldWhereTried, false) => "held in all samples",
    };
    let checked = match claim.checked {
        Checked::Exhaustively { cases } => format!("all {} cases", grouped(cases)),
        Checked::Sampled { cases } => format!("{} sampled cases", grouped(cases)),
        Checked::Computed => "computed".into(),
        Checked::Beside => "a limit; not checkable".into(),
    };
    let slack = if claim.in_ln { format!("e^{}", number(claim.slack)) } else { number(claim.slack) };
    println!(
        "  {:<12} {:>12} {:>12} {slack:>12}  {verdict:<22} {checked}",
        claim.name,
        side(claim.left),
        side(claim.right)
    );
    println!("    {}", claim.statement);
    if !claim.note.is_empty() {
        println!("    {}", claim.note);
    }
}
