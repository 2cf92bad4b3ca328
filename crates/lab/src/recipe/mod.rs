//! Recipes: one TOML file for each experiment, saying which runs at which scale, and what is drawn from them.
//!
//! ```toml
//! title = "Sharpness against length"
//! source = "Hahn & Rofin (2024), Figures 1, 5, 6 and Table 2"
//! figures = "length-scaling"            # which figures and tables the report draws
//! plot = { x = "n", y = "sharpness", colour = "model.d" }   # and a figure, or a list of them, of your own
//! about = "What the experiment shows, in a sentence or two."
//! kind = "boolean"                      # what its runs are, see `pudica settings`; boolean where nothing is said
//!
//! [settings]                            # for every scale; anything not set keeps its default
//! train.lr = 3e-4
//!
//! [paper]                               # a scale: its own settings and its sweeps
//! settings = { train.steps = 10_000 }
//! [[paper.sweep]]
//! name = "all"
//! grid = { target = ["parity", "first"], n = "4..=30", seed = "0..10" }
//! ```
//!
//! A sweep runs through the product of its `grid` axes, the last one fastest. With `draws = 1000`, each axis under
//! `random` is drawn that many times (from a stream named by `draw_seed`) and every draw runs through the grid. A sweep
//! with `follows = "other"` runs once for every run of that sweep; in its `set`, `{id}` and `{any.setting}` stand for that
//! run's id and settings, and `where` keeps only some of those runs. How axes are written: [`axis`].

pub mod axis;
mod builtin;
mod overrides;
mod plot;

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::kinds::Kind;
use crate::settings::{Settings, flatten};
use axis::Axis;

pub use builtin::{builtin, builtin_names};
pub use overrides::Override;
pub use plot::Plot;

/// The size at which an experiment is run.
pub const DEFAULT_SCALE: &str = "quick";

/// The words a recipe's `figures` may be: what `pudica_report` can draw.
pub const FIGURES: &[&str] = &[
    "runs",
    "length-scaling",
    "long-lengths",
    "scratchpad",
    "tradeoff",
    "tradeoff-lengths",
    "dynamics",
    "dynamics-long",
    "generalization",
    "constructions",
    "random-initialization",
    "degree-bias",
    "noise-lengths",
    "length-generalization",
    "classifier",
    "ablation",
    "grokking",
    "tokens",
    "spectra",
];

/// An experiment: what to run at each scale and what to draw.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// `hahn/length-scaling`, or the path of a user's file.
    pub name: String,
    /// What its runs are.
    pub kind: &'static Kind,
    /// A short title.
    pub title: String,
    /// Which figures and tables of which paper.
    pub source: String,
    /// What the experiment shows.
    pub about: String,
    /// Which figures and tables the report draws: one of [`FIGURES`].
    pub figures: String,
    /// Further figures that the report draws.
    pub plots: Vec<Plot>,
    /// The scales on offer, in the file's order.
    pub scales: Vec<Scale>,
    /// The file's text, kept with every sweep made from it.
    pub text: String,
}

/// One size of an experiment.
#[derive(Clone, Debug)]
pub struct Scale {
    /// `quick`, `paper` or another name.
    pub name: String,
    /// The settings all its sweeps start from.
    pub settings: Settings,
    /// Those of them that the recipe gives; the others are defaults.
    pub given: Vec<String>,
    /// Its sweeps, in the order they run.
    pub sweeps: Vec<Sweep>,
}

/// A family of runs.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// Its name within the recipe.
    pub name: String,
    /// Settings fixed in this sweep; texts may hold `{...}` where it follows another.
    pub set: Vec<(String, Value)>,
    /// Axes run through.
    pub grid: Vec<Axis>,
    /// Axes drawn from.
    pub random: Vec<Axis>,
    /// How often the random axes are drawn; 1 where there are none.
    pub draws: u64,
    /// Names the draws.
    pub draw_seed: u64,
    /// The sweep for each run of which this one runs once.
    pub follows: Option<String>,
    /// Which of those runs: settings they must have.
    pub only_where: Vec<(String, Value)>,
}

// An unknown key at the top is taken for a scale; `Recipe::parse` refuses it if it is not a table.
#[derive(Deserialize)]
struct RecipeFile {
    title: String,
    #[serde(default)]
    kind: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    figures: String,
    #[serde(default)]
    plot: Value,
    #[serde(default)]
    settings: Value,
    #[serde(flatten)]
    scales: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScaleFile {
    #[serde(default)]
    settings: Value,
    sweep: Vec<SweepFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SweepFile {
    name: String,
    #[serde(default)]
    set: Value,
    #[serde(default)]
    grid: Value,
    #[serde(default)]
    random: Value,
    draws: Option<u64>,
    #[serde(default)]
    draw_seed: u64,
    follows: Option<String>,
    #[serde(default, rename = "where")]
    only_where: Value,
}

impl Recipe {
    /// A built-in recipe by its name, or a user's own by the path of its TOML file.
    pub fn find(name: &str) -> Result<Recipe> {
        if let Some(text) = builtin(name) {
            return Recipe::parse(name, text);
        }
        let path = Path::new(name);
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = pudica_boolean::plain::written_text(path).map_err(Error::io("read the recipe", path))?;
            return Recipe::parse(name, &text);
        }
        // `length-scaling` is as good as `hahn/length-scaling` for a suggestion.
        let by_last_part = builtin_names().find(|known| known.rsplit('/').next() == Some(name));
        let nearest = by_last_part.or_else(|| pudica_boolean::nearest(name, builtin_names())).map(String::from);
        Err(Error::UnknownRecipe { name: name.into(), nearest })
    }

    /// Reads a recipe's text.
    pub fn parse(name: &str, text: &str) -> Result<Recipe> {
        let wrong = |problem: String| Error::Recipe { recipe: name.into(), problem };
        let file: RecipeFile = toml::from_str(text).map_err(|error| {
            wrong(pudica_boolean::at_place(text, error.span().map(|span| span.start), error.message()))
        })?;
        let kind = Kind::find(&file.kind).map_err(|error| wrong(error.to_string()))?;
        let figures = match file.figures.as_str() {
            "" => kind.figures,
            word => *FIGURES.iter().find(|known| **known == word).ok_or_else(|| {
                let near = match pudica_boolean::did_you_mean(word, FIGURES.iter().copied()) {
                    near if near.is_empty() => format!(" (there are {})", FIGURES.join(", ")),
                    near => near,
                };
                wrong(format!("there are no figures \"{word}\"{near}"))
            })?,
        };
        let plots = Plot::read_all(&file.plot).map_err(wrong)?;
        plots.iter().try_for_each(|plot| plot.check(kind)).map_err(wrong)?;
        if file.scales.is_empty() {
            return Err(wrong("has no scale; add a [quick] or [paper] table with a [[quick.sweep]]".into()));
        }
        let mut scales = Vec::new();
        for (scale, table) in file.scales {
            if !table.is_object() {
                return Err(wrong(format!(
                    "does not know the key `{scale}`; it knows title, kind, source, about, figures, plot, settings and tables of scales"
                )));
            }
            let table: ScaleFile =
                serde_json::from_value(table).map_err(|error| wrong(format!("[{scale}]: {error}")))?;
            let (mut settings, mut given) = (kind.defaults(), Vec::new());
            for tree in [&file.settings, &table.settings] {
                for (key, value) in leaves("settings", tree).map_err(wrong)? {
                    settings.set(&key, value)?;
                    given.push(key);
                }
            }
            let mut sweeps: Vec<Sweep> = Vec::new();
            for sweep in table.sweep {
                if sweep.name.is_empty() {
                    return Err(wrong(format!("[{scale}]: a sweep has an empty name; give it one")));
                }
                if sweeps.iter().any(|other| other.name == sweep.name) {
                    return Err(wrong(format!("[{scale}]: two sweeps are called `{}`; rename one", sweep.name)));
                }
                sweeps.push(Sweep::read(sweep, &settings, &wrong)?);
            }
            scales.push(Scale { name: scale, settings, given, sweeps });
        }
        Ok(Recipe {
            name: name.into(),
            kind,
            title: file.title,
            source: file.source,
            about: file.about,
            figures: figures.into(),
            plots,
            scales,
            text: text.into(),
        })
    }

    /// One of the scales; the default is `quick`, or the only one there is.
    pub fn scale(&self, name: Option<&str>) -> Result<&Scale> {
        let wanted = match (name, &self.scales[..]) {
            (Some(name), _) => name,
            (None, [only]) => return Ok(only),
            (None, _) => DEFAULT_SCALE,
        };
        self.scales.iter().find(|scale| scale.name == wanted).ok_or_else(|| {
            let known: Vec<&str> = self.scales.iter().map(|scale| scale.name.as_str()).collect();
            let problem = format!("has no scale `{wanted}`; it has {}", known.join(" and "));
            Error::Recipe { recipe: self.name.clone(), problem }
        })
    }
}

impl Sweep {
    /// Whether it gives the setting a value of its own.
    pub fn decides(&self, key: &str) -> bool {
        let axis = |axis: &Axis| axis.key == key;
        self.grid.iter().any(axis) || self.random.iter().any(axis) || self.set.iter().any(|(set, _)| set == key)
    }

    fn read(file: SweepFile, known: &Settings, wrong: &dyn Fn(String) -> Error) -> Result<Sweep> {
        let settings = |table: &str, tree: &Value| -> Result<Vec<(String, Value)>> {
            let leaves = leaves(table, tree).map_err(|problem| wrong(format!("sweep `{}`: {problem}", file.name)))?;
            leaves.into_iter().map(|(key, value)| known.check_key(&key).map(|()| (key, value))).collect()
        };
        let axes = |table: &str, tree: &Value| -> Result<Vec<Axis>> {
            settings(table, tree)?.iter().map(|(key, value)| Axis::read(key, value)).collect()
        };
        let random = axes("random", &file.random)?;
        let only_where = settings("where", &file.only_where)?;
        if file.follows.is_none() && !only_where.is_empty() {
            return Err(wrong(format!("sweep `{}`: where: is for a sweep that `follows` another", file.name)));
        }
        if file.draws.is_some() == random.is_empty() {
            let problem = format!("sweep `{}` needs both `random` axes and `draws`, or neither", file.name);
            return Err(Error::setting("draws", problem));
        }
        let grid = axes("grid", &file.grid)?;
        grid.iter().try_for_each(|axis| axis.listed().map(|_| ()))?;
        Ok(Sweep {
            set: settings("set", &file.set)?,
            only_where,
            grid,
            random,
            draws: file.draws.unwrap_or(1),
            draw_seed: file.draw_seed,
            follows: file.follows,
            name: file.name,
        })
    }
}

/// The settings of a table of the recipe, by dotted names, but for values that are none: dates, and `nan` and `inf`, which JSON has not.
fn leaves(table: &str, tree: &Value) -> std::result::Result<Vec<(String, Value)>, String> {
    /// The name under which the TOML library hands on a date.
    const DATE: &str = "$__toml_private_datetime";
    match tree {
        Value::Null => return Ok(Vec::new()), // the table is not there
        Value::Object(_) => {}
        other => return Err(format!("{table}: expects a table such as {table} = {{ n = 4 }}, but got {other}")),
    }
    if let Some(key) = empty_table(tree) {
        return Err(format!("{key}: an empty table is no value of a setting"));
    }
    let is_date = |value: &Value| value.get(DATE).is_some();
    let leaves = flatten(tree);
    for (key, value) in &leaves {
        let items = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        if let Some(key) = key.strip_suffix(DATE).map(|key| key.trim_end_matches('.')) {
            return Err(format!("{key}: a date is no value of a setting"));
        }
        if items.iter().any(|item| item.is_null() || is_date(item)) {
            return Err(format!("{key}: nan, inf and dates are no values of a setting"));
        }
    }
    Ok(leaves)
}

/// The dotted name of a table inside this one that has nothing in it.
fn empty_table(tree: &Value) -> Option<String> {
    tree.as_object()?.iter().find_map(|(name, value)| match value.as_object() {
        Some(table) if table.is_empty() => Some(name.clone()),
        _ => empty_table(value).map(|key| format!("{name}.{key}")),
    })
}
