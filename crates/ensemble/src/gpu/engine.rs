//! Training on the GPU.

use std::sync::{Arc, Mutex, MutexGuard};

use pudica_nn::{Architecture, EncoderDecoderConfig, TrainingState, Weights};

use super::cuda::{Cuda, Recording, free_memory, unusable};
use super::encoders::{self, Encoders};
use super::measure::Measuring;
use super::networks::Networks;
use super::scratchpad::{self, Scratchpads};
use super::shape::Dims;
use super::trained::{LOSSES, Trained};
use crate::{
    Engine, EnsembleError, Member, Noise, NoisyResponse, NormSummary, Precision, Shape, StepWork, Strings, members,
};

/// No more replicas than this at once: the GPU is long full.
const MOST_REPLICAS: usize = 256;

/// The part of the free memory that training may take; measuring needs the rest.
const SHARE_FOR_TRAINING: f64 = 0.45;

/// An ensemble on the first CUDA GPU.
pub fn gpu(shape: Shape, members: Vec<Member>, precision: Precision) -> Result<Box<dyn Engine>, EnsembleError> {
    let rows = members::check(&shape, &members)?;
    let dims = Dims::of(&shape.encoder, precision)?;
    let shared = Cuda::open(&dims, precision, false)?;
    let networks = Encoders::new(&*lock(&shared)?, &shape.encoder, dims, rows, &members)?;
    Ok(Box::new(Gpu::new(shared, networks, members)?))
}

/// How many networks of this shape can be trained at once on the GPU's free memory.
pub fn gpu_replicas(shape: &Shape, precision: Precision) -> Result<usize, EnsembleError> {
    let bytes = encoders::training_bytes(shape, precision)?;
    most_replicas(bytes)
}

/// Whether networks of this architecture have an engine of their own on the GPU beside the encoder's: the paper's scratchpad.
pub fn has_scratchpad_engine(config: &EncoderDecoderConfig) -> bool {
    scratchpad::is_for(config)
}

/// An ensemble of scratchpads on the first CUDA GPU, in TF32.
pub fn gpu_scratchpad(
    config: &EncoderDecoderConfig,
    batch: usize,
    members: Vec<Member>,
) -> Result<Box<dyn Engine>, EnsembleError> {
    let rows = members::check_networks(&Architecture::EncoderDecoder(config.clone()), batch, &members)?;
    let shared = Cuda::open(&scratchpad::dims(config), Precision::Tf32, true)?;
    let networks = Scratchpads::new(&*lock(&shared)?, config, rows, &members)?;
    Ok(Box::new(Gpu::new(shared, networks, members)?))
}

/// How many scratchpads of this shape can be trained at once on the GPU's free memory.
pub fn gpu_scratchpad_replicas(config: &EncoderDecoderConfig, batch: usize) -> Result<usize, EnsembleError> {
    most_replicas(scratchpad::training_bytes(config, batch)?)
}

/// How many fit, by the bytes that training so many takes.
fn most_replicas(bytes: impl Fn(usize) -> Result<usize, EnsembleError>) -> Result<usize, EnsembleError> {
    let room = (free_memory()? as f64 * SHARE_FOR_TRAINING) as usize;
    let fits = |replicas: usize| bytes(replicas).is_ok_and(|bytes| bytes <= room);
    (1..=MOST_REPLICAS).rev().find(|replicas| fits(*replicas)).ok_or_else(|| {
        let problem =
            format!("one network of this shape needs more than {} MiB of GPU memory; use --device cpu", room >> 20);
        unusable(problem)
    })
}

/// An ensemble on the first CUDA GPU.
pub(super) struct Gpu<N: Networks> {
    cuda: Arc<Mutex<Cuda>>,
    pub(super) networks: N,
    pub(super) members: Vec<Member>,
    steps: u64,
    pub(super) trained: Trained,
    recording: Option<Recording>,
    pub(super) measuring: Measuring<N::Activations>,
}

impl<N: Networks> Gpu<N> {
    fn new(shared: Arc<Mutex<Cuda>>, networks: N, mut members: Vec<Member>) -> Result<Self, EnsembleError> {
        let trained = Trained::new(&*lock(&shared)?, networks.sizes(), &members)?;
        for member in &mut members {
            // The GPU holds them now.
            member.state.first_moment = Vec::new();
            member.state.second_moment = Vec::new();
        }
        let steps = members[0].state.step;
        let (cuda, recording, measuring) = (shared, None, Measuring::default());
        Ok(Self { cuda, networks, members, steps, trained, recording, measuring })
    }

    pub(super) fn shared(&self) -> Arc<Mutex<Cuda>> {
        self.cuda.clone()
    }

    pub(super) fn check(&self, strings: Strings) -> Result<(), EnsembleError> {
        members::check_strings(strings, self.networks.sizes().n, self.members.len())
    }

    fn record(&mut self, cuda: &Cuda) -> Result<(), EnsembleError> {
        if self.recording.is_none() {
            // Once without recording: libraries load their kernels at the first call, which must not happen in a recording.
            self.networks.compute_gradients(cuda, &self.trained)?;
            cuda.finish()?;
            self.recording = Some(cuda.capture(|| {
                let gradients = self.networks.compute_gradients(cuda, &self.trained)?;
                self.trained.update(cuda, gradients)
            })?);
        }
        Ok(())
    }
}

/// The GPU, for one use by this thread.
pub(super) fn lock(cuda: &Mutex<Cuda>) -> Result<MutexGuard<'_, Cuda>, EnsembleError> {
    // Whoever panicked with it left only counters behind.
    let guard = cuda.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    guard.bind()?;
    Ok(guard)
}

impl<N: Networks> Engine for Gpu<N> {
    fn replicas(&self) -> usize {
        self.members.len()
    }

    fn steps(&self) -> u64 {
        self.steps
    }

    fn device(&self) -> String {
        self.cuda.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).name().to_string()
    }

    fn step_work(&self) -> Option<StepWork> {
        self.recording.as_ref().map(|recording| StepWork { flops: recording.flops, bytes: recording.bytes })
    }

    fn advance(&mut self, count: usize) -> Result<Vec<Vec<f64>>, EnsembleError> {
        let shared = self.shared();
        let cuda = lock(&shared)?;
        let replicas = self.members.len();
        let mut losses = Vec::with_capacity(count);
        while losses.len() < count {
            let now = (count - losses.len()).min(LOSSES);
            cuda.write(&mut self.trained.first, &[self.steps])?;
            self.record(&cuda)?;
            if let Some(recording) = &self.recording {
                for _ in 0..now {
                    recording.repeat()?;
                }
            }
            self.steps += now as u64;
            losses.extend(cuda.read(&self.trained.losses, 0, now * replicas)?.chunks(replicas).map(<[f64]>::to_vec));
        }
        Ok(losses)
    }

    fn state(&self, replica: usize) -> Result<TrainingState, EnsembleError> {
        self.trained.state(&*lock(&self.cuda)?, replica, &self.members[replica].state, self.steps)
    }

    fn weights(&self, replica: usize) -> Result<Weights, EnsembleError> {
        self.trained.weights(&*lock(&self.cuda)?, replica, &self.members[replica].state)
    }

    fn predict(&mut self, strings: Strings) -> Result<Vec<Vec<f32>>, EnsembleError> {
        self.measure_outputs(strings)
    }

    fn evaluate(&mut self, strings: Strings) -> Result<Vec<(f64, f64)>, EnsembleError> {
        self.measure_scores(strings)
    }

    fn shake(&mut self, strings: Strings, noise: Noise) -> Result<Vec<Vec<NoisyResponse>>, EnsembleError> {
        self.measure_noise(strings, noise)
    }

    fn norms(&mut self, strings: Strings) -> Result<Vec<NormSummary>, EnsembleError> {
        self.measure_norms(strings)
    }

    fn decode(&mut self, strings: Strings) -> Result<Option<Vec<Vec<f32>>>, EnsembleError> {
        self.measure_decoded(strings)
    }
}
