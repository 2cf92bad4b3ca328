//! One input of a Boolean function: n bits, x1 first.

/// The bits x1, ..., xn of one input. Bit i-1 of `words` (least significant first) is x_i.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits<'a> {
    words: &'a [u64],
    n: usize,
}

impl<'a> Bits<'a> {
    /// `words` must hold n bits, with zeros above them.
    pub fn new(words: &'a [u64], n: usize) -> Self {
        assert!(words.len() == n.div_ceil(64), "{} words cannot hold exactly {n} bits", words.len());
        Self { words, n }
    }

    /// n, the number of bits.
    pub fn len(&self) -> usize {
        self.n
    }

    /// Whether there are no bits at all.
    pub fn is_empty(&self) -> bool {
        self.n == 0
    }

    /// The bit x_{index+1}; `get(0)` is x1.
    pub fn get(&self, index: usize) -> bool {
        assert!(index < self.n, "bit {index} of an input of {} bits", self.n);
        self.words[index / 64] >> (index % 64) & 1 == 1
    }

    /// How many bits are 1.
    pub fn ones(&self) -> usize {
        self.words.iter().map(|w| w.count_ones() as usize).sum()
    }

    /// x1, x2, ..., xn.
    pub fn iter(&self) -> impl Iterator<Item = bool> + use<'a> {
        let this = *self;
        (0..this.n).map(move |i| this.get(i))
    }
}

/// The input at row `row` of a truth table of n <= 64 variables, as the word [`Bits`] wants: x1 is the most significant
/// bit of the row and the least significant bit of the word.
pub fn word_of_row(row: u64, n: usize) -> u64 {
    debug_assert!((1..=64).contains(&n));
    row.reverse_bits() >> (64 - n)
}

/// Where 64 consecutive rows of a truth table differ: bit l of `LOW_VARIABLES[k]` is bit k of l. So x_{n-k} of the rows
/// 64w..64w+64 is `LOW_VARIABLES[k]` for k < 6, and constant for k >= 6.
pub const LOW_VARIABLES: [u64; 6] = [
    0xAAAA_AAAA_AAAA_AAAA,
    0xCCCC_CCCC_CCCC_CCCC,
    0xF0F0_F0F0_F0F0_F0F0,
    0xFF00_FF00_FF00_FF00,
    0xFFFF_0000_FFFF_0000,
    0xFFFF_FFFF_0000_0000,
];

/// Fills `variables` (one word a variable, x1 first) with the inputs of rows 64w..64w+64.
pub fn variables_of_word(word: usize, variables: &mut [u64]) {
    let n = variables.len();
    for (i, variable) in variables.iter_mut().enumerate() {
        let k = n - 1 - i;
        *variable = if k < 6 { LOW_VARIABLES[k] } else { 0u64.wrapping_sub((word >> (k - 6) & 1) as u64) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x1_is_the_most_significant_bit_of_the_row() {
        let word = [word_of_row(0b100, 3)];
        assert_eq!(Bits::new(&word, 3).iter().collect::<Vec<_>>(), [true, false, false]);
    }

    #[test]
    fn sixty_four_rows_at_once_agree_with_one_at_a_time() {
        for n in [1, 3, 6, 7, 9] {
            let mut variables = vec![0; n];
            for row in 0..1u64 << n {
                variables_of_word((row / 64) as usize, &mut variables);
                let word = [word_of_row(row, n)];
                for (i, bit) in Bits::new(&word, n).iter().enumerate() {
                    assert_eq!(variables[i] >> (row % 64) & 1 == 1, bit, "n={n} row={row} i={i}");
                }
            }
        }
    }
}
