//! Where networks are computed. The choice of backend is made here and nowhere else.

use burn::tensor::{DType, Int, Tensor, TensorCreationOptions, TensorData};

use crate::NnError;

/// A device and the precision networks are computed in on it.
#[derive(Debug, Clone)]
pub struct Device {
    inner: burn::tensor::Device,
    float: DType,
    name: &'static str,
}

impl Device {
    /// The device of this name: `cpu` (always there); in binaries built with the feature `torch`, also `cuda` (the first GPU) and
    /// `torch` (the processor, through LibTorch).
    pub fn parse(name: &str) -> Result<Self, NnError> {
        match name {
            "cpu" => Ok(Self::cpu()),
            "cuda" => torch::cuda(),
            "torch" => torch::cpu(),
            _ => Err(unusable(name, "no such device; choose \"cpu\" or \"cuda\"")),
        }
    }

    /// This machine's processor, through burn's pure Rust backend `flex`.
    pub fn cpu() -> Self {
        Self { inner: burn::tensor::Device::flex(), float: DType::F32, name: "cpu" }
    }

    /// The name it is asked for by.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The same device, on which factors of matrix products are rounded to TF32, 11 bits, or are not: a GPU's choice, for the whole process.
    pub fn with_tf32(self, rounded: bool) -> Result<Self, NnError> {
        match self.name {
            #[cfg(feature = "torch")]
            "cuda" => crate::libtorch::products_in_tf32(rounded).map(|()| self),
            _ if rounded => Err(unusable(self.name, "only a GPU computes in TF32; use f32, or \"cuda\"")),
            _ => Ok(self),
        }
    }

    /// The same device computing in f64 instead of f32. Weights stay f32; this is for checking gradients and golden values.
    pub fn double(self) -> Self {
        Self { float: DType::F64, ..self }
    }

    /// Whether it computes in f64.
    pub fn is_double(&self) -> bool {
        self.float == DType::F64
    }

    /// Whether it computes in f32 through LibTorch.
    pub(crate) fn is_libtorch(&self) -> bool {
        cfg!(feature = "torch") && self.name != "cpu" && !self.is_double()
    }

    /// Options for a constant: a tensor no gradient flows into.
    pub(crate) fn constant(&self) -> TensorCreationOptions {
        TensorCreationOptions::new(self.inner.clone()).with_dtype(self.float)
    }

    /// Values in this shape on the device, as a constant.
    pub(crate) fn floats<const D: usize>(&self, values: Vec<f32>, shape: [usize; D]) -> Tensor<D> {
        #[cfg(feature = "torch")]
        if self.name == "cuda" && self.float == DType::F32 {
            return torch::put_floats(&values, shape);
        }
        Tensor::from_data(TensorData::new(values, shape), self.constant())
    }

    /// Integers in this shape on the device.
    pub(crate) fn numbers<const D: usize>(&self, values: Vec<i64>, shape: [usize; D]) -> Tensor<D, Int> {
        #[cfg(feature = "torch")]
        if self.name == "cuda" {
            return torch::put_numbers(&values, shape);
        }
        Tensor::from_data(TensorData::new(values, shape), self.integers())
    }

    /// Sets the state of the device's own generator, which dropout draws from.
    pub(crate) fn seed(&self, seed: u64) {
        self.inner.seed(seed);
    }

    /// Options for integers.
    pub(crate) fn integers(&self) -> TensorCreationOptions {
        TensorCreationOptions::new(self.inner.clone())
    }
}

fn unusable(name: &str, problem: impl Into<String>) -> NnError {
    NnError::Device { name: name.to_string(), problem: problem.into() }
}

#[cfg(not(feature = "torch"))]
mod torch {
    use super::*;

    const MISSING: &str = "this binary was built without LibTorch; build it with `--features torch`, or use \"cpu\"";

    pub(super) fn cuda() -> Result<Device, NnError> {
        Err(unusable("cuda", MISSING))
    }

    pub(super) fn cpu() -> Result<Device, NnError> {
        Err(unusable("torch", MISSING))
    }
}

#[cfg(feature = "torch")]
mod torch {
    // burn marks its LibTorch backend deprecated in favour of its own CUDA backend, which DESIGN.md explains is not our path.
    #![allow(deprecated)]

    use super::*;

    pub(super) fn cuda() -> Result<Device, NnError> {
        // Nothing in the binary refers to a symbol of libtorch_cuda.so, so the linker leaves it out and LibTorch then finds no
        // GPU. Loading it registers the CUDA kernels; it must stay loaded for as long as the program runs.
        // SAFETY: loading runs the library's initialisers; it is part of the PyTorch the program is already linked against.
        match unsafe { libloading::Library::new("libtorch_cuda.so") } {
            Ok(library) => std::mem::forget(library),
            Err(e) => return Err(unusable("cuda", format!("the installed PyTorch has no CUDA ({e}); use \"cpu\""))),
        }
        if !tch::Cuda::is_available() {
            return Err(unusable("cuda", "LibTorch finds no usable GPU on this machine; use \"cpu\""));
        }
        Ok(Device { inner: burn::tensor::Device::libtorch_cuda(0), float: DType::F32, name: "cuda" })
    }

    pub(super) fn cpu() -> Result<Device, NnError> {
        Ok(Device { inner: burn::tensor::Device::libtorch(), float: DType::F32, name: "torch" })
    }

    pub(super) fn put_floats<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
        Tensor::from_primitive::<burn::backend::LibTorch>(crate::native::put(values, &shape))
    }

    pub(super) fn put_numbers<const D: usize>(values: &[i64], shape: [usize; D]) -> Tensor<D, Int> {
        Tensor::from_primitive::<burn::backend::LibTorch>(crate::native::put(values, &shape))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_and_missing_devices_are_explained() {
        assert_eq!(Device::parse("cpu").unwrap().name(), "cpu");
        assert!(Device::parse("tpu").unwrap_err().to_string().contains("choose \"cpu\" or \"cuda\""));
        assert!(Device::cpu().with_tf32(true).unwrap_err().to_string().contains("only a GPU"));
        #[cfg(not(feature = "torch"))]
        assert!(Device::parse("cuda").unwrap_err().to_string().contains("--features torch"));
    }
}
