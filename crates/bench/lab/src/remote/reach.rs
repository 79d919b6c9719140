//! Access to a host: the command prefix, the dialogue with its shell, and the upload of this
//! program.
//!
//! Some prefixes pass words on as they are (`docker exec -i box`), others join them for a shell
//! (`ssh host`). So no word contains a shell metacharacter, and scripts go over standard input.

use super::dialogue::{Dialogue, OutputEvent};
use crate::Station;
use crate::own_file::own_hash;
use crate::programs::search_path;
use crate::sync::Deadline;
use plan::Host;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
use std::time::Duration;
use testbed::protocol::{Ended, THIS_PROGRAM};
use testbed::{Interrupt, LabError, NodeId, Result};

/// How long a shell on the host may take to answer, connecting included.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// How long sending the program may take.
const SEND_LIMIT: Duration = Duration::from_secs(300);

/// Begins the lines that are the script's and not a login shell's.
const MARK: &str = "cipherbench-reach";
/// Size of a write: the capacity of a pipe.
const CHUNK_BYTES: usize = 1 << 16;
/// Limit of the login shell's output that is kept for messages.
const CHATTER_BYTES_MAX: usize = 4096;
/// Free space that a folder must have in addition to the program's size.
const SPARE_KIB: u64 = 64;
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

/// Output of the host's shell.
#[derive(Debug, Default, PartialEq, Eq)]
struct ShellOutput {
    /// As `uname -m` prints it.
    machine: String,
    /// As `uname -s` prints it.
    system: String,
    /// The program that the shell becomes.
    program: Option<String>,
    /// Output of the lab's configured program that failed to print its version, or of a failed
    /// upload.
    refused: Option<String>,
    /// The private folder for the upload of the program.
    folder: Option<String>,
    /// Other output, of a login shell.
    chatter: String,
}

impl<'a> Reach<'a> {
    pub(super) const fn new(name: &'a str, host: &'a Host, interrupt: &'a Interrupt) -> Self {
        Self {
            name,
            host,
            interrupt,
        }
    }

    /// Starts this program's agent on the host; uploads the program if it is missing there.
    /// `of_calls` interrupts the agent's calls.
    pub(super) fn agent(&self, of_calls: &Interrupt) -> Result<Station> {
        let mut dialogue = Dialogue::begin(self.command(&["sh"]), self.interrupt)
            .map_err(|error| self.cannot_start(&error))?;
        match self.talk(&mut dialogue) {
            Ok(()) => dialogue.into_station(NodeId::Host, of_calls),
            Err(error) => {
                dialogue.end();
                Err(error)
            }
        }
    }

    /// Has the host's shell become the agent.
    fn talk(&self, dialogue: &mut Dialogue<'_>) -> Result<()> {
        let script = match &self.host.program {
            Some(program) => script_for(program),
            None => {
                let hash = OWN_HASH.as_ref().map_err(cannot_read_itself)?;
                let file = fs::metadata(THIS_PROGRAM).map_err(cannot_read_itself)?;
                script_for_this(hash, file.len())
            }
        };
        // Begins once this program is hashed, which takes time that is no fault of the host.
        let deadline = Deadline::after(ANSWER_LIMIT);
        let mut found = ShellOutput::default();
        dialogue
            .tell(&mut script.as_bytes(), deadline)?
            .map_err(cannot_read_itself)?;
        while found.program.is_none() && found.folder.is_none() {
            match self.hear(dialogue, deadline, ANSWER_LIMIT)? {
                Some(line) => found.take(&line),
                None => return Err(self.refusal(&found, dialogue)),
            }
        }
        match found.folder.take() {
            Some(folder) => self.send(dialogue, &folder),
            None => Ok(()),
        }
    }

    /// Sends this program into a folder. Whether it arrived unchanged is seen by the program itself
    /// when it starts.
    fn send(&self, dialogue: &mut Dialogue<'_>, folder: &str) -> Result<()> {
        let deadline = Deadline::after(SEND_LIMIT);
        let own = File::open(THIS_PROGRAM).map_err(cannot_read_itself)?;
        let mut own = BufReader::with_capacity(CHUNK_BYTES, own);
        let mut found = ShellOutput::default();
        while found.program.is_none() {
            // A line that is not the script's does not end the sending.
            dialogue
                .tell(&mut own, deadline)?
                .map_err(cannot_read_itself)?;
            let line = self.hear(dialogue, deadline, SEND_LIMIT)?;
            let is_over = line.is_none();
            found.take(&line.unwrap_or_default());
            if is_over || found.refused.is_some() {
                let said = match found.refused {
                    Some(said) if !said.is_empty() => said,
                    _ => last_words(&dialogue.last_words().stderr),
                };
                let what = format!("this program did not arrive whole in {folder}/{NAME}: {said}");
                let help = "see whether its disk is full, or install the program and name it in the lab: `program`";
                return Err(self.error(&what, help));
            }
        }
        Ok(())
    }

    /// The host's next line; `None` at the end of its output.
    fn hear(
        &self,
        dialogue: &mut Dialogue<'_>,
        deadline: Deadline,
        limit: Duration,
    ) -> Result<Option<String>> {
        match dialogue.line(deadline)? {
            OutputEvent::Line(line) => Ok(Some(line)),
            OutputEvent::End => Ok(None),
            OutputEvent::Silence => {
                let what = format!("it did not answer within {} s", limit.as_secs());
                Err(self.error(&what, &self.try_it()))
            }
        }
    }

    /// Why the host's shell ended without the program.
    fn refusal(&self, found: &ShellOutput, dialogue: &mut Dialogue<'_>) -> LabError {
        // By how far the script came: no shell, a program that fails, none at that path, another
        // machine, no folder.
        if found.machine.is_empty() {
            return self.not_reached(&dialogue.last_words(), &found.chatter);
        }
        if let (Some(program), Some(said)) = (&self.host.program, &found.refused) {
            let what = format!("{program} cannot be executed there: {said}");
            let help = format!(
                "install cipherbench for {} on {} there; of this machine's kind, leave `program` out: this one is \
                 sent then",
                found.system, found.machine
            );
            return self.error(&what, &help);
        }
        if let Some(program) = &self.host.program {
            let what = format!("there is no program {program} that can be executed");
            let help = "correct `program` in the lab, or leave it out: this program is sent then";
            return self.error(&what, help);
        }
        let arch = std::env::consts::ARCH;
        if found.system != "Linux" || found.machine != arch {
            let what = format!(
                "it is {} on {}, and this program is for Linux on {arch}",
                found.system, found.machine
            );
            let help = "install cipherbench of the same version there, and name it in the lab: \
                        `program: /usr/local/bin/cipherbench`";
            return self.error(&what, help);
        }
        let what = "no folder there can hold a program: $TMPDIR, /tmp, /var/tmp and /dev/shm are full, read-only or \
                    `noexec`";
        let help = "install this very program there, and name it in the lab: `program: /usr/local/bin/cipherbench`";
        self.error(what, help)
    }

    /// A command that runs these words on the host.
    fn command(&self, words: &[&str]) -> Command {
        // The first word is executed directly, without a shell that could split or expand the
        // others.
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
        // No program of the prefix may open a window to ask for a password.
        command
            .args(prefix)
            .args(words)
            .env("PATH", search_path())
            .env_remove("SSH_ASKPASS")
            .env_remove("DISPLAY");
        command
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

    /// The error for a host without an answer from a shell.
    fn not_reached(&self, ended: &Ended, chatter: &str) -> LabError {
        let said = last_words(&format!("{chatter}{}", ended.stderr));
        let what = if said.is_empty() {
            format!("no shell answered there ({})", ended.how())
        } else {
            format!("no shell answered there: {said}")
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

/// Advice for a known error message of a prefix.
fn advice(said: &str) -> Option<&'static str> {
    const KNOWN: [(&str, &str); 10] = [
        // ssh ends its warning so, and with the line below for an unknown key too.
        (
            "has changed and you have requested strict checking",
            "the host has another key than when it was accepted: ask its administrator why; if that is right, forget \
             the old key with `ssh-keygen -R HOST` and log in once by hand",
        ),
        (
            "REVOKED HOST KEY",
            "the host has a key that was revoked: ask its administrator for a new one",
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

/// Joins the last non-empty lines of a text to one line.
fn last_words(said: &str) -> String {
    const LINES: usize = 4;
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .collect();
    lines[lines.len().saturating_sub(LINES)..].join("; ")
}

impl ShellOutput {
    /// Takes a line in.
    fn take(&mut self, line: &str) {
        let said = line
            .strip_prefix(MARK)
            .and_then(|line| line.strip_prefix(' '));
        let Some((key, value)) = said.and_then(|line| line.split_once(' ')) else {
            // A login shell may print much before the script runs; only its beginning is of use.
            if self.chatter.len() < CHATTER_BYTES_MAX {
                self.chatter.push_str(line);
                self.chatter.push('\n');
            }
            return;
        };
        let value = value.trim().to_owned();
        match key {
            "machine" => self.machine = value,
            "system" => self.system = value,
            "program" => self.program = Some(value),
            "refused" => self.refused = Some(value),
            "folder" => self.folder = Some(value),
            _ => {}
        }
    }
}

/// A script that prints the host's system and machine. As one command in braces, it is read
/// completely before it runs: the input that follows is for the programs in it.
fn saying_the_machine(rest: &str) -> String {
    // A login shell may have left its line unfinished.
    format!(
        "{{\necho\nsystem=$(uname -s) machine=$(uname -m)\n\
         echo \"{MARK} system $system\"\necho \"{MARK} machine $machine\"\n{rest}exit 1\n}}\n"
    )
}

/// The script that becomes the agent of an installed program.
fn script_for(program: &str) -> String {
    // A shell may take a file that the kernel refuses for a script: its errors are not a version.
    saying_the_machine(&format!(
        "if [ -x {program} ]; then\n\
         if said=$({program} --version 2>&1 </dev/null); then\n\
         echo \"{MARK} program {program}\"\nexec {program} station --host\n\
         else echo \"{MARK} refused $(echo \"$said\" | tr '\\n' ' ')\"; fi\nfi\n"
    ))
}

/// The script that becomes the agent of this very program, identified by its hash: the installed
/// copy, or `bytes` read from its input after it has printed the folder for them.
fn script_for_this(own: &str, bytes: u64) -> String {
    let arch = std::env::consts::ARCH;
    let kib = bytes.div_ceil(1024) + SPARE_KIB;
    // The installed program if it has this hash; else the first folder with room. A `df` without a
    // number rules no folder out, since a file that is too short is noticed. A folder that is
    // `noexec` is found by a script that does nothing.
    // When the sending fails, the rest of it must not be taken for commands.
    saying_the_machine(&format!(
        "f=$(command -v {NAME}) && set -- $(sha256sum \"$f\") && [ \"$1\" = {own} ] && {{\n\
         echo \"{MARK} program $f\"\nexec \"$f\" station --host\n}}\n\
         [ \"$system $machine\" = 'Linux {arch}' ] || exit 1\n\
         for d in \"${{TMPDIR:-/tmp}}\" /tmp /var/tmp /dev/shm; do\n\
         free=$(df -Pk \"$d\" 2>/dev/null | awk 'NR == 2 {{print $4}}')\n\
         case $free in ''|*[!0-9]*) ;; *) [ \"$free\" -ge {kib} ] || continue ;; esac\n\
         d=$(mktemp -d \"$d/{NAME}-XXXXXX\" 2>/dev/null) || continue\n\
         f=$d/{NAME}\n\
         {{ printf '#!/bin/sh\\n' > \"$f\" && chmod 700 \"$f\" && \"$f\"; }} 2>/dev/null || {{\n\
         rm -rf \"$d\"\ncontinue\n}}\n\
         echo \"{MARK} folder $d\"\n\
         if said=$(head -c {bytes} 2>&1 > \"$f\") && [ \"$(wc -c < \"$f\")\" -eq {bytes} ]; then\n\
         echo \"{MARK} program $f\"\nexec \"$f\" station --host --sent {own}\nfi\n\
         rm -rf \"$d\"\necho \"{MARK} refused \" $said\nexec cat >/dev/null\ndone\n"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::io::{BufRead, Write};
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::process::Stdio;

    /// Parses the output of this machine's shell for a script, followed by `sent` as its input.
    fn found(script: &str, sent: &[u8], folder: &Path) -> ShellOutput {
        let mut shell = Command::new("sh");
        shell.stdin(Stdio::piped()).stdout(Stdio::piped());
        shell
            .env("TMPDIR", folder)
            .env("PATH", format!("{}:/usr/bin:/bin", folder.display()));
        let mut shell = shell.spawn().unwrap();
        let mut input = shell.stdin.take().unwrap();
        input.write_all(script.as_bytes()).unwrap();
        let mut found = ShellOutput::default();
        found.take("Welcome to this host!");
        for line in BufReader::new(shell.stdout.take().unwrap()).lines() {
            found.take(&line.unwrap());
            if found.folder.is_some() && found.program.is_none() && found.refused.is_none() {
                // The shell may have closed its input already.
                let _ = input.write_all(sent);
                let _ = input.flush();
            }
            if found.program.is_some() || found.refused.is_some() {
                break;
            }
        }
        drop(input);
        shell.wait().unwrap();
        found
    }

    #[test]
    fn the_script_becomes_this_very_program_or_what_is_sent() {
        let folder = tempfile::tempdir().unwrap();
        let own = own_hash().unwrap();
        let sent = b"#!/bin/sh\nexit 0\n";
        let script = script_for_this(&own, sent.len() as u64);
        let at = |found: &ShellOutput| {
            assert_eq!(
                (found.system.as_str(), found.machine.as_str()),
                ("Linux", std::env::consts::ARCH)
            );
            found.program.clone()
        };
        let by_sending = found(&script, sent, folder.path());
        let made = by_sending.folder.clone().unwrap();
        assert!(made.starts_with(folder.path().to_str().unwrap()), "{made}");
        assert_eq!(at(&by_sending), Some(format!("{made}/{NAME}")));
        assert_eq!(fs::read(format!("{made}/{NAME}")).unwrap(), sent);
        assert_eq!(by_sending.chatter, "Welcome to this host!\n\n");

        let installed = folder.path().join(NAME);
        fs::copy(THIS_PROGRAM, &installed).unwrap();
        let by_hash = found(&script, b"", folder.path());
        assert_eq!(at(&by_hash).as_deref(), installed.to_str());
        assert_eq!(by_hash.folder, None);

        let program = |name: &str| found(&script_for(name), b"", folder.path());
        assert_eq!(at(&program("/bin/true")).as_deref(), Some("/bin/true"));
        let refused = program("/bin/false");
        assert!(refused.program.is_none() && refused.refused.is_some());
        assert_eq!(at(&program("/nowhere")), None);
    }

    /// A host with an almost full tmpfs on `/tmp`: `df` reports this for the first folder.
    #[test]
    fn a_folder_without_room_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let df = folder.path().join("df");
        let script = format!(
            "#!/bin/sh\necho Filesystem 1024-blocks Used Available Capacity Mounted\n\
             free=63; [ \"$2\" = {} ] || free=999999\necho tmpfs 100 37 $free 37% /somewhere\n",
            folder.path().display()
        );
        fs::write(&df, script).unwrap();
        fs::set_permissions(&df, Permissions::from_mode(0o755)).unwrap();
        let sent = b"#!/bin/sh\nexit 0\n";
        let found = found(
            &script_for_this("0", sent.len() as u64),
            sent,
            folder.path(),
        );
        let program = PathBuf::from(found.program.unwrap());
        let at = program.parent().unwrap();
        assert_eq!(at.parent(), Some(Path::new("/tmp")), "{}", at.display());
        fs::remove_dir_all(at).unwrap();
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 1, "only `df` is there");
    }

    /// A shell that read the upload would execute these commands.
    #[test]
    fn what_does_not_arrive_is_removed_and_never_taken_for_commands() {
        let folder = tempfile::tempdir().unwrap();
        let touch = format!("touch {}/executed\n", folder.path().display());
        let sent = touch.repeat(10_000);
        // Its `head` writes nothing and fails.
        let head = folder.path().join("head");
        fs::write(&head, "#!/bin/sh\necho 'no space' >&2\nexit 1\n").unwrap();
        fs::set_permissions(&head, Permissions::from_mode(0o755)).unwrap();
        let script = script_for_this("0", sent.len() as u64);
        let found = found(&script, sent.as_bytes(), folder.path());
        assert_eq!(found.refused.as_deref(), Some("no space"));
        assert_eq!(found.program, None);
        assert!(!Path::new(&found.folder.unwrap()).exists());
        assert!(!folder.path().join("executed").exists());
    }

    #[test]
    fn what_a_login_shell_says_is_no_answer() {
        let mut found = ShellOutput::default();
        found.take("Welcome!");
        found.take("This account is currently not available.");
        assert_eq!(found.machine, "");
        assert!(found.chatter.ends_with("not available.\n"));
    }

    #[test]
    fn known_failures_come_with_what_to_do() {
        let advised = |said: &str| advice(said).unwrap();
        assert!(
            advised("root@left: Permission denied (publickey,password).").contains("ssh-copy-id")
        );
        assert!(advised("Host key verification failed.").contains("compare"));
        // The last lines of what ssh says: the warning in capitals comes long before.
        let changed = "Offending ED25519 key in /root/.ssh/known_hosts:1\n  remove with:\n  \
                       ssh-keygen -f \"/root/.ssh/known_hosts\" -R \"left\"\nHost key for left has changed \
                       and you have requested strict checking.\nHost key verification failed.\n";
        assert!(advised(&last_words(changed)).contains("ssh-keygen -R"));
        assert!(advised("sudo: a terminal is required to read the password").contains("NOPASSWD"));
        assert_eq!(advice("no idea"), None);
    }
}
