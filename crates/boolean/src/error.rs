//! Everything a caller can get wrong, each as one sentence that says what to do.

use std::path::PathBuf;

/// Why an analysis could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A function name that is not in the catalogue.
    #[error(
        "unknown function '{}'{hint}; `pudica boolean --list` shows all of them, and expr:x1&x2 or table:FILE is your own",
        shortened(given, 60)
    )]
    UnknownFunction {
        /// What was asked for.
        given: String,
        /// `: did you mean 'parity'?`, or nothing.
        hint: String,
    },
    /// A named function with a missing, superfluous or impossible parameter.
    #[error("{0}")]
    Parameter(String),
    /// The number of variables does not suit the function or the method.
    #[error("{0}")]
    Variables(String),
    /// An expression that does not parse.
    #[error("column {column}: {problem}\n  {text}\n  {marker}")]
    Expression {
        /// 1-based column of the offending character.
        column: usize,
        /// What is wrong there.
        problem: String,
        /// The expression.
        text: String,
        /// A caret under the column.
        marker: String,
    },
    /// A file that is not a truth table.
    #[error("{}: {problem}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: String,
    },
    /// The operating system refused to read or write a file.
    #[error("cannot {action} {}: {}", path.display(), crate::atomic::sentence(source))]
    Io {
        /// "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The work would not fit in memory.
    #[error("{0}")]
    Memory(String),
    /// A measure that does not exist, or is not defined for this function.
    #[error("{0}")]
    Measure(String),
}

/// `Result` with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// The candidate most like `text`, if any is similar enough to be a plausible typing mistake.
pub fn nearest<'a>(text: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let text = text.to_lowercase();
    // Jaro-Winkler favours shared prefixes, as typing mistakes have; below 0.75 a suggestion is a guess.
    candidates
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(&text, candidate), candidate))
        .filter(|(likeness, _)| *likeness > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// ": did you mean 'x'?" when one of `known` is [`nearest`] to `given`, else nothing.
pub fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(given, known).map(|name| format!(": did you mean '{name}'?")).unwrap_or_default()
}

/// The text, or its first `most` characters and dots: what is echoed stays readable.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.into(),
    }
}

/// What a parser found wrong in a text, as a sentence with line, column and the beginning of the line; `at` is the byte where it is.
pub fn at_place(text: &str, at: Option<usize>, problem: &str) -> String {
    let problem = shortened(&problem.split_whitespace().collect::<Vec<_>>().join(" "), 300);
    // What is missing is in no place.
    let before = match at {
        Some(at) if !problem.starts_with("missing field") => &text[..text.floor_char_boundary(at)],
        _ => return problem,
    };
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    let line = text[start..].lines().next().unwrap_or_default();
    let (row, column) = (before.matches('\n').count() + 1, before[start..].chars().count() + 1);
    let quoted = shortened(&line.replace(char::is_control, " "), 60);
    match quoted.trim() {
        "" => format!("line {row}, column {column}: {problem}"),
        quoted => format!("line {row}, column {column} (`{quoted}`): {problem}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü...");
    }

    #[test]
    fn places_are_named() {
        let text = "one = 1\ntwö = x\n";
        assert_eq!(at_place(text, Some(15), "expected\na value"), "line 2, column 7 (`twö = x`): expected a value");
        assert_eq!(at_place(text, Some(text.len()), "no end"), "line 3, column 1: no end");
        assert_eq!(at_place(text, Some(9999), "no end"), "line 3, column 1: no end");
        assert_eq!(at_place(text, Some(0), "missing field `title`"), "missing field `title`");
        assert_eq!(at_place(text, None, "wrong"), "wrong");
        let long = at_place(&"a\0".repeat(100_000), Some(150_000), &"b ".repeat(100_000));
        assert!(long.len() < 500 && !long.contains('\0'), "{long}");
    }
}
