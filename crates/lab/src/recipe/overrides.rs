//! Overrides as typed on the command line: `model.d=64 seed=0..10 n=4,8,12 draws=20`.

use serde_json::Value;

use super::axis::{Axis, Values};
use super::{Scale, Sweep};
use crate::error::{Error, Result};

/// One `key=value` of the command line.
#[derive(Clone, Debug, PartialEq)]
pub enum Override {
    /// New values for a setting, one or several.
    Setting(Axis),
    /// `draws=N`: how often random axes are drawn.
    Draws(u64),
}

impl Override {
    /// Reads one argument.
    pub fn parse(text: &str) -> Result<Override> {
        let wrong = |problem: &str| Error::Override { text: text.into(), problem: problem.into() };
        let (key, value) =
            text.split_once('=').ok_or_else(|| wrong("write key=value, as in model.d=64 or seed=0..10"))?;
        if key.is_empty() {
            return Err(wrong("write key=value, as in model.d=64 or seed=0..10"));
        }
        if key == "draws" {
            let draws = value.parse().ok().filter(|draws| *draws > 0);
            return draws.map(Override::Draws).ok_or_else(|| wrong("draws needs a whole number, 1 or more"));
        }
        Axis::read_typed(key, value).map(Override::Setting)
    }

    /// What it changes.
    pub fn key(&self) -> &str {
        match self {
            Override::Setting(axis) => &axis.key,
            Override::Draws(_) => "draws",
        }
    }

    /// Applies it to all sweeps of a scale. In each, an axis that is run through or drawn from gets the new values; a
    /// setting derived from a followed run keeps being derived; anything else is set, or becomes a new axis.
    pub fn apply(&self, scale: &mut Scale) -> Result<()> {
        match self {
            Override::Setting(axis) => scale.settings.check_key(&axis.key)?,
            Override::Draws(_) if scale.sweeps.iter().all(|sweep| sweep.random.is_empty()) => {
                return Err(Error::setting("draws", "nothing is drawn at random at this scale; leave it out"));
            }
            Override::Draws(_) => {}
        }
        for sweep in &mut scale.sweeps {
            match self {
                Override::Draws(draws) if !sweep.random.is_empty() => sweep.draws = *draws,
                Override::Draws(_) => {}
                Override::Setting(axis) => apply(axis, sweep)?,
            }
        }
        Ok(())
    }
}

fn apply(axis: &Axis, sweep: &mut Sweep) -> Result<()> {
    let derived = |value: &Value| value.as_str().is_some_and(|text| text.contains('{'));
    if sweep.set.iter().any(|(key, value)| *key == axis.key && derived(value)) {
        return Ok(());
    }
    if let Some(drawn) = sweep.random.iter_mut().find(|drawn| drawn.key == axis.key) {
        drawn.values = axis.values.clone();
        return Ok(());
    }
    if matches!(axis.values, Values::Between(..)) {
        axis.listed()?;
    }
    if let Some(listed) = sweep.grid.iter_mut().find(|listed| listed.key == axis.key) {
        listed.values = axis.values.clone();
        return Ok(());
    }
    sweep.set.retain(|(key, _)| *key != axis.key);
    sweep.grid.push(axis.clone());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        assert_eq!(Override::parse("draws=20").unwrap(), Override::Draws(20));
        let Override::Setting(axis) = Override::parse("seed=0..10").unwrap() else { panic!("not a setting") };
        assert_eq!(axis.listed().unwrap().len(), 10);
        let refusal = |text: &str| Override::parse(text).unwrap_err().to_string();
        assert!(refusal("model.d").contains("write key=value") && refusal("=5").contains("write key=value"));
        assert!(refusal("draws=0").contains("1 or more"));
    }

    #[test]
    fn unknown_settings_are_refused() {
        let recipe = crate::Recipe::find("hahn/dynamics").unwrap();
        let misspelt = Override::parse("modle.d=64").unwrap();
        let refusal = misspelt.apply(&mut recipe.scales[0].clone()).unwrap_err().to_string();
        assert!(refusal.contains("did you mean `model.d`"), "{refusal}");
    }
}
