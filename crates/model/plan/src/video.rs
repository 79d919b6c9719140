//! Trials of video: the player of a generated clip, and its transport.

use crate::words::time;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use strum::{IntoStaticStr, VariantArray};
use units::human::counted;
use units::{BitRate, Layer};

/// A trial of video. Station B sends a clip, which players on station A show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VideoTest {
    /// The player.
    pub player: Player,
    /// The transport.
    pub transport: VideoTransport,
    /// Concurrent streams, each with a separate player.
    pub streams: u16,
    /// Size of the picture.
    pub picture: Picture,
    /// Bit rate of the encoder, in bit/s; headers of the transport stream come on top.
    pub rate_bps: u64,
    /// The measured part of the clip, in nanoseconds: only its whole frames count.
    pub duration_ns: u64,
}

impl VideoTest {
    /// Frames of the clip per second.
    pub const FRAMES_PER_S: u64 = 25;
    /// From one frame to the next, in nanoseconds.
    pub const FRAME_NS: u64 = SECOND_NS / Self::FRAMES_PER_S;
    /// Time of the clip before the measured part: players fill their buffers.
    pub const LEAD_IN_NS: u64 = 2 * SECOND_NS;
    /// Time of the clip after the measured part, so that frames still in a decoder at the end do
    /// not count as lost.
    pub const LEAD_OUT_NS: u64 = SECOND_NS;

    /// Numbers of the frames that count.
    #[must_use]
    pub const fn measured_frames(&self) -> Range<u64> {
        // Whole numbers: both lead times are multiples of a frame's.
        let first = Self::LEAD_IN_NS / Self::FRAME_NS;
        first..first + self.duration_ns / Self::FRAME_NS
    }

    /// Frames of the whole clip.
    #[must_use]
    pub const fn frames_in_all(&self) -> u64 {
        // The lead-out follows the last frame that counts.
        self.measured_frames().end + Self::LEAD_OUT_NS / Self::FRAME_NS
    }

    /// Time of the whole clip, in nanoseconds.
    #[must_use]
    pub const fn run_ns(&self) -> u64 {
        self.frames_in_all() * Self::FRAME_NS
    }

    /// A trial of video in words, without cores and path.
    #[must_use]
    pub fn in_words(&self) -> String {
        let transport = match self.transport {
            VideoTransport::Rtp => "RTP",
            VideoTransport::Http => "HTTP",
        };
        format!(
            "{} of {} video at {} over {transport}, played by {}, {} counted",
            counted(self.streams, "stream"),
            self.picture.name(),
            BitRate::new(self.rate_bps, Layer::Payload),
            self.player.name(),
            time(self.duration_ns),
        )
    }
}

const SECOND_NS: u64 = 1_000_000_000;

/// A program that plays video.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Player {
    /// VLC without a window.
    #[default]
    Vlc,
    /// ffmpeg.
    Ffmpeg,
}

impl Player {
    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The program that must be installed.
    #[must_use]
    pub const fn program(self) -> &'static str {
        match self {
            // VLC without a window.
            Self::Vlc => "cvlc",
            Self::Ffmpeg => "ffmpeg",
        }
    }
}

/// Transport of video.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum VideoTransport {
    /// RTP over UDP (RFC 3550) with an MPEG transport stream (RFC 2250), sent at the clip's rate.
    #[default]
    Rtp,
    /// A file over HTTP, fetched as the player needs it.
    Http,
}

impl VideoTransport {
    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

/// Size of a picture.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    IntoStaticStr,
    VariantArray,
)]
pub enum Picture {
    /// 640 by 360.
    #[default]
    #[serde(rename = "360p")]
    #[strum(serialize = "360p")]
    P360,
    /// 1280 by 720.
    #[serde(rename = "720p")]
    #[strum(serialize = "720p")]
    P720,
    /// 1920 by 1080.
    #[serde(rename = "1080p")]
    #[strum(serialize = "1080p")]
    P1080,
}

impl Picture {
    /// Name in campaigns, ids and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Width and height in pixels.
    #[must_use]
    pub const fn pixels(self) -> (u32, u32) {
        match self {
            Self::P360 => (640, 360),
            Self::P720 => (1280, 720),
            Self::P1080 => (1920, 1080),
        }
    }
}
