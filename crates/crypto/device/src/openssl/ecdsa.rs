//! Conversion of ECDSA signatures between DER, which libcrypto uses, and the concatenation of r and
//! s, which tokens and this crate use.

use der::asn1::UintRef;
use der::{Decode, Encode, Sequence};

/// `Ecdsa-Sig-Value` (RFC 3279 §2.2.3).
#[derive(Sequence)]
struct Signature<'a> {
    r: UintRef<'a>,
    s: UintRef<'a>,
}

/// Reads r and s into `raw`, each padded to half its length. `false`: `der` is malformed or a
/// number is too long.
pub(super) fn to_raw(der: &[u8], raw: &mut [u8]) -> bool {
    let Ok(signature) = Signature::from_der(der) else {
        return false;
    };
    raw.fill(0);
    let (r, s) = raw.split_at_mut(raw.len() / 2);
    for (half, number) in [(r, signature.r), (s, signature.s)] {
        let number = number.as_bytes();
        let Some(start) = half.len().checked_sub(number.len()) else {
            return false;
        };
        half[start..].copy_from_slice(number);
    }
    true
}

/// Writes r and s as DER.
pub(super) fn to_der(raw: &[u8], der: &mut Vec<u8>) {
    der.clear();
    let (r, s) = raw.split_at(raw.len() / 2);
    let number = |bytes| UintRef::new(bytes).expect("curves' numbers are short");
    let signature = Signature {
        r: number(r),
        s: number(s),
    };
    signature
        .encode_to_vec(der)
        .expect("two short numbers are a short sequence");
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn signatures_survive_a_round_trip(mut raw in prop::collection::vec(any::<u8>(), 32..=66), zeros in 0_usize..33) {
            raw.resize(raw.len() / 2 * 2, 0);
            let half = raw.len() / 2;
            raw[..zeros.min(half)].fill(0);
            let mut der = Vec::new();
            to_der(&raw, &mut der);
            let mut back = vec![0xff; raw.len()];
            prop_assert!(to_raw(&der, &mut back));
            prop_assert_eq!(&back, &raw);
            der.pop();
            prop_assert!(!to_raw(&der, &mut back));
        }

        #[test]
        fn any_bytes_are_read_or_refused(der in prop::collection::vec(any::<u8>(), 0..150)) {
            to_raw(&der, &mut [0; 64]);
        }
    }
}
