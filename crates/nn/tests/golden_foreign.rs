//! The networks of other people's checkpoints against PyTorch: outputs and gradients. The files and the script that wrote them, `checkpoints.py`,
//! are in `tests/golden`.

use pudica_nn::classifier::{Classifier, Model};
use pudica_nn::vision::{
    CifarResNetConfig, ImageBatch, ImageShape, TorchvisionResNetConfig, VisionConfig, VitConfig, VitStyle,
};
use pudica_nn::{Device, Nonlinearity};

mod golden_files;
use golden_files::{Golden, devices, widen};

/// The networks of `checkpoints.py`.
fn cases() -> Vec<(VisionConfig, Golden)> {
    let images = |channels, side| ImageShape { channels, side, classes: 3 };
    let cifar =
        |images, blocks| VisionConfig::CifarResNet(CifarResNetConfig { images, width: 2, blocks: vec![blocks; 3] });
    let torchvision = |images, width, blocks: [usize; 4], bottleneck| {
        let blocks = blocks.to_vec();
        VisionConfig::TorchvisionResNet(TorchvisionResNetConfig { images, width, blocks, bottleneck })
    };
    let torch = VitConfig {
        images: images(2, 8),
        patch: 4,
        dim: 16,
        depth: 2,
        heads: 8,
        mlp: 12,
        style: VitStyle::TorchEncoder,
        activation: Nonlinearity::Relu,
        ..VitConfig::default()
    };
    let residual = VitConfig {
        images: images(1, 6),
        patch: 3,
        dim: 8,
        mlp: 6,
        style: VitStyle::Residual { head: 5 },
        activation: Nonlinearity::Gelu,
        ..torch.clone()
    };
    [
        ("resnet20", cifar(images(3, 8), 3)),
        ("resnet32", cifar(images(1, 9), 5)),
        ("resnet18", torchvision(images(3, 32), 2, [2, 2, 2, 2], false)),
        ("resnet50", torchvision(images(3, 33), 1, [3, 4, 6, 3], true)),
        ("vit_cifar10_smmk47", VisionConfig::Vit(torch)),
        ("vit_mnist", VisionConfig::Vit(residual)),
    ]
    .into_iter()
    .map(|(name, config)| (config, Golden::read(&format!("checkpoints/{name}-expected"))))
    .collect()
}

fn model(config: &VisionConfig, golden: &Golden, device: &Device) -> (Model<VisionConfig>, ImageBatch) {
    let weights = golden.weights("weight", config.empty_weights().unwrap());
    let buffers = golden.weights("weight", config.initial_buffers());
    let side = config.images().side;
    let batch = ImageBatch::new(golden.get_f32("images"), [config.images().channels, side, side]).unwrap();
    (Model::new(config, &weights, &buffers, device).unwrap(), batch)
}

#[test]
fn outputs_and_gradients_are_pytorchs() {
    for (config, golden) in cases() {
        let labels = golden.numbers("labels");
        for device in devices() {
            let (model, batch) = model(&config, &golden, &device);
            let outputs = widen(&model.predict(&batch).unwrap());
            golden.assert_close_to_largest("outputs", &outputs, &golden.get("outputs"), 1e-5);
            let gradient = widen(&model.input_gradient(&batch, &labels).unwrap());
            golden.assert_close_to_largest("input_grad", &gradient, &golden.get("input_grad"), 1e-4);
        }
        // In f64: the same formulas to the last digits of f32.
        let (model, batch) = model(&config, &golden, &Device::cpu().double());
        golden.assert_close_to_largest("outputs", &model.predict_f64(&batch).unwrap(), &golden.get("outputs"), 1e-9);
        let (_, gradient) = model.loss_and_gradient::<f64>(&batch, &labels).unwrap();
        for parameter in config.empty_weights().unwrap().layout() {
            let name = format!("grad.{}", parameter.name);
            golden.assert_close_to_largest(&name, &gradient[parameter.range.clone()], &golden.get(&name), 1e-9);
        }
    }
}
