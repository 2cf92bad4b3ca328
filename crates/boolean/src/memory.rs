//! Asking whether work fits in memory before allocating it, and allocating large arrays on huge pages.

use crate::{Error, Result};

/// Refuses n = 0 and n beyond `limit`.
pub fn check_variables(n: usize, limit: usize) -> Result<()> {
    match n {
        0 => Err(Error::Variables("a function needs at least one variable: give --n 1 or more".into())),
        n if n > limit && limit == crate::MAX_SAMPLED_VARIABLES => {
            Err(Error::Variables(format!("n={n} is too large: functions of up to {limit} variables can be sampled")))
        }
        n if n > limit => {
            let what = if limit == crate::MAX_SPECTRUM_VARIABLES { "spectrum" } else { "truth table" };
            Err(Error::Variables(format!(
                "n={n} is too large for an exact {what}: it stops at n={limit}; sample instead (--method sampled)"
            )))
        }
        _ => Ok(()),
    }
}

/// Refuses, with what to do `instead`, `bytes` more than the machine has free.
pub fn check_fits(n: usize, what: &str, bytes: u64, instead: &str) -> Result<()> {
    match available() {
        Some(free) if bytes > free => Err(Error::Memory(format!(
            "n={n} needs {} for {what}, and {} is free; ask for {instead}",
            human_bytes(bytes),
            human_bytes(free)
        ))),
        _ => Ok(()),
    }
}

/// Bytes this process may still use: the machine's available memory, or what its control group leaves, if less.
/// `None` where the system does not say.
pub fn available() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let machine = line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024;
    let number = |path| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let group = match (number("/sys/fs/cgroup/memory.max"), number("/sys/fs/cgroup/memory.current")) {
        (Some(limit), Some(used)) => limit.saturating_sub(used),
        _ => u64::MAX,
    };
    Some(machine.min(group))
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

/// `len` zeros; large arrays ask for huge pages, which makes first touch and strided passes several times faster.
pub fn zeroed<T: Zeroable>(len: usize) -> Vec<T> {
    const HUGE_PAGE: usize = 2 << 20;
    let bytes = len * size_of::<T>();
    if bytes < 2 * HUGE_PAGE {
        return vec![T::default(); len];
    }
    let layout = std::alloc::Layout::array::<T>(len).expect("sizes were checked before");
    // SAFETY: the layout is non-empty and is the one `Vec<T>` frees with; the memory is zeroed, and T: Zeroable.
    unsafe {
        let start = std::alloc::alloc_zeroed(layout);
        if start.is_null() {
            std::alloc::handle_alloc_error(layout);
        }
        #[cfg(target_os = "linux")]
        {
            // madvise wants whole pages; the pages at the ends stay small. A refusal only costs speed.
            let first = (start as usize).next_multiple_of(4096);
            let end = (start as usize + bytes) & !4095;
            libc::madvise(first as *mut libc::c_void, end - first, libc::MADV_HUGEPAGE);
        }
        Vec::from_raw_parts(start.cast(), len, len)
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
    fn large_arrays_are_zero_and_can_be_freed() {
        let array = zeroed::<i32>(3 << 20);
        assert!(array.iter().all(|&x| x == 0));
    }

    #[test]
    fn refusals_say_how_much() {
        let error = check_fits(34, "the spectrum", u64::MAX, "--measures influences, or sample").unwrap_err();
        assert!(error.to_string().starts_with("n=34 needs 16 EiB"), "{error}");
    }
}
