//! Milliseconds of one training step of the networks on token sequences, and what reusing the prefix saves where one embedding after the
//! other gets noise:
//! `cargo run --release -p pudica-nn --example text_time [cpu|torch|cuda [batch length layers]]`

use std::time::Instant;

use pudica_data::Stream;
use pudica_nn::classifier::{Classifier, Learner, Model, Optimiser};
use pudica_nn::text::{Attention, Gpt2Config, LstmConfig, RobertaConfig, Sequences, TextConfig, Touch};
use pudica_nn::{Device, NnError};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Embeddings that get noise at once: what a measurement gives a network.
const TOUCHES: usize = 1024;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let device = Device::parse(&std::env::args().nth(1).unwrap_or("cpu".into()))?;
    let sizes = std::env::args().skip(2).map(|text| text.parse()).collect::<Result<Vec<usize>, _>>()?;
    let (batch, length, layers) = match sizes[..] {
        [batch, length, layers] => (batch, length, layers),
        _ => (32, 128, 4),
    };
    let relu = RobertaConfig { layers, attention: Attention::Relu, ..RobertaConfig::default() };
    println!("{batch} sequences of {length} tokens, {layers} layers, on {}", device.name());
    println!(
        "{:<14} {:>10} {:>12} {:>14} {:>10} {:>8}",
        "", "step ms", "predict ms", "noise, all ms", "kept ms", "saving"
    );
    for (name, config) in [
        ("roberta", TextConfig::Roberta(RobertaConfig { layers, ..RobertaConfig::default() })),
        ("roberta-relu", TextConfig::Roberta(relu)),
        ("gpt2", TextConfig::Gpt2(Gpt2Config { layers, ..Gpt2Config::default() })),
        ("lstm", TextConfig::Lstm(LstmConfig { layers, ..LstmConfig::default() })),
    ] {
        let mut stream = Stream::new(0, "tokens", 0);
        let mut sequence = || (0..length).map(|_| stream.below(config.vocabulary() as u64) as u32).collect();
        let input = Sequences::new((0..batch).map(|_| sequence()).collect());
        let labels: Vec<usize> = (0..batch).map(|index| index % 2).collect();
        let weights = config.initial_weights(0)?;
        let mut learner = Learner::new(&config, &weights, Optimiser::adamw(1e-4), 0, &device)?;
        let step = median(|| {
            learner.step(&input, &labels, None, 1e-4)?;
            learner.loss().map(drop)
        })?;
        let model = Model::new(&config, &weights, &config.initial_buffers(), &device)?;
        let predict = median(|| model.predict(&input).map(drop))?;
        print!("{name:<14} {step:>10.1} {predict:>12.1}");
        if matches!(config, TextConfig::Roberta(_)) {
            println!("{:>15} {:>10} {:>8}", "-", "-", "-");
            continue;
        }
        let mut noise = Stream::new(0, "noise", 0);
        let touches: Vec<(usize, Touch)> = (0..TOUCHES)
            .map(|index| {
                let noise = (0..config.width()).map(|_| noise.normal_f32()).collect();
                (index % batch, Touch { position: index / batch * length * batch / TOUCHES % length, noise })
            })
            .collect();
        let whole = |touches: &[(usize, Touch)]| Sequences {
            ids: touches.iter().map(|(sequence, _)| input.ids[*sequence].clone()).collect(),
            touches: touches.iter().map(|(_, touch)| Some(touch.clone())).collect(),
        };
        let all = median(|| touches.chunks(256).try_for_each(|some| model.predict(&whole(some)).map(drop)))?;
        let kept = median(|| model.touched_scores(&input, &touches).map(drop))?;
        println!(" {all:>14.1} {kept:>10.1} {:>7.2}x", all / kept);
    }
    Ok(())
}

/// The median of at least five times, after a first one that is not counted.
fn median(mut work: impl FnMut() -> Result<(), NnError>) -> Result<f64, NnError> {
    work()?;
    let (start, mut times) = (Instant::now(), Vec::new());
    while times.len() < 5 || (start.elapsed().as_secs_f64() < 2.0 && times.len() < 50) {
        let start = Instant::now();
        work()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
