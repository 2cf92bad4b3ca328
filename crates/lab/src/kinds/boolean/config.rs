//! The settings of one run: train a network on a Boolean function, perhaps tracking measures on the way, then measure it.

use pudica_nn::{Eigenvalues, Nonlinearity, Normalisation, Position, Read, Span};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::TargetName;
use super::lengths::{is_own_length, own_length};
use crate::error::Result;
use crate::kinds::{Configuration, Documented, choices, documented};
use crate::settings::Settings;

documented! {
    /// All settings of one run that learns a Boolean function.
    pub struct RunConfig {
        /// The function to learn: a name of `pudica boolean --list` (`parity`, `random:SEED`, `threshold:n/3`), `expr:EXPRESSION`,
        /// `table:FILE`, `run:ID` (the truth table labelled by another finished run) or `completion:SEED:SIZE:SET_SEED:TARGET` (random,
        /// but agreeing with TARGET on a training set).
        pub target: String,
        /// Length of the input strings, in bits. Where it is not set, a table or an expression has its own.
        pub n: usize,
        /// Names every random choice of the run: initial weights, batches, noise.
        pub seed: u64,
        /// The network.
        pub model: ModelConfig,
        /// How it is trained.
        pub train: TrainConfig,
        /// How convergence is judged after training.
        pub eval: EvalConfig,
        /// What is measured after training.
        pub measure: MeasureConfig,
        /// What is measured during training.
        pub track: TrackConfig,
    }
}

documented! {
    /// The network that learns.
    pub struct ModelConfig {
        /// The network: a transformer `encoder`; an `encoder-decoder` with a scratchpad, one answer per position; a perceptron (`mlp`), an
        /// `lstm`, a `gru`; or a diagonal state-space model (`ssm`), which is the encoder with a linear recurrence in place of attention.
        /// Settings of the model that a network does not have must stay at their defaults.
        pub kind: ModelKind,
        /// Width: of the residual stream, of the states of recurrent networks, of the hidden layers of a perceptron.
        pub d: usize,
        /// Layers (of the encoder, and as many again of the decoder where there is one; of a perceptron, the hidden ones).
        pub layers: usize,
        /// Attention heads per layer; must divide `d`.
        pub heads: usize,
        /// Width of the feed-forward block; 0 means as wide as `d`.
        pub ff: usize,
        /// How token and position embeddings are put together.
        pub embed: Embed,
        /// Whether all layers start from the same weights, as PyTorch's `TransformerEncoder` does.
        pub same_init: bool,
        /// The weights it starts from: `random` (named by the run's seed), or `construct:FUNCTION` (built by hand, see
        /// `pudica construct`), or `construct:FUNCTION:GAIN`.
        #[serde(default = "random_start", skip_serializing_if = "is_random_start")]
        pub start: String,
        /// What all matrices of random initial weights are multiplied by: embeddings too; biases and the weights of norms not.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        pub init_scale: f64,
        /// Where the encoder and the state-space model have norms: LayerNorm after each block (`post`, the paper's) or before it (`pre`),
        /// `none`, or RMSNorm before each block (`rms`). With `pre` and `rms` there is one more after the last layer.
        #[serde(default, skip_serializing_if = "is_default")]
        pub norm: Normalisation,
        /// How the encoder knows where a bit stands: `learned` vectors, fixed `sinusoidal` ones, `rotary` (queries and keys turned by their
        /// position), or `none`.
        #[serde(default, skip_serializing_if = "is_default")]
        pub position: Position,
        /// Rows of the encoder's table of learned positions; 0 means n. Where there are more than bits, each training batch begins at a
        /// random one of them, so that all are learnt and longer strings can be read; measured strings begin at the first.
        #[serde(default, skip_serializing_if = "is_default")]
        pub positions: usize,
        /// Which bits the encoder's bits attend to: all (`full`), or themselves and those before them (`causal`).
        #[serde(default, skip_serializing_if = "is_default")]
        pub attention: Span,
        /// Where the answer is read: at the `last` position, or in the `mean` over positions.
        #[serde(default, skip_serializing_if = "is_default")]
        pub read: Read,
        /// The nonlinearity of feed-forward blocks and perceptrons.
        #[serde(default = "relu", skip_serializing_if = "is_relu")]
        pub activation: Nonlinearity,
        /// The range of the state-space model's eigenvalues: `positive` for [0, 1], `signed` for [-1, 1].
        #[serde(default, skip_serializing_if = "is_default")]
        pub eigenvalues: Eigenvalues,
    }
}

fn one() -> f64 {
    1.0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

fn relu() -> Nonlinearity {
    Nonlinearity::Relu
}

fn is_relu(activation: &Nonlinearity) -> bool {
    *activation == relu()
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// The default of `model.start`.
pub(super) const RANDOM_START: &str = "random";

fn random_start() -> String {
    RANDOM_START.into()
}

fn is_random_start(start: &str) -> bool {
    start == RANDOM_START
}

/// Of settings that may ask for nothing.
pub(super) const NONE: &str = "none";

fn none() -> String {
    NONE.into()
}

fn is_none(text: &str) -> bool {
    text == NONE
}

fn volume_draws() -> usize {
    100
}

fn is_volume_draws(draws: &usize) -> bool {
    *draws == volume_draws()
}

/// Where outputs are cut to make a Boolean function of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CutAt {
    /// At 1/2, between the labels.
    #[default]
    Half,
    /// At 0.
    Zero,
    /// At their median.
    Median,
}

/// Which architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelKind {
    /// Post-norm encoder, linear head on the last position.
    Encoder,
    /// Encoder and causal decoder that writes the parity of every prefix (a scratchpad).
    EncoderDecoder,
    /// Multilayer perceptron on bits as -1 and +1.
    Mlp,
    /// Long short-term memory.
    Lstm,
    /// Gated recurrent unit.
    Gru,
    /// Diagonal state-space model.
    Ssm,
}

impl ModelKind {
    /// As sentences name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            ModelKind::Encoder => "the encoder",
            ModelKind::EncoderDecoder => "the encoder-decoder",
            ModelKind::Mlp => "the perceptron",
            ModelKind::Lstm => "the LSTM",
            ModelKind::Gru => "the GRU",
            ModelKind::Ssm => "the state-space model",
        }
    }

    /// Whether it has the setting `model.KEY`. All have d, layers and init_scale.
    pub(super) fn has(self, key: &str) -> bool {
        use ModelKind::{Encoder, EncoderDecoder, Gru, Lstm, Mlp, Ssm};
        match key {
            "heads" | "embed" => matches!(self, Encoder | EncoderDecoder),
            "ff" | "same_init" => matches!(self, Encoder | EncoderDecoder | Ssm),
            "start" | "position" | "positions" | "attention" => self == Encoder,
            "norm" => matches!(self, Encoder | Ssm),
            "read" => matches!(self, Encoder | Lstm | Gru | Ssm),
            "activation" => matches!(self, Encoder | Mlp | Ssm),
            "eigenvalues" => self == Ssm,
            _ => true,
        }
    }
}

/// How token and position embeddings are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Embed {
    /// Two halves of width d/2 side by side.
    Concat,
    /// Two full-width vectors summed.
    Add,
}

documented! {
    /// AdamW on the mean squared error.
    pub struct TrainConfig {
        /// Learning rate.
        pub lr: f64,
        /// Decoupled weight decay, on all parameters.
        pub weight_decay: f64,
        /// Decay of the gradient's running mean.
        pub beta1: f64,
        /// Decay of the gradient's running square.
        pub beta2: f64,
        /// Added to the denominator of the update.
        pub eps: f64,
        /// Batch size: strings per step.
        pub batch: usize,
        /// Training steps.
        pub steps: u64,
        /// 0: fresh uniform strings every step. Otherwise the batches are drawn from a fixed random set of this many strings.
        pub set_size: usize,
        /// Which random set, where `set_size` is not 0.
        pub set_seed: u64,
        /// Strings that are never trained on: those where this Boolean function, written as `target` is, has the value 1 (`expr:x1 & x2`, some
        /// bits fixed; `kparity:3`, half of the cube); `none`: all may be. Strings left out at random are what `set_size` leaves.
        #[serde(default = "none", skip_serializing_if = "is_none")]
        pub unseen: String,
        /// The lengths of training strings. `n`: every string has n bits. `1 to n`, `n/2 to n`: each batch has one length, drawn uniformly
        /// from these.
        #[serde(default = "own_length", skip_serializing_if = "is_own_length")]
        pub lengths: String,
    }
}

documented! {
    /// Judging convergence.
    pub struct EvalConfig {
        /// Fresh batches of `train.batch` strings. When they would hold more strings than exist, every string is taken once.
        pub batches: usize,
        /// The run has converged iff its evaluation loss is below this; for a run on a training set, its loss on that set.
        pub converged_below: f64,
        /// Lengths at which loss, accuracy and sensitivity are measured as well, as multiples of n or numbers: `n/2 n 2n 3n 4n`. `n`: at
        /// no other.
        #[serde(default = "own_length", skip_serializing_if = "is_own_length")]
        pub lengths: String,
    }
}

documented! {
    /// Measuring the trained network.
    pub struct MeasureConfig {
        /// Standard deviation of the weight noise of sharpness.
        pub rho: f64,
        /// Noise draws per batch.
        pub draws: usize,
        /// Batches for sharpness and blowup.
        pub batches: usize,
        /// Whether squared measures are multiplied by 4, as for outputs in {-1, +1} instead of {0, 1}.
        pub plus_minus_one: bool,
        /// Strings sampled for the sensitivity of the trained network where the whole cube is too large; 0: not measured.
        pub sensitivity_samples: usize,
        /// Not 0: sharpness is also measured on this random set alone (it is the `train.set_size` of another run).
        pub set_size: usize,
        /// Which random set, where `set_size` is not 0.
        pub set_seed: u64,
        /// Noise draws on that set.
        pub set_draws: usize,
        /// Where outputs are cut to make a Boolean function of them, whose sensitivity is measured: at 1/2, at 0, or at their median, so that
        /// half of all strings are 1 whatever the network's scale and bias are (as for networks that are not trained).
        #[serde(default, skip_serializing_if = "is_default")]
        pub cut: CutAt,
        /// Whether the mean degree, the weight at degree 1 and the least and most sensitive strings are measured, too; and, of a network that
        /// learnt a part of all strings (up to n = 20), how far it is in each degree from its target and from the min-degree interpolator.
        /// Where `track.every` is not 0, all that is followed through training.
        #[serde(default, skip_serializing_if = "is_default")]
        pub profile: bool,
        /// Standard deviations of weight noise, joined by `+` as in `0.01+0.1`, under each of which the sensitivity of so many neighbours of the
        /// network is measured (Theorem 6's step, Eq. 70); `none`.
        #[serde(default = "none", skip_serializing_if = "is_none")]
        pub volume: String,
        /// Neighbours for each of them.
        #[serde(default = "volume_draws", skip_serializing_if = "is_volume_draws")]
        pub volume_draws: usize,
    }
}

documented! {
    /// Measuring during training, on one fixed batch.
    pub struct TrackConfig {
        /// Steps between two measurements; 0: no tracking.
        pub every: u64,
        /// Noise draws for sharpness.
        pub draws: usize,
        /// The training has converged at the first tracked step whose loss is below this; curves are aligned there.
        pub converged_below: f64,
    }
}

/// Every default, in one place: the common settings of Hahn & Rofin (2024), Table 1 and their released code.
impl Default for RunConfig {
    fn default() -> Self {
        RunConfig {
            target: "parity".into(), // the function the paper is about
            n: 10,                   // short enough to converge everywhere; every recipe sets its own
            seed: 0,
            model: ModelConfig {
                kind: ModelKind::Encoder,
                d: 128,               // Table 1
                layers: 2,            // Table 1
                heads: 2,             // Table 1
                ff: 0,                // the code's feed-forward is as wide as d, not 4d
                embed: Embed::Concat, // the code concatenates (the paper's text adds)
                same_init: true,      // PyTorch deep-copies one layer into the stack
                start: random_start(),
                init_scale: one(),
                norm: Normalisation::Post, // the paper's, as all below
                position: Position::Learned,
                positions: 0,
                attention: Span::Full,
                read: Read::Last,
                activation: relu(),
                eigenvalues: Eigenvalues::Positive, // as in Mamba
            },
            train: TrainConfig {
                lr: 3e-4,          // Table 1
                weight_decay: 0.1, // Table 1
                beta1: 0.9,        // PyTorch's AdamW
                beta2: 0.999,      // PyTorch's AdamW
                eps: 1e-8,         // PyTorch's AdamW
                batch: 1024,       // Table 1
                steps: 10_000,     // Table 1
                set_size: 0,       // fresh uniform strings
                set_seed: 0,
                unseen: none(), // only hahn/degree-bias leaves strings out by a rule
                lengths: own_length(),
            },
            eval: EvalConfig {
                batches: 1000,         // the code's; about a million strings
                converged_below: 1e-3, // Section 7.1: other runs are discarded
                lengths: own_length(),
            },
            measure: MeasureConfig {
                rho: 0.02,                 // Table 1
                draws: 10,                 // the code's
                batches: 1000,             // the code's
                plus_minus_one: true,      // the paper reports on the {-1, +1} scale of its theory
                sensitivity_samples: 4096, // only used above n = 20; standard error about 1 % for PARITY-like functions
                set_size: 0,               // only the generalisation recipe asks for it
                set_seed: 0,
                set_draws: 100, // the code's
                cut: CutAt::Half,
                profile: false,
                volume: none(),
                volume_draws: volume_draws(),
            },
            track: TrackConfig {
                every: 0,              // only the dynamics recipes track
                draws: 500,            // the code's
                converged_below: 1e-2, // Figs 3 and 12 are aligned at the first loss below 0.01
            },
        }
    }
}

choices!(ModelKind: "encoder", "encoder-decoder", "mlp", "lstm", "gru", "ssm");
choices!(Embed: "concat", "add");
choices!(CutAt: "half", "zero", "median");
choices!(Normalisation: "post", "pre", "none", "rms");
choices!(Position: "learned", "sinusoidal", "rotary", "none");
choices!(Span: "full", "causal");
choices!(Read: "last", "mean");
choices!(Nonlinearity: "relu", "gelu");
choices!(Eigenvalues: "positive", "signed");

impl Configuration for RunConfig {
    fn resolve(settings: &Settings) -> Result<Self> {
        settings.check_choice("model.kind", ModelKind::CHOICES)?;
        settings.check_choice("model.embed", Embed::CHOICES)?;
        settings.check_choice("measure.cut", CutAt::CHOICES)?;
        settings.check_choice("model.norm", Normalisation::CHOICES)?;
        settings.check_choice("model.position", Position::CHOICES)?;
        settings.check_choice("model.attention", Span::CHOICES)?;
        settings.check_choice("model.read", Read::CHOICES)?;
        settings.check_choice("model.activation", Nonlinearity::CHOICES)?;
        settings.check_choice("model.eigenvalues", Eigenvalues::CHOICES)?;
        let mut config: RunConfig = settings.read()?;
        config.model.ff = config.ff();
        config.target = TargetName::parse(&config.target)?.written()?;
        config.train.unseen = config.unseen_written()?;
        config.validate()?;
        Ok(config)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::of(self);
        // Left out of the JSON when they are at their defaults, but settings all the same.
        let model = &self.model;
        let left_out: [(&str, Value); 9] = [
            ("start", model.start.as_str().into()),
            ("init_scale", model.init_scale.into()),
            ("norm", json!(model.norm)),
            ("position", json!(model.position)),
            ("positions", model.positions.into()),
            ("attention", json!(model.attention)),
            ("read", json!(model.read)),
            ("activation", json!(model.activation)),
            ("eigenvalues", json!(model.eigenvalues)),
        ];
        for (name, value) in left_out {
            settings.or_insert("model", name, value);
        }
        settings.or_insert("train", "unseen", self.train.unseen.as_str());
        settings.or_insert("measure", "cut", "half");
        settings.or_insert("measure", "profile", self.measure.profile);
        settings.or_insert("measure", "volume", self.measure.volume.as_str());
        settings.or_insert("measure", "volume_draws", self.measure.volume_draws);
        settings.or_insert("train", "lengths", self.train.lengths.as_str());
        settings.or_insert("eval", "lengths", self.eval.lengths.as_str());
        settings
    }
}

impl RunConfig {
    /// The feed-forward width, with 0 resolved; 0 for networks that have no such block.
    pub fn ff(&self) -> usize {
        if self.model.ff == 0 && self.model.kind.has("ff") { self.model.d } else { self.model.ff }
    }

    /// Rows of the table of learned positions, with 0 resolved.
    pub fn positions(&self) -> usize {
        if self.model.positions == 0 { self.n } else { self.model.positions }
    }
}
