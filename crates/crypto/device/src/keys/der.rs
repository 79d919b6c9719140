//! As much of DER as takes apart the keys that are built in and those of vectors (RFC 5208, 5280, 5915, 8017 appendix A).

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const SEQUENCE: u8 = 0x30;

/// The numbers of an RSA key (RFC 8017 §3), big-endian and without leading zeros. Those of the private key are empty where it
/// is not there.
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

/// Numbers of a PKCS#8 key, or of a SubjectPublicKeyInfo where that is empty.
pub(super) fn rsa<'a>(private: &'a [u8], public: &'a [u8]) -> Option<RsaNumbers<'a>> {
    if private.is_empty() {
        let mut fields = Reader(Reader(public_bytes(public)?).take(SEQUENCE)?);
        let (n, e) = (fields.number()?, fields.number()?);
        return Some(RsaNumbers {
            n,
            e,
            d: &[],
            p: &[],
            q: &[],
            d_p: &[],
            d_q: &[],
            q_inverse: &[],
        });
    }
    let mut fields = Reader(Reader(inner(private)?).take(SEQUENCE)?);
    fields.take(INTEGER)?;
    Some(RsaNumbers {
        n: fields.number()?,
        e: fields.number()?,
        d: fields.number()?,
        p: fields.number()?,
        q: fields.number()?,
        d_p: fields.number()?,
        d_q: fields.number()?,
        q_inverse: fields.number()?,
    })
}

/// The bit string of a SubjectPublicKeyInfo.
pub(super) fn public_bytes(spki: &[u8]) -> Option<&[u8]> {
    let mut fields = Reader(Reader(spki).take_whole(SEQUENCE)?);
    fields.take(SEQUENCE)?;
    // Its first byte tells how many bits of the last are unused: none.
    fields.take(BIT_STRING)?.strip_prefix(&[0])
}

/// Scalar of an ECPrivateKey or seed of Ed25519, from PKCS#8.
pub(super) fn private_bytes(pkcs8: &[u8]) -> Option<&[u8]> {
    let inner = inner(pkcs8)?;
    if let Some(seed) = Reader(inner).take_whole(OCTET_STRING) {
        return Some(seed);
    }
    let mut fields = Reader(Reader(inner).take(SEQUENCE)?);
    fields.take(INTEGER)?;
    fields.take(OCTET_STRING)
}

/// What a PKCS#8 key wraps.
fn inner(pkcs8: &[u8]) -> Option<&[u8]> {
    let mut fields = Reader(Reader(pkcs8).take_whole(SEQUENCE)?);
    fields.take(INTEGER)?;
    fields.take(SEQUENCE)?;
    fields.take(OCTET_STRING)
}

/// What is not read yet.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// The content of the next element, which must have this tag.
    fn take(&mut self, tag: u8) -> Option<&'a [u8]> {
        let (&[found, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = if first < 0x80 {
            (usize::from(first), rest)
        } else {
            // Two bytes of length are enough for 65535 bytes; more is no key of ours.
            let (long, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            let length = match *long {
                [a] => usize::from(a),
                [a, b] => usize::from(u16::from_be_bytes([a, b])),
                _ => return None,
            };
            (length, rest)
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        (found == tag).then_some(content)
    }

    /// As [`Self::take`], and nothing may follow.
    fn take_whole(&mut self, tag: u8) -> Option<&'a [u8]> {
        self.take(tag).filter(|_| self.0.is_empty())
    }

    /// A positive INTEGER without leading zeros.
    fn number(&mut self) -> Option<&'a [u8]> {
        let bytes = self.take(INTEGER)?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        Some(&bytes[zeros..])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Algorithm, Family, Keys, operation::ALGORITHMS};

    #[test]
    fn every_built_in_pair_is_taken_apart() {
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
    fn truncated_keys_are_no_keys() {
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
