//! Measurements that end soon after they are asked to.

use pudica_data::Bits;
use pudica_ensemble::{Engine, EnsembleError, Noise, NoisyResponse, NormSummary, Strings};
use pudica_nn::{NnError, TrainingState};
use pudica_probe::ProbeError;

use crate::error::{Error, Result};
use crate::trainer::Stop;

/// Measures on an engine that refuses further passes once stopping is requested, and tells `progress` how many strings have gone through
/// each network. A measurement cut short by a request is told apart from one that failed.
pub(super) fn heeding<T>(
    engine: &mut dyn Engine,
    stop: &Stop,
    progress: &mut (dyn FnMut(f64) + Send),
    measure: impl FnOnce(&mut dyn Engine) -> Result<T, ProbeError>,
) -> Result<T> {
    let mut heeding = Heeding { engine, stop, progress, strings: 0.0 };
    measure(&mut heeding).map_err(|error| if stop.requested() { Error::Stopped } else { error.into() })
}

struct Heeding<'a> {
    engine: &'a mut dyn Engine,
    stop: &'a Stop,
    progress: &'a mut (dyn FnMut(f64) + Send),
    /// Strings that have gone through each network.
    strings: f64,
}

impl Heeding<'_> {
    /// Called before `passes` forward passes are made.
    fn pass(&mut self, strings: Strings, passes: usize) -> Result<(), NnError> {
        check(self.stop)?;
        (self.progress)(self.strings);
        let rows = match strings {
            Strings::Fresh { rows, .. } => rows,
            Strings::Shared(strings) => strings.rows(),
            Strings::Each(strings) => strings.first().map_or(0, Bits::rows),
        };
        self.strings += (rows * passes) as f64;
        Ok(())
    }
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
}
