//! Post-quantum pre-shared keys (RFC 8784) in files.
//!
//! ```text
//! cipherbench_ppk: 1
//! encoding: hex
//! key: 000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f
//! ```
//!
//! Both sides have the same file. Base64 is supported for keys that other programs generated. The
//! ID is in the configuration that names the file. A PPK may be used any number of times and by any
//! number of gateways: no nonce depends on it.

use crate::KeyError;
use crate::files::{create_all, malformed, read_ppk};
use crate::hex;
use crate::text::{FILE_BYTES_MAX, Field, Malformed, VERSION, fields, push_field};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use guard::Writers;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Minimum length in bytes: RFC 8784 §6 requires 256 bits, which leaves 128 bits against a quantum
/// computer.
const KEY_BYTES_MIN: usize = 32;
/// Maximum length in bytes.
const KEY_BYTES_MAX: usize = 1024;
const FORMAT: &str = "cipherbench_ppk";

/// A PPK, read from its file. Wiped when the last copy of its key is dropped.
pub struct PpkFile {
    key: Arc<Zeroizing<Vec<u8>>>,
}

impl PpkFile {
    /// Reads a PPK file.
    ///
    /// # Errors
    /// [`KeyError::PpkNotRead`], [`KeyError::TooOpen`] if anyone but its owner may use it,
    /// [`KeyError::Insecure`] if others than root and this process's user could have written it, or
    /// [`KeyError::Malformed`], also if the key does not have 32 to 1024 bytes.
    pub fn load(path: &Path) -> Result<Self, KeyError> {
        Self::load_for(path, &Writers::of_process())
    }

    /// As [`load`](Self::load), of a file that one of these users has written.
    ///
    /// # Errors
    /// As there.
    pub fn load_for(path: &Path, writers: &Writers) -> Result<Self, KeyError> {
        let text = read_ppk(path, writers)?;
        Self::parse(&text).map_err(|error| malformed(path, error))
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &Arc<Zeroizing<Vec<u8>>> {
        &self.key
    }

    fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let [version, encoding, key] = fields(text, [FORMAT, "encoding", "key"])?;
        version.expect(VERSION, "expected version 1")?;
        let bytes = match encoding.value {
            "hex" => from_hex(key)?,
            "base64" => from_base64(key)?,
            _ => return Err(encoding.malformed("expected `encoding: hex` or `encoding: base64`")),
        };
        // After decoding, since both encodings lead to the same keys.
        if !(KEY_BYTES_MIN..=KEY_BYTES_MAX).contains(&bytes.len()) {
            return Err(key.malformed(&format!(
                "a PPK has {KEY_BYTES_MIN} to {KEY_BYTES_MAX} bytes, this one {}",
                bytes.len()
            )));
        }
        Ok(Self {
            key: Arc::new(bytes),
        })
    }
}

impl fmt::Debug for PpkFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PpkFile").finish_non_exhaustive()
    }
}

fn from_hex(key: Field<'_>) -> Result<Zeroizing<Vec<u8>>, Malformed> {
    let mut bytes = Zeroizing::new(vec![0; key.value.len() / 2]);
    hex::read(key.value, &mut bytes)
        .ok_or_else(|| key.malformed("expected pairs of hexadecimal digits after `key:`"))?;
    Ok(bytes)
}

fn from_base64(key: Field<'_>) -> Result<Zeroizing<Vec<u8>>, Malformed> {
    // Allocated for whole groups and truncated afterwards, so that it never reallocates.
    let mut bytes = Zeroizing::new(vec![0; key.value.len().div_ceil(4) * 3]);
    // The decoder's error contains part of the key.
    let length = STANDARD
        .decode_slice(key.value, &mut bytes)
        .map_err(|_| key.malformed("expected base64 with its padding after `key:`"))?;
    bytes.truncate(length);
    Ok(bytes)
}

/// Content of a file with a fresh PPK. Each side needs a copy, accessible to the owner only.
///
/// # Errors
/// [`KeyError::NoRandomness`].
pub fn ppk_text() -> Result<Zeroizing<String>, KeyError> {
    let mut key = Zeroizing::new([0; KEY_BYTES_MIN]);
    aws_lc_rs::rand::fill(&mut *key).map_err(|_| KeyError::NoRandomness)?;
    // Never reallocates, so that no copy remains in freed memory.
    let mut text = Zeroizing::new(String::with_capacity(FILE_BYTES_MAX));
    text.push_str(
        "# A post-quantum pre-shared key (RFC 8784). Secret. Both sides of a tunnel have the same.\n",
    );
    push_field(&mut text, FORMAT, VERSION);
    push_field(&mut text, "encoding", "hex");
    text.push_str("key: ");
    hex::push(&mut text, &*key);
    text.push('\n');
    Ok(text)
}

/// Creates a fresh PPK in each of the given files, the same in all.
///
/// # Errors
/// [`KeyError::NotCreated`], also if one of the files exists: nothing is ever overwritten, and
/// files created by this call are removed. [`KeyError::NoRandomness`].
pub fn create_ppk(paths: &[&Path]) -> Result<(), KeyError> {
    let text = ppk_text()?;
    let files: Vec<_> = paths
        .iter()
        .map(|path| (path.to_path_buf(), text.as_bytes()))
        .collect();
    create_all(&files)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1F";
    const BASE64: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    fn text(encoding: &str, key: &str) -> String {
        format!("cipherbench_ppk: 1\nencoding: {encoding}\nkey: {key}\n")
    }

    fn error(text: &str) -> (usize, String) {
        let Err(malformed) = PpkFile::parse(text.as_bytes()) else {
            panic!("{text} is accepted")
        };
        (malformed.line, malformed.what)
    }

    #[test]
    fn both_encodings_give_the_same_key() {
        let key: Vec<u8> = (0..32).collect();
        for (encoding, value) in [("hex", DIGITS), ("base64", BASE64)] {
            let read = PpkFile::parse(text(encoding, value).as_bytes()).unwrap();
            assert_eq!(**read.key().as_ref(), key);
        }
    }

    #[test]
    fn fresh_keys_read_back_and_differ() {
        let texts = [ppk_text().unwrap(), ppk_text().unwrap()];
        let keys = texts.map(|text| PpkFile::parse(text.as_bytes()).unwrap().key().clone());
        assert_eq!(keys[0].len(), KEY_BYTES_MIN);
        assert_ne!(keys[0], keys[1]);
    }

    #[test]
    fn an_error_names_the_line_and_not_the_key() {
        let long = "00".repeat(KEY_BYTES_MAX + 1);
        let cases = [
            (
                text("hex", &DIGITS[2..]),
                3,
                "a PPK has 32 to 1024 bytes, this one 31",
            ),
            (
                text("hex", &long),
                3,
                "a PPK has 32 to 1024 bytes, this one 1025",
            ),
            (
                text("hex", &DIGITS[1..]),
                3,
                "expected pairs of hexadecimal digits after `key:`",
            ),
            (
                text("hex", BASE64),
                3,
                "expected pairs of hexadecimal digits after `key:`",
            ),
            (
                text("base64", &BASE64[..43]),
                3,
                "expected base64 with its padding after `key:`",
            ),
            (
                text("base64", "AAE-_w=="),
                3,
                "expected base64 with its padding after `key:`",
            ),
            (
                text("base64", "AAEC"),
                3,
                "a PPK has 32 to 1024 bytes, this one 3",
            ),
            (
                text("HEX", DIGITS),
                2,
                "expected `encoding: hex` or `encoding: base64`",
            ),
            (
                text("hex", DIGITS).replace("ppk: 1", "ppk: 2"),
                1,
                "expected version 1",
            ),
            (
                text("hex", DIGITS).replace("key: ", ""),
                3,
                "expected one of `cipherbench_ppk: …`, `encoding: …`, `key: …`",
            ),
        ];
        for (text, line, what) in cases {
            assert_eq!(error(&text), (line, what.to_owned()), "{text}");
        }
    }

    #[test]
    fn debug_output_shows_no_key() {
        let read = PpkFile::parse(text("hex", DIGITS).as_bytes()).unwrap();
        assert_eq!(format!("{read:?}"), "PpkFile { .. }");
    }
}
