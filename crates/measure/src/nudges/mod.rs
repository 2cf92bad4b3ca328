//! Nudges by name: how a user writes them, what their parameters mean, and which inputs they are for.

mod images;
mod tables;
mod texts;
mod written;

use pudica_data::Stream;
use pudica_model::Input;
use pudica_probe::{InputKind, Nudge};

use crate::results::Sites;
use crate::{AboutInputs, InputSet, MeasureResult};

pub use texts::words as words_of;
pub use written::{NudgeRequest, Setting};

/// One input at work.
#[derive(Debug, Clone)]
pub struct Case {
    /// Its number in the inputs.
    pub index: usize,
    /// The input, touched or not.
    pub input: Input,
    /// Its class.
    pub label: Option<usize>,
    /// Whether it was touched.
    pub touched: bool,
}

/// What a nudge needs of a model, beside answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Nothing.
    Answers,
    /// Weights that can be moved.
    Weights,
    /// Gradients with respect to the inputs.
    Gradients,
    /// Embeddings that noise can be added to.
    Embeddings,
}

/// A parameter of a nudge.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// What it is where it is not given; empty: found out from the inputs.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A kind of nudge.
#[derive(Debug, Clone, Copy)]
pub struct NudgeKind {
    /// Its name: `patch-noise`.
    pub name: &'static str,
    /// What it touches.
    pub touches: &'static [InputKind],
    /// What it needs of a model.
    pub needs: Needs,
    /// Where it touches an input.
    pub sites: &'static str,
    /// Its parameters; the first ones may be written without their names: `corruption:fog:2`.
    pub parameters: &'static [Parameter],
    /// What it does, in a sentence.
    pub meaning: &'static str,
}

const DRAWS: Parameter = Parameter { name: "draws", default: "1", meaning: "times each site is touched" };
const MANY: Parameter = Parameter { name: "draws", default: "10", meaning: "random directions" };
const SIZE: Parameter =
    Parameter { name: "size", default: "", meaning: "side of a patch in pixels; without it, about 8 x 8 patches" };
const OFFSET: Parameter = Parameter {
    name: "offset",
    default: "",
    meaning: "pixels by which patches lie further down and to the right; those that leave the image are left out",
};
const EPSILON: Parameter = Parameter {
    name: "epsilon",
    default: "0.03137",
    meaning: "largest change, in pixel values from 0 to 1 (8/255 where not given)",
};
const NORM: Parameter =
    Parameter { name: "norm", default: "linf", meaning: "linf: the largest change of a pixel; l2: their length" };

/// All of them, in the order they are listed.
pub static NUDGES: [NudgeKind; 18] = [
    NudgeKind {
        name: "patch-noise",
        touches: &[InputKind::Images],
        needs: Needs::Answers,
        sites: "patches, row by row",
        parameters: &[
            SIZE,
            OFFSET,
            Parameter {
                name: "variance",
                default: "1",
                meaning: "variance of the noise, in units of the normalised image",
            },
            DRAWS,
        ],
        meaning: "Adds normal noise to every value of one patch (Section 5 of Vasudeva et al.).",
    },
    NudgeKind {
        name: "patch-replace",
        touches: &[InputKind::Images],
        needs: Needs::Answers,
        sites: "patches, row by row",
        parameters: &[SIZE, OFFSET, DRAWS],
        meaning: "Replaces one patch by uniformly random pixels.",
    },
    NudgeKind {
        name: "pixel-noise",
        touches: &[InputKind::Images],
        needs: Needs::Answers,
        sites: "one: all pixels at once, or so many",
        parameters: &[
            Parameter {
                name: "variance",
                default: "0.1",
                meaning: "variance of the noise, in units of the normalised image",
            },
            Parameter {
                name: "pixels",
                default: "",
                meaning: "how many pixels, anywhere and others each time; without it, all",
            },
            DRAWS,
        ],
        meaning: "Adds normal noise to all pixels of an image, or to some that need not touch each other.",
    },
    NudgeKind {
        name: "corruption",
        touches: &[InputKind::Images],
        needs: Needs::Answers,
        sites: "one: the whole image",
        parameters: &[
            Parameter { name: "name", default: "all", meaning: "one of CIFAR-10-C's 19, as fog; or all" },
            Parameter { name: "severity", default: "3", meaning: "1 to 5" },
            DRAWS,
        ],
        meaning: "Corrupts an image as CIFAR-10-C does; for colour images of 32 x 32 pixels, which its severities are made for.",
    },
    NudgeKind {
        name: "fgsm",
        touches: &[InputKind::Images],
        needs: Needs::Gradients,
        sites: "one: the whole image",
        parameters: &[EPSILON, NORM],
        meaning: "One step against the network along the gradient of the loss (Goodfellow et al. 2015).",
    },
    NudgeKind {
        name: "pgd",
        touches: &[InputKind::Images],
        needs: Needs::Gradients,
        sites: "one: the whole image",
        parameters: &[EPSILON, Parameter { name: "steps", default: "10", meaning: "steps along the gradient" }, NORM],
        meaning: "Several steps against the network from a random start (Madry et al. 2018).",
    },
    NudgeKind {
        name: "word-replace",
        touches: &[InputKind::Texts],
        needs: Needs::Answers,
        sites: "words, first to last",
        parameters: &[DRAWS],
        meaning: "Replaces one word by a random word of the inputs.",
    },
    NudgeKind {
        name: "word-delete",
        touches: &[InputKind::Texts],
        needs: Needs::Answers,
        sites: "words, first to last",
        parameters: &[],
        meaning: "Leaves one word out.",
    },
    NudgeKind {
        name: "word-mask",
        touches: &[InputKind::Texts],
        needs: Needs::Answers,
        sites: "words, first to last",
        parameters: &[Parameter { name: "mask", default: "<mask>", meaning: "what takes the word's place" }],
        meaning: "Replaces one word by a mask.",
    },
    NudgeKind {
        name: "word-swap",
        touches: &[InputKind::Texts],
        needs: Needs::Answers,
        sites: "words, first to last but one",
        parameters: &[],
        meaning: "Exchanges a word with the next one.",
    },
    NudgeKind {
        name: "typo",
        touches: &[InputKind::Texts],
        needs: Needs::Answers,
        sites: "words, first to last",
        parameters: &[DRAWS],
        meaning: "Misspells one word: a letter is doubled, dropped, replaced or exchanged with the next.",
    },
    NudgeKind {
        name: "embedding-noise",
        touches: &[InputKind::Texts, InputKind::Tokens],
        needs: Needs::Embeddings,
        sites: "tokens, from the last to the first",
        parameters: &[Parameter { name: "variance", default: "15", meaning: "variance of the noise" }, DRAWS],
        meaning: "Adds normal noise to the embedding of one token (Section 6 of Vasudeva et al.).",
    },
    NudgeKind {
        name: "token-replace",
        touches: &[InputKind::Tokens],
        needs: Needs::Answers,
        sites: "tokens, first to last",
        parameters: &[
            Parameter {
                name: "vocabulary",
                default: "",
                meaning: "how many tokens there are; the model's, if it tells",
            },
            DRAWS,
        ],
        meaning: "Replaces one token by a uniformly random one, possibly by itself.",
    },
    NudgeKind {
        name: "feature-noise",
        touches: &[InputKind::Numbers],
        needs: Needs::Answers,
        sites: "columns",
        parameters: &[
            Parameter {
                name: "scale",
                default: "0.1",
                meaning: "deviation of the noise, in units of the column's spread",
            },
            DRAWS,
        ],
        meaning: "Adds normal noise to one feature.",
    },
    NudgeKind {
        name: "feature-resample",
        touches: &[InputKind::Numbers],
        needs: Needs::Answers,
        sites: "columns",
        parameters: &[DRAWS],
        meaning: "Replaces one feature by that of a random other row.",
    },
    NudgeKind {
        name: "bit-flip",
        touches: &[InputKind::Bits],
        needs: Needs::Answers,
        sites: "bits",
        parameters: &[],
        meaning: "Flips one bit; exactly where all strings are asked about.",
    },
    NudgeKind {
        name: "weight-noise",
        touches: &[],
        needs: Needs::Weights,
        sites: "one: all weights at once",
        parameters: &[
            Parameter { name: "rho", default: "0.005", meaning: "standard deviation of the noise on each weight" },
            MANY,
        ],
        meaning: "Adds normal noise to all weights: response l2 is ShOp, label ShPred, loss the sharpness (Section 7 of Vasudeva et al.).",
    },
    NudgeKind {
        name: "hessian",
        touches: &[],
        needs: Needs::Weights,
        sites: "one: all weights at once",
        parameters: &[
            MANY,
            Parameter {
                name: "inputs",
                default: "200",
                meaning: "how many labelled inputs the loss is taken over, at most",
            },
        ],
        meaning: "The trace of the loss's Hessian in the weights by Hutchinson's estimate, and its largest eigenvalue where there are gradients.",
    },
];

/// The nudge that is tried where none is named.
pub fn default_nudge(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Images => "patch-noise",
        InputKind::Texts => "word-replace",
        InputKind::Tokens => "token-replace",
        InputKind::Bits => "bit-flip",
        InputKind::Numbers | InputKind::Weights => "feature-noise",
    }
}

/// A nudge of inputs at hand, ready for `respond`.
pub struct Touching {
    /// What it does.
    pub nudge: Box<dyn CaseNudge>,
    /// What its sites are.
    pub sites: Sites,
    /// Times each site is touched.
    pub draws: usize,
}

/// A nudge of cases.
pub trait CaseNudge: Nudge<Case> {
    /// The same, where it changes only few values of an input.
    fn as_edit(&self) -> Option<&dyn Edit>;
}

/// A nudge that changes few values of an image, at places that are the same for all images.
pub trait Edit: Sync {
    /// For each site, where the values lie that a touch changes; as many for all sites.
    fn places(&self) -> &[Vec<usize>];

    /// The values at the places of a site after a touch, as [`Nudge::apply`] would make them with the same noise.
    fn change(&self, image: &[f32], site: usize, noise: &mut Stream, changed: &mut [f32]);
}

/// A nudge of an input, as one of a case.
struct OfInput<N>(N);

/// What a nudge of this crate does to an input.
trait Touch: Send + Sync {
    fn sites(&self, input: &Input) -> usize;
    fn apply(&self, input: &Input, site: usize, noise: &mut Stream) -> Input;
    fn as_edit(&self) -> Option<&dyn Edit> {
        None
    }
}

impl<N: Touch> CaseNudge for OfInput<N> {
    fn as_edit(&self) -> Option<&dyn Edit> {
        self.0.as_edit()
    }
}

impl<N: Touch> Nudge<Case> for OfInput<N> {
    fn sites(&self, case: &Case) -> usize {
        self.0.sites(&case.input)
    }

    fn apply(&self, case: &Case, site: usize, noise: &mut Stream) -> Case {
        Case { input: self.0.apply(&case.input, site, noise), touched: true, ..*case }
    }
}

/// What the nudges of inputs are made from.
pub struct Material<'a> {
    /// The inputs.
    pub inputs: &'a InputSet,
    /// The standard deviation of each channel by which images are normalised: the unit of noise.
    pub channel_std: Vec<f32>,
    /// How many tokens the model knows.
    pub vocabulary: Option<usize>,
    /// Features of an embedding, where noise can be added to it.
    pub embedding_width: Option<usize>,
    /// Where the frost pictures lie.
    pub data: Option<std::path::PathBuf>,
}

impl Setting {
    /// Refuses inputs that the nudge is not for.
    pub fn check(&self, about: &AboutInputs) -> MeasureResult<()> {
        if !self.kind.touches.is_empty() && !self.kind.touches.contains(&about.kind) {
            let fitting: Vec<&str> =
                NUDGES.iter().filter(|nudge| nudge.touches.contains(&about.kind)).map(|nudge| nudge.name).collect();
            let what = self.kind.touches.iter().map(|kind| kind_name(*kind)).collect::<Vec<_>>().join(" or ");
            return Err(self.refuse(format!(
                "is for {what}, but the inputs ({}) are {}; for these there are {}",
                about.source,
                kind_name(about.kind),
                fitting.join(", ")
            )));
        }
        let needs_labels = self.kind.needs == Needs::Gradients || self.kind.name == "hessian";
        match needs_labels && about.classes.is_empty() {
            true => Err(self.refuse(format!("needs labels, and {} has none", about.source))),
            false => Ok(()),
        }
    }

    /// The nudge for these inputs; `None` for one that is not of inputs (weights), or that needs the model (attacks).
    pub fn touching(&self, material: &Material) -> MeasureResult<Option<Touching>> {
        let touching = match self.kind.name {
            "patch-noise" | "patch-replace" | "pixel-noise" | "corruption" => images::touching(self, material)?,
            "word-replace" | "word-delete" | "word-mask" | "word-swap" | "typo" => texts::touching(self, material)?,
            "embedding-noise" | "token-replace" => texts::tokens(self, material)?,
            "feature-noise" | "feature-resample" => tables::touching(self, material)?,
            "bit-flip" => tables::bits(),
            _ => return Ok(None),
        };
        Ok(Some(touching))
    }
}

/// As in a sentence.
pub fn kind_name(kind: InputKind) -> &'static str {
    match kind {
        InputKind::Numbers => "rows of numbers",
        other => other.name(),
    }
}

fn boxed<N: Touch + 'static>(nudge: N, sites: Sites, draws: usize) -> Touching {
    Touching { nudge: Box::new(OfInput(nudge)), sites, draws }
}
