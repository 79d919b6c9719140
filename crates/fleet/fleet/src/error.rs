//! Errors of a fleet, and how a refusal of the server becomes one.

use std::io;
use std::path::Path;

/// Error of a fleet.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The server cannot be reached.
    #[error("cannot reach the fleet's server at {url}: {reason}\nhelp: {help}")]
    Unreachable {
        /// The server's address.
        url: String,
        /// Why.
        reason: String,
        /// Advice.
        help: &'static str,
    },
    /// The server does not accept this user.
    #[error("the fleet's server at {url} does not accept this user: {reason}\nhelp: {help}")]
    Unknown {
        /// The server's address.
        url: String,
        /// Why.
        reason: String,
        /// Advice.
        help: &'static str,
    },
    /// The server has no fleet, or one of another version.
    #[error("{what}\nhelp: {help}")]
    Foreign {
        /// The server's state.
        what: String,
        /// Advice.
        help: String,
    },
    /// The user may not do that.
    #[error(
        "this user may not {what}: the server denies {subject}\nhelp: use the key of another role (`--key`), or have \
         the server's owner change this one's (docs/fleet.md)"
    )]
    Denied {
        /// The action.
        what: String,
        /// The subject to which the user may not publish.
        subject: String,
    },
    /// The server has no room for more.
    #[error(
        "the fleet's server has no room to {what}: {reason}\nhelp: make room on the disk of its store, or raise its \
         limit (`fleet server --store-max`); runs stay on the disks of their agents, and are uploaded then"
    )]
    Full {
        /// The request.
        what: String,
        /// The server's answer.
        reason: String,
    },
    /// A run or an entry is not accepted: its names leave its folder, or its size is beyond the
    /// bounds.
    #[error("{what} is not accepted: {reason}")]
    Unfit {
        /// The run or the entry.
        what: String,
        /// Why.
        reason: String,
    },
    /// The server refused or lost a request.
    #[error("the fleet's server did not {what}: {reason}")]
    Refused {
        /// The request.
        what: String,
        /// Why.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("{what}: {error}")]
    Disk {
        /// The failed action, with its file.
        what: String,
        /// The reason.
        error: io::Error,
    },
    /// A file says something wrong.
    #[error("{file}: {reason}\nhelp: {help}")]
    Mistake {
        /// The file, with the number of the line if known.
        file: String,
        /// The mistake.
        reason: String,
        /// Advice.
        help: String,
    },
}

/// Whether the server says that it, an account or a bucket has no room (error codes of JetStream).
pub(crate) fn is_full(reason: &str) -> bool {
    const CODES: [u32; 3] = [10_023, 10_047, 10_077];
    let says = |code: u32| reason.contains(&format!("error code {code})"));
    CODES.into_iter().any(says)
}

/// Names the action that failed, and its file or folder.
pub(crate) fn disk<'a>(
    action: &'a str,
    path: &'a Path,
) -> impl Fn(io::Error) -> FleetError + Copy + 'a {
    move |error| FleetError::Disk {
        what: format!("cannot {action} {}", path.display()),
        error,
    }
}

pub(crate) fn refused(what: String, error: &dyn std::error::Error) -> FleetError {
    FleetError::Refused {
        what,
        reason: error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_store_is_recognised_by_its_code() {
        for reason in [
            "failed getting entry: publish failed: insufficient resources (code 503, error code 10023)",
            "maximum bytes exceeded (code 400, error code 10077)",
        ] {
            assert!(is_full(reason), "{reason}");
        }
        for reason in [
            "timed out",
            "wrong last sequence: 7 (code 400, error code 10071)",
        ] {
            assert!(!is_full(reason), "{reason}");
        }
    }
}
