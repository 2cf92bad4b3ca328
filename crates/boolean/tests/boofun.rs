//! Our numbers beside boofun 1.3.0's, for the functions in `fixtures/boofun_values.json` (made by the script beside it).

use pudica_boolean::complexity::complexity;
use pudica_boolean::{Named, Spectrum, TruthTable, sensitivity_profile};
use serde_json::Value;

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|v| v.as_f64().unwrap()).collect()
}

fn close(ours: &[f64], theirs: &[f64], what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    for (a, b) in ours.iter().zip(theirs) {
        assert!((a - b).abs() < 1e-12, "{what}: {ours:?} against {theirs:?}");
    }
}

#[test]
fn every_measure_equals_boofuns() {
    let fixture: Value = serde_json::from_str(include_str!("fixtures/boofun_values.json")).unwrap();
    let cases = fixture.as_array().unwrap();
    assert!(cases.len() >= 36);
    for case in cases {
        let (name, n) = (case["name"].as_str().unwrap(), case["n"].as_u64().unwrap() as usize);
        let text = case["table"].as_str().unwrap().as_bytes();
        let table = TruthTable::from_fn(n, |x| {
            let row = x.iter().fold(0, |row, bit| 2 * row + usize::from(bit));
            text[row] == b'1'
        })
        .unwrap();
        if name != "table" {
            let named = name.parse::<Named>().unwrap().boolean_at(n).unwrap().table().unwrap();
            assert_eq!(named, table, "{name} is another function there");
        }
        let spectrum = Spectrum::of(&table).unwrap();
        let profile = sensitivity_profile(&table);
        let small = complexity(&table).unwrap();
        close(&profile.influences(), &numbers(&case["influences"]), name);
        close(&[profile.average_sensitivity()], &[case["total_influence"].as_f64().unwrap()], name);
        close(&spectrum.coefficients().collect::<Vec<_>>(), &numbers(&case["fourier"]), name);
        close(&[spectrum.noise_stability(0.6)], &[case["noise_stability_0.6"].as_f64().unwrap()], name);
        assert_eq!(spectrum.degree() as u64, case["degree"].as_u64().unwrap(), "{name} n={n}");
        assert_eq!(profile.max() as u64, case["max_sensitivity"].as_u64().unwrap(), "{name} n={n}");
        assert_eq!(small.block_sensitivity as u64, case["block_sensitivity"].as_u64().unwrap(), "{name} n={n}");
        assert_eq!(
            small.certificate_complexity as u64,
            case["certificate_complexity"].as_u64().unwrap(),
            "{name} n={n}"
        );
        let mut histogram = vec![0; n + 1];
        numbers(&case["sensitivity_profile"]).iter().for_each(|&s| histogram[s as usize] += 1);
        assert_eq!(profile.histogram(), histogram, "{name} n={n}");
    }
}
