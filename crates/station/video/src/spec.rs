//! One station's part in a trial, as JSON.

use plan::VideoTest;
use serde::{Deserialize, Serialize};
use std::net::SocketAddrV4;
use std::path::PathBuf;

/// One station's part in a trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Spec {
    /// Makes the clip, reports a [`Prepared`] and ends.
    Prepare(Prepare),
    /// Serves the clip: over RTP once, over HTTP until it is stopped.
    Serve(Serve),
    /// Plays the clip, reports and ends.
    Receive(Receive),
}

/// The part of each station before the trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepare {
    /// The trial.
    pub test: VideoTest,
    /// The station's folder for clips; an existing clip is reused.
    pub folder: PathBuf,
}

/// The clip that a station prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prepared {
    /// Length of the file.
    pub clip_bytes: u64,
    /// Hash of all its frames. It differs if the stations' versions of ffmpeg make different clips.
    pub frames_hash: u64,
}

/// The server's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serve {
    /// The trial.
    pub test: VideoTest,
    /// The station's folder for clips.
    pub folder: PathBuf,
    /// TCP port for the receiver's request for streams; over HTTP, the server's port.
    pub port: u16,
    /// UDP payload of a full RTP packet, see [`datagram_bytes`](crate::datagram_bytes).
    pub datagram_bytes: u16,
}

/// The receiver's part.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receive {
    /// The trial.
    pub test: VideoTest,
    /// The station's folder for clips.
    pub folder: PathBuf,
    /// The server's address.
    pub server: SocketAddrV4,
    /// UDP port of the first stream over RTP; each further one takes the next even port.
    pub first_port: u16,
}
