//! How far a GPU's gradients are from those in f64, of networks that are trained: the paper's encoder of N bits, on one batch of 64 strings.
//!
//!     cargo run --release -p pudica-ensemble --example gradient_error -- tf32 8 parity,majority runs/*/weights.safetensors      (PRECISION N TARGETS WEIGHTS ...)
//!
//! Prints, for each network and target, the least and the largest error of a parameter's gradient, in parts of its norm.

use std::error::Error;
use std::path::Path;

use pudica_data::{Target, Task};
use pudica_ensemble::{Member, Precision, Shape, gpu, reference};
use pudica_nn::{AdamWConfig, Architecture, EncoderConfig, TrainingState};

const BATCH: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [precision, n, targets, files @ ..] = &arguments[..] else {
        return Err(
            "say f32, tf32 or f64, the number of bits, targets with commas between, then files of weights".into()
        );
    };
    let precision = match precision.as_str() {
        "f32" => Precision::F32,
        "tf32" => Precision::Tf32,
        "f64" => Precision::F64,
        other => return Err(format!("the precision is f32, tf32 or f64, not {other}").into()),
    };
    let n: usize = n.parse().map_err(|_| format!("{n} is no number of bits"))?;
    let shape = Shape { encoder: EncoderConfig::paper(n), batch: BATCH };
    let like = Architecture::Encoder(shape.encoder.clone()).initial_weights(0)?;
    let (mut names, mut members) = (Vec::new(), Vec::new());
    for file in files {
        for target in targets.split(',') {
            let (task, adamw) = (Task::new(Target::parse(target, n)?), AdamWConfig::default());
            members.push(Member { task, seed: 5, adamw, state: TrainingState::new(like.load(Path::new(file))?) });
            names.push(format!("{target}, {file}"));
        }
    }
    let mut exact = reference(shape.clone(), members.clone(), Precision::F64)?;
    let mut found = gpu(shape, members, precision)?;
    exact.advance(1)?;
    found.advance(1)?;
    let norm = |numbers: &mut dyn Iterator<Item = f64>| numbers.map(|x| x * x).sum::<f64>().sqrt();
    for (replica, name) in names.iter().enumerate() {
        // After one step from zero the first moment is (1 - beta1) times the gradient.
        let (found, exact) = (found.state(replica)?, exact.state(replica)?);
        let error = |range: &std::ops::Range<usize>| {
            let [found, exact] = [&found, &exact].map(|state| &state.first_moment[range.clone()]);
            let apart = norm(&mut found.iter().zip(exact).map(|(a, b)| f64::from(a - b)));
            apart / norm(&mut exact.iter().map(|g| f64::from(*g)))
        };
        let errors: Vec<f64> = exact.weights.layout().iter().map(|parameter| error(&parameter.range)).collect();
        let least = errors.iter().copied().fold(f64::INFINITY, f64::min);
        let largest = errors.iter().copied().fold(0.0, f64::max);
        println!("{name}: {least:.1e} to {largest:.1e}");
    }
    Ok(())
}
