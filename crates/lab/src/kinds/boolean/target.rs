//! From a target's name to the function and the strings it is learnt from.

use pudica_data::{Target, Task, TrainingSet};
use pudica_probe::learnt_table;

use super::{ModelKind, RunConfig, TargetName};
use crate::error::{Error, Result};
use crate::experiment::Teacher;

/// What the run learns.
pub(super) fn task(config: &RunConfig, teacher: Option<&Teacher>) -> Result<Task> {
    let mut task = Task::new(target(config, teacher)?);
    if config.model.kind == ModelKind::EncoderDecoder {
        task = task.with_scratchpad()?;
    }
    if let Some(set) = config.training_set()? {
        task = task.with_training_set(set);
    }
    if config.has_other_lengths() {
        let others = config.other_lengths()?;
        let targets = others.into_iter().map(|m| Target::parse(&config.target, m)).collect::<Result<_, _>>()?;
        task = task.with_lengths(config.train_lengths()?, targets)?;
    }
    Ok(task)
}

fn target(config: &RunConfig, teacher: Option<&Teacher>) -> Result<Target> {
    match TargetName::parse(&config.target)? {
        TargetName::Plain(name) => Ok(Target::parse(&name, config.n)?),
        TargetName::Completion { seed, set_size, set_seed, of } => {
            let set = TrainingSet::draw(set_size, config.n, set_seed)?;
            Ok(Target::parse(&of, config.n)?.completion(&set, seed)?)
        }
        TargetName::Run(id) => {
            let teacher =
                teacher.ok_or_else(|| Error::setting("target", format!("the network of run {id} is not at hand")))?;
            let its: RunConfig = teacher.settings.read()?;
            if its.n != config.n {
                let problem = format!("run {id} labels strings of {} bits, but n = {}", its.n, config.n);
                return Err(Error::setting("target", problem));
            }
            let network = super::trained(&its, &teacher.weights)?;
            Ok(Target::from_table(&config.target, learnt_table(&network, config.n)?))
        }
    }
}
