//! Settings that explain themselves: `documented!` defines a configuration's struct and keeps its doc comments, so that the program can
//! print what it parses.

use serde::Serialize;
use serde_json::Value;

use crate::compute::Abilities;
use crate::settings::Settings;

/// What a setting means.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SettingDoc {
    /// Its dotted name.
    pub key: String,
    /// The type of its values, in words.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Its default.
    pub default: Value,
    /// The texts it may be, where they are few.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<&'static str>,
    /// Its meaning.
    pub meaning: String,
}

impl SettingDoc {
    fn new(key: String, choices: &[&'static str], meaning: String) -> SettingDoc {
        SettingDoc { key, kind: "", default: Value::Null, choices: choices.to_vec(), meaning }
    }

    pub(super) fn take_default(&mut self, defaults: &Settings) {
        self.default = defaults.get(&self.key).cloned().unwrap_or_default();
        self.kind = match &self.default {
            Value::Bool(_) => "true or false",
            Value::Number(number) if number.is_f64() => "number",
            Value::Number(_) => "whole number",
            _ => "text",
        };
    }
}

/// A type whose settings are documented: a table of them, or one value.
pub trait Documented {
    /// The texts that a value may be, where they are few.
    const CHOICES: &'static [&'static str] = &[];

    /// The settings of a table whose dotted names begin so; nothing for one value.
    fn documentation(_prefix: &str) -> Vec<SettingDoc> {
        Vec::new()
    }
}

macro_rules! one_value {
    ($($type:ty),*) => { $(impl Documented for $type {})* };
}
one_value!(bool, u64, usize, f64, String);

/// A table of settings under a field, or the field itself.
pub(crate) fn of_field<T: Documented>(prefix: &str, field: &str, lines: &[&str]) -> Vec<SettingDoc> {
    let key = if prefix.is_empty() { field.to_string() } else { format!("{prefix}.{field}") };
    let table = T::documentation(&key);
    if !table.is_empty() {
        return table;
    }
    let meaning = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
    vec![SettingDoc::new(key, T::CHOICES, meaning)]
}

/// The settings under `compute`.
pub(super) fn of_compute(abilities: &Abilities) -> Vec<SettingDoc> {
    let setting = |key: &str, choices: &[&'static str], meaning: &str| {
        SettingDoc::new(format!("compute.{key}"), choices, meaning.into())
    };
    vec![
        setting("device", abilities.devices, "Where numbers are computed; the flag --device sets it."),
        setting("dtype", abilities.dtypes, "The type of numbers; the flag --dtype sets it."),
        setting("engine", abilities.engines, "Which implementation; the flag --reference sets it."),
    ]
}

/// Defines a table of settings, and [`Documented`] for it from the doc comments of its fields.
macro_rules! documented {
    ($(#[doc = $about:literal])* pub struct $name:ident {
        $($(#[doc = $line:literal])+ $(#[serde($($serde:tt)*)])? pub $field:ident: $type:ty,)+
    }) => {
        $(#[doc = $about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct $name {
            $($(#[doc = $line])+ $(#[serde($($serde)*)])? pub $field: $type,)+
        }

        impl $crate::kinds::Documented for $name {
            fn documentation(prefix: &str) -> Vec<$crate::kinds::SettingDoc> {
                let mut all = Vec::new();
                $(all.extend($crate::kinds::documented::of_field::<$type>(prefix, stringify!($field), &[$($line),+]));)+
                all
            }
        }
    };
}
pub(crate) use documented;

/// Says which texts an enumeration of choices is written as.
macro_rules! choices {
    ($name:ty: $($word:literal),+) => {
        impl $crate::kinds::Documented for $name {
            const CHOICES: &'static [&'static str] = &[$($word),+];
        }
    };
}
pub(crate) use choices;
