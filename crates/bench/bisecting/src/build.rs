//! Programs of versions: given ones, or built from revisions and kept in a cache.
//!
//! Each revision is built in a fresh work tree in a private folder, at the same place for all, and
//! the work tree is removed afterwards. The cache is keyed by revision, command and the program's
//! path in the tree; it may be read by this user only.

use crate::file::{digest, is_program};
use crate::git::Repository;
use crate::record::Made;
use crate::shell;
use crate::{BisectingError, Version};
use guard::{RelativePath, Writers};
use session::software::{Ended, last_lines};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use testbed::{Interrupt, LabError};
use units::human::duration;

/// Lines of a build's output in a message.
const LINES: usize = 3;
/// Bytes of a build's output that are read for them.
const TAIL_BYTES: u64 = 4096;
/// Name of the work tree in its private folder.
const TREE: &str = "tree";

/// The program of a version, or the reason for a missing one.
pub(crate) enum Built {
    Program(PathBuf, Made),
    /// It does not build.
    Broken(String),
}

/// Builds revisions.
#[derive(Debug)]
pub(crate) struct Builder {
    pub(crate) repository: Repository,
    /// For a shell.
    pub(crate) command: String,
    /// The program's path in the tree.
    pub(crate) program: RelativePath,
    pub(crate) limit: Duration,
    pub(crate) cache: PathBuf,
    /// Whether programs in the cache are built again.
    pub(crate) afresh: bool,
    /// Folder of the bisection, for the outputs of builds.
    pub(crate) logs: PathBuf,
}

impl Builder {
    /// The program of a revision.
    ///
    /// # Errors
    /// When it cannot be tried, and [`LabError::Interrupted`].
    pub(crate) fn program(
        &self,
        version: &Version,
        interrupt: &Interrupt,
    ) -> Result<Built, BisectingError> {
        let Version::Revision { commit, .. } = version else {
            unreachable!("only revisions are built")
        };
        let kept = self.kept(commit)?;
        if !self.afresh && is_program(&kept) {
            let made = Made {
                sha256: digest(&kept)?,
                was_cached: true,
                duration_ns: 0,
            };
            return Ok(Built::Program(kept, made));
        }
        // A name of this length each time: some programs contain their path.
        // Private, as others may write to the folder for temporary files: a tree there could be
        // replaced between the checkout and the build.
        let private = TempDir::with_prefix("cipherbench-bisect-");
        let private = private.map_err(|error| {
            BisectingError::io("create a folder in", std::env::temp_dir(), error)
        })?;
        let tree = Tree {
            path: private.path().join(TREE),
            repository: &self.repository,
        };
        self.repository.check_out(commit, &tree.path)?;
        self.build(version, &tree.path, &kept, interrupt)
    }

    fn build(
        &self,
        version: &Version,
        tree: &Path,
        kept: &Path,
        interrupt: &Interrupt,
    ) -> Result<Built, BisectingError> {
        let log_path = self.logs.join(format!("build-{}.log", version.name()));
        let log = File::create(&log_path)
            .map_err(|error| BisectingError::io("write", &log_path, error))?;
        let began = Instant::now();
        let ended = shell::run(&self.command, tree, log, self.limit, interrupt)
            .map_err(|error| BisectingError::io("run", "sh", error))?;
        let broken = |problem: String| {
            let said = last_lines(&log_path, LINES, TAIL_BYTES);
            Ok(Built::Broken(format!(
                "{problem}{said}\nits output: {}",
                log_path.display()
            )))
        };
        match ended {
            Ended::Interrupted => return Err(LabError::Interrupted.into()),
            Ended::TimedOut => {
                return broken(format!(
                    "does not build: `{}` took longer than {}",
                    self.command,
                    duration(self.limit)
                ));
            }
            Ended::Exited(status) if !status.success() => {
                return broken(format!(
                    "does not build: `{}` ended with {status}",
                    self.command
                ));
            }
            Ended::Exited(_) => {}
        }
        // A build can succeed without the program, as with another target: that revision is skipped
        // too.
        let program = self.program.below(tree);
        if !is_program(&program) {
            let name = self.program.as_str();
            return broken(format!("builds, but leaves no program `{name}`"));
        }
        let took = began.elapsed();
        keep(&program, kept).map_err(|error| BisectingError::io("write", kept, error))?;
        let made = Made {
            sha256: digest(kept)?,
            was_cached: false,
            duration_ns: plan::nanos(took),
        };
        Ok(Built::Program(kept.to_owned(), made))
    }

    /// The place of a revision's program in the cache.
    fn kept(&self, commit: &str) -> Result<PathBuf, BisectingError> {
        // The zeros separate the parts, which have none: two different triples never give one key.
        let key = format!("{commit}\0{}\0{}", self.command, self.program.as_str());
        let key = base16ct::lower::encode_string(&Sha256::digest(key));
        // 128 bits: two triples do not have the same ones by chance, and paths stay short.
        let folder = self.cache.join(&key[..32]);
        let mut private = DirBuilder::new();
        private
            .recursive(true)
            // Only for new folders; the check below refuses older ones that others can write to.
            .mode(0o700)
            .create(&folder)
            .map_err(|error| BisectingError::io("create", &folder, error))?;
        // A program that others could have replaced would run with this user's rights.
        Writers::of_process().check(&folder).map_err(|insecure| {
            BisectingError::mistake(
                format!(
                    "built programs cannot be kept in {}: {insecure}",
                    self.cache.display()
                ),
                "name another folder with `--cache`",
            )
        })?;
        let name = Path::new(self.program.as_str()).file_name();
        Ok(folder.join(name.unwrap_or("program".as_ref())))
    }
}

/// A work tree, removed in any case.
struct Tree<'a> {
    path: PathBuf,
    repository: &'a Repository,
}

impl Drop for Tree<'_> {
    fn drop(&mut self) {
        self.repository.remove(&self.path);
    }
}

/// Copies a program to its place by a rename, so that no incomplete one is ever found there.
fn keep(program: &Path, kept: &Path) -> io::Result<()> {
    let folder = kept.parent().unwrap_or(Path::new("/"));
    let copy = tempfile::NamedTempFile::new_in(folder)?;
    // The mode is copied too: the temporary file alone could not be executed.
    fs::copy(program, copy.path())?;
    copy.persist(kept)?;
    Ok(())
}
