//! Whether members fit together, and which strings they are measured on.

use pudica_data::{Batch, Bits, Task};
use pudica_nn::{Architecture, NnError, TrainingState};

use crate::{EnsembleError, Member, Shape, Strings};

/// Check that these members can be trained together; gives the rows of every training batch.
pub(crate) fn check(shape: &Shape, members: &[Member]) -> Result<usize, EnsembleError> {
    check_networks(&Architecture::Encoder(shape.encoder.clone()), shape.batch, members)
}

/// [`check`] for networks of any architecture.
pub(crate) fn check_networks(
    architecture: &Architecture,
    batch: usize,
    members: &[Member],
) -> Result<usize, EnsembleError> {
    let empty = architecture.empty_weights()?;
    let Some(first) = members.first() else {
        return Err(EnsembleError::Members("there are none".into()));
    };
    if batch == 0 {
        return Err(EnsembleError::Members("a training batch needs at least 1 string, but batch = 0".into()));
    }
    for (index, member) in members.iter().enumerate() {
        let problem = |problem: String| Err(EnsembleError::Members(format!("member {index} {problem}")));
        member.adamw.check()?;
        let TrainingState { weights, first_moment, second_moment, step } = &member.state;
        empty.check_same_layout(weights)?;
        let (expected, found) = (weights.data().len(), first_moment.len().min(second_moment.len()));
        if first_moment.len() != second_moment.len() || found != expected {
            return problem(format!("has moments of {found} weights, but {expected} weights"));
        }
        if *step != first.state.step {
            return problem(format!("stands at step {step}, member 0 at step {}", first.state.step));
        }
        let target = member.task.target();
        let n = architecture.n();
        if target.n() != n {
            return problem(format!("learns strings of {} bits, the network reads {n}", target.n()));
        }
        let (labels, outputs) = (member.task.label(Bits::new(n, vec![0; n])?)?.labels.len(), architecture.outputs());
        if labels != outputs {
            return problem(format!("learns {labels} numbers for each string, but the network gives {outputs}"));
        }
        let (rows, expected) = (training_rows(batch, &member.task), training_rows(batch, &first.task));
        if rows != expected || member.task.training_set().is_some() != first.task.training_set().is_some() {
            return problem(format!("trains on {rows} strings a step, member 0 on {expected}, or only one has a set"));
        }
    }
    Ok(training_rows(batch, &first.task))
}

/// Strings in a training step: the batch, or a smaller training set whole.
fn training_rows(batch: usize, task: &Task) -> usize {
    task.training_set().map_or(batch, |set| batch.min(set.strings().rows()))
}

/// The strings replica `replica` is measured on, with their labels.
pub(crate) fn measured(strings: Strings, replica: usize, task: &Task, seed: u64) -> Result<Batch, EnsembleError> {
    let own = match strings {
        Strings::Fresh { rows, purpose, index } => return Ok(task.measure_batch(rows, seed, purpose, index)?),
        Strings::Shared(bits) => bits,
        Strings::Each(all) => &all[replica],
    };
    Ok(task.label(own.clone())?)
}

/// Whether replicas that read n bits can be measured on these strings.
pub(crate) fn check_strings(strings: Strings, n: usize, replicas: usize) -> Result<(), EnsembleError> {
    check_bits(strings, replicas, |found| match found == n {
        true => Ok(()),
        false => Err(NnError::Batch(format!("the network reads strings of {n} bits, these have {found}"))),
    })
}

/// Whether networks can be measured on these strings, where `reads` says whether they read strings of so many bits.
pub(crate) fn check_bits(
    strings: Strings,
    replicas: usize,
    reads: impl Fn(usize) -> Result<(), NnError>,
) -> Result<(), EnsembleError> {
    let batch = |problem: String| Err(NnError::Batch(problem).into());
    let check_one = |bits: &Bits| {
        reads(bits.n())?;
        match bits.rows() {
            0 => batch("it has no strings".into()),
            _ => Ok(()),
        }
    };
    match strings {
        Strings::Fresh { rows: 0, .. } => batch("it has no strings".into()),
        Strings::Fresh { .. } => Ok(()),
        Strings::Shared(bits) => check_one(bits),
        Strings::Each(all) if all.len() != replicas => {
            batch(format!("strings for {} networks were given, there are {replicas}", all.len()))
        }
        Strings::Each(all) => {
            all.iter().try_for_each(check_one)?;
            match all.iter().all(|bits| bits.rows() == all[0].rows()) {
                true => Ok(()),
                false => batch("all networks need equally many strings".into()),
            }
        }
    }
}
