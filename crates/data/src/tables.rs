//! The truth tables of files that targets name: each is read once, however many runs learn it.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::SystemTime;

use pudica_boolean::analysis::Subject;
use pudica_boolean::files::read_table_with_digest;
use pudica_boolean::given::TableFile;
use pudica_boolean::{Error, Function};

/// A table that was read.
#[derive(Clone)]
pub(crate) struct Known {
    pub function: Arc<Function>,
    /// The first digits of its file's SHA-256.
    pub digest: String,
    n: usize,
    /// The file's size and time of change: while they stay, so does what is in it.
    state: (u64, Option<SystemTime>),
}

static KNOWN: LazyLock<Mutex<HashMap<PathBuf, Known>>> = LazyLock::new(Mutex::default);

/// The table in a file, if it is the one meant and has `n` variables.
pub(crate) fn read(file: &TableFile, n: Option<usize>) -> Result<Known, Error> {
    // A thread that panicked meanwhile has left whole entries behind.
    let mut all = KNOWN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let path = &file.path;
    let about = std::fs::metadata(path).map_err(|source| Error::Io { action: "read", path: path.clone(), source })?;
    if !about.is_file() {
        return Err(Error::Table {
            path: path.clone(),
            problem: "this is not a file: name the file of a truth table".into(),
        });
    }
    let state = (about.len(), about.modified().ok());
    let known = match all.get(path) {
        Some(known) if known.state == state => known.clone(),
        _ => {
            let (table, digest) = read_table_with_digest(path)?;
            let n = table.variables();
            let known = Known { function: Arc::new(Subject::Table(table).into_function()), digest, n, state };
            all.insert(path.clone(), known.clone());
            known
        }
    };
    file.check_digest(&known.digest)?;
    file.check_variables(known.n, n)?;
    Ok(known)
}
