//! The figures of a cell: a variant for each kind of measurement, with its key in `results.json`.

use super::json::DeviceInfo;
use crate::cell::CellResult;
use crate::figures::bulk::Bulk;
use crate::figures::device::{self, DeviceCell, DeviceFigures, DeviceTestInfo};
use crate::figures::estimate::Estimate;
use crate::figures::frames::Verdict;
use crate::figures::frames::{FrameCell, FrameFigures, FrameInfo, TrafficInfo};
use crate::figures::http::{HttpFigures, HttpLimit};
use crate::figures::ike::IkeFigures;
use crate::figures::latency::LatencyResult;
use crate::figures::video::VideoFigures;
use journal::record::{Figures, Measured};
use plan::{Adapter, Cell, Measurement};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

/// Figures of a cell, by the kind of its measurement; `None` in one when the cell has no figure.
#[derive(Debug, Clone, PartialEq)]
pub enum CellFigures {
    /// Bulk TCP.
    Tcp(Option<Bulk>),
    /// UDP.
    Udp(Option<Bulk>),
    /// Round-trip times.
    Ping(Option<LatencyResult>),
    /// Transactions, over HTTP or as short flows.
    Http(Option<Box<HttpFigures>>),
    /// Video.
    Video(Option<Box<VideoFigures>>),
    /// Set-ups of IKEv2.
    Ike(Option<Box<IkeFigures>>),
    /// A frame test.
    Frames(Box<FrameCell>),
    /// A trial of crypto devices.
    Device(Box<DeviceCell>),
}

impl CellFigures {
    pub(crate) fn of(cell: &Cell, measured: &[(u32, &Measured)]) -> Self {
        match &cell.measurement {
            Measurement::Tcp { direction, .. } => Self::Tcp(Bulk::of(*direction, measured)),
            Measurement::Udp { direction, .. } => Self::Udp(Bulk::of(*direction, measured)),
            Measurement::Ping { .. } => Self::Ping(LatencyResult::of(measured)),
            Measurement::Http(test) => {
                Self::Http(HttpFigures::of(cell, test, measured).map(Box::new))
            }
            Measurement::Video(_) => Self::Video(VideoFigures::of(measured).map(Box::new)),
            Measurement::Ike(test) => Self::Ike(IkeFigures::of(test, measured).map(Box::new)),
            Measurement::Frames(test) => Self::Frames(Box::new(FrameCell::of(test, measured))),
            Measurement::Device(test) => match &cell.dut.adapter {
                Adapter::Device(devices) => {
                    Self::Device(Box::new(DeviceCell::of(test, devices, measured)))
                }
                // No plan measures operations on a link.
                _ => Self::Tcp(None),
            },
        }
    }
}

impl CellResult {
    /// The bulk transfer of `tcp` or `udp`.
    #[must_use]
    pub const fn bulk(&self) -> Option<&Bulk> {
        match &self.figures {
            CellFigures::Tcp(bulk) | CellFigures::Udp(bulk) => bulk.as_ref(),
            _ => None,
        }
    }

    /// The round-trip times of `ping`.
    #[must_use]
    pub const fn latency(&self) -> Option<&LatencyResult> {
        match &self.figures {
            CellFigures::Ping(latency) => latency.as_ref(),
            _ => None,
        }
    }

    /// The transactions of `http` and `flows`.
    #[must_use]
    pub fn http(&self) -> Option<&HttpFigures> {
        match &self.figures {
            CellFigures::Http(http) => http.as_deref(),
            _ => None,
        }
    }

    /// Transactions per second in a closed loop, with a rate set by only the path and its ends.
    #[must_use]
    pub fn transactions_per_s(&self) -> Option<&Estimate> {
        let http = self.http()?;
        // In an open loop the campaign sets the rate, which compares no devices.
        (http.limit != HttpLimit::IntendedRate).then_some(&http.transactions_per_s)
    }

    /// The figures of `video`.
    #[must_use]
    pub fn video(&self) -> Option<&VideoFigures> {
        match &self.figures {
            CellFigures::Video(video) => video.as_deref(),
            _ => None,
        }
    }

    /// The figures of `ike`.
    #[must_use]
    pub fn ike(&self) -> Option<&IkeFigures> {
        match &self.figures {
            CellFigures::Ike(ike) => ike.as_deref(),
            _ => None,
        }
    }

    /// The frame test, if it is one.
    #[must_use]
    pub fn frame_cell(&self) -> Option<&FrameCell> {
        match &self.figures {
            CellFigures::Frames(frames) => Some(frames),
            _ => None,
        }
    }

    /// The frames of a frame test.
    #[must_use]
    pub fn traffic(&self) -> Option<&TrafficInfo> {
        Some(&self.frame_cell()?.traffic)
    }

    /// The figures of a frame test.
    #[must_use]
    pub fn frames(&self) -> Option<&FrameFigures> {
        self.frame_cell()?.figures.as_ref()
    }

    /// What limits the figure of a frame test.
    #[must_use]
    pub fn verdict(&self) -> Option<&Verdict> {
        self.frame_cell()?.verdict.as_ref()
    }

    /// The operation and the crypto devices.
    #[must_use]
    pub fn device_test(&self) -> Option<&DeviceTestInfo> {
        match &self.figures {
            CellFigures::Device(device) => Some(&device.test),
            _ => None,
        }
    }

    /// The figures of a trial of crypto devices.
    #[must_use]
    pub fn device(&self) -> Option<&DeviceFigures> {
        match &self.figures {
            CellFigures::Device(device) => device.figures.as_ref(),
            _ => None,
        }
    }
}

/// Why a trial that counts as measured has no figure.
pub(crate) fn missing(cell: &Cell, measured: &Measured) -> Option<&'static str> {
    match (&cell.measurement, &measured.figures) {
        (Measurement::Ping { .. }, Figures::Latency(latency)) => match latency.round_trips_ns[..] {
            [] => Some("no echo request was answered"),
            _ => None,
        },
        (Measurement::Ping { .. }, _) => Some("the record holds no round-trip times"),
        (Measurement::Http(_), Figures::Http(http)) => match http.duration_ns {
            0 => Some("the record's sustain phase is empty"),
            _ => None,
        },
        (Measurement::Http(_), _) => Some("the record holds no transactions"),
        (Measurement::Video(_), Figures::Video(video)) => match video.streams[..] {
            [] => Some("the record holds no stream"),
            _ => None,
        },
        (Measurement::Video(_), _) => Some("the record holds no video"),
        (Measurement::Ike(_), Figures::Ike(ike)) => match ike.figures() {
            None => Some("the record holds no load of set-ups"),
            Some(trial) if trial.completed == 0 => Some("no set-up completed"),
            Some(_) => None,
        },
        (Measurement::Ike(_), _) => Some("the record holds no set-ups"),
        (Measurement::Frames(_), Figures::Frames(frames)) => match frames.trials[..] {
            [] => Some("the record holds no frame trial"),
            _ => None,
        },
        (Measurement::Frames(_), _) => Some("the record holds no frames"),
        (Measurement::Device(test), _) => device::missing(test, measured),
        (measurement, Figures::Transfer(transfer)) => {
            let ways = measurement.transfer_direction().unwrap_or_default().ways();
            // A duplex transfer with one way on record would be taken for half of the sum.
            if transfer.each_way().count() != ways.len() {
                return Some("the record does not hold the ways of this transfer");
            }
            let is_empty = transfer.each_way().any(|way| way.duration_ns == 0);
            is_empty.then_some("the record's measured time is zero")
        }
        _ => Some("the record holds no transfer"),
    }
}

/// The form in `results.json`: a key for each kind, with `null` for all other kinds.
#[derive(Default, Serialize, JsonSchema)]
pub(crate) struct FiguresInfo<'a> {
    /// Bulk transfer, for `tcp` and `udp`; `null` when the cell has no figure.
    bulk: Option<&'a Bulk>,
    /// Round-trip times, for `ping`; `null` when the cell has no figure.
    latency: Option<&'a LatencyResult>,
    /// Transactions, for `http` and `flows`; `null` when the cell has no figure.
    http: Option<&'a HttpFigures>,
    /// Video, for `video`; `null` when the cell has no figure.
    video: Option<&'a VideoFigures>,
    /// Set-ups of IKEv2, for `ike`; `null` when the cell has no figure.
    ike: Option<&'a IkeFigures>,
    /// The frames, for frame tests.
    traffic: Option<&'a TrafficInfo>,
    /// Figures of a frame test; `null` when the cell has none.
    frames: Option<FrameInfo<'a>>,
    /// Operation and devices, for trials of crypto devices.
    device_test: Option<&'a DeviceTestInfo>,
    /// Figures of a trial of crypto devices; `null` when the cell has none.
    device: Option<DeviceInfo<'a>>,
    /// What limits the figure, for frame tests; `null` when the cell has none.
    verdict: Option<&'a Verdict>,
}

pub(crate) fn json<S: Serializer>(figures: &CellFigures, serializer: S) -> Result<S::Ok, S::Error> {
    let mut info = FiguresInfo::default();
    match figures {
        CellFigures::Tcp(bulk) | CellFigures::Udp(bulk) => info.bulk = bulk.as_ref(),
        CellFigures::Ping(latency) => info.latency = latency.as_ref(),
        CellFigures::Http(http) => info.http = http.as_deref(),
        CellFigures::Video(video) => info.video = video.as_deref(),
        CellFigures::Ike(ike) => info.ike = ike.as_deref(),
        CellFigures::Frames(cell) => {
            info.traffic = Some(&cell.traffic);
            info.frames = cell.figures.as_ref().map(FrameInfo::of);
            info.verdict = cell.verdict.as_ref();
        }
        CellFigures::Device(cell) => {
            info.device_test = Some(&cell.test);
            info.device = cell.figures.as_ref().map(DeviceInfo::of);
        }
    }
    info.serialize(serializer)
}
