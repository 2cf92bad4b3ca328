//! Folders of format 1, whose ids did not cover what a run was computed on: their finished runs are taken over under their true identity,
//! which their records tell.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::run::RunFolder;
use super::sweep::SweepRecord;
use crate::compute::recorded;
use crate::error::Result;
use crate::plan::Plan;

/// The id that each run of a plan had in format 1, by its present one. Settings name other runs by their ids, so these are put back too.
fn old_ids(plan: &Plan) -> Result<HashMap<String, String>> {
    let mut old: HashMap<String, String> = HashMap::new();
    for run in &plan.runs {
        let mut text = (plan.kind().settings.canonical)(&run.settings)?;
        if let Some(teacher) = run.depends_on(plan.kind())
            && let Some(its_old) = old.get(&teacher)
        {
            text = text.replace(&teacher, its_old);
        }
        let digest = Sha256::digest(text.as_bytes());
        old.insert(run.id.clone(), digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect());
    }
    Ok(old)
}

fn folder(path: &Path, id: &str) -> RunFolder {
    RunFolder::new(path.join("runs").join(id))
}

/// Which of the runs of a folder of format 1 are runs of this plan: those with equal settings that were computed, as far as they are
/// finished, on what the plan asks for.
pub(super) fn ids_of_format_1(path: &Path, record: &SweepRecord, plan: &Plan) -> Result<HashSet<String>> {
    let old = old_ids(plan)?;
    let in_record: HashSet<&str> = record.runs.iter().map(|run| run.id.as_str()).collect();
    let mut same = HashSet::new();
    for run in &plan.runs {
        let id = &old[&run.id];
        if !in_record.contains(id.as_str()) {
            continue;
        }
        let computed = folder(path, id).summary()?.filter(|summary| summary.format == 1);
        let compute = computed.map(|summary| recorded(&summary.device, &run.settings, &plan.kind().abilities));
        if compute.is_none() || compute == run.settings.compute() {
            same.insert(id.clone());
        }
    }
    Ok(same)
}

/// Moves the finished runs to their new ids. Which device an unfinished one was begun on is not recorded, so it begins again.
pub(super) fn take_over(path: &Path, plan: &Plan, notices: &mut Vec<String>) -> Result<()> {
    let old = old_ids(plan)?;
    let (mut moved, mut dropped) = (0, 0);
    for run in &plan.runs {
        let (from, to) = (folder(path, &old[&run.id]), folder(path, &run.id));
        // What was moved just before an interruption lies under its new id already, and is still written in format 1.
        let finished = if from.path().exists() { from.summary()? } else { to.summary()? };
        match finished {
            Some(summary) if summary.format == 1 => {
                to.take_over(&from, &run.id, &run.settings)?;
                moved += usize::from(from.path() != to.path());
            }
            Some(_) => {}
            None => dropped += usize::from(from.forget()?),
        }
    }
    if moved > 0 {
        notices.push(format!("{moved} finished runs of an earlier pudica are taken over under new ids"));
    }
    if dropped > 0 {
        notices.push(format!(
            "{dropped} unfinished runs of an earlier pudica begin again: it is not recorded on what they were computed"
        ));
    }
    Ok(())
}
