//! Measures against the input length: Figures 1, 5, 6, 7, 8, 11 and Table 2.

use pudica_statistics::{Line, Mean, linregress};
use serde_json::{Map, Value, json};

use super::{legend_of, title_of};
use crate::figure::colour::of_target;
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Cell, Findings, Table, counted, head};
use crate::group::band_and_line;
use crate::published::{PARITY_LIMIT, TABLE_2, Table2Row};
use crate::run::Run;
use crate::sweep::{Sweep, means_by};

const SHARPNESS: &str = "sharpness";

/// `hahn/length-scaling`.
pub fn scaling(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = sweep.texts("target");
    let first: Vec<String> =
        targets.iter().filter(|name| ["parity", "majority"].contains(&name.as_str())).cloned().collect();
    let limit = Mark::Level(PARITY_LIMIT, "limit for PARITY (Theorem 6)".into());
    let mut panel = measure_panel(sweep, &first, SHARPNESS, Axis::linear("sharpness"), "Sharpness against length");
    panel.marks.push(limit.clone());
    findings.draw(
        "fig1",
        "Figure 1",
        "Sharpness of converged runs against input length: each run a point, the line their mean with its 95 % interval.",
        Figure { panels: vec![panel], columns: 1, legend: legend_of(&first), ..Figure::default() },
    );
    draw_by_target(&mut findings, sweep, &targets, ["fig5", "fig6"], ["Figure 5", "Figure 6"]);
    draw_measures(&mut findings, sweep, &targets);
    add_fits(
        &mut findings,
        sweep,
        &TABLE_2,
        "p: of the hypothesis that the slope is 0. Published: n = 4..30, d = 128.",
    );
    findings
}

/// `hahn/long-lengths`.
pub fn long(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = sweep.texts("target");
    draw_by_target(&mut findings, sweep, &targets, ["fig7", "fig8"], ["Figure 7", "Figure 8"]);
    let note = "The paper gives no numbers for this range: it reports that MAJORITY rises and that FIRST and MEAN show no trend.";
    add_fits(&mut findings, sweep, &[], note);
    findings
}

/// `hahn/scratchpad`.
pub fn scratchpad(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = sweep.texts("target");
    let mut sharpness =
        measure_panel(sweep, &targets, SHARPNESS, Axis::linear("sharpness").within(-0.02, 1.1), "Sharpness");
    sharpness.marks.push(Mark::Level(PARITY_LIMIT, "PARITY without scratchpad approaches 1".into()));
    let accuracy = measure_panel(
        sweep,
        &targets,
        "decode_accuracy",
        Axis::linear("accuracy of the last answer").within(0.45, 1.02),
        "Writing the scratchpad itself",
    );
    findings.draw(
        "fig11",
        "Figure 11",
        "Left: sharpness of converged encoder-decoders that write the parity of every prefix. Right: how often the last answer is right when the network reads its own earlier answers.",
        Figure { panels: vec![sharpness, accuracy], columns: 2, ..Figure::default() },
    );
    let note = "Without a scratchpad the published slope for PARITY is 5.0·10^{−2} (Table 2).";
    add_fits(&mut findings, sweep, &[], note);
    findings
}

/// A user's own recipe.
pub fn own(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = sweep.texts("target");
    draw_measures(&mut findings, sweep, &targets);
    add_fits(&mut findings, sweep, &[], "");
    findings
}

/// One panel a target, first with an axis each, then with one axis for all.
fn draw_by_target(findings: &mut Findings, sweep: &Sweep, targets: &[String], files: [&str; 2], titles: [&str; 2]) {
    let columns = if targets.len() == 4 { 2 } else { targets.len().min(3) };
    let panels = |axis: &dyn Fn() -> Axis| -> Vec<Panel> {
        let of =
            |target: &String| measure_panel(sweep, std::slice::from_ref(target), SHARPNESS, axis(), &title_of(target));
        targets.iter().map(of).collect()
    };
    let own = Figure { panels: panels(&|| Axis::linear("sharpness")), columns, ..Figure::default() };
    findings.draw(
        files[0],
        titles[0],
        "Sharpness against input length, each function on its own scale: runs, their mean and its 95 % interval.",
        own,
    );
    let values = sweep.kept().filter_map(|run| run.value(SHARPNESS));
    let top = values.fold(0.0, f64::max).max(1e-6) * 1.05;
    let shared =
        Figure { panels: panels(&|| Axis::linear("sharpness").within(-0.03 * top, top)), columns, ..Figure::default() };
    findings.draw(files[1], titles[1], &format!("As {}, all functions on one scale.", titles[0]), shared);
}

/// Sharpness, blowup and norm of all targets.
fn draw_measures(findings: &mut Findings, sweep: &Sweep, targets: &[String]) {
    let panels = [
        (SHARPNESS, Axis::log("sharpness"), "Sharpness"),
        ("blowup", Axis::log("LayerNorm blowup"), "Blowup"),
        ("param_norm", Axis::linear("parameter norm"), "Parameter norm"),
    ];
    let panels = panels.map(|(name, axis, title)| measure_panel(sweep, targets, name, axis, title));
    findings.draw(
        "measures",
        "All three measures",
        "Sharpness, LayerNorm blowup and parameter norm of converged runs against input length: means and their 95 % intervals.",
        Figure { panels: panels.into(), columns: 3, legend: legend_of(targets), ..Figure::default() },
    );
}

/// A measure against n, the mean of each target with its interval; and every run a point, if there are few targets.
fn measure_panel(sweep: &Sweep, targets: &[String], measure: &str, axis: Axis, title: &str) -> Panel {
    let (mut bands, mut lines) = (Vec::new(), Vec::new());
    for target in targets {
        let style = of_target(target);
        let runs = sweep.kept_with("target", target);
        let means = means_by(&runs, "n", measure);
        // The interval from two runs says nothing and would set the scale.
        let [band, _] = band_and_line(&means, &style.colour, 3);
        let at =
            |n: f64| sweep.runs.iter().filter(move |run| run.text("target") == *target && run.number("n") == Some(n));
        let few = |n: f64, mean: &Mean| 2 * mean.count < at(n).count();
        let line = means.iter().map(|(n, mean)| Point::mean(*n, mean, "").few(few(*n, mean)));
        let line = Mark::line(line, Style::line(&style.colour));
        bands.push(band);
        lines.push(line);
        lines.push(if targets.len() <= 2 {
            let point = |run: &&Run| Some(run.point(run.number("n")?, run.value(measure)?));
            Mark::points(runs.iter().filter_map(point), style.faint(0.6).sized(2.6))
        } else {
            let name = |count: usize| format!("{}: mean of {}", title_of(target), counted(count, "run"));
            let points = means.iter().map(|(n, mean)| Point::mean(*n, mean, name(mean.count)).few(few(*n, mean)));
            Mark::points(points, style.faint(1.0).sized(3.0))
        });
    }
    bands.extend(lines);
    Panel { title: title.into(), x: Axis::whole("input length n"), y: axis, marks: bands }
}

/// Least squares of sharpness on n for each target, beside the published rows where there are any: a table, and the same numbers as `fits`
/// in the summary.
fn add_fits(findings: &mut Findings, sweep: &Sweep, published: &[Table2Row], note: &str) {
    let (mut fits, mut means, mut rows) = (Map::new(), Map::new(), Vec::new());
    for target in sweep.texts("target") {
        let runs = sweep.kept_with("target", &target);
        let point = |run: &&Run| Some((run.number("n")?, run.value(SHARPNESS)?));
        let fit = linregress(&runs.iter().filter_map(point).collect::<Vec<_>>());
        let discarded = sweep.discarded_with("target", &target);
        let mut entry = match &fit {
            Some(line) => json!(line),
            None => json!({ "slope": null, "intercept": null, "r": null, "p": null }),
        };
        entry["runs_kept"] = runs.len().into();
        entry["runs_discarded"] = discarded.into();
        let theirs = published.iter().find(|row| row.target == target);
        if let Some(row) = theirs {
            entry["published"] = json!({ "slope": row.slope, "r": row.r, "p": row.p });
        }
        fits.insert(target.clone(), entry);
        let by_length = |name: &str| -> Map<String, Value> {
            means_by(&runs, "n", name).into_iter().map(|(n, mean)| (n.to_string(), json!(mean))).collect()
        };
        let numbers = json!({ "sharpness": by_length(SHARPNESS), "blowup": by_length("blowup"), "param_norm": by_length("param_norm") });
        means.insert(target.clone(), numbers);
        let ours = fit.as_ref().map(|Line { slope, r, p, .. }| [*slope, *r, *p]);
        let theirs = theirs.map(|row| [row.slope, row.r, row.p]);
        let shown = |numbers: Option<[f64; 3]>| numbers.unwrap_or([f64::NAN; 3]).map(Cell::from);
        let mut row = vec![Cell::from(title_of(&target))];
        row.extend(shown(ours));
        if !published.is_empty() {
            row.extend(shown(theirs));
        }
        row.extend([runs.len(), discarded].map(Cell::from));
        rows.push(row);
    }
    findings.summary.insert("fits".into(), fits.into());
    findings.summary.insert("means_by_length".into(), means.into());
    let (title, head) = match published {
        [] => ("Least squares of sharpness on n", head(["function", "slope", "r", "p", "runs kept", "discarded"])),
        _ => (
            "Table 2: least squares of sharpness on n",
            head([
                "function",
                "slope",
                "r",
                "p",
                "published slope",
                "published r",
                "published p",
                "runs kept",
                "discarded",
            ]),
        ),
    };
    findings.tables.push(Table { title: title.into(), head, rows, note: note.into() });
}
