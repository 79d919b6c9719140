//! A frame trial's points: every combination of its axes, ready to become cells.

use crate::expand::{Grid, Point};
use crate::frames::procedure::Asked;
use crate::frames::{FrameTrial, Given};
use crate::plan::{Axis, Direction, FrameTest, IpVersion, Measurement, Ports, Stations, Traffic};
use crate::trial::Trial;
use units::frame_constants::{FCS_BYTES, HEADER_BYTES};
use wire::mix::FrameMix;
use yaml::Spanned;

/// A link of a smaller MTU carries no IPv6 (RFC 8200 §5), and below 68 B no IPv4.
pub(crate) const LINK_MTU_MIN: u16 = 1280;

/// The largest frame's IP packet.
pub(crate) fn packet_bytes_max(mix: &FrameMix) -> u16 {
    mix.largest_bytes()
        .saturating_sub((HEADER_BYTES + FCS_BYTES) as u16)
}

/// What the axes of the traffic set.
#[derive(Clone)]
struct Settings {
    /// Flows and tunnels are in `given` until the DUT is known.
    traffic: Traffic,
    cores: u16,
    offloads: bool,
    given: Given,
}

impl FrameTrial {
    /// Its points; the first axis of an id varies slowest.
    pub(crate) fn points<'a>(&'a self, trial: &'a Trial) -> Grid<'a, Point<'a>> {
        let start = Settings {
            traffic: Traffic {
                mix: FrameMix::fixed(0),
                ip: IpVersion::V4,
                flows: 1,
                tunnels: 1,
                direction: Direction::Both,
                duplex: false,
                ports: Ports::default(),
            },
            cores: 1,
            offloads: false,
            given: Given::default(),
        };
        let grid = Grid::new(&trial.place, start)
            .over(Axis::Frame, &self.frame, |point, mix| {
                point.traffic.mix = mix;
            })
            .over(Axis::Direction, &self.direction, |point, direction| {
                point.traffic.direction = direction;
            })
            .over(Axis::Ip, &self.ip, |point, ip| point.traffic.ip = ip)
            .over(Axis::Cores, &self.cores, |point, cores| point.cores = cores)
            .over(Axis::Flows, &self.flows, |point, flows| {
                point.given.flows = flows;
            })
            .over(Axis::Tunnels, &self.tunnels, |point, tunnels| {
                point.given.tunnels = tunnels;
                point.traffic.tunnels = tunnels.unwrap_or(1);
            })
            .over(Axis::Duplex, &self.duplex, |point, duplex| {
                point.traffic.duplex = duplex;
            })
            .over(Axis::Ports, &self.ports, |point, ports| {
                point.traffic.ports = ports;
            })
            .over(Axis::Offloads, &self.offloads, |point, offloads| {
                point.offloads = offloads;
            });
        grid.over_each(&self.procedures, |settings, asked| {
            (settings.point(trial, asked), asked.coordinates())
        })
    }
}

impl Settings {
    fn point<'a>(mut self, trial: &'a Trial, asked: &Asked) -> Point<'a> {
        let mix = &self.traffic.mix;
        let procedure = asked.resolve(mix);
        let loads = asked.loads().map(|load| Spanned {
            value: load.value.frames_per_s(mix),
            place: load.place.clone(),
        });
        self.given.loads = loads.collect();
        self.given.event = asked.event_place().cloned();
        let stations = Stations {
            mtu: packet_bytes_max(mix).max(LINK_MTU_MIN),
            cores: self.cores,
            offloads: self.offloads,
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
