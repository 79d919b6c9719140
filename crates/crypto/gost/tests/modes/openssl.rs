//! The distribution's OpenSSL engine (`libengine-gost-openssl`): an implementation that shares no
//! code with this crate or RustCrypto.
//!
//! One process computes many lengths: in all these modes the ciphertext of a shorter text is a
//! prefix of a longer one's, and `openssl dgst` takes many files.
//!
//! Keys, IVs and texts are drawn from a seed, which is printed; `GOST_SEED` sets it.
//!
//! Not in this engine, and tested elsewhere (`agreement`, `composed`, `vectors`): MGM, ECB with
//! Magma and with GOST 28147-89, IVs of several blocks, sections of other lengths, MACs of GOST
//! 28147-89 longer than 4 B, and its counter mode with other S-boxes than two. Its modes that this
//! crate lacks (CFB, OFB, key wrapping) are not tested.

use crate::support::{hex, kernels, key, noise, unhex};
use gost::kuznyechik::Kuznyechik;
use gost::magma::{Gost89, Magma, Sbox};
use gost::mode::{Cbc, Cnt, Ctr, CtrAcpkm, Ecb, Imito, Omac};
use gost::{BlockCipher, KEY_BYTES};
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

/// The longest text: past all sections whose ciphers CTR-ACPKM keeps, of which there are 16 of 4096
/// B with Kuznyechik.
const BYTES_MAX: usize = 80 << 10;
/// Sets of a key, an IV and a text.
const SETS: u64 = 4;

/// A text with its key and IV.
pub(crate) struct Set {
    pub(crate) key: [u8; KEY_BYTES],
    pub(crate) iv: Vec<u8>,
    pub(crate) text: Vec<u8>,
}

/// Random sets. The seed is in the output of a failed test.
pub(crate) fn sets() -> impl Iterator<Item = Set> {
    let seed = std::env::var("GOST_SEED").map_or_else(
        |_| {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.expect("a time after 1970").as_nanos() as u64
        },
        |seed| seed.parse().expect("GOST_SEED is a number"),
    );
    eprintln!("drawn from GOST_SEED={seed}");
    (0..SETS).map(move |set| {
        let seed = seed.wrapping_add(set << 60);
        Set {
            key: key(seed),
            iv: noise(seed ^ 1, 16),
            text: noise(seed ^ 2, BYTES_MAX),
        }
    })
}

/// Whether the engine is installed. Fails in CI if not.
pub(crate) fn engine() -> bool {
    let listed = Command::new("openssl")
        .args(["engine", "-t", "gost"])
        .output();
    let there = listed.is_ok_and(|listed| {
        listed.status.success() && String::from_utf8_lossy(&listed.stdout).contains("[ available ]")
    });
    if !there {
        testing::lacks(
            "agreement with OpenSSL's engine gost",
            "engine gost of OpenSSL",
            "apt install libengine-gost-openssl",
        );
    }
    there
}

/// The output of `openssl enc` for a text.
pub(crate) fn enc(
    cipher: &str,
    decrypt: bool,
    key: &[u8; KEY_BYTES],
    iv: &[u8],
    text: &[u8],
) -> Vec<u8> {
    enc_with(None, cipher, decrypt, key, iv, text)
}

/// As [`openssl`], with the S-boxes of that name where the cipher allows a choice.
fn enc_with(
    sbox: Option<&str>,
    cipher: &str,
    decrypt: bool,
    key: &[u8; KEY_BYTES],
    iv: &[u8],
    text: &[u8],
) -> Vec<u8> {
    let mut openssl = Command::new("openssl")
        .envs(sbox.map(|name| ("CRYPT_PARAMS", name)))
        .args(["enc", "-engine", "gost", "-nopad", &format!("-{cipher}")])
        .args(decrypt.then_some("-d"))
        .args(["-K", &hex(key)])
        .args(
            (!iv.is_empty())
                .then(|| ["-iv".to_owned(), hex(iv)])
                .into_iter()
                .flatten(),
        )
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl runs, as it just did");
    let mut stdin = openssl.stdin.take().expect("piped");
    let out = std::thread::scope(|scope| {
        scope.spawn(move || stdin.write_all(text).expect("openssl reads it all"));
        openssl.wait_with_output().expect("openssl's output")
    });
    assert!(
        out.status.success(),
        "{cipher}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    out.stdout
}

/// The MACs of prefixes of `text` of these lengths, with the S-boxes of that name.
fn dgst(
    sbox: Option<&str>,
    mac: &str,
    key: &[u8; KEY_BYTES],
    text: &[u8],
    lengths: &[usize],
) -> Vec<Vec<u8>> {
    let folder = tempfile::tempdir().expect("a folder");
    // For the first file this version of the engine prints a wrong MAC of Kuznyechik: it uses
    // Magma.
    let files: Vec<_> = [&0]
        .into_iter()
        .chain(lengths)
        .enumerate()
        .map(|(at, bytes)| {
            let file = folder.path().join(at.to_string());
            std::fs::write(&file, &text[..*bytes]).expect("a file");
            file
        })
        .collect();
    let out = Command::new("openssl")
        .args(["dgst", "-engine", "gost", "-mac", mac, "-macopt"])
        .arg(format!("hexkey:{}", hex(key)))
        .args(
            sbox.map(|name| ["-macopt".to_owned(), format!("paramset:{name}")])
                .into_iter()
                .flatten(),
        )
        .args(&files)
        .output()
        .expect("openssl runs, as it just did");
    assert!(
        out.status.success(),
        "{mac}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    let lines = String::from_utf8(out.stdout).expect("text");
    let macs = lines
        .lines()
        .map(|line| unhex(line.rsplit(' ').next().expect("a MAC")));
    let macs: Vec<_> = macs.skip(1).collect();
    assert_eq!(macs.len(), lengths.len(), "{lines}");
    macs
}

/// Every length to 300, and some beyond.
fn lengths() -> Vec<usize> {
    let long = [
        1408, 4095, 4096, 4097, 8192, 9000, 16_385, 65_537, BYTES_MAX,
    ];
    (0..=300).chain(long).collect()
}

/// Compares a mode, which takes multiples of `unit` bytes, with OpenSSL's output for a long text.
fn agree(name: &str, unit: usize, expected: &[u8], text: &[u8], mut mode: impl FnMut(&mut [u8])) {
    let fits = |bytes: &usize| bytes.is_multiple_of(unit) && *bytes <= expected.len();
    for bytes in lengths().into_iter().filter(fits) {
        let mut found = text[..bytes].to_vec();
        mode(&mut found);
        // Prints only the difference: the texts have megabytes.
        if found != expected[..bytes] {
            assert_eq!(hex(&found), hex(&expected[..bytes]), "{name} of {bytes} B");
        }
    }
}

#[test]
fn keystreams_equal_those_of_openssl() {
    if !engine() {
        return;
    }
    for Set { key, iv, text } in sets() {
        let (iv, half) = (&iv[..8], &iv[..4]);
        let with = |cipher: &str, iv: &[u8]| enc(cipher, false, &key, iv, &text);
        let magma = with("magma-ctr", half);
        let kuznyechik = with("kuznyechik-ctr", iv);
        // The engine's default interval of key changes.
        let magma_acpkm = with("magma-ctr-acpkm", half);
        let kuznyechik_acpkm = with("kuznyechik-ctr-acpkm", iv);
        for kernel in kernels() {
            let mut mode = Ctr::new(Magma::new(&key, kernel));
            agree("magma-ctr", 1, &magma, &text, |text| mode.apply(half, text));
            let mut mode = Ctr::new(Kuznyechik::new(&key, kernel));
            agree("kuznyechik-ctr", 1, &kuznyechik, &text, |text| {
                mode.apply(iv, text)
            });
            let mut mode = CtrAcpkm::<Magma>::new(&key, kernel, 1024);
            agree("magma-ctr-acpkm", 1, &magma_acpkm, &text, |text| {
                mode.apply(half, text)
            });
            let mut mode = CtrAcpkm::<Kuznyechik>::new(&key, kernel, 4096);
            agree(
                "kuznyechik-ctr-acpkm",
                1,
                &kuznyechik_acpkm,
                &text,
                |text| mode.apply(iv, text),
            );
        }
    }
}

#[test]
fn blocks_and_chains_equal_those_of_openssl() {
    if !engine() {
        return;
    }
    for Set { key, iv, text } in sets() {
        let with = |cipher: &str, iv: &[u8]| enc(cipher, false, &key, iv, &text);
        let ecb = with("kuznyechik-ecb", &[]);
        let kuznyechik = with("kuznyechik-cbc", &iv);
        let magma = with("magma-cbc", &iv[..8]);
        assert_eq!(enc("magma-cbc", true, &key, &iv[..8], &magma), text);
        for kernel in kernels() {
            let mut mode = Ecb::new(Kuznyechik::new(&key, kernel));
            agree("kuznyechik-ecb", 16, &ecb, &text, |text| mode.encrypt(text));
            agree("kuznyechik-ecb, back", 16, &text, &ecb, |text| {
                mode.decrypt(text)
            });
            let mut mode = Cbc::new(Kuznyechik::new(&key, kernel));
            agree("kuznyechik-cbc", 16, &kuznyechik, &text, |text| {
                mode.encrypt(&iv, text)
            });
            agree("kuznyechik-cbc, back", 16, &text, &kuznyechik, |text| {
                mode.decrypt(&iv, text)
            });
            let mut mode = Cbc::new(Magma::new(&key, kernel));
            agree("magma-cbc", 8, &magma, &text, |text| {
                mode.encrypt(&iv[..8], text)
            });
            agree("magma-cbc, back", 8, &text, &magma, |text| {
                mode.decrypt(&iv[..8], text)
            });
        }
    }
}

#[test]
fn macs_equal_those_of_openssl() {
    if !engine() {
        return;
    }
    let lengths = lengths();
    for Set { key, text, .. } in sets() {
        let magma = dgst(None, "magma-mac", &key, &text, &lengths);
        let kuznyechik = dgst(None, "kuznyechik-mac", &key, &text, &lengths);
        for kernel in kernels() {
            let mut omac = Omac::new(Magma::new(&key, kernel));
            for (bytes, expected) in lengths.iter().zip(&magma) {
                let mut mac = [0; 8];
                omac.mac(&text[..*bytes], &mut mac);
                assert_eq!(hex(&mac), hex(expected), "magma of {bytes} B with {kernel}");
            }
            let mut omac = Omac::new(Kuznyechik::new(&key, kernel));
            for (bytes, expected) in lengths.iter().zip(&kuznyechik) {
                let mut mac = [0; 16];
                omac.mac(&text[..*bytes], &mut mac);
                assert_eq!(
                    hex(&mac),
                    hex(expected),
                    "kuznyechik of {bytes} B with {kernel}"
                );
            }
        }
    }
}

/// To 1024 bytes: then the engine changes its keys as CryptoPro's programs do, which is not part of
/// the standard.
#[test]
fn gost_28147_89_equals_that_of_openssl() {
    if !engine() {
        return;
    }
    let lengths: Vec<usize> = (0..=300).chain([1023, 1024]).collect();
    for Set { key, iv, text } in sets() {
        let (iv, text) = (&iv[..8], &text[..1024]);
        for (sbox, cipher, mac) in [
            (Sbox::CryptoProA, "gost89-cnt", "gost-mac"),
            (Sbox::Tc26Z, "gost89-cnt-12", "gost-mac-12"),
        ] {
            let keystream = enc(cipher, false, &key, iv, text);
            let macs = dgst(None, mac, &key, text, &lengths);
            for kernel in kernels() {
                let mut cnt = Cnt::new(Gost89::with_sbox(&key, sbox, kernel));
                agree(cipher, 1, &keystream, text, |text| cnt.apply(iv, text));
                same_macs(Gost89::with_sbox(&key, sbox, kernel), text, &lengths, &macs);
            }
        }
    }
}

/// All S-boxes, in the modes in which the engine offers a choice.
#[test]
fn s_boxes_equal_those_of_openssl() {
    if !engine() {
        return;
    }
    let lengths: Vec<usize> = (0..=40).chain([1024]).collect();
    for Set { key, iv, text } in sets() {
        let (iv, text) = (&iv[..8], &text[..1024]);
        for sbox in Sbox::ALL {
            let name = Some(match sbox {
                Sbox::Tc26Z => "id-tc26-gost-28147-param-Z",
                Sbox::Test => "id-Gost28147-89-TestParamSet",
                Sbox::CryptoProA => "id-Gost28147-89-CryptoPro-A-ParamSet",
                Sbox::CryptoProB => "id-Gost28147-89-CryptoPro-B-ParamSet",
                Sbox::CryptoProC => "id-Gost28147-89-CryptoPro-C-ParamSet",
                Sbox::CryptoProD => "id-Gost28147-89-CryptoPro-D-ParamSet",
            });
            let cbc = enc_with(name, "gost89-cbc", false, &key, iv, text);
            let macs = dgst(name, "gost-mac", &key, text, &lengths);
            for kernel in kernels() {
                let mut mode = Cbc::new(Gost89::with_sbox(&key, sbox, kernel));
                agree(sbox.name(), 8, &cbc, text, |text| mode.encrypt(iv, text));
                agree(sbox.name(), 8, text, &cbc, |text| mode.decrypt(iv, text));
                same_macs(Gost89::with_sbox(&key, sbox, kernel), text, &lengths, &macs);
            }
        }
    }
}

/// Compares the MACs of prefixes of `text` with OpenSSL's.
fn same_macs(cipher: Gost89, text: &[u8], lengths: &[usize], expected: &[Vec<u8>]) {
    let kernel = cipher.kernel();
    let mut imito = Imito::new(cipher);
    for (bytes, expected) in lengths.iter().zip(expected) {
        let mut found = [0; 4];
        imito.mac(&text[..*bytes], &mut found);
        assert_eq!(hex(&found), hex(expected), "MAC of {bytes} B with {kernel}");
    }
}
