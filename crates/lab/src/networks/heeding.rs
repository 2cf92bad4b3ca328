//! Measurements that end soon after they are asked to.

use pudica_ensemble::{Engine, EnsembleError, Noise, NoisyResponse, NormSummary, Strings};
use pudica_nn::{NnError, TrainingState};
use pudica_probe::ProbeError;

use crate::error::{Error, Result};
use crate::trainer::Stop;

/// Measures on an engine that refuses further passes once stopping is requested. A measurement cut short by that is told apart from
/// one that failed.
pub(super) fn heeding<T>(
    engine: &mut dyn Engine,
    stop: &Stop,
    measure: impl FnOnce(&mut dyn Engine) -> Result<T, ProbeError>,
) -> Result<T> {
    measure(&mut Heeding { engine, stop }).map_err(|error| if stop.requested() { Error::Stopped } else { error.into() })
}

struct Heeding<'a> {
    engine: &'a mut dyn Engine,
    stop: &'a Stop,
}

/// An error if stopping is requested.
pub(super) fn check(stop: &Stop) -> Result<(), NnError> {
    match stop.requested() {
        true => Err(NnError::Computation("stopped on request".into())),
        false => Ok(()),
    }
}

impl Engine for Heeding<'_> {
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
        check(self.stop)?;
        self.engine.advance(count)
    }

    fn state(&self, replica: usize) -> Result<TrainingState, EnsembleError> {
        self.engine.state(replica)
    }

    fn predict(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError> {
        check(self.stop)?;
        self.engine.predict(strings)
    }

    fn evaluate(&mut self, strings: Strings) -> Result<Vec<(f64, f64)>, EnsembleError> {
        check(self.stop)?;
        self.engine.evaluate(strings)
    }

    fn shake(&mut self, strings: Strings, noise: Noise) -> Result<Vec<Vec<NoisyResponse>>, EnsembleError> {
        check(self.stop)?;
        self.engine.shake(strings, noise)
    }

    fn norms(&mut self, strings: Strings) -> Result<Vec<NormSummary>, EnsembleError> {
        check(self.stop)?;
        self.engine.norms(strings)
    }
}
