//! Transfers in VXLAN and Geneve, through our encryptor and in clear.

use crate::trials::{TestLab, cell, encrypting, tcp, udp};
use journal::record::{Measured, Outcome};
use plan::{Adapter, Cell, Measurement, Overlay};
use testbed::{Bench, NodeId};

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 2] = [
    (
        "transfers_in_vxlan_pass_every_check_and_leave_nothing",
        transfers_in_vxlan_pass_every_check_and_leave_nothing,
    ),
    (
        "geneve_is_measured_or_its_lack_is_named",
        geneve_is_measured_or_its_lack_is_named,
    ),
];

fn inside(overlay: Overlay, mut cell: Cell) -> Cell {
    cell.stations.as_mut().unwrap().overlay = overlay;
    cell
}

fn detail<'a>(measured: &'a Measured, name: &str) -> &'a str {
    let checks = &measured.evidence.checks;
    let found = checks.iter().find(|check| check.name == name);
    &found.unwrap_or_else(|| panic!("{checks:#?}")).detail
}

fn interfaces(lab: &TestLab, id: NodeId) -> String {
    lab.lab.node(id).output(["ip", "link", "show"]).unwrap()
}

fn transfers_in_vxlan_pass_every_check_and_leave_nothing() {
    let mut lab = TestLab::build();
    let rated = || udp(None, Some(20_000_000));
    let trials: [(Adapter, bool, Measurement); 5] = [
        (Adapter::Direct, true, tcp(2)),
        (Adapter::Direct, false, tcp(1)),
        (encrypting(), true, tcp(1)),
        (encrypting(), false, tcp(1)),
        (encrypting(), true, rated()),
    ];
    for (adapter, offloads, measurement) in trials {
        let is_tcp = matches!(measurement, Measurement::Tcp { .. });
        let cell = inside(Overlay::Vxlan, cell(adapter, 1, offloads, measurement));
        let measured = lab.measured(&cell);
        let transfer = measured.transfer().unwrap();
        assert!(transfer.received_bytes > 0);
        if is_tcp {
            // 1450 B inside, less 52 B of headers with time stamps.
            let tcp = transfer.tcp.as_ref().unwrap();
            assert_eq!(tcp.segment_bytes, Some(1398));
        }
        let detail = detail(&measured, "overlay-carried");
        assert!(detail.contains("b/ov0 received "), "{detail}");
        for id in [NodeId::A, NodeId::B] {
            let links = interfaces(&lab, id);
            assert!(!links.contains("ov0"), "{links}");
        }
    }
}

fn geneve_is_measured_or_its_lack_is_named() {
    let mut lab = TestLab::build();
    let cell = inside(Overlay::Geneve, cell(encrypting(), 1, true, tcp(1)));
    if let Outcome::Failed { reason } = lab.record(&cell).outcome {
        assert!(
            reason.contains("its kernel has no Geneve interfaces"),
            "{reason}"
        );
        assert!(reason.contains("modprobe geneve"), "{reason}");
        println!("SKIPPED: {reason}");
        return;
    }
    let measured = lab.measured(&cell);
    assert!(detail(&measured, "overlay-carried").contains(" in Geneve, "));
}
