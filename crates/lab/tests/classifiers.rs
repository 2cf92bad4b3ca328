//! Tiny classifiers through the whole laboratory, on images made up here.

mod common;

use std::path::Path;
use std::sync::Mutex;

use common::{numbers, plan_of, runs};
use pudica_data::Stream;
use pudica_data::images::{Images, Shape, write_npy};
use pudica_lab::kinds::Documented;
use pudica_lab::kinds::classifier::ClassifierConfig;
use pudica_lab::plan::PlannedRun;
use pudica_lab::recipe::builtin_names;
use pudica_lab::store::SweepRun;
use pudica_lab::{Event, Machine, Outcome, Plan, Recipe, Stop, Tally, execute};
use pudica_probe::{InputKind, NudgeName};
use serde_json::Value;

const RECIPE: &str = "
title = 'tiny'
kind = 'classifier'
[quick.settings]
data.name = 'DATA'
model = { kind = 'mlp', hidden = '8' }
train = { lr = 0.1, batch = 16, epochs = 6 }
measure = { every = 2, draws = 2, inputs = 7, patch = 4 }
[[quick.sweep]]
name = 'all'
grid.seed = '0..2'
";

/// 60 images of 8 x 8 pixels in two classes, which differ in where they are bright, and 20 more for tests.
fn data() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, count) in [("train", 60), ("test", 20)] {
        let mut stream = Stream::new(1, name, 0);
        let labels: Vec<u8> = (0..count).map(|index| index % 2).collect();
        let pixel = |label: u8, at: usize, stream: &mut Stream| {
            let bright = if (at % 8 < 4) == (label == 0) { 150 } else { 50 };
            bright + stream.below(60) as u8
        };
        let pixels = labels.iter().flat_map(|label| (0..64).map(|at| (*label, at)).collect::<Vec<_>>());
        let pixels = pixels.map(|(label, at)| pixel(label, at, &mut stream)).collect();
        let images = Images::new(Shape { height: 8, width: 8, channels: 1 }, pixels, labels).unwrap();
        let own = folder.path().join(name);
        std::fs::create_dir(&own).unwrap();
        write_npy(&images, &own.join("images.npy"), &own.join("labels.npy")).unwrap();
    }
    folder
}

fn recipe(data: &Path) -> Recipe {
    Recipe::parse("tiny.toml", &RECIPE.replace("DATA", &data.display().to_string())).unwrap()
}

/// Of another network than the recipe's perceptron, whose sizes it does not have.
fn plan(data: &Path, overrides: &[&str]) -> Plan {
    let other = overrides.iter().any(|text| text.starts_with("model.kind=") && *text != "model.kind=mlp");
    let text = RECIPE.replace("DATA", &data.display().to_string());
    let text = if other { text.replace(", hidden = '8'", "") } else { text };
    plan_of(&Recipe::parse("tiny.toml", &text).unwrap(), None, overrides).unwrap()
}

fn run(plan: &Plan, folder: &Path) -> Tally {
    execute(plan, folder, &Machine::default(), &|_: &Event| {}, &Stop::new()).unwrap()
}

fn refused(plan: &Plan, folder: &Path) -> String {
    execute(plan, folder, &Machine::default(), &|_: &Event| {}, &Stop::new()).unwrap_err().to_string()
}

/// A number of a line of metrics.
fn number(line: &serde_json::Map<String, Value>, name: &str) -> f64 {
    line[name].as_f64().unwrap_or_else(|| panic!("{name} of {line:?}"))
}

#[test]
fn a_classifier_learns_is_measured_and_is_not_repeated() {
    let (data, folder) = (data(), tempfile::tempdir().unwrap());
    let plan = plan(data.path(), &[]);
    let tally = run(&plan, folder.path());
    assert_eq!((tally.runs, tally.converged, tally.remaining), (2, 2, 0));
    for run in runs(folder.path()) {
        // 60 images in batches of 16 are 4 steps per epoch, the last of 12 images.
        let lines = run.lines().unwrap();
        let places: Vec<(u64, u64)> =
            lines.iter().map(|line| (line["epoch"].as_u64().unwrap(), line["step"].as_u64().unwrap())).collect();
        assert_eq!(places, [(0, 0), (2, 8), (4, 16), (6, 24)]);
        let last = lines.last().unwrap();
        assert!(number(last, "train_accuracy") > 0.9 && number(last, "test_accuracy") > 0.9, "{last:?}");
        assert!(number(last, "train_loss") < number(&lines[0], "train_loss"));
        let sites = last["sites"].as_array().unwrap();
        assert_eq!((sites.len(), last["sensitivity_inputs"].as_u64()), (4, Some(7)));
        let mean = sites.iter().map(|site| site["mean"].as_f64().unwrap()).sum::<f64>() / 4.0;
        assert!((mean - number(last, "sensitivity")).abs() < 1e-12 && last.contains_key("sensitivity_std_error"));
        let summary = run.summary.as_ref().unwrap();
        assert_eq!(summary.measure("sensitivity"), Some(number(last, "sensitivity")));
        assert_eq!(summary.measure("test_accuracy"), Some(number(last, "test_accuracy")));
        // Half of the images are of each class, and most are found: no class has much more than half.
        assert!((0.5..0.6).contains(&number(last, "train_largest_class_fraction")), "{last:?}");
        assert_eq!(summary.measure("test_largest_class_fraction"), Some(number(last, "test_largest_class_fraction")));
        assert_eq!(summary.measure("train_majority_fraction"), Some(0.5));
        assert_eq!(summary.detail["data"]["train"]["images"], 60);
        assert_eq!(run.settings.text("model.kind"), "mlp");
    }
    let begun = Mutex::new(0);
    let count = |event: &Event| {
        if matches!(event, Event::RunStarted { .. }) {
            *begun.lock().unwrap() += 1;
        }
    };
    execute(&plan, folder.path(), &Machine::default(), &count, &Stop::new()).unwrap();
    assert_eq!(*begun.lock().unwrap(), 0);
}

#[test]
fn an_interrupted_sweep_continues_to_the_same_numbers() {
    let (data, whole, parts) = (data(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // Dropout, momentum, both interventions and Adam's memory must all survive.
    for (index, overrides) in
        [
            &[
                "model.kind=vit-small",
                "model.depth=1",
                "model.heads=2",
                "model.dim=8",
                "model.dim_head=4",
                "model.mlp=8",
            ][..],
            &["intervene.augment=0.1", "intervene.regularise=0.25", "train.momentum=0.9"],
            &[
                "train.optimiser=adam",
                "train.lr=0.01",
                "train.factor=0.5",
                "train.factor_every=2",
                "measure.nudge=replace",
            ],
        ]
        .into_iter()
        .enumerate()
    {
        let plan = plan(data.path(), &[overrides, &["train.epochs=30", "measure.every=7"]].concat());
        let (whole, parts) = (whole.path().join(index.to_string()), parts.path().join(index.to_string()));
        run(&plan, &whole);
        let mut calls = 0;
        loop {
            let stop = Stop::new();
            let tally = std::thread::scope(|scope| {
                scope.spawn(|| {
                    // A little later every time: in training, in an evaluation, between two runs.
                    std::thread::sleep(std::time::Duration::from_millis(2 + calls * 3));
                    stop.request();
                });
                execute(&plan, &parts, &Machine::default(), &|_: &Event| {}, &stop).unwrap()
            });
            calls += 1;
            if tally.remaining == 0 {
                break;
            }
            assert!(tally.stopped && calls < 400);
        }
        assert!(calls > 1, "the sweep was interrupted ({calls} calls)");
        assert_eq!(numbers(&whole), numbers(&parts), "{overrides:?}");
    }
}

#[test]
fn a_crash_in_the_middle_loses_nothing() {
    let (data, whole, cut) = (data(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = plan(data.path(), &["seed=0"]);
    run(&plan, whole.path());
    // Stop before anything is made, then as if the power had gone after the first evaluation of a longer run: the metrics hold a line
    // that the checkpoint does not know of, and half a line.
    let stop = Stop::new();
    stop.request();
    execute(&plan, cut.path(), &Machine::default(), &|_: &Event| {}, &stop).unwrap();
    let run_folder = cut.path().join("runs").join(&plan.runs[0].id);
    std::fs::create_dir_all(&run_folder).unwrap();
    let metrics =
        std::fs::read_to_string(whole.path().join("runs").join(&plan.runs[0].id).join("metrics.jsonl")).unwrap();
    let first = metrics.lines().nth(1).unwrap();
    std::fs::write(run_folder.join("metrics.jsonl"), format!("{first}\n{}", &first[..20])).unwrap();
    run(&plan, cut.path());
    assert_eq!(numbers(whole.path()), numbers(cut.path()));
}

#[test]
fn a_lost_loss_is_a_failed_run_and_the_others_go_on() {
    let (data, folder) = (data(), tempfile::tempdir().unwrap());
    let plan = plan(data.path(), &["train.lr=0.1,1e38", "seed=0"]);
    let tally = run(&plan, folder.path());
    assert_eq!((tally.converged, tally.failed), (1, 1));
    let runs = runs(folder.path());
    let failed = runs[1].summary.as_ref().unwrap();
    assert_eq!(failed.outcome, Outcome::Failed);
    let problem = failed.problem.as_deref().unwrap();
    assert!(problem.contains("a smaller train.lr usually helps"), "{problem}");
    assert_eq!(runs[0].summary.as_ref().unwrap().outcome, Outcome::Finished);
}

#[test]
fn every_kind_of_image_network_is_trained_and_touched() {
    let (data, folder) = (data(), tempfile::tempdir().unwrap());
    let small = ["train.epochs=1", "measure.inputs=2", "measure.draws=1", "seed=0", "train.lr=0.01"];
    let kinds: [&[&str]; 7] = [
        &["model.kind=mlp"],
        &["model.kind=cnn", "model.width=2", "model.hidden=4"],
        &["model.kind=vit-small", "model.depth=1", "model.heads=2", "model.dim=8", "model.dim_head=4", "model.mlp=8"],
        &["model.kind=vit-simple", "model.depth=1", "model.heads=2", "model.dim=8", "model.dim_head=4", "model.mlp=8"],
        &["model.kind=resnet18", "model.width=2", "model.blocks=1-1"],
        &["model.kind=densenet121", "model.width=2", "model.blocks=1-1"],
        &["model.kind=convmixer", "model.depth=1", "model.dim=4"],
    ];
    for (index, kind) in kinds.iter().enumerate() {
        let plan = plan(data.path(), &[&small[..], kind].concat());
        let folder = folder.path().join(index.to_string());
        assert_eq!(run(&plan, &folder).converged, 1, "{kind:?}");
        assert!(runs(&folder)[0].lines().unwrap()[0].contains_key("sensitivity"));
    }
}

#[test]
fn the_measures_at_the_end_are_taken() {
    let (data, folder) = (data(), tempfile::tempdir().unwrap());
    let asked = [
        "seed=0",
        "measure.sharpness=0.05",
        "measure.adversarial=0.02+0.2",
        "measure.adversarial_l2=1.0",
        "measure.hessian=true",
        "measure.hessian_inputs=20",
        "intervene.regularise=0.25",
    ];
    run(&plan(data.path(), &asked), folder.path());
    let runs = runs(folder.path());
    let summary = runs[0].summary.as_ref().unwrap();
    let value = |name: &str| summary.measure(name).unwrap_or_else(|| panic!("{name} of {:?}", summary.measures));
    assert!(value("shop") > 0.0 && value("shop_std_error") > 0.0 && value("shop_l2") <= value("shop"));
    assert!((0.0..=1.0).contains(&value("shpred")));
    assert!(value("adversarial_pgd_linf_0.2") <= value("adversarial_fgsm_linf_0.02"));
    assert!(value("adversarial_pgd_l2_1") <= 1.0 && value("adversarial_fgsm_linf_0.2_std_error") >= 0.0);
    assert!(value("hessian_top") > 0.0 && value("hessian_trace").is_finite());
}

#[test]
fn subsets_are_stated_and_shared_by_all_seeds() {
    let data = data();
    let plan = plan(data.path(), &["data.train=30", "data.test=10"]);
    let folder = tempfile::tempdir().unwrap();
    run(&plan, folder.path());
    let runs = runs(folder.path());
    let images = |run: &SweepRun| run.summary.as_ref().unwrap().detail["data"]["train"]["images"].clone();
    assert!(runs.iter().all(|run| images(run) == 30));
    assert_eq!(runs[0].lines().unwrap()[1]["step"], 4, "two epochs of two steps");
    let refusal = |overrides: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("never");
        let sentence = refused(&plan_of(&recipe(data.path()), None, overrides).unwrap(), &path);
        assert!(!path.exists(), "nothing is written before the data is read");
        sentence
    };
    assert_eq!(refusal(&["data.train=61"]), "data.train: asks for 61 of 60 images; 0 takes all there are");
    assert!(refusal(&["measure.patch=3"]).contains("cannot be cut into patches of 3 x 3"));
}

#[test]
fn a_run_does_not_go_on_with_other_data() {
    let (data, folder) = (data(), tempfile::tempdir().unwrap());
    let plan = plan(data.path(), &["seed=0", "train.epochs=1"]);
    run(&plan, folder.path());
    // The training set is now as small as the test set.
    for file in ["images.npy", "labels.npy"] {
        std::fs::copy(data.path().join("test").join(file), data.path().join("train").join(file)).unwrap();
    }
    let error = refused(&plan, folder.path());
    assert!(error.contains("was begun with other data") && error.contains("another --out"), "{error}");
}

#[test]
fn other_files_make_other_runs_wherever_they_lie() {
    let (data, moved) = (data(), tempfile::tempdir().unwrap());
    let own = |folder: &Path| plan(folder, &["seed=0"]).runs[0].settings.text("data.content");
    let first = own(data.path());
    assert_eq!(first.len(), 16);
    for split in ["train", "test"] {
        std::fs::create_dir(moved.path().join(split)).unwrap();
        for file in ["images.npy", "labels.npy"] {
            std::fs::copy(data.path().join(split).join(file), moved.path().join(split).join(file)).unwrap();
        }
    }
    assert_eq!(own(moved.path()), first, "the same files elsewhere");
    let id = || plan(data.path(), &["seed=0"]).runs[0].id.clone();
    let before = id();
    std::fs::write(data.path().join("notes.txt"), "not read").unwrap();
    assert_eq!(id(), before);
    let labels = data.path().join("train/labels.npy");
    let mut bytes = std::fs::read(&labels).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&labels, bytes).unwrap();
    assert_ne!(id(), before);
    let refused = plan_of(&recipe(data.path()), None, &[&format!("data.content={first}")]).unwrap_err().to_string();
    assert!(refused.contains("data.content: the files of") && refused.contains(&first), "{refused}");
    // A known data set has no such settings, and its ids are as they were.
    let known = |overrides: &[&str]| plan_of(&recipe(Path::new("mnist")), None, &[&["seed=0"], overrides].concat());
    assert_eq!(known(&[]).unwrap().runs[0].settings.text("data.content"), "");
    for given in ["data.size=16", "data.text=a", "data.test_fraction=0.5", "data.content=00"] {
        let sentence = known(&[given]).unwrap_err().to_string();
        assert!(sentence.contains("plays no part in any run of this plan"), "{sentence}");
    }
}

#[test]
fn mistakes_are_sentences() {
    let recipe = recipe(Path::new("mnist"));
    let refusal = |override_: &str| plan_of(&recipe, None, &[override_]).unwrap_err().to_string();
    assert!(refusal("model.dept=3").contains("did you mean `model.depth`?"));
    assert!(refusal("epochs=3").contains("did you mean `train.epochs`?"));
    assert!(refusal("model.kind=vit-smal").contains("did you mean 'vit-small'?"));
    assert!(refusal("train.optimiser=sdg").contains("\"sgd\", \"adam\" or \"adamw\""));
    assert!(refusal("train.epochs=0").contains("at least one epoch"));
    assert!(refusal("train.lr=-1").contains("positive"));
    assert!(refusal("measure.nudge=embedding").contains("\"embedding\" is not for images"));
    assert!(refusal("measure.nudge=nois").contains("did you mean 'noise'?"));
    let words = NudgeName::words(&[InputKind::Images, InputKind::Texts]);
    assert_eq!(<NudgeName as Documented>::CHOICES, words, "what is documented is what is accepted");
    assert!(refusal("measure.corruptions=frog").contains("did you mean 'fog'?"));
    assert!(refusal("measure.adversarial=far").contains("0.01+0.03"));
    assert!(refusal("model.hidden=8-x").contains("sizes such as 512-128"));
    assert!(refusal("train.momentum=2").contains("train.momentum"));
    // What a network does not have is refused, not ignored.
    assert!(refusal("model.depth=3").contains("model.depth: plays no part in any run of this plan"));

    let missing = |data: &str, folder: Option<&Path>| {
        let plan = match plan_of(&recipe, None, &[&format!("data.name={data}")]) {
            Ok(plan) => plan,
            Err(error) => return error.to_string(),
        };
        let machine = Machine { data: folder.map(Path::to_path_buf), ..Machine::default() };
        let out = tempfile::tempdir().unwrap();
        execute(&plan, out.path(), &machine, &|_: &Event| {}, &Stop::new()).unwrap_err().to_string()
    };
    assert!(missing("minst", None).contains("did you mean 'mnist'?"));
    let nowhere = missing("mnist", None);
    assert!(
        nowhere.contains("--data DIR")
            && nowhere.contains("PUDICA_DATA")
            && nowhere.contains("pudica data fetch mnist")
    );
    let empty = tempfile::tempdir().unwrap();
    let absent = missing("mnist", Some(empty.path()));
    assert!(absent.contains("train-images-idx3-ubyte") && absent.contains("pudica data fetch mnist"), "{absent}");
    let device = refusal("compute.device=tpu");
    assert!(device.contains("have cpu or cuda or torch, not tpu"), "{device}");
}

#[test]
fn a_size_that_is_the_networks_own_makes_no_different_run() {
    let recipe = Recipe::parse("tiny.toml", &RECIPE.replace(", hidden = '8'", "").replace("DATA", "mnist")).unwrap();
    let id =
        |overrides: &[&str]| plan_of(&recipe, None, &[&["seed=0"], overrides].concat()).unwrap().runs[0].id.clone();
    assert_ne!(id(&["model.hidden=9"]), id(&[]));
    assert_eq!(id(&["model.kind=vit-small", "model.depth=8"]), id(&["model.kind=vit-small"]));
    assert_ne!(id(&["model.kind=vit-small", "model.depth=7"]), id(&["model.kind=vit-small"]));
}

#[test]
fn paper_scale_is_as_published() {
    let find = |name: &str| Recipe::find(name).unwrap();
    let paper = |name: &str| plan_of(&find(name), Some("paper"), &[]).unwrap();
    let config = |run: &PlannedRun| -> ClassifierConfig { run.settings.read().unwrap() };
    let names: Vec<&str> = builtin_names().filter(|name| find(name).kind.name == "classifier").collect();
    assert!(names.len() >= 9);
    for name in names {
        let all = |run: &PlannedRun| config(run).data.train == 0 && config(run).measure.inputs == 0;
        assert!(paper(name).runs.iter().all(all), "{name}");
    }
    let vit = config(&paper("vasudeva/cifar10").runs[0]);
    assert_eq!((vit.model.depth, vit.model.heads, vit.model.mlp, vit.model.dim), (8, 32, 256, 64));
    assert_eq!((vit.train.lr, vit.train.batch, vit.measure.variance, vit.measure.draws), (0.1, 100, 1.0, 5));
    let mnist = config(&paper("vasudeva/mnist").runs[0]);
    assert_eq!((mnist.data.binary, mnist.train.batch, mnist.measure.patch, mnist.train.lr), (true, 50, 7, 0.01));
    assert_eq!(mnist.measure.nudge, NudgeName::Replace);
    let sharp: Vec<ClassifierConfig> = paper("vasudeva/sharpness").runs.iter().map(config).collect();
    assert!(sharp.iter().all(|run| run.measure.sharpness == 0.005 && run.measure.sharpness_draws == 5));
    assert!(sharp.iter().any(|run| run.intervene.regularise == 0.25 && run.train.lr == 0.16));
}
