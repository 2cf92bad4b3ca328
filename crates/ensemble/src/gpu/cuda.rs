//! The GPU: kernels compiled at start, launches, matrix products, memory. Everything unsafe about CUDA is here and in `programs`.

use std::cell::Cell;
use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt::Display;
use std::sync::{Arc, Mutex, OnceLock};

use cudarc::cublas::{self, CudaBlas, sys as blas};
use cudarc::driver::sys::{
    CUdevice_attribute, CUfunction_attribute, CUgraphInstantiate_flags, CUstreamCaptureMode_enum,
};
use cudarc::driver::{
    self, CudaContext, CudaFunction, CudaGraph, CudaSlice, CudaStream, DevicePtr, DeviceRepr, ValidAsZeroBits, result,
};
use cudarc::nvrtc;

use super::programs::{
    COMPACT_PROGRAMS, HALVES_PROGRAMS, HOPPER_PROGRAMS, NARROW_PROGRAMS, PROGRAMS, Program, SCRATCHPAD_PROGRAMS,
    TENSOR_PROGRAMS, compile,
};
use super::shape::Dims;
use crate::{EnsembleError, Precision};

/// Bytes of a number that networks of this precision are computed in.
pub(super) fn number_bytes(precision: Precision) -> usize {
    match precision {
        Precision::F32 | Precision::Tf32 => size_of::<f32>(),
        Precision::F64 => size_of::<f64>(),
    }
}

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

/// Scratch memory for cuBLAS, given to it once so that it never allocates while a step is captured.
const BLAS_WORKSPACE: usize = 64 << 20;

/// The first GPU, with the kernels compiled for one shape.
pub(super) struct Cuda {
    stream: Arc<CudaStream>,
    blas: CudaBlas,
    _workspace: CudaSlice<u8>,
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
    if major < 7 {
        return Err(unusable(format!(
            "the GPU has compute capability {major}.{minor}, and 7.0 is the least; use --device cpu"
        )));
    }
    Ok(context)
}

/// Bytes of GPU memory that are free.
pub(super) fn free_memory() -> Result<usize, EnsembleError> {
    Ok(context()?.mem_get_info().map_err(failed)?.0)
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

        // SAFETY: all work of an engine is on one stream, in order, so no events are needed between its parts.
        unsafe { context.disable_event_tracking() };
        let stream = context.new_stream().map_err(failed)?;
        let blas = CudaBlas::new(stream.clone()).map_err(failed)?;
        let workspace: CudaSlice<u8> = stream.alloc_zeros(BLAS_WORKSPACE).map_err(failed)?;
        // SAFETY: the workspace lives as long as the handle.
        unsafe {
            let pointer = workspace.device_ptr(&stream).0 as *mut c_void;
            blas::cublasSetWorkspace_v2(*blas.handle(), pointer, BLAS_WORKSPACE).result().map_err(failed)?;
        }
        let name = format!("cuda ({}, {})", context.name().map_err(failed)?, precision.name());
        let (flops, bytes) = (Cell::new(0.0), Cell::new(0.0));
        let most_shared = most as usize;
        Ok(Self {
            stream,
            blas,
            _workspace: workspace,
            kernels,
            precision,
            tensor_kernels,
            most_shared,
            multiprocessors,
            name,
            flops,
            bytes,
        })
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

    /// For the record.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Memory for `length` values, all zero.
    pub(super) fn zeros<T: DeviceRepr + ValidAsZeroBits>(&self, length: usize) -> Result<Memory<T>, EnsembleError> {
        let slice = self.stream.alloc_zeros::<T>(length.max(1)).map_err(|e| {
            let mebibytes = (length * size_of::<T>()) >> 20;
            unusable(format!(
                "{mebibytes} MiB of GPU memory could not be had ({e}); train fewer networks at once (--together)"
            ))
        })?;
        Ok(self.memory(slice))
    }

    /// Memory for `length` numbers that networks are computed in, all zero.
    pub(super) fn numbers(&self, length: usize) -> Result<Numbers, EnsembleError> {
        Ok(match self.precision {
            Precision::F32 | Precision::Tf32 => Numbers::Single(self.zeros(length)?),
            Precision::F64 => Numbers::Double(self.zeros(length)?),
        })
    }

    /// Whether networks are computed in numbers other than f32.
    pub(super) fn is_double(&self) -> bool {
        self.precision == Precision::F64
    }

    /// Bytes of `count` numbers that networks are computed in.
    pub(super) fn size_of(&self, count: usize) -> usize {
        count * number_bytes(self.precision)
    }

    /// Where the number lies that is `count` after the one at `pointer`.
    pub(super) fn after(&self, pointer: u64, count: usize) -> u64 {
        pointer + self.size_of(count) as u64
    }

    /// Note that this many numbers are read or written.
    fn count_numbers(&self, numbers: f64) {
        self.bytes.set(self.bytes.get() + numbers * number_bytes(self.precision) as f64);
    }

    /// Memory holding these values.
    pub(super) fn upload<T: DeviceRepr>(&self, values: &[T]) -> Result<Memory<T>, EnsembleError> {
        Ok(self.memory(self.stream.clone_htod(values).map_err(failed)?))
    }

    fn memory<T>(&self, slice: CudaSlice<T>) -> Memory<T> {
        let pointer = slice.device_ptr(&self.stream).0;
        Memory { slice, pointer }
    }

    /// Put values at the beginning of memory.
    pub(super) fn write<T: DeviceRepr>(&self, memory: &mut Memory<T>, values: &[T]) -> Result<(), EnsembleError> {
        self.stream.memcpy_htod(values, &mut memory.slice.slice_mut(..values.len())).map_err(failed)
    }

    /// The first `length` values of memory from `start` on.
    pub(super) fn read<T: DeviceRepr + Default + Clone>(
        &self,
        memory: &Memory<T>,
        start: usize,
        length: usize,
    ) -> Result<Vec<T>, EnsembleError> {
        let mut values = vec![T::default(); length];
        self.stream.memcpy_dtoh(&memory.slice.slice(start..start + length), &mut values).map_err(failed)?;
        self.stream.synchronize().map_err(failed)?;
        Ok(values)
    }

    /// Set memory to zero, in order with everything else.
    pub(super) fn clear<T>(&self, memory: &Memory<T>) -> Result<(), EnsembleError> {
        let bytes = memory.slice.len() * size_of::<T>();
        // SAFETY: the range is that of one allocation.
        unsafe { result::memset_d8_async(memory.pointer, 0, bytes, self.stream.cu_stream()) }.map_err(failed)
    }

    /// Copy the first `length` values.
    pub(super) fn copy<T>(&self, to: &Memory<T>, from: &Memory<T>, length: usize) -> Result<(), EnsembleError> {
        let bytes = length.min(to.slice.len()).min(from.slice.len()) * size_of::<T>();
        // SAFETY: both ranges lie within their allocations.
        unsafe { result::memcpy_dtod_async(to.pointer, from.pointer, bytes, self.stream.cu_stream()) }.map_err(failed)
    }

    /// The first `length` numbers, rounded to f32.
    pub(super) fn read_rounded(&self, numbers: &Numbers, length: usize) -> Result<Vec<f32>, EnsembleError> {
        match numbers {
            Numbers::Single(memory) => self.read(memory, 0, length),
            Numbers::Double(memory) => {
                Ok(self.read(memory, 0, length)?.into_iter().map(|value| value as f32).collect())
            }
        }
    }

    /// Copy the first `length` numbers.
    pub(super) fn copy_numbers(&self, to: &Numbers, from: &Numbers, length: usize) -> Result<(), EnsembleError> {
        match (to, from) {
            (Numbers::Single(to), Numbers::Single(from)) => self.copy(to, from, length),
            (Numbers::Double(to), Numbers::Double(from)) => self.copy(to, from, length),
            _ => Err(unusable("numbers of two precisions were mixed")),
        }
    }

    /// Make the GPU this thread's.
    pub(super) fn bind(&self) -> Result<(), EnsembleError> {
        self.stream.context().bind_to_thread().map_err(failed)
    }

    /// Wait until everything asked for is done.
    pub(super) fn finish(&self) -> Result<(), EnsembleError> {
        self.stream.synchronize().map_err(failed)
    }

    /// Launch a kernel. Its arguments must be those of its definition, in order, which nothing checks here; tests/kernels/arguments.py does.
    pub(super) fn launch(&self, kernel: &'static str, grid: Grid, arguments: &[Arg]) -> Result<(), EnsembleError> {
        let function = &self.kernels[kernel];
        let mut pointers: Vec<*mut c_void> = arguments
            .iter()
            .map(|argument| match argument {
                Arg::Pointer(value) | Arg::Long(value) => std::ptr::from_ref(value) as *mut c_void,
                Arg::Int(value) => std::ptr::from_ref(value) as *mut c_void,
                Arg::Float(value) => std::ptr::from_ref(value) as *mut c_void,
                Arg::Double(value) => std::ptr::from_ref(value) as *mut c_void,
            })
            .collect();
        let Grid { blocks, threads, shared, numbers } = grid;
        self.count_numbers(numbers);
        // SAFETY: the pointers are to arguments that live through the call; the memory they name lives as long as its engine.
        unsafe {
            result::launch_kernel(
                function.cu_function(),
                blocks,
                (threads, 1, 1),
                shared,
                self.stream.cu_stream(),
                &mut pointers,
            )
        }
        .map_err(|e| unusable(format!("kernel {kernel} could not be launched: {e}")))
    }

    /// C [m, n] = alpha A [m, k] B [k, n] + beta C, row-major, for each of `batch` triples.
    pub(super) fn product(&self, product: Product) -> Result<(), EnsembleError> {
        let Product { m, n, k, alpha, a, b, beta, c, batch, halves } = product;
        let each = (m * n) as f64 * if beta == 0.0 { 1.0 } else { 2.0 }
            + (m * k + k * n) as f64 * if halves { 0.5 } else { 1.0 };
        self.flops.set(self.flops.get() + 2.0 * (m * n * k * batch) as f64);
        self.count_numbers(each * batch as f64);
        let turned = |matrix: &Matrix| match matrix.transposed {
            true => blas::cublasOperation_t::CUBLAS_OP_T,
            false => blas::cublasOperation_t::CUBLAS_OP_N,
        };
        use blas::cublasComputeType_t::{CUBLAS_COMPUTE_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_COMPUTE_64F};
        use blas::cudaDataType::{CUDA_R_16F, CUDA_R_32F, CUDA_R_64F};
        let (number, compute) = match self.precision {
            Precision::F32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F),
            Precision::Tf32 => (CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32),
            Precision::F64 => (CUDA_R_64F, CUBLAS_COMPUTE_64F),
        };
        let (kind, compute) = if halves { (CUDA_R_16F, CUBLAS_COMPUTE_32F) } else { (number, compute) };
        // cuBLAS reads both factors in the type it computes in.
        let (doubles, singles) = ([alpha, beta], [alpha as f32, beta as f32]);
        let factor = |index: usize| match self.is_double() {
            true => std::ptr::from_ref(&doubles[index]) as *const c_void,
            false => std::ptr::from_ref(&singles[index]) as *const c_void,
        };
        let at = |matrix: &Matrix| self.after(matrix.pointer, matrix.offset) as *mut c_void;
        // cuBLAS counts columns first: it computes C^T = B^T A^T.
        // SAFETY: pointers and strides are those of live memory, by construction in forward.rs and backward.rs.
        unsafe {
            cublas::result::gemm_strided_batched_ex(
                *self.blas.handle(),
                turned(&b),
                turned(&a),
                n as i32,
                m as i32,
                k as i32,
                factor(0),
                at(&b),
                kind,
                b.row as i32,
                b.stride as i64,
                at(&a),
                kind,
                a.row as i32,
                a.stride as i64,
                factor(1),
                at(&c),
                number,
                c.row as i32,
                c.stride as i64,
                batch as i32,
                compute,
                blas::cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT,
            )
        }
        .map_err(failed)
    }

    /// Record what `work` launches, to be repeated as one.
    pub(super) fn capture(&self, work: impl FnOnce() -> Result<(), EnsembleError>) -> Result<Recording, EnsembleError> {
        let before = (self.flops.get(), self.bytes.get());
        self.stream.begin_capture(CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED).map_err(failed)?;
        let made = work();
        let graph = self.stream.end_capture(CUgraphInstantiate_flags(0)).map_err(failed);
        made?;
        let graph = graph?.ok_or_else(|| unusable("a training step could not be recorded"))?;
        Ok(Recording { graph, flops: self.flops.get() - before.0, bytes: self.bytes.get() - before.1 })
    }
}

/// Launches recorded once and repeated as one, with the work they ask for.
pub(super) struct Recording {
    graph: CudaGraph,
    pub(super) flops: f64,
    pub(super) bytes: f64,
}

// SAFETY: used by one engine, which is used by one thread at a time.
unsafe impl Send for Recording {}

impl Recording {
    pub(super) fn repeat(&self) -> Result<(), EnsembleError> {
        self.graph.launch().map_err(failed)
    }
}

/// GPU memory of `T`s.
pub(super) struct Memory<T> {
    slice: CudaSlice<T>,
    pointer: u64,
}

impl<T> Memory<T> {
    pub(super) fn pointer(&self) -> u64 {
        self.pointer
    }
}

/// GPU memory of the numbers that networks are computed in.
pub(super) enum Numbers {
    Single(Memory<f32>),
    Double(Memory<f64>),
}

impl Numbers {
    pub(super) fn pointer(&self) -> u64 {
        match self {
            Self::Single(memory) => memory.pointer,
            Self::Double(memory) => memory.pointer,
        }
    }
}

/// An argument of a kernel.
pub(super) enum Arg {
    Pointer(u64),
    Long(u64),
    Int(i32),
    Float(f32),
    Double(f64),
}

/// How a kernel is spread out.
#[derive(Clone, Copy)]
pub(super) struct Grid {
    pub(super) blocks: (u32, u32, u32),
    pub(super) threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub(super) shared: u32,
    /// Numbers read and written in the large arrays, for the record.
    pub(super) numbers: f64,
}

/// Threads of a block, where a kernel does not say otherwise.
pub(super) const THREADS: usize = 256;

impl Grid {
    /// A thread for each of `size` elements of each replica, which are read and written so many times.
    pub(super) fn elements(size: usize, replicas: usize, passes: f64) -> Self {
        let blocks = (size.div_ceil(THREADS) as u32, replicas as u32, 1);
        Self { blocks, threads: THREADS as u32, shared: 0, numbers: passes * (size * replicas) as f64 }
    }
}

/// A row-major matrix in GPU memory, one of several at equal distances.
#[derive(Clone, Copy)]
pub(super) struct Matrix {
    pub(super) pointer: u64,
    /// Numbers after `pointer` that it begins.
    pub(super) offset: usize,
    /// Numbers from one stored row to the next.
    pub(super) row: usize,
    /// Numbers from one matrix to the next.
    pub(super) stride: usize,
    /// Whether it is stored as its transpose.
    pub(super) transposed: bool,
}

impl Matrix {
    /// From `offset` numbers after `pointer`.
    pub(super) fn at(pointer: u64, offset: usize, row: usize, stride: usize) -> Self {
        Self { pointer, offset, row, stride, transposed: false }
    }

    pub(super) fn transposed(self) -> Self {
        Self { transposed: true, ..self }
    }
}

/// C [m, n] = alpha A [m, k] B [k, n] + beta C
pub(super) struct Product {
    pub(super) m: usize,
    pub(super) n: usize,
    pub(super) k: usize,
    pub(super) alpha: f64,
    pub(super) a: Matrix,
    pub(super) b: Matrix,
    pub(super) beta: f64,
    pub(super) c: Matrix,
    pub(super) batch: usize,
    /// Whether A and B, which then have no offset, are halves; C is not.
    pub(super) halves: bool,
}

pub(super) fn unusable(problem: impl Into<String>) -> EnsembleError {
    EnsembleError::Device { device: "cuda".into(), problem: problem.into() }
}

fn failed(error: impl Display) -> EnsembleError {
    unusable(format!("the GPU failed: {error}"))
}
