//! Output of ping, recorded and spoilt.

use super::*;
use proptest::prelude::*;

const PING: &str = include_str!("../../tests/data/iputils-20221126-ping.txt");
/// Longer than any of these.
const RAN_NS: u64 = 3_600_000_000_000;
const LOSS: &str = include_str!("../../tests/data/iputils-20221126-ping-loss.txt");

#[test]
fn reads_every_round_trip_in_order() {
    let latency = parse(PING, false, RAN_NS).unwrap();
    assert_eq!((latency.sent, latency.received), (20, 20));
    assert_eq!(latency.round_trips_ns.len(), 20);
    assert_eq!(latency.round_trips_ns[19], 5_000);
    assert_eq!(latency.round_trips_ns.iter().max(), Some(&48_000));
}

#[test]
fn lost_replies_are_counted() {
    let latency = parse(LOSS, false, RAN_NS).unwrap();
    assert_eq!(
        (latency.sent, latency.received, latency.round_trips_ns.len()),
        (25, 21, 21)
    );
}

#[test]
fn an_interrupted_ping_is_read_as_far_as_it_went() {
    let latency = parse(
        include_str!("../../tests/data/iputils-20221126-ping-interrupted.txt"),
        false,
        RAN_NS,
    )
    .unwrap();
    assert_eq!((latency.sent, latency.received), (5, 5));
}

#[test]
fn replies_out_of_order_are_put_in_the_order_of_their_requests() {
    // A copy, marked `(DUP!)`, answers a request that has its round trip already.
    let text = "64 bytes from h: icmp_seq=2 ttl=64 time=2.00 ms\n\
                64 bytes from h: icmp_seq=1 ttl=64 time=1000 ms\n\
                64 bytes from h: icmp_seq=1 ttl=64 time=1001 ms (DUP!)\n\
                2 packets transmitted, 2 received, +1 duplicates, 0% packet loss, time 1ms\n";
    assert_eq!(
        parse(text, false, RAN_NS).unwrap().round_trips_ns,
        [1_000_000_000, 2_000_000]
    );
}

#[test]
fn sequence_numbers_wrap_at_16_bits() {
    assert_eq!(unwrapped(0, 65_536), 65_536);
    assert_eq!(unwrapped(65_535, 65_536), 65_535);
    // The number nearest to the expected one that has these low 16 bits.
    assert_eq!(unwrapped(3, 65_534), 65_539);
    assert_eq!(unwrapped(7, 1), 7);
}

#[test]
fn failures_say_why() {
    let error = |text: &str| parse(text, false, RAN_NS).unwrap_err().to_string();
    let unreachable = include_str!("../../tests/data/iputils-20221126-ping-unreachable.txt");
    assert_eq!(
        error(unreachable),
        "ping says: none of 3 requests was answered"
    );
    let no_route = include_str!("../../tests/data/iputils-20221126-ping-noroute.txt");
    assert!(error(no_route).contains("Network is unreachable"));
    let no_times = include_str!("../../tests/data/iputils-20221126-ping-8.txt");
    assert!(error(no_times).contains("without `time`") && error(no_times).contains("icmp_seq=1"));
    let altered = "64 bytes from h: icmp_seq=1 ttl=64 time=1.0 ms\n\
                   wrong data byte #20 should be 0x30 but was 0x31\n";
    assert!(error(altered).contains("#20"));
    assert_eq!(
        error(&PING.replace("20 received", "19 received")),
        "ping's summary says 19 replies, but 20 are listed"
    );
    assert_eq!(parse("\n", false, RAN_NS), Err(PingError::Empty));
}

#[test]
fn altered_replies_count_as_lost_where_the_path_damages_packets() {
    // `ping` reports altered bytes in the lines behind a reply: here behind reply 2, and behind the
    // copy of reply 1.
    let text = "PING h (h) 56(84) bytes of data.\n\
                64 bytes from h: icmp_seq=1 ttl=64 time=1.0 ms\n\
                64 bytes from h: icmp_seq=2 ttl=64 time=2.0 ms\n\
                wrong data byte #33 should be 0x33 but was 0x73\n\
                #16\t36 37 38 39 30 31 32 33 34 35 36 37 38 39 30 31 32 73 34 35 36 37 38 39 \n\
                #48\t38 39 30 31 32 33 34 35 \n\
                64 bytes from h: icmp_seq=1 ttl=64 time=3.0 ms (DUP!)\n\
                wrong data byte #33 should be 0x33 but was 0x73\n\
                64 bytes from h: icmp_seq=3 ttl=64 time=4.0 ms\n\
                \n--- h ping statistics ---\n\
                4 packets transmitted, 3 received, +1 duplicates, 25% packet loss, time 3ms\n";
    let found = parse(text, true, RAN_NS).unwrap();
    assert_eq!((found.sent, found.received), (4, 2));
    assert_eq!(found.round_trips_ns, [1_000_000, 4_000_000]);
    assert!(parse(text, false, RAN_NS).is_err());
}

#[test]
fn a_cut_before_the_summary_is_an_error() {
    // The last of the numbers that are read: a cut behind them takes nothing away.
    let summary = PING.find("20 packets").unwrap() + "20 packets transmitted, 20 received".len();
    for end in 0..summary {
        assert!(parse(&PING[..end], false, RAN_NS).is_err(), "cut at {end}");
    }
}

proptest! {
    #[test]
    fn no_damage_makes_it_panic(at in 0..PING.len(), junk in "[ -~\n]{0,12}") {
        let mut output = PING.to_owned();
        let end = (at + junk.len()).min(output.len());
        output.replace_range(at..end, &junk);
        if let Ok(latency) = parse(&output, false, RAN_NS) {
            prop_assert_eq!(latency.received, latency.round_trips_ns.len() as u64);
        }
    }
}

#[test]
fn a_reply_that_ping_marks_as_wrong_is_named_as_what_it_is() {
    let reply = "64 bytes from 10.2.0.2: icmp_seq=2 ttl=64 time=0.021 ms";
    assert!(PING.contains("icmp_seq=2 "));
    for (mark, expected) in [
        (
            "(DIFFERENT ADDRESS!)",
            "another address answered than was asked",
        ),
        ("(BAD CHECKSUM!)", "its ICMP checksum is wrong"),
        (
            "(DUP!) (DIFFERENT ADDRESS!)",
            "another address answered than was asked",
        ),
        ("(truncated)", "it is shorter than the request"),
        ("(odd)", "a mark that is unknown"),
    ] {
        let text = format!(
            "{reply} {mark}\n1 packets transmitted, 1 received, 0% packet loss, time 0ms\n"
        );
        let error = parse(&text, false, RAN_NS).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains(mark), "{error}");
    }
}

#[test]
fn a_reply_with_a_wrong_checksum_counts_as_lost_where_the_path_damages_packets() {
    let text = "64 bytes from h: icmp_seq=1 ttl=64 time=1.0 ms\n\
                64 bytes from h: icmp_seq=2 ttl=64 time=2.0 ms (BAD CHECKSUM!)\n\
                2 packets transmitted, 1 received, +1 corrupted, 50% packet loss, time 1ms\n";
    let found = parse(text, true, RAN_NS).unwrap();
    assert_eq!((found.sent, found.received), (2, 1));
    assert!(
        parse(
            &text.replace("BAD CHECKSUM", "DIFFERENT ADDRESS"),
            true,
            RAN_NS
        )
        .is_err()
    );
}

#[test]
fn a_round_trip_below_the_resolution_or_longer_than_ping_ran_is_refused() {
    let at = PING.find("time=").unwrap();
    let end = at + PING[at..].find(" ms").unwrap();
    let with = |time: &str| format!("{}time={time}{}", &PING[..at], &PING[end..]);
    let error = parse(&with("0.000"), false, RAN_NS)
        .unwrap_err()
        .to_string();
    assert!(error.contains("below ping's resolution of 1 us"), "{error}");
    let second = 1_000_000_000;
    assert!(parse(&with("1000"), false, second).is_ok());
    let error = parse(&with("1001"), false, second).unwrap_err().to_string();
    assert!(
        error.contains("1001 ms is longer than the 1000 ms"),
        "{error}"
    );
}
