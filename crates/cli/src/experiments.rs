//! `pudica list`, `show`, `run`, `report` and `settings`: the experiments, of whatever kind.

use crate::arguments::whole;
use crate::data::data_folder;
use crate::machine::Machine;
use crate::progress::Progress;
use crate::signals::{if_it_takes_long, stop_on_signals};
use crate::slurm;
use crate::text::{counted, grouped, number, seconds};
use crate::{Ending, PROGRAM, tell_fast_build};
use clap::Args;
use pudica_lab::kinds::{KINDS, Kind, SettingDoc};
use pudica_lab::recipe::{Plot, builtin_names};
use pudica_lab::store::{SweepFolder, SweepRecord, SweepRun};
use pudica_lab::{
    Event, Observer, Plan, Recipe, Request, Stop, Tally, TimeEstimate, Unit, estimate, execute_with, open,
};
use pudica_report::Claim;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// List the experiments that come with pudica
#[derive(Args)]
pub struct List {
    /// Print one JSON array
    #[arg(long)]
    json: bool,
}

/// Show what an experiment would do: runs, what is swept, and how long it would take here
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
/// the same numbers. Ctrl-C, SIGTERM, SIGHUP and SIGUSR1 save and end.
#[derive(Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct Run {
    #[command(flatten)]
    what: What,
    /// Folder for runs and report; by default runs/RECIPE-SCALE, with other settings in its name
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Make only one part of the runs: 3/12 is the third of twelve parts of about equal cost (docs/cluster.md)
    #[arg(long, value_name = "K/N", allow_hyphen_values = true)]
    unit: Option<Unit>,
    /// In a Slurm job: when it is told to end, or fails, ask Slurm to start it again, unless three starts made no progress
    #[arg(long, requires = "unit")]
    requeue: bool,
    /// Make damaged runs again; what was there is moved to DIR/damaged
    #[arg(long)]
    repair: bool,
    #[command(flatten)]
    slurm: slurm::Options,
    /// Print one JSON object per line for each event
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
  pudica run my-experiment.toml --out results/mine        your own recipe; `pudica show` explains it first
  pudica run hahn/tradeoff --out DIR --unit 3/12          one of twelve parts; `pudica merge` joins folders";

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

/// Print every setting of a kind of experiment: its type, its default and what it means
#[derive(Args)]
#[command(after_help = SETTINGS_EXAMPLES)]
pub struct SettingsOf {
    /// boolean, classifier, grokking, tokens or spectra; all where none is given
    kind: Option<String>,
    /// Print one JSON object
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print docs/settings.md
    #[arg(long)]
    markdown: bool,
}

const SETTINGS_EXAMPLES: &str = "\
Examples:
  pudica settings boolean            everything you can set in `pudica run hahn/...` and in your own recipes
  pudica settings classifier --json  the same for programs";

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

impl Show {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        let estimate =
            if self.no_estimate { "" } else { ", and timing some of its steps (--no-estimate leaves that out)" };
        format!("planning {}{estimate}", self.what.recipe)
    }
}

impl Run {
    /// What it does before it tells of itself, for who waits.
    pub fn doing(&self) -> String {
        format!("planning {}, and trying whether data and networks are there", self.what.recipe)
    }
}

impl Report {
    /// What it does, for who waits.
    pub fn doing(&self) -> String {
        format!("reading the runs of {} and drawing", self.folder.display())
    }
}

pub(crate) type Outcome = Result<Ending, Box<dyn Error>>;

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

/// One line per recipe.
pub fn list(arguments: &List) -> Outcome {
    let recipes: Vec<Recipe> = builtin_names().map(Recipe::find).collect::<Result<_, _>>()?;
    if arguments.json {
        let describe = |r: &Recipe| {
            let scales: Vec<&str> = r.scales.iter().map(|scale| scale.name.as_str()).collect();
            json!({"name": r.name, "kind": r.kind.name, "title": r.title, "source": r.source, "about": r.about, "scales": scales})
        };
        println!("{}", Value::from_iter(recipes.iter().map(describe)));
        return Ok(Ending::Done);
    }
    let width = recipes.iter().map(|recipe| recipe.name.len()).max().unwrap_or(0);
    for recipe in &recipes {
        println!("{:<width$}  {}; {}", recipe.name, recipe.title, recipe.source);
    }
    println!("\n`pudica show NAME` tells what one does and how long it takes here; `pudica run NAME` runs it.");
    Ok(Ending::Done)
}

/// The plan, and its cost here.
pub fn show(arguments: &Show) -> Outcome {
    let (plan, machine) = arguments.what.plan(false)?;
    let (mut time, mut steps) = (None, None);
    if arguments.no_estimate && plan.reads_own_files {
        open(&plan, &machine)?; // what `run` refuses in the user's own files is refused here
    }
    if !arguments.no_estimate {
        let experiment = open(&plan, &machine)?;
        let works = plan.runs.iter().map(|run| Ok(experiment.work(&run.settings)?.steps));
        steps = Some(works.collect::<pudica_lab::Result<Vec<u64>>>()?.iter().sum::<u64>());
        time = Some(estimate(&plan, experiment.as_ref(), &machine)?);
    }
    let swept: Vec<(&String, Vec<String>)> = plan.swept.iter().map(|key| (key, values(&plan, key))).collect();
    if arguments.json {
        let runs: Vec<Value> = plan
            .runs
            .iter()
            .map(|run| json!({"id": run.id, "label": run.label, "sweep": run.sweep, "settings": run.settings}))
            .collect();
        let swept: serde_json::Map<String, Value> =
            swept.into_iter().map(|(key, values)| (key.clone(), json!(values))).collect();
        let object = json!({"recipe": plan.recipe.name, "kind": plan.kind().name, "scale": plan.scale, "swept": swept,
            "runs": runs, "steps": steps, "seconds": time.as_ref().map(|t| t.seconds),
            "jobs": time.as_ref().map(|t| t.jobs), "together": time.as_ref().map(|t| t.together),
            "command": plan.command(), "folder": plan.default_folder()});
        println!("{object}");
        return Ok(Ending::Done);
    }
    let Recipe { name, title, source, about, kind, scales, .. } = &plan.recipe;
    println!("{name}: {title}");
    for text in [source, about].into_iter().filter(|text| !text.is_empty()) {
        println!("  {text}");
    }
    println!();
    let scales: Vec<&str> = scales.iter().map(|scale| scale.name.as_str()).collect();
    row("scale", format!("{} (of {})", plan.scale, scales.join(", ")));
    row("kind", format!("{}: {}", kind.name, kind.about));
    let steps = steps.filter(|steps| *steps > 0);
    let steps = steps.map_or(String::new(), |steps| format!(", {} training steps in all", grouped(steps)));
    row("runs", format!("{}{steps}", grouped(plan.runs.len() as u64)));
    for (place, (key, values)) in swept.iter().enumerate() {
        row(if place == 0 { "swept" } else { "" }, format!("{key} = {}", shortened(values)));
    }
    if let Some(time) = time {
        row("time here", words(&time));
    }
    row("results into", plan.default_folder().display().to_string());
    println!("\n  {}", plan.command());
    Ok(Ending::Done)
}

/// A line about a plan.
fn row(name: &str, value: String) {
    println!("  {name:<16} {value}");
}

/// The different values of a setting among the runs, in the order of first appearance.
fn values(plan: &Plan, key: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    plan.runs.iter().map(|run| run.settings.text(key)).filter(|value| seen.insert(value.clone())).collect()
}

/// "4, 5, ..., 30 (27 values)" for many, all of them for few.
fn shortened(values: &[String]) -> String {
    match values {
        [first, second, .., last] if values.len() > 8 => {
            format!("{first}, {second}, ..., {last} ({} values)", values.len())
        }
        _ => {
            let shown = |value: &String| if value.is_empty() { "none".into() } else { value.clone() };
            values.iter().map(shown).collect::<Vec<_>>().join(", ")
        }
    }
}

fn words(time: &TimeEstimate) -> String {
    let judged = time.groups - time.groups_measured.min(time.groups);
    let note = if judged > 0 {
        format!(", {judged} of {} kinds of network judged from smaller ones", time.groups)
    } else {
        String::new()
    };
    let at_once = match (time.jobs, time.together) {
        (1, 1) => String::new(),
        (jobs, 1) => format!(", {jobs} runs at a time"),
        (1, most) => format!(", up to {most} runs in lock-step"),
        (jobs, most) => format!(", {jobs} groups at a time, up to {most} runs in lock-step in each"),
    };
    format!("about {}{at_once}{note}", seconds(time.seconds))
}

/// Runs a plan, or what is left of it, and writes its report.
pub fn run(arguments: &Run) -> Outcome {
    let stop = Stop::new();
    if arguments.requeue {
        stop_on_signals(stop.clone())?; // from the beginning: a job that is told to end asks to be started again
    }
    let progress = Progress::new(arguments.json);
    // Of a submitted sweep, a task whose plan or data cannot be had is one that failed, too.
    let submitted = arguments.out.as_ref().filter(|folder| folder.join("sweep.json").is_file());
    let mut task = start(arguments, submitted.map(PathBuf::as_path), &progress)?;
    // Who asks Slurm for GPUs wants the runs to compute there.
    let (plan, mut machine) = match (arguments.what.plan(arguments.slurm.gpus.is_some()), &task) {
        (Err(problem), Some(task)) => return task.end(Err(problem)),
        (plan, _) => plan?,
    };
    (machine.unit, machine.repair) = (arguments.unit, arguments.repair);
    let folder = arguments.out.clone().unwrap_or_else(|| plan.default_folder());
    if arguments.slurm.engine.is_some() {
        return slurm::submit(&arguments.slurm, &plan, &machine, &folder, arguments.json);
    }
    if task.is_none() {
        task = start(arguments, Some(&folder), &progress)?;
    }
    let observer: &dyn Observer = match &task {
        Some(task) => task,
        None => &progress,
    };
    let ended = make(&plan, &folder, &machine, observer, &progress, &stop);
    match task {
        Some(task) if matches!(ended, Ok(Ending::Done)) => {
            task.note_progress(); // there may have been nothing to make
            ended
        }
        Some(task) => task.end(ended),
        None => ended,
    }
}

/// The task of Slurm that this process is, in a folder that is known.
fn start<'a>(
    arguments: &Run,
    folder: Option<&Path>,
    progress: &'a Progress,
) -> Result<Option<slurm::Task<'a>>, Box<dyn Error>> {
    match (arguments.unit.filter(|_| arguments.requeue), folder) {
        (Some(unit), Some(folder)) => slurm::Task::start(folder, unit, progress).map(Some),
        _ => Ok(None),
    }
}

/// Makes the runs of a plan, or of a part of it, and writes the report once all are there.
fn make(
    plan: &Plan,
    folder: &Path,
    machine: &pudica_lab::Machine,
    observer: &dyn Observer,
    progress: &Progress,
    stop: &Stop,
) -> Outcome {
    let experiment = open(plan, machine)?;
    // Until here nothing was written, and a signal ends it at once; from here on there is something to save.
    stop_on_signals(stop.clone())?;
    if_it_takes_long(stop.clone(), || {
        eprintln!("stopping: the step at work is finished and saved first; the same signal again ends it at once");
    });
    tell_fast_build();
    let tally = execute_with(experiment.as_ref(), plan, folder, machine, observer, stop)?;
    if tally.stopped && tally.remaining > 0 {
        eprintln!("stopped with {} to go, all saved; the same command continues", counted(tally.remaining, "run"));
        return Ok(Ending::Interrupted);
    }
    if tally.elsewhere > 0 {
        let (count, folder) = (counted(tally.elsewhere, "run"), folder.display());
        eprintln!("{count} left to other processes that are making them in this folder: `pudica status {folder}`");
    }
    let missing = match machine.unit {
        Some(_) => SweepFolder::open(folder)?.missing(),
        None => 0,
    };
    match missing {
        0 => drop(write_report(folder, progress, &[])?), // `execute` has told what is damaged
        _ => print_part(&tally, missing, folder, progress),
    }
    if tally.damaged > 0 {
        let damaged = counted(tally.damaged, "run");
        return Err(format!(
            "{damaged} damaged and not counted; run the same command with --repair to make them again"
        )
        .into());
    }
    match tally.errors.len() {
        0 => Ok(Ending::Done),
        errors => Err(format!(
            "{} met an error and wait for the same command ({}); the first: {}",
            counted(tally.remaining, "run"),
            counted(errors, "error"),
            tally.errors[0]
        )
        .into()),
    }
}

/// What a part of a sweep ends with: the page is for the whole.
fn print_part(tally: &Tally, missing: usize, folder: &Path, progress: &Progress) {
    if matches!(progress, Progress::Json) {
        return; // its last event is the tally
    }
    print_tally(tally);
    println!(
        "{} of the sweep not here yet; the page is written with the last of them, by `pudica merge`, or now by `pudica report {}`",
        counted(missing, "run"),
        folder.display()
    );
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

fn print_tally(tally: &Tally) {
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

/// What can be set.
pub fn settings(arguments: &SettingsOf) -> Outcome {
    let kinds: Vec<&Kind> = match &arguments.kind {
        Some(name) if name.is_empty() => return Err("KIND is empty: name one, or leave it out for all".into()),
        Some(name) => vec![Kind::find(name)?],
        None => KINDS.to_vec(),
    };
    if arguments.json {
        let of = |kind: &&Kind| (kind.name.to_string(), json!({"about": kind.about, "settings": kind.documentation()}));
        println!("{}", Value::Object(kinds.iter().map(of).collect()));
        return Ok(Ending::Done);
    }
    if arguments.markdown {
        print!("{}", markdown(&kinds));
        return Ok(Ending::Done);
    }
    for (place, kind) in kinds.iter().enumerate() {
        if place > 0 {
            println!();
        }
        println!("{}: {}\n", kind.name, kind.about);
        for SettingDoc { key, default, choices, meaning, kind } in kind.documentation() {
            let choices = if choices.is_empty() { kind.to_string() } else { choices.join(" | ") };
            println!("  {key} = {default}   ({choices})\n      {meaning}");
        }
    }
    Ok(Ending::Done)
}

/// The page docs/settings.md.
fn markdown(kinds: &[&Kind]) -> String {
    let mut page = String::from(
        "# Settings\n\nEvery setting of every kind of experiment, as `pudica settings --markdown` prints it. Set them on the command line \
         (`pudica run hahn/length-scaling model.d=64 seed=0..10`) or in a recipe of your own ([recipes.md](recipes.md)).\n",
    );
    for kind in kinds {
        page += &format!("\n## {}\n\nWhat runs of this kind are: {}.\n\n", kind.name, kind.about);
        page += "| setting | type | default | meaning |\n|---|---|---|---|\n";
        for SettingDoc { key, default, choices, meaning, kind } in kind.documentation() {
            let choices = match choices.is_empty() {
                true => kind.to_string(),
                false => choices.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", "),
            };
            page += &format!("| `{key}` | {choices} | `{default}` | {} |\n", meaning.replace('|', "\\|"));
        }
    }
    page
}
