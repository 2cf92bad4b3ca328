//! The ensemble on one CUDA GPU.
//!
//! `cuda` is the GPU, `programs` its kernels. `engine` trains and `measure` measures networks of any architecture that has the face of `networks`:
//! `encoders`, the paper's, and `scratchpad`. `trained` are their weights with what AdamW keeps. Of the encoders `shape` has the sizes and
//! places of parameters; `buffers` what is kept in the GPU's memory; `forward` and `backward` the passes, attention in a file of its own,
//! written as launches of the kernels in `kernels/` and matrix products by cuBLAS; `strings` and `labels` what the networks read. A training
//! step is recorded once as a CUDA graph and repeated.

mod backward;
mod buffers;
mod cuda;
mod encoders;
mod engine;
mod forward;
mod labels;
mod measure;
mod networks;
mod programs;
mod scratchpad;
mod shape;
mod strings;
mod trained;

pub use engine::{gpu, gpu_replicas, gpu_scratchpad, gpu_scratchpad_replicas, has_scratchpad_engine};
pub use measure::{Ceilings, ceilings};
pub use scratchpad::SCRATCHPADS_ON_GPU;
