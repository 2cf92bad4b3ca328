//! Milliseconds of one training step and one prediction, for a few shapes:
//! `cargo run --release -p pudica-nn --example step_time [cpu|cuda [d n batch]]`

use std::time::Instant;

use pudica_data::{Target, Task};
use pudica_nn::{AdamWConfig, Architecture, Device, EncoderConfig, NnError, Trainer};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::parse(&std::env::args().nth(1).unwrap_or("cpu".into()))?;
    println!("{:>5} {:>4} {:>6} {:>10} {:>10}", "d", "n", "batch", "step ms", "predict ms");
    let all = [(16, 6, 64), (16, 8, 256), (32, 8, 128), (32, 10, 256), (64, 10, 256), (128, 10, 1024), (128, 20, 1024)];
    let shapes = match std::env::args().skip(2).map(|text| text.parse()).collect::<Result<Vec<usize>, _>>()?[..] {
        [d, n, batch] => vec![(d, n, batch)],
        _ => all.to_vec(),
    };
    for (d, n, batch) in shapes {
        let architecture = Architecture::Encoder(EncoderConfig { d, ff: d, ..EncoderConfig::paper(n) });
        let mut trainer =
            Trainer::new(&architecture, architecture.initial_weights(0)?, AdamWConfig::default(), &device)?;
        let task = Task::new(Target::parse("parity", n)?);
        let mut step = 0;
        let steps = median(|| {
            step += 1;
            let batch = task.train_batch(batch, 0, step).expect("n and batch are fine");
            trainer.step(&batch.strings, &batch.labels).map(drop)
        })?;
        let network = trainer.network()?;
        let strings = task.train_batch(batch, 0, 0)?.strings;
        let predictions = median(|| network.predict(&strings).map(drop))?;
        println!("{d:>5} {n:>4} {batch:>6} {steps:>10.3} {predictions:>10.3}");
    }
    Ok(())
}

/// The median time of one call in milliseconds, after warming up.
fn median(mut call: impl FnMut() -> Result<(), NnError>) -> Result<f64, NnError> {
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < 8 || (start.elapsed().as_secs_f64() < 1.0 && times.len() < 500) {
        let before = Instant::now();
        call()?;
        times.push(before.elapsed().as_secs_f64() * 1e3);
    }
    times.drain(..2);
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
