//! Table 2: how far noise on the weights moves a trained network, and the loss's Hessian.

use super::Context;
use crate::findings::{Cell, Table, with_interval};
use crate::published::weight_noise;

/// The table; `None` where sharpness was not measured.
pub fn table(context: &Context) -> Option<Table> {
    let measured = |name: &str| context.groups.iter().any(|group| group.value(name).is_some());
    let columns: Vec<(&str, &str)> = [
        ("shop", "ShOp (sum over classes)"),
        ("shop_l2", "ShOp (Euclidean)"),
        ("shpred", "ShPred"),
        ("hessian_trace", "trace of the Hessian"),
        ("hessian_top", "its largest eigenvalue"),
    ]
    .into_iter()
    .filter(|(name, _)| measured(name))
    .collect();
    if columns.is_empty() {
        return None;
    }
    let shows_published = measured("shop") && context.sweep.is_builtin();
    let mut rows = Vec::new();
    for group in &context.groups {
        let names = ["sensitivity", "train_accuracy"].into_iter().chain(columns.iter().map(|(name, _)| *name));
        let mut row = vec![Cell::from(group.label.clone())];
        row.extend(names.map(|name| with_interval(group.shown(name))));
        if shows_published {
            let published = weight_noise(group.first());
            row.push(published.map(|(shop, shpred)| format!("{shop} / {shpred}")).into());
        }
        row.push(group.runs.len().into());
        rows.push(row);
    }
    let head =
        ["network", "sensitivity", "training accuracy"].into_iter().chain(columns.iter().map(|(_, title)| *title));
    let head = head.chain(shows_published.then_some("published ShOp / ShPred")).chain(["runs"]);
    Some(Table {
        title: context.sweep.titled("Table 2", "Flatness of the minimum"),
        head: head.map(String::from).collect(),
        rows,
        note: "Noise on all weights: ShOp is the mean change of the outputs, whose norm the paper does not state, ShPred the fraction of predictions \
               that change. The Hessian is that of the training loss. Lower is flatter. Brackets: 95 % intervals, over runs where there are \
               several, over inputs and draws where there is one."
            .into(),
    })
}
