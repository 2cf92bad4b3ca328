//! What a sweep folder holds, whatever its kind: to be replaced by `pudica_lab::store`, which will offer exactly this.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use pudica_lab::config::Settings;
use pudica_lab::spectra::{Measured, is_spectra_folder, read_spectra};
use pudica_lab::store::RunFolder;
use pudica_lab::study::read_study;
use pudica_lab::synthetic::{ByKind, Point, PredictorRow, Trained, is_synthetic_folder, read_synthetic};
use pudica_lab::table::{TablePlan, TableSettings};
use pudica_lab::{Error, Outcome, Result, RunSummary, SweepFolder};
use pudica_theory::spectra::degrees::{mean_degree, share_up_to};
use pudica_theory::spectra::{Architecture, Family, Kernel, cube_spectrum, infinite_spectrum};
use pudica_theory::tokens::Predictor;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What was asked for, as stored in `sweep.json`.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct SweepRecord {
    pub program: String,
    pub recipe: String,
    #[serde(default)]
    pub kind: String,
    pub title: String,
    pub source: String,
    pub about: String,
    pub figures: String,
    pub scale: String,
    pub overrides: Vec<String>,
    pub command: String,
    pub recipe_text: String,
    pub runs: Vec<RunRecord>,
}

/// A run's place in the sweep.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct RunRecord {
    pub id: String,
    pub sweep: String,
    #[serde(default)]
    pub parent: Option<String>,
}

/// A run that has at least begun.
pub struct Run {
    pub record: RunRecord,
    /// What differs from the other runs of its sweep.
    pub label: String,
    pub settings: Settings,
    pub summary: Option<RunSummary>,
    folder: RunFolder,
    /// Lines of a folder of an older layout, which has no metrics.jsonl.
    lines: Option<Vec<Map<String, Value>>>,
}

impl Run {
    /// The lines of `metrics.jsonl`.
    pub fn lines(&self) -> Result<Vec<Map<String, Value>>> {
        match &self.lines {
            Some(lines) => Ok(lines.clone()),
            None => self.folder.metrics(),
        }
    }
}

/// A sweep and its runs that have at least begun, in the order of the plan.
pub struct Sweep {
    pub record: SweepRecord,
    pub runs: Vec<Run>,
}

impl Sweep {
    pub fn read(folder: &Path) -> Result<Sweep> {
        let mut sweep = if is_synthetic_folder(folder) {
            old_synthetic(folder)?
        } else if is_spectra_folder(folder) {
            old_spectra(folder)?
        } else {
            let record: SweepRecord = read_json(&folder.join("sweep.json"))?.ok_or_else(|| Error::Folder {
                path: folder.into(),
                problem: "is not a sweep folder (it has no sweep.json); give the folder that `pudica run` named".into(),
            })?;
            let mut runs = Vec::new();
            for record in &record.runs {
                let folder = RunFolder::new(folder.join("runs").join(&record.id));
                if let Some(config) = read_json::<Value>(&folder.path().join("config.json"))? {
                    runs.push(Run {
                        record: record.clone(),
                        label: String::new(),
                        settings: Settings::of(&config),
                        summary: read_json(&folder.path().join("summary.json"))?,
                        folder,
                        lines: None,
                    });
                }
            }
            Sweep { record, runs }
        };
        name_runs(&mut sweep.runs);
        Ok(sweep)
    }
}

/// Whether a recipe is one of ours: `pudica_lab::recipe::builtin`, and the two that are not there yet.
pub fn is_builtin(recipe: &str) -> bool {
    let odd = [pudica_lab::synthetic::NAME, pudica_lab::spectra::NAME];
    pudica_lab::recipe::builtin(recipe).is_some() || odd.contains(&recipe)
}

fn name_runs(runs: &mut [Run]) {
    let text = |run: &Run, key: &str| {
        run.settings.get(key).map_or(String::new(), |value| value.as_str().map_or(value.to_string(), String::from))
    };
    let keys = runs.first().map(|run| run.settings.keys()).unwrap_or_default();
    let mut labels = vec![String::new(); runs.len()];
    for key in keys {
        let values: Vec<String> = runs.iter().map(|run| text(run, &key)).collect();
        let mut first: HashMap<&str, &str> = HashMap::new();
        let mut swept: HashSet<&str> = HashSet::new();
        for (run, value) in runs.iter().zip(&values) {
            if *first.entry(&run.record.sweep).or_insert(value) != value {
                swept.insert(&run.record.sweep);
            }
        }
        for ((run, value), label) in runs.iter().zip(&values).zip(&mut labels) {
            if swept.contains(run.record.sweep.as_str()) {
                *label += &format!(" {key}={value}");
            }
        }
    }
    for (run, label) in runs.iter_mut().zip(labels) {
        run.label = format!("{}{label}", run.record.sweep);
    }
}

/// Writes `results.csv` (and more, as today) into `folder`.
pub fn write_results(folder: &Path, sweep: &Sweep) -> Result<()> {
    match sweep.record.kind.as_str() {
        "" | "boolean" => pudica_lab::write_results(folder, &SweepFolder::open(folder)?.runs()?),
        "study" => pudica_lab::write_study_results(folder, &read_study(folder)?),
        _ => {
            let mut text = String::new();
            let ended = || sweep.runs.iter().filter_map(|run| Some((run, run.summary.as_ref()?)));
            if let Some((run, summary)) = ended().next() {
                let names = run.settings.keys().into_iter().chain(summary.measures.keys().cloned());
                let _ = writeln!(text, "run_id,sweep,{}", names.collect::<Vec<_>>().join(","));
            }
            for (run, summary) in ended() {
                let settings = run.settings.keys();
                let cells =
                    settings.iter().filter_map(|key| run.settings.get(key).ok()).chain(summary.measures.values());
                let cells: Vec<String> =
                    cells.map(|cell| cell.as_str().map_or(cell.to_string(), String::from)).collect();
                let _ = writeln!(text, "{},{},{}", run.record.id, run.record.sweep, cells.join(","));
            }
            std::fs::write(folder.join("results.csv"), text).map_err(|source| Error::Io {
                action: "write",
                path: folder.join("results.csv"),
                source,
            })
        }
    }
}

fn read_json<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(Error::Io { action: "read", path: path.into(), source }),
    };
    serde_json::from_str(&text)
        .map(Some)
        .map_err(|error| Error::Damaged { path: path.into(), problem: error.to_string() })
}

// From here on: the folders of `vasudeva/synthetic` and `vasudeva/spectra` as they are today, which end with `kinds/tokens` and
// `kinds/spectra`.

fn old_record<S: TableSettings>(plan: &TablePlan<S>, kind: &str, runs: Vec<RunRecord>) -> SweepRecord {
    SweepRecord {
        program: plan.program.clone(),
        recipe: S::NAME.into(),
        kind: kind.into(),
        title: plan.title.clone(),
        source: plan.source.clone(),
        about: plan.about.clone(),
        figures: kind.into(),
        scale: plan.scale.clone(),
        overrides: plan.overrides.clone(),
        command: plan.command(),
        recipe_text: plan.recipe_text.clone(),
        runs,
    }
}

fn old_run(
    record: RunRecord,
    settings: &Value,
    seconds: f64,
    measures: Map<String, Value>,
    detail: Map<String, Value>,
    lines: Vec<Map<String, Value>>,
) -> Run {
    let summary = RunSummary {
        format: pudica_lab::store::FORMAT,
        id: record.id.clone(),
        outcome: Outcome::Finished,
        problem: None,
        steps: 0,
        converged: true,
        seconds,
        device: "cpu".into(),
        measures,
        detail,
    };
    let folder = RunFolder::new(PathBuf::new());
    let settings = Settings::of(settings);
    Run { record, label: String::new(), settings, summary: Some(summary), folder, lines: Some(lines) }
}

fn old_synthetic(folder: &Path) -> Result<Sweep> {
    let (plan, predictors, trained) = read_synthetic(folder)?;
    let data = |task: &pudica_data::TokenTask| {
        format!("{}:{}:{}:{}:{}", task.n_s, task.n_f, task.n_d, task.m, task.vocabulary)
    };
    let record = |task: &pudica_data::TokenTask, seed: u64| RunRecord {
        id: format!("{}-{seed}", data(task).replace(':', "-")),
        sweep: "all".into(),
        parent: None,
    };
    let line = |point: &Point| {
        let mut line = json!({"step": point.epoch, "epoch": point.epoch, "train_loss": point.train_loss,
            "train_accuracy": point.train_accuracy, "test_accuracy": point.test_accuracy, "ood_accuracy": point.ood_accuracy,
            "sensitivity": point.sensitivity.mean, "sensitivity_std_error": point.sensitivity.std_error});
        for (name, ByKind { sparse, frequent, irrelevant }) in
            [("alignment", point.alignment), ("attention", point.attention)]
        {
            line[format!("{name}_sparse")] = sparse.into();
            line[format!("{name}_frequent")] = frequent.into();
            line[format!("{name}_irrelevant")] = irrelevant.into();
        }
        line.as_object().cloned().unwrap_or_default()
    };
    let run = |one: &Trained| {
        let lines: Vec<_> = one.points.iter().map(line).collect();
        let mut measures = lines.last().cloned().unwrap_or_default();
        for PredictorRow { predictor, exact, exact_ties_keep, simulated, .. } in
            predictors.iter().filter(|row| row.task == one.run.task)
        {
            let name = if *predictor == Predictor::Sparse { "predictor_sparse" } else { "predictor_frequent" };
            measures.insert(name.into(), json!(exact));
            measures.insert(format!("{name}_ties_keep"), json!(exact_ties_keep));
            measures.insert(format!("{name}_simulated"), json!(simulated.mean));
            measures.insert(format!("{name}_simulated_std_error"), json!(simulated.std_error));
        }
        let settings = json!({"seed": one.run.seed, "data": data(&one.run.task), "length": one.run.task.length});
        old_run(record(&one.run.task, one.run.seed), &settings, one.seconds, measures, Map::new(), lines)
    };
    let records = plan.settings.runs()?.iter().map(|run| record(&run.task, run.seed)).collect();
    Ok(Sweep { record: old_record(&plan, "tokens", records), runs: trained.iter().map(run).collect() })
}

fn old_spectra(folder: &Path) -> Result<Sweep> {
    let (plan, measured) = read_spectra(folder)?;
    let record = |specimen: &pudica_lab::spectra::Specimen| RunRecord {
        id: format!("{}-{}-{}-{}", specimen.network.name, specimen.network.depth, specimen.size.width, specimen.seed),
        sweep: "all".into(),
        parent: None,
    };
    let run = |one: &Measured| {
        let Architecture { name, depth, tokens, .. } = &one.specimen.network;
        let size = one.specimen.size;
        let settings = json!({"seed": one.specimen.seed, "dim": plan.settings.dim, "architecture": name, "depth": depth,
            "width": size.width, "heads": size.heads, "tokens": tokens});
        let (mut measures, mut infinite) = (Map::new(), Map::new());
        for (kernel, name) in [(Kernel::Ck, "ck"), (Kernel::Ntk, "ntk")] {
            let found = one.spectrum.kernel(kernel);
            measures.insert(format!("{name}_mean_degree"), json!(mean_degree(&found.fractional_variance)));
            for k in [1, 2, 3] {
                let share = share_up_to(&found.fractional_variance, k);
                measures.insert(format!("{name}_low_degree_{k}"), json!(share));
            }
            measures.extend(found.off_diagonal.map(|share| (format!("{name}_off_diagonal"), json!(share))));
            let limit = match one.specimen.network.family {
                Family::Mlp => {
                    infinite_spectrum(&one.specimen.network, kernel).ok().map(|found| found.fractional_variance)
                }
                Family::LinearAttention => {
                    cube_spectrum(&one.specimen.network, kernel).ok().map(|found| found.fractional_variance)
                }
                _ => None,
            };
            if let Some(limit) = &limit {
                measures.insert(format!("infinite_{name}_low_degree_2"), json!(share_up_to(limit, 2)));
                measures.insert(format!("infinite_{name}_mean_degree"), json!(mean_degree(limit)));
            }
            infinite.insert(name.into(), json!(limit));
        }
        let parts = [("ck", json!(one.spectrum.ck)), ("ntk", json!(one.spectrum.ntk)), ("infinite", infinite.into())];
        let detail = parts.map(|(name, part)| (name.to_string(), part)).into_iter().collect();
        old_run(record(&one.specimen), &settings, one.seconds, measures, detail, Vec::new())
    };
    let records = plan.settings.specimens()?.iter().map(record).collect();
    Ok(Sweep { record: old_record(&plan, "spectra", records), runs: measured.iter().map(run).collect() })
}
