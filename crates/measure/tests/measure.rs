//! The whole way of a measurement, against closed forms, with models made here and models from files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use pudica_data::Stream;
use pudica_lab::{Event, Observer, Stop};
use pudica_measure::nudges::NudgeRequest;
use pudica_measure::results::Measured;
use pudica_measure::{Compared, Enough, Finding, InputSet, InputsRequest, Question, measure, open_model};
use pudica_model::native::{self, Label};
use pudica_model::{
    About, Choices, Image, Input, Model, ModelError, ModelRequest, ModelResult, Normalisation, Outputs, Scores, Source,
    Takes,
};
use pudica_nn::classifier::Classifier;
use pudica_nn::vision::{ImageShape, MlpConfig, VisionConfig};
use pudica_nn::{Device, Weights};
use statrs::distribution::{ContinuousCDF, Normal};

struct Nobody;

impl Observer for Nobody {
    fn notice(&self, _: &Event) {}
}

/// Two scores of an image or a row: 0, and w x + b. Counts what it is asked, and dies after so many inputs.
struct Linear {
    about: About,
    weights: Weights,
    asked: Arc<AtomicUsize>,
    dies_after: usize,
}

fn linear(name: &str, weights: &[f32], bias: f32) -> Linear {
    let mut all = Weights::zeros([("w", &[weights.len()][..]), ("b", &[1][..])]);
    all.data_mut()[..weights.len()].copy_from_slice(weights);
    all.data_mut()[weights.len()] = bias;
    let about = About {
        name: name.into(),
        runtime: "test".into(),
        takes: Takes::Anything,
        outputs: Outputs::Logits,
        classes: 2,
        class_names: Vec::new(),
        parameters: Some(weights.len() as u64 + 1),
        digest: format!("{name}{weights:?}{bias}"),
        notes: Vec::new(),
    };
    Linear { about, weights: all, asked: Arc::default(), dies_after: usize::MAX }
}

impl Model for Linear {
    fn about(&self) -> &About {
        &self.about
    }

    fn batch(&self) -> usize {
        16
    }

    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores> {
        if self.asked.fetch_add(inputs.len(), Ordering::SeqCst) >= self.dies_after {
            return Err(ModelError::Other("the model died".into()));
        }
        let (bias, weights) = self.weights.data().split_last().unwrap();
        let score = |values: &[f32]| values.iter().zip(weights).map(|(x, w)| x * w).sum::<f32>() + bias;
        let of = |input: &Input| match input {
            Input::Image(Image { values, .. }) | Input::Row(values) => [0.0, score(values)],
            _ => [0.0, 0.0],
        };
        Ok(Scores { classes: 2, values: inputs.iter().flat_map(of).collect() })
    }

    fn weights(&self) -> ModelResult<Weights> {
        Ok(self.weights.clone())
    }

    fn with_weights(&self, weights: &Weights) -> ModelResult<Box<dyn Model>> {
        let (about, asked) = (self.about.clone(), self.asked.clone());
        Ok(Box::new(Linear { about, weights: weights.clone(), asked, dies_after: self.dies_after }))
    }
}

/// An .npy file of floats.
fn npy(path: &Path, shape: &[usize], values: &[f32]) {
    let shape: Vec<String> = shape.iter().map(|size| format!("{size},")).collect();
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}), }}", shape.join(" "));
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    std::fs::write(path, bytes).unwrap();
}

fn normals(count: usize, purpose: &str) -> Vec<f32> {
    let mut stream = Stream::new(0, purpose, 0);
    (0..count).map(|_| stream.normal() as f32).collect()
}

struct Trial {
    folder: tempfile::TempDir,
    source: PathBuf,
}

impl Trial {
    /// Some inputs of this shape.
    fn new(shape: &[usize]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("x.npy");
        npy(&source, shape, &normals(shape.iter().product(), "inputs"));
        Self { folder, source }
    }

    fn question(&self, models: Vec<Box<dyn Model>>, nudges: &[&str], responses: &[Compared]) -> Question {
        let request = InputsRequest { source: self.source.display().to_string(), ..InputsRequest::default() };
        Question {
            inputs: InputSet::open(&request, &models[0].about().takes).unwrap(),
            models,
            nudges: nudges.iter().flat_map(|text| NudgeRequest::parse(text).unwrap().settings()).collect(),
            responses: responses.to_vec(),
            enough: Enough::default(),
            seed: 0,
            channel_std: vec![1.0],
            data: None,
            command: "pudica measure ...".into(),
            program: "pudica".into(),
        }
    }

    fn out(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn measured(&self, question: &mut Question, name: &str) -> Finding {
        measure(question, &self.out(name), &Nobody, &Stop::new()).unwrap()
    }

    /// The inputs, as rows.
    fn rows(&self, width: usize) -> Vec<Vec<f64>> {
        let bytes = std::fs::read(&self.source).unwrap();
        let header = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let values: Vec<f64> =
            bytes[header..].chunks(4).map(|b| f64::from(f32::from_le_bytes([b[0], b[1], b[2], b[3]]))).collect();
        values.chunks(width).map(<[f64]>::to_vec).collect()
    }
}

fn find<'a>(finding: &'a Finding, model: &str, nudge: &str, response: &str) -> &'a Measured {
    let fits = |r: &&Measured| r.model == model && r.nudge == nudge && r.response == response;
    finding.summary.results.iter().find(fits).unwrap_or_else(|| panic!("{model} {nudge} {response}"))
}

/// The fraction of label changes of w x + b > 0 under noise of this deviation on the values at `sites`, exactly: over inputs and sites, the mean of
/// Phi(-|score| / (deviation |w at the site|)).
fn closed_form(rows: &[Vec<f64>], weights: &[f64], bias: f64, sites: &[Vec<usize>], deviation: f64) -> f64 {
    let normal = Normal::standard();
    let mut sum = 0.0;
    for row in rows {
        let score = row.iter().zip(weights).map(|(x, w)| x * w).sum::<f64>() + bias;
        for site in sites {
            let length = site.iter().map(|at| weights[*at] * weights[*at]).sum::<f64>().sqrt();
            sum += normal.cdf(-score.abs() / (deviation * length));
        }
    }
    sum / (rows.len() * sites.len()) as f64
}

/// The places of each patch of an image.
fn patches([channels, height, width]: [usize; 3], side: usize) -> Vec<Vec<usize>> {
    let places = |top: usize, left: usize| {
        let all = (0..channels).flat_map(move |c| (0..height).flat_map(move |y| (0..width).map(move |x| (c, y, x))));
        let inside = move |(_, y, x): &(usize, usize, usize)| y / side * side == top && x / side * side == left;
        all.filter(inside).map(|(c, y, x)| (c * height + y) * width + x).collect()
    };
    let corners = (0..height).step_by(side).flat_map(|top| (0..width).step_by(side).map(move |left| (top, left)));
    corners.map(|(top, left)| places(top, left)).collect()
}

fn close(found: &Measured, expected: f64) {
    let error = found.found.std_error.unwrap();
    assert!((found.found.value - expected).abs() < 4.0 * error.max(1e-4), "{found:?}, expected {expected}");
    assert!(error < 0.3 * expected, "{found:?} tells nothing about {expected}");
}

#[test]
fn patch_sensitivity_of_a_linear_model_is_its_closed_form() {
    let (shape, trial) = ([3, 8, 8], Trial::new(&[60, 3, 8, 8]));
    let weights = normals(192, "weights");
    let mut question = trial.question(
        vec![Box::new(linear("linear", &weights, 0.5))],
        &["patch-noise:size=4,variance=1,9,draws=20"],
        &[Compared::Label, Compared::Shift],
    );
    question.channel_std = vec![0.5];
    let finding = trial.measured(&mut question, "out");
    let wide: Vec<f64> = weights.iter().map(|w| f64::from(*w)).collect();
    for variance in [1.0f64, 9.0] {
        let nudge = format!("patch-noise:size=4,variance={variance},draws=20");
        let expected = closed_form(&trial.rows(192), &wide, 0.5, &patches(shape, 4), 0.5 * variance.sqrt());
        let found = find(&finding, "linear", &nudge, "label");
        close(found, expected);
        assert_eq!((found.inputs, found.sites, found.evaluations), (60, 4.0, 60 * 4 * 20));
        // The score shifts by N(0, (deviation |w|)^2), whose mean size is sqrt(2/pi) deviation |w|.
        let lengths = patches(shape, 4)
            .iter()
            .map(|site| site.iter().map(|at| wide[*at].powi(2)).sum::<f64>().sqrt())
            .sum::<f64>()
            / 4.0;
        let expected = (2.0 / std::f64::consts::PI).sqrt() * 0.5 * variance.sqrt() * lengths;
        close(find(&finding, "linear", &nudge, "l2"), expected);
    }
    assert!(finding.summary.complete && finding.details.examples.iter().any(|example| example.image.is_some()));
    let png = trial.out("out").join(finding.details.examples[0].image.as_ref().unwrap());
    assert!(png.is_file() && trial.out("out/inputs.parquet").is_file());
}

/// The same through tract: the file that the test of ONNX uses.
#[test]
fn patch_sensitivity_through_onnx_is_the_closed_form() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/onnx/linear.onnx");
    let request = ModelRequest { source: Source::File(path), choices: Choices::default() };
    let model = open_model(&request, None).unwrap();
    let weights = model.weights().unwrap();
    // Scores of two classes: what decides is their difference.
    let matrix = weights.layout().iter().find(|parameter| parameter.range.len() == 2 * 192).unwrap();
    let values: Vec<f64> = weights.data()[matrix.range.clone()].iter().map(|w| f64::from(*w)).collect();
    let difference: Vec<f64> = match matrix.shape[..] {
        [192, 2] => values.chunks(2).map(|pair| pair[1] - pair[0]).collect(),
        _ => (0..192).map(|at| values[192 + at] - values[at]).collect(),
    };
    let bias = weights.layout().iter().find(|parameter| parameter.range.len() == 2);
    let bias = bias.map_or(0.0, |bias| {
        let values = &weights.data()[bias.range.clone()];
        f64::from(values[1]) - f64::from(values[0])
    });
    let trial = Trial::new(&[40, 3, 8, 8]);
    let mut question = trial.question(vec![model], &["patch-noise:size=4,variance=4,draws=10"], &[Compared::Label]);
    let finding = trial.measured(&mut question, "out");
    let expected = closed_form(&trial.rows(192), &difference, bias, &patches([3, 8, 8], 4), 2.0);
    close(&finding.summary.results[0], expected);
}

/// The same through the layers that checkpoints, Hugging Face folders and our own runs are made of.
#[test]
fn patch_sensitivity_of_our_own_layers_is_the_closed_form() {
    let images = ImageShape { channels: 3, side: 8, classes: 2 };
    let network = VisionConfig::Mlp(MlpConfig { images, hidden: vec![], ..MlpConfig::default() });
    let mut weights = network.empty_weights().unwrap();
    let values = normals(192, "weights");
    weights.get_mut("layers.0.weight").unwrap()[192..].copy_from_slice(&values);
    let trial = Trial::new(&[40, 3, 8, 8]);
    let normalisation = Normalisation { mean: vec![0.0], std: vec![0.5] };
    let label = Label { name: "mlp".into(), digest: "mlp".into(), ..Label::default() };
    let buffers = network.initial_buffers();
    let model = native::images(&network, &weights, &buffers, normalisation, &Device::cpu(), label).unwrap();
    let mut question =
        trial.question(vec![Box::new(model)], &["patch-noise:size=4,variance=4,draws=10"], &[Compared::Label]);
    question.channel_std = vec![0.5];
    let finding = trial.measured(&mut question, "out");
    // The network sees values over 0.5, so its weights count twice; noise of variance 4 has the deviation 2 x 0.5.
    let seen: Vec<f64> = values.iter().map(|w| 2.0 * f64::from(*w)).collect();
    let expected = closed_form(&trial.rows(192), &seen, 0.0, &patches([3, 8, 8], 4), 1.0);
    close(&finding.summary.results[0], expected);
}

/// The same through a program: the example of the documentation, whose score is the sum of a row.
#[test]
fn sensitivity_through_a_program_is_the_closed_form() {
    let python = std::process::Command::new("python3").arg("--version").output();
    if !python.is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: there is no python3");
        return;
    }
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/serve.py");
    let source = Source::Program(format!("python3 '{}'", script.display()));
    let model = open_model(&ModelRequest { source, choices: Choices::default() }, None).unwrap();
    let trial = Trial::new(&[60, 6]);
    let mut question = trial.question(vec![model], &["feature-noise:scale=1,draws=30"], &[Compared::Label]);
    let spread = question.inputs.about().spread.clone();
    let finding = trial.measured(&mut question, "out");
    let of_column = |at: usize| closed_form(&trial.rows(6), &[1.0; 6], 0.0, &[vec![at]], spread[at]);
    close(&finding.summary.results[0], (0..6).map(of_column).sum::<f64>() / 6.0);
}

#[test]
fn features_and_weights_of_a_linear_model_are_their_closed_forms() {
    let trial = Trial::new(&[80, 6]);
    let weights = normals(6, "weights");
    let nudges = ["feature-noise:scale=0.5,draws=40", "weight-noise:rho=0.1,draws=60", "feature-resample:draws=10"];
    let model = linear("linear", &weights, 0.2);
    let mut question = trial.question(vec![Box::new(model)], &nudges, &[Compared::Label, Compared::Shift]);
    let spread = question.inputs.about().spread.clone();
    let finding = trial.measured(&mut question, "out");
    let (rows, wide) = (trial.rows(6), weights.iter().map(|w| f64::from(*w)).collect::<Vec<_>>());
    // Noise of half of each column's own spread.
    let of_column = |at: usize| closed_form(&rows, &wide, f64::from(0.2f32), &[vec![at]], 0.5 * spread[at]);
    close(find(&finding, "linear", nudges[0], "label"), (0..6).map(of_column).sum::<f64>() / 6.0);
    // Noise on all weights shifts the score by N(0, rho^2 (|x|^2 + 1)).
    let shift = |row: &Vec<f64>| (row.iter().map(|x| x * x).sum::<f64>() + 1.0).sqrt();
    let expected = (2.0 / std::f64::consts::PI).sqrt() * 0.1 * rows.iter().map(shift).sum::<f64>() / 80.0;
    close(find(&finding, "linear", nudges[1], "l2"), expected);
    let profile = finding.details.profiles.iter().find(|p| p.nudge == nudges[0] && p.response == "label").unwrap();
    for (at, site) in profile.by_site.iter().enumerate() {
        assert!(
            (site.value - of_column(at)).abs() < 5.0 * site.std_error.unwrap().max(2e-3),
            "{at}: {site:?} {}",
            of_column(at)
        );
    }
}

#[test]
fn models_are_compared_on_the_same_noise() {
    let trial = Trial::new(&[50, 3, 4, 4]);
    let weights = normals(48, "weights");
    let twice: Vec<f32> = weights.iter().map(|w| 2.0 * w).collect();
    let models: Vec<Box<dyn Model>> = vec![
        Box::new(linear("one", &weights, 0.0)),
        Box::new(linear("twice", &twice, 0.0)),
        Box::new(linear("other", &normals(48, "other"), 0.0)),
    ];
    let mut question = trial.question(models, &["patch-noise:size=2,variance=4"], &[Compared::Label, Compared::Shift]);
    let finding = trial.measured(&mut question, "out");
    let difference = |model: &str, with: &str, response: &str| {
        let fits =
            |d: &&pudica_measure::results::Difference| d.model == model && d.with == with && d.response == response;
        finding.summary.differences.iter().find(fits).unwrap().clone()
    };
    // The same direction, so the same labels: no difference, without error, as the noise is the same.
    let same = difference("twice", "one", "label");
    assert_eq!((same.found.value, same.found.std_error, same.inputs), (0.0, Some(0.0), 50));
    let (one, twice) = (&finding.summary.results[1], &finding.summary.results[3]);
    assert_eq!((one.response.as_str(), twice.model.as_str()), ("l2", "twice"));
    assert!((twice.found.value / one.found.value - 2.0).abs() < 1e-6);
    assert!(difference("other", "one", "label").found.std_error.unwrap() > 0.0);
}

#[test]
fn what_was_measured_stays_measured() {
    let trial = Trial::new(&[300, 3, 8, 8]);
    let weights = normals(192, "weights");
    let nudges = ["patch-noise:size=2,draws=4", "weight-noise:rho=0.1,draws=5"];
    let responses = [Compared::Label, Compared::TotalVariation];
    let whole =
        trial.measured(&mut trial.question(vec![Box::new(linear("m", &weights, 0.1))], &nudges, &responses), "whole");
    // A model that dies on the way: what it answered is kept, and said.
    let mut dying = linear("m", &weights, 0.1);
    dying.dies_after = 10_000;
    let mut question = trial.question(vec![Box::new(dying)], &nudges, &responses);
    let broken = trial.measured(&mut question, "parts");
    assert!(!broken.summary.complete);
    assert!(broken.summary.problem.as_ref().unwrap().contains("the model died"), "{:?}", broken.summary.problem);
    let partial = find(&broken, "m", nudges[0], "label");
    assert!(partial.inputs > 0 && partial.inputs < 300, "{partial:?}");
    // The same again, with a model that lives: it goes on, and ends with the same numbers.
    let living = linear("m", &weights, 0.1);
    let asked = living.asked.clone();
    let continued = trial.measured(&mut trial.question(vec![Box::new(living)], &nudges, &responses), "parts");
    assert_eq!((&continued.summary.results, &continued.details), (&whole.summary.results, &whole.details));
    let all = 300 + 300 * 16 * 4 + 5 * 300;
    assert!(asked.load(Ordering::SeqCst) < all - 5_000, "{} of {all}", asked.load(Ordering::SeqCst));
    // Another question is refused, not mixed in.
    let mut other = trial.question(vec![Box::new(linear("m", &weights, 0.2))], &nudges, &responses);
    let refused = measure(&mut other, &trial.out("parts"), &Nobody, &Stop::new()).err().unwrap().to_string();
    assert!(refused.contains("holds another measurement"), "{refused}");
}

#[test]
fn a_request_to_stop_is_heard_and_nothing_is_lost() {
    struct StopSoon(Stop, Mutex<usize>);
    impl Observer for StopSoon {
        fn notice(&self, event: &Event) {
            if let Event::Progress { .. } = event {
                let mut seen = self.1.lock().unwrap();
                *seen += 1;
                if *seen == 700 {
                    self.0.request();
                }
            }
        }
    }
    let trial = Trial::new(&[300, 3, 8, 8]);
    let ask = || {
        trial.question(
            vec![Box::new(linear("m", &normals(192, "weights"), 0.1))],
            &["patch-noise:size=2,draws=4"],
            &[Compared::Label],
        )
    };
    let stop = Stop::new();
    let stopped = measure(&mut ask(), &trial.out("a"), &StopSoon(stop.clone(), Mutex::new(0)), &stop).unwrap();
    assert!(stopped.stopped && !stopped.summary.complete);
    assert_eq!(trial.measured(&mut ask(), "a").summary.results, trial.measured(&mut ask(), "b").summary.results);
}

#[test]
fn enough_is_enough() {
    let trial = Trial::new(&[2000, 3, 4, 4]);
    let model = || -> Vec<Box<dyn Model>> { vec![Box::new(linear("m", &normals(48, "weights"), 0.1))] };
    let mut question = trial.question(model(), &["patch-noise:size=2"], &[Compared::Label]);
    question.enough = Enough { precision: Some(0.03), budget: None };
    let precise = trial.measured(&mut question, "precise");
    let found = &precise.summary.results[0];
    let [low, high] = found.found.ci95.unwrap();
    assert!(found.inputs < 1500 && high - low < 0.065, "{found:?}");
    question.enough = Enough { precision: None, budget: Some(5000) };
    let paid = trial.measured(&mut question, "paid");
    let found = &paid.summary.results[0];
    assert!((4990..=5000).contains(&found.evaluations), "{found:?}");
    assert!(found.note.as_ref().unwrap().contains("budget of 5000 evaluations"), "{found:?}");
    question.enough = Enough { precision: Some(1e-4), budget: None };
    let all = trial.measured(&mut question, "all");
    assert!(all.summary.results[0].note.as_ref().unwrap().contains("not enough for a precision of 0.0001"));
}

/// The trace of the Hessian from losses alone: for a logistic model with one output it is the mean of p (1 - p) (|x|^2 + 1).
#[test]
fn the_trace_from_losses_is_the_closed_form() {
    let folder = tempfile::tempdir().unwrap();
    let rows: Vec<Vec<f32>> = normals(40 * 5, "rows").chunks(5).map(<[f32]>::to_vec).collect();
    let table: String = rows
        .iter()
        .enumerate()
        .map(|(at, row)| format!("{},{}\n", row.iter().map(f32::to_string).collect::<Vec<_>>().join(","), at % 2))
        .collect();
    let source = folder.path().join("t.csv");
    std::fs::write(&source, format!("a,b,c,d,e,label\n{table}")).unwrap();
    let weights = normals(5, "weights");
    let model = linear("m", &weights, 0.3);
    let request =
        InputsRequest { source: source.display().to_string(), label: Some("label".into()), ..InputsRequest::default() };
    let mut question = Question {
        inputs: InputSet::open(&request, &Takes::Anything).unwrap(),
        models: vec![Box::new(model)],
        nudges: NudgeRequest::parse("hessian:draws=200").unwrap().settings(),
        responses: vec![Compared::Label],
        enough: Enough::default(),
        seed: 0,
        channel_std: vec![1.0],
        data: None,
        command: String::new(),
        program: String::new(),
    };
    let finding = measure(&mut question, &folder.path().join("out"), &Nobody, &Stop::new()).unwrap();
    let trace = finding.summary.results.iter().find(|result| result.response == "trace").unwrap();
    let of_row = |row: &Vec<f32>| {
        let score = row.iter().zip(&weights).map(|(x, w)| f64::from(x * w)).sum::<f64>() + 0.3;
        let p = 1.0 / (1.0 + (-score).exp());
        p * (1.0 - p) * (row.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>() + 1.0)
    };
    let expected = rows.iter().map(of_row).sum::<f64>() / 40.0;
    let error = trace.found.std_error.unwrap() + 0.03 * expected;
    assert!((trace.found.value - expected).abs() < 4.0 * error, "{trace:?}, expected {expected}");
    assert!(trace.note.as_ref().unwrap().contains("no gradients"));
    // Accuracy and loss of the untouched rows, too.
    let clean = &finding.summary.models[0];
    assert!(clean.clean_accuracy.is_some() && clean.clean_loss.unwrap().value > 0.0);
}

#[test]
fn what_cannot_be_measured_is_said() {
    let trial = Trial::new(&[5, 3, 4, 4]);
    let model = || -> Vec<Box<dyn Model>> { vec![Box::new(linear("m", &normals(48, "weights"), 0.1))] };
    let refused = |nudge: &str, response| {
        let mut question = trial.question(model(), &[nudge], &[response]);
        let refused = measure(&mut question, &trial.out("refused"), &Nobody, &Stop::new());
        assert!(!trial.out("refused").join("work").exists(), "nothing is written");
        refused.err().unwrap().to_string()
    };
    assert!(refused("word-replace", Compared::Label).contains("is for texts"));
    assert!(refused("patch-noise:size=3", Compared::Label).contains("cannot be cut into patches of 3 x 3"));
    assert!(refused("patch-noise", Compared::Accuracy).contains("needs labels"));
    assert!(refused("fgsm", Compared::Label).contains("needs labels"));
    assert!(refused("corruption:fog:1", Compared::Label).contains("32 x 32"));
    let mut twice = trial.question(model().into_iter().chain(model()).collect(), &["patch-noise"], &[Compared::Label]);
    let refused = measure(&mut twice, &trial.out("x"), &Nobody, &Stop::new()).err().unwrap().to_string();
    assert!(refused.contains("two models are called m"), "{refused}");
}
