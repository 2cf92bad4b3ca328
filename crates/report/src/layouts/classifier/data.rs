//! The user's own data: its classes, by the names they have there.

use serde_json::Value;

use super::Context;
use crate::table::{Cell, Table, head};

/// Classes of one data set that are listed.
const LISTED: usize = 100;

/// The classes of own data with their numbers of inputs; none where all data sets are known ones.
pub fn table(context: &Context) -> Option<Table> {
    let mut sets: Vec<(String, &Vec<Value>)> = Vec::new();
    for run in context.runs() {
        let classes =
            run.summary.as_ref().and_then(|summary| summary.detail.get("data")?.get("own_classes")?.as_array());
        let found = classes.map(|classes| (run.text("data.name"), classes));
        sets.extend(found.filter(|found| !sets.contains(found)));
    }
    let class = |name: &str, class: &Value| {
        let count = |part: &str| class[part].as_u64().map_or(Cell::Missing, |count| Cell::from(count as usize));
        let text = class["name"].as_str().unwrap_or_default();
        vec![Cell::from(name), Cell::from(text), count("train"), count("test")]
    };
    let rows: Vec<Vec<Cell>> = sets
        .iter()
        .flat_map(|(name, classes)| classes.iter().take(LISTED).map(move |found| class(name, found)))
        .collect();
    let more = sets.iter().any(|(_, classes)| classes.len() > LISTED);
    (!rows.is_empty()).then(|| Table {
        title: "Classes of your own data".into(),
        head: head(["data", "class", "training inputs", "test inputs"]),
        rows,
        note: if more { format!("The first {LISTED} classes of each.") } else { String::new() },
    })
}
