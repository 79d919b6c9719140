//! Transfers from B to A and both ways at once, by both tools, with congestion control as asked.

use crate::trials::{TestLab, cell, encrypting, tcp, udp};
use journal::record::{Measured, Outcome, Transfer};
use plan::{Adapter, Measurement, Tool, TransferDirection};

/// All tests by name.
pub(crate) const ALL: [(&str, fn()); 3] = [
    (
        "transfers_from_b_to_a_and_both_ways_by_each_tool",
        transfers_from_b_to_a_and_both_ways_by_each_tool,
    ),
    (
        "the_figures_of_rfc_6349_have_their_ingredients",
        the_figures_of_rfc_6349_have_their_ingredients,
    ),
    (
        "congestion_control_is_used_as_asked_or_refused",
        congestion_control_is_used_as_asked_or_refused,
    ),
];

fn with(mut measurement: Measurement, by: Tool, to: TransferDirection) -> Measurement {
    match &mut measurement {
        Measurement::Tcp {
            tool, direction, ..
        }
        | Measurement::Udp {
            tool, direction, ..
        } => (*tool, *direction) = (by, to),
        other => panic!("{other:?} has no tool"),
    }
    measurement
}

fn check<'m>(measured: &'m Measured, name: &str) -> &'m str {
    let checks = &measured.evidence.checks;
    let found = checks.iter().find(|check| check.name == name);
    &found.unwrap_or_else(|| panic!("no `{name}`")).detail
}

/// What left each gateway for the other, at least the payload received at the end of that way.
fn assert_link_carried(measured: &Measured, [a_to_b, b_to_a]: [u64; 2]) {
    let sent = |name: &str| measured.evidence.interfaces[name].tx_bytes;
    let (of_gw1, of_gw2) = (sent("gw1/w0"), sent("gw2/w1"));
    assert!(of_gw1 > a_to_b, "{of_gw1} of {a_to_b}");
    assert!(of_gw2 > b_to_a, "{of_gw2} of {b_to_a}");
    let amount = check(measured, "cipher-link-amount");
    assert_eq!(amount.contains("gw1/w0 sent"), a_to_b > 0, "{amount}");
    assert_eq!(amount.contains("gw2/w1 sent"), b_to_a > 0, "{amount}");
}

fn transfers_from_b_to_a_and_both_ways_by_each_tool() {
    let mut lab = TestLab::build();
    for adapter in [Adapter::Direct, encrypting()] {
        for tool in [Tool::Iperf3, Tool::Iperf2] {
            for load in [tcp(2), udp(Some(1000), Some(10_000_000))] {
                let is_udp = matches!(load, Measurement::Udp { .. });
                let reversed = with(load.clone(), tool, TransferDirection::BToA);
                let measured = lab.measured(&cell(adapter.clone(), 1, true, reversed));
                let transfer = measured.transfer().unwrap();
                assert!(transfer.reverse.is_none());
                assert_link_carried(&measured, [0, transfer.received_bytes]);

                let both = with(load, tool, TransferDirection::Duplex);
                let measured = lab.measured(&cell(adapter.clone(), 1, true, both));
                let transfer = measured.transfer().unwrap();
                let ways: Vec<&Transfer> = transfer.each_way().collect();
                let bytes = [ways[0].received_bytes, ways[1].received_bytes];
                assert!(bytes[0] > 0 && bytes[1] > 0, "{bytes:?}");
                assert_link_carried(&measured, bytes);
                for way in ways {
                    let datagrams = way.datagrams.unwrap_or_default();
                    assert_eq!(datagrams.sent > datagrams.lost, is_udp, "{datagrams:?}");
                    let knows_retransmits = tool == Tool::Iperf3 && !is_udp;
                    assert_eq!(way.retransmits.is_some(), knows_retransmits);
                }
            }
        }
    }
}

fn the_figures_of_rfc_6349_have_their_ingredients() {
    let mut lab = TestLab::build();
    for direction in TransferDirection::ALL.map(|(_, direction)| direction) {
        let load = with(tcp(1), Tool::Iperf3, direction);
        let measured = lab.measured(&cell(Adapter::Direct, 1, true, load));
        for way in measured.transfer().unwrap().each_way() {
            let tcp = way.tcp.clone().unwrap();
            // 1500 B less IPv4, TCP and its timestamps (RFC 7323).
            assert_eq!(tcp.segment_bytes, Some(1448), "{direction:?}");
            assert!(tcp.baseline_rtt_ns > Some(0), "{tcp:?}");
            assert!(tcp.loaded_rtt_ns > Some(0), "{tcp:?}");
            assert!(tcp.congestion.is_some());
        }
    }
    let load = with(tcp(1), Tool::Iperf2, TransferDirection::AToB);
    let measured = lab.measured(&cell(Adapter::Direct, 1, true, load));
    let tcp = measured.transfer().unwrap().tcp.clone().unwrap();
    let reported = (tcp.segment_bytes, tcp.baseline_rtt_ns, tcp.loaded_rtt_ns);
    assert_eq!(reported, (None, None, None), "iperf2 reports none of it");
}

fn congestion_control_is_used_as_asked_or_refused() {
    let mut lab = TestLab::build();
    for tool in [Tool::Iperf3, Tool::Iperf2] {
        let asked = |name: &str| {
            let mut load = with(tcp(1), tool, TransferDirection::Duplex);
            if let Measurement::Tcp { congestion, .. } = &mut load {
                *congestion = Some(name.to_owned());
            }
            cell(Adapter::Direct, 1, true, load)
        };
        // Every Linux kernel has it, and allows it.
        let measured = lab.measured(&asked("reno"));
        for way in measured.transfer().unwrap().each_way() {
            let used = way.tcp.as_ref().unwrap().congestion.as_deref();
            assert_eq!(used, Some("reno"), "{tool:?}");
        }
        let detail = check(&measured, "congestion-as-asked");
        assert!(
            detail.contains("station A") && detail.contains("station B"),
            "{detail}"
        );
        match lab.record(&asked("nonesuch")).outcome {
            Outcome::Failed { reason } => assert!(
                reason.starts_with(
                    "a: the kernel does not allow congestion control nonesuch; it allows "
                ),
                "{reason}"
            ),
            other => panic!("{other:?}"),
        }
    }
}
