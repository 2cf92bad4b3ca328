//! What a run is computed on and in. It decides the run's numbers to the last bit, so it is part of the run's settings and of its id.

use pudica_nn::Device;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::settings::Settings;
use crate::units::Unit;

/// The settings under `compute`; on the command line `--device`, `--dtype` and `--reference`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compute {
    /// `cpu` (all cores), `cuda` (the first NVIDIA GPU) or `torch` (the processor, through LibTorch).
    pub device: String,
    /// `f32`; `tf32`, on a GPU, faster, factors of products rounded to 11 bits; or `f64`, slow, to check whether a result depends on rounding.
    pub dtype: String,
    /// `standard`; or `reference`, the readable networks that the fast ones are checked against, by automatic differentiation.
    pub engine: String,
}

impl Compute {
    /// The device of networks that compute on burn. A GPU that is not there is an error.
    pub(crate) fn device(&self) -> Result<Device> {
        Ok(Device::parse(&self.device)?.with_tf32(self.dtype == TF32)?)
    }
}

/// The name of the number type that GPUs have only.
const TF32: &str = "tf32";

/// What a kind of experiment can do. What it cannot is refused, never ignored.
#[derive(Clone, Copy, Debug)]
pub struct Abilities {
    /// Devices it computes on, the default first.
    pub devices: &'static [&'static str],
    /// Number types it computes in, the default first.
    pub dtypes: &'static [&'static str],
    /// Its engines, the default first.
    pub engines: &'static [&'static str],
    /// Whether it reads data sets (`--data`).
    pub data: bool,
    /// Whether several groups of runs can train side by side (`--jobs`).
    pub jobs: bool,
    /// Whether several runs can train in lock-step in one group (`--together`).
    pub together: bool,
}

impl Abilities {
    /// Of kinds whose runs are computed in f64 on the CPU, each by itself and without data.
    pub const CPU_F64: Abilities = Abilities {
        devices: &["cpu"],
        dtypes: &["f64"],
        engines: &["standard"],
        data: false,
        jobs: true,
        together: false,
    };

    /// What it computes on where nobody says otherwise.
    pub fn default_compute(&self) -> Compute {
        Compute { device: self.devices[0].into(), dtype: self.dtypes[0].into(), engine: self.engines[0].into() }
    }

    /// Refuses what a kind of this name does not have.
    pub fn check(&self, kind: &str, compute: &Compute) -> Result<()> {
        let choices = [
            ("compute.device", "--device", &compute.device, self.devices),
            ("compute.dtype", "--dtype", &compute.dtype, self.dtypes),
            ("compute.engine", "--reference", &compute.engine, self.engines),
        ];
        for (key, flag, value, known) in choices {
            if !known.contains(&value.as_str()) {
                let problem = match known {
                    [only] => format!("experiments of kind {kind} have {only} only, not {value} ({flag})"),
                    _ => format!("experiments of kind {kind} have {}, not {value} ({flag})", known.join(" or ")),
                };
                return Err(Error::setting(key, problem));
            }
        }
        if compute.dtype == TF32 && compute.device != "cuda" {
            let others: Vec<&str> = self.dtypes.iter().copied().filter(|dtype| *dtype != TF32).collect();
            let problem = format!("tf32 is a GPU's; on the CPU use {}, or add --device cuda", others.join(" or "));
            return Err(Error::setting("compute.dtype", problem));
        }
        Ok(())
    }
}

/// How the runs of a plan share this machine. None of it changes a number.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// The program, its version and commit, for the record.
    pub program: String,
    /// Groups of runs trained side by side; `None`: as many as suit the device.
    pub jobs: Option<usize>,
    /// Runs trained in lock-step in a group, at most; `None`: as many as suit the device.
    pub together: Option<usize>,
    /// The folder with the data sets.
    pub data: Option<std::path::PathBuf>,
    /// Which part of the plan is made here; `None`: all of it.
    pub unit: Option<Unit>,
    /// After how long without a sign of life a process that cannot be seen loses its runs to this one; `None`: ten minutes.
    pub stale_after: Option<std::time::Duration>,
    /// How often runs save their states; `None`: every 30 seconds, less often where saving takes long.
    pub checkpoint_every: Option<std::time::Duration>,
    /// Whether damaged runs are moved aside and made again; otherwise they are named and left as they are.
    pub repair: bool,
}

impl Machine {
    /// Refuses what a kind of this name does not have.
    pub fn check(&self, kind: &str, abilities: &Abilities) -> Result<()> {
        let asked = [
            (
                self.jobs.is_some_and(|jobs| jobs > 1) && !abilities.jobs,
                "--jobs",
                "their runs train one after the other",
            ),
            (self.together.is_some_and(|most| most > 1) && !abilities.together, "--together", "each run trains alone"),
            (self.data.is_some() && !abilities.data, "--data", "they read no data set"),
        ];
        match asked.into_iter().find(|(refused, ..)| *refused) {
            Some((_, flag, why)) => {
                Err(Error::Other(format!("{flag} is not for experiments of kind {kind}: {why}; leave it out")))
            }
            None => Ok(()),
        }
    }
}

/// The widest vector instructions of this processor, for the record: they decide the order of sums.
pub fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    return match () {
        () if std::is_x86_feature_detected!("avx512f") => "x86-64 with AVX-512",
        () if std::is_x86_feature_detected!("avx2") => "x86-64 with AVX2",
        () => "x86-64",
    };
    #[cfg(not(target_arch = "x86_64"))]
    std::env::consts::ARCH
}

/// What a run of format 1 was computed on, told by the device its record names: `cpu`, `cpu (f64)`, `cpu (burn, f64)`,
/// `cuda (NVIDIA H200, tf32)`.
pub fn recorded(device: &str, settings: &Settings, abilities: &Abilities) -> Compute {
    let (name, words) = device.split_once(" (").unwrap_or((device, ""));
    let has = |word: &str| words.trim_end_matches(')').split(", ").any(|known| known == word);
    let pick = |known: &'static [&'static str], word: &str| {
        known.iter().find(|known| **known == word).or(known.first()).map_or(String::new(), |word| word.to_string())
    };
    let dtype = [TF32, "f64"].into_iter().find(|dtype| has(dtype)).unwrap_or("f32");
    // The encoder-decoder has no other engine than burn's.
    let reference = has("burn") && settings.text("model.kind") != "encoder-decoder";
    Compute {
        device: pick(abilities.devices, name),
        dtype: pick(abilities.dtypes, dtype),
        engine: pick(abilities.engines, if reference { "reference" } else { "standard" }),
    }
}
