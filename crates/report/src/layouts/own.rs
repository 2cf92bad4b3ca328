//! What every own recipe gets: all headline measures against everything that was swept, counts by cell, and a table of all runs.

use pudica_lab::Kind;
use pudica_lab::recipe::{Plot, Recipe};
use pudica_statistics::Mean;

use super::lengths;
use crate::findings::{Cell, Drawn, Findings, Table, head, with_count, with_error};
use crate::group::{averaged, measure_names, range_of};
use crate::plot::{Drawing, words};
use crate::run::Run;
use crate::sweep::{Sweep, different};

/// Measures beside the headline that are drawn where they were taken.
const ALSO: [&str; 2] = ["blowup", "param_norm"];
/// Measures that get a column in the table of runs, at most; all are in results.csv.
const COLUMNS: usize = 8;
/// Rows of a table, at most.
const ROWS: usize = 2000;
/// A product of axes with more values than this is not a figure's panels.
const MOST_PANELS: usize = 12;

/// The layout `runs`, and that of recipes of Boolean functions that name none: beside what all own recipes get, slopes where lengths differ.
pub fn findings(sweep: &Sweep) -> Findings {
    match sweep.numbers("n").len() {
        0 | 1 => Findings::default(),
        _ => lengths::own(sweep),
    }
}

/// Adds what every own recipe gets: figures against those of its axes that nothing else shows, and the tables.
pub fn add(findings: &mut Findings, sweep: &Sweep, drawn: &[String]) {
    let (axes, measures) = (sweep.axes(), measures(sweep));
    let own: Vec<Drawn> =
        measures.iter().flat_map(|measure| drawn.iter().map(|axis| by_axis(sweep, &axes, measure, axis))).collect();
    findings.figures.splice(0..0, own);
    findings.tables.extend(cells(sweep, &axes, &measures));
    findings.tables.push(runs(sweep, &axes, &measures));
}

/// Figures that were asked for.
pub fn asked(sweep: &Sweep, plots: &[Plot]) -> Vec<Drawn> {
    let draw = |(place, plot)| Drawing::asked(plot).draw(sweep, &format!("plot-{}", place + 1));
    plots.iter().enumerate().map(draw).collect()
}

/// The figures that the recipe of a sweep asks for by its `plot`.
pub fn plots(sweep: &Sweep) -> Vec<Plot> {
    // The text of a recipe of an earlier version may not be understood any more; then it had none.
    let recipe = Recipe::parse(&sweep.record.recipe, &sweep.record.recipe_text);
    recipe.map(|recipe| recipe.plots).unwrap_or_default()
}

/// The headline measures of the kind and a few more, as far as any run has them.
fn measures(sweep: &Sweep) -> Vec<&'static str> {
    let headline = Kind::find(&sweep.record.kind).map_or(&[][..], |kind| kind.headline);
    let taken = |name: &&str| sweep.runs.iter().any(|run| run.value(name).is_some());
    headline.iter().chain(&ALSO).copied().filter(taken).collect()
}

/// A measure against an axis, coloured by another one and with a panel for each combination of the rest, as far as these are few.
fn by_axis(sweep: &Sweep, axes: &[String], measure: &str, x: &str) -> Drawn {
    let mut others: Vec<&str> = axes.iter().map(String::as_str).filter(|axis| *axis != x).collect();
    // The axis with fewest values is told apart best by colour.
    others.sort_by_key(|axis| sweep.texts(axis).len());
    let colour = (!others.is_empty()).then(|| others.remove(0));
    let mut count = 1;
    others.retain(|axis| {
        let values = sweep.texts(axis).len();
        let fits = count * values <= MOST_PANELS;
        count *= if fits { values } else { 1 };
        fits
    });
    Drawing { x, y: measure, colour, panels: others }.draw(sweep, &format!("{measure}-by-{x}"))
}

/// How many runs of each cell count, and their means; `None` where every run is a cell of its own.
fn cells(sweep: &Sweep, axes: &[String], measures: &[&str]) -> Option<Table> {
    let key = |run: &Run| -> Vec<String> { axes.iter().map(|axis| run.text(axis)).collect() };
    let cells = different(sweep.runs.iter().map(key));
    if axes.is_empty() || cells.len() == sweep.runs.len() || cells.len() > ROWS {
        return None;
    }
    let outcomes: Vec<&str> =
        ["finished", "finished, constant", "not converged", "failed", "skipped", "not finished yet"]
            .into_iter()
            .filter(|outcome| *outcome == "finished" || sweep.runs.iter().any(|run| run.outcome() == *outcome))
            .collect();
    let row = |cell: &Vec<String>| -> Vec<Cell> {
        let own: Vec<&Run> = sweep.runs.iter().filter(|run| key(run) == *cell).collect();
        let count = |outcome: &&str| own.iter().filter(|run| run.outcome() == *outcome).count().into();
        let mean = |measure: &&str| -> Option<Mean> {
            let mean = averaged(own.iter().filter(|run| run.is_converged()).filter_map(|run| run.estimate(measure)));
            mean.map(|mean| mean.within(range_of(measure)))
        };
        let names = cell.iter().map(|text| Cell::from(text.as_str()));
        names.chain(outcomes.iter().map(count)).chain(measures.iter().map(|name| with_count(mean(name)))).collect()
    };
    let converges = outcomes.contains(&"not converged");
    let counts = outcomes.iter().map(|outcome| match *outcome {
        "finished" if converges => "converged".to_string(),
        "finished, constant" => "the same answer to everything".to_string(),
        "not converged" => "not converged, discarded".to_string(),
        outcome => outcome.to_string(),
    });
    let names = axes.iter().cloned().chain(counts).chain(measures.iter().map(|name| words(name)));
    let note = "One row for each combination of what was swept; means over the runs that count, with 95 % intervals.";
    Some(Table {
        title: "What was swept".into(),
        head: names.collect(),
        rows: cells.iter().map(row).collect(),
        note: note.into(),
    })
}

/// Every run: how it ended, its place on the axes, and its measures.
fn runs(sweep: &Sweep, axes: &[String], measures: &[&str]) -> Table {
    let mut names: Vec<&str> = measures.to_vec();
    names.extend(measure_names(sweep.runs.iter(), "").into_iter().filter(|name| !measures.contains(name)));
    names.truncate(COLUMNS);
    let row = |run: &Run| -> Vec<Cell> {
        let axes = axes.iter().map(|axis| run.text(axis).into());
        let measures = names.iter().map(|name| with_error(run.estimate(name)));
        [Cell::run(run.label(), &run.record.id), run.outcome().into()].into_iter().chain(axes).chain(measures).collect()
    };
    let head =
        head(["run", "outcome"]).into_iter().chain(axes.iter().cloned()).chain(names.iter().map(|name| words(name)));
    let mut note =
        "Measures at the end of each run, ± one standard error where it is known; results.csv has all of them."
            .to_string();
    if sweep.runs.len() > ROWS {
        note = format!("The first {ROWS} of {} runs. {note}", sweep.runs.len());
    }
    Table {
        title: "All runs".into(),
        head: head.collect(),
        rows: sweep.runs.iter().take(ROWS).map(row).collect(),
        note,
    }
}
