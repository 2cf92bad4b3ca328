//! The recipes that travel inside the program. `crates/lab/recipes` is a link to `recipes/`, so that the packaged crate holds them.

macro_rules! recipes {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/recipes/", $name, ".toml")))),*]
    };
}

const RECIPES: &[(&str, &str)] = recipes![
    "hahn/length-scaling",
    "hahn/long-lengths",
    "hahn/tradeoff",
    "hahn/tradeoff-lengths",
    "hahn/dynamics",
    "hahn/dynamics-long",
    "hahn/generalization",
    "hahn/scratchpad",
    "hahn/constructions",
    "hahn/random-initialization",
    "hahn/degree-bias",
    "hahn/noise-lengths",
    "hahn/length-generalization",
    "vasudeva/mnist",
    "vasudeva/fashion-mnist",
    "vasudeva/cifar10",
    "vasudeva/svhn",
    "vasudeva/ablation-optimizer",
    "vasudeva/ablation-depth",
    "vasudeva/ablation-heads",
    "vasudeva/robustness",
    "vasudeva/sharpness",
    "vasudeva/mrpc",
    "vasudeva/qqp",
    "vasudeva/qqp-variance",
    "vasudeva/qqp-validation",
    "vasudeva/qqp-gpt2",
    "vasudeva/qqp-depth",
    "vasudeva/grokking",
    "vasudeva/spectra",
    "vasudeva/synthetic",
];

/// The names of the built-in recipes, in the papers' order.
pub fn builtin_names() -> impl Iterator<Item = &'static str> + Clone {
    RECIPES.iter().map(|(name, _)| *name)
}

/// The text of a built-in recipe.
pub fn builtin(name: &str) -> Option<&'static str> {
    RECIPES.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}
