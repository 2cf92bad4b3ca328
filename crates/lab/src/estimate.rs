//! How long a plan would take on this machine, from a few measured training steps.

use std::time::{Duration, Instant};

use crate::config::RunConfig;
use crate::error::{Error, Result};
use crate::plan::{Plan, Shape};
use crate::trainer::Trainer;
use crate::work::Work;

/// Measuring a shape ends after this long, with at least one step.
const TIME_A_SHAPE: Duration = Duration::from_millis(300);

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
}

/// Makes a few steps of each shape of network in the plan, `jobs` at a time as a sweep would, and adds up what all runs need.
pub fn estimate(plan: &Plan, trainer: &dyn Trainer, jobs: usize) -> Result<TimeEstimate> {
    let groups = plan.groups();
    let jobs = jobs.clamp(1, plan.runs.len().max(1));
    // Cheap shapes first, so that there is time for many of them.
    let mut order: Vec<usize> = (0..groups.len()).collect();
    let work = |group: usize| Work::of_step(&plan.runs[groups[group].runs[0]].config);
    order.sort_by(|a, b| work(*a).total_cmp(&work(*b)));

    let start = Instant::now();
    let mut by_shape: Vec<(Shape, usize, f64)> =
        groups.iter().map(|group| (group.shape, group.runs.len(), 0.0)).collect();
    let mut seconds_per_work = 0.0;
    let mut shapes_measured = 0;
    for index in order {
        let first = &plan.runs[groups[index].runs[0]].config;
        if shapes_measured == 0 || start.elapsed() < TIME_IN_ALL {
            seconds_per_work = seconds_per_step(first, trainer, jobs)? / Work::of_step(first);
            shapes_measured += 1;
        }
        let work: f64 = groups[index].runs.iter().map(|run| Work::of(&plan.runs[*run].config).total()).sum();
        by_shape[index].2 = work * seconds_per_work / jobs as f64;
    }
    let seconds = by_shape.iter().map(|(_, _, seconds)| seconds).sum();
    Ok(TimeEstimate { seconds, by_shape, shapes_measured })
}

/// Seconds of one training step while `jobs` runs train at the same time.
fn seconds_per_step(config: &RunConfig, trainer: &dyn Trainer, jobs: usize) -> Result<f64> {
    // What is learnt does not matter for the time, and the labels of another run are not there yet.
    let config = RunConfig { target: "parity".into(), ..config.clone() };
    let measure = || -> Result<f64> {
        let mut training = trainer.begin(&config, None, None)?;
        training.advance()?;
        let start = Instant::now();
        let mut steps = 0;
        while steps == 0 || start.elapsed() < TIME_A_SHAPE {
            training.advance()?;
            steps += 1;
        }
        Ok(start.elapsed().as_secs_f64() / f64::from(steps))
    };
    let times = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..jobs).map(|_| scope.spawn(measure)).collect();
        let join = |thread: std::thread::ScopedJoinHandle<'_, Result<f64>>| {
            thread.join().unwrap_or_else(|_| Err(Error::Training("measuring the time of a step met a bug".into())))
        };
        threads.into_iter().map(join).collect::<Result<Vec<f64>>>()
    })?;
    Ok(times.iter().sum::<f64>() / times.len() as f64)
}
