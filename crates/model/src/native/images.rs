//! Networks on images.

use pudica_nn::classifier::Model as Network;
use pudica_nn::vision::{ImageBatch, VisionConfig};
use pudica_nn::{Device, Weights};

use super::{Door, Label, Native, Refusal};
use crate::{Input, ModelError, ModelResult, Normalisation, Takes};

/// Images on their way to a network: normalised first.
#[derive(Debug, Clone)]
pub struct ImageDoor {
    normalisation: Normalisation,
}

/// A network on images of values 0 to 1, which are normalised before it sees them.
pub fn images(
    network: &VisionConfig,
    weights: &Weights,
    buffers: &Weights,
    normalisation: Normalisation,
    device: &Device,
    label: Label,
) -> ModelResult<Native<ImageDoor>> {
    Native::new(network, weights, buffers, device, ImageDoor { normalisation }, label)
}

impl Door for ImageDoor {
    type Network = VisionConfig;

    fn takes(&self, network: &VisionConfig) -> Takes {
        let images = network.images();
        let side = Some(images.side);
        Takes::Images { channels: Some(images.channels), height: side, width: side }
    }

    fn batch(&self, network: &VisionConfig, inputs: &[Input]) -> Result<ImageBatch, Refusal> {
        let images = network.images();
        let shape = [images.channels, images.side, images.side];
        let mut values = Vec::with_capacity(inputs.len() * shape.iter().product::<usize>());
        for input in inputs {
            let Input::Image(image) = input else { return Err(Refusal::kind(input)) };
            let [channels, height, width] = image.shape;
            if image.shape != shape || image.values.len() != shape.iter().product::<usize>() {
                return Err(Refusal::Given(format!("images of {channels} x {height} x {width}")));
            }
            values.extend(self.normalisation.apply(image));
        }
        Ok(ImageBatch::new(values, shape).map_err(ModelError::from)?)
    }

    fn normalisation(&self) -> Option<Normalisation> {
        Some(self.normalisation.clone())
    }

    /// By the chain rule: the network's gradient is that of normalised values.
    fn input_gradient(
        &self,
        network: &Network<VisionConfig>,
        inputs: &[Input],
        labels: &[usize],
    ) -> Option<Result<Vec<Vec<f32>>, Refusal>> {
        let gradient = || {
            let batch = self.batch(network.classifier(), inputs)?;
            let (plane, pixels) = (batch.height * batch.width, batch.pixels());
            let mut gradient = network.input_gradient(&batch, labels).map_err(ModelError::from)?;
            for (at, channel) in gradient.chunks_exact_mut(plane).enumerate() {
                let (_, std) = self.normalisation.of_channel(at % batch.channels);
                channel.iter_mut().for_each(|value| *value /= std);
            }
            Ok(gradient.chunks_exact(pixels).map(<[f32]>::to_vec).collect())
        };
        Some(gradient())
    }
}
