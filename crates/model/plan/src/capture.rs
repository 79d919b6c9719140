//! Captures: frames of a link that are stored with the figures.

use serde::{Deserialize, Serialize};
use strum::{IntoStaticStr, VariantArray};

/// The captures of each trial of a campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capture {
    /// The capture points; not empty, without duplicates.
    pub at: Vec<CapturePoint>,
    /// Which frames are kept.
    pub keep: Keep,
    /// Most bytes of one file of frames.
    pub bytes_max: u64,
    /// Most bytes that are kept of a frame.
    pub snap_bytes: u32,
    /// Whether the keys of Cipherbench's tunnels are written next to the file.
    pub secrets: bool,
    /// Whether a trial without its complete capture is invalid.
    pub evidence: bool,
}

/// A point of the path that can be captured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum CapturePoint {
    /// The link between the gateways.
    Cipher,
    /// The link of station A.
    StationA,
    /// The link of station B.
    StationB,
}

/// Which frames of a trial are kept if not all fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "frames", rename_all = "kebab-case")]
pub enum Keep {
    /// The first ones.
    First,
    /// The last ones.
    Ring,
    /// One in `one_in`, at random, over the whole trial.
    Sampled {
        /// At least 1.
        one_in: u32,
    },
}

impl CapturePoint {
    /// Its name in campaigns.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Capture {
    /// Bytes that hold any frame whole: a super-packet of 64 KiB with its Ethernet header.
    pub const SNAP_BYTES_MAX: u32 = 65_536 + 22;

    /// Describes the points and the kept frames.
    #[must_use]
    pub fn in_words(&self) -> String {
        let at: Vec<_> = self.at.iter().map(|point| point.name()).collect();
        let keep = match self.keep {
            Keep::First => "the first frames".to_owned(),
            Keep::Ring => "the last frames".to_owned(),
            Keep::Sampled { one_in } => format!("1 in {one_in} frames"),
        };
        let snap = match self.snap_bytes {
            // The campaign's word `whole` is this number in a plan.
            Self::SNAP_BYTES_MAX => "whole".to_owned(),
            bytes => format!("{bytes} B of each"),
        };
        let secrets = if self.secrets {
            ", with the tunnel's keys"
        } else {
            ""
        };
        format!(
            "{} at {}, {snap}, up to {} KiB a trial{secrets}",
            keep,
            at.join(" and "),
            self.bytes_max >> 10
        )
    }
}
