//! Settings by their dotted names: `model.d`, `train.lr`.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::compute::Compute;
use crate::error::{Error, Result};

/// The table of [`Compute`]'s settings.
const COMPUTE: &str = "compute";

/// How the names of its settings begin.
const COMPUTE_DOT: &str = "compute.";

/// The settings of one run, complete or under construction, reached by dotted names. The kind of experiment decides which there are;
/// beside its own, every kind has [`Compute`]'s, under `compute`. Stored they are a tree of tables ([`Settings::tree`]); here they are
/// flat, and a plan's runs share names and values, so that 100,000 of them are a small matter.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Dotted, in the order of definition.
    names: Arc<Vec<String>>,
    /// One for each name; runs that were made from each other share those that are the same.
    values: Vec<Arc<Value>>,
}

impl Settings {
    /// The settings of a configuration, which stands for what is known: names and kinds of values.
    pub fn of(config: &impl Serialize) -> Settings {
        Settings::stored(serde_json::to_value(config).expect("a configuration is plain JSON"))
    }

    /// Settings as a run's folder stores them.
    pub(crate) fn stored(tree: Value) -> Settings {
        let (names, values) = leaves(tree).into_iter().map(|(name, value)| (name, Arc::new(value))).unzip();
        Settings { names: Arc::new(names), values }
    }

    /// The same with other settings of what it computes on.
    pub fn with_compute(mut self, compute: &Compute) -> Settings {
        let Compute { device, dtype, engine } = compute;
        for (name, value) in [("device", device), ("dtype", dtype), ("engine", engine)] {
            self.put(COMPUTE, name, value.as_str().into());
        }
        self
    }

    /// What it computes on; `None` where these settings do not say (runs stored in format 1).
    pub fn compute(&self) -> Option<Compute> {
        let text = |name: &str| self.find(&format!("{COMPUTE}.{name}"))?.as_str().map(String::from);
        Some(Compute { device: text("device")?, dtype: text("dtype")?, engine: text("engine")? })
    }

    /// The whole tree of tables, as it is stored.
    pub fn tree(&self) -> Value {
        self.tree_where(|_| true)
    }

    fn tree_where(&self, keep: impl Fn(&str) -> bool) -> Value {
        let mut tree = Map::new();
        for (name, value) in self.names.iter().zip(&self.values).filter(|(name, _)| keep(name)) {
            grow(&mut tree, name, Value::clone(value));
        }
        tree.into()
    }

    /// Adds a setting that is left out of the JSON at its default.
    pub(crate) fn or_insert(&mut self, table: &str, name: &str, value: impl Into<Value>) {
        if self.place(&format!("{table}.{name}")).is_none() {
            self.put(table, name, value.into());
        }
    }

    /// Sets a setting of a table, which comes last there if it is new.
    fn put(&mut self, table: &str, name: &str, value: Value) {
        let key = format!("{table}.{name}");
        match self.place(&key) {
            Some(place) => self.values[place] = Arc::new(value),
            None => {
                let in_table = |name: &String| name.strip_prefix(table).is_some_and(|rest| rest.starts_with('.'));
                let place = self.names.iter().rposition(in_table).map_or(self.names.len(), |last| last + 1);
                Arc::make_mut(&mut self.names).insert(place, key);
                self.values.insert(place, Arc::new(value));
            }
        }
    }

    /// Keeps its names where those of other settings are, if they are the same.
    pub(crate) fn share_names(&mut self, with: &Settings) {
        if self.names == with.names {
            self.names = Arc::clone(&with.names);
        }
    }

    /// Whether other settings have the same value for the setting at this place among its keys.
    pub(crate) fn agrees(&self, other: &Settings, place: usize) -> bool {
        match Arc::ptr_eq(&self.names, &other.names) {
            true => self.values[place] == other.values[place],
            false => Some(&*self.values[place]) == other.find(&self.names[place]),
        }
    }

    /// The dotted names of all settings, in the order of definition.
    pub fn keys(&self) -> &[String] {
        &self.names
    }

    /// Where a setting's value is.
    fn place(&self, key: &str) -> Option<usize> {
        self.names.iter().position(|name| name == key)
    }

    /// As [`Settings::place`], or the sentence for a name that is not a setting, with the nearest that is.
    fn known_place(&self, key: &str) -> Result<usize> {
        self.place(key).ok_or_else(|| {
            // `d` is as good as `model.d`: compare with the last part of each name too.
            let by_last_part = self.names.iter().find(|name| name.rsplit('.').next() == Some(key)).cloned();
            let nearest = by_last_part
                .or_else(|| pudica_boolean::nearest(key, self.names.iter().map(String::as_str)).map(String::from));
            Error::UnknownSetting { key: key.into(), nearest }
        })
    }

    /// Refuses a name that is not a setting, and suggests the nearest that is.
    pub fn check_key(&self, key: &str) -> Result<()> {
        self.known_place(key).map(|_| ())
    }

    /// The value of a setting.
    pub fn get(&self, key: &str) -> Result<&Value> {
        Ok(&*self.values[self.known_place(key)?])
    }

    /// Sets one value. Whole numbers are accepted where a real number is expected.
    pub fn set(&mut self, key: &str, value: Value) -> Result<()> {
        let place = self.known_place(key)?;
        let value = match (&*self.values[place], value) {
            (Value::Number(now), Value::Number(new)) if now.is_f64() && !new.is_f64() => Value::from(new.as_f64()),
            (Value::Number(now), Value::Number(new)) if !now.is_f64() && new.as_u64().is_none() => {
                // 1e4 steps are 10,000 steps; 0.5 steps are nothing, nor are -1.
                match new.as_f64() {
                    Some(real) if real.fract() == 0.0 && (0.0..9e15).contains(&real) => Value::from(real as u64),
                    _ => return Err(Error::setting(key, format!("expects a whole number, 0 or more, but got {new}"))),
                }
            }
            // `model.hidden=100` is typed as a number and meant as a text.
            (Value::String(_), Value::Number(new)) => Value::from(new.to_string()),
            (now, new) if kind(now) != kind(&new) => {
                return Err(Error::setting(key, format!("expects {}, but got {new}", kind(now))));
            }
            (_, new) => new,
        };
        self.values[place] = Arc::new(value);
        Ok(())
    }

    /// Refuses a text that is none of the choices of its setting.
    pub(crate) fn check_choice(&self, key: &str, choices: &[&str]) -> Result<()> {
        let value = self.get(key)?.as_str().unwrap_or_default();
        if choices.contains(&value) {
            return Ok(());
        }
        let (last, others) = choices.split_last().unwrap_or((&"", &[]));
        let others = others.iter().map(|choice| format!("\"{choice}\"")).collect::<Vec<_>>().join(", ");
        let near = pudica_boolean::did_you_mean(value, choices.iter().copied());
        Err(Error::setting(key, format!("must be {others} or \"{last}\", not \"{value}\"{near}")))
    }

    /// A number among the settings; NaN where there is none of this name.
    pub fn number(&self, key: &str) -> f64 {
        self.find(key).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// A setting for people: texts without quotes, everything else as JSON; empty where there is none of this name.
    pub fn text(&self, key: &str) -> String {
        self.find(key).map_or(String::new(), |value| value.as_str().map_or_else(|| value.to_string(), String::from))
    }

    fn find(&self, key: &str) -> Option<&Value> {
        self.place(key).map(|place| &*self.values[place])
    }

    /// The configuration of a kind that these settings spell, not yet validated. What it computes on is not part of it.
    pub fn read<C: DeserializeOwned>(&self) -> Result<C> {
        let own = self.tree_where(|name| !name.starts_with(COMPUTE_DOT));
        serde_json::from_value(own).map_err(|error| Error::setting("settings", error.to_string()))
    }
}

/// Stored as a tree of tables.
impl Serialize for Settings {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.tree().serialize(serializer)
    }
}

/// All leaves of a tree of tables, with their dotted names, in order.
pub fn flatten(tree: &Value) -> Vec<(String, Value)> {
    leaves(tree.clone())
}

fn leaves(tree: Value) -> Vec<(String, Value)> {
    fn walk(prefix: String, node: Value, leaves: &mut Vec<(String, Value)>) {
        match node {
            Value::Object(table) => {
                for (name, child) in table {
                    walk(if prefix.is_empty() { name } else { format!("{prefix}.{name}") }, child, leaves);
                }
            }
            leaf => leaves.push((prefix, leaf)),
        }
    }
    let mut leaves = Vec::new();
    walk(String::new(), tree, &mut leaves);
    leaves
}

/// Puts a leaf where its dotted name says. A damaged file may have a value where a table should be; then the name stays whole, which
/// nobody knows.
fn grow(tree: &mut Map<String, Value>, name: &str, value: Value) {
    if let Some((table, rest)) = name.split_once('.') {
        let node = tree.entry(table).or_insert_with(|| Map::new().into());
        if let Value::Object(table) = node {
            return grow(table, rest, value);
        }
    }
    tree.insert(name.into(), value);
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a table",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Configuration;
    use crate::kinds::boolean::RunConfig;

    fn defaults() -> Settings {
        RunConfig::default().settings()
    }

    #[test]
    fn set_get_and_resolve() {
        let mut settings = defaults();
        settings.set("train.lr", Value::from(1)).unwrap();
        settings.set("train.steps", Value::from(1e3)).unwrap();
        settings.set("model.d", Value::from(64)).unwrap();
        let config = RunConfig::resolve(&settings).unwrap();
        assert_eq!((config.train.lr, config.train.steps, config.model.ff), (1.0, 1000, 64));
        assert_eq!(settings.get("model.d").unwrap(), 64);
    }

    #[test]
    fn mistakes_are_named_and_the_nearest_key_suggested() {
        let sentence = |key: &str, value: Value| defaults().set(key, value).unwrap_err().to_string();
        assert_eq!(sentence("model.heds", 2.into()), "unknown setting `model.heds`; did you mean `model.heads`?");
        assert_eq!(sentence("lr", 2.into()), "unknown setting `lr`; did you mean `train.lr`?");
        assert_eq!(sentence("zzz", 2.into()), "unknown setting `zzz`; `pudica settings` lists them all");
        assert_eq!(sentence("model", 2.into()), "unknown setting `model`; did you mean `model.d`?");
        assert_eq!(sentence("n", "long".into()), "n: expects a number, but got \"long\"");
        assert_eq!(sentence("n", Value::from(-4)), "n: expects a whole number, 0 or more, but got -4");
    }

    #[test]
    fn the_tree_is_what_it_was_stored_as() {
        let settings = defaults();
        assert_eq!(Settings::stored(settings.tree()), settings);
        let text = settings.tree().to_string();
        assert_eq!(serde_json::to_string(&settings).unwrap(), text);
        assert!(text.starts_with(r#"{"target":"parity","n":10,"seed":0,"model":{"kind":"encoder","d":128"#), "{text}");
        // A damaged file is no panic, and nothing that anybody knows.
        let damaged = Settings::stored(serde_json::json!({"n": 5, "n.x": 1, "model": {"": {}}}));
        assert_eq!(damaged.tree(), serde_json::json!({"n": 5, "n.x": 1}));
        assert!(damaged.read::<RunConfig>().is_err());
    }

    #[test]
    fn bad_choices_name_their_key() {
        let mut settings = defaults();
        settings.set("model.kind", "decoder".into()).unwrap();
        let sentence = RunConfig::resolve(&settings).unwrap_err().to_string();
        assert_eq!(
            sentence,
            "model.kind: must be \"encoder\", \"encoder-decoder\", \"mlp\", \"lstm\", \"gru\" or \"ssm\", not \"decoder\": \
             did you mean 'encoder'?"
        );
    }
}
