//! R networks in training, in lock-step.

use burn::tensor::{Bool, Distribution, FloatDType, Tensor, TensorData};
use pudica_data::{Pairs, Stream};
use serde::{Deserialize, Serialize};

use super::ModularTransformer;
use super::forward::{Batch, Parts};
use super::loss::cross_entropy;
use crate::classifier::{Optimiser, Rates};
use crate::layers::to_vec;
use crate::weights::{Stored, store};
use crate::{Device, NnError, Weights};

/// How the networks are trained and touched.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grokking {
    /// Full-batch steps of it.
    pub optimiser: Optimiser,
    /// Learning rate.
    pub lr: f64,
    /// Standard deviation of the noise on the embeddings of both numbers that sensitivity is measured with.
    pub noise: f64,
}

/// One network to be trained.
pub struct Replica<'a> {
    /// The name of its randomness.
    pub seed: u64,
    /// What it is trained on; as many pairs for all replicas.
    pub train: &'a Pairs,
    /// What it is tested on; as many pairs for all replicas.
    pub test: &'a Pairs,
    /// What [`Replicas::checkpoint`] gave, to continue; all replicas' are of the same epoch.
    pub checkpoint: Option<&'a [u8]>,
}

/// What is known of one network after some epochs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Measures {
    /// Mean cross-entropy on the training pairs.
    pub train_loss: f64,
    /// Share of right results on the training pairs.
    pub train_accuracy: f64,
    /// Mean cross-entropy on the other pairs.
    pub test_loss: f64,
    /// Share of right results on the other pairs.
    pub test_accuracy: f64,
    /// Share of training pairs whose predicted result changes when noise is added to the embeddings of both numbers, one draw each.
    pub sensitivity: f64,
    /// Euclidean norm of all parameters.
    pub weight_norm: f64,
}

const MEASURES: usize = 6;
const WEIGHTS: &str = "weights.";
const MEMORY: [&str; 2] = ["memory.0.", "memory.1."];
const EPOCH: &str = "epoch";

/// R networks in training.
///
/// All parameters are one tensor [R, parameters], every operation is one for all of them, and the gradient of the sum of their losses is each
/// one's own. So a network's numbers do not depend on the others, up to rounding: libraries may add up in another order for another R.
pub struct Replicas {
    network: ModularTransformer,
    settings: Grokking,
    /// Names and shapes of one network's parameters.
    layout: Weights,
    seeds: Vec<u64>,
    /// \[R * parameters\], network after network
    flat: Tensor<1>,
    /// As `flat`.
    memory: Vec<Tensor<1>>,
    train: Batch,
    test: Batch,
    epoch: u64,
    /// Measured and still on the device, so that a GPU need not wait for the host: [R, measures] each
    waiting: Vec<Tensor<2>>,
    device: Device,
}

impl Replicas {
    /// Begins or continues the training of some networks.
    pub fn new(
        network: ModularTransformer,
        settings: Grokking,
        replicas: &[Replica],
        device: &Device,
    ) -> Result<Self, NnError> {
        settings.optimiser.check()?;
        let layout = network.empty_weights()?;
        let (mut weights, mut epochs) = (Vec::new(), Vec::new());
        let mut memory = vec![Vec::new(); settings.optimiser.memories()];
        for replica in replicas {
            let stored = replica.checkpoint.map(Stored::parse).transpose()?;
            match stored {
                None => {
                    weights.extend_from_slice(network.initial_weights(replica.seed)?.data());
                    memory.iter_mut().for_each(|memory| memory.extend_from_slice(layout.data()));
                    epochs.push(0);
                }
                Some(stored) => {
                    weights.extend_from_slice(stored.read(WEIGHTS, &layout)?.data());
                    for (memory, name) in memory.iter_mut().zip(MEMORY) {
                        memory.extend_from_slice(stored.read(name, &layout)?.data());
                    }
                    epochs.push(stored.number(EPOCH)?);
                }
            }
        }
        let epoch = epochs.first().copied().unwrap_or(0);
        if epochs.iter().any(|other| *other != epoch) {
            return Err(NnError::Stored("checkpoints of different epochs cannot train together".into()));
        }
        let upload = |values: Vec<f32>| -> Tensor<1> {
            let count = values.len();
            Tensor::from_data(TensorData::new(values, [count]), device.constant())
        };
        let train: Vec<&Pairs> = replicas.iter().map(|replica| replica.train).collect();
        let test: Vec<&Pairs> = replicas.iter().map(|replica| replica.test).collect();
        Ok(Self {
            network,
            settings,
            layout,
            seeds: replicas.iter().map(|replica| replica.seed).collect(),
            flat: upload(weights),
            memory: memory.into_iter().map(upload).collect(),
            train: Batch::upload(&train, network.modulus, device)?,
            test: Batch::upload(&test, network.modulus, device)?,
            epoch,
            waiting: Vec::new(),
            device: device.clone(),
        })
    }

    /// The epoch a checkpoint was made at.
    pub fn epoch_of(checkpoint: &[u8]) -> Result<u64, NnError> {
        Stored::parse(checkpoint)?.number(EPOCH)
    }

    /// Measures all networks as they are, then makes one step.
    pub fn advance(&mut self) -> Result<(), NnError> {
        let gradient = self.look(true);
        self.epoch += 1;
        if let Some(gradient) = gradient {
            let Grokking { optimiser, lr, .. } = self.settings;
            let rates = Rates::new(lr, self.epoch, &self.device);
            optimiser.update(&mut self.flat, gradient, &mut self.memory, &rates)?;
        }
        Ok(())
    }

    /// Measures all networks as they are.
    pub fn measure(&mut self) {
        self.look(false);
    }

    /// What was measured since the last call: by epoch, then by network. Waits for the device.
    pub fn collect(&mut self) -> Result<Vec<Vec<Measures>>, NnError> {
        if self.waiting.is_empty() {
            return Ok(Vec::new());
        }
        let values: Vec<f64> = to_vec(Tensor::cat(std::mem::take(&mut self.waiting), 0))?;
        let read = |row: &[f64]| Measures {
            train_loss: row[0],
            train_accuracy: row[1],
            test_loss: row[2],
            test_accuracy: row[3],
            sensitivity: row[4],
            weight_norm: row[5],
        };
        let networks = values.chunks_exact(MEASURES).map(read).collect::<Vec<_>>();
        Ok(networks.chunks(self.seeds.len()).map(<[Measures]>::to_vec).collect())
    }

    /// Epochs trained.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The weights of a network.
    pub fn weights(&self, replica: usize) -> Result<Weights, NnError> {
        self.part_of(&self.flat, replica)
    }

    /// Everything needed to continue a network, as one safetensors file.
    pub fn checkpoint(&self, replica: usize) -> Result<Vec<u8>, NnError> {
        let weights = self.weights(replica)?;
        let memory = self.memory.iter().map(|memory| self.part_of(memory, replica)).collect::<Result<Vec<_>, _>>()?;
        let sets: Vec<(&str, &Weights)> =
            std::iter::once((WEIGHTS, &weights)).chain(MEMORY.into_iter().zip(&memory)).collect();
        store(&sets, &[(EPOCH, self.epoch)])
    }

    fn part_of(&self, flat: &Tensor<1>, replica: usize) -> Result<Weights, NnError> {
        let count = self.layout.data().len();
        let own = replica * count..(replica + 1) * count;
        self.layout.with_data(to_vec(flat.clone().slice([own]))?)
    }

    /// All parameters as [R, parameters].
    fn table(&self) -> Tensor<2> {
        self.flat.clone().reshape([self.seeds.len(), self.layout.data().len()])
    }

    /// Measures; with `learning`, also the gradient of all training losses, \[R * parameters\].
    ///
    /// The sensitivity is that of `pudica_probe::modular_sensitivity`, by a shortcut: noise, comparison and average stay on the device, where the
    /// test pairs go through the networks with the touched ones, and are not waited for at every step. A test there holds that
    /// both give the same number.
    fn look(&mut self, learning: bool) -> Option<Tensor<1>> {
        let flat = self.table();
        let parts = Parts::new(self.network, &flat, &self.layout, learning);
        let tables = parts.tables();
        let [first, second] = tables.look_up(&self.train);
        let scores = parts.scores(first, second, &tables);
        let loss = cross_entropy(scores.clone(), &self.train.results).mean_dim(1); // [R, 1, 1]
        let gradient = learning.then(|| parts.gradient(loss.clone().sum().backward()).reshape([-1]));
        let found = if learning { scores.without_autodiff() } else { scores }.argmax(2);
        let loss = if learning { loss.without_autodiff() } else { loss };

        // The test pairs and the training pairs with noise go through the network together.
        let parts = Parts::new(self.network, &flat, &self.layout, false);
        let tables = parts.tables();
        let ([a, b], [test_a, test_b]) = (tables.look_up(&self.train), tables.look_up(&self.test));
        let [noise_a, noise_b] = self.noise().map(|noise| tables.see(noise));
        let first = Tensor::cat(vec![a + noise_a, test_a], 1);
        let second = Tensor::cat(vec![b + noise_b, test_b], 1);
        let scores = parts.scores(first, second, &tables);
        let [r, both, p] = scores.dims();
        let train = found.dims()[1];
        let test_scores = scores.clone().slice([0..r, train..both, 0..p]);
        let predicted = scores.argmax(2);
        let touched = predicted.clone().slice([0..r, 0..train, 0..1]);
        let tested = predicted.slice([0..r, train..both, 0..1]);

        let float = FloatDType::from(loss.dtype());
        let share = |mask: Tensor<3, Bool>| mask.cast(float).mean_dim(1);
        let norm = flat.square().sum_dim(1).sqrt().reshape([r, 1, 1]);
        let measures = vec![
            loss,
            share(found.clone().equal(self.train.labels.clone())),
            cross_entropy(test_scores, &self.test.results).mean_dim(1),
            share(tested.equal(self.test.labels.clone())),
            share(found.not_equal(touched)),
            norm,
        ];
        self.waiting.push(Tensor::cat(measures, 2).reshape([r, MEASURES]));
        gradient
    }

    /// Noise for the embeddings of both numbers of all training pairs, each [R, pairs, d], of this epoch and each network's own seed: from a
    /// [`Stream`] on the processor, from the device's generator elsewhere, which a stream sets.
    fn noise(&self) -> [Tensor<3>; 2] {
        let (pairs, d) = (self.train.a.dims()[1], self.network.d);
        let shape = [1, pairs, 2 * d];
        let draw = |seed: &u64| -> Tensor<3> {
            let mut stream = Stream::new(*seed, "embedding-noise", self.epoch);
            if self.device.name() == "cpu" {
                let values = (0..pairs * 2 * d).map(|_| stream.normal_f32()).collect();
                return Tensor::from_data(TensorData::new(values, shape), self.device.constant());
            }
            self.device.seed(stream.word());
            Tensor::random(shape, Distribution::Normal(0.0, 1.0), self.device.constant())
        };
        let noise = Tensor::cat(self.seeds.iter().map(draw).collect(), 0).mul_scalar(self.settings.noise);
        let r = self.seeds.len();
        [noise.clone().slice([0..r, 0..pairs, 0..d]), noise.slice([0..r, 0..pairs, d..2 * d])]
    }
}
