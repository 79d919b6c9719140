//! Authentication: by a shared key, or by signatures with certificates (RFC 7427; RFC 7296 sections
//! 3.6 and 3.7).

use crate::crypto::{Secret, Signer};
use crate::message::{
    CertificateEncoding, Identity, IdentityType, Notify, NotifyType, Payload, SignatureHash,
};
use std::sync::Arc;

/// Most certificates of a peer; each costs the verification of a signature.
const CERTIFICATES_MAX: usize = 8;
/// Length of a SHA-1 hash.
const AUTHORITY_BYTES: usize = 20;
/// Hashes that are accepted in signatures: those of all schemes.
const HASHES: [SignatureHash; 4] = [
    SignatureHash::SHA2_256,
    SignatureHash::SHA2_384,
    SignatureHash::SHA2_512,
    SignatureHash::IDENTITY,
];

/// How both ends prove their identities.
#[derive(Clone)]
pub enum Authentication {
    /// A key that both ends have (RFC 7296 section 2.15).
    SharedKey(Secret),
    /// Signatures by certified keys (RFC 7427).
    Certificates(Certificates),
}

/// This end's certificate, and the verifier of the peer's.
#[derive(Clone)]
pub struct Certificates {
    /// The key of the certificate.
    pub signer: Signer,
    /// The certificate and then intermediate ones, DER.
    pub chain: Vec<Vec<u8>>,
    /// SHA-1 hashes of the SubjectPublicKeyInfo of accepted authorities: peers send only
    /// certificates that are asked for.
    pub authorities: Vec<[u8; AUTHORITY_BYTES]>,
    /// Verifies the peer's certificates.
    pub verifier: Arc<dyn Verifier>,
}

/// Decides whom certificates certify. It knows the time, and the authorities that are trusted.
pub trait Verifier: Send + Sync {
    /// The subject of a chain of at least one certificate (DER). The first is the subject's; the
    /// others may be intermediate ones, in any order.
    ///
    /// # Errors
    /// Why it is not accepted, as the predicate of a sentence about the certificate.
    fn verify(&self, chain: &[&[u8]]) -> Result<Subject, String>;
}

/// The subject of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// SubjectPublicKeyInfo, DER.
    pub public_key: Vec<u8>,
    /// All names, as identities of IKE (RFC 4945 section 3.1).
    pub identities: Vec<Identity>,
}

impl Subject {
    /// Whether the identity is one of the certificate's. Domain names have no case.
    #[must_use]
    pub fn is(&self, identity: &Identity) -> bool {
        self.identities.iter().any(|certified| {
            certified.kind == identity.kind
                && match identity.kind {
                    IdentityType::FQDN | IdentityType::RFC822_ADDR => {
                        certified.data.eq_ignore_ascii_case(&identity.data)
                    }
                    _ => certified.data == identity.data,
                }
        })
    }
}

impl Authentication {
    pub(super) const fn certificates(&self) -> Option<&Certificates> {
        match self {
            Self::SharedKey(_) => None,
            Self::Certificates(certificates) => Some(certificates),
        }
    }

    /// Payloads of IKE_SA_INIT. The responder also asks for certificates there, the initiator in
    /// IKE_AUTH (RFC 7296 section 1.2).
    pub(super) fn initial_payloads(&self, is_responder: bool) -> Vec<Payload> {
        let Some(certificates) = self.certificates() else {
            return Vec::new();
        };
        let mut payloads = vec![hashes_payload()];
        payloads.extend(certificates.request().filter(|_| is_responder));
        payloads
    }
}

impl Certificates {
    /// Asks for a certificate of the accepted authorities.
    pub(super) fn request(&self) -> Option<Payload> {
        let request = Payload::CertificateRequest {
            encoding: CertificateEncoding::X509_SIGNATURE,
            authorities: self.authorities.concat(),
        };
        (!self.authorities.is_empty()).then_some(request)
    }

    /// This end's certificates.
    pub(super) fn payloads(&self) -> impl Iterator<Item = Payload> + '_ {
        self.chain.iter().map(|data| Payload::Certificate {
            encoding: CertificateEncoding::X509_SIGNATURE,
            data: data.clone(),
        })
    }
}

/// The hashes that are accepted in signatures (RFC 7427 section 4).
fn hashes_payload() -> Payload {
    let data: Vec<u8> = HASHES.iter().flat_map(|it| it.0.to_be_bytes()).collect();
    Payload::Notify(Notify::new(NotifyType::SIGNATURE_HASH_ALGORITHMS, data))
}

/// The hashes that both ends accept.
pub(super) fn hashes_of(payloads: &[Payload]) -> Vec<SignatureHash> {
    let mut accepted = HASHES.to_vec();
    accepted.retain(|hash| {
        let mut lists =
            super::notifies(payloads).filter(|it| it.kind == NotifyType::SIGNATURE_HASH_ALGORITHMS);
        lists.any(|it| it.data.as_chunks().0.contains(&hash.0.to_be_bytes()))
    });
    accepted
}

/// The peer's certificates, its own first.
pub(super) fn chain_of(payloads: &[Payload]) -> Result<Vec<&[u8]>, String> {
    let certificates = payloads.iter().filter_map(|payload| match payload {
        Payload::Certificate { encoding, data }
            if *encoding == CertificateEncoding::X509_SIGNATURE =>
        {
            Some(data.as_slice())
        }
        _ => None,
    });
    let chain: Vec<_> = certificates.take(CERTIFICATES_MAX + 1).collect();
    match chain.len() {
        0 => Err("the peer sent no X.509 certificate (RFC 7296 section 3.6)".to_owned()),
        1..=CERTIFICATES_MAX => Ok(chain),
        _ => Err(format!(
            "the peer sent more than {CERTIFICATES_MAX} certificates"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crypto::SignatureScheme;

    #[test]
    fn hashes_of_all_schemes_are_announced_and_unknown_ones_ignored() {
        let announced = hashes_of(&[hashes_payload()]);
        assert!(
            SignatureScheme::ALL
                .iter()
                .all(|it| announced.contains(&it.hash()))
        );
        let list = Notify::new(
            NotifyType::SIGNATURE_HASH_ALGORITHMS,
            [0, 1, 0, 3, 9, 9, 0, 3],
        );
        assert_eq!(
            hashes_of(&[Payload::Notify(list)]),
            [SignatureHash::SHA2_384]
        );
        assert_eq!(hashes_of(&[]), []);
    }
}
