//! Whether runs fit in memory, and in a lifetime, at all: asked before anything is allocated or written. Both are judged from below, so
//! that what could work is never refused.

use pudica_boolean::memory::human_bytes;

use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::plan::Plan;

/// A setting that makes runs large, and how it is changed.
pub(crate) type Dimension<C> = (&'static str, fn(&C) -> usize, fn(&mut C, usize));

/// Refuses a configuration that needs more bytes than there are, naming the setting that matters most and the largest value of it that
/// might do; the last of them only where no other will do. `free` is what this process may have, where that is known.
pub(crate) fn check_fits<C: Clone>(
    config: &C,
    dimensions: &[Dimension<C>],
    free: Option<u64>,
    bytes: impl Fn(&C) -> f64,
) -> Result<()> {
    let needed = bytes(config) as u64; // at most u64::MAX
    let Some(free) = free.filter(|free| needed > *free) else { return Ok(()) };
    let with = |(_, _, set): &Dimension<C>, value: usize| {
        let mut changed = config.clone();
        set(&mut changed, value);
        bytes(&changed) as u64
    };
    // The one that matters most: without it the least is needed.
    let Some((last, others)) = dimensions.split_last() else { return Ok(()) };
    let most = others.iter().min_by_key(|dimension| with(dimension, 1)).unwrap_or(last);
    let dimension = if with(most, 1) > free && with(last, 1) <= free { last } else { most };
    let (key, get, _) = dimension;
    let (mut fits, mut too_large) = (0, get(config));
    while too_large - fits > 1 {
        let middle = fits + (too_large - fits) / 2;
        if with(dimension, middle) <= free { fits = middle } else { too_large = middle }
    }
    let (needed, free) = (human_bytes(needed), human_bytes(free));
    let sizes = format!("needs about {needed} of memory, and this process may have {free}");
    let problem = match fits {
        0 => format!("{} {sizes}; make the network smaller", get(config)),
        fits => format!("{} {sizes}; less than {} could fit", get(config), fits + 1),
    };
    Err(Error::setting(key, problem))
}

/// Multiply-adds per second that no machine makes, and seconds per training step that none falls below.
const FASTEST: f64 = 1e15;
const SHORTEST_STEP: f64 = 1e-6;

/// Years after which nobody waits.
const LONGEST: f64 = 10.0;

/// Refuses a plan with a run that would take longer than anybody waits, on whatever machine.
pub(crate) fn check_time(plan: &Plan, experiment: &dyn Experiment) -> Result<()> {
    for run in &plan.runs {
        let work = experiment.work(&run.settings)?;
        let seconds = match experiment.seconds_per_work() {
            Some(seconds) => seconds * work.total(),
            None => (work.total() / FASTEST).max(SHORTEST_STEP * work.steps as f64),
        };
        let years = seconds / (365.25 * 86400.0);
        if years > LONGEST {
            let what = if work.measure > work.until(work.steps) { "of measuring" } else { "of training steps" };
            let problem = format!("run {} ({}) would take at least {years:.0} years, most {what}", run.id, run.label);
            return Err(Error::Other(format!("{problem}; ask for fewer of them, or a smaller network")));
        }
    }
    Ok(())
}
