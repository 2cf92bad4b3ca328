//! A plan cut into parts of about equal cost, for machines that work on it at the same time, whether or not they share a disk.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use crate::error::Result;
use crate::experiment::Experiment;
use crate::plan::Plan;

/// More parts than this are a typing mistake.
const MOST_PARTS: usize = 100_000;

/// One part of a plan: on the command line `--unit 3/12`, the third of twelve. Every machine cuts the same plan into the same parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// Its number, from 1 on.
    pub part: usize,
    /// How many parts there are.
    pub of: usize,
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.part, self.of)
    }
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(text: &str) -> Result<Unit, String> {
        let numbers = text.split_once('/').map(|(part, of)| (part.parse::<usize>(), of.parse::<usize>()));
        match numbers {
            Some((Ok(part), Ok(of))) if (1..=of).contains(&part) && of <= MOST_PARTS => Ok(Unit { part, of }),
            _ => Err(format!("give a part and the number of parts, such as 3/12 (1 to {MOST_PARTS} parts)")),
        }
    }
}

impl Unit {
    /// Which runs of the plan are in this part.
    pub(crate) fn members(&self, plan: &Plan, experiment: &dyn Experiment) -> Result<Vec<bool>> {
        Ok(parts(plan, experiment, self.of)?.into_iter().map(|part| part + 1 == self.part).collect())
    }
}

/// The part, from 0 on, that each run of the plan is in. A run stays with the run whose labels it learns, and runs that may train in
/// lock-step stay together as far as equal costs allow. Nothing that is measured here plays a role, so that every machine finds the same.
pub fn parts(plan: &Plan, experiment: &dyn Experiment, of: usize) -> Result<Vec<usize>> {
    let places: HashMap<&str, usize> =
        plan.runs.iter().enumerate().map(|(place, run)| (run.id.as_str(), place)).collect();
    let is_measured = experiment.seconds_per_work().is_some();
    // Families: a teacher, named by its place, and all that learn from it, directly or not. A teacher comes before its students.
    let mut head: Vec<usize> = Vec::new();
    let mut families: Vec<Family> = Vec::new();
    let mut family_of: HashMap<usize, usize> = HashMap::new();
    let mut keys: HashMap<String, usize> = HashMap::new();
    for (place, run) in plan.runs.iter().enumerate() {
        let teacher = run.depends_on(plan.kind()).and_then(|id| places.get(id.as_str()).copied());
        head.push(teacher.and_then(|teacher| head.get(teacher).copied()).unwrap_or(place));
        let work = experiment.work(&run.settings)?;
        let cost = if is_measured { work.steps.max(1) as f64 } else { work.total() };
        let family = *family_of.entry(head[place]).or_insert(families.len());
        if family == families.len() {
            let next = keys.len();
            let fellows = *keys.entry(experiment.lockstep(&run.settings)?.key).or_insert(next);
            families.push(Family { fellows, cost: 0.0 });
        }
        families[family].cost += cost;
    }
    let mut order: Vec<usize> = (0..families.len()).collect();
    if !is_measured {
        order.sort_by_key(|family| families[*family].fellows); // stable: in the order of the plan otherwise
    }
    let costs: Vec<f64> = order.iter().map(|family| families[*family].cost).collect();
    let mut part_of = vec![0; families.len()];
    // Where a run's cost is not known beforehand, dealing out gives each part some of every network.
    let cut = if is_measured { (0..order.len()).map(|place| place % of).collect() } else { cut(&costs, of) };
    order.iter().zip(cut).for_each(|(family, part)| part_of[*family] = part);
    Ok(head.iter().map(|head| part_of[family_of[head]]).collect())
}

/// Runs that must be made in one place.
struct Family {
    /// The same number for families whose first runs may train in lock-step.
    fellows: usize,
    cost: f64,
}

/// Cuts a row of costs into parts of about equal sums: each goes where its middle lies. While there are enough of them, no part is empty.
fn cut(costs: &[f64], of: usize) -> Vec<usize> {
    let all: f64 = costs.iter().sum();
    let mut before = 0.0;
    let mut parts = Vec::new();
    for (place, cost) in costs.iter().enumerate() {
        let middle = before + cost / 2.0;
        before += cost;
        let even = if all > 0.0 { middle / all } else { (place as f64 + 0.5) / costs.len() as f64 };
        let part = ((even * of as f64) as usize).min(of - 1);
        // At most one further than the last, and early enough that those after it can have the rest.
        let last = parts.last().map_or(0, |last: &usize| last + 1);
        let needed = of.saturating_sub(costs.len() - place);
        parts.push(part.min(last).max(needed.min(last)));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(costs: &[f64], of: usize) -> Vec<f64> {
        let mut sums = vec![0.0; of];
        cut(costs, of).iter().zip(costs).for_each(|(part, cost)| sums[*part] += cost);
        sums
    }

    #[test]
    fn parts_are_about_equal_and_in_order() {
        assert_eq!(sums(&[1.0; 12], 4), [3.0; 4]);
        assert_eq!(sums(&[6.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 2), [6.0, 6.0]);
        let costs: Vec<f64> = (1..=100).map(f64::from).collect();
        for of in 1..40 {
            let (sums, parts) = (sums(&costs, of), cut(&costs, of));
            assert!(parts.is_sorted());
            let even = 5050.0 / of as f64;
            assert!(sums.iter().all(|sum| (sum - even).abs() <= 100.0), "{of}: {sums:?}");
        }
    }

    #[test]
    fn no_part_is_empty_while_there_are_enough_runs() {
        for costs in [vec![0.0; 9], vec![100.0, 1.0, 1.0, 1.0, 1.0], vec![1.0, 1.0, 1.0, 1.0, 100.0]] {
            for of in 1..=costs.len() {
                let mut parts = cut(&costs, of);
                assert!(parts.is_sorted());
                parts.dedup();
                assert_eq!(parts, (0..of).collect::<Vec<_>>(), "{costs:?} in {of}");
            }
        }
        assert_eq!(cut(&[1.0, 1.0], 5).len(), 2, "more parts than runs: some have none");
    }

    #[test]
    fn units_are_read_as_typed() {
        assert_eq!("3/12".parse(), Ok(Unit { part: 3, of: 12 }));
        assert_eq!(Unit { part: 3, of: 12 }.to_string(), "3/12");
        for wrong in ["", "3", "0/4", "5/4", "-1/4", "1/0", "a/b", "1/2/3", "1/999999999999"] {
            assert!(wrong.parse::<Unit>().is_err(), "{wrong}");
        }
    }
}
