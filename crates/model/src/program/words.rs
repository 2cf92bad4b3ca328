//! A command line as words, as a shell would split it; nothing else that a shell does is done.

/// The words of a command: blanks divide, `'...'` and `"..."` keep blanks, `\` takes the next letter as it is (in `"..."` only before `"` and `\`).
pub(super) fn split(command: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = command.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), close) if open == close => quote = None,
            (Some('"'), '\\') if matches!(letters.peek(), Some('"' | '\\')) => {
                word.get_or_insert_default().extend(letters.next());
            }
            (Some(_), letter) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '\\') => match letters.next() {
                Some(letter) => word.get_or_insert_default().push(letter),
                None => return Err("the command ends in a single \\".into()),
            },
            (None, blank) if blank.is_whitespace() => words.extend(word.take()),
            (None, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("the command has a {quote} that is not closed"));
    }
    words.extend(word);
    match words.first() {
        Some(first) if !first.is_empty() => Ok(words),
        _ => Err("name a program, as in --program \"python serve.py\"".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compared with Python's shlex.split.
    #[test]
    fn words_are_split_as_a_shell_does() {
        for (command, expected) in [
            ("python serve.py", &["python", "serve.py"][..]),
            ("  a\t b ", &["a", "b"]),
            (r#"sh -c 'exec "$0" x'"#, &["sh", "-c", r#"exec "$0" x"#]),
            (r#"a "b c"d '' \"e"#, &["a", "b cd", "", "\"e"]),
            (r#""a\"b\\c\d" 'e\f' g\ h"#, &[r#"a"b\c\d"#, r"e\f", "g h"]),
        ] {
            assert_eq!(split(command).unwrap(), expected, "{command}");
        }
        for (command, expected) in
            [("", "name a program"), ("'' x", "name a program"), ("a 'b", "not closed"), ("a \\", "single \\")]
        {
            assert!(split(command).unwrap_err().contains(expected), "{command}");
        }
    }
}
