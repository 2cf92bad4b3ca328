//! The settings of one run of a study: a classifier, what it learns, how it is trained, and what is measured on the way.

use serde::{Deserialize, Serialize};

use crate::config::{Configuration, Settings};
use crate::error::Result;
use crate::recipe::Kind;

/// All settings of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StudyConfig {
    /// Names every random choice of the run: initial weights, order of the batches, noise.
    pub seed: u64,
    /// What is learnt.
    pub data: DataConfig,
    /// The network.
    pub model: ModelConfig,
    /// How it is trained.
    pub train: TrainConfig,
    /// What is done in training to make it less sensitive.
    pub intervene: InterveneConfig,
    /// What is measured, and when.
    pub measure: MeasureConfig,
}

/// What is learnt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataConfig {
    /// A data set by its name (`mnist`, `fashion-mnist`, `cifar10`, `svhn`; `mrpc`, `qqp`, `sst2`), or the path of a folder that holds two
    /// image sets called `train` and `test` (folders of classes, or `.npy` with labels beside them).
    pub name: String,
    /// Training inputs: 0 for all, otherwise so many of them, drawn by `seed` below.
    pub train: usize,
    /// Test inputs: 0 for all, otherwise so many of them, drawn likewise.
    pub test: usize,
    /// Which inputs are drawn, where not all are taken. Not the run's seed: runs of different seeds learn the same subset.
    pub seed: u64,
    /// Whether there are two classes only: those below 5, and the others.
    pub binary: bool,
}

/// Which architecture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // their names say what they are
pub enum ModelKind {
    Mlp,
    Cnn,
    VitSmall,
    VitSimple,
    Resnet18,
    Densenet121,
    Convmixer,
    Roberta,
    Gpt2,
    Lstm,
}

impl ModelKind {
    /// All, with the names they are asked for by.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Mlp, "mlp"),
        (Self::Cnn, "cnn"),
        (Self::VitSmall, "vit-small"),
        (Self::VitSimple, "vit-simple"),
        (Self::Resnet18, "resnet18"),
        (Self::Densenet121, "densenet121"),
        (Self::Convmixer, "convmixer"),
        (Self::Roberta, "roberta"),
        (Self::Gpt2, "gpt2"),
        (Self::Lstm, "lstm"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }

    /// Whether it reads texts, not images.
    pub fn reads_text(self) -> bool {
        matches!(self, Self::Roberta | Self::Gpt2 | Self::Lstm)
    }

    /// The settings of [`ModelConfig`] that it has, beside its kind.
    pub(super) fn settings(self) -> &'static [&'static str] {
        match self {
            Self::Mlp => &["hidden", "activation"],
            Self::Cnn => &["hidden", "channels", "kernel"],
            Self::VitSmall => &["depth", "heads", "dim", "dim_head", "mlp", "dropout", "patch", "attention"],
            Self::VitSimple => &["depth", "heads", "dim", "dim_head", "mlp", "patch", "attention"],
            Self::Resnet18 | Self::Densenet121 => &[],
            Self::Convmixer => &["depth", "dim", "kernel", "patch"],
            Self::Roberta => &["depth", "heads", "dim", "mlp", "dropout", "length", "attention"],
            Self::Gpt2 => &["depth", "heads", "dim", "mlp", "dropout", "length"],
            Self::Lstm => &["depth", "dim", "dropout", "length"],
        }
    }
}

/// The network that learns. A kind has some of these settings; those it does not have are set to 0 or nothing when the run is planned, so
/// that they make no different runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ModelConfig {
    /// Which architecture.
    pub kind: ModelKind,
    /// Blocks or layers.
    pub depth: usize,
    /// Attention heads.
    pub heads: usize,
    /// Width of a token.
    pub dim: usize,
    /// Width of a head.
    pub dim_head: usize,
    /// Width of the perceptron inside a block.
    pub mlp: usize,
    /// Widths of hidden layers, as in `512-128`.
    pub hidden: String,
    /// After hidden layers: `leaky-relu` or `sigmoid`.
    pub activation: String,
    /// Share of values that dropout zeroes in training.
    pub dropout: f64,
    /// Side of a patch, in pixels.
    pub patch: usize,
    /// Channels of a convolution.
    pub channels: usize,
    /// Side of a convolution's kernel.
    pub kernel: usize,
    /// What turns scores into attention: `softmax` or `relu`.
    pub attention: String,
    /// Tokens of a text, at most; longer ones are cut.
    pub length: usize,
}

/// How it is trained: cross-entropy, one batch at a time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// `sgd`, `adam` or `adamw`.
    pub optimiser: String,
    /// Learning rate of the first epoch.
    pub lr: f64,
    /// How much of the last step SGD makes again.
    pub momentum: f64,
    /// Pull of the weights towards 0.
    pub weight_decay: f64,
    /// Inputs a step.
    pub batch: usize,
    /// Times every training input is seen.
    pub epochs: u64,
    /// What the learning rate is multiplied with ...
    pub factor: f64,
    /// ... after so many epochs, again and again; 0: never.
    pub factor_every: u64,
}

/// Ways to make an image network less sensitive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InterveneConfig {
    /// Not 0: every epoch also sees a copy of each training image with noise of this variance on every pixel.
    pub augment: f64,
    /// Not 0: the loss has in addition this much times the mean squared difference between the outputs for an image and for the same image
    /// with noise in one random patch,
    pub regularise: f64,
    /// of this variance.
    pub regularise_variance: f64,
}

/// What is measured, and when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasureConfig {
    /// Epochs between two evaluations; there is one at the end in any case.
    pub every: u64,
    /// What sensitivity touches: `noise` (on a patch), `replace` (a patch by noise; a word by others), `embedding` (noise on a token's
    /// embedding) or `none`.
    pub nudge: String,
    /// Variance of that noise.
    pub variance: f64,
    /// Times each patch or token is touched.
    pub draws: usize,
    /// Side of the patches touched, in pixels.
    pub patch: usize,
    /// Inputs touched: 0 for all, otherwise so many of them, the same at every evaluation.
    pub inputs: usize,
    /// Where those inputs are from: `train` or `validation` (the test set).
    pub set: String,
    /// Corruptions of CIFAR-10-C whose images are classified at every evaluation, joined by `+`; `all`: the fifteen; `none`.
    pub corruptions: String,
    /// Their severity, 1 to 5.
    pub severity: usize,
    /// Test images corrupted: 0 for all.
    pub corrupted: usize,
    /// Standard deviation of the weight noise of ShOp and ShPred at the end; 0: not measured.
    pub sharpness: f64,
    /// Draws of that noise.
    pub sharpness_draws: usize,
    /// Training inputs ShOp and ShPred are averaged over: 0 for all.
    pub sharpness_inputs: usize,
    /// How far attacks may move a pixel (of values 0 to 1) at the end, joined by `+`, as in `0.01+0.03`; `none`.
    pub adversarial: String,
    /// Test images attacked: 0 for all.
    pub adversarial_images: usize,
    /// Whether the Hessian's trace and largest eigenvalue are measured at the end.
    pub hessian: bool,
    /// Training inputs whose loss the Hessian is of: 0 for all.
    pub hessian_inputs: usize,
}

/// Every default, in one place: the common settings of Vasudeva et al. (2024), `spec/vasudeva.md`; recipes set what differs.
impl Default for StudyConfig {
    fn default() -> Self {
        StudyConfig {
            seed: 0,
            data: DataConfig {
                name: "cifar10".into(), // the paper's main images
                train: 0,               // all
                test: 0,                // all
                seed: 0,
                binary: false, // only MNIST is
            },
            model: ModelConfig {
                kind: ModelKind::VitSmall,
                depth: 8,                        // CIFAR-10's ViT-small (D, "Section 5")
                heads: 32,                       // CIFAR-10's ViT-small
                dim: 64,                         // ViT-small, every image data set
                dim_head: 64,                    // ViT-small
                mlp: 256,                        // CIFAR-10's ViT-small
                hidden: "512-128".into(),        // Fashion-MNIST's perceptron
                activation: "leaky-relu".into(), // perceptron and CNN
                dropout: 0.1,                    // ViT-small and all text networks
                patch: 4,                        // all but MNIST
                channels: 32,                    // the CNN
                kernel: 3,                       // the CNN, ConvMixer
                attention: "softmax".into(),
                length: 128, // texts
            },
            train: TrainConfig {
                optimiser: "sgd".into(), // all images
                lr: 0.1,                 // ViT-small
                momentum: 0.0,           // none is mentioned
                weight_decay: 0.0,       // none is mentioned for images
                batch: 100,              // all images but MNIST
                epochs: 50,              // images
                factor: 1.0,             // constant, but for Adam and texts
                factor_every: 0,
            },
            intervene: InterveneConfig {
                augment: 0.0,
                regularise: 0.0,
                regularise_variance: 1.0, // Section 7
            },
            measure: MeasureConfig {
                every: 5,              // images
                nudge: "noise".into(), // all but MNIST and texts
                variance: 1.0,         // CIFAR-10 and SVHN
                draws: 5,              // images
                patch: 4,              // all but MNIST
                inputs: 0,             // the whole training set
                set: "train".into(),
                corruptions: "none".into(),
                severity: 2, // the main figures
                corrupted: 0,
                sharpness: 0.0,
                sharpness_draws: 5, // Section 7.2
                sharpness_inputs: 0,
                adversarial: "none".into(),
                adversarial_images: 0,
                hessian: false,
                hessian_inputs: 0,
            },
        }
    }
}

impl Configuration for StudyConfig {
    const KIND: Kind = Kind::Study;

    fn resolve(settings: &Settings) -> Result<Self> {
        super::validate::resolve(settings)
    }

    fn label(&self) -> String {
        let mut label = format!("{} {}", self.data.name, self.model.label());
        if self.train.optimiser == "adam" && !self.model.kind.reads_text() {
            label += " adam";
        }
        if self.intervene.augment > 0.0 {
            label += " + augmentation";
        }
        if self.intervene.regularise > 0.0 {
            label += " + regularisation";
        }
        format!("{label} seed={}", self.seed)
    }
}

impl ModelConfig {
    /// How a person names the network: `vit-small (depth 8, 32 heads)`.
    pub fn label(&self) -> String {
        let attention = if self.attention == "relu" { ", relu" } else { "" };
        let size = match self.kind {
            ModelKind::Mlp if self.activation == "sigmoid" => format!("{}, sigmoid", self.hidden),
            ModelKind::Mlp => self.hidden.clone(),
            ModelKind::Cnn | ModelKind::Resnet18 | ModelKind::Densenet121 => return self.kind.name().into(),
            ModelKind::Convmixer | ModelKind::Lstm => format!("depth {}", self.depth),
            _ => format!("depth {}, {} heads{attention}", self.depth, self.heads),
        };
        format!("{} ({size})", self.kind.name())
    }
}
