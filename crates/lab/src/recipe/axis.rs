//! The values a setting runs through in a sweep, as people write them.
//!
//! | written | means |
//! |---|---|
//! | `12`, `"parity"` | one value |
//! | `[4, 8, 12]`, on the command line `4,8,12` | these values |
//! | `"0..10"` | 0, 1, ..., 9 (the end is left out, as in Rust) |
//! | `"4..=30"` | 4, 5, ..., 30 (the end is included) |
//! | `"4..=30 step 2"` | 4, 6, ..., 30 |
//! | `"random:0..10"` | `random:0`, ..., `random:9` |
//! | `"0.0..0.4"` | drawn axes only: any real number between the two |

use serde_json::Value;

use crate::error::{Error, Result};

/// The values of one setting in a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// The setting's dotted name.
    pub key: String,
    /// What it runs through or is drawn from.
    pub values: Values,
}

/// What a setting runs through, or is drawn from.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// These, in order.
    List(Vec<Value>),
    /// Any real number between the two.
    Between(f64, f64),
}

/// A sweep of more values than this on one axis is a typing mistake.
const LONGEST_AXIS: u64 = 1_000_000;

impl Axis {
    /// Reads the values of a setting from a recipe.
    pub fn read(key: &str, written: &Value) -> Result<Axis> {
        let items = match written {
            Value::Array(items) => items.as_slice(),
            single => std::slice::from_ref(single),
        };
        let mut list = Vec::new();
        for item in items {
            match item.as_str().map(|text| parse_range(key, text)).transpose()?.flatten() {
                Some(Values::List(range)) => list.extend(range),
                Some(between) if items.len() == 1 => return Ok(Axis { key: key.into(), values: between }),
                Some(_) => return Err(Error::setting(key, "a real interval cannot be one value of a list")),
                None => list.push(item.clone()),
            }
            if list.len() as u64 > LONGEST_AXIS {
                return Err(Error::setting(key, format!("has more than {LONGEST_AXIS} values to run through")));
            }
        }
        if list.is_empty() {
            return Err(Error::setting(key, "has no values to run through"));
        }
        Ok(Axis { key: key.into(), values: Values::List(list) })
    }

    /// Reads the values of a setting as typed on the command line: `4,8,12`, `0..10`, `true`, `parity`.
    pub fn read_typed(key: &str, text: &str) -> Result<Axis> {
        let values = items(text).map(|item| typed(key, item.trim())).collect::<Result<Vec<Value>>>()?;
        if values.iter().any(|value| value == "") {
            return Err(Error::setting(key, "has an empty value; write key=value or key=a,b,c"));
        }
        Axis::read(key, &Value::Array(values))
    }

    /// The values of an axis that is run through.
    pub fn listed(&self) -> Result<&[Value]> {
        match &self.values {
            Values::List(list) => Ok(list),
            Values::Between(low, high) => {
                let problem =
                    format!("{low}..{high} holds infinitely many values; list some, or put it under `random`");
                Err(Error::setting(&self.key, problem))
            }
        }
    }
}

/// The parts between commas, but for commas in parentheses: `parity,expr:maj(x1,x2,x3)` are two.
fn items(text: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0usize;
    text.split(move |character| {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        character == ',' && depth == 0
    })
}

/// A word typed on the command line as a JSON value: numbers and booleans as such, anything else as text.
fn typed(key: &str, word: &str) -> Result<Value> {
    if let Ok(whole) = word.parse::<u64>() {
        return Ok(whole.into());
    }
    if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) {
        let word = pudica_boolean::shortened(word, 40);
        return Err(Error::setting(key, format!("{word} is too large: whole numbers go up to {}", u64::MAX)));
    }
    if let Ok(negative) = word.parse::<i64>() {
        return Ok(negative.into());
    }
    Ok(match word.parse::<f64>() {
        Ok(real) if real.is_finite() => real.into(),
        _ => word.parse::<bool>().map(Value::from).unwrap_or_else(|_| word.into()),
    })
}

/// A range written as text, if it is one.
fn parse_range(key: &str, text: &str) -> Result<Option<Values>> {
    // `table:../f.npy` and `../texts` are paths.
    let Some((start, rest)) = text.split_once("..").filter(|_| !text.contains('/')) else { return Ok(None) };
    let (inclusive, rest) = match rest.strip_prefix('=') {
        Some(rest) => (true, rest),
        None => (false, rest),
    };
    let (end, step) = match rest.split_once("step") {
        Some((end, step)) => (end.trim(), step.trim()),
        None => (rest.trim(), "1"),
    };
    let (prefix, start) = match start.rsplit_once(':') {
        Some((prefix, start)) => (Some(prefix), start.trim()),
        None => (None, start.trim()),
    };
    let bad = |problem: &str| Error::setting(key, format!("`{text}` {problem}"));
    let whole = |part: &str| part.parse::<u64>().ok();
    let step = whole(step).filter(|step| *step > 0).ok_or_else(|| bad("has a step that is no whole number above 0"))?;
    if let (Some(low), Some(high)) = (whole(start), whole(end)) {
        let past = if inclusive { high.saturating_add(1) } else { high };
        if past <= low {
            return Err(bad("is an empty range"));
        }
        if (past - low) / step > LONGEST_AXIS {
            return Err(bad("is too long a range"));
        }
        let name = |i: u64| prefix.map_or_else(|| i.into(), |prefix| format!("{prefix}:{i}").into());
        return Ok(Some(Values::List((low..past).step_by(step as usize).map(name).collect())));
    }
    match (start.parse::<f64>(), end.parse::<f64>()) {
        (Ok(low), Ok(high)) if low < high && low.is_finite() && high.is_finite() && prefix.is_none() => {
            Ok(Some(Values::Between(low, high)))
        }
        _ => Err(bad("is not a range; write 0..10, 4..=30 or 4..=30 step 2")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn list(written: Value) -> Vec<Value> {
        Axis::read("n", &written).unwrap().listed().unwrap().to_vec()
    }

    #[test]
    fn ranges_and_lists() {
        assert_eq!(list(json!("0..3")), [json!(0), json!(1), json!(2)]);
        assert_eq!(list(json!("4..=6")), [json!(4), json!(5), json!(6)]);
        assert_eq!(list(json!("4..=8 step 2")), [json!(4), json!(6), json!(8)]);
        assert_eq!(list(json!([1, "5..7"])), [json!(1), json!(5), json!(6)]);
        assert_eq!(list(json!("random:0..2")), [json!("random:0"), json!("random:1")]);
        assert_eq!(list(json!("parity")), [json!("parity")]);
        assert_eq!(list(json!("../texts/mine.tsv")), [json!("../texts/mine.tsv")]);
        assert_eq!(Axis::read("n", &json!("0.0..0.4")).unwrap().values, Values::Between(0.0, 0.4));
    }

    #[test]
    fn typed_overrides() {
        let axis = Axis::read_typed("n", "4,8,12").unwrap();
        assert_eq!(axis.listed().unwrap(), [json!(4), json!(8), json!(12)]);
        let axis = Axis::read_typed("target", "parity, expr:maj(x1, (x2), x3) & x4,table:../f.npy").unwrap();
        assert_eq!(axis.listed().unwrap(), ["parity", "expr:maj(x1, (x2), x3) & x4", "table:../f.npy"]);
        assert_eq!(Axis::read_typed("train.lr", "1e-3").unwrap().listed().unwrap(), [json!(1e-3)]);
        assert_eq!(Axis::read_typed("model.same_init", "false").unwrap().listed().unwrap(), [json!(false)]);
    }

    #[test]
    fn mistakes() {
        let refusal = |text: &str| Axis::read_typed("n", text).unwrap_err().to_string();
        assert_eq!(refusal("5..5"), "n: `5..5` is an empty range");
        for step in ["0", "-1", "x", "0.5", ""] {
            let text = format!("4..=8 step {step}");
            assert_eq!(refusal(&text), format!("n: `{}` has a step that is no whole number above 0", text.trim_end()));
        }
        assert_eq!(
            refusal("18446744073709551616"),
            "n: 18446744073709551616 is too large: whole numbers go up to 18446744073709551615"
        );
        assert!(refusal("a..b").contains("is not a range"));
        assert!(refusal("4,,5").contains("empty value"));
        assert!(refusal("0..99999999999").contains("too long"));
        let real = Axis::read_typed("train.lr", "0.1..0.2").unwrap();
        assert!(real.listed().unwrap_err().to_string().contains("infinitely many"));
    }
}
