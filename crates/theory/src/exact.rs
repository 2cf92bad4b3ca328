//! The encoder once more, in f64 and plain loops, with what it computes on the way laid open. Bounds are checked on this one;
//! that it is the same function as [`pudica_nn::Network`] is a test below.

use pudica_data::Bits;
use pudica_nn::{Architecture, Embed, EncoderConfig, LAYER_NORM_EPS, Weights};
use rayon::prelude::*;

use crate::Result;

/// An encoder with its weights, computing in f64.
#[derive(Debug, Clone)]
pub struct ExactEncoder {
    config: EncoderConfig,
    /// The embedding of each bit at each position, row-major [n, 2, d].
    embedded: Vec<f64>,
    /// The layers, first to last.
    pub(crate) layers: Vec<Layer>,
    /// On the last position, [d].
    pub(crate) head: Vec<f64>,
    head_bias: f64,
}

/// y = x W^T + b.
#[derive(Debug, Clone)]
pub(crate) struct Linear {
    /// Row-major [out, in].
    pub weight: Vec<f64>,
    /// [out]
    pub bias: Vec<f64>,
}

/// The affine part of a LayerNorm.
#[derive(Debug, Clone)]
pub(crate) struct Norm {
    pub gain: Vec<f64>,
    pub shift: Vec<f64>,
}

/// One post-norm encoder layer.
#[derive(Debug, Clone)]
pub(crate) struct Layer {
    pub query: Linear,
    pub key: Linear,
    pub value: Linear,
    pub out: Linear,
    pub norm1: Norm,
    pub linear1: Linear,
    pub linear2: Linear,
    pub norm2: Norm,
}

/// One LayerNorm's work on one string.
#[derive(Debug, Clone)]
pub struct NormTrace {
    /// What it was given, row-major [positions, d]: all positions, or in the last layer only the last.
    pub inputs: Vec<f64>,
    /// (input - mean) / sqrt(variance + eps), before gain and shift; the same shape.
    pub normalised: Vec<f64>,
    /// N = 1 / sqrt(variance + eps) at each position.
    pub factors: Vec<f64>,
}

/// What an encoder computes on one string.
#[derive(Debug, Clone)]
pub struct Trace {
    /// The prediction.
    pub output: f64,
    /// Every LayerNorm in the order of application: norm1 and norm2 of each layer.
    pub norms: Vec<NormTrace>,
}

impl Trace {
    /// ln Blowup(x): the sum over LayerNorms of ln(1 + the largest N over positions).
    pub fn ln_blowup(&self) -> f64 {
        let largest = |norm: &NormTrace| norm.factors.iter().copied().fold(0.0, f64::max);
        self.norms.iter().map(|norm| largest(norm).ln_1p()).sum()
    }
}

impl ExactEncoder {
    /// The encoder of this shape with these weights.
    pub fn new(config: &EncoderConfig, weights: &Weights) -> Result<Self> {
        Architecture::Encoder(config.clone()).empty_weights()?.check_same_layout(weights)?;
        let get = |name: &str| -> Vec<f64> {
            weights.get(name).map_or(Vec::new(), |(_, values)| values.iter().copied().map(f64::from).collect())
        };
        let linear = |name: &str| Linear { weight: get(&format!("{name}.weight")), bias: get(&format!("{name}.bias")) };
        let norm = |name: &str| Norm { gain: get(&format!("{name}.weight")), shift: get(&format!("{name}.bias")) };
        let layer = |index: usize| {
            let name = format!("enc.layers.{index}");
            let (weight, bias) =
                (get(&format!("{name}.self_attn.in_proj_weight")), get(&format!("{name}.self_attn.in_proj_bias")));
            let d = config.d;
            let part = |i: usize| Linear {
                weight: weight[i * d * d..(i + 1) * d * d].to_vec(),
                bias: bias[i * d..(i + 1) * d].to_vec(),
            };
            Layer {
                query: part(0),
                key: part(1),
                value: part(2),
                out: linear(&format!("{name}.self_attn.out_proj")),
                norm1: norm(&format!("{name}.norm1")),
                linear1: linear(&format!("{name}.linear1")),
                linear2: linear(&format!("{name}.linear2")),
                norm2: norm(&format!("{name}.norm2")),
            }
        };
        let head = linear("head");
        Ok(Self {
            config: config.clone(),
            embedded: embed(config, &get("tok.weight"), &get("pos.weight")),
            layers: (0..config.layers).map(layer).collect(),
            head: head.weight,
            head_bias: head.bias[0],
        })
    }

    /// Its shape.
    pub fn config(&self) -> &EncoderConfig {
        &self.config
    }

    /// The embedding of `bit` at `position` (from 0): d numbers.
    pub fn embedded(&self, position: usize, bit: u8) -> &[f64] {
        let row = 2 * position + usize::from(bit);
        &self.embedded[row * self.config.d..(row + 1) * self.config.d]
    }

    /// What it computes on one string of n bits.
    pub fn trace(&self, string: &[u8]) -> Trace {
        let depth = self.layers.len();
        let mut x: Vec<f64> = string.iter().enumerate().flat_map(|(i, bit)| self.embedded(i, *bit).to_vec()).collect();
        let mut norms = Vec::with_capacity(2 * depth);
        for (index, layer) in self.layers.iter().enumerate() {
            x = layer.forward(x, index + 1 == depth, self.config.heads, &mut norms);
        }
        Trace { output: self.head_bias + dot(&self.head, &x), norms }
    }

    /// [`ExactEncoder::trace`] of every string, on all cores, each reduced to what `keep` keeps of it.
    pub fn traces<T: Send>(&self, strings: &Bits, keep: impl Fn(Trace) -> T + Sync) -> Vec<T> {
        let rows: Vec<&[u8]> = strings.iter().collect();
        rows.into_par_iter().map(|string| keep(self.trace(string))).collect()
    }

    /// The predictions.
    pub fn outputs(&self, strings: &Bits) -> Vec<f64> {
        self.traces(strings, |trace| trace.output)
    }

    /// The first layer's queries and keys of both bits at every position.
    pub fn first_layer(&self) -> FirstLayer {
        let rows = |linear: &Linear| self.embedded.chunks_exact(self.config.d).map(|row| linear.apply(row)).collect();
        let layer = &self.layers[0];
        FirstLayer { queries: rows(&layer.query), keys: rows(&layer.key), width: self.config.d / self.config.heads }
    }
}

/// What the first layer's attention can see: there are only 2n different tokens.
pub struct FirstLayer {
    /// `[2n][d]`: row `2 * position + bit`.
    queries: Vec<Vec<f64>>,
    keys: Vec<Vec<f64>>,
    /// Of a head.
    width: usize,
}

impl FirstLayer {
    /// The scores of `head` from `position`, holding `bit`, to every position holding 0 or 1: `[n][2]`.
    pub fn scores(&self, head: usize, position: usize, bit: u8) -> Vec<[f64; 2]> {
        let own = head * self.width..(head + 1) * self.width;
        let query = &self.queries[2 * position + usize::from(bit)][own.clone()];
        let score = |key: &Vec<f64>| dot(query, &key[own.clone()]) / (self.width as f64).sqrt();
        self.keys.chunks_exact(2).map(|keys| [score(&keys[0]), score(&keys[1])]).collect()
    }
}

/// Token and position table become one: [n, 2, d].
fn embed(config: &EncoderConfig, token: &[f64], position: &[f64]) -> Vec<f64> {
    let width = token.len() / 2;
    let mut embedded = Vec::with_capacity(config.n * 2 * config.d);
    for position in position.chunks_exact(width) {
        for token in token.chunks_exact(width) {
            match config.embed {
                Embed::Concat => embedded.extend(token.iter().chain(position)),
                Embed::Add => embedded.extend(token.iter().zip(position).map(|(t, p)| t + p)),
            }
        }
    }
    embedded
}

impl Layer {
    /// x [n, d] -> [n, d], or only the last position [1, d].
    fn forward(&self, x: Vec<f64>, only_last: bool, heads: usize, norms: &mut Vec<NormTrace>) -> Vec<f64> {
        let d = self.out.bias.len();
        let rows =
            |x: &[f64], linear: &Linear| -> Vec<f64> { x.chunks_exact(d).flat_map(|row| linear.apply(row)).collect() };
        let (keys, values) = (rows(&x, &self.key), rows(&x, &self.value));
        let x = if only_last { x[x.len() - d..].to_vec() } else { x };
        let mut sum = Vec::with_capacity(x.len());
        for row in x.chunks_exact(d) {
            let mixed = self.out.apply(&attend(&self.query.apply(row), &keys, &values, heads));
            sum.extend(row.iter().zip(&mixed).map(|(x, y)| x + y));
        }
        let x = self.norm1.forward(sum, norms);
        let mut sum = Vec::with_capacity(x.len());
        for row in x.chunks_exact(d) {
            let mut hidden = self.linear1.apply(row);
            hidden.iter_mut().for_each(|value| *value = value.max(0.0));
            sum.extend(row.iter().zip(self.linear2.apply(&hidden)).map(|(x, y)| x + y));
        }
        self.norm2.forward(sum, norms)
    }
}

/// One query [d] on keys and values [n, d]: each head's mixture of its values, side by side [d].
fn attend(query: &[f64], keys: &[f64], values: &[f64], heads: usize) -> Vec<f64> {
    let d = query.len();
    let width = d / heads;
    let mut mixed = vec![0.0; d];
    for head in 0..heads {
        let own = head * width..(head + 1) * width;
        let scale = 1.0 / (width as f64).sqrt();
        let mut weights: Vec<f64> =
            keys.chunks_exact(d).map(|key| dot(&query[own.clone()], &key[own.clone()]) * scale).collect();
        softmax(&mut weights);
        for (weight, value) in weights.iter().zip(values.chunks_exact(d)) {
            mixed[own.clone()].iter_mut().zip(&value[own.clone()]).for_each(|(sum, value)| *sum += weight * value);
        }
    }
    mixed
}

/// Scores become weights that sum to 1.
pub(crate) fn softmax(scores: &mut [f64]) {
    let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter_mut().for_each(|score| *score = (*score - largest).exp());
    let total: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|weight| *weight /= total);
}

impl Linear {
    /// x [in] -> [out]
    pub(crate) fn apply(&self, x: &[f64]) -> Vec<f64> {
        self.weight.chunks_exact(x.len()).zip(&self.bias).map(|(row, bias)| bias + dot(row, x)).collect()
    }
}

impl Norm {
    /// x [positions, d] -> [positions, d], noting what was done.
    fn forward(&self, inputs: Vec<f64>, norms: &mut Vec<NormTrace>) -> Vec<f64> {
        let d = self.gain.len();
        let (mut normalised, mut factors) = (Vec::with_capacity(inputs.len()), Vec::new());
        for row in inputs.chunks_exact(d) {
            let mean = row.iter().sum::<f64>() / d as f64;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / d as f64;
            let factor = 1.0 / (variance + LAYER_NORM_EPS).sqrt();
            normalised.extend(row.iter().map(|x| (x - mean) * factor));
            factors.push(factor);
        }
        let affine = |row: &[f64]| -> Vec<f64> {
            row.iter().zip(&self.gain).zip(&self.shift).map(|((x, gain), shift)| x * gain + shift).collect()
        };
        let outputs = normalised.chunks_exact(d).flat_map(affine).collect();
        norms.push(NormTrace { inputs, normalised, factors });
        outputs
    }
}

/// The inner product, in eight sums so that it runs in vector registers.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (a8, b8) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a8.remainder().iter().zip(b8.remainder()).map(|(x, y)| x * y).sum();
    for (a, b) in a8.zip(b8) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// The Euclidean norm.
pub(crate) fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

#[cfg(test)]
mod tests {
    use pudica_nn::{Device, Network};

    use super::*;

    /// An encoder whose LayerNorms and biases are not trivial.
    fn rough(config: &EncoderConfig) -> Weights {
        let mut weights = Architecture::Encoder(config.clone()).initial_weights(5).unwrap();
        let mut stream = pudica_data::Stream::new(0, "rough", 0);
        weights.data_mut().iter_mut().for_each(|weight| *weight += 0.2 * stream.normal_f32());
        weights
    }

    #[test]
    fn it_is_the_function_pudica_nn_computes() {
        let base = EncoderConfig { d: 12, ff: 10, heads: 3, layers: 2, ..EncoderConfig::paper(5) };
        for config in [base.clone(), EncoderConfig { embed: Embed::Add, layers: 1, heads: 1, ..base.clone() }] {
            let weights = rough(&config);
            let exact = ExactEncoder::new(&config, &weights).unwrap();
            let cube = Bits::cube(5).unwrap();
            let network = Network::new(&Architecture::Encoder(config), weights, &Device::cpu().double()).unwrap();
            let expected = network.predict_f64(&cube).unwrap();
            for (found, expected) in exact.outputs(&cube).iter().zip(&expected) {
                assert!((found - expected).abs() < 1e-10, "{found} {expected}");
            }
            let (_, norms) = network.predict_with_norms(&cube).unwrap();
            let trace = exact.trace(cube.row(19));
            assert_eq!(trace.norms.len(), norms.len());
            for (found, expected) in trace.norms.iter().zip(&norms) {
                let expected = &expected.theory[19 * expected.positions..20 * expected.positions];
                assert_eq!(found.factors.len(), expected.len());
                assert!(found.factors.iter().zip(expected).all(|(a, b)| (a / f64::from(*b) - 1.0).abs() < 1e-6));
            }
        }
    }

    #[test]
    fn the_inner_product_is_the_plain_sum() {
        for length in [0, 1, 7, 8, 9, 31] {
            let x: Vec<f64> = (0..length).map(f64::from).collect();
            assert_eq!(dot(&x, &x), x.iter().map(|x| x * x).sum::<f64>());
        }
    }
}
