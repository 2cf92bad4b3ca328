//! `results.csv` and `results.parquet`: a row for each model, nudge and response.

use pudica_lab::{Cells, Table};
use pudica_measure::results::Measured;
use serde_json::Value;

use crate::sweep::different;

/// The results as a table; each parameter of a nudge has a column `nudge.NAME`.
pub fn of(results: &[Measured]) -> Table {
    let text = |of: &dyn Fn(&Measured) -> Option<String>| Cells::Text(results.iter().map(of).collect());
    let real = |of: &dyn Fn(&Measured) -> Option<f64>| Cells::Real(results.iter().map(of).collect());
    let mut table = Table::default();
    table.add("model", text(&|result| Some(result.model.clone())));
    table.add("nudge", text(&|result| Some(result.nudge.clone())));
    table.add("nudge.kind", text(&|result| Some(result.kind.clone())));
    for name in different(results.iter().flat_map(|result| result.parameters.keys().cloned())) {
        table.add(&format!("nudge.{name}"), parameter(results, &name));
    }
    table.add("response", text(&|result| Some(result.response.clone())));
    table.add("value", real(&|result| Some(result.found.value)));
    table.add("std_error", real(&|result| result.found.std_error));
    table.add("ci95_low", real(&|result| Some(result.found.ci95?[0])));
    table.add("ci95_high", real(&|result| Some(result.found.ci95?[1])));
    table.add("inputs", Cells::Whole(results.iter().map(|result| Some(result.inputs as i64)).collect()));
    table.add("evaluations", Cells::Whole(results.iter().map(|result| Some(result.evaluations as i64)).collect()));
    table.add("exact", Cells::Flag(results.iter().map(|result| Some(result.exact)).collect()));
    table.add("note", text(&|result| result.note.clone()));
    table
}

/// A parameter that some nudges have: numbers where all of them are.
fn parameter(results: &[Measured], name: &str) -> Cells {
    let values: Vec<Option<&Value>> = results.iter().map(|result| result.parameters.get(name)).collect();
    let known = || values.iter().flatten();
    if known().all(|value| value.is_i64()) {
        Cells::Whole(values.iter().map(|value| value.and_then(Value::as_i64)).collect())
    } else if known().all(|value| value.is_number()) {
        Cells::Real(values.iter().map(|value| value.and_then(Value::as_f64)).collect())
    } else {
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
        Cells::Text(values.iter().map(|value| value.map(text)).collect())
    }
}
