//! Hexadecimal digits of secrets: in constant time, and without copies of them.

use base16ct::{HexDisplay, mixed};
use std::fmt::Write as _;

/// Appends two digits per byte.
pub(crate) fn push(text: &mut String, bytes: &[u8]) {
    // Writing to a string does not fail.
    let _ = write!(text, "{:x}", HexDisplay(bytes));
}

/// Decodes `text` into `bytes`. Returns `None`, with unspecified `bytes`, if `text` is not exactly
/// two hexadecimal digits per byte.
pub(crate) fn read(text: &str, bytes: &mut [u8]) -> Option<()> {
    let expected = bytes.len();
    let found = mixed::decode(text, bytes).ok()?.len();
    (found == expected).then_some(())
}
