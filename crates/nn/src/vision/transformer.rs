//! The pre-norm transformer in the middle of both ViTs, and how they cut images into patches.

use burn::tensor::Tensor;

use super::images::at_least_one;
use super::layers::{gelu, layer_norm, linear, multiply};
use super::param_list::ParamList;
use crate::NnError;
use crate::attention::{Attention, AttentionSpec, Mask, self_attend};
use crate::classifier::{Parameters, Pass};
use crate::init::Init;

/// The layers of a ViT.
pub(super) struct Transformer {
    /// Width of a token.
    pub(super) dim: usize,
    /// Layers.
    pub(super) depth: usize,
    /// Heads in each attention.
    pub(super) heads: usize,
    /// Width of a head's queries, keys and values.
    pub(super) dim_head: usize,
    /// Width of the feed-forward layer.
    pub(super) mlp: usize,
    /// Which of the two ViTs it belongs to.
    pub(super) kind: Kind,
}

/// What the two ViTs' layers differ in.
pub(super) enum Kind {
    /// A learned temperature, no token attends to itself, dropout.
    Local { attention: Attention, dropout: f64 },
    /// Scores divided by the root of `dim_head`, no bias after attention.
    Plain,
}

impl Transformer {
    pub(super) fn check(&self) -> Result<(), NnError> {
        at_least_one("model.dim", self.dim)?;
        at_least_one("model.depth", self.depth)?;
        at_least_one("model.heads", self.heads)?;
        at_least_one("model.dim_head", self.dim_head)?;
        at_least_one("model.mlp", self.mlp)?;
        match self.kind {
            Kind::Local { dropout, .. } => check_dropout("model.dropout", dropout),
            Kind::Plain => Ok(()),
        }
    }

    pub(super) fn declare(&self, params: &mut ParamList) {
        let inner = self.heads * self.dim_head;
        for layer in 0..self.depth {
            let attention = format!("transformer.layers.{layer}.0");
            if let Kind::Local { .. } = self.kind {
                let init = Init::Constant(-0.5 * (self.dim_head as f64).ln());
                params.add(format!("{attention}.temperature"), &[], init);
            }
            params.layer_norm(&format!("{attention}.norm"), self.dim);
            params.linear_without_bias(&format!("{attention}.to_qkv"), self.dim, 3 * inner);
            match self.kind {
                Kind::Local { .. } => params.linear(&format!("{attention}.to_out.0"), inner, self.dim),
                Kind::Plain => params.linear_without_bias(&format!("{attention}.to_out"), inner, self.dim),
            }
            let feed_forward = format!("transformer.layers.{layer}.1.net");
            params.layer_norm(&format!("{feed_forward}.0"), self.dim);
            params.linear(&format!("{feed_forward}.1"), self.dim, self.mlp);
            params.linear(&format!("{feed_forward}.{}", self.second_linear()), self.mlp, self.dim);
        }
    }

    /// Where the second linear layer stands in the feed-forward `nn.Sequential`: dropout takes a place before it.
    fn second_linear(&self) -> usize {
        match self.kind {
            Kind::Local { .. } => 4,
            Kind::Plain => 3,
        }
    }

    /// Tokens [batch, length, dim] -> [batch, length, dim]
    pub(super) fn forward(
        &self,
        parameters: &Parameters,
        mut x: Tensor<3>,
        pass: &mut Pass,
    ) -> Result<Tensor<3>, NnError> {
        for layer in 0..self.depth {
            let name = format!("transformer.layers.{layer}");
            x = self.attend(parameters, &format!("{name}.0"), x.clone(), pass)? + x;
            x = self.feed_forward(parameters, &format!("{name}.1.net"), x.clone(), pass)? + x;
        }
        Ok(x)
    }

    fn attend(&self, parameters: &Parameters, name: &str, x: Tensor<3>, pass: &mut Pass) -> Result<Tensor<3>, NnError> {
        let x = layer_norm(parameters, &format!("{name}.norm"), x)?;
        let weight = parameters.get::<2>(&format!("{name}.to_qkv.weight"))?;
        let (attention, mask, dropout) = match self.kind {
            Kind::Local { attention, dropout } => (attention, Mask::NotSelf, dropout),
            Kind::Plain => (Attention::Softmax, Mask::None, 0.0),
        };
        let spec = AttentionSpec { heads: self.heads, mask, attention, dropout };
        match self.kind {
            Kind::Local { .. } => {
                let factor = parameters.scalar(&format!("{name}.temperature"))?.exp().unsqueeze::<2>();
                let y = self_attend(x, weight, |queries| queries * factor.clone(), spec, pass);
                Ok(pass.dropout(linear(parameters, &format!("{name}.to_out.0"), y)?, dropout))
            }
            Kind::Plain => {
                let factor = (self.dim_head as f64).sqrt().recip();
                let y = self_attend(x, weight, |queries| queries.mul_scalar(factor), spec, pass);
                Ok(multiply(y, parameters.get(&format!("{name}.to_out.weight"))?, None))
            }
        }
    }

    fn feed_forward(
        &self,
        parameters: &Parameters,
        name: &str,
        x: Tensor<3>,
        pass: &mut Pass,
    ) -> Result<Tensor<3>, NnError> {
        let x = layer_norm(parameters, &format!("{name}.0"), x)?;
        let x = gelu(linear(parameters, &format!("{name}.1"), x)?);
        let second = format!("{name}.{}", self.second_linear());
        match self.kind {
            Kind::Local { dropout, .. } => {
                let y = linear(parameters, &second, pass.dropout(x, dropout))?;
                Ok(pass.dropout(y, dropout))
            }
            Kind::Plain => linear(parameters, &second, x),
        }
    }
}

/// Whether a dropout rate is one.
pub(super) fn check_dropout(setting: &'static str, rate: f64) -> Result<(), NnError> {
    match (0.0..1.0).contains(&rate) {
        true => Ok(()),
        false => Err(NnError::setting(setting, format!("must be at least 0 and below 1, but is {rate}"))),
    }
}

/// Images [batch, channels, side, side] cut into patches, row by row: [batch, patches, patch * patch * channels]
pub(super) fn patches(x: Tensor<4>, patch: usize) -> Tensor<3> {
    let [batch, channels, side, _] = x.dims();
    let across = side / patch;
    let x: Tensor<6> = x.reshape([batch, channels, across, patch, across, patch]);
    x.permute([0, 2, 4, 3, 5, 1]).reshape([batch, across * across, patch * patch * channels])
}
