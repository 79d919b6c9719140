//! Reports of iperf3, recorded and spoilt.

use super::*;
use proptest::prelude::*;

const TCP_CLIENT: &str = include_str!("../../tests/data/iperf3-3.12-tcp-2-streams.client.json");
const TCP_SERVER: &str = include_str!("../../tests/data/iperf3-3.12-tcp-2-streams.server.json");
const UDP_CLIENT: &str = include_str!("../../tests/data/iperf3-3.12-udp-loss.client.json");
const UDP_SERVER: &str = include_str!("../../tests/data/iperf3-3.12-udp-loss.server.json");

fn reported(output: &str) -> String {
    match Sessions::parse(output) {
        Err(Iperf3Error::Reported(text)) => text,
        other => panic!("expected iperf3's own error, got {other:?}"),
    }
}

#[test]
fn reads_a_tcp_client_and_its_server() {
    let client = Sessions::parse(TCP_CLIENT).unwrap().sent.unwrap();
    assert_eq!(client.steps.len(), 10);
    assert_eq!(client.bytes(), 1_259_601_920);
    assert_eq!(client.summary_bytes, Some(1_259_601_920));
    assert_eq!((client.streams, client.uncounted_bytes()), (2, 2 * 131_072));
    assert_eq!(client.segment_bytes, Some(1448));
    assert_eq!(client.congestion.as_deref(), Some("bbr"));
    assert!(client.steps.iter().all(|step| step.rtt_ns.is_some()));
    let retransmits: u64 = client
        .steps
        .iter()
        .filter_map(|step| step.retransmits)
        .sum();
    assert_eq!(retransmits, 1491);
    let server = Sessions::parse(TCP_SERVER).unwrap().received.unwrap();
    // The server's last interval is the remainder of 1.7 ms until the client has ended.
    assert_eq!(server.steps.len(), 11);
    assert_eq!(server.steps[0].end_ns, 100_837_000);
    assert_eq!(server.summary_bytes, Some(server.bytes()));
    assert_eq!(server.steps[0].retransmits, None);
    assert_eq!(server.packets(), 0);
}

#[test]
fn both_ways_at_once_are_read_apart() {
    for (client, server) in [
        (
            include_str!("../../tests/data/iperf3-3.12-tcp-duplex.client.json"),
            include_str!("../../tests/data/iperf3-3.12-tcp-duplex.server.json"),
        ),
        (
            include_str!("../../tests/data/iperf3-3.12-udp-duplex.client.json"),
            include_str!("../../tests/data/iperf3-3.12-udp-duplex.server.json"),
        ),
    ] {
        let [client, server] = [client, server].map(|text| Sessions::parse(text).unwrap());
        for (sent, received) in [
            (client.sent, server.received),
            (server.sent, client.received),
        ] {
            let (sent, received) = (sent.unwrap(), received.unwrap());
            assert!(received.bytes() > 0 && received.bytes() <= sent.bytes());
            assert_eq!(received.summary_bytes, Some(received.bytes()));
            assert_eq!(sent.summary_bytes, Some(sent.bytes()));
            let is_udp = sent.packets() > 0;
            assert!(
                sent.steps
                    .iter()
                    .all(|step| step.rtt_ns.is_some() != is_udp)
            );
            assert_eq!(sent.congestion.is_some(), !is_udp);
            assert_eq!(received.congestion, None);
        }
    }
}

#[test]
fn of_the_other_way_the_server_is_the_sender() {
    let text = include_str!("../../tests/data/iperf3-3.12-tcp-reverse.client.json");
    let client = Sessions::parse(text).unwrap();
    assert!(client.sent.is_none() && client.received.is_some());
    let text = include_str!("../../tests/data/iperf3-3.12-tcp-reverse.server.json");
    let server = Sessions::parse(text).unwrap();
    assert!(server.received.is_none());
    let retransmits = server.sent.unwrap().steps[0].retransmits;
    assert!(retransmits.is_some());
}

#[test]
fn reads_a_udp_client_and_its_server() {
    let client = Sessions::parse(UDP_CLIENT).unwrap().sent.unwrap();
    assert_eq!((client.packets(), client.bytes()), (33_462, 33_462 * 1472));
    let server = Sessions::parse(UDP_SERVER).unwrap().received.unwrap();
    assert_eq!(
        (server.packets(), server.bytes()),
        (33_462, (33_462 - 869) * 1472)
    );
    assert_eq!(server.summary_bytes, Some(47_976_896));
    assert_eq!(server.jitter_ns, 88_585);
}

#[test]
fn errors_of_iperf3_are_passed_on() {
    let said = [
        (
            include_str!("../../tests/data/iperf3-3.12-refused.client.json"),
            "Connection refused",
        ),
        (
            include_str!("../../tests/data/iperf3-3.12-buffer-refused.client.json"),
            "socket buffer size",
        ),
        (
            include_str!("../../tests/data/iperf3-3.12-server-killed.client.json"),
            "server has terminated",
        ),
        (
            include_str!("../../tests/data/iperf3-3.12-server-gone.client.json"),
            "Connection reset",
        ),
        (
            include_str!("../../tests/data/iperf3-3.12-client-killed.server.json"),
            "client has terminated",
        ),
    ];
    for (output, expected) in said {
        assert!(reported(output).contains(expected), "{}", reported(output));
    }
}

#[test]
fn a_missing_key_is_named_and_the_place_quoted() {
    let error = Sessions::parse(&TCP_CLIENT.replace("\"sum\":", "\"total\":"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("no interval has a `sum`"), "{error}");
    assert_eq!(Sessions::parse(" \n"), Err(Iperf3Error::Empty));
    let error = Sessions::parse("{\"end\": {}}").unwrap_err().to_string();
    assert!(
        error.contains("`intervals` is missing") && error.contains("{\"end\""),
        "{error}"
    );
    let error = Sessions::parse(&TCP_CLIENT.replace("\"test_start\":", "\"test\":"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("`test_start` is missing"), "{error}");
    let error = Sessions::parse("Killed\n").unwrap_err().to_string();
    assert!(error.contains("at `Killed`"), "{error}");
}

#[test]
fn numbers_that_cannot_be_are_refused() {
    for (from, to) in [
        ("\"bytes\":\t", "\"bytes\":\t-"),
        ("\"end\":\t1.0", "\"end\":\t1e99"),
    ] {
        assert!(TCP_SERVER.contains(from));
        let error = Sessions::parse(&TCP_SERVER.replace(from, to)).unwrap_err();
        assert!(matches!(error, Iperf3Error::Malformed { .. }), "{error}");
    }
}

#[test]
fn every_truncation_is_an_error() {
    for output in [TCP_CLIENT, UDP_SERVER] {
        // A report that is cut off anywhere must not pass for a shorter one.
        for end in 0..output.trim_end().len() {
            assert!(Sessions::parse(&output[..end]).is_err(), "cut at {end}");
        }
    }
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0..UDP_SERVER.len(), junk in "[-0-9eE.{}\\[\\],\":a-z]{0,6}") {
        let mut output = UDP_SERVER.to_owned();
        let end = (at + junk.len()).min(output.len());
        output.replace_range(at..end, &junk);
        // Whether it is still readable depends on the damage; this tests that it returns.
        let _ = Sessions::parse(&output);
    }
}

#[test]
fn an_interval_without_a_way_is_named_instead_of_a_missing_direction() {
    let client = include_str!("../../tests/data/iperf3-3.12-tcp-duplex.client.json");
    let spoilt = client.replacen("\"sum_bidir_reverse\":", "\"sum_other\":", 1);
    let error = Sessions::parse(&spoilt).unwrap_err().to_string();
    assert!(error.contains("interval 1 of "), "{error}");
    assert!(error.contains("has no `sum_bidir_reverse`"), "{error}");
    let at = UDP_SERVER.rfind("\"sum\":").unwrap();
    let at = UDP_SERVER[..at]
        .rfind("\"sum\":")
        .map_or(at, |before| before);
    // The last but one `"sum":`, which is six bytes long: the last one is at the end of the report.
    let spoilt = format!("{}\"gone\":{}", &UDP_SERVER[..at], &UDP_SERVER[at + 6..]);
    let error = Sessions::parse(&spoilt).unwrap_err().to_string();
    assert!(error.contains("has no `sum`"), "{error}");
}

#[test]
fn what_old_versions_print_is_named_with_the_version_that_is_needed() {
    let client = include_str!("../../tests/data/iperf3-3.12-tcp-duplex.client.json");
    let twice = client.replace("\"sum_bidir_reverse\":", "\"sum\":");
    let error = Sessions::parse(&twice).unwrap_err().to_string();
    assert!(
        error.contains("`sum` twice") && error.contains("3.11 or newer"),
        "{error}"
    );

    let nan = UDP_SERVER.replacen("\"jitter_ms\":\t", "\"jitter_ms\":\t-nan,\n\"x\":\t", 1);
    assert_ne!(nan, UDP_SERVER);
    let error = Sessions::parse(&nan).unwrap_err().to_string();
    assert!(
        error.contains("-nan` is no number: no datagram arrived"),
        "{error}"
    );

    let error = Sessions::parse(&format!("{TCP_SERVER}{TCP_SERVER}"))
        .unwrap_err()
        .to_string();
    assert!(error.contains("two JSON documents"), "{error}");
    let failed = include_str!("../../tests/data/iperf3-3.12-refused.client.json");
    for output in [
        format!("{TCP_SERVER}\n{failed}"),
        format!("{failed}\n{TCP_SERVER}"),
    ] {
        assert!(reported(&output).contains("Connection refused"));
    }
    let error = Sessions::parse(&format!("{TCP_SERVER}Killed"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("text after") && error.contains("`Killed`"),
        "{error}"
    );
}

#[test]
fn lengths_that_no_write_and_no_segment_has_are_refused_or_unknown() {
    let spoilt = TCP_CLIENT.replace("\"blksize\":\t131072", "\"blksize\":\t1e14");
    assert_ne!(spoilt, TCP_CLIENT);
    let error = Sessions::parse(&spoilt).unwrap_err().to_string();
    assert!(error.contains("no length of a write"), "{error}");
    let spoilt = TCP_CLIENT.replace("\"tcp_mss_default\":\t1448", "\"tcp_mss_default\":\t1e9");
    assert_ne!(spoilt, TCP_CLIENT);
    let sent = Sessions::parse(&spoilt).unwrap().sent.unwrap();
    assert_eq!(sent.segment_bytes, None);
}

#[test]
fn a_round_trip_of_nothing_is_unknown() {
    let at = TCP_CLIENT.find("\"rtt\":").unwrap();
    let end = at + TCP_CLIENT[at..].find(',').unwrap();
    let spoilt = format!("{}\"rtt\":\t0{}", &TCP_CLIENT[..at], &TCP_CLIENT[end..]);
    let steps = Sessions::parse(&spoilt).unwrap().sent.unwrap().steps;
    assert_eq!(steps[0].rtt_ns, None);
    assert!(steps[1].rtt_ns.is_some());
}

#[test]
fn an_interval_that_is_missing_is_named() {
    let mut report: serde_json::Value = serde_json::from_str(UDP_SERVER).unwrap();
    report["intervals"].as_array_mut().unwrap().remove(4);
    let error = Sessions::parse(&report.to_string())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("the interval from 400 to 500 ms is missing"),
        "{error}"
    );
}
