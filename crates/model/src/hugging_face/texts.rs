//! RoBERTa and GPT-2.

use std::path::Path;

use pudica_data::text::FileTokeniser;
use pudica_nn::text::{Gpt2Config, RobertaConfig, TextConfig};

use super::Files;
use super::config::Config;
use crate::native::TextDoor;
use crate::{Choices, Model, ModelResult, native};

const TOKENIZER: &str = "tokenizer.json";

/// Positions in RoBERTa's table that no token has, in pudica's layout.
const BEFORE: usize = 2;

/// `RobertaForSequenceClassification`.
pub(super) fn roberta(folder: &Path, config: &Config, choices: &Choices) -> ModelResult<Box<dyn Model>> {
    let unused = |name: &str| name.starts_with("roberta.pooler.") || name.ends_with("position_ids");
    let mut files = Files::read(folder, "roberta.", &["classifier."], unused)?;
    let d = config.size("hidden_size")?;
    let positions = config.size("max_position_embeddings")?;
    // RoBERTa counts positions from its padding token's number on.
    let first = config.token("pad_token_id").unwrap_or(1) as usize + 1;
    let length = positions.checked_sub(first).filter(|length| *length > 0);
    let length = length.ok_or_else(|| config.wrong("has no position for a token: pad_token_id is too large"))?;
    let network = TextConfig::Roberta(RobertaConfig {
        vocabulary: config.size("vocab_size")?,
        length,
        d,
        layers: config.layers("num_hidden_layers")?,
        heads: config.size("num_attention_heads")?,
        ff: config.size("intermediate_size")?,
        classes: config.classes()?,
        dropout: 0.0,
        activation: config.activation("hidden_act", "gelu")?,
        norm_eps: config.number_or("layer_norm_eps", 1e-12)?,
        ..RobertaConfig::default()
    });
    // One text has one type, and positions before the first token's are never used.
    files.keep_rows("roberta.embeddings.token_type_embeddings.weight", 0, 0, 1)?;
    files.keep_rows("roberta.embeddings.position_embeddings.weight", first, BEFORE, length)?;
    open(folder, config, choices, &network, &files, None)
}

/// `GPT2ForSequenceClassification`.
pub(super) fn gpt2(folder: &Path, config: &Config, choices: &Choices) -> ModelResult<Box<dyn Model>> {
    // Old files have the causal mask among their tensors.
    let unused =
        |name: &str| name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") || name == "lm_head.weight";
    let files = Files::read(folder, "transformer.", &["score.", "lm_head."], unused)?;
    if config.flag_or("scale_attn_by_inverse_layer_idx", false)? || !config.flag_or("scale_attn_weights", true)? {
        return Err(config.wrong("asks for another scale of attention than GPT-2's, which pudica does not have"));
    }
    let d = config.size("n_embd")?;
    let network = TextConfig::Gpt2(Gpt2Config {
        vocabulary: config.size("vocab_size")?,
        length: config.size("n_positions")?,
        d,
        layers: config.layers("n_layer")?,
        heads: config.size("n_head")?,
        ff: config.size_or("n_inner", Some(4 * d))?,
        classes: config.classes()?,
        dropout: 0.0,
        embedding_norm: false,
        activation: config.activation("activation_function", "gelu_new")?,
        norm_eps: config.number_or("layer_norm_epsilon", 1e-5)?,
    });
    open(folder, config, choices, &network, &files, config.token("pad_token_id"))
}

impl Files {
    /// Of an embedding, `count` rows from `first` on, with `before` rows of zeros before them.
    fn keep_rows(&mut self, name: &str, first: usize, before: usize, count: usize) -> ModelResult<()> {
        let Some(&[rows, d]) = self.state.shape(name) else { return Ok(()) };
        if first + count > rows {
            return Err(self.state.wrong(format!("{name} has {rows} rows, but {} are needed", first + count)));
        }
        let mut values = vec![0.0; before * d];
        values.extend_from_slice(&self.state.values(name)?[first * d..(first + count) * d]);
        self.state.put(name, vec![before + count, d], values);
        Ok(())
    }
}

fn open(
    folder: &Path,
    config: &Config,
    choices: &Choices,
    network: &TextConfig,
    files: &Files,
    padding: Option<u32>,
) -> ModelResult<Box<dyn Model>> {
    let (weights, buffers) = files.fill(network)?;
    let (device, path) = (choices.network_device()?, folder.join(TOKENIZER));
    let (tokeniser, note) = match path.is_file() {
        true => {
            let tokeniser = FileTokeniser::open(&path, network.longest())?;
            let (tokens, rows) = (tokeniser.vocabulary(), network.vocabulary());
            if tokens > rows {
                let problem = format!("the tokeniser has {tokens} tokens, but the network embeddings of {rows}");
                return Err(config.wrong(problem));
            }
            (Some(tokeniser), format!("Texts are cut to {} tokens.", network.longest()))
        }
        false => (None, format!("There is no {TOKENIZER}, so it takes tokens, not texts.")),
    };
    let others = tokeniser.is_some().then_some(path);
    let mut label = files.label(folder, config, choices, others.as_slice(), device.name())?;
    label.notes.push(note);
    let door = TextDoor { tokeniser, padding };
    Ok(Box::new(native::texts(network, &weights, &buffers, door, &device, label)?))
}
