//! Networks that `pudica run` trained: a run's folder as a model.

use pudica_data::Bits;
use pudica_lab::kinds::boolean;
use pudica_lab::store::RunFolder;
use pudica_model::{About, Input, Model, ModelError, ModelRequest, ModelResult, Outputs, Scores, Source, Takes};
use pudica_nn::{Network, Weights};
use std::path::Path;

use crate::MeasureResult;
use crate::work::digest;

/// Opens what a request names: a run's folder here, everything else by [`pudica_model::open`].
pub fn open_model(request: &ModelRequest) -> MeasureResult<Box<dyn Model>> {
    match &request.source {
        Source::File(path) if is_run(path) => open_run(path, request),
        _ => Ok(pudica_model::open(request)?),
    }
}

/// Whether a folder is that of a run: its settings and its trained weights lie in it, under our names.
fn is_run(path: &Path) -> bool {
    path.join("config.json").is_file()
        && path.join("weights.safetensors").is_file()
        && !path.join("model.safetensors").is_file()
}

fn open_run(path: &Path, request: &ModelRequest) -> MeasureResult<Box<dyn Model>> {
    let folder = RunFolder::new(path.into());
    let name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = request.choices.name.clone().unwrap_or_else(name);
    let (network, n) = boolean::network_of_run(&folder)?;
    let weights = network.weights();
    let values: Vec<String> = weights.data().iter().map(|weight| weight.to_bits().to_string()).collect();
    let about = About {
        name,
        runtime: "pudica".into(),
        takes: Takes::Rows { width: Some(n) },
        outputs: Outputs::Probabilities,
        classes: 1,
        class_names: Vec::new(),
        parameters: Some(weights.data().len() as u64),
        digest: digest(&values.iter().map(String::as_str).collect::<Vec<_>>()),
        notes: vec!["One number for each string, which was trained towards 0 or 1; above 1/2 counts as 1.".into()],
    };
    Ok(Box::new(OnBits { about, network, n }))
}

/// A network that learnt a Boolean function.
struct OnBits {
    about: About,
    network: Network,
    n: usize,
}

impl Model for OnBits {
    fn about(&self) -> &About {
        &self.about
    }

    fn batch(&self) -> usize {
        256
    }

    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores> {
        let mut bits = Vec::with_capacity(inputs.len() * self.n);
        for input in inputs {
            match input {
                Input::Bits(own) if own.len() == self.n => bits.extend_from_slice(own),
                Input::Row(own) if own.len() == self.n => bits.extend(own.iter().map(|value| u8::from(*value > 0.5))),
                other => {
                    let given = match other {
                        Input::Bits(own) => format!("strings of {} bits", own.len()),
                        Input::Row(own) => format!("rows of {} numbers", own.len()),
                        other => other.kind().name().to_string(),
                    };
                    let (model, takes) = (self.about.name.clone(), format!("strings of {} bits", self.n));
                    return Err(ModelError::Takes { model, takes, given });
                }
            }
        }
        let batch = Bits::new(self.n, bits).map_err(pudica_probe::ProbeError::from)?;
        let outputs = self.network.predict(&batch)?;
        // A network with a scratchpad gives its answer last.
        let per_string = (outputs.len() / inputs.len().max(1)).max(1);
        Ok(Scores { classes: 1, values: outputs.chunks(per_string).filter_map(|own| own.last().copied()).collect() })
    }

    fn weights(&self) -> ModelResult<Weights> {
        Ok(self.network.weights().clone())
    }

    fn with_weights(&self, weights: &Weights) -> ModelResult<Box<dyn Model>> {
        let network = self.network.with_weights(weights.clone())?;
        Ok(Box::new(OnBits { about: self.about.clone(), network, n: self.n }))
    }
}
