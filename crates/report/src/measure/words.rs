//! How responses and nudges are called on the page.

use serde_json::{Map, Value};

use crate::plot::capitalised;

/// How a response is spoken of.
pub struct Words {
    /// Above its table: `Label changes`.
    pub title: String,
    /// On an axis and in a sentence: `label changes`.
    pub name: String,
    /// What its number is, in a sentence.
    pub meaning: &'static str,
    /// Whether it is a fraction, from 0 to 1.
    pub is_fraction: bool,
    /// Whether more of it means that a nudge did less.
    pub is_inverse: bool,
}

/// The words of a response; one that is not known here is called by its name.
pub fn of_response(response: &str) -> Words {
    let (name, meaning, is_fraction) = match response {
        "label" => ("label changes", "The fraction of nudges after which the model gives another class.", true),
        "total-variation" => (
            "total variation",
            "How much probability moves between classes: half the sum of absolute changes, from 0 to 1.",
            true,
        ),
        "l2" => ("shift of scores", "The length (L2) of the change of the scores.", false),
        "margin" => (
            "shrinking of the margin",
            "By how much the score of the true class (without labels, of the class given before) falls towards the best other one.",
            false,
        ),
        "loss" => ("rise of the loss", "By how much the cross-entropy of the true class rises.", false),
        "accuracy" => ("accuracy", "The fraction of nudged inputs that are classified right.", true),
        "trace" => ("Hessian trace", "The trace of the Hessian of the loss in the weights.", false),
        "top-eigenvalue" => {
            ("top eigenvalue", "The largest eigenvalue of the Hessian of the loss in the weights.", false)
        }
        _ => ("", "", false),
    };
    let name = if name.is_empty() { response.replace(['-', '_'], " ") } else { name.into() };
    Words { title: capitalised(&name), name, meaning, is_fraction, is_inverse: response == "accuracy" }
}

/// A kind of nudge in a sentence: `patch-replace` is `patch replacement`.
pub fn of_kind(kind: &str) -> String {
    match kind {
        "corruption" => "corruption".into(),
        "fgsm" | "pgd" => kind.to_uppercase(),
        "bit-flip" => "bit flips".into(),
        "typo" => "typos".into(),
        "word-delete" => "word deletion".into(),
        "word-mask" => "word masking".into(),
        "word-swap" => "word swaps".into(),
        "feature-resample" => "feature resampling".into(),
        "hessian" => "Hessian".into(),
        kind => match kind.strip_suffix("-replace") {
            Some(what) => format!("{} replacement", what.replace('-', " ")),
            None => kind.replace(['-', '_', ':'], " "),
        },
    }
}

/// A nudge for a title: its kind, what it is given in words, and its numbers except that of the name `without`: `patch noise, size 4`.
pub fn of_nudge(kind: &str, parameters: &Map<String, Value>, without: Option<&str>) -> String {
    let mut title = of_kind(kind);
    for text in parameters.values().filter_map(Value::as_str) {
        title += &format!(" {}", text.replace(['-', '_'], " "));
    }
    // How often is no part of what is done.
    let told = |(name, value): &(&String, &Value)| {
        !value.is_string() && Some(name.as_str()) != without && name.as_str() != "draws"
    };
    for (name, value) in parameters.iter().filter(told) {
        title += &format!(", {} {value}", name.replace(['-', '_'], " "));
    }
    title
}

/// "a", "a and b", "a, b and c".
pub fn listed(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// A text of so many letters at most, its middle left out: names of columns often differ in their ends.
pub fn shortened(text: &str, letters: usize) -> String {
    let all: Vec<char> = text.chars().collect();
    if all.len() <= letters {
        return text.into();
    }
    let (first, last) = (letters / 2, (letters - 1) / 2);
    all[..first].iter().chain(['…'].iter()).chain(&all[all.len() - last..]).collect()
}

/// A text of so many letters at most, its end cut.
pub fn cut(text: &str, letters: usize) -> String {
    match text.chars().count() <= letters {
        true => text.into(),
        false => text.chars().take(letters - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nudges_are_called_by_what_tells_them_apart() {
        let parameters = json!({"name": "gaussian-blur", "severity": 2, "draws": 5});
        let parameters = parameters.as_object().unwrap();
        assert_eq!(of_nudge("corruption", parameters, None), "corruption gaussian blur, severity 2");
        assert_eq!(of_nudge("corruption", parameters, Some("severity")), "corruption gaussian blur");
        assert_eq!(of_nudge("word-replace", &Map::new(), None), "word replacement");
    }

    #[test]
    fn responses_of_others_are_called_by_their_name() {
        assert_eq!(of_response("top-5").title, "Top 5");
        assert!(of_response("label").is_fraction && !of_response("loss").is_fraction);
    }

    #[test]
    fn lists_read_as_sentences_do() {
        let names = ["a", "b", "c"].map(String::from);
        assert_eq!([0, 1, 2, 3].map(|count| listed(&names[..count])), ["", "a", "a and b", "a, b and c"]);
        assert_eq!((cut("abcdef", 6), cut("abcdefg", 6)), ("abcdef".into(), "abcde…".into()));
        assert_eq!((shortened("abcdefg", 7), shortened("abcdefg", 6)), ("abcdefg".into(), "abc…fg".into()));
    }
}
