//! Whom a chain of certificates certifies, for protocols other than TLS: IKE (RFC 4945).

use crate::reading::{UNREADABLE, words};
use pki_types::pem::PemObject;
use pki_types::{
    CertificateDer, CertificateRevocationListDer, PrivateKeyDer, TrustAnchor, UnixTime,
};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};
use webpki::{
    CertRevocationList, EndEntityCert, ExpirationPolicy, ExtendedKeyUsageValidator, KeyPurposeId,
    KeyPurposeIdIter, KeyUsage, OwnedCertRevocationList, RequiredEkuNotFoundContext,
    RevocationCheckDepth, RevocationOptionsBuilder, UnknownStatusPolicy,
};
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::X509Certificate;
use zeroize::{Zeroize, Zeroizing};

/// Authorities that are trusted, and the certificates that they have revoked.
#[derive(Debug)]
pub struct Authorities {
    anchors: Vec<TrustAnchor<'static>>,
    public_keys: Vec<Vec<u8>>,
    revoked: Vec<CertRevocationList<'static>>,
}

/// A certified key, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certified {
    /// SubjectPublicKeyInfo, DER.
    pub public_key: Vec<u8>,
    /// All names of the certificate.
    pub names: Vec<CertifiedName>,
}

/// A name of a certificate (RFC 5280 §4.1.2.6 and §4.2.1.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertifiedName {
    /// A domain name.
    Domain(String),
    /// An address of e-mail.
    Mail(String),
    /// An IP address.
    Address(IpAddr),
    /// The subject, DER.
    Subject(Vec<u8>),
}

/// Uses that a certificate for IKE may be limited to: IKE, anything, and both of TLS, as in most
/// certificates that are used for IKE (RFC 4945 §5.1.3.12).
const USES: [KeyPurposeId<'static>; 4] = [
    // In order: id-kp-ipsecIKE, anyExtendedKeyUsage, id-kp-serverAuth and id-kp-clientAuth (RFC
    // 5280 §4.2.1.12).
    KeyPurposeId::new(&[0x2b, 6, 1, 5, 5, 7, 3, 17]),
    KeyPurposeId::new(&[0x55, 0x1d, 0x25, 0]),
    KeyPurposeId::new(&[0x2b, 6, 1, 5, 5, 7, 3, 1]),
    KeyPurposeId::new(&[0x2b, 6, 1, 5, 5, 7, 3, 2]),
];

struct Uses;

impl ExtendedKeyUsageValidator for Uses {
    fn validate(&self, present: KeyPurposeIdIter<'_, '_>) -> Result<(), webpki::Error> {
        let mut is_limited = false;
        for purpose in present {
            let purpose = purpose?;
            if USES.contains(&purpose) {
                return Ok(());
            }
            is_limited = true;
        }
        // Without the extension, a certificate is good for every use (RFC 5280 §4.2.1.12).
        if is_limited {
            return Err(webpki::Error::RequiredEkuNotFoundContext(
                RequiredEkuNotFoundContext {
                    required: KeyUsage::server_auth(),
                    present: Vec::new(),
                },
            ));
        }
        Ok(())
    }
}

impl Authorities {
    /// Authorities of a file in PEM.
    ///
    /// # Errors
    /// The problem, as the predicate of a sentence about the file.
    pub fn from_pem(text: &[u8]) -> Result<Self, String> {
        let mut authorities = Self {
            anchors: Vec::new(),
            public_keys: Vec::new(),
            revoked: Vec::new(),
        };
        for certificate in certificates_of_pem(text)? {
            let certificate = CertificateDer::from(certificate);
            let anchor = webpki::anchor_from_trusted_cert(&certificate);
            let anchor = anchor.map_err(|error| of_chain(&error))?;
            authorities.anchors.push(anchor.to_owned());
            let parsed = EndEntityCert::try_from(&certificate).map_err(|error| of_chain(&error))?;
            let key = parsed.subject_public_key_info();
            authorities.public_keys.push(key.to_vec());
        }
        Ok(authorities)
    }

    /// Adds the revocation lists of a file in PEM. With any list, each certificate of a chain must
    /// be covered by one that is up to date.
    ///
    /// # Errors
    /// The problem, as the predicate of a sentence about the file.
    pub fn revoke(&mut self, text: &[u8]) -> Result<(), String> {
        let before = self.revoked.len();
        for list in CertificateRevocationListDer::pem_slice_iter(text) {
            let list = list.map_err(|error| error.to_string())?;
            let list = OwnedCertRevocationList::from_der(&list);
            let list = list.map_err(|error| of_chain(&error))?;
            self.revoked.push(list.into());
        }
        if self.revoked.len() == before {
            return Err("it has no revocation list in PEM (X509 CRL)".to_owned());
        }
        Ok(())
    }

    /// SubjectPublicKeyInfo of each authority, DER.
    #[must_use]
    pub fn public_keys(&self) -> &[Vec<u8>] {
        &self.public_keys
    }

    /// Whom a chain (DER) certifies at a time. The first certificate is the subject's; the others
    /// may be intermediate ones, in any order.
    ///
    /// # Errors
    /// Why it is not accepted, as the predicate of a sentence about the certificate.
    pub fn verify(&self, chain: &[&[u8]], now: SystemTime) -> Result<Certified, String> {
        let chain: Vec<_> = chain.iter().map(|it| CertificateDer::from(*it)).collect();
        let (certificate, intermediates) = chain.split_first().ok_or("there is no certificate")?;
        let parsed = EndEntityCert::try_from(certificate).map_err(|error| of_chain(&error))?;
        let lists: Vec<_> = self.revoked.iter().collect();
        let revocation = RevocationOptionsBuilder::new(&lists).ok().map(|options| {
            let options = options.with_depth(RevocationCheckDepth::Chain);
            let options = options.with_status_policy(UnknownStatusPolicy::Deny);
            options
                .with_expiration_policy(ExpirationPolicy::Enforce)
                .build()
        });
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        let now = UnixTime::since_unix_epoch(since.unwrap_or(Duration::ZERO));
        let algorithms = webpki::ALL_VERIFICATION_ALGS;
        parsed
            .verify_for_usage(
                algorithms,
                &self.anchors,
                intermediates,
                now,
                Uses,
                revocation,
                None,
            )
            .map_err(|error| of_chain(&error))?;
        certified(certificate)
    }
}

/// The certificates of a file in PEM, DER; at least one.
///
/// # Errors
/// The problem, as the predicate of a sentence about the file.
pub fn certificates_of_pem(text: &[u8]) -> Result<Vec<Vec<u8>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text)
        .map(|it| it.map(|it| it.to_vec()))
        .collect();
    let found = found.map_err(|error| error.to_string())?;
    if found.is_empty() {
        return Err("it has no certificate in PEM".to_owned());
    }
    Ok(found)
}

/// The private key of a file in PEM, PKCS #8.
///
/// # Errors
/// The problem, as the predicate of a sentence about the file.
pub fn key_of_pem(text: &[u8]) -> Result<Zeroizing<Vec<u8>>, String> {
    // The parser's error is dropped: it might quote a part of the key.
    let mut key = PrivateKeyDer::from_pem_slice(text)
        .map_err(|_| "it has no private key in PEM".to_owned())?;
    let der = match &key {
        PrivateKeyDer::Pkcs8(der) => Ok(Zeroizing::new(der.secret_pkcs8_der().to_vec())),
        _ => Err("its key is not in PKCS #8 (openssl pkcs8 -topk8 -nocrypt makes it)".to_owned()),
    };
    key.zeroize();
    der
}

/// The key and names of a certificate (DER), which is not verified.
///
/// # Errors
/// The problem, as the predicate of a sentence about the certificate.
pub fn certified(certificate: &[u8]) -> Result<Certified, String> {
    let unreadable = || UNREADABLE.to_owned();
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).map_err(|_| unreadable())?;
    // Other uses, as signatures on certificates, give no right to sign in IKE (RFC 4945 §5.1.3.2).
    if let Some(usage) = parsed.key_usage().map_err(|_| unreadable())?
        && !usage.value.digital_signature()
        && !usage.value.non_repudiation()
    {
        return Err("its key is not for signatures (key usage, RFC 5280 §4.2.1.3)".to_owned());
    }
    Ok(Certified {
        public_key: parsed.public_key().raw.to_vec(),
        names: names(&parsed).ok_or_else(unreadable)?,
    })
}

fn names(certificate: &X509Certificate<'_>) -> Option<Vec<CertifiedName>> {
    let mut names = Vec::new();
    let alternatives = certificate.subject_alternative_name().ok()?;
    for name in alternatives.iter().flat_map(|it| &it.value.general_names) {
        names.extend(match name {
            GeneralName::DNSName(name) => Some(CertifiedName::Domain((*name).to_owned())),
            GeneralName::RFC822Name(name) => Some(CertifiedName::Mail((*name).to_owned())),
            GeneralName::IPAddress(bytes) => address(bytes).map(CertifiedName::Address),
            _ => None,
        });
    }
    if certificate.subject().iter().next().is_some() {
        let subject = certificate.subject().as_raw().to_vec();
        names.push(CertifiedName::Subject(subject));
    }
    Some(names)
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    // A name has 4 or 16 bytes (RFC 5280 §4.2.1.6); other lengths are no address.
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from))
        .ok()
}

/// Describes why a chain of certificates is invalid, as the predicate of a sentence about the
/// certificate.
#[must_use]
pub fn of_chain(what: &webpki::Error) -> String {
    use webpki::Error;
    match what {
        Error::CaUsedAsEndEntity => {
            "it is that of an authority (use the one made for the gateway)".to_owned()
        }
        Error::EndEntityUsedAsCa => {
            "it is signed by a certificate that is not an authority's".to_owned()
        }
        Error::PathLenConstraintViolated => {
            "there are more intermediate certificates than its authority permits".to_owned()
        }
        Error::UnknownIssuer | Error::InvalidSignatureForPublicKey => {
            "it is not signed by the authority that this side trusts".to_owned()
        }
        Error::CertExpired { .. } => {
            "it expired (create a new one; is the clock right?)".to_owned()
        }
        Error::CertNotValidYet { .. } => "it is not valid yet (is the clock right?)".to_owned(),
        Error::CertRevoked => "it is revoked".to_owned(),
        Error::UnknownRevocationStatus => {
            "no revocation list of its authority is configured, though others are".to_owned()
        }
        Error::CrlExpired { .. } => {
            "the revocation list of its authority is out of date (get a new one)".to_owned()
        }
        Error::RequiredEkuNotFoundContext(_) => {
            "it is for other uses than IKE or TLS (extended key usage, RFC 4945 §5.1.3.12)"
                .to_owned()
        }
        other => format!("it is not accepted: {}", words(other)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::string::Ia5String;
    use rcgen::{
        BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
        ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
        RevokedCertParams, SanType, SerialNumber, date_time_ymd,
    };

    struct Ca {
        pem: String,
        issuer: Issuer<'static, KeyPair>,
    }

    fn ca(name: &str) -> Ca {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let pem = params.self_signed(&key).unwrap().pem();
        let issuer = Issuer::new(params, key);
        Ca { pem, issuer }
    }

    impl Ca {
        fn issue(&self, change: impl FnOnce(&mut CertificateParams)) -> Vec<u8> {
            let mut params = CertificateParams::default();
            let domain = Ia5String::try_from("gw1.example").unwrap();
            params.subject_alt_names = vec![SanType::DnsName(domain)];
            params.serial_number = Some(SerialNumber::from(7u64));
            params.use_authority_key_identifier_extension = true;
            change(&mut params);
            let key = KeyPair::generate().unwrap();
            params.signed_by(&key, &self.issuer).unwrap().der().to_vec()
        }

        /// A revocation list in PEM.
        fn list(&self, serials: &[u64], until: i32) -> String {
            let revoked = serials.iter().map(|serial| RevokedCertParams {
                serial_number: SerialNumber::from(*serial),
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            });
            let params = CertificateRevocationListParams {
                this_update: date_time_ymd(2020, 1, 1),
                next_update: date_time_ymd(until, 1, 1),
                crl_number: SerialNumber::from(1u64),
                issuing_distribution_point: None,
                revoked_certs: revoked.collect(),
                key_identifier_method: KeyIdMethod::Sha256,
            };
            params.signed_by(&self.issuer).unwrap().pem().unwrap()
        }

        fn trusted(&self) -> Authorities {
            Authorities::from_pem(self.pem.as_bytes()).unwrap()
        }
    }

    fn day(days: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(days * 86_400)
    }

    /// In 2026.
    fn verify(authorities: &Authorities, chain: &[&[u8]]) -> Result<Certified, String> {
        authorities.verify(chain, day(20_700))
    }

    #[test]
    fn the_key_and_all_names_are_certified() {
        let ca = ca("authority");
        let certificate = ca.issue(|params| {
            let mail = Ia5String::try_from("gw1@example.net").unwrap();
            params.subject_alt_names.push(SanType::Rfc822Name(mail));
            for address in ["192.0.2.1", "2001:db8::1"] {
                let address = SanType::IpAddress(address.parse().unwrap());
                params.subject_alt_names.push(address);
            }
        });
        let certified = verify(&ca.trusted(), &[&certificate]).unwrap();
        assert_eq!(
            certified.names[0],
            CertifiedName::Domain("gw1.example".to_owned())
        );
        assert_eq!(
            certified.names[1],
            CertifiedName::Mail("gw1@example.net".to_owned())
        );
        assert_eq!(
            certified.names[2],
            CertifiedName::Address("192.0.2.1".parse().unwrap())
        );
        assert_eq!(
            certified.names[3],
            CertifiedName::Address("2001:db8::1".parse().unwrap())
        );
        assert!(matches!(certified.names[4], CertifiedName::Subject(_)));
        assert!(
            certificate
                .windows(certified.public_key.len())
                .any(|it| it == certified.public_key)
        );
    }

    #[test]
    fn intermediate_certificates_may_have_any_order() {
        let root = ca("root");
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "between");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let between = params.signed_by(&key, &root.issuer).unwrap().der().to_vec();
        let other = Ca {
            pem: String::new(),
            issuer: Issuer::new(params, key),
        };
        let certificate = other.issue(|_| {});
        let unrelated = ca("unrelated").issue(|_| {});
        let trusted = root.trusted();
        assert!(verify(&trusted, &[&certificate, &unrelated, &between]).is_ok());
        let reason = verify(&trusted, &[&certificate]).unwrap_err();
        assert!(reason.contains("not signed by the authority"), "{reason}");
    }

    #[test]
    fn other_uses_times_and_authorities_are_refused() {
        let authority = ca("authority");
        let trusted = authority.trusted();
        let usage = |params: &mut CertificateParams, usage| {
            params.extended_key_usages = vec![usage];
        };
        let server = authority.issue(|it| usage(it, ExtendedKeyUsagePurpose::ServerAuth));
        assert!(verify(&trusted, &[&server]).is_ok());
        let code = authority.issue(|it| usage(it, ExtendedKeyUsagePurpose::CodeSigning));
        let signing = authority.issue(|it| it.key_usages = vec![KeyUsagePurpose::KeyEncipherment]);
        let expired = authority.issue(|it| it.not_after = date_time_ymd(2021, 1, 1));
        let early = authority.issue(|it| it.not_before = date_time_ymd(2090, 1, 1));
        let of_ca = authority.issue(|it| it.is_ca = IsCa::Ca(BasicConstraints::Unconstrained));
        let other = ca("authority").issue(|_| {});
        let mut damaged = server.clone();
        *damaged.last_mut().unwrap() ^= 1;
        for (certificate, part) in [
            (code, "for other uses than IKE"),
            (signing, "not for signatures"),
            (expired, "it expired"),
            (early, "not valid yet"),
            (of_ca, "that of an authority"),
            (other, "not signed by the authority"),
            (damaged, "not signed by the authority"),
            (b"no certificate".to_vec(), "not accepted"),
        ] {
            let reason = verify(&trusted, &[&certificate]).unwrap_err();
            assert!(reason.contains(part), "{part}: {reason}");
        }
    }

    #[test]
    fn with_revocation_lists_a_certificate_needs_one_that_is_up_to_date() {
        let authority = ca("authority");
        let certificate = authority.issue(|_| {});
        let with = |lists: &[String]| {
            let mut trusted = authority.trusted();
            lists
                .iter()
                .for_each(|it| trusted.revoke(it.as_bytes()).unwrap());
            verify(&trusted, &[&certificate])
        };
        assert!(with(&[authority.list(&[8], 2090)]).is_ok());
        for (list, part) in [
            (authority.list(&[7], 2090), "it is revoked"),
            (authority.list(&[8], 2021), "is out of date"),
            (ca("another").list(&[8], 2090), "no revocation list"),
        ] {
            let reason = with(&[list]).unwrap_err();
            assert!(reason.contains(part), "{part}: {reason}");
        }
        let mut trusted = authority.trusted();
        let reason = trusted.revoke(authority.pem.as_bytes()).unwrap_err();
        assert!(reason.contains("no revocation list in PEM"), "{reason}");
    }

    #[test]
    fn files_without_their_content_are_refused() {
        let key = KeyPair::generate().unwrap().serialize_pem();
        assert!(key_of_pem(key.as_bytes()).is_ok());
        let sec1 = key.replace("PRIVATE KEY", "EC PRIVATE KEY");
        let reason = key_of_pem(sec1.as_bytes()).unwrap_err();
        assert!(reason.contains("openssl pkcs8"), "{reason}");
        assert!(key_of_pem(b"nothing").is_err());
        assert!(certificates_of_pem(b"nothing").is_err());
        assert!(Authorities::from_pem(key.as_bytes()).is_err());
    }
}
