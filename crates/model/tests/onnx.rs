//! ONNX files against ONNX Runtime's answers (`tests/golden/onnx/make.py`), and files that are damaged or worse.
//!
//! Tests with ONNX Runtime itself run where `PUDICA_ORT` names its library or the folder of that.

use std::path::{Path, PathBuf};

use pudica_model::{
    Choices, Image, Input, Model, ModelRequest, ModelResult, Normalisation, Outputs, Runtime, Source, Takes, open,
};
use pudica_probe::Sequence;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    file: String,
    kind: String,
    shape: Vec<usize>,
    inputs: Vec<Vec<f32>>,
    output: String,
    classes: usize,
    scores: Vec<f32>,
    normalise: Option<String>,
    outputs: Option<Outputs>,
    vocabulary: Option<usize>,
    weights: Option<Vec<String>>,
    #[serde(default = "usual")]
    within: f32,
    #[serde(default)]
    ort_only: bool,
}

fn usual() -> f32 {
    1e-4
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/onnx")
}

fn cases() -> Vec<Case> {
    serde_json::from_str(&std::fs::read_to_string(folder().join("cases.json")).unwrap()).unwrap()
}

fn case_of(file: &str) -> Case {
    cases().into_iter().find(|case| case.file == file).unwrap()
}

impl Case {
    fn inputs(&self) -> Vec<Input> {
        let input = |values: &Vec<f32>| match self.kind.as_str() {
            "images" => Input::Image(Image { shape: self.shape.clone().try_into().unwrap(), values: values.clone() }),
            "rows" => Input::Row(values.clone()),
            "tokens" => tokens(&values.iter().map(|id| *id as u32).collect::<Vec<_>>()),
            "bits" => Input::Bits(values.iter().map(|bit| *bit as u8).collect()),
            other => panic!("{other}"),
        };
        self.inputs.iter().map(input).collect()
    }

    fn open(&self, runtime: Runtime) -> ModelResult<Box<dyn Model>> {
        let normalisation = self.normalise.as_ref().map(|name| Normalisation::preset(name).unwrap());
        let output = Some(self.output.clone());
        open_with(
            &folder().join(&self.file),
            Choices { runtime: Some(runtime), normalisation, output, ..Choices::default() },
        )
    }
}

fn tokens(ids: &[u32]) -> Input {
    Input::Tokens(Sequence { ids: ids.to_vec(), touch: None })
}

fn open_with(path: &Path, choices: Choices) -> ModelResult<Box<dyn Model>> {
    open(&ModelRequest { source: Source::File(path.into()), choices })
}

fn golden(file: &str) -> Box<dyn Model> {
    open_with(&folder().join(file), Choices::default()).unwrap()
}

fn refusal(path: &Path, choices: Choices) -> String {
    match open_with(path, choices) {
        Ok(model) => panic!("{} was opened: {:?}", path.display(), model.about()),
        Err(error) => error.to_string(),
    }
}

fn largest_difference(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

fn ort_is_here() -> bool {
    let found = std::env::var_os("PUDICA_ORT").is_some();
    if !found {
        eprintln!("not tried with ONNX Runtime: PUDICA_ORT is not set");
    }
    found
}

/// Every case through one engine, all inputs together and one alone.
fn compare(runtime: Runtime) {
    for case in cases().iter().filter(|case| runtime == Runtime::Ort || !case.ort_only) {
        let mut model = case.open(runtime).unwrap();
        assert_eq!(model.about().classes, case.classes, "{}", case.file);
        let expected = case.outputs.unwrap_or(Outputs::Logits);
        assert_eq!(model.about().outputs, expected, "{}: {:?}", case.file, model.about().notes);
        let inputs = case.inputs();
        let scores = model.scores(&inputs).unwrap();
        let apart = largest_difference(&scores.values, &case.scores);
        assert!(apart < case.within, "{} by {}: {apart}", case.file, model.about().runtime);
        // Alone, an input's answer is the same: what fills up a batch does not matter.
        let alone = model.scores(&inputs[1..2]).unwrap();
        let expected = &case.scores[case.classes..2 * case.classes];
        assert!(largest_difference(&alone.values, expected) < case.within, "{}", case.file);
        if let Some(expected) = case.vocabulary {
            assert!(matches!(model.about().takes, Takes::Tokens { vocabulary: Some(found), .. } if found == expected));
        }
    }
}

#[test]
fn the_inputs_normalisation_holds_where_the_model_has_none() {
    let case = case_of("cnn.onnx");
    let with = |normalisation: Option<&str>, of_inputs: Option<&str>| {
        let preset = |name: &str| Normalisation::preset(name).unwrap();
        let choices = Choices {
            runtime: Some(Runtime::Tract),
            normalisation: normalisation.map(preset),
            inputs_normalisation: of_inputs.map(preset),
            ..Choices::default()
        };
        let mut model = open_with(&folder().join(&case.file), choices).unwrap();
        (model.scores(&case.inputs()).unwrap().values, model.normalisation(), model.about().digest.clone())
    };
    let (none, of_inputs) = (with(None, None), with(None, Some("imagenet")));
    assert_eq!(of_inputs, with(Some("imagenet"), None));
    assert_eq!(of_inputs, with(Some("imagenet"), Some("bytes")));
    assert!(none.0 != of_inputs.0 && none.2 != of_inputs.2);
    assert_eq!((none.1, of_inputs.1), (None, Normalisation::preset("imagenet")));
}

#[test]
fn tract_answers_as_onnx_runtime_does() {
    compare(Runtime::Tract);
}

#[test]
fn onnx_runtime_answers_as_it_does_in_python() {
    if ort_is_here() {
        compare(Runtime::Ort);
    }
}

/// Weights under their names; the same ones give the same answers, zeros give zero, and twice those of a linear model twice its scores.
fn change_weights(runtime: Runtime) {
    for case in cases().iter().filter(|case| case.weights.is_some()) {
        let model = case.open(runtime).unwrap();
        let weights = model.weights().unwrap();
        let names: Vec<&str> = weights.layout().iter().map(|parameter| parameter.name.as_str()).collect();
        assert_eq!(names, *case.weights.as_ref().unwrap(), "{}", case.file);
        assert_eq!(model.about().parameters, Some(weights.data().len() as u64));
        let answer = |data: Vec<f32>| {
            let mut changed = model.with_weights(&weights.with_data(data).unwrap()).unwrap();
            changed.scores(&case.inputs()).unwrap().values
        };
        assert!(largest_difference(&answer(weights.data().to_vec()), &case.scores) < case.within, "{}", case.file);
        // Of parity the last bias is one number, which is no weight here.
        let left = if case.file == "parity.onnx" { -0.5 } else { 0.0 };
        let zeros = answer(vec![0.0; weights.data().len()]);
        assert!(zeros.iter().all(|score| (score - left).abs() < 1e-6), "{}: {zeros:?}", case.file);
        if case.file == "linear.onnx" {
            let doubled = answer(weights.data().iter().map(|weight| 2.0 * weight).collect());
            let expected: Vec<f32> = case.scores.iter().map(|score| 2.0 * score).collect();
            assert!(largest_difference(&doubled, &expected) < 1e-4);
        }
        let other = pudica_nn::Weights::zeros([("other", [2].as_slice())]);
        assert!(model.with_weights(&other).is_err());
    }
}

#[test]
fn weights_of_tract_can_be_changed() {
    change_weights(Runtime::Tract);
}

#[test]
fn weights_of_onnx_runtime_can_be_changed() {
    if ort_is_here() {
        change_weights(Runtime::Ort);
    }
}

#[test]
fn a_linear_model_is_its_closed_form() {
    let case = case_of("linear.onnx");
    let mut model = golden("linear.onnx");
    let weights = model.weights().unwrap();
    let ((_, w), (_, b)) = (weights.get("w").unwrap(), weights.get("b").unwrap());
    let scores = model.scores(&case.inputs()).unwrap();
    for (values, row) in case.inputs.iter().zip(scores.rows()) {
        for class in 0..2 {
            let dot: f32 = w[class * 192..][..192].iter().zip(values).map(|(w, x)| w * x).sum();
            assert!((dot + b[class] - row[class]).abs() < 1e-4);
        }
    }
}

#[test]
fn bits_as_signs() {
    let signs = Choices { signs: true, ..Choices::default() };
    let mut model = open_with(&folder().join("parity.onnx"), signs).unwrap();
    // Eight ones sum to 8, as signs and as bits; four of eight to 0 as signs; three ones to -2, which is below all thresholds.
    let bits = |ones: usize| Input::Bits((0..8).map(|bit| u8::from(bit < ones)).collect());
    assert_eq!(model.scores(&[bits(8), bits(4), bits(3)]).unwrap().values, [-0.5, -0.5, -0.5]);
    let mut plain = golden("parity.onnx");
    let row = Input::Row(vec![1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
    assert_eq!(plain.scores(&[bits(8), bits(4), bits(3), row]).unwrap().values, [-0.5, -0.5, 0.5, 0.5]);
}

#[test]
fn what_a_model_takes() {
    let about = |file: &str| golden(file).about().clone();
    let images = |channels, height, width| Takes::Images { channels: Some(channels), height, width };
    assert_eq!(about("cnn.onnx").takes, images(3, Some(16), Some(16)));
    assert_eq!(about("bytes-nhwc.onnx").takes, images(3, Some(10), Some(10)));
    assert_eq!(about("any-size.onnx").takes, images(1, None, None));
    assert_eq!(about("mlp.onnx").takes, Takes::Rows { width: Some(6) });
    assert_eq!(about("tokens.onnx").takes, Takes::Tokens { length: None, vocabulary: Some(20) });
    assert!(about("bytes-nhwc.onnx").notes[0].contains("round(255 x value)"));
    let depends = |file: &str| about(file).notes.iter().any(|note| note.contains("depends on the others"));
    assert!(depends("mixed.onnx") && !depends("mlp.onnx") && !depends("batch-3.onnx"));
    let (mlp, other) = (about("mlp.onnx"), about("external.onnx"));
    assert_eq!((mlp.digest.len(), mlp.name.as_str(), mlp.runtime.as_str()), (16, "mlp", "tract 0.23.9"));
    assert_ne!(mlp.digest, other.digest);
}

#[test]
fn inputs_that_do_not_fit_are_refused_in_a_sentence() {
    let asked = |file: &str, input: Input| golden(file).scores(&[input]).unwrap_err().to_string();
    let said = asked("mlp.onnx", Input::Row(vec![0.0; 5]));
    assert_eq!(said, "mlp takes rows of 6 numbers, but the inputs are 5 numbers");
    let said = asked("cnn.onnx", Input::Image(Image { shape: [1, 16, 16], values: vec![0.0; 256] }));
    assert_eq!(said, "cnn takes images of 3 x 16 x 16 (channels, height, width), but the inputs are 1 x 16 x 16");
    assert!(asked("tokens-bare.onnx", tokens(&[1, 2, 3])).contains("no input 'attention_mask'"));
    assert!(asked("tokens.onnx", tokens(&[1, 20])).contains("knows only 0 to 19"));
    assert!(asked("tokens.onnx", Input::Row(vec![0.5])).contains("no whole number"));
    assert!(asked("cnn.onnx", Input::Text("a".into(), None)).contains("texts"));
}

#[test]
fn what_must_be_chosen_is_listed() {
    let two = folder().join("two-outputs.onnx");
    let said = refusal(&two, Choices::default());
    let expected = "has 3 outputs: choose one with --output NAME (or output=NAME after its path): \
                    'logits' (f32 [?, 3]), 'q' (f32 [?, 3]), 'label' (i64 [?])";
    assert!(said.ends_with(expected), "{said}");
    let choose = |output: &str| Choices { output: Some(output.into()), ..Choices::default() };
    assert!(refusal(&two, choose("label")).contains("numbers with fractions"));
    assert!(refusal(&two, choose("x")).contains("has no output 'x': there are"));
    let input = Choices { input: Some("z".into()), ..Choices::default() };
    assert!(refusal(&folder().join("mlp.onnx"), input).contains("has no input 'z': there are 'x' (f32 [?, 6])"));
}

#[test]
fn what_tract_gets_wrong_is_not_given_to_it() {
    let path = folder().join("reverse-lstm.onnx");
    let said = refusal(&path, Choices { runtime: Some(Runtime::Tract), ..Choices::default() });
    assert!(said.contains("from the last token to the first, which tract gets wrong (try --runtime ort)"), "{said}");
    if ort_is_here() {
        let model = golden("reverse-lstm.onnx");
        assert!(model.about().runtime.starts_with("ONNX Runtime 1."));
        assert!(model.about().notes.iter().any(|note| note.contains("because the file has")));
    }
}

#[test]
fn engines_are_compared() {
    if !ort_is_here() {
        return;
    }
    for inputs in [case_of("cnn.onnx").inputs(), Vec::new()] {
        let check = pudica_model::onnx::check(&folder().join("cnn.onnx"), &Choices::default(), &inputs).unwrap();
        let expected = if inputs.is_empty() { 8 } else { inputs.len() };
        assert_eq!((check.agreeing, check.inputs), (expected, expected));
        assert!(check.largest_difference < 1e-4 && check.largest_output > 0.1, "{check:?}");
    }
}
