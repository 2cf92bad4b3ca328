//! A target together with where its strings come from and what is asked about them.

use std::ops::RangeInclusive;

use crate::{Bits, DataError, Stream, Target, TrainingSet, prefix_parities};

/// Strings and what the network should answer on them.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// [rows, n]
    pub strings: Bits,
    /// Row-major [rows, outputs]: one label for each string, or one for each prefix.
    pub labels: Vec<f32>,
}

/// What a network is trained on and measured on.
#[derive(Debug, Clone)]
pub struct Task {
    target: Target,
    scratchpad: bool,
    training_set: Option<TrainingSet>,
    lengths: Option<Lengths>,
}

/// Strings of other lengths than the target's own.
#[derive(Debug, Clone)]
struct Lengths {
    /// One of these is drawn for each training batch.
    train: RangeInclusive<usize>,
    /// The function on strings of each further length that is asked for.
    targets: Vec<Target>,
}

impl Task {
    /// Learn the target's value from fresh uniform strings.
    pub fn new(target: Target) -> Self {
        Self { target, scratchpad: false, training_set: None, lengths: None }
    }

    /// Learn PARITY's value on every prefix instead; other targets have no scratchpad.
    pub fn with_scratchpad(mut self) -> Result<Self, DataError> {
        if self.target.name() != "parity" {
            return Err(DataError::NoScratchpad(self.target.name().to_string()));
        }
        self.scratchpad = true;
        Ok(self)
    }

    /// Train on these strings only. Measurements are still made on fresh ones.
    pub fn with_training_set(mut self, set: TrainingSet) -> Self {
        self.training_set = Some(set);
        self
    }

    /// Train on strings of one of these lengths in each batch, all equally often, and label strings of all lengths that `targets` have.
    /// Measurements are still made on the target's own length unless strings are given.
    pub fn with_lengths(mut self, train: RangeInclusive<usize>, targets: Vec<Target>) -> Result<Self, DataError> {
        if train.is_empty() || *train.start() == 0 {
            return Err(DataError::BadN { what: "training on several lengths", n: *train.start(), max: *train.end() });
        }
        self.lengths = Some(Lengths { train, targets });
        Ok(self)
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The training set, when training is restricted to one.
    pub fn training_set(&self) -> Option<&TrainingSet> {
        self.training_set.as_ref()
    }

    /// The batch of one training step, the same whenever it is asked for.
    pub fn train_batch(&self, rows: usize, seed: u64, step: u64) -> Result<Batch, DataError> {
        let mut stream = Stream::new(seed, "train-batch", step);
        let strings = match &self.training_set {
            Some(set) => set.batch(rows, &mut stream),
            None => Bits::uniform(rows, self.train_length(seed, step), &mut stream)?,
        };
        self.label(strings)
    }

    /// The length of the strings of one training step.
    fn train_length(&self, seed: u64, step: u64) -> usize {
        let Some(Lengths { train, .. }) = &self.lengths else { return self.target.n() };
        let choices = (train.end() - train.start() + 1) as u64;
        train.start() + Stream::new(seed, "train-length", step).below(choices) as usize
    }

    /// Batch `index` of a measurement on the whole input space: `rows` fresh uniform strings; or every string once when there are
    /// no more than `rows` of them, which has the same mean and no sampling error. `purpose` names the measurement.
    pub fn measure_batch(&self, rows: usize, seed: u64, purpose: &str, index: u64) -> Result<Batch, DataError> {
        let strings = match self.cube_within(rows) {
            true => Bits::cube(self.target.n())?,
            false => Bits::uniform(rows, self.target.n(), &mut Stream::new(seed, purpose, index))?,
        };
        self.label(strings)
    }

    /// Whether there are no more than `rows` strings in all.
    pub fn cube_within(&self, rows: usize) -> bool {
        let n = self.target.n() as u32;
        n <= 24 && 1usize << n <= rows
    }

    /// These strings with their labels.
    pub fn label(&self, strings: Bits) -> Result<Batch, DataError> {
        let labels = match self.scratchpad {
            true => prefix_parities(&strings),
            false => self.target_at(strings.n()).labels(&strings)?,
        };
        Ok(Batch { strings, labels })
    }

    /// The function on strings of this length; the target where it is not known, which says what is wrong.
    fn target_at(&self, n: usize) -> &Target {
        let others = self.lengths.iter().flat_map(|lengths| &lengths.targets);
        std::iter::once(&self.target).chain(others).find(|target| target.n() == n).unwrap_or(&self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parity(n: usize) -> Task {
        Task::new(Target::parse("parity", n).unwrap())
    }

    #[test]
    fn training_batches_are_named_by_seed_and_step() {
        let task = parity(12);
        let batch = |seed, step| task.train_batch(32, seed, step).unwrap();
        assert_eq!(batch(0, 5), batch(0, 5));
        assert_ne!(batch(0, 5), batch(0, 6));
        assert_ne!(batch(0, 5), batch(1, 5));
        assert_eq!(batch(0, 5).labels.len(), 32);
    }

    #[test]
    fn training_stays_in_the_set_and_measuring_does_not() {
        let set = TrainingSet::draw(4, 12, 0).unwrap();
        let task = parity(12).with_training_set(set.clone());
        let batch = task.train_batch(100, 0, 0).unwrap();
        assert!(batch.strings.iter().all(|s| set.strings().iter().any(|member| member == s)));
        let fresh = task.measure_batch(100, 0, "evaluate", 0).unwrap();
        assert!(!fresh.strings.iter().all(|s| set.strings().iter().any(|member| member == s)));
    }

    #[test]
    fn small_cubes_are_measured_whole() {
        let whole = parity(6).measure_batch(64, 0, "evaluate", 3).unwrap();
        assert_eq!(whole.strings, Bits::cube(6).unwrap());
        assert_eq!(parity(7).measure_batch(64, 0, "evaluate", 3).unwrap().strings.rows(), 64);
    }

    #[test]
    fn each_batch_has_one_of_the_lengths_and_its_labels() {
        let targets = (2..5).chain([12]).map(|n| Target::parse("majority", n).unwrap()).collect();
        let task = Task::new(Target::parse("majority", 5).unwrap()).with_lengths(2..=5, targets).unwrap();
        let mut seen = [0; 6];
        for step in 0..200 {
            let batch = task.train_batch(8, 3, step).unwrap();
            seen[batch.strings.n()] += 1;
            for (string, label) in batch.strings.iter().zip(&batch.labels) {
                let ones = string.iter().filter(|bit| **bit == 1).count();
                assert_eq!(*label > 0.5, 2 * ones > string.len(), "{string:?}");
            }
            assert_eq!(batch, task.train_batch(8, 3, step).unwrap());
        }
        assert!(seen[..2] == [0, 0] && seen[2..].iter().all(|times| (30..70).contains(times)), "{seen:?}");
        let long = Bits::uniform(3, 12, &mut Stream::new(0, "test", 0)).unwrap();
        assert_eq!(task.label(long).unwrap().labels.len(), 3);
        assert!(task.label(Bits::uniform(3, 7, &mut Stream::new(0, "test", 0)).unwrap()).is_err());
        assert_eq!(task.measure_batch(64, 0, "evaluate", 0).unwrap().strings, Bits::cube(5).unwrap());
        assert!(parity(5).with_lengths(0..=5, Vec::new()).is_err());
    }

    #[test]
    fn only_parity_has_a_scratchpad() {
        let task = parity(5).with_scratchpad().unwrap();
        assert_eq!(task.train_batch(8, 0, 0).unwrap().labels.len(), 40);
        let majority = Task::new(Target::parse("majority", 5).unwrap());
        assert!(majority.with_scratchpad().unwrap_err().to_string().contains("majority"));
    }
}
