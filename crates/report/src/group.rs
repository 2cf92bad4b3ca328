//! Runs that differ in their seed alone, and what they have in common.

use std::collections::HashMap;

use pudica_statistics::{Mean, Range, mean};
use serde_json::{Map, Value};

use crate::figure::colour::{PALETTE, point};
use crate::figure::{Mark, Point, Style};
use crate::run::Run;

/// Runs that differ in their seed alone.
pub struct Group<'a> {
    /// Its title, and the settings in which it differs from other groups of the same title.
    pub label: String,
    /// One or more.
    pub runs: Vec<&'a Run>,
    /// Its number, which is its colour and symbol.
    pub place: usize,
}

/// Groups of the runs that have numbers to show, in the order of the plan, each called by the `title` of its runs.
pub fn groups(runs: &[Run], title: impl Fn(&Run) -> String) -> Vec<Group<'_>> {
    let mut groups: Vec<Group> = Vec::new();
    for run in runs.iter().filter(|run| run.has_numbers()) {
        let label = title(run);
        match groups.iter_mut().find(|group| group.label == label && differ_in_seed_alone(group.first(), run)) {
            Some(group) => group.runs.push(run),
            None => groups.push(Group { label, runs: vec![run], place: groups.len() }),
        }
    }
    add_differences(&mut groups);
    groups
}

fn differ_in_seed_alone(one: &Run, other: &Run) -> bool {
    one.record.sweep == other.record.sweep
        && one.settings.iter().all(|(key, value)| key == "seed" || other.settings.get(key) == Some(value))
}

/// Adds to the labels of groups of the same title the settings that differ between them.
fn add_differences(groups: &mut [Group]) {
    let titles: Vec<String> = groups.iter().map(|group| group.label.clone()).collect();
    let keys: Vec<&String> = groups.first().into_iter().flat_map(|group| group.first().settings.keys()).collect();
    for key in keys.into_iter().filter(|key| *key != "seed") {
        let values: Vec<String> = groups.iter().map(|group| group.text(key)).collect();
        let mut by_title: HashMap<&str, Vec<&str>> = HashMap::new();
        titles.iter().zip(&values).for_each(|(title, value)| by_title.entry(title).or_default().push(value));
        for ((group, title), value) in groups.iter_mut().zip(&titles).zip(&values) {
            if by_title[title.as_str()].iter().any(|other| other != value) {
                let name = key.rsplit('.').next().unwrap_or(key);
                group.label += &format!(", {name} {value}");
            }
        }
    }
}

/// The mean of numbers of runs with its 95 % interval: over runs where there are several; of one run, by its own standard error.
pub fn averaged(values: impl IntoIterator<Item = Mean>) -> Option<Mean> {
    let values: Vec<Mean> = values.into_iter().collect();
    match &values[..] {
        [one] => Some(*one),
        several => mean(&several.iter().map(|one| one.mean).collect::<Vec<_>>()),
    }
}

impl<'a> Group<'a> {
    /// One of its runs, for what they have in common.
    pub fn first(&self) -> &'a Run {
        self.runs[0]
    }

    /// A setting of its runs as text.
    pub fn text(&self, key: &str) -> String {
        self.first().text(key)
    }

    /// A setting of its runs as a number.
    pub fn number(&self, key: &str) -> Option<f64> {
        self.first().number(key)
    }

    /// All settings but the seed, nested as in a recipe.
    pub fn settings(&self) -> Value {
        let mut tree = Value::Object(Map::new());
        for (key, value) in self.first().settings.iter().filter(|(key, _)| *key != "seed") {
            *key.split('.').fold(&mut tree, |node, part| &mut node[part]) = value.clone();
        }
        tree
    }

    /// The mean over runs of a number as it stands now, over those that have it.
    pub fn value(&self, name: &str) -> Option<Mean> {
        averaged(self.runs.iter().filter_map(|run| run.estimate(name)))
    }

    /// The same for people: with an interval inside what the quantity can be, and an upper limit where nothing was seen.
    pub fn shown(&self, name: &str) -> Option<Mean> {
        self.value(name).map(|mean| self.possible(name, mean))
    }

    /// A mean of a quantity with an interval that can be true.
    pub fn possible(&self, name: &str, mean: Mean) -> Mean {
        let mean = mean.within(range_of(name));
        match (name, mean.mean) {
            ("sensitivity", 0.0) => {
                mean.of_cases(self.runs.iter().filter_map(|run| run.touches()).fold(0, u64::saturating_add))
            }
            _ => mean,
        }
    }

    /// A number that does not depend on the seed.
    pub fn same(&self, name: &str) -> Option<Mean> {
        self.runs.iter().find_map(|run| run.estimate(name))
    }

    /// The mean over runs of a logged quantity, wherever on the axis `x` all of them have it, with intervals that can be true.
    pub fn curve(&self, x: &str, name: &str) -> Vec<(f64, Mean)> {
        let curves: Vec<Vec<(f64, Mean)>> = self.runs.iter().map(|run| run.curve(x, name).collect()).collect();
        let at = |at: f64| {
            let values = curves.iter().map(|curve| curve.iter().find(|(x, _)| *x == at).map(|(_, value)| *value));
            averaged(values.collect::<Option<Vec<_>>>()?).map(|mean| (at, self.possible(name, mean)))
        };
        curves[0].iter().filter_map(|(x, _)| at(*x)).collect()
    }

    /// The means over runs of the numbers `name.0`, `name.1`, ... as long as all have them.
    pub fn profile(&self, name: &str) -> Vec<Mean> {
        let profiles: Vec<Vec<Mean>> = self.runs.iter().map(|run| run.profile(name)).collect();
        let places = profiles.iter().map(Vec::len).min().unwrap_or(0);
        (0..places).filter_map(|place| averaged(profiles.iter().map(|profile| profile[place]))).collect()
    }

    /// The colour of its lines.
    pub fn colour(&self) -> &'static str {
        PALETTE[self.place % PALETTE.len()]
    }

    /// How its points look.
    pub fn symbol(&self) -> Style {
        point(self.place)
    }

    /// A line through means with a band of their intervals, and a symbol at each.
    pub fn marks(&self, curve: &[(f64, Mean)]) -> Vec<Mark> {
        let [band, line] = band_and_line(curve, self.colour(), 1, 0);
        vec![band, line, self.symbols(curve)]
    }

    /// The same where the line may go back and forth, so that a band would cross itself: an interval at each symbol.
    pub fn path(&self, curve: &[(f64, Mean)]) -> Vec<Mark> {
        let bars = curve.iter().filter(|(_, mean)| tells(mean)).map(|(x, mean)| (*x, mean.low, mean.high)).collect();
        let [_, line] = band_and_line(curve, self.colour(), 1, 0);
        let style = Style::line(self.colour()).faint(0.35);
        vec![Mark::Intervals { points: bars, style }, line, self.symbols(curve)]
    }

    fn symbols(&self, curve: &[(f64, Mean)]) -> Mark {
        Mark::points(curve.iter().map(|(x, mean)| Point::mean(*x, mean, self.label.as_str())), self.symbol().sized(2.4))
    }
}

/// Whether an interval is drawn. One from two runs says nothing and would set the scale.
fn tells(mean: &Mean) -> bool {
    mean.low < mean.high && mean.count != 2
}

/// A line through means and a band of their intervals: interrupted where fewer than `at_least` runs are behind one, faint where more than
/// half of `planned` runs are missing.
pub fn band_and_line(curve: &[(f64, Mean)], colour: &str, at_least: usize, planned: usize) -> [Mark; 2] {
    let style = Style::line(colour);
    let interval = |mean: &Mean| (tells(mean) && mean.count >= at_least).then_some((mean.low, mean.high));
    let point = |(x, mean): &(f64, Mean)| Point {
        interval: interval(mean),
        few: 2 * mean.count < planned,
        ..(*x, mean.mean).into()
    };
    let points: Vec<Point> = curve.iter().map(point).collect();
    [Mark::band(&points, style.clone().faint(0.15)), Mark::line(points, style)]
}

/// What a quantity can be, by its name.
pub fn range_of(name: &str) -> Range {
    let fractions = ["sensitivity", "shpred", "sites"];
    let beginnings = ["accuracy_", "adversarial_", "corruptions.", "attention_"];
    let endings = ["accuracy", "_fraction"];
    let positive = ["shop", "shop_l2", "blowup", "param_norm", "weight_norm"];
    if fractions.contains(&name)
        || beginnings.iter().any(|part| name.starts_with(part))
        || endings.iter().any(|part| name.ends_with(part))
    {
        Range::Fraction
    } else if positive.contains(&name) || name == "loss" || name.ends_with("_loss") {
        Range::Positive
    } else {
        Range::Any
    }
}

/// The names of all measures taken at the end of any run that begin so, without those of standard errors.
pub fn measure_names<'a>(runs: impl Iterator<Item = &'a Run>, prefix: &str) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, value) in runs.filter_map(|run| run.summary.as_ref()).flat_map(|summary| &summary.measures) {
        let wanted = name.starts_with(prefix) && !name.ends_with("_std_error") && value.is_number();
        if wanted && !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::unfinished;
    use serde_json::json;

    #[test]
    fn groups_differ_in_more_than_the_seed_and_say_in_what() {
        let run = |seed: u64, lr: f64, epochs: &[u64]| {
            let lines: Vec<Value> = epochs
                .iter()
                .map(|epoch| json!({"epoch": epoch, "loss": (epoch + seed) as f64, "loss_std_error": 0.5}))
                .collect();
            unfinished(json!({"seed": seed, "model.d": 8, "train.lr": lr}), &lines)
        };
        let runs = [run(0, 0.1, &[0, 1, 2]), run(0, 0.2, &[0]), run(2, 0.1, &[0, 2]), run(3, 0.1, &[])];
        let groups = groups(&runs, |run| format!("d {}", run.text("model.d")));
        let labels: Vec<&str> = groups.iter().map(|group| group.label.as_str()).collect();
        assert_eq!(labels, ["d 8, lr 0.1", "d 8, lr 0.2"]);
        assert_eq!((groups[0].runs.len(), groups[1].runs.len()), (2, 1), "a run without numbers is in no group");
        assert_eq!(groups[0].settings(), json!({"model": {"d": 8}, "train": {"lr": 0.1}}));
        // Epoch 1 is known of one run only.
        let curve: Vec<(f64, f64)> =
            groups[0].curve("epoch", "loss").iter().map(|(epoch, mean)| (*epoch, mean.mean)).collect();
        assert_eq!(curve, [(0.0, 1.0), (2.0, 3.0)]);
        // Over runs where there are several, by its own error where there is one.
        let (several, one) = (groups[0].value("loss").unwrap(), groups[1].value("loss").unwrap());
        assert_eq!((several.mean, several.std_error, several.count), (3.0, 1.0, 2));
        assert_eq!((one.mean, one.high, one.count), (0.0, 0.98, 1));
    }

    #[test]
    fn bands_need_three_runs_and_lines_tell_where_most_are_missing() {
        let mean = |count| Mean { mean: 0.5, std_error: 0.1, low: 0.3, high: 0.7, count };
        let curve = [(1.0, mean(3)), (2.0, mean(2)), (3.0, mean(4)), (4.0, mean(1))];
        let [band, line] = band_and_line(&curve, "black", 3, 6);
        let Mark::Band { points, .. } = band else { panic!("{band:?}") };
        assert_eq!(points.iter().map(|(_, low, _)| low.is_nan()).collect::<Vec<_>>(), [false, true, false, true]);
        let Mark::Line { points, .. } = line else { panic!("{line:?}") };
        assert_eq!(points.iter().map(|point| point.few).collect::<Vec<_>>(), [false, true, false, true]);
        // Where single runs have errors of their own, these are drawn; an interval from two runs never is.
        let [band, _] = band_and_line(&curve, "black", 1, 0);
        let Mark::Band { points, .. } = band else { panic!("{band:?}") };
        assert_eq!(points.iter().map(|(_, low, _)| low.is_nan()).collect::<Vec<_>>(), [false, true, false, false]);
    }

    #[test]
    fn names_tell_what_a_quantity_can_be() {
        for name in
            ["sensitivity", "test_accuracy", "corruptions.fog", "attention_sparse", "train_largest_class_fraction"]
        {
            assert_eq!(range_of(name), Range::Fraction, "{name}");
        }
        for name in ["eval_loss", "loss", "blowup", "param_norm", "shop"] {
            assert_eq!(range_of(name), Range::Positive, "{name}");
        }
        for name in ["sharpness", "average_sensitivity", "sensitivity_fall_half", "alignment_sparse", "hessian_trace"] {
            assert_eq!(range_of(name), Range::Any, "{name}");
        }
    }
}
