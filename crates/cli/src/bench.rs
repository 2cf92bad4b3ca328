//! `pudica bench`: how long networks take on this machine.

use crate::Ending;
use crate::arguments::whole;
use crate::machine::Machine;
use crate::text::{number, seconds};
use clap::{Args, Subcommand};
use pudica_lab::kinds::boolean::{self, BooleanExperiment, Rates, RunConfig, check_fits, time};
use serde_json::json;
use std::error::Error;
use std::time::Duration;

/// Measure how long training steps and forward passes take here
#[derive(Args)]
pub struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Encoder(Encoder),
}

/// The encoder of the Boolean experiments, one or more of them in lock-step
///
/// Medians of readings after warming up. A step draws a batch, computes loss and gradient and updates by AdamW; measuring consists of
/// forward passes. `pudica show` estimates an experiment's time from the same measurement.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub struct Encoder {
    /// Bits per string
    #[arg(long, default_value_t = 20, value_parser = whole::<usize>(1..=10_000))]
    n: usize,
    /// Strings per training step
    #[arg(long, default_value_t = 1024)]
    batch: usize,
    /// Width
    #[arg(long, default_value_t = 128)]
    d: usize,
    /// Layers
    #[arg(long, default_value_t = 2)]
    layers: usize,
    /// Heads
    #[arg(long, default_value_t = 2)]
    heads: usize,
    /// Width of the feed-forward block [default: as d]
    #[arg(long)]
    ff: Option<usize>,
    /// Networks trained in lock-step
    #[arg(long, default_value_t = 1, value_parser = whole::<u16>(1..=u64::from(u16::MAX)))]
    replicas: u16,
    /// Seconds to measure for
    #[arg(long, default_value_t = 4.0)]
    seconds: f64,
    #[command(flatten)]
    machine: Machine,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        let What::Encoder(encoder) = &self.what;
        format!("timing training steps and forward passes, for about {}", seconds(encoder.seconds))
    }
}

const EXAMPLES: &str = "\
Examples:
  pudica bench encoder                                             the paper's encoder at n = 20, all cores
  pudica bench encoder --n 30 --replicas 40 --device cuda --json   forty at once on a GPU
  pudica bench encoder --n 12 --d 32 --batch 128                   any size";

/// Times what is asked for and prints it.
pub fn run(arguments: &Arguments) -> Result<Ending, Box<dyn Error>> {
    let What::Encoder(encoder) = &arguments.what;
    let mut config = RunConfig { n: encoder.n, ..RunConfig::default() };
    config.model.d = encoder.d;
    config.model.layers = encoder.layers;
    config.model.heads = encoder.heads;
    config.model.ff = encoder.ff.unwrap_or(0); // as d
    config.train.batch = encoder.batch;
    config.validate().map_err(as_typed)?;
    if !(0.0..=3600.0).contains(&encoder.seconds) {
        return Err(format!("--seconds {}: give 0 to 3600", encoder.seconds).into());
    }
    let budget = Duration::from_secs_f64(encoder.seconds);
    let mut settings = boolean::KIND.defaults();
    for (_, change) in encoder.machine.flags(&settings, false)? {
        if let Some((key, value)) = change.split_once('=') {
            settings.set(key, value.into())?;
        }
    }
    let compute = boolean::KIND.resolve(&settings)?.compute().ok_or("nothing says what to compute on")?;
    if compute.device == "cpu" {
        check_fits(&config, &compute.dtype, encoder.replicas.into()).map_err(as_typed)?;
    }
    let experiment = BooleanExperiment::new(None).on(&compute);
    let timing = time(&config, encoder.replicas.into(), &experiment, budget)?;
    let most = experiment.ceilings()?;
    let Encoder { n, batch, d, layers, heads, .. } = encoder;
    if encoder.json {
        let rates = |rates: Option<Rates>| {
            rates.map(|r| json!({"gb_per_second": r.bytes / 1e9, "tflop_per_second": r.flops / 1e12}))
        };
        let object = json!({"ms_per_replica_step": timing.ms_per_replica_step, "forward_ms": timing.forward_ms,
            "replicas": timing.replicas, "device": timing.device, "spread": timing.spread, "steps_timed": timing.steps,
            "n": n, "batch": batch, "d": d, "layers": layers, "heads": heads, "ff": config.ff(),
            "achieved": rates(timing.rates), "ceilings": rates(most)});
        println!("{object}");
        return Ok(Ending::Done);
    }
    println!(
        "n = {n}, batch {batch}, {layers} layers, {heads} heads, width {d}; {} at a time on {}\n",
        timing.replicas, timing.device
    );
    let row = |name: &str, ms: f64| println!("  {name:<22} {:>10} for each network", seconds(ms / 1000.0));
    row("a training step", timing.ms_per_replica_step);
    row("a forward pass", timing.forward_ms);
    if let (Some(rates), Some(most)) = (timing.rates, most) {
        let row = |name: &str, rate: f64, most: f64, unit: &str| {
            println!("  {name:<22} {rate:>10.1} {unit} in a step; at most {most:.1} were measured here")
        };
        row("memory traffic", rates.bytes / 1e9, most.bytes / 1e9, "GB/s");
        row("matrix products", rates.flops / 1e12, most.flops / 1e12, "TFLOP/s");
    }
    let spread = number((1000.0 * timing.spread).round() / 10.0);
    println!(
        "\n  medians; half of the readings of a step lie within {spread} % of each other ({} steps timed)",
        timing.steps
    );
    Ok(Ending::Done)
}

/// A setting by the name it has on this command line: `model.d` is `--d` here.
fn as_typed(error: pudica_lab::Error) -> Box<dyn Error> {
    match error {
        pudica_lab::Error::Setting { key, problem } => {
            format!("--{}: {problem}", key.rsplit('.').next().unwrap_or(&key)).into()
        }
        other => other.into(),
    }
}
