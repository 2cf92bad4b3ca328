//! Training on a fixed set of strings instead of fresh ones.

use std::collections::HashSet;

use pudica_boolean::TruthTable;

use crate::bits::{check_n, cube_row};
use crate::{Bits, DataError, Stream};

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

    /// All strings but those where `unseen` is 1, in the order of the cube.
    pub fn all_but(unseen: &TruthTable) -> Result<Self, DataError> {
        let n = unseen.variables();
        let seen: Vec<usize> = (0..unseen.rows()).filter(|row| !unseen.get(*row)).map(|row| row as usize).collect();
        if seen.is_empty() {
            return Err(DataError::BadSetSize { size: 0, n });
        }
        Ok(Self { strings: Bits::cube(n)?.select(seen) })
    }

    /// 1 on every string that is not in the set.
    pub fn unseen(&self) -> Result<TruthTable, DataError> {
        let n = self.strings.n();
        let mut seen = TruthTable::zeros(n)?;
        self.strings.iter().for_each(|string| seen.set(cube_row(string) as u64, true));
        Ok(TruthTable::from_words(
            n,
            &seen.words()[..(1usize << n).div_ceil(64)].iter().map(|word| !word).collect::<Vec<_>>(),
        )?)
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

    #[test]
    fn what_is_not_seen_is_in_no_batch() {
        for n in [3, 7] {
            let unseen = TruthTable::from_fn(n, |x| x.get(0) & !x.get(2)).unwrap();
            let set = TrainingSet::all_but(&unseen).unwrap();
            assert_eq!(set.strings().rows(), 3 << (n - 2));
            assert!(set.strings().iter().all(|string| string[0] == 0 || string[2] == 1));
            assert_eq!(set.unseen().unwrap(), unseen);
        }
        let drawn = TrainingSet::draw(5, 4, 1).unwrap();
        assert_eq!(drawn.unseen().unwrap().ones(), 11);
        let everything = TruthTable::from_fn(4, |_| true).unwrap();
        assert!(TrainingSet::all_but(&everything).is_err());
    }
}
