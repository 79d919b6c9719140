//! A user's identity: an NKey, alone or with a JWT, in a file that only its owner can read.

use crate::error::{FleetError, disk};
use guard::{Insecure, Writers};
use nkeys::{KeyPair, KeyPairType};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

const HELP: &str =
    "`cipherbench fleet key FILE` makes one; a file of credentials (.creds) of NATS will do too";

/// The largest file of keys, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// A user's key, and the JWT that an operator gave for it, if any.
pub struct Identity {
    pub(crate) key: KeyPair,
    pub(crate) jwt: Option<String>,
}

impl Identity {
    /// Reads a seed (`SU…`), alone or in a file of credentials with the JWT.
    ///
    /// # Errors
    /// When the file cannot be read, or has no seed of a user.
    pub fn read(path: &Path) -> Result<Self, FleetError> {
        let text = guard::read_text(path, FILE_BYTES_MAX);
        let text = text.map_err(disk("read the user's key", path))?;
        Self::parse(&text, &path.display().to_string())
    }

    /// Parses the text of a key file; `place` is its name in messages.
    ///
    /// # Errors
    /// When it has no seed of a user.
    pub fn parse(text: &str, place: &str) -> Result<Self, FleetError> {
        let lines = || text.lines().map(str::trim);
        // A file of credentials has the JWT and the seed between lines of dashes.
        let seed = lines().find(|line| line.starts_with("SU"));
        let key = seed.and_then(|seed| KeyPair::from_seed(seed).ok());
        let key = key.ok_or_else(|| FleetError::Mistake {
            file: place.to_owned(),
            reason: "it has no NKey of a user (a line `SU…`)".to_owned(),
            help: HELP.to_owned(),
        })?;
        Ok(Self {
            key,
            jwt: lines()
                .find(|line| line.starts_with("eyJ"))
                .map(str::to_owned),
        })
    }

    /// Makes a new key, in a new file that only its owner can read.
    ///
    /// # Errors
    /// When the file exists or cannot be written.
    pub fn create(path: &Path) -> Result<Self, FleetError> {
        let cannot = disk("make", path);
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .unwrap_or_else(|error| panic!("the kernel has no random bytes: {error}"));
        let key = KeyPair::new_from_raw(KeyPairType::User, bytes)
            .unwrap_or_else(|error| unreachable!("any 32 bytes are a key: {error}"));
        let seed = key
            .seed()
            .unwrap_or_else(|error| unreachable!("it was made of its seed: {error}"));
        let mut file = File::options()
            .write(true)
            // A key is never overwritten: its owner would lose access.
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(cannot)?;
        writeln!(file, "{seed}")
            // Before its public key is given to anybody.
            .and_then(|()| file.sync_all())
            .map_err(cannot)?;
        Ok(Self { key, jwt: None })
    }

    /// The public key, `U…`.
    #[must_use]
    pub fn public(&self) -> String {
        self.key.public_key()
    }
}

/// A line of a file of keys.
pub(crate) struct Line {
    /// The file and the line's number, for messages.
    pub(crate) place: String,
    /// Without the comment; never blank.
    pub(crate) text: String,
}

impl Line {
    /// Returns the error for this line, with advice.
    pub(crate) fn mistake(&self, reason: String, help: &str) -> FleetError {
        FleetError::Mistake {
            file: self.place.clone(),
            reason,
            help: format!("{help}; `cipherbench fleet key` prints a key"),
        }
    }

    /// Returns `key` if it is the public key of a user.
    pub(crate) fn user_key<'a>(&self, key: &'a str, help: &str) -> Result<&'a str, FleetError> {
        if key.starts_with('U') && KeyPair::from_public_key(key).is_ok() {
            return Ok(key);
        }
        let reason = format!("`{}` is no public key of a user (`U…`)", key.escape_debug());
        Err(self.mistake(reason, help))
    }
}

/// Reads a file of keys.
///
/// It decides whom to trust, so only root and the user of this process may be able to write it.
pub(crate) fn text_of(path: &Path, what: &str) -> Result<String, FleetError> {
    match Writers::of_process().check(path) {
        Ok(_) | Err(Insecure::NotExamined { .. }) => {}
        Err(error) => {
            return Err(FleetError::Mistake {
                file: path.display().to_string(),
                reason: format!("others decide who is in the {what}: {error}"),
                help: "keep it in a folder of one's own, as ssh wants it of authorized_keys"
                    .to_owned(),
            });
        }
    }
    // After the check, so that a file of others is not even parsed.
    guard::read_text(path, FILE_BYTES_MAX).map_err(disk(&format!("read the {what}"), path))
}

/// Returns the lines of a file of keys that are not blank; `#` begins a comment.
pub(crate) fn lines(text: &str, place: &str) -> Vec<Line> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| Line {
        place: format!("{place}:{number}"),
        text: line.split('#').next().unwrap_or_default().trim().to_owned(),
    });
    lines.filter(|line| !line.text.is_empty()).collect()
}
