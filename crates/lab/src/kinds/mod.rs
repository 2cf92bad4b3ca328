//! The kinds of experiment: one folder each, one row in [`KINDS`]. A kind says which settings its runs have, and how they begin, advance and
//! are measured; nothing else in the laboratory, the command or the report asks which kind it is.

pub mod boolean;
pub mod classifier;
mod documented;
pub mod grokking;
pub mod spectra;
pub mod tokens;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use pudica_data::{FileResult, digest};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::compute::{Abilities, Machine};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::settings::Settings;
use crate::store::RunFolder;
use crate::trained::Trained;

pub use documented::{Documented, SettingDoc};
pub(crate) use documented::{choices, documented};

/// All kinds; the first is meant where a recipe names none.
pub static KINDS: [&Kind; 5] = [&boolean::KIND, &classifier::KIND, &grokking::KIND, &tokens::KIND, &spectra::KIND];

/// Names of settings, and values for them.
pub type Implied = Vec<(&'static str, Value)>;

/// A kind of experiment.
pub struct Kind {
    /// As recipes name it.
    pub name: &'static str,
    /// What its runs are, in a sentence.
    pub about: &'static str,
    /// What it can do.
    pub abilities: Abilities,
    /// The figures of a recipe that names none.
    pub figures: &'static str,
    /// The settings that name a run where nothing else tells it from others.
    pub naming: &'static [&'static str],
    /// The measures that tell most about a run, for a line on the screen.
    pub headline: &'static [&'static str],
    /// Every measure that a run may have, without standard errors; `blowup_*` stands for all that begin so.
    pub measures: &'static [&'static str],
    /// The settings of its runs.
    pub settings: SettingsOf,
    /// The run whose labels a run with these settings learns, if any.
    pub teacher: fn(&Settings) -> Option<String>,
    /// The network that a finished run has trained; the data folder is where tokens are made with.
    pub trained: fn(&RunFolder, Option<&Path>) -> Result<Trained>,
    /// Reads the data of a plan and finds its device, before anything is written.
    pub open: fn(&Plan, &Machine) -> Result<Box<dyn Experiment>>,
}

/// What is done with the settings of a run of some kind, from the one type that defines them.
pub struct SettingsOf {
    /// Every setting at its default.
    pub defaults: fn() -> Settings,
    /// What every setting means.
    pub documentation: fn() -> Vec<SettingDoc>,
    /// What the other settings imply for settings that nobody gave.
    pub implied: fn(&Settings) -> Result<Implied>,
    /// The finished, validated settings of a run.
    pub resolve: fn(&Settings) -> Result<Settings>,
    /// States which files of the user's own a resolved run reads, as settings.
    pub identify: fn(Settings, &mut OwnFiles) -> Result<Settings>,
    /// The settings as the text whose hash is a run's id: every key in the order of definition, shortest round-trip numbers.
    pub canonical: fn(&Settings) -> Result<String>,
}

impl SettingsOf {
    /// Those of a configuration.
    pub(crate) const fn of<C: Configuration>() -> SettingsOf {
        SettingsOf {
            defaults: || C::default().settings(),
            documentation: || C::documentation(""),
            implied: |_| Ok(Vec::new()),
            resolve: |settings| Ok(C::resolve(settings)?.settings()),
            identify: |settings, _| Ok(settings),
            canonical: |settings| Ok(settings.read::<C>()?.canonical_json()),
        }
    }
}

impl Kind {
    /// A kind by its name, or by the name it had in format 1.
    pub fn find(name: &str) -> Result<&'static Kind> {
        let wanted = match name {
            "" => KINDS[0].name,
            "study" => classifier::KIND.name,
            "synthetic" => tokens::KIND.name,
            name => name,
        };
        KINDS.into_iter().find(|kind| kind.name == wanted).ok_or_else(|| {
            let names = KINDS.map(|kind| kind.name);
            let near = pudica_boolean::did_you_mean(name, names);
            Error::setting("kind", format!("there is no kind \"{name}\"{near} (there are {})", names.join(", ")))
        })
    }

    /// Every setting at its default, with what runs compute on.
    pub fn defaults(&self) -> Settings {
        (self.settings.defaults)().with_compute(&self.abilities.default_compute())
    }

    /// The finished, validated settings of a run.
    pub fn resolve(&self, settings: &Settings) -> Result<Settings> {
        let compute = settings.compute().unwrap_or_else(|| self.abilities.default_compute());
        self.abilities.check(self.name, &compute)?;
        Ok((self.settings.resolve)(settings)?.with_compute(&compute))
    }

    /// The run's name: the first 12 hexadecimal digits of the SHA-256 of its settings.
    pub fn id(&self, settings: &Settings) -> Result<String> {
        Ok(Kind::id_of_text(&self.identity(settings)?))
    }

    /// The text whose hash is a run's id. What it computes on counts where it is not the default, so that the ids of format 1 stand for
    /// what they were: runs on the default device.
    pub(crate) fn identity(&self, settings: &Settings) -> Result<String> {
        let mut text = (self.settings.canonical)(settings)?;
        if let Some(compute) = settings.compute().filter(|compute| *compute != self.abilities.default_compute()) {
            text += &format!("\n{}/{}/{}", compute.device, compute.dtype, compute.engine);
        }
        Ok(text)
    }

    pub(crate) fn id_of_text(text: &str) -> String {
        Sha256::digest(text.as_bytes()).iter().take(6).map(|byte| format!("{byte:02x}")).collect()
    }

    /// What every setting means, its type and its default, in the order of definition.
    pub fn documentation(&self) -> Vec<SettingDoc> {
        let mut all = (self.settings.documentation)();
        all.extend(documented::of_compute(&self.abilities));
        let defaults = self.defaults();
        for setting in &mut all {
            setting.take_default(&defaults);
        }
        all
    }
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// The settings of one run as a Rust type: what a kind computes from.
pub trait Configuration:
    Clone + std::fmt::Debug + Default + PartialEq + Serialize + DeserializeOwned + Documented
{
    /// The finished, validated configuration that settings spell.
    fn resolve(settings: &Settings) -> Result<Self>;

    /// All settings by their dotted names.
    fn settings(&self) -> Settings {
        Settings::of(self)
    }

    /// The text whose hash is the run's id.
    fn canonical_json(&self) -> String {
        serde_json::to_string(self).expect("a configuration has only string keys and finite numbers")
    }
}

/// The user's own files that the runs of a plan read.
#[derive(Debug, Default)]
pub struct OwnFiles {
    /// The data folder.
    pub data: Option<PathBuf>,
    /// The identities found so far, by where the files lie: runs of one plan share them.
    known: HashMap<PathBuf, String>,
}

impl OwnFiles {
    /// Those of this data folder, none read yet.
    pub(crate) fn new(data: Option<PathBuf>) -> OwnFiles {
        OwnFiles { data, known: HashMap::new() }
    }

    /// Whether there are any.
    pub(crate) fn any(&self) -> bool {
        !self.known.is_empty()
    }

    /// The identity of the files that lie at a path: they are read once.
    pub(crate) fn identity(
        &mut self,
        path: &Path,
        files: impl FnOnce() -> FileResult<Vec<PathBuf>>,
    ) -> FileResult<String> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        let root = if path.is_dir() { path } else { path.parent().unwrap_or(path) };
        let found = digest(root, &files()?)?;
        self.known.insert(path.to_path_buf(), found.clone());
        Ok(found)
    }
}
