//! The network of a finished run, without its data.

use std::path::Path;

use pudica_data::images::DataSet;
use pudica_data::text::TEXT_SETS;
use pudica_nn::classifier::Classifier;
use pudica_nn::vision::ImageShape;
use serde::Deserialize;

use super::config::ClassifierConfig;
use super::dataset::CLASSES;
use super::texts::encoder;
use crate::error::{Error, Result};
use crate::store::{RunFolder, read_json};
use crate::trained::{Trained, settings_of, weights_of};

/// Sides that own images may have whose settings do not tell: those of the usual sets.
const USUAL_SIDES: [usize; 8] = [28, 32, 8, 16, 48, 64, 96, 224];

/// The tokens of RoBERTa, which all texts here are made of.
const VOCABULARY: usize = 50_265;

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
        let network = config.model.text_network(VOCABULARY, classes.len())?;
        let weights = network.read_weights(&bytes).map_err(|error| Error::damaged(&folder.weights_path(), error))?;
        let encoder = data.and_then(|data| encoder(Some(data)).ok()).map(|encoder| (encoder, config.model.length));
        return Ok(Trained::Texts { network, weights, classes, encoder });
    }
    let (shapes, classes) = match (DataSet::named(&config.data.name), own) {
        (Ok(set), _) => {
            let side = if config.data.size > 0 { config.data.size } else { set.shape.height };
            (vec![(set.shape.channels, side)], set.classes.map(String::from).to_vec())
        }
        (Err(_), Some(classes)) => {
            let sides = if config.data.size > 0 { vec![config.data.size] } else { USUAL_SIDES.to_vec() };
            (sides.into_iter().flat_map(|side| [(3, side), (1, side)]).collect(), classes)
        }
        (Err(_), None) => return Err(unfit()),
    };
    for (channels, side) in shapes {
        let shown = ImageShape { channels, side, classes: classes.len() };
        let Ok(network) = config.model.checked_image_network(shown) else { continue };
        if let Ok(weights) = network.read_weights(&bytes) {
            return Ok(Trained::Images { network, weights, classes });
        }
    }
    Err(unfit())
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
