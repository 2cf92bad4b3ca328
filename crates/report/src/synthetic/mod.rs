//! The report of `vasudeva/synthetic`: which tokens one attention layer uses.

mod figures;

use std::fmt::Write;
use std::path::{Path, PathBuf};

use pudica_data::TokenTask;
use pudica_lab::synthetic::{NAME, Point, PredictorRow, SyntheticPlan, Trained, read_synthetic};
use pudica_lab::{Error, Result};
use pudica_statistics::{Mean, mean};
use pudica_theory::tokens::Predictor;
use serde_json::{Map, Value, json};

use crate::experiments::{Findings, Table, number};
use crate::published::predictor_sensitivity;
use crate::{figure_files, page, write_text};

/// What was written.
#[derive(Clone, Debug)]
pub struct SyntheticReport {
    /// The page to open.
    pub page: PathBuf,
    /// The figures, as SVG; a PNG lies beside each.
    pub figures: Vec<PathBuf>,
    /// Runs made, of those planned.
    pub runs: (usize, usize),
}

/// Writes `results.csv`, `summary.json`, `figures/` and `report.html` into the folder of a study, finished or not.
pub fn write_synthetic(folder: &Path) -> Result<SyntheticReport> {
    let (plan, predictors, trained) = read_synthetic(folder)?;
    let (made, planned) = (trained.len(), plan.settings.runs()?.len());
    let seconds: f64 = trained.iter().map(|run| run.seconds).sum();
    let settings = settings(&plan, &predictors, trained)?;
    let findings = Findings {
        figures: figures::draw(&plan, &settings),
        tables: vec![predictor_table(&settings), trained_table(&settings)],
        summary: Map::new(),
    };
    let summary = json!({
        "recipe": NAME, "scale": plan.scale, "overrides": plan.overrides, "command": plan.command(),
        "runs": {"planned": planned, "made": made}, "seconds_of_computing": seconds, "settings": plan.settings,
        "predictors": predictors, "trained": settings.iter().map(Setting::summary).collect::<Vec<_>>(),
    });
    write_text(&folder.join("summary.json"), &format!("{summary:#}\n"))?;
    write_text(&folder.join("results.csv"), &all_points(&settings))?;
    let figures = figure_files(folder, &findings.figures)?;
    let page = folder.join("report.html");
    write_text(&page, &html(&plan, &findings, (made, planned), seconds))?;
    Ok(SyntheticReport { page, figures, runs: (made, planned) })
}

/// A data setting: its two predictors and its runs.
struct Setting {
    task: TokenTask,
    sparse: PredictorRow,
    frequent: PredictorRow,
    runs: Vec<Trained>,
}

fn settings(plan: &SyntheticPlan, predictors: &[PredictorRow], trained: Vec<Trained>) -> Result<Vec<Setting>> {
    let mut settings = Vec::new();
    for task in plan.settings.tasks()? {
        let find = |predictor: Predictor| {
            let found = predictors.iter().find(|row| row.task == task && row.predictor == predictor);
            found.cloned().ok_or_else(|| Error::Folder {
                path: "predictors.json".into(),
                problem: format!("is of other data; run `{}` again", plan.command()),
            })
        };
        let runs = trained.iter().filter(|one| one.run.task == task).cloned().collect();
        settings.push(Setting { task, sparse: find(Predictor::Sparse)?, frequent: find(Predictor::Frequent)?, runs });
    }
    Ok(settings)
}

impl Setting {
    fn label(&self) -> String {
        let TokenTask { n_s, n_f, n_d, m, .. } = self.task;
        format!("({n_s}, {n_f}, {n_d}, {m})")
    }

    /// Whether the predictor that uses sparse tokens is the less sensitive one.
    fn sparse_is_lower(&self) -> bool {
        self.sparse.exact < self.frequent.exact
    }

    fn all_points(&self) -> impl Iterator<Item = &Point> {
        self.runs.iter().flat_map(|run| &run.points)
    }

    /// The mean over runs of a quantity, at each measured epoch.
    fn means(&self, quantity: Quantity) -> Vec<(usize, Mean)> {
        let epochs = self.runs.first().map(|run| run.points.iter().map(|point| point.epoch).collect::<Vec<_>>());
        let at = |epoch: usize| {
            let values: Vec<f64> = self.all_points().filter(|point| point.epoch == epoch).map(quantity).collect();
            mean(&values).map(|mean| (epoch, mean))
        };
        epochs.unwrap_or_default().into_iter().filter_map(at).collect()
    }

    /// The mean at the end.
    fn last(&self, quantity: Quantity) -> Option<Mean> {
        self.means(quantity).last().map(|(_, mean)| *mean)
    }

    fn summary(&self) -> Value {
        json!({
            "data": self.task, "less_sensitive_predictor": if self.sparse_is_lower() { "sparse" } else { "frequent" },
            "final": FINAL.iter().map(|(name, quantity)| (name.to_string(), json!(self.last(*quantity)))).collect::<Map<_, _>>(),
        })
    }
}

/// A number of a measurement.
type Quantity = fn(&Point) -> f64;

/// What is told of the end of training.
const FINAL: [(&str, Quantity); 11] = [
    ("train_loss", |point| point.train_loss),
    ("train_accuracy", |point| point.train_accuracy),
    ("test_accuracy", |point| point.test_accuracy),
    ("ood_accuracy", |point| point.ood_accuracy),
    ("alignment_sparse", |point| point.alignment.sparse),
    ("alignment_frequent", |point| point.alignment.frequent),
    ("alignment_irrelevant", |point| point.alignment.irrelevant),
    ("attention_sparse", |point| point.attention.sparse),
    ("attention_frequent", |point| point.attention.frequent),
    ("attention_irrelevant", |point| point.attention.irrelevant),
    ("sensitivity", |point| point.sensitivity.mean),
];

/// Tables 1 and 3.
fn predictor_table(settings: &[Setting]) -> Table {
    let mut rows = Vec::new();
    for setting in settings {
        for (name, row) in [("sparse only", &setting.sparse), ("frequent only", &setting.frequent)] {
            let published = predictor_sensitivity(&setting.task);
            let published = published.map(|(sparse, frequent)| match row.predictor {
                Predictor::Sparse => sparse,
                Predictor::Frequent => frequent,
            });
            let error = row.simulated.std_error.map_or(String::new(), |error| format!(" ± {}", number(error)));
            rows.push(vec![
                setting.label(),
                setting.task.vocabulary.to_string(),
                name.into(),
                published.map_or("–".into(), |value| format!("{value}")),
                format!("{:.4}", row.exact),
                format!("{}{error}", number(row.simulated.mean)),
                format!("{:.4}", row.exact_ties_keep),
            ]);
        }
    }
    Table {
        title: "Tables 1 and 3: sensitivity of the predictors that use one kind of token".into(),
        head: ["(n_s, n_f, n_d, m)", "M", "predictor", "published", "closed form", "simulated", "closed form, ties kept"]
            .map(String::from)
            .into(),
        rows,
        note: "Closed form: Definition 4.3, where sign(0) is neither label, so that a tie is a change; the last column does not count ties. \
               Simulated: random sequences and replacements, ± one standard error over sequences. The paper does not state M: 59 gives \
               its first half to every digit; its 0.0339 would need M = 69, too few for m = 36."
            .into(),
    }
}

fn trained_table(settings: &[Setting]) -> Table {
    let shown = [3, 1, 2, 4, 5, 7, 8, 9, 10].map(|place: usize| FINAL[place]);
    let cell = |mean: Option<Mean>| match mean {
        Some(mean) if mean.count > 1 => format!("{} ± {}", number(mean.mean), number(mean.std_error)),
        Some(mean) => number(mean.mean),
        None => "–".into(),
    };
    let row = |setting: &Setting| {
        let lower = if setting.sparse_is_lower() { "sparse" } else { "frequent" };
        let cells = shown.iter().map(|(_, quantity)| cell(setting.last(*quantity)));
        [setting.label(), lower.into()].into_iter().chain(cells).chain([setting.runs.len().to_string()]).collect()
    };
    let names = shown.iter().map(|(name, _)| name.replace('_', " ").replace("ood", "OOD"));
    let head = ["(n_s, n_f, n_d, m)".into(), "less sensitive".into()].into_iter().chain(names).chain(["runs".into()]);
    Table {
        title: "The layer at the end of training".into(),
        head: head.collect(),
        rows: settings.iter().map(row).collect(),
        note: "Means over runs ± one standard error. OOD accuracy is 0 for a layer that uses sparse tokens only and 1 for one that uses \
               frequent tokens only. Published: near 0 where sparse tokens are less sensitive, high where frequent ones are; alignment \
               near 1 and most attention on the tokens that are used."
            .into(),
    }
}

/// A row for each run and measured epoch.
fn all_points(settings: &[Setting]) -> String {
    let names: Vec<&str> = FINAL.iter().map(|(name, _)| *name).collect();
    let mut text = format!("n_s,n_f,n_d,m,vocabulary,length,seed,epoch,{},sensitivity_std_error\n", names.join(","));
    for setting in settings {
        let TokenTask { length, vocabulary, n_s, n_f, n_d, m } = setting.task;
        for run in &setting.runs {
            for point in &run.points {
                let (seed, epoch) = (run.run.seed, point.epoch);
                let _ = write!(text, "{n_s},{n_f},{n_d},{m},{vocabulary},{length},{seed},{epoch}");
                for (_, quantity) in FINAL {
                    let _ = write!(text, ",{}", quantity(point));
                }
                let error = point.sensitivity.std_error.map(|error| error.to_string()).unwrap_or_default();
                let _ = writeln!(text, ",{error}");
            }
        }
    }
    text
}

fn html(plan: &SyntheticPlan, findings: &Findings, (made, planned): (usize, usize), seconds: f64) -> String {
    let paper = plan.scale == "paper" && plan.overrides.is_empty();
    page::whole(&page::Sheet {
        heading: page::Heading {
            title: &plan.title,
            source: &plan.source,
            about: &plan.about,
            badge: if paper { "paper" } else { "quick" },
            scale: &plan.scale,
            scale_words: if paper {
                "All published settings. The paper does not state M, the loss, the learning rate, the start, the epochs and the number of runs: those are ours."
            } else {
                "Fewer settings, runs or epochs than the paper: compare trends with the published ones, not absolute values."
            },
        },
        counts: vec![
            (planned.to_string(), "runs planned"),
            (made.to_string(), "made"),
            (format!("{:.1}", seconds / 60.0), "minutes of computing"),
        ],
        findings,
        problems: Vec::new(),
        settings: page::settings_table(&plan.settings),
        repeat: page::Repeat {
            command: &plan.command(),
            program: &plan.program,
            recipe_text: &plan.recipe_text,
            folder: "predictors.json, runs/ (the curves of every run)",
        },
    })
}
