//! The content of a build's sources, as a digest.

use sha2::Sha256;
use sha2::digest::Digest;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Most files below a build's sources.
const FILES_MAX: usize = 200_000;

/// Adds files and folders to a hash: names, kinds, the right to execute, and content.
///
/// # Errors
/// With the reason and the remedy.
pub(super) fn add(hash: &mut Sha256, path: &Path) -> Result<(), String> {
    let mut count = 0;
    walk(hash, path, &mut count)
}

fn walk(hash: &mut Sha256, path: &Path, count: &mut usize) -> Result<(), String> {
    let failed = |error: io::Error| {
        let help = "name files and folders that are there as `sources`, or leave `sources` out";
        format!(
            "cannot read the source {}: {error}\nhelp: {help}",
            path.display()
        )
    };
    *count += 1;
    if *count > FILES_MAX {
        return Err(format!(
            "{} is beyond {FILES_MAX} files of `sources`\nhelp: name the folders that decide what \
             is built",
            path.display()
        ));
    }
    // A link's target is read as a file of its own only if it is named too.
    let metadata = fs::symlink_metadata(path).map_err(failed)?;
    if metadata.is_symlink() {
        let target = fs::read_link(path).map_err(failed)?;
        part(hash, b"link", target.as_os_str().as_bytes());
    } else if metadata.is_dir() {
        let entries = fs::read_dir(path).map_err(failed)?;
        let names = entries.map(|entry| Ok(entry?.file_name()));
        let mut names = names.collect::<io::Result<Vec<_>>>().map_err(failed)?;
        // The order of a folder's entries depends on the file system.
        names.sort();
        part(hash, b"folder", &names.len().to_le_bytes());
        for name in names {
            part(hash, b"name", name.as_bytes());
            walk(hash, &path.join(name), count)?;
        }
    } else if metadata.is_file() {
        let may_run = metadata.permissions().mode() & 0o111 != 0;
        part(hash, b"file", &[u8::from(may_run)]);
        let digest = lab::programs::digest(path).map_err(failed)?;
        part(hash, b"content", digest.as_bytes());
    } else {
        // Sockets, pipes and devices have no content that could be built in.
        part(hash, b"other", b"");
    }
    Ok(())
}

/// Adds a part with its kind and length, so that no two sequences of parts are the same bytes.
pub(super) fn part(hash: &mut Sha256, kind: &[u8], bytes: &[u8]) {
    for bytes in [kind, bytes] {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(path: &Path) -> String {
        let mut hash = Sha256::new();
        add(&mut hash, path).unwrap();
        base16ct::lower::encode_string(&hash.finalize())
    }

    #[test]
    fn any_change_of_the_sources_changes_their_digest_and_nothing_else_does() {
        let folder = testing::folder().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("sub")).unwrap();
        fs::write(at("sub/a"), "one").unwrap();
        fs::write(at("b"), "two").unwrap();
        let first = digest_of(folder.path());
        fs::write(at("b"), "two").unwrap();
        assert_eq!(digest_of(folder.path()), first, "written again");
        let mut seen = vec![first];
        let mut changed = |what: &str| {
            let digest = digest_of(folder.path());
            assert!(!seen.contains(&digest), "{what}");
            seen.push(digest);
        };
        fs::write(at("sub/a"), "other").unwrap();
        changed("content");
        fs::rename(at("sub/a"), at("sub/c")).unwrap();
        changed("name");
        fs::set_permissions(at("b"), fs::Permissions::from_mode(0o755)).unwrap();
        changed("the right to execute");
        std::os::unix::fs::symlink("b", at("link")).unwrap();
        changed("a link");
        fs::remove_file(at("b")).unwrap();
        changed("a file less");
    }

    #[test]
    fn a_source_that_is_missing_is_named() {
        let error = add(&mut Sha256::new(), Path::new("/nonexistent/src")).unwrap_err();
        assert!(
            error.contains("cannot read the source /nonexistent/src"),
            "{error}"
        );
    }
}
