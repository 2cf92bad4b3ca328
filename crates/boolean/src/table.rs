//! Truth tables, one bit a row, packed.

use crate::bits::{Bits, word_of_row};
use crate::function::{BooleanFunction, RealFunction, boolean};
use crate::memory::Array;
use crate::{Result, memory, stop};

/// How many 64-bit words make a [`Line`].
pub const LINE_WORDS: usize = 8;

/// 512 rows of a truth table: one cache line, one AVX-512 register.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub [u64; LINE_WORDS]);

/// The values of f: {0,1}^n -> {0,1} on all inputs. Row r is the input whose bits, x1 first, spell r in binary (x1 is the
/// most significant); it is bit r % 64 of word r / 64. Rows beyond 2^n (only when n < 9) are padding and always 0.
#[derive(Clone, Debug, PartialEq)]
pub struct TruthTable {
    n: usize,
    lines: Array<Line>,
}

impl TruthTable {
    /// The table of the constant 0. Refuses, before allocating, what would not fit in memory.
    pub fn zeros(n: usize) -> Result<Self> {
        memory::check_table_variables(n)?;
        let lines = (1usize << n).div_ceil(512);
        memory::check_fits(n, "the truth table", lines as u64 * 64, "sample instead (--method sampled)")?;
        Ok(Self { n, lines: Array::zeros(lines) })
    }

    /// The table of a closure over the bits of one input.
    pub fn from_fn(n: usize, f: impl Fn(&Bits) -> bool + Send + Sync) -> Result<Self> {
        boolean(n, f)?.table()
    }

    /// The table whose packed words (row r is bit r % 64 of word r / 64) are given; 2^n / 64 of them, at least one.
    pub fn from_words(n: usize, words: &[u64]) -> Result<Self> {
        let mut table = Self::zeros(n)?;
        let needed = (table.rows() as usize).div_ceil(64);
        if words.len() != needed {
            let problem = format!("a table of {n} variables has {needed} words, not {}", words.len());
            return Err(crate::Error::Variables(problem));
        }
        for (line, words) in table.lines.iter_mut().zip(words.chunks(LINE_WORDS)) {
            line.0[..words.len()].copy_from_slice(words);
        }
        table.clear_padding();
        Ok(table)
    }

    /// n, the number of variables.
    pub fn variables(&self) -> usize {
        self.n
    }

    /// 2^n, the number of rows.
    pub fn rows(&self) -> u64 {
        1 << self.n
    }

    /// f on the input of row `row`.
    pub fn get(&self, row: u64) -> bool {
        assert!(row < self.rows(), "row {row} of a table of {} rows", self.rows());
        self.words()[(row / 64) as usize] >> (row % 64) & 1 == 1
    }

    /// Sets f on the input of row `row`.
    pub fn set(&mut self, row: u64, value: bool) {
        assert!(row < self.rows(), "row {row} of a table of {} rows", self.rows());
        let word = &mut self.lines[(row / 512) as usize].0[(row / 64 % 8) as usize];
        *word = *word & !(1 << (row % 64)) | u64::from(value) << (row % 64);
    }

    /// How many inputs have f = 1.
    pub fn ones(&self) -> u64 {
        self.words().iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// The packed words, padding included.
    pub fn words(&self) -> &[u64] {
        // SAFETY: Line is repr(C) around [u64; 8] with size 64 and no padding, so n lines are 8n words in a row.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.lines.len() * LINE_WORDS) }
    }

    /// The table in cache lines of 512 rows, padding included.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    pub(crate) fn lines_mut(&mut self) -> &mut [Line] {
        &mut self.lines
    }

    /// How many rows of the last line are padding.
    pub(crate) fn padding(&self) -> u64 {
        self.lines.len() as u64 * 512 - self.rows()
    }

    /// Zeroes the padding rows of the one word that a table of n < 6 variables has, after it was written whole.
    pub(crate) fn clear_padding(&mut self) {
        if self.n < 6 {
            self.lines[0].0[0] &= (1 << self.rows()) - 1;
        }
    }
}

/// A table is itself a function, so tables can be sampled and compared like anything else.
impl BooleanFunction for TruthTable {
    fn variables(&self) -> usize {
        self.n
    }

    fn lanes(&self, x: &[u64]) -> u64 {
        (0..64).fold(0, |values, lane| {
            let row = x.iter().fold(0, |row, variable| row << 1 | variable >> lane & 1);
            values | u64::from(self.get(row)) << lane
        })
    }

    fn table_word(&self, word: usize, _: &mut [u64]) -> u64 {
        self.words()[word]
    }

    fn table(&self) -> Result<TruthTable> {
        Ok(self.clone())
    }
}

/// The values of f: {0,1}^n -> R on all inputs, in the row order of [`TruthTable`].
#[derive(Clone, Debug, PartialEq)]
pub struct RealTable {
    n: usize,
    values: Array<f64>,
    /// Relative precision of the values: 2^-52, or 2^-23 when they came from 32-bit floats.
    epsilon: f64,
}

impl RealTable {
    /// Takes 2^n values; `epsilon` is their relative precision (`f64::EPSILON`, or `f32::EPSILON` for data that was f32).
    pub fn new(n: usize, values: Array<f64>, epsilon: f64) -> Result<Self> {
        memory::check_table_variables(n)?;
        if values.len() != 1 << n {
            let problem = format!("a function of {n} variables has {} values, not {}", 1u64 << n, values.len());
            return Err(crate::Error::Variables(problem));
        }
        Ok(Self { n, values, epsilon })
    }

    /// The table of a real function, built on all cores.
    pub fn of(f: &dyn RealFunction) -> Result<Self> {
        use rayon::prelude::*;
        let n = f.variables();
        memory::check_table_variables(n)?;
        memory::check_fits(n, "the table of values", 8 << n, "sample instead (--method sampled)")?;
        let mut values = Array::<f64>::zeros(1 << n);
        values.par_iter_mut().enumerate().with_min_len(4096).for_each(|(row, value)| {
            if row.is_multiple_of(64) {
                stop::check();
            }
            *value = f.value(&Bits::new(&[word_of_row(row as u64, n)], n));
        });
        Self::new(n, values, f64::EPSILON)
    }

    /// n, the number of variables.
    pub fn variables(&self) -> usize {
        self.n
    }

    /// f on all inputs, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Gives the values back, to transform them in place.
    pub fn into_values(self) -> Array<f64> {
        self.values
    }

    /// Relative precision of the values.
    pub fn epsilon(&self) -> f64 {
        self.epsilon
    }
}

/// A table is itself a function.
impl RealFunction for RealTable {
    fn variables(&self) -> usize {
        self.n
    }

    fn value(&self, x: &Bits) -> f64 {
        self.values[x.iter().fold(0, |row, bit| row << 1 | usize::from(bit))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closures_fill_every_row_and_padding_stays_zero() {
        for n in 1..=11 {
            let table = TruthTable::from_fn(n, |x| !x.get(0) | x.get(n - 1)).unwrap();
            for row in 0..table.rows() {
                let (first, last) = (row >> (n - 1) & 1 == 1, row & 1 == 1);
                assert_eq!(table.get(row), !first | last, "n={n} row={row}");
            }
            let ones = (0..table.rows()).filter(|&r| table.get(r)).count() as u64;
            assert_eq!(table.ones(), ones, "padding must not count");
        }
    }

    #[test]
    fn a_real_table_gives_itself_back() {
        let values: Vec<f64> = (0..32).map(|row| f64::from(row * row)).collect();
        let table = RealTable::new(5, Array::from(&values[..]), f64::EPSILON).unwrap();
        assert_eq!(RealTable::of(&table).unwrap(), table);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(TruthTable::zeros(0).is_err());
        assert!(TruthTable::zeros(64).is_err());
        assert!(TruthTable::zeros(50).is_err());
    }
}
