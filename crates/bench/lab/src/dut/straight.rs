//! No DUT: the stations' ports joined to each other. Frame tests here measure the limit of the
//! tester.

use super::keys::{fresh_pair, write_keys};
use super::{Adapter, Site};
use crate::topology::{C0, C1};
use plan::Direction;
use std::net::Ipv4Addr;
use testbed::{FramePath, Result, RunningDut, StationKeys, StationPeer};
use wire::Suite;

/// ESP in UDP (RFC 3948 §2).
const PORT: u16 = 4500;

/// The link past the gateways. It is always there; nothing is started.
#[derive(Debug)]
pub(super) struct Straight {
    /// The stations' suite.
    suite: Suite,
}

impl Straight {
    pub(super) const fn new(suite: Suite) -> Self {
        Self { suite }
    }

    /// How a station seals and opens, between the test addresses of both: the outer addresses, like
    /// the inner ones, are assigned to no interface.
    fn peer(&self, key_file: String, [local, remote]: [Ipv4Addr; 2]) -> Option<StationPeer> {
        Some(StationPeer {
            keys: StationKeys::File(key_file),
            suite: self.suite,
            local,
            remote,
            port: Some(PORT),
            lanes: 1,
            tunnels: 1,
        })
    }
}

impl Adapter for Straight {
    /// In direction `Both` frames go in clear. In the others each end seals and opens, so that the
    /// result includes that cost.
    fn start(&mut self, site: &Site<'_>) -> Result<RunningDut> {
        if site.map.is_between_hosts() {
            return Err(site.error("needs a link past the gateways, and this lab has none"));
        }
        let mut path = FramePath {
            source: site.map.frame_end(C0),
            sink: site.map.frame_end(C1),
        };
        if site.direction != Direction::Both {
            // The same pair on both: a station is the peer of the other one.
            let keys = fresh_pair(site.dut)?;
            let [a, b] = site.stations;
            let [source, sink] = [path.source.test_address, path.sink.test_address];
            path.source.peer = self.peer(write_keys(a, &keys)?, [source, sink]);
            path.sink.peer = self.peer(write_keys(b, &keys)?, [sink, source]);
        }
        Ok(RunningDut {
            frame_path: Some(path),
            ..RunningDut::default()
        })
    }

    /// A veth pair that is up forwards.
    fn await_ready(&self, _site: &Site<'_>) -> Result<()> {
        Ok(())
    }

    fn stop(&mut self, site: &Site<'_>, dut: RunningDut) -> Result<()> {
        site.forget_station_keys(&dut)
    }
}
