//! Batches as Python takes them: an array [batch, ...] of float32 (tokens: int64), or a list of texts.

use std::borrow::Borrow;
use std::sync::Mutex;

use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods, PyUntypedArrayMethods};
use pudica_model::{Input, Normalisation};
use pyo3::prelude::*;

use crate::errors::value_error;

/// Inputs of one kind and shape, laid out.
pub enum Batch {
    Floats(Vec<usize>, Vec<f32>),
    /// Floats in memory that a device reads itself.
    InRoom(Room),
    Ids(Vec<usize>, Vec<i64>),
    Texts(Vec<String>),
    Pairs(Vec<(String, String)>),
}

impl Batch {
    /// Lays inputs out, in a room of their shape where one is free.
    pub fn of<I: Borrow<Input>>(
        inputs: &[I],
        normalisation: Option<&Normalisation>,
        signs: bool,
        rooms: Option<&Rooms>,
    ) -> Self {
        let Some(first) = inputs.first().map(I::borrow) else { return Self::Texts(Vec::new()) };
        let shape: Vec<usize> = std::iter::once(inputs.len()).chain(first.shape()).collect();
        match first {
            Input::Image(_) | Input::Row(_) | Input::Bits(_) => {
                let fill = |values: &mut [f32]| {
                    let each = values.len() / inputs.len();
                    inputs.iter().zip(values.chunks_mut(each.max(1))).for_each(|(input, place)| {
                        put(input.borrow(), normalisation, signs, place);
                    });
                };
                match rooms.and_then(|rooms| rooms.take(&shape)) {
                    Some(mut room) => {
                        fill(room.values());
                        Self::InRoom(room)
                    }
                    None => {
                        let mut values = vec![0.0; shape.iter().product()];
                        fill(&mut values);
                        Self::Floats(shape, values)
                    }
                }
            }
            Input::Tokens(_) => {
                let ids = |input: &Input| match input {
                    Input::Tokens(sequence) => sequence.ids.clone(),
                    _ => Vec::new(),
                };
                Self::Ids(shape, inputs.iter().map(I::borrow).flat_map(ids).map(i64::from).collect())
            }
            Input::Text(_, None) => {
                let text = |input: &Input| if let Input::Text(text, _) = input { text.clone() } else { String::new() };
                Self::Texts(inputs.iter().map(I::borrow).map(text).collect())
            }
            Input::Text(..) => {
                let pair = |input: &Input| match input {
                    Input::Text(one, other) => (one.clone(), other.clone().unwrap_or_default()),
                    _ => Default::default(),
                };
                Self::Pairs(inputs.iter().map(I::borrow).map(pair).collect())
            }
        }
    }

    /// For Python, without copying numbers.
    pub fn into_array(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        Ok(match self {
            Self::Floats(shape, values) => values.into_pyarray(py).reshape(shape)?.into_any(),
            Self::InRoom(room) => room.array.into_bound(py).into_any(),
            Self::Ids(shape, ids) => ids.into_pyarray(py).reshape(shape)?.into_any(),
            Self::Texts(texts) => texts.into_pyobject(py)?.into_any(),
            Self::Pairs(pairs) => pairs.into_pyobject(py)?.into_any(),
        })
    }

    /// The room it lies in.
    pub fn room(&self, py: Python<'_>) -> Option<Room> {
        match self {
            Self::InRoom(room) => Some(room.again(py)),
            _ => None,
        }
    }
}

/// Writes an input that is numbers where it belongs.
fn put(input: &Input, normalisation: Option<&Normalisation>, signs: bool, place: &mut [f32]) {
    match input {
        Input::Image(image) => match normalisation {
            Some(normalisation) => place.iter_mut().zip(normalisation.apply(image)).for_each(|(to, value)| *to = value),
            None => place.copy_from_slice(&image.values),
        },
        Input::Row(row) => place.copy_from_slice(row),
        Input::Bits(bits) => {
            let value = |bit: u8| if signs { 2.0 * f32::from(bit) - 1.0 } else { f32::from(bit) };
            place.iter_mut().zip(bits).for_each(|(to, bit)| *to = value(*bit));
        }
        Input::Tokens(_) | Input::Text(..) => {}
    }
}

/// An array of the adapter's that batches are laid out in, one after the other.
pub struct Room {
    array: Py<PyArrayDyn<f32>>,
    shape: Vec<usize>,
    start: *mut f32,
}

// SAFETY: `start` belongs to `array`, which lives as long as the room, and only who holds the room writes there.
unsafe impl Send for Room {}

impl Room {
    fn of(array: &Bound<'_, PyAny>, shape: &[usize]) -> PyResult<Self> {
        let array: Bound<'_, PyArrayDyn<f32>> = array.extract()?;
        if array.shape() != shape || !array.is_c_contiguous() {
            return Err(value_error(format!("a room for {shape:?} has the shape {:?}", array.shape())));
        }
        Ok(Self { start: array.data(), shape: shape.to_vec(), array: array.unbind() })
    }

    fn values(&mut self) -> &mut [f32] {
        // SAFETY: the array has so many values, one after the other (`of` has looked).
        unsafe { std::slice::from_raw_parts_mut(self.start, self.shape.iter().product()) }
    }

    fn again(&self, py: Python<'_>) -> Self {
        Self { array: self.array.clone_ref(py), shape: self.shape.clone(), start: self.start }
    }
}

/// The rooms that are free: as many as batches are at work at once, all of one shape.
#[derive(Default)]
pub struct Rooms(Mutex<(Vec<usize>, Vec<Room>)>);

/// One being filled, one on its way, one waiting for its answer, and one between.
const AT_ONCE: usize = 4;

impl Rooms {
    fn open(&self) -> std::sync::MutexGuard<'_, (Vec<usize>, Vec<Room>)> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn take(&self, shape: &[usize]) -> Option<Room> {
        let mut rooms = self.open();
        if rooms.0 == shape { rooms.1.pop() } else { None }
    }

    /// Gets rooms for batches of this one's shape, if it is the largest so far.
    pub fn provide<'py>(
        &self,
        batch: &Batch,
        room: impl Fn(Vec<usize>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<()> {
        let Batch::Floats(shape, _) = batch else { return Ok(()) };
        if self.open().0.first() >= shape.first() {
            return Ok(());
        }
        let made = (0..AT_ONCE).map(|_| Room::of(&room(shape.clone())?, shape)).collect::<PyResult<_>>()?;
        *self.open() = (shape.clone(), made);
        Ok(())
    }

    /// A room whose batch has been answered.
    pub fn give_back(&self, room: Option<Room>) {
        let mut rooms = self.open();
        let room = room.filter(|room| room.shape == rooms.0);
        rooms.1.extend(room);
    }
}
