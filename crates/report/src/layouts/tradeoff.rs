//! LayerNorm blowup against parameter norm: Figures 2, 9 and 10.

use pudica_statistics::{Line, Term, contrast, difference, linregress};
use serde_json::{Map, Value, json};

use super::{legend_of, title_of};
use crate::claims::{Claim, Parts, single};
use crate::figure::colour::{of_target, viridis};
use crate::figure::{Axis, ColourBar, Figure, Mark, Panel, Point, Shape, Style};
use crate::findings::{Cell, Findings, Spread, Table, head};
use crate::run::Run;
use crate::sweep::Sweep;

/// `hahn/tradeoff`: colour tells the length.
pub fn by_target(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = targets(sweep);
    let lengths = sweep.numbers("n");
    let bar = ColourBar {
        label: "n".into(),
        low: lengths.iter().copied().reduce(f64::min).unwrap_or(0.0),
        high: lengths.iter().copied().reduce(f64::max).unwrap_or(1.0),
    };
    let (x, y) = axes(sweep);
    let panel = |target: &String| Panel {
        title: title_of(target),
        x: x.clone(),
        y: y.clone(),
        marks: coloured_by_length(&sweep.kept_with("target", target), &bar),
    };
    let figure = |targets: &[String], columns: usize| Figure {
        panels: targets.iter().map(panel).collect(),
        columns,
        colour_bar: Some(bar.clone()),
        ..Figure::default()
    };
    if let Some(parity) = targets.iter().position(|target| target == "parity") {
        let caption = "Every converged run for PARITY: LayerNorm blowup (log scale) against parameter norm; the colour is the input length.";
        findings.draw(
            "fig2",
            "Figure 2",
            "Blowup against norm for PARITY",
            caption,
            figure(&targets[parity..=parity], 1),
        );
    }
    let caption = "The same for all functions.";
    findings.draw("fig9", "Figure 9", "Blowup against norm", caption, figure(&targets, 2));
    add_statistics(&mut findings, sweep, &targets);
    findings.claims = claims(sweep, &targets);
    findings
}

/// `hahn/tradeoff-lengths`: one panel a length, colour tells the target.
pub fn by_length(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = targets(sweep);
    let mut lengths = sweep.numbers("n");
    lengths.sort_by(f64::total_cmp);
    let (x, y) = axes(sweep);
    let panel = |n: &f64| Panel {
        title: format!("n = {n}"),
        x: x.clone(),
        y: y.clone(),
        marks: targets
            .iter()
            .map(|target| {
                let runs = sweep.kept_with("target", target).into_iter().filter(|run| run.number("n") == Some(*n));
                Mark::points(points(runs), of_target(target))
            })
            .collect(),
    };
    let figure = Figure {
        panels: lengths.iter().map(panel).collect(),
        columns: 2,
        legend: legend_of(&targets),
        ..Figure::default()
    };
    let caption = "Every converged run: LayerNorm blowup (log scale) against parameter norm at four input lengths.";
    findings.draw("fig10", "Figure 10", "Blowup against norm at fixed lengths", caption, figure);
    add_statistics(&mut findings, sweep, &targets);
    findings.claims = claims_by_length(sweep, &lengths);
    findings
}

/// The targets in the paper's order; they were drawn in any.
fn targets(sweep: &Sweep) -> Vec<String> {
    let mut targets = sweep.texts("target");
    targets.sort_by_key(|target| ["parity", "majority", "first", "mean"].iter().position(|known| known == target));
    targets
}

/// The axes of all panels: equal, so that panels can be compared.
fn axes(sweep: &Sweep) -> (Axis, Axis) {
    let all = points(sweep.kept());
    let ends = |values: &mut dyn Iterator<Item = f64>| {
        values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
    };
    let (mut x, mut y) = (Axis::linear("parameter norm"), Axis::log("LayerNorm blowup"));
    let (low, high) = ends(&mut all.iter().map(|point| point.x));
    if low < high {
        x = x.within(low - 0.05 * (high - low), high + 0.05 * (high - low));
    }
    let (low, high) = ends(&mut all.iter().map(|point| point.y).filter(|blowup| *blowup > 0.0));
    if low < high {
        y = y.within(low / 1.4, high * 1.4);
    }
    (x, y)
}

fn points<'a>(runs: impl Iterator<Item = &'a Run>) -> Vec<Point> {
    runs.filter_map(|run| Some(run.point(run.value("param_norm")?, run.value("blowup")?))).collect()
}

fn coloured_by_length(runs: &[&Run], bar: &ColourBar) -> Vec<Mark> {
    let mut lengths: Vec<f64> = runs.iter().filter_map(|run| run.number("n")).collect();
    lengths.sort_by(f64::total_cmp);
    lengths.dedup();
    let colour = |n: f64| viridis((n - bar.low) / (bar.high - bar.low).max(1.0));
    let of = |n: f64| {
        let runs = runs.iter().copied().filter(|run| run.number("n") == Some(n));
        Mark::points(points(runs), Style::point(&colour(n), Shape::Circle).faint(0.85).sized(3.6))
    };
    lengths.into_iter().map(of).collect()
}

/// Norm, length and log10 of the blowup of each run that has them.
fn data(runs: &[&Run]) -> Vec<[f64; 3]> {
    let row = |run: &&Run| {
        let blowup = run.value("blowup").filter(|blowup| *blowup > 0.0)?;
        Some([run.value("param_norm")?, run.number("n")?, blowup.log10()])
    };
    runs.iter().filter_map(row).collect()
}

/// A slope that took a third parameter: one degree of freedom less.
fn term(line: &Line) -> Term {
    Term { freedom: line.points as f64 - 3.0, ..line.into() }
}

/// Section 7.2, Figures 2 and 9.
fn claims(sweep: &Sweep, targets: &[String]) -> Vec<Claim> {
    let fits: Vec<(String, usize, Option<Line>, Option<Line>)> = targets
        .iter()
        .map(|target| {
            let data = data(&sweep.kept_with("target", target));
            (title_of(target), data.len(), partial(&data, 0, 1), partial(&data, 1, 0))
        })
        .collect();
    let Some(parity) = fits.iter().find(|(title, ..)| title == "PARITY") else { return Vec::new() };
    let all: usize = fits.iter().map(|(_, runs, ..)| runs).sum();
    let (mut own, mut above, mut falls, mut only) =
        (Parts::default(), Parts::default(), Parts::default(), Parts::default());
    let fall = |line: &Option<Line>| contrast(&[(-1.0, term(line.as_ref()?))]);
    own.above("fall of log_{10} blowup per unit of norm", fall(&parity.2));
    above.above("rise of log_{10} blowup per bit at equal norm", parity.3.as_ref().map(term).and_then(single));
    for (title, _, norm, length) in &fits {
        falls.above(title, fall(norm));
        if title != "PARITY" {
            let apart =
                parity.3.as_ref().zip(length.as_ref()).and_then(|(own, other)| difference(term(own), term(other)));
            only.above(&format!("rise per bit, PARITY minus {title},"), apart);
        }
    }
    vec![
        above.claim(
            "fig2",
            "For PARITY, longer inputs lie above shorter ones at the same norm.",
            "Does PARITY need more blowup for longer inputs, at the same parameter norm?",
            parity.1,
        ),
        own.claim(
            "fig2",
            "For PARITY, log blowup falls as the parameter norm grows.",
            "Do blowup and norm trade off for PARITY?",
            parity.1,
        ),
        falls.claim(
            "fig9",
            "All four functions trade blowup against norm.",
            "Does log_{10} blowup fall with the norm for every function?",
            all,
        ),
        only.claim(
            "fig9",
            "Only for PARITY does the tradeoff move with n.",
            "Does blowup at equal norm grow faster with n for PARITY than for every other function?",
            all,
        ),
    ]
}

/// Figure 10: at each length, how much more log10 blowup PARITY has than the other functions at the same norm.
fn claims_by_length(sweep: &Sweep, lengths: &[f64]) -> Vec<Claim> {
    let more = |n: f64| {
        let runs: Vec<&Run> = sweep.kept().filter(|run| run.number("n") == Some(n)).collect();
        let row = |run: &&Run| {
            let [norm, _, blowup] = data(&[run]).pop()?;
            Some([norm, f64::from(u8::from(run.text("target") == "parity")), blowup])
        };
        let rows: Vec<[f64; 3]> = runs.iter().filter_map(row).collect();
        (rows.len(), partial(&rows, 1, 0))
    };
    let (mut long, mut short) = (Parts::default(), Parts::default());
    let mut runs = 0;
    for n in lengths.iter().skip(1) {
        let (count, line) = more(*n);
        long.above(&format!("n = {n}:"), line.as_ref().map(term).and_then(single));
        runs += count;
    }
    let mut claims = vec![long.claim(
        "fig10",
        "From n = 10 on, PARITY needs a larger norm at the same blowup than the other functions.",
        "At all but the shortest inputs, has PARITY more log_{10} blowup at the same norm than the other functions?",
        runs,
    )];
    if let [first, .., last] = lengths {
        let ((few, near), (many, far)) = (more(*first), more(*last));
        let apart = far.zip(near).and_then(|(far, near)| difference(term(&far), term(&near)));
        short.above(&format!("PARITY's surplus at n = {last} minus that at n = {first},"), apart);
        claims.push(short.claim(
            "fig10",
            "At n = 5 PARITY lies among the other functions.",
            "Is PARITY's surplus smaller at the shortest inputs than at the longest?",
            few + many,
        ));
    }
    claims
}

/// Least squares of log10 blowup on norm and n, for each target.
fn add_statistics(findings: &mut Findings, sweep: &Sweep, targets: &[String]) {
    let mut fits = Map::new();
    let mut rows = Vec::new();
    for target in targets {
        let data = data(&sweep.kept_with("target", target));
        let discarded = sweep.discarded_with("target", target);
        let (norm, length) = (partial(&data, 0, 1), partial(&data, 1, 0));
        let slope = |line: &Option<Line>| match line {
            Some(line) => Cell::number(line.slope, Spread::Error(line.std_error), None),
            None => Cell::Missing,
        };
        rows.push(vec![title_of(target).into(), slope(&norm), slope(&length), data.len().into(), discarded.into()]);
        let entry = json!({
            "log10_blowup_per_norm": norm.map(coefficient),
            "log10_blowup_per_bit": length.map(coefficient),
            "runs_kept": data.len(),
            "runs_discarded": discarded,
        });
        fits.insert(target.clone(), entry);
    }
    findings.summary.insert("fits".into(), fits.into());
    findings.tables.push(Table {
        title: "The tradeoff in numbers: least squares of log_{10} blowup on norm and n together".into(),
        head: head(["function", "per unit of norm (at equal n)", "per bit (at equal norm)", "runs kept", "discarded"]),
        rows,
        note: "± one standard error. Published as figures only: the first column negative for all functions, the second positive for PARITY and near 0 for the others.".into(),
    });
}

fn coefficient(line: Line) -> Value {
    json!({ "slope": line.slope, "std_error": line.std_error })
}

/// The coefficient of column `of` in the least squares of column 2 on columns `of` and `given`: both are freed of `given` first
/// (Frisch and Waugh), and the standard error counts the third parameter.
fn partial(data: &[[f64; 3]], of: usize, given: usize) -> Option<Line> {
    let freed = |column: usize| -> Option<Vec<f64>> {
        let points: Vec<(f64, f64)> = data.iter().map(|row| (row[given], row[column])).collect();
        let line = linregress(&points)?;
        Some(points.iter().map(|(x, y)| y - line.intercept - line.slope * x).collect())
    };
    let points: Vec<(f64, f64)> = freed(of)?.into_iter().zip(freed(2)?).collect();
    let count = points.len() as f64;
    let line = linregress(&points).filter(|_| count > 3.0)?;
    Some(Line { std_error: line.std_error * ((count - 2.0) / (count - 3.0)).sqrt(), ..line })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partial_slopes_are_those_of_the_joint_fit() {
        // z = 1 - 2 x + 3 y exactly, with correlated x and y.
        let data: Vec<[f64; 3]> = (0..20)
            .map(|i| {
                let (x, y) = (f64::from(i), f64::from(i % 5) + 0.3 * f64::from(i));
                [x, y, 1.0 - 2.0 * x + 3.0 * y]
            })
            .collect();
        assert!((partial(&data, 0, 1).unwrap().slope + 2.0).abs() < 1e-9);
        assert!((partial(&data, 1, 0).unwrap().slope - 3.0).abs() < 1e-9);
        assert!(partial(&data[..3], 0, 1).is_none());
    }
}
