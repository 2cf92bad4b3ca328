//! Spectra of conjugate and neural tangent kernels on the cube {-1, 1}^d (Yang & Salman 2020; Hron et al. 2020; Vasudeva et al.
//! 2024, Section 3 and Appendix B).
//!
//! A network's kernel K, as an operator on functions of the cube, says which functions the network has at its start (CK) and learns
//! first (NTK): those with large eigenvalues. Where monomials of degree k are its eigenfunctions with eigenvalue mu_k, the share of
//! the variance at degree k is C(d, k) mu_k / sum.
//!
//! - [`infinite_spectrum`]: infinitely wide MLPs, and linear attention as the paper reads it, to d = 512.
//! - [`cube_spectrum`]: linear attention as it is, token by token, on the whole cube to d = 14.
//! - [`finite_spectrum`]: real networks of finite width with random weights, by their Jacobians on the whole cube to d = 12.

pub mod activation;
pub mod analysis;
pub mod architecture;
pub mod cube;
pub mod degrees;
pub mod eigen;
pub mod finite;
pub mod infinite;
mod krawtchouk;
pub mod networks;
pub mod real;
pub mod recursion;
pub mod tape;

pub use activation::Activation;
pub use analysis::{Analysis, Empirical, Request, analyse};
pub use architecture::{Architecture, Family, Kernel, Readout};
pub use cube::{CubeSpectrum, cube_spectrum};
pub use degrees::Monotone;
pub use finite::{FiniteSpectrum, Summary, finite_spectrum, summarise};
pub use infinite::{InfiniteSpectrum, infinite_spectrum};
pub use networks::Size;
pub use pudica_statistics::Estimate;
