//! What PyTorch computed, from the files in `tests/golden`.

// Each test file uses its part of this.
#![allow(dead_code)]

use std::path::PathBuf;

use pudica_nn::{Device, Weights};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype;

/// Every device this binary and this machine have.
pub fn devices() -> Vec<Device> {
    ["cpu", "torch", "cuda"].into_iter().filter_map(|name| Device::parse(name).ok()).collect()
}

/// Where the file of this name lies.
pub fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("../../tests/golden/{name}.safetensors"))
}

pub fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().copied().map(f64::from).collect()
}

/// One file of PyTorch's tensors.
pub struct Golden {
    name: String,
    bytes: Vec<u8>,
}

impl Golden {
    pub fn read(name: &str) -> Self {
        Self { name: name.to_string(), bytes: std::fs::read(path(name)).unwrap() }
    }

    fn tensors(&self) -> SafeTensors<'_> {
        SafeTensors::deserialize(&self.bytes).unwrap()
    }

    pub fn names(&self) -> Vec<String> {
        self.tensors().names().into_iter().map(String::from).collect()
    }

    pub fn has(&self, name: &str) -> bool {
        self.tensors().tensor(name).is_ok()
    }

    /// That names and shapes are those of PyTorch's `state_dict()`, in its order.
    #[track_caller]
    pub fn assert_same_layout(&self, weights: &Weights) {
        let ours: Vec<String> = weights.layout().iter().map(|p| format!("[\"{}\", {:?}]", p.name, p.shape)).collect();
        let (_, header) = SafeTensors::read_metadata(&self.bytes).unwrap();
        assert_eq!(format!("[{}]", ours.join(", ")), header.metadata().as_ref().unwrap()["names"], "{}", self.name);
    }

    pub fn get(&self, name: &str) -> Vec<f64> {
        let file = self.tensors();
        let view = file.tensor(name).unwrap_or_else(|_| panic!("{name} is not in {}", self.name));
        let chunks = |size| view.data().chunks_exact(size);
        match view.dtype() {
            Dtype::F64 => chunks(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect(),
            Dtype::F32 => chunks(4).map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap()))).collect(),
            Dtype::U8 => view.data().iter().map(|b| f64::from(*b)).collect(),
            other => panic!("{name} is {other:?}"),
        }
    }

    pub fn get_f32(&self, name: &str) -> Vec<f32> {
        self.get(name).into_iter().map(|x| x as f32).collect()
    }

    pub fn numbers(&self, name: &str) -> Vec<usize> {
        self.get(name).into_iter().map(|x| x as usize).collect()
    }

    /// The tensors PREFIX.NAME of all names of `layout`.
    pub fn weights(&self, prefix: &str, mut layout: Weights) -> Weights {
        let names: Vec<String> = layout.layout().iter().map(|parameter| parameter.name.clone()).collect();
        for name in names {
            layout.get_mut(&name).unwrap().copy_from_slice(&self.get_f32(&format!("{prefix}.{name}")));
        }
        layout
    }

    /// A vector of PyTorch's, the tensors PREFIX.NAME, in the order of our weights.
    pub fn flat(&self, prefix: &str, layout: &Weights) -> Vec<f64> {
        layout.layout().iter().flat_map(|parameter| self.get(&format!("{prefix}.{}", parameter.name))).collect()
    }

    /// Each value by its own size, or 1.
    #[track_caller]
    pub fn assert_close(&self, what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
        self.assert_within(what, found, expected, |expected| tolerance * expected.abs().max(1.0));
    }

    /// Each value by the size of the largest.
    #[track_caller]
    pub fn assert_close_to_largest(&self, what: &str, found: &[f64], expected: &[f64], tolerance: f64) {
        // A tensor that is 0 but for rounding, such as the gradient of a bias before BatchNorm, has no size of its own.
        let largest = expected.iter().fold(1e-3f64, |largest, x| largest.max(x.abs()));
        self.assert_within(what, found, expected, |_| tolerance * largest);
    }

    #[track_caller]
    fn assert_within(&self, what: &str, found: &[f64], expected: &[f64], allowed: impl Fn(f64) -> f64) {
        assert_eq!(found.len(), expected.len(), "{}: {what}", self.name);
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            let (off, allowed) = ((found - expected).abs(), allowed(*expected));
            assert!(
                off <= allowed,
                "{}: {what}[{i}] is {found}, PyTorch has {expected}; {allowed:.1e} is allowed",
                self.name
            );
        }
    }
}
