//! Measures against the input length: Figures 1, 5, 6, 7, 8, 11 and Table 2.

use pudica_statistics::{Mean, linregress, mean};
use serde_json::{Map, Value, json};

use super::{Findings, Table, number};
use crate::figure::colour::of_target;
use crate::figure::{Axis, Figure, Mark, Panel, Style};
use crate::published::{PARITY_LIMIT, TABLE_2, Table2Row};
use crate::sweep::{Finished, Sweep, title_of};

const SHARPNESS: &str = "sharpness";

/// `hahn/length-scaling`.
pub fn scaling(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = sweep.different(|config| config.target.clone());
    let first: Vec<String> =
        targets.iter().filter(|name| ["parity", "majority"].contains(&name.as_str())).cloned().collect();
    let limit = Mark::Level(PARITY_LIMIT, "limit for PARITY (Theorem 6)".into());
    let mut panel = measure_panel(sweep, &first, SHARPNESS, Axis::linear("sharpness"), "Sharpness against length");
    panel.marks.push(limit.clone());
    findings.draw(
        "fig1",
        "Figure 1",
        "Sharpness of converged runs against input length: each run a point, the line their mean with its 95 % interval.",
        Figure { panels: vec![panel], columns: 1, legend: legend(&first), note: sweep.note(), ..Figure::default() },
    );
    draw_by_target(&mut findings, sweep, &targets, ["fig5", "fig6"], ["Figure 5", "Figure 6"]);
    draw_measures(&mut findings, sweep, &targets);
    findings.tables.push(table_2(sweep, &targets, &mut findings.summary, &TABLE_2));
    findings
}

/// `hahn/long-lengths`.
pub fn long(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = sweep.different(|config| config.target.clone());
    draw_by_target(&mut findings, sweep, &targets, ["fig7", "fig8"], ["Figure 7", "Figure 8"]);
    let mut table = table_2(sweep, &targets, &mut findings.summary, &[]);
    table.title = "Least squares of sharpness on n".into();
    table.note = "The paper gives no numbers for this range: it reports that MAJORITY rises and that FIRST and MEAN show no trend.".into();
    drop_published_columns(&mut table);
    findings.tables.push(table);
    findings
}

/// `hahn/scratchpad`.
pub fn scratchpad(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = sweep.different(|config| config.target.clone());
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
        Figure { panels: vec![sharpness, accuracy], columns: 2, note: sweep.note(), ..Figure::default() },
    );
    let mut table = table_2(sweep, &targets, &mut findings.summary, &[]);
    table.title = "Least squares of sharpness on n".into();
    table.note = "Without a scratchpad the published slope for PARITY is 5.0·10<sup>−2</sup> (Table 2).".into();
    drop_published_columns(&mut table);
    findings.tables.push(table);
    findings
}

/// A user's own recipe.
pub fn own(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let targets = sweep.different(|config| config.target.clone());
    draw_measures(&mut findings, sweep, &targets);
    let mut table = table_2(sweep, &targets, &mut findings.summary, &[]);
    table.title = "Least squares of sharpness on n".into();
    table.note.clear();
    drop_published_columns(&mut table);
    findings.tables.push(table);
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
    let own =
        Figure { panels: panels(&|| Axis::linear("sharpness")), columns, note: sweep.note(), ..Figure::default() };
    findings.draw(
        files[0],
        titles[0],
        "Sharpness against input length, each function on its own scale: runs, their mean and its 95 % interval.",
        own,
    );
    let values = sweep.kept().filter_map(|run| run.summary.measure(SHARPNESS));
    let top = values.fold(0.0, f64::max).max(1e-6) * 1.05;
    let shared = Figure {
        panels: panels(&|| Axis::linear("sharpness").within(-0.03 * top, top)),
        columns,
        note: sweep.note(),
        ..Figure::default()
    };
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
        Figure { panels: panels.into(), columns: 3, legend: legend(targets), note: sweep.note(), ..Figure::default() },
    );
}

/// A measure against n, the mean of each target with its interval; and every run a point, if there are few targets.
fn measure_panel(sweep: &Sweep, targets: &[String], measure: &str, axis: Axis, title: &str) -> Panel {
    let (mut bands, mut lines) = (Vec::new(), Vec::new());
    for target in targets {
        let style = of_target(target);
        let line = Style::line(&style.colour);
        let runs: Vec<Finished> = sweep.kept().filter(|run| run.config.target == *target).collect();
        let means = by_length(&runs, measure);
        // The interval from two runs says nothing and would set the scale.
        let several = means.iter().filter(|(_, mean)| mean.count > 2);
        bands.push(Mark::Band {
            points: several.map(|(n, mean)| (*n, mean.low, mean.high)).collect(),
            style: line.clone().faint(0.15),
        });
        lines.push(Mark::Line { points: means.iter().map(|(n, mean)| (*n, mean.mean)).collect(), style: line });
        lines.push(if targets.len() <= 2 {
            let point = |run: &Finished| Some((run.config.n as f64, run.summary.measure(measure)?, run.name()));
            Mark::Points { points: runs.iter().filter_map(point).collect(), style: style.faint(0.6).sized(2.6) }
        } else {
            let name = |mean: &Mean| format!("{}: mean of {} runs", title_of(target), mean.count);
            let points = means.iter().map(|(n, mean)| (*n, mean.mean, name(mean))).collect();
            Mark::Points { points, style: style.faint(1.0).sized(3.0) }
        });
    }
    bands.extend(lines);
    Panel { title: title.into(), x: Axis::whole("input length n"), y: axis, marks: bands }
}

fn by_length(runs: &[Finished], measure: &str) -> Vec<(f64, Mean)> {
    let mut lengths: Vec<usize> = runs.iter().map(|run| run.config.n).collect();
    lengths.sort_unstable();
    lengths.dedup();
    let values = |n: usize| -> Vec<f64> {
        runs.iter().filter(|run| run.config.n == n).filter_map(|run| run.summary.measure(measure)).collect()
    };
    lengths.into_iter().filter_map(|n| mean(&values(n)).map(|mean| (n as f64, mean))).collect()
}

/// Table 2 beside the published rows, and the same numbers as `fits` in the summary.
fn table_2(sweep: &Sweep, targets: &[String], summary: &mut Map<String, Value>, published_rows: &[Table2Row]) -> Table {
    let mut fits = Map::new();
    let mut means = Map::new();
    let mut rows = Vec::new();
    for target in targets {
        let runs: Vec<Finished> = sweep.kept().filter(|run| run.config.target == *target).collect();
        let points: Vec<(f64, f64)> =
            runs.iter().filter_map(|run| run.summary.measure(SHARPNESS).map(|y| (run.config.n as f64, y))).collect();
        let discarded = sweep.finished().filter(|run| run.config.target == *target).count() - runs.len();
        let fit = linregress(&points);
        let mut entry = match &fit {
            Some(line) => json!(line),
            None => json!({ "slope": null, "intercept": null, "r": null, "p": null }),
        };
        entry["runs_kept"] = runs.len().into();
        entry["runs_discarded"] = discarded.into();
        let published = published_rows.iter().find(|row| row.target == target);
        if let Some(row) = published {
            entry["published"] = json!({ "slope": row.slope, "r": row.r, "p": row.p });
        }
        fits.insert(target.clone(), entry);
        let of_length = |name: &str| -> Map<String, Value> {
            by_length(&runs, name).into_iter().map(|(n, mean)| (n.to_string(), json!(mean))).collect()
        };
        means.insert(
            target.clone(),
            json!({ "sharpness": of_length(SHARPNESS), "blowup": of_length("blowup"), "param_norm": of_length("param_norm") }),
        );
        let ours =
            |get: fn(&pudica_statistics::Line) -> f64| fit.as_ref().map_or("–".into(), |line| number(get(line)));
        let theirs = |get: fn(&Table2Row) -> f64| published.map_or("–".into(), |row| number(get(row)));
        rows.push(vec![
            title_of(target),
            ours(|line| line.slope),
            ours(|line| line.r),
            ours(|line| line.p),
            theirs(|row| row.slope),
            theirs(|row| row.r),
            theirs(|row| row.p),
            runs.len().to_string(),
            discarded.to_string(),
        ]);
    }
    summary.insert("fits".into(), fits.into());
    summary.insert("means_by_length".into(), means.into());
    let head =
        ["function", "slope", "r", "p", "published slope", "published r", "published p", "runs kept", "discarded"];
    Table {
        title: "Table 2: least squares of sharpness on n".into(),
        head: head.map(String::from).into(),
        rows,
        note: "p: of the hypothesis that the slope is 0. Published: n = 4..30, d = 128.".into(),
    }
}

fn drop_published_columns(table: &mut Table) {
    table.head.drain(4..7);
    table.rows.iter_mut().for_each(|row| {
        row.drain(4..7);
    });
}

fn legend(targets: &[String]) -> Vec<(String, Style)> {
    targets.iter().map(|target| (title_of(target), of_target(target))).collect()
}
