//! Programs run on a gateway, most of them `swanctl`.

use super::KEYS_LOG;
use super::answers::{self, Answer};
use super::causes::{Cause, cause};
use super::config::Half;
use std::time::Duration;
use testbed::protocol::Program;
use testbed::{LabError, Node, Result};

/// How long one command may take.
pub(super) const TOOL_LIMIT: Duration = Duration::from_secs(20);

/// Most characters of a command that an error quotes.
const COMMAND_CHARS: usize = 200;

/// Most lines of a log that an error quotes.
const LOG_LINES: usize = 4;

/// Joins the last lines of a log to one.
fn last_lines(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].join("; ")
}

/// Returns the last lines of a log as the end of an error.
fn words_of(log: &str) -> String {
    match last_lines(log) {
        nothing if nothing.is_empty() => nothing,
        said => format!("\nthe daemon said: {said}"),
    }
}

/// A gateway and the folder of its files.
pub(super) struct Gateway<'a> {
    pub(super) dut: &'a str,
    pub(super) node: &'a dyn Node,
    pub(super) folder: &'a str,
    /// Its daemon.
    pub(super) program: &'a str,
    /// Its half of the tunnels.
    pub(super) half: Half<'a>,
}

impl Gateway<'_> {
    /// URI of its daemon's control socket.
    pub(super) fn uri(&self) -> String {
        format!("unix://{}/charon.vici", self.folder)
    }

    /// Path of its configuration.
    pub(super) fn configuration(&self) -> String {
        format!("{}/swanctl.conf", self.folder)
    }

    /// Returns the daemon's answer to a `swanctl` command.
    pub(super) fn ask(&self, words: &[&str]) -> Result<Answer> {
        let words: Vec<&str> = words.iter().copied().chain(["--pretty"]).collect();
        Ok(answers::parse(&self.swanctl(&words)?))
    }

    /// Runs `swanctl` with these arguments; returns its output.
    pub(super) fn swanctl(&self, words: &[&str]) -> Result<String> {
        let uri = self.uri();
        let argv: Vec<&str> = ["swanctl"]
            .into_iter()
            .chain(words.iter().copied())
            .chain(["--uri", &uri])
            .collect();
        self.run(&argv)
    }

    /// Runs a program that must succeed; returns its output.
    pub(super) fn run(&self, argv: &[&str]) -> Result<String> {
        self.run_program(TOOL_LIMIT, Program::new(argv.iter().copied()))
    }

    /// Runs a shell script in the folder of its files.
    pub(super) fn in_folder(&self, script: &str) -> Result<()> {
        let script = format!("cd \"$1\"; {script}");
        self.run(&["sh", "-euc", &script, "sh", self.folder])
            .map(drop)
    }

    /// As [`run`](Self::run), with another time limit, and an input if the program has one.
    pub(super) fn run_program(&self, limit: Duration, program: Program) -> Result<String> {
        // A script would fill the error.
        let what: String = program.argv.join(" ").chars().take(COMMAND_CHARS).collect();
        let ended = self.node.run(program, limit)?;
        if ended.code == Some(0) {
            return Ok(ended.stdout);
        }
        // The reason may be on standard output: the daemon's log of the attempt.
        let name = self.node.name();
        let log = last_lines(&ended.stdout);
        let said = ended.stderr.lines().last().unwrap_or_default();
        let said = [said, &log].into_iter().filter(|it| !it.is_empty());
        let (how, said) = (ended.how(), said.collect::<Vec<_>>().join("; "));
        Err(self.error(format!("failed on {name}: `{what}` ({how}): {said}")))
    }

    /// The log of a station's daemon, without keys; empty if it cannot be read.
    pub(super) fn log(&self) -> String {
        // Lines of the groups with keys are left out; `-a` because a log with one odd byte counts
        // as binary.
        let script = "grep -aE '^[0-9]+\\[(IKE|NET|CFG|KNL)\\]' \"$1\" | tail -n 1000";
        let log = format!("{}/{KEYS_LOG}", self.folder);
        let said = self.run(&["sh", "-c", script, "sh", &log]);
        said.unwrap_or_default()
    }

    /// Returns the last log lines of a station's daemon as the end of an error.
    pub(super) fn last_words(&self) -> String {
        words_of(&self.log())
    }

    /// Returns the number of packets that a station's daemon has received from its peer.
    pub(super) fn heard(&self) -> Result<usize> {
        let script = "grep -ac '\\[NET\\] received packet: ' \"$1\" || true";
        let log = format!("{}/{KEYS_LOG}", self.folder);
        let count = self.run(&["sh", "-c", script, "sh", &log])?;
        Ok(count.trim().parse().unwrap_or(0))
    }

    /// The error for tunnels that did not come up, by a daemon's log of the attempt: the cause,
    /// `result`, the help, and the daemon's last words.
    pub(super) fn explain(&self, result: &str, log: &str) -> LabError {
        let Cause { what, help } = cause(log);
        let said = words_of(log);
        self.error(format!("{what}: it {result}\nhelp: {help}{said}"))
    }

    pub(super) fn error(&self, reason: String) -> LabError {
        LabError::dut(self.dut, reason)
    }
}
