//! A folder of pictures: one folder inside for each class, classes numbered in the order of their names.

use super::picture::read_picture;
use super::resize::square;
use super::{Images, MAX_PIXELS, Shape};
use crate::own::{entries, name_of};
use crate::{FileError, FileResult};
use rayon::prelude::*;
use std::path::{Path, PathBuf};

/// What a folder of pictures holds.
#[derive(Clone, Debug)]
pub struct FolderImages {
    /// The pictures, by class and then by name.
    pub images: Images,
    /// Name of each class.
    pub classes: Vec<String>,
}

/// The classes of a folder, each with its pictures, both in the order of their names.
pub type ClassFolders = Vec<(String, Vec<PathBuf>)>;

/// A picture and its class.
pub(super) type Labelled = (PathBuf, u8);

/// Pictures that are read here.
const READ_PICTURES: [&str; 3] = ["png", "jpg", "jpeg"];

/// Pictures that users have and that are not; they must not be passed over in silence.
const OTHER_PICTURES: [&str; 8] = ["gif", "bmp", "webp", "tif", "tiff", "heic", "avif", "jxl"];

/// Pictures read at a time.
const AT_ONCE: usize = 256;

/// Every `.png`, `.jpg` and `.jpeg` in the folders of `root`, cut to squares and resized to `size` pixels; with a size of 0 all must have one
/// shape. Where some are grey and some are not, all are made colour.
pub fn read_folder(root: &Path, size: usize) -> FileResult<FolderImages> {
    let (classes, pictures) = list_pictures(root)?;
    Ok(FolderImages { images: read_pictures(root, &pictures, size)?, classes })
}

fn extension(path: &Path) -> String {
    path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase()
}

/// Whether a file is a picture by its name, read here or not.
pub(super) fn is_picture(path: &Path) -> bool {
    let extension = extension(path);
    path.is_file() && READ_PICTURES.iter().chain(&OTHER_PICTURES).any(|known| *known == extension)
}

/// The pictures directly in a folder, by name. One of a kind that is not read here is an error; what is no picture is passed over.
pub fn pictures_in(folder: &Path) -> FileResult<Vec<PathBuf>> {
    let mut pictures = Vec::new();
    for path in entries(folder)?.into_iter().filter(|path| is_picture(path)) {
        if !READ_PICTURES.contains(&extension(&path).as_str()) {
            return Err(FileError::new(&path, "is a picture of a kind not read here; .png, .jpg and .jpeg are"));
        }
        pictures.push(path);
    }
    Ok(pictures)
}

/// The folders in a folder, each with the pictures directly in it; a class may have none.
pub fn class_folders(root: &Path) -> FileResult<ClassFolders> {
    let folders = entries(root)?.into_iter().filter(|path| path.is_dir());
    folders.map(|folder| Ok((name_of(&folder), pictures_in(&folder)?))).collect()
}

/// The classes of a folder, and its pictures by class and then by name.
pub(super) fn list_pictures(root: &Path) -> FileResult<(Vec<String>, Vec<Labelled>)> {
    let folders = entries(root)?.into_iter().filter(|path| path.is_dir()).count();
    if folders == 0 || folders > 256 {
        return Err(FileError::new(root, format!("{folders} folders inside; one for each class is needed, 1 to 256")));
    }
    let classes = class_folders(root)?;
    if let Some((name, _)) = classes.iter().find(|(_, pictures)| pictures.is_empty()) {
        let problem = "no .png, .jpg or .jpeg in it, so this class has no images";
        return Err(FileError::new(&root.join(name), problem));
    }
    let (names, pictures): (Vec<String>, Vec<Vec<PathBuf>>) = classes.into_iter().unzip();
    let labelled = |(label, paths): (usize, Vec<PathBuf>)| paths.into_iter().map(move |path| (path, label as u8));
    Ok((names, pictures.into_iter().enumerate().flat_map(labelled).collect()))
}

/// Reads pictures as images of one shape.
pub(super) fn read_pictures(root: &Path, pictures: &[Labelled], size: usize) -> FileResult<Images> {
    let read = |(path, _): &Labelled| {
        let (shape, pixels) = read_picture(path)?;
        Ok(if size == 0 { (shape, pixels) } else { square(shape, &pixels, size) })
    };
    let mut found: Vec<(Shape, Vec<u8>)> = Vec::with_capacity(pictures.len());
    let mut bytes = 0;
    for some in pictures.chunks(AT_ONCE) {
        let read: Vec<FileResult<(Shape, Vec<u8>)>> = some.par_iter().map(read).collect();
        for (picture, (path, _)) in read.into_iter().zip(some) {
            let (shape, pixels) = picture?; // the first by name, whichever was read first
            let before = found.first().map_or(shape, |(first, _)| *first);
            if (before.height, before.width) != (shape.height, shape.width) {
                let problem =
                    format!("this picture is {shape}, those before it {before}; data.size=32 resizes all to 32 x 32");
                return Err(FileError::new(path, problem));
            }
            bytes += 3 * (shape.height * shape.width) as u64;
            if bytes > MAX_PIXELS {
                let problem =
                    format!("more than the {MAX_PIXELS} bytes of pixels read here; a smaller data.size helps");
                return Err(FileError::new(root, problem));
            }
            found.push((shape, pixels));
        }
    }
    let Some(&(shape, _)) = found.iter().find(|(shape, _)| shape.channels == 3).or(found.first()) else {
        return Err(FileError::new(root, "no .png, .jpg or .jpeg in the folders inside"));
    };
    let mut images = Images { shape, pixels: Vec::new(), labels: pictures.iter().map(|(_, label)| *label).collect() };
    for (own, pixels) in found {
        match own.channels == shape.channels {
            true => images.pixels.extend(pixels),
            false => images.pixels.extend(in_colour(&pixels)),
        }
    }
    Ok(images)
}

/// Grey pixels as red, green and blue.
pub fn in_colour(grey: &[u8]) -> impl Iterator<Item = u8> + '_ {
    grey.iter().flat_map(|byte| [*byte; 3])
}

/// Red, green and blue as grey, weighted as in television (ITU-R 601), as Pillow does.
pub fn in_grey(colour: &[u8]) -> impl Iterator<Item = u8> + '_ {
    let mix = |pixel: &[u8]| {
        let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
        ((red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16) as u8
    };
    colour.chunks_exact(3).map(mix)
}
