//! The order of flows: round-robin.

use crate::error::TrafficError;
use crate::schedule::Part;
use crate::spec::Addresses;
use wire::mix::TestFrames;

/// Source port of each tunnel's first flow.
pub const SOURCE_PORT_MIN: u16 = 0x8000;
/// Flows that differ by source port.
const TUNNEL_FLOWS_MAX: u32 = 0x8000;
/// Flows that a stamp can number, without the value of all ones.
const FLOWS_MAX: u32 = 0xffff;

/// Rejects flows that frames cannot represent.
pub(crate) fn check(addresses: &Addresses, frames: &TestFrames) -> Result<(), TrafficError> {
    let TestFrames { flows, tunnels, .. } = *frames;
    let in_range = (1..=FLOWS_MAX).contains(&flows) && tunnels > 0;
    if !in_range || flows.div_ceil(tunnels) > TUNNEL_FLOWS_MAX {
        return Err(TrafficError::Flows { flows, tunnels });
    }
    let Addresses { source, target, .. } = *addresses;
    if source.is_ipv4() != target.is_ipv4() {
        return Err(TrafficError::MixedVersions {
            source_address: source,
            target_address: target,
        });
    }
    Ok(())
}

/// A frame's flow, tunnel and lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) flow: u32,
    /// `flow` modulo tunnels.
    pub(crate) tunnel: u32,
    /// `flow` divided by tunnels: its number within its tunnel.
    pub(crate) within: u32,
    /// `flow` modulo lanes.
    pub(crate) lane: u32,
}

impl Place {
    const fn of(flow: u32, tunnels: u32, lanes: u32) -> Self {
        Self {
            flow,
            tunnel: flow % tunnels,
            within: flow / tunnels,
            lane: flow % lanes,
        }
    }
}

/// Iterates over the flows of one part without divisions.
#[derive(Debug, Clone)]
pub(crate) struct FlowCursor {
    next: Place,
    first: Place,
    step: Place,
    flows: u32,
    tunnels: u32,
    lanes: u32,
    /// Rounds so far; also each flow's next sequence number.
    round: u64,
}

impl FlowCursor {
    pub(crate) fn new(frames: &TestFrames, lanes: u16, part: Part) -> Self {
        let (tunnels, lanes) = (frames.tunnels, u32::from(lanes.max(1)));
        let first = Place::of(part.index, tunnels, lanes);
        Self {
            next: first,
            first,
            step: Place::of(part.of, tunnels, lanes),
            flows: frames.flows,
            tunnels,
            lanes,
            round: 0,
        }
    }

    /// The next frame's place and its sequence number in the flow.
    #[inline]
    pub(crate) fn advance(&mut self) -> (Place, u64) {
        let taken = (self.next, self.round);
        let next = &mut self.next;
        next.flow += self.step.flow;
        if next.flow >= self.flows {
            *next = self.first;
            self.round += 1;
            return taken;
        }
        next.within += self.step.within;
        next.tunnel += self.step.tunnel;
        if next.tunnel >= self.tunnels {
            next.tunnel -= self.tunnels;
            next.within += 1;
        }
        next.lane += self.step.lane;
        if next.lane >= self.lanes {
            next.lane -= self.lanes;
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::Ipv4Addr;
    use wire::mix::FrameMix;

    fn frames(flows: u32, tunnels: u32) -> TestFrames {
        TestFrames {
            mix: FrameMix::fixed(64),
            flows,
            tunnels,
        }
    }

    fn check_flows(flows: u32, tunnels: u32) -> Result<(), TrafficError> {
        let addresses = Addresses {
            source_mac: [0; 6],
            target_mac: [0; 6],
            source: Ipv4Addr::LOCALHOST.into(),
            target: Ipv4Addr::LOCALHOST.into(),
        };
        check(&addresses, &frames(flows, tunnels))
    }

    #[test]
    fn flows_that_cannot_be_distinguished_are_refused() {
        for (count, tunnels) in [(0, 1), (65_536, 8), (32_769, 1), (1, 0)] {
            assert!(check_flows(count, tunnels).is_err(), "{count} {tunnels}");
        }
        for (count, tunnels) in [(1, 1), (32_768, 1), (65_535, 2), (1, 1000)] {
            assert!(check_flows(count, tunnels).is_ok(), "{count} {tunnels}");
        }
    }

    proptest! {
        #[test]
        fn every_flow_has_its_turn_in_every_round(
            count in 1u32..200,
            tunnels in 1u32..50,
            lanes in 1u16..20,
            of in 1u32..6,
        ) {
            let spec = frames(count, tunnels);
            for index in 0..of.min(count) {
                let part = Part { index, of };
                let mut cursor = FlowCursor::new(&spec, lanes, part);
                for round in 0..3 {
                    let mut taken = 0;
                    for flow in (index..count).step_by(of as usize) {
                        let place = Place::of(flow, tunnels, u32::from(lanes));
                        prop_assert_eq!(cursor.advance(), (place, round));
                        taken += 1;
                    }
                    prop_assert_eq!(taken, part.flows(count));
                }
            }
        }
    }
}
