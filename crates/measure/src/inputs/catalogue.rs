//! The data sets known by name.

use std::path::{Path, PathBuf};

use pudica_data::images::{DataSet, Images};
use pudica_data::text::{Pairs, TextSet};
use pudica_data::{Split, digest};
use pudica_model::{Input, Takes};
use pudica_probe::InputKind;

use super::fit::{Fit, Unfit};
use super::{Choice, Inputs, InputsRequest, Labelled, Opened};
use crate::{MeasureError, MeasureResult};

/// The part that `cifar10:test` names; without one, that for tests.
pub(super) fn split(source: &str, name: Option<&str>) -> MeasureResult<Split> {
    let Some(name) = name else { return Ok(Split::Test) };
    Split::ALL
        .into_iter()
        .find(|split| split.name() == name)
        .ok_or_else(|| MeasureError::Other(format!("{source}: a data set has the parts train and test, not '{name}'")))
}

fn data_folder<'a>(request: &'a InputsRequest, name: &str) -> MeasureResult<&'a Path> {
    request.data.as_deref().ok_or_else(|| {
        MeasureError::Other(format!(
            "{}: say where the data sets lie by --data DIR; `pudica data fetch {name} --data DIR` downloads it",
            request.source
        ))
    })
}

/// Says what part of a split is there.
fn partly(name: &str, split: Split, found: usize, published: usize) -> Option<String> {
    (found < published).then(|| format!("{found} of the {published} {} inputs of {name} are here.", split.name()))
}

/// Images in memory as bytes, and the place of each in its set.
struct Set {
    images: Images,
    choice: Choice,
    fit: Fit,
}

pub(super) fn open_images(
    request: &InputsRequest,
    set: &DataSet,
    split: Split,
    takes: &Takes,
) -> MeasureResult<Opened> {
    let data = data_folder(request, set.name)?;
    let fit = Fit::new(&[set.shape], request.size, takes).map_err(|unfit| match unfit {
        Unfit::Other(problem) => MeasureError::Other(format!("{}: {problem}", request.source)),
        Unfit::Differs(_) => MeasureError::Other(format!("{}: images differ in size", request.source)),
    })?;
    let loaded = set.load(data, split)?;
    let choice = Choice::new(request, loaded.images.count());
    let images =
        if choice.count() < loaded.images.count() { loaded.images.select(choice.rows()) } else { loaded.images };
    Ok(Opened {
        kind: InputKind::Images,
        shape: fit.shape().to_vec(),
        classes: set.classes.map(String::from).to_vec(),
        columns: Vec::new(),
        spread: Vec::new(),
        notes: partly(set.name, split, choice.available(), loaded.published).into_iter().collect(),
        identity: vec![
            set.name.into(),
            split.name().into(),
            digest(data, &loaded.files)?,
            format!("{:?}", fit.shape()),
        ],
        inputs: Box::new(Set { images, choice: choice.clone(), fit }),
        choice,
    })
}

impl Inputs for Set {
    fn read(&self, index: usize) -> MeasureResult<Labelled> {
        let image = self.fit.image(self.images.shape(), self.images.image(index));
        Ok(Labelled { input: Input::Image(image), label: Some(usize::from(self.images.labels()[index])) })
    }

    fn name(&self, index: usize) -> String {
        self.choice.row(index).to_string()
    }
}

/// Texts in memory.
struct Texts {
    pairs: Pairs,
    choice: Choice,
}

pub(super) fn open_texts(request: &InputsRequest, set: &TextSet, split: Split) -> MeasureResult<Opened> {
    let data = data_folder(request, set.name)?;
    let loaded = set.load(data, split)?;
    let choice = Choice::new(request, loaded.pairs.count());
    let files: [PathBuf; 1] = [loaded.file];
    Ok(Opened {
        kind: InputKind::Texts,
        shape: Vec::new(),
        classes: set.classes.map(String::from).to_vec(),
        columns: Vec::new(),
        spread: Vec::new(),
        notes: partly(set.name, split, choice.available(), loaded.published).into_iter().collect(),
        identity: vec![set.name.into(), split.name().into(), digest(data, &files)?],
        inputs: Box::new(Texts { pairs: loaded.pairs.select(choice.rows()), choice: choice.clone() }),
        choice,
    })
}

impl Inputs for Texts {
    fn read(&self, index: usize) -> MeasureResult<Labelled> {
        let (first, second) = self.pairs.texts[index].clone();
        Ok(Labelled { input: Input::Text(first, second), label: Some(self.pairs.labels[index]) })
    }

    fn name(&self, index: usize) -> String {
        self.choice.row(index).to_string()
    }
}
