//! What networks compute on: options shared by `run`, `show` and `bench`.

use clap::{Args, ValueEnum};
use pudica_lab::{NetworkTrainer, Precision};

/// What networks compute on.
#[derive(Args)]
pub struct Machine {
    /// cpu (all cores), cuda (the first NVIDIA GPU), or torch (the processor, through LibTorch; for studies)
    #[arg(long, value_enum, default_value = "cpu")]
    pub device: DeviceName,
    /// How a GPU multiplies matrices: f32 as the CPU does, or tf32, faster with factors rounded to 11 bits
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
}

impl Machine {
    /// What trains networks there.
    pub fn trainer(&self) -> Result<NetworkTrainer, String> {
        let precision = match self.precision {
            PrecisionName::F32 => Precision::F32,
            PrecisionName::Tf32 => Precision::Tf32,
        };
        let trainer = match self.device {
            DeviceName::Cpu => NetworkTrainer::cpu(),
            DeviceName::Cuda => NetworkTrainer::cuda(precision),
            DeviceName::Torch => {
                return Err(
                    "--device torch is for studies of images and texts; Boolean functions take cpu or cuda".into()
                );
            }
        };
        Ok(if self.reference { trainer.reference() } else { trainer })
    }
}
