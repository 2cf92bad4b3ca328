//! Where training starts: random weights, or weights built by hand.

use pudica_nn::{Architecture, Weights};
use pudica_theory::constructions::Construction;

use super::RunConfig;
use super::config::RANDOM_START;
use crate::error::{Error, Result};

/// A construction asked for in `model.start`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Built {
    construction: Construction,
    /// None: the construction's own.
    gain: Option<f64>,
}

impl Built {
    /// What `model.start` says; `None` for random weights.
    fn parse(text: &str) -> Result<Option<Built>> {
        if text == RANDOM_START {
            return Ok(None);
        }
        let refuse = |problem: String| Err(Error::setting("model.start", problem));
        let Some(rest) = text.strip_prefix("construct:") else {
            let hint = pudica_boolean::did_you_mean(text, [RANDOM_START, "construct:parity", "construct:majority"]);
            return refuse(format!(
                "must be \"random\" or construct:FUNCTION or construct:FUNCTION:GAIN, not \"{text}\"{hint}"
            ));
        };
        let (name, gain) = rest.split_once(':').map_or((rest, None), |(name, gain)| (name, Some(gain)));
        let construction = match name.parse::<Construction>() {
            Ok(construction) => construction,
            Err(error) => return refuse(error.to_string()),
        };
        let gain = match gain.map(str::parse::<f64>) {
            None => None,
            Some(Ok(gain)) if gain.is_finite() && gain > 0.0 => Some(gain),
            Some(_) => return refuse(format!("the gain in \"{text}\" must be a positive number")),
        };
        Ok(Some(Built { construction, gain }))
    }
}

/// The most weights that are built by hand: 256 MB.
const MOST_BUILT: f64 = 6.4e7;

impl RunConfig {
    /// Whether the run starts from weights built by hand, which need no training.
    pub fn starts_built(&self) -> bool {
        self.model.start != RANDOM_START
    }

    /// Refuses a start that this network cannot have.
    pub(super) fn check_start(&self) -> Result<()> {
        match Built::parse(&self.model.start)? {
            Some(_) => self.initial_weights(&super::architecture(self)).map(|_| ()),
            None => Ok(()),
        }
    }

    /// The weights the run starts from.
    pub fn initial_weights(&self, architecture: &Architecture) -> Result<Weights> {
        let Some(built) = Built::parse(&self.model.start)? else {
            let mut weights = architecture.initial_weights(self.seed)?;
            if self.model.init_scale != 1.0 {
                weights.scale_matrices(self.model.init_scale);
            }
            return Ok(weights);
        };
        if self.model.init_scale != 1.0 {
            return Err(Error::setting(
                "model.init_scale",
                "scales random weights, not those built by hand; leave it at 1",
            ));
        }
        let Architecture::Encoder(shape) = architecture else {
            let problem =
                "only the paper's encoder is built by hand: post-norm, with learned positions, read at the last";
            return Err(Error::setting("model.start", problem));
        };
        // They are built when a run is planned, before anybody asks what fits in memory.
        let per_layer = 4.0 * (shape.d as f64).powi(2) + 2.0 * shape.d as f64 * shape.ff as f64;
        let count = shape.layers as f64 * per_layer + shape.n as f64 * shape.d as f64;
        if count > MOST_BUILT {
            let problem = format!(
                "model.d={}, model.ff={} and model.layers={} make {count:.1e} weights, and at most {MOST_BUILT:.1e} are built by hand",
                shape.d, shape.ff, shape.layers
            );
            return Err(Error::setting("model.start", problem));
        }
        let gain = built.gain.unwrap_or_else(|| built.construction.default_gain(shape.n));
        let weights = built.construction.build(shape, gain);
        weights.map_err(|error| Error::setting("model.start", error.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Configuration;

    fn config(start: &str) -> RunConfig {
        let mut config = RunConfig::default();
        config.model.start = start.into();
        config
    }

    #[test]
    fn starts_are_taken_apart() {
        assert_eq!(Built::parse("random").unwrap(), None);
        let built = Built { construction: Construction::Parity, gain: Some(2.5) };
        assert_eq!(Built::parse("construct:parity:2.5").unwrap(), Some(built));
        let refusal = |start: &str| config(start).check_start().unwrap_err().to_string();
        assert!(refusal("randm").contains("did you mean 'random'?"));
        assert!(refusal("construct:pairty").contains("did you mean 'parity'?"));
        assert!(refusal("construct:parity:-1").contains("positive number"));
        assert!(
            refusal("construct:first")
                .contains("model.start: the transformer for first has 1 layers, but 2 are asked for")
        );
    }

    /// Found by fuzzing: 206 GB were asked for when such a run was planned.
    #[test]
    fn vast_networks_are_not_built_by_hand() {
        let mut wide = config("construct:parity");
        (wide.model.d, wide.model.ff) = (65536, 65536);
        let refusal = wide.check_start().unwrap_err().to_string();
        assert!(refusal.contains("model.start: model.d=65536") && refusal.contains("built by hand"), "{refusal}");
    }

    #[test]
    fn a_random_start_leaves_no_trace_in_the_settings() {
        assert!(!config("random").canonical_json().contains("start"));
        assert!(config("construct:parity").canonical_json().contains("\"start\":\"construct:parity\""));
        let read: RunConfig = serde_json::from_str(&config("random").canonical_json()).unwrap();
        assert_eq!(read, config("random"));
    }

    #[test]
    fn built_weights_do_not_depend_on_the_seed() {
        let weights = |seed| {
            let config = RunConfig { seed, ..config("construct:parity") };
            config.initial_weights(&super::super::architecture(&config)).unwrap()
        };
        assert_eq!(weights(0), weights(1));
    }
}
