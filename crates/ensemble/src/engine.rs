//! What an ensemble can do, whatever it computes on.

use pudica_data::{Bits, Task};
use pudica_nn::{AdamWConfig, EncoderConfig, TrainingState, Weights};

use crate::EnsembleError;

/// What all members of an ensemble share.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// The network.
    pub encoder: EncoderConfig,
    /// Strings in a training step; a training set smaller than this is trained on whole.
    pub batch: usize,
}

/// What is a member's own.
#[derive(Debug, Clone)]
pub struct Member {
    /// What it learns, and from which strings. All members train on fresh strings, or all on sets of one size.
    pub task: Task,
    /// Names its batches and its noise.
    pub seed: u64,
    /// Its optimiser.
    pub adamw: AdamWConfig,
    /// Its weights and moments. All members stand at the same step.
    pub state: TrainingState,
}

/// The strings a measure is made on. Every replica labels them by its own task.
#[derive(Debug, Clone, Copy)]
pub enum Strings<'a> {
    /// Each replica's own batch `index` of the measurement `purpose`: what `Task::measure_batch` gives for its seed.
    Fresh {
        /// Strings asked for (fewer when the whole cube is smaller).
        rows: usize,
        /// The name of the measurement.
        purpose: &'a str,
        /// Which batch of it.
        index: u64,
    },
    /// The same strings for every replica.
    Shared(&'a Bits),
    /// Own strings for each replica, equally many.
    Each(&'a [Bits]),
}

/// Noise on all weights but the positional embeddings.
#[derive(Debug, Clone, Copy)]
pub struct Noise<'a> {
    /// Its standard deviation.
    pub rho: f64,
    /// Independent directions.
    pub draws: usize,
    /// Names it: draw k of a replica is the stream (seed, "purpose/0/k", index), as `pudica_probe::NoiseName` names it.
    pub purpose: &'a str,
    /// Which batch it is drawn for.
    pub index: u64,
}

/// What one draw of weight noise did to one replica, on the scale of the {0, 1} labels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoisyResponse {
    /// MSE(f with noise, y) - MSE(f, y)
    pub loss_rise: f64,
    /// Mean of (f with noise - f)^2
    pub output_shift: f64,
}

/// The factors of one replica's LayerNorms on each string, over the positions that are computed: all of them, in the last layer
/// only the last. Row-major [rows, norms]; the norms are in the order they are applied.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NormSummary {
    /// PyTorch's names of the LayerNorms.
    pub names: Vec<String>,
    /// Largest 1/std (unbiased, no epsilon): the paper's code.
    pub unbiased_max: Vec<f32>,
    /// Mean 1/std (unbiased, no epsilon).
    pub unbiased_mean: Vec<f32>,
    /// Largest 1/sqrt(var + eps): the paper's theory.
    pub theory_max: Vec<f32>,
    /// Mean 1/sqrt(var + eps).
    pub theory_mean: Vec<f32>,
}

/// The work of one training step of all replicas.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepWork {
    /// Floating-point operations of its matrix products.
    pub flops: f64,
    /// Bytes read and written if nothing stays in caches.
    pub bytes: f64,
}

/// An ensemble on a device. Replicas are numbered as their members were given. A replica's numbers do not depend on the
/// others, nor on the number of threads (on a GPU: up to rounding).
pub trait Engine: Send {
    /// How many networks.
    fn replicas(&self) -> usize;

    /// Steps made.
    fn steps(&self) -> u64;

    /// What it computes on, for the record: "cpu", "cuda (NVIDIA H200, tf32)".
    fn device(&self) -> String;

    /// What one training step of all replicas asks of the device, where it is counted; known once a step was made.
    fn step_work(&self) -> Option<StepWork> {
        None
    }

    /// Make `count` training steps. The losses `[count][replica]` are those on each step's batch before its update. A replica whose
    /// loss is not finite is lost, which its losses show; the others go on undisturbed.
    fn advance(&mut self, count: usize) -> Result<Vec<Vec<f64>>, EnsembleError>;

    /// Everything needed to continue a replica.
    fn state(&self, replica: usize) -> Result<TrainingState, EnsembleError>;

    /// Its weights alone, where they are asked for often: moments are twice as much to fetch.
    fn weights(&self, replica: usize) -> Result<Weights, EnsembleError> {
        Ok(self.state(replica)?.weights)
    }

    /// The outputs `[replica][row]`.
    fn predict(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError>;

    /// Mean squared error and accuracy (threshold 1/2) of each replica.
    fn evaluate(&mut self, strings: Strings) -> Result<Vec<(f64, f64)>, EnsembleError>;

    /// What weight noise does `[replica][draw]`.
    fn shake(&mut self, strings: Strings, noise: Noise) -> Result<Vec<Vec<NoisyResponse>>, EnsembleError>;

    /// The LayerNorms' factors, one summary a replica.
    fn norms(&mut self, strings: Strings) -> Result<Vec<NormSummary>, EnsembleError>;

    /// The outputs `[replica][row * outputs]` of scratchpads that read what they wrote themselves, each cut at 1/2. Nothing where the engine does
    /// not compute them; [`pudica_nn::Network::decode`] does.
    fn decode(&mut self, _strings: Strings) -> Result<Option<Vec<Vec<f32>>>, EnsembleError> {
        Ok(None)
    }
}
