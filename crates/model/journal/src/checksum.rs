//! Checksums of lines, each chained with the line before it.
//!
//! From [`FORMAT_CHECKED`] on a line ends in the key `sum`:
//!
//! ```text
//! {"record":"end","at_unix_ns":3,"sum":"6f0c…32 hexadecimal digits…"}
//!  └──────────── body ─────────┘
//! ```
//!
//! `sum` is the first 128 bits of SHA-256 (FIPS 180-4) over the digits of the previous line (none
//! for the header) and the line's bytes up to `,"sum"`. A line that was changed, moved or
//! duplicated does not match, nor does the next line, nor the line after a removed one. The chain
//! detects accidents and edits; it does not prove who wrote a line, since it has no key.

use crate::record::{FORMAT_CHECKED, Header};
use sha2::{Digest, Sha256};
use std::fmt;

/// Hexadecimal digits of a checksum: 128 bits.
const DIGITS: usize = 32;
/// Text between the body and the digits.
const KEY: &[u8] = br#","sum":""#;
/// Text after the digits.
const END: &[u8] = br#""}"#;

/// The checksum of a line and of all lines before it, as lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Checksum([u8; DIGITS]);

impl Checksum {
    /// Returns the checksum of a line with this body after a line with the checksum `previous`.
    fn of(previous: Option<Self>, body: &[u8]) -> Self {
        let mut hash = Sha256::new();
        if let Some(previous) = previous {
            hash.update(previous.0);
        }
        hash.update(body);
        let mut digits = [0; DIGITS];
        // Half of the hash is left out: 128 bits are far more than accidents need, and lines stay
        // short.
        for (pair, byte) in digits.chunks_exact_mut(2).zip(hash.finalize()) {
            let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
            pair.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
        }
        Self(digits)
    }
}

impl fmt::Debug for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

/// A journal's chain of checksums up to a line.
#[derive(Debug, Clone)]
pub(crate) struct Chain {
    /// Whether the journal's format has checksums.
    checked: bool,
    last: Option<Checksum>,
}

impl Chain {
    /// The chain before the first line of a file with checksums.
    pub(crate) const CHECKED: Self = Self {
        checked: true,
        last: None,
    };

    /// The chain before the first line of a journal with this header.
    pub(crate) const fn new(header: &Header) -> Self {
        Self {
            checked: header.format >= FORMAT_CHECKED,
            last: None,
        }
    }

    /// Appends the checksum to a line, a JSON object without its newline, and returns the chain
    /// after it.
    #[must_use]
    pub(crate) fn seal(&self, line: &mut Vec<u8>) -> Self {
        // A new chain, since the caller keeps the old one until the line is on the disk.
        let mut next = self.clone();
        if self.checked {
            line.pop(); // the closing brace
            let sum = Checksum::of(self.last, line);
            line.extend_from_slice(KEY);
            line.extend_from_slice(&sum.0);
            line.extend_from_slice(END);
            next.last = Some(sum);
        }
        next
    }

    /// Checks the next line, without its newline. `lines` are all lines of the journal: they show
    /// whether a line that does not match was moved.
    ///
    /// # Errors
    /// A sentence.
    pub(crate) fn check<'l>(
        &mut self,
        line: &[u8],
        lines: impl IntoIterator<Item = &'l [u8]>,
    ) -> Result<(), String> {
        match (split(line), self.checked) {
            // Formats before that have nothing to compare.
            (None, false) => Ok(()),
            // Otherwise a lower `format` in the header would switch the checks off.
            (Some(_), false) => Err(format!(
                "the line ends in a checksum, which formats before {FORMAT_CHECKED} do not have: \
                 the header's `format` was changed"
            )),
            (None, true) => {
                Err("the line does not end in its checksum: it was cut or changed".into())
            }
            (Some((body, sum)), true) if sum == Checksum::of(self.last, body) => {
                self.last = Some(sum);
                Ok(())
            }
            (Some((body, sum)), true) => Err(misfit(body, sum, lines)),
        }
    }
}

/// Splits a line into its body and its checksum; `None` if it does not end in one.
fn split(line: &[u8]) -> Option<(&[u8], Checksum)> {
    // From the end of the line: a text in the record may hold the same characters.
    let rest = line.strip_suffix(END)?;
    let (rest, digits) = rest.split_last_chunk::<DIGITS>()?;
    let body = rest.strip_suffix(KEY)?;
    Some((body, Checksum(*digits)))
}

/// Explains why a checksum does not match.
fn misfit<'l>(body: &[u8], sum: Checksum, lines: impl IntoIterator<Item = &'l [u8]>) -> String {
    // The header's checksum has no predecessor.
    if sum == Checksum::of(None, body) {
        return "the line belongs first: it was moved or duplicated".into();
    }
    let follows = |line: &[u8]| {
        let (_, before) = split(line)?;
        // Found by trial: a checksum does not say which line it belongs to.
        (sum == Checksum::of(Some(before), body)).then_some(())
    };
    match (1..).zip(lines).find(|(_, line)| follows(line).is_some()) {
        Some((number, _)) => {
            format!("the line belongs after line {number}: lines were moved, duplicated or removed")
        }
        None => "the checksum does not fit: the line was changed, or the line before it was \
                 changed or removed"
            .into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers, made with `printf '…' | sha256sum | cut -c 1-32`.
    #[test]
    fn checksums_are_the_first_half_of_sha_256_over_the_digits_before_and_the_body() {
        let first = Checksum::of(None, br#"{"record":"header""#);
        assert_eq!(format!("{first:?}"), "e778d36a2497099f2518773a9e775e81");
        let second = Checksum::of(Some(first), br#"{"record":"end""#);
        assert_eq!(format!("{second:?}"), "9d792dbaccd6ea4aa013bdddfabe31b3");
    }

    #[test]
    fn a_line_is_split_only_where_its_end_is_a_checksum() {
        let sum = "0123456789abcdef0123456789abcdef";
        let line = format!(r#"{{"a":1,"sum":"{sum}"}}"#);
        let (body, found) = split(line.as_bytes()).unwrap();
        assert_eq!(
            (body, format!("{found:?}")),
            (&br#"{"a":1"#[..], sum.into())
        );
        for cut in 1..=line.len() {
            assert!(
                split(&line.as_bytes()[..line.len() - cut]).is_none(),
                "{cut}"
            );
        }
    }
}
