//! How sensitive the neighbours of a network are: the volume that high sensitivity has around it (Theorem 6's step, Eq. 70).

use pudica_data::Stream;
use pudica_ensemble::Member;
use pudica_nn::TrainingState;
use pudica_probe::{Estimate, SensitivityConfig, network_sensitivity};
use serde_json::json;

use super::config::NONE;
use super::interruptible::interruptible;
use super::measure::{Results, sensitivity_config};
use super::training::BooleanTraining;
use super::{RunConfig, adamw, work};
use crate::error::{Error, Result};
use crate::stop::Progress;

/// Neighbours that are measured together.
const TOGETHER: u64 = 128;

impl RunConfig {
    /// The standard deviations of the noise, as they are written.
    pub(super) fn volumes(&self) -> Vec<&str> {
        match self.measure.volume.as_str() {
            NONE => Vec::new(),
            list => list.split('+').map(str::trim).collect(),
        }
    }

    /// Refuses noise that is none.
    pub(super) fn check_volume(&self) -> Result<()> {
        for written in self.volumes() {
            if !written.parse::<f64>().is_ok_and(|rho| rho > 0.0 && rho.is_finite()) {
                let problem = format!("must be positive numbers joined by +, as in 0.01+0.1, not \"{written}\"");
                return Err(Error::setting("measure.volume", problem));
            }
        }
        if !self.volumes().is_empty() && self.measure.sensitivity_samples == 0 {
            let problem = "the sensitivity of neighbours needs measure.sensitivity_samples of at least 1";
            return Err(Error::setting("measure.volume", problem));
        }
        if self.measure.volume_draws == 0 {
            return Err(Error::setting("measure.volume_draws", "needs at least one neighbour"));
        }
        Ok(())
    }
}

/// What was found around a network: for each noise, as it is written, the average sensitivities of its neighbours.
pub(super) type Neighbours = Vec<(String, Vec<f64>)>;

/// Moves the weights of all networks that are not lost and measures the average sensitivity, `volume_draws` times for each noise.
pub(super) fn neighbours(training: &BooleanTraining, progress: &Progress) -> Result<Vec<Neighbours>> {
    let mut all = Vec::new();
    for (replica, run) in training.runs.iter().enumerate() {
        let mut found = Vec::new();
        for written in run.config.volumes().into_iter().filter(|_| run.lost.is_none()) {
            found.push((written.to_string(), around(training, replica, written, progress)?));
        }
        all.push(found);
    }
    Ok(all)
}

/// The neighbours of one network under one noise, some at a time.
fn around(training: &BooleanTraining, replica: usize, written: &str, progress: &Progress) -> Result<Vec<f64>> {
    let run = &training.runs[replica];
    let (config, draws) = (&run.config, run.config.measure.volume_draws as u64);
    let rho: f64 = written.parse().unwrap_or(f64::NAN); // checked before the run began
    let weights = training.engine.weights(replica)?;
    let settings = few_strings(config);
    let per_string = work::of_pass(config) / config.train.batch as f64;
    let mut found = Vec::with_capacity(config.measure.volume_draws);
    for first in (0..draws).step_by(TOGETHER as usize) {
        let neighbour = |draw: u64| {
            let mut noise = Stream::new(config.seed, &format!("volume/{written}"), draw);
            let state = TrainingState::new(weights.perturbed(rho, &mut noise));
            Member { task: run.task.clone(), seed: config.seed, adamw: adamw(config), state }
        };
        let members: Vec<Member> = (first..draws.min(first + TOGETHER)).map(neighbour).collect();
        let seeds = vec![config.seed; members.len()];
        let mut engine = training.experiment.engine(config, &training.compute, members)?;
        let sensitivities = interruptible(engine.as_mut(), progress, per_string, |engine| {
            network_sensitivity(engine, config.n, &settings, &seeds)
        })?;
        found.extend(sensitivities.into_iter().flatten().map(|sensitivity| sensitivity.boolean.mean));
    }
    Ok(found)
}

/// The whole cube only where that takes no more strings than a sample.
fn few_strings(config: &RunConfig) -> SensitivityConfig {
    let settings = sensitivity_config(config);
    let sampled = settings.samples.saturating_mul(config.n + 1);
    let exact = config.n < usize::BITS as usize && 1usize << config.n <= sampled;
    SensitivityConfig { spread: false, largest_exact: if exact { settings.largest_exact } else { 0 }, ..settings }
}

/// Puts what was found into the results of a run.
pub(super) fn take_in(neighbours: &Neighbours, results: &mut Results) {
    let one = |(written, found): &(String, Vec<f64>)| json!({ "rho": written.parse::<f64>().ok(), "average_sensitivities": found });
    for (written, found) in neighbours.iter().filter(|(_, found)| !found.is_empty()) {
        results.measures.estimate(&format!("noisy_sensitivity_{written}"), &Estimate::of_values(found));
    }
    if !neighbours.is_empty() {
        results.detail.insert("volume".into(), neighbours.iter().map(one).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_read_and_refused() {
        let config = |volume: &str| {
            let mut config = RunConfig::default();
            config.measure.volume = volume.into();
            config
        };
        assert!(config("none").volumes().is_empty());
        assert_eq!(config("0.01 + 0.5").volumes(), ["0.01", "0.5"]);
        config("0.01+0.5").check_volume().unwrap();
        let refusal = config("0.01+x").check_volume().unwrap_err().to_string();
        assert_eq!(refusal, "measure.volume: must be positive numbers joined by +, as in 0.01+0.1, not \"x\"");
    }
}
