//! Images from a path whose format its name tells.

use super::{Images, read_cifar, read_folder, read_idx, read_npy, read_svhn};
use crate::{FileError, FileResult};
use std::path::{Path, PathBuf};

/// Images and labels from a folder of classes, a `.bin` (CIFAR-10), a `.mat` (SVHN), a `.npy` with a `labels.npy` beside it, or an IDX
/// file of images with its labels beside it; gzipped or not.
pub fn read_any(path: &Path) -> FileResult<Images> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = name.strip_suffix(".gz").unwrap_or(&name);
    match plain.rsplit_once('.').map(|(_, extension)| extension) {
        _ if path.is_dir() => read_folder(path, 0).map(|folder| folder.images),
        Some("bin") => read_cifar(path),
        Some("mat") => read_svhn(path),
        Some("npy") => read_npy(path, &path.with_file_name("labels.npy"), None),
        _ if name.contains("images-idx3") => read_idx(path, &labels_beside(path, &name)),
        _ => Err(FileError::new(
            path,
            "not a kind known here: a folder of classes, .bin, .mat, .npy or ...-images-idx3-ubyte",
        )),
    }
}

fn labels_beside(path: &Path, name: &str) -> PathBuf {
    let labels = path.with_file_name(name.replace("images-idx3", "labels-idx1"));
    let (plain, packed) = (labels.with_extension(""), PathBuf::from(format!("{}.gz", labels.display())));
    [labels.clone(), packed, plain].into_iter().find(|path| path.is_file()).unwrap_or(labels)
}
