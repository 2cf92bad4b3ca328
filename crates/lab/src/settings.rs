//! Settings by their dotted names: `model.d`, `train.lr`.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::compute::Compute;
use crate::error::{Error, Result};

/// The table of [`Compute`]'s settings.
const COMPUTE: &str = "compute";

/// The settings of one run, complete or under construction, reached by dotted names. The kind of experiment decides which there are;
/// beside its own, every kind has [`Compute`]'s, under `compute`.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    tree: Value,
}

impl Settings {
    /// The settings of a configuration, which stands for what is known: names and kinds of values.
    pub fn of(config: &impl Serialize) -> Settings {
        Settings { tree: serde_json::to_value(config).expect("a configuration is plain JSON") }
    }

    /// Settings as a run's folder stores them.
    pub(crate) fn stored(tree: Value) -> Settings {
        Settings { tree }
    }

    /// The same with other settings of what it computes on.
    pub fn with_compute(mut self, compute: &Compute) -> Settings {
        self.tree[COMPUTE] = serde_json::to_value(compute).expect("three texts are plain JSON");
        self
    }

    /// What it computes on; `None` where these settings do not say (runs stored in format 1).
    pub fn compute(&self) -> Option<Compute> {
        serde_json::from_value(self.tree.get(COMPUTE)?.clone()).ok()
    }

    /// The whole tree of tables, as it is stored.
    pub fn tree(&self) -> &Value {
        &self.tree
    }

    /// Adds a setting that is left out of the JSON at its default.
    pub(crate) fn or_insert(&mut self, table: &str, name: &str, value: impl Into<Value>) {
        if self.tree[table].get(name).is_none() {
            self.tree[table][name] = value.into();
        }
    }

    /// The dotted names of all settings, in the order of definition.
    pub fn keys(&self) -> Vec<String> {
        flatten(&self.tree).into_iter().map(|(key, _)| key).collect()
    }

    /// Refuses a name that is not a setting, and suggests the nearest that is.
    pub fn check_key(&self, key: &str) -> Result<()> {
        let known = self.keys();
        if known.iter().any(|name| name == key) {
            return Ok(());
        }
        // `d` is as good as `model.d`: compare with the last part of each name too.
        let by_last_part = known.iter().find(|name| name.rsplit('.').next() == Some(key)).cloned();
        let nearest =
            by_last_part.or_else(|| pudica_boolean::nearest(key, known.iter().map(String::as_str)).map(String::from));
        Err(Error::UnknownSetting { key: key.into(), nearest })
    }

    /// The value of a setting.
    pub fn get(&self, key: &str) -> Result<&Value> {
        self.check_key(key)?;
        Ok(key.split('.').fold(&self.tree, |node, part| &node[part]))
    }

    /// Sets one value. Whole numbers are accepted where a real number is expected.
    pub fn set(&mut self, key: &str, value: Value) -> Result<()> {
        self.check_key(key)?;
        let old = key.split('.').fold(&mut self.tree, |node, part| &mut node[part]);
        *old = match (&*old, value) {
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
        key.split('.').try_fold(&self.tree, |node, part| node.get(part))
    }

    /// The configuration of a kind that these settings spell, not yet validated. What it computes on is not part of it.
    pub fn read<C: DeserializeOwned>(&self) -> Result<C> {
        let mut own = self.tree.clone();
        if let Value::Object(table) = &mut own {
            table.shift_remove(COMPUTE);
        }
        serde_json::from_value(own).map_err(|error| Error::setting("settings", error.to_string()))
    }
}

/// All leaves of a tree of tables, with their dotted names, in order.
pub fn flatten(tree: &Value) -> Vec<(String, Value)> {
    fn walk(prefix: &str, node: &Value, leaves: &mut Vec<(String, Value)>) {
        match node {
            Value::Object(table) => {
                for (name, child) in table {
                    let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                    walk(&key, child, leaves);
                }
            }
            leaf => leaves.push((prefix.to_string(), leaf.clone())),
        }
    }
    let mut leaves = Vec::new();
    walk("", tree, &mut leaves);
    leaves
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
        assert_eq!(sentence("zzz", 2.into()), "unknown setting `zzz`");
        assert_eq!(sentence("model", 2.into()), "unknown setting `model`; did you mean `model.d`?");
        assert_eq!(sentence("n", "long".into()), "n: expects a number, but got \"long\"");
        assert_eq!(sentence("n", Value::from(-4)), "n: expects a whole number, 0 or more, but got -4");
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
