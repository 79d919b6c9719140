//! The configuration of IKEv2.

use encryptor::Config;
use encryptor::config::IkeRole;
use ike::crypto::{Cipher, Integrity, KeMethodKind, Prf};
use ike::message::{Identity, IdentityType};
use ike::session::IkeSuite;
use std::path::Path;
use std::time::Duration;

const SMALLEST: &str = "\
local: 192.0.2.1
remote: 192.0.2.2
keys: { ike: { identity: gw1.example, peer: gw2.example, psk: gw.psk } }
tunnel: { routes: 10.2.0.0/24 }
";

fn config(text: &str) -> Config {
    Config::from_text("gw1.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn mistakes(text: &str) -> String {
    match Config::from_text("gw1.yaml", text) {
        Ok(_) => panic!("accepted: {text}"),
        Err(mistakes) => mistakes.to_string(),
    }
}

/// The smallest file, with `more` behind the key.
fn with(more: &str) -> String {
    SMALLEST.replace("psk: gw.psk", &format!("psk: gw.psk, {more}"))
}

#[test]
fn without_a_shared_key_the_certificate_of_the_file_is_used() {
    let text = SMALLEST.replace("psk: gw.psk", "crl: [a.crl, b.crl]")
        + "identity: { certificate: gw1.pem, key: gw1.key, ca: ca.pem }\n";
    let config = config(&text);
    let (_, _, ike) = config.ikes().next().unwrap();
    assert_eq!((&ike.psk, config.handshakes().count()), (&None, 0));
    assert_eq!(ike.crls, [Path::new("a.crl"), Path::new("b.crl")]);
    assert_eq!(config.identity.unwrap().key, Path::new("gw1.key"));
}

fn proposals(text: &str) -> Vec<IkeSuite> {
    let config = config(&with(&format!("proposals: {text}")));
    let (_, _, ike) = config.ikes().next().unwrap();
    ike.proposals.clone()
}

#[test]
fn identities_and_a_key_suffice() {
    let config = config(SMALLEST);
    assert_eq!((config.ike_port, config.port), (500, 4500));
    let (place, peer, ike) = config.ikes().next().unwrap();
    assert_eq!((place, peer.id, ike.role), (0, 0, IkeRole::Auto));
    assert_eq!(ike.identity, Identity::fqdn("gw1.example"));
    assert_eq!(ike.peer, Identity::fqdn("gw2.example"));
    assert_eq!(ike.psk.as_deref(), Some(Path::new("gw.psk")));
    let best = IkeSuite {
        cipher: Cipher::AesGcm16 { key_bits: 256 },
        prf: Prf::HmacSha384,
        exchange: KeMethodKind::X25519,
        additional: [Some(KeMethodKind::MlKem768), None, None],
    };
    assert_eq!(ike.proposals, [best]);
    assert_eq!(ike.every, Duration::from_secs(3600));
    assert_eq!(ike.idle, Duration::from_secs(10));
    assert!(ike.ppks.is_empty());
}

#[test]
fn proposals_are_read_in_strongswans_notation() {
    let read = proposals(
        "[aes256gcm16-prfsha384-x25519-ke1_mlkem768-ke2_ecp256, aes128-sha256-ecp256, \
         aes256-sha512-prfsha256-ecp521, chacha20poly1305-prfsha512-mlkem1024]",
    );
    let cbc = |key_bits, integrity| Cipher::AesCbc {
        key_bits,
        integrity,
    };
    let expected = [
        (
            Cipher::AesGcm16 { key_bits: 256 },
            Prf::HmacSha384,
            KeMethodKind::X25519,
            [Some(KeMethodKind::MlKem768), Some(KeMethodKind::P256), None],
        ),
        (
            cbc(128, Integrity::HmacSha256),
            Prf::HmacSha256,
            KeMethodKind::P256,
            [None; 3],
        ),
        (
            cbc(256, Integrity::HmacSha512),
            Prf::HmacSha256,
            KeMethodKind::P521,
            [None; 3],
        ),
        (
            Cipher::ChaCha20Poly1305,
            Prf::HmacSha512,
            KeMethodKind::MlKem1024,
            [None; 3],
        ),
    ];
    let expected = expected.map(|(cipher, prf, exchange, additional)| IkeSuite {
        cipher,
        prf,
        exchange,
        additional,
    });
    assert_eq!(read, expected);
}

#[test]
fn identities_have_the_type_of_their_text() {
    for (text, kind, data) in [
        ("192.0.2.7", IdentityType::IPV4_ADDR, &[192, 0, 2, 7][..]),
        (
            "gw1@example.org",
            IdentityType::RFC822_ADDR,
            b"gw1@example.org",
        ),
        ("gw1", IdentityType::FQDN, b"gw1"),
    ] {
        let config = config(&SMALLEST.replace("gw1.example", text));
        let (_, _, ike) = config.ikes().next().unwrap();
        let data = data.to_vec();
        assert_eq!(ike.identity, Identity { kind, data });
    }
}

#[test]
fn mistakes_are_reported_with_their_place() {
    let proposal = |text: &str| with(&format!("proposals: {text}"));
    for (text, place, what) in [
        (proposal("aes256gcm16-x25519"), "proposals", "has no pseudo-random function"),
        (proposal("aes256gcm16-prfsha384"), "proposals", "has no key exchange"),
        (proposal("aes256-x25519"), "proposals", "has no integrity"),
        (proposal("prfsha256-x25519"), "proposals", "has no cipher"),
        (
            proposal("aes256gcm16-sha256-prfsha256-x25519"),
            "proposals",
            "another integrity",
        ),
        (
            proposal("aes256gcm16-prfsha384-x25519-ecp256"),
            "proposals",
            "a second algorithm of one kind, `ecp256`",
        ),
        (
            proposal("aes256gcm16-prfsha384-x25519-ke2_mlkem768"),
            "proposals",
            "with a gap",
        ),
        (
            proposal("aes256gcm16-prfsha384-modp2048"),
            "proposals",
            "an unknown part `modp2048`",
        ),
        (proposal("[]"), "proposals", "the list is empty"),
        (
            SMALLEST.replace("gw1.example", "\"gw 1\""),
            "identity",
            "is not an identity",
        ),
        (
            SMALLEST.to_owned() + "workers: 2\n",
            "(keys.ike)",
            "there are 2 workers",
        ),
        (
            SMALLEST.to_owned() + "aggregate: on\n",
            "(keys.ike)",
            "USE_AGGFRAG",
        ),
        (
            SMALLEST.to_owned() + "suite: null-hmac-sha1\ninsecure: on\n",
            "(keys.ike)",
            "does not negotiate the suite",
        ),
        (
            SMALLEST.replace("tunnel: { routes: 10.2.0.0/24 }", "mode: l2\ninterface: eth1"),
            "(keys.ike)",
            "not of frames",
        ),
        (
            SMALLEST.replace("{ ike: {", "{ static: gw1.key, ike: {"),
            "(keys.ike)",
            "several sources",
        ),
        (
            SMALLEST.replace(", psk: gw.psk", ""),
            "(keys.ike)",
            "neither a shared key nor a certificate",
        ),
        (with("crl: ca.crl"), "(keys.ike.crl)", "`crl` does nothing"),
        (
            SMALLEST.to_owned() + "identity: { certificate: a, key: b, ca: c }\n",
            "(identity)",
            "does nothing",
        ),
        (
            SMALLEST.replace(
                "{ ike: { identity: gw1.example, peer: gw2.example, psk: gw.psk } }",
                "{ static: gw1.key }",
            ) + "ike_port: 501\n",
            "(ike_port)",
            "does nothing",
        ),
        (
            SMALLEST.to_owned() + "ike_port: 4500\n",
            "(ike_port)",
            "is the port of ESP",
        ),
        (
            "local: 192.0.2.1\npeers:\n".to_owned()
                + &["10.2.0.0/24", "10.3.0.0/24"].map(|route| {
                    format!(
                        "- remote: 192.0.2.2\n  routes: {route}\n  keys: {{ ike: {{ identity: a, peer: b, psk: p }} }}\n"
                    )
                }).concat(),
            "(peers[1]",
            "two tunnels with IKE have the peer 192.0.2.2",
        ),
    ] {
        let message = mistakes(&text);
        assert!(message.contains(place), "{place}: {message}\n{text}");
        assert!(message.contains(what), "{what}: {message}");
    }
}
