//! The list of a run's files with their SHA-256, as `sha256sum` writes and checks it.

use crate::{MANIFEST, SIGNATURE};
use guard::visible;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Bytes per read; captures have gigabytes.
const CHUNK: usize = 64 * 1024;
/// The longest list that is read: 100,000 files with long names.
pub(crate) const BYTES_MAX: usize = 32 * 1024 * 1024;
/// Digits of a SHA-256 in hexadecimal.
const DIGITS: usize = 64;

/// Files with their SHA-256, in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manifest {
    /// From a path relative to the run's folder, with `/`, to the hash in lower-case hexadecimal.
    files: BTreeMap<String, String>,
}

/// Why a list cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// A file or folder cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    NotRead {
        /// Its path.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// Neither a file nor a folder, so its content is not defined by the run's folder.
    #[error("{} is a link or a special file, which cannot be signed\nhelp: replace it by the file itself, or \
             move it out of the run's folder", path.display())]
    Special {
        /// Its path.
        path: PathBuf,
    },
    /// A name that `sha256sum` would write in another way.
    #[error(
        "the name `{}` has a line break, a backslash or bytes that are not UTF-8\nhelp: rename the file",
        visible(name)
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A line that is not `HASH  NAME`.
    #[error(
        "line {line} of the list of files is not `HASH  NAME`: it has been changed, or is of another program"
    )]
    Line {
        /// Number, from 1.
        line: usize,
    },
}

/// How the files of a folder differ from a list, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Files with another content.
    pub changed: Vec<String>,
    /// Files of the list that are not there.
    pub missing: Vec<String>,
    /// Files that are not in the list.
    pub added: Vec<String>,
}

impl Manifest {
    /// Hashes every file of a folder and of the folders in it, but a former list and its
    /// signature.
    ///
    /// # Errors
    /// [`ManifestError`], but [`ManifestError::Line`].
    pub fn of(dir: &Path) -> Result<Self, ManifestError> {
        let mut found = Self::default();
        found.add(dir, "")?;
        Ok(found)
    }

    fn add(&mut self, folder: &Path, prefix: &str) -> Result<(), ManifestError> {
        let not_read = |path: &Path| {
            let path = path.to_owned();
            move |source| ManifestError::NotRead { path, source }
        };
        for entry in fs::read_dir(folder).map_err(not_read(folder))? {
            let entry = entry.map_err(not_read(folder))?;
            let path = entry.path();
            let name = entry.file_name();
            let name = name
                .to_str()
                // `sha256sum` escapes these and begins the line with a backslash, which `parse`
                // does not read.
                .filter(|name| !name.contains(['\n', '\r', '\\']))
                .ok_or_else(|| ManifestError::Name {
                    name: name.to_string_lossy().into_owned(),
                })?;
            let name = format!("{prefix}{name}");
            // Of the entry itself: a link is not followed.
            let kind = entry.file_type().map_err(not_read(&path))?;
            if kind.is_dir() {
                self.add(&path, &format!("{name}/"))?;
            } else if !kind.is_file() {
                // A link could be signed with one content and read with another. A FIFO would block
                // the reader.
                return Err(ManifestError::Special { path });
            } else if name != MANIFEST && name != SIGNATURE {
                let hash = hash(&path).map_err(not_read(&path))?;
                self.files.insert(name, hash);
            }
        }
        Ok(())
    }

    /// Reads a list from its text.
    ///
    /// # Errors
    /// [`ManifestError::Line`].
    pub fn parse(text: &str) -> Result<Self, ManifestError> {
        let mut files = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let wrong = || ManifestError::Line { line: index + 1 };
            let (hash, name) = line.split_once("  ").ok_or_else(wrong)?;
            // Lower case only, as this program and `sha256sum` write it: hashes are compared as
            // texts.
            let is_hash = hash.len() == DIGITS
                && hash
                    .bytes()
                    .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
            // A name twice: `sha256sum --check` would check both lines, and this map only the last
            // one.
            if !is_hash || files.insert(name.to_owned(), hash.to_owned()).is_some() {
                return Err(wrong());
            }
        }
        Ok(Self { files })
    }

    /// Returns the text, which `sha256sum --check` reads.
    #[must_use]
    pub fn text(&self) -> String {
        let lines = self.files.iter();
        lines
            .map(|(name, hash)| format!("{hash}  {name}\n"))
            .collect()
    }

    /// Returns the number of files.
    #[must_use]
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// Returns whether there is no file.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Returns whether a file of this name is in the list.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.files.contains_key(name)
    }

    /// Compares the files that are there now with this list.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Changes {
        let mut changes = Changes::default();
        for (name, hash) in &self.files {
            match now.files.get(name) {
                Some(other) if other == hash => {}
                Some(_) => changes.changed.push(name.clone()),
                None => changes.missing.push(name.clone()),
            }
        }
        let added = now.files.keys();
        let added = added.filter(|name| !self.files.contains_key(*name));
        changes.added = added.cloned().collect();
        changes
    }
}

fn hash(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut digest = Sha256::new();
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = file.read(&mut chunk)?;
        if count == 0 {
            return Ok(base16ct::lower::encode_string(&digest.finalize()));
        }
        digest.update(&chunk[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_list_is_what_sha256sum_writes() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("captures")).unwrap();
        fs::write(dir.path().join("captures/a b.pcap"), "abc").unwrap();
        fs::write(dir.path().join("report.md"), "").unwrap();
        fs::write(dir.path().join(MANIFEST), "old").unwrap();
        let found = Manifest::of(dir.path()).unwrap();
        // FIPS 180-2, appendix B.1, and the hash of nothing.
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  captures/a b.pcap\n\
                    e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  report.md\n";
        assert_eq!(found.text(), text);
        assert_eq!(Manifest::parse(text).unwrap(), found);
    }

    #[test]
    fn changes_are_named() {
        let hash = |digit: &str| digit.repeat(DIGITS);
        let list = |files: &[(&str, &str)]| {
            let lines = files.iter();
            let text: String = lines
                .map(|(name, digit)| format!("{}  {name}\n", hash(digit)))
                .collect();
            Manifest::parse(&text).unwrap()
        };
        let signed = list(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let found = signed.changes(&list(&[("a", "1"), ("b", "4"), ("d", "3")]));
        assert_eq!(found.changed, ["b"]);
        assert_eq!(found.missing, ["c"]);
        assert_eq!(found.added, ["d"]);
        assert_eq!(signed.changes(&signed), Changes::default());
    }

    #[test]
    fn lines_of_another_form_are_refused() {
        let hash = "0".repeat(DIGITS);
        for text in [
            "x".to_owned(),
            format!("{hash} a\n"),
            format!("{}  a\n", &hash[1..]),
            format!("{}  a\n", "G".repeat(DIGITS)),
            format!("{hash}  a\n{hash}  a\n"),
        ] {
            assert!(Manifest::parse(&text).is_err(), "{text}");
        }
    }

    #[test]
    fn links_and_names_of_two_lines_cannot_be_signed() {
        let dir = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", dir.path().join("report.md")).unwrap();
        let error = Manifest::of(dir.path()).unwrap_err();
        assert!(matches!(error, ManifestError::Special { .. }), "{error}");
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a\nb"), "").unwrap();
        let error = Manifest::of(dir.path()).unwrap_err();
        assert!(matches!(error, ManifestError::Name { .. }), "{error}");
    }
}
