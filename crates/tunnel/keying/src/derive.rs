//! Derives the keys of one SA from the secret of a key file.

use crate::{Side, spi_of};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use std::fmt;
use wire::Suite;
use zeroize::Zeroizing;

/// Length of the secret in a key file.
pub(crate) const SECRET_BYTES: usize = 32;
/// Label of the derivation, with its version.
const LABEL: &[u8] = b"cipherbench static v1";

/// The keys of one SA.
pub struct SaKeys {
    /// The SA's SPI.
    pub spi: u32,
    /// The suite; each suite has different keys.
    pub suite: Suite,
    /// Whether sequence numbers have 64 bits (ESN, RFC 4303 §2.2.1), as those of this project do.
    pub are_numbers_extended: bool,
    /// The keying material, of [`Suite::keymat_bytes`]: cipher key, then salt or HMAC key. Wiped
    /// when dropped.
    pub keymat: Zeroizing<Vec<u8>>,
}

impl fmt::Debug for SaKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SaKeys")
            // The keying material is left out.
            .field("spi", &format_args!("{:#010x}", self.spi))
            .finish_non_exhaustive()
    }
}

/// HKDF-SHA-256 (RFC 5869) without salt. Its output is the cipher key, followed by the SA salt or
/// the HMAC key.
///
/// The context is a sequence of fields, each preceded by its length in two bytes, so that no two
/// contexts encode to the same bytes: label, suite, direction, epoch in four bytes, lane in two.
pub(crate) fn sa_keys(
    secret: &[u8; SECRET_BYTES],
    suite: Suite,
    sender: Side,
    epoch: u32,
    lane: u16,
) -> SaKeys {
    let context = framed(&[
        LABEL,
        suite.name().as_bytes(),
        sender.direction(),
        &epoch.to_be_bytes(),
        &lane.to_be_bytes(),
    ]);
    let mut keymat = Zeroizing::new(vec![0; suite.keymat_bytes()]);
    // The secret is uniformly random, which is all that a salt could add (RFC 5869 §3.1).
    Salt::new(HKDF_SHA256, &[])
        .extract(secret)
        .expand(&[&context], OutputLength(keymat.len()))
        .and_then(|output| output.fill(&mut keymat))
        .expect("HKDF-SHA-256 gives up to 8160 bytes, and the buffer has the requested length");
    SaKeys {
        spi: spi_of(epoch, lane),
        suite,
        are_numbers_extended: true,
        keymat,
    }
}

/// Encodes fields, each preceded by its length in two bytes, so that no two lists of fields encode
/// to the same bytes.
///
/// # Panics
/// When a field is longer than 65535 bytes: its encoding would be ambiguous.
pub(crate) fn framed(fields: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(fields.iter().map(|field| 2 + field.len()).sum());
    for field in fields {
        let length = u16::try_from(field.len()).expect("a field has at most 65535 bytes");
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(field);
    }
    bytes
}

/// The output length of HKDF-Expand in bytes.
pub(crate) struct OutputLength(pub(crate) usize);

impl KeyType for OutputLength {
    fn len(&self) -> usize {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base16ct::lower;
    use std::collections::HashSet;

    fn secret() -> [u8; SECRET_BYTES] {
        std::array::from_fn(|index| index as u8)
    }

    /// Derived by another implementation (Python's `cryptography`) from `docs/security.md`.
    #[test]
    fn keys_are_those_that_another_implementation_derives() {
        let cases = [
            (
                (Suite::Aes256Gcm, Side::A, 1, 0),
                "1b383fa88bc3e69cd5b7055e25505fc71fff4532a94138172110d3efcd011e98",
                "4b7bd7e0",
            ),
            (
                (Suite::Aes128Gcm, Side::B, 1_048_575, 4095),
                "66bc98afe159d58cc4d09a8b2372ba3c",
                "e55e838e",
            ),
            (
                (Suite::ChaCha20Poly1305, Side::A, 7, 3),
                "b00b442623e028e86250b8b23a1133ebec63310b5aafdd7bcf7bacd6f1569159",
                "913d94c0",
            ),
        ];
        for ((suite, sender, epoch, lane), key, salt) in cases {
            let keys = sa_keys(&secret(), suite, sender, epoch, lane);
            assert_eq!(lower::encode_string(&keys.keymat), format!("{key}{salt}"));
            assert_eq!(keys.spi, spi_of(epoch, lane));
        }
    }

    #[test]
    fn no_two_sas_have_a_key_in_common() {
        let mut keys = HashSet::new();
        for suite in Suite::ALL {
            for sender in [Side::A, Side::B] {
                for epoch in 1..6 {
                    for lane in 0..6 {
                        let made = sa_keys(&secret(), suite, sender, epoch, lane);
                        assert!(keys.insert(made.keymat[..16].to_vec()));
                    }
                }
            }
        }
        let mut other = secret();
        other[31] ^= 1;
        let made = sa_keys(&other, Suite::Aes256Gcm, Side::A, 1, 0);
        assert!(keys.insert(made.keymat[..16].to_vec()));
    }

    #[test]
    fn debug_output_shows_no_key() {
        let keys = sa_keys(&secret(), Suite::Aes256Gcm, Side::A, 1, 0);
        assert_eq!(format!("{keys:?}"), "SaKeys { spi: 0x00001000, .. }");
    }
}
