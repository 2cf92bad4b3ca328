//! Numbers, bars and messages for people.

use pudica_boolean::shortened;

/// A number with about six significant digits: `11`, `3.70018`, `1.2e-9`.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == value.trunc() && size < 1e15 {
        format!("{value}")
    } else if (1e-4..1e9).contains(&size) {
        let digits = (5 - size.log10().floor() as i32).clamp(0, 9) as usize;
        let text = format!("{value:.digits$}");
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
    } else {
        format!("{value:.3e}")
    }
}

/// A whole number with thin groups: `1,048,576`.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Terms, each with whether it is subtracted, as a sum: `a - b + c`; `0` where there are none.
pub fn sum_of(terms: impl Iterator<Item = (bool, String)>) -> String {
    let mut sum = String::new();
    for (negative, term) in terms {
        sum += match (sum.is_empty(), negative) {
            (true, false) => "",
            (true, true) => "-",
            (false, false) => " + ",
            (false, true) => " - ",
        };
        sum += &term;
    }
    if sum.is_empty() { "0".into() } else { sum }
}

/// A message without what is of no use to people: the system's numbers of errors, and more than the beginning of anything long that was
/// typed or read and is quoted in it.
pub fn brief(message: &str) -> String {
    // Longer than words, and than paths, are.
    let is_long = |word: &str| word.chars().count() > if word.contains('/') { 300 } else { 120 };
    let mut text = String::new();
    for word in message.split_inclusive(char::is_whitespace) {
        let (word, space) = word.split_at(word.trim_end().len());
        text += &if is_long(word) { shortened(word, 80) } else { word.into() };
        text += space;
    }
    text = text.replace(|c: char| c.is_control() && c != '\n', " "); // they would act on the terminal
    while let Some(start) = text.find(" (os error ") {
        match text[start..].find(')') {
            Some(end) => text.replace_range(start..=start + end, ""),
            None => break,
        }
    }
    for (theirs, ours) in [
        ("stream did not contain valid UTF-8", "it is no text in UTF-8"),
        ("File too large", "the file is larger than `ulimit -f` allows here"),
        ("No space left on device", "the disk is full; free some space and run the same command again"),
    ] {
        text = text.replace(theirs, ours);
    }
    shortened(&text, 2000)
}

/// "1 run", "7 runs".
pub fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count as u64))
}

/// A bar of `share` (0 to 1) of `width` cells, in eighths of a cell.
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    if text.is_empty() && share > 0.0 {
        text.push('▏'); // small is not nothing
    }
    text
}

/// "0.3 ms", "0.19 s", "12.5 s", "3 min 5 s".
pub fn seconds(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    // Thresholds are where a number would round to the next unit.
    match seconds {
        s if s < 0.9995e-3 => format!("{:.0} µs", s * 1e6),
        s if s < 0.09995 => format!("{:.1} ms", s * 1e3),
        s if s < 0.995 => format!("{s:.2} s"),
        s if s < 119.95 => format!("{s:.1} s"),
        s if s < 7199.5 => format!("{} min {} s", whole / 60, whole % 60),
        s if s < 172_770.0 => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
        _ => format!("{} days {} h", whole / 86_400, whole % 86_400 / 3600),
    }
}

/// A line that is not wider than so many columns, cut with an ellipsis where it would be.
pub fn cut(line: &str, width: usize) -> String {
    match line.chars().count() <= width {
        true => line.into(),
        false => line.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_brief() {
        assert_eq!(brief("cannot read a b: No such file (os error 2); try x"), "cannot read a b: No such file; try x");
        let long = "x".repeat(100_000);
        assert_eq!(brief(&format!("no scale {long} here")), format!("no scale {}... here", &long[..80]));
        assert_eq!(brief(&format!("{long}\n\x1b[2Jx")), format!("{}...\n [2Jx", &long[..80]));
        assert_eq!(brief(&"a ".repeat(10_000)).len(), 2003);
    }

    #[test]
    fn numbers_read_well() {
        assert_eq!(number(11.0), "11");
        assert_eq!(number(3.700_180_5), "3.70018");
        assert_eq!(number(0.25), "0.25");
        assert_eq!(number(1.23e-9), "1.230e-9");
        assert_eq!(grouped(1_048_576), "1,048,576");
        assert_eq!(grouped(12), "12");
    }

    #[test]
    fn times_read_well() {
        let shown = [
            2e-7, 4.2e-4, 9.996e-4, 0.0125, 0.09996, 0.1855, 0.9988, 12.5, 119.96, 185.0, 7199.6, 9000.0, 172_700.0,
            180_000.0,
        ]
        .map(seconds);
        assert_eq!(
            shown,
            [
                "0 µs",
                "420 µs",
                "1.0 ms",
                "12.5 ms",
                "0.10 s",
                "0.19 s",
                "1.0 s",
                "12.5 s",
                "2 min 0 s",
                "3 min 5 s",
                "2 h 0 min",
                "2 h 30 min",
                "47 h 58 min",
                "2 days 2 h"
            ]
        );
    }

    #[test]
    fn lines_are_cut_where_they_would_wrap() {
        assert_eq!(cut("four", 4), "four");
        assert_eq!(cut("fünf µ", 5), "fünf…");
        assert_eq!(cut("", 0), "");
    }

    #[test]
    fn bars_show_small_values() {
        assert_eq!(bar(1.0, 3), "███");
        assert_eq!(bar(0.5, 3), "█▌");
        assert_eq!(bar(1e-9, 3), "▏");
        assert_eq!(bar(0.0, 3), "");
    }
}
