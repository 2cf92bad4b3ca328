//! Files cut off and bits flipped at random: every reader must end with images or an error, without a panic and without asking for
//! memory out of proportion to the file. A stand-in for long fuzzing that runs with the other tests.

mod image_files;

use image_files::{Kind, cifar, gzipped, idx, mat, npy, png};
use pudica_data::Stream;
use pudica_data::images::{Images, Shape, read_any};
use std::alloc::{GlobalAlloc, Layout, System};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest single request for memory so far.
static LARGEST: AtomicUsize = AtomicUsize::new(0);

struct Watched;

// SAFETY: everything is left to the system's allocator; only sizes are noted.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Ordering::Relaxed);
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Files of a few kilobytes may make decoders want their tables and windows, but nothing near what a hostile size says.
const ALLOWED: usize = 40 << 20;

/// One damaged copy: cut off, some bits flipped, a few bytes set to an extreme, or several of these.
fn damaged(whole: &[u8], stream: &mut Stream) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    if stream.below(3) == 0 {
        bytes.truncate(stream.below(bytes.len() as u64 + 1) as usize);
    }
    for _ in 0..stream.below(4) {
        if let Some(length) = (bytes.len() as u64).checked_sub(1) {
            // Half of them in the first bytes, where sizes stand.
            let reach = if stream.below(2) == 0 { length.min(200) } else { length };
            let at = stream.below(reach + 1) as usize;
            bytes[at] = match stream.below(4) {
                0 => 0xff,
                1 => 0,
                _ => bytes[at] ^ (1 << stream.below(8)),
            };
        }
    }
    bytes
}

/// Reads damaged copies of `target`, which lies among whole files.
fn attack(folder: &Path, target: &Path, read: &Path) {
    let whole = fs::read(target).unwrap();
    read_any(read).unwrap();
    let mut stream = Stream::new(6, "hostile-images", whole.len() as u64);
    let (mut read_anyway, mut refused) = (0, 0);
    for case in 0..150 {
        fs::write(target, damaged(&whole, &mut stream)).unwrap();
        LARGEST.store(0, Ordering::Relaxed);
        match read_any(read) {
            Ok(images) => {
                assert_eq!(images.pixels().len(), images.count() * images.shape().pixels());
                read_anyway += 1;
            }
            Err(error) => {
                assert!(error.to_string().contains(&folder.display().to_string()), "names no file: {error}");
                refused += 1;
            }
        }
        let largest = LARGEST.load(Ordering::Relaxed);
        assert!(largest < ALLOWED, "{}: case {case} asked for {largest} bytes at once", target.display());
    }
    fs::write(target, whole).unwrap();
    assert!(refused > 30, "{}: {refused} refused, {read_anyway} read", target.display());
}

/// One test, as the largest request for memory is counted for the whole process.
#[test]
fn damage_is_told_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let shape = Shape { height: 32, width: 32, channels: 3 };
    let mut stream = Stream::new(5, "pixels", 0);
    let pixels: Vec<u8> = (0..8 * shape.pixels()).map(|i| if i % 5 < 2 { stream.word() as u8 } else { 7 }).collect();
    let set = Images::new(shape, pixels, vec![1, 2, 3, 4, 5, 0, 9, 8]).unwrap();
    let grey = &set.pixels()[..8 * 1024];
    let digits = set.labels();
    let files: [(&str, Vec<u8>, &str); 12] = [
        ("a-labels-idx1-ubyte", idx(&[8], digits), "a-images-idx3-ubyte"),
        ("a-images-idx3-ubyte", idx(&[8, 32, 32], grey), "a-images-idx3-ubyte"),
        ("b-labels-idx1-ubyte.gz", gzipped(&idx(&[8], digits)), "b-images-idx3-ubyte.gz"),
        ("b-images-idx3-ubyte.gz", gzipped(&idx(&[8, 32, 32], grey)), "b-images-idx3-ubyte.gz"),
        ("c.bin", cifar(&set)[..3073].to_vec(), "c.bin"),
        ("d.bin.gz", gzipped(&cifar(&set)), "d.bin.gz"),
        ("e.mat", mat(&set, true, Kind::Double), "e.mat"),
        ("f.mat", mat(&set, false, Kind::Byte), "f.mat"),
        ("labels.npy", npy("(8,)", digits), "g.npy"),
        ("g.npy", npy("(8, 32, 32, 3)", set.pixels()), "g.npy"),
        ("pictures/one/h.png", png(shape, set.image(0)), "pictures"),
        ("photographs/one/i.jpg", include_bytes!("fixtures/picture.jpg").to_vec(), "photographs"),
    ];
    fs::create_dir_all(folder.join("pictures/one")).unwrap();
    fs::create_dir_all(folder.join("photographs/one")).unwrap();
    files.iter().for_each(|(name, bytes, _)| fs::write(folder.join(name), bytes).unwrap());
    files.iter().for_each(|(name, _, read)| attack(folder, &folder.join(name), &folder.join(read)));
}
