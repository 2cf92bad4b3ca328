//! What is measured of a network: at every evaluation, and once more at the end.

use pudica_data::Split;
use pudica_nn::classifier::{Classifier, Model};
use pudica_probe::classifier::{
    Classified, WeightNoiseConfig, evaluate as loss_and_accuracy, largest_fraction, weight_noise,
};
use pudica_probe::{Estimate, NudgeName};
use serde_json::{Map, Value, json};

use super::config::ClassifierConfig;
use super::curvature::{Curvature, curvature};
use super::dataset::{Batch, Dataset, pack, sample};
use super::point::Point;
use crate::error::Result;
use crate::stop::Progress;

/// Loss, accuracy, sensitivity and robustness of a network as it is now. Where it stands is for the caller to say.
pub(super) fn evaluate<M: Dataset>(
    model: &Model<M::Network>,
    dataset: &M,
    config: &ClassifierConfig,
    progress: &Progress,
) -> Result<Point> {
    let train = over(model, dataset, Split::Train, progress)?;
    let test = over(model, dataset, Split::Test, progress)?;
    let mut point = Point {
        step: 0,
        epoch: 0,
        train_loss: train.loss.mean,
        train_accuracy: train.accuracy.mean,
        test_loss: test.loss.mean,
        test_loss_std_error: test.loss.std_error.unwrap_or(0.0),
        test_accuracy: test.accuracy.mean,
        test_accuracy_std_error: test.accuracy.std_error.unwrap_or(0.0),
        train_largest_class_fraction: Some(train.largest_class_fraction()),
        test_largest_class_fraction: Some(test.largest_class_fraction()),
        sensitivity: None,
        sensitivity_std_error: None,
        sensitivity_inputs: None,
        sites: Vec::new(),
        corruptions: dataset.corrupted(model, config, progress)?,
        seconds: 0.0,
    };
    if config.measure.nudge != NudgeName::None {
        point.take_in(&dataset.sensitivity(model, config, progress)?);
    }
    Ok(point)
}

/// The inputs of these rows in batches as large as the device likes.
fn batches<'a, M: Dataset>(
    model: &Model<M::Network>,
    dataset: &'a M,
    split: Split,
    rows: &'a [usize],
    progress: &'a Progress<'a>,
) -> impl Iterator<Item = Batch<<M::Network as Classifier>::Input>> + 'a {
    rows.chunks(pack(model.device())).take_while(|_| !progress.stopped()).map(move |rows| dataset.batch(split, rows))
}

fn over<M: Dataset>(model: &Model<M::Network>, dataset: &M, split: Split, progress: &Progress) -> Result<Classified> {
    let rows: Vec<usize> = (0..dataset.count(split)).collect();
    let found = loss_and_accuracy(model, batches(model, dataset, split, &rows, progress));
    progress.tick(rows.len() as f64)?;
    Ok(found?)
}

/// What is measured of the trained network only: numbers by name, and larger results.
pub(super) fn last_measures<M: Dataset>(
    model: &Model<M::Network>,
    dataset: &M,
    config: &ClassifierConfig,
    progress: &Progress,
) -> Result<(Map<String, Value>, Map<String, Value>)> {
    let (mut found, mut detail) = (Map::new(), Map::new());
    for split in Split::ALL {
        let majority = largest_fraction(&dataset.class_counts(split));
        found.insert(format!("{}_majority_fraction", split.name()), majority.into());
    }
    let measure = &config.measure;
    let train = |asked: usize, purpose: &str| sample(dataset.count(Split::Train), asked, config.data.seed, purpose);
    if measure.sharpness > 0.0 {
        let rows = train(measure.sharpness_inputs, "measure/sharpness");
        let noise = WeightNoiseConfig { deviation: measure.sharpness, draws: measure.sharpness_draws };
        let inputs = batches(model, dataset, Split::Train, &rows, progress).map(|(input, _)| input);
        let answers = weight_noise(model, inputs, &noise, config.seed);
        progress.tick((rows.len() * (1 + noise.draws)) as f64)?;
        let answers = answers?;
        put(&mut found, "shop", &answers.output_shift_l1);
        put(&mut found, "shop_l2", &answers.output_shift_l2);
        put(&mut found, "shpred", &answers.label_changes);
    }
    for (name, accuracy) in dataset.attacked(model, config, progress)? {
        put(&mut found, &format!("adversarial_{name}"), &accuracy);
    }
    if measure.hessian {
        let rows = train(measure.hessian_inputs, "measure/hessian");
        let batches: Vec<_> = batches(model, dataset, Split::Train, &rows, progress).collect();
        progress.tick(0.0)?;
        let Curvature { trace, top, step_error } = curvature(model, &batches, rows.len(), config.seed, progress)?;
        put(&mut found, "hessian_trace", &trace);
        found.insert("hessian_top".into(), top.value.into());
        found.insert("hessian_top_residual".into(), top.residual.into());
        found.insert("hessian_step_error".into(), step_error.into());
        detail.insert("hessian".into(), json!({"inputs": rows.len(), "products": top.products}));
    }
    Ok((found, detail))
}

fn put(measures: &mut Map<String, Value>, name: &str, estimate: &Estimate) {
    measures.insert(name.into(), estimate.mean.into());
    if let Some(error) = estimate.std_error {
        measures.insert(format!("{name}_std_error"), error.into());
    }
}
