//! Reports of tools that something spoils on their way: no figure stands on them.

use crate::bench::{FakeBench, Script, ping, said, udp};
use journal::record::Outcome;
use plan::{Adapter, Cell};
use testbed::Interrupt;
use trial::{Trial, links, measure};

fn data(name: &str) -> String {
    std::fs::read_to_string(format!("tests/data/{name}")).unwrap()
}

fn outcome(script: Script, cell: &Cell) -> Outcome {
    let links = links(&crate::bench::plan(vec![cell.clone()], 1), cell);
    let mut bench = FakeBench::new(script);
    let result = measure(&mut bench, &Trial::of(cell, 1, links), &Interrupt::new());
    bench.assert_clean();
    result.unwrap().outcome
}

fn failure(script: Script, cell: &Cell) -> String {
    match outcome(script, cell) {
        Outcome::Failed { reason } => reason,
        other => panic!("expected a failed trial, got {other:?}"),
    }
}

/// A UDP trial, and the report of its server behind a wrapper.
fn server_says(wrapper: impl Fn(&str) -> String) -> Script {
    let server = data("iperf3-3.12-udp-100m.server.json");
    let spoilt = wrapper(&server);
    Script {
        clients: vec![said(&data("iperf3-3.12-udp-100m.client.json"))],
        servers: vec![said(&spoilt)],
        carried_bytes: 12_491_392,
        header_bytes: 8486 * 42,
        ..Script::default()
    }
}

/// Replaces the value of a key in the sum of one interval.
fn in_one_sum(report: &str, key: &str, change: impl Fn(u64) -> String) -> String {
    let sum = report.match_indices("\"sum\":").nth(4).unwrap().0;
    let key = format!("\"{key}\":\t");
    let at = sum + report[sum..].find(&key).unwrap() + key.len();
    let end = at + report[at..].find([',', '\n']).unwrap();
    let value = report[at..end].parse().unwrap();
    format!("{}{}{}", &report[..at], change(value), &report[end..])
}

#[test]
fn a_report_that_is_passed_on_as_it_is_has_a_figure() {
    let outcome = outcome(server_says(str::to_owned), &udp(Adapter::Direct));
    assert!(!matches!(outcome, Outcome::Failed { .. }), "{outcome:?}");
}

#[test]
fn datagrams_that_the_client_never_sent_are_no_loss() {
    let more = |value: u64| (value + 364_936).to_string();
    let spoil =
        |report: &str| in_one_sum(&in_one_sum(report, "packets", more), "lost_packets", more);
    let reason = failure(server_says(spoil), &udp(Adapter::Direct));
    assert!(reason.contains("iperf3 on station b knows of "), "{reason}");
    assert!(reason.contains("had sent "), "{reason}");
}

#[test]
fn bytes_of_no_datagram_are_refused() {
    let spoil = |report: &str| in_one_sum(report, "packets", |_| "0".to_owned());
    let reason = failure(server_says(spoil), &udp(Adapter::Direct));
    assert!(
        reason.contains("which raised its highest number by 0"),
        "{reason}"
    );
}

#[test]
fn a_jitter_of_512_days_is_refused() {
    let spoil = |report: &str| {
        let end = report.find("\"end\":\t{").unwrap();
        let at = end + report[end..].find("\"jitter_ms\":\t").unwrap() + "\"jitter_ms\":\t".len();
        let after = at + report[at..].find(',').unwrap();
        format!("{}44260133838.438{}", &report[..at], &report[after..])
    };
    let reason = failure(server_says(spoil), &udp(Adapter::Direct));
    assert!(reason.contains("reports a jitter of "), "{reason}");
    assert!(reason.contains("longer than the trial"), "{reason}");
}

#[test]
fn replies_of_ping_that_are_not_those_asked_for_are_named() {
    let report = data("iputils-20221126-ping.txt");
    let reply = report
        .lines()
        .find(|line| line.contains(" bytes from "))
        .unwrap();
    let time = reply.split("time=").nth(1).unwrap();
    for (line, expected) in [
        (reply.replace(time, "0.000 ms"), "below ping's resolution"),
        (
            format!("{reply} (DIFFERENT ADDRESS!)"),
            "another address answered",
        ),
        (
            format!("{reply} (BAD CHECKSUM!)"),
            "its ICMP checksum is wrong",
        ),
    ] {
        let script = Script {
            ping: said(&report.replacen(reply, &line, 1)),
            ..Script::default()
        };
        let reason = failure(script, &ping(Adapter::Direct));
        assert!(
            reason.starts_with("a: ") && reason.contains(expected),
            "{reason}"
        );
    }
}
