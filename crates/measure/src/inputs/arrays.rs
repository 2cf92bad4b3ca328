//! `.npy` and `.npz`: images, rows of a table, tokens or bits, as type and axes tell, with labels beside them.

use std::path::Path;

use pudica_boolean::npy::Type;
use pudica_data::FileResult;
use pudica_data::images::Shape;
use pudica_model::{Image, Input, Takes};
use pudica_probe::{InputKind, Sequence};

use super::array::Array;
use super::classes::{class_of, numbered};
use super::fit::{Fit, Unfit};
use super::table::Numbers;
use super::{Choice, Inputs, InputsRequest, Labelled, Opened, digest_of, npz};
use crate::MeasureResult;

/// A table of more values is not held in memory.
const MOST_VALUES: u64 = 1 << 28;

/// An array read by rows.
struct Rows {
    array: Array,
    choice: Choice,
    /// The class of each chosen row; empty where there are none.
    labels: Vec<usize>,
    what: What,
}

/// What a row is.
enum What {
    /// An image as it is, whose channels come last or first.
    Image { shape: [usize; 3], channels_last: bool },
    /// Bytes of a picture, whose channels come last or first.
    Picture { shape: Shape, channels_last: bool, fit: Fit },
    /// Tokens of a vocabulary of this size.
    Tokens(Option<usize>),
    /// Zeros and ones.
    Bits,
}

pub(super) fn open(request: &InputsRequest, path: &Path, takes: &Takes) -> MeasureResult<Opened> {
    let mut notes = Vec::new();
    let (array, beside) = find(path, request.labels.is_none(), &mut notes)?;
    let mut identity = vec![digest_of(path)?];
    let labels = match &request.labels {
        Some(path) => {
            identity.push(digest_of(path)?);
            Some(labels_of(&Array::open(path)?, &array)?)
        }
        None => beside.map(|labels| labels_of(&labels, &array)).transpose()?,
    };
    opened(request, array, labels, (identity, notes), takes)
}

/// An array as a source, with the class of each row; then come identity and notes.
pub(super) fn opened(
    request: &InputsRequest,
    array: Array,
    labels: Option<Vec<usize>>,
    (mut identity, mut notes): (Vec<String>, Vec<String>),
    takes: &Takes,
) -> MeasureResult<Opened> {
    let choice = Choice::new(request, array.count());
    let classes = labels.as_ref().and_then(|labels| labels.iter().max()).map_or(0, |largest| largest + 1);
    let labels: Vec<usize> = labels.map_or(Vec::new(), |labels| choice.rows().map(|row| labels[row]).collect());

    let shape = array.shape();
    let refuse_size = || match request.size {
        Some(size) => Err(array.error(format!("--size {size} is for pictures; these numbers are taken as they are"))),
        None => Ok(()),
    };
    let what = match (array.dtype(), shape.as_slice()) {
        (Type::U8, &[height, width]) => picture([height, width, 1], true, &array, request, takes)?,
        (Type::U8, &[a, b, c]) => {
            let last = channels_last([a, b, c], takes, &array, &mut notes)?;
            picture(if last { [a, b, c] } else { [b, c, a] }, last, &array, request, takes)?
        }
        (dtype, &[height, width]) if dtype.is_float() => {
            refuse_size()?;
            What::Image { shape: [1, height, width], channels_last: false }
        }
        (dtype, &[a, b, c]) if dtype.is_float() => {
            refuse_size()?;
            let channels_last = channels_last([a, b, c], takes, &array, &mut notes)?;
            What::Image { shape: if channels_last { [c, a, b] } else { [a, b, c] }, channels_last }
        }
        (dtype, &[width]) if dtype.is_float() || matches!(takes, Takes::Rows { .. }) && dtype != Type::Bool => {
            refuse_size()?;
            let columns = columns(&array, &choice, width)?;
            let names = choice.rows().map(|row| row.to_string()).collect();
            let labels = (!labels.is_empty()).then_some(labels);
            identity.push("rows".into());
            let table = Numbers { columns, labels, names };
            return table.opened(array.path(), numbered(width), choice, (numbered(classes), identity, notes), takes);
        }
        (Type::Bool, &[_]) => {
            refuse_size()?;
            What::Bits
        }
        (dtype, &[_]) if !dtype.is_float() => {
            refuse_size()?;
            What::Tokens(if let Takes::Tokens { vocabulary, .. } = takes { *vocabulary } else { None })
        }
        (dtype, shape) => {
            let problem = format!(
                "each input is an array {shape:?} of {}: images are [channels, height, width], [height, width, channels] or [height, width] of uint8 or floats, rows of a table [columns] of floats, tokens [length] of integers",
                dtype.name()
            );
            return Err(array.error(problem).into());
        }
    };
    let (kind, shape) = match &what {
        What::Image { shape, .. } => (InputKind::Images, shape.to_vec()),
        What::Picture { fit, .. } => (InputKind::Images, fit.shape().to_vec()),
        What::Tokens(_) => (InputKind::Tokens, shape),
        What::Bits => (InputKind::Bits, shape),
    };
    identity.push(format!("{kind:?} {shape:?}"));
    Ok(Opened {
        kind,
        shape,
        classes: numbered(classes),
        columns: Vec::new(),
        spread: Vec::new(),
        notes,
        identity,
        inputs: Box::new(Rows { array, choice: choice.clone(), labels, what }),
        choice,
    })
}

/// The array of inputs, and that of labels where one lies beside it and `labelled` asks for it.
fn find(path: &Path, labelled: bool, notes: &mut Vec<String>) -> FileResult<(Array, Option<Array>)> {
    if !path.to_string_lossy().to_lowercase().ends_with(".npz") {
        return Ok((Array::open(path)?, None));
    }
    let mut arrays = npz::open(path)?;
    let called = |arrays: &[(String, Array)], wanted: &str| {
        arrays.iter().position(|(name, _)| name.eq_ignore_ascii_case(wanted))
    };
    let x = called(&arrays, "x").unwrap_or_else(|| {
        if arrays.len() > 1 {
            notes.push(format!(
                "{}: no array is called x, so the first, {}, is taken as the inputs.",
                path.display(),
                arrays[0].0
            ));
        }
        0
    });
    let inputs = arrays.remove(x).1;
    let y = called(&arrays, "y").or_else(|| {
        let fits =
            |array: &Array| !array.dtype().is_float() && array.shape().is_empty() && array.count() == inputs.count();
        let first = arrays.iter().position(|(_, array)| fits(array)).filter(|_| labelled)?;
        notes.push(format!("{}: no array is called y, so {} is taken as the labels.", path.display(), arrays[first].0));
        Some(first)
    });
    let labels = y.filter(|_| labelled).map(|y| arrays.remove(y).1);
    Ok((inputs, labels))
}

/// The class of each input.
fn labels_of(labels: &Array, inputs: &Array) -> FileResult<Vec<usize>> {
    if labels.dtype().is_float() {
        return Err(labels.error(format!("labels of type {}: save them as integers", labels.dtype().name())));
    }
    if labels.shape().iter().any(|length| *length != 1) {
        let problem = format!(
            "labels of shape {:?} for each input: one number is needed (numpy.argmax of one-hot labels)",
            labels.shape()
        );
        return Err(labels.error(problem));
    }
    if labels.count() != inputs.count() {
        let problem =
            format!("{} labels, but {} has {} inputs", labels.count(), inputs.path().display(), inputs.count());
        return Err(labels.error(problem));
    }
    let class = |row: usize| {
        let value = labels.values(row)?.next().flatten();
        class_of(value).ok_or_else(|| {
            let value = value.map_or("too large".into(), |value| value.to_string());
            labels.error(format!("label {row} is {value}; classes are numbered from 0"))
        })
    };
    (0..labels.count()).map(class).collect()
}

/// Whether the channels of images come last. The model knows how many there are, or 1 and 3 are looked for.
fn channels_last([a, b, c]: [usize; 3], takes: &Takes, array: &Array, notes: &mut Vec<String>) -> FileResult<bool> {
    let wanted = match takes {
        // Bytes can be made grey or coloured.
        Takes::Images { channels: Some(channels), .. } if array.dtype() != Type::U8 || [a, c].contains(channels) => {
            vec![*channels]
        }
        _ => vec![1, 3],
    };
    match (wanted.contains(&a), wanted.contains(&c)) {
        (true, false) => Ok(false),
        (false, true) => Ok(true),
        (true, true) => {
            notes.push(format!(
                "{}: images {a} x {b} x {c} are read as [channels, height, width].",
                array.path().display()
            ));
            Ok(false)
        }
        (false, false) => {
            let channels: Vec<String> = wanted.iter().map(usize::to_string).collect();
            let problem = format!(
                "images {a} x {b} x {c} have no axis of {} channels, neither first nor last",
                channels.join(" or ")
            );
            Err(array.error(problem))
        }
    }
}

/// Bytes \[height, width, channels\] that become pictures as a model takes them.
fn picture(
    [height, width, channels]: [usize; 3],
    channels_last: bool,
    array: &Array,
    request: &InputsRequest,
    takes: &Takes,
) -> FileResult<What> {
    let shape = Shape { height, width, channels };
    let fit = Fit::new(&[shape], request.size, takes).map_err(|unfit| match unfit {
        Unfit::Other(problem) => array.error(problem),
        Unfit::Differs(_) => array.error("images differ in size"),
    })?;
    match channels {
        1 | 3 => Ok(What::Picture { shape, channels_last, fit }),
        _ => Err(array
            .error(format!("images of {channels} channels as bytes are not read here: 1 (grey) and 3 (colour) are"))),
    }
}

/// Columns of chosen rows.
fn columns(array: &Array, choice: &Choice, width: usize) -> FileResult<Vec<Vec<f32>>> {
    if (choice.count() as u64).saturating_mul(width as u64) > MOST_VALUES {
        let problem =
            format!("{} rows of {width} columns are too many to hold; --sample 100000 takes some", choice.count());
        return Err(array.error(problem));
    }
    let mut columns = vec![Vec::with_capacity(choice.count()); width];
    for row in choice.rows() {
        columns.iter_mut().zip(array.floats(row)?).for_each(|(column, value)| column.push(value));
    }
    Ok(columns)
}

/// Values \[height, width, channels\] as \[channels, height, width\], or the other way round: from `outer` pieces of `inner` values each to
/// `inner` pieces of `outer`.
fn turned<T: Copy>(values: &[T], inner: usize) -> Vec<T> {
    (0..inner).flat_map(|at| values.iter().skip(at).step_by(inner).copied()).collect()
}

impl Rows {
    fn input(&self, row: usize) -> FileResult<Input> {
        Ok(match &self.what {
            What::Image { shape, channels_last } => {
                let values = self.array.floats(row)?;
                let values = if *channels_last { turned(&values, shape[0]) } else { values };
                Input::Image(Image { shape: *shape, values })
            }
            What::Picture { shape, channels_last, fit } => {
                let bytes = self.array.bytes(row)?;
                let bytes = if *channels_last { bytes } else { turned(&bytes, shape.height * shape.width) };
                Input::Image(fit.image(*shape, &bytes))
            }
            What::Tokens(vocabulary) => {
                let largest = vocabulary.map_or(u32::MAX as usize, |size| size.saturating_sub(1));
                let token = |(at, value): (usize, Option<f64>)| match value {
                    Some(value) if value >= 0.0 && value <= largest as f64 => Ok(value as u32),
                    _ => {
                        let value = value.map_or("a huge number".into(), |value| value.to_string());
                        Err(self.array.error(format!("row {row}, token {at} is {value}, not 0 to {largest}")))
                    }
                };
                let ids = self.array.values(row)?.enumerate().map(token).collect::<FileResult<_>>()?;
                Input::Tokens(Sequence { ids, touch: None })
            }
            What::Bits => Input::Bits(self.array.bytes(row)?.iter().map(|byte| u8::from(*byte != 0)).collect()),
        })
    }
}

impl Inputs for Rows {
    fn read(&self, index: usize) -> MeasureResult<Labelled> {
        Ok(Labelled { input: self.input(self.choice.row(index))?, label: self.labels.get(index).copied() })
    }

    fn name(&self, index: usize) -> String {
        self.choice.row(index).to_string()
    }
}
