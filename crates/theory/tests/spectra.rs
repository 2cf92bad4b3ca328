//! Kernels against neural-tangents and eigenvalues against mpmath: `tests/golden/spectra.py` made the numbers.

use pudica_theory::spectra::infinite::Univariate;
use pudica_theory::spectra::{Activation, Architecture, Kernel, infinite_spectrum};
use serde_json::Value;

fn golden() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/spectra.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn mlp(case: &Value, dimension: usize) -> Architecture {
    let network = Architecture::named(case["activation"].as_str().unwrap(), dimension).unwrap();
    assert!([Activation::Relu, Activation::Erf].contains(&network.activation));
    Architecture {
        depth: case["depth"].as_u64().unwrap() as usize,
        weight_variance: case["weight_variance"].as_f64().unwrap(),
        bias_variance: case["bias_variance"].as_f64().unwrap(),
        ..network
    }
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn kernels_equal_those_of_neural_tangents() {
    let golden = golden();
    let cases = golden["kernels"].as_array().unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let network = mlp(case, 20);
        let (double, single) = (Univariate::new(&network, &1f64), Univariate::new(&network, &1f32));
        let (ck, ntk) = (numbers(&case["ck"]), numbers(&case["ntk"]));
        for differing in 0..=20 {
            let c = 1.0 - differing as f64 / 10.0;
            let (ours, rough) = (double.at(c), single.at(c as f32));
            // neural-tangents works in f64 and loses half the digits of the relu slope next to c = 1.
            for (what, theirs, ours, rough) in
                [("ck", ck[differing], ours.ck, rough.ck), ("ntk", ntk[differing], ours.ntk, rough.ntk)]
            {
                let size = theirs.abs() + 1.0;
                assert!((theirs - ours).abs() < 2e-7 * size, "{case} {what} at {differing}: {theirs} {ours}");
                assert!((ours - f64::from(rough)).abs() < 1e-3 * size, "f32 {what} at {differing}: {ours} {rough}");
                if differing > 0 {
                    assert!((theirs - ours).abs() < 1e-12 * size, "{case} {what} at {differing}: {theirs} {ours}");
                }
            }
        }
    }
}

#[test]
fn eigenvalues_equal_those_of_a_thousand_digits() {
    let golden = golden();
    let cases = golden["eigenvalues"].as_array().unwrap();
    assert_eq!(cases.len(), 3);
    for case in cases {
        let network = mlp(case, case["dimension"].as_u64().unwrap() as usize);
        // In 512 dimensions one kernel of each is enough, and takes seconds.
        let both = [("ck", Kernel::Ck), ("ntk", Kernel::Ntk)];
        let kernels = match (network.dimension(), network.activation) {
            (512, Activation::Relu) => &both[1..],
            (512, _) => &both[..1],
            _ => &both[..],
        };
        for (name, kernel) in kernels {
            let spectrum = infinite_spectrum(&network, *kernel).unwrap();
            assert!(spectrum.relative_error < 1e-15);
            for row in case["mu"].as_array().unwrap() {
                let degree = row["degree"].as_u64().unwrap() as usize;
                let theirs = row[*name].as_f64().unwrap();
                let error = (spectrum.mu[degree] / theirs - 1.0).abs();
                assert!(error < 1e-15, "{} {name} degree {degree}: {} {theirs}", network.name, spectrum.mu[degree]);
            }
        }
    }
}
