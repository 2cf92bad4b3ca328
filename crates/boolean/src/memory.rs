//! Asking whether work fits in memory before allocating it, and allocating large arrays on huge pages.

use crate::{Error, MAX_SAMPLED_VARIABLES, MAX_TABLE_VARIABLES, Result};
use std::alloc::{self, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;

/// Refuses n = 0, and n beyond what can be sampled.
pub fn check_variables(n: usize) -> Result<()> {
    let problem = match n {
        0 => "a function needs at least one variable: give --n 1 or more".into(),
        1..=MAX_SAMPLED_VARIABLES => return Ok(()),
        n => format!("n={n} is too large: functions of up to {MAX_SAMPLED_VARIABLES} variables can be sampled"),
    };
    Err(Error::Variables(problem))
}

/// Refuses n for which no truth table is offered.
pub fn check_table_variables(n: usize) -> Result<()> {
    check_variables(n)?;
    match n > MAX_TABLE_VARIABLES {
        true => Err(Error::Variables(format!(
            "n={n} is too large for an exact truth table, which stops at n={MAX_TABLE_VARIABLES}; sample instead (--method sampled)"
        ))),
        false => Ok(()),
    }
}

/// Refuses, with what to do `instead`, `bytes` more than the machine has free.
pub fn check_fits(n: usize, what: &str, bytes: u64, instead: &str) -> Result<()> {
    match available() {
        Some(free) if bytes > free => Err(Error::Memory(format!(
            "n={n} needs {} for {what}, and {} is free; {instead}",
            human_bytes(bytes),
            human_bytes(free)
        ))),
        _ => Ok(()),
    }
}

/// Bytes this process may still use: the machine's available memory, or what its control group or its limit of address space
/// (`ulimit -v`) leaves, if less. `None` where the system does not say.
pub fn available() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let machine = line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024;
    let number = |path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = match (number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current")) {
        (Some(limit), Some(used)) => limit.saturating_sub(used),
        _ => u64::MAX,
    };
    Some(machine.min(group).min(address_space_left()))
}

/// What `ulimit -v` leaves, less a reserve for stacks and the allocator.
#[cfg(target_os = "linux")]
fn address_space_left() -> u64 {
    const RESERVE: u64 = 64 << 20;
    let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: fills `limit`, which is valid for writing; asks for a number.
    let page = unsafe {
        libc::getrlimit(libc::RLIMIT_AS, &mut limit);
        libc::sysconf(libc::_SC_PAGESIZE) as u64
    };
    if limit.rlim_cur == libc::RLIM_INFINITY {
        return u64::MAX;
    }
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let used = statm.split_whitespace().next().and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0) * page;
    limit.rlim_cur.saturating_sub(used).saturating_sub(RESERVE)
}

#[cfg(not(target_os = "linux"))]
fn address_space_left() -> u64 {
    u64::MAX
}

/// "512 B", "3.5 MiB", "64 GiB".
pub fn human_bytes(bytes: u64) -> String {
    let mut value = bytes as f64;
    for unit in ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] {
        if value < 1024.0 {
            let text = format!("{value:.1}");
            return format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text));
        }
        value /= 1024.0;
    }
    format!("{value:.0} EiB")
}

/// Types for which all-zero bytes are a value.
///
/// # Safety
/// All-zero bytes must be a valid value of the type.
pub unsafe trait Zeroable: Copy + Default {}
// SAFETY: integers, floats and arrays of integers are valid when zero.
unsafe impl Zeroable for i32 {}
unsafe impl Zeroable for f32 {}
unsafe impl Zeroable for f64 {}
unsafe impl Zeroable for crate::table::Line {}

/// A fixed number of numbers, aligned to cache lines; large arrays lie on huge pages, which makes first touch and strided
/// passes several times faster. Otherwise a slice.
pub struct Array<T: Zeroable> {
    start: NonNull<T>,
    len: usize,
}

// SAFETY: an Array owns its numbers, as a Vec does.
unsafe impl<T: Zeroable + Send> Send for Array<T> {}
unsafe impl<T: Zeroable + Sync> Sync for Array<T> {}

impl<T: Zeroable> Array<T> {
    /// `len` zeros. Ask [`check_fits`] first: like `Vec`, it aborts when memory runs out.
    pub fn zeros(len: usize) -> Self {
        let layout = Self::layout(len);
        if layout.size() == 0 {
            return Self { start: NonNull::dangling(), len };
        }
        // SAFETY: the layout is not empty; the memory is zeroed, and T: Zeroable.
        let start = unsafe {
            if layout.align() == HUGE_PAGE { huge::allocate_zeroed(layout) } else { alloc::alloc_zeroed(layout) }
        };
        match NonNull::new(start.cast()) {
            Some(start) => Self { start, len },
            None => alloc::handle_alloc_error(layout),
        }
    }

    fn layout(len: usize) -> Layout {
        let bytes = len.checked_mul(size_of::<T>());
        let align = if bytes.is_some_and(|bytes| bytes >= HUGE_PAGE) { HUGE_PAGE } else { CACHE_LINE };
        let layout = bytes.and_then(|bytes| Layout::from_size_align(bytes, align).ok());
        layout.unwrap_or_else(|| panic!("an array of {len} entries exceeds the address space"))
    }
}

const CACHE_LINE: usize = 64;
const HUGE_PAGE: usize = 2 << 20;

impl<T: Zeroable> Drop for Array<T> {
    fn drop(&mut self) {
        let layout = Self::layout(self.len);
        // SAFETY: allocated in `zeros` with this layout.
        unsafe {
            match layout.align() {
                _ if layout.size() == 0 => {}
                HUGE_PAGE => huge::free(self.start.as_ptr().cast(), layout),
                _ => alloc::dealloc(self.start.as_ptr().cast(), layout),
            }
        }
    }
}

/// Large arrays straight from the system: zero without being written, and on huge pages from the first touch. (The
/// allocator would write zeros first, on one core and on small pages.)
#[cfg(target_os = "linux")]
mod huge {
    use super::HUGE_PAGE;
    use std::alloc::Layout;
    use std::ptr::{null_mut, with_exposed_provenance_mut};

    /// Null when the system refuses.
    pub unsafe fn allocate_zeroed(layout: Layout) -> *mut u8 {
        let bytes = layout.size().next_multiple_of(HUGE_PAGE);
        let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        // SAFETY: a fresh mapping with room to align it; the ends that are not needed go back.
        unsafe {
            let mapped = libc::mmap(null_mut(), bytes + HUGE_PAGE, access, kind, -1, 0);
            if mapped == libc::MAP_FAILED {
                return null_mut();
            }
            let start = mapped.expose_provenance().next_multiple_of(HUGE_PAGE);
            let before = start - mapped.addr();
            if before > 0 {
                libc::munmap(mapped, before);
            }
            if before < HUGE_PAGE {
                libc::munmap(with_exposed_provenance_mut(start + bytes), HUGE_PAGE - before);
            }
            let start = with_exposed_provenance_mut(start);
            libc::madvise(start, bytes, libc::MADV_HUGEPAGE); // a refusal only costs speed
            start.cast()
        }
    }

    pub unsafe fn free(start: *mut u8, layout: Layout) {
        // SAFETY: mapped above, rounded up in the same way.
        unsafe { libc::munmap(start.cast(), layout.size().next_multiple_of(HUGE_PAGE)) };
    }
}

#[cfg(not(target_os = "linux"))]
mod huge {
    pub use std::alloc::{alloc_zeroed as allocate_zeroed, dealloc as free};
}

impl<T: Zeroable> Deref for Array<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        // SAFETY: `start` holds `len` initialised entries.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Zeroable> DerefMut for Array<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Zeroable> From<&[T]> for Array<T> {
    fn from(values: &[T]) -> Self {
        let mut array = Self::zeros(values.len());
        array.copy_from_slice(values);
        array
    }
}

impl<T: Zeroable> Clone for Array<T> {
    fn clone(&self) -> Self {
        Self::from(&self[..])
    }
}

impl<T: Zeroable + PartialEq> PartialEq for Array<T> {
    fn eq(&self, other: &Self) -> bool {
        self[..] == other[..]
    }
}

impl<T: Zeroable + fmt::Debug> fmt::Debug for Array<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self[..].fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_well() {
        assert_eq!(human_bytes(64 << 30), "64 GiB");
        assert_eq!(human_bytes(1536), "1.5 KiB");
        assert_eq!(human_bytes(7), "7 B");
    }

    #[test]
    fn arrays_are_zero_aligned_and_comparable() {
        for len in [0, 1, 100, 3 << 20] {
            let mut array = Array::<i32>::zeros(len);
            assert!(array.iter().all(|&x| x == 0));
            assert_eq!(array.as_ptr() as usize % if len == 0 { 1 } else { 64 }, 0);
            let copy = array.clone();
            assert_eq!(copy, array);
            if let Some(last) = array.last_mut() {
                *last = 1;
                assert_ne!(copy, array);
            }
        }
    }

    #[test]
    fn refusals_say_how_much() {
        let error = check_fits(34, "the spectrum", u64::MAX, "ask for --measures influences, or sample").unwrap_err();
        assert!(error.to_string().starts_with("n=34 needs 16 EiB"), "{error}");
    }
}
