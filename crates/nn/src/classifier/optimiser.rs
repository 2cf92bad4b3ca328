//! Optimisers on one long vector of parameters, as PyTorch computes them.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use crate::{Device, NnError};

/// How a gradient moves the weights; the learning rate is given with every step, for schedules.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Optimiser {
    /// Stochastic gradient descent.
    Sgd {
        /// How much of the last step is made again; 0: none.
        momentum: f64,
        /// Pull towards 0, as part of the gradient.
        weight_decay: f64,
    },
    /// Adam; `decoupled`: AdamW.
    Adam {
        /// Decay of the first and second moment.
        betas: (f64, f64),
        /// Added to the root of the second moment.
        eps: f64,
        /// Pull towards 0.
        weight_decay: f64,
        /// Whether the pull is a part of the gradient (Adam) or of the step (AdamW).
        decoupled: bool,
    },
}

/// How large a step is.
#[derive(Clone)]
pub(crate) struct Rates {
    /// The learning rate.
    lr: f64,
    /// Which step it is, from 1.
    step: u64,
    /// Both as numbers on the device \[2\], where LibTorch's own optimisers are used: what is recorded once then holds for every step.
    #[cfg_attr(not(feature = "torch"), expect(dead_code))]
    pub(crate) on_device: Option<Tensor<1>>,
}

impl Rates {
    /// Of a step on this device.
    pub(crate) fn new(lr: f64, step: u64, device: &Device) -> Self {
        let on_device = device.is_libtorch().then(|| device.floats(vec![lr as f32, step as f32], [2]));
        Self { lr, step, on_device }
    }
}

impl Optimiser {
    /// Plain SGD.
    pub const SGD: Self = Self::Sgd { momentum: 0.0, weight_decay: 0.0 };

    /// Adam with PyTorch's defaults.
    pub const ADAM: Self = Self::Adam { betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.0, decoupled: false };

    /// AdamW with PyTorch's other defaults.
    pub fn adamw(weight_decay: f64) -> Self {
        Self::Adam { betas: (0.9, 0.999), eps: 1e-8, weight_decay, decoupled: true }
    }

    /// Whether these settings make sense.
    pub fn check(&self) -> Result<(), NnError> {
        let in_range = |setting: &'static str, value: f64, below: f64| match (0.0..below).contains(&value) {
            true => Ok(()),
            false => Err(NnError::setting(setting, format!("must be at least 0 and below {below}, but is {value}"))),
        };
        match *self {
            Self::Sgd { momentum, weight_decay } => {
                in_range("train.momentum", momentum, 1.0)?;
                in_range("train.weight_decay", weight_decay, f64::INFINITY)
            }
            Self::Adam { betas, eps, weight_decay, .. } => {
                in_range("train.beta1", betas.0, 1.0)?;
                in_range("train.beta2", betas.1, 1.0)?;
                in_range("train.eps", eps, f64::INFINITY)?;
                in_range("train.weight_decay", weight_decay, f64::INFINITY)
            }
        }
    }

    /// Vectors it remembers between steps.
    pub(crate) fn memories(&self) -> usize {
        match self {
            Self::Sgd { momentum, .. } => usize::from(*momentum > 0.0),
            Self::Adam { .. } => 2,
        }
    }

    /// Moves the parameters along `gradient`; all vectors \[parameters\].
    pub(crate) fn update(
        &self,
        weights: &mut Tensor<1>,
        gradient: Tensor<1>,
        memory: &mut [Tensor<1>],
        rates: &Rates,
    ) -> Result<(), NnError> {
        #[cfg(feature = "torch")]
        if let Some(done) = crate::native::update(*self, weights, &gradient, memory, rates) {
            return done;
        }
        *weights = self.moved(weights.clone(), gradient, memory, rates);
        Ok(())
    }

    /// The parameters moved along `gradient`, operation by operation.
    fn moved(
        &self,
        weights: Tensor<1>,
        gradient: Tensor<1>,
        memory: &mut [Tensor<1>],
        &Rates { lr, step, .. }: &Rates,
    ) -> Tensor<1> {
        let pulled = |gradient: Tensor<1>, weights: &Tensor<1>, pull: f64| match pull {
            0.0 => gradient,
            _ => gradient + weights.clone().mul_scalar(pull),
        };
        match (*self, memory) {
            (Self::Sgd { momentum, weight_decay }, memory) => {
                let mut direction = pulled(gradient, &weights, weight_decay);
                if let [velocity] = memory {
                    direction = velocity.clone().mul_scalar(momentum) + direction;
                    *velocity = direction.clone();
                }
                weights - direction.mul_scalar(lr)
            }
            (Self::Adam { betas: (beta1, beta2), eps, weight_decay, decoupled }, [first, second]) => {
                let (gradient, weights) = match decoupled {
                    true => (gradient, weights.mul_scalar(1.0 - lr * weight_decay)),
                    false => (pulled(gradient, &weights, weight_decay), weights),
                };
                *first = first.clone().mul_scalar(beta1) + gradient.clone().mul_scalar(1.0 - beta1);
                *second = second.clone().mul_scalar(beta2) + gradient.square().mul_scalar(1.0 - beta2);
                let correction1 = 1.0 - beta1.powf(step as f64);
                let correction2 = 1.0 - beta2.powf(step as f64);
                let root = second.clone().div_scalar(correction2).sqrt().add_scalar(eps);
                weights - first.clone().div(root).mul_scalar(lr / correction1)
            }
            // Memory is made by `memories`, so Adam always has its two.
            (Self::Adam { .. }, _) => weights,
        }
    }
}
