//! What is tested.

use ctutils::CtEq;
use engine::{CpuChoice, EngineError, Selection, engines, select};
use std::hint::black_box;
use wire::Suite;

/// Length of the values that are compared.
pub(crate) const TAG_BYTES: usize = 32;

/// Whether secrets show in branches or addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    Nothing,
    /// A known leak, with its reason.
    Leak(&'static str),
}

/// The positive control: compares up to the first difference.
#[inline(never)]
pub(crate) fn control(left: &[u8; TAG_BYTES], right: &[u8; TAG_BYTES]) -> bool {
    for (left, right) in left.iter().zip(right) {
        if black_box(left) != black_box(right) {
            return false;
        }
    }
    true
}

/// The comparison that every tag is checked with in `gost`, `engine` and `keying`.
#[inline(never)]
pub(crate) fn comparison(left: &[u8; TAG_BYTES], right: &[u8; TAG_BYTES]) -> u8 {
    left.as_slice().ct_eq(right.as_slice()).to_u8()
}

/// Every engine of this host with every suite that it has.
pub(crate) fn selections() -> Vec<Selection> {
    let mut all = Vec::new();
    for info in engines() {
        if let Err(reason) = &info.version {
            eprintln!("SKIPPED: engine {}: {reason}", info.name);
            continue;
        }
        for suite in Suite::ALL {
            match select(&CpuChoice::Named(info.name.to_owned()), suite) {
                Ok(selection) => all.push(selection),
                Err(EngineError::NotServed { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
    assert!(!all.is_empty(), "no engine can be used here");
    all
}

/// What sealing with this key and text shows.
pub(crate) fn expected(selection: &Selection) -> Expected {
    match selection.suite() {
        Suite::Gost(gost) if gost.has_key_tree() => {
            Expected::Leak("HMAC of Streebog reads tables, when a key of the tree is derived")
        }
        suite if suite.name().starts_with("des-") || suite.name().starts_with("3des-") => {
            Expected::Leak("DES reads its tables at addresses of key and text")
        }
        _ => Expected::Nothing,
    }
}

/// Pseudo-random bytes, the same in every run (xorshift64*).
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        bytes.fill_with(|| self.byte());
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.fill(&mut bytes);
        bytes
    }
}
