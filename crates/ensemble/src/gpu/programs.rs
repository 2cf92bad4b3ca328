//! The kernels: which files make a program, which kernels it has, and how programs are compiled, all at once.

use std::ffi::{CStr, CString};
use std::thread;

use cudarc::nvrtc::{Ptx, result, sys};

/// Some kernels that are compiled together. Programs are independent of each other, so that each takes a core of its own.
pub(super) struct Program {
    sources: &'static [&'static str],
    pub(super) kernels: &'static [&'static str],
}

/// A program from files of `kernels/`, in this order. `tests/kernels` reads them here.
macro_rules! program {
    ([$($file:literal),*], [$($kernel:literal),* $(,)?]) => {
        Program { sources: &[$(include_str!(concat!("kernels/", $file, ".cu"))),*], kernels: &[$($kernel),*] }
    };
}

/// What every network needs.
pub(super) static PROGRAMS: &[Program] = &[
    program!(["common", "draw"], ["draw_bits", "pack", "count_cube", "count_set", "label", "shake"]),
    program!(
        ["common", "tables"],
        ["embed", "embed_backward", "exponents", "attend", "attend_short", "attend_backward", "gather_scores"]
    ),
    program!(
        ["common", "layer_norm", "norm"],
        [
            "norm_embedded",
            "norm_residual",
            "norm1_backward",
            "token_sums",
            "gather_tokens",
            "norm2_backward",
            "pair_gradients",
            "norm_factors",
        ]
    ),
    program!(
        ["common", "instructions", "layer_norm", "last_attention", "last"],
        [
            "scale_shift",
            "attend_last",
            "attend_last_backward",
            "attend_last_direct",
            "head",
            "loss",
            "head_backward",
            "head_gradients",
            "below_gradients",
        ]
    ),
    program!(
        ["common", "feed_forward", "middle", "optimiser"],
        [
            "fold",
            "unfold",
            "bias_relu",
            "add_bias",
            "column_sums",
            "add_parts",
            "softmax",
            "softmax_backward",
            "step_scalars",
            "widen",
            "forget",
            "adamw",
            "next_step",
            "score",
        ]
    ),
];

/// What only narrow networks have.
pub(super) static NARROW_PROGRAMS: &[Program] =
    &[program!(["common", "narrow"], ["attend_narrow", "attend_narrow_backward"])];

/// What computes on tensor cores, for the paper's width.
pub(super) static TENSOR_PROGRAMS: &[Program] = &[
    program!(["common", "instructions", "tensor", "prepare"], ["prepare", "centre_values", "residuals"]),
    program!(
        ["common", "instructions", "tensor", "block", "weights", "first_layer", "first_layer_kept"],
        ["first_layer_kept"]
    ),
    program!(
        ["common", "instructions", "tensor", "block", "weights", "first_layer", "first_layer_plain"],
        ["first_layer"]
    ),
    program!(
        ["common", "instructions", "tensor", "block_backward", "feed_forward_backward"],
        ["feed_forward_backward"]
    ),
];

/// What keeps layer 1's norms and hidden numbers as halves for the way back, and reads them: for two layers in TF32 on Hopper.
pub(super) static HALVES_PROGRAMS: &[Program] = &[
    program!(
        ["common", "instructions", "tensor", "block", "weights", "first_layer", "first_layer_halves"],
        ["first_layer_halves"]
    ),
    program!(
        ["common", "instructions", "tensor", "block_backward", "feed_forward_backward_halves"],
        ["feed_forward_backward_halves", "add_compact_parts"]
    ),
    program!(
        ["common", "instructions", "tensor", "layer_norm", "last_halves", "last_attention"],
        ["scale_shift_halves", "attend_last_halves", "attend_last_backward_halves", "attend_last_direct_halves"]
    ),
];

/// What multiplies with both factors in shared memory, as only Hopper can, for two heads.
pub(super) static HOPPER_PROGRAMS: &[Program] = &[program!(
    ["common", "instructions", "tensor", "weights", "mixing_backward"],
    ["mixing_backward", "gather_values"]
)];

/// What computes a whole last layer of one or two heads in TF32 where nothing is kept.
pub(super) static COMPACT_PROGRAMS: &[Program] = &[
    program!(
        ["common", "instructions", "tensor", "block", "weights", "first_layer", "first_layer_compact"],
        ["first_layer_compact"]
    ),
    program!(
        ["common", "instructions", "tensor", "block", "last_compact"],
        ["compact_queries", "compact_attention", "compact_top"]
    ),
];

/// What the scratchpad's encoder-decoder needs beside [`PROGRAMS`].
pub(super) static SCRATCHPAD_PROGRAMS: &[Program] = &[
    program!(
        ["common", "instructions", "scratchpad", "scratchpad_rows"],
        [
            "prefix_parities",
            "embed_rows",
            "project_rows",
            "norm_attended",
            "norm_fed_forward",
            "norm_rows",
            "read_out",
            "read_own_outputs",
        ]
    ),
    program!(
        ["common", "instructions", "scratchpad", "scratchpad_gradients", "scratchpad_rows_backward"],
        [
            "read_out_backward",
            "note_loss",
            "norm_rows_backward",
            "norm_fed_forward_backward",
            "norm_attended_backward",
            "project_rows_backward",
            "embed_rows_backward",
            "token_gradients",
            "gather_gradients",
        ]
    ),
    program!(["common", "instructions", "scratchpad", "scratchpad_attention", "scratchpad_attend"], ["attend_rows"]),
    program!(
        ["common", "instructions", "scratchpad", "scratchpad_attention", "scratchpad_attend_backward"],
        ["attend_rows_backward"]
    ),
];

/// The programs as machine code, each compiled by a thread of its own.
pub(super) fn compile(programs: &[&Program], options: &[String]) -> Result<Vec<Ptx>, String> {
    thread::scope(|scope| {
        let threads: Vec<_> =
            programs.iter().map(|program| scope.spawn(|| machine_code(&program.sources.concat(), options))).collect();
        let compiled = |thread: thread::ScopedJoinHandle<'_, Result<Vec<u8>, String>>| {
            let code = thread.join().map_err(|_| "the compiler panicked".to_string())??;
            Ok(Ptx::from_binary(code))
        };
        threads.into_iter().map(compiled).collect()
    })
}

/// What NVRTC makes of a source for a real architecture (`sm_90a`), so that the driver has nothing left to compile.
fn machine_code(source: &str, options: &[String]) -> Result<Vec<u8>, String> {
    let source = CString::new(source).map_err(|_| "a source has a NUL".to_string())?;
    let program = result::create_program(&source, None).map_err(|e| format!("{e:?}"))?;
    // SAFETY: the program was just created, its source outlives it, and it is destroyed once, at the end.
    unsafe {
        let code = result::compile_program(program, options)
            .map_err(|e| format!("{e:?}: {}", log(program)))
            .and_then(|()| code_of(program).map_err(|e| format!("{e:?}")));
        result::destroy_program(program).map_err(|e| format!("{e:?}"))?;
        code
    }
}

/// The machine code of a compiled program.
///
/// # Safety
/// The program exists.
unsafe fn code_of(program: sys::nvrtcProgram) -> Result<Vec<u8>, result::NvrtcError> {
    // SAFETY: the caller's; NVRTC writes as many bytes as it says.
    unsafe {
        let mut size = 0;
        sys::nvrtcGetCUBINSize(program, &mut size).result()?;
        let mut code = vec![0u8; size];
        sys::nvrtcGetCUBIN(program, code.as_mut_ptr().cast()).result()?;
        Ok(code)
    }
}

/// What the compiler says of a program, nothing where it does not.
///
/// # Safety
/// The program exists.
unsafe fn log(program: sys::nvrtcProgram) -> String {
    // SAFETY: the caller's; the log ends with a NUL.
    unsafe {
        result::get_program_log(program)
            .map(|text| CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned())
            .unwrap_or_default()
    }
}
