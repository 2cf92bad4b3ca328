//! What a network is made of, collected layer by layer in the order of PyTorch's `state_dict()`.

use crate::init::{Init, ParamSpec};

/// The parameters and buffers of a network.
#[derive(Debug, Default)]
pub(super) struct ParamList {
    pub(super) parameters: Vec<ParamSpec>,
    pub(super) buffers: Vec<ParamSpec>,
}

impl ParamList {
    /// Any parameter.
    pub(super) fn add(&mut self, name: impl Into<String>, shape: &[usize], init: Init) {
        self.parameters.push(ParamSpec::new(name, shape, init));
    }

    /// `nn.Linear`.
    pub(super) fn linear(&mut self, name: &str, inputs: usize, outputs: usize) {
        self.linear_without_bias(name, inputs, outputs);
        self.add(format!("{name}.bias"), &[outputs], Init::linear(inputs));
    }

    /// `nn.Linear(bias=False)`.
    pub(super) fn linear_without_bias(&mut self, name: &str, inputs: usize, outputs: usize) {
        self.add(format!("{name}.weight"), &[outputs, inputs], Init::linear(inputs));
    }

    /// `nn.Conv2d` with a weight of this shape [outputs, inputs / groups, height, width].
    pub(super) fn conv(&mut self, name: &str, shape: [usize; 4]) {
        self.conv_without_bias(name, shape);
        self.add(format!("{name}.bias"), &shape[..1], Init::linear(shape[1..].iter().product()));
    }

    /// `nn.Conv2d(bias=False)`.
    pub(super) fn conv_without_bias(&mut self, name: &str, shape: [usize; 4]) {
        self.add(format!("{name}.weight"), &shape, Init::linear(shape[1..].iter().product()));
    }

    /// `nn.LayerNorm` over a last dimension of this width.
    pub(super) fn layer_norm(&mut self, name: &str, width: usize) {
        self.add(format!("{name}.weight"), &[width], Init::Ones);
        self.add(format!("{name}.bias"), &[width], Init::Zeros);
    }

    /// `nn.BatchNorm2d`.
    pub(super) fn batch_norm(&mut self, name: &str, channels: usize) {
        self.layer_norm(name, channels);
        self.buffers.push(ParamSpec::new(format!("{name}.running_mean"), &[channels], Init::Zeros));
        self.buffers.push(ParamSpec::new(format!("{name}.running_var"), &[channels], Init::Ones));
    }
}
