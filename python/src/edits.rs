//! Changed inputs as an adapter puts them together where its model is: what differs travels, not whole inputs.

use std::sync::Mutex;

use numpy::{IntoPyArray, PyArrayMethods};
use pudica_model::{Edits, Input, Normalisation};
use pyo3::prelude::*;

use crate::batch::Batch;

/// A batch of changed inputs.
pub struct Packed {
    /// What the adapter has to hold first, where it does not yet.
    held: Option<Held>,
    /// The number of each one's original, then the site of each, then the bits of the values (float32) of each.
    numbers: Vec<i32>,
    /// How many there are.
    pub rows: usize,
}

/// Inputs before any change, and the places of each site \[sites, places\]. Places are held once for all.
struct Held {
    originals: Batch,
    places: Option<([usize; 2], Vec<i64>)>,
}

/// Which originals the adapter has, once all that was packed so far has reached it.
#[derive(Default)]
pub struct Sent(Mutex<Option<usize>>);

impl Packed {
    /// Packs changed inputs that are alike.
    pub fn of(edits: &Edits, normalisation: Option<&Normalisation>, sent: &Sent) -> Option<Self> {
        let rows = edits.changed.len();
        let each = edits.places.first()?.len();
        let Input::Image(image) = edits.originals.first()? else { return None };
        let pixels = (image.shape[1] * image.shape[2]).max(1);
        let before = sent.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).replace(edits.group);
        let held = (before != Some(edits.group)).then(|| Held {
            originals: Batch::of(&edits.originals, normalisation, false, None),
            places: before.is_none().then(|| {
                let places = edits.places.iter().flatten().map(|place| *place as i64).collect();
                ([edits.places.len(), each], places)
            }),
        });
        let mut numbers = Vec::with_capacity(rows * (2 + each));
        numbers.extend(edits.changed.iter().map(|(original, _)| *original as i32));
        numbers.extend(edits.changed.iter().map(|(_, site)| *site as i32));
        for ((_, site), values) in edits.changed.iter().zip(edits.values.chunks(each.max(1))) {
            let seen = |(place, value): (&usize, &f32)| match normalisation {
                Some(normalisation) => normalisation.apply_to(place / pixels, *value),
                None => *value,
            };
            numbers.extend(edits.places[*site].iter().zip(values).map(seen).map(|value| value.to_bits().cast_signed()));
        }
        Some(Self { held, numbers, rows })
    }

    /// Asks an adapter about it.
    pub fn begin<'py>(self, adapter: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = adapter.py();
        if let Some(Held { originals, places }) = self.held {
            let places = places.map(|(shape, places)| places.into_pyarray(py).reshape(shape)).transpose()?;
            adapter.call_method1("hold", (originals.into_array(py)?, places))?;
        }
        adapter.call_method1("begin_edited", (self.numbers.into_pyarray(py),))
    }
}
