//! Creates a certificate authority, and certificates that carry a gateway's name.
//!
//! All keys are ECDSA on P-256, which every TLS library supports. A certificate has exactly one
//! name, a DNS name in its subject alternative names (RFC 5280 §4.2.1.6), and is valid for client
//! and server authentication. There is no revocation: a certificate is trusted until it expires, so
//! its lifetime should be no longer than necessary.

use crate::files::{self, ReadError};
use crate::names::{BadName, check_name};
use base16ct::HexDisplay;
use guard::Writers;
use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType,
};
use std::fs::{self, DirBuilder};
use std::io;
use std::net::IpAddr;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use zeroize::{Zeroize, Zeroizing};

/// Lifetime of an authority in days: ten years.
const AUTHORITY_DAYS: u32 = 3652;
/// Default lifetime of a certificate in days.
pub const CERTIFICATE_DAYS: u32 = 365;
/// Maximum lifetime of a certificate in days.
pub const DAYS_MAX: u32 = 36_500;
/// File name of the authority's certificate.
pub const AUTHORITY_CERTIFICATE: &str = "ca.pem";
/// File name of the authority's key.
const AUTHORITY_KEY: &str = "ca.key";

/// Certificates are valid from this long before their creation, since clocks differ.
const CLOCKS_DIFFER: Duration = Duration::from_secs(3600);
/// The longest common name (RFC 5280 appendix A, `ub-common-name`).
const COMMON_NAME_MAX: usize = 64;
/// Bytes of the key identifier in an authority's name.
const AUTHORITY_NAME_BYTES: usize = 4;

/// Why an authority or certificate could not be created.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// A name that a certificate cannot carry.
    #[error(transparent)]
    Name(#[from] BadName),
    /// A file of the authority cannot be used.
    #[error("{source}{}", authority_hint(.source))]
    Read {
        /// Why.
        #[from]
        source: ReadError,
    },
    /// A file of the authority has invalid content.
    #[error("{}: {what}", .path.display())]
    Malformed {
        /// File.
        path: PathBuf,
        /// The problem.
        what: String,
    },
    /// A new file cannot be created.
    #[error("{} cannot be created: {source}{}", .path.display(), exists_hint(.source))]
    NotCreated {
        /// File.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Generating a key or a signature failed.
    #[error("no certificate could be created: {0}")]
    Failed(#[from] rcgen::Error),
}

/// The two files of an authority or a gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// Certificate, PEM; public.
    pub certificate: PathBuf,
    /// Key, PEM; accessible to the owner only.
    pub key: PathBuf,
}

/// Contents of the two files of an authority or a gateway.
pub struct Texts {
    /// Certificate, PEM.
    pub certificate: String,
    /// Key, PEM.
    pub key: Zeroizing<String>,
}

/// Creates an authority in a folder, which is created if it does not exist, accessible to the owner
/// only: `ca.pem`, which every gateway needs, and `ca.key`, which signs certificates and should not
/// be kept on any gateway.
///
/// # Errors
/// [`CertificateError::NotCreated`], also if a file already exists: nothing is ever overwritten.
pub fn create_authority(folder: &Path) -> Result<Files, CertificateError> {
    let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    created.map_err(|source| CertificateError::NotCreated {
        path: folder.to_owned(),
        source,
    })?;
    let texts = Authority::generate()?.texts();
    write(folder, AUTHORITY_CERTIFICATE, AUTHORITY_KEY, &texts)
}

/// Creates a certificate for a gateway, signed by the authority in a folder: `NAME.pem` and
/// `NAME.key`, in the same folder or another.
///
/// # Errors
/// [`CertificateError`], also if a file already exists: nothing is ever overwritten.
///
/// # Panics
/// If `days` is 0 or more than [`DAYS_MAX`].
pub fn create_certificate(
    authority: &Path,
    name: &str,
    folder: &Path,
    days: u32,
) -> Result<Files, CertificateError> {
    check_name(name)?;
    let texts = Authority::load(authority)?.issue(name, days_from_now(days))?;
    write(
        folder,
        &format!("{name}.pem"),
        &format!("{name}.key"),
        &texts,
    )
}

/// The validity period of `days` days, starting shortly before now.
///
/// # Panics
/// If `days` is 0 or more than [`DAYS_MAX`].
#[must_use]
pub fn days_from_now(days: u32) -> Range<SystemTime> {
    assert!((1..=DAYS_MAX).contains(&days), "1 to {DAYS_MAX} days");
    let now = SystemTime::now();
    now - CLOCKS_DIFFER..now + Duration::from_secs(u64::from(days) * 24 * 60 * 60)
}

/// A certificate authority with its key, in memory.
pub struct Authority {
    certificate: String,
    issuer: Issuer<'static, WipedKey>,
}

impl Authority {
    /// Generates a new authority.
    ///
    /// # Errors
    /// [`CertificateError::Failed`]: the operating system gives no randomness.
    pub fn generate() -> Result<Self, CertificateError> {
        let key = WipedKey(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?);
        let mut params = CertificateParams::default();
        // A distinct name, so that a certificate of another authority is not reported as one with a
        // wrong signature.
        let identifier = params.key_identifier(&key);
        let digits = HexDisplay(&identifier[..AUTHORITY_NAME_BYTES]);
        params.distinguished_name = common_name(&format!("Cipherbench authority {digits:x}"));
        // Path length 0: it signs certificates of gateways only, never another authority (RFC 5280
        // §4.2.1.9).
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        set_validity(&mut params, days_from_now(AUTHORITY_DAYS));
        let certificate = params.self_signed(&key)?.pem();
        Ok(Self {
            certificate,
            issuer: Issuer::new(params, key),
        })
    }

    /// Loads the authority of a folder.
    ///
    /// # Errors
    /// [`CertificateError::Read`] and [`CertificateError::Malformed`].
    pub fn load(folder: &Path) -> Result<Self, CertificateError> {
        let malformed = |path: &Path, what: &str| CertificateError::Malformed {
            path: path.to_owned(),
            what: what.to_owned(),
        };
        let path = folder.join(AUTHORITY_CERTIFICATE);
        let key_path = folder.join(AUTHORITY_KEY);
        // Who has the key is the authority.
        let writers = Writers::of_process();
        let writers = match fs::metadata(&key_path) {
            Ok(metadata) => writers.and(metadata.uid()),
            Err(_) => writers,
        };
        let text = files::read_public(&path, &writers)?;
        let certificate = str::from_utf8(&text)
            .map_err(|_| malformed(&path, "it is not a certificate in PEM"))?
            .to_owned();
        let text = files::read_secret(&key_path, &writers)?;
        let key = str::from_utf8(&text)
            .ok()
            .and_then(|text| KeyPair::from_pem(text).ok())
            .ok_or_else(|| malformed(&key_path, "it is not a private key in PEM"))?;
        // This takes the name and key identifier from the certificate, so an issued one names its
        // issuer as that certificate does.
        let issuer = Issuer::from_ca_cert_pem(&certificate, WipedKey(key))
            .map_err(|_| malformed(&path, "it is not a certificate in PEM"))?;
        Ok(Self {
            certificate,
            issuer,
        })
    }

    /// The authority with this certificate and key.
    ///
    /// # Errors
    /// [`CertificateError::Failed`]: one of them is not PEM.
    pub fn from_texts(texts: &Texts) -> Result<Self, CertificateError> {
        let key = WipedKey(KeyPair::from_pem(&texts.key)?);
        Ok(Self {
            certificate: texts.certificate.clone(),
            issuer: Issuer::from_ca_cert_pem(&texts.certificate, key)?,
        })
    }

    /// The authority's certificate, PEM, which every gateway needs that trusts it.
    #[must_use]
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Certificate and key as the contents of their files.
    #[must_use]
    pub fn texts(&self) -> Texts {
        Texts {
            certificate: self.certificate.clone(),
            key: Zeroizing::new(self.issuer.key().0.serialize_pem()),
        }
    }

    /// Issues a certificate with a fresh key for a gateway's name, valid for the given period.
    ///
    /// # Errors
    /// [`CertificateError::Name`] and [`CertificateError::Failed`].
    pub fn issue(&self, name: &str, valid: Range<SystemTime>) -> Result<Texts, CertificateError> {
        self.issue_for(name, None, valid)
    }

    /// Issues a certificate that also contains an IP address, for a server such as a KME.
    ///
    /// # Errors
    /// As [`issue`](Self::issue).
    pub fn issue_at(
        &self,
        name: &str,
        address: IpAddr,
        valid: Range<SystemTime>,
    ) -> Result<Texts, CertificateError> {
        self.issue_for(name, Some(address), valid)
    }

    fn issue_for(
        &self,
        name: &str,
        address: Option<IpAddr>,
        valid: Range<SystemTime>,
    ) -> Result<Texts, CertificateError> {
        check_name(name)?;
        let key = WipedKey(KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?);
        let mut params = CertificateParams::default();
        params.subject_alt_names = vec![SanType::DnsName(Ia5String::try_from(name)?)];
        params
            .subject_alt_names
            .extend(address.map(SanType::IpAddress));
        // TLS looks at the alternative names only (RFC 9525): a name too long for this one is left
        // out of it.
        params.distinguished_name = if name.len() <= COMMON_NAME_MAX {
            common_name(name)
        } else {
            DistinguishedName::new()
        };
        params.is_ca = IsCa::ExplicitNoCa;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        // A gateway calls its peers and is called by them.
        params.extended_key_usages = vec![
            ExtendedKeyUsagePurpose::ServerAuth,
            ExtendedKeyUsagePurpose::ClientAuth,
        ];
        // Chooses the right authority where several are trusted (RFC 5280 §4.2.1.1).
        params.use_authority_key_identifier_extension = true;
        set_validity(&mut params, valid);
        Ok(Texts {
            certificate: params.signed_by(&key, &self.issuer)?.pem(),
            key: Zeroizing::new(key.0.serialize_pem()),
        })
    }
}

/// A key that is wiped when dropped.
struct WipedKey(KeyPair);

impl rcgen::PublicKeyData for WipedKey {
    fn der_bytes(&self) -> &[u8] {
        self.0.der_bytes()
    }

    fn algorithm(&self) -> &'static rcgen::SignatureAlgorithm {
        self.0.algorithm()
    }
}

impl rcgen::SigningKey for WipedKey {
    fn sign(&self, message: &[u8]) -> Result<Vec<u8>, rcgen::Error> {
        self.0.sign(message)
    }
}

impl Drop for WipedKey {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

fn common_name(name: &str) -> DistinguishedName {
    let mut names = DistinguishedName::new();
    names.push(DnType::CommonName, name);
    names
}

fn set_validity(params: &mut CertificateParams, valid: Range<SystemTime>) {
    let since_epoch = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    // The type of these times belongs to a crate that only `rcgen` uses: they are reached from a
    // date of `rcgen`.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch(valid.start);
    params.not_after = epoch + since_epoch(valid.end);
}

fn write(
    folder: &Path,
    certificate: &str,
    key: &str,
    texts: &Texts,
) -> Result<Files, CertificateError> {
    let made = Files {
        certificate: folder.join(certificate),
        key: folder.join(key),
    };
    files::create_both(
        (&made.certificate, texts.certificate.as_bytes()),
        (&made.key, texts.key.as_bytes()),
    )
    .map_err(|(path, source)| CertificateError::NotCreated { path, source })?;
    Ok(made)
}

fn authority_hint(error: &ReadError) -> &'static str {
    match error {
        ReadError::NotRead { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            " (make an authority: cipherbench keys authority DIR)"
        }
        _ => "",
    }
}

fn exists_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            " (keys are never overwritten: move it away or choose another place)"
        }
        io::ErrorKind::NotFound => " (create its folder first)",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_overwritten_and_incomplete_pairs_are_removed() {
        let folder = testing::folder().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        create_authority(folder.path()).expect("an authority");
        let make = || create_certificate(folder.path(), "gw1", folder.path(), 1);
        fs::write(path("gw1.pem"), "somebody's").expect("a file");
        let error = make().expect_err("it exists").to_string();
        assert!(
            error.contains("gw1.pem") && error.contains("never overwritten"),
            "{error}"
        );
        assert!(!path("gw1.key").exists(), "a key of no certificate");
        fs::remove_file(path("gw1.pem")).expect("a file");
        fs::write(path("gw1.key"), "somebody's").expect("a file");
        let error = make().expect_err("it exists").to_string();
        assert!(error.contains("gw1.key"), "{error}");
        assert!(!path("gw1.pem").exists(), "a certificate of another key");
        assert_eq!(fs::read(path("gw1.key")).expect("a file"), b"somebody's");
        let error = create_authority(folder.path()).expect_err("it exists");
        assert!(error.to_string().contains("ca.key"), "{error}");
        let nowhere = path("nowhere");
        let error = create_certificate(folder.path(), "gw2", &nowhere, 1);
        let error = error.expect_err("no folder").to_string();
        assert!(error.contains("create its folder first"), "{error}");
    }
}
