//! Video over RTP (RFC 3550, RFC 2250) and over HTTP: one station's part in one trial.
//!
//! `cipherbench video` reads a [`Spec`] as JSON ([`play`]):
//!
//! 1. Both stations prepare the same clip with ffmpeg, once per run.
//! 2. Station B serves it: over RTP by ffmpeg, at the clip's rate, or over HTTP as a file.
//! 3. Station A plays it with VLC or ffmpeg, compares the shown frames with the clip's, and prints
//!    a [`VideoResult`](journal::record::VideoResult).
//!
//! Packets and bytes pass through this program on both stations, so it counts them exactly. It
//! looks at no link and draws no conclusions.

#![forbid(unsafe_code)]

mod clip;
mod error;
mod frames;
mod log;
mod play;
mod player;
mod receive;
mod relay;
mod rtp;
mod serve;
mod shown;
mod spec;

pub use error::VideoError;
pub use play::play;
pub use rtp::datagram_bytes;
pub use spec::{Prepare, Prepared, Receive, Serve, Spec};

/// Marker of RTP in clear text: the synchronisation source of every packet, then the first byte of
/// an MPEG transport stream.
pub const RTP_MARKER: &[u8; 5] = b"0123G";
