//! `pudica list`, `show`, `run`, `report` and `settings`: the experiments, of whatever kind. A file for each command; here is what tells them which
//! experiment is meant.

mod list;
mod report;
mod run;
mod settings;
mod show;

pub use list::{List, list};
pub use report::{Report, report, write_report};
pub use run::{Run, run};
pub use settings::{SettingsOf, settings};
pub use show::{Show, show};

use std::error::Error;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use pudica_lab::{Plan, Recipe, Request};

use crate::arguments::whole;
use crate::data::data_folder;
use crate::machine::Machine;
use crate::{Ending, PROGRAM};

pub(crate) type Outcome = Result<Ending, Box<dyn Error>>;

/// Which experiment, how large, on what.
#[derive(Args)]
struct What {
    /// A recipe's name (see `pudica list`) or the path of your own TOML file
    recipe: String,
    /// Settings to change, as key=value: model.d=64 seed=0..10 n=4,8,12 (see `pudica settings`)
    #[arg(value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// quick (two CPU cores, minutes) or paper (the published settings), or another scale of your own recipe
    #[arg(long)]
    scale: Option<String>,
    #[command(flatten)]
    machine: Machine,
    /// The folder with the data sets, for images and texts; without it, the one PUDICA_DATA names
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Groups of runs trained at the same time, side by side; default: one per core on the CPU, one on a GPU
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=u64::from(u16::MAX)))]
    jobs: Option<u16>,
    /// Runs trained in lock-step per group, at most; default: 1 on the CPU, as many as fit on a GPU
    #[arg(long, value_name = "N", value_parser = whole::<u16>(1..=u64::from(u16::MAX)))]
    together: Option<u16>,
}

impl What {
    /// The runs that are meant, and how they share this machine.
    /// `on_gpu`: on a GPU, where nobody says otherwise.
    fn plan(&self, on_gpu: bool) -> Result<(Plan, pudica_lab::Machine), Box<dyn Error>> {
        let recipe = Recipe::find(&self.recipe)?;
        let on_gpu = on_gpu && !self.overrides.iter().any(|text| text.starts_with("compute.device="));
        let flags = self.machine.flags(&recipe.scale(self.scale.as_deref())?.settings, on_gpu)?;
        let given = self.data.as_ref().map(|folder| format!("--data {}", folder.display()));
        let data = match recipe.kind.abilities.data {
            true => data_folder(self.data.as_deref())?,
            false => self.data.clone(), // to be refused
        };
        let request = Request {
            scale: self.scale.clone(),
            overrides: self.overrides.clone(),
            flags,
            data: data.clone(),
            repeat: given.into_iter().collect(),
        };
        let machine = pudica_lab::Machine {
            program: PROGRAM.into(),
            jobs: self.jobs.map(usize::from),
            together: self.together.map(usize::from),
            data,
            stale_after: seconds_of("PUDICA_STALE_SECONDS")?,
            checkpoint_every: seconds_of("PUDICA_CHECKPOINT_SECONDS")?,
            ..pudica_lab::Machine::default()
        };
        machine.check(recipe.kind.name, &recipe.kind.abilities)?;
        // Where a GPU is meant by --gpus alone, that is what has to go.
        let says_gpus =
            on_gpu && request.flags.iter().any(|(flag, _)| flag == "--device cuda") && !self.machine.names_a_device();
        let plan = Plan::new(&recipe, &request).map_err(|error| match error.to_string() {
            text if says_gpus && text.contains("compute.device") => format!("{text}; leave --gpus out").into(),
            _ => Box::<dyn Error>::from(error),
        })?;
        Ok((plan, machine))
    }
}

/// A time that the environment sets, for tests of interruptions (docs/reliability.md).
fn seconds_of(variable: &str) -> Result<Option<Duration>, String> {
    let Some(text) = std::env::var_os(variable).filter(|text| !text.is_empty()) else { return Ok(None) };
    let seconds = text.to_str().and_then(|text| text.parse().ok()).and_then(|s| Duration::try_from_secs_f64(s).ok());
    match seconds {
        Some(seconds) => Ok(Some(seconds)),
        None => Err(format!("{variable}={}: give a number of seconds, or leave it out", text.display())),
    }
}
