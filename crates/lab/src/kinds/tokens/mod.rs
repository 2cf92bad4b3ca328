//! Kind `tokens`: one attention layer on synthetic tokens (Section 4 and A.1 of Vasudeva et al. 2024). Every measurement is a [`Point`],
//! one line of a run's metrics.

mod config;
mod measure;
mod predictors;
pub mod sensitivity;
mod training;

use crate::compute::Abilities;
use crate::kinds::{Kind, SettingsOf};

pub use config::TokensConfig;
pub use measure::{ByKind, Point};

/// The kind.
pub static KIND: Kind = Kind {
    name: "tokens",
    about: "one attention layer that learns synthetic tokens, of which sparse and frequent ones both tell the label",
    abilities: Abilities::CPU_F64,
    figures: "tokens",
    naming: &["data", "seed"],
    headline: &["test_accuracy", "ood_accuracy", "sensitivity"],
    measures: &[
        "epoch",
        "train_loss",
        "train_accuracy",
        "test_accuracy",
        "ood_accuracy",
        "alignment_sparse",
        "alignment_frequent",
        "alignment_irrelevant",
        "attention_sparse",
        "attention_frequent",
        "attention_irrelevant",
        "sensitivity",
        "predictor_*",
    ],
    settings: SettingsOf::of::<TokensConfig>(),
    teacher: |_| None,
    trained: |folder, _| training::trained(folder),
    open: training::open,
};
