//! Statistics equal SciPy's; `fixtures/statistics.py` made the expected numbers.

use pudica_statistics::{linregress, mean};
use serde_json::Value;

fn fixtures() -> Value {
    serde_json::from_str(include_str!("fixtures/statistics.json")).unwrap()
}

fn close(ours: f64, theirs: &Value, what: &str) {
    let theirs = theirs.as_f64().unwrap();
    assert!((ours - theirs).abs() <= 1e-9 * theirs.abs() + 1e-300, "{what}: {ours} but SciPy says {theirs}");
}

fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn linregress_equals_scipy() {
    for case in fixtures()["linregress"].as_array().unwrap() {
        let points: Vec<(f64, f64)> = numbers(&case["x"]).into_iter().zip(numbers(&case["y"])).collect();
        let line = linregress(&points).unwrap();
        let name = case["name"].as_str().unwrap();
        close(line.slope, &case["slope"], name);
        close(line.intercept, &case["intercept"], name);
        close(line.r, &case["r"], name);
        if name != "nearly exact" {
            // There 1 - r^2 is of the order of a rounding error, in SciPy as here.
            close(line.p, &case["p"], name);
            close(line.std_error, &case["stderr"], name);
        }
    }
}

#[test]
fn intervals_equal_scipy() {
    for case in fixtures()["intervals"].as_array().unwrap() {
        let mean = mean(&numbers(&case["values"])).unwrap();
        close(mean.mean, &case["mean"], "mean");
        close(mean.std_error, &case["std_error"], "standard error");
        close(mean.low, &case["low"], "lower end");
        close(mean.high, &case["high"], "upper end");
    }
}
