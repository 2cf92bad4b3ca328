//! Every reader on small files made here, right ones and wrong ones.

mod image_files;

use image_files::{Kind, cifar, gzipped, idx, mat, mat_variable, npy, png};
use pudica_data::Split;
use pudica_data::corruptions::Corruption;
use pudica_data::images::{
    ContactSheet, DataSet, Images, Shape, Verdict, md5_of_content, read_any, read_cifar, read_cifar10_c, read_folder,
    read_idx, read_npy, read_svhn, write_npy,
};
use std::fs;
use std::path::Path;

const SMALL: Shape = Shape { height: 2, width: 3, channels: 3 };

/// Writes a file and says where.
fn put(folder: &Path, name: &str, bytes: &[u8]) -> std::path::PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    path
}

/// `count` images whose pixel number `i` is `i`, modulo 251.
fn counting(shape: Shape, count: usize) -> Vec<u8> {
    (0..shape.pixels() * count).map(|i| (i % 251) as u8).collect()
}

#[test]
fn idx_packed_and_plain() {
    let folder = tempfile::tempdir().unwrap();
    let pixels = counting(Shape { channels: 1, ..SMALL }, 4);
    let images = put(folder.path(), "a-images-idx3-ubyte.gz", &gzipped(&idx(&[4, 2, 3], &pixels)));
    let labels = put(folder.path(), "a-labels-idx1-ubyte", &idx(&[4], &[3, 1, 0, 1]));
    let set = read_idx(&images, &labels).unwrap();
    assert_eq!((set.count(), set.shape(), set.labels()), (4, Shape { channels: 1, ..SMALL }, &[3, 1, 0, 1][..]));
    assert_eq!(set.image(2), &pixels[12..18]);
    assert_eq!(set.label_counts(), [1, 2, 0, 1]);
    assert_eq!(read_any(&images).unwrap(), set, "labels are found beside the images");
    let chosen = set.select([3, 0]);
    assert_eq!((chosen.image(0), chosen.labels()), (&pixels[18..], &[1, 3][..]));
}

#[test]
fn cifar_planes_become_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { height: 32, width: 32, channels: 3 };
    let set = Images::new(shape, counting(shape, 3), vec![9, 0, 4]).unwrap();
    let path = put(folder.path(), "x.bin.gz", &gzipped(&cifar(&set)));
    assert_eq!(read_cifar(&path).unwrap(), set);
    assert_eq!(read_any(&path).unwrap(), set);
}

#[test]
fn matlab_columns_become_rows() {
    let folder = tempfile::tempdir().unwrap();
    let set = Images::new(SMALL, counting(SMALL, 6), vec![1, 0, 9, 5, 5, 2]).unwrap();
    for (name, packed, kind) in
        [("packed.mat", true, Kind::Byte), ("plain.mat", false, Kind::Byte), ("double.mat", true, Kind::Double)]
    {
        let path = put(folder.path(), name, &mat(&set, packed, kind));
        assert_eq!(read_svhn(&path).unwrap(), set, "{name}");
    }
    // Other variables are passed over.
    let mut file = mat(&set, true, Kind::Byte);
    file.splice(128..128, mat_variable("other", &[2, 4], &[7; 8], true, Kind::Byte));
    file.extend(mat_variable("z", &[3, 3], &[7; 9], false, Kind::Byte));
    assert_eq!(read_svhn(&put(folder.path(), "more.mat", &file)).unwrap(), set);
}

/// Found by fuzzing: the zeros after values of almost 2^32 bytes.
#[test]
fn matlab_values_of_an_impossible_length() {
    let folder = tempfile::tempdir().unwrap();
    let set = Images::new(SMALL, counting(SMALL, 6), vec![1, 0, 9, 5, 5, 2]).unwrap();
    let mut file = mat(&set, false, Kind::Byte);
    // After the file's header, the variable's tag, its flags, sizes and name.
    let length = 128 + 8 + 16 + 24 + 8 + 4;
    assert_eq!(file[length..length + 4], (6 * SMALL.pixels() as u32).to_le_bytes());
    file[length..length + 4].copy_from_slice(&0xffff_fffc_u32.to_le_bytes());
    let refusal = read_svhn(&put(folder.path(), "x.mat", &file)).unwrap_err().to_string();
    assert!(refusal.contains("4294967292 bytes of values are announced"), "{refusal}");
}

#[test]
fn npy_whole_and_a_block() {
    let folder = tempfile::tempdir().unwrap();
    let set = Images::new(SMALL, counting(SMALL, 5), vec![0, 1, 2, 3, 4]).unwrap();
    let (images, labels) = (folder.path().join("fog.npy"), folder.path().join("labels.npy"));
    write_npy(&set, &images, &labels).unwrap();
    assert_eq!(fs::read(&images).unwrap(), npy("(5, 2, 3, 3)", set.pixels()), "as numpy.save writes it");
    assert_eq!(read_npy(&images, &labels, None).unwrap(), set);
    assert_eq!(read_any(&images).unwrap(), set);
    assert_eq!(read_npy(&images, &labels, Some(1..3)).unwrap(), set.select([1, 2]));
    let error = read_npy(&images, &labels, Some(4..6)).unwrap_err().to_string();
    assert!(error.contains("images 4 to 6 of a file of 5"), "{error}");
}

#[test]
fn folders_of_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let pixels = counting(SMALL, 3);
    for (name, image) in [("cat/1.png", 0), ("cat/2.PNG", 1), ("dog/a.png", 2)] {
        put(folder.path(), name, &png(SMALL, &pixels[image * 18..][..18]));
    }
    put(folder.path(), "dog/notes.txt", b"not a picture");
    let found = read_folder(folder.path(), 0).unwrap();
    assert_eq!((found.classes, found.images.labels()), (vec!["cat".into(), "dog".into()], &[0, 0, 1][..]));
    assert_eq!(found.images.pixels(), pixels);
    put(folder.path(), "dog/b.png", &png(Shape { height: 3, width: 2, channels: 3 }, &pixels[..18]));
    let error = read_folder(folder.path(), 0).unwrap_err().to_string();
    assert!(error.contains("b.png: this picture is 3 x 2 x 3, those before it 2 x 3 x 3"), "{error}");
}

#[test]
fn statistics_of_channels() {
    let set = Images::new(Shape { height: 1, width: 2, channels: 3 }, vec![0, 255, 51, 255, 255, 51], vec![0]).unwrap();
    let found = set.channel_statistics();
    assert!(
        found
            .iter()
            .zip([(0.5, 0.5), (1.0, 0.0), (0.2, 0.0)])
            .all(|(a, b)| (a.0 - b.0).abs() + (a.1 - b.1).abs() < 1e-12)
    );
    assert!(Images::new(SMALL, vec![0; 17], vec![0]).is_none());
}

#[test]
fn wrong_files_are_told_with_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let labels = put(folder, "labels", &idx(&[2], &[0, 1]));
    let idx_error = |name: &str, bytes: &[u8]| read_idx(&put(folder, name, bytes), &labels).unwrap_err().to_string();
    let mut other_type = idx(&[2, 1, 1], &[0, 0]);
    other_type[2] = 0x0d;
    for (name, bytes, sentence) in [
        ("not", b"PK\x03\x04...".to_vec(), "not an IDX file"),
        ("short", idx(&[2, 2, 3], &[0; 7]), "12 bytes of pixels are announced, at most 7 can follow (at byte 16)"),
        ("long", idx(&[2, 1, 1], &[0; 3]), "more bytes follow after the last image"),
        ("huge", idx(&[u32::MAX, u32::MAX, u32::MAX], &[]), "more than the 2147483648 bytes read here"),
        ("empty", idx(&[2, 0, 3], &[]), "0 x 3 pixels are empty"),
        ("three", idx(&[3, 1, 1], &[0; 3]), "2 labels for the 3 images"),
        ("type", other_type, "type 0x0d"),
        ("axes", idx(&[4], &[0; 4]), "has 3 axes, this one has 1"),
        ("cut.gz", gzipped(&idx(&[2, 30, 30], &counting(SMALL, 100)))[..40].to_vec(), "cut off"),
        ("bomb.gz", gzipped(&idx(&[900_000, 28, 28], &[])), "are announced, at most"),
    ] {
        let error = idx_error(name, &bytes);
        assert!(error.contains(sentence) && error.contains(name), "{name}: {error}");
    }
    let cifar_error = |bytes: &[u8]| read_cifar(&put(folder, "c.bin", bytes)).unwrap_err().to_string();
    assert!(cifar_error(&[3; 4000]).contains("ends in the middle of a record of 3,073 bytes (at byte 4000)"));
    assert!(cifar_error(&[10; 3073]).contains("record 0 has the label 10"));
    assert!(cifar_error(&[]).contains("empty"));

    let set = Images::new(SMALL, counting(SMALL, 6), vec![1; 6]).unwrap();
    let svhn_error = |bytes: &[u8]| read_svhn(&put(folder, "s.mat", bytes)).unwrap_err().to_string();
    let whole = mat(&set, true, Kind::Byte);
    assert!(svhn_error(&whole[..100]).contains("ends in the middle of its MATLAB header"));
    assert!(svhn_error(&whole[..128]).contains("no variable X"));
    assert!(svhn_error(&[b"MATLAB 7.3".to_vec(), vec![0; 200]].concat()).contains("save it with -v7"));
    let only_images = [&whole[..128], &mat_variable("X", &[2, 3, 3, 6], set.pixels(), true, Kind::Byte)].concat();
    assert!(svhn_error(&only_images).contains("no variable y"));
    let labels_of =
        |labels: &[u8], sizes: &[u32]| [&only_images[..], &mat_variable("y", sizes, labels, true, Kind::Byte)].concat();
    assert!(svhn_error(&labels_of(&[1; 5], &[5, 1])).contains("5 labels in y for the 6 images"));
    assert!(svhn_error(&labels_of(&[1, 2, 3, 4, 5, 11], &[6, 1])).contains("y[5] is 11, not 1 to 10"));
    assert!(svhn_error(&labels_of(&[1; 6], &[7, 1])).contains("not what its sizes say"));

    let npy_error = |bytes: &[u8]| read_npy(&put(folder, "n.npy", bytes), &labels, None).unwrap_err().to_string();
    assert!(npy_error(&npy("(2, 2)", &[0; 4])).contains("2 axes is no set of images"));
    assert!(npy_error(&npy("(9999, 32, 32, 3)", &[0; 64])).contains("can follow"));
    assert!(npy_error(&npy("(1, 2, 3, 4)", &[0; 24])).contains("4 channels"));
    let error = read_any(&put(folder, "a.txt", b"")).unwrap_err().to_string();
    assert!(error.contains("not a kind known here"), "{error}");
    assert!(read_folder(folder, 0).unwrap_err().to_string().contains("0 folders inside"));
    assert!(read_cifar(&folder.join("absent.bin")).unwrap_err().to_string().contains("absent.bin: cannot be read"));
}

#[test]
fn data_sets_are_found_in_parts() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { height: 32, width: 32, channels: 3 };
    let set = Images::new(shape, counting(shape, 2), vec![7, 2]).unwrap();
    put(folder.path(), "cifar10/data_batch_1.bin.gz", &gzipped(&cifar(&set)));
    put(folder.path(), "cifar-10-batches-bin/data_batch_4.bin", &cifar(&set));
    put(folder.path(), "svhn/test_32x32_first2.mat", &mat(&set.select([0, 1, 0, 1, 1]), true, Kind::Byte));
    let cifar10 = DataSet::named("cifar10").unwrap();
    let loaded = cifar10.load(folder.path(), Split::Train).unwrap();
    assert_eq!((loaded.images.labels(), loaded.published, loaded.files.len()), (&[7, 2, 7, 2][..], 50_000, 2));
    let error = cifar10.load(folder.path(), Split::Test).unwrap_err().to_string();
    assert!(error.contains("no test images of cifar10: test_batch.bin (or .gz) should lie in"), "{error}");
    let checked = cifar10.verify(folder.path(), Split::Train);
    assert!(checked.iter().all(|file| matches!(file.as_ref().unwrap().verdict, Verdict::Differs(_))));
    assert_eq!(checked[0].as_ref().unwrap().bytes, 2 * 3073);
    let svhn = DataSet::named("svhn").unwrap();
    assert_eq!(svhn.load(folder.path(), Split::Test).unwrap().images.count(), 5);
    assert_eq!(svhn.verify(folder.path(), Split::Test)[0].as_ref().unwrap().verdict, Verdict::Unpublished);
    assert!(DataSet::named("cifar-10").err().unwrap().contains("did you mean 'cifar10'?"));
}

#[test]
fn checksums_are_of_the_unpacked_content() {
    let folder = tempfile::tempdir().unwrap();
    let expected = ("900150983cd24fb0d6963f7d28e17f72".to_string(), 3); // of "abc", RFC 1321
    assert_eq!(md5_of_content(&put(folder.path(), "plain", b"abc")).unwrap(), expected);
    assert_eq!(md5_of_content(&put(folder.path(), "packed", &gzipped(b"abc"))).unwrap(), expected);
}

#[test]
fn a_contact_sheet_shows_the_pixels() {
    let folder = tempfile::tempdir().unwrap();
    let set = Images::new(SMALL, counting(SMALL, 3), vec![1, 0, 1]).unwrap();
    let sheet = ContactSheet::by_class(&set, 5, 4);
    assert_eq!(sheet.size(), (2 * 14 + 2, 2 * 10 + 2));
    let path = folder.path().join("class/sheet.png");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    sheet.write_png(&path).unwrap();
    let read = read_folder(folder.path(), 0).unwrap().images;
    let pixel = |y: usize, x: usize| &read.pixels()[(y * 30 + x) * 3..][..3];
    assert_eq!((pixel(0, 0), pixel(2, 2), pixel(5, 5)), (&[255; 3][..], &[18, 19, 20][..], &[18, 19, 20][..]));
    // Second row: class 1, its second image (number 2), lower right pixel.
    assert_eq!(pixel(12 + 7, 16 + 11), &set.image(2)[15..]);
    assert_eq!(pixel(2, 20), &[255; 3], "class 0 has one image only");
    let error = sheet.write_png(Path::new("/nowhere/sheet.png")).unwrap_err().to_string();
    assert!(error.contains("/nowhere/sheet.png: cannot be written"), "{error}");
}

/// What is cut off or not a JPEG at all is said so, with the file's name, wherever it is cut.
#[test]
fn damaged_jpegs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("class/picture.jpg");
    fs::create_dir(folder.path().join("class")).unwrap();
    let whole = include_bytes!("fixtures/picture.jpg");
    fs::write(&path, whole).unwrap();
    assert_eq!(read_folder(folder.path(), 0).unwrap().images.shape(), Shape { height: 32, width: 32, channels: 3 });
    for end in (0..whole.len()).filter(|end| end % 9 == 0 || end + 60 > whole.len()) {
        fs::write(&path, &whole[..end]).unwrap();
        let error = read_folder(folder.path(), 0).map(|_| end).expect_err("a part of a picture was read").to_string();
        assert!(error.contains("picture.jpg"), "{error}");
    }
}

#[test]
fn severities_are_blocks_of_a_fifth() {
    let folder = tempfile::tempdir().unwrap();
    let shape = Shape { height: 2, width: 2, channels: 3 };
    let count = 15;
    let pixels = (0..count).flat_map(|image| vec![image as u8; shape.pixels()]).collect();
    let set = Images::new(shape, pixels, (0..count as u8).map(|image| image % 3).collect()).unwrap();
    write_npy(&set, &folder.path().join("fog.npy"), &folder.path().join("labels.npy")).unwrap();
    for severity in 1..=5 {
        let block = read_cifar10_c(folder.path(), Corruption::Fog, severity).unwrap();
        assert_eq!(block, set.select((severity - 1) * 3..severity * 3));
    }
    let refused = |corruption, severity| read_cifar10_c(folder.path(), corruption, severity).unwrap_err().to_string();
    assert!(refused(Corruption::Fog, 0).contains("a severity of 0") && refused(Corruption::Fog, 6).contains("6"));
    assert!(refused(Corruption::Snow, 1).contains("snow.npy"));
    write_npy(&set.select(0..14), &folder.path().join("snow.npy"), &folder.path().join("labels.npy")).unwrap();
    assert!(refused(Corruption::Snow, 1).contains("14 images are not 5 blocks"));
}
