//! The kinds of experiment: one folder each, one row in [`KINDS`]. A kind says which settings its runs have, and how they begin, advance and
//! are measured; nothing else in the laboratory, the command or the report asks which kind it is.

pub mod boolean;
pub mod classifier;
mod documented;
pub mod grokking;
pub mod spectra;
pub mod tokens;

use serde::Serialize;
use serde::de::DeserializeOwned;
use sha2::{Digest, Sha256};

use crate::compute::{Abilities, Machine};
use crate::error::{Error, Result};
use crate::experiment::Experiment;
use crate::plan::Plan;
use crate::settings::Settings;

pub use documented::{Documented, SettingDoc};
pub(crate) use documented::{choices, documented};

/// All kinds; the first is meant where a recipe names none.
pub static KINDS: [&Kind; 5] = [&boolean::KIND, &classifier::KIND, &grokking::KIND, &tokens::KIND, &spectra::KIND];

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
    /// Every setting at its default.
    pub defaults: fn() -> Settings,
    /// What every setting means.
    pub documentation: fn() -> Vec<SettingDoc>,
    /// The finished, validated settings of a run.
    pub resolve: fn(&Settings) -> Result<Settings>,
    /// The settings as the text whose hash is a run's id: every key in the order of definition, shortest round-trip numbers.
    pub canonical: fn(&Settings) -> Result<String>,
    /// The run whose labels a run with these settings learns, if any.
    pub teacher: fn(&Settings) -> Option<String>,
    /// Reads the data of a plan and finds its device, before anything is written.
    pub open: fn(&Plan, &Machine) -> Result<Box<dyn Experiment>>,
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
        (self.defaults)().with_compute(&self.abilities.default_compute())
    }

    /// The finished, validated settings of a run.
    pub fn resolve(&self, settings: &Settings) -> Result<Settings> {
        let compute = settings.compute().unwrap_or_else(|| self.abilities.default_compute());
        self.abilities.check(self.name, &compute)?;
        Ok((self.resolve)(settings)?.with_compute(&compute))
    }

    /// The run's name: the first 12 hexadecimal digits of the SHA-256 of its settings. What it computes on counts where it is not the
    /// default, so that the ids of format 1 stand for what they were: runs on the default device.
    pub fn id(&self, settings: &Settings) -> Result<String> {
        let mut text = (self.canonical)(settings)?;
        if let Some(compute) = settings.compute().filter(|compute| *compute != self.abilities.default_compute()) {
            text += &format!("\n{}/{}/{}", compute.device, compute.dtype, compute.engine);
        }
        let digest = Sha256::digest(text.as_bytes());
        Ok(digest.iter().take(6).map(|byte| format!("{byte:02x}")).collect())
    }

    /// What every setting means, its type and its default, in the order of definition.
    pub fn documentation(&self) -> Vec<SettingDoc> {
        let mut all = (self.documentation)();
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

/// [`Kind::defaults`] of a configuration.
pub(crate) fn defaults_of<C: Configuration>() -> Settings {
    C::default().settings()
}

/// [`Kind::documentation`] of a configuration.
pub(crate) fn documentation_of<C: Configuration>() -> Vec<SettingDoc> {
    C::documentation("")
}

/// [`Kind::resolve`] of a configuration.
pub(crate) fn resolve_as<C: Configuration>(settings: &Settings) -> Result<Settings> {
    Ok(C::resolve(settings)?.settings())
}

/// [`Kind::canonical`] of a configuration.
pub(crate) fn canonical_as<C: Configuration>(settings: &Settings) -> Result<String> {
    Ok(settings.read::<C>()?.canonical_json())
}

/// [`Kind::teacher`] of kinds whose runs learn from no other.
pub(crate) fn no_teacher(_: &Settings) -> Option<String> {
    None
}
