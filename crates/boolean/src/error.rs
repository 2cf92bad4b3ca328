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

/// The text with each line [`shortened`], and at most 20 of them; for messages of libraries that quote a whole file.
pub fn shortened_lines(text: &str) -> String {
    let lines: Vec<String> = text.trim_end().lines().take(20).map(|line| shortened(line, 200)).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(shortened("äöü", 3), "äöü");
        assert_eq!(shortened("äöüß", 3), "äöü...");
        assert_eq!(shortened_lines("one\ntwo\n"), "one\ntwo");
        let long = shortened_lines(&format!("start\n{}\n", "a".repeat(100_000)).repeat(50));
        assert!(long.starts_with("start\naaa") && long.len() < 3000);
    }
}
