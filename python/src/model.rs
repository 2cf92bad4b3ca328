//! A Python callable as a model: asked from the thread that called, with the interpreter held only then.

use std::sync::{Arc, Mutex};

use numpy::{IntoPyArray, PyArrayDyn, PyArrayMethods, PyReadonlyArray2};
use pudica_lab::Stop;
use pudica_measure::InputSet;
use pudica_model::{About, Input, Model, ModelError, ModelResult, Normalisation, Outputs, Scores, Takes};
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::errors::{measure_error, value_error};

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
    raised: Raised,
    stop: Stop,
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
            raised: raised.clone(),
            stop: stop.clone(),
        };
        let count = inputs.about().count.min(2);
        let first = (0..count).map(|index| inputs.read(index).map(|labelled| labelled.input));
        let first: Vec<Input> = first.collect::<Result<_, _>>().map_err(|error| measure_error(&error))?;
        let alike = first.chunk_by(Input::is_alike).next().unwrap_or(&[]);
        model.about.classes = model.ask(adapter.py(), alike)?.classes;
        if !model.about.class_names.is_empty() && model.about.class_names.len() != model.about.classes {
            let (names, classes) = (model.about.class_names.len(), model.about.classes);
            return Err(value_error(format!("{}: {names} class names for {classes} scores", model.about.name)));
        }
        Ok(model)
    }

    /// The scores of inputs of one kind and shape.
    fn ask(&self, py: Python<'_>, inputs: &[Input]) -> PyResult<Scores> {
        let batch = self.array(py, inputs)?;
        let scores = self.adapter.bind(py).call1((batch, inputs.len()))?;
        let scores: PyReadonlyArray2<'_, f32> = scores.extract()?;
        let classes = scores.as_array().ncols();
        Ok(Scores { classes, values: scores.as_slice().map_err(value_error)?.to_vec() })
    }

    /// A batch as Python takes it: an array [batch, ...] of float32 (tokens: int64), or a list of texts.
    fn array<'py>(&self, py: Python<'py>, inputs: &[Input]) -> PyResult<Bound<'py, PyAny>> {
        let rows = inputs.len();
        let floats = |shape: Vec<usize>, values: Vec<f32>| Ok(values.into_pyarray(py).reshape(shape)?.into_any());
        match &inputs[0] {
            Input::Image(first) => {
                let mut values = Vec::with_capacity(rows * first.values.len());
                for input in inputs {
                    let Input::Image(image) = input else { continue };
                    match &self.normalisation {
                        Some(normalisation) => values.extend(normalisation.apply(image)),
                        None => values.extend_from_slice(&image.values),
                    }
                }
                let [channels, height, width] = first.shape;
                floats(vec![rows, channels, height, width], values)
            }
            Input::Row(first) => {
                let values = inputs.iter().flat_map(|input| if let Input::Row(row) = input { &row[..] } else { &[] });
                floats(vec![rows, first.len()], values.copied().collect())
            }
            Input::Bits(first) => {
                let value = |bit: &u8| if self.signs { 2.0 * f32::from(*bit) - 1.0 } else { f32::from(*bit) };
                let bits = inputs.iter().flat_map(|input| if let Input::Bits(bits) = input { &bits[..] } else { &[] });
                floats(vec![rows, first.len()], bits.map(value).collect())
            }
            Input::Tokens(first) => {
                let ids =
                    |input: &Input| if let Input::Tokens(sequence) = input { sequence.ids.clone() } else { vec![] };
                let values: Vec<i64> = inputs.iter().flat_map(ids).map(i64::from).collect();
                let array: Bound<'py, PyArrayDyn<i64>> =
                    values.into_pyarray(py).reshape(vec![rows, first.ids.len()])?;
                Ok(array.into_any())
            }
            Input::Text(_, None) => {
                let text = |input: &Input| if let Input::Text(text, _) = input { text.clone() } else { String::new() };
                Ok(inputs.iter().map(text).collect::<Vec<_>>().into_pyobject(py)?.into_any())
            }
            Input::Text(..) => {
                let pair = |input: &Input| match input {
                    Input::Text(one, other) => (one.clone(), other.clone().unwrap_or_default()),
                    _ => Default::default(),
                };
                Ok(inputs.iter().map(pair).collect::<Vec<_>>().into_pyobject(py)?.into_any())
            }
        }
    }

    /// What an exception means for the measurement; `inputs` are those it was raised at, after `before` others.
    fn failed(&self, py: Python<'_>, error: PyErr, inputs: &[Input], before: usize) -> ModelError {
        let is_interrupt = !error.is_instance_of::<PyException>(py);
        let kind = error.get_type(py).name().map_or_else(|_| "an exception".into(), |name| name.to_string());
        let name = &self.about.name;
        // Which of them is it? Asked one by one, the first that fails tells.
        let alone = |input: &Input| self.ask(py, std::slice::from_ref(input)).is_err();
        let at = if inputs.len() == 1 || is_interrupt { Some(0) } else { inputs.iter().position(alone) };
        self.raised.keep(error);
        if is_interrupt {
            self.stop.request();
        }
        let problem = match at {
            Some(_) => format!("{name} raised {kind}"),
            None => format!("{name} raised {kind} in a batch of {}, none of which fails alone", inputs.len()),
        };
        ModelError::AtInput { at: before + at.unwrap_or(0), problem }
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
        let classes = self.about.classes;
        let mut values = Vec::with_capacity(inputs.len() * classes);
        let mut before = 0;
        for batch in inputs.chunk_by(Input::is_alike).flat_map(|alike| alike.chunks(self.batch)) {
            let scores = Python::attach(|py| {
                let asked = py.check_signals().and_then(|()| self.ask(py, batch));
                asked.map_err(|error| self.failed(py, error, batch, before))
            })?;
            if scores.classes != classes {
                let (name, found) = (&self.about.name, scores.classes);
                let problem = format!("{name} gave {found} scores per input, and {classes} before");
                return Err(ModelError::AtInput { at: before, problem });
            }
            values.extend(scores.values);
            before += batch.len();
        }
        Ok(Scores { classes, values })
    }
}
