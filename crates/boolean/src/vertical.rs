//! Sixty-four counters side by side: plane p holds bit p of every counter, so one XOR and one AND add to all of them.

/// Planes a counter needs for any count up to 2 * [`crate::MAX_SAMPLED_VARIABLES`].
const PLANES: usize = 15;

/// Sixty-four counters, one a lane.
#[derive(Clone, Debug, Default)]
pub struct LaneCounter {
    planes: [u64; PLANES],
}

impl LaneCounter {
    /// Adds one to every lane whose bit in `lanes` is set.
    pub fn add(&mut self, lanes: u64) {
        let mut carry = lanes;
        for plane in &mut self.planes {
            (*plane, carry) = (*plane ^ carry, *plane & carry);
            if carry == 0 {
                break;
            }
        }
    }

    /// The lanes whose count is exactly `value`.
    pub fn equals(&self, value: usize) -> u64 {
        let mismatch = |(p, plane): (usize, &u64)| plane ^ 0u64.wrapping_sub((value >> p & 1) as u64);
        !self.planes.iter().enumerate().map(mismatch).fold(0, |any, differs| any | differs)
    }

    /// The lanes whose count is at least `value`.
    pub fn at_least(&self, value: usize) -> u64 {
        let (mut greater, mut equal) = (0, !0);
        for (p, plane) in self.planes.iter().enumerate().rev() {
            if value >> p & 1 == 1 {
                equal &= plane;
            } else {
                greater |= equal & plane;
                equal &= !plane;
            }
        }
        greater | equal
    }

    /// The lanes where twice this count exceeds `other`'s.
    pub fn exceeds_half_of(&self, other: &LaneCounter) -> u64 {
        let mut greater = self.planes[PLANES - 1];
        let mut equal = !greater;
        for p in (0..PLANES).rev() {
            let doubled = if p == 0 { 0 } else { self.planes[p - 1] };
            greater |= equal & doubled & !other.planes[p];
            equal &= !(doubled ^ other.planes[p]);
        }
        greater
    }

    /// All sixty-four counts.
    pub fn counts(&self) -> [u64; 64] {
        std::array::from_fn(|lane| (0..PLANES).map(|p| (self.planes[p] >> lane & 1) << p).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_count_independently() {
        let (mut few, mut many) = (LaneCounter::default(), LaneCounter::default());
        for i in 0..63 {
            few.add(!0 << (2 * i).min(63)); // lane l gets about l/2 of these
            many.add(!0 << i); // lane l gets l + 1
        }
        for lane in 0..63 {
            let (a, b) = (few.counts()[lane], many.counts()[lane]);
            assert_eq!(b, lane as u64 + 1);
            assert_eq!(many.equals(b as usize) >> lane & 1, 1);
            assert_eq!(many.at_least(20) >> lane & 1 == 1, b >= 20, "lane {lane}");
            assert_eq!(few.exceeds_half_of(&many) >> lane & 1 == 1, 2 * a > b, "lane {lane}: {a} {b}");
        }
    }
}
