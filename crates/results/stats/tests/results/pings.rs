//! Round trips under load, hops and path MTU of ping cells.

use crate::fixture::*;
use journal::record::*;
use plan::{Dscp, TransferDirection};
use stats::{LatencyResult, Results};

fn latency(change: impl Fn(&mut Latency)) -> LatencyResult {
    let mut run = journal(vec![ping("direct")], 2, 8);
    for repeat in [1, 2] {
        let mut found = round_trips(0, &[10, 20, 30]);
        if let Figures::Latency(latency) = &mut found.figures {
            change(latency);
        }
        record(&mut run, "ping/direct", repeat, measured(found));
    }
    Results::of(&run).cells[0].latency().unwrap().clone()
}

#[test]
fn round_trips_under_load_are_pooled_and_compared_with_the_idle_path() {
    let found = latency(|latency| {
        latency.loaded = vec![LoadedLatency {
            direction: TransferDirection::Duplex,
            sent: 4,
            received: 3,
            round_trips_ns: vec![40_000, 50_000, 90_000],
            duration_ns: SECOND_NS,
            link_bytes: [1000, 3000],
            classes: vec![
                LoadedClass {
                    class: Dscp::Be,
                    bytes: [750_000, 10],
                },
                LoadedClass {
                    class: Dscp::Ef,
                    bytes: [250_000, 10],
                },
            ],
            outer_dscp: [("ef".to_owned(), 7)].into(),
        }];
    });
    let [under] = &found.loaded[..] else {
        panic!("{:?}", found.loaded)
    };
    assert_eq!(
        (under.load, under.requests_lost, under.pooled.n),
        ("duplex", 2, 6)
    );
    // Of both repeats.
    assert_eq!(under.outer_dscp.get("ef"), Some(&14));
    assert!((under.p50_by_idle - 2.5).abs() < 1e-9, "{under:?}");
    assert_eq!(
        under.p99_by_idle, None,
        "six replies have no 99th percentile"
    );
    assert!((under.link_bytes_per_s[1] - 3000.0).abs() < 1e-9);
    // 750 kB in each of two repeats of a second; back go only lines of the tools.
    let [be, ef] = &under.classes[..] else {
        panic!("{:?}", under.classes)
    };
    assert_eq!((be.class, ef.class), ("be", "ef"));
    assert!((be.payload_bps[0] - 6e6).abs() < 1.0, "{be:?}");
    assert_eq!(
        (be.share, ef.share),
        ([Some(0.75), None], [Some(0.25), None])
    );
    assert!(latency(|_| ()).loaded.is_empty());
}

#[test]
fn hops_add_to_one_another_and_the_mtu_must_be_what_was_reported() {
    let hop = |times: &[u64]| Hop {
        address: times.first().map(|_| "10.1.0.1".to_owned()),
        others: times
            .iter()
            .skip(1)
            .map(|_| "10.1.0.9".to_owned())
            .collect(),
        round_trips_ns: times.to_vec(),
    };
    let route = |path: Option<u16>, reported: Option<u16>| {
        let found = latency(|latency| {
            latency.route = Some(Route {
                hops: vec![hop(&[30, 20]), hop(&[50]), hop(&[]), hop(&[70])],
                link_mtu_bytes: 1500,
                path_mtu_bytes: path,
                reported_mtu_bytes: reported,
            });
        });
        found.route.unwrap()
    };
    let found = route(Some(1500), None);
    let added: Vec<Option<u64>> = found.hops.iter().map(|hop| hop.added_ns).collect();
    assert_eq!(added, [Some(20), Some(30), None, None]);
    let addresses: Vec<Option<&str>> = found
        .hops
        .iter()
        .map(|hop| hop.address.as_deref())
        .collect();
    assert_eq!(
        addresses[..3],
        [Some("10.1.0.1, 10.1.0.9"), Some("10.1.0.1"), None]
    );
    assert!(found.mtu_agrees);
    assert!(route(Some(1438), Some(1438)).mtu_agrees);
    for (path, reported) in [(Some(1438), None), (Some(1438), Some(1400)), (None, None)] {
        assert!(!route(path, reported).mtu_agrees, "{path:?} {reported:?}");
    }
}
