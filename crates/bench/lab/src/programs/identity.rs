//! The identity of a program that a campaign names: its path, its SHA-256 and its version.

use super::needs::replaceable;
use super::{find, known, said_of_itself};
use plan::{Adapter, PinnedProgram};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Longest version that is kept.
const VERSION_CHARS_MAX: usize = 100;

/// Identifies the program that a device will be started from.
///
/// # Errors
/// With the reason, if there is no such program, or it cannot be read.
pub fn identify(adapter: &Adapter, program: &str) -> Result<PinnedProgram, String> {
    identify_as(replaceable(adapter), program)
}

/// Identifies the program that is started in place of an installed one, which asks for its version.
///
/// # Errors
/// As [`identify`].
pub fn identify_as(installed: Option<&str>, program: &str) -> Result<PinnedProgram, String> {
    let path = find(program).ok_or_else(|| super::error(program))?;
    // Stations run in other folders, and a resumed run may begin in another one.
    let path = std::path::absolute(&path).map_err(|error| format!("{program}: {error}"))?;
    let sha256 =
        digest(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let argument = installed.and_then(known);
    let argument = argument.map_or("--version", |known| known.version);
    let said = said_of_itself(&path, argument).unwrap_or_default();
    let line = said
        .lines()
        .find(|line| super::find_version(line).is_some());
    let printable = line.unwrap_or_default().trim().chars();
    Ok(PinnedProgram {
        version: printable
            .filter(|c| !c.is_control())
            .take(VERSION_CHARS_MAX)
            .collect(),
        path: path.to_string_lossy().into_owned(),
        sha256,
    })
}

/// Checks that a program is still the one that was found when the run began.
///
/// # Errors
/// With the reason, if it is another one or gone.
pub fn verify(found: &PinnedProgram) -> Result<(), String> {
    let PinnedProgram { path, sha256, .. } = found;
    let help = "a run measures each version as one program; begin a new run";
    match digest(Path::new(path)) {
        Ok(digest) if digest == *sha256 => Ok(()),
        Ok(digest) => Err(format!(
            "the program {path} has changed since the run began: its SHA-256 is {}, and was {}\n\
             help: {help}",
            digest.get(..12).unwrap_or(&digest),
            found.short()
        )),
        Err(error) => Err(format!(
            "the program {path} cannot be read any more: {error}\nhelp: put it back, or {help}"
        )),
    }
}

/// The SHA-256 of a file, in hexadecimal digits.
///
/// # Errors
/// When it cannot be read.
pub fn digest(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes) {
            Ok(0) => return Ok(base16ct::lower::encode_string(&hash.finalize())),
            Ok(length) => hash.update(&bytes[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plan::{Encryptor, OpenVpn};
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use wire::Suite;

    fn program(folder: &Path, text: &str) -> String {
        let path = folder.join("program");
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    #[test]
    fn a_program_is_identified_by_its_content_and_its_version() {
        let folder = tempfile::tempdir().unwrap();
        let text = "#!/bin/sh\necho 'a note'\necho \"tool 1.2 $1\"\n";
        let path = program(folder.path(), text);
        let ours = Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm));
        let found = identify(&ours, &path).unwrap();
        assert_eq!(found.version, "tool 1.2 --version");
        assert_eq!(found.path, path);
        // Of `sha256sum`, as anybody can check it.
        let printed = std::process::Command::new("sha256sum").arg(&path).output();
        let printed = String::from_utf8(printed.unwrap().stdout).unwrap();
        assert!(printed.starts_with(&found.sha256), "{printed}");
        verify(&found).unwrap();
        program(folder.path(), "#!/bin/sh\necho tool 1.3\n");
        let changed = verify(&found).unwrap_err();
        assert!(
            changed.contains("has changed since the run began"),
            "{changed}"
        );
        fs::remove_file(&path).unwrap();
        let gone = verify(&found).unwrap_err();
        assert!(gone.contains("cannot be read any more"), "{gone}");
    }

    #[test]
    fn a_program_without_a_version_has_an_empty_one_and_a_missing_one_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = program(folder.path(), "#!/bin/sh\nexit 0\n");
        let suite = Suite::Aes256Gcm;
        let found = identify(&Adapter::OpenVpn(OpenVpn { suite }), &path).unwrap();
        assert_eq!(found.version, "");
        let missing = folder.path().join("missing");
        let error = identify(&Adapter::Direct, missing.to_str().unwrap()).unwrap_err();
        assert!(error.contains("is not installed here"), "{error}");
    }
}
