//! Figures (SVG and PNG) and one self-contained HTML page for a sweep folder.
//!
//! [`write()`] works on any sweep folder, finished or not, as often as wanted. What each experiment shows is in `experiments`;
//! what was published stands in [`published`].

mod experiments;
mod figure;
mod grokking;
mod page;
pub mod published;
mod spectra;
mod study;
mod sweep;
mod synthetic;

use std::path::{Path, PathBuf};

use pudica_lab::store::write_bytes;
use pudica_lab::{Error, Result, SweepFolder, Tally, write_results};
use serde_json::Value;

pub use grokking::write_grokking;
pub use spectra::{SpectraReport, write_spectra};
pub use study::write_study;
pub use synthetic::{SyntheticReport, write_synthetic};

/// What was written.
#[derive(Clone, Debug)]
pub struct Report {
    /// The page to open.
    pub page: PathBuf,
    /// The figures, as SVG; a PNG lies beside each.
    pub figures: Vec<PathBuf>,
    /// How the runs of the sweep stand.
    pub tally: Tally,
}

/// Writes `results.csv`, `results.parquet`, `summary.json`, `figures/` and `report.html` into a sweep folder.
pub fn write(folder: &Path) -> Result<Report> {
    let sweep = sweep::Sweep::read(&SweepFolder::open(folder)?)?;
    write_results(folder, &sweep.runs)?;
    let findings = experiments::findings(&sweep);

    let mut summary = sweep.heading();
    if let Value::Object(summary) = &mut summary {
        summary.extend(findings.summary.clone());
    }
    write_text(&folder.join("summary.json"), &format!("{summary:#}\n"))?;

    let figures = figure_files(folder, &findings.figures)?;
    let page = folder.join("report.html");
    write_text(&page, &page::html(&sweep, &findings))?;
    Ok(Report { page, figures, tally: sweep.tally() })
}

/// Writes figures as SVG and PNG under `folder`/figures; returns the SVGs.
fn figure_files(folder: &Path, drawn: &[experiments::Drawn]) -> Result<Vec<PathBuf>> {
    let drawings = folder.join("figures");
    std::fs::create_dir_all(&drawings).map_err(|source| Error::Io {
        action: "create",
        path: drawings.clone(),
        source,
    })?;
    let mut figures = Vec::new();
    for drawn in drawn {
        let svg = drawn.figure.svg();
        let path = drawings.join(format!("{}.svg", drawn.file));
        write_text(&path, &svg)?;
        let png = figure::png::render(&svg)
            .map_err(|error| Error::Training(format!("cannot draw {}: {error}", path.display())))?;
        write_bytes(&path.with_extension("png"), &png)?;
        figures.push(path);
    }
    Ok(figures)
}

fn write_text(path: &Path, text: &str) -> Result<()> {
    write_bytes(path, text.as_bytes())
}
