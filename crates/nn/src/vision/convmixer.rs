//! ConvMixer: a convolution for each channel, then one across channels, again and again.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::images::at_least_one;
use super::layers::{Conv, batch_norm, gelu, linear, mean_pixel};
use super::param_list::ParamList;
use super::{ImageNetwork, ImageShape};
use crate::NnError;
use crate::classifier::{Parameters, Pass};

/// ConvMixer (Trockman and Kolter 2022). Its parameters have the names of its authors' `nn.Sequential`: 0 the patches' convolution, 2
/// its BatchNorm, 3 to `depth` + 2 the blocks, `depth` + 5 the classifier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConvMixerConfig {
    /// What it is shown.
    pub images: ImageShape,
    /// Side of a patch; must divide the image's.
    pub patch: usize,
    /// Channels.
    pub dim: usize,
    /// Blocks.
    pub depth: usize,
    /// Side of the depthwise convolutions' kernels; odd.
    pub kernel: usize,
}

impl Default for ConvMixerConfig {
    fn default() -> Self {
        Self { images: ImageShape::CIFAR, patch: 4, dim: 64, depth: 8, kernel: 3 }
    }
}

impl ImageNetwork for ConvMixerConfig {
    fn images(&self) -> &ImageShape {
        &self.images
    }

    fn check(&self) -> Result<(), NnError> {
        self.images.check_patch(self.patch)?;
        at_least_one("model.dim", self.dim)?;
        if self.kernel.is_multiple_of(2) {
            let problem = format!("must be odd, so that the image keeps its size, but is {}", self.kernel);
            return Err(NnError::setting("model.kernel", problem));
        }
        Ok(())
    }

    fn params(&self) -> ParamList {
        let Self { images, patch, dim, depth, kernel } = *self;
        let mut params = ParamList::default();
        params.conv("0", [dim, images.channels, patch, patch]);
        params.batch_norm("2", dim);
        for block in 3..depth + 3 {
            params.conv(&format!("{block}.0.fn.0"), [dim, 1, kernel, kernel]);
            params.batch_norm(&format!("{block}.0.fn.2"), dim);
            params.conv(&format!("{block}.1"), [dim, dim, 1, 1]);
            params.batch_norm(&format!("{block}.3"), dim);
        }
        params.linear(&format!("{}", depth + 5), dim, images.classes);
        params
    }

    fn forward(&self, parameters: &Parameters, batch: Tensor<4>, pass: &mut Pass) -> Result<Tensor<2>, NnError> {
        let patches = Conv { stride: self.patch, ..Conv::PLAIN };
        let each_channel = Conv { groups: self.dim, ..Conv::padded(self.kernel / 2) };
        let x = patches.apply_with_bias(parameters, "0", batch)?;
        let mut x = batch_norm(parameters, "2", gelu(x), pass)?;
        for block in 3..self.depth + 3 {
            let y = each_channel.apply_with_bias(parameters, &format!("{block}.0.fn.0"), x.clone())?;
            // x second: LibTorch writes sums over their first part, and the convolution's gradient needs x.
            x = batch_norm(parameters, &format!("{block}.0.fn.2"), gelu(y), pass)? + x;
            x = Conv::PLAIN.apply_with_bias(parameters, &format!("{block}.1"), x)?;
            x = batch_norm(parameters, &format!("{block}.3"), gelu(x), pass)?;
        }
        linear(parameters, &format!("{}", self.depth + 5), mean_pixel(x))
    }
}
