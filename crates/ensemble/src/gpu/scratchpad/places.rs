//! Where each parameter lies in a scratchpad's vector.

use pudica_nn::{Architecture, EncoderDecoderConfig, Weights};

use crate::EnsembleError;
use crate::gpu::cuda::unusable;

/// Where the parameters of an attention begin: its in-projection [3d, d] and its out-projection [d, d], each followed by its bias.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttentionPlaces {
    pub(super) projection: usize,
    pub(super) out: usize,
}

/// Where those of a layer begin. A norm's shift follows its scale.
#[derive(Debug, Clone)]
pub(super) struct LayerPlaces {
    /// To itself, and in the decoder to the encoder's memory.
    pub(super) attentions: Vec<AttentionPlaces>,
    /// Both linear layers of the feed-forward block with their biases, one behind the other.
    pub(super) feed_forward: usize,
    /// After each attention and after the feed-forward block.
    pub(super) norms: Vec<usize>,
}

/// A stack of layers with its embeddings and its last norm.
#[derive(Debug, Clone)]
pub(super) struct StackPlaces {
    pub(super) token: usize,
    pub(super) position: usize,
    pub(super) layers: Vec<LayerPlaces>,
    pub(super) norm: usize,
}

/// Where every parameter begins in the flat vector of [`pudica_nn::Weights::data`].
#[derive(Debug, Clone)]
pub(super) struct Places {
    pub(super) encoder: StackPlaces,
    pub(super) decoder: StackPlaces,
    pub(super) head: usize,
    /// Where those begin that are no embeddings.
    pub(super) dense: usize,
    /// Parameters in all.
    pub(super) count: usize,
    /// PyTorch's names of the norms in the order they are applied.
    pub(super) norms: Vec<String>,
}

impl Places {
    pub(super) fn of(config: &EncoderDecoderConfig) -> Result<Self, EnsembleError> {
        let weights = Architecture::EncoderDecoder(config.clone()).empty_weights()?;
        let find = Finder(&weights);
        let mut norms = Vec::new();
        let mut stack = |prefix: &str, name: &str, attentions: &[&str]| -> Result<StackPlaces, EnsembleError> {
            let mut layers = Vec::new();
            for layer in 0..config.layers {
                let at = format!("transformer.{name}.layers.{layer}");
                let attention = |of: &&str| {
                    Ok(AttentionPlaces {
                        projection: find
                            .followed(&format!("{at}.{of}.in_proj_weight"), &[&format!("{at}.{of}.in_proj_bias")])?,
                        out: find.layer(&format!("{at}.{of}.out_proj"))?,
                    })
                };
                let rest = ["linear1.bias", "linear2.weight", "linear2.bias"].map(|own| format!("{at}.{own}"));
                let own = (1..=attentions.len() + 1).map(|norm| format!("{at}.norm{norm}"));
                let own: Vec<String> = own.collect();
                layers.push(LayerPlaces {
                    attentions: attentions.iter().map(attention).collect::<Result<_, EnsembleError>>()?,
                    feed_forward: find.followed(
                        &format!("{at}.linear1.weight"),
                        &rest.iter().map(String::as_str).collect::<Vec<_>>(),
                    )?,
                    norms: own.iter().map(|norm| find.layer(norm)).collect::<Result<_, _>>()?,
                });
                norms.extend(own);
            }
            let norm = format!("transformer.{name}.norm");
            let found = StackPlaces {
                token: find.one(&format!("{prefix}tok.weight"))?.start,
                position: find.one(&format!("{prefix}pos.weight"))?.start,
                layers,
                norm: find.layer(&norm)?,
            };
            norms.push(norm);
            Ok(found)
        };
        let encoder = stack("", "encoder", &["self_attn"])?;
        let decoder = stack("dec_", "decoder", &["self_attn", "multihead_attn"])?;
        let (head, dense) = (find.layer("head")?, find.dense()?);
        Ok(Self { encoder, decoder, head, dense, count: weights.data().len(), norms })
    }
}

struct Finder<'a>(&'a Weights);

impl Finder<'_> {
    fn one(&self, name: &str) -> Result<std::ops::Range<usize>, EnsembleError> {
        let found = self.0.layout().iter().find(|own| own.name == name).map(|own| own.range.clone());
        found.ok_or_else(|| unusable(format!("a scratchpad has no parameter {name}")))
    }

    /// Where the first begins, which the others must follow, as the kernels read them.
    fn followed(&self, first: &str, others: &[&str]) -> Result<usize, EnsembleError> {
        let found = self.one(first)?;
        let mut end = found.end;
        for other in others {
            let next = self.one(other)?;
            if next.start != end {
                return Err(unusable(format!("a scratchpad's parameter {other} is not where its kernels read it")));
            }
            end = next.end;
        }
        Ok(found.start)
    }

    /// Where the embeddings end, which all others must follow.
    fn dense(&self) -> Result<usize, EnsembleError> {
        let layout = self.0.layout();
        let is_embedding =
            |name: &str| ["tok.weight", "pos.weight", "dec_tok.weight", "dec_pos.weight"].contains(&name);
        let embeddings = layout.iter().take_while(|own| is_embedding(&own.name)).count();
        match layout.get(embeddings) {
            Some(first) if embeddings == 4 => Ok(first.range.start),
            _ => Err(unusable("a scratchpad's embeddings are not where its kernels write their gradients".to_string())),
        }
    }

    /// Where the weight of a linear layer or norm begins.
    fn layer(&self, name: &str) -> Result<usize, EnsembleError> {
        self.followed(&format!("{name}.weight"), &[&format!("{name}.bias")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parameter_has_a_place_of_its_own() {
        let config = EncoderDecoderConfig { layers: 3, ..EncoderDecoderConfig::paper(7) };
        let places = Places::of(&config).unwrap();
        let (d, half) = (32, 16);
        let linear = d * d + d;
        let layer = |own: &LayerPlaces| own.attentions.len() * 4 * linear + 2 * linear + own.norms.len() * 2 * d;
        let stack = |own: &StackPlaces| own.layers.iter().map(layer).sum::<usize>() + 2 * d;
        let embeddings = (2 + 3 + 2 * 7) * half;
        assert_eq!(places.count, stack(&places.encoder) + stack(&places.decoder) + embeddings + d + 1);
        assert_eq!(places.dense, embeddings);
        assert_eq!(places.norms.len(), 3 * 2 + 1 + 3 * 3 + 1);
        assert_eq!(places.norms[6], "transformer.encoder.norm");
    }
}
