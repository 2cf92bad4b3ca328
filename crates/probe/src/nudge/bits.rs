//! Bits (as_n of Hahn & Rofin 2024): one flips.

use pudica_data::Stream;

use super::Nudge;

/// Flips one bit of a string of zeros and ones; the sites are the bits.
#[derive(Debug, Clone, Copy)]
pub struct BitFlip;

impl Nudge<Vec<u8>> for BitFlip {
    fn sites(&self, string: &Vec<u8>) -> usize {
        string.len()
    }

    fn apply(&self, string: &Vec<u8>, site: usize, _: &mut Stream) -> Vec<u8> {
        let mut touched = string.clone();
        touched[site] ^= 1;
        touched
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bit_flips() {
        let touched = |site| BitFlip.apply(&vec![0, 1, 1], site, &mut Stream::new(0, "test", 0));
        assert_eq!((touched(0), touched(2)), (vec![1, 1, 1], vec![0, 1, 0]));
        assert_eq!(BitFlip.sites(&vec![0, 1, 1]), 3);
    }
}
