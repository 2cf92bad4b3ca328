//! The ensemble on one CUDA GPU.
//!
//! `cuda` is the GPU, `programs` its kernels; `shape` the sizes and places of parameters; `buffers` what is kept in its memory; `forward` and
//! `backward` the passes, attention in a file of its own, written as launches of the kernels in `kernels/` and matrix products by cuBLAS;
//! `strings` and `labels` what the networks read; `engine` the training and `measure` the measuring. A training step is recorded once as a
//! CUDA graph and repeated.

mod backward;
mod buffers;
mod cuda;
mod engine;
mod forward;
mod labels;
mod measure;
mod programs;
mod shape;
mod strings;

pub use engine::{gpu, gpu_replicas};
pub use measure::{Ceilings, ceilings};
