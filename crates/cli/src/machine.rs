//! What networks compute on: options shared by `run`, `show` and `bench`.

use clap::{Args, ValueEnum};
use pudica_lab::{NetworkTrainer, Precision};

/// What networks compute on.
#[derive(Args)]
pub struct Machine {
    /// cpu (all cores), cuda (the first NVIDIA GPU), or torch (the processor, through LibTorch; for studies)
    #[arg(long, value_enum, default_value = "cpu")]
    pub device: DeviceName,
    /// What networks compute in: f32; tf32, on a GPU, faster with factors of products rounded to 11 bits; or f64, slow, with weights still f32,
    /// to tell whether a result hangs on rounding (Boolean functions only)
    #[arg(long, value_enum, default_value = "f32")]
    precision: PrecisionName,
    /// Compute on the reference networks instead, by automatic differentiation: slow, to check the fast ones
    #[arg(long)]
    reference: bool,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
pub enum DeviceName {
    Cpu,
    Cuda,
    Torch,
}

impl DeviceName {
    /// As networks know it.
    pub fn name(self) -> &'static str {
        match self {
            DeviceName::Cpu => "cpu",
            DeviceName::Cuda => "cuda",
            DeviceName::Torch => "torch",
        }
    }
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum PrecisionName {
    F32,
    Tf32,
    F64,
}

impl Machine {
    /// That nothing else than f32 was asked for, where there is nothing else.
    pub fn only_f32(&self) -> Result<(), String> {
        match self.precision {
            PrecisionName::F32 => Ok(()),
            _ => {
                Err("--precision is for networks that learn Boolean functions; this experiment computes in f32".into())
            }
        }
    }

    /// What trains networks there.
    pub fn trainer(&self) -> Result<NetworkTrainer, String> {
        let precision = match self.precision {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::Tf32 => Precision::Tf32,
            PrecisionName::F64 => Precision::F64,
        };
        let trainer = match self.device {
            DeviceName::Cpu => NetworkTrainer::cpu(),
            DeviceName::Cuda => NetworkTrainer::cuda(),
            DeviceName::Torch => {
                return Err(
                    "--device torch is for studies of images and texts; Boolean functions take cpu or cuda".into()
                );
            }
        };
        let trainer = trainer.precision(precision);
        Ok(if self.reference { trainer.reference() } else { trainer })
    }
}
