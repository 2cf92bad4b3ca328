//! One source, several instruction sets: the compiler vectorises the same code for each, the machine picks at run time.

use crate::stop;

/// The instruction sets that code is compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    /// AVX-512 with vectorised popcount (Zen 4, Ice Lake and later).
    Avx512,
    /// AVX2.
    Avx2,
    /// Whatever every machine of this architecture has.
    Baseline,
}

/// Work whose inner loops should use the widest vectors. `run` and all it calls must be `#[inline(always)]`: only what is
/// inlined is compiled for them.
pub trait Kernel {
    /// What the work gives.
    type Output;
    /// Does the work; `isa` is a constant after inlining.
    fn run(self, isa: Isa) -> Self::Output;
}

/// The instruction sets this machine has, widest first.
pub fn available() -> impl Iterator<Item = Isa> {
    #[cfg(target_arch = "x86_64")]
    let (avx512, avx2) = (
        is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vpopcntdq"),
        is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt"),
    );
    #[cfg(not(target_arch = "x86_64"))]
    let (avx512, avx2) = (false, false);
    [(Isa::Avx512, avx512), (Isa::Avx2, avx2), (Isa::Baseline, true)].into_iter().filter(|x| x.1).map(|x| x.0)
}

/// Runs `kernel`, compiled for the widest vector instructions this machine has.
pub fn dispatch<K: Kernel>(kernel: K) -> K::Output {
    stop::check();
    let widest = available().next().unwrap_or(Isa::Baseline);
    run_on(widest, kernel)
}

/// Runs `kernel` compiled for `isa`, which must be [`available`].
pub fn run_on<K: Kernel>(isa: Isa, kernel: K) -> K::Output {
    match isa {
        // SAFETY: only instruction sets that were detected are asked for.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { avx512(kernel) },
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { avx2(kernel) },
        _ => kernel.run(Isa::Baseline),
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vpopcntdq,avx2,popcnt")]
unsafe fn avx512<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Isa::Avx512)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,popcnt")]
unsafe fn avx2<K: Kernel>(kernel: K) -> K::Output {
    kernel.run(Isa::Avx2)
}
