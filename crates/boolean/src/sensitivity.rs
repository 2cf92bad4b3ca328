//! Sensitivity straight from the truth table: flips counted by XOR, shift and popcount, 512 inputs at a time.

use crate::bits::LOW_VARIABLES;
use crate::simd::{Isa, Kernel, dispatch};
use crate::table::{LINE_WORDS, Line, TruthTable};
use rayon::prelude::*;

/// Lines worked on before moving on: 256 KiB, a part of a typical L2 cache.
const PART: usize = 4096;
/// Bits that count up to [`crate::MAX_TABLE_VARIABLES`] flips.
const PLANES: usize = 6;
/// Sensitivities that are possible: 0..=36, rounded up to what the planes can hold.
const COUNTS: usize = 1 << PLANES;

/// Does something for each row bit below nine, a constant in each copy.
macro_rules! for_each_near_bit {
    (|$bit:ident| $body:expr) => { for_each_near_bit!(@ $bit, $body, 0 1 2 3 4 5 6 7 8) };
    (@ $bit:ident, $body:expr, $($index:literal)*) => {$({
        #[allow(non_upper_case_globals)]
        const $bit: usize = $index;
        $body;
    })*};
}

/// For each variable, how many inputs change their value when it is flipped: 2^n times its influence. Needs no transform
/// and reads the table twice: once for the variables inside a part, once, gathered in strips, for those between parts.
pub fn flip_counts(table: &TruthTable) -> Vec<u64> {
    let add = |a: Vec<u64>, b: Vec<u64>| a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let (n, lines) = (table.variables(), table.lines());
    let bits_inside = n.min(9 + PART.ilog2() as usize);
    let inside = lines.par_chunks(PART).map(|part| dispatch(FlipsInside { part, bits: bits_inside }));
    let mut flips = inside.reduce(|| vec![0; bits_inside], add);

    let parts = lines.len() / PART;
    if parts > 1 {
        let width = (PART / parts).max(1);
        let strips = (0..PART / width).into_par_iter().map_init(
            || vec![Line::default(); parts * width],
            |gathered, strip| {
                for (row, piece) in gathered.chunks_exact_mut(width).enumerate() {
                    piece.copy_from_slice(&lines[row * PART + strip * width..][..width]);
                }
                dispatch(FlipsBetween { gathered, width })
            },
        );
        flips.extend(strips.reduce(|| vec![0; n - bits_inside], add));
    }
    flips.into_iter().rev().collect()
}

/// Flips between two inputs of one part, by bit of the row: entry 0 is the last variable.
struct FlipsInside<'a> {
    part: &'a [Line],
    bits: usize,
}

impl Kernel for FlipsInside<'_> {
    type Output = Vec<u64>;

    #[inline(always)]
    fn run(self, _: Isa) -> Vec<u64> {
        // Partners in the same line, and in the same eight lines, while these are in registers. (With few variables the bits
        // from n on find padding, and are cut off below.)
        let mut near = [[0; LINE_WORDS]; 9];
        let mut middle = [[0; LINE_WORDS]; 3];
        let (groups, rest) = self.part.as_chunks::<8>();
        for group in groups {
            for line in group {
                for_each_near_bit!(|BIT| add_ones(&mut near[BIT], &lower_difference_in_line::<BIT>(&line.0)));
            }
            for k in 0..4 {
                add_difference(&mut middle[0], &group[2 * k], &group[2 * k + 1]);
                add_difference(&mut middle[1], &group[4 * (k / 2) + k % 2], &group[4 * (k / 2) + k % 2 + 2]);
                add_difference(&mut middle[2], &group[k], &group[k + 4]);
            }
        }
        for line in rest {
            for_each_near_bit!(|BIT| add_ones(&mut near[BIT], &lower_difference_in_line::<BIT>(&line.0)));
        }
        let mut flips = vec![0; self.bits];
        for (bit, flips) in flips.iter_mut().enumerate() {
            let counts = match bit {
                0..9 => near[bit],
                9..12 if rest.is_empty() => middle[bit - 9],
                _ => differing_pairs(self.part, 1 << (bit - 9)),
            };
            *flips = 2 * counts.iter().sum::<u64>();
        }
        flips
    }
}

/// Flips between the rows of a strip, `width` lines each, by bit of the row's number.
struct FlipsBetween<'a> {
    gathered: &'a [Line],
    width: usize,
}

impl Kernel for FlipsBetween<'_> {
    type Output = Vec<u64>;

    #[inline(always)]
    fn run(self, _: Isa) -> Vec<u64> {
        let mut flips = vec![0; (self.gathered.len() / self.width).ilog2() as usize];
        for (bit, flips) in flips.iter_mut().enumerate() {
            *flips = 2 * differing_pairs(self.gathered, self.width << bit).iter().sum::<u64>();
        }
        flips
    }
}

/// Differences between lines `step` apart, each pair once.
#[inline(always)]
fn differing_pairs(lines: &[Line], step: usize) -> Counters {
    let mut counts = [0; LINE_WORDS];
    for pair in lines.chunks_exact(2 * step) {
        add_differing(&mut counts, &pair[..step], &pair[step..]);
    }
    counts
}

/// Adds the ones of each word to its counter: no sum across words inside a loop.
#[inline(always)]
fn add_ones(counts: &mut [u64; LINE_WORDS], words: &[u64; LINE_WORDS]) {
    for k in 0..LINE_WORDS {
        counts[k] += u64::from(words[k].count_ones());
    }
}

#[inline(always)]
fn add_differing(counts: &mut [u64; LINE_WORDS], a: &[Line], b: &[Line]) {
    for (a, b) in a.iter().zip(b) {
        add_difference(counts, a, b);
    }
}

#[inline(always)]
fn add_difference(counts: &mut Counters, a: &Line, b: &Line) {
    let mut differs = a.0;
    for (word, partner) in differs.iter_mut().zip(&b.0) {
        *word ^= partner;
    }
    add_ones(counts, &differs);
}

/// How many inputs are sensitive at how many of their bits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SensitivityProfile {
    /// `by_value[v][s]`: inputs with f = v and exactly s sensitive bits, s = 0..=n.
    pub by_value: [Vec<u64>; 2],
    /// For each variable, x1 first: inputs whose value changes when it is flipped.
    pub flips: Vec<u64>,
}

impl SensitivityProfile {
    fn rows(&self) -> f64 {
        self.by_value.iter().flatten().sum::<u64>() as f64
    }

    /// Inputs with exactly s sensitive bits, s = 0..=n.
    pub fn histogram(&self) -> Vec<u64> {
        self.by_value[0].iter().zip(&self.by_value[1]).map(|(zeros, ones)| zeros + ones).collect()
    }

    /// The most sensitive bits any input has.
    pub fn max(&self) -> usize {
        self.max_at(false).max(self.max_at(true)).unwrap_or(0)
    }

    /// The most sensitive bits any input with f = `value` has; `None` if there is no such input.
    pub fn max_at(&self, value: bool) -> Option<usize> {
        self.by_value[usize::from(value)].iter().rposition(|&count| count > 0)
    }

    /// Probability that flipping each variable, x1 first, of a random input changes f.
    pub fn influences(&self) -> Vec<f64> {
        self.flips.iter().map(|&count| count as f64 / self.rows()).collect()
    }

    /// as_n(f), the mean number of sensitive bits: the sum of the influences.
    pub fn average_sensitivity(&self) -> f64 {
        self.flips.iter().sum::<u64>() as f64 / self.rows()
    }
}

/// Counts the sensitive bits of every input, on all cores.
pub fn sensitivity_profile(table: &TruthTable) -> SensitivityProfile {
    let n = table.variables();
    let total = |counters: &Counters| counters.iter().sum();
    let parts = (0..table.lines().len().div_ceil(PART)).into_par_iter();
    let zero = || Box::new(Tally::default());
    let tally = parts
        .fold(zero, |mut tally, part| {
            dispatch(CountPart { table, part, tally: &mut tally });
            tally
        })
        .reduce(zero, |a, b| Box::new(a.plus(&b)));
    let ones: Vec<u64> = tally.ones[..=n].iter().map(total).collect();
    let all = tally.all[..=n].iter().map(total);
    let mut by_value = [all.zip(&ones).map(|(all, ones): (u64, _)| all - ones).collect(), ones];
    by_value[0][0] -= table.padding(); // padding rows are 0 and never differ
    SensitivityProfile { by_value, flips: tally.flips[..n].iter().rev().map(total).collect() }
}

/// What was counted so far.
#[derive(Clone)]
struct Tally {
    /// Inputs by number of sensitive bits.
    all: [Counters; COUNTS],
    /// Those of them with f = 1.
    ones: [Counters; COUNTS],
    /// Sensitive inputs by row bit.
    flips: [Counters; COUNTS],
}

/// One counter for each word of a line; their sum counts.
type Counters = [u64; LINE_WORDS];

impl Default for Tally {
    fn default() -> Self {
        let zeros = [[0; LINE_WORDS]; COUNTS];
        Self { all: zeros, ones: zeros, flips: zeros }
    }
}

impl Tally {
    fn plus(&self, other: &Self) -> Self {
        let sum = |a: &[Counters; COUNTS], b: &[Counters; COUNTS]| {
            std::array::from_fn(|i| std::array::from_fn(|k| a[i][k] + b[i][k]))
        };
        Self {
            all: sum(&self.all, &other.all),
            ones: sum(&self.ones, &other.ones),
            flips: sum(&self.flips, &other.flips),
        }
    }
}

struct CountPart<'a> {
    table: &'a TruthTable,
    part: usize,
    tally: &'a mut Tally,
}

impl Kernel for CountPart<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self, _: Isa) {
        let (n, lines) = (self.table.variables(), self.table.lines());
        for index in self.part * PART..lines.len().min((self.part + 1) * PART) {
            let line = &lines[index].0;
            // 512 counters side by side: plane p holds bit p of each.
            let mut planes = [[0u64; LINE_WORDS]; PLANES];
            // Rows beyond 2^n never differ from their partners at bits below n, and bits from n on must not count.
            for_each_near_bit!(|BIT| if BIT < n {
                add_one(&mut planes, difference_in_line::<BIT>(line), &mut self.tally.flips[BIT]);
            });
            for bit in 9..n {
                let partner = &lines[index ^ 1 << (bit - 9)].0;
                let mut differs = *line;
                for k in 0..LINE_WORDS {
                    differs[k] ^= partner[k];
                }
                add_one(&mut planes, differs, &mut self.tally.flips[bit]);
            }
            self.tally.add(&planes, line, n);
        }
    }
}

/// Adds one to the counters of the inputs in `differs`, and counts them.
#[inline(always)]
fn add_one(planes: &mut [[u64; LINE_WORDS]; PLANES], differs: [u64; LINE_WORDS], flips: &mut Counters) {
    add_ones(flips, &differs);
    let mut carry = differs;
    for plane in planes.iter_mut() {
        for k in 0..LINE_WORDS {
            (plane[k], carry[k]) = (plane[k] ^ carry[k], plane[k] & carry[k]);
        }
    }
}

/// Which of the 512 inputs of a line change their value when row bit BIT < 9 is flipped.
#[inline(always)]
fn difference_in_line<const BIT: usize>(line: &[u64; LINE_WORDS]) -> [u64; LINE_WORDS] {
    let mut differs = [0; LINE_WORDS];
    for k in 0..LINE_WORDS {
        differs[k] = line[k]
            ^ if BIT < 6 {
                let (upper, shift) = (LOW_VARIABLES[BIT % 6], 1 << BIT);
                (line[k] & upper) >> shift | (line[k] & !upper) << shift
            } else {
                line[k ^ (1 << BIT >> 6)]
            };
    }
    differs
}

/// Those of them that have 0 at that bit: half of each pair.
#[inline(always)]
fn lower_difference_in_line<const BIT: usize>(line: &[u64; LINE_WORDS]) -> [u64; LINE_WORDS] {
    let mut differs = *line;
    for k in 0..LINE_WORDS {
        differs[k] = if BIT < 6 {
            (line[k] ^ (line[k] >> (1 << (BIT % 6)))) & !LOW_VARIABLES[BIT % 6]
        } else {
            (line[k] ^ line[k ^ (1 << BIT >> 6)]) & ((k >> (BIT.max(6) - 6) & 1) as u64).wrapping_sub(1)
        };
    }
    differs
}

#[inline(always)]
fn and(a: &[u64; LINE_WORDS], b: &[u64; LINE_WORDS], negate: bool) -> [u64; LINE_WORDS] {
    let mut both = [0; LINE_WORDS];
    for k in 0..LINE_WORDS {
        both[k] = a[k] & if negate { !b[k] } else { b[k] };
    }
    both
}

impl Tally {
    /// Adds 512 counters: inputs are split plane by plane, so that only counts that occur are looked at.
    #[inline(always)]
    fn add(&mut self, planes: &[[u64; LINE_WORDS]; PLANES], values: &[u64; LINE_WORDS], n: usize) {
        let top = PLANES.min((n.ilog2() + 1) as usize);
        // High planes first: prefix `count >> p` of every counter, for the prefixes that are possible.
        let mut groups = [[0u64; LINE_WORDS]; COUNTS];
        groups[0] = [!0; LINE_WORDS];
        let mut prefixes = 1;
        for p in (0..top).rev() {
            for prefix in (0..prefixes).rev() {
                let group = groups[prefix];
                groups[2 * prefix] = and(&group, &planes[p], true);
                groups[2 * prefix + 1] = and(&group, &planes[p], false);
            }
            prefixes = (n >> p) + 1;
        }
        for (s, group) in groups.iter().enumerate().take(n + 1) {
            add_ones(&mut self.all[s], group);
            add_ones(&mut self.ones[s], &and(group, values, false));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Named;

    #[test]
    fn profile_and_flip_counts_equal_flipping_every_bit() {
        for n in 1..=15 {
            for seed in 0..3 {
                let table = Named::Random(seed).boolean_at(n).unwrap().table().unwrap();
                let profile = sensitivity_profile(&table);
                let mut by_value = [vec![0; n + 1], vec![0; n + 1]];
                let mut flips = vec![0; n];
                for row in 0..table.rows() {
                    let differs = |i: usize| table.get(row) != table.get(row ^ 1 << (n - 1 - i));
                    (0..n).filter(|&i| differs(i)).for_each(|i| flips[i] += 1);
                    by_value[usize::from(table.get(row))][(0..n).filter(|&i| differs(i)).count()] += 1;
                }
                assert_eq!(profile, SensitivityProfile { by_value, flips: flips.clone() }, "n={n} seed={seed}");
                assert_eq!(flip_counts(&table), flips, "n={n} seed={seed}");
            }
        }
    }

    /// Large enough for several parts: strips and far partners count too.
    #[test]
    fn several_parts_agree_with_closed_forms_and_each_other() {
        let mut flips = vec![0; 23];
        flips[1] = 1 << 23;
        let table = Named::Dictator(2).boolean_at(23).unwrap().table().unwrap();
        assert_eq!(flip_counts(&table), flips);
        assert_eq!(sensitivity_profile(&table).flips, flips);
        assert_eq!(sensitivity_profile(&table).histogram()[1], 1 << 23);
        let random = Named::Random(4).boolean_at(23).unwrap().table().unwrap();
        assert_eq!(flip_counts(&random), sensitivity_profile(&random).flips);
    }
}
