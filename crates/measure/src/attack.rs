//! Pixels moved against the network, along the gradient of its loss.

use pudica_model::{Image, Input};
use pudica_probe::Response;
use pudica_probe::classifier::{Attack, Norm};

use crate::MeasureResult;
use crate::asked::{Asked, cases};
use crate::nudged::{Asking, Chunk, ChunkResponse};
use crate::nudges::{Case, Setting};
use crate::work::WorkFile;

/// The attack a setting means. Pixels are values from 0 to 1.
fn attack(setting: &Setting) -> MeasureResult<Attack> {
    let norm = if setting.value("norm") == "l2" { Norm::L2 } else { Norm::Linf };
    let epsilon = setting.positive("epsilon")?;
    let attack = match setting.kind.name {
        "fgsm" => Attack::fgsm(norm, epsilon),
        _ => Attack::pgd(norm, epsilon, setting.whole("steps", 10_000)?),
    };
    Ok(Attack { range: (0.0, 1.0), ..attack })
}

/// Measures what is not in `file` yet, batch after batch.
pub fn measure(asked: &mut Asked, asking: &Asking, file: &mut WorkFile<Chunk>) -> MeasureResult<()> {
    let attack = attack(asking.setting)?;
    let (count, batch) = (asking.inputs.about().count, asked.model.batch().max(1));
    loop {
        let first: usize = file.parts.iter().map(|chunk| chunk.sites.len()).sum();
        let spent: u64 = file.parts.iter().map(|chunk| chunk.evaluations).sum();
        if first >= count || asking.enough.budget.is_some_and(|budget| spent >= budget) {
            return Ok(());
        }
        let before = asked.evaluations;
        let per_input = attack.steps as u64 + 1;
        let affordable = asking.enough.budget.map_or(u64::MAX, |budget| budget.saturating_sub(spent) / per_input);
        let some = batch.min(affordable as usize).max(1);
        let cases = cases(asking.inputs, first..(first + some).min(count))?;
        let moved = moved(asked, asking, &attack, &cases)?;
        let answers = asked.ask(&moved)?;
        let mut responses = vec![ChunkResponse { totals: Vec::new(), by_site: Vec::new() }; asking.responses.len()];
        for (case, after) in cases.iter().zip(&answers) {
            for (found, response) in responses.iter_mut().zip(asking.responses) {
                found.totals.push(response.compare(&asked.clean[case.index], after));
            }
        }
        for found in &mut responses {
            found.by_site = vec![found.totals.iter().copied().collect()];
        }
        let map = responses[0].totals.iter().map(|value| vec![*value as f32]).collect();
        let evaluations = asked.evaluations - before;
        file.push(Chunk { first, sites: vec![1; cases.len()], evaluations, responses, map })?;
    }
}

/// The inputs after the attack.
fn moved(asked: &mut Asked, asking: &Asking, attack: &Attack, cases: &[Case]) -> MeasureResult<Vec<Case>> {
    let mut labels = Vec::with_capacity(cases.len());
    let mut images: Vec<Image> = Vec::with_capacity(cases.len());
    for case in cases {
        let Some(label) = case.label else {
            return Err(asking.setting.refuse("an attack needs labels, and the inputs have none"));
        };
        let Input::Image(image) = &case.input else { return Err(asking.setting.refuse("an attack needs images")) };
        labels.push(label);
        images.push(image.clone());
    }
    let originals = images.clone();
    if attack.random_start {
        for (case, image) in cases.iter().zip(&mut images) {
            let mut noise = pudica_data::Stream::new(asking.seed, "measure/attack", case.index as u64);
            attack.start(&mut image.values, &mut noise);
        }
        project(attack, &mut images, &originals);
    }
    for _ in 0..attack.steps {
        asked.stop.check()?;
        let inputs: Vec<Input> = images.iter().cloned().map(Input::Image).collect();
        let gradients = asked.model.input_gradient(&inputs, &labels)?;
        images.iter_mut().zip(&gradients).for_each(|(image, gradient)| attack.step(&mut image.values, gradient));
        project(attack, &mut images, &originals);
        asked.evaluations += cases.len() as u64;
        (asked.tick)(cases.len() as u64);
    }
    let touched = |(case, image): (&Case, Image)| Case { input: Input::Image(image), touched: true, ..*case };
    Ok(cases.iter().zip(images).map(touched).collect())
}

fn project(attack: &Attack, images: &mut [Image], originals: &[Image]) {
    for (image, original) in images.iter_mut().zip(originals) {
        attack.project(&mut image.values, &original.values);
    }
}
