//! AdamW exactly as PyTorch computes it.

use serde::{Deserialize, Serialize};

use crate::NnError;

/// The optimiser's settings; every one of PyTorch's, with the paper's values as defaults.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct AdamWConfig {
    /// Learning rate.
    pub lr: f64,
    /// Decay of the first and second moment.
    pub betas: (f64, f64),
    /// Added to the root of the second moment (outside the root).
    pub eps: f64,
    /// Decoupled weight decay, on all parameters: biases, embeddings and LayerNorm too.
    pub weight_decay: f64,
}

impl Default for AdamWConfig {
    /// The paper's: lr 3e-4, betas (0.9, 0.999), eps 1e-8, weight decay 0.1.
    fn default() -> Self {
        Self { lr: 3e-4, betas: (0.9, 0.999), eps: 1e-8, weight_decay: 0.1 }
    }
}

impl AdamWConfig {
    /// Whether these settings make sense.
    pub fn check(&self) -> Result<(), NnError> {
        let at_least_zero = |setting, value: f64| match value.is_finite() && value >= 0.0 {
            true => Ok(()),
            false => Err(NnError::setting(setting, format!("must be 0 or more, but is {value}"))),
        };
        at_least_zero("train.lr", self.lr)?;
        at_least_zero("train.eps", self.eps)?;
        at_least_zero("train.weight_decay", self.weight_decay)?;
        for beta in [self.betas.0, self.betas.1] {
            if !(0.0..1.0).contains(&beta) {
                let problem = format!("both must be at least 0 and below 1, but one is {beta}");
                return Err(NnError::setting("train.betas", problem));
            }
        }
        Ok(())
    }
}

/// The optimiser and its memory: two moments for each parameter.
#[derive(Debug, Clone, PartialEq)]
pub struct AdamW {
    config: AdamWConfig,
    /// Updates made so far.
    pub(crate) step: u64,
    pub(crate) first_moment: Vec<f32>,
    pub(crate) second_moment: Vec<f32>,
}

impl AdamW {
    /// A fresh optimiser for this many parameters.
    pub fn new(config: AdamWConfig, parameters: usize) -> Result<Self, NnError> {
        config.check()?;
        Ok(Self { config, step: 0, first_moment: vec![0.0; parameters], second_moment: vec![0.0; parameters] })
    }

    /// The settings.
    pub fn config(&self) -> &AdamWConfig {
        &self.config
    }

    /// Move the parameters one step along their gradient; all slices are as long as the optimiser was made for.
    ///
    /// The order of operations and the roundings to f32 are those of `torch.optim.AdamW`: scalars are computed in f64, then
    /// applied in f32.
    pub fn update(&mut self, parameters: &mut [f32], gradient: &[f32]) {
        let AdamWConfig { lr, betas: (beta1, beta2), eps, weight_decay } = self.config;
        self.step += 1;
        let correction1 = 1.0 - beta1.powf(self.step as f64);
        let correction2 = 1.0 - beta2.powf(self.step as f64);
        let keep = (1.0 - lr * weight_decay) as f32;
        let step_size = (lr / correction1) as f32;
        let root_correction2 = correction2.sqrt() as f32;
        let (weight1, beta2, weight2, eps) = ((1.0 - beta1) as f32, beta2 as f32, (1.0 - beta2) as f32, eps as f32);
        let moments = self.first_moment.iter_mut().zip(&mut self.second_moment);
        for ((parameter, gradient), (first, second)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *parameter *= keep;
            *first += weight1 * (gradient - *first);
            *second = beta2 * *second + weight2 * gradient * gradient;
            let root = second.sqrt() / root_correction2 + eps;
            *parameter -= step_size * (*first / root);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// ```python
    /// import torch
    /// p = torch.nn.Parameter(torch.tensor([1.0, -2.0, 0.5]))
    /// o = torch.optim.AdamW([p], lr=0.1, betas=(0.9, 0.99), eps=1e-3, weight_decay=0.2)
    /// for g in ([0.3, -1.0, 0.0], [0.1, 2.0, 0.0], [-0.5, 0.4, 1e-3]):
    ///     p.grad = torch.tensor(g); o.step(); print(p.tolist())
    /// ```
    #[test]
    fn three_steps_equal_pytorch() {
        let config = AdamWConfig { lr: 0.1, betas: (0.9, 0.99), eps: 1e-3, weight_decay: 0.2 };
        let mut optimiser = AdamW::new(config, 3).unwrap();
        let mut parameters = [1.0, -2.0, 0.5];
        let expected: [[f32; 3]; 3] = [
            [0.88033223, -1.8600999, 0.49],
            [0.77585036, -1.8594356, 0.48020002],
            [0.77828103, -1.8613589, 0.44724506],
        ];
        let gradients = [[0.3, -1.0, 0.0], [0.1, 2.0, 0.0], [-0.5, 0.4, 1e-3]];
        for (gradient, expected) in gradients.iter().zip(expected) {
            optimiser.update(&mut parameters, gradient);
            for (found, expected) in parameters.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-6, "{found} {expected}");
            }
        }
    }

    /// On f(x) = x^2/2 without decay, the very first step has size lr whatever the gradient's.
    #[test]
    fn the_first_step_is_as_long_as_the_learning_rate() {
        let config = AdamWConfig { lr: 0.01, weight_decay: 0.0, ..Default::default() };
        let mut optimiser = AdamW::new(config, 2).unwrap();
        let mut parameters = [5.0, -1e-3];
        let gradient = parameters;
        optimiser.update(&mut parameters, &gradient);
        assert!((parameters[0] - 4.99).abs() < 1e-5 && (parameters[1] - 0.009).abs() < 1e-5);
    }

    #[test]
    fn senseless_settings_are_refused() {
        let refused = |config: AdamWConfig| AdamW::new(config, 1).is_err();
        assert!(refused(AdamWConfig { lr: -1.0, ..Default::default() }));
        assert!(refused(AdamWConfig { lr: f64::NAN, ..Default::default() }));
        assert!(refused(AdamWConfig { betas: (1.0, 0.9), ..Default::default() }));
        assert!(refused(AdamWConfig { weight_decay: f64::INFINITY, ..Default::default() }));
    }
}
