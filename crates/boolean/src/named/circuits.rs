//! Functions given by small circuits.

use crate::function::BooleanFunction;

/// OR over consecutive blocks of `width` bits of the AND of each block.
pub struct Tribes {
    pub n: usize,
    pub width: usize,
}

impl BooleanFunction for Tribes {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        x.chunks(self.width).fold(0, |any, tribe| any | tribe.iter().fold(!0, |all, bit| all & bit))
    }
}

/// The bit that x1..xK, read as a binary number with x1 most significant, points at.
pub struct Address {
    pub address_bits: usize,
}

impl BooleanFunction for Address {
    fn variables(&self) -> usize {
        self.address_bits + (1 << self.address_bits)
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        fn select(address: &[u64], data: &[u64]) -> u64 {
            match address {
                [] => data[0],
                [bit, rest @ ..] => {
                    let (low, high) = data.split_at(data.len() / 2);
                    (!bit & select(rest, low)) | (bit & select(rest, high))
                }
            }
        }
        let (address, data) = x.split_at(self.address_bits);
        select(address, data)
    }
}

/// The sum modulo 2 of x_i x_{n/2+i}.
pub struct InnerProduct {
    pub n: usize,
}

impl BooleanFunction for InnerProduct {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        let (left, right) = x.split_at(self.n / 2);
        left.iter().zip(right).fold(0, |sum, (a, b)| sum ^ (a & b))
    }
}
