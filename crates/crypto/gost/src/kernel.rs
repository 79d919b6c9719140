//! The instruction sets that ciphers are computed with.

use std::fmt;

/// An instruction set that was detected on this machine; a value is the permission to use it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kernel(Set);

/// The instruction sets, for dispatch in ciphers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Set {
    Portable,
    Avx2,
    Avx512,
}

impl Kernel {
    /// Safe Rust, in constant time.
    pub const PORTABLE: Self = Self(Set::Portable);

    /// AVX2 and PCLMULQDQ, if the machine has them.
    #[must_use]
    pub fn avx2() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        // The macro also checks that the operating system saves the wide registers.
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("pclmulqdq") {
            return Some(Self(Set::Avx2));
        }
        None
    }

    /// AVX-512 (F, BW, VL, VBMI), GFNI and VPCLMULQDQ, if the machine has them.
    #[must_use]
    pub fn avx512() -> Option<Self> {
        #[cfg(target_arch = "x86_64")]
        // Each is asked for: processors have these sets in many combinations.
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512vbmi")
            && is_x86_feature_detected!("gfni")
            && is_x86_feature_detected!("vpclmulqdq")
            && is_x86_feature_detected!("pclmulqdq")
        {
            return Some(Self(Set::Avx512));
        }
        None
    }

    /// The fastest one of this machine.
    #[must_use]
    pub fn detect() -> Self {
        Self::avx512().or_else(Self::avx2).unwrap_or(Self::PORTABLE)
    }

    /// All of this machine, the slowest first.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let all = [Some(Self::PORTABLE), Self::avx2(), Self::avx512()];
        all.into_iter().flatten().collect()
    }

    /// Selects an implementation. A kernel of this set exists only if the machine supports it.
    pub(crate) const fn set(self) -> Set {
        self.0
    }

    /// Runs `work` on that many bytes, compiled for this kernel's instructions as far as it is
    /// inlined: loops over bytes become loops over vectors as wide as the cipher's. For code that
    /// touches every byte of a text next to the fastest modes.
    #[inline]
    pub(crate) fn widened<R>(self, bytes: usize, work: impl FnOnce() -> R) -> R {
        // For fewer bytes, switching instruction sets costs more than it saves.
        if bytes < WIDENED_BYTES_MIN {
            return work();
        }
        match self.0 {
            // SAFETY: a `Kernel` of this set exists only if its instructions were detected.
            #[cfg(target_arch = "x86_64")]
            Set::Avx2 => unsafe { in_avx2(work) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            Set::Avx512 => unsafe { in_avx512(work) },
            _ => work(),
        }
    }

    /// Name in tables and settings.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self.0 {
            Set::Portable => "portable",
            Set::Avx2 => "avx2",
            Set::Avx512 => "avx512",
        }
    }
}

const WIDENED_BYTES_MIN: usize = 512;

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn in_avx2<R>(work: impl FnOnce() -> R) -> R {
    work()
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
fn in_avx512<R>(work: impl FnOnce() -> R) -> R {
    work()
}

impl fmt::Display for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Every kernel of this machine, for tests that compare them. Reports missing ones directly on
/// standard error, past the capture of test output: a skipped test must not look passed.
#[cfg(test)]
pub(crate) fn kernels() -> Vec<Kernel> {
    use std::io::Write as _;
    static REPORTED: std::sync::Once = std::sync::Once::new();
    REPORTED.call_once(|| {
        let all = [("avx2", Kernel::avx2()), ("avx512", Kernel::avx512())];
        for (name, _) in all.iter().filter(|(_, kernel)| kernel.is_none()) {
            let reason = "this processor lacks some of its instructions (make emulate)";
            let _ = writeln!(std::io::stderr(), "SKIPPED: {name}: {reason}");
        }
    });
    Kernel::all()
}
