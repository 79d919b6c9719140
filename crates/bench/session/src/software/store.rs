//! The store of built programs: by the SHA-256 of their content, and by what they were built from.

use lab::programs::digest;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The folder of programs: a run keeps using the one that it began with, whatever is built later.
pub(super) struct Store(PathBuf);

impl Store {
    /// Opens `$XDG_CACHE_HOME/cipherbench/programs`, or the same below `~/.cache`.
    pub(super) fn open() -> Result<Self, String> {
        let variable = |name| std::env::var_os(name).map(PathBuf::from);
        // The XDG specification requires ignoring relative paths.
        let absolute = |path: &PathBuf| path.is_absolute();
        let home = || variable("HOME").map(|home| home.join(".cache"));
        let base = variable("XDG_CACHE_HOME").filter(absolute).or_else(home);
        let base = base.filter(absolute).ok_or(
            "neither XDG_CACHE_HOME nor HOME is set\nhelp: set one: built programs are kept there",
        )?;
        Self::at(base.join("cipherbench/programs"))
    }

    pub(super) fn at(folder: PathBuf) -> Result<Self, String> {
        let made = folder.join("made");
        // Its programs run with this user's rights, so no other user may write there.
        let mut builder = fs::DirBuilder::new();
        let created = builder.recursive(true).mode(0o700).create(&made);
        created.map_err(|error| cannot("create", &made, &error))?;
        Ok(Self(folder))
    }

    /// A new file for the output of a build.
    pub(super) fn log(&self) -> Result<tempfile::NamedTempFile, String> {
        let log = tempfile::Builder::new()
            .prefix("build-")
            .tempfile_in(&self.0);
        log.map_err(|error| cannot("write", &self.0, &error))
    }

    /// The program that was built from this before, if it is unchanged.
    pub(super) fn made(&self, key: &str) -> Option<String> {
        let text = fs::read_to_string(self.0.join("made").join(key)).ok()?;
        let (sha256, name) = text.trim_end().split_once(' ')?;
        // Both become parts of a path: a note that was changed must not lead out of the store.
        let is_word = |text: &str| !text.contains('/') && !text.starts_with('.');
        if !is_word(sha256) || !is_word(name) {
            return None;
        }
        let path = self.0.join(sha256).join(name);
        // A copy that was changed or cut short is built again, and not measured under its old name.
        (digest(&path).ok()? == sha256).then(|| path.to_string_lossy().into_owned())
    }

    /// Copies a program to the folder of its SHA-256, and remembers what it was built from; returns
    /// the copy's path.
    pub(super) fn keep(&self, program: &Path, key: Option<&str>) -> Result<String, String> {
        let unread = |error: io::Error| cannot("read", program, &error);
        let sha256 = digest(program).map_err(unread)?;
        // Some programs behave by their name, so it stays.
        let name = program.file_name().unwrap_or_default().to_string_lossy();
        let folder = self.0.join(&sha256);
        let path = folder.join(&*name);
        if digest(&path).ok().as_deref() != Some(&sha256) {
            let store = || -> io::Result<()> {
                fs::create_dir_all(&folder)?;
                let mut copy = tempfile::NamedTempFile::new_in(&folder)?;
                io::copy(&mut fs::File::open(program)?, &mut copy)?;
                copy.as_file()
                    .set_permissions(fs::Permissions::from_mode(0o755))?;
                copy.persist(&path)?;
                Ok(())
            };
            store().map_err(|error| cannot("write", &path, &error))?;
            // The file may have been written to since it was read.
            if digest(&path).map_err(unread)? != sha256 {
                return Err(format!("{} changes while it is copied", program.display()));
            }
        }
        if let Some(key) = key {
            let note = || -> io::Result<()> {
                let made = self.0.join("made");
                let mut file = tempfile::NamedTempFile::new_in(&made)?;
                writeln!(file, "{sha256} {name}")?;
                file.persist(made.join(key))?;
                Ok(())
            };
            note().map_err(|error| cannot("write", &self.0, &error))?;
        }
        Ok(path.to_string_lossy().into_owned())
    }
}

fn cannot(action: &str, path: &Path, error: &io::Error) -> String {
    format!("cannot {action} {}: {error}", path.display())
}
