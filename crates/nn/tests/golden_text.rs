//! The networks on token sequences against PyTorch and `transformers`: scores, gradients, noise on embeddings, training losses.
//! The files and the script that wrote them are in `tests/golden`.

use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, Learner, Model, Optimiser};
use pudica_nn::text::{Attention, Gpt2Config, LstmConfig, RobertaConfig, Sequences, TextConfig, Touch};

mod golden_files;
use golden_files::{Golden, devices, widen};

const VOCABULARY: usize = 23;
const LENGTH: usize = 12;
const CLASSES: usize = 3;

fn cases() -> Vec<(TextConfig, Golden)> {
    let (vocabulary, length, classes, dropout) = (VOCABULARY, LENGTH, CLASSES, 0.0);
    let roberta = |d, layers, heads, ff, attention| {
        let sizes = RobertaConfig { d, layers, heads, ff, attention, ..RobertaConfig::default() };
        TextConfig::Roberta(RobertaConfig { vocabulary, length, classes, dropout, ..sizes })
    };
    let gpt2 =
        Gpt2Config { vocabulary, length, d: 8, layers: 2, heads: 2, ff: 12, classes, dropout, ..Gpt2Config::default() };
    [
        ("roberta", roberta(8, 2, 2, 12, Attention::Softmax)),
        ("roberta-relu", roberta(6, 3, 3, 10, Attention::Relu)),
        ("gpt2", TextConfig::Gpt2(gpt2)),
        ("lstm", TextConfig::Lstm(LstmConfig { vocabulary, length, d: 5, layers: 3, classes, dropout })),
    ]
    .into_iter()
    .map(|(name, config)| (config, Golden::read(&format!("text-{name}"))))
    .collect()
}

impl Golden {
    fn sequences(&self) -> Sequences {
        let ids = self.numbers("ids");
        let own = |(row, length): (&[usize], usize)| row[..length].iter().map(|id| *id as u32).collect();
        Sequences::new(ids.chunks(LENGTH).zip(self.numbers("lengths")).map(own).collect())
    }

    fn touched(&self) -> Sequences {
        let noise: Vec<f32> = self.get_f32("noise");
        let positions = self.numbers("positions");
        let noise = noise.chunks(noise.len() / positions.len());
        let touches =
            positions.iter().zip(noise).map(|(at, noise)| Some(Touch { position: *at, noise: noise.to_vec() }));
        Sequences { touches: touches.collect(), ..self.sequences() }
    }

    fn model(&self, config: &TextConfig, device: &Device) -> Model<TextConfig> {
        Model::new(config, &self.weights("weight", config.empty_weights().unwrap()), &config.initial_buffers(), device)
            .unwrap()
    }
}

#[test]
fn names_and_shapes_are_those_of_the_state_dict() {
    for (config, golden) in cases() {
        golden.assert_same_layout(&config.empty_weights().unwrap());
    }
}

#[test]
fn scores_agree_in_f32_and_f64_with_and_without_noise() {
    for (config, golden) in cases() {
        for (input, expected) in [(golden.sequences(), golden.get("scores")), (golden.touched(), golden.get("touched"))]
        {
            for device in devices() {
                let single = golden.model(&config, &device).predict(&input).unwrap();
                golden.assert_close(device.name(), &widen(&single), &expected, tolerance(&device, 1e-5));
            }
            let double = golden.model(&config, &Device::cpu().double()).predict_f64(&input).unwrap();
            golden.assert_close("scores in f64", &double, &expected, 1e-12);
        }
        assert_ne!(golden.get("scores"), golden.get("touched"));
    }
}

#[test]
fn gradients_agree_in_f32_and_f64() {
    for (config, golden) in cases() {
        let (input, labels, expected) =
            (golden.sequences(), golden.numbers("labels"), golden.flat("grad", &config.empty_weights().unwrap()));
        for device in devices() {
            let (loss, single) = golden.model(&config, &device).loss_and_gradient::<f32>(&input, &labels).unwrap();
            golden.assert_close("loss", &[f64::from(loss)], &golden.get("losses")[..1], tolerance(&device, 1e-5));
            golden.assert_close(device.name(), &widen(&single), &expected, tolerance(&device, 1e-5));
        }
        let model = golden.model(&config, &Device::cpu().double());
        let (_, double) = model.loss_and_gradient::<f64>(&input, &labels).unwrap();
        golden.assert_close("gradient in f64", &double, &expected, 1e-12);
    }
}

#[test]
fn training_losses_agree() {
    for (config, golden) in cases() {
        let (input, labels) = (golden.sequences(), golden.numbers("labels"));
        for device in devices() {
            let weights = golden.weights("weight", config.empty_weights().unwrap());
            let mut learner = Learner::new(&config, &weights, Optimiser::adamw(1e-2), 0, &device).unwrap();
            for expected in golden.get("losses") {
                learner.step(&input, &labels, None, 1e-2).unwrap();
                let loss = f64::from(learner.loss().unwrap().unwrap());
                golden.assert_close("loss", &[loss], &[expected], tolerance(&device, 2e-4));
            }
        }
    }
}

/// On a GPU, cuDNN's LSTM multiplies in TF32, as it does in PyTorch unless told otherwise.
fn tolerance(device: &Device, of_f32: f64) -> f64 {
    if device.name() == "cuda" { 5e-3 } else { of_f32 }
}
