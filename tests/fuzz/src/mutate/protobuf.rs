//! Changes to messages of protobuf that leave them messages: fields that are missing, twice there, moved or of other values, with all lengths right.

use super::NUMBERS;
use crate::random::Random;

/// Messages in messages, at most.
const DEEPEST: usize = 12;

struct Field {
    number: u64,
    value: Value,
}

enum Value {
    Varint(u64),
    Fixed64([u8; 8]),
    Fixed32([u8; 4]),
    Bytes(Vec<u8>),
    /// Bytes that can be read as a message.
    Message(Vec<Field>),
}

/// Changes a message; `None` where there is none.
pub fn mutate(bytes: &[u8], words: &[&str], random: &mut Random) -> Option<Vec<u8>> {
    let mut message = read(bytes, 0)?;
    for _ in 0..=random.below(3) {
        change(&mut message, words, random);
    }
    let mut changed = Vec::new();
    write(&message, &mut changed);
    Some(changed)
}

fn change(message: &mut Vec<Field>, words: &[&str], random: &mut Random) {
    if message.is_empty() {
        message.push(Field { number: 1 + random.below(16) as u64, value: Value::Varint(*random.one(&NUMBERS)) });
        return;
    }
    let at = random.below(message.len());
    if let Value::Message(inner) = &mut message[at].value
        && !random.once_in(4)
    {
        return change(inner, words, random);
    }
    let other = random.below(message.len());
    match (random.below(8), &mut message[at].value) {
        (0, _) => _ = message.remove(at),
        (1, _) => message.swap(at, other),
        (2, _) => {
            let copied = copy(&message[at]);
            message.insert(other, copied);
        }
        (3, _) => message[at].value = copy(&message[other]).value,
        (_, Value::Varint(number)) => {
            *number = match random.below(4) {
                0 => number.wrapping_add(1),
                1 => number.wrapping_sub(1),
                2 => random.below(24) as u64,
                _ => *random.one(&NUMBERS),
            };
        }
        (4 | 5, Value::Bytes(bytes)) if !words.is_empty() => *bytes = random.one(words).as_bytes().to_vec(),
        (_, Value::Bytes(bytes)) => super::change(bytes, b"", words, random),
        (_, Value::Fixed32(bytes)) => {
            *bytes = [(random.word() as f32).to_le_bytes(), [0, 0, 0xc0, 0x7f], [0; 4]][random.below(3)]
        }
        (_, Value::Fixed64(bytes)) => *bytes = random.word().to_le_bytes(),
        (_, Value::Message(_)) => message[at].number = 1 + random.below(16) as u64,
    }
}

fn copy(field: &Field) -> Field {
    let value = match &field.value {
        Value::Varint(number) => Value::Varint(*number),
        Value::Fixed64(bytes) => Value::Fixed64(*bytes),
        Value::Fixed32(bytes) => Value::Fixed32(*bytes),
        Value::Bytes(bytes) => Value::Bytes(bytes.clone()),
        Value::Message(fields) => Value::Message(fields.iter().map(copy).collect()),
    };
    Field { number: field.number, value }
}

fn read(mut bytes: &[u8], depth: usize) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let value = match tag & 7 {
            0 => Value::Varint(varint(&mut bytes)?),
            1 => Value::Fixed64(*take(&mut bytes, 8)?.first_chunk()?),
            5 => Value::Fixed32(*take(&mut bytes, 4)?.first_chunk()?),
            2 => {
                let length = varint(&mut bytes)?;
                let inner = take(&mut bytes, usize::try_from(length).ok()?)?;
                let is_text = inner.iter().all(|byte| (b' '..=b'~').contains(byte));
                let message = if depth < DEEPEST && !is_text { read(inner, depth + 1) } else { None };
                message.map_or_else(|| Value::Bytes(inner.to_vec()), Value::Message)
            }
            _ => return None,
        };
        if tag >> 3 == 0 {
            return None;
        }
        fields.push(Field { number: tag >> 3, value });
    }
    Some(fields)
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for place in 0..10 {
        let byte = take(bytes, 1)?[0];
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn write(message: &[Field], out: &mut Vec<u8>) {
    for Field { number, value } in message {
        let kind = match value {
            Value::Varint(_) => 0,
            Value::Fixed64(_) => 1,
            Value::Bytes(_) | Value::Message(_) => 2,
            Value::Fixed32(_) => 5,
        };
        write_varint(number << 3 | kind, out);
        match value {
            Value::Varint(number) => write_varint(*number, out),
            Value::Fixed64(bytes) => out.extend(bytes),
            Value::Fixed32(bytes) => out.extend(bytes),
            Value::Bytes(bytes) => {
                write_varint(bytes.len() as u64, out);
                out.extend(bytes);
            }
            Value::Message(fields) => {
                let mut inner = Vec::new();
                write(fields, &mut inner);
                write_varint(inner.len() as u64, out);
                out.extend(inner);
            }
        }
    }
}

fn write_varint(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_written_as_it_was_read() {
        let file = include_bytes!("../../../golden/onnx/mlp.onnx");
        let mut written = Vec::new();
        write(&read(file, 0).unwrap(), &mut written);
        assert_eq!(written, file);
        let mut random = Random::new(&[3]);
        let changed = mutate(file, &["Gemm"], &mut random).unwrap();
        assert!(changed != file && read(&changed, 0).is_some());
    }
}
