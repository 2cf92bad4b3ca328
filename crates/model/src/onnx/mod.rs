//! ONNX files, computed by the embedded engine ([`tract_onnx`]) or by ONNX Runtime where it is found.
//!
//! A file is read and checked (`file`), cut down to what one output needs (`graph`), and its input's axes are given a meaning (`feed`). An engine
//! (`tract`, `onnx_runtime`) then answers to tensors. What the embedded engine gets wrong is known (`guards`). The weights can be changed in memory
//! (`weights`). [`check`] compares the two engines.

mod check;
mod engine;
mod feed;
mod file;
mod graph;
mod guards;
mod onnx_runtime;
mod tract;
mod weights;

pub use check::{Check, check};

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use prost::Message;
use pudica_nn::Weights;
use rayon::prelude::*;
use tract_onnx::pb::{GraphProto, ModelProto};

use self::engine::{Answer, Engine};
use self::feed::Feeder;
use self::file::{OnnxFile, one_line, refused};
use self::onnx_runtime::{From, OnnxRuntime};
use self::tract::Tract;
use crate::{About, Choices, Input, Model, ModelError, ModelResult, Normalisation, Outputs, Runtime, Scores, Takes};

/// Inputs of one plan of the embedded engine: it is fastest at few, with many plans at once.
const PLAN: usize = 8;

/// ONNX Runtime takes 10 % less time for images of up to so many values if it gets 256 of them, and not 64; larger ones would take much memory.
const SMALL: usize = 4096;

/// Opens an ONNX file.
pub(crate) fn open(path: &Path, choices: &Choices) -> ModelResult<Box<dyn Model>> {
    Ok(Box::new(OnnxModel::open(path, choices)?))
}

/// What a file says, before an engine has read it.
struct Source {
    file: OnnxFile,
    /// The part of its model that the output needs.
    model: ModelProto,
    output: graph::Port,
    feeder: Feeder,
    choices: Choices,
    name: String,
}

impl Source {
    fn read(path: &Path, choices: &Choices) -> ModelResult<Self> {
        let wrong = |problem: String| refused(path, problem);
        // A file says nothing of its own, so the inputs' holds where the user gives the model none.
        let normalisation = choices.normalisation.clone().or_else(|| choices.inputs_normalisation.clone());
        let choices = &Choices { normalisation, ..choices.clone() };
        let file = OnnxFile::read(path)?;
        let output = graph::output(file.graph(), choices.output.as_deref()).map_err(wrong)?;
        let part = graph::part_for(file.graph(), &output.name);
        let feeder = Feeder::new(&part, choices).map_err(wrong)?;
        let model = ModelProto { graph: Some(part), ..ModelProto { graph: None, ..file.model.clone() } };
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let name = choices.name.clone().unwrap_or(stem);
        Ok(Self { file, model, output, feeder, choices: choices.clone(), name })
    }

    fn graph(&self) -> &GraphProto {
        self.model.graph.as_ref().unwrap_or(self.file.graph())
    }

    /// The engine with this model in it, which may have other weights than the file.
    fn engine(&self, runtime: Runtime, model: &ModelProto, changed: bool) -> Result<Arc<dyn Engine>, String> {
        match runtime {
            Runtime::Tract => {
                if let Some(problem) = guards::known_wrong(self.graph(), &self.model.functions) {
                    return Err(format!("has {problem}, which tract gets wrong"));
                }
                if let Some(device) = self.choices.device.as_deref().filter(|device| *device != "cpu") {
                    return Err(format!("is computed on the CPU by tract, not on {device}"));
                }
                Ok(Arc::new(
                    Tract::new(model.clone()).map_err(|problem| format!("cannot be read by tract: {problem}"))?,
                ))
            }
            Runtime::Ort => {
                // An input that the output does not need would have to be given all the same.
                let whole = graph::inputs(self.file.graph()).len() == graph::inputs(self.graph()).len();
                let bytes = if whole && !changed { Vec::new() } else { model.encode_to_vec() };
                let from = if bytes.is_empty() { From::File(&self.file.path) } else { From::Bytes(&bytes) };
                Ok(Arc::new(OnnxRuntime::new(from, &self.output.name, self.choices.device.as_deref())?))
            }
        }
    }

    /// The first 16 digits of the SHA-256 of its files and of what was chosen.
    fn digest(&self, engine: &str) -> ModelResult<String> {
        let folder = self.file.path.parent().unwrap_or(Path::new(""));
        let files: Vec<_> = std::iter::once(self.file.path.clone()).chain(self.file.others.iter().cloned()).collect();
        let files = pudica_data::digest(folder, &files)?;
        let Choices { input, output, channels_last, normalisation, outputs, signs, .. } = &self.choices;
        let chosen = format!("{input:?} {output:?} {channels_last:?} {normalisation:?} {outputs:?} {signs:?}");
        Ok(pudica_data::identity([files.as_str(), engine, &chosen]))
    }
}

/// An ONNX file and what computes it.
struct OnnxModel {
    source: Arc<Source>,
    runtime: Runtime,
    engine: Arc<dyn Engine>,
    about: About,
}

impl OnnxModel {
    fn open(path: &Path, choices: &Choices) -> ModelResult<Self> {
        let source = Arc::new(Source::read(path, choices)?);
        let wrong = |problem: String| refused(path, problem);
        let on_cpu = choices.device.as_deref().is_none_or(|device| device == "cpu");
        match choices.runtime.or((!on_cpu).then_some(Runtime::Ort)) {
            Some(Runtime::Ort) => Self::with(source, Runtime::Ort).map_err(wrong),
            chosen => Self::with(source.clone(), Runtime::Tract).or_else(|problem| {
                if chosen.is_some() {
                    return Err(wrong(format!("{problem} (try --runtime ort)")));
                }
                onnx_runtime::found()
                    .map_err(|missing| wrong(format!("{problem}; --runtime ort might do it, but {missing}")))?;
                let mut model = Self::with(source, Runtime::Ort)
                    .map_err(|other| wrong(format!("{problem}; and ONNX Runtime says: {other}")))?;
                model.about.notes.push(one_line(&format!("ONNX Runtime computes it, because the file {problem}.")));
                Ok(model)
            }),
        }
    }

    /// The model in an engine, tried once.
    fn with(source: Arc<Source>, runtime: Runtime) -> Result<Self, String> {
        let engine = source.engine(runtime, &source.model, false)?;
        let version = engine.version();
        let digest = source.digest(&version).map_err(|error| error.to_string())?;
        let parameters =
            weights::layout(source.graph()).iter().map(|(_, shape)| shape.iter().product::<usize>() as u64).sum();
        let mut notes = source.feeder.notes.clone();
        notes.extend(engine.note());
        if source.choices.device.as_deref() == Some("cuda") {
            notes.push("ONNX Runtime's CUDA provider has not been tried by those who wrote this program.".into());
        }
        let about = About {
            name: source.name.clone(),
            runtime: version,
            takes: source.feeder.takes.clone(),
            outputs: Outputs::Logits,
            classes: 0,
            class_names: Vec::new(),
            parameters: Some(parameters),
            digest,
            notes,
        };
        let mut model = Self { source, runtime, engine, about };
        model.try_out()?;
        Ok(model)
    }

    /// Finds out how many scores it gives and whether they are probabilities, from the graph and from its answers to a few made-up inputs.
    fn try_out(&mut self) -> Result<(), String> {
        let feeder = &self.source.feeder;
        let sides: &[usize] = if feeder.size_is_known() { &[0] } else { &[64, 224] };
        let too_large = feeder.is_too_large_to_try();
        let mut tried = Err(match too_large {
            true => "takes inputs that are too large to try it on, and does not say how many scores it gives: export it with the shape of its \
                     output"
                .to_string(),
            false => "does not say how large its input is".to_string(),
        });
        for side in sides.iter().copied() {
            let Some(examples) = feeder.examples(4, side) else { break };
            tried = self.answers(&examples).and_then(|scores| Ok((scores, self.answers(&examples[..1])?))).map_err(
                |error| match error {
                    ModelError::File { problem, .. } => problem,
                    other => other.to_string(),
                },
            );
            if tried.is_ok() {
                break;
            }
        }
        if let Ok((together, alone)) = &tried {
            let apart = |(a, b): (&f32, &f32)| (a - b).abs() > 1e-3 * (1.0 + a.abs());
            if together.values.iter().zip(&alone.values).any(apart) {
                let why = "Its answer to an input depends on the others of the batch, or on chance: was it exported without .eval()?";
                self.about.notes.push(why.into());
            }
        }
        let tried = tried.map(|(together, _)| together);
        // Of a network for images of any size it is not known that it takes those of ours; large ones are not tried.
        let declared = self.source.output.shape.as_ref().and_then(|shape| match shape.as_slice() {
            [_, Some(classes), ones @ ..] if ones.iter().all(|axis| *axis == Some(1)) => Some(*classes),
            _ => None,
        });
        let scores = match (tried, declared) {
            (Ok(scores), _) => Some(scores),
            (Err(_), Some(_)) if !feeder.size_is_known() || too_large => None,
            (Err(problem), _) => return Err(problem),
        };
        if too_large {
            self.about.notes.push("It was not tried when it was opened, because its inputs are large.".into());
        }
        self.about.classes = scores.as_ref().map_or(declared.unwrap_or(1), |scores| scores.classes);
        let last = graph::last_op(self.source.graph(), &self.source.output.name);
        let (outputs, note) = what_outputs_are(self.source.choices.outputs, last, scores.as_ref());
        self.about.outputs = outputs;
        self.about.notes.extend(note.as_deref().map(one_line));
        Ok(())
    }

    /// Inputs at a time in the engine.
    fn plan(&self) -> usize {
        let small = matches!(self.about.takes, Takes::Images { channels: Some(c), height: Some(h), width: Some(w) } if c * h * w <= SMALL);
        let usual = match self.engine.at_once() {
            true => PLAN,
            false if small => 256,
            false => 64,
        };
        self.source.feeder.fixed_batch.or(self.source.choices.batch).unwrap_or(usual)
    }

    /// The scores of these inputs: those of one shape together, the last batch filled up where the engine has a plan for each size.
    fn answers(&self, inputs: &[Input]) -> ModelResult<Scores> {
        let feeder = &self.source.feeder;
        let mut by_shape: HashMap<Vec<usize>, Vec<usize>> = HashMap::new();
        for (index, input) in inputs.iter().enumerate() {
            by_shape.entry(feeder.shape_of(input, &self.about.name)?).or_default().push(index);
        }
        let plan = self.plan();
        let jobs: Vec<(&[usize], &[usize])> = by_shape
            .iter()
            .flat_map(|(shape, indices)| indices.chunks(plan).map(|chunk| (shape.as_slice(), chunk)))
            .collect();
        let job = |(shape, indices): &(&[usize], &[usize])| {
            let wrong = |problem: String| refused(&self.source.file.path, problem);
            let chunk: Vec<&Input> = indices.iter().map(|index| &inputs[*index]).collect();
            let batch = if self.engine.at_once() || feeder.fixed_batch.is_some() { plan } else { chunk.len() };
            let said = |problem: String| wrong(format!("cannot be computed by {}: {problem}", self.about.runtime));
            let answer = self.engine.run(feeder.feeds(&chunk, shape, batch)).map_err(said)?;
            let classes = answer.classes(batch).map_err(wrong)?;
            Ok::<_, ModelError>((classes, answer))
        };
        let answers: Vec<(usize, Answer)> = match self.engine.at_once() {
            true => jobs.par_iter().map(job).collect::<ModelResult<_>>()?,
            false => jobs.iter().map(job).collect::<ModelResult<_>>()?,
        };
        let classes = answers.first().map_or(self.about.classes, |(classes, _)| *classes);
        if let Some((other, _)) = answers.iter().find(|(other, _)| *other != classes) {
            let problem = format!("gives {classes} scores for some inputs and {other} for others");
            return Err(refused(&self.source.file.path, problem));
        }
        let mut values = vec![0.0; inputs.len() * classes];
        for ((_, indices), (_, answer)) in jobs.iter().zip(&answers) {
            for (index, row) in indices.iter().zip(answer.values.chunks_exact(classes)) {
                values[index * classes..][..classes].copy_from_slice(row);
            }
        }
        Ok(Scores { classes, values })
    }
}

/// Whether outputs are probabilities: what the user says, what the last op is, what the numbers look like.
fn what_outputs_are(chosen: Option<Outputs>, last: Option<&str>, scores: Option<&Scores>) -> (Outputs, Option<String>) {
    if let Some(chosen) = chosen {
        return (chosen, None);
    }
    let sum_to_one = |row: &[f32]| (row.iter().sum::<f32>() - 1.0).abs() < 1e-3;
    let fractions = |scores: &Scores| scores.values.iter().all(|value| (0.0..=1.0).contains(value));
    let distributions = scores.map(|scores| scores.classes > 1 && fractions(scores) && scores.rows().all(sum_to_one));
    let taken = |what: &str, why: String, other: &str| {
        Some(format!("Its outputs are taken as {what}: {why} (outputs={other} if they are not)."))
    };
    match (last, distributions) {
        (Some(op @ ("Softmax" | "Sigmoid")), Some(true) | None) => {
            (Outputs::Probabilities, taken("probabilities", format!("its last op is {op}"), "logits"))
        }
        (Some("Sigmoid"), Some(false)) if scores.is_some_and(fractions) => {
            (Outputs::Probabilities, taken("probabilities", "its last op is Sigmoid".into(), "logits"))
        }
        (_, Some(true)) => {
            (Outputs::Probabilities, taken("probabilities", "they are between 0 and 1 and sum to 1".into(), "logits"))
        }
        (Some("LogSoftmax"), _) => (
            Outputs::Logits,
            taken("logits", "they are logarithms of probabilities, which serve as such".into(), "probabilities"),
        ),
        (last, _) => {
            let many = scores.is_some_and(|scores| scores.classes > 1);
            let reasons = [last.map(|op| format!("its last op is {op}")), many.then(|| "they do not sum to 1".into())];
            let reasons: Vec<String> = reasons.into_iter().flatten().collect();
            (Outputs::Logits, taken("logits", reasons.join(" and "), "probabilities"))
        }
    }
}

impl Model for OnnxModel {
    fn about(&self) -> &About {
        &self.about
    }

    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores> {
        let scores = self.answers(inputs)?;
        match scores.classes == self.about.classes {
            true => Ok(scores),
            false => Err(refused(
                &self.source.file.path,
                format!(
                    "gives {} scores for inputs of this size, but {} were expected",
                    scores.classes, self.about.classes
                ),
            )),
        }
    }

    fn normalisation(&self) -> Option<Normalisation> {
        self.source.feeder.normalisation().cloned()
    }

    fn batch(&self) -> usize {
        let plan = self.plan();
        match self.engine.at_once() {
            true => plan * (64_usize.div_ceil(plan)).next_multiple_of(rayon::current_num_threads().max(1)),
            false => plan,
        }
    }

    fn weights(&self) -> ModelResult<Weights> {
        let weights = weights::read(self.source.graph());
        match weights.layout().is_empty() {
            true => Err(self.lacks("weights with fractions that can be reached")),
            false => Ok(weights),
        }
    }

    fn with_weights(&self, weights: &Weights) -> ModelResult<Box<dyn Model>> {
        self.weights()?.check_same_layout(weights)?;
        let mut model = self.source.model.clone();
        model.graph.iter_mut().for_each(|graph| weights::write(graph, weights));
        let engine = self.source.engine(self.runtime, &model, true);
        let engine = engine.map_err(|problem| refused(&self.source.file.path, problem))?;
        Ok(Box::new(Self { source: self.source.clone(), runtime: self.runtime, engine, about: self.about.clone() }))
    }
}
