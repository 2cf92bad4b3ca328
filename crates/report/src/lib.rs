//! Figures (SVG, PNG and their numbers as CSV) and one self-contained HTML page for a sweep folder.
//!
//! [`write()`] works on any sweep folder, of any kind, finished or not, as often as wanted. Runs are read as tables (`run`, `group`,
//! `sweep`); what an experiment shows is one function of `layouts`, and what was published stands in `published`.
//!
//! [`write_measure`] does the same for the folder of a `pudica measure`.

mod claims;
mod constant;
mod figure;
mod findings;
mod group;
mod layouts;
mod measure;
mod page;
mod plot;
mod published;
mod run;
mod sweep;
mod table;
mod typeset;
mod verdicts;

use std::path::{Path, PathBuf};

use pudica_lab::recipe::Plot;
use pudica_lab::store::{SweepRun, write_bytes};
use pudica_lab::{Error, Kind, Result, SweepFolder, Tally, write_results};
use serde_json::{Value, json};

pub use claims::{Claim, Decision};
pub use layouts::layouts;
pub use measure::{MeasureDrawing, MeasureReport, write_measure};

use findings::{Drawn, Findings};
use sweep::Sweep;

/// What was written.
#[derive(Clone, Debug)]
pub struct Report {
    /// The page to open.
    pub page: PathBuf,
    /// The figures, as SVG; a PNG and a CSV lie beside each.
    pub figures: Vec<PathBuf>,
    /// How the runs of the sweep stand.
    pub tally: Tally,
    /// What was published, and what the runs say about it.
    pub claims: Vec<Claim>,
    /// What a reader must know before believing a number.
    pub warnings: Vec<String>,
}

/// Writes the tables of results, `summary.json`, `figures/` and `report.html` into a sweep folder.
pub fn write(folder: &Path) -> Result<Report> {
    write_with(folder, &[])
}

/// The same with further figures, beside those that the recipe's `plot` asks for.
pub fn write_with(folder: &Path, plots: &[Plot]) -> Result<Report> {
    Drawing::new(folder, plots)?.write()
}

/// The report of a sweep folder before anything of it is written.
pub struct Drawing {
    stored: SweepFolder,
    runs: Vec<SweepRun>,
    sweep: Sweep,
    findings: Findings,
}

impl Drawing {
    /// Reads the runs and draws, with these figures beside those that the recipe's `plot` asks for.
    pub fn new(folder: &Path, plots: &[Plot]) -> Result<Drawing> {
        let stored = SweepFolder::open(folder)?;
        let (runs, damaged) = stored.read()?;
        let damaged: Vec<String> = damaged.iter().map(ToString::to_string).collect();
        let sweep = Sweep::read(stored.record().clone(), &runs, damaged)?;
        check(&sweep, plots)?;
        let plots = [plots.to_vec(), layouts::plots(&sweep)].concat();
        let findings = layouts::findings(&sweep, &plots);
        Ok(Drawing { stored, runs, sweep, findings })
    }

    /// `summary.json` of the sweep.
    pub fn summary(&self) -> Value {
        let Findings { summary: found, claims, warnings, .. } = &self.findings;
        let mut summary = self.sweep.heading();
        summary.extend(found.clone());
        if !claims.is_empty() {
            summary.insert("verdicts".into(), json!(claims));
        }
        if !warnings.is_empty() {
            summary.insert("warnings".into(), json!(warnings));
        }
        Value::from(summary)
    }

    /// The page, as HTML.
    pub fn page(&self) -> String {
        page::of(&self.sweep, &self.findings)
    }

    /// Writes everything into the folder.
    pub fn write(self) -> Result<Report> {
        let folder = self.stored.path();
        write_results(folder, &self.sweep.record, &self.runs)?;
        write_bytes(&folder.join("summary.json"), format!("{:#}\n", self.summary()).as_bytes())?;
        let figures = write_figures(folder, &self.findings.figures)?;
        let page = folder.join("report.html");
        write_bytes(&page, self.page().as_bytes())?;
        let Findings { claims, warnings, .. } = self.findings;
        Ok(Report { page, figures, tally: self.sweep.tally(), claims, warnings })
    }
}

/// Refuses figures of what no run has.
fn check(sweep: &Sweep, plots: &[Plot]) -> Result<()> {
    if sweep.runs.is_empty() && !plots.is_empty() {
        return Err(Error::Other("plot: no run has begun here yet, so there is nothing to draw".into()));
    }
    let settings: Vec<String> = sweep.runs.iter().flat_map(|run| run.settings.keys()).cloned().collect();
    let settings = sweep::different(settings.into_iter());
    let mut measures = group::measure_names(sweep.runs.iter(), "");
    if measures.is_empty() {
        measures = Kind::find(&sweep.record.kind)?.measures.to_vec();
    }
    plots.iter().try_for_each(|plot| plot.check_names(&settings, &measures)).map_err(Error::Other)
}

/// Writes figures as SVG and PNG and their numbers as CSV under `folder`/figures; returns the SVGs.
fn write_figures<'a>(folder: &Path, drawn: impl IntoIterator<Item = &'a Drawn>) -> Result<Vec<PathBuf>> {
    let folder = folder.join("figures");
    std::fs::create_dir_all(&folder).map_err(io("create", &folder))?;
    let mut figures = Vec::new();
    for drawn in drawn {
        let svg = drawn.figure.svg();
        let path = folder.join(format!("{}.svg", drawn.file));
        write_bytes(&path, svg.as_bytes())?;
        let png = figure::png::render(&svg).map_err(|error| io("draw", &path)(std::io::Error::other(error)))?;
        write_bytes(&path.with_extension("png"), &png)?;
        write_bytes(&path.with_extension("csv"), drawn.figure.csv().as_bytes())?;
        figures.push(path);
    }
    Ok(figures)
}

fn io(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    move |source| Error::Io { action, path: path.into(), source }
}
