//! Authentication by certificates. Here a certificate is a name and a public key; the program's
//! verifier of X.509 is tested with the program.

use super::world::*;
use crate::crypto::{KeMethodKind, Secret, Signer};
use crate::message::{Identity, NotifyType};
use crate::session::*;
use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};

/// A name in text and a key, or none.
struct Names;

impl Verifier for Names {
    fn verify(&self, chain: &[&[u8]]) -> Result<Subject, String> {
        let end = chain[0].iter().position(|it| *it == 0);
        let (name, key) = chain[0].split_at(end.ok_or("it is not accepted")?);
        Ok(Subject {
            public_key: key[1..].to_vec(),
            identities: vec![Identity::fqdn(str::from_utf8(name).unwrap())],
        })
    }
}

/// A private key with its public one, DER.
fn key(kind: usize) -> (Vec<u8>, Vec<u8>) {
    let random = SystemRandom::new();
    let public = |key: PublicKeyX509Der<'_>| key.as_ref().to_vec();
    match kind {
        0 => {
            let algorithm = &signature::ECDSA_P384_SHA384_ASN1_SIGNING;
            let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
            let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref()).unwrap();
            (
                key.as_ref().to_vec(),
                public(pair.public_key().as_der().unwrap()),
            )
        }
        1 => {
            let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
            let pair = Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap();
            (
                key.as_ref().to_vec(),
                public(pair.public_key().as_der().unwrap()),
            )
        }
        _ => {
            let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
            let key: Pkcs8V1Der<'_> = pair.as_der().unwrap();
            (
                key.as_ref().to_vec(),
                public(pair.public_key().as_der().unwrap()),
            )
        }
    }
}

fn certificate(name: &str, public: &[u8]) -> Vec<u8> {
    [name.as_bytes(), &[0], public].concat()
}

/// Certificates for the name, or another one than the identity.
fn certify(settings: &mut Settings, kind: usize, name: &str) {
    let (private, public) = key(kind);
    settings.datagram = Some(1200);
    settings.authentication = Authentication::Certificates(Certificates {
        signer: Signer::from_pkcs8(&private).unwrap(),
        chain: vec![certificate(name, &public)],
        authorities: vec![[7; 20]],
        verifier: Arc::new(Names),
    });
}

fn certify_both(settings: &mut [Settings; 2], kinds: [usize; 2]) {
    for (settings, kind) in settings.iter_mut().zip(kinds) {
        let name = String::from_utf8(settings.identity.data.clone()).unwrap();
        // Names have no case.
        certify(settings, kind, &name.to_uppercase());
    }
}

fn of(settings: &mut Settings) -> &mut Certificates {
    match &mut settings.authentication {
        Authentication::Certificates(certificates) => certificates,
        Authentication::SharedKey(_) => panic!("no certificates"),
    }
}

#[test]
fn keys_of_all_kinds_authenticate_each_other() {
    for kinds in [[0, 1], [1, 2], [2, 0]] {
        let mut world = set_up(|it| certify_both(it, kinds));
        world.check_child();
        assert_eq!(world.sent, 4, "{kinds:?}");
    }
}

#[test]
fn certificates_and_additional_key_exchanges_and_ppks_go_together() {
    let ppk = |key| Ppk {
        identity: b"one".to_vec(),
        key: Secret::new(vec![key; 32]),
    };
    // The responder lacks the PPK, so it verifies the signature that was made without it.
    for has_both in [true, false] {
        let mut world = set_up(|it| {
            certify_both(it, [0, 0]);
            let ends = if has_both { &mut it[..] } else { &mut it[..1] };
            ends.iter_mut().for_each(|it| it.ppks = vec![ppk(1)]);
            // A responder without any PPK does not support them at all.
            if !has_both {
                let mut other = ppk(2);
                other.identity = b"two".to_vec();
                it[1].ppks = vec![other];
            }
            for settings in it {
                settings.ike[0].additional[0] = Some(KeMethodKind::MlKem768);
                settings.ike.truncate(1);
            }
        });
        world.check_child();
        assert_eq!(world.event(0, &Event::NoPpk), !has_both);
    }
}

/// A change of one end, and a part of the reason why the other one refuses it.
type Fault = (fn(&mut Settings), &'static str);

#[test]
fn only_the_certified_peer_is_accepted() {
    let failed = NotifyType::AUTHENTICATION_FAILED;
    let faults: [Fault; 7] = [
        (
            |it| of(it).signer = Signer::from_pkcs8(&key(0).0).unwrap(),
            "is not that of its certificate",
        ),
        (
            |it| certify(it, 0, "gw3.example"),
            "but of FQDN \"gw3.example\"",
        ),
        (
            |it| it.identity = Identity::fqdn("gw3.example"),
            "is not that of FQDN \"gw3.example\"",
        ),
        (
            |it| of(it).chain = vec![b"strange".to_vec()],
            "the peer's certificate: it is not accepted",
        ),
        (|it| of(it).chain.clear(), "no X.509 certificate"),
        (
            |it| {
                let certificate = of(it).chain[0].clone();
                of(it).chain = vec![certificate; 9];
            },
            "more than 8 certificates",
        ),
        (
            |it| it.authentication = Authentication::SharedKey(Secret::new(vec![1; 32])),
            "a shared key, certificates are configured",
        ),
    ];
    for (change, part) in faults {
        for at in 0..2 {
            let world = set_up(|it| {
                certify_both(it, [0, 0]);
                change(&mut it[at]);
            });
            let Some(Closed::Refused(kind, reason)) = world.closed(1 - at) else {
                panic!("{part}: {:?}", world.outputs)
            };
            assert_eq!(*kind, failed);
            // An initiator knows that it need not even ask.
            if at == 1 && part.starts_with("a shared key") {
                assert!(
                    reason.contains("the peer accepts no signatures"),
                    "{reason}"
                );
                continue;
            }
            assert!(reason.contains(part), "{reason}");
            let peer = world.closed(at);
            assert_eq!(peer, Some(&Closed::RefusedByPeer(failed)), "{part}");
        }
    }
}
