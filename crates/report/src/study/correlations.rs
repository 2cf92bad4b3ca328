//! Whether less sensitive networks are more robust, flatter, better and faster: correlations over all trained networks.

use pudica_lab::study::StudyRun;
use pudica_statistics::{Correlation, pearson, spearman};
use serde_json::{Value, json};

use super::curves::{at_accuracy, common_accuracy};
use super::group::{SENSITIVITY, measure};
use super::robustness::mean_accuracy;
use super::{Context, legend};
use crate::experiments::{Drawn, Table, number};
use crate::figure::{Axis, Figure, Mark, Panel};

/// What sensitivity at the end is compared with.
struct Other {
    name: &'static str,
    title: &'static str,
    of: OfRun,
}

/// A number of a run; `None` where it was not measured.
type OfRun = Box<dyn Fn(&StudyRun) -> Option<f64>>;

fn others(context: &Context) -> Vec<Other> {
    let level = common_accuracy(&context.groups);
    let end = |name: &'static str| move |run: &StudyRun| measure(run, name).map(|found| found.mean);
    vec![
        Other {
            name: "test_accuracy",
            title: "test accuracy",
            of: Box::new(|run| run.points.last().map(|point| point.test_accuracy)),
        },
        Other {
            name: "generalisation_gap",
            title: "training less test accuracy",
            of: Box::new(|run| run.points.last().map(|point| point.train_accuracy - point.test_accuracy)),
        },
        Other {
            name: "epochs_to_common_accuracy",
            title: "epochs to the common training accuracy",
            of: Box::new(move |run| Some(at_accuracy(run, level?)?.epoch)),
        },
        Other {
            name: "corrupted_accuracy",
            title: "mean accuracy on corruptions",
            of: Box::new(|run| mean_accuracy(run).map(|found| found.mean)),
        },
        Other { name: "shop", title: "ShOp", of: Box::new(end("shop")) },
        Other { name: "shpred", title: "ShPred", of: Box::new(end("shpred")) },
        Other { name: "hessian_trace", title: "trace of the Hessian", of: Box::new(end("hessian_trace")) },
    ]
}

/// Scatters, a table and the numbers; `None` where fewer than three networks have anything to correlate.
pub fn correlations(context: &Context) -> Option<(Drawn, Table, Value)> {
    let (mut panels, mut rows, mut summary) = (Vec::new(), Vec::new(), Vec::new());
    for other in others(context) {
        let (mut all, mut marks) = (Vec::new(), Vec::new());
        for group in &context.groups {
            let point = |run: &&StudyRun| {
                let finished = run.summary.is_some();
                let sensitivity = run.points.last().and_then(SENSITIVITY).filter(|_| finished)?.mean;
                Some((sensitivity, (other.of)(run)?, format!("{} seed {}", group.label, run.config.seed)))
            };
            let points: Vec<(f64, f64, String)> = group.runs.iter().filter_map(point).collect();
            all.extend(points.iter().map(|(x, y, _)| (*x, *y)));
            marks.push(Mark::Points { points, style: group.symbol().sized(4.0) });
        }
        let (linear, ranks) = (pearson(&all), spearman(&all));
        let (Some(r), Some(rho)) = (linear, ranks) else { continue };
        panels.push(Panel {
            title: format!("r = {:.2}", r.r).replace('-', "−"),
            x: Axis::linear("sensitivity"),
            y: Axis::linear(other.title),
            marks,
        });
        let cell = |found: Correlation| {
            format!("{:.2} [{:.2}, {:.2}], p = {}", found.r, found.low, found.high, number(found.p)).replace('-', "−")
        };
        rows.push(vec![other.title.into(), cell(r), cell(rho), all.len().to_string()]);
        summary.push(json!({"with": other.name, "pearson": r, "spearman": rho}));
    }
    if panels.is_empty() {
        return None;
    }
    let columns = panels.len().clamp(1, 3);
    let drawn = context.drawn(
        "correlations",
        "What goes with sensitivity",
        "Every point is a trained network: its sensitivity at the end against its test accuracy, its speed of convergence (epochs until the \
         largest training accuracy that all reached), its robustness and the sharpness of its minimum, as far as they were measured.",
        Figure { panels, columns, legend: legend(&context.groups), ..Figure::default() },
    );
    let table = Table {
        title: "Correlations with sensitivity".into(),
        head: ["sensitivity with", "Pearson", "Spearman", "networks"].map(String::from).into(),
        rows,
        note: "With 95 % intervals (Fisher's transformation), over all finished runs of this study. Networks of one kind are alike, so they are fewer \
               independent points than they are networks. The paper's summary states strong negative correlations of sensitivity with \
               generalisation and with the speed of convergence, without numbers."
            .into(),
    };
    Some((drawn, table, Value::from(summary)))
}
