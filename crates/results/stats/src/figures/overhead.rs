//! Bytes that a DUT adds to packets, and the resulting ceiling.

use crate::figures::parameters::Parameters;
use plan::{Adapter, Carrier, Cell, Measurement, Mode, Procedure};
use schemars::JsonSchema;
use serde::Serialize;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES, MIN_BYTES, PREAMBLE_AND_GAP_BYTES};
use wire::mix::FrameMix;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};

/// TCP header with the timestamps option (RFC 7323), which kernels use by default.
const TCP_HEADER_BYTES: usize = 32;

/// Bytes that a device adds to the packets of a cell: full TCP packets, UDP datagrams, or the mean
/// of a mix of frames. If its padding cannot be known from outside, the maximum.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Overhead {
    /// Suite that seals them.
    pub suite: String,
    /// Length of the IP packets in clear.
    pub packet_bytes: f64,
    /// Bytes added to one: outer headers, IV, padding, tag.
    pub overhead_bytes: f64,
    /// The same, in per cent of the packet in clear.
    pub overhead_percent: f64,
}

/// Highest rate on a cell's path if only packet lengths limited it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Ceiling {
    /// Its source.
    pub basis: CeilingBasis,
    /// Id of the baseline's cell; `null` for a line rate.
    pub baseline_cell: Option<String>,
    /// Payload, of `tcp` and `udp`.
    pub payload_bps: Option<f64>,
    /// Frames of one direction, of `throughput`.
    pub frames_per_s: Option<f64>,
    /// Ratio of the cell's figure to the ceiling; `null` without a figure.
    pub reached: Option<f64>,
}

/// Source of a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CeilingBasis {
    /// The links' rate: it cannot be exceeded for long.
    LineRate,
    /// The baseline's figure in the same group, treated as a full line: a device above it has an
    /// advantage that the baseline lacks.
    Baseline,
}

/// The packets of a cell.
pub(crate) struct Packets {
    /// Their numbers, and the length of the IP packet.
    pub(crate) shares: Vec<(u64, usize)>,
    /// Payload in one; `None` for frame tests.
    pub(crate) payload_bytes: Option<usize>,
}

impl Packets {
    /// `None` for measurements that do not fill the path, and for fragmented packets.
    pub(crate) fn of(cell: &Cell, parameters: &Parameters) -> Option<Self> {
        let mtu = usize::from(cell.stations?.mtu);
        // An overlay's headers are overhead of the tools' packets, not of the DUT.
        let around = usize::from(cell.stations?.overlay.added_bytes());
        let of_one = |packet: usize, payload: usize| Self {
            shares: vec![(1, packet)],
            payload_bytes: Some(payload),
        };
        match &cell.measurement {
            Measurement::Tcp { .. } => {
                let payload = mtu.checked_sub(IPV4_HEADER_BYTES + TCP_HEADER_BYTES + around)?;
                Some(of_one(mtu, payload))
            }
            Measurement::Udp { .. } => {
                let headers = IPV4_HEADER_BYTES + UDP_HEADER_BYTES + around;
                let payload = match parameters.datagram_bytes {
                    Some(bytes) => usize::try_from(bytes).ok()?,
                    None => mtu.checked_sub(headers)?,
                };
                // Fragments have headers that this sum does not know.
                (payload + headers <= mtu).then(|| of_one(payload + headers, payload))
            }
            Measurement::Frames(test) if matches!(test.procedure, Procedure::Throughput(_)) => {
                Some(Self::of_mix(&test.traffic.frames.mix))
            }
            _ => None,
        }
    }

    /// The IP packets in the frames of a mix.
    pub(crate) fn of_mix(mix: &FrameMix) -> Self {
        // Sizes of frames include the FCS, which is no part of the IP packet.
        let around = (HEADER_BYTES + FCS_BYTES) as usize;
        let shares = mix.shares.iter().map(|share| {
            let packet = usize::from(share.frame_bytes).saturating_sub(around);
            (u64::from(share.weight), packet)
        });
        Self {
            shares: shares.collect(),
            payload_bytes: None,
        }
    }

    fn mean(&self, length: impl Fn(usize) -> u64) -> f64 {
        let weight: u64 = self.shares.iter().map(|(weight, _)| weight).sum();
        let lengths = self.shares.iter();
        let sum: u64 = lengths
            .map(|(weight, packet)| weight * length(*packet))
            .sum();
        sum as f64 / weight.max(1) as f64
    }

    /// Mean bits of one on the line, preamble and gap included, with the length of its IP packet
    /// given by `sealed`.
    pub(crate) fn line_bits(&self, sealed: impl Fn(usize) -> usize) -> f64 {
        8.0 * self.mean(|packet| {
            let frame = sealed(packet) as u64 + HEADER_BYTES + FCS_BYTES;
            // Ethernet pads short frames.
            frame.max(MIN_BYTES) + PREAMBLE_AND_GAP_BYTES
        })
    }
}

/// The form that seals each packet by itself; `None` without encryption, and if the added bytes
/// depend on more than the packet: on other packets in the same ESP packet, or on a frame around
/// it.
pub(crate) fn carrier(adapter: &Adapter) -> Option<Carrier> {
    match adapter.encryptor() {
        Some(encryptor) if encryptor.mode != Mode::L3 || encryptor.aggregate => None,
        _ => adapter.carrier(),
    }
}

impl Overhead {
    pub(crate) fn of(cell: &Cell, parameters: &Parameters) -> Option<Self> {
        let carrier = carrier(&cell.dut.adapter)?;
        let packets = Packets::of(cell, parameters)?;
        let packet_bytes = packets.mean(|packet| packet as u64);
        let carried_bytes = cell.carried_bytes();
        let sealed_bytes = packets.mean(|packet| carried_bytes(packet) as u64);
        let overhead_bytes = sealed_bytes - packet_bytes;
        Some(Self {
            suite: carrier.suite.name().into(),
            packet_bytes,
            overhead_bytes,
            overhead_percent: 100.0 * overhead_bytes / packet_bytes,
        })
    }
}
