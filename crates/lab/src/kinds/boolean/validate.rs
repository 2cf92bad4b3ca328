//! What can be run: every rule about settings, with the sentence a user reads when it is broken.

use pudica_data::{Target, Written};
use pudica_nn::Position;
use serde_json::json;

use super::{Embed, ModelKind, RunConfig};
use crate::error::{Error, Result};
use crate::kinds::Configuration;

/// Truth tables that other runs or completions make are kept up to this length.
pub const LONGEST_TABLE: usize = 20;

/// A target's name, taken apart. What the plain ones compute is `pudica_data`'s business.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetName {
    /// A function that anybody can compute: `parity`, `random:7`, `expr:x1 & x2`, `table:f.npy`, ...
    Plain(String),
    /// The truth table labelled by another run of the sweep.
    Run(String),
    /// A random function that agrees with another on a training set.
    Completion {
        /// Names the random values outside the training set.
        seed: u64,
        /// Strings in the training set.
        set_size: usize,
        /// Which training set.
        set_seed: u64,
        /// The function it agrees with there.
        of: String,
    },
}

impl TargetName {
    /// Takes a target's name apart.
    pub fn parse(text: &str) -> Result<TargetName> {
        if let Some(id) = text.strip_prefix("run:") {
            return Ok(TargetName::Run(id.to_string()));
        }
        let Some(rest) = text.strip_prefix("completion:") else {
            return Ok(TargetName::Plain(text.to_string()));
        };
        let parts: Vec<&str> = rest.splitn(4, ':').collect();
        let parsed = match parts[..] {
            [seed, size, set_seed, of] if !of.is_empty() => {
                seed.parse().ok().zip(size.parse().ok()).zip(set_seed.parse().ok()).map(
                    |((seed, set_size), set_seed)| TargetName::Completion {
                        seed,
                        set_size,
                        set_seed,
                        of: of.to_string(),
                    },
                )
            }
            _ => None,
        };
        parsed.ok_or_else(|| {
            let problem =
                format!("`{text}` should read completion:SEED:SIZE:SET_SEED:TARGET, as in completion:0:256:1:random:3");
            Error::setting("target", problem)
        })
    }

    /// As settings keep it: without blanks, a table with the digest of its file.
    pub fn written(&self) -> Result<String> {
        Ok(match self {
            TargetName::Run(id) => format!("run:{id}"),
            TargetName::Plain(name) => written("target", name)?.text,
            TargetName::Completion { seed, set_size, set_seed, of } => {
                format!("completion:{seed}:{set_size}:{set_seed}:{}", written("target", of)?.text)
            }
        })
    }

    /// The length of its strings, where it has one of its own.
    pub fn own_n(&self) -> Result<Option<usize>> {
        match self {
            TargetName::Run(_) => Ok(None),
            TargetName::Plain(name) | TargetName::Completion { of: name, .. } => Ok(written("target", name)?.n),
        }
    }
}

/// A function as this setting keeps it.
pub(super) fn written(key: &str, name: &str) -> Result<Written> {
    Target::written(name).map_err(|error| Error::setting(key, error.to_string()))
}

impl RunConfig {
    /// Checks every rule; the first one broken is the error.
    pub fn validate(&self) -> Result<()> {
        for (key, value, most) in [
            ("n", self.n, 1 << 16),
            ("model.d", self.model.d, 1 << 16),
            ("model.layers", self.model.layers, 1024),
            ("model.ff", self.model.ff, 1 << 20),
            ("model.positions", self.model.positions, 1 << 16),
            ("train.batch", self.train.batch, 1 << 24),
            ("eval.batches", self.eval.batches, 1_000_000),
            ("measure.batches", self.measure.batches, 1_000_000),
            ("measure.draws", self.measure.draws, 1_000_000),
            ("measure.set_draws", self.measure.set_draws, 1_000_000),
            ("measure.volume_draws", self.measure.volume_draws, 1_000_000),
            ("track.draws", self.track.draws, 1_000_000),
        ] {
            if value > most {
                return Err(Error::setting(key, format!("must be at most {most}, not {value}")));
            }
        }
        let (kind, model) = (self.model.kind, &self.model);
        let has_heads = kind.has("heads");
        let joined = has_heads && matches!(model.position, Position::Learned | Position::Sinusoidal);
        let rules: [(&str, bool, String); 21] = [
            ("n", self.n >= 1, "strings need at least one bit".into()),
            ("model.d", self.model.d >= 1, "the network needs a width of at least 1".into()),
            ("model.layers", self.model.layers >= 1, "the network needs at least one layer".into()),
            ("model.heads", model.heads >= 1 || !has_heads, "attention needs at least one head".into()),
            (
                "model.heads",
                !has_heads || self.model.d.is_multiple_of(self.model.heads),
                format!(
                    "{} heads do not divide the width d = {}; choose a divisor of it",
                    self.model.heads, self.model.d
                ),
            ),
            (
                "model.d",
                !joined || self.model.embed == Embed::Add || self.model.d.is_multiple_of(2),
                format!("embed = \"concat\" needs an even width, but d = {}", self.model.d),
            ),
            (
                "model.embed",
                joined || model.embed == Embed::Concat || !has_heads,
                format!("there is nothing to add to tokens where position = {}; leave it out", json!(model.position)),
            ),
            (
                "model.positions",
                model.positions == 0 || model.position == Position::Learned,
                format!("position = {} has no table; leave it out", json!(model.position)),
            ),
            (
                "model.init_scale",
                positive(model.init_scale),
                format!("must be a positive number, not {}", model.init_scale),
            ),
            ("train.batch", self.train.batch >= 1, "a batch needs at least one string".into()),
            ("train.lr", positive(self.train.lr), format!("must be a positive number, not {}", self.train.lr)),
            (
                "train.weight_decay",
                self.train.weight_decay >= 0.0 && self.train.weight_decay.is_finite(),
                format!("must be 0 or more, not {}", self.train.weight_decay),
            ),
            (
                "train.beta1",
                (0.0..1.0).contains(&self.train.beta1),
                format!("must lie in [0, 1), not {}", self.train.beta1),
            ),
            (
                "train.beta2",
                (0.0..1.0).contains(&self.train.beta2),
                format!("must lie in [0, 1), not {}", self.train.beta2),
            ),
            ("train.eps", positive(self.train.eps), format!("must be a positive number, not {}", self.train.eps)),
            (
                "eval.converged_below",
                positive(self.eval.converged_below),
                format!("must be a positive number, not {}", self.eval.converged_below),
            ),
            ("eval.batches", self.eval.batches >= 1, "judging convergence needs at least one batch".into()),
            ("measure.batches", self.measure.batches >= 1, "measuring needs at least one batch".into()),
            ("measure.draws", self.measure.draws >= 2, "a standard error needs at least 2 noise draws a batch".into()),
            ("measure.rho", positive(self.measure.rho), format!("must be a positive number, not {}", self.measure.rho)),
            (
                "measure.rho",
                self.measure.rho <= LARGEST_NOISE,
                format!(
                    "must be at most {LARGEST_NOISE}, not {:e}: beyond, networks are noise alone",
                    self.measure.rho
                ),
            ),
        ];
        self.check_model()?;
        if let Some((key, _, problem)) = rules.into_iter().find(|(_, holds, _)| !holds) {
            return Err(Error::setting(key, problem));
        }
        if self.track.every > 0 && self.track.draws < 2 {
            return Err(Error::setting("track.draws", "a standard error needs at least 2 noise draws"));
        }
        if self.measure.set_size > 0 && self.measure.set_draws < 2 {
            return Err(Error::setting("measure.set_draws", "a standard error needs at least 2 noise draws"));
        }
        self.check_start()?;
        super::architecture(self).check()?;
        self.check_set("train.set_size", self.train.set_size)?;
        self.check_set("measure.set_size", self.measure.set_size)?;
        self.check_unseen()?;
        self.check_volume()?;
        self.check_target()?;
        self.check_lengths()
    }

    /// Refuses a setting of the model that its network does not have.
    fn check_model(&self) -> Result<()> {
        let (kind, default) = (self.model.kind, RunConfig::default().settings());
        let own = self.settings();
        for name in own.keys().iter().filter_map(|key| key.strip_prefix("model.")) {
            let key = format!("model.{name}");
            if !kind.has(name) && own.get(&key)? != default.get(&key)? {
                let problem = format!("{} has no such setting; leave it out", kind.name());
                return Err(Error::setting(&key, problem));
            }
        }
        Ok(())
    }

    fn check_set(&self, key: &str, size: usize) -> Result<()> {
        if size > 0 && self.n < 63 && size as u64 > 1 << self.n {
            let problem = format!(
                "there are only {} strings of {} bits, so a set of {size} cannot be drawn",
                1u64 << self.n,
                self.n
            );
            return Err(Error::setting(key, problem));
        }
        Ok(())
    }

    fn check_target(&self) -> Result<()> {
        let target = TargetName::parse(&self.target)?;
        if self.model.kind == ModelKind::EncoderDecoder && self.target != "parity" {
            let problem = format!(
                "the encoder-decoder writes prefix parities, so its target must be parity, not {}",
                self.target
            );
            return Err(Error::setting("target", problem));
        }
        if target != TargetName::Plain(self.target.clone()) && self.n > LONGEST_TABLE {
            let problem = format!(
                "{} is a truth table, which is kept up to n = {LONGEST_TABLE}, but n = {}",
                self.target, self.n
            );
            return Err(Error::setting("target", problem));
        }
        let named = match &target {
            TargetName::Plain(name) => name,
            TargetName::Completion { of, set_size, .. } => {
                self.check_set("target", *set_size)?;
                if *set_size == 0 {
                    return Err(Error::setting("target", format!("`{}` agrees on a set of no strings", self.target)));
                }
                of
            }
            TargetName::Run(_) => return Ok(()),
        };
        Target::parse(named, self.n).map(|_| ()).map_err(|error| Error::setting("target", error.to_string()))
    }
}

/// The largest noise on weights: the outputs are still numbers.
const LARGEST_NOISE: f64 = 1e6;

fn positive(x: f64) -> bool {
    x > 0.0 && x.is_finite()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn refusal(pairs: &[(&str, Value)]) -> String {
        let mut settings = RunConfig::default().settings();
        for (key, value) in pairs {
            settings.set(key, value.clone()).unwrap();
        }
        RunConfig::resolve(&settings).unwrap_err().to_string()
    }

    #[test]
    fn defaults_are_valid() {
        RunConfig::default().validate().unwrap();
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        assert_eq!(refusal(&[("n", json!(0))]), "n: strings need at least one bit");
        assert_eq!(refusal(&[("train.batch", json!(0))]), "train.batch: a batch needs at least one string");
        let heads = refusal(&[("model.heads", json!(3))]);
        assert_eq!(heads, "model.heads: 3 heads do not divide the width d = 128; choose a divisor of it");
        assert!(refusal(&[("model.heads", json!(0))]).contains("at least one head"));
        assert!(refusal(&[("train.lr", json!(0))]).contains("positive"));
        assert!(refusal(&[("measure.rho", json!(1e300))]).contains("must be at most 1000000, not 1e300"));
        assert!(refusal(&[("model.d", json!(5)), ("model.heads", json!(1))]).contains("even width"));
        assert!(refusal(&[("n", json!(4)), ("train.set_size", json!(17))]).contains("only 16 strings"));
        assert!(refusal(&[("model.kind", json!("encoder-decoder")), ("target", json!("first"))]).contains("prefix"));
    }

    #[test]
    fn a_setting_that_a_network_does_not_have_is_refused() {
        let refused = |kind: &str, key: &str, value: Value| refusal(&[("model.kind", json!(kind)), (key, value)]);
        assert_eq!(refused("lstm", "model.heads", json!(4)), "model.heads: the LSTM has no such setting; leave it out");
        assert!(refused("mlp", "model.ff", json!(4)).contains("model.ff: the perceptron has no such setting"));
        assert!(refused("gru", "model.norm", json!("pre")).contains("the GRU has no such setting"));
        assert!(refused("ssm", "model.position", json!("none")).contains("the state-space model has no such setting"));
        assert!(refused("encoder", "model.eigenvalues", json!("signed")).contains("the encoder has no such setting"));
        assert!(refused("ssm", "model.start", json!("construct:parity")).contains("no such setting"));
        assert!(refused("encoder-decoder", "model.read", json!("mean")).contains("no such setting"));
        assert!(refused("lstn", "n", json!(4)).contains("did you mean 'lstm'?"));
    }

    #[test]
    fn variants_of_the_encoder_have_their_rules() {
        let rotary = ("model.position", json!("rotary"));
        assert!(refusal(&[rotary.clone(), ("model.embed", json!("add"))]).contains("nothing to add"));
        assert!(refusal(&[rotary.clone(), ("model.positions", json!(20))]).contains("has no table"));
        let odd = [rotary, ("model.d", json!(6)), ("model.heads", json!(2))];
        assert!(refusal(&odd).contains("d / heads must be even, but it is 3"));
        assert!(refusal(&[("model.positions", json!(9))]).contains("need a table of at least 10, not 9"));
        assert!(refusal(&[("model.activation", json!("gelu-by-tanh"))]).contains("\"relu\" or \"gelu\""));
        assert!(refusal(&[("model.init_scale", json!(0))]).contains("positive"));
        let built = [("model.start", json!("construct:parity")), ("model.norm", json!("pre"))];
        assert!(refusal(&built).contains("only the paper's encoder is built by hand"));
        let scaled = [("model.start", json!("construct:parity")), ("model.init_scale", json!(2))];
        assert!(refusal(&scaled).contains("scales random weights"));
    }

    #[test]
    fn new_settings_leave_no_trace_at_their_defaults() {
        let config = RunConfig::default();
        let text = config.canonical_json();
        let model: Value = serde_json::from_str::<Value>(&text).unwrap()["model"].clone();
        let keys: Vec<&String> = model.as_object().unwrap().keys().collect();
        assert_eq!(keys, ["kind", "d", "layers", "heads", "ff", "embed", "same_init"]);
        assert_eq!(serde_json::from_str::<RunConfig>(&text).unwrap(), config);
    }

    #[test]
    fn completion_names_are_taken_apart() {
        let name = TargetName::parse("completion:5:256:1:random:3").unwrap();
        assert_eq!(name, TargetName::Completion { seed: 5, set_size: 256, set_seed: 1, of: "random:3".into() });
        assert!(TargetName::parse("completion:5:256").unwrap_err().to_string().contains("completion:SEED"));
    }
}
