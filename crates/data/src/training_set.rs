//! Training on a fixed set of strings instead of fresh ones.

use std::collections::HashSet;

use crate::{Bits, DataError, Stream, bits::check_n};

/// A fixed set of distinct strings that a run trains on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrainingSet {
    strings: Bits,
}

impl TrainingSet {
    /// `size` distinct strings of `n` bits, every such set equally likely; `seed` names the set, independently of any run.
    pub fn draw(size: usize, n: usize, seed: u64) -> Result<Self, DataError> {
        check_n("a training set", n, usize::MAX)?;
        if size == 0 || (n < usize::BITS as usize && size > 1 << n) {
            return Err(DataError::BadSetSize { size, n });
        }
        let mut stream = Stream::new(seed, "training-set", 0);
        let mut seen = HashSet::with_capacity(size);
        let mut data = Vec::with_capacity(size * n);
        let mut string = vec![0; n];
        // The first `size` distinct strings of an endless uniform sequence. Even the whole cube takes only about n 2^n draws.
        while seen.len() < size {
            stream.fill_bits(&mut string);
            if seen.insert(string.clone()) {
                data.extend_from_slice(&string);
            }
        }
        Ok(Self { strings: Bits::new(n, data)? })
    }

    /// The set [size, n], in the order drawn.
    pub fn strings(&self) -> &Bits {
        &self.strings
    }

    /// One training batch: the whole set when `rows` is its size (so that training is full-batch), otherwise `rows` strings drawn
    /// from it uniformly with replacement, as fresh batches are drawn from the cube.
    pub fn batch(&self, rows: usize, stream: &mut Stream) -> Bits {
        let size = self.strings.rows();
        if rows == size {
            return self.strings.clone();
        }
        self.strings.select((0..rows).map(|_| stream.below(size as u64) as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strings_are_distinct_and_named_by_the_seed() {
        let set = TrainingSet::draw(512, 10, 3).unwrap();
        let distinct: HashSet<&[u8]> = set.strings().iter().collect();
        assert_eq!(distinct.len(), 512);
        assert_eq!(set, TrainingSet::draw(512, 10, 3).unwrap());
        assert_ne!(set, TrainingSet::draw(512, 10, 4).unwrap());
    }

    #[test]
    fn the_whole_cube_is_a_set_and_more_is_an_error() {
        let all = TrainingSet::draw(16, 4, 0).unwrap();
        let distinct: HashSet<&[u8]> = all.strings().iter().collect();
        assert_eq!(distinct.len(), 16);
        assert!(TrainingSet::draw(17, 4, 0).is_err());
        assert!(TrainingSet::draw(0, 4, 0).is_err());
    }

    #[test]
    fn batches_come_from_the_set() {
        let set = TrainingSet::draw(5, 8, 0).unwrap();
        let mut stream = Stream::new(0, "train-batch", 0);
        assert_eq!(set.batch(5, &mut stream), *set.strings());
        let batch = set.batch(64, &mut stream);
        let members: HashSet<&[u8]> = set.strings().iter().collect();
        assert_eq!(batch.rows(), 64);
        assert!(batch.iter().all(|string| members.contains(string)));
    }
}
