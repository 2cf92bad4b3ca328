//! What holds for every network on token sequences, whatever its weights: padding plays no part, noise reaches one token, the shortcut
//! by prefixes is exact, a toy set is learnt, and what does not fit is refused in a sentence.

use pudica_data::Stream;
use pudica_nn::Device;
use pudica_nn::classifier::{Classifier, Learner, Model, Optimiser, accuracy};
use pudica_nn::text::{Attention, Gpt2Config, LstmConfig, RobertaConfig, Sequences, TextConfig, Touch};

const LENGTH: usize = 11;

fn networks(dropout: f64) -> [TextConfig; 4] {
    let (vocabulary, length, d, layers, heads, ff, classes) = (20, LENGTH, 12, 2, 3, 16, 2);
    let roberta =
        RobertaConfig { vocabulary, length, d, layers, heads, ff, classes, dropout, ..RobertaConfig::default() };
    let gpt2 = Gpt2Config { vocabulary, length, d, layers, heads, ff, classes, dropout, ..Gpt2Config::default() };
    [
        TextConfig::Roberta(RobertaConfig { attention: Attention::Softmax, ..roberta.clone() }),
        TextConfig::Roberta(RobertaConfig { attention: Attention::Relu, ..roberta }),
        TextConfig::Gpt2(gpt2),
        TextConfig::Lstm(LstmConfig { vocabulary, length, d, layers, classes, dropout }),
    ]
}

/// Every device this binary and this machine have, and how close scores are to be there: on a GPU, cuDNN's LSTM multiplies in TF32.
fn devices() -> impl Iterator<Item = (Device, f32)> {
    let names = [("cpu", 1e-5), ("torch", 1e-5), ("cuda", 1e-2)];
    names.into_iter().filter_map(|(name, tolerance)| Some((Device::parse(name).ok()?, tolerance)))
}

/// Weights larger than those training starts from, so that scores differ.
fn model(config: &TextConfig, device: &Device) -> Model<TextConfig> {
    let mut weights = config.initial_weights(3).unwrap();
    let mut stream = Stream::new(4, "weights", 0);
    weights.data_mut().iter_mut().for_each(|value| *value += 0.3 * stream.normal_f32());
    Model::new(config, &weights, &config.initial_buffers(), device).unwrap()
}

/// Sequences of all lengths from 1 to the longest, in no order.
fn sequences() -> Sequences {
    let mut stream = Stream::new(5, "sequences", 0);
    let lengths = (0..LENGTH).map(|at| at * 7 % LENGTH + 1);
    Sequences::new(lengths.map(|length| (0..length).map(|_| stream.below(20) as u32).collect()).collect())
}

/// Noise for one embedding of the networks above.
fn noise(index: u64) -> Vec<f32> {
    let mut stream = Stream::new(6, "noise", index);
    (0..12).map(|_| 2.0 * stream.normal_f32()).collect()
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * expected.abs().max(1.0), "{found} {expected}");
    }
}

#[test]
fn a_sequence_has_the_same_scores_alone_and_among_longer_ones() {
    let both = devices().flat_map(|device| networks(0.1).map(|config| (config, device.clone())));
    for (config, (device, tolerance)) in both {
        let (model, sequences) = (model(&config, &device), sequences());
        let together = model.predict(&sequences).unwrap();
        for (ids, expected) in sequences.ids.iter().zip(together.chunks(2)) {
            let alone = model.predict(&Sequences::new(vec![ids.clone()])).unwrap();
            assert_close(&alone, expected, tolerance);
        }
        let first = &together[..2];
        assert!(together.chunks(2).any(|scores| (scores[0] - first[0]).abs() > 1e-2), "all scores are the same");
    }
}

#[test]
fn noise_on_one_sequence_leaves_the_others_alone() {
    for config in networks(0.0) {
        let (model, mut sequences) = (model(&config, &Device::cpu()), sequences());
        let plain = model.predict(&sequences).unwrap();
        sequences.touches = vec![None; sequences.ids.len()];
        sequences.touches[4] = Some(Touch { position: 2, noise: noise(0) });
        let touched = model.predict(&sequences).unwrap();
        for (index, (touched, plain)) in touched.chunks(2).zip(plain.chunks(2)).enumerate() {
            let off = (touched[0] - plain[0]).abs();
            assert!(if index == 4 { off > 1e-4 } else { off < 1e-6 }, "sequence {index}: {off}");
        }
    }
}

/// Every token of every sequence, two draws each, in no order.
#[test]
fn touched_scores_are_those_of_whole_sequences() {
    let both = devices().flat_map(|device| networks(0.0).map(|config| (config, device.clone())));
    for (config, (device, tolerance)) in both {
        let (model, base) = (model(&config, &device), sequences());
        let mut touches = Vec::new();
        for (sequence, ids) in base.ids.iter().enumerate() {
            for draw in 0..2 * ids.len() {
                let position = draw * 5 % ids.len();
                touches.push((sequence, Touch { position, noise: noise((sequence * 100 + draw) as u64) }));
            }
        }
        let whole = Sequences {
            ids: touches.iter().map(|(sequence, _)| base.ids[*sequence].clone()).collect(),
            touches: touches.iter().map(|(_, touch)| Some(touch.clone())).collect(),
        };
        assert_close(&model.touched_scores(&base, &touches).unwrap(), &model.predict(&whole).unwrap(), tolerance);
        assert!(model.touched_scores(&base, &[]).unwrap().is_empty());
        let beyond = Touch { position: base.ids[0].len(), noise: noise(0) };
        let message = model.touched_scores(&base, &[(0, beyond)]).unwrap_err().to_string();
        assert!(message.contains("touch 0 is of 12 values at token 1 of sequence 0, which has 1 tokens"), "{message}");
    }
}

/// Whether token 7 is anywhere in the sequence.
#[test]
fn a_toy_set_is_learnt_and_dropout_is_reproducible() {
    let mut stream = Stream::new(7, "toy", 0);
    let mut sequence = |label: usize| -> Vec<u32> {
        let length = 2 + stream.below(LENGTH as u64 - 1) as usize;
        let mut ids: Vec<u32> = (0..length).map(|_| stream.below(7) as u32).collect();
        if label == 1 {
            ids[stream.below(length as u64) as usize] = 7;
        }
        ids
    };
    let labels: Vec<usize> = (0..48).map(|index| index % 2).collect();
    let input = Sequences::new(labels.iter().map(|label| sequence(*label)).collect());
    for config in networks(0.1) {
        let train = || {
            let weights = config.initial_weights(1).unwrap();
            let mut learner = Learner::new(&config, &weights, Optimiser::adamw(1e-4), 1, &Device::cpu()).unwrap();
            for _ in 0..80 {
                learner.step(&input, &labels, None, 1e-2).unwrap();
            }
            learner
        };
        let learner = train();
        let scores = learner.model().predict(&input).unwrap();
        assert!(accuracy(&scores, &labels, 2) > 0.97, "{config:?}: {}", accuracy(&scores, &labels, 2));
        assert_eq!(train().model().predict(&input).unwrap(), scores);
    }
}

#[test]
fn what_does_not_fit_is_refused_in_a_sentence() {
    for config in networks(0.0) {
        let model = model(&config, &Device::cpu());
        let message = |sequences: Sequences| model.predict(&sequences).unwrap_err().to_string();
        assert!(message(Sequences::default()).contains("it has no sequences"));
        assert!(message(Sequences::new(vec![vec![1], vec![]])).contains("sequence 1 has no tokens"));
        let beyond = Sequences::new(vec![vec![1, 20]]);
        assert!(message(beyond).contains("sequence 0 has the token 20, but the vocabulary ends at 19"));
        let long = Sequences::new(vec![vec![1; 12]]);
        assert!(message(long).contains("sequence 0 has 12 tokens, the network takes 11 at most"));
        let touched = |position, values| {
            let touch = Touch { position, noise: vec![0.0; values] };
            message(Sequences { ids: vec![vec![1, 2]], touches: vec![Some(touch)] })
        };
        assert!(touched(2, 12).contains("sequence 0 is touched at 2, but has 2 tokens"));
        assert!(touched(1, 5).contains("sequence 0 is touched by 5 values, embeddings have 12"));
        let two = Sequences { ids: vec![vec![1]], touches: vec![None, None] };
        assert!(message(two).contains("2 touches for 1 sequences"));
        let vocabulary = config.check_vocabulary(50_265).unwrap_err().to_string();
        assert!(vocabulary.contains("embeddings of 20 tokens, the tokeniser's vocabulary has 50265"), "{vocabulary}");
        assert!(config.check_vocabulary(20).is_ok());
    }
    let heads = TextConfig::Gpt2(Gpt2Config { heads: 3, ..Gpt2Config::default() });
    assert!(heads.check().unwrap_err().to_string().contains("heads must divide d = 256"));
    let dropout = TextConfig::Lstm(LstmConfig { dropout: 1.0, ..LstmConfig::default() });
    assert!(dropout.check().unwrap_err().to_string().contains("model.dropout: must be at least 0 and below 1"));
    let layers = TextConfig::Roberta(RobertaConfig { layers: 0, ..RobertaConfig::default() });
    assert!(layers.check().unwrap_err().to_string().contains("model.layers: must be at least 1"));
}

#[test]
fn weights_start_as_in_the_source_models() {
    let spread = |config: &TextConfig, name: &str| {
        let weights = config.initial_weights(0).unwrap();
        let (_, values) = weights.get(name).unwrap();
        (values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>() / values.len() as f64).sqrt()
    };
    let small = 500;
    let roberta = TextConfig::Roberta(RobertaConfig { vocabulary: small, ..RobertaConfig::default() });
    let gpt2 = TextConfig::Gpt2(Gpt2Config { vocabulary: small, ..Gpt2Config::default() });
    let lstm = TextConfig::Lstm(LstmConfig { vocabulary: small, ..LstmConfig::default() });
    for (config, name, expected) in [
        (&roberta, "roberta.embeddings.word_embeddings.weight", 0.02),
        (&roberta, "roberta.encoder.layer.3.output.dense.weight", 0.02),
        (&gpt2, "transformer.h.0.attn.c_attn.weight", 0.02),
        (&gpt2, "transformer.h.0.mlp.c_proj.weight", 0.02 / 8f64.sqrt()),
        (&lstm, "embedding.weight", 1.0),
        (&lstm, "lstm.weight_hh_l2", 1.0 / (3.0f64 * 256.0).sqrt()),
    ] {
        assert!((spread(config, name) / expected - 1.0).abs() < 0.02, "{name}: {}", spread(config, name));
    }
}
