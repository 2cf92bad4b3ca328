//! Strings that a network never saw: which they are, and what it makes of them, beside its target and beside the function of least degree
//! that agrees with the target on all others.

use pudica_boolean::{RealTable, Spectrum, TruthTable, min_degree_interpolator};
use pudica_data::{Target, Task, TrainingSet};
use pudica_probe::ProbeError;
use serde_json::{Map, Value, json};

use super::config::NONE;
use super::validate::{LONGEST_TABLE, written};
use super::{RunConfig, measure::Measures};
use crate::error::{Error, Result};

const SETTING: &str = "train.unseen";

impl RunConfig {
    /// `train.unseen` as settings keep it.
    pub(super) fn unseen_written(&self) -> Result<String> {
        if self.train.unseen == NONE {
            return Ok(NONE.into());
        }
        Ok(written(SETTING, &self.train.unseen)?.text)
    }

    /// Refuses strings that cannot be left out.
    pub(super) fn check_unseen(&self) -> Result<()> {
        if self.train.unseen == NONE {
            return Ok(());
        }
        let refuse = |problem: String| Err(Error::setting(SETTING, problem));
        if self.train.set_size > 0 {
            return refuse("cannot be together with train.set_size: choose one of them".into());
        }
        if self.n > LONGEST_TABLE {
            return refuse(format!("strings are left out up to n = {LONGEST_TABLE}, but n = {}", self.n));
        }
        let table = self.unseen_table()?;
        match table.ones() {
            0 => refuse(format!("{} is 0 on all strings of {} bits, so none is left out", self.train.unseen, self.n)),
            ones if ones == table.rows() => {
                refuse(format!("{} is 1 on all strings of {} bits, so none is left", self.train.unseen, self.n))
            }
            _ => Ok(()),
        }
    }

    fn unseen_table(&self) -> Result<TruthTable> {
        let table = Target::parse(&self.train.unseen, self.n).and_then(|target| target.table());
        table.map_err(|error| Error::setting(SETTING, error.to_string()))
    }

    /// The strings the run trains on, where these are not all.
    pub(super) fn training_set(&self) -> Result<Option<TrainingSet>> {
        Ok(match (self.train.set_size, self.train.unseen.as_str()) {
            (0, NONE) => None,
            (0, _) => Some(TrainingSet::all_but(&self.unseen_table()?)?),
            (size, _) => Some(TrainingSet::draw(size, self.n, self.train.set_seed)?),
        })
    }
}

/// What a network that saw a part of all strings is compared with. All values are on the ±1 scale: 1 - 2 * output.
pub(super) struct References {
    /// 1 on the strings that were not seen.
    unseen: TruthTable,
    target: Reference,
    /// Nothing where too many strings without a structure were not seen.
    interpolator: Option<Reference>,
}

struct Reference {
    values: Vec<f64>,
    spectrum: Spectrum,
}

impl Reference {
    fn new(table: RealTable) -> Result<Reference, ProbeError> {
        Ok(Reference { values: table.values().to_vec(), spectrum: Spectrum::of_real(table)? })
    }
}

impl References {
    /// Those of a run, where it asks for them and has a training set.
    pub(super) fn of(config: &RunConfig, task: &Task) -> Result<Option<References>, ProbeError> {
        let Some(set) = task.training_set().filter(|_| config.measure.profile && config.n <= LONGEST_TABLE) else {
            return Ok(None);
        };
        let unseen = set.unseen()?;
        let target = plus_minus(&task.target().values()?, config.n)?;
        let interpolator = min_degree_interpolator(&target, &unseen).ok().map(Reference::new).transpose()?;
        Ok(Some(References { unseen, target: Reference::new(target)?, interpolator }))
    }

    /// Compares what a network answers to every string.
    pub(super) fn compare(&self, answers: &[f32]) -> Result<Compared, ProbeError> {
        let n = self.unseen.variables();
        let table = plus_minus(answers, n)?;
        let values = table.values().to_vec();
        let spectrum = Spectrum::of_real(table)?;
        let far = |reference: &Reference| spectrum.distance_by_degree(&reference.spectrum);
        Ok(Compared {
            unseen: self.on_unseen(&values),
            from_target: far(&self.target),
            from_interpolator: self.interpolator.as_ref().map(far),
            toward_target: self
                .interpolator
                .as_ref()
                .and_then(|interpolator| self.toward_target(interpolator, &values)),
        })
    }

    /// Mean squared error on the {0, 1} scale, and accuracy, on the strings that were not seen; nothing where all were.
    fn on_unseen(&self, values: &[f64]) -> Option<(f64, f64)> {
        let (mut count, mut loss, mut right) = (0.0, 0.0, 0.0);
        let rows = (0..).zip(values.iter().zip(&self.target.values)).filter(|(row, _)| self.unseen.get(*row));
        for (_, (value, target)) in rows {
            count += 1.0;
            loss += (value - target).powi(2) / 4.0;
            right += f64::from(u8::from((*value < 0.0) == (*target < 0.0)));
        }
        (count > 0.0).then(|| (loss / count, right / count))
    }

    /// Where the network is between the interpolator (0) and the target (1) on the unseen strings: the foot of its perpendicular on the line
    /// through both. Nothing where they are the same there.
    fn toward_target(&self, interpolator: &Reference, values: &[f64]) -> Option<f64> {
        let (mut along, mut length) = (0.0, 0.0);
        for row in (0..values.len()).filter(|row| self.unseen.get(*row as u64)) {
            let way = self.target.values[row] - interpolator.values[row];
            along += (values[row] - interpolator.values[row]) * way;
            length += way * way;
        }
        (length > 1e-9).then(|| along / length)
    }

    /// What does not depend on the network.
    pub(super) fn detail(&self) -> Value {
        let degrees = |reference: &Reference| reference.spectrum.degree_profile().to_vec();
        let apart = |one: &Reference| self.target.spectrum.distance_by_degree(&one.spectrum).iter().sum::<f64>();
        json!({
            "strings": self.unseen.ones(),
            "target_degrees": degrees(&self.target),
            "interpolator_degrees": self.interpolator.as_ref().map(degrees),
            "interpolator_from_target": self.interpolator.as_ref().map(apart),
        })
    }
}

/// Values near {0, 1} on the scale of the theory.
fn plus_minus(values: &[f32], n: usize) -> Result<RealTable, ProbeError> {
    let values: Vec<f64> = values.iter().map(|value| 1.0 - 2.0 * f64::from(*value)).collect();
    Ok(RealTable::new(n, values[..].into(), f64::from(f32::EPSILON))?)
}

/// A network beside its references.
pub(super) struct Compared {
    /// Mean squared error and accuracy on the strings that were not trained on.
    unseen: Option<(f64, f64)>,
    from_target: Vec<f64>,
    from_interpolator: Option<Vec<f64>>,
    toward_target: Option<f64>,
}

impl Compared {
    /// Its measures by name: E (f - g)^2 in all.
    pub(super) fn measures(&self, measures: &mut Measures) {
        if let Some((loss, accuracy)) = self.unseen {
            measures.value("unseen_loss", loss);
            measures.value("unseen_accuracy", accuracy);
        }
        measures.value("from_target", self.from_target.iter().sum());
        if let Some(distances) = &self.from_interpolator {
            measures.value("from_interpolator", distances.iter().sum());
        }
        if let Some(toward) = self.toward_target {
            measures.value("toward_target", toward);
        }
    }

    /// The distances by degree.
    pub(super) fn by_degree(&self) -> Map<String, Value> {
        let interpolator = self.from_interpolator.as_ref().map(|distances| ("from_interpolator_by_degree", distances));
        let all = [("from_target_by_degree", &self.from_target)].into_iter().chain(interpolator);
        all.map(|(name, distances)| (name.to_string(), json!(distances))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::Configuration;

    fn config(target: &str, unseen: &str, n: usize) -> RunConfig {
        let mut config = RunConfig { target: target.into(), n, ..RunConfig::default() };
        config.train.unseen = unseen.into();
        config.measure.profile = true;
        config
    }

    fn references(target: &str, unseen: &str, n: usize) -> (References, Target) {
        let config = config(target, unseen, n);
        let target = Target::parse(target, n).unwrap();
        let task = Task::new(target.clone()).with_training_set(config.training_set().unwrap().unwrap());
        (References::of(&config, &task).unwrap().unwrap(), target)
    }

    /// f2 of Abbe et al. (2023): x1 x2 where both are never -1, whose interpolator is x1 + x2 - 1.
    #[test]
    fn answers_are_placed_between_the_interpolator_and_the_target() {
        let (references, target) = references("kparity:2", "expr:x1 & x2", 5);
        let labels = target.values().unwrap();
        let found = references.compare(&labels).unwrap();
        assert_eq!((found.unseen, found.toward_target), (Some((0.0, 1.0)), Some(1.0)));
        // x1 x2 - (x1 + x2 - 1): a coefficient of 1 at degrees 0 and 2, two at degree 1.
        assert_eq!(found.from_interpolator, Some(vec![1.0, 2.0, 1.0, 0.0, 0.0, 0.0]));
        // On the unseen eight strings x1 + x2 - 1 = -3, on the {0, 1} scale 2 instead of 0.
        let least: Vec<f32> = (0..32).map(|row| if row >> 3 == 3 { 2.0 } else { labels[row] }).collect();
        let found = references.compare(&least).unwrap();
        assert_eq!((found.unseen, found.toward_target), (Some((4.0, 0.0)), Some(0.0)));
        assert_eq!(found.from_interpolator, Some(vec![0.0; 6]));
        assert_eq!(references.detail()["interpolator_degrees"][1], 2.0);
        assert_eq!(references.detail()["interpolator_from_target"], 4.0);
    }

    #[test]
    fn a_random_set_has_an_interpolator_too() {
        let mut config = config("random:0", NONE, 6);
        config.train.set_size = 40;
        let task = Task::new(Target::parse("random:0", 6).unwrap());
        assert!(References::of(&config, &task).unwrap().is_none(), "all strings are seen");
        let task = task.with_training_set(config.training_set().unwrap().unwrap());
        let references = References::of(&config, &task).unwrap().unwrap();
        assert_eq!(references.detail()["strings"], 24);
        assert!(references.interpolator.is_some());
    }

    #[test]
    fn each_mistake_has_its_sentence() {
        let refusal = |unseen: &str, n: usize| {
            RunConfig::resolve(&config("parity", unseen, n).settings()).unwrap_err().to_string()
        };
        assert_eq!(refusal("expr:x1 & x5", 4), "train.unseen: the expression uses x5, but n=4");
        assert!(refusal("mean", 4).starts_with("train.unseen: the target \"mean\" has real values"));
        assert!(refusal("threshold:0", 4).contains("is 1 on all strings of 4 bits, so none is left"));
        assert!(refusal("expr:x1 & !x1", 4).contains("so none is left out"));
        assert!(refusal("expr:x1", 21).contains("up to n = 20"));
        assert!(refusal("party", 4).contains("did you mean 'parity'?"));
        let mut both = config("parity", "expr:x1", 4);
        both.train.set_size = 3;
        let refusal = RunConfig::resolve(&both.settings()).unwrap_err().to_string();
        assert!(refusal.contains("train.set_size"), "{refusal}");
    }

    #[test]
    fn settings_that_ask_for_nothing_leave_no_trace() {
        let json = RunConfig::default().canonical_json();
        assert!(!["unseen", "cut", "profile", "volume"].iter().any(|key| json.contains(key)), "{json}");
    }
}
