//! The way to a host: a command prefix, what a shell there says, and this program sent there.
//!
//! Some prefixes pass words on as they are (`docker exec -i box`), others join them for a shell
//! (`ssh host`). So no word sent has a character that a shell would take for its own, and scripts
//! go over standard input.

use crate::caller::give_own_session;
use crate::own_file::own_hash;
use crate::protocol::{Ended, THIS_PROGRAM};
use crate::sync::Deadline;
use crate::{Interrupt, LabError, Result};
use campaign::plan::Host;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

/// How long a shell on the host may take to answer, connecting included.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long sending the program may take.
const SEND_LIMIT: Duration = Duration::from_secs(300);
const STEP: Duration = Duration::from_millis(10);

/// Begins the lines that are the script's and not a login shell's.
const MARK: &str = "cipherbench-reach";
/// Name of the program in the folder that it is sent to.
const NAME: &str = "cipherbench";

/// SHA-256 of this program, in hexadecimal, or why it cannot be read.
static OWN_HASH: LazyLock<Result<String, String>> =
    LazyLock::new(|| own_hash().map_err(|error| error.to_string()));

/// Options of ssh: it must never ask, and accept no unknown key.
const SSH_OPTIONS: [&str; 5] = ["-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10"];

/// A host and how to run commands there.
pub(super) struct Reach<'a> {
    /// For messages.
    name: &'a str,
    host: &'a Host,
    interrupt: &'a Interrupt,
}

/// The program that a host is to have.
#[derive(Debug, Clone, Copy)]
enum Wanted<'a> {
    /// This very program, by its hash.
    This(&'a str),
    /// The one that the lab names.
    At(&'a str),
}

/// What the host's shell said.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// As `uname -m` prints it.
    machine: String,
    /// As `uname -s` prints it.
    system: String,
    /// The wanted program, where it is installed.
    program: Option<String>,
    /// What was said instead of the version of the program that the lab names.
    refused: Option<String>,
    /// A private folder that can hold a program.
    folder: Option<String>,
}

impl<'a> Reach<'a> {
    pub(super) const fn new(name: &'a str, host: &'a Host, interrupt: &'a Interrupt) -> Self {
        Self {
            name,
            host,
            interrupt,
        }
    }

    /// The command that starts this program's agent on the host, where it was sent if it is not
    /// there.
    pub(super) fn agent(&self) -> Result<Command> {
        let agent = |program: &str| self.command(&[program, "station", "--host"]);
        if let Some(program) = &self.host.program {
            let found = self.look(Wanted::At(program))?;
            if let Some(said) = found.refused {
                let what = format!("{program} cannot be executed there: {said}");
                let help = format!(
                    "install cipherbench for {} on {} there; of this machine's kind, leave `program` out: this one \
                     is sent then",
                    found.system, found.machine
                );
                return Err(self.error(&what, &help));
            }
            if found.program.is_none() {
                let what = format!("there is no program {program} that can be executed");
                let help =
                    "correct `program` in the lab, or leave it out: this program is sent then";
                return Err(self.error(&what, help));
            }
            return Ok(agent(program));
        }
        let own = OWN_HASH.as_ref().map_err(cannot_read_itself)?;
        let found = self.look(Wanted::This(own))?;
        if let Some(program) = &found.program {
            return Ok(agent(program));
        }
        let arch = std::env::consts::ARCH;
        if found.system != "Linux" || found.machine != arch {
            let what = format!(
                "it is {} on {}, and this program is for Linux on {arch}",
                found.system, found.machine
            );
            let help = "install cipherbench of the same version there, and name it in the lab: \
                        `program: /usr/local/bin/cipherbench`";
            return Err(self.error(&what, help));
        }
        let Some(folder) = found.folder else {
            let what = "no folder there can hold a program: $TMPDIR, /tmp, /var/tmp and /dev/shm are full, read-only or \
                        `noexec`";
            let help = "install this very program there, and name it in the lab: `program: /usr/local/bin/cipherbench`";
            return Err(self.error(what, help));
        };
        let program = format!("{folder}/{NAME}");
        let sent = self.send(&program);
        if sent.is_err() {
            // A host that is gone keeps the folder; there is no more to do.
            let _ = self.run(&["rm", "-rf", &folder], Stdio::null(), ANSWER_LIMIT);
        }
        sent?;
        Ok(self.command(&[&program, "station", "--host", "--sent", own]))
    }

    /// Asks the host's shell what is there.
    fn look(&self, wanted: Wanted<'_>) -> Result<Found> {
        let ended = self.shell(&script(wanted))?;
        Found::read(&ended.stdout).ok_or_else(|| self.not_reached(&ended))
    }

    /// Sends this program to a file that can be executed. Whether it arrived whole is seen by the
    /// program itself when it starts: a connection costs more than that.
    fn send(&self, program: &str) -> Result<()> {
        let file = File::open(THIS_PROGRAM).map_err(cannot_read_itself)?;
        let to = format!("of={program}");
        let sent = self.run(&["dd", &to, "bs=65536"], file.into(), SEND_LIMIT)?;
        if sent.code == Some(0) {
            return Ok(());
        }
        let what = format!(
            "this program did not arrive whole in {program}: {}",
            last_words(&sent.stderr)
        );
        Err(self.error(&what, "see whether its disk is full, or install the program and name it in the lab: `program`"))
    }

    /// Runs a script in the host's shell.
    fn shell(&self, script: &str) -> Result<Ended> {
        let (reader, mut writer) = io::pipe().map_err(|error| self.cannot_start(&error))?;
        // A login shell may have left its line unfinished.
        let script = format!("echo\n{script}");
        // It fits a pipe, but a shell that never starts must not block this thread.
        thread::spawn(move || writer.write_all(script.as_bytes()));
        self.run(&["sh"], reader.into(), ANSWER_LIMIT)
    }

    /// A command that runs these words on the host.
    fn command(&self, words: &[&str]) -> Command {
        let (program, prefix) = self
            .host
            .reach
            .split_first()
            .unwrap_or_else(|| unreachable!("only hosts that are reached by a command are"));
        let mut command = Command::new(program);
        if Path::new(program)
            .file_name()
            .is_some_and(|name| name == "ssh")
        {
            command.args(SSH_OPTIONS);
        }
        command
            .args(prefix)
            .args(words)
            .env_remove("SSH_ASKPASS")
            .env_remove("DISPLAY");
        command
    }

    /// Runs a command to its end.
    fn run(&self, words: &[&str], input: Stdio, limit: Duration) -> Result<Ended> {
        let mut command = self.command(words);
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        give_own_session(&mut command);
        let mut child = command.spawn().map_err(|error| self.cannot_start(&error))?;
        // It holds its end of the input: whoever writes to that must see when the child is gone.
        drop(command);
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let read = |stream: Option<Box<dyn Read + Send>>| {
            thread::spawn(move || {
                let mut text = Vec::new();
                if let Some(mut stream) = stream {
                    // What could be read before an error counts.
                    let _ = stream.read_to_end(&mut text);
                }
                String::from_utf8_lossy(&text).into_owned()
            })
        };
        let stdout = read(stdout.map(|stream| Box::new(stream) as _));
        let stderr = read(stderr.map(|stream| Box::new(stream) as _));
        let status = self.await_end(&mut child, limit);
        if status.is_err() {
            // It may have ended by itself meanwhile.
            let _ = child.kill();
            let _ = child.wait();
        }
        let status = status?;
        Ok(Ended {
            code: status.code(),
            signal: status.signal(),
            stdout: stdout.join().unwrap_or_default(),
            stderr: stderr.join().unwrap_or_default(),
            ..Ended::default()
        })
    }

    fn await_end(&self, child: &mut Child, limit: Duration) -> Result<ExitStatus> {
        let deadline = Deadline::after(limit);
        loop {
            self.interrupt.check()?;
            if let Some(status) = child
                .try_wait()
                .map_err(|error| self.cannot_start(&error))?
            {
                return Ok(status);
            }
            if deadline.is_over() {
                let what = format!("it did not answer within {} s", limit.as_secs());
                return Err(self.error(&what, &self.try_it()));
            }
            thread::sleep(STEP);
        }
    }

    fn error(&self, what: &str, help: &str) -> LabError {
        LabError::cannot_build(format!("{}: {what}", self.name), help)
    }

    fn cannot_start(&self, error: &io::Error) -> LabError {
        let program = &self.host.reach[0];
        let what = format!("cannot start `{program}`: {error}");
        self.error(
            &what,
            "see whether the first word of `reach` is a program of this machine",
        )
    }

    fn try_it(&self) -> String {
        let words = self.host.describe();
        format!("`{words} true` must succeed without asking anything")
    }

    /// The error for a host whose shell did not say what it was asked.
    fn not_reached(&self, ended: &Ended) -> LabError {
        let said = last_words(&(ended.stdout.clone() + &ended.stderr));
        let what = match said.is_empty() {
            true => format!("no shell answered there ({})", ended.how()),
            false => format!("no shell answered there: {said}"),
        };
        let help = advice(&said).map_or_else(
            || self.try_it(),
            |help| format!("{help}; {}", self.try_it()),
        );
        self.error(&what, &help)
    }
}

fn cannot_read_itself(error: impl Display) -> LabError {
    let what = format!("cannot read this program itself: {error}");
    LabError::cannot_build(what, "see whether its file is still there")
}

/// What to do about the words with which a prefix failed.
fn advice(said: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 9] = [
        (
            "REMOTE HOST IDENTIFICATION HAS CHANGED",
            "find out why the host has another key; if it is right, remove the old one with `ssh-keygen -R`",
        ),
        (
            "Host key verification failed",
            "log in once by hand, compare the host's key with what its administrator says, and accept it",
        ),
        (
            "Permission denied",
            "let ssh use a key or an agent (`ssh-copy-id`): a run cannot type a password",
        ),
        (
            "terminal is required",
            "let sudo ask nothing there: `NOPASSWD` and no `requiretty` in sudoers",
        ),
        (
            "must have a tty",
            "let sudo ask nothing there: `NOPASSWD` and no `requiretty` in sudoers",
        ),
        (
            "password is required",
            "let sudo ask nothing there: `NOPASSWD` in sudoers, and `sudo -n` in `reach`",
        ),
        ("Could not resolve", "correct the host's name"),
        (
            "Connection refused",
            "see whether sshd runs there, and on which port",
        ),
        (
            "timed out",
            "see whether the host is up and its cable plugged in",
        ),
    ];
    let known = KNOWN.iter().find(|(words, _)| said.contains(words));
    known.map(|(_, help)| *help)
}

/// The last lines of what was said, as one.
fn last_words(said: &str) -> String {
    const LINES: usize = 4;
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

/// The lines of a script's output, without the mark.
fn lines(said: &str) -> impl Iterator<Item = &str> {
    said.lines()
        .filter_map(|line| line.strip_prefix(MARK)?.strip_prefix(' '))
}

impl Found {
    /// `None` if the script did not run.
    fn read(said: &str) -> Option<Self> {
        let mut found = Self::default();
        for line in lines(said) {
            let (key, value) = line.split_once(' ')?;
            let value = value.trim().to_owned();
            match key {
                "machine" => found.machine = value,
                "system" => found.system = value,
                "program" => found.program = Some(value),
                "refused" => found.refused = Some(value),
                "folder" => found.folder = Some(value),
                _ => {}
            }
        }
        (!found.machine.is_empty()).then_some(found)
    }
}

/// The script that says what the host is and whether it has the program; if this one is missing, it
/// makes a folder for it.
fn script(wanted: Wanted<'_>) -> String {
    let say_machine =
        format!("echo \"{MARK} system $(uname -s)\"\necho \"{MARK} machine $(uname -m)\"\n");
    let rest = match wanted {
        Wanted::At(program) => {
            // A shell may take a file that the kernel refuses for a script: its errors are not a
            // version.
            format!(
                "if [ -x {program} ]; then\n\
                 if said=$({program} --version 2>&1 </dev/null); then echo \"{MARK} program {program}\"\n\
                 else echo \"{MARK} refused $(echo \"$said\" | tr '\\n' ' ')\"; fi\nfi\n"
            )
        }
        Wanted::This(own) => format!(
            "f=$(command -v {NAME}) && set -- $(sha256sum \"$f\") && [ \"$1\" = {own} ] && {{\n\
             echo \"{MARK} program $f\"\nexit 0\n}}\n\
             for d in \"${{TMPDIR:-/tmp}}\" /tmp /var/tmp /dev/shm; do\n\
             f=$(mktemp -d \"$d/{NAME}-XXXXXX\" 2>/dev/null) || continue\n\
             printf '#!/bin/sh\\n' > \"$f/{NAME}\" && chmod 700 \"$f/{NAME}\" && \"$f/{NAME}\" && {{\n\
             echo \"{MARK} folder $f\"\nexit 0\n}}\n\
             rm -rf \"$f\"\n\
             done 2>/dev/null\n"
        ),
    };
    say_machine + &rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a script in this machine's shell.
    fn run(script: &str, folder: &Path) -> String {
        let mut shell = Command::new("sh");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        shell
            .env("TMPDIR", folder)
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        let mut shell = shell.spawn().unwrap();
        shell
            .stdin
            .take()
            .unwrap()
            .write_all(script.as_bytes())
            .unwrap();
        let said = shell.wait_with_output().unwrap();
        String::from_utf8(said.stdout).unwrap()
    }

    #[test]
    fn the_script_finds_this_very_program_or_makes_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let own = own_hash().unwrap();
        let said = run(&script(Wanted::This(&own)), folder.path());
        let found = Found::read(&format!("Welcome to this host!\n{said}")).unwrap();
        assert_eq!(
            (found.system.as_str(), found.machine.as_str()),
            ("Linux", std::env::consts::ARCH)
        );
        assert_eq!(found.program, None);
        let made = found.folder.unwrap();
        assert!(made.starts_with(folder.path().to_str().unwrap()), "{made}");

        let installed = folder.path().join(NAME);
        std::fs::copy(THIS_PROGRAM, &installed).unwrap();
        let said = run(&script(Wanted::This(&own)), folder.path());
        let program = Found::read(&said).unwrap().program;
        assert_eq!(program.as_deref(), installed.to_str());

        let said = run(&script(Wanted::At("/bin/true")), folder.path());
        assert_eq!(
            Found::read(&said).unwrap().program.as_deref(),
            Some("/bin/true")
        );
        let said = run(&script(Wanted::At("/bin/false")), folder.path());
        let found = Found::read(&said).unwrap();
        assert!(found.program.is_none() && found.refused.is_some());
        let said = run(&script(Wanted::At("/nowhere")), folder.path());
        assert_eq!(Found::read(&said).unwrap().program, None);
    }

    #[test]
    fn what_a_login_shell_says_is_no_answer() {
        assert_eq!(
            Found::read("Welcome!\nThis account is currently not available.\n"),
            None
        );
    }

    #[test]
    fn known_failures_come_with_what_to_do() {
        let advised = |said: &str| advice(said).unwrap();
        assert!(
            advised("root@left: Permission denied (publickey,password).").contains("ssh-copy-id")
        );
        assert!(advised("Host key verification failed.").contains("compare"));
        assert!(advised("sudo: a terminal is required to read the password").contains("NOPASSWD"));
        assert_eq!(advice("no idea"), None);
    }
}
