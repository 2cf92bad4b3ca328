//! From measurements to results: estimates with intervals, paired differences, profiles, examples, a row for each input.

use std::path::Path;

use pudica_data::images::write_png;
use pudica_model::Input;
use pudica_statistics::{Estimate, Mean, Moments, Range};

use crate::MeasureResult;
use crate::curvature;
use crate::measure::{FORMAT, Question};
use crate::nudged::{self, Chunk};
use crate::nudges::{Setting, words_of};
use crate::responses::{Answer, Compared};
use crate::results::{
    BooleanDetail, Details, Difference, Example, Measured, ModelResult, SiteProfile, Sites, Summary, Value,
};
use crate::weights::{self, Direction};

/// What one model answered to one nudge.
pub struct Found {
    /// Which model.
    pub model: usize,
    /// Which nudge.
    pub setting: Setting,
    /// What it answered.
    pub of: Of,
}

/// Measurements as they were made.
pub enum Of {
    /// Of inputs at sites.
    Chunks(Vec<Chunk>, Sites),
    /// Of weights.
    Directions(Vec<Direction>),
    /// The Hessian.
    Curvature(Option<curvature::Found>),
    /// Of every string of bits.
    EveryString(Box<Chunk>, BooleanDetail),
}

impl Found {
    /// The chunks, and what their sites are.
    fn chunks(&self) -> Option<(&[Chunk], Sites)> {
        match &self.of {
            Of::Chunks(chunks, sites) => Some((chunks, sites.clone())),
            Of::EveryString(chunk, _) => Some((std::slice::from_ref(chunk), Sites::Bits)),
            Of::Directions(_) | Of::Curvature(_) => None,
        }
    }

    /// For each input, its response and the weight it has in the mean (its number of sites).
    pub fn by_input(&self, response: usize) -> Vec<(f64, f64)> {
        match &self.of {
            Of::Directions(directions) => {
                weights::by_input(directions, response).into_iter().map(|value| (value, 1.0)).collect()
            }
            Of::Curvature(_) => Vec::new(),
            _ => self.chunks().map_or(Vec::new(), |(chunks, _)| nudged::totals(chunks, response)),
        }
    }

    /// The mean of a response.
    pub fn estimate(&self, response: usize) -> Option<Estimate> {
        match &self.of {
            Of::EveryString(chunk, _) => {
                let sampled = nudged::estimate(std::slice::from_ref(chunk), response);
                Some(Estimate::exact(sampled.mean, sampled.samples))
            }
            Of::Directions(directions) => (!directions.is_empty()).then(|| weights::estimate(directions, response)),
            Of::Curvature(_) => None,
            Of::Chunks(chunks, ..) => (!chunks.is_empty()).then(|| nudged::estimate(chunks, response)),
        }
    }

    /// All that it is measured by, with names.
    pub fn estimates(&self, responses: &[Compared]) -> Vec<(String, Estimate)> {
        if let Of::Curvature(found) = &self.of {
            let Some(found) = found else { return Vec::new() };
            let top = found.top_eigenvalue.map(|top| ("top-eigenvalue".to_string(), Estimate::stated(top, None)));
            return [("trace".to_string(), found.trace)].into_iter().chain(top).collect();
        }
        let named = |(at, response): (usize, &Compared)| Some((response.name().to_string(), self.estimate(at)?));
        responses.iter().enumerate().filter_map(named).collect()
    }

    fn evaluations(&self) -> u64 {
        match &self.of {
            Of::Chunks(chunks, ..) => chunks.iter().map(|chunk| chunk.evaluations).sum(),
            Of::Directions(directions) => directions.iter().map(|direction| direction.evaluations).sum(),
            Of::Curvature(found) => found.as_ref().map_or(0, |found| found.evaluations),
            Of::EveryString(chunk, _) => chunk.evaluations,
        }
    }
}

/// A number with its 95 % interval inside the range of what it measures. Of a fraction of which nothing (or everything) was seen in so many
/// independent inputs the interval is Wilson's.
pub fn value(estimate: &Estimate, range: Range) -> Value {
    let mean = Mean::of_estimate(estimate);
    let known = estimate.std_error.is_some();
    let mean = match (range, estimate.exact) {
        (_, true) => mean,
        (Range::Fraction, false) => mean.within(range).of_cases(estimate.samples),
        (range, false) => mean.within(range),
    };
    let ci95 = (known && mean.low.is_finite()).then_some([mean.low, mean.high]);
    Value { value: mean.mean, std_error: estimate.std_error.filter(|error| error.is_finite()), ci95 }
}

fn range_of(name: &str) -> Range {
    Compared::named(name).map_or(Range::Any, Compared::range)
}

/// Everything that is written and shown.
pub fn summarise(
    question: &Question,
    cleans: &[Vec<Answer>],
    found: &[Found],
    problems: Vec<String>,
    notes: Vec<String>,
    seconds: f64,
    folder: &Path,
) -> MeasureResult<(Summary, Details)> {
    let about = question.inputs.about();
    let models = question.models.iter().enumerate().map(|(at, model)| {
        let clean = cleans.get(at).map_or(&[][..], Vec::as_slice);
        model_result(model.about().clone(), clean, is_everything(question))
    });
    let results: Vec<Measured> = found.iter().flat_map(|found| measured(question, found)).collect();
    let summary = Summary {
        format: FORMAT,
        program: question.program.clone(),
        command: question.command.clone(),
        complete: problems.is_empty(),
        problem: (!problems.is_empty()).then(|| problems.join("; ")),
        seconds,
        inputs: serde_json::to_value(about).unwrap_or_default(),
        models: models.collect(),
        results,
        differences: differences(question, found),
        notes: about.notes.iter().cloned().chain(notes).collect(),
    };
    let mut details = Details::default();
    for found in found {
        details.profiles.extend(profiles(question, cleans, found));
        details.examples.extend(examples(question, cleans, found, folder)?);
        if let Of::EveryString(_, detail) = &found.of {
            details.boolean.push(detail.clone());
        }
    }
    crate::table::write(folder, question, cleans, found)?;
    Ok((summary, details))
}

/// Whether the inputs are all there can be.
fn is_everything(question: &Question) -> bool {
    question.inputs.about().is_every_string()
}

fn model_result(about: pudica_model::About, clean: &[Answer], exact: bool) -> ModelResult {
    let right: Option<Moments> =
        clean.iter().map(|answer| answer.is_right().map(|right| f64::from(u8::from(right)))).collect();
    let losses: Option<Moments> = clean.iter().map(Answer::loss).collect();
    let of = |moments: Option<Moments>, range| {
        moments.filter(|moments| moments.count() > 0).map(|moments| value(&Estimate::of(&moments, exact), range))
    };
    ModelResult {
        about,
        inputs: clean.len(),
        clean_accuracy: of(right, Range::Fraction),
        clean_loss: of(losses, Range::Positive),
    }
}

fn measured(question: &Question, found: &Found) -> Vec<Measured> {
    let name = &question.models[found.model].about().name;
    let inputs = found.by_input(0);
    let sites = inputs.iter().map(|(_, sites)| sites).sum::<f64>() / inputs.len().max(1) as f64;
    let is_exact = is_exact(found);
    let of = |(response, estimate): (String, Estimate)| {
        let range = range_of(&response);
        let value = value(&estimate, range);
        Measured {
            note: note(question, found, &response, &estimate, &value),
            model: name.clone(),
            nudge: found.setting.text(),
            kind: found.setting.kind.name.into(),
            parameters: found.setting.parameters(),
            response,
            found: value,
            inputs: if let Of::Curvature(Some(found)) = &found.of { found.inputs } else { inputs.len() },
            sites,
            evaluations: found.evaluations(),
            exact: is_exact,
        }
    };
    // A number that is none has no place in tables; what it would have meant, its problem or note says.
    found.estimates(&question.responses).into_iter().filter(|(_, estimate)| estimate.mean.is_finite()).map(of).collect()
}

/// What there is to know about a number.
fn note(question: &Question, found: &Found, response: &str, estimate: &Estimate, value: &Value) -> Option<String> {
    if let Of::Curvature(Some(found)) = &found.of {
        let off = 100.0 * found.step_error;
        return Some(format!("{}; the finite step may change it by {off:.1} %", found.how));
    }
    let nothing = range_of(response) == Range::Fraction && estimate.mean == 0.0 && !estimate.exact;
    if let Some([_, high]) = value.ci95.filter(|_| nothing) {
        return Some(format!("never seen: below {high:.2e} with 95 % confidence"));
    }
    let (seen, count) = (found.by_input(0).len(), question.inputs.about().count);
    let half = value.ci95.map(|[low, high]| (high - low) / 2.0);
    let reached = half.map_or(String::new(), |half| format!(", precise to ±{half:.2e}"));
    match (question.enough.budget, question.enough.precision) {
        (Some(budget), precision)
            if seen < count && !half.zip(precision).is_some_and(|(half, wanted)| half <= wanted) =>
        {
            Some(format!("the budget of {budget} evaluations reached {seen} inputs{reached}"))
        }
        (_, Some(precision)) if seen == count && half.is_some_and(|half| half > precision) => {
            Some(format!("all {count} inputs were not enough for a precision of {precision}{reached}"))
        }
        _ => None,
    }
}

/// Every pair of models, the same nudge, the same inputs.
fn differences(question: &Question, found: &[Found]) -> Vec<Difference> {
    let mut all = Vec::new();
    for (at, one) in found.iter().enumerate() {
        for other in &found[at + 1..] {
            if one.model == other.model || one.setting.identity() != other.setting.identity() {
                continue;
            }
            for (response, compared) in question.responses.iter().enumerate() {
                let Some(estimate) = difference(other, one, response) else { continue };
                let name = |found: &Found| question.models[found.model].about().name.clone();
                all.push(Difference {
                    model: name(other),
                    with: name(one),
                    nudge: one.setting.text(),
                    response: compared.name().into(),
                    found: value(&estimate, Range::Any),
                    inputs: estimate.samples as usize,
                });
            }
        }
    }
    all
}

/// The mean of (one - other) over the inputs that both have, its error over inputs; for weight noise, the directions' errors of both are added.
fn difference(one: &Found, other: &Found, response: usize) -> Option<Estimate> {
    let (first, second) = (one.by_input(response), other.by_input(response));
    let count = first.len().min(second.len());
    if count == 0 {
        return None;
    }
    // Each model's own mean over these inputs: where texts have other tokens for other models, the numbers of sites differ.
    let mean = |values: &[(f64, f64)]| {
        let (sum, sites) =
            values[..count].iter().fold((0.0, 0.0), |(sum, sites), value| (sum + value.0, sites + value.1));
        (sum / sites.max(1.0), sites / count as f64)
    };
    let ((mean_one, sites_one), (mean_other, sites_other)) = (mean(&first), mean(&second));
    let residual = |at: usize| {
        (first[at].0 - mean_one * first[at].1) / sites_one - (second[at].0 - mean_other * second[at].1) / sites_other
    };
    let spread: Moments = (0..count).map(residual).collect();
    let mut std_error = spread.std_error();
    for found in [one, other] {
        if let (Of::Directions(directions), Some(error)) = (&found.of, &mut std_error) {
            let own = weights::over_directions(directions, response).std_error.unwrap_or(0.0);
            *error = error.hypot(own);
        }
    }
    Some(Estimate {
        mean: mean_one - mean_other,
        std_error,
        samples: count as u64,
        exact: is_exact(one) && is_exact(other),
    })
    .map(|estimate| if estimate.exact { Estimate { std_error: Some(0.0), ..estimate } } else { estimate })
}

fn is_exact(found: &Found) -> bool {
    matches!(found.of, Of::EveryString(..))
}

/// By site and by class.
fn profiles(question: &Question, cleans: &[Vec<Answer>], found: &Found) -> Vec<SiteProfile> {
    let sites = found.chunks().map_or(Sites::Whole, |(_, sites)| sites);
    let of = |(response, compared): (usize, &Compared)| {
        let range = compared.range();
        let mut by_site: Vec<Moments> = Vec::new();
        for chunk in found.chunks().map_or(&[][..], |(chunks, _)| chunks) {
            let of_chunk = &chunk.responses[response].by_site;
            by_site.resize(by_site.len().max(of_chunk.len()), Moments::default());
            by_site.iter_mut().zip(of_chunk).for_each(|(all, new)| all.merge(new));
        }
        SiteProfile {
            model: question.models[found.model].about().name.clone(),
            nudge: found.setting.text(),
            response: compared.name().into(),
            sites: sites.clone(),
            inputs_at_site: by_site.iter().map(Moments::count).collect(),
            by_site: by_site.iter().map(|moments| value(&Estimate::of(moments, is_exact(found)), range)).collect(),
            by_class: by_class(question, &cleans[found.model], found, response, range),
        }
    };
    match found.of {
        Of::Curvature(_) => Vec::new(),
        _ => question.responses.iter().enumerate().map(of).collect(),
    }
}

fn by_class(
    question: &Question,
    clean: &[Answer],
    found: &Found,
    response: usize,
    range: Range,
) -> Vec<(String, Value, u64)> {
    let classes = &question.inputs.about().classes;
    let mut of_class = vec![Vec::new(); classes.len()];
    for (answer, input) in clean.iter().zip(found.by_input(response)) {
        if let Some(class) = answer.label.and_then(|label| of_class.get_mut(label)) {
            class.push(input);
        }
    }
    let named = |(name, inputs): (&String, Vec<(f64, f64)>)| {
        (!inputs.is_empty()).then(|| (name.clone(), value(&Estimate::clustered(&inputs), range), inputs.len() as u64))
    };
    classes.iter().zip(of_class).filter_map(named).collect()
}

/// The most and the least sensitive inputs that are shown, each.
const EXAMPLES: usize = 6;

fn examples(question: &Question, cleans: &[Vec<Answer>], found: &Found, folder: &Path) -> MeasureResult<Vec<Example>> {
    let Some((chunks, sites)) = found.chunks().filter(|(_, sites)| !matches!(sites, Sites::Whole | Sites::Bits)) else {
        return Ok(Vec::new());
    };
    let first = question.responses[0];
    let maps: Vec<&Vec<f32>> = chunks.iter().flat_map(|chunk| &chunk.map).collect();
    let values: Vec<f64> = found.by_input(0).iter().map(|(total, sites)| total / sites.max(1.0)).collect();
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*b].total_cmp(&values[*a]).then(a.cmp(b)));
    let most = order.iter().take(EXAMPLES.min(order.len().div_ceil(2)));
    let least = order.iter().rev().take(EXAMPLES.min(order.len() / 2));
    let mut shown = Vec::new();
    for (index, is_most) in most.map(|index| (*index, true)).chain(least.map(|index| (*index, false))) {
        let labelled = question.inputs.read(index)?;
        let class = |class: usize| question.class_name(found.model, class);
        let predicted = cleans[found.model].get(index).map_or(String::new(), |answer| class(answer.predicted()));
        let words = match (&sites, &labelled.input) {
            (Sites::Positions { from_end: true }, input) => {
                // Tokens, last first, have no words that a reader knows.
                let tokens = question.models[found.model].tokens(input).unwrap_or_default();
                tokens.iter().map(u32::to_string).collect()
            }
            (_, input) => words_of(input),
        };
        shown.push(Example {
            model: question.models[found.model].about().name.clone(),
            nudge: found.setting.text(),
            response: first.name().into(),
            most: is_most,
            index,
            name: question.inputs.name(index),
            label: labelled.label.map(class),
            predicted,
            value: values[index],
            by_site: maps[index].iter().map(|value| f64::from(*value)).collect(),
            image: write_image(folder, index, &labelled.input)?,
            words,
            values: if let Input::Row(values) = labelled.input { values } else { Vec::new() },
        });
    }
    Ok(shown)
}

/// Writes an image beside the page; values outside 0 to 1 are stretched into it.
fn write_image(folder: &Path, index: usize, input: &Input) -> MeasureResult<Option<String>> {
    let Input::Image(image) = input else { return Ok(None) };
    let file = format!("examples/{index}.png");
    let path = folder.join(&file);
    if path.exists() {
        return Ok(Some(file));
    }
    std::fs::create_dir_all(folder.join("examples")).map_err(pudica_lab::Error::io("create", folder))?;
    let [channels, height, width] = image.shape;
    let (low, high) = image.values.iter().fold((0f32, 1f32), |(low, high), value| (low.min(*value), high.max(*value)));
    let byte = |at: usize, channel: usize| {
        let value = image.values[channel.min(channels - 1) * height * width + at];
        (255.0 * (value - low) / (high - low)).round() as u8
    };
    let pixels: Vec<u8> = (0..height * width).flat_map(|at| (0..3).map(move |channel| byte(at, channel))).collect();
    write_png(&path, width, height, &pixels)?;
    Ok(Some(file))
}
