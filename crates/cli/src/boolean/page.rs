//! An analysis as a page for people.

use crate::text::{bar, grouped, number, seconds};
use pudica_boolean::analysis::{Analysis, Coefficient, Method, Quantity};
use pudica_boolean::comparison::{Comparison, LowerBound};
use pudica_boolean::sampled::Sampled;
use pudica_boolean::{Convention, NormalForm, Properties};

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
    if let Some(mean) = &analysis.mean {
        row("mean, E[f]", show(mean));
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
    if let Some(value) = analysis.degree {
        row("degree", format!("{value}   (as a polynomial over the real numbers)"));
    }
    if let Some(form) = &analysis.algebraic_normal_form {
        row("degree over GF(2)", normal_form(form));
    }
    if let Some(value) = analysis.nonlinearity {
        row("nonlinearity", format!("{}   (inputs that differ from the nearest affine function)", grouped(value)));
    }
    if let Some(value) = analysis.spectral_norm {
        row("spectral norm", format!("{}   (sum of all |lambda_S|, values {})", number(value), values(analysis)));
    }
    for stability in analysis.noise_stability.iter().flatten() {
        let kept = number((1.0 + stability.rho) / 2.0);
        let meaning = format!("E[f(x) f(y)], each bit of y that of x with probability {kept}");
        row(&format!("noise stability, rho {}", stability.rho), format!("{}   ({meaning})", number(stability.value)));
    }
    if let Some(properties) = &analysis.properties {
        row("it is", describe(properties, analysis.n));
    }
    if analysis.precision_reached == Some(false) {
        row("note", "the time limit came before the precision asked for (--time-limit)".into());
    }
    if let Some(influences) = &analysis.influences {
        print_influences(influences);
    }
    if let Some(coefficients) = &analysis.largest_coefficients {
        print_coefficients(coefficients);
    }
    if let Some(histogram) = &analysis.sensitivity_histogram {
        let rows = histogram.iter().enumerate().map(|(s, &count)| (s.to_string(), count as f64, grouped(count)));
        print_bars("inputs by number of sensitive bits", rows);
    }
    if let Some(profile) = &analysis.degree_profile {
        let rows = profile.iter().enumerate().map(|(degree, &weight)| (degree.to_string(), weight, number(weight)));
        print_bars("degree profile (spectral weight by degree)", rows);
    }
    println!();
    for (name, check) in analysis.checks.all() {
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
        Some(polynomial) => format!("{}   ({polynomial})", form.degree),
        None => format!("{}   ({terms}: its algebraic normal form)", form.degree),
    }
}

fn describe(properties: &Properties, n: usize) -> String {
    let Properties { balanced, monotone, unate, symmetric, linear, affine, relevant_variables } = *properties;
    let words = [
        (balanced, "balanced"),
        (monotone, "monotone"),
        (unate && !monotone, "unate"),
        (symmetric, "symmetric"),
        (linear, "linear over GF(2)"),
        (affine && !linear, "affine over GF(2)"),
    ];
    let mut words: Vec<String> = words.iter().filter(|(holds, _)| *holds).map(|(_, word)| word.to_string()).collect();
    words.push(match relevant_variables {
        0 => "constant".into(),
        all if all == n => "dependent on every variable".into(),
        some => format!("a {some}-junta (dependent on {some} of {n} variables)"),
    });
    let missing =
        [(balanced, "balanced"), (monotone || unate, "monotone"), (symmetric, "symmetric"), (affine, "affine")];
    let missing: Vec<&str> = missing.iter().filter(|(holds, _)| !*holds).map(|(_, word)| *word).collect();
    match missing.is_empty() {
        true => words.join(", "),
        false => format!("{}; not {}", words.join(", "), missing.join(", not ")),
    }
}

/// All of them when they differ, up to a screenful of the largest; one line when they are equal.
fn print_influences(influences: &[Quantity]) {
    const SHOWN: usize = 32;
    if let [first, _, ..] = influences
        && let first = show(first)
        && influences.iter().all(|influence| show(influence) == first)
    {
        return row("influences", format!("{first} for every variable"));
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
    println!("\n  influences");
    for (index, quantity) in order.iter().map(|&i| (i + 1, &influences[i])) {
        println!("  {:>5}  {:<32} {}", format!("x{index}"), bar(quantity.value() / largest, 32), show(quantity));
    }
    if let Some(&next) = rest.first() {
        println!("    ... and {} more, the largest {} (--json has all)", rest.len(), show(&influences[next]));
    }
}

fn print_coefficients(coefficients: &[Coefficient]) {
    if coefficients.is_empty() {
        return row("largest coefficients", "none: the function is 0".into());
    }
    println!("\n  largest coefficients");
    for Coefficient { variables, value } in coefficients {
        let set = match variables.as_slice() {
            [] => "constant".to_string(),
            // A screen's width of them.
            [first, second, .., last] if variables.len() > 16 => {
                format!("x{first} x{second} ... x{last} ({} variables)", variables.len())
            }
            all => all.iter().map(|i| format!("x{i}")).collect::<Vec<_>>().join(" "),
        };
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
