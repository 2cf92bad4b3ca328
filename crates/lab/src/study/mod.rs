//! Studies: classifiers of images and texts, trained while measures are followed (Sections 5 to 7 of Vasudeva et al. 2024).
//!
//! - [`StudyConfig`]: the settings of one run; [`StudyPlan`]: the runs a recipe means.
//! - [`execute_study`]: makes them, one after the other; running again continues.
//! - [`read_study`]: what a folder holds, as reports need it.
//!
//! The folders are those of [`crate::store`]: every evaluation is a [`Point`], one line of a run's metrics.

mod config;
mod curvature;
mod evaluate;
mod execute;
mod images;
mod material;
mod network;
mod point;
mod run;
mod text_network;
mod texts;
mod validate;

use std::path::Path;

pub use config::{DataConfig, InterveneConfig, MeasureConfig, ModelConfig, ModelKind, StudyConfig, TrainConfig};
pub use execute::{Place, RunEstimate, estimate_study, execute_study};
pub use point::Point;

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::recipe::Kind;
use crate::store::{RunSummary, SweepFolder, SweepRecord};

/// The runs of a study, in the order they are made.
pub type StudyPlan = Plan<StudyConfig>;

/// What a folder holds of a study, finished or not.
#[derive(Clone, Debug)]
pub struct Study {
    /// What was asked for.
    pub record: SweepRecord,
    /// The runs that have at least begun, in the order of the plan.
    pub runs: Vec<StudyRun>,
}

/// One run of a study.
#[derive(Clone, Debug)]
pub struct StudyRun {
    /// Its id, which names its folder.
    pub id: String,
    /// The recipe's sweep it belongs to.
    pub sweep: String,
    /// Its settings.
    pub config: StudyConfig,
    /// Its evaluations, in order.
    pub points: Vec<Point>,
    /// Its outcome, if it has ended. `measures` repeats the last point's numbers under the same names and adds the final measures (see
    /// [`point`](Point)); `detail` has the profiles.
    pub summary: Option<RunSummary>,
}

/// A name that is neither a data set's nor a folder's.
fn unknown_data(name: &str) -> Error {
    let images = pudica_data::images::DATA_SETS.iter().map(|set| set.name);
    let names: Vec<&str> = images.chain(pudica_data::text::TEXT_SETS.iter().map(|set| set.name)).collect();
    let near = pudica_boolean::did_you_mean(name, names.iter().copied());
    let problem = format!("\"{name}\" is no folder and no data set known here{near} ({})", names.join(", "));
    Error::setting("data.name", problem)
}

/// What to do where a known data set is not found.
fn how_to_get(name: &str) -> String {
    format!(
        "name the folder with the data by --data DIR or the variable PUDICA_DATA; `pudica data fetch {name}` downloads it"
    )
}

/// Whether a folder holds a study.
pub fn is_study_folder(folder: &Path) -> bool {
    SweepFolder::open(folder).is_ok_and(|folder| folder.record().kind == Kind::Study)
}

/// Reads a study's folder.
pub fn read_study(folder: &Path) -> Result<Study> {
    let folder = SweepFolder::open(folder)?;
    let mut runs = Vec::new();
    for run in folder.runs_of::<StudyConfig>()? {
        let points = run.folder.metrics()?.into_iter().map(Point::from_line).collect::<Result<_>>()?;
        runs.push(StudyRun {
            id: run.record.id,
            sweep: run.record.sweep,
            config: run.config,
            points,
            summary: run.summary,
        });
    }
    Ok(Study { record: folder.record().clone(), runs })
}
