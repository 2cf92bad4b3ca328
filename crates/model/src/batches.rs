//! Batches that a model is asked about one after the other, and how they are made while it answers.

use crate::Input;

/// Batches of inputs, each made when it is due, on whatever thread.
pub trait Batches: Sync {
    /// How many there are.
    fn count(&self) -> usize;

    /// The inputs of one of them.
    fn made(&self, at: usize) -> Vec<Input>;

    /// The same inputs as changes of others, where each differs from one of those in few values: for models that put them together
    /// themselves, on a device of their own.
    fn edits(&self, _at: usize) -> Option<Edits<'_>> {
        None
    }
}

/// Inputs that differ from others in few values each.
#[derive(Debug, Clone)]
pub struct Edits<'a> {
    /// A number that the `originals` have among all of one [`Batches`]: where it is that of the batch before, they are the same.
    pub group: usize,
    /// The inputs that were changed, all of one kind and shape.
    pub originals: Vec<&'a Input>,
    /// For each site, where in an input's values it lies. All sites have as many places, and they are the same for all of one [`Batches`].
    pub places: &'a [Vec<usize>],
    /// For each changed input, which of the originals it was, and at which site it was changed.
    pub changed: Vec<(usize, usize)>,
    /// For each changed input, its values at the places of its site, in the units of the inputs (before normalisation).
    pub values: Vec<f32>,
}

/// Makes `count` things on a thread of its own, always one ahead of this thread, which takes them in order until it says `false`.
pub fn make_ahead<T: Send>(count: usize, make: impl Fn(usize) -> T + Sync, mut take: impl FnMut(T) -> bool) {
    if count < 2 {
        (0..count).map(make).all(take);
        return;
    }
    let make = &make;
    std::thread::scope(|scope| {
        let (sender, receiver) = std::sync::mpsc::sync_channel(0);
        scope.spawn(move || (0..count).map(make).all(|made| sender.send(made).is_ok()));
        receiver.into_iter().all(&mut take)
    });
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::make_ahead;

    #[test]
    fn things_made_ahead_come_in_order_and_end_where_the_taker_does() {
        for count in [0, 1, 2, 50] {
            let mut taken = Vec::new();
            make_ahead(
                count,
                |at| at,
                |made| {
                    taken.push(made);
                    true
                },
            );
            assert_eq!(taken, (0..count).collect::<Vec<_>>());
        }
        let made = AtomicUsize::new(0);
        let mut taken = 0;
        let make = |_| made.fetch_add(1, Ordering::Relaxed);
        make_ahead(1000, make, |_| {
            taken += 1;
            taken < 3
        });
        assert_eq!(taken, 3);
        assert!(made.into_inner() <= 5, "no more is made than somebody may take");
    }
}
