//! What failed checks say to people: the difference with its size, the likely cause, what to do.

use super::*;
use units::human;

impl Fixture {
    /// The least and the most bytes that a check expects on the cipher link.
    fn bounds(&self, check: &str) -> (u64, u64) {
        let detail = self.detail(check);
        let (_, bounds) = detail.rsplit_once(", of ").unwrap();
        let (least, most) = bounds.split_once(" to ").unwrap();
        let most = most.strip_suffix(" expected").unwrap();
        (least.parse().unwrap(), most.parse().unwrap())
    }
}

const REPEAT: &str = "then `cipherbench resume RUN --invalid`";

#[test]
fn bytes_beyond_the_payload_are_given_with_their_size_and_share() {
    let mut fixture = Fixture::udp(None);
    let (_, most) = fixture.bounds("cipher-link-amount");
    fixture.counter("gw1/w0").tx_bytes = most + most * 35 / 100;
    let found = fixture.explanation("cipher-link-amount");
    let size = human::data((most * 35 / 100) as f64);
    assert_eq!(
        found.difference,
        format!("gw1 sent {size} (35 %) more between the gateways than the payload explains")
    );
    assert_eq!(
        found.cause,
        "something else sends or duplicates packets there"
    );
    assert!(found.advice.starts_with("stop other programs"), "{found:?}");
    assert!(found.advice.ends_with(REPEAT), "{found:?}");
    // The counters are where they were.
    let detail = fixture.detail("cipher-link-amount");
    assert!(detail.starts_with("the tool sent "), "{detail}");
    assert!(
        detail.ends_with(&format!(" to {most} expected")),
        "{detail}"
    );
}

#[test]
fn bytes_that_are_missing_point_to_another_way() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    let (least, _) = fixture.bounds("cipher-link-amount");
    fixture.counter("gw1/w0").tx_bytes = least / 2;
    let found = fixture.explanation("cipher-link-amount");
    let size = human::data((least - least / 2) as f64);
    assert_eq!(
        found.difference,
        format!("gw1 sent {size} (50 %) less between the gateways than the payload needs")
    );
    assert!(found.cause.contains("another way"), "{found:?}");
    fixture.counter("a/a0").tx_bytes = 0;
    let found = fixture.explanation("station-interfaces-agree");
    assert!(found.difference.starts_with("station a sent "), "{found:?}");
}

#[test]
fn a_tool_that_stalled_says_for_how_long_and_that_the_machine_was_busy() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    fixture.totals.longest_step_ns = 400 * MS;
    let found = fixture.explanation("tools-kept-time");
    assert_eq!(found.difference, "the tool stood still for 300 ms or more");
    assert!(found.cause.starts_with("it waited for a core"), "{found:?}");
    assert_eq!(
        found.advice,
        format!("stop what else uses this machine, {REPEAT}")
    );
    fixture.totals.longest_step_ns = 100 * MS;
    fixture.client_ends_ns = vec![fixture.commands.timing.run_ns * 13 / 10];
    let found = fixture.explanation("tools-kept-time");
    assert!(
        found.difference.contains("(30 %) later than planned"),
        "{found:?}"
    );
}

#[test]
fn a_load_that_was_not_offered_says_what_to_do_first_and_what_if_it_recurs() {
    let mut fixture = Fixture::udp(Some(1_600_000_000));
    fixture.totals.offered_bytes /= 2;
    let found = fixture.explanation("offered-as-intended");
    assert!(
        found.difference.starts_with("the station offered "),
        "{found:?}"
    );
    assert!(
        found.difference.contains("% less) of 1.6 Gbit/s intended"),
        "{found:?}"
    );
    let (first, later) = found.advice.split_once("; if it recurs, ").unwrap();
    assert!(first.ends_with(REPEAT), "{found:?}");
    assert!(later.ends_with("in a new run"), "{found:?}");
}

#[test]
fn data_in_clear_and_foreign_frames_are_told_apart() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.watch.foreign_frames = 1;
    fixture.watch.examples = vec!["IPv4 UDP 10.1.0.2:4000 > 10.2.0.2:5201, 1428 B".to_owned()];
    let found = fixture.explanation("no-foreign-frames");
    assert!(
        found
            .difference
            .ends_with("(IPv4 UDP 10.1.0.2:4000 > 10.2.0.2:5201, 1428 B)")
    );
    assert!(
        found.cause.starts_with("another program sends"),
        "{found:?}"
    );
    fixture.watch.marker_frames = 1;
    let found = fixture.explanation("no-foreign-frames");
    assert!(found.cause.contains("unsealed"), "{found:?}");
    fixture.cipher_link.marker_frames = 30;
    let found = fixture.explanation("no-clear-text");
    assert_eq!(
        found.difference,
        "30 frames (10 %) sampled between the gateways showed the stations' data in clear"
    );
}
