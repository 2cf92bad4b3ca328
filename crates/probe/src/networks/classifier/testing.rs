//! Models whose measures are known.

use pudica_data::Stream;
use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, Model};
use pudica_nn::vision::{ImageBatch, ImageShape, MlpConfig, VisionConfig};

/// W x + b on images [channels, side, side], with W row-major [classes, pixels], on a device.
pub fn linear_on(device: &Device, channels: usize, side: usize, weight: &[f32], bias: &[f32]) -> Model<VisionConfig> {
    let images = ImageShape { channels, side, classes: bias.len() };
    let config = VisionConfig::Mlp(MlpConfig { images, hidden: vec![], ..Default::default() });
    let mut weights = config.empty_weights().unwrap();
    weights.get_mut("layers.0.weight").unwrap().copy_from_slice(weight);
    weights.get_mut("layers.0.bias").unwrap().copy_from_slice(bias);
    Model::new(&config, &weights, &config.initial_buffers(), device).unwrap()
}

/// [`linear_on`] the processor.
pub fn linear(channels: usize, side: usize, weight: &[f32], bias: &[f32]) -> Model<VisionConfig> {
    linear_on(&Device::cpu(), channels, side, weight, bias)
}

/// A perceptron with one hidden layer and initial weights.
pub fn perceptron(images: ImageShape, hidden: usize, seed: u64) -> Model<VisionConfig> {
    let config = VisionConfig::Mlp(MlpConfig { images, hidden: vec![hidden], ..Default::default() });
    Model::new(&config, &config.initial_weights(seed).unwrap(), &config.initial_buffers(), &Device::cpu()).unwrap()
}

/// Uniform pixels from -1 to 1.
pub fn random_pictures(count: usize, shape: [usize; 3]) -> ImageBatch {
    let mut stream = Stream::new(3, "pictures", count as u64);
    let values = (0..count * shape.iter().product::<usize>()).map(|_| stream.uniform_f32(-1.0, 1.0));
    ImageBatch::new(values.collect(), shape).unwrap()
}
