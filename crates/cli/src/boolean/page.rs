//! An analysis as a page for people.

use crate::text::{bar, grouped, number, seconds, sum_of};
use pudica_boolean::analysis::{Analysis, Coefficient, Method, NoiseStability, Quantity};
use pudica_boolean::biased::Biased;
use pudica_boolean::comparison::{Comparison, LowerBound};
use pudica_boolean::linear_threshold::Weights;
use pudica_boolean::sampled::Sampled;
use pudica_boolean::{Convention, NormalForm};

fn row(name: &str, value: String) {
    println!("  {name:<26} {value}");
}

/// Prints everything that was found.
pub fn print(analysis: &Analysis) {
    let how = match analysis.method {
        Method::Exact => "exact",
        Method::Sampled => "sampled, 95 % intervals",
    };
    println!("{}, n = {}  ({how}; values {})\n", analysis.function, analysis.n, analysis.convention);
    if let Some(free) = &analysis.free_variables {
        row("free variables", variables(free));
    }
    if let Some(mean) = &analysis.mean {
        row("mean, E[f]", show(mean));
    }
    if let Some(variance) = &analysis.variance {
        row("variance", show(variance));
    }
    if let Some(quantity) = &analysis.average_sensitivity {
        let other = match (&analysis.average_sensitivity_by_convention, analysis.convention) {
            (Some(both), Convention::PlusMinus) => format!("   ({} with values 0, 1)", number(both.zero_one)),
            (Some(both), Convention::ZeroOne) => format!("   ({} with values ±1)", number(both.pm1)),
            _ => String::new(),
        };
        row("average sensitivity", format!("{}{other}", show(quantity)));
    }
    if let Some(max) = analysis.max_sensitivity {
        let at = |value: Option<usize>| value.map_or("none".into(), |s| s.to_string());
        let (zero, one) = (analysis.max_sensitivity_at_0, analysis.max_sensitivity_at_1);
        let split = if zero.or(one).is_some() {
            format!("   (on 0-inputs {}, on 1-inputs {})", at(zero), at(one))
        } else {
            String::new()
        };
        row("max sensitivity", format!("{}{split}", number(max)));
    }
    if let Some(value) = analysis.block_sensitivity {
        row("block sensitivity", value.to_string());
    }
    if let Some(value) = analysis.certificate_complexity {
        row("certificate complexity", value.to_string());
    }
    if let Some(value) = analysis.decision_tree_depth {
        row("decision-tree depth", value.to_string());
    }
    if let Some(value) = analysis.degree {
        row("degree", format!("{value}   (as a polynomial over the real numbers)"));
    }
    if let Some(value) = analysis.gf2_degree {
        let form = analysis.algebraic_normal_form.as_ref().map_or(String::new(), normal_form);
        row("degree over GF(2)", format!("{value}{form}"));
    }
    if let Some(value) = analysis.nonlinearity {
        row("nonlinearity", format!("{}   (inputs that differ from the nearest affine function)", grouped(value)));
    }
    if let Some(value) = analysis.correlation_immunity {
        let resilient = analysis.resiliency.filter(|order| *order > 0);
        let resilient = resilient.map_or(String::new(), |order| format!(", {order}-resilient"));
        row(
            "correlation immunity",
            format!("{value}   (bits that may be known without knowing anything about f{resilient})"),
        );
    }
    if let Some(value) = analysis.absolute_indicator {
        let meaning = "largest |r(a)|, a not 0; r(a) sums (-1)^(f(x) + f(x + a)) over x";
        row("absolute indicator", format!("{}   ({meaning})", grouped(value)));
    }
    if let Some(value) = analysis.sum_of_square_indicator {
        row("sum-of-square indicator", format!("{}   (of all r(a))", number(value)));
    }
    if let Some(value) = analysis.fourier_entropy {
        row("Fourier entropy", format!("{} bits   (of the distribution lambda_S^2, values ±1)", number(value)));
    }
    if let Some(value) = analysis.spectral.spectral_norm {
        row("spectral norm", format!("{}   (sum of all |lambda_S|, values {})", number(value), values(analysis)));
    }
    for stability in analysis.spectral.noise_stability.iter().flatten() {
        let kept = number((1.0 + stability.rho) / 2.0);
        let meaning = format!("E[f(x) f(y)], each bit of y that of x with probability {kept}");
        row(&format!("noise stability, rho {}", stability.rho), format!("{}   ({meaning})", number(stability.value)));
    }
    let described = describe(analysis);
    if !described.is_empty() {
        row("it is", described);
    }
    if let Some(found) = &analysis.threshold_weights {
        row("threshold weights", threshold(found, &analysis.names()));
    }
    if let Some(biased) = &analysis.biased {
        let Biased { p, mean, variance, average_sensitivity, .. } = biased;
        row(&format!("with bits 1 at p = {p}"), format!("mean {}, variance {}", number(*mean), number(*variance)));
        row("", format!("average sensitivity {}", number(*average_sensitivity)));
        if let Some(norm) = biased.spectral.spectral_norm {
            row("", format!("spectral norm {}", number(norm)));
        }
        for NoiseStability { rho, value } in biased.spectral.noise_stability.iter().flatten() {
            let meaning = format!("each bit of y that of x with probability {rho}, else drawn anew");
            let meaning = if *rho < 0.0 { "sum of rho^|S| lambda_S^2".into() } else { meaning };
            row("", format!("noise stability at rho {rho}: {}   ({meaning})", number(*value)));
        }
    }
    if analysis.precision_reached == Some(false) {
        row("note", "the time limit came before the precision asked for (--time-limit)".into());
    }
    if let Some(influences) = &analysis.influences {
        print_influences("influences", influences, &analysis.names());
    }
    if let Some(biased) = &analysis.biased {
        let influences: Vec<Quantity> = biased.influences.iter().map(|value| Quantity::Exact(*value)).collect();
        print_influences(&format!("influences at p = {}", biased.p), &influences, &analysis.names());
    }
    if let Some(coefficients) = &analysis.spectral.top_coefficients {
        print_coefficients("largest coefficients", coefficients);
    }
    if let Some(histogram) = &analysis.sensitivity_histogram {
        let rows = histogram.iter().enumerate().map(|(s, &count)| (s.to_string(), count as f64, grouped(count)));
        print_bars("inputs by number of sensitive bits", rows);
    }
    if let Some(profile) = &analysis.spectral.degree_profile {
        print_profile("degree profile (spectral weight by degree)", profile);
    }
    if let Some(Biased { p, spectral, .. }) = &analysis.biased {
        if let Some(coefficients) = &spectral.top_coefficients {
            print_coefficients(&format!("largest coefficients at p = {p}"), coefficients);
        }
        if let Some(profile) = &spectral.degree_profile {
            print_profile(&format!("degree profile at p = {p}"), profile);
        }
    }
    println!();
    let of_biased = analysis.biased.iter().flat_map(|biased| biased.checks.all());
    for (name, check) in analysis.checks.all().chain(of_biased) {
        let mark = if check.holds { "holds" } else { "FAILS" };
        println!("  check {name:<10} {mark}: {} ({} and {})", check.claim, number(check.left), number(check.right));
    }
    println!("  {}", seconds(analysis.seconds));
}

fn values(analysis: &Analysis) -> &'static str {
    match analysis.convention {
        Convention::PlusMinus => "±1",
        Convention::ZeroOne => "0, 1",
        Convention::AsGiven => "as given",
    }
}

fn show(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Exact(value) => number(*value),
        Quantity::Sampled(Sampled { estimate, ci95 }) => {
            let [low, high] = ci95.map(number);
            format!("{}  [{low}, {high}]  from {} inputs", number(estimate.mean), grouped(estimate.samples))
        }
    }
}

fn normal_form(form: &NormalForm) -> String {
    let terms = if form.terms == 1 { "1 term".into() } else { format!("{} terms", grouped(form.terms)) };
    match form.polynomial.as_ref().filter(|polynomial| polynomial.len() <= 70) {
        Some(polynomial) => format!("   ({polynomial})"),
        None => format!("   ({terms}: its algebraic normal form)"),
    }
}

/// What is known about the kind of function: what it is, then what it is not.
fn describe(analysis: &Analysis) -> String {
    let is = |known: Option<bool>| known == Some(true);
    let is_not = |known: Option<bool>| known == Some(false);
    let Analysis { balanced, monotone, unate, symmetric, linear, affine, linear_threshold, .. } = *analysis;
    let words = [
        (is(balanced), "balanced"),
        (is(monotone), "monotone"),
        (is(unate) && !is(monotone), "unate"),
        (is(symmetric), "symmetric"),
        (is(linear), "linear over GF(2)"),
        (is(affine) && !is(linear), "affine over GF(2)"),
        (is(linear_threshold), "a linear threshold function"),
    ];
    let mut words: Vec<String> = words.iter().filter(|(holds, _)| *holds).map(|(_, word)| word.to_string()).collect();
    words.extend(analysis.relevant_variables.as_ref().map(|relevant| match relevant.len() {
        0 => "constant".into(),
        all if all == analysis.n => "dependent on every variable".into(),
        some => format!("a {some}-junta ({} matter of {})", variables(relevant), analysis.n),
    }));
    let missing = [
        (is_not(balanced), "balanced"),
        (is_not(monotone) && !is(unate), "monotone"),
        (is_not(symmetric), "symmetric"),
        (is_not(affine), "affine"),
        (is_not(linear_threshold), "a linear threshold function"),
    ];
    let missing: Vec<String> =
        missing.iter().filter(|(holds, _)| *holds).map(|(_, word)| format!("not {word}")).collect();
    [words.join(", "), missing.join(", ")].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ")
}

/// A screen's width of variables.
fn variables(names: &[usize]) -> String {
    match names {
        [first, second, .., last] if names.len() > 16 => {
            format!("x{first} x{second} ... x{last} ({} variables)", names.len())
        }
        all => all.iter().map(|i| format!("x{i}")).collect::<Vec<_>>().join(" "),
    }
}

/// `3 x1 + 2 x2 >= 5`.
fn threshold(found: &Weights, names: &[usize]) -> String {
    let terms = names.iter().zip(&found.weights).filter(|(_, weight)| **weight != 0);
    let sum = sum_of(terms.map(|(name, weight)| match weight.abs() {
        1 => (*weight < 0, format!("x{name}")),
        size => (*weight < 0, format!("{size} x{name}")),
    }));
    format!("f = 1 where {sum} >= {}", found.threshold)
}

/// All of them when they differ, up to a screenful of the largest; one line when they are equal.
fn print_influences(title: &str, influences: &[Quantity], names: &[usize]) {
    const SHOWN: usize = 32;
    if let [first, _, ..] = influences
        && let first = show(first)
        && influences.iter().all(|influence| show(influence) == first)
    {
        return row(title, format!("{first} for every variable"));
    }
    let mut order: Vec<usize> = (0..influences.len()).collect();
    order.sort_by(|a, b| influences[*b].value().total_cmp(&influences[*a].value()));
    let shown = match order.len() {
        0..=SHOWN => order.len(),
        _ => order.iter().take(SHOWN).filter(|&&i| influences[i].value() > 0.0).count(),
    };
    let rest = order.split_off(shown);
    order.sort_unstable();
    let largest = order.iter().map(|&i| influences[i].value()).fold(0.0, f64::max);
    println!("\n  {title}");
    for (index, quantity) in order.iter().map(|&i| (names[i], &influences[i])) {
        println!("  {:>5}  {:<32} {}", format!("x{index}"), bar(quantity.value() / largest, 32), show(quantity));
    }
    if let Some(&next) = rest.first() {
        println!("    ... and {} more, the largest {} (--json has all)", rest.len(), show(&influences[next]));
    }
}

fn print_profile(title: &str, profile: &[f64]) {
    let rows = profile.iter().enumerate().map(|(degree, &weight)| (degree.to_string(), weight, number(weight)));
    print_bars(title, rows);
}

fn print_coefficients(title: &str, coefficients: &[Coefficient]) {
    if coefficients.is_empty() {
        return row(title, "none: the function is 0".into());
    }
    println!("\n  {title}");
    for Coefficient { variables: set, value } in coefficients {
        let set = if set.is_empty() { "constant".into() } else { variables(set) };
        println!("  {:>12}  {set}", number(*value));
    }
}

/// A line for each value: label, bar, text. Zeros at both ends are left out.
fn print_bars(title: &str, rows: impl Iterator<Item = (String, f64, String)>) {
    let rows: Vec<_> = rows.collect();
    let largest = rows.iter().map(|row| row.1).fold(0.0, f64::max);
    let (Some(first), Some(last)) = (rows.iter().position(|r| r.1 > 0.0), rows.iter().rposition(|r| r.1 > 0.0)) else {
        println!("\n  {title}: all zero");
        return;
    };
    println!("\n  {title}");
    for (label, value, text) in &rows[first..=last] {
        println!("  {label:>5}  {:<32} {text}", bar(value / largest, 32));
    }
}

/// Prints how far apart two functions are.
pub fn print_comparison(comparison: &Comparison, first: &str, second: &str) {
    let bound = |bound: &LowerBound| match bound.rmse {
        0.0 => "nothing: these two sensitivities force no distance".to_string(),
        rmse => format!("RMSE >= {}   (at the best alpha, {})", number(rmse), number(bound.alpha)),
    };
    let [a, b] = comparison.average_sensitivities;
    println!("\n  {first} against {second}");
    row("differ on", format!("{} of inputs", number(comparison.distance)));
    row("RMSE (values ±1)", number(comparison.rmse));
    row("average sensitivities", format!("{} and {}", number(a), number(b)));
    println!(
        "  Lemma 21 (Hahn & Rofin 2024): a function of low average sensitivity is far from one of high average sensitivity."
    );
    row("  with the first as high", bound(&comparison.lemma21));
    row("  with the second as high", bound(&comparison.lemma21_reversed));
    row("  agrees with the RMSE", if comparison.holds { "yes" } else { "NO" }.into());
}
