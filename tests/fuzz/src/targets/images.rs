//! Images: IDX, CIFAR-10's records, MATLAB files, arrays, PNG and JPEG.

#[path = "../../../../crates/data/tests/image_files/mod.rs"]
mod image_files;

use super::{file, file_reader, said, write};
use crate::case::Case;
use crate::mutate::Form;
use crate::target::{Memory, Target};
use image_files::{Kind, cifar, idx, mat, npy};
use pudica_data::corruptions::Corruption;
use pudica_data::images::{
    Images, Shape, picture_shape, read_cifar, read_cifar10_c, read_idx, read_npy, read_picture, read_svhn,
};

/// What gzip can make of a byte, and a reader of that.
const UNPACKED: Memory = Memory { constant: 4, factor: 5000 };

fn some(height: usize, width: usize, channels: usize, count: usize) -> Images {
    let shape = Shape { height, width, channels };
    let pixels = (0..count * shape.pixels()).map(|at| (at * at / 7) as u8).collect();
    Images::new(shape, pixels, (0..count).map(|at| at as u8).collect()).expect("as many as said")
}

pub const IDX: Target = Target {
    name: "idx",
    about: "IDX files of images and of labels, packed or not",
    form: Form::Plain,
    words: &[],
    memory: UNPACKED,
    seeds: || {
        let images = idx(&[3, 2, 2], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        let labels = idx(&[3], &[0, 1, 2]);
        vec![
            Case::new(0, images.clone()),
            Case::packed(0, images.clone()),
            Case::new(0, image_files::gzipped(&images)),
            Case::new(1, labels.clone()),
            Case::packed(1, labels),
        ]
    },
    reader: |folder| {
        let (path, images, labels) = (folder.join("file"), folder.join("images"), folder.join("labels"));
        write(&images, &idx(&[3, 2, 2], &[0; 12]));
        write(&labels, &idx(&[3], &[0, 1, 2]));
        Box::new(move |part, bytes| {
            write(&path, bytes);
            if part == 0 { said(read_idx(&path, &labels)) } else { said(read_idx(&images, &path)) }
        })
    },
    short: 2000,
};

pub const CIFAR: Target = Target {
    name: "cifar",
    about: "CIFAR-10's binary files, packed or not",
    form: Form::Plain,
    words: &[],
    memory: UNPACKED,
    seeds: || {
        let file = cifar(&some(32, 32, 3, 2));
        vec![Case::new(0, file.clone()), Case::packed(0, file.clone()), Case::new(0, image_files::gzipped(&file))]
    },
    reader: |folder| file_reader(folder, "file.bin", |path| said(read_cifar(path))),
    short: 2000,
};

pub const SVHN: Target = Target {
    name: "svhn",
    about: "MATLAB 5 files, their variables packed or not",
    form: Form::Plain,
    words: &["X\0\0\0", "y\0\0\0"],
    memory: UNPACKED,
    seeds: || {
        let set = some(3, 2, 3, 2);
        let files = [(false, Kind::Byte), (false, Kind::Double), (true, Kind::Byte), (true, Kind::Double)];
        let mut cases: Vec<Case> = files.iter().map(|(packed, kind)| Case::new(0, mat(&set, *packed, *kind))).collect();
        cases.push(Case::packed(0, mat(&set, false, Kind::Byte)));
        cases
    },
    reader: |folder| file_reader(folder, "file.mat", |path| said(read_svhn(path))),
    short: 2000,
};

pub const NPY: Target = Target {
    name: "npy",
    about: "arrays of images and of labels, whole and by severity",
    form: Form::Plain,
    words: &["'descr'", "'fortran_order'", "'shape'", "'|u1'", "'<i8'", "True", "False", "(5, 2, 2, 3)", "()"],
    memory: UNPACKED,
    seeds: || {
        let images = npy("(5, 2, 2, 3)", &[7; 60]);
        let labels = npy("(5,)", &[0, 1, 2, 3, 4]);
        vec![Case::new(0, images.clone()), Case::packed(0, images.clone()), Case::new(1, labels), Case::new(2, images)]
    },
    reader: |folder| {
        let (path, other, labels) = (folder.join("fog.npy"), folder.join("images.npy"), folder.join("labels.npy"));
        let (images, sound) = (npy("(5, 2, 2, 3)", &[7; 60]), npy("(5,)", &[0, 1, 2, 3, 4]));
        write(&other, &images);
        write(&labels, &sound);
        let folder = folder.to_path_buf();
        Box::new(move |part, bytes| {
            if part == 1 {
                write(&labels, bytes);
                let result = said(read_npy(&other, &labels, None));
                write(&labels, &sound);
                return result;
            }
            write(&path, bytes);
            match part {
                0 => said(read_npy(&path, &labels, Some(1..3)).and_then(|_| read_npy(&path, &labels, None))),
                _ => said(read_cifar10_c(&folder, Corruption::Fog, 2)),
            }
        })
    },
    short: 2000,
};

pub const PICTURE: Target = Target {
    name: "picture",
    about: "PNG and JPEG pictures",
    form: Form::Plain,
    words: &[
        "IHDR", "IDAT", "IEND", "PLTE", "tRNS", "eXIf", "acTL", "fdAT", "iCCP", "zTXt", "Exif\0\0", "MM\0*", "II*\0",
    ],
    // A packed row of one bit per pixel becomes bytes: 8 x 1032 at most, and the decoder's own rows.
    memory: Memory { constant: 64, factor: 30_000 },
    seeds: || {
        let (colour, grey) = (some(5, 4, 3, 1), some(6, 7, 1, 1));
        let mut cases: Vec<Case> = Vec::new();
        for set in [&colour, &grey] {
            let file = image_files::png(set.shape(), set.pixels());
            cases.extend([Case::new(0, file.clone()), Case::png(0, file)]);
        }
        cases.extend(odd_pictures().into_iter().map(|file| Case::png(0, file)));
        cases.extend([
            Case::new(0, file!("crates/data/tests/fixtures/picture.jpg")),
            Case::new(0, file!("crates/data/tests/fixtures/grey.jpg")),
        ]);
        cases
    },
    reader: |folder| {
        let path = folder.join("picture");
        Box::new(move |_, bytes| {
            write(&path, bytes);
            let shape = picture_shape(&path);
            let picture = read_picture(&path).map_err(|error| error.to_string())?;
            assert_eq!(shape.map(Shape::pixels).ok(), Some(picture.1.len()), "the shape is that of the pixels");
            Ok(())
        })
    },
    short: 1000,
};

/// Pictures of fewer and of more bits, with a palette, with alpha, interlaced.
fn odd_pictures() -> Vec<Vec<u8>> {
    use png::{BitDepth, ColorType};
    let kinds = [
        (ColorType::Grayscale, BitDepth::One, 8),
        (ColorType::Indexed, BitDepth::Two, 16),
        (ColorType::Rgba, BitDepth::Eight, 8 * 8 * 4),
        (ColorType::GrayscaleAlpha, BitDepth::Sixteen, 8 * 8 * 4),
        (ColorType::Rgb, BitDepth::Sixteen, 8 * 8 * 6),
    ];
    let picture = |(colour, depth, length): (ColorType, BitDepth, usize)| {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 8, 8);
        encoder.set_color(colour);
        encoder.set_depth(depth);
        if colour == ColorType::Indexed {
            encoder.set_palette(vec![0, 0, 0, 255, 0, 0, 0, 255, 0, 0, 0, 255]);
            encoder.set_trns(vec![255, 128, 0, 1]);
        }
        let pixels: Vec<u8> = (0..length).map(|at| (at * 37) as u8).collect();
        encoder.write_header().expect("a header").write_image_data(&pixels).expect("a picture");
        file
    };
    kinds.into_iter().map(picture).collect()
}
