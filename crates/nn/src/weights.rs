//! A network's parameters as plain numbers under PyTorch's names, and their file format.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, SafeTensors, TensorView};

use crate::NnError;

/// One parameter of a layout: its name, its shape, and where its values lie in [`Weights::data`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// PyTorch's name, as `state_dict()` shows it.
    pub name: String,
    /// PyTorch's shape; a linear layer's weight is [out, in].
    pub shape: Vec<usize>,
    /// The parameter's part of the flat data, row-major.
    pub range: Range<usize>,
}

/// All parameters of a network: one flat vector of f32, and the names and shapes of its parts in a fixed order.
///
/// Everything that treats parameters as one long vector (the optimiser, weight noise, norms) works on [`Weights::data`];
/// the networks and the files work by name.
#[derive(Debug, Clone, PartialEq)]
pub struct Weights {
    layout: Arc<[Parameter]>,
    data: Vec<f32>,
}

impl Weights {
    /// Weights of the given names and shapes, all zero.
    pub fn zeros<'a>(shapes: impl IntoIterator<Item = (&'a str, &'a [usize])>) -> Self {
        let mut end = 0;
        let layout: Arc<[Parameter]> = shapes
            .into_iter()
            .map(|(name, shape)| {
                let start = end;
                end += shape.iter().product::<usize>();
                Parameter { name: name.to_string(), shape: shape.to_vec(), range: start..end }
            })
            .collect();
        Self { layout, data: vec![0.0; end] }
    }

    /// The parameters in order.
    pub fn layout(&self) -> &[Parameter] {
        &self.layout
    }

    /// All values, parameter after parameter.
    pub fn data(&self) -> &[f32] {
        &self.data
    }

    /// All values, parameter after parameter.
    pub fn data_mut(&mut self) -> &mut [f32] {
        &mut self.data
    }

    /// The same names and shapes with other values. `data` must be as long as these weights.
    pub fn with_data(&self, data: Vec<f32>) -> Result<Self, NnError> {
        if data.len() != self.data.len() {
            return Err(NnError::Layout(format!("{} values given, {} needed", data.len(), self.data.len())));
        }
        Ok(Self { layout: self.layout.clone(), data })
    }

    /// Multiplies every matrix (the parameters of two dimensions or more: embeddings too, biases and the weights of norms not).
    pub fn scale_matrices(&mut self, factor: f64) {
        let layout = self.layout.clone();
        for parameter in layout.iter().filter(|parameter| parameter.shape.len() > 1) {
            self.data[parameter.range.clone()]
                .iter_mut()
                .for_each(|weight| *weight = (f64::from(*weight) * factor) as f32);
        }
    }

    /// Shape and values of one parameter.
    pub fn get(&self, name: &str) -> Option<(&[usize], &[f32])> {
        let parameter = self.layout.iter().find(|parameter| parameter.name == name)?;
        Some((&parameter.shape, &self.data[parameter.range.clone()]))
    }

    /// The values of one parameter.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut [f32]> {
        let parameter = self.layout.iter().find(|parameter| parameter.name == name)?;
        Some(&mut self.data[parameter.range.clone()])
    }

    /// Whether `other` has the same parameters in the same order; the error names the first difference.
    pub fn check_same_layout(&self, other: &Self) -> Result<(), NnError> {
        other.check_layout(self.layout.iter().map(|parameter| (parameter.name.as_str(), parameter.shape.as_slice())))
    }

    /// Whether these are the names and shapes of the parameters; the error names the first difference.
    pub(crate) fn check_layout<'a>(
        &self,
        expected: impl ExactSizeIterator<Item = (&'a str, &'a [usize])>,
    ) -> Result<(), NnError> {
        let (count, found) = (expected.len(), self.layout.len());
        for ((name, shape), found) in expected.zip(self.layout.iter()) {
            if (name, shape) != (found.name.as_str(), found.shape.as_slice()) {
                let (found, of) = (&found.name, &found.shape);
                return Err(NnError::Layout(format!("expected {name} {shape:?}, found {found} {of:?}")));
            }
        }
        match count == found {
            true => Ok(()),
            false => Err(NnError::Layout(format!("expected {count} parameters, found {found}"))),
        }
    }

    /// The bytes of a safetensors file that PyTorch reads with `load_state_dict(safetensors.torch.load_file(path))`.
    pub fn to_bytes(&self) -> Result<Vec<u8>, NnError> {
        store(&[("", self)], &[])
    }

    /// Read the bytes of [`Weights::to_bytes`] (or of a file PyTorch wrote) into the names and shapes of `self`. Every parameter
    /// must be there, in f32 and in its shape, and nothing else.
    pub fn from_bytes(&self, bytes: &[u8]) -> Result<Self, NnError> {
        let stored = Stored::parse(bytes)?;
        stored.check_only(&[("", self)])?;
        stored.read("", self)
    }

    /// Write [`Weights::to_bytes`] to a file.
    pub fn save(&self, path: &Path) -> Result<(), NnError> {
        std::fs::write(path, self.to_bytes()?).map_err(|source| NnError::File { path: path.into(), source })
    }

    /// [`Weights::from_bytes`] of a file.
    pub fn load(&self, path: &Path) -> Result<Self, NnError> {
        let failed = |source| NnError::File { path: path.into(), source };
        if !std::fs::metadata(path).map_err(failed)?.is_file() {
            return Err(failed(std::io::Error::other("it is not a plain file"))); // a device might never end
        }
        let bytes = std::fs::read(path).map_err(failed)?;
        self.from_bytes(&bytes).map_err(|e| NnError::BadFile { path: path.into(), problem: e.to_string() })
    }
}

/// Several sets of weights, each under its own prefix, and a few named numbers, as one safetensors file.
pub(crate) fn store(sets: &[(&str, &Weights)], numbers: &[(&str, u64)]) -> Result<Vec<u8>, NnError> {
    let mut tensors = Vec::new();
    for (prefix, weights) in sets {
        for parameter in weights.layout() {
            let values = &weights.data[parameter.range.clone()];
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            tensors.push((format!("{prefix}{}", parameter.name), parameter.shape.clone(), bytes));
        }
    }
    let views = tensors
        .iter()
        .map(|(name, shape, bytes)| Ok((name, TensorView::new(Dtype::F32, shape.clone(), bytes)?)))
        .collect::<Result<Vec<_>, SafeTensorError>>()
        .map_err(unreadable)?;
    let numbers: HashMap<String, String> =
        numbers.iter().map(|(key, number)| (key.to_string(), number.to_string())).collect();
    safetensors::serialize(views, (!numbers.is_empty()).then_some(numbers)).map_err(unreadable)
}

fn unreadable(error: SafeTensorError) -> NnError {
    NnError::Stored(format!("not a readable safetensors file ({error})"))
}

/// A safetensors file being read, with errors that name the tensor.
pub(crate) struct Stored<'a> {
    tensors: SafeTensors<'a>,
    numbers: HashMap<String, String>,
}

impl<'a> Stored<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, NnError> {
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(unreadable)?;
        let numbers = header.metadata().clone().unwrap_or_default();
        Ok(Self { tensors: SafeTensors::deserialize(bytes).map_err(unreadable)?, numbers })
    }

    /// A named number of the file.
    pub(crate) fn number(&self, key: &str) -> Result<u64, NnError> {
        let text = self.numbers.get(key).ok_or_else(|| NnError::Stored(format!("\"{key}\" is missing")))?;
        text.parse().map_err(|_| NnError::Stored(format!("\"{key}\" is not a number: {text}")))
    }

    /// The tensors under `prefix` in the layout of `like`.
    pub(crate) fn read(&self, prefix: &str, like: &Weights) -> Result<Weights, NnError> {
        let mut weights = like.clone();
        for parameter in like.layout() {
            let name = format!("{prefix}{}", parameter.name);
            let view = self.tensors.tensor(&name).map_err(|_| NnError::Stored(format!("{name} is missing")))?;
            if view.dtype() != Dtype::F32 || view.shape() != parameter.shape {
                let (dtype, found, expected) = (view.dtype(), view.shape(), &parameter.shape);
                return Err(NnError::Stored(format!("{name} is {dtype:?} {found:?}, expected F32 {expected:?}")));
            }
            let values = &mut weights.data[parameter.range.clone()];
            for (value, bytes) in values.iter_mut().zip(view.data().chunks_exact(4)) {
                *value = f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            }
        }
        Ok(weights)
    }

    /// Refuse a file that holds anything beyond these sets.
    pub(crate) fn check_only(&self, sets: &[(&str, &Weights)]) -> Result<(), NnError> {
        let known = |name: &str| {
            sets.iter()
                .any(|(prefix, weights)| name.strip_prefix(prefix).is_some_and(|bare| weights.get(bare).is_some()))
        };
        match self.tensors.names().into_iter().find(|name| !known(name)) {
            Some(name) => Err(NnError::Stored(format!("{name} is not a parameter of this network"))),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn small() -> Weights {
        let mut weights = Weights::zeros([("a.weight", &[2usize, 3][..]), ("a.bias", &[2][..])]);
        for (i, value) in weights.data_mut().iter_mut().enumerate() {
            *value = i as f32 + 0.5;
        }
        weights
    }

    fn scratch(name: &str) -> std::path::PathBuf {
        std::env::temp_dir().join(format!("pudica-weights-{}-{name}", std::process::id()))
    }

    #[test]
    fn parts_are_found_by_name() {
        let weights = small();
        assert_eq!(weights.get("a.bias"), Some((&[2][..], &[6.5, 7.5][..])));
        assert_eq!(weights.get("b"), None);
    }

    #[test]
    fn a_saved_file_loads_bit_equal() {
        let (weights, path) = (small(), scratch("roundtrip"));
        weights.save(&path).unwrap();
        let empty = Weights::zeros([("a.weight", &[2usize, 3][..]), ("a.bias", &[2][..])]);
        assert_eq!(empty.load(&path).unwrap(), weights);
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn other_shapes_names_and_garbage_are_refused() {
        let path = scratch("refused");
        small().save(&path).unwrap();
        let load =
            |shapes: &[(&str, &[usize])]| Weights::zeros(shapes.iter().copied()).load(&path).unwrap_err().to_string();
        assert!(
            load(&[("a.weight", &[3, 2]), ("a.bias", &[2])]).contains("a.weight is F32 [2, 3], expected F32 [3, 2]")
        );
        assert!(load(&[("a.weight", &[2, 3])]).contains("a.bias is not a parameter"));
        assert!(load(&[("a.weight", &[2, 3]), ("a.bias", &[2]), ("c", &[1])]).contains("c is missing"));
        std::fs::write(&path, b"not tensors at all").unwrap();
        assert!(load(&[("a.weight", &[2, 3])]).contains("not a readable safetensors file"));
        std::fs::remove_file(&path).unwrap();
        assert!(small().load(&path).unwrap_err().to_string().contains("pudica-weights"));
    }
}
