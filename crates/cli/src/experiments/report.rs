//! `pudica report`, and what every run ends with: the page, and on the screen runs, counts and verdicts.

use std::error::Error;
use std::path::{Path, PathBuf};

use clap::Args;
use pudica_lab::kinds::Kind;
use pudica_lab::recipe::Plot;
use pudica_lab::store::{SweepFolder, SweepRecord, SweepRun};
use pudica_lab::{Event, Observer, Tally};
use pudica_report::Claim;

use super::Outcome;
use crate::Ending;
use crate::progress::Progress;
use crate::text::{counted, number};

/// Write the report of a folder of runs again, finished or not
///
/// With --x and --y it begins with one more figure. Their names are those of settings that vary (`model.d`) and of measures (`sharpness`),
/// as in the columns of results.csv.
#[derive(Args)]
#[command(after_help = REPORT_EXAMPLES)]
pub struct Report {
    /// A folder that `pudica run` wrote
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// The horizontal axis of one more figure
    #[arg(long, value_name = "NAME", requires = "y")]
    x: Option<String>,
    /// The vertical axis of that figure
    #[arg(long, value_name = "NAME", requires = "x")]
    y: Option<String>,
    /// What its colours tell
    #[arg(long, value_name = "NAME", requires = "x")]
    colour: Option<String>,
    /// What its panels tell
    #[arg(long, value_name = "NAME", requires = "x")]
    panel: Option<String>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const REPORT_EXAMPLES: &str = "\
Examples:
  pudica report runs/hahn/length-scaling-quick
  pudica report runs/width --x n --y sharpness --colour model.d
  pudica report runs/hahn/tradeoff-quick --x param_norm --y blowup --colour n --panel target";

impl Report {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        format!("reading the runs of {} and drawing", self.folder.display())
    }
}

/// Writes a report again.
pub fn report(arguments: &Report) -> Outcome {
    let Report { x, y, colour, panel, .. } = arguments;
    let plot =
        |(x, y): (&String, &String)| Plot { x: x.clone(), y: y.clone(), colour: colour.clone(), panel: panel.clone() };
    let plots: Vec<Plot> = x.as_ref().zip(y.as_ref()).map(plot).into_iter().collect();
    let progress = Progress::new(arguments.json);
    let damage = write_report(&arguments.folder, &progress, &plots)?;
    damage.into_iter().for_each(|text| progress.notice(&Event::Notice { text }));
    Ok(Ending::Done)
}

/// Writes the report of a folder and says what is in it; returns what is wrong with runs that it left out, a sentence each.
pub fn write_report(folder: &Path, progress: &Progress, plots: &[Plot]) -> Result<Vec<String>, Box<dyn Error>> {
    let report = pudica_report::write_with(folder, plots)?;
    let (page, figures, tally) = (report.page, report.figures, report.tally);
    let damage = tally.damage.clone();
    if !matches!(progress, Progress::Json) {
        let sweep = SweepFolder::open(folder)?;
        print_runs(Kind::find(&sweep.record().kind)?, &sweep.runs()?);
        print_tally(&tally);
        print_claims(sweep.record(), &report.claims);
        report.warnings.iter().for_each(|text| println!("note: {text}"));
        println!("report: {}", page.display());
    }
    let verdicts = report.claims.iter().map(serde_json::to_value).collect::<Result<_, _>>()?;
    progress.notice(&Event::ReportWritten { page, figures, tally, verdicts });
    Ok(damage)
}

/// Published statements, and what the runs say about each.
fn print_claims(record: &SweepRecord, claims: &[Claim]) {
    if claims.is_empty() {
        return;
    }
    println!("published, and here:");
    for claim in claims {
        println!("  {:<12} {}", claim.decision.words(), plain(&claim.question));
        println!("  {:<12} {}", "", plain(&claim.evidence()));
    }
    if !record.has_published_settings() {
        println!("  These are not the published settings: a smoke test, whose verdicts may be those of its size.");
    }
}

/// A text without the marks of raised and lowered parts.
fn plain(text: &str) -> String {
    text.replace("^{", "^").replace("_{", "_").replace('}', "")
}

/// More runs than this are counted, not listed.
const LISTED: usize = 20;

/// One line for each run, with the measures that tell most.
fn print_runs(kind: &Kind, runs: &[SweepRun]) {
    if runs.len() > LISTED {
        return;
    }
    let width = runs.iter().map(|run| run.record.label.chars().count()).max().unwrap_or(0).max(3);
    let headings: String = kind.headline.iter().map(|name| format!("  {:<18}", name.replace('_', " "))).collect();
    println!("{:<width$}{}", "run", headings.trim_end());
    for run in runs {
        let cells: String = match &run.summary {
            None => "  not finished".into(),
            Some(summary) => match &summary.problem {
                Some(problem) => format!("  {problem}"),
                None => kind.headline.iter().map(|name| format!("  {:<18}", cell(summary, name))).collect(),
            },
        };
        println!("{:<width$}{}", run.record.label, cells.trim_end());
    }
}

/// A number and its standard error: `0.0559 ± 0.0012`.
fn cell(summary: &pudica_lab::RunSummary, name: &str) -> String {
    let Some(value) = summary.measure(name) else { return "-".into() };
    match summary.measure(&format!("{name}_std_error")).filter(|error| *error > 0.0) {
        Some(error) => {
            let digits = (1 - error.log10().floor() as i32).clamp(0, 9) as usize;
            format!("{value:.digits$} ± {error:.digits$}")
        }
        None => number(value),
    }
}

/// One line: how many runs ended how.
pub(super) fn print_tally(tally: &Tally) {
    let finished = if tally.discarded > 0 { "converged" } else { "finished" };
    let parts = [
        (tally.converged, finished),
        (tally.discarded, "not converged at the end"),
        (tally.failed, "failed"),
        (tally.skipped, "skipped"),
        (tally.damaged, "damaged"),
        (tally.remaining, "not made yet"),
    ];
    let counts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    println!("{}: {}", counted(tally.runs, "run"), counts.join(", "));
}
