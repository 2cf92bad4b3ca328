//! What was found: `summary.json` (headline numbers), `details.json` (by site, by class, examples), as other programs and the page read them.

use pudica_model::About;
use serde::{Deserialize, Serialize};

/// `summary.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The version of this layout.
    pub format: u32,
    /// What made it, and from which commit.
    pub program: String,
    /// The command that repeats it.
    pub command: String,
    /// Whether everything asked for was measured; if not, `problem` says why.
    pub complete: bool,
    /// Why it is not complete, in a sentence.
    pub problem: Option<String>,
    /// How long it took, all sittings together.
    pub seconds: f64,
    /// What was asked about: `AboutInputs` as JSON.
    pub inputs: serde_json::Value,
    /// The models, in the order they were named.
    pub models: Vec<ModelResult>,
    /// One for each model, nudge (with its parameters) and response.
    pub results: Vec<Measured>,
    /// Paired differences between models.
    pub differences: Vec<Difference>,
    /// What a reader must know before believing a number.
    pub notes: Vec<String>,
}

/// A model, and how it does on inputs that nobody touched.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelResult {
    /// Its name, runtime, what it takes, and so on.
    #[serde(flatten)]
    pub about: About,
    /// How many inputs it was asked about.
    pub inputs: usize,
    /// The fraction classified right, with its 95 % interval; nothing without labels.
    pub clean_accuracy: Option<Value>,
    /// The mean cross-entropy.
    pub clean_loss: Option<Value>,
}

/// A number and how far it may be off.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// Its standard error; 0 where it is exact, nothing where it is not known.
    pub std_error: Option<f64>,
    /// Its 95 % interval.
    pub ci95: Option<[f64; 2]>,
}

/// How a model responded to a nudge.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The model's name.
    pub model: String,
    /// The nudge with its parameters, as it is written: `patch-noise:size=4,variance=1`.
    pub nudge: String,
    /// The nudge without them: `patch-noise`.
    pub kind: String,
    /// Its parameters: one value each.
    pub parameters: serde_json::Map<String, serde_json::Value>,
    /// What was compared: `label`.
    pub response: String,
    /// The mean over inputs, sites and draws.
    #[serde(flatten)]
    pub found: Value,
    /// Inputs.
    pub inputs: usize,
    /// Sites per input, in the mean: `value` times this is the sum over sites (for bits, the average sensitivity).
    #[serde(default)]
    pub sites: f64,
    /// How often the model was asked.
    pub evaluations: u64,
    /// Whether nothing was sampled.
    pub exact: bool,
    /// A sentence where there is something to know: the precision that the budget allowed, an upper limit where nothing was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// How much more one model responds than another, to the same nudges of the same inputs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Difference {
    /// The model that is compared.
    pub model: String,
    /// The model it is compared with.
    pub with: String,
    /// The nudge with its parameters.
    pub nudge: String,
    /// What was compared.
    pub response: String,
    /// The mean over inputs of (model - with), its error over inputs.
    #[serde(flatten)]
    pub found: Value,
    /// Inputs that both were asked about.
    pub inputs: usize,
}

/// `details.json`: what the page shows beside the headline numbers.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Details {
    /// One for each of `Summary::results` that has sites or classes.
    pub profiles: Vec<SiteProfile>,
    /// The most and the least sensitive inputs.
    pub examples: Vec<Example>,
    /// Where the model was asked about all strings of bits.
    pub boolean: Vec<BooleanDetail>,
}

/// One result by site and by class.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SiteProfile {
    /// The model's name.
    pub model: String,
    /// The nudge with its parameters.
    pub nudge: String,
    /// What was compared.
    pub response: String,
    /// What the sites are.
    pub sites: Sites,
    /// The mean at each site, over inputs and draws, and its standard error over inputs.
    pub by_site: Vec<Value>,
    /// How many inputs have this site.
    pub inputs_at_site: Vec<u64>,
    /// For each class its name, mean and number of inputs; empty without labels.
    pub by_class: Vec<(String, Value, u64)>,
}

/// What the sites of a nudge are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Sites {
    /// Patches (or pixels): a map of so many rows and columns.
    Grid {
        /// Rows of patches.
        rows: usize,
        /// Columns of patches.
        columns: usize,
    },
    /// Columns of a table, by name.
    Features {
        /// Their names.
        names: Vec<String>,
    },
    /// Positions of words or tokens, counted from the last if `from_end`.
    Positions {
        /// Whether site 0 is the last one.
        from_end: bool,
    },
    /// Bits, x1 first.
    Bits,
    /// One site: the whole input, or the weights.
    Whole,
}

/// One input and how each of its sites responded.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Example {
    /// The model's name.
    pub model: String,
    /// The nudge with its parameters.
    pub nudge: String,
    /// What was compared.
    pub response: String,
    /// Whether it is among the most sensitive, or the least.
    pub most: bool,
    /// Its number and name in the inputs.
    pub index: usize,
    /// What it is called.
    pub name: String,
    /// The name of its class.
    pub label: Option<String>,
    /// The class that the model gives it.
    pub predicted: String,
    /// Its mean response.
    pub value: f64,
    /// The mean response of each site.
    pub by_site: Vec<f64>,
    /// Where it is an image: a file beside `report.html`, as `examples/12.png`.
    pub image: Option<String>,
    /// Where it is a text: its words (or tokens), one for each site, first word first.
    pub words: Vec<String>,
    /// Where it is a row: its values.
    pub values: Vec<f32>,
}

/// Exact measures of what a model makes of strings of bits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BooleanDetail {
    /// The model's name.
    pub model: String,
    /// Bits.
    pub n: usize,
    /// The average sensitivity of its label.
    pub average_sensitivity: f64,
    /// The influence of each bit on its label, x1 first.
    pub influences: Vec<f64>,
    /// The Fourier weight of its label (as ±1) at each degree, 0 to n.
    pub degree_profile: Vec<f64>,
    /// How many strings have each sensitivity, 0 to n.
    pub sensitivity_histogram: Vec<u64>,
    /// The fraction of strings whose label is 1.
    pub ones: f64,
}
