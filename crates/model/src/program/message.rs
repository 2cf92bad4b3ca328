//! What is sent to a program: one line of JSON, then values or lines of text.

use serde_json::{Value, json};

use crate::{Input, Normalisation};

/// The bytes of a question, and what to call it in a sentence.
pub(super) struct Message {
    pub bytes: Vec<u8>,
    pub what: String,
}

impl Message {
    /// The first one.
    pub fn hello() -> Self {
        Self { bytes: line(&json!({"pudica": 1, "hello": true})), what: "hello".into() }
    }

    /// Inputs that are alike.
    pub fn of(inputs: &[Input], normalisation: Option<&Normalisation>, signs: bool) -> Result<Self, String> {
        let Some(first) = inputs.first() else { return Err("no inputs were given".into()) };
        let mut header = json!({"pudica": 1, "rows": inputs.len()});
        header["kind"] = Value::from(match first {
            Input::Image(_) => "images",
            Input::Row(_) => "rows",
            Input::Tokens(_) => "tokens",
            Input::Text(..) => "texts",
            Input::Bits(_) => "bits",
        });
        if !matches!(first, Input::Text(..)) {
            header["shape"] = Value::from(first.shape());
            header["dtype"] = Value::from(if matches!(first, Input::Tokens(_)) { "i32" } else { "f32" });
        }
        let mut bytes = line(&header);
        for input in inputs {
            match input {
                Input::Image(image) => match normalisation {
                    Some(normalisation) => push(&mut bytes, &normalisation.apply(image)),
                    None => push(&mut bytes, &image.values),
                },
                Input::Row(row) => push(&mut bytes, row),
                Input::Bits(bits) => {
                    let value =
                        |bit: &u8| f32::from(*bit) * if signs { 2.0 } else { 1.0 } - if signs { 1.0 } else { 0.0 };
                    push(&mut bytes, &bits.iter().map(value).collect::<Vec<f32>>());
                }
                Input::Tokens(sequence) if sequence.touch.is_some() => {
                    return Err("a program has no embeddings that can be reached".into());
                }
                Input::Tokens(sequence) => {
                    for id in &sequence.ids {
                        let id = i32::try_from(*id).map_err(|_| format!("token {id} is too large for 32 bits"))?;
                        bytes.extend(id.to_le_bytes());
                    }
                }
                Input::Text(one, None) => bytes.extend(line(&Value::from(one.as_str()))),
                Input::Text(one, Some(other)) => bytes.extend(line(&json!([one, other]))),
            }
        }
        Ok(Self { bytes, what: format!("a batch of {}", inputs.len()) })
    }
}

fn line(value: &Value) -> Vec<u8> {
    format!("{value}\n").into_bytes()
}

fn push(bytes: &mut Vec<u8>, values: &[f32]) {
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Image;
    use pudica_probe::Sequence;

    fn sent(inputs: &[Input], signs: bool) -> Vec<u8> {
        let normalisation = Normalisation { mean: vec![0.5], std: vec![0.25] };
        Message::of(inputs, Some(&normalisation), signs).unwrap().bytes
    }

    #[test]
    fn headers_and_values() {
        let image = Input::Image(Image { shape: [1, 1, 2], values: vec![0.5, 1.0] });
        let expected = [
            &b"{\"pudica\":1,\"rows\":1,\"kind\":\"images\",\"shape\":[1,1,2],\"dtype\":\"f32\"}\n"[..],
            &[0; 4],
            &2f32.to_le_bytes(),
        ];
        assert_eq!(sent(&[image], false), expected.concat());
        let tokens = Input::Tokens(Sequence { ids: vec![258], touch: None });
        assert!(sent(&[tokens], false).ends_with(&[b'\n', 2, 1, 0, 0]));
        let bits = |signs| sent(&[Input::Bits(vec![0, 1])], signs);
        assert!(bits(true).ends_with(&[(-1f32).to_le_bytes(), 1f32.to_le_bytes()].concat()));
        assert!(bits(false).ends_with(&[0f32.to_le_bytes(), 1f32.to_le_bytes()].concat()));
        let texts = sent(&[Input::Text("a \"b\"\n".into(), None), Input::Text("c".into(), Some("d".into()))], false);
        let expected = "{\"pudica\":1,\"rows\":2,\"kind\":\"texts\"}\n\"a \\\"b\\\"\\n\"\n[\"c\",\"d\"]\n";
        assert_eq!(String::from_utf8(texts).unwrap(), expected);
    }

    #[test]
    fn what_differs_in_shape_is_not_sent_together() {
        let row = |length: usize| Input::Row(vec![0.0; length]);
        assert!(row(2).is_alike(&row(2)) && !row(2).is_alike(&row(3)) && !row(2).is_alike(&Input::Bits(vec![0, 1])));
        assert!(Input::Text("a".into(), None).is_alike(&Input::Text("b".into(), Some("c".into()))));
    }
}
