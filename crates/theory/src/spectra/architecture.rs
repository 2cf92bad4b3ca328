//! Which network, on how many bits, cut into which tokens.

use pudica_boolean::did_you_mean;
use serde::{Deserialize, Serialize};

use super::activation::Activation;
use crate::{Result, TheoryError};

/// The largest dimension of the cube for kernels that depend on <x, y> alone.
pub const LARGEST_DIMENSION: usize = 512;
/// The deepest network.
pub const LARGEST_DEPTH: usize = 256;

/// The family of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// Dense layers on all bits at once.
    Mlp,
    /// Attention whose scores are used as they are (Hron et al. 2020), each layer followed by a dense layer at every token.
    LinearAttention,
    /// The same with softmax on the scores.
    SoftmaxAttention,
    /// Long short-term memory, reading one token after the other.
    Lstm,
}

/// How a transformer's tokens become one output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Readout {
    /// A weight for every feature of every token.
    Flatten,
    /// The same weights for every token: the mean over tokens is read.
    Mean,
}

/// A network on the cube {-1, 1}^d, d = tokens x token_width. Every dense layer, the readout included, computes
/// `sqrt(weight_variance / fan_in) W z + sqrt(bias_variance) b` with standard normal W and b; attention's four matrices have weight
/// variance 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Architecture {
    /// The name it was asked for by, such as `relu` or `linear-attention`.
    pub name: String,
    /// Its family.
    pub family: Family,
    /// Hidden layers of an MLP, attention layers of a transformer, stacked layers of an LSTM.
    pub depth: usize,
    /// The nonlinearity of dense layers. Not used by the LSTM.
    pub activation: Activation,
    /// Variance of the weights times their number of inputs.
    pub weight_variance: f64,
    /// Variance of the biases.
    pub bias_variance: f64,
    /// Tokens the bits are cut into; 1 for an MLP.
    pub tokens: usize,
    /// Bits in a token; all of them for an MLP.
    pub token_width: usize,
    /// How a transformer's tokens are read. Not used by the others.
    pub readout: Readout,
}

/// The names, what each means, its family, its nonlinearity and its weight variance unless told otherwise.
const NAMES: [(&str, Family, Activation, f64); 5] = [
    ("relu", Family::Mlp, Activation::Relu, 2.0),
    ("erf", Family::Mlp, Activation::Erf, 2.0),
    ("linear-attention", Family::LinearAttention, Activation::Relu, 2.0),
    ("softmax-attention", Family::SoftmaxAttention, Activation::Relu, 2.0),
    ("lstm", Family::Lstm, Activation::Identity, 1.0),
];

/// Other words for the same.
const ALIASES: [(&str, &str); 7] = [
    ("mlp", "relu"),
    ("mlp-relu", "relu"),
    ("relu-mlp", "relu"),
    ("mlp-erf", "erf"),
    ("erf-mlp", "erf"),
    ("attention", "linear-attention"),
    ("transformer", "linear-attention"),
];

impl Architecture {
    /// The names [`Architecture::named`] knows.
    pub fn names() -> [&'static str; NAMES.len()] {
        NAMES.map(|(name, ..)| name)
    }

    /// The network of this name on `dimension` bits, one layer deep, with its usual variances, and with tokens as near to square as
    /// the dimension allows (at least as many as each has bits).
    pub fn named(name: &str, dimension: usize) -> Result<Architecture> {
        let wanted = name.to_ascii_lowercase().replace('_', "-");
        let wanted = ALIASES.iter().find(|(alias, _)| *alias == wanted).map_or(wanted.as_str(), |(_, name)| name);
        let Some((name, family, activation, weight_variance)) =
            NAMES.iter().find(|(known, ..)| *known == wanted).copied()
        else {
            let names = Self::names();
            let (hint, known) = (did_you_mean(wanted, names), names.join(", "));
            return Err(TheoryError::argument(format!("unknown architecture '{name}'{hint} (there are {known})")));
        };
        if !(1..=LARGEST_DIMENSION).contains(&dimension) {
            return Err(TheoryError::argument(format!(
                "--dim {dimension}: the cube can have 1 to {LARGEST_DIMENSION} dimensions"
            )));
        }
        let tokens = match family {
            Family::Mlp => 1,
            _ => (1..=dimension).find(|t| dimension.is_multiple_of(*t) && t * t >= dimension).unwrap_or(dimension),
        };
        Ok(Architecture {
            name: name.into(),
            family,
            depth: 1,
            activation,
            weight_variance,
            bias_variance: 0.0,
            tokens,
            token_width: dimension / tokens,
            readout: Readout::Flatten,
        })
    }

    /// The number of bits.
    pub fn dimension(&self) -> usize {
        self.tokens * self.token_width
    }

    /// The same with the bits cut into `tokens` tokens.
    pub fn with_tokens(mut self, tokens: usize) -> Result<Architecture> {
        let dimension = self.dimension();
        if self.family == Family::Mlp {
            return Err(TheoryError::argument("an MLP reads all bits at once: leave --tokens out"));
        }
        if tokens == 0 || !dimension.is_multiple_of(tokens) {
            let divisors: Vec<String> =
                (1..=dimension).filter(|t| dimension.is_multiple_of(*t)).map(|t| t.to_string()).collect();
            return Err(TheoryError::argument(format!(
                "--tokens {tokens} does not divide {dimension} bits: choose one of {}",
                divisors.join(", ")
            )));
        }
        self.token_width = dimension / tokens;
        self.tokens = tokens;
        Ok(self)
    }

    /// Refuses numbers that mean nothing.
    pub fn check(&self) -> Result<()> {
        if !(1..=LARGEST_DEPTH).contains(&self.depth) {
            return Err(TheoryError::argument(format!("--depth {}: give 1 to {LARGEST_DEPTH} layers", self.depth)));
        }
        if !(self.weight_variance > 0.0 && self.weight_variance <= 1e6) {
            return Err(TheoryError::argument(format!(
                "--weight-variance {}: give a positive number of at most 1e6",
                self.weight_variance
            )));
        }
        if !(self.bias_variance >= 0.0 && self.bias_variance <= 1e6) {
            return Err(TheoryError::argument(format!(
                "--bias-variance {}: give 0 or a positive number of at most 1e6",
                self.bias_variance
            )));
        }
        Ok(())
    }

    /// Whether its tokens look at each other through attention.
    pub fn has_attention(&self) -> bool {
        matches!(self.family, Family::LinearAttention | Family::SoftmaxAttention)
    }

    /// Whether its infinitely wide limit has a closed form here.
    pub fn has_closed_form(&self) -> bool {
        matches!(self.family, Family::Mlp | Family::LinearAttention)
    }
}

/// Which kernel of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kernel {
    /// The conjugate kernel: only the readout is trained; also the covariance of the network's outputs at its start.
    Ck,
    /// The neural tangent kernel: everything is trained.
    Ntk,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_aliases_and_mistakes() {
        assert_eq!(Architecture::named("MLP", 8).unwrap().name, "relu");
        assert_eq!(Architecture::named("linear_attention", 8).unwrap().family, Family::LinearAttention);
        let refusal = |name: &str, dimension| Architecture::named(name, dimension).unwrap_err().to_string();
        assert!(refusal("lstn", 8).contains("did you mean 'lstm'?"), "{}", refusal("lstn", 8));
        assert!(refusal("relu", 0).contains("1 to 512") && refusal("relu", 513).contains("1 to 512"));
    }

    #[test]
    fn tokens_are_near_square_and_divide_the_bits() {
        let tokens = |dimension| {
            let network = Architecture::named("linear-attention", dimension).unwrap();
            (network.tokens, network.token_width)
        };
        assert_eq!([tokens(10), tokens(12), tokens(16), tokens(7)], [(5, 2), (4, 3), (4, 4), (7, 1)]);
        let network = Architecture::named("linear-attention", 12).unwrap();
        assert!(network.clone().with_tokens(5).unwrap_err().to_string().contains("1, 2, 3, 4, 6, 12"));
        assert_eq!(network.with_tokens(6).unwrap().token_width, 2);
        assert!(Architecture::named("relu", 12).unwrap().with_tokens(3).is_err());
    }

    #[test]
    fn senseless_numbers_are_refused() {
        let network = Architecture::named("relu", 8).unwrap();
        assert!(network.check().is_ok());
        assert!(Architecture { depth: 0, ..network.clone() }.check().is_err());
        assert!(Architecture { weight_variance: f64::NAN, ..network.clone() }.check().is_err());
        assert!(Architecture { bias_variance: -1.0, ..network }.check().is_err());
    }
}
