//! An analysis as CSV: one number per line, under the names of the JSON.

use pudica_boolean::analysis::{Analysis, Quantity};
use pudica_boolean::comparison::Comparison;
use std::fmt::Display;

/// Prints what was found; what was not asked for has no line.
pub fn print(analysis: &Analysis, comparison: Option<&Comparison>) {
    println!("quantity,of,value,low95,high95");
    quantity("mean", "", analysis.mean.as_ref());
    quantity("average_sensitivity", "", analysis.average_sensitivity.as_ref());
    for (i, influence) in analysis.influences.iter().flatten().enumerate() {
        quantity("influences", &format!("x{}", i + 1), Some(influence));
    }
    line("max_sensitivity", "", analysis.max_sensitivity);
    line("max_sensitivity_at_0", "", analysis.max_sensitivity_at_0);
    line("max_sensitivity_at_1", "", analysis.max_sensitivity_at_1);
    by_index("sensitivity_histogram", analysis.sensitivity_histogram.as_deref());
    line("degree", "", analysis.degree);
    by_index("degree_profile", analysis.degree_profile.as_deref());
    line("spectral_norm", "", analysis.spectral_norm);
    by_index("spectral_weight_above", analysis.spectral_weight_above.as_deref());
    for stability in analysis.noise_stability.iter().flatten() {
        line("noise_stability", &format!("rho={}", stability.rho), Some(stability.value));
    }
    for coefficient in analysis.largest_coefficients.iter().flatten() {
        let set = coefficient.variables.iter().map(|i| format!("x{i}")).collect::<Vec<_>>().join(" ");
        line("largest_coefficients", &set, Some(coefficient.value));
    }
    line("nonlinearity", "", analysis.nonlinearity);
    if let Some(p) = &analysis.properties {
        for (name, holds) in [
            ("balanced", p.balanced),
            ("monotone", p.monotone),
            ("unate", p.unate),
            ("symmetric", p.symmetric),
            ("linear", p.linear),
            ("affine", p.affine),
        ] {
            line("properties", name, Some(u8::from(holds)));
        }
        line("properties", "relevant_variables", Some(p.relevant_variables));
    }
    if let Some(form) = &analysis.algebraic_normal_form {
        line("algebraic_normal_form", "degree", Some(form.degree));
        line("algebraic_normal_form", "terms", Some(form.terms));
    }
    line("block_sensitivity", "", analysis.block_sensitivity);
    line("certificate_complexity", "", analysis.certificate_complexity);
    if let Some(found) = comparison {
        line("versus", "distance", Some(found.distance));
        line("versus", "rmse", Some(found.rmse));
        line("versus", "average_sensitivity", Some(found.average_sensitivities[1]));
        line("versus", "lemma21", Some(found.lemma21.rmse));
        line("versus", "lemma21_reversed", Some(found.lemma21_reversed.rmse));
    }
}

fn line(name: &str, of: &str, value: Option<impl Display>) {
    if let Some(value) = value {
        println!("{name},{of},{value},,");
    }
}

fn by_index(name: &str, values: Option<&[impl Display]>) {
    for (index, value) in values.into_iter().flatten().enumerate() {
        line(name, &index.to_string(), Some(value));
    }
}

fn quantity(name: &str, of: &str, quantity: Option<&Quantity>) {
    match quantity {
        Some(Quantity::Sampled(sampled)) => {
            let [low, high] = sampled.ci95;
            println!("{name},{of},{},{low},{high}", sampled.estimate.mean);
        }
        exact => line(name, of, exact.map(Quantity::value)),
    }
}
