//! Kind `classifier`: networks that learn images and texts, followed through training (Sections 5 to 7 of Vasudeva et al. 2024). Every
//! evaluation is a [`Point`], one line of a run's metrics.

mod config;
mod curvature;
mod dataset;
mod evaluate;
mod images;
mod library;
mod network;
mod point;
mod schedule;
mod text_network;
mod texts;
mod training;
mod validate;

use crate::compute::Abilities;
use crate::error::Error;
use crate::kinds::{Kind, canonical_as, defaults_of, documentation_of, no_teacher, resolve_as};

pub use config::{ClassifierConfig, DataConfig, InterveneConfig, MeasureConfig, ModelConfig, ModelKind, TrainConfig};
pub use point::Point;

/// The kind.
pub static KIND: Kind = Kind {
    name: "classifier",
    about: "networks that learn to classify images and texts",
    abilities: Abilities {
        devices: &["cpu", "cuda", "torch"],
        dtypes: &["f32"],
        engines: &["standard"],
        data: true,
        jobs: false,
        together: false,
    },
    figures: "classifier",
    naming: &["data.name", "model.kind", "seed"],
    headline: &["train_accuracy", "test_accuracy", "sensitivity"],
    measures: &[
        "epoch",
        "train_loss",
        "train_accuracy",
        "test_loss",
        "test_accuracy",
        "train_largest_class_fraction",
        "test_largest_class_fraction",
        "sensitivity",
        "sensitivity_inputs",
        "accuracy_*",
        "shop",
        "shop_l2",
        "shpred",
        "adversarial_*",
        "hessian_trace",
        "hessian_top",
        "hessian_top_residual",
        "hessian_step_error",
    ],
    defaults: defaults_of::<ClassifierConfig>,
    documentation: documentation_of::<ClassifierConfig>,
    resolve: resolve_as::<ClassifierConfig>,
    canonical: canonical_as::<ClassifierConfig>,
    teacher: no_teacher,
    open: library::open,
};

/// A name that is neither a data set's nor a folder's.
fn unknown_data(name: &str) -> Error {
    let images = pudica_data::images::DATA_SETS.iter().map(|set| set.name);
    let names: Vec<&str> = images.chain(pudica_data::text::TEXT_SETS.iter().map(|set| set.name)).collect();
    let near = pudica_boolean::did_you_mean(name, names.iter().copied());
    let problem = format!("\"{name}\" is no folder and no data set known here{near} ({})", names.join(", "));
    Error::setting("data.name", problem)
}

/// What to do where a known data set is not found.
fn how_to_get(name: &str) -> String {
    format!(
        "name the folder with the data by --data DIR or the variable PUDICA_DATA; `pudica data fetch {name}` downloads it"
    )
}
