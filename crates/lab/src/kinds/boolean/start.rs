//! Where training starts: random weights, or weights built by hand.

use pudica_nn::{Architecture, EncoderConfig, Weights};
use pudica_theory::TheoryError;
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

impl RunConfig {
    /// Whether the run starts from weights built by hand, which need no training.
    pub fn starts_built(&self) -> bool {
        self.model.start != RANDOM_START
    }

    /// Refuses a start that this network cannot have.
    pub(super) fn check_start(&self) -> Result<()> {
        match self.built(&super::architecture(self))? {
            Some((construction, shape, gain)) => construction.check(&shape, gain).map_err(refused),
            None => Ok(()),
        }
    }

    /// The weights the run starts from.
    pub fn initial_weights(&self, architecture: &Architecture) -> Result<Weights> {
        if let Some((construction, shape, gain)) = self.built(architecture)? {
            return construction.build(&shape, gain).map_err(refused);
        }
        let mut weights = architecture.initial_weights(self.seed)?;
        if self.model.init_scale != 1.0 {
            weights.scale_matrices(self.model.init_scale);
        }
        Ok(weights)
    }

    /// What is built by hand, in which shape and with which gain; `None` for random weights.
    fn built(&self, architecture: &Architecture) -> Result<Option<(Construction, EncoderConfig, f64)>> {
        let Some(built) = Built::parse(&self.model.start)? else { return Ok(None) };
        if self.model.init_scale != 1.0 {
            let problem = "scales random weights, not those built by hand; leave it at 1";
            return Err(Error::setting("model.init_scale", problem));
        }
        let Architecture::Encoder(shape) = architecture else {
            let problem =
                "only the paper's encoder is built by hand: post-norm, with learned positions, read at the last";
            return Err(Error::setting("model.start", problem));
        };
        let gain = built.gain.unwrap_or_else(|| built.construction.default_gain(shape.n));
        Ok(Some((built.construction, shape.clone(), gain)))
    }
}

fn refused(error: TheoryError) -> Error {
    Error::setting("model.start", error.to_string())
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

    /// Found by fuzzing: 206 GB were asked for when such a run was planned. What fits in memory is asked before a run begins.
    #[test]
    fn nothing_is_built_when_a_run_is_planned() {
        let mut wide = config("construct:parity");
        (wide.model.d, wide.model.ff) = (65536, 65536);
        wide.check_start().unwrap();
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
