//! A classifier with weights: predictions and gradients.

use std::sync::Arc;

use burn::tensor::{Int, Tensor, activation};

use super::{Classifier, Pass};
use crate::autodiff::Autodiff;
use crate::layers::to_vec;
use crate::params::ParamList;
use crate::{Device, NnError, Parameters, Weights};

/// A classifier with its weights on a device.
pub struct Model<C: Classifier> {
    pub(super) classifier: C,
    pub(crate) network: Arc<C::Network>,
    params: Arc<ParamList>,
    /// Names and shapes; its values are those of the beginning.
    pub(super) layout: Weights,
    /// \[parameters\]
    pub(super) flat: Tensor<1>,
    buffer_layout: Weights,
    /// In the order of their layout.
    pub(super) buffers: Vec<Tensor<1>>,
    pub(super) device: Device,
}

impl<C: Classifier> Model<C> {
    /// Puts a classifier on a device.
    pub fn new(classifier: &C, weights: &Weights, buffers: &Weights, device: &Device) -> Result<Self, NnError> {
        classifier.check()?;
        let (network, params) = ParamList::of(|params| classifier.network(params));
        params.check(weights)?;
        params.initial_buffers().check_same_layout(buffers)?;
        let vector = |values: &[f32]| device.floats(values.to_vec(), [values.len()]);
        let parts = buffers.layout().iter();
        Ok(Self {
            classifier: classifier.clone(),
            network: Arc::new(network),
            params: Arc::new(params),
            layout: weights.clone(),
            flat: vector(weights.data()),
            buffers: parts.map(|part| vector(&buffers.data()[part.range.clone()])).collect(),
            buffer_layout: buffers.clone(),
            device: device.clone(),
        })
    }

    /// What it is.
    pub fn classifier(&self) -> &C {
        &self.classifier
    }

    /// Where it computes.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Its weights, on the host.
    pub fn weights(&self) -> Result<Weights, NnError> {
        self.layout.with_data(to_vec(self.flat.clone())?)
    }

    /// Its buffers, on the host.
    pub fn buffers(&self) -> Result<Weights, NnError> {
        let values = self.buffers.iter().map(|buffer| to_vec(buffer.clone())).collect::<Result<Vec<Vec<f32>>, _>>()?;
        self.buffer_layout.with_data(values.concat())
    }

    /// The same network with its weights moved by `direction`, in the order of [`Weights::data`]: a step along a vector.
    pub fn moved(&self, direction: &[f32]) -> Result<Self, NnError> {
        let expected = self.layout.data().len();
        if direction.len() != expected {
            return Err(NnError::Layout(format!("{} values given, {expected} needed", direction.len())));
        }
        Ok(self.with_flat(self.flat.clone() + self.device.floats(direction.to_vec(), [expected])))
    }

    /// The same network with other weights, of the same layout.
    pub fn with_weights(&self, weights: &Weights) -> Result<Self, NnError> {
        self.layout.check_same_layout(weights)?;
        Ok(self.with_flat(self.device.floats(weights.data().to_vec(), [weights.data().len()])))
    }

    /// The same network with other weights \[parameters\].
    fn with_flat(&self, flat: Tensor<1>) -> Self {
        Self {
            classifier: self.classifier.clone(),
            network: self.network.clone(),
            params: self.params.clone(),
            layout: self.layout.clone(),
            flat,
            buffer_layout: self.buffer_layout.clone(),
            buffers: self.buffers.clone(),
            device: self.device.clone(),
        }
    }

    /// The scores of a batch, row-major [batch, classes].
    pub fn predict(&self, input: &C::Input) -> Result<Vec<f32>, NnError> {
        to_vec(self.scores(input)?)
    }

    /// [`Model::predict`] in f64, for devices that compute in f64.
    pub fn predict_f64(&self, input: &C::Input) -> Result<Vec<f64>, NnError> {
        to_vec(self.scores(input)?)
    }

    pub(crate) fn scores(&self, input: &C::Input) -> Result<Tensor<2>, NnError> {
        let batch = self.classifier.upload(input, &self.device)?;
        C::forward(&self.network, &self.parameters(false), batch, &mut Pass::Evaluate)
    }

    /// The mean cross-entropy on a batch and its gradient in the order of [`Weights::data`], as in prediction: without dropout, BatchNorm by
    /// its running statistics. `E` is f32, or f64 on a device that computes in f64.
    pub fn loss_and_gradient<E: burn::tensor::Element>(
        &self,
        input: &C::Input,
        labels: &[usize],
    ) -> Result<(E, Vec<E>), NnError> {
        let labels = self.labels(labels, self.classifier.count(input))?;
        let batch = self.classifier.upload(input, &self.device)?;
        let parameters = self.parameters(true);
        let scores = C::forward(&self.network, &parameters, batch, &mut Pass::Evaluate)?;
        let (loss, gradient) = parameters.gradient(self.loss(scores, labels))?;
        let loss: Vec<E> = to_vec(loss)?;
        Ok((loss[0], to_vec(gradient)?))
    }

    /// What records this network's gradients.
    const AUTODIFF: Autodiff = if C::NATIVE_GRADIENTS { Autodiff::LibTorch } else { Autodiff::Burn };

    /// The parameters as layers see them; `recording`: with gradients in view.
    pub(crate) fn parameters(&self, recording: bool) -> Parameters {
        let autodiff = if recording { Self::AUTODIFF } else { Autodiff::Off };
        Parameters::new(&self.flat, self.params.leaves(), &self.buffers, &self.device, autodiff)
    }

    /// The labels of `count` inputs on the device: \[count, 1\]. To be called before the network computes, which a GPU's host should not
    /// have to wait for.
    pub(super) fn labels(&self, labels: &[usize], count: usize) -> Result<Tensor<2, Int>, NnError> {
        let classes = self.classifier.classes();
        if labels.len() != count {
            return Err(NnError::Batch(format!("it has {} labels for {count} inputs", labels.len())));
        }
        if let Some(label) = labels.iter().find(|label| **label >= classes) {
            return Err(NnError::Batch(format!("label {label} is not one of the network's {classes} classes")));
        }
        Ok(self.device.numbers(labels.iter().map(|label| *label as i64).collect(), [count, 1]))
    }

    /// The mean cross-entropy \[1\] of scores \[batch, classes\].
    pub(super) fn loss(&self, scores: Tensor<2>, labels: Tensor<2, Int>) -> Tensor<1> {
        #[cfg(feature = "torch")]
        if let Some(loss) = crate::native::cross_entropy(&scores, &labels) {
            return loss;
        }
        activation::log_softmax(scores, 1).gather(1, labels).mean().neg()
    }
}

impl<C: Classifier<Batch = Tensor<4>>> Model<C> {
    /// The cross-entropy of each input of a batch of images, and its gradient with respect to the pixels, as the input lies in memory.
    pub fn input_gradient(&self, input: &C::Input, labels: &[usize]) -> Result<Vec<f32>, NnError> {
        let batch = Self::AUTODIFF.leaf(self.classifier.upload(input, &self.device)?);
        let count = batch.dims()[0];
        let labels = self.labels(labels, count)?;
        let scores = C::forward(&self.network, &self.parameters(false), batch.clone(), &mut Pass::Evaluate)?;
        // The sum, not the mean: each image's gradient is then its own, however many there are.
        let loss = self.loss(scores, labels).mul_scalar(count as f64);
        let (_, gradients) = Self::AUTODIFF.gradients(loss, &[batch])?;
        to_vec(Tensor::cat(gradients, 0))
    }
}

/// The class with the highest score, for each row of scores [count, classes].
pub fn predicted(scores: &[f32], classes: usize) -> Vec<usize> {
    let highest = |row: &[f32]| (1..row.len()).fold(0, |best, at| if row[at] > row[best] { at } else { best });
    scores.chunks_exact(classes.max(1)).map(highest).collect()
}

/// The share of rows of scores [count, classes] whose highest one is the label's.
pub fn accuracy(scores: &[f32], labels: &[usize], classes: usize) -> f64 {
    let right = predicted(scores, classes).iter().zip(labels).filter(|(found, label)| found == label).count();
    right as f64 / labels.len().max(1) as f64
}

/// The mean cross-entropy of scores [count, classes].
pub fn cross_entropy(scores: &[f32], labels: &[usize], classes: usize) -> f64 {
    let of = |(row, label): (&[f32], &usize)| {
        let most = row.iter().fold(f64::NEG_INFINITY, |most, score| most.max(f64::from(*score)));
        let total: f64 = row.iter().map(|score| (f64::from(*score) - most).exp()).sum();
        most + total.ln() - f64::from(row[*label])
    };
    scores.chunks_exact(classes.max(1)).zip(labels).map(of).sum::<f64>() / labels.len().max(1) as f64
}
