//! Several arrays in one `.npz` file: a ZIP of `.npy` files, packed (`numpy.savez_compressed`) or not.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use flate2::Crc;
use flate2::read::DeflateDecoder;
use pudica_data::{FileError, FileResult};
use zip::{CompressionMethod, ZipArchive};

use super::array::Array;

/// A packed array cannot be read by rows, so it is held in memory if it is not larger.
const MOST_UNPACKED: u64 = 1 << 29;

/// The arrays of a file, in its order, each with its name.
pub(super) fn open(path: &Path) -> FileResult<Vec<(String, Array)>> {
    let wrong = |problem: String| FileError::new(path, problem);
    let damaged = |error: zip::result::ZipError| wrong(format!("not a .npz file that can be read: {error}"));
    let file = || File::open(path).map_err(|error| wrong(format!("cannot be read: {error}")));
    if !path.is_file() {
        return Err(wrong("is not a plain file".into()));
    }
    let mut archive = ZipArchive::new(file()?).map_err(damaged)?;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index_raw(index).map_err(damaged)?;
        let name = entry.name().map_err(damaged)?.into_owned();
        let Some(name) = name.strip_suffix(".npy").map(|name| pudica_boolean::shortened(name, 80)) else { continue };
        // What messages call it: photos.npz/x.
        let called = path.join(&name);
        let wrong = |problem: String| FileError::new(&called, problem);
        let array = match entry.compression() {
            _ if entry.encrypted() => return Err(wrong("is encrypted".into())),
            CompressionMethod::Stored => {
                let start = entry.data_start().ok_or_else(|| wrong("where it begins is not said".into()))?;
                let length = entry.size();
                Array::at(&called, file()?, start, length)?
            }
            CompressionMethod::DEFLATE => {
                let (announced, crc) = (entry.size(), entry.crc32());
                if announced > MOST_UNPACKED {
                    let problem = format!(
                        "{announced} bytes are too many for a packed array: save it by numpy.savez or as .npy, which are read in pieces"
                    );
                    return Err(wrong(problem));
                }
                // Memory grows with what is really there.
                let (mut bytes, mut sum) = (Vec::new(), Crc::new());
                let unpacked = DeflateDecoder::new(&mut entry).take(announced + 1).read_to_end(&mut bytes);
                unpacked.map_err(|error| wrong(format!("damaged: {error}")))?;
                sum.update(&bytes);
                if bytes.len() as u64 != announced || sum.sum() != crc {
                    return Err(wrong("damaged: its checksum or length is another".into()));
                }
                Array::unpacked(&called, bytes)?
            }
            _ => {
                return Err(wrong(
                    "is packed in a way not read here: save it by numpy.savez or numpy.savez_compressed".into(),
                ));
            }
        };
        arrays.push((name, array));
    }
    if arrays.is_empty() {
        return Err(wrong("there is no array in it".into()));
    }
    Ok(arrays)
}
