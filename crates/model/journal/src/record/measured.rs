//! The measurements of a trial: one kind of figures, with CPU time and evidence.

use super::{
    Captured, Cpu, DeviceResult, Evidence, FrameResult, HttpResult, IkeResult, Latency, Monitored,
    Transfer, VideoResult, at_most_one,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use strum::IntoStaticStr;

/// All measurements of a trial.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measured {
    /// The figures.
    pub figures: Figures,
    /// CPU time by role, over the measured time. For a frame test with several trials: over the
    /// trial with this evidence.
    pub cpu: Cpu,
    /// Evidence that the figures are valid.
    pub evidence: Evidence,
    /// Values read from devices and machines at an interval; empty without readings, and in older
    /// journals.
    pub monitored: Monitored,
    /// Captures during the trial; empty without captures, and in older journals.
    pub captures: Vec<Captured>,
}

/// The figures of a trial, by its kind. Each is a key of the journal.
#[derive(Debug, Clone, Default, PartialEq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Figures {
    /// None: the trial failed earlier.
    #[default]
    None,
    /// Bulk transfer, for `tcp` and `udp`.
    Transfer(Transfer),
    /// Round-trip times, for `ping`.
    Latency(Latency),
    /// Transactions, for `http` and `flows`.
    Http(Box<HttpResult>),
    /// Video, for `video`.
    Video(VideoResult),
    /// Set-ups of IKEv2, for `ike`.
    Ike(Box<IkeResult>),
    /// Frames, for frame tests.
    Frames(Box<FrameResult>),
    /// Crypto devices.
    Device(Box<DeviceResult>),
}

impl Measured {
    /// The bulk transfer of a `tcp` or `udp` trial.
    #[must_use]
    pub const fn transfer(&self) -> Option<&Transfer> {
        match &self.figures {
            Figures::Transfer(transfer) => Some(transfer),
            _ => None,
        }
    }

    /// The round-trip times of a `ping` trial.
    #[must_use]
    pub const fn latency(&self) -> Option<&Latency> {
        match &self.figures {
            Figures::Latency(latency) => Some(latency),
            _ => None,
        }
    }

    /// The result of an `http` or `flows` trial.
    #[must_use]
    pub const fn http(&self) -> Option<&HttpResult> {
        match &self.figures {
            Figures::Http(http) => Some(http),
            _ => None,
        }
    }

    /// The result of a `video` trial.
    #[must_use]
    pub const fn video(&self) -> Option<&VideoResult> {
        match &self.figures {
            Figures::Video(video) => Some(video),
            _ => None,
        }
    }

    /// The result of an `ike` trial.
    #[must_use]
    pub const fn ike(&self) -> Option<&IkeResult> {
        match &self.figures {
            Figures::Ike(ike) => Some(ike),
            _ => None,
        }
    }

    /// The result of a frame test.
    #[must_use]
    pub const fn frames(&self) -> Option<&FrameResult> {
        match &self.figures {
            Figures::Frames(frames) => Some(frames),
            _ => None,
        }
    }

    /// The result of a trial of crypto devices.
    #[must_use]
    pub const fn device(&self) -> Option<&DeviceResult> {
        match &self.figures {
            Figures::Device(device) => Some(device),
            _ => None,
        }
    }
}

/// The form in journals: a key for each kind, only one with a value.
#[derive(Serialize, Deserialize)]
struct Wire<'a> {
    transfer: Option<Cow<'a, Transfer>>,
    latency: Option<Cow<'a, Latency>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http: Option<Cow<'a, HttpResult>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    video: Option<Cow<'a, VideoResult>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ike: Option<Cow<'a, IkeResult>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    frames: Option<Cow<'a, FrameResult>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    device: Option<Cow<'a, DeviceResult>>,
    cpu: Cpu,
    evidence: Cow<'a, Evidence>,
    #[serde(default, skip_serializing_if = "is_unmonitored")]
    monitored: Cow<'a, Monitored>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    captures: Cow<'a, [Captured]>,
}

fn is_unmonitored(monitored: &Monitored) -> bool {
    // Windows of traffic say nothing without a device that was read in them.
    monitored.devices.is_empty()
}

impl Serialize for Measured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let wire = Wire {
            transfer: self.transfer().map(Cow::Borrowed),
            latency: self.latency().map(Cow::Borrowed),
            http: self.http().map(Cow::Borrowed),
            video: self.video().map(Cow::Borrowed),
            ike: self.ike().map(Cow::Borrowed),
            frames: self.frames().map(Cow::Borrowed),
            device: self.device().map(Cow::Borrowed),
            cpu: self.cpu,
            evidence: Cow::Borrowed(&self.evidence),
            monitored: Cow::Borrowed(&self.monitored),
            captures: Cow::Borrowed(&self.captures),
        };
        wire.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Measured {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let wire = Wire::deserialize(deserializer)?;
        let found = [
            wire.transfer
                .map(|found| Figures::Transfer(found.into_owned())),
            wire.latency
                .map(|found| Figures::Latency(found.into_owned())),
            wire.http
                .map(|found| Figures::Http(Box::new(found.into_owned()))),
            wire.video.map(|found| Figures::Video(found.into_owned())),
            wire.ike
                .map(|found| Figures::Ike(Box::new(found.into_owned()))),
            wire.frames
                .map(|found| Figures::Frames(Box::new(found.into_owned()))),
            wire.device
                .map(|found| Figures::Device(Box::new(found.into_owned()))),
        ];
        let keys = "`transfer`, `latency`, `http`, `video`, `ike`, `frames` and `device`";
        Ok(Self {
            figures: at_most_one(found, keys)?.unwrap_or_default(),
            cpu: wire.cpu,
            evidence: wire.evidence.into_owned(),
            monitored: wire.monitored.into_owned(),
            captures: wire.captures.into_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_under_their_names() {
        let kinds = [
            Figures::Transfer(Transfer::default()),
            Figures::Latency(Latency::default()),
            Figures::Http(Box::default()),
            Figures::Video(VideoResult::default()),
            Figures::Ike(Box::default()),
            Figures::Frames(Box::default()),
            Figures::Device(Box::default()),
        ];
        for figures in kinds {
            let name: &'static str = (&figures).into();
            let measured = Measured {
                figures,
                ..Measured::default()
            };
            let written = serde_json::to_value(&measured).unwrap();
            assert!(written[name].is_object(), "{name}");
        }
    }
}
