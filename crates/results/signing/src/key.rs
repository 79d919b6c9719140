//! Keys in the format of minisign.

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
use guard::Writers;
use minisign::{KeyPair, PublicKeyBox, SecretKeyBox};
use pki::ReadError;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::str;

/// Characters of a public key in base64: algorithm, key number and key, 42 bytes.
const PUBLIC_CHARS: usize = 56;
/// The longest file of a public key that is read; one has two lines.
const PUBLIC_BYTES_MAX: usize = 16 * 1024;
/// The beginning of a key without a password: Ed25519, no derivation, BLAKE2b.
const WITHOUT_PASSWORD: &[u8] = b"Ed\0\0B2";
/// The beginning of a key with a password, in base64.
const WITH_PASSWORD: &str = "RWRTY";
/// The last bytes of a key.
const CHECKSUM_BYTES: usize = 32;
/// What minisign writes on the first line of keys.
const SECRET_COMMENT: &str = "secret key of cipherbench, without a password";

/// Why a key cannot be made or used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// A key file cannot be read, or others may read or write it.
    #[error(transparent)]
    NotRead(#[from] ReadError),
    /// There is no key of this name.
    #[error("{} is not there\nhelp: `cipherbench keys signing {}` makes both keys", path.display(), path.display())]
    NotThere {
        /// Its path.
        path: PathBuf,
    },
    /// A file is not a key.
    #[error("{} is not a {what} key of minisign: {reason}\nhelp: `cipherbench keys signing FILE` makes both \
             keys, as does `minisign -G`", path.display())]
    NotAKey {
        /// Its path.
        path: PathBuf,
        /// `secret` or `public`.
        what: &'static str,
        /// The reason.
        reason: String,
    },
    /// A text is not a public key.
    #[error(
        "`{text}` is neither a file nor a public key: {reason}\nhelp: name the signer's file that ends \
             with `.pub`, or give its second line, which begins with `RW`"
    )]
    NotAPublicKey {
        /// The text.
        text: String,
        /// The reason.
        reason: String,
    },
    /// A key has a password, and nobody can be asked for it.
    #[error("{} has a password, and there is no terminal to ask for it\nhelp: sign on a terminal, or by a key \
             without a password, which `cipherbench keys signing FILE` makes", path.display())]
    NoTerminal {
        /// Path of the key.
        path: PathBuf,
    },
    /// A key file cannot be made.
    #[error("cannot make {}: {source}\nhelp: name a file that is not there yet, in a folder that can be written to",
        path.display())]
    NotMade {
        /// Path of the key.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The operating system gives no random bytes.
    #[error("cannot make a key: {reason}")]
    NoRandomness {
        /// The reason.
        reason: String,
    },
}

/// The key that signs.
pub struct SecretKey {
    pub(crate) key: minisign::SecretKey,
}

/// The key that verifies.
#[derive(Debug, Clone)]
pub struct PublicKey {
    pub(crate) key: minisign::PublicKey,
}

impl SecretKey {
    /// Reads a key file, and asks on the terminal for its password if it has one.
    ///
    /// # Errors
    /// [`KeyError`], if others may read the file, it is no key, or nobody can be asked.
    pub fn read(path: &Path) -> Result<Self, KeyError> {
        let bytes =
            pki::read_secret(path, &Writers::of_process()).map_err(|error| match error {
                // The reader's remedy is about certificates.
                ReadError::NotRead { path, source } if source.kind() == io::ErrorKind::NotFound => {
                    KeyError::NotThere { path }
                }
                error => error.into(),
            })?;
        let not_a_key = |reason: String| KeyError::NotAKey {
            path: path.to_owned(),
            what: "secret",
            reason,
        };
        let text = str::from_utf8(&bytes).map_err(|error| not_a_key(error.to_string()))?;
        // The crate consumes a box, and up to two forms are tried.
        let boxed = |text: &str| SecretKeyBox::from(text.to_owned());
        // A key without a password first: the other way would ask for one.
        if let Ok(key) = boxed(text).into_unencrypted_secret_key() {
            return Ok(Self { key });
        }
        if let Some(key) = without_checksum(text) {
            return Ok(Self { key });
        }
        let key = text.lines().nth(1);
        // Before the question: nobody should give a password to a file that is no key. `Ed` and
        // `Sc` (scrypt) begin one with a password.
        if !key.is_some_and(|key| key.starts_with(WITH_PASSWORD)) {
            return Err(not_a_key("it has another form".to_owned()));
        }
        if !io::stdin().is_terminal() {
            let path = path.to_owned();
            return Err(KeyError::NoTerminal { path });
        }
        let key = boxed(text).into_secret_key(None);
        let key = key.map_err(|error| not_a_key(error.to_string()))?;
        Ok(Self { key })
    }

    /// Returns the key's number, as minisign prints it.
    #[must_use]
    pub fn number(&self) -> String {
        number(self.key.keynum())
    }
}

impl PublicKey {
    /// Reads a public key from a file, or from its text in base64.
    ///
    /// # Errors
    /// [`KeyError`], if it is neither.
    pub fn of(text: &str) -> Result<Self, KeyError> {
        let path = Path::new(text);
        // A name of this length with this beginning would be a strange one for a file.
        if text.len() == PUBLIC_CHARS && text.starts_with("RW") && !path.exists() {
            let key = minisign::PublicKey::from_base64(text);
            let key = key.map_err(|error| KeyError::NotAPublicKey {
                text: text.to_owned(),
                reason: error.to_string(),
            })?;
            return Ok(Self { key });
        }
        let content = guard::read_text(path, PUBLIC_BYTES_MAX);
        let content = content.map_err(|error| KeyError::NotAPublicKey {
            text: text.to_owned(),
            reason: error.to_string(),
        })?;
        let key = PublicKeyBox::from(content).into_public_key();
        let key = key.map_err(|error| KeyError::NotAKey {
            path: path.to_owned(),
            what: "public",
            reason: error.to_string(),
        })?;
        Ok(Self { key })
    }

    /// Returns the key's number, as minisign prints it.
    #[must_use]
    pub fn number(&self) -> String {
        number(self.key.keynum())
    }
}

/// A key that minisign 0.11 made without a password: it leaves the checksum zero, which the crate
/// takes for a damaged key.
fn without_checksum(text: &str) -> Option<minisign::SecretKey> {
    let bytes = STANDARD.decode(text.lines().nth(1)?).ok()?;
    let checksum = bytes.len().checked_sub(CHECKSUM_BYTES)?;
    let is_of_it =
        bytes.starts_with(WITHOUT_PASSWORD) && bytes[checksum..].iter().all(|&byte| byte == 0);
    is_of_it.then(|| minisign::SecretKey::from_bytes(&bytes).ok())?
}

/// The eight bytes that name a pair of keys, the last one first.
pub(crate) fn number(bytes: &[u8]) -> String {
    let mut bytes = bytes.to_vec();
    // In the file it is a number of 64 bits with the lowest byte first; minisign prints it as a
    // number.
    bytes.reverse();
    base16ct::upper::encode_string(&bytes)
}

/// Makes a pair of keys: `secret` without a password for its owner alone, and next to it
/// `secret.pub`. Returns the path of the latter and the public key in base64.
///
/// # Errors
/// [`KeyError`], if a file is there already or cannot be written; then neither is made.
pub fn create_keys(secret: &Path) -> Result<(PathBuf, String), KeyError> {
    let no_randomness = |error: minisign::PError| KeyError::NoRandomness {
        reason: error.to_string(),
    };
    let pair = KeyPair::generate_unencrypted_keypair().map_err(no_randomness)?;
    let secret_box = pair
        .sk
        .to_box(Some(SECRET_COMMENT))
        .map_err(no_randomness)?;
    let public_box = pair.pk.to_box().map_err(no_randomness)?;
    // Appended: `with_extension` would take the extension of the name away, and two keys could get
    // one public file.
    let mut public = secret.as_os_str().to_owned();
    public.push(".pub");
    let public = PathBuf::from(public);
    let made = pki::create_both(
        (&public, &public_box.to_bytes()),
        (secret, &secret_box.to_bytes()),
    );
    made.map_err(|(path, source)| KeyError::NotMade { path, source })?;
    Ok((public, pair.pk.to_base64()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn keys_are_made_together_and_never_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("lab.key");
        let (public, text) = create_keys(&secret).unwrap();
        assert_eq!(public, dir.path().join("lab.key.pub"));
        let mode = fs::metadata(&secret).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let read = PublicKey::of(public.to_str().unwrap()).unwrap();
        assert_eq!(read.number(), PublicKey::of(&text).unwrap().number());
        assert_eq!(read.number(), SecretKey::read(&secret).unwrap().number());
        let before = fs::read(&secret).unwrap();
        assert!(create_keys(&secret).is_err());
        assert_eq!(fs::read(&secret).unwrap(), before);
        // The public key of another pair is not replaced, and no secret key stays behind.
        let second = dir.path().join("second.key");
        fs::write(dir.path().join("second.key.pub"), "x").unwrap();
        assert!(create_keys(&second).is_err());
        assert!(!second.exists());
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let secret = dir.path().join("lab.key");
        let (public, _) = create_keys(&secret).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o644)).unwrap();
        let error = SecretKey::read(&secret).err().unwrap().to_string();
        assert!(error.contains("chmod 600"), "{error}");
        // The wrong one of the two.
        fs::set_permissions(&public, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(SecretKey::read(&public).is_err());
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(PublicKey::of(secret.to_str().unwrap()).is_err());
        assert!(PublicKey::of("RWnonsense").is_err());
        assert!(PublicKey::of("/nonexistent.pub").is_err());
    }
}
