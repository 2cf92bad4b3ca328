//! Texts of a user's own: a file of named columns, or a folder with one file to train on and one for tests.

use super::Pairs;
use super::table::{Places, place, read_columns, shortened, the_columns};
use crate::own::{TEST_NAMES, entries, name_of};
use crate::{Divided, Division, FileError, FileResult};
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// A column of more different labels than this is none of classes.
pub const MOST_CLASSES: usize = 1000;

/// The columns taken where none are named: the first of these that a file has.
const USUAL_TEXTS: [&[&str]; 5] =
    [&["text"], &["sentence"], &["sentence1", "sentence2"], &["question1", "question2"], &["premise", "hypothesis"]];
/// The column of the classes where none is named.
pub const USUAL_LABEL: &str = "label";

/// Files of texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnTexts {
    train: PathBuf,
    test: Option<PathBuf>,
}

/// Which columns are read; an empty name stands for the usual ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnColumns<'a> {
    /// The text, or the two texts of a pair with `+` between them.
    pub text: &'a str,
    /// The class.
    pub label: &'a str,
}

/// Rows with their labels as they are written.
#[derive(Default)]
struct Labelled {
    texts: Vec<(String, Option<String>)>,
    labels: Vec<String>,
}

impl OwnTexts {
    /// The texts at a path: a file, or a folder with a file `train.tsv` (or `.csv`, `.txt`, each packed or not) and one called `dev`,
    /// `validation`, `valid`, `val` or `test`, or with only one file. `None` where there is no such file.
    pub fn find(path: &Path) -> FileResult<Option<Self>> {
        if !path.is_dir() {
            return Ok(stem(path).map(|_| Self { train: path.to_path_buf(), test: None }));
        }
        let mut files = entries(path)?;
        files.retain(|file| file.is_file() && stem(file).is_some());
        let called = |name: &str| {
            let mut found = files.iter().filter(|file| stem(file).is_some_and(|stem| is_called(&stem, name)));
            match (found.next(), found.next()) {
                (Some(one), Some(other)) => {
                    let problem = format!("{} and {} are both for '{name}'", name_of(one), name_of(other));
                    Err(FileError::new(path, problem))
                }
                (one, _) => Ok(one.cloned()),
            }
        };
        let mut test = None;
        for name in TEST_NAMES {
            test = test.or(called(name)?);
        }
        match (called("train")?, test, files.as_slice()) {
            (Some(train), test, _) => Ok(Some(Self { train, test })),
            (None, _, []) => Ok(None),
            (None, _, [one]) => Ok(Some(Self { train: one.clone(), test: None })),
            (None, ..) => {
                let names: Vec<String> = files.iter().map(|file| name_of(file)).collect();
                let problem = format!(
                    "none of its files is called train, as train.tsv is ({}): rename one, or name one file instead",
                    shortened(&names.join(", "))
                );
                Err(FileError::new(path, problem))
            }
        }
    }

    /// Whether there is a file for tests.
    pub fn is_divided(&self) -> bool {
        self.test.is_some()
    }

    /// The files that are read.
    pub fn files(&self) -> Vec<PathBuf> {
        [Some(&self.train), self.test.as_ref()].into_iter().flatten().cloned().collect()
    }

    /// Reads both parts. Classes are numbered in the order of their labels, as numbers where all are whole numbers. Where there is one file,
    /// it is divided.
    pub fn read(&self, columns: &OwnColumns, division: &Division) -> FileResult<Divided<Pairs>> {
        let wrong = |problem: String| FileError::new(&self.train, problem);
        let mut classes: Vec<String> = Vec::new();
        let train =
            read_labelled(&self.train, columns, |label| match classes.binary_search_by(|at| at.as_str().cmp(label)) {
                Ok(_) => Ok(()),
                Err(_) if classes.len() == MOST_CLASSES => Err(format!(
                    "more than {MOST_CLASSES} different labels up to here: is this the column of the classes?"
                )),
                Err(at) => {
                    classes.insert(at, label.to_string());
                    Ok(())
                }
            })?;
        if let [only] = classes.as_slice() {
            let (only, rows) = (shortened(only), train.labels.len());
            return Err(wrong(format!("all {rows} rows have the label '{only}', but at least two classes are needed")));
        }
        let numbers: Option<Vec<i64>> = classes.iter().map(|label| label.parse().ok()).collect();
        if numbers.is_some() {
            classes.sort_by_key(|label| label.parse::<i64>().unwrap_or_default());
        }
        let test = match &self.test {
            None => None,
            Some(test) => {
                Some(read_labelled(test, columns, |label| match classes.iter().any(|class| class == label) {
                    true => Ok(()),
                    false => Err(format!(
                        "'{}' is none of the labels of {}: {}",
                        shortened(label),
                        name_of(&self.train),
                        shortened(&classes.join(", "))
                    )),
                })?)
            }
        };
        let train = train.numbered(&classes);
        let (train, test) = match test {
            Some(test) => (train, test.numbered(&classes)),
            None => {
                let (trained, tested) = division.rows(&train.labels, &classes).map_err(wrong)?;
                (train.select(trained), train.select(tested))
            }
        };
        Ok(Divided { train, test, classes })
    }
}

impl Labelled {
    fn numbered(self, classes: &[String]) -> Pairs {
        let numbers: HashMap<&str, usize> = classes.iter().enumerate().map(|(at, name)| (name.as_str(), at)).collect();
        let number = |label: &String| numbers.get(label.as_str()).copied().unwrap_or_default();
        Pairs { labels: self.labels.iter().map(number).collect(), texts: self.texts }
    }
}

impl OwnColumns<'_> {
    /// Where they stand in a file.
    fn choose(&self, header: &[String]) -> Result<Places, String> {
        let (first, second) = text_places(header, self.text, "data.text=")?;
        let usual = header.iter().any(|column| column == USUAL_LABEL);
        if self.label.is_empty() && !usual {
            return Err(format!(
                "line 1: say which column holds the class by data.label=NAME; {}",
                the_columns(header)
            ));
        }
        let label = place(header, if self.label.is_empty() { USUAL_LABEL } else { self.label })?;
        Ok(Places { first, second, label })
    }
}

/// The usual columns of texts that a file has.
pub fn usual_texts(header: &[String]) -> Option<&'static [&'static str]> {
    let has = |name: &&str| header.iter().any(|column| column == name);
    USUAL_TEXTS.into_iter().find(|names| names.iter().all(has))
}

/// Where the text of each row stands, or the two texts of a pair: those that `named` names, or the usual ones where it is empty. `option` is how a
/// user names them: `data.text=`.
pub fn text_places(header: &[String], named: &str, option: &str) -> Result<(usize, Option<usize>), String> {
    let texts: Vec<&str> = match named {
        "" => usual_texts(header).map(<[&str]>::to_vec).ok_or_else(|| {
            format!(
                "line 1: say which column holds the text by {option}NAME, or {option}NAME+NAME for pairs; {}",
                the_columns(header)
            )
        })?,
        whole if header.iter().any(|column| column == whole) => vec![whole],
        names => names.split('+').map(str::trim).collect(),
    };
    match texts.as_slice() {
        [one] => Ok((place(header, one)?, None)),
        [one, other] => Ok((place(header, one)?, Some(place(header, other)?))),
        _ => Err(format!("{option}{}: a row is one text, or a pair", shortened(named))),
    }
}

/// All rows of a file; `check` says what is wrong with a label.
fn read_labelled(
    path: &Path,
    columns: &OwnColumns,
    mut check: impl FnMut(&str) -> Result<(), String>,
) -> FileResult<Labelled> {
    let mut found = Labelled::default();
    read_columns(
        path,
        |header| columns.choose(header),
        |row| {
            let texts = [Some((row.places.first, row.first)), row.places.second.zip(row.second)];
            if let Some((column, _)) = texts.into_iter().flatten().find(|(_, text)| text.trim().is_empty()) {
                return Err(row.error(column, "the text is empty"));
            }
            if row.label.is_empty() {
                return Err(row.error(row.places.label, "there is no label"));
            }
            check(row.label).map_err(|problem| row.error(row.places.label, problem))?;
            found.texts.push((row.first.to_string(), row.second.map(str::to_string)));
            found.labels.push(row.label.to_string());
            Ok(())
        },
    )?;
    Ok(found)
}

/// The name of a file of texts without its endings, in small letters; `None` for any other file.
fn stem(path: &Path) -> Option<String> {
    let name = name_of(path).to_lowercase();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = [".tsv", ".csv", ".txt"].iter().find_map(|ending| plain.strip_suffix(ending))?;
    (!["readme", "license", "licence"].contains(&stem)).then(|| stem.to_string())
}

/// Whether a file called `stem` is a part: `train`, or `SST-2_train`.
fn is_called(stem: &str, part: &str) -> bool {
    stem.strip_suffix(part).is_some_and(|before| before.is_empty() || before.ends_with(['_', '-', '.']))
}
