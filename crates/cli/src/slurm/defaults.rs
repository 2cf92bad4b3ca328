//! What stands in the user's configuration file, for options that are not given.

use super::{Options, TimeLimit};
use serde::{Deserialize, Deserializer};
use std::path::PathBuf;

/// `~/.config/pudica/slurm.toml`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    #[serde(default, deserialize_with = "word")]
    partition: Option<String>,
    #[serde(default, deserialize_with = "word")]
    account: Option<String>,
    #[serde(default, deserialize_with = "word")]
    gpus: Option<String>,
    #[serde(default, deserialize_with = "count")]
    cpus: Option<u32>,
    #[serde(default, deserialize_with = "word")]
    mem: Option<String>,
    #[serde(default, deserialize_with = "word")]
    time: Option<String>,
    #[serde(default, deserialize_with = "count")]
    at_once: Option<u32>,
    sbatch: Option<String>,
    setup: Option<String>,
}

/// A word, which may be a number: people leave the quotation marks out.
fn word<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    match toml::Value::deserialize(from)? {
        toml::Value::String(text) => Ok(Some(text)),
        toml::Value::Integer(number) => Ok(Some(number.to_string())),
        _ => Err(serde::de::Error::custom("give a word in quotation marks, as sbatch takes it")),
    }
}

fn count<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    let found = toml::Value::deserialize(from)?.as_integer().and_then(|number| u32::try_from(number).ok());
    let found = found.filter(|count| *count > 0);
    found.map(Some).ok_or_else(|| serde::de::Error::custom("give a whole number from 1 to 4,294,967,295"))
}

impl File {
    fn options(self) -> Options {
        let File { partition, account, gpus, cpus, mem, time, at_once, sbatch, setup } = self;
        Options { partition, account, gpus, cpus, mem, time, at_once, sbatch, setup, ..Options::default() }
    }
}

fn path() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").or_else(|| set("HOME").map(|home| home.join(".config")))?;
    Some(folder.join("pudica").join("slurm.toml"))
}

/// The options as given, and the file's where none is given. `on_gpu`: whether the runs compute on one.
pub fn filled_in(options: &Options, on_gpu: bool) -> Result<Options, String> {
    let Some(path) = path() else { return Ok(options.clone()) };
    let file: File = match pudica_boolean::plain::written_text(&path) {
        Ok(text) => {
            let place = |error: &toml::de::Error| error.span().map(|span| span.start);
            toml::from_str(&text).map_err(|error| {
                format!("{}: {}", path.display(), pudica_boolean::at_place(&text, place(&error), error.message()))
            })?
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => File::default(),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    let file: Options = file.options();
    let checked = file.check().and_then(|()| file.time.as_deref().map(str::parse::<TimeLimit>).transpose());
    // It names flags; in the file they stand without the dashes.
    checked.map_err(|problem| format!("{}: {}", path.display(), problem.trim_start_matches('-')))?;
    let given = options.clone();
    Ok(Options {
        partition: given.partition.or(file.partition),
        account: given.account.or(file.account),
        // A GPU that nothing computes on would be held for nothing.
        gpus: given.gpus.or(file.gpus.filter(|_| on_gpu)),
        cpus: given.cpus.or(file.cpus),
        mem: given.mem.or(file.mem),
        time: given.time.or(file.time),
        at_once: given.at_once.or(file.at_once),
        sbatch: given.sbatch.or(file.sbatch),
        setup: given.setup.or(file.setup),
        ..given
    })
}
