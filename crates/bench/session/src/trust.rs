//! Which journals this user began on this machine, so that `resume` runs no command of any other
//! without asking.
//!
//! The state file has one line for each run of a plan with [demands](Plan::demands): the digest of
//! the journal's first line. It is used only if it is a file of this user that no one else can
//! change or read.

use crate::error::SessionError;
use crate::reporter::Reporter;
use guard::read_from;
use journal::Writer;
use nix::fcntl::OFlag;
use nix::unistd::geteuid;
use plan::Plan;
use std::fmt::Write as _;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Mode bits that the state file must not have: any access by group or others.
const FORBIDDEN: u32 = 0o077;
/// A million runs.
const STATE_BYTES_MAX: usize = 65 << 20;

/// Records that this user began this run. Without a state folder it prints a warning, since
/// `resume` will then ask.
pub fn register(writer: &Writer, reporter: &Reporter) {
    register_digest(writer.header_digest(), reporter);
}

/// As [`register`], by the digest of a journal's first line.
pub fn register_digest(digest: &str, reporter: &Reporter) {
    let registered = state_file().and_then(|path| {
        let add = |path: &Path| {
            if let Some(folder) = path.parent() {
                // The modes apply only to files and folders that are new; `open` refuses an older
                // file that others can read.
                let mut builder = DirBuilder::new();
                builder.recursive(true).mode(0o700).create(folder)?;
            }
            let mut options = OpenOptions::new();
            let mut file = open(path, options.append(true).create(true).mode(0o600))?;
            // One write: the lines of two runs that begin at the same time do not mix.
            file.write_all(format!("{digest}\n").as_bytes())
        };
        add(&path).map_err(|error| format!("{}: {error}", path.display()))
    });
    if let Err(reason) = registered {
        reporter.warn(&format!(
            "warning: this run cannot be registered as begun here ({reason}): `resume` will ask before it runs the \
             commands of the campaign\n"
        ));
    }
}

/// Checks that a journal's plan may be carried out: that it could come from files and, unless this
/// user began the run or `is_trusted`, that it runs nothing or the user agrees. `agrees` gets the
/// question, and returns `None` if it cannot be asked.
///
/// # Errors
/// When the plan may not be carried out.
pub fn require(
    writer: &Writer,
    plan: &Plan,
    is_trusted: bool,
    agrees: impl FnOnce(&str) -> Option<bool>,
) -> Result<(), SessionError> {
    // First, and even if the journal is trusted: no file gives a plan like that, so the journal is
    // damaged or forged.
    if let Some(mistake) = plan.mistake() {
        return Err(SessionError::ChangedPlan {
            path: writer.path().to_owned(),
            mistake,
        });
    }
    let demands = plan.demands();
    let demands = demands.iter().map(ToString::to_string).collect::<Vec<_>>();
    let journal = (writer.path(), writer.header_digest());
    require_begun(journal, &demands, is_trusted, agrees)
}

/// Checks that this user began a journal (its path, and the digest of its first line) with these
/// demands, if there are any, unless it `is_trusted` or the user agrees, as for [`require`].
///
/// # Errors
/// When the journal may not be carried on.
pub fn require_begun(
    (path, digest): (&Path, &str),
    demands: &[String],
    is_trusted: bool,
    agrees: impl FnOnce(&str) -> Option<bool>,
) -> Result<(), SessionError> {
    if demands.is_empty() || is_trusted || is_registered(digest) {
        return Ok(());
    }
    let path = path.display();
    let mut text =
        format!("{path} was not begun by this user on this machine, and its plan runs or uses\n");
    for demand in demands {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {demand}");
    }
    match agrees(&text) {
        Some(true) => Ok(()),
        Some(false) => Err(SessionError::NotTrusted(format!(
            "{path} was not resumed\n"
        ))),
        None => Err(SessionError::NotTrusted(text)),
    }
}

/// Whether the state file has this digest. A file that others could have written counts as none.
fn is_registered(digest: &str) -> bool {
    let lines = state_file().and_then(|path| read(&path).map_err(|error| error.to_string()));
    lines.is_ok_and(|lines| lines.lines().any(|line| line == digest))
}

fn read(path: &Path) -> io::Result<String> {
    let file = open(path, OpenOptions::new().read(true))?;
    let lines = String::from_utf8(read_from(file, STATE_BYTES_MAX)?);
    lines.map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Opens the state file, which must be a file of this user alone.
fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    // Without O_NOFOLLOW, a link could send the appended lines to any file of this user. Without
    // O_NONBLOCK, opening a FIFO in its place would hang.
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = options.clone().custom_flags(flags.bits()).open(path)?;
    // Of the opened file: the path could lead to another one by now.
    let metadata = file.metadata()?;
    let is_own = metadata.is_file() && metadata.uid() == geteuid().as_raw();
    if is_own && metadata.mode() & FORBIDDEN == 0 {
        Ok(file)
    } else {
        let text = "not a file of this user with mode 600";
        Err(io::Error::new(ErrorKind::PermissionDenied, text))
    }
}

/// `$XDG_STATE_HOME/cipherbench/begun`, or below `~/.local/state`.
fn state_file() -> Result<PathBuf, String> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from);
    // The XDG specification requires ignoring relative paths.
    let absolute = |path: &PathBuf| path.is_absolute();
    let home = || variable("HOME").map(|home| home.join(".local/state"));
    let base = variable("XDG_STATE_HOME").filter(absolute).or_else(home);
    let base = base.filter(absolute);
    let base = base.ok_or("neither XDG_STATE_HOME nor HOME is set")?;
    Ok(base.join("cipherbench/begun"))
}
