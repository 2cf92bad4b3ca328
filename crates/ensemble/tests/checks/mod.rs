//! What is asked of both of the GPU's engines.

use pudica_ensemble::{Engine, Member, Noise, NoisyResponse, Strings};

/// How far the first numbers are from the second, as a part of the second's length.
pub fn off(found: &[f32], expected: &[f32]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let length = |of: &mut dyn Iterator<Item = f64>| of.map(|v| v * v).sum::<f64>().sqrt();
    let size = length(&mut expected.iter().map(|v| f64::from(*v)));
    length(&mut found.iter().zip(expected).map(|(a, b)| f64::from(a - b))) / (size + 1e-30)
}

/// The GPU draws its own noise: equal in distribution, not in numbers.
pub fn noise_agrees(found: &mut dyn Engine, expected: &mut dyn Engine, strings: Strings, draws: usize) {
    let noise = Noise { rho: 0.02, draws, purpose: "noise", index: 0 };
    let (a, b) = (found.shake(strings, noise).unwrap(), expected.shake(strings, noise).unwrap());
    for (a, b) in a.iter().zip(&b) {
        for of in [|response: &NoisyResponse| response.output_shift, |response: &NoisyResponse| response.loss_rise] {
            let (a, b) = (mean_and_error(a.iter().map(of).collect()), mean_and_error(b.iter().map(of).collect()));
            assert!((a.0 - b.0).abs() < 4.5 * (a.1.powi(2) + b.1.powi(2)).sqrt(), "{a:?} {b:?}");
        }
        assert_eq!(a.len(), draws);
    }
    let quiet = Noise { rho: 0.0, draws: 3, ..noise };
    for response in found.shake(strings, quiet).unwrap().iter().flatten() {
        assert!(response.output_shift < 1e-12 && response.loss_rise.abs() < 1e-9, "{response:?}");
    }
    assert_eq!(found.shake(strings, noise).unwrap(), a, "noise is named");
}

fn mean_and_error(values: Vec<f64>) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (count - 1.0);
    (mean, (variance / count).sqrt())
}

/// Twenty steps on end, and eight from which another engine goes on: the same losses and the same states.
pub fn goes_on_as_if_never_stopped(members: impl Fn() -> Vec<Member>, engine: impl Fn(Vec<Member>) -> Box<dyn Engine>) {
    let mut through = engine(members());
    let all = through.advance(20).unwrap();
    let mut first = engine(members());
    first.advance(8).unwrap();
    let mut saved = members();
    for (replica, member) in saved.iter_mut().enumerate() {
        member.state = first.state(replica).unwrap();
    }
    let mut second = engine(saved);
    assert_eq!(second.steps(), 8);
    assert_eq!(second.advance(12).unwrap(), all[8..]);
    for replica in 0..through.replicas() {
        let state = second.state(replica).unwrap();
        assert_eq!(through.state(replica).unwrap(), state);
        assert_eq!(through.weights(replica).unwrap(), state.weights);
    }
}
