//! The text data sets known by name, and where their files may lie.

use super::{Pairs, read_mrpc, read_qqp, read_sst2};
use crate::Split;
use crate::{FileError, FileResult};
use pudica_boolean::did_you_mean;
use std::path::{Path, PathBuf};

/// A data set of texts.
pub struct TextSet {
    /// How recipes and the command line call it.
    pub name: &'static str,
    /// Who made it and where it is from.
    pub source: &'static str,
    /// Name of each class.
    pub classes: [&'static str; 2],
    /// Where its files may lie inside a data folder.
    folders: &'static [&'static str],
    /// Names its file may have, without `.gz`, and how many rows the published one has.
    train: (&'static [&'static str], usize),
    test: (&'static [&'static str], usize),
    read: fn(&Path) -> FileResult<Pairs>,
}

/// Texts of a split, as they were found.
#[derive(Debug)]
pub struct LoadedTexts {
    /// The texts, in the order of the file.
    pub pairs: Pairs,
    /// How many rows the published split has.
    pub published: usize,
    /// The file they were read from.
    pub file: PathBuf,
}

/// The data sets known by name. The paper's 4,076 and 1,725 pairs of MRPC are the master files; `mrpc-glue` is GLUE's split of the
/// former. What GLUE calls "dev" is the test split here: it is the one with labels.
pub static TEXT_SETS: [TextSet; 4] = [
    TextSet {
        name: "mrpc",
        source: "Dolan & Brockett 2005, Microsoft Research Paraphrase Corpus",
        classes: ["different", "paraphrase"],
        folders: &["mrpc", "MRPC"],
        train: (&["msr_paraphrase_train.txt"], 4_076),
        test: (&["msr_paraphrase_test.txt"], 1_725),
        read: read_mrpc,
    },
    TextSet {
        name: "mrpc-glue",
        source: "Dolan & Brockett 2005, split by GLUE (Wang et al. 2018)",
        classes: ["different", "paraphrase"],
        folders: &["mrpc", "MRPC"],
        train: (&["train.tsv"], 3_668),
        test: (&["dev.tsv"], 408),
        read: read_mrpc,
    },
    TextSet {
        name: "qqp",
        source: "Iyer et al. 2017, Quora Question Pairs",
        classes: ["different", "duplicate"],
        folders: &["qqp", "QQP"],
        train: (&["train.tsv"], 363_846),
        test: (&["dev.tsv"], 40_430),
        read: read_qqp,
    },
    TextSet {
        name: "sst2",
        source: "Socher et al. 2013, Stanford Sentiment Treebank, split by GLUE",
        classes: ["negative", "positive"],
        folders: &["sst2", "SST-2"],
        train: (&["train.tsv", "SST-2_train.tsv"], 67_349),
        test: (&["dev.tsv", "SST-2_dev.tsv"], 872),
        read: read_sst2,
    },
];

impl TextSet {
    /// The data set of this name.
    pub fn named(name: &str) -> Result<&'static Self, String> {
        TEXT_SETS.iter().find(|set| set.name == name).ok_or_else(|| {
            let names = TEXT_SETS.each_ref().map(|set| set.name);
            format!("no data set of texts is called '{name}'{}; known: {}", did_you_mean(name, names), names.join(", "))
        })
    }

    fn names(&self, split: Split) -> &'static [&'static str] {
        match split {
            Split::Train => self.train.0,
            Split::Test => self.test.0,
        }
    }

    /// How many rows the published split has.
    pub fn published(&self, split: Split) -> usize {
        match split {
            Split::Train => self.train.1,
            Split::Test => self.test.1,
        }
    }

    /// The file of a split in a data folder, packed or not.
    pub fn file(&self, data: &Path, split: Split) -> Option<PathBuf> {
        let of_folder = |folder: &&str| {
            let folder = data.join(folder);
            self.names(split).iter().flat_map(move |name| [folder.join(name), folder.join(format!("{name}.gz"))])
        };
        self.folders.iter().flat_map(of_folder).find(|path| path.is_file())
    }

    /// Reads a split from a data folder.
    pub fn load(&self, data: &Path, split: Split) -> FileResult<LoadedTexts> {
        let file = self.file(data, split).ok_or_else(|| {
            let (names, places) = (self.names(split).join(" or "), self.folders.join(", "));
            let problem = format!(
                "no {} texts of {}: {names} (or .gz) should lie in one of the folders {places}",
                split.name(),
                self.name
            );
            FileError::new(data, problem)
        })?;
        Ok(LoadedTexts { pairs: (self.read)(&file)?, published: self.published(split), file })
    }
}
