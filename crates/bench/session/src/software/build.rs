//! A build: its command, its end, and the file that it leaves.

use super::process::{Ended, await_end, last_lines};
use super::sources::{self, part};
use super::store::Store;
use crate::error::SessionError;
use plan::Build;
use sha2::Sha256;
use sha2::digest::Digest;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use testbed::{Interrupt, LabError};

/// Variables of a build's environment.
const VERSION: &str = "CIPHERBENCH_VERSION";
const PROGRAM: &str = "CIPHERBENCH_PROGRAM";

/// Lines of a failed build's output that its error quotes.
const LINES_QUOTED: usize = 15;

/// Most bytes of the output that are searched for them.
const OUTPUT_BYTES_MAX: u64 = 16 << 10;

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
        let mut child = child.map_err(|error| {
            let folder = self.folder.display();
            failed(format!("its build cannot be started in {folder}: {error}"))
        })?;
        let limit = Duration::from_nanos(self.build.limit_ns);
        let ended = await_end(&mut child, limit, interrupt)
            .map_err(|error| SessionError::Program(format!("a build is lost: {error}")))?;
        let said = || last_lines(log.path(), LINES_QUOTED, OUTPUT_BYTES_MAX);
        match ended {
            Ended::Interrupted => Err(SessionError::Lab(LabError::Interrupted)),
            Ended::TimedOut => Err(failed(format!(
                "its build did not end within {} (`limit`){}",
                units::time::print(limit),
                said()
            ))),
            Ended::Exited(status) if !status.success() => {
                Err(failed(format!("its build failed ({status}){}", said())))
            }
            Ended::Exited(_) => self
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
        // Inside of single quotes nothing else is special to a shell: the quote ends, an escaped
        // one follows, and the next one begins.
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
