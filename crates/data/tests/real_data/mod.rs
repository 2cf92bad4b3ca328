//! Where the real files are that some tests read.

use std::path::PathBuf;

/// The folder that `PUDICA_DATA` names, or `../shared/data` beside the repository; a line says what is skipped where it does not hold `part`.
pub fn data(part: &str) -> Option<PathBuf> {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let folder = std::env::var_os("PUDICA_DATA").map_or_else(beside, PathBuf::from);
    if !folder.join(part).is_dir() {
        eprintln!("skipped: no {part} in {} (set PUDICA_DATA)", folder.display());
        return None;
    }
    Some(folder)
}
