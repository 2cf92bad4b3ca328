//! Measures against the input length: Figures 1, 5, 6, 7, 8, 11 and Table 2.

use pudica_statistics::{Line, Mean, contrast, linregress};
use serde_json::{Map, Value, json};

use super::title_of;
use crate::claims::{Claim, Decision, Parts, interval, single};
use crate::figure::colour::{of_target, point};
use crate::figure::{Axis, Figure, Mark, Panel, Point, Style};
use crate::findings::{Cell, Findings, Table, counted, head};
use crate::group::{band_and_line, range_of};
use crate::published::{PARITY_LIMIT, TABLE_2, Table2Row};
use crate::run::Run;
use crate::sweep::{Sweep, different, means_by};

const SHARPNESS: &str = "sharpness";

/// The runs of one line: those of a target that are equal in whatever else was swept.
struct Series<'a> {
    target: String,
    /// What else was swept: `d 16`; empty where nothing was.
    others: String,
    /// The converged ones.
    runs: Vec<&'a Run>,
    discarded: usize,
    /// The most that have begun at one length.
    planned: usize,
    style: Style,
}

impl Series<'_> {
    /// All lines of a sweep, by target.
    fn of<'a>(sweep: &'a Sweep) -> Vec<Series<'a>> {
        let axes = sweep.other_axes(&["target", "n"]);
        let others = different(sweep.runs.iter().map(|run| run.words(&axes)));
        let mut all = Vec::new();
        for target in sweep.texts("target") {
            for (place, others) in others.iter().enumerate() {
                let own = |run: &&Run| run.text("target") == target && run.words(&axes) == *others;
                let begun: Vec<&Run> = sweep.runs.iter().filter(own).collect();
                let at = |n: f64| begun.iter().filter(|run| run.number("n") == Some(n)).count();
                all.push(Series {
                    runs: begun.iter().copied().filter(|run| run.is_converged()).collect(),
                    discarded: begun.iter().filter(|run| run.is_finished() && !run.is_converged()).count(),
                    planned: begun.iter().filter_map(|run| run.number("n")).map(at).max().unwrap_or(0),
                    style: if axes.is_empty() { of_target(&target) } else { point(place) },
                    target: target.clone(),
                    others: others.clone(),
                });
            }
        }
        all
    }

    fn title(&self) -> String {
        match self.others.as_str() {
            "" => title_of(&self.target),
            others => format!("{}, {others}", title_of(&self.target)),
        }
    }

    fn fit(&self) -> Option<Line> {
        fit(self.runs.iter().copied())
    }

    /// The same of the networks that have learnt something.
    fn learnt_fit(&self) -> Option<Line> {
        fit(self.runs.iter().copied().filter(|run| !run.is_constant()))
    }

    /// The mean sharpness at the longest length, and that length.
    fn longest(&self) -> Option<(f64, Mean)> {
        means_by(&self.runs, "n", SHARPNESS).pop()
    }
}

/// Least squares of sharpness on n.
fn fit<'a>(runs: impl Iterator<Item = &'a Run>) -> Option<Line> {
    linregress(&runs.filter_map(|run| Some((run.number("n")?, run.value(SHARPNESS)?))).collect::<Vec<_>>())
}

/// Whether something beside target, length and seed was swept, so that colours tell that and panels the target.
fn is_split(series: &[Series]) -> bool {
    series.iter().any(|series| !series.others.is_empty())
}

/// What colours mean.
fn legend(series: &[Series]) -> Vec<(String, Style)> {
    let name = |series: &Series| match series.others.as_str() {
        "" => title_of(&series.target),
        others => others.to_string(),
    };
    let style = |text: String| {
        let first = series.iter().find(|series| name(series) == text).map(|series| series.style.clone());
        first.map(|style| (text, style))
    };
    different(series.iter().map(name)).into_iter().filter_map(style).collect()
}

/// Series of each panel, by target where colours tell something else.
fn by_panel<'a, 'b>(series: &'b [Series<'a>]) -> Vec<Vec<&'b Series<'a>>> {
    if !is_split(series) {
        return vec![series.iter().collect()];
    }
    let targets = different(series.iter().map(|series| &series.target));
    targets.into_iter().map(|target| series.iter().filter(|series| series.target == *target).collect()).collect()
}

/// `hahn/length-scaling`.
pub fn scaling(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let all = Series::of(sweep);
    let is_first = |series: &Series| ["parity", "majority"].contains(&series.target.as_str());
    let mut first: Vec<Series> = Series::of(sweep).into_iter().filter(is_first).collect();
    if first.is_empty() {
        first = Series::of(sweep);
    }
    let limit = first.iter().any(|series| series.target == "parity");
    let panel = |series: Vec<&Series>| {
        let title = if is_split(&first) { title_of(&series[0].target) } else { "Sharpness against length".into() };
        let mut panel = measure_panel(&series, SHARPNESS, Axis::linear("sharpness"), &title);
        if limit && series.iter().any(|series| series.target == "parity") {
            panel.marks.push(Mark::Level(PARITY_LIMIT, "limit for PARITY (Theorem 6)".into()));
        }
        panel
    };
    let panels: Vec<Panel> = by_panel(&first).into_iter().map(panel).collect();
    let columns = panels.len().clamp(1, 3);
    findings.draw(
        "fig1",
        "Figure 1",
        "Sharpness against input length",
        "Sharpness of converged runs against input length: each run a point, the line their mean with its 95 % interval.",
        Figure { panels, columns, legend: legend(&first), ..Figure::default() },
    );
    if sweep.is_builtin() || sweep.texts("target").len() > 1 {
        draw_by_target(&mut findings, sweep, &all, ["fig5", "fig6"], ["Figure 5", "Figure 6"]);
    }
    draw_measures(&mut findings, &all);
    add_fits(
        &mut findings,
        sweep,
        &TABLE_2,
        "Slopes with 95 % intervals. p: of the hypothesis that the slope is 0. Published: n = 4..30, d = 128.",
    );
    findings.claims = scaling_claims(&all);
    findings
}

/// `hahn/long-lengths`.
pub fn long(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let all = Series::of(sweep);
    draw_by_target(&mut findings, sweep, &all, ["fig7", "fig8"], ["Figure 7", "Figure 8"]);
    let note = "Slopes with 95 % intervals. The paper gives no numbers for this range: it reports that MAJORITY rises and that FIRST and MEAN show no trend.";
    add_fits(&mut findings, sweep, &[], note);
    findings.claims = long_claims(&all);
    findings
}

/// `hahn/scratchpad`.
pub fn scratchpad(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    let all = Series::of(sweep);
    let mut panels = Vec::new();
    for series in by_panel(&all) {
        let name = |text: &str| match is_split(&all) {
            true => format!("{text}, {}", title_of(&series[0].target)),
            false => text.to_string(),
        };
        let axis = Axis::linear("sharpness").within(-0.02, 1.1);
        let mut sharpness = measure_panel(&series, SHARPNESS, axis, &name("Sharpness"));
        sharpness.marks.push(Mark::Level(PARITY_LIMIT, "PARITY without scratchpad approaches 1".into()));
        let axis = Axis::linear("accuracy of the last answer").within(0.45, 1.02);
        panels.push(sharpness);
        panels.push(measure_panel(&series, "decode_accuracy", axis, &name("Writing the scratchpad itself")));
    }
    let legend = if is_split(&all) { legend(&all) } else { Vec::new() };
    findings.draw(
        "fig11",
        "Figure 11",
        "Sharpness with a scratchpad",
        "Left: sharpness of converged encoder-decoders that write the parity of every prefix. Right: how often the last answer is right when the network reads its own earlier answers.",
        Figure { panels, columns: 2, legend, ..Figure::default() },
    );
    let note =
        "Slopes with 95 % intervals. Without a scratchpad the published slope for PARITY is 5.0·10^{−2} (Table 2).";
    add_fits(&mut findings, sweep, &[], note);
    let mut parts = Parts::default();
    let fit = find(&all, "parity").and_then(Series::fit);
    parts.about("slope of sharpness on n", fit.as_ref().and_then(single), TENTH_OF_PARITY);
    findings.claims.push(parts.claim(
        "fig11",
        "With a scratchpad, sharpness stays low to hundreds of bits, with no clear rise (Figure 11).",
        "Does PARITY with a scratchpad stay flat as inputs get longer (a slope within a tenth of PARITY's published one, 0.005)?",
        runs_of(&all, &["parity"]),
    ));
    findings
}

/// A user's own recipe: the slopes.
pub fn own(sweep: &Sweep) -> Findings {
    let mut findings = Findings::default();
    add_fits(&mut findings, sweep, &[], "");
    findings
}

/// A slope this small beside PARITY's published one counts as none.
const TENTH_OF_PARITY: f64 = 0.1 * TABLE_2[0].slope;

fn find<'a, 'b>(all: &'b [Series<'a>], target: &str) -> Option<&'b Series<'a>> {
    all.iter().find(|series| series.target == target)
}

/// How many runs are behind what is said about some targets.
fn runs_of(all: &[Series], targets: &[&str]) -> usize {
    all.iter().filter(|series| targets.contains(&series.target.as_str())).map(|series| series.runs.len()).sum()
}

/// Section 7.1, Figures 1, 5, 6 and Table 2.
fn scaling_claims(all: &[Series]) -> Vec<Claim> {
    let Some(parity) = find(all, "parity") else { return Vec::new() };
    let slope = |target: &str| find(all, target).and_then(Series::fit);
    let others: Vec<&Series> = ["majority", "first", "mean"].iter().filter_map(|target| find(all, target)).collect();
    let mut claims = Vec::new();

    let mut rises = Parts::default();
    rises.above("slope for PARITY", slope("parity").as_ref().and_then(single));
    claims.push(rises.claim(
        "fig1",
        "For PARITY, sharpness increases with the input length (slope 0.05 per bit).",
        "Do PARITY's minima get sharper as inputs get longer?",
        parity.runs.len(),
    ));

    let (mut flat, mut low) = (Parts::default(), Parts::default());
    for other in &others {
        let name = title_of(&other.target);
        let terms = parity.fit().zip(other.fit());
        let tenth = terms.and_then(|(own, other)| contrast(&[(0.1, (&own).into()), (-1.0, (&other).into())]));
        flat.above(&format!("a tenth of PARITY's slope, minus that of {name},"), tenth);
        let ends = parity.longest().zip(other.longest());
        let ten_times =
            ends.and_then(|((_, own), (_, other))| contrast(&[(1.0, (&own).into()), (-10.0, (&other).into())]));
        low.above(&format!("PARITY's, minus ten times that of {name},"), ten_times);
    }
    let every = runs_of(all, &["parity", "majority", "first", "mean"]);
    claims.push(flat.claim(
        "fig6",
        "For the less sensitive functions there is little increase with n.",
        "Does sharpness rise at least ten times more slowly for MAJORITY, FIRST and MEAN than for PARITY?",
        every,
    ));
    claims.push(low.claim(
        "fig1",
        "The sharpness of the less sensitive functions is orders of magnitude lower than PARITY's.",
        "Is PARITY's sharpness at the longest inputs at least ten times that of MAJORITY, FIRST and MEAN?",
        every,
    ));

    let mut others_rise = Parts::default();
    for target in ["majority", "first"] {
        others_rise.above(&format!("slope for {}", title_of(target)), slope(target).as_ref().and_then(single));
    }
    claims.push(others_rise.claim(
        "fig5",
        "Sharpness of MAJORITY and FIRST rises slightly, but significantly (Table 2: slopes 1.8·10^{−3} and 6.4·10^{−5}).",
        "Does sharpness rise with n for MAJORITY and FIRST, however slightly?",
        runs_of(all, &["majority", "first"]),
    ));
    let mut level = Parts::default();
    level.about("slope for MEAN", slope("mean").as_ref().and_then(single), 0.1 * TABLE_2[1].slope);
    claims.push(level.claim(
        "fig5",
        "For MEAN, sharpness and length are not correlated (Table 2).",
        "Is there no trend for MEAN (a slope within a tenth of MAJORITY's published one)?",
        runs_of(all, &["mean"]),
    ));
    claims
}

/// Appendix E.2, Figures 7 and 8.
fn long_claims(all: &[Series]) -> Vec<Claim> {
    let majority = find(all, "majority").and_then(Series::fit);
    let mut rises = Parts::default();
    rises.above("slope for MAJORITY", majority.as_ref().and_then(single));
    let mut claims = vec![rises.claim(
        "fig7",
        "MAJORITY's sharpness rises with n up to 512 bits.",
        "Does MAJORITY's sharpness still rise at hundreds of bits?",
        runs_of(all, &["majority"]),
    )];
    let margin = majority.map(|line| 0.1 * line.slope.abs());
    let mut level = Parts::default();
    for target in ["first", "mean"] {
        let fit = find(all, target).and_then(Series::learnt_fit);
        let (name, slope) = (format!("slope for {}", title_of(target)), fit.as_ref().and_then(single));
        match margin {
            Some(margin) => level.about(&name, slope, margin),
            None => level
                .add(Decision::CannotTell, format!("{}, none for MAJORITY to compare it with", interval(&name, slope))),
        }
    }
    claims.push(level.claim(
        "fig8",
        "FIRST and MEAN show no trend.",
        "Are the slopes for FIRST and MEAN within a tenth of MAJORITY's?",
        runs_of(all, &["first", "mean"]),
    ));
    claims
}

/// One panel per target, first with an axis each, then with one axis for all.
fn draw_by_target(findings: &mut Findings, sweep: &Sweep, all: &[Series], files: [&str; 2], numbers: [&str; 2]) {
    let targets = sweep.texts("target");
    let columns = if targets.len() == 4 { 2 } else { targets.len().min(3) };
    let panels = |axis: &dyn Fn() -> Axis| -> Vec<Panel> {
        let of = |target: &String| {
            let own: Vec<&Series> = all.iter().filter(|series| series.target == *target).collect();
            measure_panel(&own, SHARPNESS, axis(), &title_of(target))
        };
        targets.iter().map(of).collect()
    };
    let legend = if is_split(all) { legend(all) } else { Vec::new() };
    let own =
        Figure { panels: panels(&|| Axis::linear("sharpness")), columns, legend: legend.clone(), ..Figure::default() };
    findings.draw(
        files[0],
        numbers[0],
        "Sharpness against input length, by function",
        "Sharpness against input length, each function on its own scale: runs, their mean and its 95 % interval. Dashed and faint where fewer than half of the runs have converged.",
        own,
    );
    let values = sweep.kept().filter_map(|run| run.value(SHARPNESS));
    let top = values.fold(0.0, f64::max).max(1e-6) * 1.05;
    let shared = Axis::linear("sharpness").within(-0.03 * top, top);
    let shared = Figure { panels: panels(&|| shared.clone()), columns, legend, ..Figure::default() };
    findings.draw(
        files[1],
        numbers[1],
        "Sharpness against input length, on one scale",
        "The same, all functions on one scale.",
        shared,
    );
}

/// Sharpness, blowup and norm of all targets.
fn draw_measures(findings: &mut Findings, all: &[Series]) {
    let measures = [
        (SHARPNESS, Axis::log("sharpness"), "Sharpness"),
        ("blowup", Axis::log("LayerNorm blowup"), "Blowup"),
        ("param_norm", Axis::linear("parameter norm"), "Parameter norm"),
    ];
    let mut panels = Vec::new();
    for series in by_panel(all) {
        for (name, axis, title) in &measures {
            let title =
                if is_split(all) { format!("{title}, {}", title_of(&series[0].target)) } else { title.to_string() };
            panels.push(measure_panel(&series, name, axis.clone(), &title));
        }
    }
    findings.draw(
        "measures",
        "",
        "All three measures",
        "Sharpness, LayerNorm blowup and parameter norm of converged runs against input length: means and their 95 % intervals.",
        Figure { panels, columns: 3, legend: legend(all), ..Figure::default() },
    );
}

/// A measure against n, the mean of each series with its interval; and every run a point, if there are few series.
fn measure_panel(all: &[&Series], measure: &str, axis: Axis, title: &str) -> Panel {
    let (mut bands, mut lines) = (Vec::new(), Vec::new());
    for series in all {
        let style = series.style.clone();
        let possible = |(n, mean): (f64, Mean)| (n, mean.within(range_of(measure)));
        let means: Vec<(f64, Mean)> = means_by(&series.runs, "n", measure).into_iter().map(possible).collect();
        let [band, line] = band_and_line(&means, &style.colour, 3, series.planned);
        bands.push(band);
        lines.push(line);
        lines.push(if all.len() <= 2 {
            let point = |run: &&Run| Some(run.point(run.number("n")?, run.value(measure)?));
            Mark::points(series.runs.iter().filter_map(point), style.faint(0.6).sized(2.6))
        } else {
            let name = |count: usize| format!("{}: mean of {}", series.title(), counted(count, "run"));
            let point =
                |(n, mean): &(f64, Mean)| Point::mean(*n, mean, name(mean.count)).few(2 * mean.count < series.planned);
            Mark::points(means.iter().map(point), style.faint(1.0).sized(3.0))
        });
    }
    bands.extend(lines);
    Panel { title: title.into(), x: Axis::whole("input length n"), y: axis, marks: bands }
}

/// A slope with its 95 % interval.
fn slope_cell(fit: Option<&Line>) -> Cell {
    match fit.and_then(single) {
        Some(slope) => Cell::within(slope.value, Some((slope.low, slope.high))),
        None => fit.map(|line| line.slope).into(),
    }
}

/// Least squares of sharpness on n for each series, beside the published rows where there are any: a table, and the same numbers as `fits`
/// in the summary.
fn add_fits(findings: &mut Findings, sweep: &Sweep, published: &[Table2Row], note: &str) {
    // About somebody's own experiment nothing was published.
    let (published, note) = match sweep.is_builtin() {
        true => (published, note),
        false => (&[][..], "Slopes with 95 % intervals, over converged runs."),
    };
    let all = Series::of(sweep);
    let mut rows = Vec::new();
    for series in &all {
        let fit = series.fit();
        let mut row = vec![Cell::from(series.title()), slope_cell(fit.as_ref())];
        row.extend([fit.map(|line| line.r), fit.map(|line| line.p)].map(Cell::from));
        if !published.is_empty() {
            let theirs = published.iter().find(|row| row.target == series.target);
            row.extend(theirs.map_or([f64::NAN; 3], |row| [row.slope, row.r, row.p]).map(Cell::from));
        }
        row.extend([series.runs.len(), series.discarded].map(Cell::from));
        rows.push(row);
    }
    add_summary(findings, sweep, published);
    if is_split(&all) {
        findings.summary.insert("fits_by_series".into(), all.iter().map(|series| series_fit(series)).collect());
    }
    let number = if published.is_empty() { "" } else { "Table 2" };
    let theirs = if published.is_empty() { &[][..] } else { &["published slope", "published r", "published p"] };
    let mut names = head(["function", "slope", "r", "p"]);
    names.extend(theirs.iter().map(|name| name.to_string()));
    names.extend(head(["runs kept", "discarded"]));
    let title = sweep.titled(number, "Least squares of sharpness on n");
    findings.tables.push(Table { title, head: names, rows, note: note.into() });
}

/// A line as the summary has it; all of it null where there is none.
fn fit_entry(fit: Option<Line>, kept: usize, discarded: usize) -> Value {
    let mut entry = match &fit {
        Some(line) => json!(line),
        None => json!({ "slope": null, "intercept": null, "r": null, "p": null }),
    };
    entry["runs_kept"] = kept.into();
    entry["runs_discarded"] = discarded.into();
    entry
}

fn series_fit(series: &Series) -> Value {
    let fit = series.fit();
    let mut entry =
        json!({"target": series.target, "others": series.others, "interval": fit.as_ref().and_then(single)});
    let line = fit_entry(fit, series.runs.len(), series.discarded);
    if let (Some(entry), Value::Object(line)) = (entry.as_object_mut(), line) {
        entry.extend(line);
    }
    entry
}

/// Fits and means by target, whatever else was swept.
fn add_summary(findings: &mut Findings, sweep: &Sweep, published: &[Table2Row]) {
    let (mut fits, mut means) = (Map::new(), Map::new());
    for target in sweep.texts("target") {
        let runs = sweep.kept_with("target", &target);
        let mut entry = fit_entry(fit(runs.iter().copied()), runs.len(), sweep.discarded_with("target", &target));
        if let Some(row) = published.iter().find(|row| row.target == target) {
            entry["published"] = json!({ "slope": row.slope, "r": row.r, "p": row.p });
        }
        fits.insert(target.clone(), entry);
        let by_length = |name: &str| -> Map<String, Value> {
            means_by(&runs, "n", name).into_iter().map(|(n, mean)| (n.to_string(), json!(mean))).collect()
        };
        let numbers = json!({ "sharpness": by_length(SHARPNESS), "blowup": by_length("blowup"), "param_norm": by_length("param_norm") });
        means.insert(target, numbers);
    }
    findings.summary.insert("fits".into(), fits.into());
    findings.summary.insert("means_by_length".into(), means.into());
}
