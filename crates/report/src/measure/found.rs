//! What was measured, in the order it is shown: models as they were named, nudges and responses as they were asked for.

use pudica_measure::results::{Details, Example, Measured, SiteProfile, Summary, Value};

use super::words;
use crate::figure::Style;
use crate::figure::colour::point;
use crate::sweep::{different, different_numbers};

/// Examples of a model and a nudge, at most, of the most and of the least sensitive: a row of cards.
const MOST_EXAMPLES: usize = 4;

/// `summary.json` and `details.json`.
pub struct Found {
    pub summary: Summary,
    pub details: Details,
}

/// Nudges that differ in one number at most.
pub struct Family<'a> {
    /// What they have in common: `patch noise, size 4`.
    pub title: String,
    /// The nudge without its parameters.
    pub kind: &'a str,
    /// The number in which they differ; `None` where there is one nudge only.
    pub along: Option<&'a str>,
    /// That number, rising, and the nudge.
    pub members: Vec<(f64, &'a str)>,
}

/// The interval of a value, where it has one and is not exact.
pub fn interval(value: &Value) -> Option<(f64, f64)> {
    value.ci95.map(|[low, high]| (low, high)).filter(|(low, high)| low < high)
}

impl Found {
    /// The models' names.
    pub fn models(&self) -> impl Iterator<Item = &str> {
        self.summary.models.iter().map(|model| model.about.name.as_str())
    }

    /// Each model's name, and the colour and symbol it has everywhere.
    pub fn styles(&self) -> impl Iterator<Item = (&str, Style)> {
        self.models().enumerate().map(|(place, model)| (model, point(place)))
    }

    /// What colours and symbols mean; empty where there is one model.
    pub fn legend(&self) -> Vec<(String, Style)> {
        let all: Vec<(String, Style)> = self.styles().map(|(model, style)| (model.into(), style)).collect();
        if all.len() > 1 { all } else { Vec::new() }
    }

    /// The models' names for an axis that has little room: without an ending that all of them have; numbers where cut names are the same.
    pub fn short_models(&self) -> Vec<String> {
        let all: Vec<&str> = self.models().collect();
        let ending = |name: &'static str| all.iter().all(|model| model.len() > name.len() && model.ends_with(name));
        let ending = [".onnx", ".pth", ".pt", ".th", ".bin"].into_iter().find(|name| ending(name)).unwrap_or("");
        let short = all.iter().map(|model| words::cut(model.strip_suffix(ending).unwrap_or(model), 13));
        let short: Vec<String> = short.collect();
        match different(short.iter()).len() == short.len() {
            true => short,
            false => (1..=all.len()).map(|number| number.to_string()).collect(),
        }
    }

    /// What was compared, the changes of labels first.
    pub fn responses(&self) -> Vec<&str> {
        let mut all = different(self.summary.results.iter().map(|result| result.response.as_str()));
        all.sort_by_key(|response| *response != "label");
        all
    }

    /// The nudges with their parameters.
    pub fn nudges(&self) -> Vec<&str> {
        different(self.summary.results.iter().map(|result| result.nudge.as_str()))
    }

    /// How a model responded to a nudge.
    pub fn result(&self, model: &str, nudge: &str, response: &str) -> Option<&Measured> {
        let all = &self.summary.results;
        all.iter().find(|one| one.model == model && one.nudge == nudge && one.response == response)
    }

    /// How much more `model` responded than `with`, in whichever order they were compared.
    pub fn difference(&self, model: &str, with: &str, nudge: &str, response: &str) -> Option<Value> {
        let mut asked = self.summary.differences.iter().filter(|one| one.nudge == nudge && one.response == response);
        let found = asked.find(|one| [(model, with), (with, model)].contains(&(&one.model, &one.with)))?;
        let turned =
            Value { value: -found.found.value, ci95: found.found.ci95.map(|[low, high]| [-high, -low]), ..found.found };
        Some(if found.model == model { found.found } else { turned })
    }

    /// The results of a nudge by site and by class, one for each model, of one response: changes of labels where there are some.
    pub fn profiles(&self, nudge: &str) -> Vec<&SiteProfile> {
        let own: Vec<&SiteProfile> = self.details.profiles.iter().filter(|profile| profile.nudge == nudge).collect();
        let shown =
            self.responses().into_iter().find(|response| own.iter().any(|profile| profile.response == *response));
        let of = |model: &str| {
            own.iter().find(|profile| profile.model == model && Some(profile.response.as_str()) == shown).copied()
        };
        self.models().filter_map(of).collect()
    }

    /// Leaves only the examples that are shown: of nudges that differ in a number, those of the largest; of one response; a
    /// few for each model.
    pub fn choose_examples(&mut self) {
        let families = self.responses().into_iter().flat_map(|response| self.families(response));
        let largest: Vec<String> =
            families.filter_map(|family| family.members.last().map(|(_, nudge)| nudge.to_string())).collect();
        let responses: Vec<String> = self.responses().into_iter().map(String::from).collect();
        let all = std::mem::take(&mut self.details.examples);
        let response_of = |nudge: &str| {
            let has = |response: &&String| all.iter().any(|one| one.nudge == nudge && one.response == **response);
            responses.iter().find(has)
        };
        let mut chosen: Vec<Example> = Vec::new();
        for one in &all {
            let alike =
                |other: &&Example| (&other.model, &other.nudge, other.most) == (&one.model, &one.nudge, one.most);
            let is_shown = largest.contains(&one.nudge) && response_of(&one.nudge) == Some(&one.response);
            if is_shown && chosen.iter().filter(alike).count() < MOST_EXAMPLES {
                chosen.push(one.clone());
            }
        }
        self.details.examples = chosen;
    }

    /// The nudges whose answers were compared in this way; those that differ in one number are together.
    pub fn families(&self, response: &str) -> Vec<Family<'_>> {
        let own = || self.summary.results.iter().filter(|result| result.response == response);
        let nudges: Vec<&Measured> = different(own().map(|result| result.nudge.as_str()))
            .into_iter()
            .filter_map(|nudge| own().find(|result| result.nudge == nudge))
            .collect();
        let mut families = Vec::new();
        for kind in different(nudges.iter().map(|nudge| nudge.kind.as_str())) {
            let of_kind: Vec<&Measured> = nudges.iter().filter(|nudge| nudge.kind == kind).copied().collect();
            let along = varying(&of_kind);
            let title = |nudge: &Measured, along| words::of_nudge(kind, &nudge.parameters, along);
            for shared in different(of_kind.iter().map(|nudge| title(nudge, along))) {
                let mut own: Vec<&Measured> =
                    of_kind.iter().filter(|nudge| title(nudge, along) == shared).copied().collect();
                let place =
                    |nudge: &Measured| along.and_then(|name| nudge.parameters.get(name)?.as_f64()).unwrap_or(0.0);
                own.sort_by(|one, other| place(one).total_cmp(&place(other)));
                let (title, along) = if own.len() > 1 { (shared, along) } else { (title(own[0], None), None) };
                let members = own.iter().map(|nudge| (place(nudge), nudge.nudge.as_str())).collect();
                families.push(Family { title, kind, along, members });
            }
        }
        families
    }
}

/// The number in which most of these nudges differ; `None` where they differ in none.
fn varying<'a>(nudges: &[&'a Measured]) -> Option<&'a str> {
    let mut most = (None, 1);
    for name in different(nudges.iter().flat_map(|nudge| nudge.parameters.keys())) {
        let values = nudges.iter().filter_map(|nudge| nudge.parameters.get(name)?.as_f64());
        let count = different_numbers(values).len();
        if count > most.1 {
            most = (Some(name.as_str()), count);
        }
    }
    most.0
}
