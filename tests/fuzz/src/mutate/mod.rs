//! Changes to bytes that readers find hard: sizes that lie, files cut and put together anew, words and numbers where they do not belong.

mod json;
mod protobuf;

use crate::random::Random;
use std::ops::Range;

/// What a format is made of: half of all changes leave it so, and come further for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Bytes or text.
    Plain,
    /// JSON, or lines of it.
    Json,
    /// Messages of protobuf.
    Protobuf,
}

/// Numbers at which sizes and signs turn over.
const NUMBERS: [u64; 22] = [
    0,
    1,
    2,
    3,
    7,
    8,
    64,
    0x7f,
    0x80,
    0xff,
    0x100,
    0x7fff,
    0xffff,
    1 << 20,
    1 << 24,
    (1 << 31) - 1,
    1 << 31,
    (1 << 32) - 1,
    1 << 40,
    (1 << 63) - 1,
    1 << 63,
    u64::MAX,
];

/// The same for numbers that are written out.
const WRITTEN: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "0.5",
    "-0.0",
    "1e-320",
    "1e308",
    "1e999",
    "NaN",
    "inf",
    "null",
    "16",
    "64",
    "255",
    "1000",
    "65536",
    "1000000",
    "2147483648",
    "4294967295",
    "9007199254740993",
    "18446744073709551615",
    "18446744073709551616",
];

/// Changes `bytes` once or a few times. `other` is another case, of which parts are taken; `words` are those of the format. At most `longest`
/// bytes come out.
pub fn mutate(bytes: &mut Vec<u8>, form: Form, other: &[u8], words: &[&str], longest: usize, random: &mut Random) {
    let formed = match form {
        _ if random.once_in(2) => None,
        Form::Plain => None,
        Form::Json => json::mutate(bytes, words, random),
        Form::Protobuf => protobuf::mutate(bytes, words, random),
    };
    if let Some(changed) = formed.filter(|changed| changed.len() <= longest) {
        *bytes = changed;
        return;
    }
    loop {
        change(bytes, other, words, random);
        if random.once_in(2) {
            break;
        }
    }
    bytes.truncate(longest);
}

fn change(bytes: &mut Vec<u8>, other: &[u8], words: &[&str], random: &mut Random) {
    if bytes.is_empty() {
        insert(bytes, 0, part(other, random));
        return;
    }
    match random.below(17) {
        0 => {
            let at = place(bytes, random);
            bytes[at] ^= 1 << random.below(8);
        }
        1 => {
            let at = place(bytes, random);
            bytes[at] = random.word() as u8;
        }
        2 | 3 => set_number(bytes, random),
        4 => {
            let at = place(bytes, random);
            let step = random.below(9) as u8;
            bytes[at] = bytes[at].wrapping_add(step).wrapping_sub(4);
        }
        5 => bytes.truncate(random.below(bytes.len())),
        6 => _ = bytes.drain(range(bytes.len(), random)),
        7 => {
            let piece = bytes[range(bytes.len(), random)].to_vec();
            let at = random.below(bytes.len() + 1);
            (0..=random.below(4)).for_each(|_| insert(bytes, at, &piece));
        }
        8 => {
            let noise: Vec<u8> = (0..random.below(8)).map(|_| random.word() as u8).collect();
            insert(bytes, random.below(bytes.len() + 1), &noise);
        }
        9 => insert(bytes, random.below(bytes.len() + 1), part(other, random)),
        10 => _ = bytes.splice(range(bytes.len(), random), part(other, random).iter().copied()),
        11 | 12 if !words.is_empty() => {
            let at = random.below(bytes.len() + 1);
            let replaced = if random.once_in(2) { at..at } else { run(bytes, at, |byte| byte.is_ascii_alphanumeric()) };
            bytes.splice(replaced, random.one(words).bytes());
        }
        11..=13 => {
            // The digits from somewhere on, or where there are none just there.
            let from = random.below(bytes.len());
            let at = bytes[from..].iter().position(u8::is_ascii_digit).map_or(from, |found| from + found);
            let digits = run(bytes, at, |byte| byte.is_ascii_digit() || byte == b'.');
            bytes.splice(digits, random.one(&WRITTEN).bytes());
        }
        14 => {
            let (first, second) = (line(bytes, random), line(bytes, random));
            let copied = bytes[first.clone()].to_vec();
            match random.below(3) {
                0 => _ = bytes.drain(first),
                1 => _ = bytes.splice(second, copied),
                _ => insert(bytes, second.start, &copied),
            }
        }
        15 => {
            let (first, second) = (range(bytes.len(), random), range(bytes.len(), random));
            if first.end <= second.start {
                bytes[first.start..second.end].rotate_left(second.start - first.start);
            }
        }
        _ => {
            // Deep and long: what nests, nests a thousand times.
            let at = random.below(bytes.len());
            let many = if random.once_in(16) { 2000 } else { 40 };
            let piece = [bytes[at]].repeat(random.below(many));
            insert(bytes, at, &piece);
        }
    }
}

/// A place, half of the time among the first bytes, where sizes stand.
fn place(bytes: &[u8], random: &mut Random) -> usize {
    let end = if random.once_in(2) { bytes.len().min(128) } else { bytes.len() };
    random.below(end)
}

fn range(length: usize, random: &mut Random) -> Range<usize> {
    let most = if random.once_in(4) { length } else { length.min(32) };
    let size = 1 + random.below(most);
    let start = random.below(length.saturating_sub(size) + 1);
    start..(start + size).min(length)
}

fn part<'a>(of: &'a [u8], random: &mut Random) -> &'a [u8] {
    if of.is_empty() { b"" } else { &of[range(of.len(), random)] }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    bytes.splice(at..at, piece.iter().copied());
}

/// What surrounds a place and is alike.
fn run(bytes: &[u8], at: usize, alike: impl Fn(u8) -> bool) -> Range<usize> {
    let before = bytes[..at].iter().rev().take_while(|byte| alike(**byte)).count();
    let after = bytes[at..].iter().take_while(|byte| alike(**byte)).count();
    at - before..at + after
}

/// A line with its end.
fn line(bytes: &[u8], random: &mut Random) -> Range<usize> {
    let inner = run(bytes, random.below(bytes.len()), |byte| byte != b'\n');
    inner.start..(inner.end + 1).min(bytes.len())
}

/// Puts a number into a field of 2, 4 or 8 bytes.
fn set_number(bytes: &mut [u8], random: &mut Random) {
    let size = *random.one(&[2, 4, 8]);
    let Some(last) = bytes.len().checked_sub(size) else { return };
    let mut at = place(bytes, random).min(last);
    if random.once_in(2) {
        at -= at % size;
    }
    let near = match random.below(3) {
        0 => bytes.len() as u64,
        _ => *random.one(&NUMBERS),
    };
    let number = near.wrapping_add(random.below(3) as u64).wrapping_sub(1);
    let field = if random.once_in(2) { number.to_le_bytes() } else { (number << (8 * (8 - size))).to_be_bytes() };
    bytes[at..at + size].copy_from_slice(&field[..size]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_changed_without_a_panic_and_the_same_seed_changes_it_alike() {
        for length in [0, 1, 2, 3, 9, 200] {
            let changed = |seed: u64| {
                let mut random = Random::new(&[seed]);
                let mut bytes: Vec<u8> = (0..length).map(|at| b"12,ab\n(\"x\""[at % 10]).collect();
                (0..500).for_each(|_| mutate(&mut bytes, Form::Json, b"{\"other\": 3}", &["word"], 1000, &mut random));
                bytes
            };
            assert_eq!(changed(1), changed(1));
            assert_ne!(changed(1), changed(2));
            assert!(changed(3).len() <= 1000);
        }
    }
}
