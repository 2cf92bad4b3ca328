//! Tables with named columns: of numbers, or of texts.

use std::path::Path;

use pudica_boolean::shortened;
use pudica_data::FileError;
use pudica_data::text::{Fields, USUAL_LABEL, place, text_places, the_columns, usual_texts, visit_table};
use pudica_model::{Input, Takes};
use pudica_probe::InputKind;
use pudica_statistics::Moments;

use super::classes::{Labels, note};
use super::{Choice, Inputs, InputsRequest, Labelled, Opened, digest_of};
use crate::MeasureResult;

/// The chosen rows of a table of numbers.
pub(super) struct Numbers {
    /// Each with a value for every row.
    pub columns: Vec<Vec<f32>>,
    /// The class of each row.
    pub labels: Option<Vec<usize>>,
    /// What each row is called.
    pub names: Vec<String>,
}

/// The chosen rows of a table of texts.
pub(super) struct Texts {
    /// Each a text, or two to compare.
    pub texts: Vec<(String, Option<String>)>,
    /// The class of each row.
    pub labels: Option<Vec<usize>>,
    /// What each row is called.
    pub names: Vec<String>,
}

/// What is read of a table's columns.
struct Columns {
    header: Vec<String>,
    label: Option<usize>,
    /// Where the texts are; of a table of numbers nothing.
    texts: Option<(usize, Option<usize>)>,
}

pub(super) fn open(request: &InputsRequest, path: &Path, takes: &Takes) -> MeasureResult<Opened> {
    let mut found = Found::default();
    let choose = |header: &[String]| {
        let label = match &request.label {
            Some(name) => Some(place(header, name)?),
            None => header.iter().position(|name| name == USUAL_LABEL),
        };
        let usual = usual_texts(header).is_some() && !matches!(takes, Takes::Rows { .. });
        let texts = (request.text.is_some() || usual || *takes == Takes::Texts)
            .then(|| text_places(header, request.text.as_deref().unwrap_or_default(), "--text "));
        if texts.is_none() && header.iter().all(|name| name.parse::<f64>().is_ok()) {
            return Err("line 1 holds numbers only, but should name the columns".into());
        }
        Ok(Columns { header: header.to_vec(), label, texts: texts.transpose()? })
    };
    visit_table(path, choose, |columns, fields| found.row(columns, fields))?;

    let wrong = |problem: String| FileError::new(path, problem);
    let choice = Choice::new(request, found.lines.len());
    let (classes, labels) = match found.labels {
        Some(labels) => {
            let (classes, labels) = labels.finish(&request.class_names).map_err(wrong)?;
            (classes, Some(choice.rows().map(|row| labels[row]).collect()))
        }
        None => (Vec::new(), None),
    };
    let names = choice.rows().map(|row| format!("line {}", found.lines[row])).collect();
    let label = request.label.clone().unwrap_or_default();
    let mut identity = vec![digest_of(path)?, request.text.clone().unwrap_or_default(), label, classes.join("/")];
    let mut notes: Vec<String> = note(&classes, &request.class_names).into_iter().collect();
    if found.are_texts {
        identity.push("texts".into());
        let texts = choice.rows().map(|row| std::mem::take(&mut found.texts[row])).collect();
        return Ok(Texts { texts, labels, names }.opened(choice, (classes, identity, notes)));
    }
    identity.push("numbers".into());
    if !found.left_out.is_empty() {
        let names = shortened(&found.left_out.join(", "), 200);
        notes.push(format!("{}: columns without numbers are left out: {names}.", path.display()));
    }
    let columns = found.columns.iter().map(|column| choice.rows().map(|row| column[row]).collect()).collect();
    Numbers { columns, labels, names }.opened(path, found.features, choice, (classes, identity, notes), takes)
}

/// What a table turned out to hold.
#[derive(Default)]
struct Found {
    are_texts: bool,
    texts: Vec<(String, Option<String>)>,
    /// Names and values of the columns that hold numbers in the first row, and where they stand.
    features: Vec<String>,
    columns: Vec<Vec<f32>>,
    places: Vec<usize>,
    /// Names of columns that do not.
    left_out: Vec<String>,
    labels: Option<Labels>,
    lines: Vec<u64>,
}

impl Found {
    fn row(&mut self, columns: &Columns, fields: &Fields) -> Result<(), String> {
        if let Some((first, second)) = columns.texts {
            self.are_texts = true;
            let text = |column: usize| match fields.get(column) {
                text if text.trim().is_empty() => Err(fields.error(column, "the text is empty")),
                text => Ok(text.to_string()),
            };
            self.texts.push((text(first)?, second.map(text).transpose()?));
        } else {
            if self.lines.is_empty() {
                self.first_row(columns, fields)?;
            }
            for (column, values) in self.places.iter().zip(&mut self.columns) {
                let value = number(fields.get(*column)).ok_or_else(|| {
                    let found = shortened(fields.get(*column).trim(), 40);
                    fields.error(*column, format!("'{found}' is no finite number"))
                })?;
                values.push(value);
            }
        }
        if let Some(column) = columns.label {
            let labels = self.labels.get_or_insert_with(Labels::default);
            labels.add(fields.get(column).trim()).map_err(|problem| fields.error(column, problem))?;
        }
        self.lines.push(fields.line);
        Ok(())
    }

    /// Which columns are features.
    fn first_row(&mut self, columns: &Columns, fields: &Fields) -> Result<(), String> {
        for (column, name) in columns.header.iter().enumerate().filter(|(column, _)| Some(*column) != columns.label) {
            match number(fields.get(column)) {
                Some(_) => {
                    self.features.push(name.clone());
                    self.places.push(column);
                }
                None if fields.get(column).trim().is_empty() => {
                    return Err(fields.error(column, "there is no number; fill what is missing, or remove the column"));
                }
                None => self.left_out.push(name.clone()),
            }
        }
        self.columns = vec![Vec::new(); self.features.len()];
        if self.features.is_empty() {
            let columns = the_columns(&columns.header);
            return Err(format!("no column holds numbers; --text NAME says which one holds texts; {columns}"));
        }
        Ok(())
    }
}

fn number(text: &str) -> Option<f32> {
    text.trim().parse::<f64>().ok().map(|value| value as f32).filter(|value| value.is_finite())
}

impl Numbers {
    /// The table as a source; `path` is its file, `names` are those of its columns, then come classes, identity and notes.
    pub fn opened(
        self,
        path: &Path,
        names: Vec<String>,
        choice: Choice,
        (classes, identity, notes): (Vec<String>, Vec<String>, Vec<String>),
        takes: &Takes,
    ) -> MeasureResult<Opened> {
        if let Takes::Rows { width: Some(width) } = takes
            && *width != names.len()
        {
            let found = shortened(&names.join(", "), 200);
            let problem = format!(
                "{} columns of numbers ({found}), but the model takes {width}; --label NAME says which one is the class, columns that are no inputs must go",
                names.len()
            );
            return Err(FileError::new(path, problem).into());
        }
        let spread = |column: &Vec<f32>| {
            let moments: Moments = column.iter().map(|value| f64::from(*value)).collect();
            moments.variance().unwrap_or(0.0).sqrt()
        };
        Ok(Opened {
            kind: InputKind::Numbers,
            shape: vec![names.len()],
            choice,
            classes,
            spread: self.columns.iter().map(spread).collect(),
            columns: names,
            notes,
            identity,
            inputs: Box::new(self),
        })
    }
}

impl Texts {
    /// The texts as a source; then come classes, identity and notes.
    pub fn opened(self, choice: Choice, (classes, identity, notes): (Vec<String>, Vec<String>, Vec<String>)) -> Opened {
        Opened {
            kind: InputKind::Texts,
            shape: Vec::new(),
            choice,
            classes,
            columns: Vec::new(),
            spread: Vec::new(),
            notes,
            identity,
            inputs: Box::new(self),
        }
    }
}

impl Inputs for Numbers {
    fn read(&self, index: usize) -> MeasureResult<Labelled> {
        let row = self.columns.iter().map(|column| column[index]).collect();
        Ok(Labelled { input: Input::Row(row), label: self.labels.as_ref().map(|labels| labels[index]) })
    }

    fn name(&self, index: usize) -> String {
        self.names[index].clone()
    }

    fn column(&self, index: usize) -> &[f32] {
        self.columns.get(index).map_or(&[], Vec::as_slice)
    }
}

impl Inputs for Texts {
    fn read(&self, index: usize) -> MeasureResult<Labelled> {
        let (first, second) = self.texts[index].clone();
        Ok(Labelled { input: Input::Text(first, second), label: self.labels.as_ref().map(|labels| labels[index]) })
    }

    fn name(&self, index: usize) -> String {
        self.names[index].clone()
    }
}
