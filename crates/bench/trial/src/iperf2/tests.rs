//! Reports of iperf2, recorded and spoilt.

use super::*;
use proptest::prelude::*;

const TCP_CLIENT: &str = include_str!("../../tests/data/iperf2-2.1.8-tcp-2-streams.client.csv");
const TCP_SERVER: &str = include_str!("../../tests/data/iperf2-2.1.8-tcp-2-streams.server.csv");
const UDP_CLIENT: &str = include_str!("../../tests/data/iperf2-2.1.8-udp-loss.client.csv");
const UDP_SERVER: &str = include_str!("../../tests/data/iperf2-2.1.8-udp-loss.server.csv");
const DUPLEX_CLIENT: &str = include_str!("../../tests/data/iperf2-2.1.8-tcp-duplex.client.csv");
const DUPLEX_SERVER: &str = include_str!("../../tests/data/iperf2-2.1.8-tcp-duplex.server.csv");
const MS: u64 = 1_000_000;

const fn process(is_server: bool, block_bytes: u64) -> Process {
    Process {
        is_server,
        port: 5001,
        block_bytes,
    }
}

fn client(output: &str, block_bytes: u64) -> Session {
    let found = parse(output, process(false, block_bytes)).unwrap();
    assert_eq!(found.received, None);
    found.sent.unwrap()
}

fn server(output: &str, block_bytes: u64) -> Session {
    let found = parse(output, process(true, block_bytes)).unwrap();
    assert_eq!(found.sent, None);
    found.received.unwrap()
}

#[test]
fn both_ways_of_one_connection_are_counted_apart() {
    let client = parse(DUPLEX_CLIENT, process(false, 131_072)).unwrap();
    let server = parse(DUPLEX_SERVER, process(true, 131_072)).unwrap();
    let bytes = |session: Option<Session>| session.unwrap().bytes();
    let sent_by_client = bytes(client.sent);
    assert_eq!(sent_by_client, 587_464_764 + 1_010_696_252);
    assert_eq!(bytes(server.received), sent_by_client);
    let sent_by_server = bytes(server.sent);
    assert_eq!(sent_by_server, 555_089_920 + 1_175_977_984);
    assert_eq!(bytes(client.received), sent_by_server);
}

#[test]
fn a_tcp_servers_intervals_are_summed_over_its_streams() {
    let session = server(TCP_SERVER, 131_072);
    assert_eq!((session.streams, session.block_bytes), (2, 131_072));
    assert_eq!(session.steps.len(), 5);
    let second = Step {
        start_ns: 500 * MS,
        end_ns: 1000 * MS,
        bytes: 566_620_864 + 355_860_480,
        packets: None,
        retransmits: None,
        rtt_ns: None,
    };
    assert_eq!(session.steps[1], second);
    assert_eq!(session.summary_bytes, Some(1_831_600_188 + 3_037_200_444));
    // Bytes between the last interval and the end are in the summary only: the last step.
    assert_eq!(session.steps[4].bytes, 3_037_200_444 - 3_036_938_300);
    assert!(session.steps[4].end_ns.abs_diff(session.steps[3].end_ns) < 50 * MS);
    assert_eq!(Some(session.bytes()), session.summary_bytes);
    // The client sent what the server received.
    let client = client(TCP_CLIENT, 131_072);
    assert_eq!(client.summary_bytes, session.summary_bytes);
}

#[test]
fn datagrams_are_counted_by_their_numbers() {
    let server = server(UDP_SERVER, 1400);
    // By the lines of the whole time, which exceed the sum of one stream's intervals.
    assert_eq!(server.packets(), 92_288 + 86_821);
    assert_eq!(server.steps[2].packets, Some(92_288 - 32_837 - 59_097));
    assert_eq!(server.out_of_order, 1);
    assert_eq!(server.jitter_ns, (116_000 + 1_247_000) / 2);
    assert!(server.bytes() < server.packets() * 1400 / 4);
    let client = client(UDP_CLIENT, 1400);
    assert_eq!(client.packets(), (129_201_800 + 121_549_400) / 1400);
    assert_eq!(client.bytes(), client.packets() * 1400);
    assert_eq!(client.summary_bytes, Some(129_201_800 + 121_549_400));
}

#[test]
fn sums_and_repeated_reports_are_left_out() {
    let line = "20261122052854,127.0.0.1,0,127.0.0.1,5001,-1,0.0-2.0,7,8\n";
    let again = "20261122052855,127.0.0.1,57410,127.0.0.1,5001,2,0.0-2.0,9,9\n";
    let more = format!("{TCP_SERVER}{line}{again}");
    assert_eq!(server(&more, 1), server(TCP_SERVER, 1));
}

#[test]
fn malformed_output_is_refused_with_a_reason() {
    assert_eq!(parse(" \n", process(true, 1)), Err(Iperf2Error::Empty));
    let refused = |output: &str| parse(output, process(true, 1)).unwrap_err().to_string();
    let words = "tcp connect failed: Connection refused\n";
    assert!(refused(words).contains("`tcp connect failed"));
    let cut = TCP_SERVER.trim_end().rsplit_once('\n').unwrap().0;
    assert!(refused(cut).contains("before its last line"));
    for (from, to, reason) in [
        (",0.5-1.0,", ",0.5-0.4,", "ends before it begins"),
        (",1.0-1.5,", ",0.2-1.5,", "backwards in time"),
        (",0.5-1.0,", ",0.5-1e99,", "a time that cannot be"),
        (",566620864,", ",-566620864,", "not a count"),
        (
            ",566620864,",
            ",5666208640000000000,",
            "a count that cannot be",
        ),
    ] {
        assert!(TCP_SERVER.contains(from));
        let error = refused(&TCP_SERVER.replacen(from, to, 1));
        assert!(error.contains(reason), "{error}");
    }
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0..UDP_SERVER.len(), junk in "[-0-9e.,\n]{0,6}") {
        let mut output = UDP_SERVER.to_owned();
        let end = (at + junk.len()).min(output.len());
        output.replace_range(at..end, &junk);
        // Whether it is still readable depends on the damage; this tests that it returns.
        let _ = parse(&output, process(true, 1400));
    }
}

#[test]
fn an_interval_that_is_missing_is_named() {
    let mut lines: Vec<&str> = TCP_SERVER.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.contains(",0.5-1.0,"))
        .unwrap();
    lines.remove(at);
    let error = parse(&lines.join("\n"), process(true, 131_072))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("an interval is missing before this one"),
        "{error}"
    );
}
