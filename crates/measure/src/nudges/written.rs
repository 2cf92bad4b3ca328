//! Nudges as they are written: `name:key=value,key=value`, where a value may be a list.

use pudica_boolean::did_you_mean;
use pudica_data::corruptions::Corruption;
use pudica_model::pairs;
use serde_json::{Map, Value};

use super::{NUDGES, NudgeKind};
use crate::{MeasureError, MeasureResult};

/// A nudge as a user writes it.
#[derive(Debug, Clone)]
pub struct NudgeRequest {
    kind: &'static NudgeKind,
    /// What was given, as it was written: name and values.
    given: Vec<(&'static str, Vec<String>)>,
}

/// A nudge with one value for each of its parameters.
#[derive(Debug, Clone)]
pub struct Setting {
    /// Which nudge.
    pub kind: &'static NudgeKind,
    /// What was given or has a default; what is empty is found out from the inputs.
    values: Vec<(&'static str, String)>,
    /// What of it the user gave.
    given: Vec<&'static str>,
}

/// No list is longer.
const MOST_VALUES: usize = 100;

impl NudgeRequest {
    /// Reads `patch-noise`, `patch-noise:size=4,variance=0.1,1,5` or `corruption:fog:2`.
    pub fn parse(text: &str) -> MeasureResult<Self> {
        let refuse = |problem: String| MeasureError::Other(format!("--nudge {text}: {problem}"));
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let kind = NUDGES.iter().find(|kind| kind.name == name).ok_or_else(|| {
            let names = NUDGES.each_ref().map(|kind| kind.name);
            let hint = did_you_mean(name, names);
            refuse(format!("'{name}' is no nudge{hint}; `pudica measure --list` explains all: {}", names.join(", ")))
        })?;
        let mut given: Vec<(&'static str, Vec<String>)> = Vec::new();
        for (place, part) in rest.into_iter().flat_map(|rest| rest.split(':')).enumerate() {
            let settings = match part.contains('=') {
                true => pairs(part).map_err(refuse)?,
                false => {
                    let Some(parameter) = kind.parameters.get(place) else {
                        return Err(refuse(format!("'{part}' is one value too many")));
                    };
                    vec![(parameter.name.to_string(), part.trim().to_string())]
                }
            };
            for (key, values) in settings {
                let names = || kind.parameters.iter().map(|parameter| parameter.name);
                let Some(name) = names().find(|name| *name == key) else {
                    let known = match kind.parameters.len() {
                        0 => "it has none".to_string(),
                        _ => format!("there are {}", names().collect::<Vec<_>>().join(", ")),
                    };
                    return Err(refuse(format!("no parameter '{key}'{}; {known}", did_you_mean(&key, names()))));
                };
                if given.iter().any(|(other, _)| *other == name) {
                    return Err(refuse(format!("{name} is given twice")));
                }
                let values: Vec<String> = values.split(',').map(|value| value.trim().to_string()).collect();
                if values.len() > MOST_VALUES || values.iter().any(String::is_empty) {
                    return Err(refuse(format!(
                        "{name}: give a value, or up to {MOST_VALUES} with commas between them"
                    )));
                }
                given.push((name, values));
            }
        }
        let request = Self { kind, given };
        // What can be said without inputs is said at once.
        request.settings().iter().try_for_each(Setting::check_values)?;
        Ok(request)
    }

    /// Every combination of its values, in the order they are written.
    pub fn settings(&self) -> Vec<Setting> {
        let mut all = vec![Setting { kind: self.kind, values: Vec::new(), given: Vec::new() }];
        for parameter in self.kind.parameters {
            let given = self.given.iter().find(|(name, _)| *name == parameter.name).map(|(_, values)| values.clone());
            let is_given = given.is_some();
            let mut values = given.unwrap_or_else(|| vec![parameter.default.to_string()]);
            if self.kind.name == "corruption" && parameter.name == "name" && values == ["all"] {
                values = Corruption::ALL.iter().map(|(_, name)| name.to_string()).collect();
            }
            let with = |setting: &Setting, value: &String| {
                let mut setting = setting.clone();
                setting.values.push((parameter.name, value.clone()));
                if is_given || parameter.name == "name" {
                    setting.given.push(parameter.name);
                }
                setting
            };
            all = all.iter().flat_map(|setting| values.iter().map(|value| with(setting, value))).collect();
        }
        all
    }
}

/// Parameters that came when answers had been stored: without them a nudge is named as before, and does the same.
const LATER: [&str; 2] = ["offset", "pixels"];

impl Setting {
    /// As it would be written: `patch-noise:size=4,variance=1`, with what the user gave.
    pub fn text(&self) -> String {
        let given = self.values.iter().filter(|(name, _)| self.given.contains(name));
        let given: Vec<String> = given.map(|(name, value)| format!("{name}={value}")).collect();
        match given.is_empty() {
            true => self.kind.name.to_string(),
            false => format!("{}:{}", self.kind.name, given.join(",")),
        }
    }

    /// All that decides what it does, defaults included: what noise and stored answers are named by.
    pub fn identity(&self) -> String {
        let counts = |(name, value): &&(&str, String)| !(LATER.contains(name) && value.is_empty());
        let all: Vec<String> =
            self.values.iter().filter(counts).map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}:{}", self.kind.name, all.join(","))
    }

    /// The value of a parameter as it was given; empty where it is to be found out.
    pub fn value(&self, name: &str) -> &str {
        self.values.iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// A parameter that is a number more than 0.
    pub fn positive(&self, name: &str) -> MeasureResult<f64> {
        let text = self.value(name);
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
        number.ok_or_else(|| self.refuse(format!("{name}={text}: give a number more than 0")))
    }

    /// A parameter that is a whole number from 1 to `most`.
    pub fn whole(&self, name: &str, most: usize) -> MeasureResult<usize> {
        let text = self.value(name);
        let number = text.parse::<usize>().ok().filter(|number| (1..=most).contains(number));
        number.ok_or_else(|| self.refuse(format!("{name}={text}: give a whole number from 1 to {most}")))
    }

    /// Times each site is touched.
    pub fn draws(&self) -> MeasureResult<usize> {
        match self.kind.parameters.iter().any(|parameter| parameter.name == "draws") {
            true => self.whole("draws", 100_000),
            false => Ok(1),
        }
    }

    /// Its parameters as JSON: numbers where they are numbers.
    pub fn parameters(&self) -> Map<String, Value> {
        let json = |text: &str| match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(whole), _) => Value::from(whole),
            (_, Ok(number)) if number.is_finite() => Value::from(number),
            _ => Value::from(text),
        };
        self.values.iter().filter(|(_, value)| !value.is_empty()).map(|(name, v)| (name.to_string(), json(v))).collect()
    }

    /// Why it cannot be done.
    pub fn refuse(&self, problem: impl std::fmt::Display) -> MeasureError {
        MeasureError::Other(format!("{}: {problem}", self.kind.name))
    }

    /// Refuses values that no inputs could make right.
    fn check_values(&self) -> MeasureResult<()> {
        for (name, value) in self.values.iter().filter(|(_, value)| !value.is_empty()) {
            match *name {
                "variance" | "scale" | "rho" | "epsilon" => _ = self.positive(name)?,
                "size" | "offset" | "pixels" | "steps" | "vocabulary" | "inputs" => _ = self.whole(name, 1 << 24)?,
                "severity" => _ = self.whole(name, 5)?,
                "draws" => _ = self.draws()?,
                "norm" if !["linf", "l2"].contains(&value.as_str()) => {
                    return Err(self.refuse(format!("norm={value}: give linf or l2")));
                }
                "name" => _ = Corruption::named(value).map_err(|problem| self.refuse(problem))?,
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(written: &str) -> Vec<String> {
        NudgeRequest::parse(written).unwrap().settings().iter().map(Setting::text).collect()
    }

    #[test]
    fn lists_make_several_settings() {
        assert_eq!(texts("patch-noise"), ["patch-noise"]);
        let curve =
            ["patch-noise:size=4,variance=0.1", "patch-noise:size=4,variance=1", "patch-noise:size=4,variance=5"];
        assert_eq!(texts("patch-noise:size=4,variance=0.1,1,5"), curve);
        assert_eq!(texts("corruption:fog:1,2"), ["corruption:name=fog,severity=1", "corruption:name=fog,severity=2"]);
        assert_eq!(texts("corruption").len(), 19);
    }

    #[test]
    fn what_names_noise_stays_as_it_was() {
        let identity = |written: &str| NudgeRequest::parse(written).unwrap().settings()[0].identity();
        assert_eq!(identity("pixel-noise"), "pixel-noise:variance=0.1,draws=1");
        assert_eq!(identity("patch-noise"), "patch-noise:size=,variance=1,draws=1");
        assert_eq!(identity("patch-replace:size=4"), "patch-replace:size=4,draws=1");
        assert_eq!(identity("pixel-noise:pixels=16"), "pixel-noise:variance=0.1,pixels=16,draws=1");
    }

    #[test]
    fn what_is_wrong_is_said() {
        let refused = |written| NudgeRequest::parse(written).unwrap_err().to_string();
        for (written, sentence) in [
            ("patchnoise", "did you mean 'patch-noise'"),
            ("patch-noise:sice=4", "did you mean 'size'"),
            ("patch-noise:variance=-1", "more than 0"),
            ("patch-noise:variance=", "give a value"),
            ("patch-noise:size=4,size=8", "twice"),
            ("corruption:fog:9", "from 1 to 5"),
            ("corruption:frog:1", "did you mean"),
            ("bit-flip:3", "one value too many"),
            ("bit-flip:n=3", "it has none"),
            ("fgsm:norm=l3", "linf or l2"),
        ] {
            assert!(refused(written).contains(sentence), "{written}: {}", refused(written));
        }
    }

    #[test]
    fn every_nudge_is_read_by_its_name() {
        for kind in &NUDGES {
            let settings = NudgeRequest::parse(kind.name).unwrap().settings();
            assert!(!settings.is_empty() && kind.meaning.ends_with('.'), "{}", kind.name);
        }
    }
}
