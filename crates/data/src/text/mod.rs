//! Labelled texts, the files they come in, and their tokens.
//!
//! - [`Pairs`]: texts, or pairs of texts, with a label each.
//! - [`read_mrpc`], [`read_qqp`], [`read_sst2`]: the files of GLUE; [`read_table`], [`visit_table`]: any file of named columns.
//! - [`OwnTexts`]: a user's own files, with columns and labels of any names.
//! - [`TextSet`]: the data sets known by name and where their files lie.
//! - [`PairEncoder`]: from texts to the tokens of RoBERTa or GPT-2; [`FileTokeniser`]: to those of any `tokenizer.json`.
//!
//! Whatever is wrong with a file is told with its name, the line and the column.

mod catalogue;
mod encoder;
mod file_tokeniser;
mod glue;
mod own;
mod table;

pub use catalogue::{LoadedTexts, TEXT_SETS, TextSet};
pub use encoder::{Encoded, PairEncoder, Vocabulary};
pub use file_tokeniser::FileTokeniser;
pub use glue::{read_mrpc, read_qqp, read_sst2};
pub use own::{MOST_CLASSES, OwnColumns, OwnTexts, USUAL_LABEL, text_places, usual_texts};
pub use table::{Columns, Fields, place, read_table, the_columns, visit_table};

/// Labelled texts: one sentence, or two to compare, and a class for each row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// The texts of each row; the second is `None` where a row is one sentence.
    pub texts: Vec<(String, Option<String>)>,
    /// The class of each row.
    pub labels: Vec<usize>,
}

impl Pairs {
    /// How many rows there are.
    pub fn count(&self) -> usize {
        self.labels.len()
    }

    /// The rows of these indices, in this order.
    pub fn select(&self, indices: impl IntoIterator<Item = usize>) -> Self {
        let mut chosen = Self::default();
        for index in indices {
            chosen.texts.push(self.texts[index].clone());
            chosen.labels.push(self.labels[index]);
        }
        chosen
    }

    /// How many rows have each label, from 0 to the largest there is.
    pub fn label_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; self.labels.iter().max().map_or(0, |largest| largest + 1)];
        self.labels.iter().for_each(|label| counts[*label] += 1);
        counts
    }
}
