//! Products of matrices, by cuBLAS.

use std::ffi::c_void;

use cudarc::cublas::{self, sys as blas};

use super::{Cuda, failed};
use crate::{EnsembleError, Precision};

/// A row-major matrix in GPU memory, one of several at equal distances.
#[derive(Clone, Copy)]
pub(in crate::gpu) struct Matrix {
    pub(in crate::gpu) pointer: u64,
    /// Numbers after `pointer` that it begins.
    pub(in crate::gpu) offset: usize,
    /// Numbers from one stored row to the next.
    pub(in crate::gpu) row: usize,
    /// Numbers from one matrix to the next.
    pub(in crate::gpu) stride: usize,
    /// Whether it is stored as its transpose.
    pub(in crate::gpu) transposed: bool,
}

impl Matrix {
    /// From `offset` numbers after `pointer`.
    pub(in crate::gpu) fn at(pointer: u64, offset: usize, row: usize, stride: usize) -> Self {
        Self { pointer, offset, row, stride, transposed: false }
    }

    pub(in crate::gpu) fn transposed(self) -> Self {
        Self { transposed: true, ..self }
    }
}

/// C [m, n] = alpha A [m, k] B [k, n] + beta C
pub(in crate::gpu) struct Product {
    pub(in crate::gpu) m: usize,
    pub(in crate::gpu) n: usize,
    pub(in crate::gpu) k: usize,
    pub(in crate::gpu) alpha: f64,
    pub(in crate::gpu) a: Matrix,
    pub(in crate::gpu) b: Matrix,
    pub(in crate::gpu) beta: f64,
    pub(in crate::gpu) c: Matrix,
    pub(in crate::gpu) batch: usize,
    /// Whether A and B, which then have no offset, are halves; C is not.
    pub(in crate::gpu) halves: bool,
}

impl Cuda {
    /// C [m, n] = alpha A [m, k] B [k, n] + beta C, row-major, for each of `batch` triples.
    pub(in crate::gpu) fn product(&self, product: Product) -> Result<(), EnsembleError> {
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
                *self.lanes.blas().handle(),
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
}
