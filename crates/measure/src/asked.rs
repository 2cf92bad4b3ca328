//! A model that is asked about inputs: its clean answers are computed once, all others are counted.

use pudica_lab::Stop;
use pudica_model::{Batches, Edits, Input, Model, ModelError, ModelResult, Outputs, Scores};
use pudica_probe::{Subject, Take, Touch, Touches};
use rayon::prelude::*;

use crate::nudges::{Case, CaseNudge};
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

/// Batches of touched cases.
struct Touched<'a>(&'a [Touches<'a, Case, dyn CaseNudge>]);

/// Values from which on it pays to draw them on several cores.
const MANY: usize = 1 << 16;

impl Batches for Touched<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn made(&self, at: usize) -> Vec<Input> {
        self.0[at].made().into_iter().map(|case| case.input).collect()
    }

    fn edits(&self, at: usize) -> Option<Edits<'_>> {
        let batch = &self.0[at];
        let edit = batch.nudge.as_edit()?;
        let (places, originals) = (edit.places(), batch.inputs.iter().map(|case| &case.input).collect());
        let images = batch.inputs.iter().map(|case| match &case.input {
            Input::Image(image) => Some(&image.values[..]),
            _ => None,
        });
        let images: Vec<&[f32]> = images.collect::<Option<_>>()?;
        let each = places.first().map(Vec::len).filter(|each| *each > 0)?;
        let mut values = vec![0.0; each * batch.touches.len()];
        let change = |(touch, changed): (&Touch, &mut [f32])| {
            let mut noise = batch.nudge.stream(&batch.name(touch));
            edit.change(images[touch.input], touch.site, &mut noise, changed);
        };
        match values.len() < MANY {
            true => batch.touches.iter().zip(values.chunks_mut(each)).for_each(change),
            false => batch.touches.par_iter().zip(values.par_chunks_mut(each)).for_each(change),
        }
        let changed = batch.touches.iter().map(|touch| (touch.input, touch.site)).collect();
        Some(Edits { group: batch.before, originals, places, changed, values })
    }
}

impl Subject<Case, dyn CaseNudge> for Asked<'_> {
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
        batches: &[Touches<Case, dyn CaseNudge>],
        take: &mut Take<Case, dyn CaseNudge, Answer, MeasureError>,
    ) -> MeasureResult<()> {
        self.stop.check()?;
        let whose = Whose::of(self.model);
        let Self { model, evaluations, stop, tick, .. } = self;
        let mut done = 0;
        let mut taken = Ok(());
        model.scores_in_turn(&Touched(batches), &mut |scores| {
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

#[cfg(test)]
mod tests {
    use pudica_boolean::npy::Type;
    use pudica_model::Takes;

    use super::*;
    use crate::nudges::{Material, NudgeRequest};
    use crate::{Held, InputsRequest};

    #[test]
    fn images_put_together_from_what_differs_are_those_that_are_made_to_the_bit() {
        let values = (0..4 * 3 * 8 * 12).flat_map(|at| (at as f32).sin().to_le_bytes()).collect();
        let held = Held::Array { dtype: Type::F32, shape: vec![4, 3, 8, 12], bytes: values };
        let takes = Takes::Images { channels: None, height: None, width: None };
        let inputs = InputSet::of(held, None, &InputsRequest::default(), &takes).unwrap();
        let channel_std = vec![0.3, 1.0, 2.0];
        let material = Material { inputs: &inputs, channel_std, vocabulary: None, embedding_width: None, data: None };
        let group = cases(&inputs, 1..4).unwrap();
        let touches: Vec<Touch> =
            (0..18).map(|at| Touch { input: at % 3, site: at % 6, draw: at }).filter(|touch| touch.draw != 7).collect();
        for text in ["patch-noise:size=4,variance=2", "patch-replace:size=4"] {
            let setting = &NudgeRequest::parse(text).unwrap().settings()[0];
            let nudge = setting.touching(&material).unwrap().unwrap().nudge;
            let of = |touches| Touches { inputs: &group, before: 1, nudge: &*nudge, touches, seed: 3, purpose: text };
            let batches: Vec<_> = touches.chunks(10).map(of).collect();
            let batches = Touched(&batches);
            for at in 0..2 {
                let edits = batches.edits(at).unwrap();
                assert_eq!((edits.group, edits.values.len()), (1, edits.changed.len() * 48));
                let put_together =
                    edits.changed.iter().zip(edits.values.chunks(48)).map(|((original, site), values)| {
                        let Input::Image(mut image) = edits.originals[*original].clone() else { panic!("no image") };
                        edits.places[*site].iter().zip(values).for_each(|(place, value)| image.values[*place] = *value);
                        Input::Image(image)
                    });
                assert_eq!(put_together.collect::<Vec<_>>(), batches.made(at), "{text}");
            }
        }
        let whole = &NudgeRequest::parse("pixel-noise").unwrap().settings()[0];
        assert!(whole.touching(&material).unwrap().unwrap().nudge.as_edit().is_none());
    }
}
