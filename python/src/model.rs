//! A Python callable as a model: asked from the thread that called, with the interpreter held only then. Batches are made and laid out on
//! another thread meanwhile, and a GPU has the next one before the answer to the last is looked at. An adapter that can put inputs together
//! itself is told only what differs.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use numpy::PyReadonlyArray2;
use pudica_lab::Stop;
use pudica_measure::InputSet;
use pudica_model::{
    About, Batches, Input, Model, ModelError, ModelResult, Normalisation, Outputs, Scores, Takes, make_ahead,
};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::batch::{Batch, Room, Rooms};
use crate::edits::{Packed, Sent};
use crate::errors::{located, measure_error, value_error};

/// The first exception that Python raised while Rust was asking.
#[derive(Clone, Default)]
pub struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Keeps it for later; only the first counts.
    pub fn keep(&self, error: PyErr) {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(error);
    }

    /// Takes it out.
    pub fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take()
    }
}

/// A model of Python's: an adapter (`python/pudica/_models.py`) that makes scores [batch, classes] of float32 from a batch.
pub struct PythonModel {
    about: About,
    adapter: Py<PyAny>,
    batch: usize,
    normalisation: Option<Normalisation>,
    signs: bool,
    /// Whether it computes elsewhere, so that it can be asked before the last answer is there.
    asynchronous: bool,
    /// Whether it puts changed inputs together itself.
    assembles: bool,
    /// The first inputs and their scores, which told how many classes there are, until they are asked for.
    first: Option<(Vec<Input>, Scores)>,
    /// Where batches for such a device are laid out.
    rooms: Rooms,
    raised: Raised,
    stop: Stop,
}

/// A batch before Python sees it.
enum Made {
    /// Inputs that are alike laid out as one array each.
    Whole(Vec<(Range<usize>, Batch)>),
    /// What differs from others.
    Edited(Packed),
}

/// A part of a batch that Python was asked about.
struct Part {
    range: Range<usize>,
    room: Option<Room>,
    begun: PyResult<Py<PyAny>>,
}

impl PythonModel {
    /// The model of an adapter, which is asked about the first inputs once, to see how many classes it has.
    pub fn new(
        adapter: &Bound<'_, PyAny>,
        inputs: &InputSet,
        normalisation: Option<Normalisation>,
        raised: &Raised,
        stop: &Stop,
    ) -> PyResult<Self> {
        let outputs: String = adapter.getattr("outputs")?.extract()?;
        let outputs = match outputs.as_str() {
            "logits" => Outputs::Logits,
            "probabilities" => Outputs::Probabilities,
            other => return Err(value_error(format!("outputs '{other}': give 'logits' or 'probabilities'"))),
        };
        let about = About {
            name: adapter.getattr("name")?.extract()?,
            runtime: adapter.getattr("runtime")?.extract()?,
            takes: Takes::Anything,
            outputs,
            classes: 1,
            class_names: adapter.getattr("class_names")?.extract()?,
            parameters: adapter.getattr("parameters")?.extract()?,
            digest: adapter.getattr("digest")?.extract()?,
            notes: Vec::new(),
        };
        let mut model = Self {
            about,
            adapter: adapter.clone().unbind(),
            batch: adapter.getattr("batch")?.extract::<usize>()?.max(1),
            normalisation,
            signs: adapter.getattr("signs")?.extract()?,
            asynchronous: adapter.getattr("asynchronous")?.extract()?,
            assembles: adapter.getattr("assembles")?.extract()?,
            first: None,
            rooms: Rooms::default(),
            raised: raised.clone(),
            stop: stop.clone(),
        };
        let count = inputs.about().count.min(model.batch);
        let first = (0..count).map(|index| inputs.read(index).map(|labelled| labelled.input));
        let mut first: Vec<Input> = first.collect::<Result<_, _>>().map_err(|error| measure_error(&error))?;
        let alike = first.chunk_by(Input::is_alike).next().map_or(0, <[Input]>::len);
        let is_whole = alike == first.len();
        first.truncate(alike);
        let py = adapter.py();
        let begun = model.asked(py, &first).map_err(|error| {
            let (at, problem) = model.blamed(py, &error, &first);
            located(py, error, Some(format!("{problem} (at the untouched input {at})")), Some(at))
        })?;
        let scores = model.finish(&begun, alike)?;
        model.about.classes = scores.classes;
        model.first = is_whole.then_some((first, scores));
        if !model.about.class_names.is_empty() && model.about.class_names.len() != model.about.classes {
            let (names, classes) = (model.about.class_names.len(), model.about.classes);
            return Err(value_error(format!("{}: {names} class names for {classes} scores", model.about.name)));
        }
        Ok(model)
    }

    /// Asks about inputs of one kind and shape, in memory of their own.
    fn asked<'py>(&self, py: Python<'py>, inputs: &[Input]) -> PyResult<Bound<'py, PyAny>> {
        let batch = Batch::of(inputs, self.normalisation.as_ref(), self.signs, None);
        self.adapter.bind(py).call_method1("begin", (batch.into_array(py)?,))
    }

    /// The scores of inputs that were asked about.
    fn finish(&self, begun: &Bound<'_, PyAny>, rows: usize) -> PyResult<Scores> {
        let scores = self.adapter.bind(begun.py()).call_method1("finish", (begun, rows))?;
        let scores: PyReadonlyArray2<'_, f32> = scores.extract()?;
        let classes = scores.as_array().ncols();
        Ok(Scores { classes, values: scores.as_slice().map_err(value_error)?.to_vec() })
    }

    /// Lays a batch out, without the interpreter.
    fn made(&self, inputs: &[Input]) -> Made {
        let mut parts = Vec::new();
        let mut before = 0;
        for part in inputs.chunk_by(Input::is_alike).flat_map(|alike| alike.chunks(self.batch)) {
            let batch = Batch::of(part, self.normalisation.as_ref(), self.signs, Some(&self.rooms));
            parts.push((before..before + part.len(), batch));
            before += part.len();
        }
        Made::Whole(parts)
    }

    /// Asks about a batch; what it answers may not be there yet.
    fn begin(&self, made: Made) -> Vec<Part> {
        let parts = match made {
            Made::Whole(parts) => parts,
            Made::Edited(packed) => {
                let range = 0..packed.rows;
                let begun = Python::attach(|py| {
                    py.check_signals()?;
                    Ok(packed.begin(self.adapter.bind(py))?.unbind())
                });
                return vec![Part { range, room: None, begun }];
            }
        };
        let begin = |py: Python<'_>, batch: Batch| {
            py.check_signals()?;
            let adapter = self.adapter.bind(py);
            if self.asynchronous {
                self.rooms.provide(&batch, |shape| adapter.call_method1("room", (shape,)))?;
            }
            let room = batch.room(py);
            Ok((room, adapter.call_method1("begin", (batch.into_array(py)?,))?.unbind()))
        };
        let mut asked = Vec::with_capacity(parts.len());
        Python::attach(|py| {
            for (range, batch) in parts {
                let (room, begun) = match begin(py, batch) {
                    Ok((room, begun)) => (room, Ok(begun)),
                    Err(error) => (None, Err(error)),
                };
                let is_over = begun.is_err();
                asked.push(Part { range, room, begun });
                if is_over {
                    break;
                }
            }
        });
        asked
    }

    /// What it answered; `inputs` tells what it was asked about, should that have failed.
    fn end(&self, parts: Vec<Part>, inputs: impl Fn() -> Vec<Input>) -> ModelResult<Scores> {
        let classes = self.about.classes;
        let mut values = Vec::new();
        for Part { range, room, begun } in parts {
            let scores = Python::attach(|py| {
                let found = begun.and_then(|begun| self.finish(begun.bind(py), range.len()));
                found.map_err(|error| self.failed(py, error, &inputs()[range.clone()], range.start))
            })?;
            self.rooms.give_back(room);
            if scores.classes != classes {
                let (name, found) = (&self.about.name, scores.classes);
                let problem = format!("{name} gave {found} scores per input, and {classes} before");
                return Err(ModelError::AtInput { at: range.start, problem });
            }
            values.extend(scores.values);
        }
        Ok(Scores { classes, values })
    }

    /// Which of these inputs an exception was raised at, and what there is to say.
    fn blamed(&self, py: Python<'_>, error: &PyErr, inputs: &[Input]) -> (usize, String) {
        let kind = error.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string());
        let name = &self.about.name;
        // Asked one by one, the first that fails tells.
        let alone = |input: &Input| {
            let begun = self.asked(py, std::slice::from_ref(input));
            begun.and_then(|begun| self.finish(&begun, 1)).is_err()
        };
        let is_interrupt = !error.is_instance_of::<PyException>(py);
        match if inputs.len() == 1 || is_interrupt { Some(0) } else { inputs.iter().position(alone) } {
            Some(at) => (at, format!("{name} raised {kind}")),
            None => (0, format!("{name} raised {kind} in a batch of {}, none of which fails alone", inputs.len())),
        }
    }

    /// What an exception means for the measurement; `inputs` are those it was raised at, after `before` others.
    fn failed(&self, py: Python<'_>, error: PyErr, inputs: &[Input], before: usize) -> ModelError {
        let (at, problem) = self.blamed(py, &error, inputs);
        if !error.is_instance_of::<PyException>(py) {
            self.stop.request();
        }
        self.raised.keep(error);
        ModelError::AtInput { at: before + at, problem }
    }
}

impl Model for PythonModel {
    fn about(&self) -> &About {
        &self.about
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn normalisation(&self) -> Option<Normalisation> {
        self.normalisation.clone()
    }

    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores> {
        match self.first.take() {
            Some((first, scores)) if first == inputs => Ok(scores),
            _ => self.end(self.begin(self.made(inputs)), || inputs.to_vec()),
        }
    }

    fn scores_in_turn(&mut self, batches: &dyn Batches, take: &mut dyn FnMut(ModelResult<Scores>) -> bool) {
        let (model, sent) = (&*self, Sent::default());
        let edited = |at: usize| {
            let edits = if model.assembles { batches.edits(at) } else { None };
            Packed::of(&edits?, model.normalisation.as_ref(), &sent).map(Made::Edited)
        };
        let make = |at: usize| (at, edited(at).unwrap_or_else(|| model.made(&batches.made(at))));
        let mut end = |(at, parts)| take(model.end(parts, || batches.made(at)));
        let (mut last, mut goes_on) = (None, true);
        make_ahead(batches.count(), make, |(at, made)| {
            let begun = Some((at, model.begin(made)));
            let due = if model.asynchronous { std::mem::replace(&mut last, begun) } else { begun };
            goes_on = due.is_none_or(&mut end);
            goes_on
        });
        if let Some(last) = last.filter(|_| goes_on) {
            end(last);
        }
    }
}
