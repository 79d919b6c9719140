//! The folder of a run.

use crate::JournalError;
use crate::record::Header;
use crate::time::utc_compact;
use std::fs::DirBuilder;
use std::io::ErrorKind;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Name of the journal in the folder of a run.
pub const FILE_NAME: &str = "journal.jsonl";

/// Folder of runs without `--out`, below the working directory.
pub const DEFAULT_ROOT: &str = "runs";

/// A longer journal is not read. A journal of 10 000 trials has some tens of megabytes.
pub const FILE_BYTES_MAX: usize = 2 << 30;

/// Maximum number of runs of one name that begin in one second; more indicate a runaway loop.
const MAX_NAMESAKES: u32 = 1_000;

/// Creates the folder of a new run, `root/20261120T113000Z-name`, and returns its path. If that
/// exists, `-2`, `-3` … is appended; no two callers get the same folder. `root` is created if it is
/// missing.
///
/// # Errors
/// When a folder cannot be created, or a thousand runs of that name began in that second.
pub fn run_dir(root: &Path, started_unix_ns: u64, name: &str) -> Result<PathBuf, JournalError> {
    let mut folders = DirBuilder::new();
    // Others may read the data of a report, but not replace it, independent of the umask.
    folders.mode(0o755);
    // A root that exists is no error here. The folder of the run must be new, so it is made
    // without `recursive`.
    let made = folders.recursive(true).create(root);
    made.map_err(|error| JournalError::io("create", root, error))?;
    folders.recursive(false);
    let base = folder_name(started_unix_ns, name);
    // By trial, not by a look first: another run may begin in the same moment.
    for namesake in 1..=MAX_NAMESAKES {
        let path = match namesake {
            1 => root.join(&base),
            _ => root.join(format!("{base}-{namesake}")),
        };
        match folders.create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(JournalError::io("create", path, error)),
        }
    }
    Err(JournalError::Exists {
        path: root.join(base),
    })
}

/// Returns the path of a run's folder as the recorded command created it, relative to that
/// command's working directory. `None` if a shell, HTML or Markdown would need it quoted. A second
/// run of the same name in the same second has a suffix that the journal does not record.
#[must_use]
pub fn dir_as_created(header: &Header) -> Option<String> {
    let mut words = header.command.iter().map(String::as_str);
    // The program itself.
    words.next()?;
    let mut root = DEFAULT_ROOT;
    while let Some(word) = words.next() {
        if word == "--out" {
            // The last one counts, as the command line reads it.
            root = words.next()?;
        } else if let Some(path) = word.strip_prefix("--out=") {
            root = path;
        }
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "./-".contains(c);
    // A path that begins so would be read as an option when it is copied into a command.
    let is_path = root.starts_with(|c: char| c != '-') && root.chars().all(is_plain);
    let name = folder_name(header.started_unix_ns, &header.plan.name);
    is_path.then(|| format!("{}/{name}", root.trim_end_matches('/')))
}

fn folder_name(started_unix_ns: u64, name: &str) -> String {
    format!("{}-{}", utc_compact(started_unix_ns), safe(name))
}

/// Replaces `RUN` with the run's folder in commands that a text names: texts of a journal and of
/// its results do not contain its location.
#[must_use]
pub fn with_run(text: &str, run: &str) -> String {
    let named = ["resume", "report", "compare", "verify"].iter();
    named.fold(text.to_owned(), |text, command| {
        // With the command in front: the word alone may stand in any text.
        let placeholder = format!("cipherbench {command} RUN");
        text.replace(&placeholder, &format!("cipherbench {command} {run}"))
    })
}

/// Replaces characters that a folder name must not have. Campaign names have none; others may.
fn safe(name: &str) -> String {
    name.chars()
        // Never `/` or `.`: no name leads out of the root.
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '-' {
                c
            } else {
                '-'
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn commands_name_the_run() {
        let text =
            "make room, then `cipherbench resume RUN --invalid`; cipherbench report RUN. RUN";
        assert_eq!(
            with_run(text, "runs/a"),
            "make room, then `cipherbench resume runs/a --invalid`; cipherbench report runs/a. RUN"
        );
    }

    const STARTED: u64 = 1_795_174_200_000_000_000;

    #[test]
    fn two_runs_of_one_second_get_different_folders() {
        let root = tempfile::tempdir().unwrap();
        let runs = root.path().join("runs");
        let names: Vec<_> = (0..3)
            .map(|_| run_dir(&runs, STARTED, "quick").unwrap())
            .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(
            names,
            [
                "20261120T113000Z-quick",
                "20261120T113000Z-quick-2",
                "20261120T113000Z-quick-3"
            ]
        );
    }

    #[test]
    fn a_name_cannot_leave_the_root() {
        let root = tempfile::tempdir().unwrap();
        let path = run_dir(root.path(), STARTED, "../../etc/x y").unwrap();
        assert_eq!(path.parent(), Some(root.path()));
        assert_eq!(path.file_name().unwrap(), "20261120T113000Z-------etc-x-y");
    }

    #[test]
    fn a_file_in_place_of_the_root_is_reported_with_its_path() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("runs");
        fs::write(&file, "").unwrap();
        let error = run_dir(&file, STARTED, "quick").unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("cannot create {}", file.display())),
            "{error}"
        );
    }

    #[test]
    fn others_cannot_write_to_the_folder_of_a_run() {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        let root = top.path().join("some/runs");
        let run = run_dir(&root, STARTED, "quick").unwrap();
        for folder in [&run, &root, &top.path().join("some")] {
            let mode = folder.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o022, 0, "{} has mode {mode:o}", folder.display());
        }
    }
}
