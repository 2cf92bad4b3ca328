//! The parameters of a network: each declared, initialised and named once, by the layer that has it.
//!
//! Initial values are from PyTorch's default distributions, drawn from named streams.

use std::fmt::Display;

use pudica_data::Stream;

use crate::{NnError, Weights};

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
    /// N(0, std^2) of this standard deviation, rounded once: everything in RoBERTa and GPT-2.
    Gaussian(f64),
    /// N(0, 1) in f32 times this factor: everything in the network of modular arithmetic.
    ScaledNormal(f32),
    /// U(-bound, bound).
    Uniform(f64),
    /// The logistic distribution: its sigmoid is uniform in (0, 1).
    Logistic,
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
pub(crate) struct ParamSpec {
    /// PyTorch's name.
    pub(crate) name: String,
    /// PyTorch's shape.
    pub(crate) shape: Vec<usize>,
    /// Where its values come from.
    pub(crate) init: Init,
    /// The name whose stream the values come from: its own, or that of the parameter it starts as a copy of.
    pub(crate) drawn_as: String,
}

/// A parameter as the layer that has it knows it: where its tensor is found, and its shape. [`Parameters::get`](crate::Parameters::get)
/// gives the tensor.
#[derive(Debug, Clone, Copy)]
pub struct Param<const D: usize> {
    pub(crate) leaf: usize,
    pub(crate) shape: [usize; D],
}

/// A buffer as the layer that has it knows it: a vector that training moves without a gradient, such as a running mean.
#[derive(Debug, Clone, Copy)]
pub struct Buffer {
    pub(crate) index: usize,
}

/// The parameters and buffers of a network in the order of PyTorch's `state_dict()`. Building the network's layers fills it: a parameter is
/// declared, initialised and named in one place, and used by the [`Param`] that declaring it returned.
#[derive(Debug, Default)]
pub struct ParamList {
    parameters: Vec<ParamSpec>,
    /// The length of each tensor that a gradient is taken with respect to: one for each parameter, or for each of its parts.
    leaves: Vec<usize>,
    buffers: Vec<ParamSpec>,
}

/// A place in a [`ParamList`]: what is declared here has this prefix in its name.
#[derive(Debug)]
pub struct Scope<'a> {
    list: &'a mut ParamList,
    prefix: String,
}

impl ParamList {
    /// The list that `build` fills, and what it returns.
    pub fn of<T>(build: impl FnOnce(Scope) -> T) -> (T, Self) {
        let mut list = Self::default();
        let built = build(Scope { list: &mut list, prefix: String::new() });
        (built, list)
    }

    /// Names and shapes of the parameters, all zero.
    pub(crate) fn empty(&self) -> Weights {
        empty(&self.parameters)
    }

    /// The weights in the bytes of a safetensors file, which must be those of the network.
    pub(crate) fn read(&self, bytes: &[u8]) -> Result<Weights, NnError> {
        self.check_fits(bytes)?;
        self.empty().from_bytes(bytes)
    }

    /// Refuses a network that a file is too short for, before memory is asked for: what describes it may be damaged, too.
    pub(crate) fn check_fits(&self, bytes: &[u8]) -> Result<(), NnError> {
        let count =
            |(_, shape): (&str, &[usize])| shape.iter().fold(1, |count: u64, size| count.saturating_mul(*size as u64));
        let count = self.shapes().map(count).fold(0, u64::saturating_add);
        match count.saturating_mul(4) > bytes.len() as u64 {
            true => Err(NnError::Stored(format!(
                "{} bytes are too few for the {count} numbers of this network",
                bytes.len()
            ))),
            false => Ok(()),
        }
    }

    /// Names and shapes of the parameters, then of the buffers.
    pub fn shapes(&self) -> impl Iterator<Item = (&str, &[usize])> {
        names_and_shapes(&self.parameters).chain(names_and_shapes(&self.buffers))
    }

    /// Whether these weights are of the network's parameters.
    pub(crate) fn check(&self, weights: &Weights) -> Result<(), NnError> {
        weights.check_layout(names_and_shapes(&self.parameters))
    }

    /// The weights a run of this seed starts from. Every parameter has its own stream, so its values depend on the seed, its name and
    /// its shape alone, not on what else the network has.
    pub(crate) fn draw(&self, seed: u64) -> Weights {
        draw(&self.parameters, seed)
    }

    /// The buffers as they are before training.
    pub(crate) fn initial_buffers(&self) -> Weights {
        draw(&self.buffers, 0)
    }

    /// The length of each tensor that a gradient is taken with respect to, in the order of [`Weights::data`].
    pub(crate) fn leaves(&self) -> &[usize] {
        &self.leaves
    }
}

impl Scope<'_> {
    /// The place of this name below.
    pub fn at(&mut self, name: impl Display) -> Scope<'_> {
        Scope { prefix: format!("{}{name}.", self.prefix), list: self.list }
    }

    /// The name of this place.
    pub fn name(&self) -> &str {
        self.prefix.strip_suffix('.').unwrap_or(&self.prefix)
    }

    /// Declares a parameter.
    pub fn add<const D: usize>(&mut self, name: impl Display, shape: [usize; D], init: Init) -> Param<D> {
        let [whole] = self.add_parts(name, shape, init);
        whole
    }

    /// Declares a parameter that layers use in `N` parts, each so many of its rows: the parts lie one after the other, so the order of values
    /// is that of the whole.
    pub fn add_parts<const N: usize, const D: usize>(
        &mut self,
        name: impl Display,
        shape: [usize; D],
        init: Init,
    ) -> [Param<D>; N] {
        let mut part = shape;
        if let Some(rows) = part.first_mut() {
            *rows /= N;
        }
        let ParamList { parameters, leaves, .. } = &mut *self.list;
        parameters.push(ParamSpec::new(format!("{}{name}", self.prefix), &shape, init));
        [(); N].map(|()| {
            leaves.push(part.iter().fold(1, |count: usize, size| count.saturating_mul(*size)));
            Param { leaf: leaves.len() - 1, shape: part }
        })
    }

    /// Declares a buffer.
    pub fn add_buffer(&mut self, name: impl Display, length: usize, init: Init) -> Buffer {
        let buffers = &mut self.list.buffers;
        buffers.push(ParamSpec::new(format!("{}{name}", self.prefix), &[length], init));
        Buffer { index: buffers.len() - 1 }
    }

    /// How many parameters have been declared in the whole list.
    pub(crate) fn count(&self) -> usize {
        self.list.parameters.len()
    }

    /// The parameters from this one on, to change how they start.
    pub(crate) fn since(&mut self, count: usize) -> &mut [ParamSpec] {
        &mut self.list.parameters[count..]
    }
}

impl ParamSpec {
    /// A parameter with a stream of its own.
    fn new(name: String, shape: &[usize], init: Init) -> Self {
        Self { drawn_as: name.clone(), name, shape: shape.to_vec(), init }
    }
}

fn names_and_shapes(params: &[ParamSpec]) -> impl ExactSizeIterator<Item = (&str, &[usize])> {
    params.iter().map(|spec| (spec.name.as_str(), spec.shape.as_slice()))
}

fn empty(params: &[ParamSpec]) -> Weights {
    Weights::zeros(names_and_shapes(params))
}

fn draw(params: &[ParamSpec], seed: u64) -> Weights {
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
                Init::ScaledNormal(factor) => stream.normal_f32() * factor,
                Init::Uniform(bound) => stream.uniform_f32(-bound, bound),
                Init::Logistic => {
                    // Not 0 and not 1, whose logarithms are infinite.
                    let uniform = stream.uniform().clamp(1e-6, 1.0 - 1e-6);
                    (uniform / (1.0 - uniform)).ln() as f32
                }
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
        let ((), list) = ParamList::of(|mut params| {
            params.add("normal", [100, 200], Init::Normal);
            params.add("linear", [100, 64], Init::linear(64));
            params.add("xavier", [192, 64], Init::xavier(192, 64));
            params.add("ones", [5], Init::Ones);
        });
        let weights = list.draw(1);
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
        assert_ne!(list.draw(2), weights);
    }

    #[test]
    fn a_short_file_makes_no_large_network() {
        for shape in [[1 << 20, 1 << 20], [usize::MAX, usize::MAX]] {
            let ((), list) = ParamList::of(|mut params| _ = params.add("weight", shape, Init::Zeros));
            let refusal = list.read(&[0; 100]).unwrap_err().to_string();
            assert!(refusal.contains("100 bytes are too few"), "{refusal}");
        }
    }

    #[test]
    fn names_are_joined_and_parts_lie_one_after_the_other() {
        let ((query, bias, mean), list) = ParamList::of(|mut params| {
            let mut layer = params.at("layers.3");
            let [_, query, _] = layer.add_parts("in_proj_weight", [6, 4], Init::Zeros);
            (query, layer.at("out").add("bias", [4], Init::Ones), params.at("norm").add_buffer("mean", 2, Init::Ones))
        });
        let names: Vec<_> = list.empty().layout().iter().map(|parameter| parameter.name.clone()).collect();
        assert_eq!(names, ["layers.3.in_proj_weight", "layers.3.out.bias"]);
        assert_eq!((query.leaf, query.shape, bias.leaf, mean.index), (1, [2, 4], 3, 0));
        assert_eq!(list.leaves(), [8, 8, 8, 4]);
        assert_eq!(list.initial_buffers().get("norm.mean"), Some((&[2][..], &[1.0, 1.0][..])));
    }
}
