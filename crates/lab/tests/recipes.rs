//! Every built-in recipe plans the runs the paper made, and the overrides people type change them as documented.

mod common;

use common::plan_of;
use pudica_lab::kinds::boolean::RunConfig;
use pudica_lab::plan::PlannedRun;
use pudica_lab::recipe::builtin_names;
use pudica_lab::{Plan, Recipe, Request};

/// The recipes whose runs learn Boolean functions.
fn boolean_names() -> Vec<&'static str> {
    builtin_names().filter(|name| name.starts_with("hahn/")).collect()
}

fn plan(recipe: &str, scale: &str, overrides: &[&str]) -> Plan {
    plan_of(&Recipe::find(recipe).unwrap(), Some(scale), overrides).unwrap()
}

fn config(run: &PlannedRun) -> RunConfig {
    run.settings.read().unwrap()
}

#[test]
fn paper_scale_is_the_published_number_of_runs() {
    let published = [
        ("hahn/length-scaling", 4 * 27 * 10),
        ("hahn/long-lengths", 3 * 20 * 10),
        ("hahn/tradeoff", 2 * 1000),
        ("hahn/tradeoff-lengths", 2 * 500),
        ("hahn/dynamics", 4 * 101),
        ("hahn/dynamics-long", 2 * 101),
        // T1s, five refits of each, five refits of a completion for each of the 256 case, five of each original
        ("hahn/generalization", 300 + 1500 + 500 + 50),
        ("hahn/scratchpad", 30 * 10),
        // not published: PARITY twice, MAJORITY, FIRST
        ("hahn/constructions", 4 * 27),
        // ours: transformers of four depths and five other networks at nine lengths, scales, long inputs, cut at 0, trained ones
        ("hahn/random-initialization", (4 + 4 + 1) * 9 * 20 + 5 * 5 * 20 + 5 * 3 * 10 + 5 * 20 + 3 * 2 * 3),
        // ours: three functions and five networks, random functions with two kinds of unseen strings
        ("hahn/degree-bias", 3 * 5 * 5 + 2 * 5 * 5 * 2),
        // ours: four constructions, fifteen lengths, seven sizes of noise, ten seeds
        ("hahn/noise-lengths", 4 * 15 * 7 * 10),
        // ours: four kinds of positions and an LSTM on three functions
        ("hahn/length-generalization", 5 * 3 * 10),
    ];
    assert_eq!(published.map(|(name, _)| name).to_vec(), boolean_names());
    for (name, runs) in published {
        assert_eq!(plan(name, "paper", &[]).runs.len(), runs, "{name}");
    }
}

#[test]
fn paper_scale_keeps_the_published_settings() {
    let config = config(&plan("hahn/length-scaling", "paper", &[]).runs[0]);
    assert_eq!((config.model.d, config.model.layers, config.model.heads, config.model.ff), (128, 2, 2, 128));
    assert_eq!((config.train.lr, config.train.weight_decay, config.train.batch), (3e-4, 0.1, 1024));
    assert_eq!((config.train.steps, config.eval.batches, config.measure.batches), (10_000, 1000, 1000));
    assert_eq!((config.measure.rho, config.measure.draws, config.eval.converged_below), (0.02, 10, 1e-3));
    let config: RunConfig = plan("hahn/dynamics", "paper", &[]).runs[0].settings.read().unwrap();
    assert_eq!((config.n, config.train.steps, config.track.every, config.track.draws), (25, 20_000, 100, 500));
    let config: RunConfig = plan("hahn/scratchpad", "paper", &[]).runs[0].settings.read().unwrap();
    assert_eq!((config.model.d, config.model.ff, config.train.batch), (32, 32, 128));
}

#[test]
fn every_scale_of_every_recipe_plans_and_what_is_stored_reads_back() {
    for name in builtin_names() {
        let recipe = Recipe::find(name).unwrap();
        for scale in &recipe.scales {
            let plan = plan(name, &scale.name, &[]);
            assert!(!plan.runs.is_empty() && !plan.swept.is_empty(), "{name}");
            for run in plan.runs.iter().take(3) {
                let again = recipe.kind.resolve(&run.settings).unwrap();
                assert_eq!((&again, recipe.kind.id(&again).unwrap()), (&run.settings, run.id.clone()), "{name}");
            }
            let labels: std::collections::HashSet<&String> = plan.runs.iter().map(|run| &run.label).collect();
            assert!(labels.len() * 10 >= plan.runs.len() * 9, "{name}: labels tell runs apart");
        }
    }
}

#[test]
fn random_axes_stay_in_their_ranges_and_are_repeatable() {
    let first = plan("hahn/tradeoff", "paper", &[]);
    assert_eq!(first.runs, plan("hahn/tradeoff", "paper", &[]).runs);
    let lengths: std::collections::BTreeSet<usize> = first.runs.iter().map(|run| config(run).n).collect();
    assert_eq!(lengths, (4..=25).collect());
    assert!(first.runs.iter().all(|run| (0.0..0.4).contains(&config(run).train.weight_decay)));
    assert!(first.runs.iter().all(|run| (1e-4..5e-4).contains(&config(run).train.lr)));
    let mean_lr = first.runs.iter().map(|run| config(run).train.lr).sum::<f64>() / 2000.0;
    assert!((mean_lr - 3e-4).abs() < 1e-5);
}

#[test]
fn overrides_replace_axes_or_set_values() {
    let plan = plan("hahn/length-scaling", "paper", &["n=4,8", "seed=0..3", "model.d=64", "train.lr=1e-3,1e-4"]);
    assert_eq!(plan.runs.len(), 4 * 2 * 3 * 2);
    assert!(plan.runs.iter().all(|run| config(run).model.d == 64 && config(run).model.ff == 64));
    assert_eq!(
        plan.command(),
        "pudica run hahn/length-scaling --scale paper n=4,8 seed=0..3 model.d=64 train.lr=1e-3,1e-4"
    );
}

/// The recipe sets the heads of its transformers; an LSTM has none, and who asks for one did not ask for heads.
#[test]
fn what_an_override_leaves_without_use_is_refused_only_where_the_user_gave_it() {
    let plan = plan("vasudeva/mrpc", "quick", &["model.kind=lstm"]);
    assert!(plan.runs.iter().all(|run| run.settings.text("model.kind") == "lstm"));
    let recipe = Recipe::find("vasudeva/mrpc").unwrap();
    let refused = plan_of(&recipe, Some("quick"), &["model.kind=lstm", "model.heads=2"]).unwrap_err().to_string();
    assert!(refused.contains("model.heads: plays no part"), "{refused}");
}

#[test]
fn drawn_axes_stay_drawn_when_overridden() {
    let plan = plan("hahn/tradeoff", "paper", &["draws=10", "n=5,6"]);
    assert_eq!(plan.runs.len(), 20);
    assert!(plan.runs.iter().all(|run| [5, 6].contains(&config(run).n)));
}

#[test]
fn later_stages_name_the_runs_they_learn_from() {
    let plan = plan("hahn/generalization", "paper", &["target=random:0..1", "train.set_seed=0"]);
    let learnt: Vec<_> = plan.runs.iter().filter(|run| run.sweep == "learn").collect();
    let refits: Vec<_> = plan.runs.iter().filter(|run| run.sweep == "refit").collect();
    assert_eq!((learnt.len(), refits.len()), (3, 15));
    for (index, refit) in refits.iter().enumerate() {
        let parent = learnt[index / 5];
        assert_eq!(refit.depends_on(plan.kind()).as_deref(), Some(parent.id.as_str()));
        assert_eq!(config(refit).measure.set_size, config(parent).train.set_size);
        assert_eq!(config(refit).train.set_size, 1024);
    }
    let completion = plan.runs.iter().find(|run| run.sweep == "completion").unwrap();
    assert_eq!(config(completion).target, "completion:90:256:0:random:0");
}

#[test]
fn equal_settings_are_the_same_run_and_different_ones_are_not() {
    let plan = plan("hahn/length-scaling", "paper", &[]);
    let ids: std::collections::HashSet<&str> = plan.runs.iter().map(|run| run.id.as_str()).collect();
    assert_eq!(ids.len(), plan.runs.len());
    // An id is part of the store's format: it must not change unnoticed between versions.
    assert_eq!(plan.runs[0].id, "3dc637f520fa");
}

#[test]
fn wrong_names_suggest_the_nearest() {
    let refusal = |name: &str| Recipe::find(name).unwrap_err().to_string();
    assert!(refusal("hahn/lenght-scaling").contains("did you mean `hahn/length-scaling`?"));
    assert!(refusal("scratchpad").contains("did you mean `hahn/scratchpad`?"));
    assert!(refusal("mine.toml").contains("cannot read the recipe mine.toml"));
    let recipe = Recipe::find("hahn/dynamics").unwrap();
    let refusal = plan_of(&recipe, Some("huge"), &[]).unwrap_err().to_string();
    assert!(refusal.contains("has no scale `huge`"), "{refusal}");
}

#[test]
fn a_user_recipe_needs_only_a_title_and_a_sweep() {
    let text = "title = 'mine'\n[small.settings]\nmodel.d = 8\n[[small.sweep]]\nname = 'all'\ngrid.seed = '0..2'\n";
    let recipe = Recipe::parse("mine.toml", text).unwrap();
    assert_eq!(plan_of(&recipe, None, &[]).unwrap().runs.len(), 2);
    let refusal = |text: &str| Recipe::parse("mine.toml", text).unwrap_err().to_string();
    assert!(refusal("title = 'mine'").contains("has no scale"));
    assert!(refusal("title = 'mine'\ntyop = 3").contains("does not know the key `tyop`"));
    assert!(refusal(&text.replace("model.d", "model.dd")).contains("did you mean `model.d`"));
    assert!(refusal(&text.replace("name =", "nmae =")).contains("nmae"));
    assert!(refusal("title = ").contains("recipe mine.toml:"));
}

#[test]
fn what_a_run_is_computed_on_is_part_of_its_id() {
    let recipe = Recipe::find("hahn/length-scaling").unwrap();
    let id = |overrides: &[&str]| plan_of(&recipe, Some("paper"), overrides).unwrap().runs[0].id.clone();
    let ids = [
        id(&[]),
        id(&["compute.dtype=f64"]),
        id(&["compute.engine=reference"]),
        id(&["compute.device=cuda"]),
        id(&["compute.device=cuda", "compute.dtype=tf32"]),
    ];
    assert_eq!(ids.iter().collect::<std::collections::HashSet<_>>().len(), ids.len());
    assert_eq!(ids[0], id(&["compute.dtype=f32"]), "the default is the default, said or not");
}

#[test]
fn other_settings_get_a_folder_of_their_own_and_the_command_repeats_them() {
    let recipe = Recipe::find("hahn/length-scaling").unwrap();
    let plan = |overrides: &[&str], flags: &[(&str, &str)]| {
        let text = |text: &&str| text.to_string();
        let flags = flags.iter().map(|(flag, change)| (flag.to_string(), change.to_string())).collect();
        let overrides = overrides.iter().map(text).collect();
        let repeat = vec!["--data DIR".to_string()];
        Plan::new(&recipe, &Request { overrides, flags, repeat, ..Request::default() }).unwrap()
    };
    let folder = |plan: &Plan| plan.default_folder().display().to_string();
    assert_eq!(folder(&plan(&[], &[])), "runs/hahn/length-scaling-quick");
    let other = plan(&["model.d=64", "target=parity,first"], &[("--dtype f64", "compute.dtype=f64")]);
    assert_eq!(folder(&other), "runs/hahn/length-scaling-quick+model.d=64+target=parity,first+f64");
    assert_eq!(
        other.command(),
        "pudica run hahn/length-scaling --scale quick model.d=64 target=parity,first --dtype f64 --data DIR"
    );
    let long = folder(&plan(&[&format!("target={}", vec!["parity,first"; 20].join(","))], &[]));
    assert!(long.len() < 110, "{long}");
}

#[test]
fn labels_name_what_differs_and_nothing_else() {
    let labels = |overrides: &[&str]| -> Vec<String> {
        let runs = plan("hahn/length-scaling", "paper", overrides).runs;
        runs.into_iter().map(|run| run.label).collect()
    };
    assert_eq!(labels(&["n=4", "seed=0", "target=parity"]), ["parity n=4 seed=0"]);
    assert_eq!(labels(&["n=4", "seed=0", "target=parity,first"]), ["parity", "first"]);
    let widths = labels(&["n=4,5", "seed=0", "target=parity", "model.d=16,32", "train.lr=0.1,0.2"]);
    assert_eq!(widths[..2], ["n=4 d=16 lr=0.1", "n=4 d=16 lr=0.2"]);
    // The networks differ in depth, heads, ... as well, which their names tell.
    let networks = plan("vasudeva/mnist", "quick", &["seed=0,1"]).runs;
    let labels: Vec<&str> = networks.iter().map(|run| run.label.as_str()).collect();
    assert_eq!(labels, ["mlp seed=0", "mlp seed=1", "vit-small seed=0", "vit-small seed=1"]);
    let depths = plan("vasudeva/mnist", "quick", &["model.depth=1,2", "model.kind=vit-small"]).runs;
    assert!(depths.iter().all(|run| run.label.contains("depth=")), "{:?}", depths[0].label);
}

#[test]
fn plans_that_are_too_large_are_refused_at_once() {
    let recipe = Recipe::find("hahn/length-scaling").unwrap();
    let refusal = |overrides: &[&str]| plan_of(&recipe, None, overrides).unwrap_err().to_string();
    assert!(refusal(&["seed=0..100000", "n=4..=30"]).contains("a plan holds at most"));
    assert!(refusal(&["n=5", "n=6"]).contains("n is given twice"));
}
