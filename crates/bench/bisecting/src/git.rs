//! The repository: revisions in order, and work trees to build them in.

use crate::shell::GIT_VARIABLES;
use crate::{BisectingError, Version};
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Files of changes that a message lists.
const LISTED_MAX: usize = 5;

/// A git repository with a work tree.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// The top folder of its work tree.
    top: PathBuf,
}

impl Repository {
    /// The repository that a folder belongs to.
    pub(crate) fn of(folder: &Path) -> Result<Self, BisectingError> {
        let output = git(folder, ["rev-parse", "--show-toplevel"])?;
        if !output.status.success() {
            return Err(BisectingError::mistake(
                format!(
                    "{} is not in the work tree of a git repository: {}",
                    folder.display(),
                    said(&output)
                ),
                "run it in the repository of the device, or name that with `--repository`",
            ));
        }
        let top = PathBuf::from(text(&output));
        Ok(Self { top })
    }

    pub(crate) fn top(&self) -> &Path {
        &self.top
    }

    /// Refuses changes that no revision has: they would not be built.
    pub(crate) fn refuse_changes(&self) -> Result<(), BisectingError> {
        // Files that git does not know are usually outputs of builds and runs.
        let status = ["status", "--porcelain", "--untracked-files=no"];
        let changed = self.ask(status)?;
        if changed.is_empty() {
            return Ok(());
        }
        let files: Vec<&str> = changed.lines().map(str::trim).collect();
        let more = match files.len().saturating_sub(LISTED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let listed = files[..files.len().min(LISTED_MAX)].join(", ");
        Err(BisectingError::mistake(
            format!(
                "the work tree {} has changes that no revision has: {listed}{more}",
                self.top.display()
            ),
            "commit them (`git commit`) or set them aside (`git stash`): only revisions are built",
        ))
    }

    /// The revisions from the good to the bad one, along the first parents of the bad one.
    pub(crate) fn revisions(&self, good: &str, bad: &str) -> Result<Vec<Version>, BisectingError> {
        let (good_commit, bad_commit) = (self.commit("good", good)?, self.commit("bad", bad)?);
        if good_commit == bad_commit {
            return Err(BisectingError::mistake(
                format!("`{good}` and `{bad}` are the same revision, {good_commit}"),
                "name two revisions, of which the good one is older",
            ));
        }
        // Along first parents a merge is one step: revisions inside a merged branch need not have
        // what the good end has, and their order would be arbitrary.
        let range = format!("{good_commit}..{bad_commit}");
        let listed = self.ask([
            "rev-list",
            "--first-parent",
            "--reverse",
            "--format=%H%x00%s",
            &range,
        ])?;
        // Lines without a zero are headings.
        let split = listed.lines().filter_map(|line| line.split_once('\0'));
        let revision = |(commit, subject): (&str, &str)| Version::Revision {
            commit: commit.to_owned(),
            subject: subject.to_owned(),
        };
        let later: Vec<Version> = split.map(revision).collect();
        // `A..B` also lists revisions if A is no ancestor of B: only the parent of the first one
        // shows that the line begins at the good end.
        let parent = match later.first() {
            Some(Version::Revision { commit, .. }) => self.parent(commit)?,
            _ => None,
        };
        if parent.as_deref() != Some(&*good_commit) {
            return Err(self.no_line((good, &good_commit), (bad, &bad_commit)));
        }
        let subject = self.ask(["show", "--no-patch", "--format=%s", &good_commit])?;
        let first = Version::Revision {
            commit: good_commit,
            subject,
        };
        Ok([first].into_iter().chain(later).collect())
    }

    /// The error that the good revision is not among the first parents of the bad one.
    fn no_line(&self, good: (&str, &str), bad: (&str, &str)) -> BisectingError {
        let is_ancestor = |old: &str, new: &str| {
            let asked = git(&self.top, ["merge-base", "--is-ancestor", old, new]);
            asked.is_ok_and(|output| output.status.success())
        };
        if is_ancestor(bad.1, good.1) {
            return BisectingError::mistake(
                format!(
                    "`{}` is older than `{}`: the ends are swapped",
                    bad.0, good.0
                ),
                format!(
                    "`--good {} --bad {}`, with `rises` in place of `drops` if the figure became better",
                    bad.0, good.0
                ),
            );
        }
        let shallow = self.ask(["rev-parse", "--is-shallow-repository"]);
        let problem = if is_ancestor(good.1, bad.1) {
            format!(
                "`{}` came into `{}` by a merge: it is not among the first parents",
                good.0, bad.0
            )
        } else {
            format!("`{}` is no ancestor of `{}`", good.0, bad.0)
        };
        let help = if shallow.is_ok_and(|answer| answer == "true") {
            "this clone has only a part of the history: `git fetch --unshallow`"
        } else {
            "name a revision on the same branch, such as the one that `git log --first-parent` has, \
             or the tip of the merged branch as `--bad`"
        };
        BisectingError::mistake(problem, help)
    }

    /// Checks a revision out into a new folder.
    pub(crate) fn check_out(&self, commit: &str, tree: &Path) -> Result<(), BisectingError> {
        let words: [&OsStr; 6] = [
            // Detached: no branch is left behind in the repository.
            "worktree".as_ref(),
            "add".as_ref(),
            "--force".as_ref(),
            "--detach".as_ref(),
            tree.as_os_str(),
            commit.as_ref(),
        ];
        let output = git(&self.top, words)?;
        if output.status.success() {
            return Ok(());
        }
        Err(BisectingError::mistake(
            format!(
                "git cannot check {commit} out into {}: {}",
                tree.display(),
                said(&output)
            ),
            "see whether the folder for temporary files ($TMPDIR) has room, and whether git may write to its repository",
        ))
    }

    /// Removes a work tree, if it is one of this repository.
    pub(crate) fn remove(&self, tree: &Path) {
        // Twice: it may be locked, and files may be left of the build. A failure leaves a folder
        // for temporary files.
        let words: [&OsStr; 5] = [
            "worktree".as_ref(),
            "remove".as_ref(),
            "--force".as_ref(),
            "--force".as_ref(),
            tree.as_os_str(),
        ];
        let _ = git(&self.top, words);
    }

    fn commit(&self, end: &str, revision: &str) -> Result<String, BisectingError> {
        // A tag leads to its commit; a file or a tree of that name is refused here, not by the
        // checkout.
        let object = format!("{revision}^{{commit}}");
        let words = [
            "rev-parse",
            "--verify",
            "--quiet",
            // A revision that begins with `-` would be an option of git.
            "--end-of-options",
            &object,
        ];
        let output = git(&self.top, words)?;
        if output.status.success() {
            return Ok(text(&output));
        }
        Err(BisectingError::mistake(
            format!(
                "`--{end} {revision}` names no revision in {}",
                self.top.display()
            ),
            "`git log --first-parent --oneline` lists them; branches and tags of others need `git fetch --tags`",
        ))
    }

    fn parent(&self, commit: &str) -> Result<Option<String>, BisectingError> {
        let object = format!("{commit}^1");
        let output = git(&self.top, ["rev-parse", "--verify", "--quiet", &object])?;
        Ok(output.status.success().then(|| text(&output)))
    }

    fn ask<const N: usize>(&self, words: [&str; N]) -> Result<String, BisectingError> {
        let output = git(&self.top, words)?;
        if output.status.success() {
            return Ok(text(&output));
        }
        Err(BisectingError::mistake(
            format!("`git {}` failed: {}", words.join(" "), said(&output)),
            "see whether the repository is whole: `git fsck`",
        ))
    }
}

/// Runs git in a folder.
fn git(
    folder: &Path,
    words: impl IntoIterator<Item = impl AsRef<OsStr>>,
) -> Result<Output, BisectingError> {
    let mut command = Command::new("git");
    // Hooks belong to the work of a person in the repository, not to a checkout for a build.
    command.args(["-c", "core.hooksPath=/dev/null"]);
    // With the setting of a user, the words of GnuPG would come among the lines that are parsed.
    command.args(["-c", "log.showSignature=false", "-C"]);
    command.arg(folder).args(words);
    // The prefix of errors, which `said` removes, is translated otherwise.
    command.env("LC_ALL", "C").stdin(Stdio::null());
    for variable in GIT_VARIABLES {
        // A hook of git that calls this program sets them, and they overrule `-C`.
        command.env_remove(variable);
    }
    command.output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => BisectingError::mistake(
            "git is not installed here",
            "apt install git, or give programs: `--programs good,bad`",
        ),
        _ => BisectingError::io("run", "git", error),
    })
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// What git said of its failure, without its hints.
fn said(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let first = errors.lines().find(|line| !line.trim().is_empty());
    let first = first.unwrap_or("it gives no reason");
    first.trim_start_matches("fatal: ").to_owned()
}
