//! Why IKE cannot be set up.

use keying::KeyError;
use std::io;
use std::net::SocketAddr;

/// Why IKE cannot be set up.
#[derive(Debug)]
pub(crate) enum SetupError {
    /// A secret cannot be used, or there are no random numbers.
    Keys(KeyError),
    /// The port of first messages cannot be bound.
    Port {
        address: SocketAddr,
        error: io::Error,
    },
    /// A socket or thread cannot be created.
    Resources(io::Error),
}

impl From<KeyError> for SetupError {
    fn from(error: KeyError) -> Self {
        Self::Keys(error)
    }
}
