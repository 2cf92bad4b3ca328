//! Classifiers of images and texts: whatever was measured, drawn and compared with what was published.
//!
//! - [`curves`]: training, sensitivity, and both at equal training accuracy.
//! - [`sites`]: maps of patches, profiles of positions; [`robustness`]: corruptions and attacks; [`sharpness`]: Table 2.
//! - [`correlations`]: what goes with sensitivity over all networks.

mod claims;
mod correlations;
mod curves;
mod data;
mod robustness;
mod sharpness;
mod sites;

use serde_json::{Map, Value, json};

use crate::figure::{Figure, Style};
use crate::findings::{Drawn, Findings, ScaleWords};
use crate::group::{Group, measure_names};
use crate::published::classifier_figure;
use crate::run::Run;
use crate::sweep::Sweep;

/// Networks of the published kinds: published values stand beside ours.
pub fn comparison(sweep: &Sweep) -> Findings {
    findings(sweep, true)
}

/// Networks that differ from those, by purpose.
pub fn ablation(sweep: &Sweep) -> Findings {
    findings(sweep, false)
}

/// What every part of the report knows.
struct Context<'a> {
    recipe: &'a str,
    groups: Vec<Group<'a>>,
    /// Whether published values of whole networks stand beside ours.
    shows_published: bool,
    sweep: &'a Sweep,
}

impl Context<'_> {
    /// A figure with its place in the paper.
    fn drawn(&self, file: &str, title: &str, caption: &str, figure: Figure) -> Drawn {
        let (number, trend) = classifier_figure(self.recipe, file);
        Drawn { number: number.into(), ..Drawn::new(file, title, caption, trend, figure) }
    }

    /// All runs that have numbers to show.
    fn runs(&self) -> impl Iterator<Item = &Run> {
        self.groups.iter().flat_map(|group| group.runs.iter().copied())
    }

    fn legend(&self) -> Vec<(String, Style)> {
        self.groups.iter().map(|group| (group.label.clone(), group.symbol())).collect()
    }
}

/// Everything that was measured, in the paper's order.
fn findings(sweep: &Sweep, shows_published: bool) -> Findings {
    let groups = sweep.groups(|run| run.record.sweep.clone());
    let shows_published = shows_published && sweep.is_builtin();
    let context = Context { recipe: &sweep.record.recipe, groups, shows_published, sweep };
    let scale = ScaleWords {
        paper: "The published settings, nothing changed; the number of runs is ours.",
        other: "A smoke test: less data, fewer inputs touched, fewer epochs or smaller networks than published (all in the settings below). Where it disagrees with the paper, that may be its size.",
    };
    let mut findings = Findings { scale, ..Findings::default() };
    findings.figures.push(curves::training(&context));
    findings.figures.extend(curves::sensitivity(&context));
    findings.figures.extend(sites::patches(&context));
    findings.figures.extend(sites::positions(&context));
    findings.figures.extend(robustness::figures(&context));
    findings.summary.insert("networks".into(), context.groups.iter().map(network).collect());
    if let Some((table, matched)) = curves::matched_table(&context) {
        findings.tables.push(table);
        findings.summary.insert("at_equal_training_accuracy".into(), matched);
    }
    findings.tables.extend(sharpness::table(&context));
    findings.tables.extend(robustness::attacks(&context));
    findings.tables.extend(data::table(&context));
    if let Some((drawn, table, correlated)) = correlations::correlations(&context) {
        findings.figures.push(drawn);
        findings.tables.push(table);
        findings.summary.insert("correlations_with_sensitivity".into(), correlated);
    }
    findings.claims = claims::claims(&context);
    findings
}

/// A group for summary.json: its settings and its numbers at the end.
fn network(group: &Group) -> Value {
    let logged = ["train_accuracy", "train_loss", "test_accuracy", "test_loss", "sensitivity"];
    let measures = measure_names(group.runs.iter().copied(), "").into_iter();
    let measures = measures.filter(|name| *name != "epoch" && !logged.contains(name));
    let at_end: Map<String, Value> =
        logged.into_iter().chain(measures).map(|name| (name.to_string(), json!(group.value(name)))).collect();
    let runs = group.runs.iter().map(|run| json!({"id": run.record.id, "seed": run.settings.get("seed")}));
    json!({"label": group.label, "settings": group.settings(), "final": at_end, "runs": runs.collect::<Vec<_>>()})
}
