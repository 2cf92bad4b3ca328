//! Whether less sensitive networks are more robust, flatter, better and faster: correlations over all trained networks.

use pudica_statistics::{Correlation, pearson, spearman};
use serde_json::{Value, json};

use super::Context;
use super::curves::{at_accuracy, common_accuracy};
use super::robustness::mean_accuracy;
use crate::figure::{Axis, Figure, Mark, Panel, Point};
use crate::findings::{Drawn, Table, head, number, row};
use crate::run::Run;

/// A number of a run; `None` where it was not measured.
type OfRun = Box<dyn Fn(&Run) -> Option<f64>>;

/// What sensitivity at the end is compared with: its name, its title, and how it is found.
fn others(context: &Context) -> [(&'static str, &'static str, OfRun); 7] {
    let level = common_accuracy(context.runs());
    let end = |name: &'static str| -> OfRun { Box::new(move |run| run.value(name)) };
    let gap = |run: &Run| Some(run.value("train_accuracy")? - run.value("test_accuracy")?);
    let epochs = move |run: &Run| Some(at_accuracy(run, level?)?.epoch);
    [
        ("test_accuracy", "test accuracy", end("test_accuracy")),
        ("generalisation_gap", "training minus test accuracy", Box::new(gap)),
        ("epochs_to_common_accuracy", "epochs to the common training accuracy", Box::new(epochs)),
        (
            "corrupted_accuracy",
            "mean accuracy on corruptions",
            Box::new(|run| mean_accuracy(run).map(|found| found.mean)),
        ),
        ("shop", "ShOp", end("shop")),
        ("shpred", "ShPred", end("shpred")),
        ("hessian_trace", "trace of the Hessian", end("hessian_trace")),
    ]
}

const NOTE: &str = "With 95 % intervals (Fisher's transformation), over all finished runs. Networks of one kind are alike, so they are fewer \
    independent points than they are networks.";
const PUBLISHED: &str = " The paper's summary states strong negative correlations of sensitivity with generalisation and with the speed of \
    convergence, without numbers.";

/// Scatters, a table and the numbers; `None` where fewer than three networks have anything to correlate.
pub fn correlations(context: &Context) -> Option<(Drawn, Table, Value)> {
    let (mut panels, mut rows, mut summary) = (Vec::new(), Vec::new(), Vec::new());
    for (name, title, of) in others(context) {
        let (mut all, mut marks) = (Vec::new(), Vec::new());
        for group in &context.groups {
            let point = |run: &Run| Some(run.point(run.value("sensitivity")?, of(run)?));
            let finished = group.runs.iter().filter(|run| run.is_finished());
            let points: Vec<Point> = finished.filter_map(|run| point(run)).collect();
            all.extend(points.iter().map(|point| (point.x, point.y)));
            marks.push(Mark::points(points, group.symbol().sized(4.0)));
        }
        let (linear, ranks) = (pearson(&all), spearman(&all));
        let (Some(r), Some(rho)) = (linear, ranks) else { continue };
        panels.push(Panel {
            title: format!("r = {:.2} [{:.2}, {:.2}], n = {}", r.r, r.low, r.high, r.points).replace('-', "−"),
            x: Axis::linear("sensitivity"),
            y: Axis::linear(title),
            marks,
        });
        let cell = |found: Correlation| {
            format!("{:.2} [{:.2}, {:.2}], p = {}", found.r, found.low, found.high, number(found.p)).replace('-', "−")
        };
        rows.push(row([title.into(), cell(r), cell(rho), all.len().to_string()]));
        summary.push(json!({"with": name, "pearson": r, "spearman": rho}));
    }
    if panels.is_empty() {
        return None;
    }
    let columns = panels.len().clamp(1, 2);
    let drawn = context.drawn(
        "correlations",
        "What goes with sensitivity",
        "Every point is a trained network: its sensitivity at the end against its test accuracy, its speed of convergence (epochs until the \
         largest training accuracy that all reached), its robustness and the sharpness of its minimum, as far as they were measured. Above \
         each panel: Pearson's correlation, its 95 % interval and the number of networks.",
        Figure { panels, columns, legend: context.legend(), ..Figure::default() },
    );
    let table = Table {
        title: "Correlations with sensitivity".into(),
        head: head(["sensitivity with", "Pearson", "Spearman", "networks"]),
        rows,
        note: format!("{NOTE}{}", if context.sweep.is_builtin() { PUBLISHED } else { "" }),
    };
    Some((drawn, table, Value::from(summary)))
}
