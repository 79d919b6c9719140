//! Official vectors: `vectors/gost-modes.txt`.

use crate::support::{hex, kernels, unhex};
use gost::kuznyechik::Kuznyechik;
use gost::magma::{Gost89, Magma, Sbox};
use gost::mode::{Cbc, Cnt, Ctr, CtrAcpkm, Ecb, Imito, Mgm, Omac};
use gost::{BlockCipher, KEY_BYTES, Kernel};
use std::collections::{BTreeMap, BTreeSet};

/// One vector: its fields by name.
struct Vector(BTreeMap<String, String>);

impl Vector {
    fn text(&self, field: &str) -> &str {
        let found = self.0.get(field);
        found.unwrap_or_else(|| panic!("{:?} has no {field}", self.0))
    }

    fn bytes(&self, field: &str) -> Vec<u8> {
        unhex(self.text(field))
    }

    fn key(&self) -> [u8; KEY_BYTES] {
        self.bytes("key").try_into().expect("a key of 32 B")
    }

    #[track_caller]
    fn check(&self, kernel: Kernel, found: &[u8], field: &str) {
        let expected = self.bytes(field);
        let name = self.text("name");
        assert_eq!(hex(found), hex(&expected), "{name} with {kernel}: {field}");
    }
}

/// Reads a file in the format of `vectors/README.md`.
fn read(file: &str) -> Vec<Vector> {
    let mut vectors = vec![Vector(BTreeMap::new())];
    let mut field = String::new();
    for line in file.lines().filter(|line| !line.starts_with('#')) {
        let Vector(fields) = vectors.last_mut().expect("there is always one");
        if line.is_empty() {
            vectors.push(Vector(BTreeMap::new()));
        } else if let Some(more) = line.strip_prefix("  ") {
            fields
                .get_mut(&field)
                .expect("a field above")
                .push_str(more);
        } else {
            let (name, value) = line.split_once('=').expect("field = value");
            field = name.trim().to_owned();
            fields.insert(field.clone(), value.trim().to_owned());
        }
    }
    vectors.retain(|Vector(fields)| !fields.is_empty());
    vectors
}

#[test]
fn every_official_vector_passes() {
    let vectors = read(include_str!("../../../../../vectors/gost-modes.txt"));
    let mut modes = BTreeSet::new();
    for vector in &vectors {
        for kernel in kernels() {
            match vector.text("cipher") {
                "magma" => check::<Magma>(vector, kernel),
                "kuznyechik" => check::<Kuznyechik>(vector, kernel),
                "gost89" => check_gost89(vector, kernel),
                other => panic!("there is no cipher {other}"),
            }
        }
        modes.insert((vector.text("cipher"), vector.text("mode")));
    }
    // Both ciphers in six modes, and GOST 28147-89 in the two of its own.
    assert_eq!(modes.len(), 14, "{modes:?}");
}

fn check<C: BlockCipher>(vector: &Vector, kernel: Kernel) {
    let key = vector.key();
    let cipher = C::new(&key, kernel);
    match vector.text("mode") {
        "ecb" => {
            let mut mode = Ecb::new(cipher);
            let mut text = vector.bytes("plaintext");
            mode.encrypt(&mut text);
            vector.check(kernel, &text, "sealed");
            mode.decrypt(&mut text);
            vector.check(kernel, &text, "plaintext");
        }
        "ctr" => {
            let mut mode = Ctr::new(cipher);
            let mut text = vector.bytes("plaintext");
            mode.apply(&vector.bytes("iv"), &mut text);
            vector.check(kernel, &text, "sealed");
            mode.apply(&vector.bytes("iv"), &mut text);
            vector.check(kernel, &text, "plaintext");
        }
        "ctr-acpkm" => {
            let section = vector.text("section").parse().expect("a number");
            let mut mode = CtrAcpkm::<C>::new(&key, kernel, section);
            let mut text = vector.bytes("plaintext");
            mode.apply(&vector.bytes("iv"), &mut text);
            vector.check(kernel, &text, "sealed");
            mode.apply(&vector.bytes("iv"), &mut text);
            vector.check(kernel, &text, "plaintext");
        }
        "cbc" => {
            let mut mode = Cbc::new(cipher);
            let mut text = vector.bytes("plaintext");
            mode.encrypt(&vector.bytes("iv"), &mut text);
            vector.check(kernel, &text, "sealed");
            mode.decrypt(&vector.bytes("iv"), &mut text);
            vector.check(kernel, &text, "plaintext");
        }
        "omac" => {
            let mut mode = Omac::new(cipher);
            let (data, expected) = (vector.bytes("data"), vector.bytes("mac"));
            let mut mac = vec![0; expected.len()];
            mode.mac(&data, &mut mac);
            vector.check(kernel, &mac, "mac");
            assert!(mode.verify(&data, &mac), "{}", vector.text("name"));
            mac[0] ^= 1;
            assert!(!mode.verify(&data, &mac), "{}", vector.text("name"));
        }
        "mgm" => {
            let mut mode = Mgm::new(cipher);
            let (nonce, aad) = (vector.bytes("nonce"), vector.bytes("aad"));
            let mut sealed = vector.bytes("plaintext");
            let bytes = sealed.len();
            sealed.resize(bytes + Mgm::<C>::TAG_BYTES, 0);
            let (text, tag) = sealed.split_at_mut(bytes);
            mode.seal(&nonce, &aad, text, tag);
            vector.check(kernel, &sealed, "sealed");
            let (text, tag) = sealed.split_at_mut(bytes);
            assert!(
                mode.open(&nonce, &aad, text, tag),
                "{}",
                vector.text("name")
            );
            vector.check(kernel, text, "plaintext");
        }
        other => panic!("there is no mode {other}"),
    }
}

fn check_gost89(vector: &Vector, kernel: Kernel) {
    let sbox = vector.text("sbox");
    let sbox = Sbox::ALL.into_iter().find(|known| known.name() == sbox);
    let cipher = Gost89::with_sbox(&vector.key(), sbox.expect("one of ours"), kernel);
    match vector.text("mode") {
        "cnt" => {
            let mut text = vector.bytes("plaintext");
            Cnt::new(cipher).apply(&vector.bytes("iv"), &mut text);
            vector.check(kernel, &text, "sealed");
        }
        "imito" => {
            let mut mac = vec![0; vector.bytes("mac").len()];
            Imito::new(cipher).mac(&vector.bytes("data"), &mut mac);
            vector.check(kernel, &mac, "mac");
        }
        other => panic!("GOST 28147-89 has no mode {other} of its own"),
    }
}
