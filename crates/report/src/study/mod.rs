//! The report of a study of classifiers: whatever it measured, drawn and compared with what was published.
//!
//! - [`group`]: runs that differ in their seed alone; [`curves`]: training, sensitivity, and both at equal training accuracy.
//! - [`sites`]: maps of patches, profiles of positions; [`robustness`]: corruptions and attacks; [`sharpness`]: Table 2.
//! - [`correlations`]: what goes with sensitivity over all networks.

mod correlations;
mod curves;
mod group;
mod robustness;
mod sharpness;
mod sites;

use std::path::Path;

use pudica_lab::study::{Study, StudyRun, read_study};
use pudica_lab::{Configuration, Result, Tally, write_study_results};
use serde_json::{Map, Value, json};

use self::group::{
    Group, SENSITIVITY, TEST_ACCURACY, TEST_LOSS, TRAIN_ACCURACY, TRAIN_LOSS, as_json, groups, measures,
};
use crate::experiments::{Drawn, Findings};
use crate::figure::{Figure, Style};
use crate::published::study_figure;
use crate::sweep::tally;
use crate::{Report, figure_files, page, write_text};

/// Writes `results.csv` and `curves.csv` (both also as parquet), `summary.json`, `figures/` and `report.html` into the folder of a study,
/// finished or not.
pub fn write_study(folder: &Path) -> Result<Report> {
    let study = read_study(folder)?;
    let tally = tally(study.record.runs.len(), study.runs.iter().filter_map(|run| run.summary.as_ref()));
    let context = Context { study: &study, tally: &tally, groups: groups(&study) };
    let findings = findings(&context);
    let mut summary = json!({
        "recipe": study.record.recipe, "scale": study.record.scale, "overrides": study.record.overrides,
        "command": study.record.command,
        "runs": {"planned": tally.runs, "finished": tally.converged, "failed": tally.failed, "remaining": tally.remaining},
        "seconds_of_computing": tally.seconds,
    });
    if let Value::Object(summary) = &mut summary {
        summary.extend(findings.summary.clone());
    }
    write_text(&folder.join("summary.json"), &format!("{summary:#}\n"))?;
    write_study_results(folder, &study)?;
    let figures = figure_files(folder, &findings.figures)?;
    let page = folder.join("report.html");
    write_text(&page, &html(&context, &findings))?;
    Ok(Report { page, figures, tally })
}

/// What every part of the report knows.
struct Context<'a> {
    study: &'a Study,
    tally: &'a Tally,
    groups: Vec<Group<'a>>,
}

impl Context<'_> {
    /// A figure with its place in the paper, and the small print that all figures of a study have.
    fn drawn(&self, file: &str, title: &str, caption: &str, figure: Figure) -> Drawn {
        let note = format!(
            "{} scale · {} of {} runs finished",
            self.study.record.scale, self.tally.converged, self.tally.runs
        );
        let (number, trend) = study_figure(&self.study.record.recipe, file);
        let title = if number.is_empty() { title.to_string() } else { format!("{number}: {}", title.to_lowercase()) };
        let figure = Figure { note, ..figure };
        Drawn { file: file.into(), title, caption: caption.into(), published: trend.into(), figure }
    }

    /// Whether published values of whole networks stand beside ours: in ablations, networks differ from those.
    fn shows_published(&self) -> bool {
        self.study.record.figures != "ablation"
    }
}

fn legend(groups: &[Group]) -> Vec<(String, Style)> {
    groups.iter().map(|group| (group.label.clone(), group.symbol())).collect()
}

/// Everything that was measured, in the paper's order.
fn findings(context: &Context) -> Findings {
    let mut findings = Findings::default();
    findings.figures.push(curves::training(context));
    findings.figures.extend(curves::sensitivity(context));
    findings.figures.extend(sites::patches(context));
    findings.figures.extend(sites::positions(context));
    findings.figures.extend(robustness::figures(context));
    findings.summary.insert("networks".into(), context.groups.iter().map(network).collect());
    if let Some((table, matched)) = curves::matched_table(context) {
        findings.tables.push(table);
        findings.summary.insert("at_equal_training_accuracy".into(), matched);
    }
    findings.tables.extend(sharpness::table(context));
    findings.tables.extend(robustness::attacks(context));
    if let Some((drawn, table, correlated)) = correlations::correlations(context) {
        findings.figures.push(drawn);
        findings.tables.push(table);
        findings.summary.insert("correlations_with_sensitivity".into(), correlated);
    }
    findings
}

/// A group for summary.json: its settings and its numbers at the end.
fn network(group: &Group) -> Value {
    let last = [
        ("train_accuracy", TRAIN_ACCURACY),
        ("train_loss", TRAIN_LOSS),
        ("test_accuracy", TEST_ACCURACY),
        ("test_loss", TEST_LOSS),
        ("sensitivity", SENSITIVITY),
    ];
    let mut at_end: Map<String, Value> =
        last.into_iter().map(|(name, of)| (name.to_string(), as_json(group.last(of)))).collect();
    for name in measures(std::slice::from_ref(group), "") {
        if !at_end.contains_key(&name) && name != "epoch" {
            at_end.insert(name.clone(), as_json(group.measure(&name)));
        }
    }
    json!({
        "label": group.label, "settings": group.config, "final": at_end,
        "runs": group.runs.iter().map(|run| json!({"id": run.id, "seed": run.config.seed})).collect::<Vec<_>>(),
    })
}

fn html(context: &Context, findings: &Findings) -> String {
    let (record, tally, runs) = (&context.study.record, context.tally, &context.study.runs);
    let builtin = pudica_lab::recipe::builtin(&record.recipe).is_some();
    let paper = builtin && record.scale == "paper" && record.overrides.is_empty();
    let problem = |run: &StudyRun| {
        let problem = run.summary.as_ref()?.problem.clone()?;
        Some((format!("{} ({})", run.config.label(), run.id), problem))
    };
    page::whole(&page::Sheet {
        heading: page::Heading {
            title: &record.title,
            source: &record.source,
            about: &record.about,
            badge: if paper { "paper" } else { "quick" },
            scale: &record.scale,
            scale_words: match (builtin, paper, record.scale.as_str()) {
                (true, true, _) => "The published settings, nothing changed; the number of runs is ours.",
                (true, false, "paper") => "The published settings, changed by the overrides in the command below.",
                (true, ..) => {
                    "Less data, fewer inputs touched, fewer epochs or smaller networks than published (all in the settings below): compare trends with the published ones, not absolute values."
                }
                (false, ..) => "",
            },
        },
        counts: vec![
            (tally.runs.to_string(), "runs planned"),
            (tally.converged.to_string(), "finished"),
            (tally.failed.to_string(), "failed"),
            (tally.remaining.to_string(), "not finished yet"),
            (format!("{:.1}", tally.seconds / 60.0), "minutes of computing"),
        ],
        findings,
        problems: runs.iter().filter_map(problem).collect(),
        settings: page::settings_of(&runs.iter().map(|run| run.config.settings()).collect::<Vec<_>>()),
        repeat: page::Repeat {
            command: &record.command,
            program: &record.program,
            recipe_text: &record.recipe_text,
            folder: "curves.csv (every evaluation; both tables also as .parquet), runs/ (settings, metrics, weights of every run)",
        },
    })
}
