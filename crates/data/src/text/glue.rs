//! The files of GLUE and of the data sets it was made from.

use super::{Columns, Pairs, read_table};
use crate::FileResult;
use std::path::Path;

/// MRPC: the master files `msr_paraphrase_train.txt` and `_test.txt`, or GLUE's `train.tsv` and `dev.tsv`. Label 1: paraphrases.
pub fn read_mrpc(path: &Path) -> FileResult<Pairs> {
    let columns = Columns { first: "#1 String", second: Some("#2 String"), label: "Quality", classes: 2 };
    read_table(path, &columns)
}

/// QQP: `train.tsv` and `dev.tsv`. Label 1: duplicates.
pub fn read_qqp(path: &Path) -> FileResult<Pairs> {
    let columns = Columns { first: "question1", second: Some("question2"), label: "is_duplicate", classes: 2 };
    read_table(path, &columns)
}

/// SST-2: `train.tsv` and `dev.tsv`. Label 1: a kind sentence.
pub fn read_sst2(path: &Path) -> FileResult<Pairs> {
    read_table(path, &Columns { first: "sentence", second: None, label: "label", classes: 2 })
}
