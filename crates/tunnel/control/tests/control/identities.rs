//! Valid identities, and the errors of invalid ones.

use crate::support::{Site, write_secret};
use control::Identity;
use pki::{Texts, create_authority, create_certificate, days_from_now};
use rcgen::{CertificateParams, ExtendedKeyUsagePurpose, Issuer, KeyPair};
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::time::{Duration, SystemTime};
use zeroize::Zeroizing;

fn load(site: &Site, name: &str) -> Result<Identity, String> {
    let [certificate, key] = ["pem", "key"].map(|kind| site.path(&format!("{name}.{kind}")));
    Identity::load(&certificate, &key, &site.path("ca.pem")).map_err(|error| error.to_string())
}

/// The error of loading these files, if any.
fn says(texts: &Texts) -> String {
    let site = Site::new();
    site.write("x", texts);
    load(&site, "x").expect_err("it cannot be used")
}

#[test]
fn created_files_are_valid_and_have_the_right_modes() {
    let folder = testing::folder().expect("a folder");
    let path = |name: &str| folder.path().join(name);
    let made = create_authority(folder.path()).expect("an authority");
    assert_eq!(
        [&made.certificate, &made.key],
        [&path("ca.pem"), &path("ca.key")]
    );
    let made =
        create_certificate(folder.path(), "gw1.example", folder.path(), 3).expect("a certificate");
    for key in [&made.key, &path("ca.key")] {
        assert_eq!(fs::metadata(key).expect("a file").mode() & 0o777, 0o600);
    }
    let identity = Identity::load(&made.certificate, &made.key, &path("ca.pem"));
    let identity = identity.expect("an identity");
    assert_eq!(identity.name(), "gw1.example");
    let shown = format!("{identity:?}");
    assert_eq!(shown, "Identity { name: \"gw1.example\", .. }");
}

#[test]
fn a_loaded_authority_signs_like_the_created_one() {
    let site = Site::new();
    write_secret(&site.path("ca.key"), site.authority.texts().key.as_bytes());
    let made = create_certificate(site.folder.path(), "gw7", site.folder.path(), 1);
    made.expect("a certificate");
    assert_eq!(load(&site, "gw7").expect("an identity").name(), "gw7");
    fs::set_permissions(site.path("ca.key"), Permissions::from_mode(0o640)).expect("a file");
    let error = create_certificate(site.folder.path(), "gw8", site.folder.path(), 1);
    let error = error.expect_err("others may read the key").to_string();
    assert!(
        error.contains("mode 0640") && error.contains("chmod 600"),
        "{error}"
    );
}

#[test]
fn a_key_that_others_may_read_is_refused() {
    let site = Site::new();
    site.identity("gw1");
    fs::set_permissions(site.path("gw1.key"), Permissions::from_mode(0o604)).expect("a file");
    let error = load(&site, "gw1").expect_err("others may read it");
    assert!(error.contains("gw1.key has mode 0604"), "{error}");
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let site = Site::new();
    site.identity("gw1");
    site.identity("gw2");
    fs::copy(site.path("gw2.key"), site.path("gw1.key")).expect("a file");
    let error = load(&site, "gw1").expect_err("another key");
    assert!(error.contains("does not match the certificate"), "{error}");
}

#[test]
fn certificates_that_peers_would_reject_are_refused_with_the_reason() {
    let site = Site::new();
    let now = SystemTime::now();
    let day = Duration::from_secs(24 * 60 * 60);
    let cases = [
        (now - 5 * day..now - 3 * day, "it expired 3 days ago"),
        (
            now + 5 * day / 2..now + 9 * day,
            "it is not valid for another 2 days",
        ),
    ];
    for (valid, words) in cases {
        let texts = site.authority.issue("gw1", valid).expect("a certificate");
        site.write("gw1", &texts);
        let error = load(&site, "gw1").expect_err(words);
        assert!(error.contains(words), "{error}");
        assert!(error.contains("gw1.pem"), "{error}");
    }
    let foreign = Site::new().authority.issue("gw1", days_from_now(1));
    let error = says(&foreign.expect("a certificate"));
    assert!(error.contains("has not signed it"), "{error}");
}

#[test]
fn certificates_must_have_one_name_and_serve_both_ends() {
    let both = [
        ExtendedKeyUsagePurpose::ServerAuth,
        ExtendedKeyUsagePurpose::ClientAuth,
    ];
    type Case<'a> = (
        &'a [&'a str],
        &'a [ExtendedKeyUsagePurpose],
        Result<&'a str, &'a str>,
    );
    let cases: [Case<'_>; 8] = [
        (&["gw1"], &both, Ok("gw1")),
        // Without the extension all purposes are allowed (RFC 5280 §4.2.1.12).
        (&["gw1"], &[], Ok("gw1")),
        (&["gw1", "gw2"], &both, Err("2 names (gw1, gw2)")),
        (&["*.example.net"], &both, Err("small letters")),
        (&["10.0.0.1"], &both, Err("no DNS name")),
        (&[], &both, Err("no DNS name")),
        (&["gw1"], &both[..1], Err("not valid for both ends")),
        (&["gw1"], &both[1..], Err("not valid for both ends")),
    ];
    for (names, purposes, expected) in cases {
        let site = Site::new();
        let authority = site.authority.texts();
        let key = KeyPair::from_pem(&authority.key).expect("a key");
        let issuer = Issuer::from_ca_cert_pem(&authority.certificate, key).expect("an issuer");
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names.clone()).expect("names");
        params.extended_key_usages = purposes.to_vec();
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &issuer).expect("a certificate");
        let texts = Texts {
            certificate: certificate.pem(),
            key: Zeroizing::new(key.serialize_pem()),
        };
        site.write("x", &texts);
        match (load(&site, "x"), expected) {
            (Ok(identity), Ok(name)) => assert_eq!(identity.name(), name),
            (Err(error), Err(words)) => assert!(error.contains(words), "{names:?}: {error}"),
            (loaded, _) => panic!("{names:?}, {purposes:?}: {loaded:?}"),
        }
    }
}

#[test]
fn files_with_other_content_are_reported_by_name() {
    let site = Site::new();
    site.identity("gw1");
    let secret = fs::read_to_string(site.path("gw1.key")).expect("a key");
    let cases = [
        ("gw1.pem", &secret[..], "no certificate in PEM"),
        ("gw1.pem", "", "no certificate in PEM"),
        ("gw1.key", "garbage", "no private key in PEM"),
        ("gw1.key", &"x".repeat(100_000), "is it the right file"),
        (
            "ca.pem",
            "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
            "ca.pem: ",
        ),
    ];
    for (file, content, words) in cases {
        let before = fs::read(site.path(file)).expect("a file");
        fs::write(site.path(file), content).expect("a file");
        let error = load(&site, "gw1").expect_err(words);
        assert!(
            error.contains(words) && error.contains(file),
            "{file}: {error}"
        );
        for line in secret.lines().filter(|line| !line.starts_with('-')) {
            assert!(!error.contains(line), "no part of a key is shown");
        }
        fs::write(site.path(file), before).expect("a file");
    }
    fs::remove_file(site.path("gw1.key")).expect("a file");
    let error = load(&site, "gw1").expect_err("it is gone");
    assert!(error.contains("gw1.key cannot be read"), "{error}");
}
