//! Writers of the formats that are read, for tests: the bytes, from nothing but the formats' descriptions.
#![allow(dead_code)] // each test uses some of them

use pudica_data::images::{Images, Shape};
use std::io::Write;

/// Packed by gzip.
pub fn gzipped(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An IDX file of bytes.
pub fn idx(sizes: &[u32], bytes: &[u8]) -> Vec<u8> {
    let mut file = vec![0, 0, 8, sizes.len() as u8];
    sizes.iter().for_each(|size| file.extend(size.to_be_bytes()));
    file.extend(bytes);
    file
}

/// CIFAR-10's records of these images of 32 x 32 x 3.
pub fn cifar(set: &Images) -> Vec<u8> {
    let record = |index: usize| {
        let image = set.image(index);
        let planes = (0..3).flat_map(|channel| image[channel..].iter().step_by(3).copied());
        [set.labels()[index]].into_iter().chain(planes).collect::<Vec<u8>>()
    };
    (0..set.count()).flat_map(record).collect()
}

/// How a MATLAB variable's values are stored.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    /// uint8
    Byte,
    /// double
    Double,
}

fn element(kind: u32, bytes: &[u8]) -> Vec<u8> {
    let mut element = [kind.to_le_bytes(), (bytes.len() as u32).to_le_bytes()].concat();
    element.extend(bytes);
    element.resize(element.len().next_multiple_of(8), 0);
    element
}

/// A MATLAB 5 element with one variable.
pub fn mat_variable(name: &str, sizes: &[u32], bytes: &[u8], packed: bool, kind: Kind) -> Vec<u8> {
    let (class, values) = match kind {
        Kind::Byte => (9, element(2, bytes)),
        Kind::Double => {
            (6, element(9, &bytes.iter().flat_map(|byte| f64::from(*byte).to_le_bytes()).collect::<Vec<_>>()))
        }
    };
    // Names of up to four letters stand in the tag, as MATLAB writes them.
    let name = match name.len() {
        length @ 1..=4 => {
            let mut tag = [1u16.to_le_bytes(), (length as u16).to_le_bytes()].concat();
            tag.extend(name.bytes());
            tag.resize(8, 0);
            tag
        }
        _ => element(1, name.as_bytes()),
    };
    let flags = element(6, &[class, 0, 0, 0, 0, 0, 0, 0]);
    let sizes = element(5, &sizes.iter().flat_map(|size| size.to_le_bytes()).collect::<Vec<_>>());
    let matrix = element(14, &[flags, sizes, name, values].concat());
    if !packed {
        return matrix;
    }
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&matrix).unwrap();
    let packed = encoder.finish().unwrap();
    [&15u32.to_le_bytes()[..], &(packed.len() as u32).to_le_bytes(), &packed].concat()
}

/// A file like SVHN's: X by columns, y with 10 for the digit 0.
pub fn mat(set: &Images, packed: bool, labels: Kind) -> Vec<u8> {
    let Shape { height, width, channels } = set.shape();
    let mut columns = Vec::new();
    for index in 0..set.count() {
        for channel in 0..channels {
            for x in 0..width {
                columns.extend((0..height).map(|y| set.image(index)[(y * width + x) * channels + channel]));
            }
        }
    }
    let digits: Vec<u8> = set.labels().iter().map(|label| if *label == 0 { 10 } else { *label }).collect();
    let mut file = b"MATLAB 5.0 MAT-file, made by a test".to_vec();
    file.resize(124, b' ');
    file.extend(b"\x00\x01IM");
    let sizes = [height, width, channels, set.count()].map(|size| size as u32);
    file.extend(mat_variable("X", &sizes, &columns, packed, Kind::Byte));
    file.extend(mat_variable("y", &[set.count() as u32, 1], &digits, packed, labels));
    file
}

/// A `.npy` file of bytes, as `numpy.save` writes it.
pub fn npy(shape: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = format!("{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), bytes].concat()
}

/// A PNG picture, grey or in colour.
pub fn png(shape: Shape, pixels: &[u8]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, shape.width as u32, shape.height as u32);
    encoder.set_color(if shape.channels == 1 { png::ColorType::Grayscale } else { png::ColorType::Rgb });
    encoder.set_depth(png::BitDepth::Eight);
    encoder.write_header().unwrap().write_image_data(pixels).unwrap();
    file
}
