//! Random numbers with names instead of generator states.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use rand_distr::{Distribution, Poisson, StandardNormal};
use sha2::{Digest, Sha256};

/// A stream of random numbers named by (run seed, purpose, step).
///
/// Two streams of different names are independent; two streams of one name are equal, whatever happened in between, on any
/// machine and any number of threads. So nothing about randomness is ever stored in a checkpoint, and a batch can be drawn again
/// by naming it: `Stream::new(seed, "train-batch", 17)`.
///
/// The numbers are those of ChaCha with 8 rounds: the key is SHA-256 of the seed and the purpose, the stream number is the step.
#[derive(Debug, Clone)]
pub struct Stream {
    generator: ChaCha8Rng,
}

impl Stream {
    /// The stream of this name, at its beginning.
    pub fn new(seed: u64, purpose: &str, step: u64) -> Self {
        let mut generator = ChaCha8Rng::from_seed(Self::key(seed, purpose));
        generator.set_stream(step);
        Self { generator }
    }

    /// The key of all streams of this seed and purpose, for whoever computes ChaCha's numbers elsewhere.
    pub fn key(seed: u64, purpose: &str) -> [u8; 32] {
        Sha256::new().chain_update(seed.to_le_bytes()).chain_update(purpose.as_bytes()).finalize().into()
    }

    /// 64 random bits.
    pub fn word(&mut self) -> u64 {
        self.generator.next_u64()
    }

    /// A uniform integer in `0..bound` without bias. `bound` = 0 is taken as 2^64: any word.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            return self.word();
        }
        // Lemire's method: the high half of word * bound is uniform once the few low halves that would bias it are rejected.
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.word()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as u64;
            }
        }
    }

    /// Fill with uniform bits, each 0 or 1; 64 of them cost one word.
    pub fn fill_bits(&mut self, bits: &mut [u8]) {
        for chunk in bits.chunks_mut(64) {
            let mut word = self.word();
            for bit in chunk {
                *bit = (word & 1) as u8;
                word >>= 1;
            }
        }
    }

    /// Uniform in [0, 1), with 53 random bits.
    pub fn uniform(&mut self) -> f64 {
        (self.word() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in [low, high), drawn in f64 and rounded once.
    pub fn uniform_f32(&mut self, low: f64, high: f64) -> f32 {
        (low + (high - low) * self.uniform()) as f32
    }

    /// Normal with mean 0 and standard deviation 1.
    pub fn normal(&mut self) -> f64 {
        StandardNormal.sample(&mut self.generator)
    }

    /// Normal with mean 0 and standard deviation 1, drawn in f64 and rounded once.
    pub fn normal_f32(&mut self) -> f32 {
        self.normal() as f32
    }

    /// A Poisson count of this mean; 0 where the mean is not a positive number (or beyond 10^19).
    pub fn poisson(&mut self, mean: f64) -> f64 {
        Poisson::new(mean).map_or(0.0, |poisson| poisson.sample(&mut self.generator))
    }

    /// Shuffle in place, every order equally likely (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last as u64 + 1) as usize;
            items.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// These numbers are part of the file format: every stored result was made with them. A library update that changes one of
    /// them must not go unnoticed.
    #[test]
    fn the_numbers_never_change() {
        let mut stream = Stream::new(7, "train-batch", 3);
        let words = [stream.word(), stream.word()];
        let reals = [stream.uniform(), stream.normal(), stream.normal()];
        assert_eq!(words, [178680478715427908, 7497382137030189220]);
        assert_eq!(reals, [0.7604154978700103, -0.8050854467671624, 0.3808648988875921]);
        assert_eq!(stream.below(1000), 622);
    }

    #[test]
    fn names_make_streams_independent_and_repeatable() {
        let draw = |seed, purpose, step| {
            let mut stream = Stream::new(seed, purpose, step);
            [stream.word(), stream.word(), stream.word()]
        };
        assert_eq!(draw(1, "a", 0), draw(1, "a", 0));
        let others = [draw(2, "a", 0), draw(1, "b", 0), draw(1, "a", 1)];
        assert!(others.iter().all(|other| *other != draw(1, "a", 0)));
    }

    #[test]
    fn moments_are_those_of_the_distributions() {
        let mut stream = Stream::new(0, "moments", 0);
        let count = 200_000;
        let normals: Vec<f64> = (0..count).map(|_| stream.normal()).collect();
        let mean = normals.iter().sum::<f64>() / count as f64;
        let square = normals.iter().map(|x| x * x).sum::<f64>() / count as f64;
        let fourth = normals.iter().map(|x| x.powi(4)).sum::<f64>() / count as f64;
        assert!(mean.abs() < 0.01 && (square - 1.0).abs() < 0.02 && (fourth - 3.0).abs() < 0.15);
        let uniform = (0..count).map(|_| stream.uniform()).sum::<f64>() / count as f64;
        assert!((uniform - 0.5).abs() < 0.005);
        let mut bits = vec![0; count];
        stream.fill_bits(&mut bits);
        let ones = bits.iter().map(|b| f64::from(*b)).sum::<f64>() / count as f64;
        assert!((ones - 0.5).abs() < 0.005);
    }

    #[test]
    fn below_reaches_every_value_equally_often() {
        let mut stream = Stream::new(0, "below", 0);
        let mut counts = [0u32; 5];
        for _ in 0..50_000 {
            counts[stream.below(5) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (9_600..10_400).contains(c)), "{counts:?}");
    }

    #[test]
    fn shuffle_keeps_the_items() {
        let mut items: Vec<u32> = (0..100).collect();
        Stream::new(0, "shuffle", 0).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
