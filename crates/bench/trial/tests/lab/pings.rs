//! What a ping cell measures besides the idle path: round trips under TCP load, hops, path MTU.

use crate::impaired::{counted, impaired, impaired_lab};
use crate::trials::{TestLab, cell, encrypting, lab_plan, ping};
use impair::Impairment;
use journal::record::{Latency, Route};
use plan::{Adapter, LabPlan, Measurement, TransferDirection};
use testbed::Bench;

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 4] = [
    (
        "round_trips_are_measured_under_each_load",
        round_trips_are_measured_under_each_load,
    ),
    (
        "round_trips_under_load_meet_the_impairment",
        round_trips_under_load_meet_the_impairment,
    ),
    (
        "hops_and_path_mtu_are_found_with_and_without_a_tunnel",
        hops_and_path_mtu_are_found_with_and_without_a_tunnel,
    ),
    (
        "a_path_that_lets_long_packets_vanish_is_found",
        a_path_that_lets_long_packets_vanish_is_found,
    ),
];

fn measured(lab: &mut TestLab, adapter: Adapter, with_load: bool) -> Latency {
    let mut measurement = ping();
    if let Measurement::Ping { loaded, route, .. } = &mut measurement {
        (*loaded, *route) = (with_load, !with_load);
    }
    let measured = lab.measured(&cell(adapter, 1, false, measurement));
    measured.latency().cloned().unwrap()
}

fn round_trips_are_measured_under_each_load() {
    let mut lab = TestLab::build();
    for adapter in [Adapter::Direct, encrypting()] {
        let latency = measured(&mut lab, adapter, true);
        assert_eq!((latency.sent, latency.route), (300, None));
        let loads: Vec<TransferDirection> =
            latency.loaded.iter().map(|one| one.direction).collect();
        assert_eq!(
            loads,
            TransferDirection::ALL.map(|(_, direction)| direction)
        );
        let [there, back, both] = [0, 1, 2].map(|at| latency.loaded[at].link_bytes);
        assert!(there[0] > 4 * there[1], "{there:?}");
        assert!(back[1] > 4 * back[0], "{back:?}");
        assert!(both[0] > 1_000_000 && both[1] > 1_000_000, "{both:?}");
        for one in &latency.loaded {
            assert!(one.received > 0 && one.round_trips_ns.len() as u64 == one.received);
        }
    }
}

/// The path is impaired until the last load has ended.
fn round_trips_under_load_meet_the_impairment() {
    const DELAY_NS: u64 = 20_000_000;
    // ping cuts off what is below a tenth of a millisecond.
    const PRINTED_NS: u64 = 100_000;
    let mut lab = impaired_lab();
    let mut measurement = ping();
    if let Measurement::Ping { count, loaded, .. } = &mut measurement {
        (*count, *loaded) = (50, true);
    }
    let delay = Impairment {
        delay_ns: DELAY_NS,
        ..Impairment::default()
    };
    let cell = impaired(cell(Adapter::Direct, 1, false, measurement), delay);
    // A flood may keep the path busy, which changes no round trip's least time.
    let measured = counted(&mut lab, &cell);
    let latency = measured.latency().unwrap();
    assert_eq!(latency.loaded.len(), TransferDirection::ALL.len());
    let loaded = latency.loaded.iter().flat_map(|one| &one.round_trips_ns);
    let shortest = latency.round_trips_ns.iter().chain(loaded).min();
    assert!(
        shortest.is_some_and(|ns| *ns + PRINTED_NS >= DELAY_NS),
        "{shortest:?}"
    );
}

/// Packets of the stations' MTU do not fit between the gateways.
fn narrow() -> LabPlan {
    LabPlan {
        cipher_mtu: Some(1300),
        ..lab_plan()
    }
}

fn route(lab: &mut TestLab, adapter: Adapter) -> Route {
    measured(lab, adapter, false).route.unwrap()
}

fn hops_and_path_mtu_are_found_with_and_without_a_tunnel() {
    let mut lab = TestLab::build();
    let direct = route(&mut lab, Adapter::Direct);
    let addresses = direct.hops.iter().map(|hop| hop.address.as_deref());
    let addresses: Vec<Option<&str>> = addresses.collect();
    assert_eq!(addresses.len(), 3, "gw1, gw2 and B: {direct:?}");
    assert_eq!(
        (addresses[0], addresses[2]),
        (Some("10.1.0.1"), Some("10.2.0.2"))
    );
    let mtus = (
        direct.link_mtu_bytes,
        direct.path_mtu_bytes,
        direct.reported_mtu_bytes,
    );
    assert_eq!(mtus, (1500, Some(1500), None));
    let tunnel = route(&mut lab, encrypting());
    assert_eq!(
        tunnel.hops.last().unwrap().address.as_deref(),
        Some("10.2.0.2")
    );
    let mtus = (tunnel.path_mtu_bytes, tunnel.reported_mtu_bytes);
    assert_eq!(mtus, (Some(1500), None), "{tunnel:?}");
}

/// gw1 drops the reports of its own that packets are too long.
fn a_path_that_lets_long_packets_vanish_is_found() {
    let mut lab = TestLab::on(&narrow());
    let found = route(&mut lab, Adapter::Direct);
    let mtus = (found.path_mtu_bytes, found.reported_mtu_bytes);
    assert_eq!(mtus, (Some(1300), Some(1300)), "{found:?}");
    let gateway = testbed::NodeId::Gw1;
    let rules = "table ip t { chain c { type filter hook output priority 0; \
                 icmp type destination-unreachable icmp code 4 drop; }; }";
    let mut drop = testbed::protocol::Program::new(["nft", "-f", "-"]);
    drop.stdin = rules.to_owned();
    let ended = lab
        .lab
        .node(gateway)
        .run(drop, std::time::Duration::from_secs(5))
        .unwrap();
    if ended.code != Some(0) {
        println!("SKIPPED: nft cannot filter here: {}", ended.stderr.trim());
        return;
    }
    let silent = route(&mut lab, Adapter::Direct);
    let mtus = (silent.path_mtu_bytes, silent.reported_mtu_bytes);
    assert_eq!(mtus, (Some(1300), None), "{silent:?}");
}
