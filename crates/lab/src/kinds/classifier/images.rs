//! Images as dataset: reading, normalising, noise in training, and the measures only images have.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use pudica_data::corruptions::{Corruption, FrostPictures, corrupt};
use pudica_data::images::{DATA_SETS, DataSet, Images, read_cifar10_c};
use pudica_data::{Divided, Split, Stream};
use pudica_nn::classifier::Model;
use pudica_nn::vision::{ImageBatch, ImageShape, VisionConfig};
use pudica_probe::classifier::{Attack, Norm, accuracy_under_attack, evaluate, image_sensitivity};
use pudica_probe::{Budget, InputKind, Nudge, NudgeName, PatchGrid, PatchNoise, PatchReplacement, ProbeError, Profile};
use rayon::prelude::*;
use serde_json::{Map, Value, json};

use super::config::{ClassifierConfig, DataConfig, MeasureConfig};
use super::dataset::{Accuracies, Batch, CLASSES, Dataset, TrainingBatch, pack, sample};
use super::how_to_get;
use super::own::{OwnData, find_own, reading};
use super::point::with_error;
use super::validate::not_for;
use crate::error::{Error, Result};
use crate::stop::Progress;

/// Where `data.binary` divides ten classes in two.
const FIRST_OF_SECOND_HALF: usize = 5;

/// Steps of a PGD attack.
const PGD_STEPS: usize = 10;

/// The attacks that are asked for, by name.
fn attacks(measure: &MeasureConfig) -> Result<Vec<(String, Attack)>> {
    // Distances are of pixels from 0 to 1; the network's go from -1 to 1.
    let linf = measure.adversarial()?.into_iter().flat_map(|far| {
        let (fgsm, pgd) = (Attack::fgsm(Norm::Linf, 2.0 * far), Attack::pgd(Norm::Linf, 2.0 * far, PGD_STEPS));
        [(format!("fgsm_linf_{far}"), fgsm), (format!("pgd_linf_{far}"), pgd)]
    });
    let l2 = measure.adversarial_l2()?.into_iter();
    let l2 = l2.map(|far| (format!("pgd_l2_{far}"), Attack::pgd(Norm::L2, 2.0 * far, PGD_STEPS)));
    Ok(linf.chain(l2).collect())
}

/// Passes of one image under attack: two predictions, and a gradient for each step.
fn passes(attack: &Attack) -> f64 {
    (2 + 3 * attack.steps) as f64
}

/// A data set of images.
pub(super) struct ImageDataset {
    train: Part,
    test: Part,
    classes: usize,
    /// The names of the classes of own images.
    own_classes: Option<Vec<String>>,
    /// Where the data lies, for what corruptions need.
    folder: Option<PathBuf>,
    /// Names the corruptions' noise.
    seed: u64,
    /// Corrupted test images that some run has asked for.
    corrupted: Mutex<Vec<Corrupted>>,
}

/// Test images after a corruption.
#[derive(Clone)]
struct Corrupted {
    corruption: Corruption,
    severity: usize,
    /// How many were asked for, 0 for all.
    asked: usize,
    images: Images,
}

struct Part {
    images: Images,
    labels: Vec<usize>,
    /// How many inputs were found, and how many the whole published split has, where that is known.
    found: usize,
    published: Option<usize>,
    /// The place of each image in the split's files.
    places: Vec<usize>,
}

/// Whether a data set of images has this name.
pub(super) fn is_known(name: &str) -> bool {
    DATA_SETS.iter().any(|set| set.name == name)
}

impl ImageDataset {
    /// Reads a data set by its name from the data folder, or by its path.
    pub(super) fn load(config: &DataConfig, folder: Option<&Path>) -> Result<ImageDataset> {
        let (train, test, own_classes) = match is_known(&config.name) {
            true if config.held_out > 0 => (None, read_known(&config.name, folder, Split::Test)?, None),
            true => {
                let read = |split| read_known(&config.name, folder, split);
                (Some(read(Split::Train)?), read(Split::Test)?, None)
            }
            false => {
                let Divided { train, test, classes } = read_own(config, folder)?;
                (Some((train, None)).filter(|_| config.held_out == 0), (test, None), Some(classes))
            }
        };
        let (train, test) = match train {
            Some(train) => (train, test),
            None => {
                let (held_out, images) = (config.held_out, test.0);
                if held_out >= images.count() {
                    let problem = format!("cannot hold out {held_out} of {} images", images.count());
                    return Err(Error::setting("data.held_out", problem));
                }
                let tested = sample(images.count(), held_out, config.seed, "held-out");
                let trained = (0..images.count()).filter(|row| tested.binary_search(row).is_err());
                ((images.select(trained), None), (images.select(tested.iter().copied()), None))
            }
        };
        let train = Part::new(train, "train", config.train, config)?;
        let test = Part::new(test, "test", config.test, config)?;
        if let Some(names) = own_classes.as_ref().filter(|names| config.binary && names.len() <= FIRST_OF_SECOND_HALF) {
            let problem = format!("divides ten classes in two; there are {}: leave it false", names.len());
            return Err(Error::setting("data.binary", problem));
        }
        let classes = match (config.binary, &own_classes) {
            (true, _) => 2,
            (false, None) => 10,
            (false, Some(names)) => names.len(),
        };
        let (shape, other) = (train.images.shape(), test.images.shape());
        if shape != other || shape.height != shape.width {
            let problem = format!(
                "training images of {shape} and test images of {other}: square ones of one size are needed; own images are \
                 resized by data.size=32"
            );
            return Err(Error::setting("data.name", problem));
        }
        let (folder, seed) = (folder.map(Path::to_path_buf), config.seed);
        Ok(ImageDataset { train, test, classes, own_classes, folder, seed, corrupted: Mutex::default() })
    }

    fn part(&self, split: Split) -> &Part {
        match split {
            Split::Train => &self.train,
            Split::Test => &self.test,
        }
    }

    /// `setting` is the one that has the patches' side.
    fn grid(&self, setting: &str, side: usize) -> Result<PatchGrid> {
        let shape = self.train.images.shape();
        PatchGrid::new([shape.channels, shape.height, shape.width], side).map_err(|error| match error {
            ProbeError::Setting { problem, .. } => Error::setting(setting, problem),
            other => other.into(),
        })
    }

    /// The rows touched, and where they are from.
    fn touched(&self, config: &ClassifierConfig) -> (Split, Vec<usize>) {
        let split = if config.measure.set == "train" { Split::Train } else { Split::Test };
        let rows = sample(self.count(split), config.measure.inputs, config.data.seed, "measure/inputs");
        (split, rows)
    }

    /// How the predicted classes answer to a nudge.
    fn answers(
        &self,
        model: &Model<VisionConfig>,
        config: &ClassifierConfig,
        nudge: &dyn Nudge<Vec<f32>>,
        progress: &Progress,
    ) -> Result<Profile> {
        let (split, rows) = self.touched(config);
        let touched = pictures(&self.part(split).images, &rows);
        let budget = Budget::new(config.measure.draws, pack(model.device()), config.seed, "sensitivity");
        image_sensitivity(model, &touched, nudge, &budget, |passes| progress.tick(passes as f64))
    }

    /// The test images a run asks for, after each of its corruptions: those not there yet are made, on all cores.
    fn corrupted_images(&self, config: &ClassifierConfig) -> Result<Vec<Corrupted>> {
        let (severity, asked) = (config.measure.severity, config.measure.corrupted);
        let known = |corruption: Corruption| {
            let fits =
                |known: &&Corrupted| (known.corruption, known.severity, known.asked) == (corruption, severity, asked);
            self.known().iter().find(fits).cloned()
        };
        let rows = sample(self.test.images.count(), asked, config.data.seed, "measure/corrupted");
        let corrupted = |corruption: Corruption| -> Result<Corrupted> {
            if let Some(known) = known(corruption) {
                return Ok(known);
            }
            let images = match self.official(corruption, severity)? {
                Some(official) => official.select(rows.iter().map(|row| self.test.places[*row])),
                None => self.made(corruption, severity, &rows)?,
            };
            let new = Corrupted { corruption, severity, asked, images };
            self.known().push(new.clone());
            Ok(new)
        };
        config.measure.corruptions()?.into_par_iter().map(corrupted).collect()
    }

    fn known(&self) -> MutexGuard<'_, Vec<Corrupted>> {
        self.corrupted.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// CIFAR-10-C's own images of a corruption, of the whole test split, where the data folder has them.
    fn official(&self, corruption: Corruption, severity: usize) -> Result<Option<Images>> {
        let Some(folder) = self.folder.as_ref().map(|folder| folder.join("cifar10-c")) else { return Ok(None) };
        if !folder.join(format!("{}.npy", corruption.name())).is_file() {
            return Ok(None);
        }
        let images = read_cifar10_c(&folder, corruption, severity).map_err(reading)?;
        Ok(Some(images).filter(|images| Some(images.count()) == self.test.published))
    }

    /// The images corrupted here, named by the data's seed.
    fn made(&self, corruption: Corruption, severity: usize, rows: &[usize]) -> Result<Images> {
        let wrong = |problem: String| Error::setting("measure.corruptions", problem);
        let frost = match (corruption, &self.folder) {
            (Corruption::Frost, Some(folder)) => Some(FrostPictures::read(&folder.join("corruptions")).map_err(wrong)?),
            _ => None,
        };
        let chosen = self.test.images.select(rows.iter().copied());
        corrupt(&chosen, corruption, severity, self.seed, frost.as_ref()).map_err(wrong)
    }
}

impl Dataset for ImageDataset {
    type Network = VisionConfig;

    fn network(&self, config: &ClassifierConfig) -> Result<VisionConfig> {
        let shape = self.train.images.shape();
        let shown = ImageShape { channels: shape.channels, side: shape.height, classes: self.classes };
        config.model.checked_image_network(shown)
    }

    fn check(&self, config: &ClassifierConfig) -> Result<()> {
        self.network(config)?;
        if config.measure.nudge != NudgeName::None {
            self.grid("measure.patch", config.measure.patch)?;
        }
        if config.intervene.regularise > 0.0 {
            self.grid("intervene.regularise_patch", config.intervene.regularise_patch)?;
        }
        // One image of each corruption shows whether it can be made.
        for corruption in config.measure.corruptions()? {
            if self.official(corruption, config.measure.severity)?.is_none() {
                self.made(corruption, config.measure.severity, &[0])?;
            }
        }
        Ok(())
    }

    fn side(&self) -> usize {
        self.train.images.shape().height
    }

    fn labels(&self, split: Split) -> &[usize] {
        &self.part(split).labels
    }

    fn own_classes(&self) -> Option<&[String]> {
        self.own_classes.as_deref()
    }

    fn batch(&self, split: Split, rows: &[usize]) -> Batch<ImageBatch> {
        let part = self.part(split);
        (pictures(&part.images, rows), rows.iter().map(|row| part.labels[*row]).collect())
    }

    fn copies(&self, config: &ClassifierConfig) -> usize {
        if config.intervene.augment > 0.0 { 2 } else { 1 }
    }

    fn training_batch(
        &self,
        config: &ClassifierConfig,
        rows: &[usize],
        epoch: u64,
        step: u64,
    ) -> Result<TrainingBatch<ImageBatch>> {
        let count = self.count(Split::Train);
        let own: Vec<usize> = rows.iter().map(|row| row % count).collect();
        let (mut input, labels) = self.batch(Split::Train, &own);
        let pixels = input.pixels();
        let deviation = config.intervene.augment.sqrt();
        for (row, image) in rows.iter().zip(input.values.chunks_exact_mut(pixels)).filter(|(row, _)| **row >= count) {
            let mut noise = Stream::new(config.seed, &format!("augment/{epoch}"), (row - count) as u64);
            image.iter_mut().for_each(|value| *value += (deviation * noise.normal()) as f32);
        }
        let beside = match config.intervene.regularise > 0.0 {
            false => None,
            true => {
                let grid = self.grid("intervene.regularise_patch", config.intervene.regularise_patch)?;
                let nudge = PatchNoise { grid, variance: config.intervene.regularise_variance };
                let mut noise = Stream::new(config.seed, "regularise", step);
                let touched = input.values.chunks_exact(pixels).flat_map(|image| {
                    let patch = noise.below(grid.count() as u64) as usize;
                    nudge.apply(&image.to_vec(), patch, &mut noise)
                });
                Some(ImageBatch { values: touched.collect(), ..input })
            }
        };
        Ok(TrainingBatch { input, labels, beside })
    }

    fn touches(&self, config: &ClassifierConfig) -> f64 {
        let patches = self.grid("measure.patch", config.measure.patch).map_or(0, |grid| grid.count());
        (patches * config.measure.draws) as f64
    }

    fn sensitivity(
        &self,
        model: &Model<VisionConfig>,
        config: &ClassifierConfig,
        progress: &Progress,
    ) -> Result<Profile> {
        let grid = self.grid("measure.patch", config.measure.patch)?;
        let nudge: &dyn Nudge<Vec<f32>> = match config.measure.nudge {
            NudgeName::Noise => &PatchNoise { grid, variance: config.measure.variance },
            // Uniformly random pixels, between black and white.
            NudgeName::Replace => &PatchReplacement { grid, low: -1.0, high: 1.0 },
            other => return Err(not_for(other, InputKind::Images)),
        };
        self.answers(model, config, nudge, progress)
    }

    fn corrupted(
        &self,
        model: &Model<VisionConfig>,
        config: &ClassifierConfig,
        progress: &Progress,
    ) -> Result<Accuracies> {
        let mut found = Accuracies::new();
        for Corrupted { corruption, images, .. } in self.corrupted_images(config)? {
            let labels = labels(&images, config.data.binary);
            let rows: Vec<usize> = (0..images.count()).collect();
            let batches = rows.chunks(pack(model.device())).take_while(|_| !progress.stopped());
            let batches = batches.map(|rows| (pictures(&images, rows), rows.iter().map(|row| labels[*row]).collect()));
            let accuracy = evaluate(model, batches).map(|found| found.accuracy);
            progress.tick(images.count() as f64)?;
            found.insert(corruption.name().into(), with_error(accuracy?));
        }
        Ok(found)
    }

    fn attacked(
        &self,
        model: &Model<VisionConfig>,
        config: &ClassifierConfig,
        progress: &Progress,
    ) -> Result<Accuracies> {
        let measure = &config.measure;
        let rows = sample(self.count(Split::Test), measure.adversarial_images, config.data.seed, "measure/attacked");
        let mut found = Accuracies::new();
        for (name, attack) in attacks(measure)? {
            let batches = rows.chunks(pack(model.device())).take_while(|_| !progress.stopped());
            let batches = batches.map(|rows| self.batch(Split::Test, rows));
            let attacked = accuracy_under_attack(model, batches, &attack, config.seed);
            progress.tick(rows.len() as f64 * passes(&attack))?;
            found.insert(name, with_error(attacked?.robust));
        }
        Ok(found)
    }

    fn attack_passes(&self, config: &ClassifierConfig) -> f64 {
        // Settings that make no attacks are refused before anything is computed.
        attacks(&config.measure).map_or(0.0, |all| all.iter().map(|(_, attack)| passes(attack)).sum())
    }

    fn found(&self, split: Split) -> (usize, Option<usize>) {
        (self.part(split).found, self.part(split).published)
    }

    fn describe(&self) -> Map<String, Value> {
        let split =
            |part: &Part| json!({"images": part.labels.len(), "found": part.found, "published": part.published});
        let mut described = Map::from_iter([
            ("train".to_string(), split(&self.train)),
            ("test".to_string(), split(&self.test)),
            ("shape".to_string(), self.train.images.shape().to_string().into()),
            ("classes".to_string(), self.classes.into()),
        ]);
        described.extend(self.describe_classes().map(|classes| (CLASSES.to_string(), classes)));
        described
    }
}

impl Part {
    /// So many of the images of a split, all where `asked` is 0.
    fn new(
        (images, published): (Images, Option<usize>),
        split: &str,
        asked: usize,
        config: &DataConfig,
    ) -> Result<Part> {
        if asked > images.count() || images.count() == 0 {
            let problem = format!("asks for {asked} of {} images; 0 takes all there are", images.count());
            return Err(Error::setting(&format!("data.{split}"), problem));
        }
        let places = sample(images.count(), asked, config.seed, &format!("subset/{split}"));
        let found = images.count();
        let images = images.select(places.iter().copied());
        Ok(Part { labels: labels(&images, config.binary), images, found, published, places })
    }
}

/// The classes of images; with `binary`, whether theirs is 5 or more.
fn labels(images: &Images, binary: bool) -> Vec<usize> {
    let of = |label: &u8| match binary {
        true => usize::from(usize::from(*label) >= FIRST_OF_SECOND_HALF),
        false => usize::from(*label),
    };
    images.labels().iter().map(of).collect()
}

/// Images as networks take them: values from -1 to 1 (mean 0.5 and standard deviation 0.5 taken out), channels first.
fn pictures(images: &Images, rows: &[usize]) -> ImageBatch {
    let shape = images.shape();
    let (channels, area) = (shape.channels, shape.height * shape.width);
    let mut values = vec![0.0; rows.len() * shape.pixels()];
    for (row, picture) in rows.iter().zip(values.chunks_exact_mut(shape.pixels())) {
        for (at, pixel) in images.image(*row).chunks_exact(channels).enumerate() {
            for (channel, byte) in pixel.iter().enumerate() {
                picture[channel * area + at] = f32::from(*byte) / 127.5 - 1.0;
            }
        }
    }
    ImageBatch { values, count: rows.len(), channels, height: shape.height, width: shape.width }
}

/// A split of a known data set.
fn read_known(name: &str, folder: Option<&Path>, split: Split) -> Result<(Images, Option<usize>)> {
    let set = DataSet::named(name).map_err(|problem| Error::setting("data.name", problem))?;
    let hint = how_to_get(name);
    let folder = folder.ok_or_else(|| Error::Data(format!("no data folder is named, but {name} is needed: {hint}")))?;
    let loaded = set.load(folder, split).map_err(|error| match set.files(folder, split).is_empty() {
        true => Error::Data(format!("{error}; {hint}")),
        false => reading(error),
    })?;
    Ok((loaded.images, Some(loaded.published)))
}

/// A user's own images.
fn read_own(config: &DataConfig, folder: Option<&Path>) -> Result<Divided<Images>> {
    match find_own(&config.name, folder)? {
        (path, OwnData::Images(own)) if config.held_out > 0 && !own.is_divided() => {
            let problem = format!("{} has no part for tests; data.test_fraction makes one", path.display());
            Err(Error::setting("data.held_out", problem))
        }
        (_, OwnData::Images(own)) => config.read_own_images(&own),
        (path, OwnData::Texts(_)) => Err(Error::Data(format!("{}: holds texts, not images", path.display()))),
    }
}
