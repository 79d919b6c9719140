//! The order of flows: round-robin.

use crate::error::TrafficError;
use std::ops::RangeInclusive;
use traffic_spec::{Addresses, Part, RANDOM_TEST_PORTS, Receive, TEST_PORT, test_ports};
use wire::mix::{Contents, TestFrames};

/// Source port of each tunnel's first flow.
pub const SOURCE_PORT_MIN: u16 = 0x8000;
/// The lowest random source port (RFC 4814 §4.5: no well-known ports); the highest is 65535.
pub const RANDOM_SOURCE_PORT_MIN: u16 = 1024;
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
    // One header has both.
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

/// UDP source and destination port of a flow. [`check`] has verified that there are enough ports
/// for the flows of a tunnel to differ by source port.
#[inline]
pub(crate) fn ports(place: Place, contents: Contents) -> (u16, u16) {
    match contents {
        Contents::Fixed => (SOURCE_PORT_MIN + place.within as u16, TEST_PORT),
        Contents::Random => {
            // Another value than the source port's, so that the two are not correlated.
            let target = scramble(place.flow as u16 ^ 0x5a5a);
            let targets = RANDOM_TEST_PORTS.end() - RANDOM_TEST_PORTS.start() + 1;
            (
                random_source_port(place.within as u16),
                RANDOM_TEST_PORTS.start() + target % targets,
            )
        }
    }
}

/// UDP destination ports of the frames that a receiver expects in clear.
pub(crate) fn expected_ports(receive: &Receive) -> RangeInclusive<u16> {
    if receive.reflected {
        source_ports(&receive.frames)
    } else {
        test_ports(receive.frames.contents)
    }
}

/// UDP source ports of all flows. Random ones are anywhere in their range.
fn source_ports(frames: &TestFrames) -> RangeInclusive<u16> {
    match frames.contents {
        Contents::Fixed => {
            // Flows that are not a multiple of the tunnels: some tunnels have one more.
            let most = frames.flows.div_ceil(frames.tunnels.max(1)).max(1);
            SOURCE_PORT_MIN..=SOURCE_PORT_MIN + (most.min(TUNNEL_FLOWS_MAX) - 1) as u16
        }
        Contents::Random => RANDOM_SOURCE_PORT_MIN..=u16::MAX,
    }
}

/// A different port for each number below the number of ports: a permutation of 16 bits, repeated
/// until the result is in range.
#[inline]
fn random_source_port(number: u16) -> u16 {
    let mut found = scramble(number);
    // Cycle walking: the result stays a permutation, and few numbers are out of range.
    while found > u16::MAX - RANDOM_SOURCE_PORT_MIN {
        found = scramble(found);
    }
    RANDOM_SOURCE_PORT_MIN + found
}

/// A pseudo-random permutation of 16 bits: every step can be undone.
#[inline]
const fn scramble(number: u16) -> u16 {
    let mut number = number ^ 0x9e37;
    number ^= number >> 8;
    number = number.wrapping_mul(0x88b5);
    number ^= number >> 7;
    number = number.wrapping_mul(0xdb2d);
    number ^ number >> 9
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
        // Additions and comparisons for what would be three divisions in each frame.
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
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;
    use wire::mix::FrameMix;

    fn frames(flows: u32, tunnels: u32) -> TestFrames {
        TestFrames {
            mix: FrameMix::fixed(64),
            flows,
            tunnels,
            contents: Contents::Fixed,
        }
    }

    #[test]
    fn random_ports_differ_within_a_tunnel_and_fill_their_ranges() {
        let all = (0..TUNNEL_FLOWS_MAX)
            .map(|flow| ports(Place::of(flow, 1, 1), Contents::Random))
            .collect::<Vec<_>>();
        let sources: BTreeSet<u16> = all.iter().map(|(source, _)| *source).collect();
        assert_eq!(sources.len(), TUNNEL_FLOWS_MAX as usize);
        assert!(*sources.first().unwrap() >= RANDOM_SOURCE_PORT_MIN);
        // 512 flows for each of 64 target ports, and for each 64th of the source ports.
        for part in 0..64 {
            let target = RANDOM_TEST_PORTS.start() + part;
            let here = all.iter().filter(|(_, port)| *port == target).count();
            assert!((400..624).contains(&here), "{target}: {here}");
            let low = 1024 + 1008 * part;
            let here = all
                .iter()
                .filter(|(port, _)| (low..=low + 1007).contains(port));
            let here = here.count();
            assert!((400..624).contains(&here), "{low}: {here}");
        }
        // Few neighbours stay neighbours.
        let close = |pair: &&[(u16, u16)]| pair[0].0.abs_diff(pair[1].0) < 16;
        assert!(all.windows(2).filter(close).count() < 100);
    }

    proptest! {
        #[test]
        fn every_flow_has_one_of_the_source_ports(
            count in 1u32..=FLOWS_MAX,
            tunnels in 1u32..50,
            contents in prop_oneof![Just(Contents::Fixed), Just(Contents::Random)],
        ) {
            prop_assume!(count.div_ceil(tunnels) <= TUNNEL_FLOWS_MAX);
            let frames = TestFrames { contents, ..frames(count, tunnels) };
            let known = source_ports(&frames);
            let flows = [0, count / 2, count - 1];
            for flow in flows {
                let (source, _) = ports(Place::of(flow, tunnels, 1), contents);
                prop_assert!(known.contains(&source), "{source} is not in {known:?}");
            }
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
