//! An analysis as LaTeX: a table of numbers, and the largest coefficients as a formula. Needs `booktabs` and `amsmath`.

use crate::text::{number, sum_of};
use pudica_boolean::Convention;
use pudica_boolean::analysis::{Analysis, Coefficient, Quantity};

/// Prints what was found, one row per number; lists are in `--csv` and `--json`. `top` is how many coefficients were asked for.
pub fn print(analysis: &Analysis, top: usize) {
    let values = match analysis.convention {
        Convention::PlusMinus => r"$f \in \{+1, -1\}$",
        Convention::ZeroOne => r"$f \in \{0, 1\}$",
        Convention::AsGiven => r"$f \in \mathbb{R}$",
    };
    println!("% {}, n = {}", analysis.function, analysis.n);
    println!(r"\begin{{tabular}}{{lr}}");
    println!(r"\toprule");
    println!(r"\multicolumn{{2}}{{l}}{{{}, $n = {}$, {values}}} \\", escaped(&analysis.function), analysis.n);
    println!(r"\midrule");
    for (name, value) in rows(analysis) {
        println!(r"{name} & {value} \\");
    }
    println!(r"\bottomrule");
    println!(r"\end{{tabular}}");
    if let Some(coefficients) = &analysis.spectral.top_coefficients {
        print_expansion(coefficients, top, r"\chi");
    }
    if let Some(biased) = &analysis.biased
        && let Some(coefficients) = &biased.spectral.top_coefficients
    {
        println!("\n% for bits that are 1 with probability {}", biased.p);
        print_expansion(coefficients, top, r"\phi");
    }
}

fn print_expansion(coefficients: &[Coefficient], top: usize, basis: &str) {
    let (relation, rest) = if coefficients.len() < top { ("=", "") } else { (r"\approx", r" + \cdots") };
    println!("\n\\[ f(x) {relation} {}{rest} \\]", expansion(coefficients, basis));
}

/// Names and numbers, as LaTeX.
fn rows(analysis: &Analysis) -> Vec<(String, String)> {
    let whole = |value: Option<usize>| value.map(|value| format!("${value}$"));
    let real = |value: Option<f64>| value.map(|value| format!("${}$", scientific(value)));
    let holds = |value: Option<bool>| value.map(|holds| if holds { "yes".into() } else { "no".to_string() });
    let named: [(&str, Option<String>); 24] = [
        (r"$\mathbb{E}[f]$", analysis.mean.as_ref().map(quantity)),
        (r"$\operatorname{Var}[f]$", analysis.variance.as_ref().map(quantity)),
        (r"average sensitivity $\mathrm{as}_n(f)$", analysis.average_sensitivity.as_ref().map(quantity)),
        (r"maximal sensitivity $s(f)$", real(analysis.max_sensitivity)),
        (r"block sensitivity $bs(f)$", whole(analysis.block_sensitivity)),
        (r"certificate complexity $C(f)$", whole(analysis.certificate_complexity)),
        (r"decision-tree depth $D(f)$", whole(analysis.decision_tree_depth)),
        (r"degree", whole(analysis.degree)),
        (r"degree over $\mathbb{F}_2$", whole(analysis.gf2_degree)),
        (r"$\sum_S |\hat f(S)|$", real(analysis.spectral.spectral_norm)),
        (r"Fourier entropy (bits)", real(analysis.fourier_entropy)),
        (r"nonlinearity", real(analysis.nonlinearity.map(|value| value as f64))),
        (r"correlation immunity", whole(analysis.correlation_immunity)),
        (r"resiliency", real(analysis.resiliency.map(|value| value as f64))),
        (r"absolute indicator", real(analysis.absolute_indicator.map(|value| value as f64))),
        (r"sum-of-square indicator", real(analysis.sum_of_square_indicator)),
        (r"relevant variables", whole(analysis.relevant_variables.as_ref().map(Vec::len))),
        (r"balanced", holds(analysis.balanced)),
        (r"monotone", holds(analysis.monotone)),
        (r"unate", holds(analysis.unate)),
        (r"symmetric", holds(analysis.symmetric)),
        (r"linear over $\mathbb{F}_2$", holds(analysis.linear)),
        (r"affine over $\mathbb{F}_2$", holds(analysis.affine)),
        (r"linear threshold function", holds(analysis.linear_threshold)),
    ];
    let mut rows: Vec<(String, String)> =
        named.into_iter().filter_map(|(name, value)| Some((name.to_string(), value?))).collect();
    let math = |value: f64| format!("${}$", scientific(value));
    for stability in analysis.spectral.noise_stability.iter().flatten() {
        rows.push((format!(r"$\operatorname{{Stab}}_{{{}}}[f]$", stability.rho), math(stability.value)));
    }
    if let Some(biased) = &analysis.biased {
        let p = biased.p;
        for (name, value) in [
            (format!(r"$\mathbb{{E}}_{{p = {p}}}[f]$"), biased.mean),
            (format!(r"$\operatorname{{Var}}_{{p = {p}}}[f]$"), biased.variance),
            (format!(r"average sensitivity at $p = {p}$"), biased.average_sensitivity),
        ] {
            rows.push((name, math(value)));
        }
        if let Some(norm) = biased.spectral.spectral_norm {
            rows.push((format!(r"$\sum_S |\hat f(S)|$ at $p = {p}$"), math(norm)));
        }
        for stability in biased.spectral.noise_stability.iter().flatten() {
            let rho = stability.rho;
            rows.push((format!(r"$\operatorname{{Stab}}_{{{rho}}}[f]$ at $p = {p}$"), math(stability.value)));
        }
    }
    if let Some(polynomial) = analysis.algebraic_normal_form.as_ref().and_then(|form| form.polynomial.as_ref()) {
        let terms = polynomial.split(' ').map(|word| match word.strip_prefix('x') {
            Some(index) => format!("x_{{{index}}}"),
            None if word == "+" => r"\oplus".into(),
            None => word.into(),
        });
        rows.push(("algebraic normal form".into(), format!("${}$", terms.collect::<Vec<_>>().join(" "))));
    }
    rows
}

/// A number, with its interval where it was sampled.
fn quantity(quantity: &Quantity) -> String {
    match quantity {
        Quantity::Exact(value) => format!("${}$", scientific(*value)),
        Quantity::Sampled(sampled) => {
            let [low, high] = sampled.ci95.map(scientific);
            format!("${}$ $[{low}, {high}]$", scientific(sampled.estimate.mean))
        }
    }
}

/// `1.5 \cdot 10^{-7}` for `1.5e-7`.
fn scientific(value: f64) -> String {
    let text = number(value);
    match text.split_once('e') {
        Some((digits, exponent)) => format!(r"{digits} \cdot 10^{{{exponent}}}"),
        None => text,
    }
}

/// The sum of the coefficients with their basis functions.
fn expansion(coefficients: &[Coefficient], basis: &str) -> String {
    sum_of(coefficients.iter().map(|Coefficient { variables, value }| {
        let set = variables.iter().map(|i| i.to_string()).collect::<Vec<_>>().join(",");
        let function = if set.is_empty() { String::new() } else { format!(r"\,{basis}_{{\{{{set}\}}}}") };
        (*value < 0.0, format!("{}{function}", scientific(value.abs())))
    }))
}

/// Text that LaTeX prints as it stands.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => escaped.extend(['\\', character]),
            '^' => escaped += r"\textasciicircum{}",
            '~' => escaped += r"\textasciitilde{}",
            '\\' => escaped += r"\textbackslash{}",
            '|' => escaped += r"\textbar{}",
            other => escaped.push(other),
        }
    }
    escaped
}
