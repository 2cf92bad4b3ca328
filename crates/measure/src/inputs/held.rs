//! Inputs that somebody holds in memory: what a `.npy` file or a table of texts would give.

use std::path::Path;

use pudica_boolean::npy::Type;
use pudica_data::FileError;
use pudica_model::Takes;
use sha2::{Digest, Sha256};

use super::array::Array;
use super::classes::numbered;
use super::table::Texts;
use super::{Choice, InputsRequest, Opened, arrays};
use crate::MeasureResult;

/// Inputs in memory.
pub enum Held {
    /// An array whose first axis counts inputs.
    Array {
        /// The type of its values.
        dtype: Type,
        /// The lengths of its axes, the last one varying fastest.
        shape: Vec<usize>,
        /// Its values, little-endian.
        bytes: Vec<u8>,
    },
    /// Texts, or pairs of them.
    Texts(Vec<(String, Option<String>)>),
}

impl Held {
    pub(super) fn open(
        self,
        labels: Option<Vec<usize>>,
        request: &InputsRequest,
        takes: &Takes,
    ) -> MeasureResult<Opened> {
        let path = Path::new(&request.source);
        let count = self.count();
        if let Some(labels) = labels.as_ref().filter(|labels| labels.len() != count) {
            return Err(FileError::new(path, format!("{} labels for {count} inputs", labels.len())).into());
        }
        let largest = labels.iter().flatten().max().copied();
        let names = request.class_names.clone();
        let classes = match largest {
            Some(largest) if largest < names.len() => names,
            _ => numbered(largest.map_or(0, |largest| largest + 1)),
        };
        let identity = vec![self.digest(labels.as_deref())];
        let opened = match self {
            Self::Array { dtype, shape, bytes } => {
                let array = Array::held(path, dtype, &shape, bytes)?;
                arrays::opened(request, array, labels, (identity, Vec::new()), takes)?
            }
            Self::Texts(mut texts) => {
                if texts.is_empty() {
                    return Err(FileError::new(path, "there is no text").into());
                }
                if let Some(row) = texts.iter().position(|(text, _)| text.trim().is_empty()) {
                    return Err(FileError::new(path, format!("text {row} is empty")).into());
                }
                let choice = Choice::new(request, count);
                let labels = labels.map(|labels| choice.rows().map(|row| labels[row]).collect());
                let names = choice.rows().map(|row| row.to_string()).collect();
                let texts = choice.rows().map(|row| std::mem::take(&mut texts[row])).collect();
                Texts { texts, labels, names }.opened(choice, (Vec::new(), identity, Vec::new()))
            }
        };
        Ok(Opened { classes, ..opened })
    }

    fn count(&self) -> usize {
        match self {
            Self::Array { shape, .. } => shape.first().copied().unwrap_or(0),
            Self::Texts(texts) => texts.len(),
        }
    }

    /// The identity of all values and labels.
    fn digest(&self, labels: Option<&[usize]>) -> String {
        let mut all = Sha256::new();
        match self {
            Self::Array { dtype, shape, bytes } => {
                all.update(format!("{} {shape:?}", dtype.name()));
                all.update(bytes);
            }
            Self::Texts(texts) => texts.iter().for_each(|text| all.update(format!("{text:?}"))),
        }
        labels.into_iter().flatten().for_each(|label| all.update((*label as u64).to_le_bytes()));
        all.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
    }
}
