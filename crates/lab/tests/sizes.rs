//! Every whole number among the settings of every kind, as large as can be typed: refused in one sentence before anything is allocated, or
//! rightly taken. Nothing here aborts, panics or takes long.

mod common;

use common::plan_of;
use pudica_data::images::{Images, Shape, write_npy};
use pudica_lab::kinds::{KINDS, Kind};
use pudica_lab::{Machine, Plan, Recipe, Result, open};
use std::path::Path;

const LARGE: [u64; 3] = [1_000_000_000, 1_000_000_000_000, 1 << 63];

/// Of each kind a tiny run, and the variants of it whose sizes are tried.
const TINY: [(&str, &str, &[&str]); 5] = [
    (
        "boolean",
        "n = 3\nmodel.d = 8\ntrain = { batch = 8, steps = 20 }\neval.batches = 1\nmeasure = { batches = 1, draws = 2 }",
        &["encoder", "encoder-decoder", "mlp", "lstm", "gru", "ssm"],
    ),
    (
        "classifier",
        "data.name = 'DATA'\nmodel.kind = 'mlp'\ntrain = { batch = 4, epochs = 1 }\nmeasure = { draws = 1, inputs = 2, \
         corruptions = 'contrast', sharpness = 0.01, adversarial = '0.01', hessian = true }",
        &["mlp", "cnn", "vit-small", "vit-simple", "resnet18", "densenet121", "convmixer"],
    ),
    ("grokking", "modulus = 5\nmodel = { d = 8, heads = 2, mlp = 8 }\ntrain.epochs = 30", &[""]),
    ("tokens", "length = 20\ntrain = { set_size = 20, batch = 10, epochs = 2 }\neval.sequences = 10", &[""]),
    ("spectra", "dim = 4\nwidth = 4\nheads = 2", &[""]),
];

/// What is taken however large it is, or up to a value, and why that is right.
const TAKEN: [(&str, &str, u64, &str); 21] = [
    ("boolean", "train.steps", 1_000_000_000_000, "time, which `show` tells"),
    ("boolean", "train.set_seed", u64::MAX, "a name"),
    ("boolean", "measure.set_seed", u64::MAX, "a name"),
    ("boolean", "measure.sensitivity_samples", u64::MAX, "there are 8 strings of 3 bits, which are all taken"),
    ("boolean", "track.every", u64::MAX, "a pause"),
    ("classifier", "data.seed", u64::MAX, "a name"),
    ("classifier", "train.batch", u64::MAX, "all inputs in one batch"),
    ("classifier", "train.epochs", 1_000_000_000, "time"),
    ("classifier", "train.factor_every", u64::MAX, "a pause"),
    ("classifier", "intervene.regularise_patch", u64::MAX, "not asked for"),
    ("classifier", "measure.every", u64::MAX, "a pause"),
    ("classifier", "measure.inputs", u64::MAX, "as many as there are"),
    ("classifier", "measure.corrupted", u64::MAX, "as many as there are"),
    ("classifier", "measure.sharpness_inputs", u64::MAX, "as many as there are"),
    ("classifier", "measure.adversarial_images", u64::MAX, "as many as there are"),
    ("classifier", "measure.hessian_inputs", u64::MAX, "as many as there are"),
    ("boolean", "seed", u64::MAX, "a name"),
    ("classifier", "seed", u64::MAX, "a name"),
    ("grokking", "seed", u64::MAX, "a name"),
    ("tokens", "seed", u64::MAX, "a name"),
    ("spectra", "seed", u64::MAX, "a name"),
];

/// Two classes of 32 x 32 colour images.
fn pictures(folder: &Path) {
    for split in ["train", "test"] {
        let own = folder.join(split);
        std::fs::create_dir_all(&own).unwrap();
        let labels: Vec<u8> = (0..8).map(|index| index % 2).collect();
        let pixels = labels.iter().flat_map(|label| (0..3072).map(move |at| (at % 100) as u8 + 100 * label)).collect();
        let images = Images::new(Shape { height: 32, width: 32, channels: 3 }, pixels, labels).unwrap();
        write_npy(&images, &own.join("images.npy"), &own.join("labels.npy")).unwrap();
    }
}

fn opened(recipe: &Recipe, overrides: &[&str]) -> Result<Plan> {
    let plan = plan_of(recipe, None, overrides)?;
    open(&plan, &Machine::default())?;
    Ok(plan)
}

#[test]
fn absurd_sizes_are_refused_before_anything_is_allocated() {
    let data = tempfile::tempdir().unwrap();
    pictures(data.path());
    let (mut refused, mut taken, mut problems) = (0, 0, Vec::new());
    for (kind, settings, variants) in TINY {
        let settings = settings.replace("DATA", &data.path().display().to_string());
        let text = format!(
            "title = 'tiny'\nkind = '{kind}'\n[settings]\n{settings}\n[quick]\n[[quick.sweep]]\nname = 'all'\ngrid.seed = [0]\n"
        );
        let recipe = Recipe::parse("tiny.toml", &text).unwrap();
        let numbers = Kind::find(kind).unwrap().documentation();
        let numbers: Vec<String> =
            numbers.into_iter().filter(|doc| doc.kind == "whole number").map(|doc| doc.key).collect();
        for (place, variant) in variants.iter().enumerate() {
            let variant = format!("model.kind={variant}");
            let variant: Vec<&str> = if variant == "model.kind=" { Vec::new() } else { vec![&variant] };
            opened(&recipe, &variant).unwrap();
            for key in &numbers {
                let rule = TAKEN.iter().find(|(of, name, ..)| *of == kind && name == key);
                // What is taken is taken by all of them; one is tried, as some are slow.
                for value in LARGE.into_iter().filter(|_| place == 0 || rule.is_none()) {
                    let change = format!("{key}={value}");
                    let taken_up_to = rule.map_or(0, |(_, _, most, _)| *most);
                    let wrong = match opened(&recipe, &[&variant[..], &[&change]].concat()) {
                        Ok(_) => {
                            taken += 1;
                            (value > taken_up_to).then(|| "was taken".to_string())
                        }
                        Err(error) => {
                            refused += 1;
                            let sentence = error.to_string();
                            let told = sentence.contains(key.as_str()) || sentence.contains("years");
                            let right = value > taken_up_to && told && !sentence.contains('\n');
                            (!right).then_some(sentence)
                        }
                    };
                    wrong
                        .into_iter()
                        .for_each(|sentence| problems.push(format!("{kind} {variant:?} {change}: {sentence}")));
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert!(refused > 500 && taken > 40, "{refused} {taken}");
    assert_eq!(KINDS.len(), TINY.len());
}

/// Sizes that can be counted but not had, and what is said about them: what is needed, and what there is.
#[test]
fn what_cannot_fit_is_told_with_both_numbers() {
    let data = tempfile::tempdir().unwrap();
    pictures(data.path());
    let recipe = |kind: &str, settings: &str| {
        let text = format!(
            "title = 'tiny'\nkind = '{kind}'\n[settings]\n{settings}\n[quick]\n[[quick.sweep]]\nname = 'all'\ngrid.seed = '0..4'\n"
        );
        Recipe::parse("tiny.toml", &text.replace("DATA", &data.path().display().to_string())).unwrap()
    };
    let boolean = recipe("boolean", "n = 60");
    let classifier = recipe("classifier", "data.name = 'DATA'");
    // Hundreds of terabytes, so that no machine has them.
    for (recipe, overrides, key) in [
        (&boolean, &["model.d=65536", "model.layers=1024"][..], "model."),
        (&boolean, &["model.ff=1048576", "model.d=8192", "model.layers=1024"], "model."),
        (&boolean, &["train.batch=16777216", "model.d=16384", "model.layers=64"], "train.batch"),
        (&boolean, &["train.set_size=10000000000000"], "train.set_size"),
        (&boolean, &["measure.set_size=10000000000000"], "measure.set_size"),
        (&boolean, &["measure.sensitivity_samples=10000000000000"], "measure.sensitivity_samples"),
        (&classifier, &["model.kind=mlp", "model.hidden=16777216-16777216"], "model.hidden"),
        (&classifier, &["model.kind=vit-small", "model.dim=65536", "model.depth=1024", "model.mlp=1048576"], "model."),
        (&classifier, &["model.kind=convmixer", "model.dim=65536", "model.depth=1024", "model.kernel=1023"], "model."),
        (&classifier, &["model.kind=resnet18", "model.width=65536", "model.blocks=1024-1024-1024-1024"], "model."),
    ] {
        let sentence = opened(recipe, overrides).map(|_| ()).unwrap_err().to_string();
        assert!(sentence.starts_with(key), "{overrides:?}: {sentence}");
        assert!(sentence.contains("needs about") && sentence.contains("this process may have"), "{sentence}");
    }
    let spectra = recipe("spectra", "dim = 12");
    let sentence = opened(&spectra, &["width=4096", "depth=64"]).map(|_| ()).unwrap_err().to_string();
    assert!(sentence.starts_with("width: 2^12 inputs x "), "{sentence}");
}

/// A plan that is too large is refused before it is made.
#[test]
fn plans_have_a_largest_size() {
    let boolean = Recipe::find("hahn/length-scaling").unwrap();
    let refusal = |overrides: &[&str]| plan_of(&boolean, None, overrides).map(|_| ()).unwrap_err().to_string();
    let product = refusal(&["seed=0..100000", "n=4..=30", "model.d=8,16", "train.lr=0.1,0.2"]);
    assert!(product.contains("asks for 10800000 runs; a plan holds at most 200000"), "{product}");
    assert!(refusal(&["seed=0..1000000000"]).contains("too long a range"));
    assert!(refusal(&["seed=0..900000,0..900000"]).contains("more than 1000000 values"));
    let drawn = |draws: &str, grid: &str| {
        let text = format!(
            "title = 'tiny'\n[quick]\n[[quick.sweep]]\nname = 'all'\n{grid}\nrandom.seed = '0..10'\ndraws = {draws}\n"
        );
        plan_of(&Recipe::parse("tiny.toml", &text).unwrap(), None, &[]).map(|_| ()).unwrap_err().to_string()
    };
    assert!(drawn("1000000000", "").contains("asks for 1000000000 runs"));
    let grid = "grid = { n = '1..=1000', model.d = '2..=1001', train.batch = '1..=10000' }";
    assert!(drawn("18446744073709551615", grid).contains("a plan holds at most 200000"));
}

#[test]
fn a_hundred_thousand_seeds_are_planned_with_the_ids_they_have_alone() {
    let recipe = Recipe::find("hahn/length-scaling").unwrap();
    let many = plan_of(&recipe, None, &["seed=0..100000", "target=parity", "n=4"]).unwrap();
    assert_eq!(many.runs.len(), 100_000);
    assert_eq!(many.swept, ["seed"]);
    for seed in [0, 7, 99_999] {
        let alone = plan_of(&recipe, None, &[&format!("seed={seed}"), "target=parity", "n=4"]).unwrap();
        let run = many.runs.iter().find(|run| run.settings.number("seed") == f64::from(seed)).unwrap();
        assert_eq!((&run.id, &run.settings), (&alone.runs[0].id, &alone.runs[0].settings));
        assert_eq!(recipe.kind.id(&run.settings).unwrap(), run.id);
    }
}
