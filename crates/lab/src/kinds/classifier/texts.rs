//! Texts as dataset: reading, tokens, and what is touched in them.

use std::path::Path;

use pudica_data::text::{PairEncoder, Pairs, TextSet, Vocabulary};
use pudica_data::{Divided, Split};
use pudica_nn::classifier::{Classifier, Model};
use pudica_nn::text::{Sequences, TextConfig};
use pudica_probe::classifier::text_sensitivity;
use pudica_probe::{Budget, EmbeddingNoise, InputKind, Nudge, NudgeName, Profile, Sequence, WordReplacement};
use serde_json::{Map, Value, json};

use super::config::{ClassifierConfig, DataConfig};
use super::dataset::{Batch, CLASSES, Dataset, TrainingBatch, pack, sample};
use super::how_to_get;
use super::own::{OwnData, find_own, reading};
use super::validate::not_for;
use crate::error::{Error, Result};
use crate::stop::Progress;

/// RoBERTa's numbers: below stand the special tokens, and `<mask>` is the last one.
const FIRST_WORD: u32 = 4;

/// A data set of texts, as RoBERTa's tokens (for every network, as in the paper).
pub(super) struct TextDataset {
    train: Part,
    test: Part,
    vocabulary: usize,
    /// Names of the classes.
    classes: Vec<String>,
    /// Whether they are a user's own.
    own: bool,
}

struct Part {
    /// The tokens of each text, the short ones first: batches of one length need no padding.
    ids: Vec<Vec<u32>>,
    labels: Vec<usize>,
    found: usize,
    /// How many the whole published split has, where that is known.
    published: Option<usize>,
    truncated: usize,
}

/// Whether a data set of texts has this name.
pub(super) fn is_known(name: &str) -> bool {
    pudica_data::text::TEXT_SETS.iter().any(|set| set.name == name)
}

impl TextDataset {
    /// Reads a data set by its name from the data folder, or by its path, each text cut to at most `length` tokens.
    pub(super) fn load(config: &DataConfig, length: usize, folder: Option<&Path>) -> Result<TextDataset> {
        if config.held_out > 0 {
            return Err(Error::setting("data.held_out", "is for images; texts have their own split"));
        }
        let own = !is_known(&config.name);
        let read = if own { read_own(config, folder)? } else { read_known(&config.name, folder)? };
        let encoder = encoder(folder)?;
        let part = |(pairs, published): (Pairs, Option<usize>), split, asked| {
            Part::new(&pairs, published, split, asked, config.seed, &encoder, length)
        };
        let train = part(read.train, Split::Train, config.train)?;
        let test = part(read.test, Split::Test, config.test)?;
        Ok(TextDataset { train, test, vocabulary: encoder.vocabulary(), classes: read.classes, own })
    }

    fn part(&self, split: Split) -> &Part {
        match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        }
    }

    /// The texts touched.
    fn touched<'a>(&'a self, config: &ClassifierConfig) -> impl Iterator<Item = &'a Vec<u32>> {
        let split = if config.measure.set == "train" { Split::Train } else { Split::Test };
        let rows = sample(self.count(split), config.measure.inputs, config.data.seed, "measure/inputs");
        let part = self.part(split);
        rows.into_iter().map(|row| &part.ids[row])
    }

    /// How the predicted classes answer to a nudge.
    fn answers(
        &self,
        model: &Model<TextConfig>,
        config: &ClassifierConfig,
        nudge: &dyn Nudge<Sequence>,
        progress: &Progress,
    ) -> Result<Profile> {
        let budget = Budget::new(config.measure.draws, pack(model.device()), config.seed, "sensitivity");
        let touched = Sequences::new(self.touched(config).cloned().collect());
        text_sensitivity(model, &touched, nudge, &budget, |passes| progress.tick(passes as f64))
    }
}

impl Dataset for TextDataset {
    type Network = TextConfig;

    fn network(&self, config: &ClassifierConfig) -> Result<TextConfig> {
        let network = config.model.text_network(self.vocabulary, self.classes.len())?;
        network.check()?;
        network.check_vocabulary(self.vocabulary)?;
        Ok(network)
    }

    fn labels(&self, split: Split) -> &[usize] {
        &self.part(split).labels
    }

    fn own_classes(&self) -> Option<&[String]> {
        self.own.then_some(&self.classes)
    }

    fn batch(&self, split: Split, rows: &[usize]) -> Batch<Sequences> {
        let part = self.part(split);
        let ids = rows.iter().map(|row| part.ids[*row].clone()).collect();
        (Sequences::new(ids), rows.iter().map(|row| part.labels[*row]).collect())
    }

    fn training_batch(&self, _: &ClassifierConfig, rows: &[usize], _: u64, _: u64) -> Result<TrainingBatch<Sequences>> {
        let (input, labels) = self.batch(Split::Train, rows);
        Ok(TrainingBatch { input, labels, beside: None })
    }

    fn touches(&self, config: &ClassifierConfig) -> f64 {
        let (texts, tokens) = self.touched(config).fold((0, 0), |(texts, tokens), ids| (texts + 1, tokens + ids.len()));
        config.measure.draws as f64 * tokens as f64 / f64::from(texts.max(1))
    }

    fn sensitivity(
        &self,
        model: &Model<TextConfig>,
        config: &ClassifierConfig,
        progress: &Progress,
    ) -> Result<Profile> {
        let words = FIRST_WORD..(self.vocabulary as u32 - 1).max(FIRST_WORD + 1);
        let nudge: &dyn Nudge<Sequence> = match config.measure.nudge {
            NudgeName::Embedding => {
                &EmbeddingNoise { variance: config.measure.variance, width: model.classifier().width() }
            }
            NudgeName::Replace => &WordReplacement { words },
            other => return Err(not_for(other, InputKind::Texts)),
        };
        self.answers(model, config, nudge, progress)
    }

    fn found(&self, split: Split) -> (usize, Option<usize>) {
        (self.part(split).found, self.part(split).published)
    }

    fn describe(&self) -> Map<String, Value> {
        let split = |part: &Part| {
            let tokens: usize = part.ids.iter().map(Vec::len).sum();
            let mean = tokens as f64 / part.ids.len().max(1) as f64;
            json!({"texts": part.ids.len(), "found": part.found, "published": part.published, "truncated": part.truncated, "mean_tokens": mean})
        };
        let mut described = Map::from_iter([
            ("train".to_string(), split(&self.train)),
            ("test".to_string(), split(&self.test)),
            ("vocabulary".to_string(), self.vocabulary.into()),
        ]);
        described.extend(self.describe_classes().map(|classes| (CLASSES.to_string(), classes)));
        described
    }
}

/// Both parts of a data set, each with how many inputs are published, and its classes.
type Read = Divided<(Pairs, Option<usize>)>;

fn read_known(name: &str, folder: Option<&Path>) -> Result<Read> {
    let set = TextSet::named(name).map_err(|problem| Error::setting("data.name", problem))?;
    let hint = how_to_get(name);
    let folder = folder.ok_or_else(|| Error::Data(format!("no data folder is named, but {name} is needed: {hint}")))?;
    let read = |split: Split| {
        let loaded = set.load(folder, split).map_err(|error| match set.file(folder, split) {
            None => Error::Data(format!("{error}; {hint}")),
            Some(_) => reading(error),
        })?;
        Ok::<_, Error>((loaded.pairs, Some(loaded.published)))
    };
    let classes = set.classes.map(str::to_string).to_vec();
    Ok(Divided { train: read(Split::Train)?, test: read(Split::Test)?, classes })
}

fn read_own(config: &DataConfig, folder: Option<&Path>) -> Result<Read> {
    match find_own(&config.name, folder)? {
        (_, OwnData::Texts(own)) => {
            let Divided { train, test, classes } = config.read_own_texts(&own)?;
            Ok(Divided { train: (train, None), test: (test, None), classes })
        }
        (path, OwnData::Images(_)) => Err(Error::Data(format!("{}: holds images, not texts", path.display()))),
    }
}

/// What makes tokens, from the data folder.
pub(super) fn encoder(folder: Option<&Path>) -> Result<PairEncoder> {
    let hint = how_to_get("bpe");
    let Some(folder) = folder else {
        return Err(Error::Data(format!("no data folder is named, but bpe (RoBERTa's tokens) is needed: {hint}")));
    };
    PairEncoder::open(&folder.join("bpe"), Vocabulary::Roberta).map_err(|error| match folder.join("bpe").is_dir() {
        true => reading(error),
        false => Error::Data(format!("{error}; {hint}")),
    })
}

impl Part {
    /// So many of the texts of a split, all where `asked` is 0.
    fn new(
        pairs: &Pairs,
        published: Option<usize>,
        split: Split,
        asked: usize,
        seed: u64,
        encoder: &PairEncoder,
        length: usize,
    ) -> Result<Part> {
        let name = split.name();
        if asked > pairs.count() || pairs.count() == 0 {
            let problem = format!("asks for {asked} of {} texts; 0 takes all there are", pairs.count());
            return Err(Error::setting(&format!("data.{name}"), problem));
        }
        let chosen = pairs.select(sample(pairs.count(), asked, seed, &format!("subset/{name}")));
        let encoded = encoder.encode(&chosen, length).map_err(|problem| Error::setting("model.length", problem))?;
        let mut rows: Vec<(Vec<u32>, usize)> = encoded.ids.into_iter().zip(chosen.labels).collect();
        rows.sort_by_key(|(ids, _)| ids.len());
        let (ids, labels) = rows.into_iter().unzip();
        Ok(Part { ids, labels, found: pairs.count(), published, truncated: encoded.truncated })
    }
}
