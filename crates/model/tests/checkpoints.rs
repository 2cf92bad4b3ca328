//! Checkpoints and Hugging Face folders, as PyTorch and `transformers` wrote them, answer as they do in Python. The files, and the script that
//! wrote them, `checkpoints.py`, are in `tests/golden`.

use std::path::{Path, PathBuf};

use pudica_model::{Choices, Image, Input, Model, ModelRequest, Normalisation, Source, open};
use pudica_probe::{Sequence, TokenTouch};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/checkpoints")
}

fn opened(path: &Path, choices: Choices) -> Result<Box<dyn Model>, String> {
    open(&ModelRequest { source: Source::File(path.into()), choices }).map_err(|error| error.to_string())
}

/// What Python computed.
struct Expected(Vec<u8>);

impl Expected {
    fn read(name: &str) -> Self {
        Self(std::fs::read(folder().join(format!("{name}-expected.safetensors"))).unwrap())
    }

    fn get(&self, name: &str) -> (Vec<usize>, Vec<f32>) {
        let file = SafeTensors::deserialize(&self.0).unwrap();
        let view = file.tensor(name).unwrap();
        let values = match view.dtype() {
            Dtype::F64 => view.data().as_chunks::<8>().0.iter().map(|b| f64::from_le_bytes(*b) as f32).collect(),
            Dtype::F32 => view.data().as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect(),
            Dtype::U8 => view.data().iter().map(|byte| f32::from(*byte)).collect(),
            other => panic!("{name} is {other:?}"),
        };
        (view.shape().to_vec(), values)
    }

    fn numbers(&self, name: &str) -> Vec<usize> {
        self.get(name).1.into_iter().map(|x| x as usize).collect()
    }

    fn images(&self) -> Vec<Input> {
        let (shape, values) = self.get("images");
        let shape = [shape[1], shape[2], shape[3]];
        let image = |values: &[f32]| Input::Image(Image { shape, values: values.to_vec() });
        values.chunks_exact(shape.iter().product()).map(image).collect()
    }

    fn ids(&self, at: usize) -> Vec<u32> {
        self.numbers(&format!("ids.{at}")).into_iter().map(|id| id as u32).collect()
    }
}

/// Each by the size of the largest.
#[track_caller]
fn assert_close(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(1e-3f32, |largest, x| largest.max(x.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * largest, "{what}: {found}, Python has {expected}");
    }
}

fn side(inputs: &[Input]) -> Choices {
    let Input::Image(image) = &inputs[0] else { panic!() };
    Choices { image: Some(image.shape), ..Choices::default() }
}

/// ZIP and legacy streams, with and without what stands around the names; the architecture is found by names and shapes.
#[test]
fn checkpoints_answer_as_in_pytorch() {
    let files = [
        ("resnet20.th", "resnet20"),
        ("resnet32.pth", "resnet32"),
        ("resnet18.pth", "resnet18"),
        ("resnet50.pt", "resnet50"),
        ("vit_cifar10_smmk47.pth", "vit_cifar10_smmk47"),
        ("vit_mnist.bin", "vit_mnist"),
    ];
    for (file, architecture) in files {
        let expected = Expected::read(architecture);
        let inputs = expected.images();
        let named = Choices { architecture: Some(architecture.into()), ..side(&inputs) };
        let path = folder().join(file);
        let mut model = opened(&path, side(&inputs)).unwrap();
        let note = format!("the architecture is {architecture}.");
        assert!(model.about().notes[0].ends_with(&note), "{:?}", model.about());
        assert_close(file, &model.scores(&inputs).unwrap().values, &expected.get("outputs").1, 1e-5);
        let mut same = opened(&path, named).unwrap();
        assert_eq!(same.scores(&inputs).unwrap(), model.scores(&inputs).unwrap());
        assert_eq!(same.about().digest, model.about().digest);
        let gradient = model.input_gradient(&inputs, &expected.numbers("labels")).unwrap().concat();
        assert_close(file, &gradient, &expected.get("input_grad").1, 1e-4);
    }
}

/// A normalisation stands before the network: pixels are moved back, gradients are in the pixels' own units.
#[test]
fn normalisation_is_undone_in_scores_and_gradients() {
    let expected = Expected::read("resnet20");
    let (mean, std) = (vec![0.5, 0.25, 0.0], vec![0.5, 2.0, 4.0]);
    let normalisation = Normalisation { mean: mean.clone(), std: std.clone() };
    let inputs: Vec<Input> = expected.images();
    let plane = |at: usize| at / 64;
    let back = |input: &Input| {
        let Input::Image(image) = input else { panic!() };
        let value = |(at, x): (usize, &f32)| x * std[plane(at)] + mean[plane(at)];
        Input::Image(Image { shape: image.shape, values: image.values.iter().enumerate().map(value).collect() })
    };
    let moved: Vec<Input> = inputs.iter().map(back).collect();
    let choices = Choices { normalisation: Some(normalisation.clone()), ..side(&inputs) };
    let path = folder().join("resnet20.th");
    let mut model = opened(&path, choices).unwrap();
    assert_eq!(model.normalisation(), Some(normalisation));
    assert_close("scores", &model.scores(&moved).unwrap().values, &expected.get("outputs").1, 1e-5);
    let found = model.input_gradient(&moved, &expected.numbers("labels")).unwrap().concat();
    let (_, gradient) = expected.get("input_grad");
    let gradient: Vec<f32> = gradient.iter().enumerate().map(|(at, g)| g / std[plane(at) % 3]).collect();
    assert_close("gradient", &found, &gradient, 1e-4);
    assert_ne!(model.about().digest, opened(&path, side(&inputs)).unwrap().about().digest);
}

#[test]
fn other_types_of_numbers_and_safetensors_are_read() {
    for (file, name, tolerance) in [
        ("half.pt", "half", 1e-5),
        ("bfloat.pt", "bfloat", 1e-5),
        ("bfloat.safetensors", "bfloat", 1e-5),
        ("double.pt", "double", 1e-5),
    ] {
        let expected = Expected::read(name);
        let inputs = expected.images();
        let mut model = opened(&folder().join(file), side(&inputs)).unwrap();
        assert_close(file, &model.scores(&inputs).unwrap().values, &expected.get("outputs").1, tolerance);
    }
}

/// The whole Hessian, computed by PyTorch row after row.
#[test]
fn curvature_is_pytorchs() {
    let expected = Expected::read("vit_mnist");
    let (inputs, labels) = (expected.images(), expected.numbers("labels"));
    let mut model = opened(&folder().join("vit_mnist.bin"), Choices::default()).unwrap();
    let found = model.curvature(&inputs, &labels, 1000, 0).unwrap();
    let (trace, top) = (f64::from(expected.get("trace").1[0]), f64::from(expected.get("top").1[0]));
    let error = found.trace.std_error.unwrap();
    assert!((found.trace.mean - trace).abs() < 4.0 * error && error < 0.1 * trace.abs(), "{found:?} {trace}");
    assert!((found.top_eigenvalue.unwrap() - top).abs() < 0.01 * top, "{found:?} {top}");
    assert!(found.step_error < 1e-3, "{found:?}");
    assert!(model.curvature(&inputs, &labels[1..], 2, 0).unwrap_err().to_string().contains("2 labels for 3 inputs"));
}

#[test]
fn weights_can_be_changed() {
    let expected = Expected::read("resnet20");
    let inputs = expected.images();
    let mut model = opened(&folder().join("resnet20.th"), side(&inputs)).unwrap();
    let mut weights = model.weights().unwrap();
    assert_eq!(weights.data().len() as u64, model.about().parameters.unwrap());
    let mut same = model.with_weights(&weights).unwrap();
    assert_eq!(same.scores(&inputs).unwrap(), model.scores(&inputs).unwrap());
    weights.get_mut("linear.bias").unwrap()[1] += 2.5;
    let moved = model.with_weights(&weights).unwrap().scores(&inputs).unwrap();
    for (moved, before) in moved.rows().zip(model.scores(&inputs).unwrap().rows()) {
        assert!((moved[1] - before[1] - 2.5).abs() < 1e-4 && moved[0] == before[0]);
    }
}

#[test]
fn texts_answer_as_in_transformers() {
    let texts = ["the film is good", "a bad bad film is a bad bad film is bad", "good"];
    for name in ["roberta", "gpt2"] {
        let expected = Expected::read(name);
        let mut model = opened(&folder().join(name), Choices::default()).unwrap();
        assert_eq!(model.about().class_names, ["negative", "neutral", "positive"]);
        assert_eq!(model.about().notes, ["Texts are cut to 12 tokens."]);
        let mut inputs: Vec<Input> = texts.iter().map(|text| Input::Text(text.to_string(), None)).collect();
        inputs.push(Input::Text(texts[0].into(), Some(texts[2].into())));
        for (at, input) in inputs.iter().enumerate() {
            assert_eq!(model.tokens(input).unwrap(), expected.ids(at), "{name} {at}");
        }
        // The last is the first with padding behind it, which GPT-2 does not read.
        inputs.push(Input::Tokens(Sequence { ids: expected.ids(4), touch: None }));
        let scores = model.scores(&inputs).unwrap();
        assert_close(name, &scores.values, &expected.get("outputs").1, 1e-5);
        // One by one, and together: padding inside a batch changes nothing.
        for (row, input) in scores.rows().zip(&inputs) {
            assert_close(name, &model.scores(std::slice::from_ref(input)).unwrap().values, row, 1e-5);
        }
        assert_eq!(model.embedding_width().unwrap(), 8);
        let touch = TokenTouch { position: 1, noise: expected.get("noise").1 };
        let touched = Input::Tokens(Sequence { ids: expected.ids(0), touch: Some(touch) });
        let found = model.scores(&[touched.clone(), touched]).unwrap();
        found.rows().for_each(|row| assert_close(name, row, &expected.get("touched").1, 1e-5));
        let image = Input::Image(Image { shape: [1, 1, 1], values: vec![0.0] });
        assert!(model.scores(&[image]).unwrap_err().to_string().contains("takes texts, but the inputs are images"));
        let curvature = model.curvature(&inputs[..3], &expected.numbers("labels"), 2, 0).unwrap();
        assert!(curvature.step_error < 1e-2 && curvature.top_eigenvalue.unwrap() > 0.0, "{curvature:?}");
        assert!(model.input_gradient(&inputs[..1], &[0]).unwrap_err().to_string().contains("has no gradients"));
    }
}

#[test]
fn pictures_answer_as_in_transformers() {
    let expected = Expected::read("vit");
    let inputs = expected.images();
    let mut model = opened(&folder().join("vit"), Choices::default()).unwrap();
    assert_eq!(model.normalisation().unwrap().mean, [0.5, 0.4, 0.3]);
    assert_close("vit", &model.scores(&inputs).unwrap().values, &expected.get("outputs").1, 1e-5);
    let gradient = model.input_gradient(&inputs, &expected.numbers("labels")).unwrap().concat();
    assert_close("vit", &gradient, &expected.get("input_grad").1, 1e-4);
    // Without the prefix of names, and without a preprocessor: the normalisation is the inputs'.
    let choices = Choices { inputs_normalisation: model.normalisation(), ..Choices::default() };
    let mut bare = opened(&folder().join("vit-bare"), choices).unwrap();
    assert_eq!(bare.scores(&inputs).unwrap(), model.scores(&inputs).unwrap());
    let wide = Input::Image(Image { shape: [3, 9, 9], values: vec![0.0; 243] });
    assert!(model.scores(&[wide]).unwrap_err().to_string().contains("but the inputs are images of 3 x 9 x 9"));
}

#[test]
fn what_does_not_fit_is_said_in_a_sentence() {
    let refused = |file: &str, architecture: Option<&str>| {
        let choices = Choices { architecture: architecture.map(String::from), ..Choices::default() };
        opened(&folder().join(file), choices).err().unwrap()
    };
    let unknown = refused("unknown.pt", None);
    assert!(
        unknown.contains("fits none of the architectures resnet20, ") && unknown.contains("some.bias"),
        "{unknown}"
    );
    let deeper = refused("resnet32.pth", Some("resnet20"));
    assert!(deeper.contains("is not a resnet20: layer1.3.bn1.bias is not one of its parameters"), "{deeper}");
    let other = refused("resnet20.th", Some("vit_mnist"));
    assert!(other.contains("is not a vit_mnist: its tensors have other names"), "{other}");
    let misspelt = refused("resnet20.th", Some("resnet21"));
    assert!(misspelt.contains("no architecture 'resnet21'") && misspelt.contains("did you mean"), "{misspelt}");
}
