//! Files that are written together or not at all.

use super::error::InitError;
use guard::create_durable;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Modes of files, as `cipherbench keys` makes them.
const PUBLIC: u32 = 0o644;
const SECRET: u32 = 0o600;
/// Mode of new folders.
const FOLDER: u32 = 0o700;

/// Files that are written together or not at all.
pub struct Draft {
    /// The option that names another place, for messages.
    flag: &'static str,
    folders: Vec<PathBuf>,
    files: Vec<File>,
}

struct File {
    path: PathBuf,
    /// Some are keys.
    content: Zeroizing<String>,
    mode: u32,
}

impl Draft {
    /// A draft of no files yet; `flag` is the option that names another place for them.
    #[must_use]
    pub const fn new(flag: &'static str) -> Self {
        Self {
            flag,
            folders: Vec::new(),
            files: Vec::new(),
        }
    }

    /// Adds a folder, which is created for its owner alone if it does not exist, with its parents.
    #[must_use]
    pub fn folder(mut self, path: PathBuf) -> Self {
        self.folders.push(path);
        self
    }

    /// Adds a file that everyone may read.
    #[must_use]
    pub fn file(self, path: PathBuf, content: String) -> Self {
        self.add(path, content.into(), PUBLIC)
    }

    /// Adds a file for its owner alone.
    #[must_use]
    pub fn secret(self, path: PathBuf, content: Zeroizing<String>) -> Self {
        self.add(path, content, SECRET)
    }

    fn add(mut self, path: PathBuf, content: Zeroizing<String>, mode: u32) -> Self {
        self.files.push(File {
            path,
            content,
            mode,
        });
        self
    }

    /// Refuses files that exist, unless they may be overwritten.
    ///
    /// # Errors
    /// [`InitError::Exists`] with all of them.
    pub fn refuse_existing(&self, force: bool) -> Result<(), InitError> {
        let paths: Vec<PathBuf> = self
            .files
            .iter()
            .map(|file| &file.path)
            // A link to nowhere is something too.
            .filter(|path| !force && path.symlink_metadata().is_ok())
            .cloned()
            .collect();
        if paths.is_empty() {
            return Ok(());
        }
        let flag = self.flag;
        Err(InitError::Exists { paths, flag })
    }

    /// Writes all files, or none.
    ///
    /// # Errors
    /// [`InitError::Exists`] and [`InitError::NotWritten`]; then nothing has changed.
    pub fn write(&self, force: bool) -> Result<(), InitError> {
        self.refuse_existing(force)?;
        let mut made = Made::default();
        let not_written = |path: &Path| {
            let (path, flag) = (path.to_owned(), self.flag);
            move |source| InitError::NotWritten { path, source, flag }
        };
        for folder in &self.folders {
            made.folder(folder).map_err(not_written(folder))?;
        }
        let mut renames = Vec::new();
        for File {
            path,
            content,
            mode,
        } in &self.files
        {
            // An existing file is replaced only once all others are on the disk. It is not written
            // over, since a key's content must never be in a file that others have open.
            let first = if path.symlink_metadata().is_ok() {
                if path.is_dir() {
                    return Err(not_written(path)(io::ErrorKind::IsADirectory.into()));
                }
                let beside = beside(path);
                renames.push((beside.clone(), path));
                beside
            } else {
                path.clone()
            };
            create_durable(&first, content.as_bytes(), *mode).map_err(not_written(path))?;
            made.files.push(first);
        }
        for (from, to) in &renames {
            fs::rename(from, to).map_err(not_written(to))?;
        }
        made.keep();
        Ok(())
    }
}

/// A name in the same folder, so that a rename moves no content.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    path.with_file_name(name)
}

/// What a draft has made so far; removed when dropped, unless all of it is kept.
#[derive(Default)]
struct Made {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Made {
    /// Creates a folder with its parents, and remembers those that are new.
    fn folder(&mut self, path: &Path) -> io::Result<()> {
        let named = path.ancestors().filter(|it| *it != Path::new(""));
        let mut missing: Vec<_> = named.take_while(|it| !it.exists()).collect();
        while let Some(folder) = missing.pop() {
            DirBuilder::new().mode(FOLDER).create(folder)?;
            self.folders.push(folder.to_owned());
        }
        Ok(())
    }

    fn keep(mut self) {
        self.folders.clear();
        self.files.clear();
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        for file in &self.files {
            let _ = fs::remove_file(file);
        }
        // The innermost first. A folder that somebody has put a file into stays.
        for folder in self.folders.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
    }
}
