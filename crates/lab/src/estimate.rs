//! How long a plan would take on this machine, from a few measured training steps and forward passes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::company::{company, group_size};
use crate::config::RunConfig;
use crate::cores::side_by_side;
use crate::error::{Error, Result};
use crate::plan::{Plan, Shape};
use crate::timing::time;
use crate::trainer::Trainer;
use crate::work::{Passes, Work};

/// Time for measuring a shape.
const TIME_A_SHAPE: Duration = Duration::from_millis(400);

/// Once this much time is spent, larger shapes are judged by the last one measured.
const TIME_IN_ALL: Duration = Duration::from_secs(8);

/// What a plan costs here.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeEstimate {
    /// Wall-clock seconds of the whole plan.
    pub seconds: f64,
    /// The same for each shape of network, in the plan's order: the shape, its runs, and their seconds.
    pub by_shape: Vec<(Shape, usize, f64)>,
    /// How many of the shapes were really measured.
    pub shapes_measured: usize,
    /// Runs in the largest group that would train in lock-step.
    pub together: usize,
}

/// Makes a few steps and passes of each shape of network in the plan, in groups and `jobs` of them at a time as a sweep would, and adds up
/// what all runs need for training and measuring.
pub fn estimate(plan: &Plan, trainer: &dyn Trainer, jobs: usize) -> Result<TimeEstimate> {
    let shapes = plan.groups();
    let jobs = jobs.clamp(1, plan.runs.len().max(1));
    let mut fellows: HashMap<String, usize> = HashMap::new();
    for run in &plan.runs {
        *fellows.entry(company(&run.config)).or_default() += 1;
    }
    // Cheap shapes first, so that there is time for many of them.
    let mut order: Vec<usize> = (0..shapes.len()).collect();
    let config = |shape: usize| &plan.runs[shapes[shape].runs[0]].config;
    order.sort_by(|a, b| Work::of_step(config(*a)).total_cmp(&Work::of_step(config(*b))));

    let start = Instant::now();
    let mut by_shape: Vec<(Shape, usize, f64)> =
        shapes.iter().map(|group| (group.shape, group.runs.len(), 0.0)).collect();
    let (mut shapes_measured, mut together) = (0, 1);
    // Seconds of a step and of a pass for each unit of their work, at the shape measured last.
    let mut pace = (0.0, 0.0);
    for index in order {
        let first = config(index);
        if shapes_measured == 0 || start.elapsed() < TIME_IN_ALL {
            let size = group_size(fellows[&company(first)], trainer.company(first)?, jobs);
            let (step, pass) = seconds_of_step_and_pass(first, size, trainer, jobs)?;
            pace = (step / Work::of_step(first), pass / Work::of_pass(first));
            together = together.max(size);
            shapes_measured += 1;
        }
        let seconds = |config: &RunConfig| {
            let step = Work::of_step(config) * pace.0 * config.train.steps as f64;
            step + Work::of_pass(config) * pace.1 * Passes::of(config).total()
        };
        let runs = shapes[index].runs.iter().map(|run| seconds(&plan.runs[*run].config));
        by_shape[index].2 = runs.sum::<f64>() / jobs as f64;
    }
    let seconds = by_shape.iter().map(|(_, _, seconds)| seconds).sum();
    Ok(TimeEstimate { seconds, by_shape, shapes_measured, together })
}

/// Seconds of one training step and one forward pass of a run, while `jobs` groups of `size` such runs train at the same time.
fn seconds_of_step_and_pass(config: &RunConfig, size: usize, trainer: &dyn Trainer, jobs: usize) -> Result<(f64, f64)> {
    let timings = side_by_side(jobs, || time(config, size, trainer, TIME_A_SHAPE));
    let (mut step, mut pass) = (0.0, 0.0);
    for timing in timings {
        let timing = timing.ok_or_else(|| Error::Training("measuring the time of a step met a bug".into()))??;
        step += timing.ms_per_replica_step / 1000.0 / jobs as f64;
        pass += timing.forward_ms / 1000.0 / jobs as f64;
    }
    Ok((step, pass))
}
