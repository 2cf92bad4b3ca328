//! An ensemble of anything that predicts, for tests: one network after the other.

use pudica_data::{Batch, Task};
use pudica_ensemble::{Engine, EnsembleError, Noise, NoisyResponse, NormSummary, Strings, response, score, shake};
use pudica_nn::TrainingState;

use crate::Model;

/// The ensemble.
pub(crate) struct Plain<M>(pub Vec<Subject<M>>);

/// A network, what it learns, and the seed that names its batches and its noise.
pub(crate) struct Subject<M> {
    pub model: M,
    pub task: Task,
    pub seed: u64,
}

impl<M: Model> Plain<M> {
    /// What `measure` makes of each network and its batch.
    fn each<R>(
        &self,
        strings: Strings,
        measure: impl Fn(&Subject<M>, Batch) -> Result<R, EnsembleError>,
    ) -> Result<Vec<R>, EnsembleError> {
        let one = |(replica, subject): (usize, &Subject<M>)| {
            let batch = match strings {
                Strings::Fresh { rows, purpose, index } => {
                    subject.task.measure_batch(rows, subject.seed, purpose, index)?
                }
                Strings::Shared(strings) => subject.task.label(strings.clone())?,
                Strings::Each(strings) => subject.task.label(strings[replica].clone())?,
            };
            measure(subject, batch)
        };
        self.0.iter().enumerate().map(one).collect()
    }
}

impl<M: Model + Send> Engine for Plain<M> {
    fn replicas(&self) -> usize {
        self.0.len()
    }

    fn steps(&self) -> u64 {
        0
    }

    fn device(&self) -> String {
        "plain".into()
    }

    fn advance(&mut self, _: usize) -> Result<Vec<Vec<f64>>, EnsembleError> {
        Err(EnsembleError::Members("they are not trained".into()))
    }

    fn state(&self, replica: usize) -> Result<TrainingState, EnsembleError> {
        Ok(TrainingState::new(self.0[replica].model.weights().clone()))
    }

    fn predict(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError> {
        self.each(strings, |subject, batch| Ok(subject.model.predict(&batch.strings)?))
    }

    fn evaluate(&mut self, strings: Strings) -> Result<Vec<(f64, f64)>, EnsembleError> {
        self.each(strings, |subject, batch| Ok(score(&subject.model.predict(&batch.strings)?, &batch.labels)))
    }

    fn shake(&mut self, strings: Strings, noise: Noise) -> Result<Vec<Vec<NoisyResponse>>, EnsembleError> {
        self.each(strings, |subject, batch| {
            let before = subject.model.predict(&batch.strings)?;
            let one = |draw| {
                let mut noisy = subject.model.weights().clone();
                shake(noisy.data_mut(), subject.model.weights().layout(), &noise, subject.seed, draw);
                let after = subject.model.with_weights(noisy)?.predict(&batch.strings)?;
                Ok(response(&before, &after, &batch.labels))
            };
            (0..noise.draws).map(one).collect()
        })
    }

    fn norms(&mut self, _: Strings) -> Result<Vec<NormSummary>, EnsembleError> {
        Err(EnsembleError::Members("they have no LayerNorms".into()))
    }
}
