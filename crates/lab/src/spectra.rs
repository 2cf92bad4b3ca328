//! The experiment `vasudeva/spectra`, which trains nothing: kernels of networks with random weights, by degree.
//!
//! ```text
//! DIR/spectra.json        what was asked for
//! DIR/networks/*.json     one file for each network: its settings and its two kernels
//! ```
//!
//! Running again computes only the networks that have no file yet.

use std::path::Path;
use std::time::Instant;

use pudica_theory::spectra::{Architecture, FiniteSpectrum, Size, finite_spectrum};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::store::{read_json, write_json};
use crate::table::{TablePlan, TableSettings};
use crate::trainer::Stop;

/// The experiment's name.
pub const NAME: &str = "vasudeva/spectra";

/// What is asked for, as stored in `spectra.json`.
pub type SpectraPlan = TablePlan<SpectraSettings>;

/// Which networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpectraSettings {
    /// Input bits.
    pub dim: usize,
    /// Their names, as `pudica spectrum` knows them.
    pub architectures: Vec<String>,
    /// Layers.
    pub depths: Vec<usize>,
    /// Features of a layer; figures show the most.
    pub widths: Vec<usize>,
    /// Attention heads.
    pub heads: usize,
    /// Networks of each kind, with seeds 0, 1, ...
    pub networks: u64,
    /// Tokens the bits are cut into; unless given, as near to square as `dim` allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<usize>,
}

/// A network to be computed, or computed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Specimen {
    /// Its architecture.
    pub network: Architecture,
    /// Its size.
    pub size: Size,
    /// Its random weights.
    pub seed: u64,
}

/// A computed network.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// Which.
    pub specimen: Specimen,
    /// Its kernels.
    pub spectrum: FiniteSpectrum,
    /// Seconds it took.
    pub seconds: f64,
}

impl TableSettings for SpectraSettings {
    const NAME: &'static str = NAME;
    const TEXT: &'static str =
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../recipes/vasudeva/spectra.toml"));
    const SCALES: [&'static str; 2] = ["quick", "large"];
    const KEYS: &'static [&'static str] = &["dim", "architectures", "depths", "widths", "heads", "networks", "tokens"];
    const LISTS: &'static [&'static str] = &["architectures", "depths", "widths"];

    fn check(&self) -> Result<()> {
        self.specimens().map(|_| ())
    }
}

impl SpectraSettings {
    /// One kind of network for each architecture and depth.
    pub fn kinds(&self) -> Result<Vec<Architecture>> {
        let mut kinds = Vec::new();
        for name in &self.architectures {
            for depth in &self.depths {
                let mut network = Architecture::named(name, self.dim)?;
                if let Some(tokens) = self.tokens.filter(|_| network.family != pudica_theory::spectra::Family::Mlp) {
                    network = network.with_tokens(tokens)?;
                }
                network.depth = *depth;
                network.check()?;
                kinds.push(network);
            }
        }
        Ok(kinds)
    }

    /// All networks, in the order they are computed: a first one of every kind, then a second one, ...
    pub fn specimens(&self) -> Result<Vec<Specimen>> {
        let (kinds, most) = (self.kinds()?, pudica_theory::spectra::finite::LARGEST_CUBE);
        if !(1..=most).contains(&self.dim) {
            return Err(Error::setting("dim", format!("must be from 1 to {most}, not {}", self.dim)));
        }
        if kinds.is_empty() || self.widths.is_empty() || !(1..=10_000).contains(&self.networks) {
            return Err(Error::setting(
                "networks",
                "there is nothing to compute: give 1 to 10000 networks of some width",
            ));
        }
        let mut specimens = Vec::new();
        for seed in 0..self.networks {
            for network in &kinds {
                for width in &self.widths {
                    let size = Size { width: *width, heads: self.heads };
                    specimens.push(Specimen { network: network.clone(), size, seed });
                }
            }
        }
        Ok(specimens)
    }
}

impl Specimen {
    /// Its file's name: everything it depends on.
    fn file(&self) -> String {
        let Specimen { network, size, seed } = self;
        let (name, tokens, bits, depth) = (&network.name, network.tokens, network.token_width, network.depth);
        format!("{name}-{tokens}x{bits}-depth{depth}-width{}-heads{}-seed{seed}.json", size.width, size.heads)
    }

    fn read(&self, folder: &Path) -> Result<Option<Measured>> {
        let found: Option<Measured> = read_json(&folder.join("networks").join(self.file()))?;
        Ok(found.filter(|found| found.specimen == *self))
    }
}

/// Computes the networks of `plan` that `folder` does not hold yet, one after the other, each on all cores; `progress` hears
/// (done, all, seconds spent on those computed now). Returns how many are missing, which is 0 unless `stop` was requested.
pub fn compute_spectra(
    plan: &SpectraPlan,
    folder: &Path,
    progress: &dyn Fn(usize, usize, f64),
    stop: &Stop,
) -> Result<usize> {
    let networks = folder.join("networks");
    std::fs::create_dir_all(&networks).map_err(Error::io("create", &networks))?;
    write_json(&folder.join("spectra.json"), plan)?;
    let specimens = plan.settings.specimens()?;
    let start = Instant::now();
    for (done, specimen) in specimens.iter().enumerate() {
        if stop.requested() {
            return missing(&specimens, folder);
        }
        if specimen.read(folder)?.is_none() {
            let begun = Instant::now();
            let spectrum = finite_spectrum(&specimen.network, specimen.size, specimen.seed)?;
            let seconds = begun.elapsed().as_secs_f64();
            let measured = Measured { specimen: specimen.clone(), spectrum, seconds };
            write_json(&networks.join(specimen.file()), &measured)?;
        }
        progress(done + 1, specimens.len(), start.elapsed().as_secs_f64());
    }
    Ok(0)
}

fn missing(specimens: &[Specimen], folder: &Path) -> Result<usize> {
    let mut missing = 0;
    for specimen in specimens {
        missing += usize::from(specimen.read(folder)?.is_none());
    }
    Ok(missing)
}

/// Whether a folder holds this experiment.
pub fn is_spectra_folder(folder: &Path) -> bool {
    folder.join("spectra.json").is_file()
}

/// What a folder holds: the plan, and the networks computed so far.
pub fn read_spectra(folder: &Path) -> Result<(SpectraPlan, Vec<Measured>)> {
    let path = folder.join("spectra.json");
    let plan: SpectraPlan = read_json(&path)?.ok_or_else(|| Error::Folder {
        path: folder.into(),
        problem: format!("has no spectra.json; give the folder that `pudica run {NAME}` named"),
    })?;
    let mut found = Vec::new();
    for specimen in plan.settings.specimens()? {
        found.extend(specimen.read(folder)?);
    }
    Ok((plan, found))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> SpectraPlan {
        let overrides = ["dim=4", "depths=1", "widths=4", "heads=2", "networks=2", "architectures=relu,lstm"];
        SpectraPlan::new(None, &overrides.map(String::from)).unwrap()
    }

    #[test]
    fn every_scale_can_be_planned() {
        for scale in SpectraPlan::scales() {
            let plan = SpectraPlan::new(Some(scale), &[]).unwrap();
            let settings = &plan.settings;
            let kinds = settings.architectures.len() * settings.depths.len() * settings.widths.len();
            assert_eq!(plan.settings.specimens().unwrap().len(), kinds * settings.networks as usize);
        }
        assert_eq!(small().settings.specimens().unwrap().len(), 4);
    }

    #[test]
    fn mistakes_are_sentences() {
        let refusal =
            |scale: Option<&str>, text: &str| SpectraPlan::new(scale, &[text.to_string()]).unwrap_err().to_string();
        assert!(refusal(Some("huge"), "dim=4").contains("no scale `huge`; it has quick and large"));
        assert!(refusal(None, "dimm=4").contains("did you mean 'dim'?"));
        assert!(refusal(None, "dim").contains("key=value"));
        assert!(refusal(None, "dim=40").contains("1 to 12"));
        assert!(refusal(None, "dim=many").contains("wrong kind of value"));
        assert!(refusal(None, "architectures=relo").contains("did you mean 'relu'?"));
        assert!(refusal(None, "tokens=3").contains("does not divide"));
    }

    #[test]
    fn an_interrupted_study_continues_with_the_same_numbers() {
        let whole = tempfile::tempdir().unwrap();
        assert_eq!(compute_spectra(&small(), whole.path(), &|_, _, _| {}, &Stop::new()).unwrap(), 0);
        let parts = tempfile::tempdir().unwrap();
        let stop = Stop::new();
        let stop_after_one = |done: usize, _: usize, _: f64| {
            if done == 1 {
                stop.request();
            }
        };
        assert_eq!(compute_spectra(&small(), parts.path(), &stop_after_one, &stop).unwrap(), 3);
        assert_eq!(compute_spectra(&small(), parts.path(), &|_, _, _| {}, &Stop::new()).unwrap(), 0);
        let numbers = |folder: &Path| {
            let (_, found) = read_spectra(folder).unwrap();
            found.iter().map(|one| one.spectrum.ntk.mu.clone()).collect::<Vec<_>>()
        };
        assert_eq!(numbers(whole.path()), numbers(parts.path()));
        assert_eq!(numbers(whole.path()).len(), 4);
        assert!(is_spectra_folder(whole.path()));
    }
}
