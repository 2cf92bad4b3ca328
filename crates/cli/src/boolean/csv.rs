//! An analysis as CSV: one number per line, under the names of the JSON.

use pudica_boolean::analysis::{Analysis, Quantity, SpectralMeasures};
use pudica_boolean::comparison::Comparison;
use std::fmt::Display;

/// Prints what was found; what was not asked for has no line.
pub fn print(analysis: &Analysis, comparison: Option<&Comparison>) {
    println!("quantity,of,value,low95,high95");
    quantity("mean", "", analysis.mean.as_ref());
    quantity("variance", "", analysis.variance.as_ref());
    quantity("average_sensitivity", "", analysis.average_sensitivity.as_ref());
    let names = analysis.names();
    for (name, influence) in names.iter().zip(analysis.influences.iter().flatten()) {
        quantity("influences", &format!("x{name}"), Some(influence));
    }
    line("max_sensitivity", "", analysis.max_sensitivity);
    line("max_sensitivity_at_0", "", analysis.max_sensitivity_at_0);
    line("max_sensitivity_at_1", "", analysis.max_sensitivity_at_1);
    by_index("sensitivity_histogram", analysis.sensitivity_histogram.as_deref());
    line("degree", "", analysis.degree);
    spectral(&analysis.spectral, "");
    line("fourier_entropy", "", analysis.fourier_entropy);
    line("nonlinearity", "", analysis.nonlinearity);
    line("correlation_immunity", "", analysis.correlation_immunity);
    line("resiliency", "", analysis.resiliency);
    line("absolute_indicator", "", analysis.absolute_indicator);
    line("sum_of_square_indicator", "", analysis.sum_of_square_indicator);
    for (name, holds) in [
        ("balanced", analysis.balanced),
        ("monotone", analysis.monotone),
        ("unate", analysis.unate),
        ("symmetric", analysis.symmetric),
        ("linear", analysis.linear),
        ("affine", analysis.affine),
        ("linear_threshold", analysis.linear_threshold),
    ] {
        line(name, "", holds.map(u8::from));
    }
    for name in analysis.relevant_variables.iter().flatten() {
        line("relevant_variables", &format!("x{name}"), Some(1));
    }
    line("gf2_degree", "", analysis.gf2_degree);
    line("algebraic_normal_form", "terms", analysis.algebraic_normal_form.as_ref().map(|form| form.terms));
    let places = std::iter::once("constant".to_string()).chain(names.iter().map(|name| format!("x{name}")));
    for (place, parameter) in places.zip(analysis.chow_parameters.iter().flatten()) {
        line("chow_parameters", &place, Some(parameter));
    }
    if let Some(found) = &analysis.threshold_weights {
        let weights = names.iter().zip(&found.weights);
        weights.for_each(|(name, weight)| line("threshold_weights", &format!("x{name}"), Some(weight)));
        line("threshold_weights", "threshold", Some(found.threshold));
    }
    line("block_sensitivity", "", analysis.block_sensitivity);
    line("certificate_complexity", "", analysis.certificate_complexity);
    line("decision_tree_depth", "", analysis.decision_tree_depth);
    if let Some(biased) = &analysis.biased {
        line("biased", "p", Some(biased.p));
        line("biased", "mean", Some(biased.mean));
        line("biased", "variance", Some(biased.variance));
        line("biased", "average_sensitivity", Some(biased.average_sensitivity));
        let influences = names.iter().zip(&biased.influences);
        influences.for_each(|(name, influence)| line("biased", &format!("influence x{name}"), Some(influence)));
        spectral(&biased.spectral, "biased_");
    }
    if let Some(found) = comparison {
        line("versus", "distance", Some(found.distance));
        line("versus", "rmse", Some(found.rmse));
        line("versus", "average_sensitivity", Some(found.average_sensitivities[1]));
        line("versus", "lemma21", Some(found.lemma21.rmse));
        line("versus", "lemma21_reversed", Some(found.lemma21_reversed.rmse));
    }
}

/// What is read off a spectrum, under names that begin with `of`.
fn spectral(found: &SpectralMeasures, of: &str) {
    by_index(&format!("{of}degree_profile"), found.degree_profile.as_deref());
    line(&format!("{of}spectral_norm"), "", found.spectral_norm);
    by_index(&format!("{of}spectral_weight_above"), found.spectral_weight_above.as_deref());
    for stability in found.noise_stability.iter().flatten() {
        line(&format!("{of}noise_stability"), &format!("rho={}", stability.rho), Some(stability.value));
    }
    for coefficient in found.top_coefficients.iter().flatten() {
        let set = coefficient.variables.iter().map(|i| format!("x{i}")).collect::<Vec<_>>().join(" ");
        line(&format!("{of}top_coefficients"), &set, Some(coefficient.value));
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
