//! Networks that `pudica run` trained: a run's folder as a model.

use std::path::Path;

use pudica_data::text::FileTokeniser;
use pudica_data::{Bits, Pairs};
use pudica_lab::store::RunFolder;
use pudica_lab::{Trained, trained_network};
use pudica_model::native::{self, Label, TextDoor};
use pudica_model::{
    About, Input, Model, ModelError, ModelRequest, ModelResult, Normalisation, Outputs, Scores, Source, Takes,
};
use pudica_nn::grokking::ModularTransformer;
use pudica_nn::token_attention::{Tables, TokenAttention};
use pudica_nn::{Architecture, Device, EncoderConfig, Network, Weights};
use pudica_probe::Sequence;
use pudica_theory::load_encoder;

use crate::{MeasureError, MeasureResult};

/// Opens what a request names: a run's folder here, everything else by [`pudica_model::open`]. Tokens of our own networks on texts are made
/// with what lies in the data folder.
pub fn open_model(request: &ModelRequest, data: Option<&Path>) -> MeasureResult<Box<dyn Model>> {
    match &request.source {
        Source::File(path) if is_run(path) => open_run(path, request, data),
        Source::File(path) if path.extension().is_some_and(|ending| ending == "safetensors") => {
            match load_encoder(path, None) {
                Ok((config, weights)) => encoder(path, request, config, weights),
                Err(_) => Ok(pudica_model::open(request)?),
            }
        }
        _ => Ok(pudica_model::open(request)?),
    }
}

/// Whether a folder is that of a run: its settings and its trained weights lie in it, under our names.
fn is_run(path: &Path) -> bool {
    let has = |name: &str| path.join(name).is_file();
    has("config.json") && has("weights.safetensors") && !has("model.safetensors")
}

fn open_run(path: &Path, request: &ModelRequest, data: Option<&Path>) -> MeasureResult<Box<dyn Model>> {
    let choices = &request.choices;
    if let Some(architecture) = &choices.architecture {
        let problem = format!("{}: a run knows its network; leave architecture={architecture} out", path.display());
        return Err(MeasureError::Other(problem));
    }
    let folder = RunFolder::new(path.into());
    let files = [path.join("config.json"), folder.weights_path()];
    let label = Label {
        name: choices.name.clone().unwrap_or_else(|| path.file_name().unwrap_or_default().to_string_lossy().into()),
        digest: pudica_data::digest(path, &files)?,
        batch: choices.batch,
        ..Label::default()
    };
    let device = Device::parse(choices.device.as_deref().unwrap_or("cpu")).map_err(ModelError::from)?;
    Ok(match trained_network(&folder, data)? {
        Trained::Images { network, weights: (weights, buffers), classes } => {
            // What runs are trained on; nothing else would be the same network.
            let normalisation = Normalisation { mean: vec![0.5], std: vec![0.5] };
            let label = Label { class_names: classes, ..label };
            Box::new(native::images(&network, &weights, &buffers, normalisation, &device, label)?)
        }
        Trained::Texts { network, weights: (weights, buffers), classes, encoder } => {
            let tokeniser = encoder.map(|own| FileTokeniser::of_encoder(own.0, own.1));
            let mut label = Label { class_names: classes, ..label };
            if tokeniser.is_none() {
                label.notes.push(
                    "It takes tokens only: --data DIR names no folder with bpe, which its tokens are made with.".into(),
                );
            }
            Box::new(native::texts(
                &network,
                &weights,
                &buffers,
                TextDoor { tokeniser, padding: None },
                &device,
                label,
            )?)
        }
        Trained::Bits { network, n } => on_bits(label, *network, n),
        Trained::Tokens(layer) => {
            let takes = Takes::Tokens { length: Some(layer.length), vocabulary: Some(layer.vocabulary) };
            let note = "One number for each sequence; its sign is the label.";
            let of = Asked { takes, outputs: Outputs::Logits, classes: 1, note };
            let weights = [&layer.query, &layer.key, &layer.value, &layer.head].iter().map(|part| part.len()).sum();
            Box::new(OnTokens { about: about(label, of, weights), tables: layer.tables(), layer: *layer })
        }
        Trained::Modular { network, weights } => {
            let takes = Takes::Tokens { length: Some(2), vocabulary: Some(network.modulus) };
            let note = "Two tokens, the numbers of a pair; a class for each result.";
            let of = Asked { takes, outputs: Outputs::Logits, classes: network.modulus, note };
            Box::new(OnPairs { about: about(label, of, weights.data().len()), network, weights, device })
        }
    })
}

/// The weights of an encoder alone, as `pudica construct --save` writes them.
fn encoder(
    path: &Path,
    request: &ModelRequest,
    config: EncoderConfig,
    weights: Weights,
) -> MeasureResult<Box<dyn Model>> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let label = Label {
        name: request
            .choices
            .name
            .clone()
            .unwrap_or_else(|| path.file_stem().unwrap_or_default().to_string_lossy().into()),
        digest: pudica_data::digest(folder, &[path.to_path_buf()])?,
        ..Label::default()
    };
    let n = config.n;
    let network = Network::new(&Architecture::Encoder(config), weights, &Device::cpu()).map_err(ModelError::from)?;
    Ok(on_bits(label, network, n))
}

fn on_bits(label: Label, network: Network, n: usize) -> Box<dyn Model> {
    let note = "One number for each string, meant to be 0 or 1; above 1/2 counts as 1.";
    let of = Asked { takes: Takes::Rows { width: Some(n) }, outputs: Outputs::Probabilities, classes: 1, note };
    let weights = network.weights().data().len();
    Box::new(OnBits { about: about(label, of, weights), network, n })
}

/// How a network is asked.
struct Asked {
    takes: Takes,
    outputs: Outputs,
    classes: usize,
    note: &'static str,
}

fn about(label: Label, asked: Asked, weights: usize) -> About {
    About {
        name: label.name,
        runtime: format!("pudica {}", env!("CARGO_PKG_VERSION")),
        takes: asked.takes,
        outputs: asked.outputs,
        classes: asked.classes,
        class_names: Vec::new(),
        parameters: Some(weights as u64),
        digest: label.digest,
        notes: vec![asked.note.into()],
    }
}

fn refuse(about: &About, takes: String, given: String) -> ModelError {
    ModelError::Takes { model: about.name.clone(), takes, given }
}

fn given(input: &Input) -> String {
    match input {
        Input::Bits(own) => format!("strings of {} bits", own.len()),
        Input::Row(own) => format!("rows of {} numbers", own.len()),
        Input::Tokens(own) => format!("sequences of {} tokens", own.ids.len()),
        other => other.kind().name().to_string(),
    }
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
                other => return Err(refuse(&self.about, format!("strings of {} bits", self.n), given(other))),
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

/// The layer on synthetic tokens.
struct OnTokens {
    about: About,
    layer: TokenAttention,
    tables: Tables,
}

impl Model for OnTokens {
    fn about(&self) -> &About {
        &self.about
    }

    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores> {
        let TokenAttention { length, vocabulary, .. } = self.layer;
        let output = |input: &Input| match input {
            Input::Tokens(Sequence { ids, touch: None })
                if ids.len() == length && ids.iter().all(|id| (*id as usize) < vocabulary) =>
            {
                let tokens: Vec<u16> = ids.iter().map(|id| *id as u16).collect();
                Ok(self.tables.output(&tokens) as f32)
            }
            other => {
                let takes = format!("sequences of {length} tokens below {vocabulary}");
                Err(refuse(&self.about, takes, given(other)))
            }
        };
        Ok(Scores { classes: 1, values: inputs.iter().map(output).collect::<ModelResult<_>>()? })
    }

    fn weights(&self) -> ModelResult<Weights> {
        let TokenAttention { length, vocabulary, width, .. } = self.layer;
        let (tokens, places) = ([vocabulary, width], [length, width]);
        let shapes = [("query", &tokens[..]), ("key", &tokens[..]), ("value", &tokens[..]), ("head", &places[..])];
        let all = [&self.layer.query, &self.layer.key, &self.layer.value, &self.layer.head];
        let values = all.into_iter().flatten().map(|value| *value as f32).collect();
        Ok(Weights::zeros(shapes).with_data(values)?)
    }

    fn with_weights(&self, weights: &Weights) -> ModelResult<Box<dyn Model>> {
        self.weights()?.check_same_layout(weights)?;
        let matrix = |name: &str| -> Vec<f64> {
            weights.get(name).map_or(Vec::new(), |(_, values)| values.iter().map(|value| f64::from(*value)).collect())
        };
        let (query, key, value, head) = (matrix("query"), matrix("key"), matrix("value"), matrix("head"));
        let layer = TokenAttention { query, key, value, head, ..self.layer };
        Ok(Box::new(OnTokens { about: self.about.clone(), tables: layer.tables(), layer }))
    }
}

/// The network of modular arithmetic.
struct OnPairs {
    about: About,
    network: ModularTransformer,
    weights: Weights,
    device: Device,
}

impl Model for OnPairs {
    fn about(&self) -> &About {
        &self.about
    }

    fn batch(&self) -> usize {
        512
    }

    fn embedding_width(&self) -> ModelResult<usize> {
        Ok(self.network.d)
    }

    fn scores(&mut self, inputs: &[Input]) -> ModelResult<Scores> {
        let ModularTransformer { modulus, d, .. } = self.network;
        let (mut pairs, mut noise) = (Pairs { a: Vec::new(), b: Vec::new(), results: Vec::new() }, Vec::new());
        for input in inputs {
            let takes = || format!("pairs of numbers below {modulus}");
            let Input::Tokens(Sequence { ids, touch }) = input else {
                return Err(refuse(&self.about, takes(), given(input)));
            };
            let [a, b] = ids[..] else { return Err(refuse(&self.about, takes(), given(input))) };
            if a.max(b) as usize >= modulus {
                return Err(refuse(&self.about, takes(), format!("{a} and {b}")));
            }
            pairs.a.push(a as usize);
            pairs.b.push(b as usize);
            pairs.results.push(0); // nobody asks whether it is right
            let mut added = vec![0.0; 2 * d];
            if let Some(touch) = touch {
                added[touch.position * d..][..d].copy_from_slice(&touch.noise);
            }
            noise.extend(added);
        }
        let scores = self.network.scores(&self.weights, &pairs, Some(&noise), &self.device)?;
        Ok(Scores { classes: modulus, values: scores })
    }

    fn tokens(&self, input: &Input) -> ModelResult<Vec<u32>> {
        match input {
            Input::Tokens(sequence) => Ok(sequence.ids.clone()),
            other => Err(refuse(&self.about, "pairs of numbers".into(), given(other))),
        }
    }

    fn weights(&self) -> ModelResult<Weights> {
        Ok(self.weights.clone())
    }

    fn with_weights(&self, weights: &Weights) -> ModelResult<Box<dyn Model>> {
        self.weights.check_same_layout(weights)?;
        let (about, network, device) = (self.about.clone(), self.network, self.device.clone());
        Ok(Box::new(OnPairs { about, network, weights: weights.clone(), device }))
    }
}
