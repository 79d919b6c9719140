//! Frame trials as configured: axes of the traffic, and procedures.
//!
//! To add a procedure: one file of [`procedure`], and its table in `docs/campaign.md`.

mod check;
mod keys;
pub(crate) mod mix;
mod procedure;
mod profile;
pub(crate) mod rate;
mod search;

pub(crate) use check::{contents_for, for_duts, sealed_by_all};
pub(crate) use keys::{DIRECTION, IP};
pub(crate) use procedure::keys_of;

use crate::axis::Axes;
use crate::grid::Grid;
use crate::point::{FrameSettings, Point};
use keys::{CONTENTS_NAMES, PORTS};
use plan::{
    Axis, Direction, FrameTest, IpVersion, Measurement, Ports, ProcedureKind, Stations, Traffic,
};
use procedure::{ProcedureConfig, Procedures};
use units::frame_constants::{FCS_BYTES, HEADER_BYTES};
use wire::mix::{Contents, FrameMix, TestFrames};
use yaml::{Map, Node, Place, Reported, Spanned};

/// One frame trial: the axes of its traffic, and its procedures.
#[derive(Debug)]
pub(crate) struct FrameTrial {
    traffic: TrafficAxes,
    procedures: Procedures,
}

/// Flows if the campaign leaves them open: enough for hashes to spread them evenly over queues and
/// workers.
const FLOWS_DEFAULT: u32 = 64;
const FLOWS_MAX: u32 = 65_535;
/// Flows of a tunnel differ by source port.
const FLOWS_PER_TUNNEL_MAX: u32 = 32_768;
/// Tunnels differ by address within a /16.
const TUNNELS_MAX: u32 = 65_535;

pub(crate) const IP_VERSIONS: [(&str, IpVersion); 2] = [("4", IpVersion::V4), ("6", IpVersion::V6)];
/// Returns the default number of flows: equally many for each tunnel, at least one for each core.
pub(crate) fn flows_for(tunnels: u32, cores: u16) -> u32 {
    let wanted = FLOWS_DEFAULT.max(cores.into());
    (tunnels * wanted.div_ceil(tunnels)).min(FLOWS_MAX)
}

/// The axes of the traffic.
#[derive(Debug)]
pub(crate) struct TrafficAxes {
    frame: Vec<Spanned<FrameMix>>,
    ip: Vec<Spanned<IpVersion>>,
    direction: Vec<Spanned<Direction>>,
    cores: Vec<Spanned<u16>>,
    /// `None`: [`flows_for`].
    flows: Vec<Spanned<Option<u32>>>,
    /// `None`: the DUT's tunnels.
    tunnels: Vec<Spanned<Option<u32>>>,
    duplex: Vec<Spanned<bool>>,
    ports: Vec<Spanned<Ports>>,
    /// `None`: [`contents_for`].
    contents: Vec<Spanned<Option<Contents>>>,
    offloads: Vec<Spanned<bool>>,
}

/// Reads a frame trial with procedures of this kind.
pub(crate) fn read(map: &Map<'_>, kind: ProcedureKind) -> Result<FrameTrial, Reported> {
    let node = map.node();
    let axes = Axes::of(map);
    let traffic = TrafficAxes {
        frame: axes.read("frame", mix::read),
        ip: axes.read("ip", |node| node.one_of("IP version", &IP_VERSIONS)),
        direction: axes.read("direction", |node| {
            node.one_of("direction", &Direction::ALL.map(|it| (it.name(), it)))
        }),
        cores: axes.get("cores"),
        flows: axes.get("flows"),
        tunnels: axes.get("tunnels"),
        duplex: axes.get("duplex"),
        ports: axes.read("ports", ports),
        contents: axes.read("contents", |node| {
            node.word_or("auto", |node| node.one_of("contents", &CONTENTS_NAMES))
        }),
        offloads: axes.get("offloads"),
    };
    let procedures = procedure::read(kind, map);
    traffic.check(node);
    // Loads are checked for each mix that could be read: a bit rate is another number of frames
    // for each.
    let mixes: Vec<&FrameMix> = traffic.frame.iter().map(|mix| &mix.value).collect();
    for asked in procedures.iter().flatten() {
        asked.check(node, &mixes);
        if let Some(path) = asked.round_trips() {
            traffic.check_round_trips(node, path);
        }
    }
    if kind.is_disturbed() {
        traffic.check_whole(node);
    }
    axes.done()?;
    Ok(FrameTrial {
        traffic,
        procedures: procedures?,
    })
}

/// Reads `auto`, one kind for both ends, or one for each end.
fn ports(node: Node<'_>) -> Result<Ports, Reported> {
    let kind = |node: Node<'_>| node.word_or("auto", |node| node.choice("port kind"));
    if !node.is_map() {
        return kind(node).map(|kind| Ports { tx: kind, rx: kind });
    }
    node.keys(PORTS, |map| {
        let (tx, rx) = (map.read("send", kind), map.read("receive", kind));
        Ok(Ports { tx: tx?, rx: rx? })
    })
}

/// A link of a smaller MTU carries no IPv6 (RFC 8200 §5), and below 68 B no IPv4.
pub(crate) const LINK_MTU_MIN: u16 = 1280;

/// The largest frame's IP packet.
pub(crate) fn packet_bytes_max(mix: &FrameMix) -> u16 {
    mix.largest_bytes()
        .saturating_sub((HEADER_BYTES + FCS_BYTES) as u16)
}

/// Values set by the axes of the traffic.
#[derive(Clone)]
struct Settings {
    /// Flows, tunnels and contents are in `given` until the DUTs are known.
    traffic: Traffic,
    cores: u16,
    offloads: bool,
    given: FrameSettings,
}

impl FrameTrial {
    /// Its points; the first axis of an id varies slowest.
    pub(crate) fn points<'a>(&'a self, trial: &'a Place) -> Grid<'a, Point<'a>> {
        // Each axis below replaces its part; the values here are never measured.
        let start = Settings {
            traffic: Traffic {
                frames: TestFrames {
                    mix: FrameMix::fixed(0),
                    flows: 1,
                    tunnels: 1,
                    contents: Contents::Fixed,
                },
                ip: IpVersion::V4,
                direction: Direction::Both,
                duplex: false,
                ports: Ports::default(),
            },
            cores: 1,
            offloads: false,
            given: FrameSettings::default(),
        };
        let traffic = &self.traffic;
        // Ids have their axes in this order. Another order would rename cells, and runs could not
        // be compared with older ones.
        let grid = Grid::new(trial, start)
            .over(Axis::Frame, &traffic.frame, |point, mix| {
                point.traffic.frames.mix = mix;
            })
            .over(Axis::Direction, &traffic.direction, |point, direction| {
                point.traffic.direction = direction;
            })
            .over(Axis::Ip, &traffic.ip, |point, ip| point.traffic.ip = ip)
            .over(Axis::Cores, &traffic.cores, |point, cores| {
                point.cores = cores
            })
            .over(Axis::Flows, &traffic.flows, |point, flows| {
                point.given.flows = flows;
            })
            .over(Axis::Tunnels, &traffic.tunnels, |point, tunnels| {
                point.given.tunnels = tunnels;
                // Replaced for each DUT if the DUT decides.
                point.traffic.frames.tunnels = tunnels.unwrap_or(1);
            })
            .over(Axis::Duplex, &traffic.duplex, |point, duplex| {
                point.traffic.duplex = duplex;
            })
            .over(Axis::Ports, &traffic.ports, |point, ports| {
                point.traffic.ports = ports;
            })
            .over(Axis::Contents, &traffic.contents, |point, contents| {
                point.given.contents = contents
            })
            .over(Axis::Offloads, &traffic.offloads, |point, offloads| {
                point.offloads = offloads;
            });
        grid.over_each(&self.procedures, |settings, asked| {
            (settings.point(trial, asked.as_ref()), asked.coordinates())
        })
    }
}

impl Settings {
    fn point<'a>(mut self, trial: &'a Place, asked: &dyn ProcedureConfig) -> Point<'a> {
        let mix = &self.traffic.frames.mix;
        let procedure = asked.resolve(mix);
        let loads = asked.loads().into_iter().map(|load| Spanned {
            value: load.value.frames_per_s(mix),
            place: load.place.clone(),
        });
        self.given.loads = loads.collect();
        self.given.event = asked.event_place().cloned();
        let stations = Stations {
            // Small frames do not make the interface's MTU small: the kernel would remove its
            // addresses.
            mtu: packet_bytes_max(mix).max(LINK_MTU_MIN),
            cores: self.cores,
            offloads: self.offloads,
            overlay: plan::Overlay::None,
            dscp: None,
        };
        let traffic = self.traffic;
        let test = FrameTest { traffic, procedure };
        Point {
            stations: Some(stations),
            frames: Some(self.given),
            ..Point::new(trial, Measurement::Frames(test))
        }
    }
}
