//! Initial weights: PyTorch's default distributions, drawn from named streams.

use pudica_data::Stream;

use crate::Weights;

/// The distribution a parameter starts from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Init {
    /// Biases of attention, LayerNorm biases.
    Zeros,
    /// LayerNorm weights.
    Ones,
    /// This value, everywhere.
    Constant(f64),
    /// N(0, 1): embeddings.
    Normal,
    /// N(0, std^2) of this standard deviation: everything in RoBERTa and GPT-2.
    Gaussian(f64),
    /// U(-bound, bound).
    Uniform(f64),
}

impl Init {
    /// PyTorch's default for linear layers, weight and bias: kaiming_uniform(a = sqrt 5), that is U(±1/sqrt(fan_in)).
    pub fn linear(fan_in: usize) -> Self {
        Self::Uniform(1.0 / (fan_in as f64).sqrt())
    }

    /// xavier_uniform: U(±sqrt(6 / (fan_in + fan_out))).
    pub fn xavier(fan_out: usize, fan_in: usize) -> Self {
        Self::Uniform((6.0 / (fan_in + fan_out) as f64).sqrt())
    }
}

/// A parameter before it has values.
#[derive(Debug, Clone)]
pub struct ParamSpec {
    /// PyTorch's name.
    pub name: String,
    /// PyTorch's shape.
    pub shape: Vec<usize>,
    /// Where its values come from.
    pub init: Init,
    /// The name whose stream the values come from: its own, or that of the parameter it starts as a copy of.
    pub drawn_as: String,
}

impl ParamSpec {
    /// A parameter with a stream of its own.
    pub fn new(name: impl Into<String>, shape: &[usize], init: Init) -> Self {
        let name = name.into();
        Self { drawn_as: name.clone(), name, shape: shape.to_vec(), init }
    }
}

/// Weights of these names and shapes, all zero.
pub(crate) fn empty(params: &[ParamSpec]) -> Weights {
    Weights::zeros(params.iter().map(|b| (b.name.as_str(), b.shape.as_slice())))
}

/// The weights a run of this seed starts from. Every parameter has its own stream, so its values depend on the seed, its name and
/// its shape alone, not on what else the network has.
pub(crate) fn draw(params: &[ParamSpec], seed: u64) -> Weights {
    let mut weights = empty(params);
    let ranges: Vec<_> = weights.layout().iter().map(|parameter| parameter.range.clone()).collect();
    for (spec, range) in params.iter().zip(ranges) {
        let mut stream = Stream::new(seed, &format!("init:{}", spec.drawn_as), 0);
        for value in &mut weights.data_mut()[range] {
            *value = match spec.init {
                Init::Zeros => 0.0,
                Init::Ones => 1.0,
                Init::Constant(value) => value as f32,
                Init::Normal => stream.normal_f32(),
                Init::Gaussian(std) => (stream.normal() * std) as f32,
                Init::Uniform(bound) => stream.uniform_f32(-bound, bound),
            };
        }
    }
    weights
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_distributions_asked_for() {
        let params = [
            ParamSpec::new("normal", &[100, 200], Init::Normal),
            ParamSpec::new("linear", &[100, 64], Init::linear(64)),
            ParamSpec::new("xavier", &[192, 64], Init::xavier(192, 64)),
            ParamSpec::new("ones", &[5], Init::Ones),
        ];
        let weights = draw(&params, 1);
        let moments = |name: &str| {
            let (_, values) = weights.get(name).unwrap();
            let count = values.len() as f64;
            let mean = values.iter().map(|v| f64::from(*v)).sum::<f64>() / count;
            let square = values.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / count;
            let largest = values.iter().fold(0.0f64, |m, v| m.max(f64::from(v.abs())));
            (mean, square, largest)
        };
        let (mean, square, _) = moments("normal");
        assert!(mean.abs() < 0.03 && (square - 1.0).abs() < 0.05);
        for (name, bound) in [("linear", 0.125), ("xavier", (6.0f64 / 256.0).sqrt())] {
            let (mean, square, largest) = moments(name);
            assert!(largest <= bound && largest > 0.99 * bound, "{name}");
            assert!(mean.abs() < 0.05 * bound && (square / (bound * bound / 3.0) - 1.0).abs() < 0.05, "{name}");
        }
        assert_eq!(weights.get("ones").unwrap().1, [1.0; 5]);
        assert_ne!(draw(&params, 2), weights);
    }
}
