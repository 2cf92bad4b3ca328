//! Work that is done in parts, each of which counts once it is done, without a pause between them.

use crate::respond::{Tally, add_all, every_touch};
use crate::{Budget, Nudge, ProbeError, Profile, Response, Subject, Touch, Touches};

/// Inputs of one part that are given to the subject together.
struct Group<'a, In, Out> {
    part: usize,
    inputs: &'a [In],
    /// Inputs of its part before these.
    seen: usize,
    /// The answers before any touch.
    before: Vec<Out>,
    touches: Vec<Touch>,
}

/// As [`respond`](crate::respond) of each part, with the same batches and noise, and all draws whatever [`Budget::precision`] and
/// [`Budget::inputs`] are. But all touches are given to the subject in one go ([`Subject::answer_in_turn`]), so that who answers one batch behind
/// does so from part to part, too. `done` is given each part's profiles, in order, as soon as all of it is answered.
pub fn respond_in_parts<In: Send + Sync, N: Nudge<In> + ?Sized, S: Subject<In, N>>(
    subject: &mut S,
    parts: &[Vec<In>],
    nudge: &N,
    responses: &[&dyn Response<S::Out>],
    budget: &Budget,
    done: &mut dyn FnMut(Vec<Profile>) -> Result<(), S::Error>,
) -> Result<(), S::Error> {
    ProbeError::at_least_one("draws", budget.draws)?;
    if parts.iter().any(Vec::is_empty) {
        return Err(ProbeError::NoInputs.into());
    }
    let batch = budget.batch.max(1);
    let mut tallies: Vec<Vec<Tally>> = Vec::new();
    let mut groups = Vec::new();
    for (part, inputs) in parts.iter().enumerate() {
        let mut of_part: Vec<Tally> = responses.iter().map(|_| Tally::of_draws(budget.draws)).collect();
        for (number, inputs) in inputs.chunks(batch).enumerate() {
            let before = subject.answer(inputs)?;
            ProbeError::as_many("inputs", inputs.len(), before.len())?;
            let sites: Vec<usize> = inputs.iter().map(|input| nudge.sites(input)).collect();
            of_part.iter_mut().for_each(|tally| tally.new_inputs(&sites, budget.draws));
            let touches = every_touch(&sites, 0..budget.draws);
            groups.push(Group { part, inputs, seen: number * batch, before, touches });
        }
        tallies.push(of_part);
    }
    let first_of = |part: usize| budget.before + parts[..part].iter().map(Vec::len).sum::<usize>();
    let (seed, purpose) = (budget.seed, budget.purpose);
    let (mut batches, mut of_group) = (Vec::new(), Vec::new());
    for group in &groups {
        let (inputs, before) = (group.inputs, first_of(group.part) + group.seen);
        for touches in group.touches.chunks(batch) {
            batches.push(Touches { inputs, before, nudge, touches, seed, purpose });
            of_group.push(group);
        }
    }
    let mut unfinished = tallies.into_iter().enumerate();
    let mut current = unfinished.next();
    // All parts before `end` are answered.
    let mut finish = |current: &mut Option<(usize, Vec<Tally>)>, end: usize| {
        while let Some((_, tallies)) = current.take_if(|(part, _)| *part < end) {
            done(tallies.into_iter().map(Tally::profile).collect())?;
            *current = unfinished.next();
        }
        Ok::<_, S::Error>(())
    };
    let mut answered = 0;
    subject.answer_in_turn(&batches, &mut |touches, answers| {
        let group: &Group<In, S::Out> = of_group[answered];
        answered += 1;
        // A part that cannot be touched anywhere has no batch of its own.
        finish(&mut current, group.part)?;
        if let Some((_, tallies)) = &mut current {
            add_all(tallies, responses, group.seen, touches.touches, &group.before, &answers)?;
        }
        let next = of_group.get(answered).map_or(parts.len(), |group| group.part);
        finish(&mut current, next)
    })?;
    finish(&mut current, parts.len())
}

#[cfg(test)]
mod tests {
    use pudica_data::Stream;

    use super::*;
    use crate::{SquaredShift, respond};

    /// Adds noise to one number. A row is touched at all numbers but the first.
    struct Jiggle;

    impl Nudge<Vec<f64>> for Jiggle {
        fn sites(&self, row: &Vec<f64>) -> usize {
            row.len() - 1
        }

        fn apply(&self, row: &Vec<f64>, site: usize, noise: &mut Stream) -> Vec<f64> {
            let mut touched = row.clone();
            touched[site + 1] += noise.normal();
            touched
        }
    }

    /// The sum of a row, and what depends on its company: the size of its batch.
    fn answers(rows: &[Vec<f64>]) -> Vec<f64> {
        rows.iter().map(|row| row.iter().sum::<f64>() + rows.len() as f64).collect()
    }

    #[test]
    fn parts_are_what_they_are_alone_to_the_bit() {
        // Some have no sites at all, alone in their part or not.
        let lengths = [vec![3, 1, 4, 2, 2, 6, 1], vec![1], vec![5, 2], vec![1, 1], vec![3]];
        let row = |length: usize| (0..length).map(|at| (at * length) as f64).collect::<Vec<f64>>();
        let parts: Vec<Vec<Vec<f64>>> =
            lengths.iter().map(|of| of.iter().map(|length| row(*length)).collect()).collect();
        let budget = Budget { before: 5, ..Budget::new(3, 4, 7, "test") };
        let mut model = |rows: &[Vec<f64>]| Ok::<_, ProbeError>(answers(rows));
        let mut found = Vec::new();
        respond_in_parts(&mut model, &parts, &Jiggle, &[&SquaredShift], &budget, &mut |profiles| {
            found.push(profiles);
            Ok(())
        })
        .unwrap();
        let mut before = 5;
        for (part, found) in parts.iter().zip(&found) {
            let budget = Budget { before, ..budget };
            assert_eq!(*found, respond(&mut model, part.clone(), &Jiggle, &[&SquaredShift], &budget).unwrap());
            before += part.len();
        }
        assert_eq!(found.len(), parts.len());
    }

    #[test]
    fn what_was_done_before_a_failure_counts() {
        let parts = vec![vec![vec![0.0; 3]; 2], vec![vec![1.0; 3]; 2], vec![vec![2.0; 3]; 2]];
        let mut model = |rows: &[Vec<f64>]| match rows.iter().any(|row| row[0] == 1.0 && row[1..] != [1.0; 2]) {
            true => Err(ProbeError::NoBatches("a broken model")),
            false => Ok(answers(rows)),
        };
        let mut done = 0;
        let budget = Budget::new(2, 3, 0, "test");
        let failed = respond_in_parts(&mut model, &parts, &Jiggle, &[&SquaredShift], &budget, &mut |_| {
            done += 1;
            Ok(())
        });
        assert!(failed.unwrap_err().to_string().contains("a broken model"));
        assert_eq!(done, 1);
        let none = respond_in_parts(&mut model, &[vec![]], &Jiggle, &[&SquaredShift], &budget, &mut |_| Ok(()));
        assert!(none.is_err());
    }
}
