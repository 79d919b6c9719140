//! Classes of service: they arrive, and the outer header has them or not.

use crate::trials::{TestLab, cell, encrypting, tcp, udp};
use plan::{Adapter, Dscp, FlowDirection, Measurement, TransferDirection};

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 2] = [
    (
        "classes_arrive_and_our_tunnel_clears_them_outside",
        classes_arrive_and_our_tunnel_clears_them_outside,
    ),
    (
        "loads_of_several_classes_run_in_parallel_and_are_counted_each",
        loads_of_several_classes_run_in_parallel_and_are_counted_each,
    ),
];

fn classes_arrive_and_our_tunnel_clears_them_outside() {
    let mut lab = TestLab::build();
    let ping = || Measurement::Ping {
        count: 50,
        interval_ns: 10_000_000,
        payload_bytes: 56,
        loaded: false,
        route: false,
        load_dscp: Vec::new(),
    };
    let trials = [
        (Adapter::Direct, ping(), "ef"),
        (encrypting(), ping(), "be"),
        (encrypting(), tcp(1), "be"),
        (encrypting(), udp(None, Some(20_000_000)), "be"),
    ];
    for (adapter, measurement, outer) in trials {
        let mut cell = cell(adapter, 1, true, measurement);
        cell.stations.as_mut().unwrap().dscp = Some(Dscp::Ef);
        let measured = lab.measured(&cell);
        let evidence = &measured.evidence;
        let checks = &evidence.checks;
        assert!(checks.iter().any(|check| check.name == "class-arrived"));
        let most = evidence.cipher_link.dscp.iter().max_by_key(|it| it.1);
        assert_eq!(most.unwrap().0, outer, "{evidence:#?}");
    }
}

fn loads_of_several_classes_run_in_parallel_and_are_counted_each() {
    const LEAST: u64 = 100_000;
    let mut lab = TestLab::build();
    let classes = [Dscp::Be, Dscp::Ef, Dscp::Cs1];
    for adapter in [Adapter::Direct, encrypting()] {
        let measurement = Measurement::Ping {
            count: 50,
            interval_ns: 20_000_000,
            payload_bytes: 56,
            loaded: true,
            route: false,
            load_dscp: classes.to_vec(),
        };
        let mut cell = cell(adapter, 1, true, measurement);
        cell.stations.as_mut().unwrap().dscp = Some(Dscp::Ef);
        let measured = lab.measured(&cell);
        let latency = measured.latency().unwrap();
        assert_eq!(latency.loaded.len(), TransferDirection::ALL.len());
        for under in &latency.loaded {
            let found = under.classes.iter().map(|one| one.class);
            assert_eq!(found.collect::<Vec<_>>(), classes, "{under:?}");
            for way in [FlowDirection::AToB, FlowDirection::BToA] {
                let at = usize::from(way == FlowDirection::BToA);
                let is_loaded = under.direction.ways().contains(&way);
                // Nothing prefers a class here, so that none starves; back go acknowledgements.
                let mut bytes = under.classes.iter().map(|one| one.bytes[at]);
                assert!(bytes.all(|bytes| (bytes > LEAST) == is_loaded), "{under:?}");
            }
        }
    }
}
