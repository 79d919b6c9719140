//! Secrets of SNMP agents: read when a device is brought up, and kept nowhere else.

use campaign::plan::Secret;
use keying::{metadata_of_file, read_whole};
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use zeroize::Zeroizing;

/// Mode bits that a secret's file must not have: any access by group or others.
const FORBIDDEN: u32 = 0o077;
const BYTES_MAX: usize = 4096;

/// Reads a secret: the first line of a file, or an environment variable.
///
/// # Errors
/// What is wrong with which file or variable, and what to do; never the secret.
pub(super) fn read(secret: &Secret) -> Result<Zeroizing<String>, String> {
    match secret {
        Secret::File(path) => from_file(path),
        Secret::Environment(name) => match std::env::var(name) {
            Ok(value) if !value.is_empty() => Ok(Zeroizing::new(value)),
            _ => Err(format!(
                "the environment variable `{name}` with a secret is not set, or is no text\n\
                 help: `export {name}=…` before the run, and let `sudo` pass it on: `sudo --preserve-env={name}`"
            )),
        },
    }
}

fn from_file(path: &str) -> Result<Zeroizing<String>, String> {
    let not_read = |error: std::io::Error| {
        format!(
            "the secret's file {path} cannot be read: {error}\n\
             help: write the secret as its first line, and `chmod 600 {path}`"
        )
    };
    let mut file = File::open(path).map_err(not_read)?;
    let metadata = metadata_of_file(&file).map_err(not_read)?;
    if metadata.mode() & FORBIDDEN != 0 {
        let mode = metadata.mode() & 0o7777;
        return Err(format!(
            "the secret's file {path} has mode {mode:04o}: others than its owner may use it\n\
             help: `chmod 600 {path}`"
        ));
    }
    let bytes = read_whole(&mut file, BYTES_MAX).map_err(not_read)?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    if line.is_empty() {
        return Err(format!(
            "the secret's file {path} begins with no text\n\
             help: write the secret as its first line"
        ));
    }
    Ok(Zeroizing::new(line.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    #[test]
    fn a_secret_is_a_files_first_line_that_only_its_owner_can_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let of = |path: &Path| read(&Secret::File(path.display().to_string()));
        assert!(of(&path).unwrap_err().contains("No such file"));
        fs::write(&path, "s3cret word\nmore\n").unwrap();
        for (mode, fits) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match of(&path) {
                Ok(secret) => assert!(fits && *secret == "s3cret word", "{mode:o}"),
                Err(error) => {
                    assert!(
                        !fits && error.contains(&format!("mode {mode:04o}")),
                        "{error}"
                    );
                    assert!(error.contains("help: `chmod 600") && !error.contains("s3cret"));
                }
            }
        }
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        for empty in [&b""[..], b"\nsecond", b"\xff\xfe"] {
            fs::write(&path, empty).unwrap();
            assert!(of(&path).unwrap_err().contains("begins with no text"));
        }
        fs::write(&path, "x".repeat(BYTES_MAX + 1)).unwrap();
        assert!(of(&path).is_err());
        assert!(of(folder.path()).is_err());
    }

    #[test]
    fn a_variable_that_is_not_set_is_named() {
        let name = "CIPHERBENCH_NO_SUCH_SECRET".to_owned();
        let error = read(&Secret::Environment(name)).unwrap_err();
        assert!(error.contains("`CIPHERBENCH_NO_SUCH_SECRET`"), "{error}");
    }
}
