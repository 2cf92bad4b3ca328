//! How long a plan would take on this machine, from a few measured training steps and forward passes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::clock::{Readings, readings};
use crate::compute::Machine;
use crate::cores::side_by_side;
use crate::error::{Error, Result};
use crate::execute::{group_size, jobs};
use crate::experiment::{Experiment, Work};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::stop::without_progress;

/// Time for measuring the steps, and again for the passes, of one group of runs.
const TIME_A_GROUP: Duration = Duration::from_millis(200);

/// Once this much time is spent, more work is judged by what was measured last.
const TIME_IN_ALL: Duration = Duration::from_secs(8);

/// What a plan costs here.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeEstimate {
    /// Wall-clock seconds of the whole plan.
    pub seconds: f64,
    /// Kinds of work among the runs (lock-step groups), and how many of them were really measured.
    pub groups: usize,
    /// How many of them were really measured; the others are judged by the nearest smaller one.
    pub groups_measured: usize,
    /// Groups that would train side by side.
    pub jobs: usize,
    /// Runs in the largest group that would train in lock-step.
    pub together: usize,
}

/// Makes a few steps and passes of each kind of work in the plan, in groups and several of them at a time as a sweep would, and adds up
/// what all runs need for training and measuring.
pub fn estimate(plan: &Plan, experiment: &dyn Experiment, machine: &Machine) -> Result<TimeEstimate> {
    let jobs = jobs(plan, machine, experiment);
    let mut fellows: HashMap<String, (usize, Vec<usize>)> = HashMap::new();
    let mut works = Vec::new();
    for (index, run) in plan.runs.iter().enumerate() {
        works.push(experiment.work(&run.settings)?);
        let lockstep = experiment.lockstep(&run.settings)?;
        let most = machine.together.map_or(lockstep.most, |asked| asked.min(lockstep.most));
        fellows.entry(lockstep.key).or_insert((most, Vec::new())).1.push(index);
    }
    // Cheap work first, so that there is time for many groups.
    let mut groups: Vec<(usize, Vec<usize>)> = fellows.into_values().collect();
    let cost = |runs: &[usize]| works[runs[0]].step.max(works[runs[0]].measure.min(1.0));
    groups.sort_by(|a, b| cost(&a.1).total_cmp(&cost(&b.1)).then(a.1[0].cmp(&b.1[0])));
    let start = Instant::now();
    let (mut seconds, mut measured, mut together) = (0.0, 0, 1);
    let mut known: Option<Pace> = None;
    for (most, runs) in &groups {
        let work = works[runs[0]];
        let size = group_size(runs.len(), *most, jobs);
        together = together.max(size);
        let pace = match (experiment.seconds_per_work(), known) {
            (Some(seconds), _) => Pace { step: seconds, pass: seconds },
            (None, Some(pace)) if start.elapsed() >= TIME_IN_ALL => pace,
            _ => {
                measured += 1;
                pace_of(&plan.runs[runs[0]].settings, &work, size, experiment, jobs)?
            }
        };
        known = Some(pace);
        for run in runs {
            let Work { steps, step, .. } = works[*run];
            let training = step * steps as f64;
            seconds += (pace.step * training + pace.pass * (works[*run].total() - training)) / jobs as f64;
        }
    }
    let groups_measured = if experiment.seconds_per_work().is_some() { groups.len() } else { measured };
    Ok(TimeEstimate { seconds, groups: groups.len(), groups_measured, jobs, together })
}

/// Seconds per unit of work, of each run.
#[derive(Clone, Copy)]
struct Pace {
    /// In training steps.
    step: f64,
    /// In forward passes.
    pass: f64,
}

/// The pace of runs like this one, while `jobs` groups of `size` of them train at the same time.
fn pace_of(settings: &Settings, work: &Work, size: usize, experiment: &dyn Experiment, jobs: usize) -> Result<Pace> {
    let timed = side_by_side(jobs, || -> Result<Pace> {
        let mut training = experiment.trial(settings, size)?;
        let per_run = |readings: Option<Readings>| readings.map(|readings| readings.median() / size as f64);
        let pass = per_run(readings(TIME_A_GROUP, |count| (0..count).map(|_| training.pass()).sum())?);
        if work.steps == 0 {
            let pass = match pass {
                Some(pass) => pass,
                None => {
                    let begun = Instant::now();
                    without_progress(|progress| training.measure(progress))?;
                    begun.elapsed().as_secs_f64() / work.measure.max(f64::MIN_POSITIVE) / size as f64
                }
            };
            return Ok(Pace { step: pass, pass });
        }
        let step = per_run(readings(TIME_A_GROUP, |count| {
            let before = training.step();
            if before < work.steps {
                training.advance(count.min(work.steps - before))?;
            }
            Ok((training.step() - before) as f64 * work.step)
        })?);
        let step = step.or(pass).unwrap_or(0.0);
        Ok(Pace { step, pass: pass.unwrap_or(step) })
    });
    let mut sum = Pace { step: 0.0, pass: 0.0 };
    for pace in timed {
        let pace = pace.ok_or_else(|| Error::Other("measuring the time of a step met a bug".into()))??;
        sum = Pace { step: sum.step + pace.step / jobs as f64, pass: sum.pass + pace.pass / jobs as f64 };
    }
    Ok(sum)
}
