//! A classifier in training, one batch at a time.

use burn::tensor::{Int, Tensor};
use pudica_data::Stream;

use super::model::Model;
#[cfg(feature = "torch")]
use super::recorded::RecordedSteps;
use super::{Classifier, NEW_SHARE, Optimiser, Pass, Rates, Statistics};
use crate::layers::to_vec;
use crate::weights::{Stored, store};
use crate::{Device, NnError, Weights};

/// A classifier in training: its weights, its optimiser and how many steps it has made.
///
/// Dropout draws from the device's generator, seeded by (seed, "dropout", step): a resumed training goes on with the same numbers. The
/// generator is one for the whole process, so learners that use dropout train one at a time.
pub struct Learner<C: Classifier> {
    pub(super) model: Model<C>,
    optimiser: Optimiser,
    memory: Vec<Tensor<1>>,
    step: u64,
    seed: u64,
    /// The loss of the latest step, still on the device.
    loss: Option<Tensor<1>>,
    #[cfg(feature = "torch")]
    pub(super) recorded: RecordedSteps,
}

/// What a step is computed from, on the device.
#[derive(Clone)]
pub(super) struct StepInput<B> {
    pub(super) batch: B,
    /// \[batch, 1\]
    pub(super) labels: Tensor<2, Int>,
    /// A [`ConsistencyTerm`]: its batch and weight.
    pub(super) beside: Option<(B, f64)>,
    pub(super) rates: Rates,
}

/// A second batch whose outputs should be near the first one's: adds weight * MSE(f(x), f(input)) to the loss.
pub struct ConsistencyTerm<'a, I> {
    /// As many inputs as in the batch.
    pub input: &'a I,
    /// What the mean squared difference is multiplied with.
    pub weight: f64,
}

const WEIGHTS: &str = "weights.";
const BUFFERS: &str = "buffers.";
const MEMORY: [&str; 2] = ["memory.0.", "memory.1."];
const STEP: &str = "step";

impl<C: Classifier> Learner<C> {
    /// Starts training from these weights; `seed` names the dropout.
    pub fn new(
        classifier: &C,
        weights: &Weights,
        optimiser: Optimiser,
        seed: u64,
        device: &Device,
    ) -> Result<Self, NnError> {
        Self::with_buffers(classifier, weights, &classifier.initial_buffers(), optimiser, seed, device)
    }

    /// Starts training from these weights and running statistics, of a network that has been trained before; `seed` names the dropout.
    pub fn with_buffers(
        classifier: &C,
        weights: &Weights,
        buffers: &Weights,
        optimiser: Optimiser,
        seed: u64,
        device: &Device,
    ) -> Result<Self, NnError> {
        optimiser.check()?;
        let model = Model::new(classifier, weights, buffers, device)?;
        let memory = (0..optimiser.memories()).map(|_| model.flat.zeros_like()).collect();
        Ok(Self::of(model, optimiser, memory, 0, seed))
    }

    /// Continues from the bytes of [`Learner::checkpoint`].
    pub fn resume(
        classifier: &C,
        checkpoint: &[u8],
        optimiser: Optimiser,
        seed: u64,
        device: &Device,
    ) -> Result<Self, NnError> {
        optimiser.check()?;
        let (empty, buffers) = (classifier.empty_weights()?, classifier.initial_buffers());
        let memories = &MEMORY[..optimiser.memories()];
        let stored = Stored::parse(checkpoint)?;
        let sets: Vec<(&str, &Weights)> = [(WEIGHTS, &empty), (BUFFERS, &buffers)]
            .into_iter()
            .chain(memories.iter().map(|name| (*name, &empty)))
            .collect();
        stored.check_only(&sets)?;
        let weights = stored.read(WEIGHTS, &empty)?;
        let model = Model::new(classifier, &weights, &stored.read(BUFFERS, &buffers)?, device)?;
        let vector = |name: &&str| -> Result<Tensor<1>, NnError> {
            let values = stored.read(name, &empty)?.data().to_vec();
            let count = values.len();
            Ok(device.floats(values, [count]))
        };
        let memory = memories.iter().map(vector).collect::<Result<_, _>>()?;
        Ok(Self::of(model, optimiser, memory, stored.number(STEP)?, seed))
    }

    fn of(model: Model<C>, optimiser: Optimiser, memory: Vec<Tensor<1>>, step: u64, seed: u64) -> Self {
        Self {
            model,
            optimiser,
            memory,
            step,
            seed,
            loss: None,
            #[cfg(feature = "torch")]
            recorded: RecordedSteps::default(),
        }
    }

    /// Everything needed to continue, as one safetensors file.
    pub fn checkpoint(&self) -> Result<Vec<u8>, NnError> {
        let (weights, buffers) = (self.model.weights()?, self.model.buffers()?);
        let memory = self.memory.iter().map(|memory| weights.with_data(to_vec(memory.clone())?));
        let memory = memory.collect::<Result<Vec<_>, _>>()?;
        let sets: Vec<(&str, &Weights)> =
            [(WEIGHTS, &weights), (BUFFERS, &buffers)].into_iter().chain(MEMORY.into_iter().zip(&memory)).collect();
        store(&sets, &[(STEP, self.step)])
    }

    /// Weights and buffers as one safetensors file, under PyTorch's names.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NnError> {
        store(&[("", &self.model.weights()?), ("", &self.model.buffers()?)], &[])
    }

    /// One step at this learning rate on a batch and its labels. Its loss stays on the device until [`Learner::loss`] asks for it, so that
    /// a GPU need not wait for the host.
    pub fn step(
        &mut self,
        input: &C::Input,
        labels: &[usize],
        consistency: Option<ConsistencyTerm<C::Input>>,
        lr: f64,
    ) -> Result<(), NnError> {
        self.step += 1;
        let Model { classifier, device, .. } = &self.model;
        device.seed(Stream::new(self.seed, "dropout", self.step).word());
        let beside = |term: ConsistencyTerm<C::Input>| Ok((classifier.upload(term.input, device)?, term.weight));
        let input = StepInput {
            labels: self.model.labels(labels, classifier.count(input))?,
            batch: classifier.upload(input, device)?,
            beside: consistency.map(beside).transpose()?,
            rates: Rates::new(lr, self.step, device),
        };
        #[cfg(feature = "torch")]
        if let Some(loss) = self.replay(&input)? {
            self.loss = Some(loss);
            return Ok(());
        }
        self.loss = Some(self.compute(input)?);
        Ok(())
    }

    /// Moves weights and buffers by one step; the loss \[1\] before it.
    pub(super) fn compute(&mut self, input: StepInput<C::Batch>) -> Result<Tensor<1>, NnError> {
        let StepInput { batch, labels, beside, rates } = input;
        let model = &self.model;
        let parameters = model.parameters(true);
        let mut pass = Pass::train();
        let scores = C::forward(&model.network, &parameters, batch, &mut pass)?;
        let mut loss = model.loss(scores.clone(), labels);
        if let Some((batch, weight)) = beside {
            // BatchNorm's running statistics are those of the batch itself.
            let others = C::forward(&model.network, &parameters, batch, &mut Pass::train_without_stats())?;
            loss = loss + (scores - others).square().mean().mul_scalar(weight);
        }
        let (loss, gradient) = parameters.gradient(loss)?;
        self.optimiser.update(&mut self.model.flat, gradient, &mut self.memory, &rates)?;
        if let Pass::Train { statistics, .. } = pass {
            self.take_in(statistics);
        }
        Ok(loss)
    }

    /// The loss of the latest step, before it; `None` before the first one. Waits for the device.
    pub fn loss(&self) -> Result<Option<f32>, NnError> {
        let Some(loss) = &self.loss else { return Ok(None) };
        Ok(to_vec(loss.clone())?.first().copied())
    }

    /// Steps made so far.
    pub fn steps(&self) -> u64 {
        self.step
    }

    /// The network as it is now, for prediction.
    pub fn model(&self) -> &Model<C> {
        &self.model
    }

    /// Moves BatchNorm's running statistics towards a batch's: all of them as one vector, as a GPU minds how many operations there are, not
    /// how long they are.
    fn take_in(&mut self, statistics: Vec<Statistics>) {
        if statistics.is_empty() {
            return;
        }
        let (mut places, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new());
        for (buffer, found) in statistics.into_iter().flat_map(|found| [found.mean, found.variance]) {
            places.push(buffer.index);
            old.push(self.model.buffers[buffer.index].clone());
            new.push(found.without_autodiff());
        }
        let lengths: Vec<usize> = new.iter().map(|found| found.dims()[0]).collect();
        let all = Tensor::cat(old, 0).mul_scalar(1.0 - NEW_SHARE) + Tensor::cat(new, 0).mul_scalar(NEW_SHARE);
        for (place, moved) in places.into_iter().zip(all.split_with_sizes(lengths, 0)) {
            self.model.buffers[place] = moved;
        }
    }
}
