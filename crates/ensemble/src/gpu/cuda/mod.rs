//! The GPU: kernels compiled at start, launches, matrix products, memory. Everything unsafe about CUDA is here and in `programs`.

mod lanes;
mod launch;
mod memory;
mod product;

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::{Arc, Mutex, OnceLock};

use cudarc::driver::sys::{CUdevice_attribute, CUfunction_attribute};
use cudarc::driver::{self, CudaContext, CudaFunction};
use cudarc::{cublas, nvrtc};
use lanes::Lanes;

pub(super) use lanes::two_lanes_are_asked_for;
pub(super) use launch::{Arg, Grid, Recording, THREADS};
pub(super) use memory::{Memory, Numbers, free_memory, number_bytes};
pub(super) use product::{Matrix, Product};

use super::programs::{
    COMPACT_PROGRAMS, HALVES_PROGRAMS, HOPPER_PROGRAMS, NARROW_PROGRAMS, PROGRAMS, Program, SCRATCHPAD_PROGRAMS,
    TENSOR_PROGRAMS, compile,
};
use super::shape::Dims;
use crate::{EnsembleError, Precision};

/// How many halves stand for a number in the kernels on tensor cores (tensor.cu): one has TF32's digits, two have nearly f32's.
fn halves_a_factor(precision: Precision) -> Option<usize> {
    match precision {
        Precision::Tf32 => Some(1),
        Precision::F32 => Some(2),
        Precision::F64 => None,
    }
}

/// Widths beyond this need more shared memory than every GPU has: norm1_backward keeps 24 numbers a column in 48 KiB.
pub(super) fn largest_width(precision: Precision) -> usize {
    (48 << 10) / (24 * number_bytes(precision))
}

/// The first GPU, with the kernels compiled for one shape.
pub(super) struct Cuda {
    lanes: Lanes,
    kernels: HashMap<&'static str, CudaFunction>,
    precision: Precision,
    /// Nothing where the kernels on tensor cores are not for this GPU, shape and precision.
    tensor_kernels: Option<TensorKernels>,
    /// Bytes of shared memory that a block may have.
    most_shared: usize,
    multiprocessors: usize,
    name: String,
    /// Work asked for so far, to say how near a step comes to what the GPU can do.
    flops: Cell<f64>,
    bytes: Cell<f64>,
}

/// What kernels on tensor cores need.
#[derive(Clone, Copy)]
struct TensorKernels {
    /// Halves that stand for a number: PARTS in tensor.cu.
    parts: usize,
    /// Whether those of last_compact.cu are among them, and mixing_backward.
    compact: bool,
    hopper: bool,
    /// Whether layer 1 may keep halves for the way back.
    keeps_halves: bool,
}

/// Kernels that need more shared memory than a kernel has without asking, and the bytes of it that they have beside.
const LARGE_KERNELS: [(&str, i32); 18] = [
    ("attend_last_backward", 0),
    ("prepare", 1024),
    ("mixing_backward", 1024),
    ("first_layer", 0),
    ("first_layer_kept", 0),
    ("first_layer_compact", 0),
    ("first_layer_halves", 0),
    ("feed_forward_backward", 0),
    ("feed_forward_backward_halves", 0),
    ("compact_queries", 4096),
    ("compact_top", 4096),
    ("attend_rows", 0),
    ("attend_rows_backward", 0),
    ("read_out_backward", 4096),
    ("norm_rows_backward", 0),
    ("norm_fed_forward_backward", 16384),
    ("norm_attended_backward", 16384),
    ("project_rows_backward", 16384),
];

// SAFETY: one engine uses it at a time, from whatever thread holds the engine; the cells are only counters of that engine.
unsafe impl Send for Cuda {}

/// The first GPU; a clear error where there is none.
fn context() -> Result<Arc<CudaContext>, EnsembleError> {
    if cfg!(all(target_os = "linux", target_feature = "crt-static")) {
        return Err(unusable(
            "this program is static and cannot load NVIDIA's libraries; the one of `pip install pudica`, or a build of your own, can",
        ));
    }
    // cudarc panics when a library is missing, so ask first.
    // SAFETY: only tries to open the libraries.
    let (driver, compiler, products) =
        unsafe { (driver::sys::is_culib_present(), nvrtc::sys::is_culib_present(), cublas::sys::is_culib_present()) };
    if !driver {
        return Err(unusable("there is no NVIDIA driver on this machine (libcuda was not found); use --device cpu"));
    }
    if !compiler || !products {
        let missing = if compiler { "cuBLAS" } else { "NVRTC" };
        return Err(unusable(format!(
            "{missing} was not found; install the CUDA toolkit, or put the folder of a PyTorch's nvidia/*/lib on LD_LIBRARY_PATH"
        )));
    }
    let context = CudaContext::new(0).map_err(|e| unusable(format!("no usable GPU ({e}); use --device cpu")))?;
    let (major, minor) = context.compute_capability().map_err(failed)?;
    // CUDA 13 compiles for no older one.
    if (major, minor) < (7, 5) {
        return Err(unusable(format!(
            "the GPU has compute capability {major}.{minor}, and 7.5 is the least; use --device cpu"
        )));
    }
    Ok(context)
}

impl Cuda {
    /// The GPU with kernels for this shape, and for scratchpads if that is what it is of: compiled once in a process for each shape but its
    /// length.
    pub(super) fn open(dims: &Dims, precision: Precision, scratchpad: bool) -> Result<Arc<Mutex<Self>>, EnsembleError> {
        type Known = Mutex<HashMap<(usize, usize, usize, [bool; 2], Precision), Arc<Mutex<Cuda>>>>;
        static KNOWN: OnceLock<Known> = OnceLock::new();
        let mut known = KNOWN.get_or_init(Known::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let key = (dims.d, dims.heads, dims.ff, [dims.concat, scratchpad], precision);
        if let Some(cuda) = known.get(&key) {
            return Ok(cuda.clone());
        }
        let cuda = Arc::new(Mutex::new(Self::new(dims, precision, scratchpad)?));
        known.insert(key, cuda.clone());
        Ok(cuda)
    }

    fn new(dims: &Dims, precision: Precision, scratchpad: bool) -> Result<Self, EnsembleError> {
        let context = context()?;
        let (major, minor) = context.compute_capability().map_err(failed)?;
        // With Hopper's own instructions, which wgmma is one of.
        let own = if (major, minor) == (9, 0) { "a" } else { "" };
        let mut options = vec![format!("--gpu-architecture=sm_{major}{minor}{own}"), "--std=c++17".into()];
        let Dims { d, heads, ff, concat, .. } = *dims;
        options.extend([
            format!("-DD={d}"),
            format!("-DHEADS={heads}"),
            format!("-DFF={ff}"),
            format!("-DCONCAT={}", u8::from(concat)),
            format!("-DNUMBER={}", if precision == Precision::F64 { "double" } else { "float" }),
        ]);
        let halves = halves_a_factor(precision);
        options.extend(halves.map(|parts| format!("-DPARTS={parts}")));
        let on_tensor_cores = halves.is_some() && d == 128 && ff == 128 && major >= 8;
        let mut programs: Vec<&Program> = PROGRAMS.iter().collect();
        programs.extend(NARROW_PROGRAMS.iter().filter(|_| d * heads <= 16));
        programs.extend(TENSOR_PROGRAMS.iter().filter(|_| on_tensor_cores));
        let compact = on_tensor_cores && halves == Some(1) && heads <= 2;
        programs.extend(COMPACT_PROGRAMS.iter().filter(|_| compact));
        let hopper = on_tensor_cores && own == "a" && heads == 2;
        programs.extend(HOPPER_PROGRAMS.iter().filter(|_| hopper));
        let keeps_halves = compact && own == "a";
        programs.extend(HALVES_PROGRAMS.iter().filter(|_| keeps_halves));
        if scratchpad && major < 8 {
            return Err(unusable(format!(
                "scratchpads need compute capability 8.0, and the GPU has {major}.{minor}; use --device cpu"
            )));
        }
        programs.extend(SCRATCHPAD_PROGRAMS.iter().filter(|_| scratchpad));
        let compiled = compile(&programs, &options)
            .map_err(|problem| unusable(format!("its kernels do not compile: {problem}")))?;
        let mut kernels = HashMap::new();
        for (program, code) in programs.into_iter().zip(compiled) {
            let module = context.load_module(code).map_err(failed)?;
            for name in program.kernels {
                kernels.insert(*name, module.load_function(name).map_err(failed)?);
            }
        }
        let most = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let most = context.attribute(most).map_err(failed)?;
        let multiprocessors = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let multiprocessors = context.attribute(multiprocessors).map_err(failed)? as usize;
        // Kernels that have some of their own get what is left.
        for (name, own) in LARGE_KERNELS {
            if let Some(kernel) = kernels.get(name) {
                let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                kernel.set_attribute(attribute, most - own).map_err(failed)?;
            }
        }
        let tensor_kernels =
            halves.filter(|_| on_tensor_cores).map(|parts| TensorKernels { parts, compact, hopper, keeps_halves });

        let lanes = Lanes::new(&context)?;
        let name = format!("cuda ({}, {})", context.name().map_err(failed)?, precision.name());
        let (flops, bytes) = (Cell::new(0.0), Cell::new(0.0));
        let most_shared = most as usize;
        Ok(Self { lanes, kernels, precision, tensor_kernels, most_shared, multiprocessors, name, flops, bytes })
    }

    /// The shared memory of a block of a kernel on tensor cores that keeps this many factors and floats there; nothing where there is no
    /// such kernel or it cannot have as much.
    pub(super) fn tensor_memory(&self, factors: usize, floats: usize) -> Option<u32> {
        let TensorKernels { parts, .. } = self.tensor_kernels?;
        let bytes = 2 * parts * factors + size_of::<f32>() * floats;
        (bytes <= self.most_shared).then_some(bytes as u32)
    }

    /// Bytes of shared memory that a block may have.
    pub(super) fn most_shared(&self) -> usize {
        self.most_shared
    }

    /// Blocks that run at once where a multiprocessor has room for one.
    pub(super) fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    /// Whether the kernels of last_compact.cu can be used.
    pub(super) fn is_compact(&self) -> bool {
        self.tensor_kernels.is_some_and(|kernels| kernels.compact)
    }

    /// Whether mixing_backward can be used.
    pub(super) fn is_hopper(&self) -> bool {
        self.tensor_kernels.is_some_and(|kernels| kernels.hopper)
    }

    /// Whether the kernels can be used that keep halves for the way back.
    pub(super) fn keeps_halves(&self) -> bool {
        self.tensor_kernels.is_some_and(|kernels| kernels.keeps_halves)
    }

    /// How many halves stand for a number in the kernels on tensor cores.
    pub(super) fn halves_a_factor(&self) -> usize {
        self.tensor_kernels.map_or(0, |kernels| kernels.parts)
    }

    /// Operations of products that a kernel does itself, for the record.
    pub(super) fn count_flops(&self, flops: f64) {
        self.flops.set(self.flops.get() + flops);
    }

    /// Note that this many numbers are read or written.
    fn count_numbers(&self, numbers: f64) {
        self.bytes.set(self.bytes.get() + numbers * number_bytes(self.precision) as f64);
    }

    /// For the record.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Make the GPU this thread's.
    pub(super) fn bind(&self) -> Result<(), EnsembleError> {
        self.lanes.main().context().bind_to_thread().map_err(failed)
    }

    /// Wait until everything asked for is done.
    pub(super) fn finish(&self) -> Result<(), EnsembleError> {
        self.lanes.main().synchronize().map_err(failed)
    }
}

pub(super) fn unusable(problem: impl Into<String>) -> EnsembleError {
    EnsembleError::Device { device: "cuda".into(), problem: problem.into() }
}

fn failed(error: impl Display) -> EnsembleError {
    unusable(format!("the GPU failed: {error}"))
}
