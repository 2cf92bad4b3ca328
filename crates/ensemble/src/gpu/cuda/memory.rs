//! GPU memory: taken, filled, copied and read.

use cudarc::driver::{CudaSlice, DevicePtr, DeviceRepr, ValidAsZeroBits, result};

use super::{Cuda, context, failed, unusable};
use crate::{EnsembleError, Precision};

/// GPU memory of `T`s.
pub(in crate::gpu) struct Memory<T> {
    slice: CudaSlice<T>,
    pointer: u64,
}

impl<T> Memory<T> {
    pub(in crate::gpu) fn pointer(&self) -> u64 {
        self.pointer
    }
}

/// GPU memory of the numbers that networks are computed in.
pub(in crate::gpu) enum Numbers {
    Single(Memory<f32>),
    Double(Memory<f64>),
}

impl Numbers {
    pub(in crate::gpu) fn pointer(&self) -> u64 {
        match self {
            Self::Single(memory) => memory.pointer,
            Self::Double(memory) => memory.pointer,
        }
    }
}

/// Bytes of a number that networks of this precision are computed in.
pub(in crate::gpu) fn number_bytes(precision: Precision) -> usize {
    match precision {
        Precision::F32 | Precision::Tf32 => size_of::<f32>(),
        Precision::F64 => size_of::<f64>(),
    }
}

/// Bytes of GPU memory that are free.
pub(in crate::gpu) fn free_memory() -> Result<usize, EnsembleError> {
    Ok(context()?.mem_get_info().map_err(failed)?.0)
}

impl Cuda {
    /// Memory for `length` values, all zero.
    pub(in crate::gpu) fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        length: usize,
    ) -> Result<Memory<T>, EnsembleError> {
        let slice = self.lanes.main().alloc_zeros::<T>(length.max(1)).map_err(|e| {
            let mebibytes = (length * size_of::<T>()) >> 20;
            unusable(format!(
                "{mebibytes} MiB of GPU memory could not be had ({e}); train fewer networks at once (--together)"
            ))
        })?;
        Ok(self.memory(slice))
    }

    /// Memory for `length` numbers that networks are computed in, all zero.
    pub(in crate::gpu) fn numbers(&self, length: usize) -> Result<Numbers, EnsembleError> {
        Ok(match self.precision {
            Precision::F32 | Precision::Tf32 => Numbers::Single(self.zeros(length)?),
            Precision::F64 => Numbers::Double(self.zeros(length)?),
        })
    }

    /// Whether networks are computed in numbers other than f32.
    pub(in crate::gpu) fn is_double(&self) -> bool {
        self.precision == Precision::F64
    }

    /// Bytes of `count` numbers that networks are computed in.
    pub(in crate::gpu) fn size_of(&self, count: usize) -> usize {
        count * number_bytes(self.precision)
    }

    /// Where the number lies that is `count` after the one at `pointer`.
    pub(in crate::gpu) fn after(&self, pointer: u64, count: usize) -> u64 {
        pointer + self.size_of(count) as u64
    }

    /// Memory holding these values.
    pub(in crate::gpu) fn upload<T: DeviceRepr>(&self, values: &[T]) -> Result<Memory<T>, EnsembleError> {
        Ok(self.memory(self.lanes.main().clone_htod(values).map_err(failed)?))
    }

    fn memory<T>(&self, slice: CudaSlice<T>) -> Memory<T> {
        let pointer = slice.device_ptr(self.lanes.main()).0;
        Memory { slice, pointer }
    }

    /// Put values at the beginning of memory.
    pub(in crate::gpu) fn write<T: DeviceRepr>(
        &self,
        memory: &mut Memory<T>,
        values: &[T],
    ) -> Result<(), EnsembleError> {
        self.lanes.main().memcpy_htod(values, &mut memory.slice.slice_mut(..values.len())).map_err(failed)
    }

    /// The first `length` values of memory from `start` on.
    pub(in crate::gpu) fn read<T: DeviceRepr + Default + Clone>(
        &self,
        memory: &Memory<T>,
        start: usize,
        length: usize,
    ) -> Result<Vec<T>, EnsembleError> {
        let mut values = vec![T::default(); length];
        self.lanes.main().memcpy_dtoh(&memory.slice.slice(start..start + length), &mut values).map_err(failed)?;
        self.lanes.main().synchronize().map_err(failed)?;
        Ok(values)
    }

    /// Set memory to zero, in order with everything else.
    pub(in crate::gpu) fn clear<T>(&self, memory: &Memory<T>) -> Result<(), EnsembleError> {
        let bytes = memory.slice.len() * size_of::<T>();
        // SAFETY: the range is that of one allocation.
        unsafe { result::memset_d8_async(memory.pointer, 0, bytes, self.lanes.stream().cu_stream()) }.map_err(failed)
    }

    /// Copy the first `length` values.
    pub(in crate::gpu) fn copy<T>(&self, to: &Memory<T>, from: &Memory<T>, length: usize) -> Result<(), EnsembleError> {
        let bytes = length.min(to.slice.len()).min(from.slice.len()) * size_of::<T>();
        // SAFETY: both ranges lie within their allocations.
        unsafe { result::memcpy_dtod_async(to.pointer, from.pointer, bytes, self.lanes.stream().cu_stream()) }
            .map_err(failed)
    }

    /// The first `length` numbers, rounded to f32.
    pub(in crate::gpu) fn read_rounded(&self, numbers: &Numbers, length: usize) -> Result<Vec<f32>, EnsembleError> {
        match numbers {
            Numbers::Single(memory) => self.read(memory, 0, length),
            Numbers::Double(memory) => {
                Ok(self.read(memory, 0, length)?.into_iter().map(|value| value as f32).collect())
            }
        }
    }

    /// Copy the first `length` numbers.
    pub(in crate::gpu) fn copy_numbers(
        &self,
        to: &Numbers,
        from: &Numbers,
        length: usize,
    ) -> Result<(), EnsembleError> {
        match (to, from) {
            (Numbers::Single(to), Numbers::Single(from)) => self.copy(to, from, length),
            (Numbers::Double(to), Numbers::Double(from)) => self.copy(to, from, length),
            _ => Err(unusable("numbers of two precisions were mixed")),
        }
    }
}
