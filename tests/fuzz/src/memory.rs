//! How much memory a thread holds: the allocator, which is that of `pudica`, counts.

use mimalloc::MiMalloc;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

/// No execution gets more than this: a request beyond it fails, as it would on a small machine.
const MOST: usize = 2 << 30;

thread_local! {
    static HELD: Cell<usize> = const { Cell::new(0) };
    static MOST_HELD: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Counts `new` bytes in the place of `old`; false where that is too much. What another thread asked for is given back here, at times.
fn count(old: usize, new: usize) -> bool {
    let counted = HELD.try_with(|held| {
        let now = held.get().saturating_sub(old) + new;
        if new > old && now > MOST {
            return false;
        }
        held.set(now);
        _ = MOST_HELD.try_with(|most| most.set(most.get().max(now)));
        true
    });
    counted.unwrap_or(true) // a thread that is ending
}

// SAFETY: everything is left to the program's own allocator; only sizes are counted, and a null pointer says that there is no memory left.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if count(0, layout.size()) { unsafe { MiMalloc.alloc(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if count(0, layout.size()) { unsafe { MiMalloc.alloc_zeroed(layout) } } else { std::ptr::null_mut() }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if count(layout.size(), size) {
            unsafe { MiMalloc.realloc(pointer, layout, size) }
        } else {
            std::ptr::null_mut()
        }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), 0);
        unsafe { MiMalloc.dealloc(pointer, layout) }
    }
}

/// The variable, and its value, by which the allocator keeps what was given back to it: pages that are asked for anew at each execution take as
/// long as reading does.
pub const KEEP: (&str, &str) = ("MIMALLOC_PURGE_DELAY", "-1");

/// The most bytes that this thread held at a time during `work`, beyond those that it held before.
pub fn most_during<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    MOST_HELD.set(before);
    let result = work();
    (result, MOST_HELD.get().saturating_sub(before))
}
