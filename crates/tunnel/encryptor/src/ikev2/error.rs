//! Why IKE cannot be set up.

use control::IdentityError;
use keying::KeyError;
use std::io;
use std::net::SocketAddr;

/// Why IKE cannot be set up.
#[derive(Debug)]
pub(crate) enum SetupError {
    /// A secret cannot be used, or there are no random numbers.
    Keys(KeyError),
    /// A certificate, its key or an authority cannot be used.
    Identity(IdentityError),
    /// The port of first messages cannot be bound.
    Port {
        address: SocketAddr,
        error: io::Error,
    },
    /// A socket or thread cannot be created.
    Resources(io::Error),
}

impl From<IdentityError> for SetupError {
    fn from(error: IdentityError) -> Self {
        Self::Identity(error)
    }
}

impl From<KeyError> for SetupError {
    fn from(error: KeyError) -> Self {
        Self::Keys(error)
    }
}
