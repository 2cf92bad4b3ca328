//! One source, several instruction sets, for passes over rows that are in cache.

/// The instruction sets the passes are compiled for.
#[derive(Clone, Copy)]
pub(crate) enum Isa {
    Avx512,
    Avx2,
    Baseline,
}

impl Isa {
    /// The widest this processor has.
    #[inline(always)]
    pub(crate) fn widest() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
            {
                return Self::Avx512;
            }
            if is_x86_feature_detected!("avx2") {
                return Self::Avx2;
            }
        }
        Self::Baseline
    }
}

/// Defines a function that is compiled for every [`Isa`]; the processor picks at run time. What it calls must be
/// `#[inline(always)]`, and closures small: only what is inlined is compiled for wide vectors.
///
/// No fused multiply-adds: the numbers are the same on all of them.
macro_rules! wide {
    ($(#[$meta:meta])* $vis:vis fn $name:ident $(<$T:ident: $bound:ident>)? ($($argument:ident: $type:ty),* $(,)?) $body:block) => {
        $(#[$meta])*
        $vis fn $name $(<$T: $bound>)? ($($argument: $type),*) {
            #[inline(always)]
            fn baseline $(<$T: $bound>)? ($($argument: $type),*) $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512 $(<$T: $bound>)? ($($argument: $type),*) {
                baseline($($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2 $(<$T: $bound>)? ($($argument: $type),*) {
                baseline($($argument),*)
            }

            match $crate::cpu::wide::Isa::widest() {
                // SAFETY: `widest` has found these instructions on this processor.
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::wide::Isa::Avx512 => unsafe { avx512($($argument),*) },
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::wide::Isa::Avx2 => unsafe { avx2($($argument),*) },
                _ => baseline($($argument),*),
            }
        }
    };
}

pub(crate) use wide;
