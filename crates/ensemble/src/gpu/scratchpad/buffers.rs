//! What passes over scratchpads keep in GPU memory.

use super::WIDTH;
use super::places::{LayerPlaces, Places, StackPlaces};
use crate::EnsembleError;
use crate::gpu::buffers::{Allocator, Floats};
use crate::gpu::networks::Size;

/// How many rows a pass has: a position of a string each.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) n: usize,
    pub(super) strings: usize,
    pub(super) replicas: usize,
}

impl Rows {
    pub(super) fn of(n: usize, Size { replicas, strings }: Size) -> Self {
        Self { n, strings, replicas }
    }

    /// Of one replica.
    pub(super) fn count(&self) -> usize {
        self.strings * self.n
    }

    /// Tiles of 32 that those of one replica fill.
    pub(super) fn tiles(&self) -> usize {
        self.count().div_ceil(32)
    }

    /// Numbers of a vector for every row, of all replicas.
    fn vectors(&self) -> usize {
        self.replicas * self.tiles() * 32 * WIDTH
    }

    fn numbers(&self) -> usize {
        self.replicas * self.count()
    }
}

/// A vector for every row that a norm has been made of, before its scale and shift, and its variance.
pub(super) struct Normed {
    pub(super) xhat: Floats,
    pub(super) variance: Floats,
}

/// An attention: its factors as halves, what it gives, and the logarithms of its sums.
pub(super) struct Attention {
    pub(super) queries: Floats,
    pub(super) keys: Floats,
    pub(super) values: Floats,
    pub(super) attended: Floats,
    pub(super) logs: Floats,
}

/// A layer. `normed` has the norms after its attentions and, last, that after the feed-forward block.
pub(super) struct Layer {
    pub(super) attentions: Vec<Attention>,
    pub(super) hidden: Floats,
    pub(super) normed: Vec<Normed>,
}

/// The encoder or the decoder.
pub(super) struct Stack {
    pub(super) embedded: Floats,
    pub(super) layers: Vec<Layer>,
    pub(super) top: Normed,
}

/// Everything a forward pass computes.
pub(super) struct Activations {
    pub(super) encoder: Stack,
    pub(super) decoder: Stack,
    /// [R, B, n]
    pub(super) outputs: Floats,
}

struct Give<'a, 'b> {
    allocator: &'a mut Allocator<'b>,
    rows: Rows,
}

impl Give<'_, '_> {
    fn vectors(&mut self) -> Result<Floats, EnsembleError> {
        self.allocator.floats(self.rows.vectors())
    }

    /// A number for each row and head.
    fn by_head(&mut self) -> Result<Floats, EnsembleError> {
        self.allocator.floats(2 * self.rows.numbers())
    }

    fn halves(&mut self) -> Result<Floats, EnsembleError> {
        self.allocator.floats(self.rows.numbers() * WIDTH / 2)
    }

    fn normed(&mut self) -> Result<Normed, EnsembleError> {
        Ok(Normed { xhat: self.vectors()?, variance: self.allocator.floats(self.rows.numbers())? })
    }

    fn attention(&mut self) -> Result<Attention, EnsembleError> {
        Ok(Attention {
            queries: self.halves()?,
            keys: self.halves()?,
            values: self.halves()?,
            attended: self.vectors()?,
            logs: self.by_head()?,
        })
    }

    fn layer(&mut self, places: &LayerPlaces) -> Result<Layer, EnsembleError> {
        Ok(Layer {
            attentions: places.attentions.iter().map(|_| self.attention()).collect::<Result<_, _>>()?,
            hidden: self.vectors()?,
            normed: places.norms.iter().map(|_| self.normed()).collect::<Result<_, _>>()?,
        })
    }

    fn stack(&mut self, places: &StackPlaces) -> Result<Stack, EnsembleError> {
        Ok(Stack {
            embedded: self.vectors()?,
            layers: places.layers.iter().map(|layer| self.layer(layer)).collect::<Result<_, _>>()?,
            top: self.normed()?,
        })
    }
}

impl Activations {
    pub(super) fn new(places: &Places, rows: Rows, allocator: &mut Allocator) -> Result<Self, EnsembleError> {
        let outputs = allocator.floats(rows.numbers())?;
        let mut give = Give { allocator, rows };
        Ok(Self { encoder: give.stack(&places.encoder)?, decoder: give.stack(&places.decoder)?, outputs })
    }
}

/// What the way back needs. Vectors are of one layer at a time.
pub(super) struct Gradients {
    /// [R, total]
    pub(super) parameters: Floats,
    /// Of what a kernel has come back to.
    pub(super) flow: Floats,
    /// Of the input of the norm after an attention, of what the attention gives, and its product with that.
    pub(super) sum: Floats,
    pub(super) attended: Floats,
    pub(super) products: Floats,
    /// Of the attention's queries, keys and values.
    pub(super) queries: Floats,
    pub(super) keys: Floats,
    pub(super) values: Floats,
    /// Of the encoder's output, which all layers of the decoder add to.
    pub(super) memory: Floats,
    /// Each block's sums for parameters [R, blocks, total], each position's for tokens [R, 3, d, n], and each block's losses as doubles.
    pub(super) parts: Floats,
    pub(super) token_parts: Floats,
    pub(super) loss_parts: Floats,
}

impl Gradients {
    pub(super) fn new(rows: Rows, total: usize, allocator: &mut Allocator) -> Result<Self, EnsembleError> {
        let parts = rows.replicas * super::backward::parts(rows);
        Ok(Self {
            parameters: allocator.floats(rows.replicas * total)?,
            parts: allocator.floats(parts * total)?,
            token_parts: allocator.floats(rows.replicas * 3 * WIDTH * rows.n)?,
            loss_parts: allocator.floats(2 * parts)?,
            flow: allocator.floats(rows.vectors())?,
            sum: allocator.floats(rows.vectors())?,
            attended: allocator.floats(rows.vectors())?,
            products: allocator.floats(2 * rows.numbers())?,
            queries: allocator.floats(rows.vectors())?,
            keys: allocator.floats(rows.vectors())?,
            values: allocator.floats(rows.vectors())?,
            memory: allocator.floats(rows.vectors())?,
        })
    }
}
