//! A batch with its repeated strings joined: at small n, and from small training sets, there are many.

use pudica_data::Batch;

/// The distinct strings of a batch, sorted, each with its label and how often it occurs.
#[derive(Default)]
pub(crate) struct Distinct {
    /// [strings, n]
    pub(crate) strings: Vec<u8>,
    /// [strings]
    pub(crate) labels: Vec<f32>,
    /// [strings]
    pub(crate) counts: Vec<u32>,
    /// Strings of the batch, repetitions included.
    pub(crate) rows: usize,
    /// The batch's rows in the order of their strings.
    order: Vec<u32>,
}

impl Distinct {
    /// Take over a batch; its labels must be a function of its strings.
    pub(crate) fn fill(&mut self, batch: &Batch) {
        let strings = &batch.strings;
        self.rows = strings.rows();
        self.order.clear();
        self.order.extend(0..self.rows as u32);
        // Rows of equal strings are interchangeable, so an unstable sort gives the same strings, labels and counts.
        self.order.sort_unstable_by(|a, b| strings.row(*a as usize).cmp(strings.row(*b as usize)));
        self.strings.clear();
        self.labels.clear();
        self.counts.clear();
        let mut previous: &[u8] = &[];
        for row in &self.order {
            let string = strings.row(*row as usize);
            match self.counts.last_mut() {
                Some(count) if string == previous => *count += 1,
                _ => {
                    self.strings.extend_from_slice(string);
                    self.labels.push(batch.labels[*row as usize]);
                    self.counts.push(1);
                }
            }
            previous = string;
        }
    }

    /// How many distinct strings there are.
    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }
}

#[cfg(test)]
mod tests {
    use pudica_data::{Bits, Target, Task};

    use super::*;

    #[test]
    fn repetitions_are_counted_and_nothing_is_lost() {
        let task = Task::new(Target::parse("majority", 3).unwrap());
        let strings = Bits::new(3, vec![1, 1, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0]).unwrap();
        let mut distinct = Distinct::default();
        for _ in 0..2 {
            distinct.fill(&task.label(strings.clone()).unwrap());
            assert_eq!(distinct.strings, [0, 0, 0, 1, 0, 0, 1, 1, 0]);
            assert_eq!((&distinct.labels[..], &distinct.counts[..]), (&[0.0, 0.0, 1.0][..], &[1, 1, 3][..]));
            assert_eq!((distinct.rows, distinct.len()), (5, 3));
        }
        distinct.fill(&task.train_batch(1000, 0, 0).unwrap());
        assert_eq!((distinct.len(), distinct.counts.iter().sum::<u32>()), (8, 1000));
    }
}
