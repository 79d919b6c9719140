//! Numbers and raw key bytes in DER keys.

use pkcs1::{RsaPrivateKeyRef, RsaPublicKeyRef};
use pkcs8::der::Decode;
use pkcs8::der::asn1::OctetStringRef;
use pkcs8::{PrivateKeyInfoRef, SubjectPublicKeyInfoRef};
use sec1::EcPrivateKey;

/// The numbers of an RSA key (RFC 8017 §3), big-endian and without leading zeros. Private ones are
/// empty if the private key is missing.
#[allow(missing_docs, reason = "named as in RFC 8017")]
#[derive(Clone, Copy)]
pub struct RsaNumbers<'a> {
    pub n: &'a [u8],
    pub e: &'a [u8],
    pub d: &'a [u8],
    pub p: &'a [u8],
    pub q: &'a [u8],
    pub d_p: &'a [u8],
    pub d_q: &'a [u8],
    pub q_inverse: &'a [u8],
}

/// Returns the numbers of a PKCS#8 key, or, if it is empty, of a SubjectPublicKeyInfo.
pub(super) fn rsa<'a>(private: &'a [u8], public: &'a [u8]) -> Option<RsaNumbers<'a>> {
    if private.is_empty() {
        let key = RsaPublicKeyRef::from_der(public_bytes(public)?).ok()?;
        return Some(RsaNumbers {
            n: key.modulus.as_bytes(),
            e: key.public_exponent.as_bytes(),
            d: &[],
            p: &[],
            q: &[],
            d_p: &[],
            d_q: &[],
            q_inverse: &[],
        });
    }
    let key = RsaPrivateKeyRef::from_der(inner(private)?).ok()?;
    Some(RsaNumbers {
        n: key.modulus.as_bytes(),
        e: key.public_exponent.as_bytes(),
        d: key.private_exponent.as_bytes(),
        p: key.prime1.as_bytes(),
        q: key.prime2.as_bytes(),
        d_p: key.exponent1.as_bytes(),
        d_q: key.exponent2.as_bytes(),
        q_inverse: key.coefficient.as_bytes(),
    })
}

/// The bit string of a SubjectPublicKeyInfo (RFC 5280 §4.1).
pub(super) fn public_bytes(spki: &[u8]) -> Option<&[u8]> {
    let key = SubjectPublicKeyInfoRef::from_der(spki).ok()?;
    key.subject_public_key.as_bytes()
}

/// The scalar of an ECPrivateKey (RFC 5915) or the seed of Ed25519 (RFC 8410), from PKCS#8.
pub(super) fn private_bytes(pkcs8: &[u8]) -> Option<&[u8]> {
    let inner = inner(pkcs8)?;
    // Ed25519 wraps its seed once more (RFC 8410 §7), EC has a sequence here.
    match <&OctetStringRef>::from_der(inner) {
        Ok(seed) => Some(seed.as_bytes()),
        Err(_) => Some(EcPrivateKey::from_der(inner).ok()?.private_key),
    }
}

/// The key that PKCS#8 wraps (RFC 5208).
fn inner(pkcs8: &[u8]) -> Option<&[u8]> {
    let key = PrivateKeyInfoRef::from_der(pkcs8).ok()?;
    Some(key.private_key.as_bytes())
}

#[cfg(test)]
mod tests {
    use crate::Keys;
    use catalog::{ALGORITHMS, Algorithm, Family};

    #[test]
    fn every_built_in_pair_is_parsed() {
        let keys = Keys::new(0);
        for &algorithm in ALGORITHMS {
            match algorithm.family() {
                Family::Rsa(bits, _) => {
                    let numbers = keys.pair(algorithm).rsa().expect("an RSA key");
                    assert_eq!(numbers.n.len(), usize::from(bits) / 8);
                    assert_eq!(numbers.p.len(), usize::from(bits) / 16);
                    assert_eq!(numbers.e, [1, 0, 1]);
                }
                Family::Ecdsa(_) => {
                    let pair = keys.pair(algorithm);
                    let order_bytes = pair.private_bytes().len();
                    assert!(order_bytes == 32 || order_bytes == 48, "{algorithm}");
                    assert_eq!(pair.public_bytes().len(), 1 + 2 * order_bytes);
                    assert_eq!(pair.public_bytes()[0], 4);
                }
                Family::Ed25519 => {
                    let pair = keys.pair(algorithm);
                    assert_eq!(
                        (pair.private_bytes().len(), pair.public_bytes().len()),
                        (32, 32)
                    );
                }
                Family::MlDsa(_) | Family::MlKem(_) => {
                    let pair = keys.pair(algorithm);
                    assert_eq!(pair.public_bytes(), pair.public);
                    assert_eq!(pair.private_bytes(), pair.private);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn truncated_keys_are_rejected() {
        let keys = Keys::new(0);
        let pair = keys.pair(Algorithm::parse("rsa-1024-pkcs1").unwrap());
        for length in 0..pair.private.len() {
            assert!(
                super::rsa(&pair.private[..length], &[]).is_none(),
                "{length}"
            );
        }
        for length in 0..pair.public.len() {
            assert!(
                super::rsa(&[], &pair.public[..length]).is_none(),
                "{length}"
            );
        }
    }
}
