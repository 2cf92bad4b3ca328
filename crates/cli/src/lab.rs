//! `pudica list`, `show`, `run` and `report`: the experiments.

use crate::Ending;
use crate::data::data_folder;
use crate::grokking;
use crate::machine::{DeviceName, Machine};
use crate::plans::{Asked, interrupted, row, tell_beginning, tell_end};
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use crate::spectra;
use crate::study;
use crate::synthetic;
use crate::text::{grouped, seconds};
use clap::Args;
use pudica_lab::grokking::{Company, is_grokking_folder};
use pudica_lab::recipe::{Kind, builtin_names};
use pudica_lab::study::{Place, is_study_folder};
use pudica_lab::{NetworkTrainer, Plan, Recipe, Stop, Tally, estimate, execute};
use serde_json::json;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;

/// List the experiments that come with pudica
#[derive(Args)]
pub struct List {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Show what an experiment would do: runs, steps, and how long it would take here
#[derive(Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct Show {
    #[command(flatten)]
    what: What,
    /// Do not measure training steps for an estimate of the time
    #[arg(long)]
    no_estimate: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  pudica show hahn/length-scaling
  pudica show hahn/length-scaling --scale paper
  pudica show hahn/tradeoff model.d=64 --no-estimate";

/// Run an experiment and write its report
///
/// Running the same command again continues: finished runs are kept, interrupted ones go on from their last checkpoint and end with
/// the same numbers.
#[derive(Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    what: What,
    /// Folder for runs and report; by default runs/RECIPE-SCALE
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print one JSON object a line for each event
    #[arg(long)]
    json: bool,
}

const RUN_EXAMPLES: &str = "\
Examples:
  pudica run hahn/length-scaling                          quick scale: minutes on two CPU cores
  pudica run hahn/length-scaling --scale paper            the published settings, nothing changed
  pudica run hahn/length-scaling --device cuda            as many runs at once as fit on an NVIDIA GPU
  pudica run hahn/length-scaling model.d=64 seed=0..10    settings changed, as Hydra users type them
  pudica run vasudeva/mnist --data DIR                    networks on real images; `pudica data fetch` gets them
  pudica run my-experiment.toml --out results/mine        your own recipe; `pudica show` explains it first";

/// Write the report of a folder of runs again, finished or not
#[derive(Args)]
#[command(after_help = "Example:\n  pudica report runs/hahn/length-scaling-quick")]
pub struct Report {
    /// A folder that `pudica run` wrote
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Which experiment, how large, on what.
#[derive(Args)]
struct What {
    /// A recipe's name (see `pudica list`) or the path of your own TOML file
    recipe: String,
    /// Settings to change, as key=value: model.d=64 seed=0..10 n=4,8,12
    #[arg(value_name = "KEY=VALUE")]
    overrides: Vec<String>,
    /// quick (two CPU cores, minutes) or paper (the published settings), or another scale of your own recipe
    #[arg(long)]
    scale: Option<String>,
    #[command(flatten)]
    machine: Machine,
    /// The folder with the data sets, for studies of images and texts; without it, the one PUDICA_DATA names
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Groups of runs trained at the same time, side by side; by default one a core on the CPU, one on a GPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Runs trained in lock-step in a group, at most; by default 1 on the CPU, as many as fit on a GPU
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    together: Option<u16>,
}

type Outcome = Result<Ending, Box<dyn Error>>;

impl What {
    fn plan(&self, recipe: &Recipe) -> pudica_lab::Result<Plan> {
        Plan::new(recipe, self.scale.as_deref(), &self.overrides)
    }

    fn trainer(&self) -> Result<NetworkTrainer, String> {
        let trainer = self.machine.trainer()?;
        Ok(match self.together {
            Some(most) => trainer.together(most.into()),
            None => trainer,
        })
    }

    /// The same for a study.
    fn study<'a>(&'a self, recipe: &'a Recipe, data: Option<&'a Path>, json: bool) -> Asked<'a, Place<'a>> {
        let place = Place { device: self.machine.device.name(), data };
        Asked { recipe, scale: self.scale.as_deref(), overrides: &self.overrides, place, json }
    }

    /// The same for grokking.
    fn grokking<'a>(&'a self, recipe: &'a Recipe, json: bool) -> Asked<'a, Company<'a>> {
        let together = self.together.map_or(Company::TOGETHER, usize::from);
        let company = Company { device: self.machine.device.name(), together };
        Asked { recipe, scale: self.scale.as_deref(), overrides: &self.overrides, place: company, json }
    }

    fn jobs(&self) -> usize {
        match (self.jobs, self.machine.device) {
            (Some(jobs), _) => jobs.into(),
            (None, DeviceName::Cuda) => 1,
            (None, _) => available_parallelism().map_or(1, Into::into),
        }
    }
}

/// One line a recipe.
pub fn list(arguments: &List) -> Outcome {
    let recipes: Vec<Recipe> = builtin_names().iter().map(|name| Recipe::find(name)).collect::<Result<_, _>>()?;
    if arguments.json {
        let describe = |r: &Recipe| {
            let scales: Vec<&str> = r.scales.iter().map(|scale| scale.name.as_str()).collect();
            json!({"name": r.name, "title": r.title, "source": r.source, "about": r.about, "scales": scales})
        };
        let described =
            recipes.iter().map(describe).chain([spectra::description_json()?, synthetic::description_json()?]);
        println!("{}", serde_json::Value::from_iter(described));
        return Ok(Ending::Done);
    }
    let width = recipes.iter().map(|recipe| recipe.name.len()).max().unwrap_or(0);
    for recipe in &recipes {
        println!("{:<width$}  {}; {}", recipe.name, recipe.title, recipe.source);
    }
    for (name, title, source) in [spectra::description()?, synthetic::description()?] {
        println!("{name:<width$}  {title}; {source}");
    }
    println!("\n`pudica show NAME` tells what one does and how long it takes here; `pudica run NAME` runs it.");
    Ok(Ending::Done)
}

/// The plan, and its cost here.
pub fn show(arguments: &Show) -> Outcome {
    if spectra::is_meant(&arguments.what.recipe) {
        return spectra::show(arguments.what.scale.as_deref(), &arguments.what.overrides, arguments.json);
    }
    if synthetic::is_meant(&arguments.what.recipe) {
        return synthetic::show(arguments.what.scale.as_deref(), &arguments.what.overrides, arguments.json);
    }
    let recipe = Recipe::find(&arguments.what.recipe)?;
    if recipe.kind == Kind::Study {
        arguments.what.machine.only_f32()?;
        let data = data_folder(arguments.what.data.as_deref())?;
        return study::show(&arguments.what.study(&recipe, data.as_deref(), arguments.json), arguments.no_estimate);
    }
    if recipe.kind == Kind::Grokking {
        arguments.what.machine.only_f32()?;
        return grokking::show(&arguments.what.grokking(&recipe, arguments.json), arguments.no_estimate);
    }
    let (plan, jobs) = (arguments.what.plan(&recipe)?, arguments.what.jobs());
    let time = match arguments.no_estimate {
        true => None,
        false => Some(estimate(&plan, &arguments.what.trainer()?, jobs)?),
    };
    let groups = plan.groups();
    if arguments.json {
        let shapes: Vec<_> = groups
            .iter()
            .map(|g| {
                json!({"n": g.shape.n, "d": g.shape.d, "layers": g.shape.layers,
            "heads": g.shape.heads, "batch": g.shape.batch, "runs": g.runs.len()})
            })
            .collect();
        let object = json!({"recipe": plan.recipe.name, "scale": plan.scale, "runs": plan.runs.len(),
            "steps": plan.total_steps(), "shapes": shapes, "jobs": jobs,
            "together": time.as_ref().map(|t| t.together), "seconds": time.as_ref().map(|t| t.seconds),
            "shapes_measured": time.as_ref().map(|t| t.shapes_measured), "command": plan.command(),
            "folder": plan.default_folder()});
        println!("{object}");
        return Ok(Ending::Done);
    }
    tell_beginning(&plan);
    row("runs", format!("{}, {} training steps in all", grouped(plan.runs.len() as u64), grouped(plan.total_steps())));
    let mut lengths: Vec<usize> = groups.iter().map(|group| group.shape.n).collect();
    lengths.sort_unstable();
    lengths.dedup();
    row("lengths n", summarise(&lengths));
    if let Some(run) = plan.runs.first() {
        let (model, train) = (&run.config.model, &run.config.train);
        row(
            "network",
            format!("{} layers, {} heads, width {}, batch {}", model.layers, model.heads, model.d, train.batch),
        );
    }
    if let Some(time) = time {
        let judged = groups.len() - time.shapes_measured;
        let note = if judged > 0 {
            format!(", {judged} of {} shapes judged from smaller ones", groups.len())
        } else {
            String::new()
        };
        let together = match time.together {
            1 => format!("{jobs} at a time"),
            most => format!("{jobs} at a time, up to {most} runs in lock-step in each"),
        };
        row("time here", format!("about {} with {together}{note}", seconds(time.seconds)));
    }
    tell_end(&plan);
    Ok(Ending::Done)
}

/// "4, 5, ..., 30" for many, all of them for few.
fn summarise(numbers: &[usize]) -> String {
    match numbers {
        [first, second, .., last] if numbers.len() > 8 => {
            format!("{first}, {second}, ..., {last} ({} lengths)", numbers.len())
        }
        _ => numbers.iter().map(usize::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// Runs a plan, or what is left of it, and writes its report.
pub fn run(arguments: &Run) -> Outcome {
    let stop = Stop::new();
    stop_on_signals(stop.clone())?;
    if spectra::is_meant(&arguments.what.recipe) {
        let What { scale, overrides, .. } = &arguments.what;
        return spectra::run(scale.as_deref(), overrides, arguments.out.as_deref(), arguments.json, &stop);
    }
    if synthetic::is_meant(&arguments.what.recipe) {
        let What { scale, overrides, .. } = &arguments.what;
        return synthetic::run(scale.as_deref(), overrides, arguments.out.as_deref(), arguments.json, &stop);
    }
    let recipe = Recipe::find(&arguments.what.recipe)?;
    if recipe.kind == Kind::Study {
        arguments.what.machine.only_f32()?;
        let data = data_folder(arguments.what.data.as_deref())?;
        let asked = arguments.what.study(&recipe, data.as_deref(), arguments.json);
        return study::run(&asked, arguments.out.as_deref(), &stop);
    }
    if recipe.kind == Kind::Grokking {
        arguments.what.machine.only_f32()?;
        let asked = arguments.what.grokking(&recipe, arguments.json);
        return grokking::run(&asked, arguments.out.as_deref(), &stop);
    }
    let plan = arguments.what.plan(&recipe)?;
    let trainer = arguments.what.trainer()?;
    let folder = arguments.out.clone().unwrap_or_else(|| plan.default_folder());
    let progress = Progress::new(arguments.json);
    let tally = execute(&plan, &folder, arguments.what.jobs(), &trainer, &progress, &stop)?;
    if let Some(ending) = interrupted(&tally) {
        return Ok(ending);
    }
    let report = pudica_report::write(&folder)?;
    match arguments.json {
        true => println!("{}", json!({"event": "report_written", "page": report.page, "figures": report.figures})),
        false => tell(&tally, &report.page),
    }
    Ok(Ending::Done)
}

/// Writes a report again.
pub fn report(arguments: &Report) -> Outcome {
    if spectra::is_folder(&arguments.folder) {
        return spectra::report(&arguments.folder, arguments.json);
    }
    if synthetic::is_folder(&arguments.folder) {
        return synthetic::report(&arguments.folder, arguments.json);
    }
    if is_study_folder(&arguments.folder) {
        return study::report(&arguments.folder, arguments.json);
    }
    if is_grokking_folder(&arguments.folder) {
        return grokking::report(&arguments.folder, arguments.json);
    }
    let report = pudica_report::write(&arguments.folder)?;
    match arguments.json {
        true => println!("{}", json!({"page": report.page, "figures": report.figures, "tally": report.tally})),
        false => tell(&report.tally, &report.page),
    }
    Ok(Ending::Done)
}

fn tell(tally: &Tally, page: &Path) {
    let parts = [
        (tally.converged, "converged"),
        (tally.discarded, "not converged (left out of figures)"),
        (tally.failed, "failed"),
        (tally.skipped, "skipped"),
        (tally.remaining, "not made yet"),
    ];
    let counts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    println!("{} runs: {}", tally.runs, counts.join(", "));
    println!("report: {}", page.display());
}
