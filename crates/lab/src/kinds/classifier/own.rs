//! Data of a user's own: where they lie, what they are, and their identity as a setting.

use std::path::{Path, PathBuf};

use pudica_data::images::{DATA_SETS, Images, OwnImages};
use pudica_data::text::{OwnColumns, OwnTexts, Pairs, TEXT_SETS};
use pudica_data::{Divided, Division, FileError};
use serde_json::Value;

use super::KIND;
use super::config::{ClassifierConfig, DataConfig};
use crate::error::{Error, Result};
use crate::kinds::OwnFiles;
use crate::recipe::Override;
use crate::settings::Settings;

/// The fraction of a set without a part for tests that is for tests, where nobody says.
const TEST_FRACTION: f64 = 0.2;

/// The settings that say how own data is read.
const SHOWN_BY: [&str; 6] = ["data.text", "data.label", "data.size", "data.test_fraction", "data.seed", "data.content"];

/// What a folder or file of a user's own holds.
#[derive(Clone, Debug)]
pub enum OwnData {
    /// Pictures in folders of classes, or arrays of them.
    Images(OwnImages),
    /// Tables of labelled texts.
    Texts(OwnTexts),
}

impl OwnData {
    /// What lies at a path.
    fn at(path: &Path) -> Result<OwnData, FileError> {
        match (OwnImages::find(path)?, OwnTexts::find(path)?) {
            (Some(images), _) => Ok(OwnData::Images(images)),
            (None, Some(texts)) => Ok(OwnData::Texts(texts)),
            (None, None) => {
                let problem = "there are neither images (a folder of .png or .jpg files for each class) nor texts (.tsv, .csv or \
                               .txt, or .gz)";
                Err(FileError::new(path, problem))
            }
        }
    }

    /// Whether there is a part for tests.
    pub fn is_divided(&self) -> bool {
        match self {
            OwnData::Images(images) => images.is_divided(),
            OwnData::Texts(texts) => texts.is_divided(),
        }
    }

    fn files(&self) -> Result<Vec<PathBuf>, FileError> {
        match self {
            OwnData::Images(images) => images.files(),
            OwnData::Texts(texts) => Ok(texts.files()),
        }
    }
}

/// Whether a data set is known by this name.
fn is_known(name: &str) -> bool {
    super::images::is_known(name) || super::texts::is_known(name)
}

/// A user's own data by its path from here, or from the data folder: where it lies, and what it is.
pub fn find_own(name: &str, data: Option<&Path>) -> Result<(PathBuf, OwnData)> {
    let places = [Some(PathBuf::from(name)), data.map(|data| data.join(name))];
    let path = places.into_iter().flatten().find(|path| path.exists()).ok_or_else(|| unknown(name, data))?;
    let own = OwnData::at(&path).map_err(reading)?;
    Ok((path, own))
}

/// A user's own data with the settings that say how it is read, given as on the command line of `run`, and how it would be there.
pub fn own_data(name: &str, overrides: &[String], data: Option<&Path>) -> Result<(DataConfig, OwnData)> {
    let (_, own) = find_own(name, data)?;
    let mut given = KIND.defaults();
    given.set("data.name", name.into())?;
    given.set("model.kind", if matches!(own, OwnData::Texts(_)) { "lstm" } else { "mlp" }.into())?;
    given.set("measure.nudge", "none".into())?; // the usual one is for images
    let mut keys = Vec::new();
    for text in overrides {
        let wrong = |problem: String| Error::Override { text: text.clone(), problem };
        match Override::parse(text)? {
            Override::Setting(axis) if SHOWN_BY.contains(&axis.key.as_str()) => {
                let [value] = axis.listed()? else { return Err(wrong("give one value".into())) };
                given.set(&axis.key, value.clone())?;
                keys.push(axis.key);
            }
            other => return Err(wrong(format!("{} is none of {}", other.key(), SHOWN_BY.join(", ")))),
        }
    }
    let found = (KIND.settings.identify)(KIND.resolve(&given)?, &mut OwnFiles::new(data.map(Path::to_path_buf)))?;
    for key in keys {
        if found.get(&key)? != given.get(&key)? {
            return Err(Error::setting(&key, format!("plays no part in {name}; leave it out")));
        }
    }
    Ok((found.read::<ClassifierConfig>()?.data, own))
}

/// A name that is neither a data set's nor a path.
fn unknown(name: &str, data: Option<&Path>) -> Error {
    let names: Vec<&str> = DATA_SETS.iter().map(|set| set.name).chain(TEXT_SETS.iter().map(|set| set.name)).collect();
    let near = pudica_boolean::did_you_mean(name, names.iter().copied());
    let places = data.map_or(String::new(), |data| format!(" or in {}", data.display()));
    let problem =
        format!("\"{name}\" is no folder or file here{places}, and no data set known{near} ({})", names.join(", "));
    Error::setting("data.name", problem)
}

/// [`SettingsOf::identify`](crate::kinds::SettingsOf::identify): states the identity of own data, and sets to nothing what plays no part.
pub(super) fn identify(mut settings: Settings, files: &mut OwnFiles) -> Result<Settings> {
    let config: ClassifierConfig = settings.read()?;
    let DataConfig { name, content: expected, mut test_fraction, .. } = config.data;
    let (mut images, mut texts, mut content) = (false, false, String::new());
    if is_known(&name) {
        test_fraction = 0.0;
    } else {
        let (path, own) = find_own(&name, files.data.as_deref())?;
        (images, texts) = (matches!(own, OwnData::Images(_)), matches!(own, OwnData::Texts(_)));
        if config.model.kind.reads_text() != texts {
            let (kind, reads, holds) = match images {
                true => (config.model.kind.name(), "texts", "images"),
                false => (config.model.kind.name(), "images", "texts"),
            };
            return Err(Error::setting("model.kind", format!("{kind} reads {reads}, and {name} holds {holds}")));
        }
        content = files.identity(&path, || own.files()).map_err(reading)?;
        if !expected.is_empty() && expected != content {
            let problem = format!("the files of {name} are not those of \"{expected}\": now they are \"{content}\"");
            return Err(Error::setting("data.content", problem));
        }
        test_fraction = match (own.is_divided(), test_fraction) {
            (true, _) => 0.0,
            (false, 0.0) => TEST_FRACTION,
            (false, asked) => asked,
        };
    }
    settings.set("data.content", content.into())?;
    settings.set("data.test_fraction", test_fraction.into())?;
    for (key, plays, nothing) in
        [("data.text", texts, Value::from("")), ("data.label", texts, "".into()), ("data.size", images, 0.into())]
    {
        if !plays {
            settings.set(key, nothing)?;
        }
    }
    Ok(settings)
}

impl DataConfig {
    fn division(&self) -> Division {
        let fraction = if self.test_fraction == 0.0 { TEST_FRACTION } else { self.test_fraction };
        Division { fraction, seed: self.seed }
    }

    /// Reads own images.
    pub fn read_own_images(&self, own: &OwnImages) -> Result<Divided<Images>> {
        self.check()?;
        own.read(self.size, &self.division()).map_err(reading)
    }

    /// Reads own texts.
    pub fn read_own_texts(&self, own: &OwnTexts) -> Result<Divided<Pairs>> {
        self.check()?;
        let columns = OwnColumns { text: &self.text, label: &self.label };
        own.read(&columns, &self.division()).map_err(reading)
    }
}

pub(super) fn reading(error: FileError) -> Error {
    Error::Data(error.to_string())
}
