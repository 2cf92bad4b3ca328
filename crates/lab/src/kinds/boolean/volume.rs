//! How sensitive the neighbours of a network are: the volume that high sensitivity has around it (Theorem 6's step, Eq. 70).

use pudica_data::Stream;
use pudica_ensemble::Engine;
use pudica_nn::{Device, Network};
use pudica_probe::{Estimate, ProbeError, sensitivity_of};
use serde_json::json;

use super::config::NONE;
use super::interruptible::check;
use super::measure::{Results, sensitivity_config};
use super::training::NetworkRun;
use super::{RunConfig, architecture};
use crate::error::{Error, Result};
use crate::stop::Progress;

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
        if self.measure.volume_draws == 0 {
            return Err(Error::setting("measure.volume_draws", "needs at least one neighbour"));
        }
        Ok(())
    }
}

/// Moves the weights of a network and measures the average sensitivity, `volume_draws` times for each noise.
pub(super) fn volume(
    run: &NetworkRun,
    engine: &dyn Engine,
    replica: usize,
    progress: &Progress,
    results: &mut Results,
) -> Result<(), ProbeError> {
    let config = &run.config;
    if config.volumes().is_empty() {
        return Ok(());
    }
    let (architecture, weights) = (architecture(config), engine.state(replica)?.weights);
    let mut all = Vec::new();
    for written in config.volumes() {
        let rho: f64 = written.parse().unwrap_or(f64::NAN); // checked before the run began
        let mut found = Vec::with_capacity(config.measure.volume_draws);
        for draw in 0..config.measure.volume_draws as u64 {
            check(progress)?;
            let mut noise = Stream::new(config.seed, &format!("volume/{written}"), draw);
            let network = Network::new(&architecture, weights.perturbed(rho, &mut noise), &Device::cpu())?;
            let sensitivity = sensitivity_of(&network, config.n, &sensitivity_config(config), config.seed)?;
            found.push(sensitivity.boolean.mean);
        }
        results.measures.estimate(&format!("noisy_sensitivity_{written}"), &Estimate::of_values(&found));
        all.push(json!({ "rho": rho, "average_sensitivities": found }));
    }
    results.detail.insert("volume".into(), all.into());
    Ok(())
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
