//! Asking whether work fits in memory before allocating it, and allocating large arrays on huge pages.

use crate::{Error, MAX_SAMPLED_VARIABLES, MAX_TABLE_VARIABLES, Result};
use std::alloc::{self, Layout};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::{Duration, Instant};

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
            "n={n} needs {} for {what}, and this process may have {}; {instead}",
            human_bytes(bytes),
            human_bytes(free)
        ))),
        _ => Ok(()),
    }
}

/// Bytes this process may still use: the machine's available memory, or what its control groups (version 1 or 2, its own and those
/// above it) or its limits of address space and data (`ulimit -v`, `ulimit -d`) leave, if less. `None` where the system does not say.
/// The one such function of the program. The system is asked again after `ASK_EVERY`: its answer takes as long as many a small table.
pub fn available() -> Option<u64> {
    static LAST: Mutex<Option<(Instant, Option<u64>)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    match *last {
        Some((when, answer)) if when.elapsed() < ASK_EVERY => answer,
        _ => {
            let answer = ask();
            *last = Some((Instant::now(), answer));
            answer
        }
    }
}

/// How long an answer of the system's holds.
const ASK_EVERY: Duration = Duration::from_millis(20);

fn ask() -> Option<u64> {
    let meminfo = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = meminfo.lines().find(|line| line.starts_with("MemAvailable:"))?;
    let machine = line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024;
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    Some(machine.min(groups_leave(&groups, Path::new("/sys/fs/cgroup"))).min(limits_leave()))
}

/// What the control groups of a process leave, as `/proc/PID/cgroup` names them, under where they are mounted.
fn groups_leave(groups: &str, mounted: &Path) -> u64 {
    let number = |path: PathBuf| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    // Files that were read count as used until others need the memory.
    let cached = |group: &Path| {
        let stat = std::fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let files = stat.lines().filter_map(|line| line.split_once(' '));
        let is_file = |name: &str| ["active_file", "inactive_file"].contains(&name.trim_start_matches("total_"));
        let numbers =
            files.filter(|(name, _)| is_file(name)).filter_map(|(name, n)| Some((name, n.parse::<u64>().ok()?)));
        // Version 1 has each for the group alone and, as a total, with the groups in it.
        let (total, own): (Vec<_>, Vec<_>) = numbers.partition(|(name, _)| name.starts_with("total_"));
        let sum = |numbers: Vec<(&str, u64)>| numbers.iter().map(|(_, bytes)| bytes).sum::<u64>();
        sum(total).max(sum(own))
    };
    let mut least = u64::MAX;
    for line in groups.lines() {
        // `4:memory:/a/b` is version 1's, `0::/a/b` version 2's.
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { continue };
        let (roots, limit, used) = match controllers {
            "" => ([mounted.to_path_buf(), mounted.join("unified")], "memory.max", "memory.current"),
            _ if controllers.split(',').any(|name| name == "memory") => {
                let root = mounted.join("memory");
                ([root.clone(), root], "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        for root in roots {
            // In a container its own group is the root of what is mounted, whatever the path says.
            let own = root.join(path.trim_start_matches('/'));
            let above = own.ancestors().take_while(|group| group.starts_with(&root));
            for group in above {
                if let Some((limit, used)) = number(group.join(limit)).zip(number(group.join(used))) {
                    least = least.min(limit.saturating_sub(used.saturating_sub(cached(group))));
                }
            }
        }
    }
    least
}

/// What `ulimit -v` and `ulimit -d` leave, less a reserve for stacks and the allocator.
#[cfg(target_os = "linux")]
fn limits_leave() -> u64 {
    const RESERVE: u64 = 64 << 20;
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as u64;
    let pages = |place: usize| statm.split_whitespace().nth(place).and_then(|pages| pages.parse::<u64>().ok());
    let left = |resource, place: usize| {
        let mut limit = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
        // SAFETY: fills `limit`, which is valid for writing.
        unsafe { libc::getrlimit(resource, &mut limit) };
        match limit.rlim_cur {
            libc::RLIM_INFINITY => u64::MAX,
            most => most.saturating_sub(pages(place).unwrap_or(0) * page).saturating_sub(RESERVE),
        }
    };
    // The whole address space, and data with stacks.
    left(libc::RLIMIT_AS, 0).min(left(libc::RLIMIT_DATA, 5))
}

#[cfg(not(target_os = "linux"))]
fn limits_leave() -> u64 {
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
    fn control_groups_of_both_versions_count_with_those_above_them() {
        let mounted = tempfile::tempdir().unwrap();
        let write = |path: &str, limit: &str, used: &str, names: [&str; 2]| {
            let group = mounted.path().join(path);
            std::fs::create_dir_all(&group).unwrap();
            std::fs::write(group.join(names[0]), limit).unwrap();
            std::fs::write(group.join(names[1]), used).unwrap();
        };
        let (first, second) = (["memory.limit_in_bytes", "memory.usage_in_bytes"], ["memory.max", "memory.current"]);
        assert_eq!(groups_leave("9:cpu:/\n0::/job/step\n", mounted.path()), u64::MAX);
        write("job", "1000\n", "100\n", second);
        write("job/step", "max\n", "50\n", second);
        assert_eq!(groups_leave("0::/job/step\n", mounted.path()), 900);
        write("memory/slurm/job_7", "700\n", "10\n", first);
        write("memory/slurm", "9223372036854771712\n", "10\n", first);
        assert_eq!(groups_leave("4:cpu,memory:/slurm/job_7\n0::/\n", mounted.path()), 690);
        std::fs::write(
            mounted.path().join("memory/slurm/job_7/memory.stat"),
            "rss 1\nactive_file 3\ntotal_active_file 4\n",
        )
        .unwrap();
        assert_eq!(groups_leave("4:cpu,memory:/slurm/job_7\n", mounted.path()), 694);
        // A container: the path is the host's, what is mounted its own group.
        write("memory", "500\n", "500\n", first);
        assert_eq!(groups_leave("4:memory:/docker/abc\n", mounted.path()), 0);
    }

    #[test]
    fn refusals_say_how_much() {
        let error = check_fits(34, "the spectrum", u64::MAX, "ask for --measures influences, or sample").unwrap_err();
        assert!(error.to_string().starts_with("n=34 needs 16 EiB"), "{error}");
    }
}
