//! The figure one wants: a quantity against another.

use serde::Deserialize;
use serde_json::Value;

use crate::kinds::Kind;

/// One figure. Each name is that of a setting (`model.d`) or of a measure (`sharpness`).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plot {
    /// Along the horizontal axis.
    pub x: String,
    /// Along the vertical axis.
    pub y: String,
    /// What colours tell.
    pub colour: Option<String>,
    /// What panels tell.
    pub panel: Option<String>,
}

impl Plot {
    /// Reads `plot = { x = "n", y = "sharpness" }`, or a list of such tables; nothing from `null`.
    pub fn read_all(plots: &Value) -> Result<Vec<Plot>, String> {
        let read = |one: &Value| {
            Plot::deserialize(one).map_err(|error| {
                format!("plot: {error}; write plot = {{ x = \"n\", y = \"sharpness\", colour = \"model.d\" }}")
            })
        };
        match plots {
            Value::Null => Ok(Vec::new()),
            Value::Array(list) => list.iter().map(read).collect(),
            one => Ok(vec![read(one)?]),
        }
    }

    /// Its names, with what each is for.
    pub fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let optional = [("colour", &self.colour), ("panel", &self.panel)];
        let optional = optional.into_iter().filter_map(|(part, name)| Some((part, name.as_deref()?)));
        [("x", self.x.as_str()), ("y", self.y.as_str())].into_iter().chain(optional)
    }

    /// Refuses a name that is neither a setting nor a measure of the kind.
    pub(super) fn check(&self, kind: &Kind) -> Result<(), String> {
        self.check_names(kind.defaults().keys(), kind.measures)
    }

    /// Refuses a name that is none of these settings and none of these measures; a measure `blowup_*` stands for all that begin so.
    pub fn check_names(&self, settings: &[String], measures: &[&str]) -> Result<(), String> {
        let known = |name: &str| settings.iter().any(|key| key == name) || measures.iter().any(|own| covers(own, name));
        let Some((part, wrong)) = self.names().find(|(_, name)| !known(name)) else { return Ok(()) };
        let all = || settings.iter().map(String::as_str).chain(measures.iter().copied());
        // `d` is as good as `model.d` for a suggestion.
        let by_last_part = all().find(|name| name.rsplit('.').next() == Some(wrong));
        let right = match by_last_part.or_else(|| pudica_boolean::nearest(wrong, all())) {
            Some(name) => format!("; did you mean `{name}`?"),
            None => format!(" (settings: {}; measures: {})", settings.join(", "), measures.join(", ")),
        };
        Err(format!("plot: there is no {part} `{wrong}`{right}"))
    }
}

/// Whether a known measure, or family of measures, is meant by a name.
fn covers(measure: &str, name: &str) -> bool {
    match measure.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => measure == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_plot_or_several_are_read() {
        let plot = json!({"x": "n", "y": "sharpness", "colour": "model.d"});
        let read = Plot::read_all(&plot).unwrap();
        assert_eq!((read.len(), read[0].colour.as_deref(), &read[0].panel), (1, Some("model.d"), &None));
        assert_eq!(Plot::read_all(&json!([plot, plot])).unwrap().len(), 2);
        assert_eq!(Plot::read_all(&Value::Null).unwrap(), []);
        for wrong in [json!({"x": "n"}), json!({"x": "n", "y": "m", "z": "k"}), json!("n")] {
            assert!(Plot::read_all(&wrong).unwrap_err().contains("plot = {"), "{wrong}");
        }
    }

    #[test]
    fn names_are_settings_or_measures() {
        let kind = Kind::find("boolean").unwrap();
        let check = |x: &str, y: &str| {
            Plot { x: x.into(), y: y.into(), colour: Some("model.d".into()), panel: None }.check(kind)
        };
        assert_eq!(check("n", "blowup_encoder"), Ok(()));
        assert_eq!(check("param_norm", "blowup"), Ok(()));
        let refusal = check("n", "sharpnes").unwrap_err();
        assert!(refusal.ends_with("no y `sharpnes`; did you mean `sharpness`?"), "{refusal}");
        assert!(check("n", "something").unwrap_err().contains("param_norm"), "all of them");
        assert!(check("d", "sharpness").unwrap_err().contains("no x `d`; did you mean `model.d`?"));
    }
}
