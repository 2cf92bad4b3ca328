//! Pictures in folders of classes, or directly in one folder; or one picture.

use std::path::{Path, PathBuf};

use pudica_data::images::{Shape, class_folders, picture_shape, pictures_in, read_picture};
use pudica_data::{FileError, FileResult, digest, name_of};
use pudica_model::{Input, Takes};
use pudica_probe::InputKind;
use rayon::prelude::*;

use super::classes::{note, numbered_words};
use super::fit::{Fit, Unfit};
use super::{Choice, Inputs, InputsRequest, Labelled, Opened};
use crate::MeasureResult;

/// The chosen pictures, each with its class.
struct Pictures {
    root: PathBuf,
    files: Vec<(PathBuf, Option<usize>)>,
    fit: Fit,
}

pub(super) fn open(request: &InputsRequest, path: &Path, takes: &Takes) -> MeasureResult<Opened> {
    let (root, classes, mut files) = list(path)?;
    let (classes, numbers) = numbered_words(classes, &request.class_names);
    files.iter_mut().for_each(|(_, label)| *label = label.map(|label| numbers[label]));
    let choice = Choice::new(request, files.len());
    let files: Vec<(PathBuf, Option<usize>)> = choice.rows().map(|row| files[row].clone()).collect();
    let shapes: Vec<FileResult<Shape>> = files.par_iter().map(|(path, _)| picture_shape(path)).collect();
    let shapes: Vec<Shape> = shapes.into_iter().collect::<FileResult<_>>()?; // the first error by name
    let fit = Fit::new(&shapes, request.size, takes).map_err(|unfit| match unfit {
        Unfit::Differs(index) => {
            let problem = format!(
                "this picture is {} pixels, {} is {}; --size 224 makes all 224 x 224",
                pixels(&shapes[index]),
                name_of(&files[0].0),
                pixels(&shapes[0])
            );
            FileError::new(&files[index].0, problem)
        }
        Unfit::Other(problem) => FileError::new(path, problem),
    })?;
    let notes = note(&classes, &request.class_names).into_iter().collect();
    let paths: Vec<PathBuf> = files.iter().map(|(path, _)| path.clone()).collect();
    Ok(Opened {
        kind: InputKind::Images,
        shape: fit.shape().to_vec(),
        choice,
        identity: vec![digest(&root, &paths)?, format!("{:?}", fit.shape()), classes.join("/")],
        classes,
        columns: Vec::new(),
        spread: Vec::new(),
        notes,
        inputs: Box::new(Pictures { root, files, fit }),
    })
}

fn pixels(shape: &Shape) -> String {
    format!("{} x {}", shape.height, shape.width)
}

type Listed = (PathBuf, Vec<String>, Vec<(PathBuf, Option<usize>)>);

/// The folder, its classes and its pictures.
fn list(path: &Path) -> FileResult<Listed> {
    if path.is_file() {
        let folder = path.parent().unwrap_or(path).to_path_buf();
        return Ok((folder, Vec::new(), vec![(path.to_path_buf(), None)]));
    }
    let (loose, folders) = (pictures_in(path)?, class_folders(path)?);
    let in_folders: usize = folders.iter().map(|(_, pictures)| pictures.len()).sum();
    match (loose.len(), in_folders) {
        (0, 0) => {
            // Perhaps folders of classes lie one deeper: photos/test/cat.
            let holds = |(name, _): &&(String, _)| {
                class_folders(&path.join(name))
                    .is_ok_and(|found| found.iter().any(|(_, pictures)| !pictures.is_empty()))
            };
            let problem = match folders.iter().find(holds) {
                Some((name, _)) => format!(
                    "no pictures in its folders, but there are some deeper: name one part, as {}",
                    path.join(name).display()
                ),
                None => "no .png, .jpg or .jpeg in it, nor in folders inside".into(),
            };
            Err(FileError::new(path, problem))
        }
        (_, 0) => Ok((path.to_path_buf(), Vec::new(), loose.into_iter().map(|path| (path, None)).collect())),
        (0, _) => {
            let (classes, pictures): (Vec<String>, Vec<Vec<PathBuf>>) = folders.into_iter().unzip();
            let labelled =
                |(class, paths): (usize, Vec<PathBuf>)| paths.into_iter().map(move |path| (path, Some(class)));
            Ok((path.to_path_buf(), classes, pictures.into_iter().enumerate().flat_map(labelled).collect()))
        }
        (loose, _) => {
            let problem = format!(
                "{loose} pictures lie directly in it, beside folders of classes that have pictures, too: which are meant? Move the others away"
            );
            Err(FileError::new(path, problem))
        }
    }
}

impl Inputs for Pictures {
    fn read(&self, index: usize) -> MeasureResult<Labelled> {
        let (path, label) = &self.files[index];
        let (shape, pixels) = read_picture(path)?;
        Ok(Labelled { input: Input::Image(self.fit.image(shape, &pixels)), label: *label })
    }

    fn name(&self, index: usize) -> String {
        let path = &self.files[index].0;
        path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned()
    }
}
