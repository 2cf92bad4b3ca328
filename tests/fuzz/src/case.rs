//! A file to be read, as what is changed of it and what is made whole again around that: a damaged payload in a sound container comes further
//! than a damaged container.

use std::io::{Cursor, Read, Write};
use std::rc::Rc;

/// What is read in one execution.
#[derive(Clone)]
pub struct Case {
    /// Which of the target's readers or files it is for.
    pub part: usize,
    /// What is changed.
    pub inside: Vec<u8>,
    shell: Shell,
}

/// What stands around it.
#[derive(Clone)]
enum Shell {
    Nothing,
    /// Packed by gzip.
    Gzip,
    /// The header of a safetensors file: its length is set, and the data follow.
    Header(Rc<Vec<u8>>),
    /// A PNG file: its checksums are set.
    Png,
    /// One file of a zip archive.
    Member(Rc<Vec<(String, Vec<u8>)>>, usize),
}

impl Case {
    /// A file as it is.
    pub fn new(part: usize, bytes: impl Into<Vec<u8>>) -> Self {
        Self { part, inside: bytes.into(), shell: Shell::Nothing }
    }

    /// A file that is packed by gzip after it was changed.
    pub fn packed(part: usize, bytes: impl Into<Vec<u8>>) -> Self {
        Self { shell: Shell::Gzip, ..Self::new(part, bytes) }
    }

    /// A picture whose checksums are right.
    pub fn png(part: usize, bytes: impl Into<Vec<u8>>) -> Self {
        Self { shell: Shell::Png, ..Self::new(part, bytes) }
    }

    /// A safetensors file as it is, and one of which only the header is changed.
    pub fn safetensors(part: usize, bytes: &[u8]) -> Vec<Self> {
        let whole = Self::new(part, bytes);
        let length = bytes.first_chunk().map(|length| u64::from_le_bytes(*length) as usize);
        let Some((header, data)) = length.and_then(|length| bytes[8..].split_at_checked(length)) else {
            return vec![whole];
        };
        vec![whole, Self { shell: Shell::Header(Rc::new(data.to_vec())), ..Self::new(part, header) }]
    }

    /// A zip archive as it is, and for each of its files one in which that is changed.
    pub fn zip(part: usize, bytes: &[u8]) -> Vec<Self> {
        let mut cases = vec![Self::new(part, bytes)];
        let members = unzipped(bytes).unwrap_or_default();
        let members = Rc::new(members);
        for (at, (_, content)) in members.iter().enumerate() {
            cases.push(Self { shell: Shell::Member(members.clone(), at), ..Self::new(part, content.clone()) });
        }
        cases
    }

    /// The whole file.
    pub fn bytes(&self) -> Vec<u8> {
        let inside = self.inside.as_slice();
        match &self.shell {
            Shell::Nothing => inside.to_vec(),
            Shell::Gzip => {
                let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
                packed.write_all(inside).and_then(|()| packed.finish()).unwrap_or_default()
            }
            Shell::Header(data) => [&(inside.len() as u64).to_le_bytes(), inside, data].concat(),
            Shell::Png => with_checksums(inside.to_vec()),
            Shell::Member(members, changed) => zipped(members.iter().enumerate().map(|(at, (name, content))| {
                (name.as_str(), if at == *changed { inside } else { content.as_slice() })
            })),
        }
    }
}

fn unzipped(bytes: &[u8]) -> zip::result::ZipResult<Vec<(String, Vec<u8>)>> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes))?;
    let mut members = Vec::new();
    for at in 0..archive.len() {
        // As it lies there: what is packed is changed as it is.
        let mut member = archive.by_index_raw(at)?;
        let mut content = Vec::new();
        if member.compression() == zip::CompressionMethod::Stored {
            member.read_to_end(&mut content)?;
            members.push((member.name()?.into_owned(), content));
        }
    }
    Ok(members)
}

fn zipped<'a>(members: impl Iterator<Item = (&'a str, &'a [u8])>) -> Vec<u8> {
    let mut archive = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, content) in members {
        if archive.start_file(name, options).is_ok() {
            _ = archive.write_all(content);
        }
    }
    archive.finish().map(Cursor::into_inner).unwrap_or_default()
}

/// Sets the checksum of every chunk that is whole.
fn with_checksums(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut at = 8;
    while let Some(length) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let data = u32::from_be_bytes(*length) as usize;
        let (start, end) = (at + 4, (at + 8).saturating_add(data));
        if end.saturating_add(4) > bytes.len() {
            break;
        }
        let mut sum = flate2::Crc::new();
        sum.update(&bytes[start..end]);
        bytes[end..end + 4].copy_from_slice(&sum.sum().to_be_bytes());
        at = end + 4;
    }
    bytes
}
