//! What is measured of a network: at every evaluation, and once more at the end.

use pudica_data::Split;
use pudica_nn::classifier::{Classifier, Model};
use pudica_probe::classifier::{WeightNoise, evaluate as loss_and_accuracy, weight_noise};
use pudica_probe::{Estimate, Evaluation};
use serde_json::{Map, Value, json};

use super::config::StudyConfig;
use super::curvature::{Curvature, curvature};
use super::material::{Batch, Material, Watch, pack, sample};
use super::point::{Point, Site};
use crate::error::Result;

/// Loss, accuracy, sensitivity and robustness of a network as it is now. Where it stands is for the caller to say.
pub(super) fn evaluate<M: Material>(
    model: &Model<M::Network>,
    material: &M,
    config: &StudyConfig,
    watch: &Watch,
) -> Result<Point> {
    let train = over(model, material, Split::Train, watch)?;
    let test = over(model, material, Split::Test, watch)?;
    let mut point = Point {
        step: 0,
        epoch: 0,
        train_loss: train.loss.mean,
        train_accuracy: train.accuracy.mean,
        test_loss: test.loss.mean,
        test_loss_std_error: test.loss.std_error.unwrap_or(0.0),
        test_accuracy: test.accuracy.mean,
        test_accuracy_std_error: test.accuracy.std_error.unwrap_or(0.0),
        sensitivity: None,
        sensitivity_std_error: None,
        sensitivity_inputs: None,
        sites: Vec::new(),
        corruptions: material.corrupted(model, config, watch)?,
        seconds: 0.0,
    };
    if config.measure.nudge != "none" {
        point.take_in(&material.sensitivity(model, config, watch)?);
    }
    Ok(point)
}

/// The inputs of these rows in batches as large as the device likes.
fn batches<'a, M: Material>(
    model: &Model<M::Network>,
    material: &'a M,
    split: Split,
    rows: &'a [usize],
    watch: &'a Watch,
) -> impl Iterator<Item = Batch<<M::Network as Classifier>::Input>> + 'a {
    rows.chunks(pack(model.device())).take_while(|_| !watch.stopped()).map(move |rows| material.batch(split, rows))
}

fn over<M: Material>(model: &Model<M::Network>, material: &M, split: Split, watch: &Watch) -> Result<Evaluation> {
    let rows: Vec<usize> = (0..material.count(split)).collect();
    let found = loss_and_accuracy(model, batches(model, material, split, &rows, watch));
    watch.made(rows.len() as f64)?;
    Ok(found?)
}

/// What is measured of the trained network only: numbers by name, and larger results.
pub(super) fn last_measures<M: Material>(
    model: &Model<M::Network>,
    material: &M,
    config: &StudyConfig,
    watch: &Watch,
) -> Result<(Map<String, Value>, Map<String, Value>)> {
    let (mut found, mut detail) = (Map::new(), Map::new());
    let measure = &config.measure;
    let train = |asked: usize, purpose: &str| sample(material.count(Split::Train), asked, config.data.seed, purpose);
    if measure.sharpness > 0.0 {
        let rows = train(measure.sharpness_inputs, "measure/sharpness");
        let noise = WeightNoise { deviation: measure.sharpness, draws: measure.sharpness_draws };
        let inputs = batches(model, material, Split::Train, &rows, watch).map(|(input, _)| input);
        let answers = weight_noise(model, inputs, &noise, config.seed);
        watch.made((rows.len() * (1 + noise.draws)) as f64)?;
        let answers = answers?;
        put(&mut found, "shop", &answers.output_shift_l1);
        put(&mut found, "shop_l2", &answers.output_shift_l2);
        put(&mut found, "shpred", &answers.label_changes);
    }
    for (name, Site { mean, std_error }) in material.attacked(model, config, watch)? {
        found.insert(format!("adversarial_{name}"), mean.into());
        found.insert(format!("adversarial_{name}_std_error"), std_error.into());
    }
    if measure.hessian {
        let rows = train(measure.hessian_inputs, "measure/hessian");
        let batches: Vec<_> = batches(model, material, Split::Train, &rows, watch).collect();
        watch.made(0.0)?;
        let Curvature { trace, top, step_error } = curvature(model, &batches, rows.len(), config.seed, watch)?;
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
