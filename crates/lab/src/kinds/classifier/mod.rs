//! Kind `classifier`: networks that learn images and texts, followed through training (Sections 5 to 7 of Vasudeva et al. 2024). Every
//! evaluation is a [`Point`], one line of a run's metrics.

mod config;
mod curvature;
mod dataset;
mod evaluate;
mod images;
mod library;
mod network;
mod of_run;
mod own;
mod point;
mod schedule;
mod size;
mod text_network;
mod texts;
mod training;
mod validate;

use crate::compute::Abilities;
use crate::kinds::{Kind, SettingsOf};

pub use config::{ClassifierConfig, DataConfig, InterveneConfig, MeasureConfig, ModelConfig, ModelKind, TrainConfig};
pub use own::{OwnData, own_data};
pub use point::Point;

/// The kind.
pub static KIND: Kind = Kind {
    name: "classifier",
    about: "networks that learn to classify images and texts",
    abilities: Abilities {
        devices: &["cpu", "cuda", "torch"],
        dtypes: &["f32", "tf32"],
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
        "train_majority_fraction",
        "test_majority_fraction",
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
    settings: SettingsOf { identify: own::identify, ..SettingsOf::of::<ClassifierConfig>() },
    teacher: |_| None,
    trained: of_run::trained,
    open: library::open,
};

/// What to do where a known data set is not found.
fn how_to_get(name: &str) -> String {
    format!(
        "name the folder with the data by --data DIR or the variable PUDICA_DATA; `pudica data fetch {name}` downloads it"
    )
}
