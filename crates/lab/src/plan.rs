//! From a recipe to the ordered list of runs it means.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;

use pudica_data::Stream;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::kinds::{Kind, OwnFiles};
use crate::recipe::axis::{Axis, Values};
use crate::recipe::{Override, Recipe, Scale, Sweep};
use crate::settings::Settings;

/// A plan of more runs than this is a typing mistake.
const MOST_RUNS: usize = 200_000;

/// The setting that names a run's random choices and decides nothing else: runs that differ in it alone are resolved once.
const SEED: &str = "seed";

/// The longest part of a folder's name that overrides make.
const LONGEST_SUFFIX: usize = 60;

/// Which runs of a recipe are asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The scale; `None`: quick, or the only one there is.
    pub scale: Option<String>,
    /// Changed settings as typed: `model.d=64`, `seed=0..10`.
    pub overrides: Vec<String>,
    /// Settings changed by flags: the flag as typed (`--dtype f64`), and the same as an override (`compute.dtype=f64`).
    pub flags: Vec<(String, String)>,
    /// The folder with the data sets, where runs may read files of the user's own.
    pub data: Option<PathBuf>,
    /// Flags that change no setting but are needed to repeat the command, such as `--data DIR`.
    pub repeat: Vec<String>,
}

/// All runs of a recipe at one scale, in the order they are made: a run comes after the run it depends on.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The recipe it was made from.
    pub recipe: Recipe,
    /// The scale's name.
    pub scale: String,
    /// What was asked for.
    pub request: Request,
    /// The settings that were given different values, in the order of definition.
    pub swept: Vec<String>,
    /// The runs.
    pub runs: Vec<PlannedRun>,
    /// Whether runs read files of the user's own.
    pub reads_own_files: bool,
}

/// One run of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedRun {
    /// The run's name: the hash of its settings.
    pub id: String,
    /// The sweep of the recipe it belongs to.
    pub sweep: String,
    /// The run it was made for, where its sweep follows another.
    pub parent: Option<String>,
    /// How a person names it among the others: what differs.
    pub label: String,
    /// Its settings.
    pub settings: Settings,
}

impl Plan {
    /// The runs of `recipe` that are asked for.
    pub fn new(recipe: &Recipe, request: &Request) -> Result<Plan> {
        let mut scale = recipe.scale(request.scale.as_deref())?.clone();
        let mut given = HashSet::new();
        for text in request.flags.iter().map(|(_, text)| text).chain(&request.overrides) {
            let change = Override::parse(text)?;
            if !given.insert(change.key().to_string()) {
                let problem = format!("{} is given twice; write key=a,b for several values", change.key());
                return Err(Error::Override { text: text.clone(), problem });
            }
            change.apply(&mut scale)?;
        }
        let mut runs: Vec<PlannedRun> = Vec::new();
        let mut used = Used::new(recipe.kind, request.data.clone());
        for sweep in &scale.sweeps {
            let new = expand(&scale, sweep, &runs, &mut used).map_err(|error| in_sweep(recipe, sweep, error))?;
            runs.extend(new);
        }
        let unused = used.unused();
        if let Some(key) = unused.iter().find(|key| given.is_empty() || given.contains(**key)) {
            return Err(Error::setting(key, "plays no part in any run of this plan; leave it out"));
        }
        if !unused.is_empty() {
            // The recipe's own, left without use by an override: they have one in the recipe as it is written, or are refused there.
            Plan::new(recipe, &Request { overrides: Vec::new(), flags: Vec::new(), ..request.clone() })?;
        }
        // Two sweeps may ask for the same run; it is made once, for the first of them.
        let mut seen = HashSet::new();
        runs.retain(|run| seen.insert(run.id.clone()));
        if let Some(teacher) = runs.iter().filter_map(|run| run.depends_on(recipe.kind)).find(|id| !seen.contains(id)) {
            return Err(Error::setting("target", format!("run:{teacher} is not a run of this sweep")));
        }
        let all: Vec<&Settings> = runs.iter().map(|run| &run.settings).collect();
        let mut swept = varying(&all);
        swept.retain(|key| scale.sweeps.iter().any(|sweep| sweep.decides(key)));
        let labels = labels(recipe.kind, &all, &swept);
        runs.iter_mut().zip(labels).for_each(|(run, label)| run.label = label);
        let reads_own_files = used.files.any();
        Ok(Plan { recipe: recipe.clone(), scale: scale.name, request: request.clone(), swept, runs, reads_own_files })
    }

    /// What its runs are.
    pub fn kind(&self) -> &'static Kind {
        self.recipe.kind
    }

    /// The command that repeats this plan.
    pub fn command(&self) -> String {
        let flags = self.request.flags.iter().map(|(flag, _)| flag).chain(&self.request.repeat);
        let overrides = self.request.overrides.iter().map(|text| quoted(text));
        let mut command = format!("pudica run {} --scale {}", quoted(&self.recipe.name), self.scale);
        for word in overrides.chain(flags.cloned()) {
            command += " ";
            command += &word;
        }
        command
    }

    /// Where its results go unless the user says otherwise: `runs/hahn/length-scaling-quick`, and other settings elsewhere.
    pub fn default_folder(&self) -> PathBuf {
        let name = self.recipe.name.trim_end_matches(".toml").trim_start_matches(['/', '.']).replace("../", "");
        let mut name = format!("{name}-{}", self.scale);
        let mut changes: Vec<&str> = self.request.overrides.iter().map(String::as_str).collect();
        changes.extend(self.request.flags.iter().filter_map(|(_, text)| text.split_once('=').map(|(_, value)| value)));
        if !changes.is_empty() {
            let plain = |c: char| if c.is_ascii_alphanumeric() || ".,=-_".contains(c) { c } else { '_' };
            let mut suffix: String = changes.join("+").chars().map(|c| if c == '+' { c } else { plain(c) }).collect();
            if suffix.len() > LONGEST_SUFFIX {
                let digest = Sha256::digest(changes.join("+").as_bytes());
                suffix.truncate(LONGEST_SUFFIX - 7);
                suffix += &format!("-{:02x}{:02x}{:02x}", digest[0], digest[1], digest[2]);
            }
            name += &format!("+{suffix}");
        }
        PathBuf::from("runs").join(name)
    }
}

impl PlannedRun {
    /// The run whose labels this one learns, if any.
    pub fn depends_on(&self, kind: &Kind) -> Option<String> {
        (kind.teacher)(&self.settings)
    }
}

/// An argument as a shell takes it.
pub fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-=,:/+%@".contains(c);
    if text.chars().all(plain) { text.into() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// The settings that differ between some runs, in the order of definition.
pub fn varying(runs: &[&Settings]) -> Vec<String> {
    let Some((first, others)) = runs.split_first() else { return Vec::new() };
    let differs = |place: usize| others.iter().any(|other| !first.agrees(other, place));
    first.keys().iter().enumerate().filter(|(place, _)| differs(*place)).map(|(_, key)| key.clone()).collect()
}

/// How a person names each of some runs: by those of these settings that differ between them, or by what the kind calls a run where none
/// does. The kind's own names come first, the seed last. What its name tells already (a ViT's depth, beside a perceptron) is left out.
pub fn labels(kind: &Kind, runs: &[&Settings], keys: &[String]) -> Vec<String> {
    let mut order: Vec<&str> = kind.naming.iter().copied().filter(|name| keys.iter().any(|key| key == name)).collect();
    order.extend(keys.iter().map(String::as_str).filter(|key| !kind.naming.contains(key)));
    if order.is_empty() {
        order = kind.naming.to_vec();
    }
    let namesakes = namesakes(kind, runs, &order);
    let is_told =
        |key: &str| runs.iter().zip(&namesakes).all(|(run, first)| run.get(key).ok() == runs[*first].get(key).ok());
    order.retain(|key| kind.naming.contains(key) || !is_told(key));
    order.sort_by_key(|key| *key == "seed"); // stable: only the seed moves
    let last_part = |key: &str| key.rsplit('.').next().unwrap_or_default().to_string();
    let short = |key: &&str| {
        let unique = order.iter().filter(|other| last_part(other) == last_part(key)).count() == 1;
        if unique { last_part(key) } else { key.to_string() }
    };
    let names: Vec<String> = order.iter().map(short).collect();
    let label = |settings: &&Settings| {
        let word = |(key, name): (&&str, &String)| match settings.get(key) {
            Ok(Value::String(text)) if kind.naming.contains(key) => brief(text),
            _ => format!("{name}={}", brief(&settings.text(key))),
        };
        order.iter().zip(&names).map(word).collect::<Vec<_>>().join(" ")
    };
    runs.iter().map(label).collect()
}

/// For each run the first one of the same name: with the same words (target, network, data set) for the kind's own names among these keys.
fn namesakes(kind: &Kind, runs: &[&Settings], keys: &[&str]) -> Vec<usize> {
    let mut firsts = HashMap::new();
    let words = |settings: &Settings| -> Vec<String> {
        let names = kind.naming.iter().filter(|name| keys.contains(name));
        names.filter_map(|name| Some(settings.get(name).ok()?.as_str()?.to_string())).collect()
    };
    runs.iter().enumerate().map(|(place, run)| *firsts.entry(words(run)).or_insert(place)).collect()
}

/// A text that fits in a line with others: a long one is cut, and told from its like by digits of its hash.
fn brief(text: &str) -> String {
    const LONGEST: usize = 48;
    if text.chars().count() <= LONGEST {
        return text.into();
    }
    let digest = Sha256::digest(text.as_bytes());
    format!("{}#{:02x}{:02x}", pudica_boolean::shortened(text, LONGEST - 8), digest[0], digest[1])
}

fn in_sweep(recipe: &Recipe, sweep: &Sweep, error: Error) -> Error {
    Error::Recipe { recipe: recipe.name.clone(), problem: format!("sweep `{}`: {error}", sweep.name) }
}

/// All runs of one sweep; `earlier` are those of the sweeps before it.
fn expand(scale: &Scale, sweep: &Sweep, earlier: &[PlannedRun], used: &mut Used) -> Result<Vec<PlannedRun>> {
    let Some(followed) = &sweep.follows else {
        check_count(sweep, earlier.len(), 1)?;
        return expand_for(scale, sweep, None, used);
    };
    let parents: Vec<&PlannedRun> = earlier.iter().filter(|run| run.sweep == *followed).collect();
    if parents.is_empty() {
        return Err(Error::setting("follows", format!("there is no sweep `{followed}` before this one")));
    }
    check_count(sweep, earlier.len(), parents.len())?;
    let mut runs = Vec::new();
    for parent in parents {
        let settings = &parent.settings;
        let mut kept = true;
        for (key, value) in &sweep.only_where {
            kept &= settings.get(key)? == value;
        }
        if kept {
            runs.extend(expand_for(scale, sweep, Some(parent), used)?);
        }
    }
    Ok(runs)
}

/// Refuses a plan that is too large before it is made.
fn check_count(sweep: &Sweep, earlier: usize, parents: usize) -> Result<()> {
    let mut count = (sweep.draws as usize).saturating_mul(parents);
    for axis in &sweep.grid {
        count = count.saturating_mul(axis.listed()?.len());
    }
    match earlier.saturating_add(count) {
        0..=MOST_RUNS => Ok(()),
        all => Err(Error::Other(format!("asks for {all} runs; a plan holds at most {MOST_RUNS}"))),
    }
}

/// Which settings played a part: one that was given and that no run of the plan can use is refused, not ignored.
struct Used {
    kind: &'static Kind,
    defaults: Settings,
    /// The keys that were given and dropped, in how many runs.
    dropped: HashMap<String, usize>,
    runs: usize,
    /// The user's own files that runs read.
    files: OwnFiles,
}

impl Used {
    fn new(kind: &'static Kind, data: Option<PathBuf>) -> Used {
        Used { kind, defaults: kind.defaults(), dropped: HashMap::new(), runs: 0, files: OwnFiles::new(data) }
    }

    /// The settings of a run as they are computed with, from those that were given.
    fn resolve(&mut self, given: &Settings) -> Result<Resolved> {
        let mut settings = (self.kind.settings.identify)(self.kind.resolve(given)?, &mut self.files)?;
        settings.share_names(&self.defaults);
        let mut dropped = Vec::new();
        for key in given.keys() {
            let (asked, found) = (given.get(key)?, settings.get(key)?);
            // A text that is written otherwise, such as a formula without blanks, was used.
            let is_dropped = asked != found && (!found.is_string() || *found == "");
            if is_dropped && asked != self.defaults.get(key)? {
                dropped.push(key.clone());
            }
        }
        Ok(Resolved { settings, dropped })
    }

    /// One more run has dropped these keys.
    fn count(&mut self, dropped: &[String]) {
        self.runs += 1;
        for key in dropped {
            *self.dropped.entry(key.clone()).or_default() += 1;
        }
    }

    /// Keys that were given and that no run has used.
    fn unused(&self) -> Vec<&String> {
        let mut unused: Vec<&String> =
            self.dropped.iter().filter(|(_, count)| **count == self.runs).map(|(key, _)| key).collect();
        unused.sort();
        unused
    }
}

/// The settings of a run as they are computed with.
struct Resolved {
    settings: Settings,
    /// The keys that were given and dropped.
    dropped: Vec<String>,
}

/// Runs that differ in their seed alone.
struct Family {
    resolved: Resolved,
    /// What stands before and after the seed in the text whose hash is a run's id.
    identity: Option<(String, String)>,
}

impl Family {
    fn new(kind: &Kind, resolved: Resolved) -> Result<Family> {
        Ok(Family { identity: around_seed(kind, &resolved.settings)?, resolved })
    }

    /// The id and the settings of the run with this seed.
    fn member(&self, kind: &Kind, seed: &Value) -> Result<(String, Settings)> {
        let mut settings = self.resolved.settings.clone();
        settings.set(SEED, seed.clone())?;
        let id = match &self.identity {
            Some((before, after)) => Kind::id_of_text(&format!("{before}{seed}{after}")),
            None => kind.id(&settings)?,
        };
        Ok((id, settings))
    }
}

/// What stands before and after the seed in the text whose hash is a run's id; `None` where it has not one place there.
fn around_seed(kind: &Kind, settings: &Settings) -> Result<Option<(String, String)>> {
    let mut settings = settings.clone();
    let mut text = |seed: u64| settings.set(SEED, seed.into()).and_then(|()| kind.identity(&settings));
    let (with_most, most) = (text(u64::MAX)?, u64::MAX.to_string());
    let Some((before, after)) = with_most.split_once(&most) else { return Ok(None) };
    let holds = [0, 42].map(|seed| text(seed).map(|text| text == format!("{before}{seed}{after}")));
    let [first, second] = holds;
    Ok((first? && second?).then(|| (before.into(), after.into())))
}

fn expand_for(scale: &Scale, sweep: &Sweep, parent: Option<&PlannedRun>, used: &mut Used) -> Result<Vec<PlannedRun>> {
    let mut fixed = scale.settings.clone();
    for (key, value) in &sweep.set {
        fixed.set(key, fill_in(value, parent)?)?;
    }
    // With what they imply for settings that nobody gave.
    let complete = |kind: &Kind, settings: &Settings| {
        let mut settings = settings.clone();
        for (key, value) in (kind.settings.implied)(&settings)? {
            if !scale.given.iter().any(|given| given == key) && !sweep.decides(key) {
                settings.set(key, value)?;
            }
        }
        Ok::<Settings, Error>(settings)
    };
    let seeded = sweep.grid.iter().any(|axis| axis.key == SEED);
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
        // By the place on each axis but the seed's.
        let mut families: HashMap<Vec<usize>, Family> = HashMap::new();
        for_each_grid_point(&sweep.grid, &mut drawn, &mut Vec::new(), &mut |settings, point| {
            let kind = used.kind;
            if seeded && !families.contains_key(point) {
                families.insert(point.to_vec(), Family::new(kind, used.resolve(&complete(kind, settings)?)?)?);
            }
            let (id, settings) = match families.get(point) {
                Some(family) => {
                    used.count(&family.resolved.dropped);
                    family.member(kind, settings.get(SEED)?)?
                }
                None => {
                    let Resolved { settings, dropped } = used.resolve(&complete(kind, settings)?)?;
                    used.count(&dropped);
                    (kind.id(&settings)?, settings)
                }
            };
            runs.push(PlannedRun {
                id,
                sweep: sweep.name.clone(),
                parent: parent.map(|parent| parent.id.clone()),
                label: String::new(),
                settings,
            });
            Ok(())
        })?;
    }
    Ok(runs)
}

/// Visits the product of the axes, the last one fastest, with the settings at each point and its place on each axis but the seed's.
fn for_each_grid_point(
    axes: &[Axis],
    settings: &mut Settings,
    point: &mut Vec<usize>,
    visit: &mut dyn FnMut(&Settings, &[usize]) -> Result<()>,
) -> Result<()> {
    let Some((axis, rest)) = axes.split_first() else { return visit(settings, point) };
    for (place, value) in axis.listed()?.iter().enumerate() {
        settings.set(&axis.key, value.clone())?;
        let known = point.len();
        if axis.key != SEED {
            point.push(place);
        }
        for_each_grid_point(rest, settings, point, visit)?;
        point.truncate(known);
    }
    Ok(())
}

/// Puts the parent's id and settings in place of `{id}` and `{any.setting}`. A text that is one such place keeps the type.
fn fill_in(value: &Value, parent: Option<&PlannedRun>) -> Result<Value> {
    let (Some(text), Some(parent)) = (value.as_str(), parent) else { return Ok(value.clone()) };
    let settings = &parent.settings;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::KINDS;

    /// What plans of many seeds rely on.
    #[test]
    fn the_seed_decides_nothing_but_itself() {
        for kind in KINDS {
            let resolved = |seed: u64| {
                let mut settings = kind.defaults();
                settings.set(SEED, seed.into()).unwrap();
                kind.resolve(&settings).unwrap()
            };
            let (settings, dropped) = (resolved(0), Vec::new());
            let family = Family::new(kind, Resolved { settings, dropped }).unwrap();
            assert!(family.identity.is_some(), "{}", kind.name);
            for seed in [0, 7, 1 << 40, u64::MAX] {
                let own = resolved(seed);
                assert_eq!(family.member(kind, &seed.into()).unwrap(), (kind.id(&own).unwrap(), own), "{}", kind.name);
            }
        }
    }
}
