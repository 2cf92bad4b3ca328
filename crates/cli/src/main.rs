//! The `pudica` command.

use std::process::ExitCode;

// Networks allocate and free large tensors all the time; the system's allocator is twice slower at it.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ExitCode::from(pudica::main_with(std::env::args_os().collect()))
}
