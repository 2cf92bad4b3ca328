//! The network of a finished run, without its data.

use std::path::Path;

use pudica_data::images::DataSet;
use pudica_data::text::TEXT_SETS;
use pudica_nn::classifier::Classifier;
use pudica_nn::vision::ImageShape;
use safetensors::SafeTensors;
use serde::Deserialize;

use super::config::ClassifierConfig;
use super::dataset::CLASSES;
use super::texts::encoder;
use crate::error::{Error, Result};
use crate::store::{RunFolder, read_json};
use crate::trained::{Trained, settings_of, weights_of};

/// Sides that own images may have whose settings do not tell: those of the usual sets.
const USUAL_SIDES: [usize; 8] = [28, 32, 8, 16, 48, 64, 96, 224];

/// The most classes that are tried where no file tells how many there are.
const MOST_CLASSES: usize = 100;

/// The network that a run has trained. Which images it takes, its data's name tells, or else its weights.
pub(super) fn trained(folder: &RunFolder, data: Option<&Path>) -> Result<Trained> {
    let config: ClassifierConfig = settings_of(folder)?;
    let bytes = weights_of(folder)?;
    let own = own_classes(folder)?;
    let unfit =
        || Error::damaged(&folder.weights_path(), "its weights do not fit the network that config.json describes");
    if config.model.kind.reads_text() {
        let known = TEXT_SETS.iter().find(|set| set.name == config.data.name);
        let classes = own.or(known.map(|set| set.classes.map(String::from).to_vec())).ok_or_else(unfit)?;
        let network = config.model.text_network(vocabulary(&bytes).ok_or_else(unfit)?, classes.len())?;
        let weights = network.read_weights(&bytes).map_err(|error| Error::damaged(&folder.weights_path(), error))?;
        let encoder = data
            .and_then(|data| encoder(Some(data)).ok())
            .filter(|encoder| encoder.vocabulary() == network.vocabulary());
        let encoder = encoder.map(|encoder| Box::new((encoder, config.model.length)));
        return Ok(Trained::Texts { network, weights, classes, encoder });
    }
    let (shapes, classes) = match (DataSet::named(&config.data.name), own) {
        (Ok(set), _) => {
            let side = if config.data.size > 0 { config.data.size } else { set.shape.height };
            (vec![(set.shape.channels, side)], set.classes.map(String::from).to_vec())
        }
        (Err(_), classes) => {
            let sides = if config.data.size > 0 { vec![config.data.size] } else { USUAL_SIDES.to_vec() };
            (sides.into_iter().flat_map(|side| [(3, side), (1, side)]).collect(), classes.unwrap_or_default())
        }
    };
    let counts = if classes.is_empty() { 2..=MOST_CLASSES } else { classes.len()..=classes.len() };
    for ((channels, side), classes_here) in
        shapes.iter().flat_map(|shape| counts.clone().map(move |count| (*shape, count)))
    {
        let shown = ImageShape { channels, side, classes: classes_here };
        let Ok(network) = config.model.checked_image_network(shown) else { continue };
        if let Ok(weights) = network.read_weights(&bytes) {
            return Ok(Trained::Images { network, weights, classes });
        }
    }
    Err(unfit())
}

/// How many different tokens a network on texts knows: rows of its embedding.
fn vocabulary(bytes: &[u8]) -> Option<usize> {
    const EMBEDDINGS: [&str; 3] = ["word_embeddings.weight", "wte.weight", "embedding.weight"];
    let tensors = SafeTensors::deserialize(bytes).ok()?;
    let named = |ending: &str| {
        tensors.iter().find(|(name, _)| name.ends_with(ending)).map(|(_, tensor)| tensor.shape().to_vec())
    };
    EMBEDDINGS.into_iter().find_map(named)?.first().copied()
}

/// The names of the classes of own data.
fn own_classes(folder: &RunFolder) -> Result<Option<Vec<String>>> {
    #[derive(Deserialize)]
    struct Class {
        name: String,
    }
    let about: Option<serde_json::Value> = read_json(&folder.path().join("data.json"))?;
    let classes = about.and_then(|about| serde_json::from_value::<Vec<Class>>(about.get(CLASSES)?.clone()).ok());
    Ok(classes.map(|classes| classes.into_iter().map(|class| class.name).collect()))
}
