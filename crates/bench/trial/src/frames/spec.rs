//! Specs of the generator's and the analyser's programs, and conversion of their reports.

use super::{FrameRun, Relief, RigLoad, Strays};
use crate::markers::markers;
use journal::record::{FramePort, FrameTrial, LatencyBucket, Reflection};
use plan::{Adapter, Cell, IpVersion, PortKind, Ports, Traffic};
use port::FramePortKind;
use search::{DelaySlice, DelayTrend, Reserve};
use std::collections::BTreeMap;
use std::net::IpAddr;
use testbed::{FrameEnd, FramePath, NodeId, StationKeys, StationPeer};
use traffic_spec::{
    Addresses, IkeKeys, KeySource, Peer, Receive, Received, Reflect, Report, Role, Send,
    SenderClock, Sent, Spec, TEST_PORT,
};
use wire::overhead::IPV4_HEADER_BYTES;

/// Interval of the generator's schedule. The frames of an interval leave in one batch at its start,
/// since single frames would cost a system call each. No frame waits for others: the last of a
/// batch leaves up to this much earlier than evenly spaced frames would, and its latency counts
/// from the batch's time. At 1 M frames/s a batch has 50 frames, which the fastest ports take in
/// one call.
pub const BURST_NS: u64 = 50_000;

/// One direction of the traffic of a cell.
#[derive(Debug, Clone)]
pub struct FrameStream<'a> {
    /// The cell.
    pub cell: &'a Cell,
    /// Its traffic.
    pub traffic: &'a Traffic,
    /// From the sender to the receiver.
    pub path: FramePath,
}

impl FrameStream<'_> {
    /// Returns the sender's spec.
    #[must_use]
    pub fn sender(&self, load: &RigLoad, tag: u16, start_ns: Option<u64>) -> Spec {
        let source = &self.path.source;
        let (from, to) = self.addresses();
        let send = Send {
            addresses: Addresses {
                source_mac: source.mac,
                target_mac: source.next_hop_mac,
                source: from,
                target: to,
            },
            frames: self.traffic.frames.clone(),
            frames_per_s: load.frames_per_s,
            duration_ns: load.duration_ns,
            burst_ns: BURST_NS,
            peer: self.peer(source),
            // Bins count by the times planned for frames when the trial began.
            keep_rate: !load.catches_up && load.bins.is_none(),
            then: load.then,
            start_ns,
        };
        self.spec(source, self.traffic.ports.tx, tag, Role::Send(send))
    }

    /// Returns the receiver's spec.
    #[must_use]
    pub fn receiver(&self, load: &RigLoad, tag: u16, sender_clock: Option<SenderClock>) -> Spec {
        // Reflected frames come back to their sender.
        let sink = if load.reflected {
            &self.path.source
        } else {
            &self.path.sink
        };
        let receive = Receive {
            frames: self.traffic.frames.clone(),
            expected: expected(load),
            peer: self.peer(sink),
            first_frames: load.then.map(|_| load.first_intended()),
            bins: load.bins,
            periods: load.periods,
            variation: load.variation,
            sender_clock,
            reflected: load.reflected,
        };
        self.spec(sink, self.traffic.ports.rx, tag, Role::Receive(receive))
    }

    /// Returns the reflector's spec.
    pub(crate) fn reflector(&self, load: &RigLoad, tag: u16) -> Spec {
        let Ports { tx, rx } = self.traffic.ports;
        let reflect = Reflect {
            frames: self.traffic.frames.clone(),
            expected: expected(load),
            send_port: tx.map(port_kind),
        };
        self.spec(&self.path.sink, rx, tag, Role::Reflect(reflect))
    }

    /// Whether the station at the end can reflect frames: whole ones in clear.
    pub(crate) fn reflects(&self) -> bool {
        let Ports { tx, rx } = self.traffic.ports;
        let FramePath { source, sink } = &self.path;
        // A reflector sends frames back as they are: a sealed one is no valid packet for the
        // device, and a plain socket does not get whole frames.
        let is_clear = source.peer.is_none() && sink.peer.is_none();
        is_clear && ![tx, rx].contains(&Some(PortKind::Socket))
    }

    /// Returns source and target address of the first tunnel's frames.
    fn addresses(&self) -> (IpAddr, IpAddr) {
        let FramePath { source, sink } = &self.path;
        let ports = self.traffic.ports;
        (
            test_address(source, self.traffic, ports.tx),
            test_address(sink, self.traffic, ports.rx),
        )
    }

    fn spec(&self, end: &FrameEnd, port: Option<PortKind>, tag: u16, role: Role) -> Spec {
        Spec {
            interface: end.interface.clone(),
            port: port.map(port_kind),
            threads: self.cell.stations.map_or(1, |stations| stations.cores),
            tag,
            role,
        }
    }

    fn peer(&self, end: &FrameEnd) -> Option<Peer> {
        let StationPeer {
            keys,
            suite,
            local,
            remote,
            port,
            lanes,
            tunnels,
        } = end.peer.clone()?;
        let keys = match keys {
            StationKeys::File(path) => KeySource::File(path),
            StationKeys::Ike { log, sequences } => KeySource::Ike(IkeKeys { log, sequences }),
            StationKeys::WireGuard(file) => KeySource::WireGuard(file),
        };
        Some(Peer {
            keys,
            suite,
            engine: peer_engine(&self.cell.dut.adapter).to_owned(),
            local: local.into(),
            remote: remote.into(),
            port,
            lanes,
            tunnels,
        })
    }

    /// Returns byte strings that the frames carry in clear.
    pub(super) fn markers(&self) -> Vec<Vec<u8>> {
        let ends = match self.addresses() {
            (IpAddr::V4(source), IpAddr::V4(target)) => Some([source, target]),
            _ => None,
        };
        markers(&self.cell.dut.adapter, self.marker(), ends, true)
    }

    /// Returns bytes that every frame carries in clear.
    ///
    /// For IPv6: the prefix of the target address, which is the same in all tunnels. For IPv4 in
    /// one tunnel: source and target address, or the target only if addresses are translated. IPv4
    /// addresses of several tunnels have too little in common: then port and length in the UDP
    /// header of frames of the most frequent size.
    fn marker(&self) -> Vec<u8> {
        match self.addresses() {
            (_, IpAddr::V6(target)) => target.octets()[..IPV6_PREFIX_BYTES].to_vec(),
            (IpAddr::V4(source), IpAddr::V4(target)) if self.traffic.frames.tunnels == 1 => {
                let profile = self.cell.dut.adapter.profile();
                // A NAT in the path is before gw2's end of the cipher link. Frames from gw1 itself
                // are sampled there.
                let is_behind_nat =
                    profile.carrier.is_none() && self.path.source.node == NodeId::Gw1;
                if profile.translates_addresses || is_behind_nat {
                    target.octets().to_vec()
                } else {
                    [source.octets(), target.octets()].concat()
                }
            }
            (_, IpAddr::V4(_)) => {
                let shares = self.traffic.frames.mix.shares.iter();
                let most = shares.max_by_key(|share| share.weight);
                let headers = (ETHERNET_AND_FCS_BYTES + IPV4_HEADER_BYTES) as u16;
                // The UDP header's length field: the frame without Ethernet header, FCS and IPv4
                // header.
                let length = most.map_or(0, |share| share.frame_bytes.saturating_sub(headers));
                [TEST_PORT.to_be_bytes(), length.to_be_bytes()].concat()
            }
        }
    }
}

/// Distinct frames after which a receiver ends by itself.
fn expected(load: &RigLoad) -> Option<u64> {
    load.frames_per_s.map(|_| load.intended())
}

/// Ethernet header and FCS.
const ETHERNET_AND_FCS_BYTES: usize = 14 + 4;
/// The network part of a /64.
const IPV6_PREFIX_BYTES: usize = 8;

/// Returns the engine of the DUT's peer: the null engine for the control that does not encrypt; any
/// other engine works with any other.
#[must_use]
pub fn peer_engine(adapter: &Adapter) -> &str {
    match adapter.encryptor() {
        Some(encryptor) if encryptor.is_null() => catalog::NULL,
        _ => "auto",
    }
}

/// Returns the address of the first tunnel's frames at an end. Sockets need an address that the
/// kernel has.
fn test_address(end: &FrameEnd, traffic: &Traffic, port: Option<PortKind>) -> IpAddr {
    match (port, traffic.ip) {
        (Some(PortKind::Socket), _) => end.address.into(),
        (_, IpVersion::V4) => end.test_address.into(),
        (_, IpVersion::V6) => end.test_address_v6.into(),
    }
}

const fn port_kind(kind: PortKind) -> FramePortKind {
    match kind {
        PortKind::Xdp => FramePortKind::Xdp,
        PortKind::Packet => FramePortKind::Packet,
        PortKind::Socket => FramePortKind::Socket,
        PortKind::Memory => FramePortKind::Memory,
    }
}

const fn plan_kind(kind: FramePortKind) -> PortKind {
    match kind {
        FramePortKind::Xdp => PortKind::Xdp,
        FramePortKind::Packet => PortKind::Packet,
        FramePortKind::Socket => PortKind::Socket,
        FramePortKind::Memory => PortKind::Memory,
    }
}

impl FrameRun {
    /// Combines the reports of a sender and a receiver of one direction. `took_ns` stays 0.
    #[must_use]
    pub fn of(load: &RigLoad, sender: &Report, receiver: &Report) -> Self {
        let sent = sender.sent.unwrap_or_default();
        let received = receiver.received.clone().unwrap_or_default();
        Self {
            trial: trial(load, sender, &sent, receiver, &received),
            latency: buckets(&received.latency),
            reflection: receiver.reflected.as_ref().map(|reflected| Reflection {
                residence: buckets(&reflected.residence),
                from_arrival: reflected.is_from_arrival,
            }),
            variation: received.variation.into_iter().collect(),
            relief: load.then.map(|_| Relief {
                sent: sent.then_frames,
                received: received.then_frames,
                // All of these are times of the sender's clock.
                last_loss_ns: received.last_loss_ns.saturating_sub(sent.then_ns),
                last_received_ns: received.last_intended_ns.saturating_sub(sent.then_ns),
            }),
            strays: Strays {
                stale: received.stale,
                foreign: received.foreign,
                refused: received.refused,
            },
            sender: port(sender),
            receiver: port(receiver),
            ..Self::default()
        }
    }

    /// Adds the other direction of the same trial.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        let each = [&self.trial, &other.trial];
        // Before the sums, which overwrite this direction's counts.
        let directions = each.map(FrameTrial::each_direction).concat();
        let (sum, more) = (&mut self.trial, &other.trial);
        sum.directions = directions;
        sum.elapsed_ns = sum.elapsed_ns.max(more.elapsed_ns);
        sum.intended += more.intended;
        sum.sent += more.sent;
        sum.sent_bytes += more.sent_bytes;
        sum.received += more.received;
        sum.received_bytes += more.received_bytes;
        sum.duplicated += more.duplicated;
        sum.too_late += more.too_late;
        sum.reordered += more.reordered;
        sum.corrupted += more.corrupted;
        sum.after_end += more.after_end;
        sum.receiver_dropped += more.receiver_dropped;
        sum.sender_dropped += more.sender_dropped;
        // Counts are added up. Times are not: both directions run together, and the worse one
        // counts.
        sum.late_ns_max = sum.late_ns_max.max(more.late_ns_max);
        sum.late_frames += more.late_frames;
        sum.receiver_stood_ns_max = sum.receiver_stood_ns_max.max(more.receiver_stood_ns_max);
        sum.delay = match (sum.delay, more.delay) {
            (Some(one), Some(other)) => Some(one.or_worse(other)),
            (one, other) => one.or(other),
        };
        // Each direction has a separate reserve.
        sum.reserve = None;
        if self.reflection.is_none() && other.reflection.is_none() {
            self.latency_each = [self.each_latency(), other.each_latency()].concat();
        }
        self.latency = merged(&self.latency, &other.latency);
        self.reflection = self.reflection.or_else(|| other.reflection.clone());
        self.variation.extend(&other.variation);
        self.relief = match (self.relief, other.relief) {
            (Some(one), Some(other)) => Some(Relief {
                sent: one.sent + other.sent,
                received: one.received + other.received,
                last_loss_ns: one.last_loss_ns.max(other.last_loss_ns),
                // A direction that went silent has not recovered.
                last_received_ns: one.last_received_ns.min(other.last_received_ns),
            }),
            (one, other) => one.or(other),
        };
        self.strays.add(&other.strays);
        self.took_ns = self.took_ns.max(other.took_ns);
        self
    }

    /// The latency of each direction, or of the only one.
    fn each_latency(&self) -> Vec<Vec<LatencyBucket>> {
        if self.latency_each.is_empty() {
            vec![self.latency.clone()]
        } else {
            self.latency_each.clone()
        }
    }
}

fn trial(
    load: &RigLoad,
    sender: &Report,
    sent: &Sent,
    receiver: &Report,
    received: &Received,
) -> FrameTrial {
    let then_ns = load.then.map_or(0, |then| then.duration_ns);
    // These frames never reached the wire: they are neither offered, nor lost by the device.
    let sender_dropped = sender.port_stats.send_failed;
    let slices = slices(&received.delays);
    let trial = FrameTrial {
        load: load.frames_per_s.unwrap_or(0),
        duration_ns: load.duration_ns.saturating_add(then_ns),
        elapsed_ns: sent.elapsed_ns,
        intended: sent.intended,
        sent: sent.frames.saturating_sub(sender_dropped),
        sent_bytes: sent.frame_bytes,
        received: received.frames,
        received_bytes: received.frame_bytes,
        duplicated: received.duplicated,
        too_late: received.too_late,
        reordered: received.reordered,
        corrupted: received.corrupted,
        after_end: received.after_end,
        receiver_dropped: receiver.port_stats.receive_dropped,
        sender_dropped,
        late_ns_max: sent.late_ns_max,
        late_frames: sent.late_frames,
        receiver_stood_ns_max: received.stood_still_ns_max,
        delay: DelayTrend::of(&slices),
        ..FrameTrial::default()
    };
    // Frames that the sender left out are not the device's loss.
    let is_whole = trial.sent == trial.intended && !trial.took_too_long();
    let least_ns = received.latency.iter().find(|(_, frames)| *frames > 0);
    let least_ns = least_ns.and_then(|(upto_ns, _)| i64::try_from(*upto_ns).ok());
    let reserve = least_ns
        .filter(|_| is_whole)
        .and_then(|least_ns| Reserve::of(&slices, trial.intended, trial.duration_ns, least_ns));
    FrameTrial { reserve, ..trial }
}

/// The slices of a trial, from their frames and mean delays in nanoseconds.
fn slices(delays: &[(u64, i64)]) -> Vec<DelaySlice> {
    let slices = delays.iter();
    slices
        .map(|&(frames, mean_ns)| DelaySlice { frames, mean_ns })
        .collect()
}

/// The buckets of a report's histogram.
fn buckets(histogram: &[(u64, u64)]) -> Vec<LatencyBucket> {
    let buckets = histogram.iter();
    buckets
        .map(|&(upto_ns, frames)| LatencyBucket { upto_ns, frames })
        .collect()
}

/// Merges two histograms.
fn merged(one: &[LatencyBucket], other: &[LatencyBucket]) -> Vec<LatencyBucket> {
    let mut sums = BTreeMap::<u64, u64>::new();
    for bucket in one.iter().chain(other) {
        *sums.entry(bucket.upto_ns).or_default() += bucket.frames;
    }
    let buckets = sums.into_iter();
    buckets
        .map(|(upto_ns, frames)| LatencyBucket { upto_ns, frames })
        .collect()
}

fn port(report: &Report) -> FramePort {
    let reason = |(kind, reason): &(FramePortKind, String)| format!("{kind}: {reason}");
    FramePort {
        kind: report.port.map(plan_kind),
        xdp_mode: report.xdp_mode.map(|mode| mode.to_string()),
        passed_over: report.passed_over.iter().map(reason).collect(),
        threads: report.threads,
        engine: report.engine.clone(),
    }
}
