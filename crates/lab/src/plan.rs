//! From a recipe to the ordered list of runs it means.

use std::collections::HashMap;

use pudica_data::Stream;
use serde_json::Value;

use crate::config::{Configuration, ModelKind, RunConfig, Settings, TargetName};
use crate::error::{Error, Result};
use crate::recipe::axis::Values;
use crate::recipe::{Override, Recipe, Scale, Sweep};

/// All runs of a recipe at one scale, in the order they are made: a run comes after the run it depends on.
#[derive(Clone, Debug)]
pub struct Plan<C = RunConfig> {
    /// The recipe it was made from.
    pub recipe: Recipe,
    /// The scale's name.
    pub scale: String,
    /// The overrides as typed.
    pub overrides: Vec<String>,
    /// The runs.
    pub runs: Vec<PlannedRun<C>>,
}

/// One run of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun<C = RunConfig> {
    /// The run's name: the hash of its settings.
    pub id: String,
    /// The sweep of the recipe it belongs to.
    pub sweep: String,
    /// The run it was made for, where its sweep follows another.
    pub parent: Option<String>,
    /// Its settings.
    pub config: C,
}

/// Runs whose tensors have the same shapes, so that they cost the same and can execute together.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// What they share.
    pub shape: Shape,
    /// Their places in [`Plan::runs`].
    pub runs: Vec<usize>,
}

/// What decides the shapes of all tensors of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// The architecture.
    pub kind: ModelKind,
    /// Width.
    pub d: usize,
    /// Layers.
    pub layers: usize,
    /// Heads.
    pub heads: usize,
    /// Feed-forward width.
    pub ff: usize,
    /// Bits a string.
    pub n: usize,
    /// Strings a step.
    pub batch: usize,
}

impl<C: Configuration> Plan<C> {
    /// The runs of `recipe` at `scale` (default: quick), changed by `overrides` as typed on the command line.
    pub fn new(recipe: &Recipe, scale: Option<&str>, overrides: &[String]) -> Result<Plan<C>> {
        if recipe.kind != C::KIND {
            let problem = format!("its runs are of the kind {:?}, not {:?}", recipe.kind, C::KIND);
            return Err(Error::Recipe { recipe: recipe.name.clone(), problem });
        }
        let mut scale = recipe.scale(scale)?.clone();
        for text in overrides {
            Override::parse(text)?.apply(&mut scale)?;
        }
        let mut runs: Vec<PlannedRun<C>> = Vec::new();
        for sweep in &scale.sweeps {
            let new = expand(&scale, sweep, &runs).map_err(|error| in_sweep(recipe, sweep, error))?;
            runs.extend(new);
        }
        // Two sweeps may ask for the same run; it is made once, for the first of them.
        let mut seen = std::collections::HashSet::new();
        runs.retain(|run| seen.insert(run.id.clone()));
        Ok(Plan { recipe: recipe.clone(), scale: scale.name, overrides: overrides.to_vec(), runs })
    }

    /// The command that repeats this plan.
    pub fn command(&self) -> String {
        let mut command = format!("pudica run {} --scale {}", self.recipe.name, self.scale);
        for text in &self.overrides {
            command += &format!(" {text}");
        }
        command
    }

    /// Where its results go unless the user says otherwise: `runs/hahn/length-scaling-quick`.
    pub fn default_folder(&self) -> std::path::PathBuf {
        let name = self.recipe.name.trim_end_matches(".toml").trim_start_matches(['/', '.']).replace("../", "");
        std::path::Path::new("runs").join(format!("{name}-{}", self.scale))
    }
}

impl Plan {
    /// Training steps of all runs together.
    pub fn total_steps(&self) -> u64 {
        self.runs.iter().map(|run| run.config.train.steps).sum()
    }

    /// The runs by their shapes, in the order of first appearance.
    pub fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = Vec::new();
        let mut place: HashMap<Shape, usize> = HashMap::new();
        for (index, run) in self.runs.iter().enumerate() {
            let shape = Shape::of(&run.config);
            let at = *place.entry(shape).or_insert_with(|| {
                groups.push(Group { shape, runs: Vec::new() });
                groups.len() - 1
            });
            groups[at].runs.push(index);
        }
        groups
    }
}

impl PlannedRun {
    /// The run whose labels this one learns, if any.
    pub fn depends_on(&self) -> Option<String> {
        match TargetName::parse(&self.config.target) {
            Ok(TargetName::Run(id)) => Some(id),
            _ => None,
        }
    }
}

impl Shape {
    /// The shape of a run.
    pub fn of(config: &RunConfig) -> Shape {
        let model = &config.model;
        Shape {
            kind: model.kind,
            d: model.d,
            layers: model.layers,
            heads: model.heads,
            ff: config.ff(),
            n: config.n,
            batch: config.train.batch,
        }
    }
}

fn in_sweep(recipe: &Recipe, sweep: &Sweep, error: Error) -> Error {
    Error::Recipe { recipe: recipe.name.clone(), problem: format!("sweep `{}`: {error}", sweep.name) }
}

/// All runs of one sweep; `earlier` are those of the sweeps before it.
fn expand<C: Configuration>(scale: &Scale, sweep: &Sweep, earlier: &[PlannedRun<C>]) -> Result<Vec<PlannedRun<C>>> {
    let Some(followed) = &sweep.follows else {
        return expand_for(scale, sweep, None);
    };
    let parents: Vec<&PlannedRun<C>> = earlier.iter().filter(|run| run.sweep == *followed).collect();
    if parents.is_empty() {
        return Err(Error::setting("follows", format!("there is no sweep `{followed}` before this one")));
    }
    let mut runs = Vec::new();
    for parent in parents {
        let settings = parent.config.settings();
        let mut kept = true;
        for (key, value) in &sweep.only_where {
            kept &= settings.get(key)? == value;
        }
        if kept {
            runs.extend(expand_for(scale, sweep, Some(parent))?);
        }
    }
    Ok(runs)
}

fn expand_for<C: Configuration>(
    scale: &Scale,
    sweep: &Sweep,
    parent: Option<&PlannedRun<C>>,
) -> Result<Vec<PlannedRun<C>>> {
    let mut fixed = scale.settings.clone();
    for (key, value) in &sweep.set {
        fixed.set(key, fill_in(value, parent)?)?;
    }
    let mut runs = Vec::new();
    for draw in 0..sweep.draws {
        let mut drawn = fixed.clone();
        for axis in &sweep.random {
            // Each axis has its own stream, so that overriding one leaves the others' draws as they are.
            let mut stream = Stream::new(sweep.draw_seed, &format!("draw {}", axis.key), draw);
            let value = match &axis.values {
                Values::List(list) => list[stream.below(list.len() as u64) as usize].clone(),
                Values::Between(low, high) => Value::from(low + (high - low) * stream.uniform()),
            };
            drawn.set(&axis.key, value)?;
        }
        for_each_grid_point(&sweep.grid, drawn, &mut |settings| {
            let config = C::resolve(&settings)?;
            runs.push(PlannedRun {
                id: config.id(),
                sweep: sweep.name.clone(),
                parent: parent.map(|parent| parent.id.clone()),
                config,
            });
            Ok(())
        })?;
    }
    Ok(runs)
}

/// Visits the product of the axes, the last one fastest.
fn for_each_grid_point(
    axes: &[crate::recipe::axis::Axis],
    settings: Settings,
    visit: &mut dyn FnMut(Settings) -> Result<()>,
) -> Result<()> {
    let Some((axis, rest)) = axes.split_first() else { return visit(settings) };
    for value in axis.listed()? {
        let mut settings = settings.clone();
        settings.set(&axis.key, value.clone())?;
        for_each_grid_point(rest, settings, visit)?;
    }
    Ok(())
}

/// Puts the parent's id and settings in place of `{id}` and `{any.setting}`. A text that is one such place keeps the type.
fn fill_in<C: Configuration>(value: &Value, parent: Option<&PlannedRun<C>>) -> Result<Value> {
    let (Some(text), Some(parent)) = (value.as_str(), parent) else { return Ok(value.clone()) };
    let settings = parent.config.settings();
    let lookup = |name: &str| match name {
        "id" => Ok(Value::from(parent.id.as_str())),
        key => settings.get(key).cloned(),
    };
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) =
            after.split_once('}').ok_or_else(|| Error::setting("set", format!("`{text}` has an unclosed {{")))?;
        let found = lookup(name)?;
        if before.is_empty() && after.is_empty() && filled.is_empty() {
            return Ok(found);
        }
        filled += before;
        filled += &found.as_str().map_or_else(|| found.to_string(), str::to_string);
        rest = after;
    }
    Ok(Value::from(filled + rest))
}
