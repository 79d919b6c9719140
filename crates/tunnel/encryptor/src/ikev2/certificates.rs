//! This gateway's certificate, and the authorities of its peers', for IKE.

use super::names::shown;
use crate::config::{IdentityFiles, Ike};
use aws_lc_rs::digest;
use control::IdentityError;
use guard::Writers;
use ike::crypto::{Signer, verify_signature};
use ike::message::{AuthMethod, Identity, IdentityType};
use ike::session::{Certificates, Subject, Verifier};
use pki::{
    Authorities, Certified, CertifiedName, certificates_of_pem, certified, key_of_pem, read_public,
    read_secret, validity_of,
};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Verifies the peer's certificates with the machine's clock.
struct Trust(Authorities);

impl Verifier for Trust {
    fn verify(&self, chain: &[&[u8]]) -> Result<Subject, String> {
        self.0.verify(chain, SystemTime::now()).map(subject)
    }
}

fn subject(certified: Certified) -> Subject {
    let identity = |kind, data: &[u8]| Identity {
        kind,
        data: data.to_vec(),
    };
    let identities = certified.names.iter().map(|name| match name {
        CertifiedName::Domain(name) => identity(IdentityType::FQDN, name.as_bytes()),
        CertifiedName::Mail(name) => identity(IdentityType::RFC822_ADDR, name.as_bytes()),
        CertifiedName::Address(address) => Identity::address(*address),
        CertifiedName::Subject(der) => identity(IdentityType::DER_ASN1_DN, der),
    });
    Subject {
        identities: identities.collect(),
        public_key: certified.public_key,
    }
}

/// Reads the files, and makes the peer's checks of this gateway's certificate but that of its
/// authority, which may be another one than the peers'.
pub(super) fn load(
    ike: &Ike,
    files: &IdentityFiles,
    writers: &Writers,
) -> Result<Certificates, IdentityError> {
    let malformed = |path: &Path| {
        let path = path.to_owned();
        move |what| IdentityError::Malformed { path, what }
    };
    let chain = certificates_of_pem(&read_public(&files.certificate, writers)?)
        .map_err(malformed(&files.certificate))?;
    let key = key_of_pem(&read_secret(&files.key, writers)?).map_err(malformed(&files.key))?;
    let signer = Signer::from_pkcs8(&key).ok_or_else(|| {
        let what =
            "IKE signs with ECDSA on P-256, P-384 or P-521, Ed25519, or RSA of 2048 to 8192 bits";
        malformed(&files.key)(what.to_owned())
    })?;
    let refused = |what| IdentityError::Refused {
        path: files.certificate.clone(),
        what,
    };
    // The first certificate is the gateway's; intermediate ones follow.
    let own = subject(certified(&chain[0]).map_err(refused)?);
    let is_own_key = signer.sign(b"").is_some_and(|signature| {
        let method = AuthMethod::DIGITAL_SIGNATURE;
        verify_signature(method, &own.public_key, b"", &signature)
    });
    if !is_own_key {
        return Err(IdentityError::KeyDiffers {
            key: files.key.clone(),
            certificate: files.certificate.clone(),
        });
    }
    if !own.is(&ike.identity) {
        let names: Vec<_> = own.identities.iter().map(shown).collect();
        return Err(refused(format!(
            "it is that of {}, not of the `identity` {} (write a name of the certificate there)",
            names.join(", "),
            shown(&ike.identity)
        )));
    }
    let valid = validity_of(&chain).map_err(refused)?;
    let now = SystemTime::now();
    if !valid.contains(&now) {
        let state = if now < valid.start {
            "is not valid yet"
        } else {
            "expired"
        };
        return Err(refused(format!("it {state} (is the clock right?)")));
    }
    let mut authorities =
        Authorities::from_pem(&read_public(&files.ca, writers)?).map_err(malformed(&files.ca))?;
    for list in &ike.crls {
        let text = read_public(list, writers)?;
        authorities.revoke(&text).map_err(malformed(list))?;
    }
    let hash = |key: &Vec<u8>| {
        let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, key);
        *digest.as_ref().first_chunk().expect("SHA-1 has 20 bytes")
    };
    Ok(Certificates {
        signer,
        chain,
        authorities: authorities.public_keys().iter().map(hash).collect(),
        verifier: Arc::new(Trust(authorities)),
    })
}
