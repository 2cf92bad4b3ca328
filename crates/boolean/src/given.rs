//! A function as somebody writes it: `majority`, `threshold:n/3`, `expr:x1 & x2 | x3`, `table:f.npy`. The one reader for all commands.

use crate::analysis::Subject;
use crate::files::{Table, read_table, read_table_with_digest};
use crate::named::is_named;
use crate::{Error, Expression, Function, Named, Result};
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What a function is given by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// A name of the catalogue; its parameter may be a formula over n.
    Named(String),
    /// An expression over x1, x2, ...
    Expression(Expression),
    /// The file of a truth table.
    Table(TableFile),
}

/// The file of a truth table, and perhaps what must be in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFile {
    /// The file.
    pub path: PathBuf,
    /// The first 12 hexadecimal digits of its SHA-256, where only this table is meant.
    pub digest: Option<String>,
}

impl FromStr for Given {
    type Err = Error;

    /// With `expr:` or `table:` there is no doubt; without, it is a name, an existing file, or an expression.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some(expression) = text.strip_prefix("expr:") {
            return Expression::parse(expression, None).map(Self::Expression);
        }
        if let Some(file) = text.strip_prefix("table:") {
            return TableFile::parse(file).map(Self::Table);
        }
        if is_named(text) {
            return Ok(Self::Named(text.split_whitespace().collect()));
        }
        if Path::new(text).is_file() {
            return Ok(Self::Table(TableFile { path: text.into(), digest: None }));
        }
        if is_expression(text) {
            return Expression::parse(text, None).map(Self::Expression);
        }
        Err(Named::parse(text, None).err().unwrap_or_else(|| Error::Parameter(format!("'{text}' is no function"))))
    }
}

/// Whether somebody who typed this meant an expression: it has an operator, or is a variable. No expression has a colon.
fn is_expression(text: &str) -> bool {
    let is_variable = |text: &str| text.strip_prefix(['x', 'X']).is_some_and(|index| index.parse::<u64>().is_ok());
    !text.contains(':') && text.contains(['!', '~', '&', '^', '|', '(', ')', ' ']) || is_variable(text)
}

impl fmt::Display for Given {
    /// As it is read again: without blanks, but for those in the name of a file.
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Named(name) => write!(f, "{name}"),
            Self::Expression(expression) => write!(f, "expr:{expression}"),
            Self::Table(TableFile { path, digest: None }) => write!(f, "table:{}", path.display()),
            Self::Table(TableFile { path, digest: Some(digest) }) => write!(f, "table:{}#{digest}", path.display()),
        }
    }
}

impl Given {
    /// The function of `n` variables; without `n`, of as many as it needs, where it says so itself.
    pub fn at(&self, n: Option<usize>) -> Result<Subject> {
        match self {
            Self::Named(name) => {
                let natural = || Named::parse(name, None).ok().and_then(|named| named.natural_variables());
                let n = n
                    .or_else(natural)
                    .ok_or_else(|| Error::Variables(format!("say how many variables: pudica boolean {name} --n 20")))?;
                Named::parse(name, Some(n))?.at(n).map(Subject::Function)
            }
            Self::Expression(expression) => {
                let expression = expression.clone().on(n.unwrap_or(expression.least_variables()))?;
                Ok(Subject::Function(Function::Boolean(Box::new(expression))))
            }
            Self::Table(file) => {
                let table = file.read()?;
                file.check_variables(table.variables(), n)?;
                Ok(Subject::Table(table))
            }
        }
    }
}

impl TableFile {
    /// `FILE` or `FILE#DIGEST`.
    fn parse(text: &str) -> Result<Self> {
        let is_digest = |text: &str| text.len() == 12 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let (path, digest) = match text.rsplit_once('#').filter(|(_, digest)| is_digest(digest)) {
            Some((path, digest)) => (path, Some(digest.to_lowercase())),
            None => (text, None),
        };
        match path.is_empty() {
            true => Err(Error::Parameter("'table:' needs the file of a truth table: write table:FILE".into())),
            false => Ok(Self { path: path.into(), digest }),
        }
    }

    fn read(&self) -> Result<Table> {
        match self.digest {
            None => read_table(&self.path, None),
            Some(_) => {
                let (table, digest) = read_table_with_digest(&self.path)?;
                self.check_digest(&digest)?;
                Ok(table)
            }
        }
    }

    /// Refuses a file that holds another table than the one meant.
    pub fn check_digest(&self, found: &str) -> Result<()> {
        match &self.digest {
            Some(meant) if meant != found => Err(Error::Table {
                path: self.path.clone(),
                problem: format!(
                    "this is another table (#{found}) than the one meant (#{meant}): it has changed since; bring the old one back"
                ),
            }),
            _ => Ok(()),
        }
    }

    /// Refuses an n that is not that of the table.
    pub fn check_variables(&self, own: usize, n: Option<usize>) -> Result<()> {
        match n {
            Some(n) if n != own => Err(Error::Table {
                path: self.path.clone(),
                problem: format!("the table has 2^{own} rows, but n={n} asks for 2^{n}: leave n out, or make it {own}"),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TruthTable;

    fn table(text: &str, n: Option<usize>) -> TruthTable {
        match text.parse::<Given>().unwrap().at(n).unwrap() {
            Subject::Function(Function::Boolean(f)) => f.table().unwrap(),
            Subject::Table(Table::Boolean(table)) => table,
            _ => panic!("{text} is real"),
        }
    }

    #[test]
    fn one_function_in_every_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("and.txt");
        std::fs::write(&path, "00000011").unwrap();
        let path = path.to_str().unwrap();
        let expected = table("expr:x1 & x2", Some(3));
        let digest = read_table_with_digest(Path::new(path)).unwrap().1;
        for text in ["x1 and x2", "expr: x1&&x2", path, &format!("table:{path}"), &format!("table:{path}#{digest}")] {
            assert_eq!(table(text, Some(3)), expected, "{text}");
        }
        assert_eq!(table("threshold:n-1", Some(3)), table("majority", Some(3)));
        assert_eq!(table("address:1", None).variables(), 3);
        assert_eq!(table("x1 & x4", None).variables(), 4);
    }

    #[test]
    fn it_is_written_as_it_is_read() {
        for (text, written) in [
            ("majority", "majority"),
            ("dictator:1", "dictator:1"),
            ("threshold: n / 3", "threshold:n/3"),
            ("x1 & x2 | !x3", "expr:x1&x2|!x3"),
            ("expr:maj(x1, x2, x3)", "expr:maj(x1,x2,x3)"),
            ("table:some folder/f.npy", "table:some folder/f.npy"),
            ("table:a#b.npy#0123456789AB", "table:a#b.npy#0123456789ab"),
        ] {
            let given: Given = text.parse().unwrap();
            assert_eq!(given.to_string(), written);
            assert_eq!(written.parse::<Given>().unwrap(), given);
        }
    }

    #[test]
    fn mistakes_are_explained() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.txt");
        std::fs::write(&path, "0110").unwrap();
        let file = format!("table:{}", path.display());
        for (text, n, part) in [
            ("majorty", 3, "did you mean 'majority'?"),
            ("tabel:f.npy", 3, "did you mean 'table'?"),
            ("exp:x1 & x2", 3, "did you mean 'expr'?"),
            ("expr:x1 & & x2", 3, "column 6"),
            ("x1 & x4", 3, "uses x4, but n=3"),
            ("table:", 3, "table:FILE"),
            ("table:/no/such/file", 3, "cannot read /no/such/file"),
            (&file, 3, "the table has 2^2 rows, but n=3 asks for 2^3"),
            (&format!("{file}#0123456789ab"), 2, "it has changed since"),
            ("threshold:n-9", 3, "is -6, below 0"),
        ] {
            let found = text.parse::<Given>().and_then(|given| given.at(Some(n)).map(|_| ()));
            let message = found.unwrap_err().to_string();
            assert!(message.contains(part), "{text}: {message}");
        }
        let without = "threshold:n/3".parse::<Given>().unwrap().at(None).map(|_| ()).unwrap_err().to_string();
        assert!(without.contains("say how many variables"), "{without}");
    }
}
