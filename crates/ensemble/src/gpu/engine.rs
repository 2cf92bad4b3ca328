//! Training on the GPU.

use std::sync::{Arc, Mutex, MutexGuard};

use pudica_nn::TrainingState;

use super::buffers::{Activations, Allocator, Gradients};
use super::cuda::{Arg, Cuda, Memory, Recording, free_memory, unusable};
use super::forward::{Inputs, Net, int, long, pointer};
use super::measure::Measuring;
use super::shape::{Dims, Places};
use super::strings::{Labels, TrainingStrings};
use crate::{
    Engine, EnsembleError, Member, Noise, NoisyResponse, NormSummary, Precision, Shape, StepWork, Strings, members,
};

/// Steps whose losses are kept on the GPU before they are fetched.
const LOSSES: usize = 1024;

/// No more replicas than this at once: the GPU is long full.
const MOST_REPLICAS: usize = 256;

/// The part of the free memory that training may take; measuring needs the rest.
const SHARE_FOR_TRAINING: f64 = 0.45;

/// An ensemble on the first CUDA GPU.
pub fn gpu(shape: Shape, members: Vec<Member>, precision: Precision) -> Result<Box<dyn Engine>, EnsembleError> {
    Ok(Box::new(Gpu::new(shape, members, precision)?))
}

/// How many networks of this shape can be trained at once on the GPU's free memory.
pub fn gpu_replicas(shape: &Shape, precision: Precision) -> Result<usize, EnsembleError> {
    let dims = Dims::of(&shape.encoder, precision)?;
    let parameters = Places::of(&shape.encoder)?.total;
    let room = (free_memory()? as f64 * SHARE_FOR_TRAINING) as usize;
    let strings = if dims.n <= 20 { shape.batch.min(1 << dims.n) } else { shape.batch };
    let fits = |replicas: usize| {
        training_bytes(&dims, parameters, (replicas, strings), precision).is_ok_and(|bytes| bytes <= room)
    };
    (1..=MOST_REPLICAS).rev().find(|replicas| fits(*replicas)).ok_or_else(|| {
        let problem =
            format!("one network of this shape needs more than {} MiB of GPU memory; use --device cpu", room >> 20);
        unusable(problem)
    })
}

fn training_bytes(
    dims: &Dims,
    parameters: usize,
    size: (usize, usize),
    precision: Precision,
) -> Result<usize, EnsembleError> {
    // Weights and both moments are f32.
    let mut bytes = 3 * size.0 * parameters * size_of::<f32>();
    Activations::new(dims, parameters, size, Allocator::Counting(precision, &mut bytes))?;
    let parts = Net::parts(dims, size.0, size.1);
    Gradients::new(dims, parameters, parts, size, Allocator::Counting(precision, &mut bytes))?;
    Ok(bytes)
}

/// An ensemble on the first CUDA GPU.
pub(super) struct Gpu {
    cuda: Arc<Mutex<Cuda>>,
    pub(super) dims: Dims,
    pub(super) places: Places,
    shape: Shape,
    pub(super) members: Vec<Member>,
    steps: u64,
    pub(super) parameters: Memory<f32>,
    moments: [Memory<f32>; 2],
    optimiser: Optimiser,
    strings: TrainingStrings,
    pub(super) labels: Labels,
    training_labels: Memory<f32>,
    activations: Activations,
    gradients: Gradients,
    losses: Memory<f64>,
    recording: Option<Recording>,
    pub(super) measuring: Measuring,
}

/// AdamW's settings and the count of steps.
struct Optimiser {
    /// [R, 5]
    settings: Memory<f64>,
    /// [R, 8]
    scalars: Memory<f32>,
    /// Steps made, and those made before the losses being kept.
    step: Memory<u64>,
    first: Memory<u64>,
}

impl Gpu {
    fn new(shape: Shape, mut members: Vec<Member>, precision: Precision) -> Result<Self, EnsembleError> {
        let rows = members::check(&shape, &members)?;
        let (dims, places) = (Dims::of(&shape.encoder, precision)?, Places::of(&shape.encoder)?);
        let shared = Cuda::open(&dims, precision)?;
        let cuda = lock(&shared)?;
        let replicas = members.len();

        let padding = vec![0.0; places.total - places.count];
        let gather = |of: fn(&TrainingState) -> &[f32]| -> Vec<f32> {
            members.iter().flat_map(|member| of(&member.state).iter().chain(&padding)).copied().collect()
        };
        let parameters = cuda.upload(&gather(|state| state.weights.data()))?;
        let moments =
            [cuda.upload(&gather(|state| &state.first_moment))?, cuda.upload(&gather(|state| &state.second_moment))?];
        let steps = members[0].state.step;
        let settings: Vec<f64> = members
            .iter()
            .map(|member| member.adamw)
            .flat_map(|adamw| [adamw.lr, adamw.betas.0, adamw.betas.1, adamw.eps, adamw.weight_decay])
            .collect();
        let optimiser = Optimiser {
            settings: cuda.upload(&settings)?,
            scalars: cuda.zeros(8 * replicas)?,
            step: cuda.upload(&[steps])?,
            first: cuda.upload(&[steps])?,
        };

        let strings = TrainingStrings::new(&cuda, dims.n, rows, &members)?;
        let size = (replicas, strings.strings);
        let activations = Activations::new(&dims, places.total, size, Allocator::Real(&cuda))?;
        let parts = Net::parts(&dims, size.0, size.1);
        let gradients = Gradients::new(&dims, places.total, parts, size, Allocator::Real(&cuda))?;
        let labels = Labels::new(&cuda, &members)?;
        let training_labels = cuda.zeros(size.0 * size.1)?;
        let losses = cuda.zeros(LOSSES * replicas)?;
        let measuring = Measuring::default();
        drop(cuda);
        for member in &mut members {
            // The GPU holds them now.
            member.state.first_moment = Vec::new();
            member.state.second_moment = Vec::new();
        }
        let (cuda, recording) = (shared, None);
        Ok(Self {
            cuda,
            dims,
            places,
            shape,
            members,
            steps,
            parameters,
            moments,
            optimiser,
            strings,
            labels,
            training_labels,
            activations,
            gradients,
            losses,
            recording,
            measuring,
        })
    }

    pub(super) fn shared(&self) -> Arc<Mutex<Cuda>> {
        self.cuda.clone()
    }

    pub(super) fn check(&self, strings: Strings) -> Result<(), EnsembleError> {
        members::check_strings(strings, &self.shape, self.members.len())
    }

    /// Strings, outputs, loss and gradient of one step; changes no network.
    fn compute_gradients(&self, net: &Net) -> Result<(), EnsembleError> {
        let (replicas, own) = (self.members.len(), &self.strings);
        let step = self.optimiser.step.pointer();
        own.draw(net, step, replicas)?;
        self.labels.put(net, &self.training_labels, &own.bits, (replicas, own.strings, own.sets))?;
        let parameters = net.widened(self.parameters.pointer(), &self.activations)?;
        let inputs = Inputs { parameters, bits: own.bits.pointer(), sets: own.sets };
        net.forward(&inputs, &self.activations, true)?;
        let mut grid = net.elements(1, replicas, 0.0);
        grid.blocks.0 = 1;
        net.cuda.launch(
            "loss",
            grid,
            &[
                pointer(self.gradients.outputs.at()),
                pointer(self.losses.pointer()),
                pointer(self.activations.outputs.at()),
                pointer(self.training_labels.pointer()),
                pointer(own.counts.as_ref().map_or(0, Memory::pointer)),
                pointer(step),
                pointer(self.optimiser.first.pointer()),
                int(own.strings),
                Arg::Double(1.0 / own.rows as f64),
                int(replicas),
            ],
        )?;
        net.backward(&inputs, &self.activations, &self.gradients)
    }

    /// One training step.
    fn make_step(&self, net: &Net) -> Result<(), EnsembleError> {
        self.compute_gradients(net)?;
        let Optimiser { settings, scalars, step, .. } = &self.optimiser;
        let (replicas, total) = (self.members.len(), self.places.total);
        let arguments =
            [pointer(scalars.pointer()), pointer(settings.pointer()), pointer(step.pointer()), int(replicas)];
        net.cuda.launch("step_scalars", net.elements(replicas, 1, 0.0), &arguments)?;
        net.cuda.launch(
            "adamw",
            net.elements(total, replicas, 7.0),
            &[
                pointer(self.parameters.pointer()),
                pointer(self.moments[0].pointer()),
                pointer(self.moments[1].pointer()),
                pointer(self.gradients.parameters.at()),
                pointer(scalars.pointer()),
                long(total),
            ],
        )?;
        let mut one = net.elements(1, 1, 0.0);
        one.threads = 1;
        net.cuda.launch("next_step", one, &[pointer(step.pointer())])
    }

    fn record(&mut self, cuda: &Cuda) -> Result<(), EnsembleError> {
        if self.recording.is_none() {
            let net = Net { cuda, dims: &self.dims, places: &self.places };
            // Once without recording: libraries load their kernels at the first call, which must not happen in a recording.
            self.compute_gradients(&net)?;
            cuda.finish()?;
            self.recording = Some(cuda.capture(|| self.make_step(&net))?);
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

impl Engine for Gpu {
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
            cuda.write(&mut self.optimiser.first, &[self.steps])?;
            self.record(&cuda)?;
            if let Some(recording) = &self.recording {
                for _ in 0..now {
                    recording.repeat()?;
                }
            }
            self.steps += now as u64;
            losses.extend(cuda.read(&self.losses, 0, now * replicas)?.chunks(replicas).map(<[f64]>::to_vec));
        }
        Ok(losses)
    }

    fn state(&self, replica: usize) -> Result<TrainingState, EnsembleError> {
        let cuda = lock(&self.cuda)?;
        let own = |memory: &Memory<f32>| cuda.read(memory, replica * self.places.total, self.places.count);
        Ok(TrainingState {
            weights: self.members[replica].state.weights.with_data(own(&self.parameters)?)?,
            first_moment: own(&self.moments[0])?,
            second_moment: own(&self.moments[1])?,
            step: self.steps,
        })
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
}
