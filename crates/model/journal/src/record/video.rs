//! The result of a trial of video.

use serde::{Deserialize, Serialize};

/// Received and shown data of each stream.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoResult {
    /// The measured part of the clip in nanoseconds.
    pub duration_ns: u64,
    /// The streams, in the order of their ports.
    pub streams: Vec<VideoStream>,
}

impl VideoResult {
    /// Payload that station B sent in the whole run, in bytes.
    #[must_use]
    pub fn sent_bytes(&self) -> u64 {
        self.sum(|stream| stream.sent_bytes)
    }

    /// Payload that station A received in the whole run, in bytes.
    #[must_use]
    pub fn received_bytes(&self) -> u64 {
        self.sum(|stream| stream.received_bytes)
    }

    /// The sum of a count over the streams.
    #[must_use]
    pub fn sum(&self, count: impl Fn(&VideoStream) -> u64) -> u64 {
        let counts = self.streams.iter().map(count);
        counts.fold(0, u64::saturating_add)
    }
}

/// One stream with its player.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoStream {
    /// Bytes that station B sent in the whole run: UDP payload of RTP packets. Over HTTP the
    /// received bytes: TCP delivers everything that it sends.
    pub sent_bytes: u64,
    /// Bytes that station A received in the whole run: UDP payload of RTP packets, or all that the
    /// server of HTTP sent.
    pub received_bytes: u64,
    /// Packets that station B lost before sending.
    pub sender_lost: u64,
    /// Packets that station B sent late.
    pub sender_late: u64,
    /// Packets, for RTP.
    pub rtp: Option<RtpCounts>,
    /// The frames that the player showed.
    pub frames: FramesSeen,
    /// The end of the player's output, if it showed nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub player_words: String,
}

/// RTP packets of the whole run, by their sequence numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RtpCounts {
    /// Sent by station B.
    pub sent: u64,
    /// Of these, received by station A, each once.
    pub received: u64,
    /// Of those sent, never received.
    pub lost: u64,
    /// Received packets with a transit over 100 ms longer than the shortest one of the stream, by
    /// their time stamps.
    pub late: u64,
    /// Received after one that was sent later.
    pub out_of_order: u64,
    /// Received again.
    pub duplicated: u64,
}

/// Frames that a player showed; all but the first count are of the measured part of the clip.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramesSeen {
    /// Frames of the whole run, without repetitions.
    pub decoded: u64,
    /// Frames of the clip.
    pub expected: u64,
    /// Of these, shown.
    pub shown: u64,
    /// Of those shown, frames that differ from the clip's.
    pub damaged: u64,
    /// Least peak signal-to-noise ratio of a damaged frame, in thousandths of a decibel; `None`
    /// without one.
    pub psnr_least_millidb: Option<u64>,
    /// Mean of these ratios.
    pub psnr_mean_millidb: Option<u64>,
    /// Gaps between two new frames of at least three frame times, and at least 150 ms more than one
    /// (W3C webrtc-stats, `freezeCount`).
    pub freezes: u64,
    /// Total time of these gaps without one frame's time each, in nanoseconds.
    pub frozen_ns: u64,
    /// Longest time from one new frame to the next, in nanoseconds.
    pub longest_gap_ns: u64,
}
