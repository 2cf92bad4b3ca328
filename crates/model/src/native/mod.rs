//! Networks made of pudica's own layers, as a [`Model`]: with weights, gradients and curvature.
//!
//! [`images`] and [`texts`] wrap one each; checkpoints, Hugging Face folders and pudica's own run folders come this way.

mod images;
mod texts;

pub use images::{ImageDoor, images};
pub use texts::{TextDoor, texts};

use pudica_nn::classifier::{Classifier, Model as Network};
use pudica_nn::{Device, Weights};
use pudica_probe::classifier::{LossHessian, top_eigenvalue, trace};

use crate::{About, Curvature, Input, Model, ModelError, ModelResult, Normalisation, Outputs, Scores, Takes};

/// What is known of a network beside its numbers.
#[derive(Debug, Clone, Default)]
pub struct Label {
    /// What it is called.
    pub name: String,
    /// The identity of its files and of all choices that decide its answers.
    pub digest: String,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// What its classes are called, where that is known.
    pub class_names: Vec<String>,
    /// Inputs at a time; [`BATCH`] where nobody says.
    pub batch: Option<usize>,
}

/// Inputs at a time: enough to keep the cores busy, few enough for the caches.
pub const BATCH: usize = 64;

/// Steps for the largest eigenvalue, which end sooner where it is found to this fraction.
const LANCZOS_STEPS: usize = 30;
const EIGENVALUE_TOLERANCE: f64 = 0.01;

/// How inputs reach a network of one kind.
pub trait Door: Clone + Send + 'static {
    /// The kind.
    type Network: Classifier<Network: Send + Sync> + Send + 'static;

    /// What it takes.
    fn takes(&self, network: &Self::Network) -> Takes;

    /// Inputs as the network takes them; an error of [`ModelError::Takes`] is made of what is given instead.
    fn batch(&self, network: &Self::Network, inputs: &[Input])
    -> Result<<Self::Network as Classifier>::Input, Refusal>;

    /// The scores of inputs.
    fn scores(&self, network: &Network<Self::Network>, inputs: &[Input]) -> Result<Vec<f32>, Refusal> {
        Ok(network.predict(&self.batch(network.classifier(), inputs)?).map_err(ModelError::from)?)
    }

    /// The gradient of each input's cross-entropy in the units of the input; `None` where inputs have none.
    fn input_gradient(
        &self,
        _: &Network<Self::Network>,
        _: &[Input],
        _labels: &[usize],
    ) -> Option<Result<Vec<Vec<f32>>, Refusal>> {
        None
    }

    /// What it does to images first.
    fn normalisation(&self) -> Option<Normalisation> {
        None
    }

    /// The tokens of an input; `None` where it has none.
    fn tokens(&self, _: &Input) -> Option<Result<Vec<u32>, Refusal>> {
        None
    }

    /// Features of a token's embedding.
    fn embedding_width(&self, _: &Self::Network) -> Option<usize> {
        None
    }
}

/// Why inputs do not reach a network.
#[derive(Debug)]
pub enum Refusal {
    /// It does not take such inputs: what they are.
    Given(String),
    /// Anything else.
    Error(ModelError),
}

impl From<ModelError> for Refusal {
    fn from(error: ModelError) -> Self {
        Self::Error(error)
    }
}

impl Refusal {
    /// An input of another kind than the one taken.
    fn kind(input: &Input) -> Self {
        Self::Given(input.kind().name().to_string())
    }
}

/// A network of pudica's own layers.
pub struct Native<D: Door> {
    network: Network<D::Network>,
    door: D,
    about: About,
    batch: usize,
}

impl<D: Door> Native<D> {
    /// A network with its weights and buffers on a device.
    pub fn new(
        network: &D::Network,
        weights: &Weights,
        buffers: &Weights,
        device: &Device,
        door: D,
        label: Label,
    ) -> ModelResult<Self> {
        let Label { name, digest, notes, class_names, batch } = label;
        let about = About {
            name,
            runtime: format!("pudica {}", env!("CARGO_PKG_VERSION")),
            takes: door.takes(network),
            outputs: Outputs::Logits,
            classes: network.classes(),
            class_names,
            parameters: Some(weights.data().len() as u64),
            digest,
            notes,
        };
        let network = Network::new(network, weights, buffers, device)?;
        Ok(Self { network, door, about, batch: batch.unwrap_or(BATCH).max(1) })
    }

    fn refused(&self, refusal: Refusal) -> ModelError {
        match refusal {
            Refusal::Error(error) => error,
            Refusal::Given(given) => {
                ModelError::Takes { model: self.about.name.clone(), takes: self.about.takes.to_string(), given }
            }
        }
    }

    /// One label for each input, each one of the classes.
    fn check_labels(&self, inputs: &[Input], labels: &[usize]) -> ModelResult<()> {
        let (name, classes) = (&self.about.name, self.about.classes);
        if labels.len() != inputs.len() {
            return Err(ModelError::Other(format!("{} labels for {} inputs", labels.len(), inputs.len())));
        }
        match labels.iter().find(|label| **label >= classes) {
            Some(label) => Err(ModelError::Other(format!("the label {label} is none of {name}'s {classes} classes"))),
            None => Ok(()),
        }
    }
}

impl<D: Door> Model for Native<D> {
    fn about(&self) -> &About {
        &self.about
    }

    fn batch(&self) -> usize {
        self.batch
    }

    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores> {
        let mut values = Vec::with_capacity(inputs.len() * self.about.classes);
        for some in inputs.chunks(self.batch) {
            values.extend(self.door.scores(&self.network, some).map_err(|refusal| self.refused(refusal))?);
        }
        Ok(Scores { classes: self.about.classes, values })
    }

    fn normalisation(&self) -> Option<Normalisation> {
        self.door.normalisation()
    }

    fn weights(&self) -> ModelResult<Weights> {
        Ok(self.network.weights()?)
    }

    fn with_weights(&self, weights: &Weights) -> ModelResult<Box<dyn Model>> {
        let network = self.network.with_weights(weights)?;
        Ok(Box::new(Self { network, door: self.door.clone(), about: self.about.clone(), batch: self.batch }))
    }

    fn input_gradient(&mut self, inputs: &[Input], labels: &[usize]) -> ModelResult<Vec<Vec<f32>>> {
        self.check_labels(inputs, labels)?;
        let mut gradients = Vec::with_capacity(inputs.len());
        for (inputs, labels) in inputs.chunks(self.batch).zip(labels.chunks(self.batch)) {
            let found = self.door.input_gradient(&self.network, inputs, labels);
            let found = found.ok_or_else(|| self.lacks("gradients with respect to such inputs"))?;
            gradients.extend(found.map_err(|refusal| self.refused(refusal))?);
        }
        Ok(gradients)
    }

    fn curvature(&mut self, inputs: &[Input], labels: &[usize], draws: usize, seed: u64) -> ModelResult<Curvature> {
        self.check_labels(inputs, labels)?;
        let network = &self.network;
        let batches = inputs.chunks(self.batch).zip(labels.chunks(self.batch)).map(|(inputs, labels)| {
            let batch = self.door.batch(network.classifier(), inputs).map_err(|refusal| self.refused(refusal))?;
            Ok((batch, labels.to_vec()))
        });
        let batches = batches.collect::<ModelResult<Vec<_>>>()?;
        // In f32 small steps drown in rounding and large ones cross ReLU boundaries, so the Hessian is taken in f64.
        let device = network.device().clone().double();
        let network = Network::new(network.classifier(), &network.weights()?, &network.buffers()?, &device)?;
        let hessian = LossHessian::<_, f64>::new(&network, &batches, seed)?;
        let trace = trace(&hessian, draws, seed)?;
        let top = top_eigenvalue(&hessian, LANCZOS_STEPS, EIGENVALUE_TOLERANCE, seed)?;
        Ok(Curvature { trace, top_eigenvalue: Some(top.value), step_error: hessian.step_error() })
    }

    fn tokens(&self, input: &Input) -> ModelResult<Vec<u32>> {
        let tokens = self.door.tokens(input).ok_or_else(|| self.lacks("tokens that can be reached"))?;
        tokens.map_err(|refusal| self.refused(refusal))
    }

    fn embedding_width(&self) -> ModelResult<usize> {
        let width = self.door.embedding_width(self.network.classifier());
        width.ok_or_else(|| self.lacks("embeddings that can be reached"))
    }
}
