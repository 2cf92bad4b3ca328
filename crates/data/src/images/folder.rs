//! A folder of pictures: one folder inside for each class, classes numbered in the order of their names.

use super::picture::read_picture;
use super::{Images, MAX_PIXELS};
use crate::{FileError, FileResult};
use std::path::{Path, PathBuf};

/// What a folder of pictures holds.
#[derive(Clone, Debug)]
pub struct FolderImages {
    /// The pictures, by class and then by name.
    pub images: Images,
    /// Name of each class.
    pub classes: Vec<String>,
}

/// Every `.png`, `.jpg` and `.jpeg` in the folders of `root`; all must have one shape.
pub fn read_folder(root: &Path) -> FileResult<FolderImages> {
    let folders: Vec<PathBuf> = entries(root)?.into_iter().filter(|path| path.is_dir()).collect();
    if folders.is_empty() || folders.len() > 256 {
        let found = folders.len();
        return Err(FileError::new(root, format!("{found} folders inside; one for each class is needed, 1 to 256")));
    }
    let mut set: Option<Images> = None;
    for (label, folder) in folders.iter().enumerate() {
        for path in entries(folder)?.iter().filter(|path| is_picture(path)) {
            let (shape, pixels) = read_picture(path)?;
            let set = set.get_or_insert_with(|| Images { shape, pixels: Vec::new(), labels: Vec::new() });
            if set.shape != shape {
                return Err(FileError::new(path, format!("this picture is {shape}, those before it {}", set.shape)));
            }
            if (set.pixels.len() + pixels.len()) as u64 > MAX_PIXELS {
                return Err(FileError::new(root, format!("more than the {MAX_PIXELS} bytes of pixels read here")));
            }
            set.pixels.extend(pixels);
            set.labels.push(label as u8);
        }
    }
    let name = |path: &PathBuf| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    match set {
        Some(images) => Ok(FolderImages { images, classes: folders.iter().map(name).collect() }),
        None => Err(FileError::new(root, "no .png, .jpg or .jpeg in the folders inside")),
    }
}

fn entries(folder: &Path) -> FileResult<Vec<PathBuf>> {
    let wrong = |error: std::io::Error| FileError::new(folder, format!("cannot be listed: {error}"));
    let listed = std::fs::read_dir(folder).map_err(wrong)?;
    let mut paths: Vec<PathBuf> =
        listed.map(|entry| entry.map(|e| e.path()).map_err(wrong)).collect::<Result<_, _>>()?;
    paths.sort();
    Ok(paths)
}

fn is_picture(path: &Path) -> bool {
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    path.is_file() && ["png", "jpg", "jpeg"].contains(&extension.as_str())
}
