//! Writing weights by hand: numbers travel through the encoder in channels.
//!
//! Channel c is the pair of coordinates (2c, 2c + 1), holding (v, -v). So every vector has mean 0, and all a LayerNorm does is to
//! multiply all channels of a position by one positive number. A construction that only ever compares channels with each other is
//! not disturbed by that; a bias would be, so none is used: the number 1 travels in a channel of its own.

use pudica_nn::{Architecture, Embed, EncoderConfig, Weights};

use crate::Result;

/// Half of the channels belong to the token and half to the position; no construction needs more than five of either.
pub(super) const SMALLEST_WIDTH: usize = 20;

/// A number's place: the i-th channel that the token's or the position's embedding can fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    /// Filled by the token, or left empty for results.
    Token(usize),
    /// Filled by the position.
    Position(usize),
}

/// The weights of an encoder, all zero but what is written.
pub(super) struct Channels {
    config: EncoderConfig,
    weights: Weights,
    /// The next unused hidden unit of each layer.
    hidden: Vec<usize>,
}

impl Channels {
    /// All weights 0, all LayerNorm gains 1.
    pub fn new(config: &EncoderConfig) -> Result<Self> {
        let mut weights = Architecture::Encoder(config.clone()).empty_weights()?;
        for layer in 0..config.layers {
            for norm in ["norm1", "norm2"] {
                weights
                    .get_mut(&format!("enc.layers.{layer}.{norm}.weight"))
                    .into_iter()
                    .flatten()
                    .for_each(|g| *g = 1.0);
            }
        }
        Ok(Self { config: config.clone(), weights, hidden: vec![0; config.layers] })
    }

    /// The finished weights.
    pub fn finish(self) -> Weights {
        self.weights
    }

    fn first_coordinate(&self, channel: Channel) -> usize {
        match channel {
            Channel::Token(index) => 2 * index,
            Channel::Position(index) => self.config.d / 2 + 2 * index,
        }
    }

    fn add(&mut self, name: &str, row: usize, column: usize, columns: usize, value: f64) {
        if let Some(values) = self.weights.get_mut(name) {
            values[row * columns + column] += value as f32;
        }
    }

    /// Row `row` of a matrix reads `factor` times the channel.
    fn read(&mut self, name: &str, row: usize, channel: Channel, factor: f64) {
        let (at, d) = (self.first_coordinate(channel), self.config.d);
        self.add(name, row, at, d, factor / 2.0);
        self.add(name, row, at + 1, d, -factor / 2.0);
    }

    /// `factor` times column `column` of a matrix of `columns` is written to the channel.
    fn write(&mut self, name: &str, column: usize, columns: usize, channel: Channel, factor: f64) {
        let at = self.first_coordinate(channel);
        self.add(name, at, column, columns, factor);
        self.add(name, at + 1, column, columns, -factor);
    }

    /// The embedding of `token` has `value` in the channel.
    pub fn token(&mut self, token: usize, index: usize, value: f64) {
        self.embed("tok.weight", token, Channel::Token(index), value, 0);
    }

    /// The embedding of `position` (from 0) has `value` in the channel.
    pub fn position(&mut self, position: usize, index: usize, value: f64) {
        self.embed("pos.weight", position, Channel::Position(index), value, self.config.d / 2);
    }

    /// Concatenated embeddings are half as wide, the second half starting at coordinate `offset`.
    fn embed(&mut self, name: &str, row: usize, channel: Channel, value: f64, offset: usize) {
        let (width, offset) = match self.config.embed {
            Embed::Concat => (self.config.d / 2, offset),
            Embed::Add => (self.config.d, 0),
        };
        let at = self.first_coordinate(channel) - offset;
        self.add(name, row, at, width, value);
        self.add(name, row, at + 1, width, -value);
    }

    /// Head `head` of a layer scores position j from position i by `factor` * query channel at i * key channel at j. (Without this
    /// it attends to all positions equally.)
    pub fn score(&mut self, layer: usize, head: usize, query: Channel, key: Channel, factor: f64) {
        let (d, width) = (self.config.d, self.config.d / self.config.heads);
        let name = format!("enc.layers.{layer}.self_attn.in_proj_weight");
        // The encoder divides scores by sqrt(width).
        self.read(&name, head * width, query, factor * (width as f64).sqrt());
        self.read(&name, d + head * width, key, 1.0);
    }

    /// Head `head` of a layer adds `factor` times its mixture of channel `from` to channel `to`.
    pub fn value(&mut self, layer: usize, head: usize, from: Channel, to: Channel, factor: f64) {
        let (d, width) = (self.config.d, self.config.d / self.config.heads);
        let name = format!("enc.layers.{layer}.self_attn");
        self.read(&format!("{name}.in_proj_weight"), 2 * d + head * width, from, 1.0);
        self.write(&format!("{name}.out_proj.weight"), head * width, d, to, factor);
    }

    /// A hidden unit of a layer's feed-forward: the ReLU of a sum of channels with their factors, added with their factors to
    /// other channels.
    pub fn unit(&mut self, layer: usize, sum: &[(Channel, f64)], to: &[(Channel, f64)]) {
        let unit = self.hidden[layer];
        self.hidden[layer] += 1;
        let name = format!("enc.layers.{layer}");
        for (channel, factor) in sum {
            self.read(&format!("{name}.linear1.weight"), unit, *channel, *factor);
        }
        for (channel, factor) in to {
            self.write(&format!("{name}.linear2.weight"), unit, self.config.ff, *channel, *factor);
        }
    }

    /// A layer's feed-forward, with its residual connection, multiplies a channel by `factor`: 0 forgets it.
    pub fn multiply(&mut self, layer: usize, channel: Channel, factor: f64) {
        self.unit(layer, &[(channel, 1.0)], &[(channel, factor - 1.0)]);
        self.unit(layer, &[(channel, -1.0)], &[(channel, 1.0 - factor)]);
    }

    /// The prediction is 1/2 + 1/2 sign(channel), when the last LayerNorm is given nothing but this channel.
    pub fn answer(&mut self, channel: Channel) {
        // Alone in the vector, the channel is normalised to ± sqrt(d / 2).
        let factor = 0.5 / (self.config.d as f64 / 2.0).sqrt();
        self.read("head.weight", 0, channel, factor);
        self.add("head.bias", 0, 0, 1, 0.5);
    }
}
