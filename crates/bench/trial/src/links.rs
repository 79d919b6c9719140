//! The links of a lab as a cell needs them, and the interfaces that a path crosses.

use plan::{Cell, Direction, Measurement, Plan, Role};
use testbed::{FrameEnd, FramePath, Links};
use wire::Suite;
use wire::overhead::{Outer, outer_bytes};

/// MTU of the cipher link: the plan's, or else the MTU for the largest encapsulated packet of any
/// cell. All cells have the same, so that DUT and baseline cross the same link.
#[must_use]
pub fn cipher_mtu(plan: &Plan) -> u16 {
    let needed = |cell: &Cell| {
        let mtu = cell.stations?.mtu;
        let profile = cell.dut.adapter.profile();
        Some(match profile.role {
            // In one direction the stations encapsulate, as an encryptor would.
            Role::Rig if is_one_way(&cell.measurement) => Suite::AEADS
                .into_iter()
                .map(|suite| encapsulated(suite, mtu))
                .fold(0, usize::max),
            _ => profile.cipher_packet_bytes(mtu.into()),
        })
    };
    // Only plans of crypto devices have no cell with stations, and they use no link.
    let largest = plan.cells.iter().filter_map(needed).max().unwrap_or(1500);
    plan.lab
        .cipher_mtu
        .unwrap_or_else(|| u16::try_from(largest).unwrap_or(u16::MAX))
}

fn encapsulated(suite: Suite, mtu: u16) -> usize {
    outer_bytes(suite, Outer::UDP_IPV4, usize::from(mtu))
}

fn is_one_way(measurement: &Measurement) -> bool {
    match measurement {
        Measurement::Frames(test) => test.traffic.direction != Direction::Both,
        _ => false,
    }
}

/// The links for one cell of a plan.
#[must_use]
pub fn links(plan: &Plan, cell: &Cell) -> Links {
    let cipher_mtu = cipher_mtu(plan);
    Links {
        // Trials of crypto devices have no stations and use no link.
        mtu: cell.stations.map_or(cipher_mtu, |stations| stations.mtu),
        cipher_mtu,
        offloads: cell.stations.is_some_and(|stations| stations.offloads),
        rate_bps: plan.lab.link_bps,
    }
}

/// The interfaces from one end of a path to the other, including the ends of the lab's links, in
/// the order of the frames.
pub(crate) fn interfaces_between(path: &FramePath) -> Vec<String> {
    let name = |end: &FrameEnd| format!("{}/{}", end.node.name(), end.interface);
    let (source, sink) = (name(&path.source), name(&path.sink));
    let mut all = testbed::path_interfaces().to_vec();
    if path.begins_at_b() {
        all.reverse();
    }
    let place = |end: &String| all.iter().position(|name| name == end);
    match (place(&source), place(&sink)) {
        // Between external boxes and past the gateways only the two ends are known.
        (Some(first), Some(last)) if first < last => all[first..=last].to_vec(),
        _ => vec![source, sink],
    }
}
