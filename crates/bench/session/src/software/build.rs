//! A build: its command, its end, and the file that it leaves.

use super::sources::{self, part};
use super::store::Store;
use crate::error::SessionError;
use guard::visible_lines;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use plan::Build;
use sha2::Sha256;
use sha2::digest::Digest;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use testbed::{Interrupt, LabError};

/// Variables of a build's environment.
const VERSION: &str = "CIPHERBENCH_VERSION";
const PROGRAM: &str = "CIPHERBENCH_PROGRAM";

/// Polling interval of a running build.
const STEP: Duration = Duration::from_millis(20);

/// Lines of a failed build's output that its error quotes.
const LINES_QUOTED: usize = 15;

/// Most bytes of the output that are searched for them.
const OUTPUT_BYTES_MAX: usize = 16 << 10;

/// One build of one version.
pub(super) struct Task<'p> {
    build: &'p Build,
    version: Option<&'p str>,
    /// The whole path at which it leaves the program.
    pub(super) program: PathBuf,
    folder: PathBuf,
}

impl<'p> Task<'p> {
    pub(super) fn of(
        build: &'p Build,
        version: Option<&'p str>,
        program: &str,
    ) -> Result<Self, SessionError> {
        let absolute = |path: &Path| {
            let path = std::path::absolute(path);
            path.map_err(|error| SessionError::Program(format!("the current folder: {error}")))
        };
        // A campaign in the current folder has an empty one.
        let folder = Path::new(".").join(&build.folder);
        Ok(Self {
            build,
            version,
            program: absolute(Path::new(program))?,
            folder: absolute(&folder)?,
        })
    }

    /// The DUT's name with the version's, in messages.
    pub(super) fn name(&self, dut: &str) -> String {
        match self.version {
            Some(version) => format!("program of `{dut}`, version {version}"),
            None => format!("program of `{dut}`"),
        }
    }

    /// The digest of everything that decides what is built; `None` without sources, whose build
    /// runs each time.
    pub(super) fn key(&self) -> Result<Option<String>, SessionError> {
        if self.build.sources.is_empty() {
            return Ok(None);
        }
        let mut hash = Sha256::new();
        part(&mut hash, b"command", self.build.command.as_bytes());
        part(
            &mut hash,
            b"version",
            self.version.unwrap_or_default().as_bytes(),
        );
        for path in [&self.program, &self.folder] {
            part(&mut hash, b"path", path.as_os_str().as_encoded_bytes());
        }
        for source in &self.build.sources {
            part(&mut hash, b"source", source.as_bytes());
            sources::add(&mut hash, Path::new(source)).map_err(SessionError::Program)?;
        }
        Ok(Some(base16ct::lower::encode_string(&hash.finalize())))
    }

    /// Runs the command until it ends, and checks that a program is there then.
    pub(super) fn run(
        &self,
        dut: &str,
        store: &Store,
        interrupt: &Interrupt,
    ) -> Result<(), SessionError> {
        let failed = |reason: String| {
            let (name, hint) = (self.name(dut), self.by_hand());
            SessionError::Program(format!("{name}: {reason}\nhelp: to see it alone: {hint}"))
        };
        // Into a file: a process that the build leaves behind may hold it as long as it likes.
        let log = store.log().map_err(SessionError::Program)?;
        // One offset for both, or they would overwrite each other.
        let output = || log.as_file().try_clone();
        let streams = output().and_then(|stdout| Ok((stdout, output()?)));
        let (stdout, stderr) = streams.map_err(|error| failed(format!("its log: {error}")))?;
        let mut command = Command::new("sh");
        command
            .args(["-c", &self.build.command])
            .current_dir(&self.folder)
            .env(VERSION, self.version.unwrap_or_default())
            .env(PROGRAM, &self.program)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            // All that it starts is killed with it.
            .process_group(0);
        let child = command.spawn();
        let child = child.map_err(|error| {
            let folder = self.folder.display();
            failed(format!("its build cannot be started in {folder}: {error}"))
        })?;
        let limit = Duration::from_nanos(self.build.limit_ns);
        let ended = await_end(child, limit, interrupt)?;
        let said = || last_lines(log.path());
        match ended {
            None => Err(failed(format!(
                "its build did not end within {} (`limit`){}",
                units::time::print(limit),
                said()
            ))),
            Some(status) if !status.success() => {
                Err(failed(format!("its build failed ({status}){}", said())))
            }
            Some(_) => self
                .check_program()
                .map_err(|reason| failed(format!("{reason}{}", said()))),
        }
    }

    fn check_program(&self) -> Result<(), String> {
        let path = self.program.display();
        match fs::metadata(&self.program) {
            Ok(found) if !found.is_file() => Err(format!("its build left no file at {path}")),
            Ok(found) if found.permissions().mode() & 0o111 == 0 => Err(format!(
                "its build left a file at {path} that cannot be executed"
            )),
            Ok(_) => Ok(()),
            Err(_) => Err(format!("its build left no program at {path}")),
        }
    }

    /// The build as a command for a shell.
    fn by_hand(&self) -> String {
        let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
        format!(
            "cd {} && {VERSION}={} {PROGRAM}={} sh -c {}",
            quoted(&self.folder.to_string_lossy()),
            quoted(self.version.unwrap_or_default()),
            quoted(&self.program.to_string_lossy()),
            quoted(&self.build.command)
        )
    }
}

/// Waits for a build's end; `None` if it was killed at its limit.
fn await_end(
    mut child: Child,
    limit: Duration,
    interrupt: &Interrupt,
) -> Result<Option<ExitStatus>, SessionError> {
    let begun = Instant::now();
    let end = |child: &mut Child| {
        let group = Pid::from_raw(child.id().cast_signed());
        // It is not reaped yet, so the number is still its group's.
        let _ = killpg(group, Signal::SIGKILL);
        let _ = child.wait();
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) => {}
            Err(error) => {
                end(&mut child);
                return Err(SessionError::Program(format!("a build is lost: {error}")));
            }
        }
        if interrupt.is_set() {
            end(&mut child);
            return Err(SessionError::Lab(LabError::Interrupted));
        }
        if begun.elapsed() >= limit {
            end(&mut child);
            return Ok(None);
        }
        thread::sleep(STEP);
    }
}

/// The end of a build's output, indented below a message; empty if it printed nothing.
fn last_lines(log: &Path) -> String {
    let bytes = fs::read(log).unwrap_or_default();
    let end = &bytes[bytes.len().saturating_sub(OUTPUT_BYTES_MAX)..];
    let text = String::from_utf8_lossy(end);
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| !line.trim().is_empty())
        .collect();
    let last = &lines[lines.len().saturating_sub(LINES_QUOTED)..];
    let quoted = last
        .iter()
        .map(|line| format!("\n  {}", visible_lines(line)));
    quoted.collect()
}
