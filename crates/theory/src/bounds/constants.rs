//! The constants (22)-(32) of an encoder, in natural logarithms: C is exponential in the key-query norms.
//!
//! The paper's transformer has one LayerNorm a layer, without gain and shift, and no biases; ours is PyTorch's. Read so:
//! - V of a head is (its part of the output projection) (its part of the value projection); biases shift every position equally
//!   and drop out of influences.
//! - sqrt(d), the bound on a normalised vector, becomes R = sqrt(d) max|gain| + |shift|, which is sqrt(d) for gain 1 and shift 0.
//! - f^MLP is x + W2 relu(W1 x + b1) + b2, with Lipschitz constant <= 1 + |W1| |W2|; gains of both LayerNorms multiply it.
//! - The output on the ±1 scale is 2 * prediction - 1, so v_out is twice the head's weight.
//!
//! Every constant is at least 1, as the paper demands.

use serde::Serialize;

use super::spectral::{one_norm, spectral_norm, transposed_product};
use crate::Result;
use crate::exact::{ExactEncoder, Layer, Norm, norm};

/// One factor or constant, as the paper numbers it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Constant {
    /// Its symbol: `C_V`, `C_A(2)`, ...
    pub symbol: String,
    /// The number of its equation.
    pub equation: &'static str,
    /// What it is made of.
    pub formula: String,
    /// Its natural logarithm.
    pub ln: f64,
}

/// All of an encoder's constants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Constants {
    /// Each, in the order they build on each other; the last is C.
    pub list: Vec<Constant>,
    /// ln C.
    pub ln_c: f64,
    /// ln of the bound (31) on |Y^(1)|.
    pub ln_first_norm: f64,
    /// C_P of (24): the largest norm of an embedded token.
    pub embedding: f64,
    /// R of (23) for each layer: the largest norm its output can have.
    pub radii: Vec<f64>,
    /// C_A of (25) for each layer from the second on.
    pub logits: Vec<f64>,
}

impl Constants {
    /// The constants of an encoder.
    pub fn of(encoder: &ExactEncoder) -> Result<Self> {
        let config = encoder.config();
        let (d, heads) = (config.d, config.heads as f64);
        let mut list = Listing::default();

        let mut values = Values { spectral: 0.0, one: 0.0 };
        let mut one_norms = Vec::new();
        for layer in &encoder.layers {
            let own = Values::of(layer, config.heads)?;
            one_norms.push(own.one);
            values.spectral = values.spectral.max(own.spectral);
        }
        let c_v = list.put("C_V", "22", "max over layers and heads of |V|, spectral".into(), values.spectral.ln());

        let radii: Vec<f64> = encoder.layers.iter().map(|layer| radius(&layer.norm2)).collect();
        let radius_formula =
            format!("sqrt(d) max|gain| + |shift|, largest of the layers; sqrt(d) = {:.4}", (d as f64).sqrt());
        let largest_radius = radii.iter().copied().fold(0.0, f64::max);
        list.put("R", "23", radius_formula, largest_radius.ln());

        let tokens = (0..config.n).flat_map(|i| [norm(encoder.embedded(i, 0)), norm(encoder.embedded(i, 1))]);
        let embedding = tokens.fold(0.0, f64::max);
        let c_p = list.put("C_P", "24", "largest |embedding| of the 2n tokens".into(), embedding.ln());

        let mut c_a = Vec::new();
        for (index, layer) in encoder.layers.iter().enumerate().skip(1) {
            let bound = logits(layer, config.heads, radii[index - 1])?;
            let formula = "R^2 max over heads of |K^T Q| + R |K^T b_q|, spectral".to_string();
            list.put(&format!("C_A({})", index + 1), "25", formula, bound.ln());
            c_a.push(bound.max(1.0));
        }

        let mlp = encoder.layers.iter().map(|layer| Mlp::of(layer, d, config.ff)).collect::<Result<Vec<_>>>()?;
        let largest = |get: fn(&Mlp) -> f64| mlp.iter().map(get).fold(0.0, f64::max);
        let reach = (heads + 1.0) * c_v.exp() * c_p.exp().min(largest_radius);
        let c_mlp = mlp.iter().map(|mlp| mlp.plain * reach + mlp.at_zero).fold(0.0, f64::max);
        let formula = format!("(1 + |W1| |W2|) r + |f(0)| on the ball r = (H+1) C_V min(C_P, R) = {reach:.4}");
        let c_mlp = list.put("C_MLP", "26", formula, c_mlp.ln());
        let formula = "gain1 (1 + |W1| |W2|) gain2, largest of the layers".to_string();
        let l_mlp = list.put("L_MLP", "27", formula, largest(|mlp| mlp.lipschitz).ln());

        let ln = f64::ln;
        let mut product =
            list.put("C(0)", "28", "150 L_MLP C_V^2 C_P H".into(), ln(150.0) + l_mlp + 2.0 * c_v + c_p + ln(heads));
        let ln_first_norm = c_mlp + ln(heads + 1.0) + c_v + c_p;
        product += list.put("C(1)", "29", "2 C_MLP (H+1) C_V C_P L_MLP".into(), ln(2.0) + ln_first_norm + l_mlp);
        for (index, c_a) in c_a.iter().enumerate() {
            let layer = index + 2;
            let formula = format!("12 L_MLP (H+1) |V|_1 4 R exp(4 C_A({layer}))");
            let value = one_norms[layer - 1].max(1.0);
            let factor = ln(48.0) + l_mlp + ln(heads + 1.0) + ln(value) + ln(radii[layer - 2]) + 4.0 * c_a;
            product += list.put(&format!("C({layer})"), "30", formula, factor);
        }
        list.put("|Y(1)|", "31", "C_MLP (H+1) C_V C_P".into(), ln_first_norm);
        let last = radii.last().copied().unwrap_or(1.0);
        let v_out = 2.0 * norm(&encoder.head);
        let formula = format!("25 R H (1 + |v_out|) times all C(k); |v_out| = {v_out:.4} on the ±1 scale");
        let ln_c = list.put("C", "32", formula, ln(25.0) + ln(last) + ln(heads) + v_out.ln_1p() + product);
        Ok(Self { list: list.0, ln_c, ln_first_norm, embedding, radii, logits: c_a })
    }
}

#[derive(Default)]
struct Listing(Vec<Constant>);

impl Listing {
    /// Notes a constant, at least 1; returns its logarithm.
    fn put(&mut self, symbol: &str, equation: &'static str, formula: String, ln: f64) -> f64 {
        let ln = ln.max(0.0);
        self.0.push(Constant { symbol: symbol.into(), equation, formula, ln });
        ln
    }
}

/// The largest norm a LayerNorm's output can have.
fn radius(norm2: &Norm) -> f64 {
    (norm2.gain.len() as f64).sqrt() * gain(norm2) + norm(&norm2.shift)
}

fn gain(norm: &Norm) -> f64 {
    norm.gain.iter().map(|gain| gain.abs()).fold(0.0, f64::max)
}

/// Norms of a layer's value matrices, the largest of its heads.
struct Values {
    spectral: f64,
    one: f64,
}

impl Values {
    fn of(layer: &Layer, heads: usize) -> Result<Self> {
        let d = layer.out.bias.len();
        let width = d / heads;
        let mut largest = Self { spectral: 0.0, one: 0.0 };
        for head in 0..heads {
            // V = Wo[:, own] Wv[own, :] = (Wo^T[own, :])^T Wv[own, :]
            let out: Vec<f64> = (head * width..(head + 1) * width)
                .flat_map(|column| (0..d).map(move |row| layer.out.weight[row * d + column]))
                .collect();
            let value = transposed_product(&out, rows(&layer.value.weight, head, width, d), d);
            largest.spectral = largest.spectral.max(spectral_norm(&value, d)?);
            largest.one = largest.one.max(one_norm(&value, d));
        }
        Ok(largest)
    }
}

/// The rows of a [d, d] matrix that belong to a head.
fn rows(weight: &[f64], head: usize, width: usize, d: usize) -> &[f64] {
    &weight[head * width * d..(head + 1) * width * d]
}

/// The largest absolute score of a layer whose inputs have norm `radius` at most. (What the key's bias adds is equal for all
/// positions attended to, so the softmax does not see it.)
fn logits(layer: &Layer, heads: usize, radius: f64) -> Result<f64> {
    let d = layer.out.bias.len();
    let width = d / heads;
    let scale = 1.0 / (width as f64).sqrt();
    let mut largest: f64 = 0.0;
    for head in 0..heads {
        let key = rows(&layer.key.weight, head, width, d);
        let product = transposed_product(key, rows(&layer.query.weight, head, width, d), d);
        let bias = &layer.query.bias[head * width..(head + 1) * width];
        let from_bias: Vec<f64> =
            (0..d).map(|column| (0..width).map(|row| key[row * d + column] * bias[row]).sum()).collect();
        largest = largest.max(scale * (radius * radius * spectral_norm(&product, d)? + radius * norm(&from_bias)));
    }
    Ok(largest)
}

/// A layer's feed-forward with its residual connection.
struct Mlp {
    /// 1 + |W1| |W2|
    plain: f64,
    /// The same times the gains of the LayerNorms before and after it.
    lipschitz: f64,
    /// |f(0)|
    at_zero: f64,
}

impl Mlp {
    fn of(layer: &Layer, d: usize, ff: usize) -> Result<Self> {
        let plain = 1.0 + spectral_norm(&layer.linear1.weight, d)? * spectral_norm(&layer.linear2.weight, ff)?;
        let hidden: Vec<f64> = layer.linear1.bias.iter().map(|bias| bias.max(0.0)).collect();
        let lipschitz = gain(&layer.norm1).max(1.0) * plain * gain(&layer.norm2).max(1.0);
        Ok(Self { plain, lipschitz, at_zero: norm(&layer.linear2.apply(&hidden)) })
    }
}

#[cfg(test)]
mod tests {
    use pudica_nn::{Architecture, EncoderConfig};

    use super::*;

    fn of(change: impl Fn(&mut pudica_nn::Weights)) -> Constants {
        let config = EncoderConfig { d: 4, heads: 1, ff: 4, ..EncoderConfig::paper(3) };
        let mut weights = Architecture::Encoder(config.clone()).empty_weights().unwrap();
        for (layer, part) in [(0, "norm1"), (0, "norm2"), (1, "norm1"), (1, "norm2")] {
            weights.get_mut(&format!("enc.layers.{layer}.{part}.weight")).unwrap().fill(1.0);
        }
        change(&mut weights);
        Constants::of(&ExactEncoder::new(&config, &weights).unwrap()).unwrap()
    }

    fn ln_of(constants: &Constants, symbol: &str) -> f64 {
        constants.list.iter().find(|constant| constant.symbol == symbol).unwrap().ln
    }

    #[test]
    fn an_encoder_of_zeros_has_the_smallest_constants() {
        let found = of(|_| {});
        for (symbol, value) in
            [("C_V", 1.0f64), ("R", 2.0), ("C_P", 1.0), ("C_A(2)", 1.0), ("L_MLP", 1.0), ("C(0)", 150.0)]
        {
            assert!((ln_of(&found, symbol) - value.ln()).abs() < 1e-12, "{symbol}");
        }
        // r = (H+1) C_V min(C_P, R) = 2; C_MLP = 2; C(1) = 2 * 2 * 2; C(2) = 12 * 2 * 4 * 2 * exp(4)
        let second = (12.0f64 * 2.0 * 4.0 * 2.0).ln() + 4.0;
        assert!((ln_of(&found, "C(1)") - 8f64.ln()).abs() < 1e-12 && (ln_of(&found, "C(2)") - second).abs() < 1e-12);
        let c = 25f64.ln() + 2f64.ln() + 150f64.ln() + 8f64.ln() + second;
        assert!((found.ln_c - c).abs() < 1e-12);
    }

    #[test]
    fn constants_follow_from_weights_known_by_hand() {
        let found = of(|weights| {
            // W_q = 3 I, W_k = 2 I: K^T Q / sqrt(4) = 3 I, and |y| <= 2.
            let layer = weights.get_mut("enc.layers.1.self_attn.in_proj_weight").unwrap();
            for i in 0..4 {
                layer[i * 4 + i] = 3.0;
                layer[16 + i * 4 + i] = 2.0;
                layer[32 + i * 4 + i] = 5.0;
            }
            let out = weights.get_mut("enc.layers.1.self_attn.out_proj.weight").unwrap();
            (0..4).for_each(|i| out[i * 4 + i] = 2.0);
            weights.get_mut("tok.weight").unwrap()[2..].copy_from_slice(&[3.0, 4.0]);
            weights.get_mut("head.weight").unwrap().copy_from_slice(&[1.0, 0.0, 0.0, 0.0]);
            weights.get_mut("enc.layers.0.linear1.weight").unwrap()[0] = 2.0;
            weights.get_mut("enc.layers.0.linear2.weight").unwrap()[0] = 3.0;
        });
        let expected =
            [("C_A(2)", 12.0f64), ("C_V", 10.0), ("C_P", 5.0), ("L_MLP", 7.0), ("C_MLP", 7.0 * 2.0 * 10.0 * 2.0)];
        for (symbol, value) in expected {
            assert!((ln_of(&found, symbol) - value.ln()).abs() < 1e-12, "{symbol} {}", ln_of(&found, symbol).exp());
        }
        let all = ln_of(&found, "C(0)") + ln_of(&found, "C(1)") + ln_of(&found, "C(2)");
        assert!((found.ln_c - (25f64.ln() + 2f64.ln() + 3f64.ln() + all)).abs() < 1e-12);
    }

    #[test]
    fn gains_and_shifts_widen_the_radius() {
        let found = of(|weights| {
            weights.get_mut("enc.layers.0.norm2.weight").unwrap()[1] = -3.0;
            weights.get_mut("enc.layers.0.norm2.bias").unwrap()[0] = 4.0;
        });
        assert_eq!(found.radii, [10.0, 2.0]);
        assert!((ln_of(&found, "L_MLP") - 3f64.ln()).abs() < 1e-12);
    }
}
