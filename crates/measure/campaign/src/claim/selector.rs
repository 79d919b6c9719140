//! Axes by which a claim is held to some of the cells that measure it.

use crate::axis::{self, CORES_MAX, STREAMS_MAX};
use crate::expand::Draft;
use crate::frames::{self, mix};
use crate::plan::{Cell, Direction, FrameTest, IpVersion, Measurement};
use crate::words::on_off;
use std::fmt;
use wire::mix::FrameMix;
use wire::overhead::{IPV4_HEADER_BYTES, UDP_HEADER_BYTES};
use yaml::{Map, Node, Reported, Spanned};

/// A value that a cell must have on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Selector {
    Mtu(u16),
    Cores(u16),
    Offloads(bool),
    Streams(u16),
    Datagram(u32),
    Payload(u16),
    Frame(FrameMix),
    Direction(Direction),
    Ip(IpVersion),
    Flows(u32),
    Tunnels(u32),
    Workers(u16),
    Duplex(bool),
}

impl Selector {
    /// All that a claim has.
    pub(super) fn read_all(map: &Map<'_>) -> Result<Vec<Spanned<Self>>, Reported> {
        // No end but that of its type: what no cell has is told with what they have.
        let payload = |node: Node<'_>| node.size(units::Bytes::new(1)..=units::Bytes::new(65_507));
        let mut found: Vec<Result<Spanned<Self>, Reported>> = Vec::new();
        let mut read = |key, of: &dyn Fn(Node<'_>) -> Result<Self, Reported>| {
            if let Some(node) = map.optional(key) {
                found.push(of(node).map(|selector| node.spanned(selector)));
            }
        };
        read("mtu", &|node| axis::mtu(node, axis::MTU_MAX).map(Self::Mtu));
        read("cores", &|node| {
            node.integer(1..=CORES_MAX).map(Self::Cores)
        });
        read("offloads", &|node| node.bool().map(Self::Offloads));
        read("streams", &|node| {
            node.integer(1..=STREAMS_MAX).map(Self::Streams)
        });
        read("datagram", &|node| axis::datagram(node).map(Self::Datagram));
        // In range, so it fits.
        read("payload", &|node| {
            payload(node).map(|size| Self::Payload(size.get() as u16))
        });
        read("frame", &|node| mix::read(node).map(Self::Frame));
        read("direction", &|node| {
            node.one_of("direction", &frames::DIRECTIONS)
                .map(Self::Direction)
        });
        read("ip", &|node| {
            node.one_of("IP version", &frames::IP_VERSIONS)
                .map(Self::Ip)
        });
        read("flows", &|node| node.integer(1..=u32::MAX).map(Self::Flows));
        read("tunnels", &|node| {
            node.integer(1..=u32::MAX).map(Self::Tunnels)
        });
        read("workers", &|node| {
            node.integer(1..=u16::MAX).map(Self::Workers)
        });
        read("duplex", &|node| node.bool().map(Self::Duplex));
        found.into_iter().collect()
    }

    const fn key(&self) -> &'static str {
        match self {
            Self::Mtu(_) => "mtu",
            Self::Cores(_) => "cores",
            Self::Offloads(_) => "offloads",
            Self::Streams(_) => "streams",
            Self::Datagram(_) => "datagram",
            Self::Payload(_) => "payload",
            Self::Frame(_) => "frame",
            Self::Direction(_) => "direction",
            Self::Ip(_) => "ip",
            Self::Flows(_) => "flows",
            Self::Tunnels(_) => "tunnels",
            Self::Workers(_) => "workers",
            Self::Duplex(_) => "duplex",
        }
    }

    /// What a cell has on the same axis; `None` when it has no such axis.
    fn of(&self, cell: &Cell) -> Option<Self> {
        let test = match &cell.measurement {
            Measurement::Frames(FrameTest { traffic, .. }) => Some(traffic),
            _ => None,
        };
        Some(match self {
            Self::Mtu(_) if test.is_none() => Self::Mtu(cell.mtu),
            Self::Mtu(_) => return None,
            Self::Cores(_) if matches!(cell.measurement, Measurement::Ping { .. }) => return None,
            Self::Cores(_) => Self::Cores(cell.cores_per_station),
            Self::Offloads(_) => Self::Offloads(cell.offloads),
            Self::Streams(_) => match cell.measurement {
                Measurement::Tcp { streams, .. } | Measurement::Udp { streams, .. } => {
                    Self::Streams(streams)
                }
                _ => return None,
            },
            Self::Datagram(_) => match cell.measurement {
                Measurement::Udp { datagram_bytes, .. } => {
                    let headers = (IPV4_HEADER_BYTES + UDP_HEADER_BYTES) as u32;
                    let largest = u32::from(cell.mtu).saturating_sub(headers);
                    Self::Datagram(datagram_bytes.unwrap_or(largest))
                }
                _ => return None,
            },
            Self::Payload(_) => match cell.measurement {
                Measurement::Ping { payload_bytes, .. } => Self::Payload(payload_bytes),
                _ => return None,
            },
            Self::Frame(_) => Self::Frame(test?.mix.clone()),
            Self::Direction(_) => Self::Direction(test?.direction),
            Self::Ip(_) => Self::Ip(test?.ip),
            Self::Flows(_) => Self::Flows(test?.flows),
            Self::Tunnels(_) => Self::Tunnels(test?.tunnels),
            Self::Workers(_) => Self::Workers(cell.dut.adapter.encryptor()?.workers),
            Self::Duplex(_) => Self::Duplex(test?.duplex),
        })
    }
}

/// As campaigns have it.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mtu(bytes) | Self::Payload(bytes) => write!(f, "{bytes} B"),
            Self::Datagram(bytes) => write!(f, "{bytes} B"),
            Self::Cores(count) | Self::Streams(count) | Self::Workers(count) => {
                write!(f, "{count}")
            }
            Self::Offloads(on) | Self::Duplex(on) => f.write_str(on_off(*on)),
            Self::Frame(mix) if mix.shares.len() == 1 => write!(f, "{} B", mix.name),
            Self::Frame(mix) => f.write_str(&mix.name),
            Self::Direction(direction) => f.write_str(direction.name()),
            Self::Ip(version) => write!(f, "{}", version.number()),
            Self::Flows(count) | Self::Tunnels(count) => write!(f, "{count}"),
        }
    }
}

/// The cells that meet a selector; a mistake at its place when none does.
pub(super) fn meeting<'d>(
    node: Node<'_>,
    selector: &Spanned<Selector>,
    trial: &str,
    found: Vec<&'d Draft>,
) -> Result<Vec<&'d Draft>, Reported> {
    let (key, wanted) = (selector.value.key(), &selector.value);
    let mut others: Vec<String> = Vec::new();
    let meets = |draft: &&Draft| match wanted.of(&draft.cell) {
        Some(value) if value == *wanted => true,
        Some(value) => {
            let value = value.to_string();
            if !others.contains(&value) {
                others.push(value);
            }
            false
        }
        None => false,
    };
    let met: Vec<&Draft> = found.into_iter().filter(meets).collect();
    if !met.is_empty() {
        return Ok(met);
    }
    let (what, help) = match others.is_empty() {
        true => (
            format!("no `{trial}` here has `{key}`"),
            format!("remove `{key}`"),
        ),
        false => (
            format!("no `{trial}` here is measured with `{key}: {wanted}`"),
            format!("it is measured with {}", others.join(", ")),
        ),
    };
    Err(node.mistake_at(&selector.place, what, help))
}
