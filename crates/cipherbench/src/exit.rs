//! Exit codes, and the failures that lead to them.

use bisecting::BisectingError;
use engine::EngineError;
#[cfg(feature = "fleet")]
use fleet::FleetError;
use guard::visible_lines;
use journal::JournalError;
use live::LiveError;
use report::WriteError;
use session::SessionError;
use session::init::InitError;
use signing::SigningError;
use speed::SpeedError;
use std::fmt;
use std::io::ErrorKind;
use std::process::{ExitCode, Termination};
use testbed::LabError;
use tunnelcheck::{CheckError, Outcome};
#[cfg(feature = "fleet")]
use view::ViewError;
use yaml::Mistakes;
use yaml::names::{nearest, question};

/// The program's exit codes. Part of the interface: never renumbered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Everything was done, and every figure is valid.
    Done = 0,
    /// A cell failed, or evidence speaks against its figure; lint found an error; a gate of a
    /// comparison or a limit of a campaign is violated.
    CriterionFailed = 1,
    /// The command line or a given file is wrong.
    Usage = 2,
    /// This host cannot currently build the lab or open the encryptor's ports.
    CannotBuild = 3,
    /// The run was interrupted; finished trials are kept, and it can be resumed.
    Interrupted = 4,
    /// Trials are missing, or a gate or a limit is undecided.
    Inconclusive = 5,
}

/// The exit codes as `--help` lists them.
pub(crate) const EXIT_CODES: &str = "\
Exit codes:
  0  done
  1  a criterion failed: a failed or invalid cell, an error of lint, a violated gate or limit
  2  usage or campaign error
  3  the lab cannot be built here (privilege, program, kernel, name or address in use)
  4  interrupted, or ended for a busy machine: continue with `cipherbench resume RUN`
  5  inconclusive: trials are missing, or a gate or a limit is undecided";

impl Termination for Exit {
    fn report(self) -> ExitCode {
        ExitCode::from(self as u8)
    }
}

/// An error that ends the program.
///
/// Its text names the failure and its place, followed by a line `help: …` with the remedy.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    text: String,
}

impl Failure {
    pub(crate) fn new(exit: Exit, text: impl fmt::Display) -> Self {
        Self {
            exit,
            // Added here, so that no caller forgets it or says it twice.
            text: format!("error: {text}"),
        }
    }

    /// The failure of a command that this build does not have.
    #[cfg(not(feature = "fleet"))]
    pub(crate) fn without(feature: &str) -> Self {
        let text = format!(
            "this program was built without the feature `{feature}`, as `make run` does to build in less time\n\
             help: `make build` builds target/release/cipherbench with all features; packages and `make install` have them too"
        );
        Self::new(Exit::CannotBuild, text)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Mistakes> for Failure {
    fn from(mistakes: Mistakes) -> Self {
        // Each mistake has a separate `error:`.
        Self {
            exit: Exit::Usage,
            text: mistakes.to_string(),
        }
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Interrupted => Self::new(
                Exit::Interrupted,
                "interrupted while the lab was built; no trial was run",
            ),
            // Errors in trials are recorded with the trials; an error that arrives here prevented
            // the lab.
            error => Self::new(Exit::CannotBuild, error),
        }
    }
}

impl From<InitError> for Failure {
    fn from(error: InitError) -> Self {
        match error {
            InitError::Mistakes(mistakes) => mistakes.into(),
            error => Self::new(Exit::Usage, error),
        }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        // A run that is not there: mistyped, or another folder.
        let nearest = match &error {
            JournalError::NotARun { path } => session::nearest_run(path),
            JournalError::Io {
                action: "read",
                path,
                source,
            } if source.kind() == ErrorKind::NotFound => session::nearest_run(path),
            _ => None,
        };
        match nearest {
            Some(run) => {
                let run = run.display().to_string();
                let question = question(Some(&run));
                Self::new(Exit::Usage, format!("{error}; {}", question.trim_end()))
            }
            None => Self::new(Exit::Usage, error),
        }
    }
}

impl From<WriteError> for Failure {
    fn from(error: WriteError) -> Self {
        Self::new(Exit::Usage, error)
    }
}

impl From<SigningError> for Failure {
    fn from(error: SigningError) -> Self {
        match error {
            SigningError::Journal(error) => error.into(),
            // The run is not what a signature would say.
            error @ (SigningError::Damaged { .. } | SigningError::Stale { .. }) => {
                Self::new(Exit::CriterionFailed, error)
            }
            error => Self::new(Exit::Usage, error),
        }
    }
}

#[cfg(feature = "fleet")]
impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let exit = match error {
            // Only these are in the hands of the caller; all others are the server's or the
            // network's.
            FleetError::Disk { .. } | FleetError::Mistake { .. } | FleetError::Unfit { .. } => {
                Exit::Usage
            }
            _ => Exit::CannotBuild,
        };
        // Their texts may come from servers and peers.
        Self::new(exit, visible_lines(&error.to_string()))
    }
}

#[cfg(feature = "fleet")]
impl From<ViewError> for Failure {
    fn from(error: ViewError) -> Self {
        match error {
            ViewError::Fleet(error) => error.into(),
            error => Self::new(Exit::Usage, error),
        }
    }
}

impl From<LiveError> for Failure {
    fn from(error: LiveError) -> Self {
        // An address in use, or no resources: nothing was made.
        Self::new(Exit::CannotBuild, error)
    }
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        if let EngineError::Unknown(unknown) = &error {
            let known = unknown.known.split(", ").chain(["auto"]);
            let question = question(nearest(&unknown.name, known));
            if !question.is_empty() {
                let text = format!("{error}; {}", question.trim_end());
                return Self::new(Exit::Usage, text);
            }
        }
        let exit = match error {
            EngineError::Unknown(_) | EngineError::NotServed { .. } => Exit::Usage,
            // It failed its test vectors: no mistake of the caller, nor of the host.
            EngineError::Refused { .. } => Exit::CriterionFailed,
            EngineError::Unavailable { .. } | EngineError::None { .. } => Exit::CannotBuild,
        };
        Self::new(exit, error)
    }
}

impl From<SpeedError> for Failure {
    fn from(error: SpeedError) -> Self {
        let exit = match error {
            SpeedError::Engine(error) => return error.into(),
            // An engine with wrong results is what a test of engines looks for.
            SpeedError::Failed(_) => Exit::CriterionFailed,
            SpeedError::Nothing(_) | SpeedError::TooFewCores { .. } => Exit::Usage,
            SpeedError::Cores(_) | SpeedError::Pin { .. } => Exit::CannotBuild,
        };
        Self::new(exit, error)
    }
}

impl From<SessionError> for Failure {
    fn from(error: SessionError) -> Self {
        let exit = match error {
            SessionError::Mistakes(error) => return error.into(),
            SessionError::Lab(error) => return error.into(),
            SessionError::Journal(error) => return error.into(),
            SessionError::Write(error) => return error.into(),
            SessionError::NoShortForm
            | SessionError::NoOffloads(_)
            | SessionError::UnknownName { .. }
            | SessionError::NoFile { .. }
            | SessionError::UnknownExample { .. }
            | SessionError::Runs { .. }
            | SessionError::Permissions { .. }
            | SessionError::NoRoom { .. }
            | SessionError::ChangedPlan { .. }
            | SessionError::NotTrusted(_) => Exit::Usage,
            SessionError::Tune(_)
            | SessionError::MissingPrograms(_)
            | SessionError::Program(_)
            | SessionError::NoProgramPath(_)
            | SessionError::NoAnswer { .. } => Exit::CannotBuild,
            SessionError::JournalLost(_) | SessionError::Interrupted(_) => Exit::Interrupted,
        };
        Self::new(exit, error)
    }
}

impl From<CheckError> for Failure {
    fn from(error: CheckError) -> Self {
        let exit = match error.outcome() {
            Outcome::Mistake => Exit::Usage,
            Outcome::Impossible => Exit::CannotBuild,
            Outcome::Interrupted => Exit::Interrupted,
            Outcome::Undecided => Exit::Inconclusive,
        };
        // Their texts may come from the other end.
        Self::new(exit, visible_lines(&error.to_string()))
    }
}

impl From<BisectingError> for Failure {
    fn from(error: BisectingError) -> Self {
        let exit = match error {
            BisectingError::Session(error) => return error.into(),
            BisectingError::Journal(error) => return error.into(),
            BisectingError::BrokeOff { .. } => Exit::Interrupted,
            // The build or the device is at fault.
            BisectingError::End { .. } => Exit::CriterionFailed,
            BisectingError::Gate(_)
            | BisectingError::Mistake { .. }
            | BisectingError::Parameter(_)
            | BisectingError::Io { .. } => Exit::Usage,
        };
        Self::new(exit, error)
    }
}
