//! A model that is asked about inputs: its clean answers are computed once, all others are counted.

use pudica_lab::Stop;
use pudica_model::{Input, Model, ModelError, ModelResult, Outputs, Scores};
use pudica_probe::{Nudge, Subject, Take, Touch, Touches};

use crate::nudges::Case;
use crate::responses::Answer;
use crate::{InputSet, MeasureError, MeasureResult};

/// A model at work.
pub struct Asked<'a> {
    /// The model.
    pub model: &'a mut dyn Model,
    /// Its answers to inputs that nobody touched, by their number.
    pub clean: &'a [Answer],
    /// How often it was asked.
    pub evaluations: u64,
    /// Ends the work.
    pub stop: &'a Stop,
    /// Hears how many answers there were.
    pub tick: &'a dyn Fn(u64),
}

/// What a model says to inputs, in order.
pub fn answers(model: &mut dyn Model, cases: &[Case]) -> MeasureResult<Vec<Answer>> {
    let inputs: Vec<Input> = cases.iter().map(|case| case.input.clone()).collect();
    let of = |case: &Case| Of { index: case.index, label: case.label, touched: case.touched };
    let scores = model.scores(&inputs);
    Whose::of(model).answers(scores, &cases.iter().map(of).collect::<Vec<_>>())
}

/// What is known of an input beside itself.
struct Of {
    index: usize,
    label: Option<usize>,
    touched: bool,
}

impl Of {
    fn state(&self) -> &'static str {
        if self.touched { "touched" } else { "untouched" }
    }
}

/// Whose answers they are.
struct Whose {
    name: String,
    outputs: Outputs,
}

impl Whose {
    fn of(model: &dyn Model) -> Self {
        Self { name: model.about().name.clone(), outputs: model.about().outputs }
    }

    /// Scores as answers to these inputs.
    fn answers(&self, scores: ModelResult<Scores>, cases: &[Of]) -> MeasureResult<Vec<Answer>> {
        let Self { name, outputs } = self;
        let scores = scores.map_err(|error| match error {
            ModelError::AtInput { at, problem } if at < cases.len() => {
                let (state, index) = (cases[at].state(), cases[at].index);
                MeasureError::AtInput { index, problem: format!("{problem} (at the {state} input {index})") }
            }
            error => error.into(),
        })?;
        if scores.rows().len() != cases.len() || scores.classes == 0 {
            let (found, asked) = (scores.rows().len(), cases.len());
            return Err(ModelError::Other(format!("{name} gave {found} answers to {asked} inputs")).into());
        }
        let answer = |(case, row): (&Of, &[f32])| {
            if let Some(bad) = row.iter().find(|score| !score.is_finite()) {
                let (state, index) = (case.state(), case.index);
                let problem =
                    format!("{name} gave a score of {bad} to the {state} input {index}; nothing can be compared");
                return Err(MeasureError::Other(problem));
            }
            if let Some(label) = case.label.filter(|label| row.len() > 1 && *label >= row.len()) {
                let classes = row.len();
                let problem = format!(
                    "{name} tells {classes} classes apart, but input {} is of class {label} (counted from 0)",
                    case.index
                );
                return Err(MeasureError::Other(problem));
            }
            Ok(Answer { scores: row.to_vec(), outputs: *outputs, label: case.label })
        };
        cases.iter().zip(scores.rows()).map(answer).collect()
    }
}

/// These inputs, read.
pub fn cases(inputs: &InputSet, range: std::ops::Range<usize>) -> MeasureResult<Vec<Case>> {
    use rayon::prelude::*;
    let read = |index: usize| {
        let labelled = inputs.read(index)?;
        Ok(Case { index, input: labelled.input, label: labelled.label, touched: false })
    };
    range.into_par_iter().map(read).collect()
}

/// Answers to all inputs as they are.
pub fn clean(model: &mut dyn Model, inputs: &InputSet, stop: &Stop, tick: &dyn Fn(u64)) -> MeasureResult<Vec<Answer>> {
    let (count, batch) = (inputs.about().count, model.batch().max(1));
    let mut all = Vec::with_capacity(count);
    while all.len() < count {
        stop.check()?;
        let cases = cases(inputs, all.len()..(all.len() + batch).min(count))?;
        all.extend(answers(model, &cases)?);
        tick(cases.len() as u64);
    }
    Ok(all)
}

impl<N: Nudge<Case> + ?Sized> Subject<Case, N> for Asked<'_> {
    type Out = Answer;
    type Error = MeasureError;

    fn answer(&mut self, cases: &[Case]) -> MeasureResult<Vec<Answer>> {
        let known = |case: &Case| if case.touched { None } else { self.clean.get(case.index).cloned() };
        match cases.iter().map(known).collect::<Option<Vec<Answer>>>() {
            Some(answers) => Ok(answers),
            None => self.ask(cases),
        }
    }

    fn answer_in_turn(
        &mut self,
        batches: &[Touches<Case, N>],
        take: &mut Take<Case, N, Answer, MeasureError>,
    ) -> MeasureResult<()> {
        self.stop.check()?;
        let whose = Whose::of(self.model);
        let Self { model, evaluations, stop, tick, .. } = self;
        let make = |at: usize| batches[at].made().into_iter().map(|case| case.input).collect();
        let mut done = 0;
        let mut taken = Ok(());
        model.scores_in_turn(batches.len(), &make, &mut |scores| {
            let touches = &batches[done];
            let of = |touch: &Touch| {
                let case = &touches.inputs[touch.input];
                Of { index: case.index, label: case.label, touched: true }
            };
            let cases: Vec<Of> = touches.touches.iter().map(of).collect();
            done += 1;
            taken = whose.answers(scores, &cases).and_then(|answers| {
                count(evaluations, tick, cases.len());
                take(touches, answers)?;
                if done < batches.len() { Ok(stop.check()?) } else { Ok(()) }
            });
            taken.is_ok()
        });
        taken
    }
}

impl Asked<'_> {
    /// Answers that are counted.
    pub fn ask(&mut self, cases: &[Case]) -> MeasureResult<Vec<Answer>> {
        self.stop.check()?;
        let answers = answers(self.model, cases)?;
        count(&mut self.evaluations, self.tick, cases.len());
        Ok(answers)
    }
}

fn count(evaluations: &mut u64, tick: &dyn Fn(u64), more: usize) {
    *evaluations += more as u64;
    tick(more as u64);
}
