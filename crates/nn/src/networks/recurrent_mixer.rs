//! A diagonal state-space model's recurrence, in place of attention.

use burn::tensor::Tensor;

use super::variants::Eigenvalues;
use crate::Parameters;
use crate::layers::Linear;
use crate::params::{Init, Scope};
use crate::scan::scan;

/// States h_t = a_t h_(t-1) + b_t of width d, value by value, where a_t (the eigenvalues) and b_t are linear in the token:
///
/// ```python
/// a = torch.sigmoid(gate(x))                  # eigenvalues = "signed": 2 torch.sigmoid(gate(x)) - 1
/// b = input(x)
/// for t in range(n): h = a[:, t] * h + b[:, t]
/// y = output(h)
/// ```
///
/// The eigenvalues of a zero token start uniform in their range.
pub(super) struct RecurrentMixer {
    eigenvalues: Eigenvalues,
    gate: Linear,
    input: Linear,
    output: Linear,
}

impl RecurrentMixer {
    pub(super) fn new(mut params: Scope, d: usize, eigenvalues: Eigenvalues) -> Self {
        Self {
            eigenvalues,
            gate: Linear::with_init(params.at("gate"), [d, d], Init::linear(d), Init::Logistic),
            input: Linear::new(params.at("input"), d, d),
            output: Linear::new(params.at("output"), d, d),
        }
    }

    /// What it makes of tokens x [.., d] by themselves: the eigenvalues before the sigmoid, and what is added to the state.
    pub(super) fn project<const D: usize>(&self, p: &Parameters, x: Tensor<D>) -> [Tensor<D>; 2] {
        [self.gate.forward(p, x.clone()), self.input.forward(p, x)]
    }

    /// The states [batch, n, d].
    pub(super) fn states(&self, gate: Tensor<3>, input: Tensor<3>) -> Tensor<3> {
        scan(gate, input, self.eigenvalues)
    }

    /// Of states [.., d].
    pub(super) fn output(&self, p: &Parameters, states: Tensor<3>) -> Tensor<3> {
        self.output.forward(p, states)
    }
}
