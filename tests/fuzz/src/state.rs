//! What the calls of a campaign have found so far, as a file: the next one goes on from there.

use crate::campaign::Found;
use crate::fuzzer::Tally;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::time::Duration;

/// What was found in all calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    /// How many there were: each has a seed of its own.
    pub calls: u64,
    found: BTreeMap<String, Found>,
}

impl State {
    /// Reads the file; one that is not there says that nothing was tried.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = match std::fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            bytes => bytes?,
        };
        let tree = serde_json::from_slice(&bytes).ok();
        let state = tree.as_ref().and_then(Self::of_tree);
        state.ok_or_else(|| Error::other(format!("{} is not the state of a campaign", path.display())))
    }

    /// Writes the file; one that is half written is never there.
    pub fn write(&self, path: &Path) -> Result<()> {
        let partial = path.with_extension("partial");
        std::fs::write(&partial, format!("{:#}\n", self.tree()))?;
        std::fs::rename(&partial, path)
    }

    /// What was found of a target.
    pub fn of(&self, name: &str) -> Found {
        self.found.get(name).cloned().unwrap_or_default()
    }

    /// The same with other numbers of these targets.
    pub fn with<'a>(&self, found: impl Iterator<Item = (&'a str, &'a Found)>) -> Self {
        let mut state = self.clone();
        state.found.extend(found.map(|(name, found)| (name.to_string(), found.clone())));
        state
    }

    fn tree(&self) -> Value {
        let targets: Map<String, Value> =
            self.found.iter().map(|(name, found)| (name.clone(), tree_of(found))).collect();
        json!({ "calls": self.calls, "targets": targets })
    }

    fn of_tree(tree: &Value) -> Option<Self> {
        let targets = tree.get("targets")?.as_object()?;
        let found = targets.iter().map(|(name, tree)| Some((name.clone(), found_in(tree)?)));
        Some(Self { calls: tree.get("calls")?.as_u64()?, found: found.collect::<Option<_>>()? })
    }
}

fn tree_of(Found { tally, ends }: &Found) -> Value {
    json!({
        "executions": tally.executions,
        "accepted": tally.accepted,
        "refused": tally.refused(),
        "panics": tally.panics,
        "much_memory": tally.greedy,
        "slow": tally.slow,
        "processes_ended": ends,
        "most_memory_bytes": tally.most_memory.0,
        "for_a_file_of_bytes": tally.most_memory.1,
        "slowest_microseconds": tally.slowest.as_micros() as u64,
        "reading_microseconds": tally.spent.as_micros() as u64,
    })
}

fn found_in(tree: &Value) -> Option<Found> {
    let number = |name: &str| tree.get(name)?.as_u64();
    let tally = Tally {
        executions: number("executions")?,
        accepted: number("accepted")?,
        panics: number("panics")?,
        greedy: number("much_memory")?,
        slow: number("slow")?,
        most_memory: (number("most_memory_bytes")? as usize, number("for_a_file_of_bytes")? as usize),
        slowest: Duration::from_micros(number("slowest_microseconds")?),
        spent: Duration::from_micros(number("reading_microseconds")?),
    };
    Some(Found { tally, ends: number("processes_ended")? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_written_and_read_again_and_what_is_none_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("state.json");
        assert_eq!(State::read(&file).unwrap(), State::default());
        let tally = Tally {
            executions: 9,
            accepted: 2,
            panics: 3,
            greedy: 4,
            slow: 5,
            most_memory: (6, 7),
            slowest: Duration::from_micros(8),
            spent: Duration::from_micros(9),
        };
        let (found, other) = (Found { tally, ends: 1 }, Found::default());
        let first = State { calls: 1, ..State::default() }.with([("table", &found), ("onnx", &other)].into_iter());
        first.write(&file).unwrap();
        assert_eq!(State::read(&file).unwrap(), first);
        assert_eq!(first.of("table"), found);
        // Targets that a call does not try stay as they are.
        let mut more = found.clone();
        more.add(&found);
        let second = first.with([("onnx", &more)].into_iter());
        assert_eq!((second.of("table"), second.of("onnx").tally.executions), (found, 18));
        std::fs::write(&file, "{\"calls\": 1}").unwrap();
        assert!(State::read(&file).unwrap_err().to_string().contains("is not the state"));
    }
}
