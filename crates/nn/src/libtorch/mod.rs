//! What the crate tch leaves out of LibTorch, from `extras.cpp`: recorded GPU work, optimisers as one kernel, products in TF32.

use std::ffi::{CStr, c_char, c_void};
use std::ptr::null_mut;

use tch::Tensor;
use torch_sys::C_tensor;

use crate::NnError;
use crate::classifier::Optimiser;

unsafe extern "C" {
    fn pudica_free_text(text: *mut c_char);
    fn pudica_products_in_tf32(rounded: bool) -> *mut c_char;
    fn pudica_sgd(
        weights: *mut C_tensor,
        gradient: *mut C_tensor,
        velocity: *mut C_tensor,
        lr: *mut C_tensor,
        momentum: f64,
        weight_decay: f64,
    ) -> *mut c_char;
    fn pudica_adam(
        weights: *mut C_tensor,
        gradient: *mut C_tensor,
        first: *mut C_tensor,
        second: *mut C_tensor,
        lr: *mut C_tensor,
        step: *mut C_tensor,
        beta1: f64,
        beta2: f64,
        eps: f64,
        weight_decay: f64,
        decoupled: bool,
    ) -> *mut c_char;
    fn pudica_graph_begin(made: *mut *mut c_void, shared: *mut c_void) -> *mut c_char;
    fn pudica_graph_end(graph: *mut c_void) -> *mut c_char;
    fn pudica_graph_replay(graph: *mut c_void) -> *mut c_char;
    fn pudica_graph_free(graph: *mut c_void);
}

/// The error that a function of `extras.cpp` gave, if it did.
fn checked(problem: *mut c_char) -> Result<(), NnError> {
    if problem.is_null() {
        return Ok(());
    }
    // SAFETY: it is a string that ends with 0, ours until it is freed, which happens once.
    let text = unsafe { CStr::from_ptr(problem) }.to_string_lossy().into_owned();
    unsafe { pudica_free_text(problem) };
    // The first line says what.
    Err(NnError::Computation(text.lines().next().unwrap_or_default().to_string()))
}

/// Whether factors of f32 matrix products on a GPU are rounded to TF32, from now on in the whole process.
pub(crate) fn products_in_tf32(rounded: bool) -> Result<(), NnError> {
    // SAFETY: it takes no memory of ours.
    checked(unsafe { pudica_products_in_tf32(rounded) })
}

/// Moves `weights` \[parameters\] along a gradient, in place; `lr` and `step` have one number each.
pub(crate) fn update(
    optimiser: Optimiser,
    weights: &Tensor,
    gradient: &Tensor,
    memory: &[Tensor],
    [lr, step]: [&Tensor; 2],
) -> Result<(), NnError> {
    let pointer = |tensor: &Tensor| tensor.as_ptr().cast_mut();
    // SAFETY: all pointers are those of tensors that live through the call; in place is what is asked for.
    checked(match (optimiser, memory) {
        (Optimiser::Sgd { momentum, weight_decay }, _) => {
            let velocity = memory.first().map_or(null_mut(), pointer);
            unsafe { pudica_sgd(pointer(weights), pointer(gradient), velocity, pointer(lr), momentum, weight_decay) }
        }
        (Optimiser::Adam { betas: (beta1, beta2), eps, weight_decay, decoupled }, [first, second]) => unsafe {
            pudica_adam(
                pointer(weights),
                pointer(gradient),
                pointer(first),
                pointer(second),
                pointer(lr),
                pointer(step),
                beta1,
                beta2,
                eps,
                weight_decay,
                decoupled,
            )
        },
        // Memory is made by `Optimiser::memories`, so Adam always has its two.
        (Optimiser::Adam { .. }, _) => null_mut(),
    })
}

/// GPU work that was recorded once and can be done again as often as wanted, on the same memory: a CUDA graph. The host then sends one
/// order instead of one for each kernel.
pub(crate) struct Recording(*mut c_void);

// SAFETY: a CUDA graph belongs to no thread; only the thread that owns it uses it.
unsafe impl Send for Recording {}

impl Recording {
    /// Records what `work` sends to the first GPU, without doing it. `beside` is a recording whose memory it may use, as the two are never at
    /// work at once. An error where something in `work` cannot be recorded; then nothing was done.
    pub(crate) fn of<T>(
        beside: Option<&Recording>,
        work: impl FnOnce() -> Result<T, NnError>,
    ) -> Result<(Self, T), NnError> {
        let mut graph = null_mut();
        // SAFETY: `graph` is written to, and the other recording lives through the call.
        checked(unsafe { pudica_graph_begin(&mut graph, beside.map_or(null_mut(), |beside| beside.0)) })?;
        let recording = Self(graph);
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        // SAFETY: it is being recorded; recording ends here whatever happened in between.
        let ended = checked(unsafe { pudica_graph_end(recording.0) });
        let done = done.unwrap_or_else(|_| Err(NnError::Computation("LibTorch cannot record a step".into())))?;
        ended.map(|()| (recording, done))
    }

    /// Does what was recorded, without waiting for it.
    pub(crate) fn replay(&self) -> Result<(), NnError> {
        // SAFETY: it was recorded, and lives.
        checked(unsafe { pudica_graph_replay(self.0) })
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // SAFETY: it was made by `pudica_graph_begin` and is freed once.
        unsafe { pudica_graph_free(self.0) }
    }
}
