//! Classes of service: they arrive, and the outer header has them or not.

use crate::trials::{TestLab, cell, encrypting, tcp, udp};
use plan::{Adapter, Dscp, Measurement};

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 1] = [(
    "classes_arrive_and_our_tunnel_clears_them_outside",
    classes_arrive_and_our_tunnel_clears_them_outside,
)];

fn classes_arrive_and_our_tunnel_clears_them_outside() {
    let mut lab = TestLab::build();
    let ping = || Measurement::Ping {
        count: 50,
        interval_ns: 10_000_000,
        payload_bytes: 56,
        loaded: false,
        route: false,
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
