//! Batches of bit strings.

use crate::{DataError, Stream};

/// A batch of strings of `n` bits, each bit a byte that is 0 or 1; row-major [rows, n].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bits {
    n: usize,
    data: Vec<u8>,
}

/// The longest strings whose whole cube is enumerated: 2^24 strings.
const LARGEST_CUBE: usize = 24;

impl Bits {
    /// A batch from its bytes, row-major [rows, n]. Anything but 0 counts as 1; bytes beyond the last full row are dropped.
    pub fn new(n: usize, mut data: Vec<u8>) -> Result<Self, DataError> {
        check_n("a batch of strings", n, usize::MAX)?;
        data.truncate(data.len() / n * n);
        for bit in &mut data {
            *bit = u8::from(*bit != 0);
        }
        Ok(Self { n, data })
    }

    /// `rows` fresh uniform strings of `n` bits.
    pub fn uniform(rows: usize, n: usize, stream: &mut Stream) -> Result<Self, DataError> {
        check_n("a batch of strings", n, usize::MAX)?;
        let mut data = vec![0; rows * n];
        stream.fill_bits(&mut data);
        Ok(Self { n, data })
    }

    /// All 2^n strings; row r holds the binary digits of r, x_1 the most significant.
    pub fn cube(n: usize) -> Result<Self, DataError> {
        check_n("enumerating the whole cube", n, LARGEST_CUBE)?;
        Self::cube_rows(n, 0, 1 << n)
    }

    /// Rows `start..end` of [`Bits::cube`], for cubes that are walked in pieces.
    pub fn cube_rows(n: usize, start: u64, end: u64) -> Result<Self, DataError> {
        check_n("enumerating the whole cube", n, 63)?;
        let end = end.min(1 << n);
        let mut data = Vec::with_capacity(end.saturating_sub(start) as usize * n);
        for row in start..end {
            data.extend((0..n).rev().map(|bit| (row >> bit & 1) as u8));
        }
        Ok(Self { n, data })
    }

    /// Bits in a string.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Strings in the batch.
    pub fn rows(&self) -> usize {
        self.data.len() / self.n
    }

    /// The bytes, row-major [rows, n].
    pub fn data(&self) -> &[u8] {
        &self.data
    }

    /// One string.
    pub fn row(&self, row: usize) -> &[u8] {
        &self.data[row * self.n..(row + 1) * self.n]
    }

    /// The strings in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'_, u8> {
        self.data.chunks_exact(self.n)
    }

    /// The chosen rows, in the order given; a row may be chosen more than once.
    pub fn select(&self, rows: impl IntoIterator<Item = usize>) -> Self {
        let data = rows.into_iter().flat_map(|row| self.row(row).iter().copied());
        Self { n: self.n, data: data.collect() }
    }

    /// Consecutive pieces of at most `rows` strings (at least one each).
    pub fn pieces(&self, rows: usize) -> impl Iterator<Item = Self> + '_ {
        let n = self.n;
        self.data.chunks(rows.max(1) * n).map(move |piece| Self { n, data: piece.to_vec() })
    }
}

/// The row of the cube a string stands in: its bits as a number, x_1 the most significant.
pub(crate) fn cube_row(string: &[u8]) -> usize {
    string.iter().fold(0, |row, bit| row << 1 | usize::from(*bit))
}

pub(crate) fn check_n(what: &'static str, n: usize, max: usize) -> Result<(), DataError> {
    if n == 0 || n > max {
        return Err(DataError::BadN { what, n, max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cube_counts_with_x1_most_significant() {
        let cube = Bits::cube(3).unwrap();
        assert_eq!(cube.rows(), 8);
        assert_eq!(cube.row(4), [1, 0, 0]);
        assert!(cube.iter().enumerate().all(|(row, string)| cube_row(string) == row));
        let pieces: Vec<u8> = cube.pieces(3).flat_map(|piece| piece.data().to_vec()).collect();
        assert_eq!(pieces, cube.data());
        assert_eq!(Bits::cube_rows(3, 4, 6).unwrap().data(), [1, 0, 0, 1, 0, 1]);
    }

    #[test]
    fn impossible_lengths_are_errors() {
        assert!(Bits::cube(0).is_err() && Bits::cube(25).is_err());
        assert!(Bits::uniform(3, 0, &mut Stream::new(0, "test", 0)).is_err());
        assert!(Bits::new(0, vec![]).is_err());
    }
}
