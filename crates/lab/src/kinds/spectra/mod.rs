//! Kind `spectra`, which trains nothing: kernels of networks with random weights, by degree. A run is one network.

use pudica_theory::spectra::degrees::{mean_degree, share_up_to};
use pudica_theory::spectra::finite::check_size;
use pudica_theory::spectra::{
    Architecture, Family, FiniteSpectrum, Kernel, Size, cube_spectrum, finite_spectrum, infinite_spectrum,
};
use serde_json::{Map, Value, json};

use crate::compute::{Abilities, Machine};
use crate::error::{Error, Result};
use crate::experiment::{Experiment, Line, Lockstep, Lost, Measured, RunStart, Training, Work};
use crate::kinds::{Configuration, Kind, SettingsOf, documented};
use crate::plan::Plan;
use crate::settings::Settings;
use crate::stop::{Progress, unless_stopped};

/// The kind.
pub static KIND: Kind = Kind {
    name: "spectra",
    about: "kernels of networks with random weights, by degree; nothing is trained",
    abilities: Abilities::CPU_F64,
    figures: "spectra",
    naming: &["architecture", "depth", "width", "seed"],
    headline: &["ck_mean_degree", "ntk_mean_degree"],
    measures: &["ck_mean_degree", "ntk_mean_degree", "ck_*", "ntk_*", "infinite_*"],
    settings: SettingsOf::of::<SpectraConfig>(),
    teacher: |_| None,
    trained: |folder, _| {
        let problem = "is a run of kernels, which have no network that could be measured";
        Err(Error::Folder { path: folder.path().into(), problem: problem.into() })
    },
    open,
};

documented! {
    /// All settings of one network.
    pub struct SpectraConfig {
        /// Names the random weights.
        pub seed: u64,
        /// Input bits; all 2^dim inputs are gone through.
        pub dim: usize,
        /// The architecture, as `pudica spectrum` knows it: `relu`, `erf`, `linear-attention`, `softmax-attention`, `lstm`.
        pub architecture: String,
        /// Number of layers.
        pub depth: usize,
        /// Number of features per layer.
        pub width: usize,
        /// Attention heads; 0 where there is no attention.
        pub heads: usize,
        /// Tokens the bits are cut into; 0: as near to square as `dim` allows, and none for perceptrons.
        pub tokens: usize,
    }
}

/// Every default, in one place; the paper has no such experiment, so all are ours.
impl Default for SpectraConfig {
    fn default() -> Self {
        let (seed, dim, architecture) = (0, 8, "relu".into());
        SpectraConfig { seed, dim, architecture, depth: 1, width: 64, heads: 8, tokens: 0 }
    }
}

impl SpectraConfig {
    fn network(&self) -> Result<Architecture> {
        let most = pudica_theory::spectra::finite::LARGEST_CUBE;
        let counts = [
            ("dim", self.dim, most),
            ("depth", self.depth, 64),
            ("width", self.width, 4096),
            ("heads", self.heads, 4096),
        ];
        for (key, value, most) in counts {
            if !(1..=most).contains(&value) {
                return Err(Error::setting(key, format!("must be from 1 to {most}, not {value}")));
            }
        }
        let wrong = |key: &'static str| {
            move |error: pudica_theory::TheoryError| Error::setting(key, error.to_string().replace("--", ""))
        };
        let mut network = Architecture::named(&self.architecture, self.dim).map_err(wrong("architecture"))?;
        if self.tokens > 0 && network.family != Family::Mlp {
            network = network.with_tokens(self.tokens).map_err(wrong("tokens"))?;
        }
        network.depth = self.depth;
        network.check().map_err(wrong("depth"))?;
        if network.has_attention() && !self.width.is_multiple_of(self.heads) {
            return Err(Error::setting("heads", format!("{} does not divide the width {}", self.heads, self.width)));
        }
        Ok(network)
    }

    fn size(&self) -> Size {
        Size { width: self.width, heads: self.heads }
    }
}

impl Configuration for SpectraConfig {
    fn resolve(settings: &Settings) -> Result<Self> {
        let mut config: SpectraConfig = settings.read()?;
        let network = config.network()?;
        // What is computed is stated: the same network is the same run, however it was asked for.
        config.architecture = network.name.clone();
        config.tokens = network.tokens;
        Ok(config)
    }
}

struct SpectraExperiment;

fn open(plan: &Plan, _: &Machine) -> Result<Box<dyn Experiment>> {
    for run in &plan.runs {
        let config: SpectraConfig = run.settings.read()?;
        check_size(&config.network()?, config.size()).map_err(|error| Error::setting("width", error.to_string()))?;
    }
    Ok(Box::new(SpectraExperiment))
}

impl Experiment for SpectraExperiment {
    fn lockstep(&self, settings: &Settings) -> Result<Lockstep> {
        let config: SpectraConfig = settings.read()?;
        Ok(Lockstep { key: SpectraConfig { seed: 0, ..config }.canonical_json(), most: 1 })
    }

    fn work(&self, settings: &Settings) -> Result<Work> {
        let config: SpectraConfig = settings.read()?;
        let (inputs, width) = (2f64.powi(config.dim as i32), config.width as f64);
        let parameters = width * width * config.depth as f64 + width * config.dim as f64;
        // Jacobian and its Walsh transform, and, where the whole kernel is made, its square and eigenvalues.
        let kernel = if config.dim <= 10 { inputs * inputs * (parameters + 4.0 * inputs) } else { 0.0 };
        Ok(Work { measure: inputs * parameters * (20.0 + config.dim as f64) + kernel, ..Work::default() })
    }

    fn step_of(&self, _: &Settings, _: &[u8]) -> Result<u64> {
        Ok(0)
    }

    fn begin(&self, runs: &[RunStart]) -> Result<Box<dyn Training + '_>> {
        let [start] = runs else { return Err(Error::Other("networks are computed one at a time".into())) };
        Ok(Box::new(Spectrum { config: start.settings.read()? }))
    }
}

/// A network whose kernels are computed.
struct Spectrum {
    config: SpectraConfig,
}

impl Training for Spectrum {
    fn step(&self) -> u64 {
        0
    }

    fn device(&self) -> String {
        "cpu".into()
    }

    fn loss(&self, _: usize) -> f64 {
        f64::NAN
    }

    fn lost(&self, _: usize) -> Option<Lost> {
        None
    }

    fn advance(&mut self, _: u64) -> Result<()> {
        Ok(())
    }

    fn lines(&mut self, _: &Progress) -> Result<Vec<Vec<Line>>> {
        Ok(vec![Vec::new()])
    }

    fn measure(&mut self, progress: &Progress) -> Result<Vec<Option<Measured>>> {
        let network = self.config.network()?;
        let (of, size, seed) = (network.clone(), self.config.size(), self.config.seed);
        let spectrum = unless_stopped(progress, move || finite_spectrum(&of, size, seed))??;
        let measures = measures(&network, &spectrum);
        let infinite: Map<String, Value> = KERNELS
            .map(|(kernel, name)| (name.to_string(), json!(infinitely_wide(&network, kernel))))
            .into_iter()
            .collect();
        let detail = [
            ("parameters", json!(spectrum.parameters)),
            ("ck", json!(spectrum.ck)),
            ("ntk", json!(spectrum.ntk)),
            ("infinite", Value::Object(infinite)),
        ];
        let detail = detail.map(|(name, value)| (name.to_string(), value)).into_iter().collect();
        Ok(vec![Some(Measured { converged: true, measures, detail })])
    }

    fn checkpoint(&self, _: usize) -> Result<Vec<u8>> {
        Ok(Vec::new())
    }

    fn weights(&self, _: usize) -> Result<Option<Vec<u8>>> {
        Ok(None) // named by the seed, made again in no time
    }
}

const KERNELS: [(Kernel, &str); 2] = [(Kernel::Ck, "ck"), (Kernel::Ntk, "ntk")];

/// The numbers of both kernels: mean degree, the fraction of the non-constant variance up to degrees 1 to 3, and what lies between
/// different monomials; the first two also for the infinitely wide network, where it is known.
fn measures(network: &Architecture, spectrum: &FiniteSpectrum) -> Map<String, Value> {
    let mut measures = Map::new();
    for (kernel, name) in KERNELS {
        let own = spectrum.kernel(kernel);
        measures.insert(format!("{name}_mean_degree"), mean_degree(&own.fractional_variance).into());
        for degree in 1..=3 {
            let share = share_up_to(&own.fractional_variance, degree);
            measures.insert(format!("{name}_low_degree_{degree}"), share.into());
        }
        if let Some(share) = own.off_diagonal {
            measures.insert(format!("{name}_off_diagonal"), share.into());
        }
        if let Some(limit) = infinitely_wide(network, kernel) {
            measures.insert(format!("infinite_{name}_mean_degree"), mean_degree(&limit).into());
            for degree in 1..=3 {
                measures.insert(format!("infinite_{name}_low_degree_{degree}"), share_up_to(&limit, degree).into());
            }
        }
    }
    measures
}

/// The fractional variance of the infinitely wide network: exact, also for attention; None where there is no closed form.
fn infinitely_wide(network: &Architecture, kernel: Kernel) -> Option<Vec<f64>> {
    match network.family {
        Family::Mlp => infinite_spectrum(network, kernel).ok().map(|spectrum| spectrum.fractional_variance),
        Family::LinearAttention => cube_spectrum(network, kernel).ok().map(|spectrum| spectrum.fractional_variance),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_sentences() {
        let refusal = |key: &str, value: Value| {
            let mut settings = SpectraConfig::default().settings();
            settings
                .set(key, value)
                .map(|()| SpectraConfig::resolve(&settings).unwrap_err())
                .unwrap_or_else(|error| error)
                .to_string()
        };
        assert!(refusal("dimm", json!(4)).contains("did you mean `dim`?"));
        assert!(refusal("dim", json!(40)).contains("1 to 12"));
        assert!(refusal("architecture", json!("relo")).contains("did you mean 'relu'?"));
        let mut settings = SpectraConfig { architecture: "lstm".into(), ..SpectraConfig::default() }.settings();
        settings.set("tokens", json!(3)).unwrap();
        assert!(SpectraConfig::resolve(&settings).unwrap_err().to_string().contains("does not divide"));
    }
}
