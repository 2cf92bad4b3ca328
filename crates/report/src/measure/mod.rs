//! The page of a `pudica measure`: `summary.json` and `details.json` of its folder as tables, figures and examples.

mod boolean;
mod classes;
mod examples;
mod found;
mod head;
mod marks;
mod page;
mod pictures;
mod responses;
mod sites;
mod table;
mod words;

use std::path::{Path, PathBuf};

use pudica_lab::store::write_bytes;
use pudica_lab::{Error, Result, write_table};
use pudica_measure::results::{Details, Sites};
use serde::de::DeserializeOwned;

use crate::findings::{Drawn, Table};
use crate::{io, write_figures};
use found::Found;
use pictures::Pictures;

/// What was written.
#[derive(Clone, Debug)]
pub struct MeasureReport {
    /// The page to open.
    pub page: PathBuf,
    /// The figures, as SVG; a PNG and a CSV lie beside each.
    pub figures: Vec<PathBuf>,
}

/// A part of the page.
enum Part {
    Figure(Drawn),
    Table(Table),
    /// A section as it is.
    Html(String),
}

/// Writes `results.csv` and `.parquet` (a row for each result), `figures/` and `report.html` into the folder of a measurement, finished or not.
pub fn write_measure(folder: &Path) -> Result<MeasureReport> {
    MeasureDrawing::new(folder)?.write()
}

/// The page of a measurement before anything of it is written.
pub struct MeasureDrawing {
    folder: PathBuf,
    found: Found,
    pictures: Pictures,
    parts: Vec<Part>,
}

impl MeasureDrawing {
    /// Reads what a folder holds, and draws.
    pub fn new(folder: &Path) -> Result<MeasureDrawing> {
        let summary = read(&folder.join("summary.json"))?;
        // A measurement that was stopped early has no details yet.
        let path = folder.join("details.json");
        let details = if path.exists() { read(&path)? } else { Details::default() };
        check_maps(&path, &details)?;
        let mut found = Found { summary, details };
        found.choose_examples();
        let pictures = Pictures::read(folder, &found.details.examples);
        let parts = parts(&found, &pictures);
        Ok(MeasureDrawing { folder: folder.into(), found, pictures, parts })
    }

    /// The page, as HTML.
    pub fn page(&self) -> String {
        page::of(&self.found, &self.pictures, &self.parts)
    }

    /// Writes everything into the folder.
    pub fn write(self) -> Result<MeasureReport> {
        let folder = &self.folder;
        write_table(folder, "results", &table::of(&self.found.summary.results))?;
        let drawn =
            self.parts.iter().filter_map(|part| if let Part::Figure(drawn) = part { Some(drawn) } else { None });
        let figures = write_figures(folder, drawn)?;
        let page = folder.join("report.html");
        write_bytes(&page, self.page().as_bytes())?;
        Ok(MeasureReport { page, figures })
    }
}

/// Everything below the head, in order: what holds for all inputs first.
fn parts(found: &Found, pictures: &Pictures) -> Vec<Part> {
    let mut parts = head::models(found);
    for response in found.responses() {
        parts.extend(responses::parts(found, response));
    }
    parts.extend(boolean::parts(found));
    for nudge in found.nudges() {
        parts.extend(sites::parts(found, nudge));
        parts.extend(examples::parts(found, nudge, pictures));
    }
    parts.extend(classes::parts(found));
    parts
}

/// Refuses maps of other places than have values, which would be drawn as large as they say. One without any was stopped before its first value.
fn check_maps(path: &Path, details: &Details) -> Result<()> {
    for profile in &details.profiles {
        let Sites::Grid { rows, columns } = profile.sites else { continue };
        let values = profile.by_site.len();
        if values > 0 && rows.checked_mul(columns) != Some(values) {
            let problem = format!("a map of {rows} x {columns} places has {values} values");
            return Err(Error::Damaged { path: path.into(), problem });
        }
    }
    Ok(())
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let text = std::fs::read_to_string(path).map_err(io("read", path))?;
    serde_json::from_str(&text).map_err(|error| Error::Damaged { path: path.into(), problem: error.to_string() })
}
