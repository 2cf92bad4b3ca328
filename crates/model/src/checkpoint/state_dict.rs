//! Named tensors of a file: PyTorch's checkpoints, which are parsed and never executed, and safetensors.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use half::{bf16, f16};
use pudica_nn::Weights;
use pytorch_reader::{DType, PytorchReader};
use safetensors::tensor::{Dtype, SafeTensors};

use crate::{ModelError, ModelResult};

/// Keys under which training loops put the state dict, beside other things.
const NESTED: [&str; 2] = ["state_dict.", "model_state_dict."];

/// What wrappers put before each name: `nn.DataParallel`, `torch.compile`, a module that has the network as a part.
const WRAPPERS: [&str; 4] = ["module.", "_orig_mod.", "model.", "net."];

/// Keys of tensors that are no part of a network.
const BESIDE: [&str; 6] = ["optimizer", "optimiser", "optim", "optimizer_state_dict", "scheduler", "lr_scheduler"];

/// Tensors of one checkpoint may share their storage, so together they may be larger than the file; not by more than this factor.
const SHARED: u64 = 4;
/// What small files may have in any case, in bytes.
const SMALL: u64 = 1 << 20;

/// The tensors of a network under their names, read when they are asked for.
pub(crate) struct StateDict {
    path: PathBuf,
    tensors: BTreeMap<String, Stored>,
}

/// A tensor in a file.
#[derive(Clone)]
struct Stored {
    shape: Vec<usize>,
    source: Source,
}

#[derive(Clone)]
enum Source {
    Pytorch(pytorch_reader::Tensor),
    Safetensors { file: Arc<Vec<u8>>, range: std::ops::Range<usize>, dtype: Dtype },
    Values(Vec<f32>),
}

/// Whether a file's first bytes are those of a PyTorch checkpoint (ZIP, pickle, TAR) or of safetensors.
pub(crate) fn is_state_dict(path: &Path) -> bool {
    let mut first = [0; 512];
    let Ok(mut file) = File::open(path) else { return false };
    let (length, mut count) = (file.metadata().map_or(0, |about| about.len()), 0);
    while let Ok(more @ 1..) = file.read(&mut first[count..]) {
        count += more;
    }
    is_pytorch(&first[..count]) || is_safetensors(&first[..count], length)
}

fn is_pytorch(first: &[u8]) -> bool {
    let pickle = matches!(first, [0x80, 0..=5, ..]);
    first.starts_with(b"PK\x03\x04") || pickle || first.get(257..262) == Some(b"ustar".as_slice())
}

fn is_safetensors(first: &[u8], length: u64) -> bool {
    let Some((header, rest)) = first.split_first_chunk::<8>() else { return false };
    let header = u64::from_le_bytes(*header);
    rest.first() == Some(&b'{') && (2..=length.saturating_sub(8)).contains(&header)
}

impl StateDict {
    /// Reads the names and shapes of a file, by its first bytes. What stands before all names (`module.`) or around the whole
    /// (`state_dict`) is taken off; counters of BatchNorm are left out.
    pub(crate) fn read(path: &Path) -> ModelResult<Self> {
        let unreadable = |error: std::io::Error| ModelError::file(path, format!("cannot be read: {error}"));
        let about = std::fs::metadata(path).map_err(unreadable)?;
        // A device or a pipe may never end, or never begin.
        if !about.is_file() {
            return Err(ModelError::file(path, "is not a plain file"));
        }
        let mut first = Vec::new();
        File::open(path).and_then(|file| file.take(512).read_to_end(&mut first)).map_err(unreadable)?;
        let named = path.extension().is_some_and(|ending| ending == "safetensors") && !is_pytorch(&first);
        let tensors = match named || is_safetensors(&first, about.len()) {
            true => safetensors(path, std::fs::read(path).map_err(unreadable)?)?,
            false => pytorch(path, about.len())?,
        };
        let tensors: BTreeMap<String, Stored> =
            unwrapped(tensors).into_iter().filter(|(name, _)| !name.ends_with("num_batches_tracked")).collect();
        match tensors.is_empty() {
            true => Err(ModelError::file(path, "has no tensors in it")),
            false => Ok(Self { path: path.into(), tensors }),
        }
    }

    /// The shape of a tensor.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        Some(&self.tensors.get(name)?.shape)
    }

    /// All names.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Takes in the tensors of another file.
    pub(crate) fn extend(&mut self, other: Self) {
        self.tensors.extend(other.tensors);
    }

    /// Gives each tensor another name; `None` leaves it out.
    pub(crate) fn rename(&mut self, new_name: impl Fn(&str) -> Option<String>) {
        let tensors = std::mem::take(&mut self.tensors);
        self.tensors = tensors.into_iter().filter_map(|(name, tensor)| Some((new_name(&name)?, tensor))).collect();
    }

    /// Puts other values in a tensor's place.
    pub(crate) fn put(&mut self, name: &str, shape: Vec<usize>, values: Vec<f32>) {
        self.tensors.insert(name.into(), Stored { shape, source: Source::Values(values) });
    }

    /// A tensor's values.
    pub(crate) fn values(&self, name: &str) -> ModelResult<Vec<f32>> {
        let tensor = self.tensors.get(name).ok_or_else(|| self.wrong(format!("has no tensor {name}")))?;
        tensor.values().map_err(|problem| self.wrong(format!("{name} {problem}")))
    }

    /// The values of all tensors of a layout, which must be there in their shapes.
    pub(crate) fn fill(&self, mut layout: Weights) -> ModelResult<Weights> {
        let names: Vec<String> = layout.layout().iter().map(|parameter| parameter.name.clone()).collect();
        for name in names {
            let values = self.values(&name)?;
            match layout.get_mut(&name) {
                Some(place) if place.len() == values.len() => place.copy_from_slice(&values),
                _ => return Err(self.wrong(format!("{name} has {} values, which does not fit", values.len()))),
            }
        }
        Ok(layout)
    }

    /// A sentence about the file.
    pub(crate) fn wrong(&self, problem: impl Into<String>) -> ModelError {
        ModelError::file(&self.path, problem)
    }
}

impl Stored {
    fn values(&self) -> Result<Vec<f32>, String> {
        match &self.source {
            Source::Values(values) => Ok(values.clone()),
            Source::Pytorch(tensor) => {
                let bytes = tensor.read().map_err(|error| format!("cannot be read: {error}"))?;
                match tensor.dtype() {
                    DType::F32 => Ok(numbers(&bytes, f32::from_ne_bytes)),
                    DType::F64 => Ok(numbers(&bytes, |bytes| f64::from_ne_bytes(bytes) as f32)),
                    DType::F16 => Ok(numbers(&bytes, |bytes| f16::from_ne_bytes(bytes).to_f32())),
                    DType::BF16 => Ok(numbers(&bytes, |bytes| bf16::from_ne_bytes(bytes).to_f32())),
                    other => Err(format!("is of the type {other:?}, weights are floating-point numbers")),
                }
            }
            Source::Safetensors { file, range, dtype } => {
                let bytes = file.get(range.clone()).unwrap_or_default();
                match dtype {
                    Dtype::F32 => Ok(numbers(bytes, f32::from_le_bytes)),
                    Dtype::F64 => Ok(numbers(bytes, |bytes| f64::from_le_bytes(bytes) as f32)),
                    Dtype::F16 => Ok(numbers(bytes, |bytes| f16::from_le_bytes(bytes).to_f32())),
                    Dtype::BF16 => Ok(numbers(bytes, |bytes| bf16::from_le_bytes(bytes).to_f32())),
                    other => Err(format!("is of the type {other:?}, weights are floating-point numbers")),
                }
            }
        }
    }
}

fn numbers<const N: usize>(bytes: &[u8], number: impl Fn([u8; N]) -> f32) -> Vec<f32> {
    bytes.as_chunks::<N>().0.iter().map(|bytes| number(*bytes)).collect()
}

fn safetensors(path: &Path, bytes: Vec<u8>) -> ModelResult<BTreeMap<String, Stored>> {
    let file = Arc::new(bytes);
    let wrong = |error| ModelError::file(path, format!("is not a readable safetensors file ({error})"));
    let parsed = SafeTensors::deserialize(&file).map_err(wrong)?;
    let tensors = parsed.iter().map(|(name, view)| {
        // Where the view lies in the file.
        let start = view.data().as_ptr() as usize - file.as_ptr() as usize;
        let range = start..start + view.data().len();
        let source = Source::Safetensors { file: file.clone(), range, dtype: view.dtype() };
        (name.to_string(), Stored { shape: view.shape().to_vec(), source })
    });
    Ok(tensors.collect())
}

fn pytorch(path: &Path, length: u64) -> ModelResult<BTreeMap<String, Stored>> {
    let wrong = |error: String| ModelError::file(path, format!("cannot be read as a PyTorch checkpoint: {error}"));
    let reader = PytorchReader::new(path).map_err(|error| wrong(one_line(&error.to_string())))?;
    let tensors: BTreeMap<String, Stored> = reader
        .into_tensors()
        .into_iter()
        .map(|(name, tensor)| (name, Stored { shape: tensor.shape().to_vec(), source: Source::Pytorch(tensor) }))
        .collect();
    let bytes = |tensor: &Stored| match &tensor.source {
        Source::Pytorch(tensor) => tensor.byte_len() as u64,
        _ => 0,
    };
    let total = tensors.values().map(bytes).fold(0, u64::saturating_add);
    if total > length.saturating_mul(SHARED).saturating_add(SMALL) {
        return Err(wrong(format!("its tensors would take {total} bytes, but the file has {length}")));
    }
    Ok(tensors)
}

/// What another library says, as a part of a sentence.
fn one_line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(200).collect()
}

/// The tensors of the network itself, without what stands around them.
fn unwrapped(mut tensors: BTreeMap<String, Stored>) -> BTreeMap<String, Stored> {
    let under = |tensors: BTreeMap<String, Stored>, prefix: &str| {
        let inner = |(name, tensor): (String, Stored)| Some((name.strip_prefix(prefix)?.to_string(), tensor));
        tensors.into_iter().filter_map(inner).collect::<BTreeMap<_, _>>()
    };
    for prefix in NESTED {
        if tensors.keys().any(|name| name.starts_with(prefix)) {
            tensors = under(tensors, prefix);
        }
    }
    tensors.retain(|name, _| !BESIDE.contains(&name.split('.').next().unwrap_or_default()));
    while let Some(prefix) = WRAPPERS.iter().find(|prefix| tensors.keys().all(|name| name.starts_with(**prefix)))
        && !tensors.is_empty()
    {
        tensors = under(tensors, prefix);
    }
    tensors
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str]) -> Vec<String> {
        let stored = || Stored { shape: vec![], source: Source::Values(vec![]) };
        unwrapped(given.iter().map(|name| (name.to_string(), stored())).collect()).into_keys().collect()
    }

    #[test]
    fn what_stands_around_names_is_taken_off() {
        assert_eq!(names(&["fc.bias", "fc.weight"]), ["fc.bias", "fc.weight"]);
        assert_eq!(names(&["state_dict.module.fc.bias", "other"]), ["fc.bias"]);
        assert_eq!(names(&["model_state_dict.net.fc.bias", "optimizer_state_dict.state.0.exp_avg"]), ["fc.bias"]);
        assert_eq!(names(&["model.fc.bias", "optimizer.state.0.exp_avg"]), ["fc.bias"]);
        // A part of the network that is called net, beside others.
        assert_eq!(names(&["head.bias", "net.bias"]), ["head.bias", "net.bias"]);
        assert!(names(&[]).is_empty());
    }

    #[test]
    fn files_are_known_by_their_first_bytes() {
        assert!(
            is_pytorch(b"PK\x03\x04..") && is_pytorch(b"\x80\x02\x8a\x0al") && !is_pytorch(b"\x08\x07\x12\x07pytorch")
        );
        let header = [&20u64.to_le_bytes()[..], b"{\"a\":1}"].concat();
        assert!(is_safetensors(&header, 100) && !is_safetensors(&header, 20) && !is_safetensors(b"short", 5));
    }
}
