//! Where work is asked for: one thing after the other, or for a while beside it.

use std::cell::Cell;
use std::ffi::c_void;
use std::sync::Arc;

use cudarc::cublas::{CudaBlas, sys as blas};
use cudarc::driver::{CudaContext, CudaEvent, CudaSlice, CudaStream, DevicePtr};

use super::{Cuda, failed};
use crate::EnsembleError;

/// Scratch memory for cuBLAS, given to it once so that it never allocates while a step is captured.
const BLAS_WORKSPACE: usize = 64 << 20;

/// Whether PUDICA_TWO_LANES=1 asks for a second lane. It is not the rule until it has been timed on a GPU.
pub(in crate::gpu) fn two_lanes_are_asked_for() -> bool {
    std::env::var("PUDICA_TWO_LANES").is_ok_and(|value| value == "1")
}

/// A stream with products of its own.
struct Lane {
    stream: Arc<CudaStream>,
    blas: CudaBlas,
    _workspace: CudaSlice<u8>,
}

impl Lane {
    fn new(stream: Arc<CudaStream>) -> Result<Self, EnsembleError> {
        let blas = CudaBlas::new(stream.clone()).map_err(failed)?;
        let workspace: CudaSlice<u8> = stream.alloc_zeros(BLAS_WORKSPACE).map_err(failed)?;
        // SAFETY: the workspace lives as long as the handle.
        unsafe {
            let pointer = workspace.device_ptr(&stream).0 as *mut c_void;
            blas::cublasSetWorkspace_v2(*blas.handle(), pointer, BLAS_WORKSPACE).result().map_err(failed)?;
        }
        Ok(Self { stream, blas, _workspace: workspace })
    }
}

/// The lane of all work, and one beside it.
pub(super) struct Lanes {
    main: Lane,
    side: Option<Side>,
}

struct Side {
    lane: Lane,
    /// Where it leaves the main lane, and where it comes back.
    leaves: CudaEvent,
    returns: CudaEvent,
    /// Whether work is being asked for there, and whether the main lane has not yet waited for some of it.
    asked: Cell<bool>,
    ahead: Cell<bool>,
}

impl Lanes {
    pub(super) fn new(context: &Arc<CudaContext>) -> Result<Self, EnsembleError> {
        // SAFETY: the work of an engine is on one stream, in order, but for that between `beside` and `meet`, which wait for each other.
        unsafe { context.disable_event_tracking() };
        let main = Lane::new(context.new_stream().map_err(failed)?)?;
        let side = match two_lanes_are_asked_for() {
            true => Some(Side {
                lane: Lane::new(context.new_stream().map_err(failed)?)?,
                leaves: context.new_event(None).map_err(failed)?,
                returns: context.new_event(None).map_err(failed)?,
                asked: Cell::new(false),
                ahead: Cell::new(false),
            }),
            false => None,
        };
        main.stream.synchronize().map_err(failed)?;
        Ok(Self { main, side })
    }

    /// The stream of memory and recordings.
    pub(super) fn main(&self) -> &Arc<CudaStream> {
        &self.main.stream
    }

    fn now(&self) -> &Lane {
        match &self.side {
            Some(side) if side.asked.get() => &side.lane,
            _ => &self.main,
        }
    }

    /// The stream that work is now asked for on.
    pub(super) fn stream(&self) -> &CudaStream {
        &self.now().stream
    }

    /// The products that are now asked for.
    pub(super) fn blas(&self) -> &CudaBlas {
        &self.now().blas
    }
}

impl Cuda {
    /// Whether work can be beside other work.
    pub(in crate::gpu) fn has_two_lanes(&self) -> bool {
        self.lanes.side.is_some()
    }

    /// Whether work is now asked for beside other work.
    pub(in crate::gpu) fn is_beside(&self) -> bool {
        self.lanes.side.as_ref().is_some_and(|side| side.asked.get())
    }

    /// Lets what `work` asks for run beside all that is asked for after it, until `meet`: what it reads must not be written until then, and
    /// what it writes must not be used. What `beside` was called with is done in its order.
    pub(in crate::gpu) fn beside(&self, work: impl FnOnce() -> Result<(), EnsembleError>) -> Result<(), EnsembleError> {
        let Some(side) = &self.lanes.side else { return work() };
        side.leaves.record(&self.lanes.main.stream).map_err(failed)?;
        side.lane.stream.wait(&side.leaves).map_err(failed)?;
        side.ahead.set(true);
        side.asked.set(true);
        let done = work();
        side.asked.set(false);
        done
    }

    /// Waits for all that was asked for beside other work.
    pub(in crate::gpu) fn meet(&self) -> Result<(), EnsembleError> {
        match &self.lanes.side {
            Some(side) if side.ahead.replace(false) => {
                side.returns.record(&side.lane.stream).map_err(failed)?;
                self.lanes.main.stream.wait(&side.returns).map_err(failed)
            }
            _ => Ok(()),
        }
    }
}
