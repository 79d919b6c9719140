//! Keys, bytes, and batches.

pub(crate) use base16ct::lower::encode_string as hex;

use gost::{KEY_BYTES, Kernel};
use std::io::{self, Write as _};
use std::sync::Once;

/// Every kernel of this machine, the slowest first. Reports missing ones directly on standard
/// error, past the capture of test output: a skipped test must not look passed.
pub(crate) fn kernels() -> Vec<Kernel> {
    static REPORTED: Once = Once::new();
    REPORTED.call_once(|| {
        let all = [("avx2", Kernel::avx2()), ("avx512", Kernel::avx512())];
        for (name, _) in all.iter().filter(|(_, kernel)| kernel.is_none()) {
            let reason = "this processor lacks some of its instructions (make emulate)";
            let _ = writeln!(io::stderr(), "SKIPPED: {name}: {reason}");
        }
    });
    Kernel::all()
}

/// Pseudo-random bytes, the same in every run.
pub(crate) fn noise(seed: u64, bytes: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        // xorshift64, whose low bits are poor.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..bytes).map(|_| next()).collect()
}

pub(crate) fn key(seed: u64) -> [u8; KEY_BYTES] {
    noise(seed, KEY_BYTES).try_into().expect("as long as a key")
}

/// A text of each length from 0 to 300 B, and some that fill a scratch almost, or more than once.
pub(crate) fn lengths() -> Vec<usize> {
    let long = [1023, 1024, 1025, 1408, 4088, 4095, 4096, 4097, 9000];
    // Long ones between short ones, so that they begin and end anywhere in the scratch.
    let mut lengths: Vec<usize> = (0..=300).collect();
    for (at, bytes) in long.into_iter().enumerate() {
        lengths.insert(31 * at + 7, bytes);
    }
    lengths
}

/// Texts of those lengths.
pub(crate) fn texts(lengths: &[usize]) -> Vec<Vec<u8>> {
    let numbered = lengths.iter().zip(1..);
    numbered.map(|(bytes, seed)| noise(seed, *bytes)).collect()
}

/// Bytes from hexadecimal digits; spaces are ignored.
pub(crate) fn unhex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    base16ct::mixed::decode_vec(digits).unwrap_or_else(|error| panic!("{error}: {text}"))
}
