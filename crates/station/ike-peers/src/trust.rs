//! Certificates of both ends.

use crate::error::PeersError;
use aws_lc_rs::digest;
use ike::crypto::Signer;
use ike::message::{Identity, IdentityType};
use ike::session::{Certificates, Subject, Verifier};
use pki::{Authorities, Certified, CertifiedName, Texts, certificates_of_pem, key_of_pem};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// Authorities that are trusted.
pub(crate) struct Trusted {
    /// SHA-1 hashes of their public keys.
    hashes: Vec<[u8; 20]>,
    verifier: Arc<dyn Verifier>,
}

impl Trusted {
    /// Authorities by their certificates.
    pub(crate) fn from_pem(text: &str) -> Result<Self, PeersError> {
        let authorities = Authorities::from_pem(text.as_bytes());
        let authorities = authorities
            .map_err(|what| PeersError::Certificate(format!("the trusted authorities: {what}")))?;
        let hash = |key: &Vec<u8>| {
            let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, key);
            *digest.as_ref().first_chunk().expect("SHA-1 has 20 bytes")
        };
        Ok(Self {
            hashes: authorities.public_keys().iter().map(hash).collect(),
            verifier: Arc::new(Trust::new(authorities)),
        })
    }

    /// An end with this certificate and key, which trusts them.
    pub(crate) fn with(&self, texts: &Texts) -> Result<Certificates, PeersError> {
        let chain = certificates_of_pem(texts.certificate.as_bytes());
        let key = key_of_pem(texts.key.as_bytes()).map_err(PeersError::Certificate)?;
        let unusable = || PeersError::Certificate("IKE cannot sign with this key".to_owned());
        Ok(Certificates {
            signer: Signer::from_pkcs8(&key).ok_or_else(unusable)?,
            chain: chain.map_err(PeersError::Certificate)?,
            authorities: self.hashes.clone(),
            verifier: Arc::clone(&self.verifier),
        })
    }
}

/// The verifier, by the machine's clock. The last chain is verified once: it is the
/// same gateway's each time. Signatures are verified at each set-up.
struct Trust {
    authorities: Authorities,
    last: Mutex<Option<(Vec<Vec<u8>>, Subject)>>,
}

impl Trust {
    const fn new(authorities: Authorities) -> Self {
        Self {
            authorities,
            last: Mutex::new(None),
        }
    }
}

impl Verifier for Trust {
    fn verify(&self, chain: &[&[u8]]) -> Result<Subject, String> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, subject)) = &*last
            && known.iter().map(Vec::as_slice).eq(chain.iter().copied())
        {
            return Ok(subject.clone());
        }
        let subject = subject(self.authorities.verify(chain, SystemTime::now())?);
        let chain = chain.iter().map(|it| it.to_vec()).collect();
        *last = Some((chain, subject.clone()));
        Ok(subject)
    }
}

fn subject(certified: Certified) -> Subject {
    let named = |kind, data: &[u8]| Identity {
        kind,
        data: data.to_vec(),
    };
    let identities = certified.names.iter().map(|name| match name {
        CertifiedName::Domain(name) => named(IdentityType::FQDN, name.as_bytes()),
        CertifiedName::Mail(name) => named(IdentityType::RFC822_ADDR, name.as_bytes()),
        CertifiedName::Address(address) => Identity::address(*address),
        CertifiedName::Subject(der) => named(IdentityType::DER_ASN1_DN, der),
    });
    Subject {
        identities: identities.collect(),
        public_key: certified.public_key,
    }
}
