//! The GPU engine against the reference networks. Without a GPU these tests say so and pass.

use pudica_data::{Bits, Stream, Target, Task, TrainingSet};
use pudica_ensemble::{Engine, Member, Noise, NoisyResponse, Precision, Shape, Strings, gpu, gpu_replicas, reference};
use pudica_nn::{AdamWConfig, Architecture, Embed, EncoderConfig, TrainingState};

/// Networks that differ in all a group may differ in.
fn members(shape: &Shape, set: Option<usize>, start: Start) -> Vec<Member> {
    let architecture = Architecture::Encoder(shape.encoder.clone());
    let n = shape.encoder.n;
    // Beyond 24 bits there is no random function on the GPU.
    let last = if n <= 24 { "random:3" } else { "kparity:5" };
    ["parity", "majority", "first", "mean", last]
        .into_iter()
        .enumerate()
        .map(|(index, target)| {
            let seed = index as u64;
            let mut task = Task::new(Target::parse(target, n).unwrap());
            if let Some(size) = set {
                task = task.with_training_set(TrainingSet::draw(size, n, seed).unwrap());
            }
            let adamw =
                AdamWConfig { lr: 1e-4 * (1.0 + seed as f64), weight_decay: 0.1 * seed as f64, ..Default::default() };
            let mut weights = architecture.initial_weights(seed).unwrap();
            if start == Start::Moved {
                let mut noise = Stream::new(seed, "test", 0);
                weights.data_mut().iter_mut().for_each(|weight| *weight += 0.05 * noise.normal_f32());
            }
            Member { task, seed, adamw, state: TrainingState::new(weights) }
        })
        .collect()
}

/// Where networks start: as runs do, or moved, since biases of 0 and scales of 1 hide mistakes.
#[derive(Clone, Copy, PartialEq)]
enum Start {
    Usual,
    Moved,
}

struct Case {
    shape: Shape,
    set: Option<usize>,
}

fn cases() -> Vec<Case> {
    let case = |n, d, heads, ff, layers, embed, batch, set| {
        let encoder = EncoderConfig { n, d, layers, heads, ff, embed, same_init: true };
        Case { shape: Shape { encoder, batch }, set }
    };
    use Embed::{Add, Concat};
    vec![
        case(9, 16, 2, 16, 2, Concat, 100, None),
        case(4, 16, 2, 16, 2, Concat, 128, None), // the whole cube, weighted
        case(12, 32, 4, 20, 2, Add, 64, None),
        case(7, 12, 3, 40, 3, Concat, 33, None), // a middle layer
        case(6, 8, 1, 8, 4, Add, 50, None),
        case(5, 16, 2, 24, 1, Concat, 64, None), // first layer and last
        case(1, 4, 2, 4, 2, Concat, 8, None),
        case(40, 4, 2, 4, 2, Concat, 32, None),
        case(10, 128, 2, 128, 2, Concat, 256, None),
        case(8, 16, 2, 16, 2, Concat, 64, Some(24)), // the whole set
        case(8, 16, 2, 16, 2, Concat, 24, Some(64)), // drawn from the set
    ]
}

impl Case {
    fn members(&self, start: Start) -> Vec<Member> {
        members(&self.shape, self.set, start)
    }

    fn name(&self) -> String {
        format!("{:?} set {:?}", self.shape, self.set)
    }
}

/// Whether there is a GPU to test.
fn there_is_a_gpu() -> bool {
    match gpu_replicas(&cases()[0].shape) {
        Ok(_) => true,
        Err(problem) => {
            eprintln!("skipped: {problem}");
            false
        }
    }
}

fn pair(case: &Case, start: Start) -> (Box<dyn Engine>, Box<dyn Engine>) {
    let on_gpu = gpu(case.shape.clone(), case.members(start), Precision::F32).unwrap();
    (on_gpu, reference(case.shape.clone(), case.members(start)).unwrap())
}

fn close(found: f64, expected: f64, tolerance: f64) -> bool {
    (found - expected).abs() <= tolerance * (expected.abs() + 1e-6)
}

/// After one step from zero moments the first moment is (1 - beta1) times the gradient.
#[test]
fn gradients_agree() {
    if !there_is_a_gpu() {
        return;
    }
    for case in cases() {
        let (mut found, mut expected) = pair(&case, Start::Moved);
        found.advance(1).unwrap();
        expected.advance(1).unwrap();
        for replica in 0..found.replicas() {
            let (found, expected) = (found.state(replica).unwrap(), expected.state(replica).unwrap());
            for parameter in expected.weights.layout() {
                let (found, expected) =
                    (&found.first_moment[parameter.range.clone()], &expected.first_moment[parameter.range.clone()]);
                let largest = expected.iter().fold(1e-4f32, |largest, g| largest.max(g.abs()));
                let worst = found.iter().zip(expected).fold(0f32, |worst, (a, b)| worst.max((a - b).abs()));
                assert!(
                    worst <= 1e-5 * largest,
                    "{}, replica {replica}, {}: off by {worst} of {largest}",
                    case.name(),
                    parameter.name
                );
            }
        }
    }
}

/// Seen to fail on an H200 at width 128: off by 2.8e-4, where the reference itself, from weights an ulp away, is off by 4.4e-4
/// (docs/claims.md). What the reference departs by is told beside a failure, but excuses nothing.
#[test]
fn losses_agree_over_a_hundred_steps() {
    if !there_is_a_gpu() {
        return;
    }
    let mut failures = Vec::new();
    for case in cases() {
        let (mut found, mut expected) = pair(&case, Start::Usual);
        let (found, expected) = (found.advance(100).unwrap(), expected.advance(100).unwrap());
        let off = worst(&found, &expected);
        if off > 1e-4 {
            let own = (0..3).map(|trial| worst(&an_ulp_away(&case, trial), &expected)).fold(0.0, f64::max);
            failures.push(format!("{}: off by {off:.2e}; the reference from an ulp away by {own:.2e}", case.name()));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The largest relative difference of losses.
fn worst(found: &[Vec<f64>], expected: &[Vec<f64>]) -> f64 {
    let pairs = found.iter().flatten().zip(expected.iter().flatten());
    pairs.map(|(found, expected)| (found - expected).abs() / (expected.abs() + 1e-6)).fold(0.0, f64::max)
}

/// A hundred losses of the reference from weights changed by less than their rounding.
fn an_ulp_away(case: &Case, trial: u64) -> Vec<Vec<f64>> {
    let mut members = case.members(Start::Usual);
    let mut noise = Stream::new(trial, "ulp", 0);
    for member in &mut members {
        member.state.weights.data_mut().iter_mut().for_each(|weight| *weight *= 1.0 + noise.uniform_f32(-6e-8, 6e-8));
    }
    reference(case.shape.clone(), members).unwrap().advance(100).unwrap()
}

#[test]
fn measures_agree() {
    if !there_is_a_gpu() {
        return;
    }
    for case in cases() {
        let (mut found, mut expected) = pair(&case, Start::Moved);
        let n = case.shape.encoder.n;
        let shared = Bits::uniform(37, n, &mut Stream::new(1, "shared", 0)).unwrap();
        let each: Vec<Bits> = (0..found.replicas() as u64)
            .map(|index| Bits::uniform(21, n, &mut Stream::new(index, "each", 0)).unwrap())
            .collect();
        let fresh = Strings::Fresh { rows: 70, purpose: "evaluate", index: 3 };
        for strings in [fresh, Strings::Shared(&shared), Strings::Each(&each)] {
            let (a, b) = (found.predict(strings).unwrap(), expected.predict(strings).unwrap());
            for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
                assert!((a - b).abs() < 2e-5 * (1.0 + b.abs()), "{} {strings:?}: {a} {b}", case.name());
            }
            let (a, b) = (found.evaluate(strings).unwrap(), expected.evaluate(strings).unwrap());
            for (a, b) in a.iter().zip(&b) {
                assert!(close(a.0, b.0, 1e-4) && close(a.1, b.1, 1e-9), "{} {strings:?}: {a:?} {b:?}", case.name());
            }
            let (a, b) = (found.norms(strings).unwrap(), expected.norms(strings).unwrap());
            for (a, b) in a.iter().zip(&b) {
                assert_eq!(a.names, b.names);
                let pairs = [
                    (&a.unbiased_max, &b.unbiased_max),
                    (&a.unbiased_mean, &b.unbiased_mean),
                    (&a.theory_max, &b.theory_max),
                    (&a.theory_mean, &b.theory_mean),
                ];
                for (a, b) in pairs {
                    assert_eq!(a.len(), b.len());
                    for (a, b) in a.iter().zip(b) {
                        assert!(close((*a).into(), (*b).into(), 2e-4), "{} {strings:?}: {a} {b}", case.name());
                    }
                }
            }
        }
    }
}

/// Factors with 10 bits of mantissa: outputs and gradients are off by about as much, whichever kernels compute them.
#[test]
fn tensor_cores_agree_up_to_their_rounding() {
    if !there_is_a_gpu() {
        return;
    }
    let shape = |n, d, heads, layers, batch| {
        let encoder = EncoderConfig { d, ff: d, heads, layers, ..EncoderConfig::paper(n) };
        Case { shape: Shape { encoder, batch }, set: None }
    };
    // Tiles that are full and not, all positions and only the last, and a width that has no kernel of its own.
    let cases = [
        shape(10, 128, 2, 2, 256),
        shape(29, 128, 2, 2, 37),
        shape(3, 128, 4, 1, 64),
        shape(32, 128, 1, 3, 20),
        shape(9, 64, 2, 2, 100),
    ];
    for case in cases {
        let mut found = gpu(case.shape.clone(), case.members(Start::Moved), Precision::Tf32).unwrap();
        let mut expected = reference(case.shape.clone(), case.members(Start::Moved)).unwrap();
        let strings = Strings::Fresh { rows: 70, purpose: "evaluate", index: 3 };
        let (a, b) = (found.predict(strings).unwrap(), expected.predict(strings).unwrap());
        for (a, b) in a.iter().flatten().zip(b.iter().flatten()) {
            assert!((a - b).abs() < 5e-3 * (1.0 + b.abs()), "{}: {a} {b}", case.name());
        }
        let (a, b) = (found.norms(strings).unwrap(), expected.norms(strings).unwrap());
        for (a, b) in a.iter().zip(&b).flat_map(|(a, b)| a.theory_max.iter().zip(&b.theory_max)) {
            assert!(close((*a).into(), (*b).into(), 5e-3), "{}: {a} {b}", case.name());
        }
        found.advance(1).unwrap();
        expected.advance(1).unwrap();
        for replica in 0..found.replicas() {
            let (a, b) = (found.state(replica).unwrap(), expected.state(replica).unwrap());
            let size = b.first_moment.iter().map(|g| g * g).sum::<f32>().sqrt();
            let off = a.first_moment.iter().zip(&b.first_moment).map(|(a, b)| (a - b).powi(2)).sum::<f32>().sqrt();
            assert!(off < 1e-2 * size, "{}, replica {replica}: gradient off by {off} of {size}", case.name());
        }
    }
}

/// The GPU draws its own noise: equal in distribution, not in numbers.
#[test]
fn noise_agrees_in_the_mean() {
    if !there_is_a_gpu() {
        return;
    }
    let case = &cases()[0];
    let (mut found, mut expected) = pair(case, Start::Moved);
    let strings = Strings::Fresh { rows: 64, purpose: "sharpness", index: 0 };
    let noise = Noise { rho: 0.02, draws: 400, purpose: "noise", index: 0 };
    let (a, b) = (found.shake(strings, noise).unwrap(), expected.shake(strings, noise).unwrap());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(a.len(), 400);
        let moments = |values: Vec<f64>| {
            let mean = values.iter().sum::<f64>() / 400.0;
            let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 399.0;
            (mean, (variance / 400.0).sqrt())
        };
        let shift = |of: &[NoisyResponse]| moments(of.iter().map(|r| r.output_shift).collect());
        let rise = |of: &[NoisyResponse]| moments(of.iter().map(|r| r.loss_rise).collect());
        for (a, b) in [(shift(a), shift(b)), (rise(a), rise(b))] {
            let error = (a.1.powi(2) + b.1.powi(2)).sqrt();
            assert!((a.0 - b.0).abs() < 4.5 * error, "{a:?} {b:?}");
        }
    }
    let quiet = Noise { rho: 0.0, draws: 3, ..noise };
    for response in found.shake(strings, quiet).unwrap().iter().flatten() {
        assert!(response.output_shift < 1e-12 && response.loss_rise.abs() < 1e-9, "{response:?}");
    }
    assert_eq!(found.shake(strings, noise).unwrap(), a, "noise is named");
}

#[test]
fn a_resumed_ensemble_goes_on_as_if_never_stopped() {
    if !there_is_a_gpu() {
        return;
    }
    let case = &cases()[0];
    let mut through = gpu(case.shape.clone(), case.members(Start::Moved), Precision::F32).unwrap();
    let all = through.advance(20).unwrap();
    let mut first = gpu(case.shape.clone(), case.members(Start::Moved), Precision::F32).unwrap();
    first.advance(8).unwrap();
    let mut members = case.members(Start::Moved);
    for (replica, member) in members.iter_mut().enumerate() {
        member.state = first.state(replica).unwrap();
    }
    let mut second = gpu(case.shape.clone(), members, Precision::F32).unwrap();
    assert_eq!(second.steps(), 8);
    assert_eq!(second.advance(12).unwrap(), all[8..]);
    for replica in 0..through.replicas() {
        assert_eq!(through.state(replica).unwrap(), second.state(replica).unwrap());
    }
}
