//! The networks on texts, from their flat settings.

use pudica_nn::text::{Attention, Gpt2Config, LstmConfig, RobertaConfig, TextConfig};

use super::config::{ModelConfig, ModelKind};
use super::network::{name_of, or};
use crate::error::{Error, Result};

impl ModelConfig {
    /// States every size of a network on texts.
    pub(super) fn fill_text_defaults(&mut self) -> Result<()> {
        let mut stated = ModelConfig::empty(self.kind);
        let own = self.text_network(0, 2)?; // tokens and classes play no part in the sizes
        stated.dropout = self.dropout;
        match own {
            TextConfig::Roberta(own) => {
                (stated.depth, stated.heads, stated.dim, stated.mlp) = (own.layers, own.heads, own.d, own.ff);
                (stated.length, stated.attention) = (own.length, name_of(&own.attention));
            }
            TextConfig::Gpt2(own) => {
                (stated.depth, stated.heads, stated.dim, stated.mlp) = (own.layers, own.heads, own.d, own.ff);
                stated.length = own.length;
            }
            TextConfig::Lstm(own) => (stated.depth, stated.dim, stated.length) = (own.layers, own.d, own.length),
        }
        *self = stated;
        Ok(())
    }

    /// The network for texts of so many different tokens and so many classes.
    pub(super) fn text_network(&self, vocabulary: usize, classes: usize) -> Result<TextConfig> {
        let dropout = self.dropout;
        Ok(match self.kind {
            ModelKind::Roberta => {
                let own = RobertaConfig::default();
                TextConfig::Roberta(RobertaConfig {
                    vocabulary,
                    length: or(self.length, own.length),
                    d: or(self.dim, own.d),
                    layers: or(self.depth, own.layers),
                    heads: or(self.heads, own.heads),
                    ff: or(self.mlp, own.ff),
                    classes,
                    dropout,
                    attention: if self.attention == "relu" { Attention::Relu } else { Attention::Softmax },
                    ..own
                })
            }
            ModelKind::Gpt2 => {
                let own = Gpt2Config::default();
                TextConfig::Gpt2(Gpt2Config {
                    vocabulary,
                    length: or(self.length, own.length),
                    d: or(self.dim, own.d),
                    layers: or(self.depth, own.layers),
                    heads: or(self.heads, own.heads),
                    ff: or(self.mlp, own.ff),
                    classes,
                    dropout,
                    ..own
                })
            }
            ModelKind::Lstm => {
                let own = LstmConfig::default();
                TextConfig::Lstm(LstmConfig {
                    vocabulary,
                    length: or(self.length, own.length),
                    d: or(self.dim, own.d),
                    layers: or(self.depth, own.layers),
                    classes,
                    dropout,
                })
            }
            _ => return Err(Error::setting("model.kind", format!("{} reads images, not texts", self.kind.name()))),
        })
    }
}
