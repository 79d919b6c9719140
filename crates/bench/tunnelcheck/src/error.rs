//! Errors of a check.

use std::io;
use std::net::SocketAddr;
use testbed::LabError;

/// Error of a check. Its text says what failed, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// A mistake in the command line.
    #[error("{problem}\nhelp: {help}")]
    Mistake {
        /// The mistake.
        problem: String,
        /// The remedy.
        help: String,
    },
    /// The listener has another token.
    #[error(
        "the other end at {0} refused the token\n\
         help: copy the line that `tunnel-check --listen` printed there last: a token is for one check"
    )]
    WrongToken(SocketAddr),
    /// The listener has another version of the protocol.
    #[error(
        "the other end at {peer} has version {theirs} of this protocol, and this program {ours}\n\
         help: use the same version of cipherbench on both hosts"
    )]
    WrongVersion {
        /// The listener.
        peer: SocketAddr,
        /// Its version.
        theirs: u32,
        /// This program's.
        ours: u32,
    },
    /// Nobody listens.
    #[error("cannot reach the other end at {peer}: {error}\nhelp: {help}")]
    NoListener {
        /// The address.
        peer: SocketAddr,
        /// The reason.
        error: io::Error,
        /// The remedy.
        help: &'static str,
    },
    /// The address cannot be used.
    #[error("cannot listen on {address}: {error}\nhelp: {help}")]
    CannotListen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        error: io::Error,
        /// The remedy.
        help: &'static str,
    },
    /// No asker came.
    #[error(
        "nobody asked within {0}\n\
         help: start it again, and run the printed line on the other host; a firewall must let TCP and \
         UDP of that port through"
    )]
    NoClient(String),
    /// The other end went away in the middle.
    #[error(
        "the other end went away while this one {during}: {reason}\n\
         help: see what it printed there, then start both ends again"
    )]
    Lost {
        /// The step.
        during: &'static str,
        /// The reason.
        reason: String,
    },
    /// A program or socket of this host.
    #[error("cannot {action}: {error}\nhelp: {help}")]
    Here {
        /// The action.
        action: &'static str,
        /// The reason.
        error: io::Error,
        /// The remedy.
        help: &'static str,
    },
    /// Offloads must not be tried at an end.
    #[error(
        "offloads cannot be tried {end}: {reason}\n\
         help: log in by another path or as root and start again; or leave out `--offloads`"
    )]
    NoOffloads {
        /// `here` or `there`.
        end: &'static str,
        /// The reason.
        reason: String,
    },
    /// The other end could not be started.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// Ctrl-C.
    #[error("interrupted; neither end keeps anything\nhelp: start both ends again")]
    Interrupted,
}

/// How an error ends the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The command line is wrong.
    Mistake,
    /// This host, or the other one, cannot take part.
    Impossible,
    /// It was interrupted.
    Interrupted,
    /// Nothing is known.
    Undecided,
}

impl CheckError {
    /// How it ends the program.
    #[must_use]
    pub const fn outcome(&self) -> Outcome {
        match self {
            Self::Mistake { .. } | Self::WrongToken(_) => Outcome::Mistake,
            Self::Interrupted | Self::Lab(LabError::Interrupted) => Outcome::Interrupted,
            Self::NoClient(_) | Self::Lost { .. } => Outcome::Undecided,
            Self::WrongVersion { .. }
            | Self::NoListener { .. }
            | Self::CannotListen { .. }
            | Self::Here { .. }
            | Self::NoOffloads { .. }
            | Self::Lab(_) => Outcome::Impossible,
        }
    }

    /// A mistake in the command line, and its remedy.
    pub fn mistake(problem: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Mistake {
            problem: problem.into(),
            help: help.into(),
        }
    }
}

/// An error of this host's random numbers, threads or sockets.
pub(crate) fn here(action: &'static str) -> impl Fn(io::Error) -> CheckError {
    move |error| CheckError::Here {
        action,
        error,
        help: "see whether this host has descriptors, processes and memory left",
    }
}
