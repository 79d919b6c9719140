//! `cipherbench runs [DIR]`: recorded runs, their reports, and the deletion of old ones.

use super::resume::agrees;
use crate::cli::{Prune, Runs, RunsCommand};
use crate::exit::{Exit, Failure};
use crate::output;
use report::HTML_NAME;
use session::runs::{self, Run};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::SystemTime;
use units::human::{counted, data};

pub(crate) fn runs(arguments: &Runs) -> Result<Exit, Failure> {
    let folder = &arguments.folder;
    match &arguments.command {
        Some(RunsCommand::Open { run }) => open(run),
        Some(RunsCommand::Prune(arguments)) => prune(arguments),
        None => {
            let list = runs::list(folder)?;
            output::done(&if arguments.json {
                runs::json(&list)
            } else {
                runs::text(folder, &list, output::width())
            })
        }
    }
}

fn open(given: &Path) -> Result<Exit, Failure> {
    let in_default = Path::new(journal::DEFAULT_ROOT).join(given);
    // A name alone is a run's in the default folder, unless there is a folder of that name here.
    let run = if given.exists() || !in_default.exists() {
        given.to_owned()
    } else {
        in_default
    };
    if !run.join(journal::FILE_NAME).exists() {
        // The same errors as of other commands.
        journal::read(&run)?;
    }
    let report = run.join(HTML_NAME);
    let report = report.canonicalize().map_err(|error| {
        let text = format!(
            "cannot open {}: {error}\nhelp: to write it anew from the journal: cipherbench report {}",
            report.display(),
            run.display()
        );
        Failure::new(Exit::Usage, text)
    })?;
    let address = address(&report);
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    if is_set("DISPLAY") || is_set("WAYLAND_DISPLAY") {
        let quiet = Stdio::null;
        // Not waited for, since it may be the browser itself; in a group of its own, so that no
        // Ctrl-C here ends that. If it fails, the printed address remains.
        let _ = Command::new("xdg-open")
            .arg(&address)
            .stdin(quiet())
            .stdout(quiet())
            .stderr(quiet())
            .process_group(0)
            .spawn();
    }
    output::done(&format!("{address}\n"))
}

/// The address of a file for a browser (RFC 8089).
fn address(path: &Path) -> String {
    let mut address = "file://".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        // The unreserved characters of RFC 3986 §2.3, and the slashes of the path.
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            address.push(byte.into());
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

fn prune(arguments: &Prune) -> Result<Exit, Failure> {
    let Prune { folder, yes, .. } = arguments;
    let list = runs::list(folder)?;
    let old = runs::select(list, arguments.rule(), SystemTime::now());
    if old.is_empty() {
        return output::done(&format!(
            "no run in {} is to be deleted\n",
            folder.display()
        ));
    }
    output::stdout(&runs::text(folder, &old, output::width()))?;
    let size = data(old.iter().map(Run::bytes).sum::<u64>() as f64);
    let all = counted(old.len() as u64, "run");
    if !yes {
        match agrees(&format!("{all}, {size}, will be deleted. ")) {
            Some(true) => {}
            Some(false) => return output::done("nothing is deleted\n"),
            None => {
                let text = "nothing is deleted: there is no terminal for the question\n\
                            help: `--yes` deletes the listed runs without it";
                return Err(Failure::new(Exit::Usage, text));
            }
        }
    }
    // The others are deleted even if one fails: it may belong to somebody else.
    let failed = old.iter().filter_map(|run| {
        let error = runs::remove(run).err()?;
        Some(format!("{}: {error}", run.path.display()))
    });
    let failed: Vec<String> = failed.collect();
    let deleted = counted((old.len() - failed.len()) as u64, "run");
    output::stdout(&format!("{deleted} deleted\n"))?;
    if failed.is_empty() {
        return Ok(Exit::Done);
    }
    let text = format!(
        "not deleted: {}\nhelp: check who owns them, and whether they are being resumed",
        failed.join("\n  ")
    );
    Err(Failure::new(Exit::Usage, text))
}
