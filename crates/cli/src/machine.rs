//! What networks compute on: options shared by `run`, `show` and `bench`.

use clap::{Args, ValueEnum};
use pudica_lab::Settings;

/// What networks compute on. Each is a setting as well (`compute.device`, `compute.dtype`, `compute.engine`), so it is part of a run's id.
#[derive(Args)]
pub struct Machine {
    /// cpu (all cores), cuda (the first NVIDIA GPU), or torch (the processor, through LibTorch; classifiers and grokking)
    #[arg(long, value_enum)]
    device: Option<DeviceName>,
    /// Number type: f32; tf32, on a GPU, faster, factors of products rounded to 11 bits; or f64, slow, to check whether a result depends on
    /// rounding (Boolean functions)
    #[arg(long, value_enum)]
    dtype: Option<Dtype>,
    /// Compute on the reference networks, by automatic differentiation: slow, to check the fast ones
    #[arg(long)]
    reference: bool,
    /// The former name of --dtype
    #[arg(long, hide = true, value_name = "DTYPE")]
    precision: Option<String>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum DeviceName {
    Cpu,
    Cuda,
    Torch,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Dtype {
    F32,
    Tf32,
    F64,
}

impl Machine {
    /// Whether the user has named a device.
    pub fn names_a_device(&self) -> bool {
        self.device.is_some()
    }

    /// The flags that change something against these settings: each as typed, and as an override.
    /// `on_gpu`: the device is a GPU where nobody names another.
    pub fn flags(&self, settings: &Settings, on_gpu: bool) -> Result<Vec<(String, String)>, String> {
        if let Some(dtype) = &self.precision {
            return Err(format!(
                "--precision is the width of an interval now (`pudica boolean`); the number type is --dtype {dtype}"
            ));
        }
        let usual = (on_gpu && settings.text("compute.device") == "cpu").then_some(DeviceName::Cuda);
        let device = self.device.or(usual).map(|device| match device {
            DeviceName::Cpu => "cpu",
            DeviceName::Cuda => "cuda",
            DeviceName::Torch => "torch",
        });
        let dtype = self.dtype.map(|dtype| match dtype {
            Dtype::F32 => "f32",
            Dtype::Tf32 => "tf32",
            Dtype::F64 => "f64",
        });
        let asked = [
            ("compute.device", device, device.map(|device| format!("--device {device}"))),
            ("compute.dtype", dtype, dtype.map(|dtype| format!("--dtype {dtype}"))),
            ("compute.engine", self.reference.then_some("reference"), Some("--reference".into())),
        ];
        let changes = asked.into_iter().filter_map(|(key, value, flag)| {
            let value = value.filter(|value| settings.text(key) != *value)?;
            Some((flag?, format!("{key}={value}")))
        });
        Ok(changes.collect())
    }
}
