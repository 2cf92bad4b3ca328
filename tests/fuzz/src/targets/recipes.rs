//! Recipes, overrides and settings, up to the plan.

use super::{said, text, write};
use crate::case::Case;
use crate::mutate::Form;
use crate::target::{Memory, Target};
use pudica_lab::recipe::axis::Values;
use pudica_lab::recipe::{Override, builtin, builtin_names};
use pudica_lab::store::RunFolder;
use pudica_lab::{KINDS, Plan, Recipe, Request};

/// Runs of a plan that is made: enough to see one, too few to take long.
const MOST_RUNS: usize = 16;

const SMALL: &str = r#"title = "Does width help?"
plot = { x = "n", y = "sharpness", colour = "model.d" }
[settings]
train.lr = 3e-4
[quick]
settings = { train.steps = 10, model.d = 4 }
[[quick.sweep]]
name = "all"
grid = { target = ["parity", "threshold:n/3"], n = "4..=6 step 2" }
[[quick.sweep]]
name = "drawn"
draws = 2
random = { train.lr = "0.1..0.2", seed = "0..10" }
[paper]
[[paper.sweep]]
name = "one"
set = { n = 3 }
[[paper.sweep]]
name = "two"
follows = "one"
set = { target = "run:{id}", n = "{n}" }
where = { seed = 0 }
"#;

pub const RECIPE: Target = Target {
    name: "recipe",
    about: "recipes as TOML, and the plans of those with few runs",
    form: Form::Plain,
    words: &[
        "[settings]",
        "[quick]",
        "[[quick.sweep]]",
        "title = ",
        "kind = ",
        "\"classifier\"",
        "\"grokking\"",
        "\"tokens\"",
        "\"spectra\"",
        "\"boolean\"",
        "figures = ",
        "plot = ",
        "grid = ",
        "random = ",
        "draws = ",
        "follows = ",
        "where = ",
        "set = ",
        "name = ",
        "\"0..10\"",
        "\"4..=30 step 2\"",
        "\"{id}\"",
        "{",
        "}",
        "model.d",
        "train.lr",
        "train.steps",
        "n",
        "seed",
        "target",
        "\"expr:x1&x2\"",
        "compute.device",
        "data.name",
        "model.kind",
        "measure.draws",
    ],
    // As those of overrides.
    memory: Memory { constant: 1024, factor: 4000 },
    seeds: || {
        let mut cases = vec![Case::new(0, SMALL)];
        // The short ones, of every kind: reading takes as long as a recipe is.
        let short = builtin_names().filter_map(builtin).filter(|text| text.len() < 1450);
        cases.extend(short.map(|text| Case::new(0, text)));
        cases
    },
    reader: |_| {
        Box::new(|_, bytes| {
            let recipe = Recipe::parse("fuzz.toml", &text(bytes)).map_err(|error| error.to_string())?;
            for scale in &recipe.scales {
                plan(&recipe, &Request { scale: Some(scale.name.clone()), ..Request::default() })?;
            }
            Ok(())
        })
    },
    short: 300,
};

/// Plans what has few runs.
fn plan(recipe: &Recipe, request: &Request) -> Result<(), String> {
    let scale = recipe.scale(request.scale.as_deref()).map_err(|error| error.to_string())?;
    let mut scale = scale.clone();
    for text in &request.overrides {
        Override::parse(text).and_then(|change| change.apply(&mut scale)).map_err(|error| error.to_string())?;
    }
    let count = |values: &Values| if let Values::List(list) = values { list.len() } else { 1 };
    let mut runs = 0usize;
    for sweep in &scale.sweeps {
        let grid = sweep.grid.iter().fold(1usize, |runs, axis| runs.saturating_mul(count(&axis.values)));
        let own = grid.saturating_mul(sweep.draws as usize);
        let followed = if sweep.follows.is_some() { runs } else { 1 };
        runs = runs.saturating_add(own.saturating_mul(followed));
    }
    match runs <= MOST_RUNS {
        true => said(Plan::new(recipe, request)),
        false => Ok(()),
    }
}

pub const OVERRIDES: Target = Target {
    name: "overrides",
    about: "overrides as typed, applied to a recipe of each kind",
    form: Form::Plain,
    words: &[
        "n=",
        "seed=",
        "model.d=",
        "train.lr=",
        "target=",
        "draws=",
        "..",
        "..=",
        " step ",
        ",",
        "0..10",
        "4..=30",
        "random:0..3",
        "expr:maj(x1,x2,x3)",
        "table:../f.npy",
        "true",
        "false",
        "1e4",
        "0.1..0.2",
        "compute.dtype=f64",
        "data=",
        "modulus=",
        "architecture=",
        "operation=",
        "data.name=",
        "model.kind=",
        "model.hidden=",
        "(",
        ")",
        "train.lengths=",
        "eval.lengths=",
        "measure.volume=",
        "train.unseen=",
        "model.start=",
        "construct:parity",
        "1 to n",
    ],
    // Each axis is a list in memory of up to a million values.
    memory: Memory { constant: 1024, factor: 4000 },
    seeds: || {
        let texts: [(usize, &str); 12] = [
            (0, "n=4..=6 seed=0"),
            (0, "model.d=64 train.lr=1e-3 target=parity,first n=4"),
            (0, "target=expr:maj(x1,x2,x3) n=3 train.lengths=1 to n"),
            (0, "seed=0..10 draws=2"),
            (0, "model.start=construct:parity n=5 model.d=16"),
            (0, "train.unseen=expr:x1&x2 measure.volume=0.1 eval.lengths=n"),
            (1, "data.name=mnist model.kind=cnn model.hidden=512-128 seed=0"),
            (1, "model.kind=roberta data.name=sst2 measure.corruptions=none"),
            (2, "modulus=7 operation=a*b share=0.5"),
            (3, "data=1:2:1:3:12 length=12 seed=0..2"),
            (4, "architecture=relu dim=4 depth=2"),
            (4, "architecture=softmax-attention dim=6 tokens=3 heads=2"),
        ];
        texts.into_iter().map(|(part, text)| Case::new(part, text.replace(' ', "\n"))).collect()
    },
    reader: |_| {
        let recipes: Vec<Recipe> = KINDS
            .iter()
            .map(|kind| {
                let text =
                    format!("title = \"t\"\nkind = \"{}\"\n[quick]\n[[quick.sweep]]\nname = \"all\"\n", kind.name);
                Recipe::parse("fuzz.toml", &text).expect("a recipe without settings")
            })
            .collect();
        Box::new(move |part, bytes| {
            let overrides = text(bytes).split('\n').filter(|text| !text.is_empty()).map(String::from).collect();
            plan(&recipes[part % recipes.len()], &Request { overrides, ..Request::default() })
        })
    },
    short: 1000,
};

pub const SETTINGS: Target = Target {
    name: "settings",
    about: "the settings of a run as its folder has them, resolved by every kind",
    form: Form::Json,
    words: &[
        "\"model\"",
        "\"train\"",
        "\"measure\"",
        "\"eval\"",
        "\"data\"",
        "\"compute\"",
        "\"seed\"",
        "null",
        "true",
        "{}",
        "[]",
        "\"\"",
        "1e400",
        "-1",
        "\"cuda\"",
    ],
    memory: Memory { constant: 16, factor: 2000 },
    seeds: || {
        let defaults = |(place, kind): (usize, &&pudica_lab::Kind)| {
            Case::new(place, serde_json::to_vec_pretty(&kind.defaults().tree()).unwrap_or_default())
        };
        KINDS.iter().enumerate().map(defaults).collect()
    },
    reader: |folder| {
        let (path, folder) = (folder.join("config.json"), RunFolder::new(folder.into()));
        Box::new(move |part, bytes| {
            write(&path, bytes);
            let settings = folder.settings().map_err(|error| error.to_string())?;
            let settings = settings.ok_or("there is no config.json")?;
            let kind = KINDS[part % KINDS.len()];
            _ = (settings.keys(), settings.compute(), settings.number("n"), settings.text("train.lr"));
            let resolved = kind.resolve(&settings).map_err(|error| error.to_string())?;
            said(kind.id(&resolved).and_then(|_| kind.id(&settings)))
        })
    },
    short: 1500,
};
