//! The networks on texts, from their flat settings.

use pudica_nn::text::{Attention, Gpt2Config, LstmConfig, RobertaConfig, TextConfig};

use super::config::{ModelConfig, ModelKind};
use super::network::{name_of, stated_or};
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
        let sizes = |own| stated_or([self.length, self.dim, self.depth, self.heads, self.mlp], own);
        Ok(match self.kind {
            ModelKind::Roberta => {
                let own = RobertaConfig::default();
                let [length, d, layers, heads, ff] = sizes([own.length, own.d, own.layers, own.heads, own.ff]);
                let attention = if self.attention == "relu" { Attention::Relu } else { Attention::Softmax };
                let own = RobertaConfig { vocabulary, classes, dropout, attention, ..own };
                TextConfig::Roberta(RobertaConfig { length, d, layers, heads, ff, ..own })
            }
            ModelKind::Gpt2 => {
                let own = Gpt2Config::default();
                let [length, d, layers, heads, ff] = sizes([own.length, own.d, own.layers, own.heads, own.ff]);
                TextConfig::Gpt2(Gpt2Config { vocabulary, length, d, layers, heads, ff, classes, dropout, ..own })
            }
            ModelKind::Lstm => {
                let own = LstmConfig::default();
                let [length, d, layers, ..] = sizes([own.length, own.d, own.layers, 0, 0]);
                TextConfig::Lstm(LstmConfig { vocabulary, length, d, layers, classes, dropout })
            }
            _ => return Err(Error::setting("model.kind", format!("{} reads images, not texts", self.kind.name()))),
        })
    }
}
