//! Trials over routers, bridges and NAT between the gateways: the same load, and evidence that is
//! whole.
//!
//! ```text
//!  A ---- gw1 ==== nat1 ==== gw2 ---- B
//! ```

use crate::frames::{assert_all_came, frames, load, passes, short};
use crate::trials::{TestLab, cell, encrypting, lab_plan, ping, tcp, udp};
use journal::record::Measured;
use plan::{Adapter, Direction, Element, LabPlan, Measurement, TransferDirection};

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 3] = [
    (
        "five_sessions_with_windows_of_256_kib_cross_every_element",
        five_sessions_with_windows_of_256_kib_cross_every_element,
    ),
    (
        "datagrams_and_pings_both_ways_cross_a_nat",
        datagrams_and_pings_both_ways_cross_a_nat,
    ),
    ("frames_cross_a_nat", frames_cross_a_nat),
];

fn lab_with(path: &[Element]) -> TestLab {
    TestLab::on(&LabPlan {
        path: path.to_vec(),
        ..lab_plan()
    })
}

/// The load of a router vendor's report.
fn sessions() -> Measurement {
    let mut sessions = tcp(5);
    if let Measurement::Tcp { window_bytes, .. } = &mut sessions {
        *window_bytes = Some(256 << 10);
    }
    sessions
}

fn translated(measured: &Measured, nat: &str) -> [u64; 2] {
    let of = |which: &str| measured.evidence.dut_counters[&format!("{nat}/{which}_packets")];
    [of("translated"), of("untranslated")]
}

fn five_sessions_with_windows_of_256_kib_cross_every_element() {
    let nat: (&[Element], _) = (&[Element::Bridge, Element::Nat], Some("nat2"));
    for (path, nat) in [(&[Element::Router][..], None), nat] {
        let mut lab = lab_with(path);
        for adapter in [Adapter::Direct, encrypting()] {
            let measured = lab.measured(&cell(adapter.clone(), 1, false, sessions()));
            let transfer = measured.transfer().unwrap();
            assert!(transfer.received_bytes > 1_000_000, "{transfer:?}");
            if adapter.encrypts() {
                assert!(passes(&measured, "samples-opened"), "{path:?}");
            }
            let Some(nat) = nat else { continue };
            assert!(passes(&measured, "addresses-translated"));
            let [own, others] = translated(&measured, nat);
            // Every segment, and what few packets the start and the end of the trial have.
            let sent = measured.evidence.interfaces["gw1/w0"].tx_packets;
            assert!(own.abs_diff(sent) < 100, "{own} of {sent}");
            assert_eq!(others, 0);
        }
    }
}

fn datagrams_and_pings_both_ways_cross_a_nat() {
    let mut lab = lab_with(&[Element::Nat]);
    let mut both = udp(Some(1000), Some(10_000_000));
    if let Measurement::Udp { direction, .. } = &mut both {
        *direction = TransferDirection::Duplex;
    }
    for adapter in [Adapter::Direct, encrypting()] {
        let measured = lab.measured(&cell(adapter.clone(), 1, true, both.clone()));
        let ways = measured.transfer().unwrap().each_way();
        for datagrams in ways.map(|way| way.datagrams.unwrap()) {
            assert!(datagrams.sent > 500, "{datagrams:?}");
            assert_eq!(datagrams.lost, 0, "{datagrams:?}");
        }
        let measured = lab.measured(&cell(adapter, 1, true, ping()));
        assert!(translated(&measured, "nat1")[0] > 0);
    }
}

fn frames_cross_a_nat() {
    let mut lab = lab_with(&[Element::Nat]);
    for adapter in [Adapter::Direct, encrypting()] {
        for direction in Direction::ALL {
            let mut traffic = short(direction);
            traffic.duplex = direction == Direction::Both;
            let ways = 1 + u64::from(traffic.duplex);
            let measured = lab.measured(&frames(adapter.clone(), traffic, load(200)));
            assert_all_came(&measured, 200, ways);
            assert!(passes(&measured, "addresses-translated"));
        }
    }
}
