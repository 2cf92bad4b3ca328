//! Kernels launched, one by one or recorded.

use std::ffi::c_void;

use cudarc::driver::sys::{CUgraphInstantiate_flags, CUstreamCaptureMode_enum};
use cudarc::driver::{CudaGraph, result};

use super::{Cuda, failed, unusable};
use crate::EnsembleError;

/// An argument of a kernel.
pub(in crate::gpu) enum Arg {
    Pointer(u64),
    Long(u64),
    Int(i32),
    Float(f32),
    Double(f64),
}

/// How a kernel is spread out.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Grid {
    pub(in crate::gpu) blocks: (u32, u32, u32),
    pub(in crate::gpu) threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub(in crate::gpu) shared: u32,
    /// Numbers read and written in the large arrays, for the record.
    pub(in crate::gpu) numbers: f64,
}

/// Threads of a block, where a kernel does not say otherwise.
pub(in crate::gpu) const THREADS: usize = 256;

impl Grid {
    /// A thread for each of `size` elements of each replica, which are read and written so many times.
    pub(in crate::gpu) fn elements(size: usize, replicas: usize, passes: f64) -> Self {
        let blocks = (size.div_ceil(THREADS) as u32, replicas as u32, 1);
        Self { blocks, threads: THREADS as u32, shared: 0, numbers: passes * (size * replicas) as f64 }
    }
}

impl Cuda {
    /// Launch a kernel. Its arguments must be those of its definition, in order, which nothing checks here; tests/kernels/arguments.py does.
    pub(in crate::gpu) fn launch(
        &self,
        kernel: &'static str,
        grid: Grid,
        arguments: &[Arg],
    ) -> Result<(), EnsembleError> {
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
                self.lanes.stream().cu_stream(),
                &mut pointers,
            )
        }
        .map_err(|e| unusable(format!("kernel {kernel} could not be launched: {e}")))
    }

    /// Record what `work` launches, to be repeated as one.
    pub(in crate::gpu) fn capture(
        &self,
        work: impl FnOnce() -> Result<(), EnsembleError>,
    ) -> Result<Recording, EnsembleError> {
        let before = (self.flops.get(), self.bytes.get());
        self.lanes.main().begin_capture(CUstreamCaptureMode_enum::CU_STREAM_CAPTURE_MODE_RELAXED).map_err(failed)?;
        let made = work();
        let graph = self.lanes.main().end_capture(CUgraphInstantiate_flags(0)).map_err(failed);
        made?;
        let graph = graph?.ok_or_else(|| unusable("a training step could not be recorded"))?;
        Ok(Recording { graph, flops: self.flops.get() - before.0, bytes: self.bytes.get() - before.1 })
    }
}

/// Launches recorded once and repeated as one, with the work they ask for.
pub(in crate::gpu) struct Recording {
    graph: CudaGraph,
    pub(in crate::gpu) flops: f64,
    pub(in crate::gpu) bytes: f64,
}

// SAFETY: used by one engine, which is used by one thread at a time.
unsafe impl Send for Recording {}

impl Recording {
    pub(in crate::gpu) fn repeat(&self) -> Result<(), EnsembleError> {
        self.graph.launch().map_err(failed)
    }
}
