//! `pudica measure` on models and inputs that Python holds: into the same folder, by the same code.

use std::path::PathBuf;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use numpy::PyReadonlyArray1;
use pudica_boolean::atomic::writing_in_place;
use pudica_boolean::npy::Type;
use pudica_lab::{Event, Observer, Stop};
use pudica_measure::nudges::{NudgeRequest, Setting, default_nudge};
use pudica_measure::{Compared, Enough, Held, InputSet, InputsRequest, MeasureError, Question, open_model};
use pudica_model::{Choices, Model, ModelRequest, Normalisation, Takes};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::{located, measure_error, value_error};
use crate::model::{PythonModel, Raised};

/// What a model is asked about.
#[derive(FromPyObject)]
pub enum Inputs<'py> {
    /// A file, a folder, `bits:16`, `cifar10:test`.
    Named(String),
    /// What it is called, the type of its values, its shape, its bytes.
    Array(String, String, Vec<usize>, PyReadonlyArray1<'py, u8>),
    /// What they are called, and texts or pairs of them.
    Texts(String, Vec<(String, Option<String>)>),
}

/// What is asked, beside models and inputs.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Options {
    labels: Option<Vec<usize>>,
    class_names: Vec<String>,
    takes: Option<String>,
    nudges: Vec<String>,
    responses: Vec<String>,
    precision: Option<f64>,
    budget: Option<u64>,
    sample: Option<usize>,
    size: Option<usize>,
    seed: u64,
    data: Option<PathBuf>,
    text: Option<String>,
    label: Option<String>,
    normalisation: Option<(Vec<f32>, Vec<f32>)>,
    command: String,
    /// Whether the folder ends with this process.
    temporary: bool,
}

/// Measures into a folder. `progress` hears what is at work, how much is done and how many seconds are left.
#[pyfunction]
pub fn measure(
    py: Python<'_>,
    models: Vec<Bound<'_, PyAny>>,
    inputs: Inputs<'_>,
    options: Options,
    folder: PathBuf,
    progress: Option<Py<PyAny>>,
) -> PyResult<()> {
    let (stop, raised) = (Stop::new(), Raised::default());
    let nudges: Vec<NudgeRequest> = parsed(options.nudges.iter().map(|text| NudgeRequest::parse(text)))?;
    let responses: Vec<Compared> = parsed(options.responses.iter().map(|name| Compared::named(name)))?;
    let normalisation = options.normalisation.map(|(mean, std)| Normalisation { mean, std });
    let opened = parsed(models.iter().filter_map(|model| {
        let path = model.cast::<PyString>().ok()?.to_string();
        let choices = Choices { inputs_normalisation: normalisation.clone(), ..Choices::default() };
        Some(
            ModelRequest::parse(&path, &choices)
                .map_err(MeasureError::from)
                .and_then(|request| open_model(&request, options.data.as_deref())),
        )
    }))?;
    let takes = match (opened.first(), options.takes.as_deref()) {
        (_, Some("images")) => Takes::Images { channels: None, height: None, width: None },
        (_, Some("rows" | "bits")) => Takes::Rows { width: None },
        (_, Some("tokens")) => Takes::Tokens { length: None, vocabulary: None },
        (_, Some("texts")) => Takes::Texts,
        (_, Some(other)) => {
            return Err(value_error(format!("takes '{other}': give 'images', 'rows', 'tokens' or 'texts'")));
        }
        (Some(model), None) => model.about().takes.clone(),
        (None, None) => Takes::Anything,
    };
    let request = InputsRequest {
        source: match &inputs {
            Inputs::Named(name) | Inputs::Array(name, ..) | Inputs::Texts(name, _) => name.clone(),
        },
        data: options.data.clone(),
        labels: None,
        text: options.text,
        label: options.label,
        size: options.size,
        sample: options.sample,
        seed: options.seed,
        class_names: options.class_names.clone(),
    };
    let inputs = read(py, inputs, options.labels, &request, &takes)?;
    let about = inputs.about();
    let nudges: Vec<Setting> = match nudges.is_empty() {
        true => parsed([NudgeRequest::parse(default_nudge(about.kind))])?[0].settings(),
        false => nudges.iter().flat_map(NudgeRequest::settings).collect(),
    };
    let responses = if responses.is_empty() { Compared::usual(!about.classes.is_empty()) } else { responses };
    let mut opened = opened.into_iter();
    let mut all: Vec<Box<dyn Model>> = Vec::new();
    for model in &models {
        let next = if model.is_instance_of::<PyString>() { opened.next() } else { None };
        all.push(match next {
            Some(model) => model,
            None => Box::new(PythonModel::new(model, &inputs, normalisation.clone(), &raised, &stop)?),
        });
    }
    let unit = normalisation.or_else(|| all.first().and_then(|model| model.normalisation()));
    let mut question = Question {
        channel_std: unit.map_or(vec![1.0], |unit| unit.std),
        models: all,
        inputs,
        nudges,
        responses,
        enough: Enough { precision: options.precision, budget: options.budget },
        seed: options.seed,
        data: options.data,
        command: options.command,
        program: pudica::PROGRAM.into(),
    };
    let listener = Listener { progress, last: Mutex::new(None), raised: raised.clone(), stop: stop.clone() };
    let mut work = || pudica_measure::measure(&mut question, &folder, &listener, &stop);
    let found = py.detach(|| if options.temporary { writing_in_place(work) } else { work() });
    let (problem, input) = match &found {
        Ok(finding) => (finding.summary.problem.clone(), finding.failed_at),
        Err(error) => (Some(error.to_string()), error.input()),
    };
    match (raised.take(), found, problem) {
        (Some(error), _, problem) => Err(located(py, error, problem, input)),
        (None, Err(error), _) => Err(measure_error(&error)),
        (None, Ok(finding), _) if finding.stopped => Err(PyKeyboardInterrupt::new_err(())),
        (None, Ok(_), Some(problem)) => Err(value_error(problem)),
        (None, Ok(_), None) => Ok(()),
    }
}

fn parsed<T, E: Into<MeasureError>>(all: impl IntoIterator<Item = Result<T, E>>) -> PyResult<Vec<T>> {
    all.into_iter().collect::<Result<_, E>>().map_err(|error| measure_error(&error.into()))
}

/// Finds or takes over the inputs.
fn read(
    py: Python<'_>,
    inputs: Inputs<'_>,
    labels: Option<Vec<usize>>,
    request: &InputsRequest,
    takes: &Takes,
) -> PyResult<InputSet> {
    let held = match inputs {
        Inputs::Named(_) => {
            return py.detach(|| InputSet::open(request, takes)).map_err(|error| measure_error(&error));
        }
        Inputs::Array(name, dtype, shape, bytes) => {
            let Some(dtype) = Type::named(&dtype) else {
                return Err(value_error(format!(
                    "{name}: inputs of type {dtype} are not read here: give numbers or texts"
                )));
            };
            Held::Array { dtype, shape, bytes: bytes.as_slice().map_err(value_error)?.to_vec() }
        }
        Inputs::Texts(_, texts) => Held::Texts(texts),
    };
    py.detach(|| InputSet::of(held, labels, request, takes)).map_err(|error| measure_error(&error))
}

/// Tells Python how far the work is, and hears of Ctrl-C.
struct Listener {
    progress: Option<Py<PyAny>>,
    last: Mutex<Option<Instant>>,
    raised: Raised,
    stop: Stop,
}

/// How often Python is told.
const PAUSE: Duration = Duration::from_millis(100);

impl Observer for Listener {
    fn notice(&self, event: &Event) {
        let Event::Progress { label, done, seconds_left, .. } = event else { return };
        let mut last = self.last.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if last.is_some_and(|last| last.elapsed() < PAUSE) {
            return;
        }
        *last = Some(Instant::now());
        let told = Python::attach(|py| {
            py.check_signals()?;
            self.progress
                .as_ref()
                .map_or(Ok(()), |progress| progress.call1(py, (label, *done, *seconds_left)).map(drop))
        });
        if let Err(error) = told {
            self.raised.keep(error);
            self.stop.request();
        }
    }
}

/// Writes page, figures and tables into the folder of a measurement: the page's path.
#[pyfunction]
pub fn write_page(py: Python<'_>, folder: PathBuf) -> PyResult<PathBuf> {
    Ok(py.detach(|| pudica_report::write_measure(&folder)).map_err(value_error)?.page)
}
