//! AdamW in one pass: the gradient's parts are added and the parameters moved while both are in registers.

use pudica_nn::AdamWConfig;

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

/// Parameters whose gradient is added up at once.
const CHUNK: usize = 256;

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

    /// Move some parameters along the sum of the gradients' parts, added in order; all slices are equally long.
    #[inline(always)]
    pub(crate) fn apply<'a>(
        &self,
        parameters: &mut [f32],
        [first, second]: [&mut [f32]; 2],
        gradients: impl Iterator<Item = &'a [f32]> + Clone,
    ) {
        for (chunk, parameters) in parameters.chunks_mut(CHUNK).enumerate() {
            let own = chunk * CHUNK..chunk * CHUNK + parameters.len();
            let mut sum = [0f32; CHUNK];
            for gradient in gradients.clone() {
                for (sum, part) in sum.iter_mut().zip(&gradient[own.clone()]) {
                    *sum += part;
                }
            }
            let moments = first[own.clone()].iter_mut().zip(&mut second[own]);
            for ((parameter, gradient), (first, second)) in parameters.iter_mut().zip(&sum).zip(moments) {
                *parameter *= self.keep;
                *first += self.weight1 * (gradient - *first);
                *second = self.beta2 * *second + self.weight2 * gradient * gradient;
                let root = second.sqrt() / self.root_correction2 + self.eps;
                *parameter -= self.step_size * (*first / root);
            }
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
            let (a, b) = (draw(), draw());
            let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
            optimiser.update(&mut expected, &sum);
            let parts = [&a[..], &b[..]];
            Update::new(&config, step).apply(&mut parameters, [&mut first, &mut second], parts.iter().copied());
            assert_eq!(parameters, expected);
        }
    }
}
