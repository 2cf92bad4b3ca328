//! Changes to JSON that leave it JSON: other values, other kinds of values, keys that are missing, twice there or called otherwise.

use super::{NUMBERS, WRITTEN};
use crate::random::Random;
use serde_json::{Map, Value, json};

/// Changes a JSON text, or one line of many; `None` where there is none.
pub fn mutate(bytes: &[u8], words: &[&str], random: &mut Random) -> Option<Vec<u8>> {
    if let Ok(tree) = serde_json::from_slice(bytes) {
        return changed(tree, words, random);
    }
    let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let at = random.below(lines.len());
    let line = changed(serde_json::from_slice(lines[at]).ok()?, words, random)?;
    let lines: Vec<&[u8]> =
        lines.iter().enumerate().map(|(place, own)| if place == at { &line } else { *own }).collect();
    Some(lines.join(&b'\n'))
}

fn changed(mut tree: Value, words: &[&str], random: &mut Random) -> Option<Vec<u8>> {
    for _ in 0..=random.below(3) {
        let other = pick(&tree, random).clone();
        let place = place(&mut tree, random);
        change(place, other, words, random);
    }
    serde_json::to_vec(&tree).ok()
}

/// A value somewhere in the tree: deeper ones as likely as others.
fn place<'a>(tree: &'a mut Value, random: &mut Random) -> &'a mut Value {
    let mut count = random.below(size(tree));
    find(tree, &mut count).expect("there are as many values as were counted")
}

fn find<'a>(value: &'a mut Value, count: &mut usize) -> Option<&'a mut Value> {
    if *count == 0 {
        return Some(value);
    }
    *count -= 1;
    match value {
        Value::Array(list) => list.iter_mut().find_map(|value| find(value, count)),
        Value::Object(table) => table.values_mut().find_map(|value| find(value, count)),
        _ => None,
    }
}

fn size(value: &Value) -> usize {
    match value {
        Value::Array(list) => 1 + list.iter().map(size).sum::<usize>(),
        Value::Object(table) => 1 + table.values().map(size).sum::<usize>(),
        _ => 1,
    }
}

fn pick<'a>(tree: &'a Value, random: &mut Random) -> &'a Value {
    match tree {
        Value::Array(list) if !list.is_empty() && !random.once_in(4) => pick(random.one(list), random),
        Value::Object(table) if !table.is_empty() && !random.once_in(4) => {
            let at = random.below(table.len());
            table.values().nth(at).map_or(tree, |value| pick(value, random))
        }
        _ => tree,
    }
}

fn change(place: &mut Value, other: Value, words: &[&str], random: &mut Random) {
    match (random.below(8), &mut *place) {
        (0, Value::Array(list)) if !list.is_empty() => _ = list.remove(random.below(list.len())),
        (1, Value::Array(list)) => list.insert(random.below(list.len() + 1), other),
        (2, Value::Array(list)) if !list.is_empty() => {
            let again = random.one(list).clone();
            (0..random.below(40)).for_each(|_| list.push(again.clone()));
        }
        (0 | 1, Value::Object(table)) if !table.is_empty() => _ = table.shift_remove(&key(table, random)),
        (2, Value::Object(table)) if !table.is_empty() => {
            let value = table.shift_remove(&key(table, random));
            table.insert(word(words, random), value.unwrap_or_default());
        }
        (3, Value::Object(table)) => _ = table.insert(word(words, random), other),
        (0..=3, Value::Number(number)) => *place = near(number, random),
        (0..=2, Value::String(text)) => *text = word(words, random),
        (3, Value::String(text)) => *text = format!("{text}{}", word(words, random)),
        (4, _) => *place = other,
        (5, _) => *place = Value::from(*random.one(&NUMBERS)),
        (6, _) => *place = json!([other]),
        _ => {
            let written = random.one(&WRITTEN);
            let others =
                [Value::Null, json!(true), json!(""), json!([]), json!({}), json!(-1), json!(1e308), json!(0.5)];
            *place = serde_json::from_str(written).unwrap_or_else(|_| random.one(&others).clone());
        }
    }
}

fn near(number: &serde_json::Number, random: &mut Random) -> Value {
    let value = number.as_f64().unwrap_or(0.0);
    match (random.below(5), number.as_i64()) {
        (0, Some(whole)) => json!(whole.wrapping_add(1)),
        (1, Some(whole)) => json!(whole.wrapping_sub(1)),
        (2, Some(whole)) => json!(whole.wrapping_mul(1 << random.below(40))),
        (3, _) => json!(-value),
        (4, _) => json!(value * 1e30),
        _ => json!(value / 3.0),
    }
}

fn key(table: &Map<String, Value>, random: &mut Random) -> String {
    let at = random.below(table.len());
    table.keys().nth(at).cloned().unwrap_or_default()
}

/// A word of the format, without quotes, or a number.
fn word(words: &[&str], random: &mut Random) -> String {
    match words.is_empty() || random.once_in(8) {
        true => (*random.one(&WRITTEN)).into(),
        false => random.one(words).trim_matches(['"', ':', ' ']).into(),
    }
}
