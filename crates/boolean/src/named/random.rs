//! A uniformly random truth table that need not be stored: the word that holds a row is a hash of the row's high bits.

use crate::function::BooleanFunction;

/// The random function of `n` variables that belongs to a seed. Rows that share all but their last six bits share one
/// 64-bit word, mix(base ^ the keys of their other set bits), and pick their own bit of it.
pub struct RandomTable {
    n: usize,
    base: u64,
    /// Key of row bit k, k = 0 the last variable; the first six are not used.
    keys: Vec<u64>,
}

impl RandomTable {
    pub fn new(n: usize, seed: u64) -> Self {
        let base = mix(mix(seed).wrapping_add(n as u64));
        Self { n, base, keys: (0..n as u64).map(|k| mix(base.wrapping_add(k + 1).wrapping_mul(GOLDEN))).collect() }
    }

    /// For 64 inputs: the hash that picks each one's word, and its bit in that word.
    fn words_and_bits(&self, x: &[u64]) -> ([u64; 64], [u32; 64]) {
        let (mut hashes, mut bits) = ([self.base; 64], [0u32; 64]);
        for (i, variable) in x.iter().enumerate() {
            let k = self.n - 1 - i;
            for lane in 0..64 {
                let set = variable >> lane & 1;
                if k < 6 {
                    bits[lane] |= (set as u32) << k;
                } else {
                    hashes[lane] ^= self.keys[k] & 0u64.wrapping_sub(set);
                }
            }
        }
        (hashes, bits)
    }
}

impl BooleanFunction for RandomTable {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        let (hashes, bits) = self.words_and_bits(x);
        (0..64).fold(0, |values, lane| values | (mix(hashes[lane]) >> bits[lane] & 1) << lane)
    }

    fn flips(&self, x: &mut [u64], changed: &mut [u64]) {
        let (hashes, bits) = self.words_and_bits(x);
        for (i, changed) in changed.iter_mut().enumerate() {
            let k = self.n - 1 - i;
            let (key, bit) = if k < 6 { (0, 1 << k) } else { (self.keys[k], 0) };
            *changed = (0..64).fold(0, |lanes, lane| {
                let before = mix(hashes[lane]) >> bits[lane];
                let after = mix(hashes[lane] ^ key) >> (bits[lane] ^ bit);
                lanes | ((before ^ after) & 1) << lane
            });
        }
    }

    fn table_word(&self, word: usize, _: &mut [u64]) -> u64 {
        let (mut hash, mut rest) = (self.base, word);
        while rest != 0 {
            hash ^= self.keys[6 + rest.trailing_zeros() as usize];
            rest &= rest - 1;
        }
        mix(hash)
    }
}

const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// SplitMix64's finaliser, twice: a bijection whose every output bit depends on every input bit.
fn mix(mut z: u64) -> u64 {
    for _ in 0..2 {
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z = (z ^ z >> 31).wrapping_add(GOLDEN);
    }
    z
}
