//! Which measures are taken of networks, on which strings, and what they are called in the results.

use pudica_data::{Bits, Stream, TrainingSet};
use pudica_ensemble::{Engine, Strings};
use pudica_nn::{Device, Network, NnError, Weights};
use pudica_probe::{
    BlowupTotals, Cut, Estimate, Evaluation, LARGEST_EXACT, Moments, NetworkSensitivity, ProbeError, SensitivityConfig,
    SharpnessConfig, answers_on_cube, blowup, evaluate, exact_sensitivity, network_sensitivity, parameter_norm,
    sharpness,
};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::interruptible::{check, interruptible};
use super::training::{BooleanTraining, NetworkRun};
use super::unseen::Compared;
use super::{CutAt, ModelKind, RunConfig, architecture, volume, work};
use crate::error::Result;
use crate::experiment::Measured;
use crate::stop::Progress;

/// The whole cube is enumerated up to this length.
const LARGEST_CUBE: usize = 20;

/// Batches, at most, whose outputs tell how far they spread.
pub(super) const SPREAD_BATCHES: usize = 8;

/// Strings a network is evaluated on at a time, of those that it was trained on.
const SEEN_AT_ONCE: usize = 4096;

/// Strings the scratchpad is decoded on at a time, between two looks at whether to stop.
const DECODED_AT_ONCE: usize = 16;

/// The measures followed during training, all on one fixed batch for each run.
pub(super) fn track(training: &mut BooleanTraining, progress: &Progress) -> Result<Vec<Map<String, Value>>> {
    // What decides how much is measured is the same for all runs in lock-step.
    let config = training.runs[0].config.clone();
    let per_string = work::of_pass(&config) / config.train.batch as f64;
    let runs = &training.runs;
    let has_norms = architecture(&config).has_norms();
    interruptible(training.engine.as_mut(), progress, per_string, |engine| {
        let batch = Strings::Fresh { rows: config.train.batch, purpose: "track", index: 0 };
        let evaluations = evaluate(engine, [batch], true)?;
        // Fresh directions at every step, so that the curve's wiggles are not those of one draw.
        let purpose = format!("track-sharpness {}", engine.steps());
        let noise = SharpnessConfig { draws: config.track.draws, ..noise(&config) };
        let sharpness = sharpness(engine, [batch], &noise, &purpose)?;
        let blowups = if has_norms { blowup(engine, [batch], true)? } else { Vec::new() };
        let profiles = if config.measure.profile { profiles(runs, engine)? } else { Vec::new() };
        let mut lines = Vec::new();
        for replica in 0..engine.replicas() {
            let mut line = Measures::default();
            line.value("loss", evaluations[replica].loss.mean);
            line.value("accuracy", evaluations[replica].accuracy.mean);
            line.estimate("sharpness", &sharpness[replica].loss_rise);
            line.estimate("output_shift", &sharpness[replica].output_shift);
            if let Some(blowups) = blowups.get(replica) {
                line.value("blowup", blowups.code.total.product_of_max.mean);
            }
            line.value("param_norm", parameter_norm(&engine.weights(replica)?));
            if let Some(profile) = profiles.get(replica) {
                profile.measures(&runs[replica], &mut line);
                line.0.extend(profile.by_degree());
            }
            lines.push(line.0);
        }
        Ok(lines)
    })
}

/// The measures taken after training, of all runs that are not lost.
pub(super) fn after_training(training: &mut BooleanTraining, progress: &Progress) -> Result<Vec<Option<Measured>>> {
    let neighbours = volume::neighbours(training, progress)?;
    let runs = &training.runs;
    let config = &runs[0].config;
    let per_string = work::of_pass(config) / config.train.batch as f64;
    interruptible(training.engine.as_mut(), progress, per_string, |engine| {
        let mut all: Vec<Results> = runs.iter().map(|_| Results::default()).collect();
        let losses = evaluations(runs, engine, &mut all)?;
        spreads(runs, engine, &mut all)?;
        sharpnesses(runs, engine, &mut all)?;

        if architecture(config).has_norms() {
            blowups(config, engine, &mut all)?;
        }
        for (replica, results) in all.iter_mut().enumerate() {
            results.measures.value("param_norm", parameter_norm(&engine.weights(replica)?));
        }
        for ((results, profile), run) in all.iter_mut().zip(profiles(runs, engine)?).zip(runs) {
            profile.measures(run, &mut results.measures);
            profile.detail(run, &mut results.detail);
        }
        all.iter_mut().zip(&neighbours).for_each(|(results, found)| volume::take_in(found, results));
        at_lengths(runs, engine, &mut all)?;
        if config.model.kind == ModelKind::EncoderDecoder {
            for (results, accuracy) in all.iter_mut().zip(decode(runs, engine, progress)?) {
                results.measures.estimate("decode_accuracy", &accuracy);
            }
        }
        let finish = |((results, loss), run): ((Results, f64), &NetworkRun)| {
            let converged = loss < run.config.eval.converged_below;
            run.lost.is_none().then_some(Measured { converged, measures: results.measures.0, detail: results.detail })
        };
        Ok(all.into_iter().zip(losses).zip(runs).map(finish).collect())
    })
}

/// How well the networks do; returns the losses by which convergence is judged.
fn evaluations(runs: &[NetworkRun], engine: &mut dyn Engine, all: &mut [Results]) -> Result<Vec<f64>, ProbeError> {
    let config = &runs[0].config;
    let (cube, exact) = cube(config, config.n, config.eval.batches)?;
    let found = evaluate(engine, batches(config, &cube, "evaluate", config.eval.batches), exact)?;
    for (results, evaluation) in all.iter_mut().zip(&found) {
        results.measures.estimate("eval_loss", &evaluation.loss);
        results.measures.estimate("eval_accuracy", &evaluation.accuracy);
    }
    let sets: Vec<Bits> = runs.iter().filter_map(|run| Some(run.task.training_set()?.strings().clone())).collect();
    if sets.is_empty() {
        return Ok(found.iter().map(|evaluation| evaluation.loss.mean).collect());
    }
    // All strings but some are many, and are taken in pieces; random sets are drawn as large as can be taken at once.
    let fits = fits(engine, &sets, if config.train.set_size > 0 { usize::MAX } else { SEEN_AT_ONCE })?;
    for (results, (loss, accuracy)) in all.iter_mut().zip(&fits) {
        results.measures.value("train_loss", *loss);
        results.measures.value("train_accuracy", *accuracy);
    }
    // A run that saw only some strings has converged when it fits those; beyond them it generalises as it will.
    Ok(fits.into_iter().map(|(loss, _)| loss).collect())
}

/// Loss and accuracy of each network on all strings of its set, of which so many are taken at once.
fn fits(engine: &mut dyn Engine, sets: &[Bits], at_once: usize) -> Result<Vec<(f64, f64)>, ProbeError> {
    let rows = sets.first().map_or(0, Bits::rows);
    let mut sums = vec![(0.0, 0.0); sets.len()];
    for start in (0..rows).step_by(at_once.min(rows).max(1)) {
        let end = rows.min(start.saturating_add(at_once));
        let pieces: Vec<Bits> = sets.iter().map(|set| set.select(start..end)).collect();
        let part = (end - start) as f64 / rows as f64;
        for (sum, found) in sums.iter_mut().zip(engine.evaluate(Strings::Each(&pieces))?) {
            *sum = (sum.0 + part * found.0, sum.1 + part * found.1);
        }
    }
    Ok(sums)
}

/// How well the networks do at other lengths, and how sensitive they are there.
fn at_lengths(runs: &[NetworkRun], engine: &mut dyn Engine, all: &mut [Results]) -> Result<(), ProbeError> {
    let config = &runs[0].config;
    let unreadable = |error: crate::Error| NnError::Computation(error.to_string());
    let (lengths, trained) = (config.eval_lengths().map_err(unreadable)?, config.train_lengths().map_err(unreadable)?);
    let seeds: Vec<u64> = runs.iter().map(|run| run.config.seed).collect();
    let samples = config.measure.sensitivity_samples;
    for length in lengths {
        let (cube, exact) = cube(config, length, config.eval.batches)?;
        let purpose = format!("evaluate at {length}");
        let fresh = |index: u64| -> Result<Vec<Bits>, ProbeError> {
            let own = |seed: &u64| Bits::uniform(config.train.batch, length, &mut Stream::new(*seed, &purpose, index));
            Ok(seeds.iter().map(own).collect::<Result<_, _>>()?)
        };
        let batches = if exact { 0 } else { config.eval.batches as u64 };
        let drawn = (0..batches).map(fresh).collect::<Result<Vec<_>, _>>()?;
        let strings = cube.iter().map(Strings::Shared).chain(drawn.iter().map(|own| Strings::Each(own)));
        let evaluations = evaluate(engine, strings, exact)?;
        // All strings once where the sampled ones and their neighbours would be more.
        let all_strings = length <= LARGEST_CUBE && 1 << length <= samples * (length + 1);
        let largest_exact = if all_strings { length } else { 0 };
        let sensitivities = match samples {
            0 => vec![None; runs.len()],
            _ => {
                let how = SensitivityConfig { largest_exact, spread: false, ..sensitivity_config(config) };
                network_sensitivity(engine, length, &how, &seeds)?
            }
        };
        for ((results, evaluation), sensitivity) in all.iter_mut().zip(&evaluations).zip(sensitivities) {
            let Evaluation { loss, accuracy } = evaluation;
            results.measures.estimate(&format!("loss_at_{length}"), loss);
            results.measures.estimate(&format!("accuracy_at_{length}"), accuracy);
            let sensitivity = sensitivity.map(|found| found.boolean);
            if let Some(sensitivity) = &sensitivity {
                results.measures.estimate(&format!("average_sensitivity_at_{length}"), sensitivity);
            }
            let found =
                json!({"length": length, "loss": loss, "accuracy": accuracy, "average_sensitivity": sensitivity});
            results.detail.insert("train_lengths".into(), json!([trained.start(), trained.end()]));
            let list = results.detail.entry("lengths").or_insert_with(|| json!([]));
            list.as_array_mut().into_iter().for_each(|list| list.push(found.clone()));
        }
    }
    Ok(())
}

/// How far the outputs spread, and how far the target does: a network that answers the same to every string has no spread.
fn spreads(runs: &[NetworkRun], engine: &mut dyn Engine, all: &mut [Results]) -> Result<(), ProbeError> {
    let config = &runs[0].config;
    let (rows, purpose) = (config.train.batch, "evaluate");
    let mut found = vec![(Moments::default(), Moments::default()); runs.len()];
    for index in 0..config.eval.batches.min(SPREAD_BATCHES) as u64 {
        let outputs = engine.predict(Strings::Fresh { rows, purpose, index })?;
        for (((output, target), values), run) in found.iter_mut().zip(outputs).zip(runs) {
            values.into_iter().for_each(|value| output.add(f64::from(value)));
            let labels = run.task.measure_batch(rows, run.config.seed, purpose, index)?.labels;
            labels.into_iter().for_each(|label| target.add(f64::from(label)));
        }
    }
    // Of the values there are, not of those they are drawn from: a small cube is all there is.
    let deviation = |moments: &Moments| {
        let count = moments.count() as f64;
        (moments.variance().unwrap_or(0.0) * (count - 1.0).max(0.0) / count).sqrt()
    };
    for (results, (output, target)) in all.iter_mut().zip(&found) {
        results.measures.value("output_std", deviation(output));
        results.measures.value("target_std", deviation(target));
    }
    Ok(())
}

/// How strongly the norms stretch.
fn blowups(config: &RunConfig, engine: &mut dyn Engine, all: &mut [Results]) -> Result<(), ProbeError> {
    let (cube, exact) = cube(config, config.n, config.measure.batches)?;
    let found = blowup(engine, batches(config, &cube, "blowup", config.measure.batches), exact)?;
    for (results, blowups) in all.iter_mut().zip(found) {
        results.measures.totals("blowup", &blowups.code.total);
        results.measures.estimate("blowup_theory", &blowups.theory.total.product_of_one_plus_max);
        for (part, totals) in &blowups.code.parts {
            results.measures.estimate(&format!("blowup_{part}"), &totals.product_of_max);
        }
        results.detail.insert("blowup".into(), json!(blowups));
    }
    Ok(())
}

/// Sharpness on fresh strings, and on a set of strings where that is asked for.
fn sharpnesses(runs: &[NetworkRun], engine: &mut dyn Engine, all: &mut [Results]) -> Result<(), ProbeError> {
    let config = &runs[0].config;
    let fresh = batches(config, &[], "sharpness", config.measure.batches);
    for (results, found) in all.iter_mut().zip(sharpness(engine, fresh, &noise(config), "sharpness-noise")?) {
        results.measures.estimate("sharpness", &found.loss_rise);
        results.measures.estimate("output_shift", &found.output_shift);
    }
    if config.measure.set_size > 0 {
        let set = |run: &NetworkRun| {
            TrainingSet::draw(run.config.measure.set_size, run.config.n, run.config.measure.set_seed)
        };
        let sets: Vec<Bits> =
            runs.iter().map(|run| Ok(set(run)?.strings().clone())).collect::<Result<_, ProbeError>>()?;
        let noise = SharpnessConfig { draws: config.measure.set_draws, ..noise(config) };
        let found = sharpness(engine, [Strings::Each(&sets)], &noise, "set-sharpness-noise")?;
        for (results, found) in all.iter_mut().zip(found) {
            results.measures.estimate("set_sharpness", &found.loss_rise);
        }
    }
    Ok(())
}

/// The function that a network computes.
struct NetworkProfile {
    /// Nothing of a network whose outputs are not all finite numbers, or where it is not asked for.
    sensitivity: Option<NetworkSensitivity>,
    /// Beside its target and the min-degree interpolator.
    compared: Option<Compared>,
}

/// The functions that networks compute, as far as their settings ask.
fn profiles(runs: &[NetworkRun], engine: &mut dyn Engine) -> Result<Vec<NetworkProfile>, ProbeError> {
    let config = &runs[0].config;
    let settings = sensitivity_config(config);
    let asked = settings.samples > 0;
    let seeds: Vec<u64> = runs.iter().map(|run| run.config.seed).collect();
    if config.n > LARGEST_EXACT {
        let found = if asked { network_sensitivity(engine, config.n, &settings, &seeds)? } else { Vec::new() };
        let found = found.into_iter().chain(std::iter::repeat(None)).take(runs.len());
        return Ok(found.map(|sensitivity| NetworkProfile { sensitivity, compared: None }).collect());
    }
    if !asked && runs.iter().all(|run| run.references.is_none()) {
        return Ok(runs.iter().map(|_| NetworkProfile { sensitivity: None, compared: None }).collect());
    }
    let of_one = |(answers, run): (&Vec<f32>, &NetworkRun)| {
        let finite = answers.iter().all(|answer| answer.is_finite());
        let references = run.references.as_ref().filter(|_| finite);
        Ok(NetworkProfile {
            sensitivity: (finite && asked).then(|| exact_sensitivity(answers, config.n, &settings)).transpose()?,
            compared: references.map(|references| references.compare(answers)).transpose()?,
        })
    };
    answers_on_cube(engine, config.n)?.par_iter().zip(runs).map(of_one).collect()
}

/// How sensitivity is measured.
pub(super) fn sensitivity_config(config: &RunConfig) -> SensitivityConfig {
    let cut = match config.measure.cut {
        CutAt::Half => Cut::Half,
        CutAt::Zero => Cut::Zero,
        CutAt::Median => Cut::Median,
    };
    SensitivityConfig {
        cut,
        spread: config.measure.profile,
        ..SensitivityConfig::new(config.measure.sensitivity_samples)
    }
}

impl NetworkProfile {
    fn measures(&self, run: &NetworkRun, measures: &mut Measures) {
        if let Some(found) = &self.sensitivity {
            let own = if run.task.target().is_boolean() { &found.boolean } else { &found.real };
            measures.estimate("average_sensitivity", own);
            measures.estimate("average_sensitivity_real", &found.real);
            if run.config.measure.profile {
                more(found, measures);
            }
        }
        if let Some(compared) = &self.compared {
            compared.measures(measures);
        }
    }

    /// What is followed through training beside numbers: Fourier weights of the outputs, and distances, by degree.
    fn by_degree(&self) -> Map<String, Value> {
        let degrees = self.sensitivity.as_ref().and_then(|found| found.real_degree_profile.as_ref());
        let degrees = degrees.map(|degrees| ("degrees".to_string(), json!(degrees)));
        degrees.into_iter().chain(self.compared.iter().flat_map(Compared::by_degree)).collect()
    }

    fn detail(&self, run: &NetworkRun, detail: &mut Map<String, Value>) {
        if let Some(found) = &self.sensitivity {
            detail.insert("sensitivity".into(), json!(found));
        }
        if let Some((references, compared)) = run.references.as_ref().zip(self.compared.as_ref()) {
            detail.insert("references".into(), references.detail());
            detail.extend(compared.by_degree());
        }
    }
}

/// The measures of `measure.profile`.
fn more(found: &NetworkSensitivity, measures: &mut Measures) {
    if let Some(spread) = &found.spread {
        measures.estimate("mean_degree", &spread.mean_degree);
        measures.estimate("degree_one", &spread.degree_one);
    }
    if let Some(degrees) = &found.real_degree_profile {
        // The other side of Eq. 17, which the flips of `average_sensitivity_real` do not know of.
        measures.value("degree_sum", degrees.iter().enumerate().map(|(degree, weight)| degree as f64 * weight).sum());
    }
    if let Some((least, most)) = found.extremes() {
        measures.value("sensitivity_min", least as f64);
        measures.value("sensitivity_max", most as f64);
    }
}

/// The accuracy of each network's last answer when it writes the scratchpad itself.
fn decode(runs: &[NetworkRun], engine: &mut dyn Engine, progress: &Progress) -> Result<Vec<Estimate>, ProbeError> {
    let config = &runs[0].config;
    let (rows, n) = (config.train.batch, config.n);
    let own = |run: &NetworkRun| Bits::uniform(rows, n, &mut Stream::new(run.config.seed, "decode", 0));
    let strings: Vec<Bits> = runs.iter().map(own).collect::<Result<_, _>>()?;
    let outputs = match engine.decode(Strings::Each(&strings))? {
        Some(outputs) => outputs,
        None => {
            let one = |(replica, strings)| decode_on_cpu(config, engine.weights(replica)?, strings, progress);
            strings.iter().enumerate().map(one).collect::<Result<_, _>>()?
        }
    };
    let accuracy = |((outputs, strings), run): ((&Vec<f32>, &Bits), &NetworkRun)| {
        let labels = run.task.label(strings.clone())?.labels;
        let last = |values: &[f32]| values.iter().skip(n - 1).step_by(n).map(|value| *value > 0.5).collect::<Vec<_>>();
        let right = last(outputs).into_iter().zip(last(&labels)).map(|(output, label)| f64::from(output == label));
        Ok(Estimate::sampled(&right.collect()))
    };
    outputs.iter().zip(&strings).zip(runs).map(accuracy).collect()
}

/// What a network writes, a few strings at a time.
fn decode_on_cpu(
    config: &RunConfig,
    weights: Weights,
    strings: &Bits,
    progress: &Progress,
) -> Result<Vec<f32>, ProbeError> {
    let network = Network::new(&architecture(config), weights, &Device::cpu())?;
    let mut outputs = Vec::with_capacity(strings.data().len());
    for piece in strings.pieces(DECODED_AT_ONCE) {
        check(progress)?;
        outputs.extend(network.decode(&piece)?);
    }
    Ok(outputs)
}

/// Every string of n bits once, in pieces, (and true) when `count` batches would hold more strings than there are; else nothing.
fn cube(config: &RunConfig, n: usize, count: usize) -> Result<(Vec<Bits>, bool), ProbeError> {
    let rows = config.train.batch;
    if n > LARGEST_CUBE || 1 << n > rows.saturating_mul(count) {
        return Ok((Vec::new(), false));
    }
    // Pieces of equal size: a power of two, as the cube is.
    let piece = 1usize << rows.min(1 << n).ilog2();
    Ok((Bits::cube(n)?.pieces(piece).collect(), true))
}

/// These strings, if there are any, for all networks; else `count` fresh batches for each.
fn batches<'a>(
    config: &RunConfig,
    shared: &'a [Bits],
    purpose: &'a str,
    count: usize,
) -> Box<dyn Iterator<Item = Strings<'a>> + 'a> {
    let rows = config.train.batch;
    match shared.is_empty() {
        false => Box::new(shared.iter().map(Strings::Shared)),
        true => Box::new((0..count as u64).map(move |index| Strings::Fresh { rows, purpose, index })),
    }
}

fn noise(config: &RunConfig) -> SharpnessConfig {
    let measure = &config.measure;
    SharpnessConfig { rho: measure.rho, draws: measure.draws, plus_minus: measure.plus_minus_one }
}

/// What is found out about a network.
#[derive(Default)]
pub(super) struct Results {
    pub(super) measures: Measures,
    /// Larger results.
    pub(super) detail: Map<String, Value>,
}

/// Measures by name, in the order taken.
#[derive(Default)]
pub(super) struct Measures(Map<String, Value>);

impl Measures {
    pub(super) fn value(&mut self, name: &str, value: f64) {
        self.0.insert(name.into(), value.into());
    }

    pub(super) fn estimate(&mut self, name: &str, estimate: &Estimate) {
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
