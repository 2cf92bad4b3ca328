//! The covariance (CK) and tangent (NTK) of infinitely wide networks, layer by layer, for one pair of inputs.
//!
//! A pair (x, y) cut into T tokens each has a matrix of T x T covariances, K_ab between token a of x and token b of y, and as many
//! tangents Theta_ab. With `<.>` the sum over all token pairs,
//!
//! ```text
//! input      K = <x_a, y_b> / token_width                    Theta = 0
//! attention  K'_ab = S K_ab,  S = <K_ij^2> / T               Theta'_ab = 4 K'_ab + S Theta_ab + 2 K_ab <K_ij Theta_ij> / T
//! dense      P = s_w^2 K + s_b^2                             Q = P + s_w^2 Theta
//!            K' = E[phi(u) phi(v)], (u, v) ~ P               Theta' = Q E[phi'(u) phi'(v)]
//! ```
//!
//! Attention is linear attention with infinitely many heads (Hron et al. 2020, Theorem 3: their kernel, divided by T so that
//! depth does not change the scale); the four in its tangent are its four matrices, and the last two terms are the inputs seen
//! through queries, and through keys and values. An MLP is the case of one token and no attention.

use super::activation::Activation;
use super::architecture::{Architecture, Family, Readout};
use super::real::Real;

/// Which token pairs are followed.
pub struct Layout {
    tokens: usize,
    entries: Vec<Entry>,
    readout_total: usize,
}

/// A token pair, or several that are equal throughout.
struct Entry {
    /// The token of x, and the token of y: whose variances the dense layer needs.
    row: usize,
    column: usize,
    /// Whether it is a token with the token at the same place.
    own: bool,
    /// How many token pairs it stands for.
    count: usize,
    /// How many of them the readout sums.
    read: usize,
}

/// The two kernels at one pair of inputs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kernels<R> {
    /// Conjugate kernel.
    pub ck: R,
    /// Neural tangent kernel.
    pub ntk: R,
}

/// Variances of one input's preactivations: `[layer][token]`.
pub type Variances<R> = Vec<Vec<R>>;

impl Layout {
    /// All T x T token pairs; covariances are given row by row.
    pub fn every_pair(network: &Architecture) -> Layout {
        let tokens = network.tokens;
        let pairs = (0..tokens).flat_map(|row| (0..tokens).map(move |column| (row, column)));
        let entry = |(row, column)| Entry {
            row,
            column,
            own: row == column,
            count: 1,
            read: usize::from(network.readout == Readout::Mean || row == column),
        };
        Layout { tokens, entries: pairs.map(entry).collect(), readout_total: readout_total(network) }
    }

    /// Two classes of token pairs, the T at equal places and the T (T - 1) others, each alike: the covariances are given as
    /// [equal places, other places].
    pub fn alike(network: &Architecture) -> Layout {
        let tokens = network.tokens;
        let others = tokens * (tokens - 1);
        let read = if network.readout == Readout::Mean { others } else { 0 };
        let entries = vec![
            Entry { row: 0, column: 0, own: true, count: tokens, read: tokens },
            Entry { row: 0, column: 0, own: false, count: others, read },
        ];
        Layout { tokens, entries, readout_total: readout_total(network) }
    }
}

fn readout_total(network: &Architecture) -> usize {
    match network.readout {
        Readout::Flatten => network.tokens,
        Readout::Mean => network.tokens * network.tokens,
    }
}

/// Covariances and tangents on their way through the layers.
struct State<R> {
    kernel: Vec<R>,
    tangent: Vec<R>,
}

/// The variances that one input meets at each dense layer; `covariance` is its own with itself.
pub fn own_variances<R: Real>(network: &Architecture, layout: &Layout, covariance: Vec<R>) -> Variances<R> {
    let mut state = State::new(covariance);
    let mut variances = Vec::with_capacity(network.depth);
    for _ in 0..network.depth {
        state.attend(network, layout);
        if network.activation == Activation::Identity {
            variances.push(Vec::new());
            continue;
        }
        state.dense(network);
        let own = layout.entries.iter().zip(&state.kernel).filter(|(entry, _)| entry.own);
        let own: Vec<R> = own.map(|(_, variance)| variance.clone()).collect();
        state.activate(network, layout, &own, &own);
        variances.push(own);
    }
    variances
}

/// Both kernels of a pair, from its covariances at the input and the variances of either input.
pub fn kernels<R: Real>(
    network: &Architecture,
    layout: &Layout,
    covariance: Vec<R>,
    of_x: &Variances<R>,
    of_y: &Variances<R>,
) -> Kernels<R> {
    let mut state = State::new(covariance);
    for (x, y) in of_x.iter().zip(of_y) {
        state.attend(network, layout);
        if network.activation != Activation::Identity {
            state.dense(network);
            state.activate(network, layout, x, y);
        }
    }
    let total = state.number(layout.readout_total as f64);
    let read = |values: &[R]| {
        let terms = layout.entries.iter().zip(values).filter(|(entry, _)| entry.read > 0);
        let sum =
            terms.fold(state.number(0.0), |sum, (entry, value)| sum + state.number(entry.read as f64) * value.clone());
        sum / total.clone()
    };
    let mut output = State { kernel: vec![read(&state.kernel)], tangent: vec![read(&state.tangent)] };
    output.dense(network);
    Kernels { ck: output.kernel.swap_remove(0), ntk: output.tangent.swap_remove(0) }
}

impl<R: Real> State<R> {
    fn new(covariance: Vec<R>) -> Self {
        let tangent = covariance.iter().map(|value| value.constant(0.0)).collect();
        State { kernel: covariance, tangent }
    }

    fn number(&self, value: f64) -> R {
        self.kernel[0].constant(value)
    }

    /// Linear attention; nothing in an MLP.
    fn attend(&mut self, network: &Architecture, layout: &Layout) {
        if network.family == Family::Mlp {
            return;
        }
        let tokens = self.number(layout.tokens as f64);
        let sum = |of: &[R]| {
            let terms = layout.entries.iter().zip(self.kernel.iter().zip(of));
            let sum = terms.fold(self.number(0.0), |sum, (entry, (kernel, other))| {
                sum + self.number(entry.count as f64) * kernel.clone() * other.clone()
            });
            sum / tokens.clone()
        };
        let (square, mixed) = (sum(&self.kernel), self.number(2.0) * sum(&self.tangent));
        let four = self.number(4.0);
        for (kernel, tangent) in self.kernel.iter_mut().zip(&mut self.tangent) {
            let after = square.clone() * kernel.clone();
            *tangent = four.clone() * after.clone() + square.clone() * tangent.clone() + mixed.clone() * kernel.clone();
            *kernel = after;
        }
    }

    /// Weights and biases at every token.
    fn dense(&mut self, network: &Architecture) {
        let (weight, bias) = (self.number(network.weight_variance), self.number(network.bias_variance));
        for (kernel, tangent) in self.kernel.iter_mut().zip(&mut self.tangent) {
            *kernel = weight.clone() * kernel.clone() + bias.clone();
            *tangent = kernel.clone() + weight.clone() * tangent.clone();
        }
    }

    /// The nonlinearity, given the variances of the tokens of x and of y.
    fn activate(&mut self, network: &Architecture, layout: &Layout, of_x: &[R], of_y: &[R]) {
        for ((kernel, tangent), entry) in self.kernel.iter_mut().zip(&mut self.tangent).zip(&layout.entries) {
            let dual = network.activation.dual(kernel, &of_x[entry.row], &of_y[entry.column]);
            *kernel = dual.value;
            *tangent = tangent.clone() * dual.slope;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attention(activation: Activation) -> Architecture {
        Architecture {
            activation,
            depth: 2,
            bias_variance: 0.1,
            ..Architecture::named("linear-attention", 12).unwrap()
        }
    }

    /// With K = c on the diagonal and 0 elsewhere both layouts must give the same kernels.
    #[test]
    fn classes_of_pairs_equal_all_pairs() {
        for readout in [Readout::Flatten, Readout::Mean] {
            for activation in [Activation::Relu, Activation::Erf, Activation::Identity] {
                let network = Architecture { readout, ..attention(activation) };
                let (every, alike) = (Layout::every_pair(&network), Layout::alike(&network));
                let full = |c: f64| -> Vec<f64> {
                    (0..16).map(|entry| if entry / 4 == entry % 4 { c } else { 0.0 }).collect()
                };
                let own_every = own_variances(&network, &every, full(1.0));
                let own_alike = own_variances(&network, &alike, vec![1.0, 0.0]);
                assert_eq!(own_every[0].len(), if activation == Activation::Identity { 0 } else { 4 });
                for c in [1.0, 0.3, -0.6, -1.0] {
                    let a = kernels(&network, &every, full(c), &own_every, &own_every);
                    let b = kernels(&network, &alike, vec![c, 0.0], &own_alike, &own_alike);
                    assert!((a.ck - b.ck).abs() < 1e-13 && (a.ntk - b.ntk).abs() < 1e-12, "{a:?} {b:?}");
                }
            }
        }
    }

    #[test]
    fn one_linear_attention_layer_is_cubic() {
        let network =
            Architecture { depth: 1, weight_variance: 1.0, bias_variance: 0.0, ..attention(Activation::Identity) };
        let layout = Layout::alike(&network);
        let own = own_variances(&network, &layout, vec![1.0, 0.0]);
        let both = kernels(&network, &layout, vec![0.5, 0.0], &own, &own);
        // Readout and four matrices are trained, each with tangent c^3.
        assert_eq!((both.ck, both.ntk), (0.125, 5.0 * 0.125));
    }
}
