//! Which of a source's inputs are measured.

use std::collections::BTreeSet;

use pudica_data::Stream;

use super::InputsRequest;

/// All inputs of a source, or some that were drawn without replacement, in the source's order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Choice {
    available: usize,
    count: usize,
    drawn: Option<(Vec<usize>, u64)>,
}

impl Choice {
    /// Of `available` inputs those that the request's sample and seed name.
    pub fn new(request: &InputsRequest, available: usize) -> Self {
        let drawn = request.sample.filter(|sample| *sample < available);
        let drawn = drawn.map(|sample| (draw(sample, available, request.seed), request.seed));
        Self { available, count: drawn.as_ref().map_or(available, |(rows, _)| rows.len()), drawn }
    }

    /// `count` of `available` inputs that the source draws itself.
    pub fn some(count: usize, available: usize) -> Self {
        Self { available, count, drawn: None }
    }

    /// How many there are.
    pub fn available(&self) -> usize {
        self.available
    }

    /// How many were chosen.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The place in the source of the chosen input `index`.
    pub fn row(&self, index: usize) -> usize {
        self.drawn.as_ref().map_or(index, |(rows, _)| rows[index])
    }

    /// The places of all chosen inputs.
    pub fn rows(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.count()).map(|index| self.row(index))
    }

    /// What it was, for a digest.
    pub fn identity(&self) -> String {
        match &self.drawn {
            Some((rows, seed)) => format!("{} of {}, seed {seed}", rows.len(), self.available),
            None => format!("{} of {}", self.count, self.available),
        }
    }
}

/// `sample` of `available` numbers, every set equally likely (Floyd), in order.
fn draw(sample: usize, available: usize, seed: u64) -> Vec<usize> {
    let mut stream = Stream::new(seed, "measure/sample", 0);
    let mut drawn = BTreeSet::new();
    for last in available - sample..available {
        let row = stream.below(last as u64 + 1) as usize;
        if !drawn.insert(row) {
            drawn.insert(last);
        }
    }
    drawn.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_input_is_drawn_equally_often() {
        let mut counts = [0; 7];
        for seed in 0..7000 {
            let rows = draw(3, 7, seed);
            assert!(rows.len() == 3 && rows.is_sorted_by(|a, b| a < b) && rows[2] < 7);
            rows.iter().for_each(|row| counts[*row] += 1);
        }
        // 3000 each; five standard deviations are 207.
        assert!(counts.iter().all(|count| (2793..3207).contains(count)), "{counts:?}");
    }

    #[test]
    fn all_are_chosen_where_the_sample_is_not_smaller() {
        let request = |sample| InputsRequest { sample, seed: 4, ..InputsRequest::default() };
        let all = Choice::new(&request(Some(5)), 5);
        assert_eq!((all.count(), all.row(3)), (5, 3));
        assert_eq!(all, Choice::new(&request(None), 5), "and that is the same identity");
        let some = Choice::new(&request(Some(2)), 5);
        assert_eq!((some.count(), some.available()), (2, 5));
        assert_eq!(some.rows().collect::<Vec<_>>(), draw(2, 5, 4));
    }
}
