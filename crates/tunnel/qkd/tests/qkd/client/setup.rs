//! Certificates and clients for tests.

use qkd::{Kme, Setup, SetupError};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use std::fs;
use std::future::Future;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Timeout of a call that must succeed.
pub(crate) const PLENTY: Duration = Duration::from_secs(60);

/// A CA.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// Certificate and key, PEM.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    pub(crate) fn issue(&self, names: &[&str]) -> Identity {
        self.issue_with(names, |_| {})
    }

    pub(crate) fn issue_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> Identity {
        let names: Vec<_> = names.iter().map(|&name| name.to_owned()).collect();
        let mut params = CertificateParams::new(names).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        Identity {
            certificate: params.signed_by(&key, &self.0).unwrap().pem(),
            key: key.serialize_pem(),
        }
    }
}

/// The files of a client and of its trusted CA.
pub(crate) struct Files {
    folder: TempDir,
}

impl Files {
    pub(crate) fn new(identity: &Identity, trusted: &str) -> Self {
        let files = Self {
            folder: testing::folder().unwrap(),
        };
        files.write("sae.pem", &identity.certificate);
        files.write("sae.key", &identity.key);
        files.write("ca.pem", trusted);
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).unwrap();
        // Others may not write it, whatever the umask is.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        if Path::new(name)
            .extension()
            .is_some_and(|kind| kind == "key")
        {
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        path
    }

    pub(crate) fn setup(&self, url: &str) -> Setup {
        Setup {
            url: url.to_owned(),
            sae: "gw1".to_owned(),
            certificate: self.path("sae.pem"),
            key: self.path("sae.key"),
            ca: self.path("ca.pem"),
            timeout: PLENTY,
        }
    }
}

pub(crate) fn url(address: SocketAddr) -> String {
    format!("https://{address}")
}

/// On one thread, as in the encryptor.
pub(crate) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
        .block_on(future)
}

#[test]
fn a_mistake_in_the_setup_is_reported() {
    let authority = Authority::new("CA");
    let files = Files::new(&authority.issue(&["gw1"]), &authority.pem());
    let good = files.setup("https://127.0.0.1:1");
    let error_of = |change: &dyn Fn(&mut Setup)| {
        let mut setup = good.clone();
        change(&mut setup);
        Kme::new(&setup).unwrap_err().to_string()
    };
    let kme = Kme::new(&good).unwrap();
    assert_eq!((kme.sae(), kme.url()), ("gw1", "https://127.0.0.1:1"));

    let other = files.write("other.key", &authority.issue(&["gw1"]).key);
    let error = error_of(&|setup| setup.key = other.clone());
    assert!(error.contains("does not match the certificate"), "{error}");
    let error = error_of(&|setup| setup.ca = files.path("none.pem"));
    assert!(error.contains("none.pem cannot be read"), "{error}");
    let error = error_of(&|setup| setup.certificate = files.path("sae.key"));
    assert!(error.contains("holds no certificate"), "{error}");
    let error = error_of(&|setup| setup.key = files.path("ca.pem"));
    assert!(error.contains("has mode 0"), "{error}");
    let error = error_of(&|setup| setup.sae = "a\nb".to_owned());
    assert!(error.contains(r#"SAE id "a\nb" cannot be used"#), "{error}");
    let error = error_of(&|setup| setup.timeout = Duration::ZERO);
    assert!(error.contains("timeout of 0 s"), "{error}");

    let mut setup = good.clone();
    setup.url = "ftp://x".to_owned();
    assert!(matches!(Kme::new(&setup), Err(SetupError::Url { .. })));
}
