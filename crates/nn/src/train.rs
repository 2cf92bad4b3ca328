//! Training, one batch at a time.

use burn::tensor::{Element, Tensor, TensorData};

use crate::autodiff::Autodiff;
use crate::layers::to_vec;
use crate::network::{Placed, check_strings};
use crate::{AdamW, AdamWConfig, Architecture, Device, Network, NnError, Parameters, TrainingState, Weights};

/// A network being trained: its weights, its optimiser and how many steps it has made.
///
/// The same batches give the same weights to the bit on one machine and backend, whether training ran through or was resumed
/// from a checkpoint.
pub struct Trainer {
    architecture: Architecture,
    weights: Weights,
    optimiser: AdamW,
    device: Device,
}

impl Trainer {
    /// Start training from these weights.
    pub fn new(
        architecture: &Architecture,
        weights: Weights,
        config: AdamWConfig,
        device: &Device,
    ) -> Result<Self, NnError> {
        architecture.empty_weights()?.check_same_layout(&weights)?;
        let optimiser = AdamW::new(config, weights.data().len())?;
        Ok(Self { architecture: architecture.clone(), weights, optimiser, device: device.clone() })
    }

    /// Continue from the bytes of [`Trainer::checkpoint`].
    pub fn resume(
        architecture: &Architecture,
        checkpoint: &[u8],
        config: AdamWConfig,
        device: &Device,
    ) -> Result<Self, NnError> {
        let state = TrainingState::from_bytes(architecture, checkpoint)?;
        let mut trainer = Self::new(architecture, state.weights, config, device)?;
        trainer.optimiser.step = state.step;
        trainer.optimiser.first_moment = state.first_moment;
        trainer.optimiser.second_moment = state.second_moment;
        Ok(trainer)
    }

    /// Everything needed to continue, as one safetensors file.
    pub fn checkpoint(&self) -> Result<Vec<u8>, NnError> {
        let AdamW { step, first_moment, second_moment, .. } = self.optimiser.clone();
        TrainingState { weights: self.weights.clone(), first_moment, second_moment, step }.to_bytes()
    }

    /// One step: the mean squared error on the batch before the step. `labels` are row-major [rows, outputs].
    pub fn step<'a>(&mut self, strings: impl Into<Placed<'a>>, labels: &[f32]) -> Result<f64, NnError> {
        let (loss, gradient) =
            loss_and_gradient::<f32>(&self.architecture, &self.weights, strings, labels, &self.device)?;
        // Weights are f32 whatever they are computed in, and a loss beyond f32 has a gradient beyond it.
        if !(loss as f32).is_finite() {
            return Err(NnError::Diverged { step: self.steps() + 1, loss, lr: self.optimiser.config().lr });
        }
        self.optimiser.update(self.weights.data_mut(), &gradient);
        Ok(loss)
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        self.optimiser.step
    }

    /// The weights as they are now.
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// The network as it is now, for prediction.
    pub fn network(&self) -> Result<Network, NnError> {
        Network::new(&self.architecture, self.weights.clone(), &self.device)
    }
}

/// The mean squared error over all outputs of a batch, and its gradient in the order of [`Weights::data`].
/// `labels` are row-major [rows, outputs]. The gradient is given as `E`, f32 or f64, whatever the device computes in.
pub fn loss_and_gradient<'a, E: Element>(
    architecture: &Architecture,
    weights: &Weights,
    strings: impl Into<Placed<'a>>,
    labels: &[f32],
    device: &Device,
) -> Result<(f64, Vec<E>), NnError> {
    let strings = check_strings(architecture, strings.into())?;
    let shape = [strings.strings.rows(), architecture.outputs()];
    if labels.len() != shape[0] * shape[1] {
        let (found, expected) = (labels.len(), shape[0] * shape[1]);
        return Err(NnError::Batch(format!("it has {found} labels, but the network gives {expected} outputs for it")));
    }
    let (body, list) = architecture.build()?;
    list.check(weights)?;
    let parameters = Parameters::upload(weights, list.leaves(), device, Autodiff::Burn);
    let outputs = body.forward(&parameters, strings, &mut None)?;
    let labels = Tensor::<2>::from_data(TensorData::new(labels.to_vec(), shape), device.constant());
    let (loss, gradient) = parameters.gradient((outputs - labels).square().mean())?;
    let loss: Vec<f64> = to_vec(loss)?;
    Ok((loss[0], to_vec(gradient)?))
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Stream, Target, prefix_parities};

    use super::*;
    use crate::{
        Cell, Eigenvalues, Embed, EncoderConfig, EncoderDecoderConfig, MlpConfig, Nonlinearity, Normalisation,
        Position, Read, RecurrentConfig, Span, StateSpaceConfig, TransformerConfig, Variant,
    };

    fn small(n: usize) -> Architecture {
        Architecture::Encoder(EncoderConfig { d: 16, ff: 16, ..EncoderConfig::paper(n) })
    }

    fn batch(target: &Target, step: u64) -> (Bits, Vec<f32>) {
        let strings = Bits::uniform(64, target.n(), &mut Stream::new(0, "train-batch", step)).unwrap();
        let labels = target.labels(&strings).unwrap();
        (strings, labels)
    }

    fn trainer(config: AdamWConfig) -> Trainer {
        let architecture = small(5);
        let weights = architecture.initial_weights(0).unwrap();
        Trainer::new(&architecture, weights, config, &Device::cpu()).unwrap()
    }

    #[test]
    fn a_small_encoder_learns_the_first_bit() {
        let target = Target::parse("first", 5).unwrap();
        let mut trainer = trainer(AdamWConfig { lr: 3e-3, ..Default::default() });
        let losses: Vec<f64> = (0..200)
            .map(|step| {
                let (strings, labels) = batch(&target, step);
                trainer.step(&strings, &labels).unwrap()
            })
            .collect();
        assert!(losses[0] > 0.1 && losses[199] < 0.01, "{} -> {}", losses[0], losses[199]);
    }

    #[test]
    fn a_resumed_run_ends_bit_equal() {
        let target = Target::parse("parity", 5).unwrap();
        let run = |trainer: &mut Trainer, steps: std::ops::Range<u64>| {
            for step in steps {
                let (strings, labels) = batch(&target, step);
                trainer.step(&strings, &labels).unwrap();
            }
        };
        let config = AdamWConfig::default();
        let mut through = trainer(config);
        run(&mut through, 0..20);
        let mut first_half = trainer(config);
        run(&mut first_half, 0..10);
        let checkpoint = first_half.checkpoint().unwrap();
        let mut second_half = Trainer::resume(&small(5), &checkpoint, config, &Device::cpu()).unwrap();
        assert_eq!(second_half.steps(), 10);
        run(&mut second_half, 10..20);
        assert_eq!(through.checkpoint().unwrap(), second_half.checkpoint().unwrap());
    }

    #[test]
    fn runs_side_by_side_end_as_they_do_alone() {
        let target = Target::parse("parity", 5).unwrap();
        let run = || {
            let mut trainer = trainer(AdamWConfig::default());
            for step in 0..20 {
                let (strings, labels) = batch(&target, step);
                trainer.step(&strings, &labels).unwrap();
            }
            trainer.checkpoint().unwrap()
        };
        let alone = run();
        let together: Vec<Vec<u8>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(together.iter().all(|run| *run == alone));
    }

    #[test]
    fn a_checkpoint_of_another_network_is_refused() {
        let checkpoint = trainer(AdamWConfig::default()).checkpoint().unwrap();
        let resume = |bytes: &[u8]| Trainer::resume(&small(6), bytes, AdamWConfig::default(), &Device::cpu());
        let error = resume(&checkpoint).err().unwrap().to_string();
        assert!(error.contains("pos.weight"), "{error}");
        assert!(resume(&checkpoint[..100]).is_err());
    }

    #[test]
    fn divergence_is_an_error_with_the_step() {
        let target = Target::parse("parity", 5).unwrap();
        let mut trainer = trainer(AdamWConfig { lr: 1e30, ..Default::default() });
        let error = (0..10).find_map(|step| {
            let (strings, labels) = batch(&target, step);
            trainer.step(&strings, &labels).err()
        });
        let message = error.expect("a learning rate of 1e30 cannot work").to_string();
        assert!(message.contains("at step 2"), "{message}");
    }

    #[test]
    fn a_batch_that_does_not_fit_is_refused() {
        let mut trainer = trainer(AdamWConfig::default());
        let strings = Bits::cube(5).unwrap();
        assert!(trainer.step(&strings, &[0.0; 31]).unwrap_err().to_string().contains("31 labels"));
        let longer = Bits::cube(6).unwrap();
        assert!(trainer.step(&longer, &[0.0; 64]).unwrap_err().to_string().contains("up to 5 bits, these have 6"));
    }

    /// The gradient against central differences in f64, along random directions through all parameters at once.
    #[test]
    fn gradients_agree_with_finite_differences() {
        let encoder = |embed, layers| {
            Architecture::Encoder(EncoderConfig { n: 4, d: 8, layers, heads: 2, ff: 6, embed, same_init: false })
        };
        let scratchpad = EncoderDecoderConfig { n: 4, d: 8, layers: 1, heads: 2, ff: 6, embed: Embed::Concat };
        let rms = Variant { norm: Normalisation::Rms, activation: Nonlinearity::Gelu, read: Read::Mean };
        let sizes = EncoderConfig { n: 4, d: 8, layers: 2, heads: 2, ff: 6, embed: Embed::Add, same_init: false };
        let (span, position) = (Span::Causal, Position::Rotary);
        let rotary = TransformerConfig { encoder: sizes, variant: rms, position, positions: 4, span };
        let recurrent = |cell| RecurrentConfig { cell, n: 4, d: 5, layers: 2, read: Read::Last };
        let (eigenvalues, variant) = (Eigenvalues::Signed, Variant::default());
        let states = StateSpaceConfig { n: 4, d: 6, layers: 2, ff: 5, eigenvalues, same_init: false, variant };
        let perceptron = MlpConfig { n: 4, d: 8, layers: 2, activation: Nonlinearity::Gelu };
        let device = Device::cpu().double();
        let strings = Bits::cube(4).unwrap();
        let parity = Target::parse("parity", 4).unwrap().labels(&strings).unwrap();
        for (architecture, labels) in [
            (encoder(Embed::Concat, 1), parity.clone()),
            (encoder(Embed::Add, 2), parity.clone()),
            (Architecture::Transformer(rotary), parity.clone()),
            (Architecture::Recurrent(recurrent(Cell::Lstm)), parity.clone()),
            (Architecture::Recurrent(recurrent(Cell::Gru)), parity.clone()),
            (Architecture::StateSpace(states), parity.clone()),
            (Architecture::Mlp(perceptron), parity),
            (Architecture::EncoderDecoder(scratchpad), prefix_parities(&strings)),
        ] {
            let weights = architecture.initial_weights(1).unwrap();
            let loss_at = |weights: &Weights| {
                loss_and_gradient::<f64>(&architecture, weights, &strings, &labels, &device).unwrap()
            };
            let (_, gradient) = loss_at(&weights);
            for draw in 0..3 {
                let mut stream = Stream::new(0, "direction", draw);
                // A power of two, so that the moved weights are off by their own rounding to f32 only, which is undone below.
                let h = 1.0 / 1024.0;
                let direction: Vec<f64> = weights.data().iter().map(|_| stream.normal()).collect();
                let moved = |sign: f64| {
                    let data: Vec<f32> = weights
                        .data()
                        .iter()
                        .zip(&direction)
                        .map(|(w, v)| (f64::from(*w) + sign * h * v) as f32)
                        .collect();
                    weights.with_data(data).unwrap()
                };
                let (ahead, behind) = (moved(1.0), moved(-1.0));
                let predicted: f64 = gradient
                    .iter()
                    .zip(ahead.data().iter().zip(behind.data()))
                    .map(|(g, (a, b))| g * (f64::from(*a) - f64::from(*b)))
                    .sum();
                let found = loss_at(&ahead).0 - loss_at(&behind).0;
                assert!((found - predicted).abs() < 2e-3 * predicted.abs().max(1e-3), "{found} {predicted}");
            }
        }
    }
}
