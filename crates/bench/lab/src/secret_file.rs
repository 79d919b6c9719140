//! Files of this machine that hold a secret for its user alone.

use guard::{Writers, open_regular, read_wiped};
use keying::metadata_of_file;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use zeroize::Zeroizing;

/// Mode bits that a secret's file must not have: any access by group or others.
const FORBIDDEN: u32 = 0o077;
/// Longer than any private key in PEM.
const BYTES_MAX: usize = 1 << 16;

/// Reads the text of a file that only its owner can read.
///
/// # Errors
/// The file's fault and its remedy, never its content.
pub(crate) fn read(path: &Path) -> Result<Zeroizing<String>, String> {
    let name = path.display();
    let not_read = |error: io::Error| {
        format!(
            "the secret's file {name} cannot be read: {error}\n\
             help: write the secret there, and `chmod 600 {name}`"
        )
    };
    let mut file = open_regular(path).map_err(not_read)?;
    // Of the open file: the path may lead to another one by now.
    let metadata = metadata_of_file(&file).map_err(not_read)?;
    if metadata.mode() & FORBIDDEN != 0 {
        let mode = metadata.mode() & 0o7777;
        return Err(format!(
            "the secret's file {name} has mode {mode:04o}: others than its owner may use it\n\
             help: `chmod 600 {name}`"
        ));
    }
    // The owner, who may be the user who called `sudo`, knows the secret anyway.
    Writers::of_process()
        .and(metadata.uid())
        .check(path)
        .map_err(|insecure| format!("the secret's file {name} could be replaced: {insecure}"))?;
    let bytes = read_wiped(&mut file, BYTES_MAX).map_err(not_read)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| {
        format!("the secret's file {name} is no text\nhelp: write the secret as its first line")
    })?;
    Ok(Zeroizing::new(text.to_owned()))
}

/// Reads a secret from the first line of a file.
///
/// # Errors
/// As for [`read`], and if the line is empty.
pub(crate) fn first_line(path: &Path) -> Result<Zeroizing<String>, String> {
    let text = read(path)?;
    match text.lines().next().unwrap_or_default() {
        "" => Err(format!(
            "the secret's file {} begins with no text\nhelp: write the secret as its first line",
            path.display()
        )),
        line => Ok(Zeroizing::new(line.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_is_a_files_first_line_that_only_its_owner_can_read() {
        let folder = testing::folder().unwrap();
        let path = folder.path().join("secret");
        assert!(first_line(&path).unwrap_err().contains("No such file"));
        fs::write(&path, "s3cret word\nmore\n").unwrap();
        for (mode, fits) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false)] {
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            match first_line(&path) {
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
        assert_eq!(*read(&path).unwrap(), "s3cret word\nmore\n");
        fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
        let error = read(&path).unwrap_err();
        assert!(
            error.contains("could be replaced") && error.contains("chmod go-w"),
            "{error}"
        );
        fs::set_permissions(folder.path(), Permissions::from_mode(0o700)).unwrap();
        for empty in ["", "\nsecond"] {
            fs::write(&path, empty).unwrap();
            let error = first_line(&path).unwrap_err();
            assert!(error.contains("begins with no text"), "{error}");
        }
        fs::write(&path, b"\xff\xfe").unwrap();
        assert!(read(&path).unwrap_err().contains("is no text"));
        fs::write(&path, "x".repeat(BYTES_MAX + 1)).unwrap();
        assert!(read(&path).is_err());
        assert!(read(folder.path()).is_err());
    }
}
