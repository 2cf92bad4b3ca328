//! What stands in the user's configuration file, for options that are not given.

use super::Options;
use serde::Deserialize;
use std::path::PathBuf;

/// `~/.config/pudica/slurm.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    partition: Option<String>,
    account: Option<String>,
    gpus: Option<String>,
    cpus: Option<u32>,
    mem: Option<String>,
    time: Option<String>,
    at_once: Option<u32>,
    sbatch: Option<String>,
    setup: Option<String>,
}

fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("pudica").join("slurm.toml"))
}

/// The options as given, and the file's where none is given.
pub fn filled_in(options: &Options) -> Result<Options, String> {
    let Some(path) = path() else { return Ok(options.clone()) };
    let file = match pudica_boolean::plain::written_text(&path) {
        Ok(text) => {
            let place = |error: &toml::de::Error| error.span().map(|span| span.start);
            toml::from_str(&text).map_err(|error| {
                format!("{}: {}", path.display(), pudica_boolean::at_place(&text, place(&error), error.message()))
            })?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => File::default(),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let given = options.clone();
    Ok(Options {
        partition: given.partition.or(file.partition),
        account: given.account.or(file.account),
        gpus: given.gpus.or(file.gpus),
        cpus: given.cpus.or(file.cpus),
        mem: given.mem.or(file.mem),
        time: given.time.or(file.time),
        at_once: given.at_once.or(file.at_once),
        sbatch: given.sbatch.or(file.sbatch),
        setup: given.setup.or(file.setup),
        ..given
    })
}
