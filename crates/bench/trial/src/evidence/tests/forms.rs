//! Boxes whose frames have a form without a suite that campaigns know: tunnels in clear, and
//! formats of their maker's own.

use super::fixture::Fixture;
use super::*;
use plan::{BoxFormat, External};

/// In the fixture's trial by TCP, of what A sent and B received.
const SENT: u64 = 690_608;

fn boxes(format: BoxFormat) -> Adapter {
    Adapter::External(External {
        boxes: Vec::new(),
        carrier: None,
        suite_word: Some("AES-256-GCM".to_owned()),
        format: Some(format),
        ports: Vec::new(),
        bump: false,
        gateway: None,
        tunnels: 1,
        limit_ns: 0,
        ready_ns: 0,
    })
}

fn opaque(aggregate: bool) -> Adapter {
    boxes(BoxFormat::Opaque {
        expands_bytes: 64,
        aggregate,
    })
}

/// A good trial, with what the kernels of the stations and the link counted.
fn fixture(adapter: Adapter) -> Fixture {
    let mut fixture = Fixture::tcp(adapter, 1);
    fixture.cipher_link.esp_frames = 299;
    fixture.cipher_link.other_frames = 0;
    fixture.watch.foreign_frames = 0;
    let packets = [
        ("a/OutSegs", SENT),
        ("b/InNoECTPkts", SENT),
        ("b/OutSegs", 1000),
        ("a/InNoECTPkts", 1000),
    ];
    for (name, count) in packets {
        fixture.settings.stack.insert(name.to_owned(), count);
    }
    cross(&mut fixture, SENT, 1000);
    fixture
}

/// Frames that cross the link from A's side, and back.
fn cross(fixture: &mut Fixture, there: u64, back: u64) {
    for (name, sent, received) in [("gw1/w0", there, back), ("gw2/w1", back, there)] {
        let counters = fixture.counter(name);
        (counters.tx_packets, counters.rx_packets) = (sent, received);
    }
}

fn names(fixture: &Fixture) -> Vec<String> {
    let checks = fixture.checks().into_iter();
    checks.map(|check| check.name).collect()
}

#[test]
fn a_counter_of_a_box_that_fell_is_an_objection_unless_the_trial_disturbs_the_box() {
    let check = "dut-counters-rose";
    let mut fixture = fixture(opaque(false));
    assert!(!names(&fixture).contains(&check.to_owned()));
    fixture.dut_counters = [("gw1/packets".to_owned(), 5)].into();
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail(check);
    assert!(detail.contains("none of 1 counters fell"), "{detail}");
    fixture.resets = vec!["the counter gw1/packets fell from 100000 to 5".to_owned()];
    assert_eq!(fixture.failing(), [check]);
    let found = fixture.explanation(check);
    assert!(
        found.difference.contains("fell from 100000 to 5"),
        "{}",
        found.difference
    );
    assert!(found.cause.contains("restarted"), "{}", found.cause);
}

#[test]
fn a_tunnel_in_clear_must_show_its_form_and_the_stations_data_and_nothing_else() {
    for (format, name) in [(BoxFormat::Gre, "GRE"), (BoxFormat::L2tpv3, "L2TPv3")] {
        let adapter = boxes(format);
        assert!(adapter.insecure().unwrap().contains(name));
        let mut fixture = fixture(adapter);
        fixture.counter("gw1/w0").tx_bytes += SENT * 30;
        assert_eq!(fixture.failing(), Vec::<String>::new());
        let names = names(&fixture);
        let has = |check: &str| names.iter().any(|name| name == check);
        assert!(has("cipher-link-encapsulated") && has("clear-text-visible"));
        assert!(
            !has("cipher-link-encrypted") && !has("no-clear-text") && !has("cipher-link-frames")
        );
        let detail = fixture.detail("no-foreign-frames");
        let wanted =
            format!("every frame between the gateways was {name}, ARP, ND or control messages");
        assert_eq!(detail, wanted);
        fixture.cipher_link.marker_frames = 0;
        assert_eq!(fixture.failing(), ["clear-text-visible"]);
        fixture.cipher_link.marker_frames = 200;
        fixture.cipher_link.other_frames = 1;
        fixture.watch.foreign_frames = 1;
        let failing = ["cipher-link-encapsulated", "no-foreign-frames"];
        assert_eq!(fixture.failing(), failing);
    }
}

#[test]
fn frames_of_a_format_of_their_own_must_hide_the_stations_data() {
    let mut fixture = fixture(opaque(false));
    fixture.cipher_link.marker_frames = 0;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("cipher-link-encrypted");
    assert!(detail.contains("`AES-256-GCM`, is not proven"), "{detail}");
    fixture.cipher_link.marker_frames = 1;
    assert_eq!(fixture.failing(), ["no-clear-text"]);
    fixture.cipher_link.marker_frames = 0;
    fixture.cipher_link.other_frames = 1;
    assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
    fixture.cipher_link.other_frames = 0;
    fixture.watch.foreign_frames = 1;
    assert_eq!(fixture.failing(), ["no-foreign-frames"]);
}

#[test]
fn frames_of_a_format_of_their_own_are_counted_and_are_no_shorter_than_what_they_carry() {
    let good = || {
        let mut fixture = fixture(opaque(false));
        fixture.cipher_link.marker_frames = 0;
        fixture
    };
    // A thousandth, ARP, and keepalives of two seconds.
    let most = SENT + SENT / 1000 + 64 + 2 * 20;
    let least = SENT - SENT / 1000 - 4;
    for (packets, passes) in [
        (least - 1, false),
        (least, true),
        (most, true),
        (most + 1, false),
    ] {
        let mut fixture = good();
        cross(&mut fixture, packets, 1000);
        let failing: &[&str] = if passes { &[] } else { &["cipher-link-frames"] };
        assert_eq!(fixture.failing(), failing, "{packets}");
    }
    // Towards A, too.
    let mut back = good();
    cross(&mut back, SENT, 900);
    assert_eq!(back.failing(), ["cipher-link-frames"]);
    // Several in one, where that was said.
    let mut joined = fixture(opaque(true));
    joined.cipher_link.marker_frames = 0;
    cross(&mut joined, SENT / 8, 1000);
    assert_eq!(joined.failing(), Vec::<String>::new());
    // The bytes of what was received, each packet with an Ethernet header.
    let mut short = good();
    let bytes = 999_000_000 + 999_000_000_u64.div_ceil(1460) * (40 + 14);
    short.counter("gw1/w0").tx_bytes = bytes;
    assert_eq!(short.failing(), Vec::<String>::new());
    short.counter("gw1/w0").tx_bytes = bytes - 1;
    assert_eq!(short.failing(), ["cipher-link-amount"]);
}
