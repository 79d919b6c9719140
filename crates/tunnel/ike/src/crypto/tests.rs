//! Known answers, round trips of both sides, and sabotage.

use super::*;
use crate::message::{
    AuthMethod, Encryption, Exchange, Header, IntegrityId, KeMethod, Message, Payload, PayloadType,
    emit_payloads,
};
use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::signature::{self, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RsaKeyPair};
use std::collections::BTreeMap;
use zeroize::Zeroizing;

/// The records of `vectors/ikev2.txt`.
fn records() -> Vec<BTreeMap<String, String>> {
    let text = include_str!("../../../../../vectors/ikev2.txt");
    let mut records = vec![BTreeMap::new()];
    let mut field = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let record = records.last_mut().unwrap();
        if line.is_empty() {
            records.push(BTreeMap::new());
        } else if let Some(more) = line.strip_prefix("  ") {
            *record.entry(field.clone()).or_default() += more;
        } else {
            let (name, value) = line.split_once('=').unwrap();
            field = name.trim().to_owned();
            record.insert(field.clone(), value.trim().to_owned());
        }
    }
    records.retain(|record| !record.is_empty());
    records
}

fn prf_of(name: &str) -> Prf {
    match name {
        "hmac-sha1" => Prf::HmacSha1,
        "hmac-sha256" => Prf::HmacSha256,
        "hmac-sha384" => Prf::HmacSha384,
        "hmac-sha512" => Prf::HmacSha512,
        "aes-cmac" => Prf::AesCmac,
        _ => panic!("{name}"),
    }
}

#[test]
fn official_vectors_are_reproduced() {
    let mut done = BTreeMap::new();
    for record in records() {
        let prf = prf_of(&record["prf"]);
        let bytes = |field: &str| base16ct::lower::decode_vec(&record[field]).unwrap();
        let name = &record["name"];
        match record["operation"].as_str() {
            "prf" => {
                let data = bytes("data");
                let (one, another) = data.split_at(data.len() / 3);
                let output = prf.compute(&bytes("key"), &[one, another]);
                assert_eq!(*output, bytes("output"), "{name}");
            }
            "prf+" => {
                let output = bytes("output");
                let found = prf.plus(&bytes("key"), &[&bytes("data")], output.len());
                assert_eq!(*found, output, "{name}");
            }
            _ => ike(prf, bytes),
        }
        *done.entry(record["operation"].clone()).or_insert(0) += 1;
    }
    assert_eq!(done.values().sum::<i32>(), 10, "{done:?}");
}

fn ike(prf: Prf, bytes: impl Fn(&str) -> Vec<u8>) {
    let spi = |field| u64::from_be_bytes(bytes(field).try_into().unwrap());
    let transcript = Transcript {
        initiator_nonce: bytes("initiator-nonce"),
        responder_nonce: bytes("responder-nonce"),
        initiator_spi: spi("initiator-spi"),
        responder_spi: spi("responder-spi"),
    };
    let (secret, new) = (bytes("secret"), bytes("new-secret"));
    // Key sizes of this suite: 20 + 2·20 + 2·16 + 2·20 = 132 bytes, as in the vector.
    let cipher = Cipher::AesCbc {
        key_bits: 128,
        integrity: Integrity::HmacSha1,
    };
    let keys = IkeKeys::initial(prf, cipher, &transcript, &secret);
    let all = [
        keys.derivation.as_slice(),
        &keys.integrity[0],
        &keys.integrity[1],
        &keys.encryption[0],
        &keys.encryption[1],
        &keys.auth[0],
        &keys.auth[1],
    ];
    assert_eq!(all.concat(), bytes("keys"));
    let nonces = (
        transcript.initiator_nonce.as_slice(),
        transcript.responder_nonce.as_slice(),
    );
    let child = child_keymat(prf, &keys.derivation, &[], nonces, 132);
    assert_eq!(*child, bytes("child"));
    let secrets = [Zeroizing::new(new)];
    let child = child_keymat(prf, &keys.derivation, &secrets, nonces, 132);
    assert_eq!(*child, bytes("child-exchange"));
    // The vector ends at SKEYSEED.
    let rekeyed = keys.rekeyed(prf, (prf, cipher), &transcript, &secrets);
    let material = prf.plus(
        &bytes("rekeyed"),
        &[
            nonces.0,
            nonces.1,
            &transcript.initiator_spi.to_be_bytes(),
            &transcript.responder_spi.to_be_bytes(),
        ],
        20,
    );
    assert_eq!(rekeyed.derivation, material);
}

fn transcript() -> Transcript {
    Transcript {
        initiator_nonce: vec![1; 32],
        responder_nonce: vec![2; 32],
        initiator_spi: 3,
        responder_spi: 4,
    }
}

/// The definitions of RFC 9370, RFC 8784 and RFC 9867, written as they print them.
#[test]
fn additional_exchanges_and_ppks_follow_their_definitions() {
    let prf = Prf::HmacSha384;
    let cipher = Cipher::AesGcm16 { key_bits: 256 };
    let t = transcript();
    let (ni, nr) = (&t.initiator_nonce, &t.responder_nonce);
    let keys = IkeKeys::initial(prf, cipher, &t, b"first");
    let expanded = |seed: &[u8]| {
        let spis = [3u64.to_be_bytes(), 4u64.to_be_bytes()].concat();
        prf.plus(seed, &[ni, nr, &spis], 48 + 2 * 36 + 2 * 48)
    };
    let joined = |keys: &IkeKeys| {
        let [ei, er] = &keys.encryption;
        let [pi, pr] = &keys.auth;
        Zeroizing::new([keys.derivation.as_slice(), ei, er, pi, pr].concat())
    };
    let seed = prf.compute(&keys.derivation, &[b"second", ni, nr]);
    let second = keys.after_exchange(prf, cipher, &t, b"second");
    assert_eq!(joined(&second), expanded(&seed));
    let seed = prf.plus(b"ppk", &[&keys.derivation], 48);
    assert_eq!(
        joined(&keys.after_ppk(prf, cipher, &t, b"ppk")),
        expanded(&seed)
    );
    let mixed = keys.with_ppk(prf, b"ppk");
    assert_eq!(mixed.derivation, seed);
    assert_eq!(mixed.auth[1], prf.plus(b"ppk", &[&keys.auth[1]], 48));
    assert_eq!(mixed.encryption, keys.encryption);
    let secrets = [b"one", b"two", b"six"].map(|it| Zeroizing::new(it.to_vec()));
    let seed = prf.compute(&keys.derivation, &[b"one", ni, nr, b"two", b"six"]);
    let rekeyed = keys.rekeyed(prf, (prf, cipher), &t, &secrets);
    assert_eq!(joined(&rekeyed), expanded(&seed));
    let child = child_keymat(prf, &keys.derivation, &secrets, (ni, nr), 72);
    assert_eq!(
        child,
        prf.plus(&keys.derivation, &[b"one", ni, nr, b"twosix"], 72)
    );
    let confirmation = ppk_confirmation(prf, b"ppk", &t);
    let spis = [3u64.to_be_bytes(), 4u64.to_be_bytes()].concat();
    assert_eq!(confirmation, prf.compute(b"ppk", &[ni, nr, &spis])[..8]);
    assert!(!format!("{keys:?}").contains('['), "shows no key");
}

fn ciphers() -> Vec<Cipher> {
    let mut all = vec![Cipher::ChaCha20Poly1305];
    for key_bits in [128, 192, 256] {
        all.push(Cipher::AesGcm16 { key_bits });
        for integrity in [
            Integrity::HmacSha1,
            Integrity::HmacSha256,
            Integrity::HmacSha384,
            Integrity::HmacSha512,
        ] {
            all.push(Cipher::AesCbc {
                key_bits,
                integrity,
            });
        }
    }
    all
}

fn header() -> Header {
    Header {
        initiator_spi: 1,
        responder_spi: 2,
        exchange: Exchange::IKE_AUTH,
        from_initiator: true,
        is_response: false,
        message_id: 1,
    }
}

/// The encrypted body of a message.
fn body_bytes(datagram: &[u8]) -> usize {
    match &Message::parse(datagram).unwrap().payloads[0] {
        Payload::Encrypted { body, .. } | Payload::Fragment { body, .. } => body.len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_sealed_message_is_opened_and_every_changed_bit_is_noticed() {
    for cipher in ciphers() {
        let encryption = vec![7; cipher.encryption_key_bytes()];
        let integrity = vec![8; cipher.integrity_key_bytes()];
        let keys = CipherKeys {
            encryption: &encryption,
            integrity: &integrity,
        };
        let iv = vec![9; cipher.iv_bytes()];
        for (inner, fragment) in [
            (0, None),
            (1, Some((2, 3))),
            (15, None),
            (16, None),
            (300, None),
        ] {
            let inner = vec![0x5a; inner];
            let first = if fragment.is_some() {
                PayloadType::NONE
            } else {
                PayloadType::AUTH
            };
            let sealed = seal(cipher, keys, header(), (first, &inner), fragment, &iv).unwrap();
            let body = body_bytes(&sealed);
            assert_eq!(body, cipher.sealed_bytes(inner.len()));
            assert_eq!(*open(cipher, keys, &sealed, body).unwrap(), inner);
            if inner.len() > 1 {
                continue;
            }
            for bit in 0..sealed.len() * 8 {
                let mut changed = sealed.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                let opened = open(cipher, keys, &changed, body);
                assert_eq!(
                    opened.unwrap_err(),
                    OpenError::Integrity,
                    "{cipher:?} {bit}"
                );
            }
        }
        // A text without the length of its padding is possible in form, if not encrypted in blocks.
        for short in 0..cipher.sealed_bytes(0) {
            let is_aead = !matches!(cipher, Cipher::AesCbc { .. });
            let expected = if is_aead && short + 1 == cipher.sealed_bytes(0) {
                OpenError::Integrity
            } else {
                OpenError::Shape
            };
            assert_eq!(open(cipher, keys, &[0; 99], short), Err(expected));
        }
    }
}

#[test]
fn a_padding_beyond_the_payload_is_refused() {
    let cipher = Cipher::ChaCha20Poly1305;
    let key = [7; 36];
    let keys = CipherKeys {
        encryption: &key,
        integrity: &[],
    };
    // The last byte of an unpadded text is the padding's length: seal one byte less.
    let sealed = seal(
        cipher,
        keys,
        header(),
        (PayloadType::NONE, &[]),
        None,
        &[1; 8],
    )
    .unwrap();
    let body = body_bytes(&sealed);
    assert!(open(cipher, keys, &sealed, body).unwrap().is_empty());
    let cbc = Cipher::AesCbc {
        key_bits: 128,
        integrity: Integrity::HmacSha256,
    };
    let keys = CipherKeys {
        encryption: &[1; 16],
        integrity: &[2; 32],
    };
    // Another IV changes the last byte of the only block, and the code is made anew.
    let sealed = seal(
        cbc,
        keys,
        header(),
        (PayloadType::NONE, &[]),
        None,
        &[0; 16],
    )
    .unwrap();
    let mut forged = sealed.clone();
    let at = forged.len() - body_bytes(&sealed);
    forged[at + 15] ^= 0x80;
    let end = forged.len() - 16;
    let code = Prf::HmacSha256.compute(keys.integrity, &[&forged[..end]]);
    forged[end..].copy_from_slice(&code[..16]);
    let opened = open(cbc, keys, &forged, body_bytes(&sealed));
    assert_eq!(opened, Err(OpenError::Padding));
}

#[test]
fn ciphers_are_chosen_by_their_transforms() {
    let of = Cipher::of;
    let gcm = Encryption::AES_GCM_16;
    let sha = Some(IntegrityId::HMAC_SHA2_256_128);
    assert_eq!(
        of(gcm, Some(256), None),
        Some(Cipher::AesGcm16 { key_bits: 256 })
    );
    assert!(of(gcm, Some(256), Some(IntegrityId::NONE)).is_some());
    for refused in [
        of(gcm, None, None),
        of(gcm, Some(64), None),
        of(gcm, Some(128), sha),
        of(Encryption::CHACHA20_POLY1305, Some(256), None),
        of(Encryption::AES_CBC, Some(128), None),
        of(
            Encryption::AES_CBC,
            Some(128),
            Some(IntegrityId::AES_XCBC_96),
        ),
        of(Encryption::TRIPLE_DES, None, sha),
    ] {
        assert_eq!(refused, None);
    }
    assert!(of(Encryption::AES_CBC, Some(192), sha).is_some());
    assert!(of(Encryption::CHACHA20_POLY1305, None, None).is_some());
}

#[test]
fn both_sides_of_every_exchange_have_the_same_secret() {
    let methods = [
        (KeMethod::CURVE25519, 32, 32, 32),
        (KeMethod::ECP_256, 64, 64, 32),
        (KeMethod::ECP_384, 96, 96, 48),
        (KeMethod::ECP_521, 132, 132, 66),
        (KeMethod::ML_KEM_512, 800, 768, 32),
        (KeMethod::ML_KEM_768, 1184, 1088, 32),
        (KeMethod::ML_KEM_1024, 1568, 1568, 32),
    ];
    for (id, request, response, secret) in methods {
        let method = KeMethodKind::of(id).unwrap();
        assert_eq!(method.id(), id);
        let (private, public) = PrivateValue::generate(method).unwrap();
        let (answer, responders) = respond(method, &public).unwrap();
        let sizes = (public.len(), answer.len(), responders.len());
        assert_eq!(sizes, (request, response, secret), "{id}");
        assert_eq!(private.finish(&answer), Ok(responders));
        let invalid = ExchangeError::PublicValue(id);
        for wrong in [&public[..public.len() - 1], &[], &[0xff; 2000]] {
            assert_eq!(respond(method, wrong), Err(invalid), "{id} {}", wrong.len());
            assert_eq!(private.finish(wrong), Err(invalid), "{id} {}", wrong.len());
        }
        // Zero: a point of low order, or not on the curve. ML-KEM answers any ciphertext of the
        // right length with a secret that the peer does not have.
        if secret != 32 || request < 65 {
            assert_eq!(private.finish(&vec![0; response]), Err(invalid), "{id}");
        }
        // ML-KEM: coefficients beyond the modulus (FIPS 203 section 7.2).
        assert_eq!(
            respond(method, &vec![0xff; request]).is_err(),
            id != KeMethod::CURVE25519
        );
    }
    assert_eq!(KeMethodKind::of(KeMethod::MODP_2048), None);
}

#[test]
fn signatures_are_verified_and_wrong_ones_refused() {
    let random = aws_lc_rs::rand::SystemRandom::new();
    let ecdsa = |algorithm| {
        let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref()).unwrap();
        let public: signature::EcdsaPublicKey = pair.public_key().clone();
        let der: aws_lc_rs::encoding::PublicKeyX509Der<'_> = public.as_der().unwrap();
        (key.as_ref().to_vec(), der.as_ref().to_vec())
    };
    let ed25519 = {
        let key = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let pair = Ed25519KeyPair::from_pkcs8(key.as_ref()).unwrap();
        let public: aws_lc_rs::encoding::PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        (key.as_ref().to_vec(), public.as_ref().to_vec())
    };
    let rsa = {
        let pair = RsaKeyPair::generate(aws_lc_rs::rsa::KeySize::Rsa2048).unwrap();
        let key: aws_lc_rs::encoding::Pkcs8V1Der<'_> = pair.as_der().unwrap();
        let public: aws_lc_rs::encoding::PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        (key.as_ref().to_vec(), public.as_ref().to_vec())
    };
    let keys = [
        (
            ecdsa(&signature::ECDSA_P256_SHA256_ASN1_SIGNING),
            SignatureScheme::EcdsaSha256,
        ),
        (
            ecdsa(&signature::ECDSA_P384_SHA384_ASN1_SIGNING),
            SignatureScheme::EcdsaSha384,
        ),
        (
            ecdsa(&signature::ECDSA_P521_SHA512_ASN1_SIGNING),
            SignatureScheme::EcdsaSha512,
        ),
        (ed25519, SignatureScheme::Ed25519),
        (rsa, SignatureScheme::RsaPssSha256),
    ];
    let method = AuthMethod::DIGITAL_SIGNATURE;
    for ((private, public), scheme) in &keys {
        let signer = Signer::from_pkcs8(private).unwrap();
        assert_eq!(signer.scheme(), *scheme);
        let data = signer.sign(b"octets").unwrap();
        assert!(
            verify_signature(method, public, b"octets", &data),
            "{scheme:?}"
        );
        assert!(!verify_signature(method, public, b"0ctets", &data));
        assert!(!verify_signature(AuthMethod::RSA, public, b"octets", &data));
        for ((_, other), _) in keys.iter().filter(|((_, it), _)| it != public) {
            assert!(!verify_signature(method, other, b"octets", &data));
        }
        for at in 0..data.len() {
            let mut changed = data.clone();
            changed[at] ^= 1;
            assert!(
                !verify_signature(method, public, b"octets", &changed),
                "{scheme:?} {at}"
            );
        }
    }
    for broken in [&b""[..], b"\x05", b"\x00", b"\xff\x30"] {
        assert!(!verify_signature(method, &keys[0].0.1, b"octets", broken));
    }
    assert!(Signer::from_pkcs8(b"no key").is_none());
    // RFC 4754: r and s of fixed length.
    let pair = EcdsaKeyPair::generate_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, &random);
    let pair = pair.unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&signature::ECDSA_P256_SHA256_FIXED_SIGNING, pair.as_ref());
    let pair = pair.unwrap();
    let fixed = pair.sign(&random, b"octets").unwrap();
    let key = pair.public_key().as_ref();
    assert!(verify_signature(
        AuthMethod::ECDSA_256,
        key,
        b"octets",
        fixed.as_ref()
    ));
    assert!(!verify_signature(
        AuthMethod::ECDSA_384,
        key,
        b"octets",
        fixed.as_ref()
    ));
}

#[test]
fn a_shared_key_authenticates_all_its_inputs() {
    let prf = Prf::HmacSha256;
    let octets = SignedOctets {
        message: b"message",
        peer_nonce: b"nonce",
        key: b"key",
        identity: b"\x02\0\0\0gw1",
        intermediate: b"",
    };
    let code = shared_key_code(prf, b"secret", &octets);
    assert!(verify_shared_key(prf, b"secret", &octets, &code));
    assert!(!verify_shared_key(prf, b"secreT", &octets, &code));
    assert!(!verify_shared_key(prf, b"secret", &octets, &code[1..]));
    assert!(!verify_shared_key(prf, b"secret", &octets, b""));
    for other in [
        SignedOctets {
            message: b"Message",
            ..octets
        },
        SignedOctets {
            peer_nonce: b"Nonce",
            ..octets
        },
        SignedOctets {
            key: b"Key",
            ..octets
        },
        SignedOctets {
            identity: b"\x02\0\0\0gw2",
            ..octets
        },
        SignedOctets {
            intermediate: b"1",
            ..octets
        },
    ] {
        assert!(!verify_shared_key(prf, b"secret", &other, &code));
    }
}

/// The layout of RFC 9242 figure 1: adjusted lengths, then the inner payloads in plain text.
#[test]
fn an_intermediate_message_is_authenticated_as_if_it_were_not_encrypted() {
    let prf = Prf::HmacSha256;
    let mut inner = Vec::new();
    let first = emit_payloads(&[Payload::Nonce(vec![6; 16])], &mut inner).unwrap();
    let mut expected = vec![0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2];
    expected.extend([46, 0x20, 43, 0x08, 0, 0, 0, 1, 0, 0, 0, 28 + 4 + 20]);
    expected.extend([40, 0, 0, 4 + 20, 0, 0, 0, 20]);
    expected.extend([6; 16]);
    let message = Message {
        header: Header {
            exchange: Exchange::IKE_INTERMEDIATE,
            ..header()
        },
        payloads: vec![Payload::Encrypted {
            first,
            body: vec![1; 99],
        }],
    };
    let code = intermediate_auth(prf, b"key", b"last", &message, &inner).unwrap();
    assert_eq!(code, prf.compute(b"key", &[b"last", &expected]));
}
