//! AdamW in one pass.

use pudica_nn::AdamWConfig;

use super::wide::wide;

/// The constants of one update, rounded as `pudica_nn::AdamW` rounds them.
pub(crate) struct Update {
    keep: f32,
    step_size: f32,
    root_correction2: f32,
    weight1: f32,
    beta2: f32,
    weight2: f32,
    eps: f32,
}

impl Update {
    /// Update number `step`, counted from 1.
    pub(crate) fn new(config: &AdamWConfig, step: u64) -> Self {
        let AdamWConfig { lr, betas: (beta1, beta2), eps, weight_decay } = *config;
        let correction1 = 1.0 - beta1.powf(step as f64);
        let correction2 = 1.0 - beta2.powf(step as f64);
        Self {
            keep: (1.0 - lr * weight_decay) as f32,
            step_size: (lr / correction1) as f32,
            root_correction2: correction2.sqrt() as f32,
            weight1: (1.0 - beta1) as f32,
            beta2: beta2 as f32,
            weight2: (1.0 - beta2) as f32,
            eps: eps as f32,
        }
    }

    /// Move some parameters along their gradient; all slices are equally long.
    pub(crate) fn apply(&self, parameters: &mut [f32], first: &mut [f32], second: &mut [f32], gradient: &[f32]) {
        apply(self, parameters, first, second, gradient);
    }
}

wide! {
    fn apply(update: &Update, parameters: &mut [f32], first: &mut [f32], second: &mut [f32], gradient: &[f32]) {
        let moments = first.iter_mut().zip(second);
        for ((parameter, gradient), (first, second)) in parameters.iter_mut().zip(gradient).zip(moments) {
            *parameter *= update.keep;
            *first += update.weight1 * (gradient - *first);
            *second = update.beta2 * *second + update.weight2 * gradient * gradient;
            let root = second.sqrt() / update.root_correction2 + update.eps;
            *parameter -= update.step_size * (*first / root);
        }
    }
}

#[cfg(test)]
mod tests {
    use pudica_data::Stream;
    use pudica_nn::AdamW;

    use super::*;

    #[test]
    fn the_same_bits_as_the_reference() {
        let config = AdamWConfig { lr: 0.01, betas: (0.8, 0.99), eps: 1e-6, weight_decay: 0.3 };
        let mut stream = Stream::new(0, "adamw", 0);
        let mut draw = || (0..1000).map(|_| stream.normal_f32()).collect::<Vec<f32>>();
        let mut parameters = draw();
        let (mut first, mut second) = (vec![0.0; 1000], vec![0.0; 1000]);
        let (mut expected, mut optimiser) = (parameters.clone(), AdamW::new(config, 1000).unwrap());
        for step in 1..=5 {
            let gradient = draw();
            optimiser.update(&mut expected, &gradient);
            Update::new(&config, step).apply(&mut parameters, &mut first, &mut second, &gradient);
            assert_eq!(parameters, expected);
        }
    }
}
