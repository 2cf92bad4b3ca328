//! A row for each input: `inputs.csv` and `inputs.parquet`.

use std::path::Path;

use pudica_lab::{Cells, Table, write_table};

use crate::MeasureResult;
use crate::found::Found;
use crate::measure::Question;
use crate::responses::Answer;

/// Writes what each input is, what each model makes of it, and how it responded to each nudge (the mean over sites and draws).
pub fn write(folder: &Path, question: &Question, cleans: &[Vec<Answer>], found: &[Found]) -> MeasureResult<()> {
    let (inputs, count) = (&question.inputs, question.inputs.about().count);
    let mut table = Table::default();
    table.add("input", Cells::Whole((0..count).map(|index| Some(index as i64)).collect()));
    table.add("name", Cells::Text((0..count).map(|index| Some(inputs.name(index))).collect()));
    if let Some(first) = cleans.iter().find(|clean| clean.len() == count && !inputs.about().classes.is_empty()) {
        table.add(
            "label",
            Cells::Text(first.iter().map(|answer| answer.label.map(|class| question.class_name(0, class))).collect()),
        );
    }
    for (at, (model, clean)) in question.models.iter().zip(cleans).enumerate() {
        let predicted = |index: usize| clean.get(index).map(|answer| question.class_name(at, answer.predicted()));
        table.add(&format!("{} predicted", model.about().name), Cells::Text((0..count).map(predicted).collect()));
    }
    for found in found {
        let name = &question.models[found.model].about().name;
        for (at, response) in question.responses.iter().enumerate() {
            let values = found.by_input(at);
            if values.is_empty() {
                continue;
            }
            let value = |index: usize| values.get(index).map(|(total, sites)| total / sites.max(1.0));
            let column = format!("{name} {} {}", found.setting.text(), response.name());
            table.add(&column, Cells::Real((0..count).map(value).collect()));
        }
    }
    Ok(write_table(folder, "inputs", &table)?)
}
