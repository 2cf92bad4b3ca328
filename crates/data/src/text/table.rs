//! Files of named columns, one row a line: TSV as GLUE writes it (quotes are letters like any other), and CSV with quoted fields.

use super::Pairs;
use crate::images::Bytes;
use crate::{FileError, FileResult};
use csv::{ErrorKind, Reader, ReaderBuilder, StringRecord, Terminator};
use pudica_boolean::did_you_mean;
use std::io::Read;
use std::path::Path;

/// No file of texts is longer than this, unpacked (QQP has 60 MB): a file that unpacks to more must not fill the memory.
const MAX_BYTES: u64 = 1 << 28;

/// Which columns of a file are read; the first line must name them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns<'a> {
    /// The first text.
    pub first: &'a str,
    /// The second text, where rows are pairs.
    pub second: Option<&'a str>,
    /// The class: a whole number from 0.
    pub label: &'a str,
    /// How many classes there are; a label that is not below is refused.
    pub classes: usize,
}

/// Reads a file of named columns, plain or gzipped, with or without a byte order mark. A file named `.csv` or `.csv.gz` has commas, and
/// fields in double quotes may hold commas, line ends and doubled quotes; any other has tabs, and quotes are letters as they stand.
pub fn read_table(path: &Path, columns: &Columns) -> FileResult<Pairs> {
    let mut pairs = Pairs::default();
    let choose = |header: &[String]| {
        let place = |wanted: &str| place(header, wanted);
        Ok(Places {
            first: place(columns.first)?,
            second: columns.second.map(place).transpose()?,
            label: place(columns.label)?,
        })
    };
    read_columns(path, choose, |row| {
        let class = row.label.parse().ok().filter(|class| *class < columns.classes).ok_or_else(|| {
            let (found, last) = (shortened(row.label), columns.classes.saturating_sub(1));
            row.error(row.places.label, format!("'{found}' is not a label; labels are 0 to {last}"))
        })?;
        pairs.texts.push((row.first.to_string(), row.second.map(str::to_string)));
        pairs.labels.push(class);
        Ok(())
    })?;
    Ok(pairs)
}

/// Where the columns that are read stand.
pub(super) struct Places {
    pub first: usize,
    pub second: Option<usize>,
    pub label: usize,
}

/// What is read of a row.
pub(super) struct Row<'a> {
    fields: &'a Fields<'a>,
    pub places: &'a Places,
    pub first: &'a str,
    pub second: Option<&'a str>,
    /// Without blanks around it.
    pub label: &'a str,
}

impl Row<'_> {
    /// What is wrong with one of its columns.
    pub fn error(&self, column: usize, problem: impl std::fmt::Display) -> String {
        self.fields.error(column, problem)
    }
}

/// One row of a file of named columns.
pub struct Fields<'a> {
    /// The line it begins on, from 1.
    pub line: u64,
    header: &'a [String],
    row: &'a StringRecord,
}

impl Fields<'_> {
    /// What stands in a column, `column` < the number of names.
    pub fn get(&self, column: usize) -> &str {
        // Of a file with Windows line ends, the last column holds the carriage return.
        self.row[column].strip_suffix('\r').unwrap_or(&self.row[column])
    }

    /// What is wrong with one of its columns.
    pub fn error(&self, column: usize, problem: impl std::fmt::Display) -> String {
        format!("line {}, column '{}': {problem}", self.line, self.header[column])
    }
}

/// Where a column stands.
pub fn place(header: &[String], wanted: &str) -> Result<usize, String> {
    header.iter().position(|name| name == wanted).ok_or_else(|| {
        let near = did_you_mean(wanted, header.iter().map(String::as_str));
        format!("line 1: there is no column '{wanted}'{near}; {}", the_columns(header))
    })
}

/// The columns there are, for a message.
pub fn the_columns(header: &[String]) -> String {
    format!("the columns are: {}", shortened(&header.join(", ")))
}

/// Visits the rows of a file; `choose` says which columns are read, from the names of all.
pub(super) fn read_columns(
    path: &Path,
    choose: impl FnOnce(&[String]) -> Result<Places, String>,
    mut visit: impl FnMut(&Row) -> Result<(), String>,
) -> FileResult<()> {
    visit_table(path, choose, |places, fields| {
        let (first, second) = (fields.get(places.first), places.second.map(|at| fields.get(at)));
        visit(&Row { fields, places, first, second, label: fields.get(places.label).trim() })
    })
}

/// Visits the rows of a file of named columns, read as [`read_table`] says; `choose` makes of the names what every visit is given.
pub fn visit_table<T>(
    path: &Path,
    choose: impl FnOnce(&[String]) -> Result<T, String>,
    visit: impl FnMut(&T, &Fields) -> Result<(), String>,
) -> FileResult<()> {
    let wrong = |problem: String| FileError::new(path, problem);
    let file = Bytes::open(path).map_err(|error| wrong(error.problem))?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let commas = name.strip_suffix(".gz").unwrap_or(&name).ends_with(".csv");
    let mut builder = ReaderBuilder::new();
    builder.has_headers(false).flexible(true).terminator(Terminator::Any(b'\n'));
    if !commas {
        builder.delimiter(b'\t').quoting(false);
    }
    // A line end after the last row, if it has none: then every row is known to end one line before the reader stands.
    let file = Limited { file, left: MAX_BYTES }.chain(&b"\n"[..]);
    visit_rows(builder.from_reader(file), choose, visit).map_err(wrong)
}

fn visit_rows<T>(
    mut reader: Reader<impl Read>,
    choose: impl FnOnce(&[String]) -> Result<T, String>,
    mut visit: impl FnMut(&T, &Fields) -> Result<(), String>,
) -> Result<(), String> {
    let mut row = StringRecord::new();
    if next(&mut reader, &mut row, None)?.is_none() {
        return Err("is empty; its first line should name the columns".to_string());
    }
    let header: Vec<String> = row.iter().map(|name| name.trim().to_string()).collect();
    let chosen = choose(&header)?;
    let mut rows = 0;
    while let Some(line) = next(&mut reader, &mut row, Some(&header))? {
        if row.len() == 1 && &row[0] == "\r" {
            continue; // an empty line that ends as Windows' do
        }
        if row.len() != header.len() {
            let (found, expected) = (row.len(), header.len());
            // The first column that is not there, or the first that should not be.
            let missing = header.get(found).map_or(String::new(), |name| format!(": '{name}' is missing"));
            return Err(format!("line {line} has {found} columns, the header has {expected}{missing}"));
        }
        visit(&chosen, &Fields { line, header: &header, row: &row })?;
        rows += 1;
    }
    match rows {
        0 => Err("has a header but no rows".to_string()),
        _ => Ok(()),
    }
}

/// Reads the next row and says on which line it begins; `None` at the end of the file.
fn next(
    reader: &mut Reader<impl Read>,
    row: &mut StringRecord,
    header: Option<&[String]>,
) -> Result<Option<u64>, String> {
    let read = reader.read_record(row);
    let last = reader.position().line().saturating_sub(1);
    match read {
        Ok(true) => {
            let inside: usize = row.iter().map(|field| field.matches('\n').count()).sum();
            Ok(Some(last.saturating_sub(inside as u64)))
        }
        Ok(false) => Ok(None),
        Err(error) => Err(match error.kind() {
            ErrorKind::Utf8 { err, .. } => {
                let column = match header.and_then(|names| names.get(err.field())) {
                    Some(name) => format!("'{name}'"),
                    None => (err.field() + 1).to_string(),
                };
                format!("line {last}, column {column}: not UTF-8 text; convert the file to UTF-8")
            }
            _ => format!("damaged after line {last}: {error}"),
        }),
    }
}

/// At most 80 letters of what a file holds, for a message.
pub(super) fn shortened(text: &str) -> String {
    pudica_boolean::shortened(text, 80)
}

/// A reader that fails, and does not end silently, where a file is too long.
struct Limited<R> {
    file: R,
    left: u64,
}

impl<R: Read> Read for Limited<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.file.read(buffer)?;
        self.left = self.left.checked_sub(count as u64).ok_or_else(|| {
            std::io::Error::other(format!("the file holds more than the {MAX_BYTES} bytes read here"))
        })?;
        Ok(count)
    }
}
