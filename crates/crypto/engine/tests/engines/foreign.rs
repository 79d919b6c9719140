//! Suites with DES, triple DES and HMAC-MD5 on random input, compared with two implementations that
//! share no code with our engines or each other: OpenSSL's and libgcrypt's. Wycheproof has no
//! vectors of these.

use crate::selections;
use base16ct::lower::encode_string;
use engine::Packet;
use libgcrypt::Libgcrypt;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use std::io::Write as _;
use std::process::{Command, Stdio};
use wire::{Cipher, Hmac, Suite};

/// SPI and the low half of the sequence number.
const HEADER_BYTES: usize = 8;

/// A cipher and an HMAC of another implementation.
trait Foreign {
    /// `text` in CBC.
    fn encrypt(&self, cipher: Cipher, key: &[u8], iv: &[u8], text: &[u8]) -> Vec<u8>;
    /// The whole HMAC of `text`.
    fn authenticate(&self, hmac: Hmac, key: &[u8], text: &[u8]) -> Vec<u8>;
}

/// An ESP packet as RFC 4303 describes it, of another implementation's parts.
fn sealed(foreign: &dyn Foreign, suite: Suite, case: &Case) -> Vec<u8> {
    let Suite::EncryptThenMac(cipher, hmac) = suite else {
        panic!("{suite} has no HMAC")
    };
    let (key, hmac_key) = case.keymat.split_at(cipher.key_bytes());
    let mut packet = [&case.header[..], &case.iv].concat();
    match cipher {
        Cipher::Null => packet.extend(&case.text),
        _ => packet.extend(foreign.encrypt(cipher, key, &case.iv, &case.text)),
    }
    let authenticated = [&packet[..], &case.sequence_high.to_be_bytes()].concat();
    let icv = foreign.authenticate(hmac, hmac_key, &authenticated);
    packet.extend(&icv[..hmac.icv_bytes()]);
    packet
}

/// The suites with DES, triple DES or MD5.
fn suites() -> Vec<Suite> {
    let suites = Suite::ALL.into_iter().filter(|suite| {
        matches!(
            suite,
            Suite::EncryptThenMac(Cipher::DesCbc | Cipher::TripleDesCbc, _)
                | Suite::EncryptThenMac(_, Hmac::Md5)
        )
    });
    suites.collect()
}

#[derive(Debug, Clone)]
struct Case {
    keymat: Vec<u8>,
    header: [u8; HEADER_BYTES],
    iv: Vec<u8>,
    text: Vec<u8>,
    sequence_high: u32,
}

/// A suite and input for it.
fn cases() -> impl Strategy<Value = (Suite, Case)> {
    let bytes = |length: usize| prop::collection::vec(any::<u8>(), length);
    let suite = prop::sample::select(suites());
    (suite, 1..1500_usize).prop_flat_map(move |(suite, length)| {
        let text = length.next_multiple_of(suite.pad_to_bytes());
        let parts = (
            bytes(suite.keymat_bytes()),
            any::<[u8; HEADER_BYTES]>(),
            bytes(suite.iv_bytes()),
            bytes(text),
            any::<u32>(),
        );
        let case = parts.prop_map(|(keymat, header, iv, text, sequence_high)| Case {
            keymat,
            header,
            iv,
            text,
            sequence_high,
        });
        (Just(suite), case)
    })
}

/// Compares packets of all engines with those of another implementation.
fn compare(name: &str, foreign: &dyn Foreign, cases_per_suite: u32) {
    let count = cases_per_suite * suites().len() as u32;
    let mut runner = TestRunner::new(ProptestConfig {
        cases: count,
        // A failed case is printed, and small.
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let compared = runner.run(&cases(), |(suite, case)| {
        let expected = sealed(foreign, suite, &case);
        let place = [Packet {
            at: 0,
            bytes: expected.len(),
            sequence_high: case.sequence_high,
        }];
        for selection in selections(suite) {
            let engine = selection.engine();
            let mut transform = selection.transform(&case.keymat);
            let icv = vec![0; suite.icv_bytes()];
            let mut packet = [&case.header[..], &case.iv, &case.text, &icv].concat();
            transform
                .seal(&mut packet, &place)
                .expect("an engine that works");
            prop_assert!(packet == expected, "{engine} and {name} differ: {suite}");
            let mut authentic = [false];
            transform
                .open(&mut packet, &place, &mut authentic)
                .expect("an engine that works");
            let text = &packet[HEADER_BYTES + suite.iv_bytes()..][..case.text.len()];
            prop_assert!(authentic[0] && text == case.text, "{engine} and {name}");
        }
        Ok(())
    });
    if let Err(error) = compared {
        panic!("{error}");
    }
}

struct Openssl;

impl Openssl {
    fn run(arguments: &[String], input: &[u8]) -> Option<Vec<u8>> {
        let mut openssl = Command::new("openssl")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut stdin = openssl.stdin.take().expect("piped");
        // At most a packet: the pipe holds it.
        stdin.write_all(input).ok()?;
        drop(stdin);
        let output = openssl.wait_with_output().ok()?;
        output.status.success().then_some(output.stdout)
    }

    fn enc(cipher: Cipher, key: &[u8], iv: &[u8], text: &[u8]) -> Option<Vec<u8>> {
        let name = match cipher {
            Cipher::Null => panic!("no cipher"),
            Cipher::DesCbc => "-des-cbc",
            Cipher::TripleDesCbc => "-des-ede3-cbc",
            Cipher::Aes128Cbc => "-aes-128-cbc",
            Cipher::Aes256Cbc => "-aes-256-cbc",
        };
        let words = ["enc", "-provider", "legacy", "-provider", "default"];
        let words = words.into_iter().chain([name, "-nopad", "-K"]);
        let mut arguments: Vec<_> = words.map(str::to_owned).collect();
        arguments.extend([encode_string(key), "-iv".to_owned(), encode_string(iv)]);
        Self::run(&arguments, text)
    }
}

impl Foreign for Openssl {
    fn encrypt(&self, cipher: Cipher, key: &[u8], iv: &[u8], text: &[u8]) -> Vec<u8> {
        Self::enc(cipher, key, iv, text).expect("openssl encrypts")
    }

    fn authenticate(&self, hmac: Hmac, key: &[u8], text: &[u8]) -> Vec<u8> {
        let name = match hmac {
            Hmac::Md5 => "-md5",
            Hmac::Sha1 => "-sha1",
            Hmac::Sha256 => "-sha256",
            Hmac::Sha512 => "-sha512",
        };
        let words = ["dgst", name, "-binary", "-mac", "HMAC", "-macopt"];
        let mut arguments: Vec<_> = words.map(str::to_owned).into();
        arguments.push(format!("hexkey:{}", encode_string(key)));
        Self::run(&arguments, text).expect("openssl authenticates")
    }
}

#[test]
fn legacy_suites_equal_openssls() {
    if Openssl::enc(Cipher::DesCbc, &[1; 8], &[2; 8], &[3; 8]).is_none() {
        return testing::lacks(
            "legacy suites equal openssl's",
            "openssl with DES (its provider `legacy`)",
            "apt install openssl",
        );
    }
    // Each starts two processes.
    compare("openssl", &Openssl, 12);
}

#[test]
fn legacy_suites_equal_libgcrypts() {
    let Some(libgcrypt) = Libgcrypt::load() else {
        return testing::lacks(
            "legacy suites equal libgcrypt's",
            "libgcrypt",
            "apt install libgcrypt20",
        );
    };
    compare("libgcrypt", &libgcrypt, 200);
}

/// The library of GnuPG, which is loaded if it is there: only tests use it.
mod libgcrypt {
    use super::Foreign;
    use libc::{RTLD_NOW, c_char, c_int, c_uint, c_void, dlopen, dlsym, size_t};
    use std::mem::transmute;
    use std::ptr::{null, null_mut};
    use wire::{Cipher, Hmac};

    /// Values of `gcrypt.h`, which are part of its ABI.
    const DISABLE_SECMEM: c_int = 37;
    const INITIALIZATION_FINISHED: c_int = 38;
    const MODE_CBC: c_int = 3;

    type Handle = *mut c_void;
    type CheckVersion = unsafe extern "C" fn(*const c_char) -> *const c_char;
    type Control = unsafe extern "C" fn(c_int, ...) -> c_uint;
    type CipherOpen = unsafe extern "C" fn(*mut Handle, c_int, c_int, c_uint) -> c_uint;
    type MacOpen = unsafe extern "C" fn(*mut Handle, c_int, c_uint, *mut c_void) -> c_uint;
    type Take = unsafe extern "C" fn(Handle, *const c_void, size_t) -> c_uint;
    type Encrypt =
        unsafe extern "C" fn(Handle, *mut c_void, size_t, *const c_void, size_t) -> c_uint;
    type Read = unsafe extern "C" fn(Handle, *mut c_void, *mut size_t) -> c_uint;
    type Close = unsafe extern "C" fn(Handle);

    /// Its functions.
    pub(super) struct Libgcrypt {
        cipher_open: CipherOpen,
        cipher_key: Take,
        cipher_iv: Take,
        cipher_encrypt: Encrypt,
        cipher_close: Close,
        mac_open: MacOpen,
        mac_key: Take,
        mac_write: Take,
        mac_read: Read,
        mac_close: Close,
    }

    impl Libgcrypt {
        /// Loads it; `None` where it is not installed.
        pub(super) fn load() -> Option<Self> {
            // SAFETY: the name is a C string; the library's constructors have no preconditions.
            let library = unsafe { dlopen(c"libgcrypt.so.20".as_ptr(), RTLD_NOW) };
            if library.is_null() {
                return None;
            }
            macro_rules! function {
                ($name:literal as $signature:ty) => {{
                    // SAFETY: the library is open and stays so; the name is a C string.
                    let found = unsafe { dlsym(library, $name.as_ptr()) };
                    assert!(!found.is_null(), "{:?} is missing", $name);
                    // SAFETY: this is the function's signature in `gcrypt.h` of its ABI 20.
                    unsafe { transmute::<*mut c_void, $signature>(found) }
                }};
            }
            let check_version = function!(c"gcry_check_version" as CheckVersion);
            let control = function!(c"gcry_control" as Control);
            // SAFETY: initialises as its manual says: version, no secure memory, done.
            let version = unsafe { check_version(null()) };
            assert!(!version.is_null(), "libgcrypt is initialised");
            for command in [DISABLE_SECMEM, INITIALIZATION_FINISHED] {
                // SAFETY: both commands take one integer.
                assert_eq!(unsafe { control(command, 0_i32) }, 0);
            }
            Some(Self {
                cipher_open: function!(c"gcry_cipher_open" as CipherOpen),
                cipher_key: function!(c"gcry_cipher_setkey" as Take),
                cipher_iv: function!(c"gcry_cipher_setiv" as Take),
                cipher_encrypt: function!(c"gcry_cipher_encrypt" as Encrypt),
                cipher_close: function!(c"gcry_cipher_close" as Close),
                mac_open: function!(c"gcry_mac_open" as MacOpen),
                mac_key: function!(c"gcry_mac_setkey" as Take),
                mac_write: function!(c"gcry_mac_write" as Take),
                mac_read: function!(c"gcry_mac_read" as Read),
                mac_close: function!(c"gcry_mac_close" as Close),
            })
        }
    }

    impl Foreign for Libgcrypt {
        fn encrypt(&self, cipher: Cipher, key: &[u8], iv: &[u8], text: &[u8]) -> Vec<u8> {
            let algorithm = match cipher {
                Cipher::Null => panic!("no cipher"),
                Cipher::DesCbc => 302,
                Cipher::TripleDesCbc => 2,
                Cipher::Aes128Cbc => 7,
                Cipher::Aes256Cbc => 9,
            };
            let mut handle = null_mut();
            let mut output = vec![0; text.len()];
            // SAFETY: the handle is written by the first call and used until the last; every
            // pointer comes with the length of its slice.
            let errors = unsafe {
                let errors = [
                    (self.cipher_open)(&raw mut handle, algorithm, MODE_CBC, 0),
                    (self.cipher_key)(handle, key.as_ptr().cast(), key.len()),
                    (self.cipher_iv)(handle, iv.as_ptr().cast(), iv.len()),
                    (self.cipher_encrypt)(
                        handle,
                        output.as_mut_ptr().cast(),
                        output.len(),
                        text.as_ptr().cast(),
                        text.len(),
                    ),
                ];
                (self.cipher_close)(handle);
                errors
            };
            assert_eq!(errors, [0; 4], "{cipher:?}");
            output
        }

        fn authenticate(&self, hmac: Hmac, key: &[u8], text: &[u8]) -> Vec<u8> {
            let (algorithm, mut bytes) = match hmac {
                Hmac::Md5 => (106, 16),
                Hmac::Sha1 => (105, 20),
                Hmac::Sha256 => (101, 32),
                Hmac::Sha512 => (103, 64),
            };
            let mut handle = null_mut();
            let mut output = vec![0; bytes];
            // SAFETY: as above.
            let errors = unsafe {
                let errors = [
                    (self.mac_open)(&raw mut handle, algorithm, 0, null_mut()),
                    (self.mac_key)(handle, key.as_ptr().cast(), key.len()),
                    (self.mac_write)(handle, text.as_ptr().cast(), text.len()),
                    (self.mac_read)(handle, output.as_mut_ptr().cast(), &raw mut bytes),
                ];
                (self.mac_close)(handle);
                errors
            };
            assert_eq!((errors, bytes), ([0; 4], output.len()), "{hmac:?}");
            output
        }
    }
}
