//! The Hessian of a trained network, in f64, measured so that it tells how far it is and ends soon after it is asked to.

use pudica_nn::NnError;
use pudica_nn::classifier::{Classifier, Model};
use pudica_probe::classifier::{LossHessian, Operator, TopEigenvalue, top_eigenvalue, trace};
use pudica_probe::{Estimate, ProbeError};

use super::dataset::Batch;
use crate::error::{Error, Result};
use crate::stop::Progress;

/// Random vectors for the trace, and steps for the largest eigenvalue (which end sooner where it is found to 1 %).
const TRACE_DRAWS: usize = 20;
const LANCZOS_STEPS: usize = 30;
const EIGENVALUE_TOLERANCE: f64 = 0.01;

/// Products that choosing the step takes, and passes that one takes of each input: two gradients, three passes each, twice as long in f64.
const CHOICE: usize = 17;
const PRODUCT_IN_PASSES: f64 = 12.0;

/// Passes of all of it at most, of so many inputs.
pub(super) fn passes(inputs: f64) -> f64 {
    inputs * PRODUCT_IN_PASSES * (CHOICE + TRACE_DRAWS + LANCZOS_STEPS) as f64
}

/// What was found.
pub(super) struct Curvature {
    pub trace: Estimate,
    pub top: TopEigenvalue,
    /// How much products may be off because of the step, as a part of their length.
    pub step_error: f64,
}

/// The curvature of the mean loss over these batches of so many inputs.
pub(super) fn curvature<C: Classifier>(
    model: &Model<C>,
    batches: &[Batch<C::Input>],
    inputs: usize,
    seed: u64,
    progress: &Progress,
) -> Result<Curvature> {
    // In f32 small steps drown in rounding and large ones cross ReLU boundaries, so the Hessian is taken in f64.
    let device = model.device().clone().double();
    let model = Model::new(model.classifier(), &model.weights()?, &model.buffers()?, &device)?;
    let operator = LossHessian::<_, f64>::new(&model, batches, seed)?;
    let (step_error, passes) = (operator.step_error(), PRODUCT_IN_PASSES * inputs as f64);
    progress.tick(CHOICE as f64 * passes)?;
    let hessian = Interruptible { operator, progress, passes };
    let measure = || -> std::result::Result<_, ProbeError> {
        let trace = trace(&hessian, TRACE_DRAWS, seed)?;
        Ok((trace, top_eigenvalue(&hessian, LANCZOS_STEPS, EIGENVALUE_TOLERANCE, seed)?))
    };
    let (trace, top) = measure().map_err(|error| if progress.stopped() { Error::Stopped } else { error.into() })?;
    Ok(Curvature { trace, top, step_error })
}

/// An operator that refuses further products once stopping is requested.
struct Interruptible<'a, O> {
    operator: O,
    progress: &'a Progress<'a>,
    /// What a product costs.
    passes: f64,
}

impl<O: Operator> Operator for Interruptible<'_, O> {
    fn size(&self) -> usize {
        self.operator.size()
    }

    fn apply(&self, vector: &[f64]) -> std::result::Result<Vec<f64>, ProbeError> {
        self.progress.tick(self.passes).map_err(|error| NnError::Computation(error.to_string()))?;
        self.operator.apply(vector)
    }
}
