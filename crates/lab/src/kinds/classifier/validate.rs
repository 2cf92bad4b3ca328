//! What can be run: from settings to a configuration, with the sentence a user reads when a rule is broken.

use pudica_data::corruptions::Corruption;
use pudica_nn::classifier::Optimiser;
use pudica_probe::{InputKind, NudgeName};

use super::config::{ClassifierConfig, DataConfig, InterveneConfig, MeasureConfig, ModelKind, TrainConfig};
use crate::error::{Error, Result};
use crate::settings::Settings;

/// Pixels in height and width that own images may be resized to.
const LARGEST_SIDE: usize = 1024;

/// The finished, validated configuration that settings spell.
pub(super) fn resolve(settings: &Settings) -> Result<ClassifierConfig> {
    settings.check_choice("model.kind", &ModelKind::ALL.map(|(_, name)| name))?;
    settings.check_choice("model.activation", &["", "leaky-relu", "sigmoid"])?;
    settings.check_choice("model.attention", &["", "softmax", "relu"])?;
    settings.check_choice("train.optimiser", &["sgd", "adam", "adamw"])?;
    settings.check_choice("measure.nudge", &NudgeName::words(&[InputKind::Images, InputKind::Texts]))?;
    settings.check_choice("measure.set", &["train", "validation"])?;
    let mut config: ClassifierConfig = settings.read()?;
    config.check_sizes()?;
    config.model.fill_defaults()?;
    config.measure.keep_asked();
    config.train.optimiser()?.check()?;
    config.validate()?;
    Ok(config)
}

/// A nudge that such inputs do not have.
pub(super) fn not_for(nudge: NudgeName, kind: InputKind) -> Error {
    let problem = nudge.check(kind).err().unwrap_or_else(|| format!("\"{nudge}\" touches nothing of {}", kind.name()));
    Error::setting("measure.nudge", problem)
}

impl TrainConfig {
    /// How gradients move the weights.
    pub(super) fn optimiser(&self) -> Result<Optimiser> {
        let (momentum, weight_decay) = (self.momentum, self.weight_decay);
        match self.optimiser.as_str() {
            "sgd" => Ok(Optimiser::Sgd { momentum, weight_decay }),
            _ if momentum != 0.0 => {
                Err(Error::setting("train.momentum", format!("belongs to sgd, not to {}", self.optimiser)))
            }
            "adam" => Ok(Optimiser::Adam { betas: (0.9, 0.999), eps: 1e-8, weight_decay, decoupled: false }),
            _ => Ok(Optimiser::adamw(weight_decay)),
        }
    }

    /// The learning rate in an epoch, counted from 0.
    pub(super) fn lr_at(&self, epoch: u64) -> f64 {
        let times = epoch.checked_div(self.factor_every).unwrap_or(0);
        self.lr * self.factor.powf(times as f64)
    }
}

impl MeasureConfig {
    /// Sets to 0 what belongs to a measure that is not taken.
    fn keep_asked(&mut self) {
        if self.nudge == NudgeName::None {
            (self.variance, self.draws, self.patch, self.inputs) = (0.0, 0, 0, 0);
        }
        if self.corruptions == "none" {
            (self.severity, self.corrupted) = (0, 0);
        }
        if self.sharpness == 0.0 {
            (self.sharpness_draws, self.sharpness_inputs) = (0, 0);
        }
        if self.adversarial == "none" && self.adversarial_l2 == "none" {
            self.adversarial_images = 0;
        }
        if !self.hessian {
            self.hessian_inputs = 0;
        }
    }

    /// The corruptions asked for.
    pub fn corruptions(&self) -> Result<Vec<Corruption>> {
        let fifteen = || Corruption::ALL[..Corruption::BENCHMARK].iter().map(|(corruption, _)| *corruption);
        let named = |name: &str| {
            Corruption::named(name.trim()).map_err(|problem| Error::setting("measure.corruptions", problem))
        };
        match self.corruptions.as_str() {
            "none" => Ok(Vec::new()),
            "paper" => {
                Ok(fifteen().map(|c| if c == Corruption::DefocusBlur { Corruption::GaussianBlur } else { c }).collect())
            }
            "benchmark" => Ok(fifteen().collect()),
            names => names.split('+').map(named).collect(),
        }
    }

    /// How far attacks may move a pixel of values 0 to 1.
    pub fn adversarial(&self) -> Result<Vec<f64>> {
        distances("measure.adversarial", &self.adversarial)
    }

    /// How far attacks may move an image, in the Euclidean norm.
    pub fn adversarial_l2(&self) -> Result<Vec<f64>> {
        distances("measure.adversarial_l2", &self.adversarial_l2)
    }
}

fn distances(key: &str, text: &str) -> Result<Vec<f64>> {
    if text == "none" {
        return Ok(Vec::new());
    }
    let distance = |text: &str| text.trim().parse::<f64>().ok().filter(|far| *far > 0.0 && far.is_finite());
    text.split('+').map(distance).collect::<Option<Vec<f64>>>().ok_or_else(|| {
        Error::setting(key, format!("must be distances above 0 such as 0.01+0.03, or none, not \"{text}\""))
    })
}

impl DataConfig {
    /// Refuses sizes and fractions that cannot be.
    pub(super) fn check(&self) -> Result<()> {
        if !(0.0..1.0).contains(&self.test_fraction) {
            let problem = format!("must be between 0 and 1, not {}", self.test_fraction);
            return Err(Error::setting("data.test_fraction", problem));
        }
        if self.size > LARGEST_SIDE {
            return Err(Error::setting("data.size", format!("must be at most {LARGEST_SIDE}, not {}", self.size)));
        }
        Ok(())
    }
}

impl InterveneConfig {
    /// Whether training is as usual.
    pub fn is_none(&self) -> bool {
        self.augment == 0.0 && self.regularise == 0.0
    }
}

impl ClassifierConfig {
    fn validate(&self) -> Result<()> {
        let ClassifierConfig { model, train, intervene, measure, .. } = self;
        let text = model.kind.reads_text();
        let not_negative = |x: f64| x >= 0.0 && x.is_finite();
        let number = |x: f64| format!("must be 0 or more, not {x}");
        let rules: [(&str, bool, String); 18] = [
            ("data.name", !self.data.name.is_empty(), "must name a data set or a folder".into()),
            (
                "model.kind",
                !(text && super::images::is_known(&self.data.name)),
                format!("{} reads texts, and {} is a set of images", model.kind.name(), self.data.name),
            ),
            (
                "model.kind",
                text || !super::texts::is_known(&self.data.name),
                format!("{} reads images, and {} is a set of texts", model.kind.name(), self.data.name),
            ),
            ("data.binary", !(text && self.data.binary), "texts keep their classes; leave it false".into()),
            ("train.batch", train.batch >= 1, "a batch needs at least one input".into()),
            ("train.epochs", train.epochs >= 1, "training needs at least one epoch".into()),
            (
                "train.lr",
                train.lr > 0.0 && train.lr.is_finite(),
                format!("must be a positive number, not {}", train.lr),
            ),
            (
                "train.factor",
                train.factor > 0.0 && train.factor <= 1.0,
                format!("must be in (0, 1], not {}", train.factor),
            ),
            ("model.dropout", (0.0..1.0).contains(&model.dropout), format!("must be in [0, 1), not {}", model.dropout)),
            ("intervene.augment", not_negative(intervene.augment), number(intervene.augment)),
            ("intervene.regularise", not_negative(intervene.regularise), number(intervene.regularise)),
            (
                "intervene.regularise_variance",
                not_negative(intervene.regularise_variance),
                number(intervene.regularise_variance),
            ),
            ("intervene.augment", intervene.is_none() || !text, "the interventions are for images".into()),
            (
                "intervene.regularise_patch",
                intervene.regularise == 0.0 || intervene.regularise_patch > 0,
                "a patch needs at least one pixel".into(),
            ),
            ("measure.every", measure.every >= 1, "evaluate every 1 or more epochs".into()),
            ("measure.variance", not_negative(measure.variance), number(measure.variance)),
            ("measure.sharpness", not_negative(measure.sharpness), number(measure.sharpness)),
            (
                "measure.corruptions",
                !text || measure.corruptions == "none",
                "the corruptions are those of images".into(),
            ),
        ];
        self.data.check()?;
        if let Some((key, _, problem)) = rules.into_iter().find(|(_, holds, _)| !holds) {
            return Err(Error::setting(key, problem));
        }
        let kind = if text { InputKind::Texts } else { InputKind::Images };
        measure.nudge.check(kind).map_err(|problem| Error::setting("measure.nudge", problem))?;
        if measure.nudge != NudgeName::None {
            if measure.draws == 0 {
                return Err(Error::setting("measure.draws", "touch each patch or token at least once"));
            }
            if !text && measure.patch == 0 {
                return Err(Error::setting("measure.patch", "a patch needs at least one pixel"));
            }
        }
        if measure.corruptions != "none" && !(1..=5).contains(&measure.severity) {
            return Err(Error::setting("measure.severity", format!("must be 1 to 5, not {}", measure.severity)));
        }
        if measure.sharpness > 0.0 && measure.sharpness_draws < 2 {
            return Err(Error::setting("measure.sharpness_draws", "a standard error needs at least 2 draws"));
        }
        measure.corruptions()?;
        measure.adversarial()?;
        measure.adversarial_l2()?;
        Ok(())
    }
}
