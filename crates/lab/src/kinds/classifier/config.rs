//! The settings of one run: a classifier, what it learns, how it is trained, and what is measured on the way.

use pudica_probe::NudgeName;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::kinds::{Configuration, choices, documented};
use crate::settings::Settings;

documented! {
    /// All settings of one run.
    pub struct ClassifierConfig {
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
}

documented! {
    /// What is learnt.
    pub struct DataConfig {
        /// A data set by its name (`mnist`, `fashion-mnist`, `cifar10`, `svhn`; `mrpc`, `qqp`, `sst2`), or your own: a folder of images or texts, or
        /// a file of texts, by its path from here or from the data folder (docs/data.md).
        pub name: String,
        /// Training inputs: 0 for all, otherwise so many of them, drawn by `seed` below.
        pub train: usize,
        /// Test inputs: 0 for all, otherwise so many of them, drawn likewise.
        pub test: usize,
        /// Which inputs are drawn, where not all are taken. Not the run's seed: runs of different seeds learn the same subset.
        pub seed: u64,
        /// Not 0: both sets come from what the data set calls its test split, so many inputs of it for tests (drawn by `seed`) and the others for
        /// training. For SVHN, whose training split is large.
        pub held_out: usize,
        /// Whether there are two classes only: those below 5, and the others.
        pub binary: bool,
        /// Own texts: the column of the text, or of both texts of a pair with `+` between them (`sentence1+sentence2`). Empty: `text`, `sentence`,
        /// `sentence1+sentence2`, `question1+question2` or `premise+hypothesis`, the first of these that the file has.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub text: String,
        /// Own texts: the column of the class, words or numbers. Empty: `label`.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub label: String,
        /// Own images: their middle square is resized to so many pixels in height and width; 0: they are square and of one size already.
        #[serde(default, skip_serializing_if = "is_zero")]
        pub size: usize,
        /// Own data without a part for tests: the fraction of each class that is for tests, drawn by `seed` above; 0: a fifth.
        #[serde(default, skip_serializing_if = "is_nothing")]
        pub test_fraction: f64,
        /// Own data: the first 16 digits of the SHA-256 of its files. It is filled in, so that changed files make other runs; files that have
        /// another one than is given here are refused.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        pub content: String,
    }
}

fn is_zero(size: &usize) -> bool {
    *size == 0
}

fn is_nothing(fraction: &f64) -> bool {
    *fraction == 0.0
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
}

documented! {
    /// The network that learns. Its kind has some of these settings. A size of 0 or an empty text means the kind's own, which is the paper's;
    /// a planned run states it, and has 0 or nothing where its kind has no such setting: what plays no part makes no different runs.
    pub struct ModelConfig {
        /// Which architecture.
        pub kind: ModelKind,
        /// Blocks or layers (ViTs, ConvMixer, texts).
        pub depth: usize,
        /// Attention heads.
        pub heads: usize,
        /// Width of a token.
        pub dim: usize,
        /// Width of a head (ViTs).
        pub dim_head: usize,
        /// Width of the feed-forward layers.
        pub mlp: usize,
        /// Fraction of values that dropout zeroes in training (ViT-small, texts).
        pub dropout: f64,
        /// What turns scores into attention: `softmax` or `relu` (ViT-small, RoBERTa).
        pub attention: String,
        /// Side of a patch, in pixels (ViTs, ConvMixer).
        pub patch: usize,
        /// Side of a convolution's kernel (ConvMixer).
        pub kernel: usize,
        /// Widths of hidden layers, as in `512-128` (perceptron, CNN).
        pub hidden: String,
        /// After hidden layers: `leaky-relu` or `sigmoid` (perceptron, CNN).
        pub activation: String,
        /// Channels of the first convolution (CNN, ResNet-18), or those each layer adds (DenseNet-121).
        pub width: usize,
        /// Blocks in each stage, as in `2-2-2-2` (ResNet-18, DenseNet-121).
        pub blocks: String,
        /// Tokens of a text, at most; longer ones are cut.
        pub length: usize,
    }
}

documented! {
    /// How it is trained: cross-entropy, one batch at a time.
    pub struct TrainConfig {
        /// `sgd`, `adam` or `adamw`.
        pub optimiser: String,
        /// Learning rate of the first epoch.
        pub lr: f64,
        /// How much of the last step SGD makes again.
        pub momentum: f64,
        /// Pull of the weights towards 0.
        pub weight_decay: f64,
        /// Batch size: inputs per step.
        pub batch: usize,
        /// Times every training input is seen.
        pub epochs: u64,
        /// What the learning rate is multiplied with every `factor_every` epochs.
        pub factor: f64,
        /// Epochs after which the learning rate is multiplied with `factor`, again and again; 0: never.
        pub factor_every: u64,
    }
}

documented! {
    /// Ways to make an image network less sensitive.
    pub struct InterveneConfig {
        /// Not 0: every epoch also sees a copy of each training image with noise of this variance on every pixel.
        pub augment: f64,
        /// Not 0: the loss has in addition this much times the mean squared difference between the outputs for an image and for the same image
        /// with noise in one random patch.
        pub regularise: f64,
        /// Variance of the regulariser's noise.
        pub regularise_variance: f64,
        /// Side of the regulariser's patch, in pixels.
        pub regularise_patch: usize,
    }
}

choices!(NudgeName: "noise", "replace", "embedding", "none");

documented! {
    /// What is measured, and when.
    pub struct MeasureConfig {
        /// Epochs between two evaluations; there is one at the end in any case.
        pub every: u64,
        /// Whether the network is evaluated before it is trained, too.
        pub start: bool,
        /// What sensitivity touches: `noise` (on a patch), `replace` (a patch by noise; a word by others), `embedding` (noise on a token's
        /// embedding) or `none`.
        pub nudge: NudgeName,
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
        /// Corruptions of CIFAR-10-C whose images are classified at every evaluation, joined by `+`; `paper`: its fifteen;
        /// `benchmark`: CIFAR-10-C's fifteen (defocus blur in place of Gaussian blur); `none`.
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
        /// How far attacks (FGSM and PGD) may move a pixel (of values 0 to 1) at the end, joined by `+`, as in `0.01+0.03`; `none`.
        pub adversarial: String,
        /// How far attacks (PGD) may move an image at the end, as the Euclidean length of the change; `none`.
        pub adversarial_l2: String,
        /// Test images attacked: 0 for all.
        pub adversarial_images: usize,
        /// Whether the Hessian's trace and largest eigenvalue are measured at the end.
        pub hessian: bool,
        /// Training inputs whose loss the Hessian is of: 0 for all.
        pub hessian_inputs: usize,
    }
}

/// Every default, in one place: the common settings of Vasudeva et al. (2024), `spec/vasudeva.md`; recipes set what differs.
impl Default for ClassifierConfig {
    fn default() -> Self {
        ClassifierConfig {
            seed: 0,
            data: DataConfig {
                name: "cifar10".into(), // the paper's main images
                train: 0,               // all
                test: 0,                // all
                seed: 0,
                held_out: 0,
                binary: false, // only MNIST is
                text: String::new(),
                label: String::new(),
                size: 0,
                test_fraction: 0.0,
                content: String::new(),
            },
            model: ModelConfig {
                dropout: 0.1, // ViT-small and all text networks
                // 0 and "" are each network's own, stated where it is defined: `pudica_nn::vision` and `pudica_nn::text`.
                ..ModelConfig::empty(ModelKind::VitSmall)
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
                regularise_patch: 4,      // the patches of all but MNIST
            },
            measure: MeasureConfig {
                every: 5,                // images
                start: true,             // as in the figures on texts
                nudge: NudgeName::Noise, // all but MNIST and texts
                variance: 1.0,           // CIFAR-10 and SVHN
                draws: 5,                // images
                patch: 4,                // all but MNIST
                inputs: 0,               // the whole training set
                set: "train".into(),
                corruptions: "none".into(),
                severity: 2, // the main figures
                corrupted: 0,
                sharpness: 0.0,
                sharpness_draws: 5, // Section 7.2
                sharpness_inputs: 0,
                adversarial: "none".into(),
                adversarial_l2: "none".into(),
                adversarial_images: 0,
                hessian: false,
                hessian_inputs: 0,
            },
        }
    }
}

choices!(ModelKind: "mlp", "cnn", "vit-small", "vit-simple", "resnet18", "densenet121", "convmixer", "roberta", "gpt2", "lstm");

impl Configuration for ClassifierConfig {
    fn resolve(settings: &Settings) -> Result<Self> {
        super::validate::resolve(settings)
    }

    fn settings(&self) -> Settings {
        let mut settings = Settings::of(self);
        // Left out of the JSON when they are the default, but settings all the same.
        let DataConfig { text, label, size, test_fraction, content, .. } = &self.data;
        for (name, value) in [("text", text), ("label", label), ("content", content)] {
            settings.or_insert("data", name, value.as_str());
        }
        settings.or_insert("data", "size", *size);
        settings.or_insert("data", "test_fraction", *test_fraction);
        settings
    }
}
