//! Which measures are taken of a network, on which strings, and what they are called in the results.

use pudica_data::{Batch, Bits, Stream, Task, TrainingSet};
use pudica_nn::{Network, NnError, Weights};
use pudica_probe::{
    BlowupTotals, Estimate, Model, ProbeError, SharpnessConfig, blowup, evaluate, network_sensitivity, parameter_norm,
    sharpness,
};
use serde_json::{Map, Value, json};

use crate::config::{ModelKind, RunConfig};
use crate::error::{Error, Result};
use crate::trainer::{Measured, Stop};

/// The whole cube is enumerated up to this length.
const LARGEST_CUBE: usize = 20;

/// Strings the scratchpad is decoded on at a time, between two looks at whether to stop.
const DECODED_AT_ONCE: usize = 16;

/// The measures followed during training, all on one fixed batch.
pub(super) fn track(
    config: &RunConfig,
    task: &Task,
    network: Network,
    step: u64,
    stop: &Stop,
) -> Result<Map<String, Value>> {
    heeding(stop, || {
        let batch = task.measure_batch(config.train.batch, config.seed, "track", 0)?;
        let model = Heeding { network, stop: stop.clone() };
        let evaluation = evaluate(&model, [Ok(batch.clone())], true)?;
        // Fresh directions at every step, so that the curve's wiggles are not those of one draw.
        let purpose = format!("track-sharpness {step}");
        let noise = SharpnessConfig { draws: config.track.draws, ..noise(config) };
        let sharpness = sharpness(&model, [Ok(batch.clone())], &noise, config.seed, &purpose)?;
        let blowup = blowup(&model.network, [Ok(batch.strings)], true)?;
        let mut line = Measures::default();
        line.value("loss", evaluation.loss.mean);
        line.value("accuracy", evaluation.accuracy.mean);
        line.estimate("sharpness", &sharpness.loss_rise);
        line.estimate("output_shift", &sharpness.output_shift);
        line.value("blowup", blowup.code.total.product_of_max.mean);
        line.value("param_norm", parameter_norm(model.network.weights()));
        Ok(line.0)
    })
}

/// The measures taken after training.
pub(super) fn after_training(config: &RunConfig, task: &Task, network: Network, stop: &Stop) -> Result<Measured> {
    heeding(stop, || {
        let model = Heeding { network, stop: stop.clone() };
        let mut measures = Measures::default();
        let mut detail = Map::new();

        let (batches, exact) = batches(config, task, "evaluate", config.eval.batches)?;
        let evaluation = evaluate(&model, batches, exact)?;
        measures.estimate("eval_loss", &evaluation.loss);
        measures.estimate("eval_accuracy", &evaluation.accuracy);

        let mut loss = evaluation.loss.mean;
        if let Some(set) = task.training_set() {
            let fit = evaluate(&model, [Ok(task.label(set.strings().clone())?)], true)?;
            measures.value("train_loss", fit.loss.mean);
            measures.value("train_accuracy", fit.accuracy.mean);
            // A run that saw only some strings has converged when it fits those; beyond them it generalises as it will.
            loss = fit.loss.mean;
        }

        let fresh = (0..config.measure.batches as u64)
            .map(|index| Ok(task.measure_batch(config.train.batch, config.seed, "sharpness", index)?));
        let sharp = sharpness(&model, fresh, &noise(config), config.seed, "sharpness-noise")?;
        measures.estimate("sharpness", &sharp.loss_rise);
        measures.estimate("output_shift", &sharp.output_shift);

        if config.measure.set_size > 0 {
            let set = TrainingSet::draw(config.measure.set_size, config.n, config.measure.set_seed)?;
            let noise = SharpnessConfig { draws: config.measure.set_draws, ..noise(config) };
            let batch = task.label(set.strings().clone())?;
            let sharp = sharpness(&model, [Ok(batch)], &noise, config.seed, "set-sharpness-noise")?;
            measures.estimate("set_sharpness", &sharp.loss_rise);
        }

        let (batches, exact) = self::batches(config, task, "blowup", config.measure.batches)?;
        let strings = batches.map(|batch| {
            model.check()?;
            batch.map(|batch| batch.strings)
        });
        let blowups = blowup(&model.network, strings, exact)?;
        measures.totals("blowup", &blowups.code.total);
        measures.estimate("blowup_theory", &blowups.theory.total.product_of_one_plus_max);
        for (part, totals) in &blowups.code.parts {
            measures.estimate(&format!("blowup_{part}"), &totals.product_of_max);
        }
        detail.insert("blowup".into(), json!(blowups));

        measures.value("param_norm", parameter_norm(model.network.weights()));

        if config.measure.sensitivity_samples > 0 {
            let found = network_sensitivity(&model, config.n, config.measure.sensitivity_samples, config.seed)?;
            let own = if task.target().is_boolean() { &found.boolean } else { &found.real };
            measures.estimate("average_sensitivity", own);
            measures.estimate("average_sensitivity_real", &found.real);
            detail.insert("sensitivity".into(), json!(found));
        }
        if config.model.kind == ModelKind::EncoderDecoder {
            decode(config, task, &model, &mut measures)?;
        }
        let converged = loss < config.eval.converged_below;
        Ok(Measured { converged, measures: measures.0, detail })
    })
}

/// The accuracy of the network's last answer when it writes the scratchpad itself.
fn decode(config: &RunConfig, task: &Task, model: &Heeding, measures: &mut Measures) -> Result<(), ProbeError> {
    let strings = Bits::uniform(config.train.batch, config.n, &mut Stream::new(config.seed, "decode", 0))?;
    let mut right = Vec::with_capacity(strings.rows());
    for piece in strings.pieces(DECODED_AT_ONCE) {
        model.check()?;
        let Batch { strings, labels } = task.label(piece)?;
        let outputs = model.network.decode(&strings)?;
        let last = config.n - 1;
        for (output, label) in outputs.chunks_exact(config.n).zip(labels.chunks_exact(config.n)) {
            right.push(f64::from((output[last] > 0.5) == (label[last] > 0.5)));
        }
    }
    measures.estimate("decode_accuracy", &Estimate::sampled(&right.into_iter().collect()));
    Ok(())
}

/// Batches made as they are asked for.
type Batches<'a> = Box<dyn Iterator<Item = Result<Batch, ProbeError>> + 'a>;

/// `count` fresh batches; or every string once (and true) when they would hold more strings than there are.
fn batches<'a>(
    config: &RunConfig,
    task: &'a Task,
    purpose: &'static str,
    count: usize,
) -> Result<(Batches<'a>, bool), ProbeError> {
    let (rows, seed, n) = (config.train.batch, config.seed, config.n);
    if n <= LARGEST_CUBE && 1 << n <= rows.saturating_mul(count) {
        // Pieces of equal size: a power of two, as the cube is.
        let piece = 1usize << rows.min(1 << n).ilog2();
        let pieces: Vec<Bits> = Bits::cube(n)?.pieces(piece).collect();
        return Ok((Box::new(pieces.into_iter().map(|strings| Ok(task.label(strings)?))), true));
    }
    let fresh = (0..count as u64).map(move |index| Ok(task.measure_batch(rows, seed, purpose, index)?));
    Ok((Box::new(fresh), false))
}

fn noise(config: &RunConfig) -> SharpnessConfig {
    let measure = &config.measure;
    SharpnessConfig { rho: measure.rho, draws: measure.draws, plus_minus: measure.plus_minus_one }
}

/// Measures by name, in the order taken.
#[derive(Default)]
struct Measures(Map<String, Value>);

impl Measures {
    fn value(&mut self, name: &str, value: f64) {
        self.0.insert(name.into(), value.into());
    }

    fn estimate(&mut self, name: &str, estimate: &Estimate) {
        self.value(name, estimate.mean);
        if let Some(error) = estimate.std_error {
            self.value(&format!("{name}_std_error"), error);
        }
    }

    fn totals(&mut self, name: &str, totals: &BlowupTotals) {
        self.estimate(name, &totals.product_of_max);
        self.value(&format!("{name}_product_of_mean"), totals.product_of_mean.mean);
        self.value(&format!("{name}_sum_of_max"), totals.sum_of_max.mean);
        self.value(&format!("{name}_sum_of_mean"), totals.sum_of_mean.mean);
    }
}

/// A network that refuses to predict once stopping is requested, so that long measurements end at the next pass.
struct Heeding {
    network: Network,
    stop: Stop,
}

impl Heeding {
    fn check(&self) -> Result<(), NnError> {
        match self.stop.requested() {
            true => Err(NnError::Computation("stopped on request".into())),
            false => Ok(()),
        }
    }
}

impl Model for Heeding {
    fn weights(&self) -> &Weights {
        self.network.weights()
    }

    fn with_weights(&self, weights: Weights) -> Result<Self, NnError> {
        Ok(Heeding { network: self.network.with_weights(weights)?, stop: self.stop.clone() })
    }

    fn predict(&self, strings: &Bits) -> Result<Vec<f32>, NnError> {
        self.check()?;
        self.network.predict(strings)
    }
}

/// Measures; a measurement cut short by the request to stop is told apart from one that failed.
fn heeding<T>(stop: &Stop, measure: impl FnOnce() -> Result<T, ProbeError>) -> Result<T> {
    measure().map_err(|error| if stop.requested() { Error::Stopped } else { error.into() })
}
