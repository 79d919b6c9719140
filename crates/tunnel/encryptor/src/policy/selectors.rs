//! Traffic selectors of a tunnel, and the fields of a packet that they match.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use wire::headers::{IpView, TCP, UDP, be16};
use yaml::Prefix;

/// All ports.
pub const ANY_PORT: RangeInclusive<u16> = 0..=u16::MAX;

/// Protocols that begin with a source and a destination port in four bytes: TCP, UDP, DCCP, SCTP,
/// UDP-Lite.
const WITH_PORTS: [u8; 5] = [TCP, UDP, 33, 132, 136];

/// IPv6 extension headers (RFC 8200 §4, RFC 6275 §6.1): hop-by-hop, routing, destination options,
/// mobility.
const EXTENSIONS: [u8; 6] = [0, 43, 60, 135, 139, 140];
const FRAGMENT: u8 = 44;
/// Maximum number of headers that are parsed in a packet: an attacker chooses their number.
const EXTENSIONS_MAX: usize = 8;

/// Whether the protocol has ports, so that selectors may name some.
#[must_use]
pub fn has_ports(protocol: u8) -> bool {
    WITH_PORTS.contains(&protocol)
}

/// The traffic selectors of one tunnel, as seen from this side (RFC 4301 §4.4.1.1): all must match.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selectors {
    /// Networks behind the peer: destinations of sent packets, sources of received packets.
    pub remote: Vec<Prefix>,
    /// Networks on this side; empty: any.
    pub local: Vec<Prefix>,
    /// IP protocol; `None`: any.
    pub protocol: Option<u8>,
    /// Ports on this side. Only with a protocol that [has ports](has_ports). Unless this is
    /// [`ANY_PORT`], fragments do not match: not every fragment contains its ports.
    pub local_ports: RangeInclusive<u16>,
    /// Ports behind the peer, likewise.
    pub remote_ports: RangeInclusive<u16>,
}

impl Selectors {
    /// Everything to and from these networks.
    #[must_use]
    pub const fn to(remote: Vec<Prefix>) -> Self {
        Self {
            remote,
            local: Vec::new(),
            protocol: None,
            local_ports: ANY_PORT,
            remote_ports: ANY_PORT,
        }
    }

    /// Whether a packet could match both, were the networks behind the peers the same.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let ports = |a: &RangeInclusive<u16>, b: &RangeInclusive<u16>| {
            a.start() <= b.end() && b.start() <= a.end()
        };
        let any_local = self.local.is_empty() || other.local.is_empty();
        let others = &other.local;
        let common = |own: &Prefix| others.iter().any(|others| own.overlaps(*others));
        let protocol = match (self.protocol, other.protocol) {
            (Some(own), Some(others)) => own == others,
            _ => true,
        };
        (any_local || self.local.iter().any(common))
            && protocol
            && ports(&self.local_ports, &other.local_ports)
            && ports(&self.remote_ports, &other.remote_ports)
    }

    /// Whether only the networks behind the peer are restricted.
    pub(super) fn only_networks(&self) -> bool {
        self.local.is_empty()
            && self.protocol.is_none()
            && self.local_ports == ANY_PORT
            && self.remote_ports == ANY_PORT
    }

    /// Whether all but the networks behind the peer match.
    pub(super) fn match_rest(&self, packet: &Shown) -> Match {
        let local =
            self.local.is_empty() || self.local.iter().any(|net| net.contains(packet.local));
        let protocol = match (self.protocol, packet.protocol) {
            (None, _) => Match::Yes,
            // The headers in front of the protocol could not be parsed, so it may be the one that
            // is required.
            (Some(_), None) => Match::Hidden,
            (Some(own), Some(shown)) => Match::from(own == shown),
        };
        Match::from(local)
            .and(protocol)
            .and(packet.match_port(&self.local_ports, packet.local_port))
            .and(packet.match_port(&self.remote_ports, packet.remote_port))
    }
}

/// Whether a packet matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    Yes,
    No,
    /// The visible fields match, but a required field is hidden: the packet must not match another
    /// tunnel.
    Hidden,
}

impl Match {
    const fn and(self, other: Self) -> Self {
        match (self, other) {
            (Self::No, _) | (_, Self::No) => Self::No,
            (Self::Hidden, _) | (_, Self::Hidden) => Self::Hidden,
            _ => Self::Yes,
        }
    }
}

impl From<bool> for Match {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// Direction of a packet, which determines its local end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketDirection {
    Out,
    In,
}

/// The fields of a packet that selectors match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shown {
    /// The end on this side.
    pub(super) local: IpAddr,
    /// `None` behind headers that cannot be parsed.
    protocol: Option<u8>,
    /// `None` if the protocol has no ports, or they are hidden.
    local_port: Option<u16>,
    remote_port: Option<u16>,
    /// It may have hidden ports: a fragment, or behind headers that cannot be parsed.
    hides_ports: bool,
}

impl Shown {
    pub(super) fn of(packet: &[u8], view: &IpView, local: IpAddr, way: PacketDirection) -> Self {
        let transport = if view.version == 4 {
            // More fragments, or an offset: only the first fragment has ports, and its followers
            // must take the same path (RFC 4301 §7).
            let fragment = be16(packet, 6) & 0x3fff != 0;
            Some((view.protocol, view.header_bytes, fragment))
        } else {
            behind_extensions(packet, view)
        };
        let ports = transport.and_then(|(protocol, at, fragment)| {
            let packet = packet.get(at..view.total_bytes)?;
            let ports = packet.first_chunk::<4>()?;
            (has_ports(protocol) && !fragment).then(|| (be16(ports, 0), be16(ports, 2)))
        });
        let (source, destination) = ports.unzip();
        let (local_port, remote_port) = match way {
            PacketDirection::Out => (source, destination),
            PacketDirection::In => (destination, source),
        };
        let hides_ports =
            transport.is_none_or(|(protocol, ..)| has_ports(protocol) && ports.is_none());
        Self {
            local,
            protocol: transport.map(|(protocol, ..)| protocol),
            local_port,
            remote_port,
            hides_ports,
        }
    }

    fn match_port(&self, range: &RangeInclusive<u16>, port: Option<u16>) -> Match {
        match port {
            _ if *range == ANY_PORT => Match::Yes,
            Some(port) => Match::from(range.contains(&port)),
            None if self.hides_ports => Match::Hidden,
            None => Match::No,
        }
    }
}

/// Returns the protocol behind the extension headers of an IPv6 packet, its offset, and whether the
/// packet is a fragment.
fn behind_extensions(packet: &[u8], view: &IpView) -> Option<(u8, usize, bool)> {
    let (mut protocol, mut at) = (view.protocol, view.header_bytes);
    // A longer chain hides its protocol, which drops the packet if a selector depends on it.
    for _ in 0..EXTENSIONS_MAX {
        if protocol != FRAGMENT && !EXTENSIONS.contains(&protocol) {
            return Some((protocol, at, false));
        }
        let header = packet.get(at..view.total_bytes)?.first_chunk::<8>()?;
        let is_fragment = protocol == FRAGMENT;
        protocol = header[0];
        // Offset 0 and no more fragments: an atomic fragment, which is a whole packet (RFC 6946).
        if is_fragment && be16(header, 2) & 0xfff9 != 0 {
            return Some((protocol, at + 8, true));
        }
        at += if is_fragment {
            8
        } else {
            // The length counts units of 8 bytes without the first (RFC 8200 §4.3).
            8 * (1 + usize::from(header[1]))
        };
    }
    None
}
