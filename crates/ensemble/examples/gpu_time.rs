//! Where a GPU stands: steps and forward passes beside what it can copy and multiply.
//!
//!     cargo run --release -p pudica-ensemble --example gpu_time -- tf32 10:40 20:40 30:40      (PRECISION N:REPLICAS[:D[:BATCH]] ...)
//!     cargo run --release -p pudica-ensemble --example gpu_time -- scratchpad 39:10 1024:10    (N:REPLICAS ...)

use std::error::Error;
use std::time::Instant;

use pudica_data::{Target, Task};
use pudica_ensemble::{
    Engine, Member, Noise, Precision, Shape, Strings, ceilings, gpu, gpu_replicas, gpu_scratchpad,
    gpu_scratchpad_replicas,
};
use pudica_nn::{AdamWConfig, Architecture, EncoderConfig, EncoderDecoderConfig, TrainingState};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next();
    let precision = match what.as_deref() {
        Some("f32") => Precision::F32,
        Some("tf32" | "scratchpad") => Precision::Tf32,
        Some("f64") => Precision::F64,
        _ => return Err("say f32, tf32, f64 or scratchpad, then N:REPLICAS[:D[:BATCH]] once or more".into()),
    };
    let start = Instant::now();
    let most = ceilings(precision)?;
    let (copy, product) = (most.copy_bytes_per_second / 1e9, most.product_flops_per_second / 1e12);
    let opened = start.elapsed().as_secs_f64();
    println!("{}: copies {copy:.0} GB/s, multiplies {product:.0} TFLOP/s; ready after {opened:.1} s", precision.name());
    for argument in arguments {
        let numbers: Vec<usize> = argument.split(':').map(str::parse).collect::<Result<_, _>>()?;
        let number = |place: usize, usual: usize| numbers.get(place).copied().unwrap_or(usual);
        match what.as_deref() {
            Some("scratchpad") => scratchpads(number(0, 39), number(1, 1))?,
            _ => encoders([number(0, 20), number(1, 1), number(2, 128), number(3, 1024)], precision)?,
        }
    }
    Ok(())
}

/// The paper's scratchpads.
fn scratchpads(n: usize, replicas: usize) -> Result<(), Box<dyn Error>> {
    let (config, batch) = (EncoderDecoderConfig::paper(n), 128);
    let architecture = Architecture::EncoderDecoder(config.clone());
    let member = |seed: u64| -> Result<Member, Box<dyn Error>> {
        let state = TrainingState::new(architecture.initial_weights(seed)?);
        let task = Task::new(Target::parse("parity", n)?).with_scratchpad()?;
        Ok(Member { task, seed, adamw: AdamWConfig::default(), state })
    };
    let fitting = gpu_scratchpad_replicas(&config, batch)?;
    let members = (0..replicas as u64).map(member).collect::<Result<_, _>>()?;
    time(
        &format!("scratchpad, n {n}, {replicas} replicas ({fitting} fit)"),
        batch,
        gpu_scratchpad(&config, batch, members)?,
    )
}

fn encoders([n, replicas, d, batch]: [usize; 4], precision: Precision) -> Result<(), Box<dyn Error>> {
    let encoder = EncoderConfig { d, ff: d, ..EncoderConfig::paper(n) };
    let architecture = Architecture::Encoder(encoder.clone());
    let member = |seed: u64| -> Result<Member, Box<dyn Error>> {
        let state = TrainingState::new(architecture.initial_weights(seed)?);
        Ok(Member { task: Task::new(Target::parse("parity", n)?), seed, adamw: AdamWConfig::default(), state })
    };
    let shape = Shape { encoder, batch };
    let fitting = gpu_replicas(&shape, precision)?;
    let members = (0..replicas as u64).map(member).collect::<Result<_, _>>()?;
    let name = format!("n {n}, d {d}, batch {batch}, {replicas} replicas ({fitting} fit)");
    time(&name, batch, gpu(shape, members, precision)?)
}

fn time(name: &str, batch: usize, mut engine: Box<dyn Engine>) -> Result<(), Box<dyn Error>> {
    let replicas = engine.replicas();
    let strings = |index| Strings::Fresh { rows: batch, purpose: "time", index };
    let noise = |index| Noise { rho: 0.02, draws: 10, purpose: "time-noise", index };
    let step = median(|| engine.advance(20).map(|_| ()))? / 20.0;
    let forward = median(|| engine.evaluate(strings(0)).map(|_| ()))?;
    let shaken = median(|| engine.shake(strings(0), noise(0)).map(|_| ()))? / 11.0;
    let each = |seconds: f64| 1e3 * seconds / replicas as f64;
    print!("{name}: step {:.4} ms a replica, forward {:.4}, with noise {:.4}", each(step), each(forward), each(shaken));
    if let Some(work) = engine.step_work() {
        print!("; a step does {:.0} GB/s, {:.1} TFLOP/s", work.bytes / step / 1e9, work.flops / step / 1e12);
    }
    println!();
    Ok(())
}

/// The median of five times, in seconds, after one that is not counted.
fn median<E>(mut work: impl FnMut() -> Result<(), E>) -> Result<f64, E> {
    work()?;
    let mut seconds = Vec::new();
    for _ in 0..5 {
        let start = Instant::now();
        work()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[2])
}
