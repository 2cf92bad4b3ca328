//! Measurements that end soon after they are asked to.

use pudica_data::Bits;
use pudica_ensemble::{Engine, EnsembleError, Noise, NoisyResponse, NormSummary, Strings};
use pudica_nn::{NnError, TrainingState, Weights};
use pudica_probe::ProbeError;

use crate::error::{Error, Result};
use crate::stop::Progress;

/// Measures on an engine that refuses further passes once stopping is requested, and ticks `per_string` units of work for each string that
/// goes through each network. A measurement cut short by a request is told apart from one that failed.
pub(super) fn interruptible<T>(
    engine: &mut dyn Engine,
    progress: &Progress,
    per_string: f64,
    measure: impl FnOnce(&mut dyn Engine) -> Result<T, ProbeError>,
) -> Result<T> {
    let mut engine = Interruptible { engine, progress, per_string };
    measure(&mut engine).map_err(|error| if progress.stopped() { Error::Stopped } else { error.into() })
}

struct Interruptible<'a> {
    engine: &'a mut dyn Engine,
    progress: &'a Progress<'a>,
    per_string: f64,
}

impl Interruptible<'_> {
    /// Called before `passes` forward passes are made.
    fn pass(&mut self, strings: Strings, passes: usize) -> Result<(), NnError> {
        let rows = match strings {
            Strings::Fresh { rows, .. } => rows,
            Strings::Shared(strings) => strings.rows(),
            Strings::Each(strings) => strings.first().map_or(0, Bits::rows),
        };
        check(self.progress)?;
        let _ = self.progress.tick(self.per_string * (rows * passes) as f64); // whether to stop was just asked
        Ok(())
    }
}

/// An error if stopping is requested.
pub(super) fn check(progress: &Progress) -> Result<(), NnError> {
    match progress.stopped() {
        true => Err(NnError::Computation("stopped on request".into())),
        false => Ok(()),
    }
}

impl Engine for Interruptible<'_> {
    fn replicas(&self) -> usize {
        self.engine.replicas()
    }

    fn steps(&self) -> u64 {
        self.engine.steps()
    }

    fn device(&self) -> String {
        self.engine.device()
    }

    fn advance(&mut self, count: usize) -> Result<Vec<Vec<f64>>, EnsembleError> {
        check(self.progress)?;
        self.engine.advance(count)
    }

    fn state(&self, replica: usize) -> Result<TrainingState, EnsembleError> {
        self.engine.state(replica)
    }

    fn weights(&self, replica: usize) -> Result<Weights, EnsembleError> {
        self.engine.weights(replica)
    }

    fn predict(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError> {
        self.pass(strings, 1)?;
        self.engine.predict(strings)
    }

    fn evaluate(&mut self, strings: Strings) -> Result<Vec<(f64, f64)>, EnsembleError> {
        self.pass(strings, 1)?;
        self.engine.evaluate(strings)
    }

    fn shake(&mut self, strings: Strings, noise: Noise) -> Result<Vec<Vec<NoisyResponse>>, EnsembleError> {
        self.pass(strings, 1 + noise.draws)?;
        self.engine.shake(strings, noise)
    }

    fn norms(&mut self, strings: Strings) -> Result<Vec<NormSummary>, EnsembleError> {
        self.pass(strings, 1)?;
        self.engine.norms(strings)
    }

    fn decode(&mut self, strings: Strings) -> Result<Option<Vec<Vec<f32>>>, EnsembleError> {
        self.pass(strings, 1)?;
        self.engine.decode(strings)
    }
}
