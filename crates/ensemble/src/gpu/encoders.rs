//! The paper's encoders, as the engine asks for them.

use pudica_nn::EncoderConfig;

use super::buffers::{Activations, Allocator, Floats, Gradients, LayerActivations};
use super::cuda::{Arg, Cuda, Grid, Memory};
use super::forward::{Inputs, Net, int, pointer};
use super::networks::{Networks, Size, Sizes};
use super::shape::{Dims, Places};
use super::strings::{Labels, TrainingStrings};
use super::trained::Trained;
use crate::{EnsembleError, Member, Precision, Shape};

/// Networks that fill the GPU.
const ENOUGH_REPLICAS: usize = 192;

/// Encoders in training.
pub(super) struct Encoders {
    dims: Dims,
    places: Places,
    sizes: Sizes,
    labels: Labels,
    strings: TrainingStrings,
    training_labels: Memory<f32>,
    activations: Activations,
    gradients: Gradients,
}

impl Encoders {
    /// For members that train on `rows` strings a step.
    pub(super) fn new(
        cuda: &Cuda,
        config: &EncoderConfig,
        dims: Dims,
        rows: usize,
        members: &[Member],
    ) -> Result<Self, EnsembleError> {
        let places = Places::of(config)?;
        let sizes = Sizes {
            n: dims.n,
            outputs: 1,
            count: places.count,
            total: places.total,
            quiet: [places.position..places.position + places.position_size, 0..0],
            norms: places.norms.clone(),
        };
        let strings = TrainingStrings::new(cuda, dims.n, rows, members)?;
        let own = (members.len(), strings.strings);
        let parts = Net::parts(&dims, own.0, own.1);
        Ok(Self {
            labels: Labels::new(cuda, members)?,
            training_labels: cuda.zeros(own.0 * own.1)?,
            activations: Activations::new(&dims, places.total, own, Allocator::Real(cuda))?,
            gradients: Gradients::new(&dims, places.total, parts, own, Allocator::Real(cuda))?,
            strings,
            dims,
            places,
            sizes,
        })
    }

    fn net<'a>(&'a self, cuda: &'a Cuda) -> Net<'a> {
        Net { cuda, dims: &self.dims, places: &self.places }
    }
}

/// The bytes of GPU memory that training takes, by the number of replicas.
pub(super) fn training_bytes(
    shape: &Shape,
    precision: Precision,
) -> Result<impl Fn(usize) -> Result<usize, EnsembleError> + use<>, EnsembleError> {
    let dims = Dims::of(&shape.encoder, precision)?;
    let parameters = Places::of(&shape.encoder)?.total;
    let strings = if dims.n <= 20 { shape.batch.min(1 << dims.n) } else { shape.batch };
    Ok(move |replicas| {
        let size = (replicas, strings);
        // Weights and both moments are f32.
        let mut bytes = 3 * replicas * parameters * size_of::<f32>();
        Activations::new(&dims, parameters, size, Allocator::Counting(precision, &mut bytes))?;
        let parts = Net::parts(&dims, replicas, strings);
        Gradients::new(&dims, parameters, parts, size, Allocator::Counting(precision, &mut bytes))?;
        Ok(bytes)
    })
}

impl Networks for Encoders {
    type Activations = Activations;

    fn sizes(&self) -> &Sizes {
        &self.sizes
    }

    fn room(&self, cuda: &Cuda, most: Size) -> Result<Activations, EnsembleError> {
        Activations::new(&self.dims, self.places.total, (most.replicas, most.strings), Allocator::Real(cuda))
    }

    fn enough_replicas(&self, _strings: usize) -> usize {
        ENOUGH_REPLICAS
    }

    fn label(
        &self,
        cuda: &Cuda,
        _room: &Activations,
        (labels, bits): (&Memory<f32>, &Memory<u8>),
        size: Size,
        sets: usize,
    ) -> Result<(), EnsembleError> {
        self.labels.put(&self.net(cuda), labels, bits, (size.replicas, size.strings, sets))
    }

    fn forward(&self, cuda: &Cuda, inputs: &Inputs, room: &mut Activations, size: Size) -> Result<(), EnsembleError> {
        (room.replicas, room.strings) = (size.replicas, size.strings);
        let net = self.net(cuda);
        let parameters = net.widened(inputs.parameters, room)?;
        net.forward(&Inputs { parameters, ..*inputs }, room, false)
    }

    fn outputs<'a>(&self, room: &'a Activations) -> &'a Floats {
        &room.outputs
    }

    fn variances<'a>(&self, room: &'a Activations) -> Vec<(&'a Floats, usize)> {
        let of_layer = |(layer, own): (usize, &'a LayerActivations)| {
            [&own.variance1, &own.variance2].map(|of| (of, self.dims.positions(layer)))
        };
        room.layers.iter().enumerate().flat_map(of_layer).collect()
    }

    fn compute_gradients(&self, cuda: &Cuda, trained: &Trained) -> Result<u64, EnsembleError> {
        let (net, replicas, own) = (self.net(cuda), trained.replicas, &self.strings);
        let step = trained.step.pointer();
        // The forward pass meets them after its tables.
        cuda.beside(|| {
            own.draw(&net, step, replicas)?;
            self.labels.put(&net, &self.training_labels, &own.bits, (replicas, own.strings, own.sets))
        })?;
        let parameters = net.widened(trained.parameters.pointer(), &self.activations)?;
        let inputs = Inputs { parameters, bits: own.bits.pointer(), sets: own.sets };
        net.forward(&inputs, &self.activations, true)?;
        let mut grid = Grid::elements(1, replicas, 0.0);
        grid.blocks.0 = 1;
        cuda.launch(
            "loss",
            grid,
            &[
                pointer(self.gradients.outputs.at()),
                pointer(trained.losses.pointer()),
                pointer(self.activations.outputs.at()),
                pointer(self.training_labels.pointer()),
                pointer(own.counts.as_ref().map_or(0, Memory::pointer)),
                pointer(step),
                pointer(trained.first.pointer()),
                int(own.strings),
                Arg::Double(1.0 / own.rows as f64),
                int(replicas),
            ],
        )?;
        net.backward(&inputs, &self.activations, &self.gradients)?;
        Ok(self.gradients.parameters.at())
    }
}
