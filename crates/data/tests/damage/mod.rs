//! Damaged copies of files, and a watch over the memory that reading them asks for. Also used by tests of other crates.

use pudica_data::Stream;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The largest single request for memory so far.
pub static LARGEST: AtomicUsize = AtomicUsize::new(0);

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

/// One damaged copy: cut off, some bits flipped, a few bytes set to an extreme, or several of these.
pub fn damaged(whole: &[u8], stream: &mut Stream) -> Vec<u8> {
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
