//! Every check passes on what a good trial reads, and fails on what it is there to catch.

use super::path::FEATURES;
use super::*;
use journal::record::{
    CipherLink, CipherWatch, Cpu, Datagrams, Drain, InterfaceCounters, OpenedPackets, PathSettings,
    SettingChange,
};
use plan::{Adapter, Cell, Dut, Encryptor, KeySource, Measurement, Tool};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use testbed::Links;
use wire::Suite;

mod asked;
mod changes;
mod contents;
mod dscp;
mod empty;
mod explained;
pub(crate) mod fixture;
mod forms;
mod http;
mod impaired;
mod machine;
mod nat;
mod opened;
mod overlay;
mod tunnels;
mod video;

use fixture::{Fixture, encrypting};

const MS: u64 = 1_000_000;
const LINK_ENDS: [&str; 6] = ["a/a0", "gw1/a1", "gw1/w0", "gw2/w1", "gw2/b1", "b/b0"];

#[test]
fn a_good_trial_passes_every_check_that_applies() {
    let names = |fixture: &Fixture| {
        assert_eq!(fixture.failing(), Vec::<String>::new());
        fixture
            .checks()
            .into_iter()
            .map(|check| check.name)
            .collect::<Vec<_>>()
    };
    let always = [
        "offloads-as-asked",
        "path-unchanged",
        "cores-of-stations",
        "machine-was-ours",
    ];
    let tool = [
        "tools-kept-time",
        "tool-agrees-with-itself",
        "station-interfaces-agree",
        "packets-cross-once",
        "links-not-flooded",
    ];
    let expected: Vec<&str> = [
        &always[..],
        &["processes-in-step"],
        &tool,
        &[
            "clear-text-visible",
            "foreign-frames-visible",
            "cipher-link-amount",
            "links-lossless",
        ],
    ]
    .concat();
    assert_eq!(names(&Fixture::tcp(Adapter::Direct, 2)), expected);
    let encrypted = [
        "cipher-link-encrypted",
        "samples-opened",
        "sealed-looks-random",
        "no-clear-text",
        "no-foreign-frames",
        "cipher-link-amount",
        "links-lossless",
        "dut-counters",
        "sealed-as-sent",
        "dut-as-asked",
    ];
    assert_eq!(
        names(&Fixture::tcp(encrypting(), 1)),
        [&always[..], &tool, &encrypted].concat()
    );
    let udp = [
        "tools-kept-time",
        "tool-agrees-with-itself",
        "offered-as-intended",
        "station-kept-up",
        "station-interfaces-agree",
        "packets-cross-once",
        "links-not-flooded",
    ];
    let flood = [udp[0], udp[1], udp[3], udp[4], udp[5], udp[6]];
    let rated = Fixture::udp(Some(800_000_000));
    assert_eq!(names(&rated), [&always[..], &udp, &encrypted].concat());
    assert_eq!(
        names(&Fixture::udp(None)),
        [&always[..], &flood, &encrypted].concat()
    );
    let echo = [&always[..], &tool[2..], &encrypted].concat();
    assert_eq!(names(&Fixture::ping(encrypting())), echo);
    assert!(names(&Fixture::ping(Adapter::Direct)).contains(&"clear-text-visible".to_owned()));
}

#[test]
fn super_packets_with_one_header_each_are_no_objection() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.offload();
    let super_packets = |bytes: u64| bytes + bytes.div_ceil(65_160) * 66;
    fixture.counter("a/a0").tx_bytes = super_packets(1_000_000_000);
    fixture.counter("b/b0").rx_bytes = super_packets(999_000_000);
    // ESP of 690 thousand full segments; of the outer headers one in forty is left.
    let segments = 999_000_000_u64.div_ceil(1448);
    let esp = 999_000_000 + segments * (52 + 34);
    fixture.counter("gw1/w0").tx_bytes = esp + segments / 40 * 42;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    // The same in clear would be less.
    fixture.counter("gw1/w0").tx_bytes = super_packets(999_000_000);
    assert_eq!(fixture.failing(), ["cipher-link-amount"]);
}

/// Datagrams of that size, as fast as possible.
fn udp_of(datagram_bytes: u32) -> Measurement {
    Measurement::Udp {
        tool: Tool::default(),
        direction: Default::default(),
        datagram_bytes: Some(datagram_bytes),
        rate_bps: None,
        streams: 1,
        duration_ns: 1000 * MS,
        warmup_ns: 0,
    }
}

#[test]
fn a_tenth_of_small_datagrams_that_bypassed_the_cipher_link_is_an_objection() {
    let mut fixture = Fixture::new(encrypting(), 1, udp_of(64));
    fixture.carry(6_400_000, 6_400_000, 64, 42);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let whole = fixture.counter("gw1/w0").tx_bytes;
    fixture.counter("gw1/w0").tx_bytes = whole - 1;
    assert_eq!(fixture.failing(), ["cipher-link-amount"]);
    fixture.counter("gw1/w0").tx_bytes = whole;
    // Both ends of the tunnel alike: IP headers count too.
    for counter in ["gw1/clear_rx_bytes", "gw2/clear_tx_bytes"] {
        let bytes = fixture.dut_counters.insert(counter.to_owned(), 9_199_999);
        assert_eq!(bytes, Some(9_200_000));
        assert_eq!(fixture.failing(), ["dut-counters"]);
        fixture.dut_counters.insert(counter.to_owned(), 9_200_000);
    }
}

#[test]
fn an_encryptor_may_join_the_datagrams_that_it_opened() {
    let mut fixture = Fixture::udp(None);
    fixture.offload();
    fixture.counter("b/b0").rx_bytes = 90_000_000 + 90_000_000 / 64_000 * 42;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture.counter("b/b0").rx_bytes = 90_000_000;
    assert_eq!(fixture.failing(), ["station-interfaces-agree"]);
}

#[test]
fn clear_text_on_the_cipher_link_is_an_objection() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.cipher_link.marker_frames = 1;
    assert_eq!(fixture.failing(), ["no-clear-text"]);
    assert!(
        fixture
            .detail("no-clear-text")
            .starts_with("1 of 300 frames")
    );
    fixture.cipher_link.marker_frames = 0;
    fixture.cipher_link.other_frames = 1;
    assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
}

#[test]
fn a_cipher_link_without_enough_esp_is_an_objection() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.cipher_link.frames = 10;
    fixture.cipher_link.esp_frames = 9;
    assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
    assert!(
        fixture
            .detail("cipher-link-encrypted")
            .contains("at least 10")
    );
    // At 8 packets a second no sample can hold ten.
    fixture.counter("gw1/w0").tx_packets = 9;
    fixture
        .dut_counters
        .insert("gw1/cipher_tx_packets".into(), 9);
    fixture
        .dut_counters
        .insert("gw1/clear_rx_packets".into(), 9);
    for count in ["gw2/cipher_rx_packets", "gw2/clear_tx_packets"] {
        fixture.dut_counters.insert(count.into(), 9);
    }
    fixture
        .dut_counters
        .remove("gw1/dropped_packets.send_failed");
    fixture.cipher_link.frames = 2;
    fixture.cipher_link.esp_frames = 1;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture.cipher_link.esp_frames = 0;
    assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
}

#[test]
fn more_control_frames_than_a_tenth_are_an_objection() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    for (frames, esp_frames, passes) in [
        (300, 270, true),
        (300, 269, false),
        (20, 16, true),
        (20, 15, false),
    ] {
        fixture.cipher_link.frames = frames;
        fixture.cipher_link.esp_frames = esp_frames;
        assert_eq!(
            fixture.failing().is_empty(),
            passes,
            "{esp_frames} of {frames}"
        );
    }
    let detail = fixture.detail("cipher-link-encrypted");
    assert!(detail.contains("5 ARP or ND"), "{detail}");
}

#[test]
fn what_gateways_say_to_agree_on_keys_is_counted_apart_and_only_where_they_do() {
    let agreed = |keys| Adapter::Cipherbench(Encryptor::new(Suite::Aes256Gcm).with_keys(keys));
    let mut fixture = Fixture::tcp(agreed(KeySource::Both), 1);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    // A ping beside many tunnels that agree on keys: few of the frames are ESP.
    fixture.cipher_link.channel_frames = 270;
    fixture.cipher_link.esp_frames = 30;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    let detail = fixture.detail("cipher-link-encrypted");
    assert!(
        detail.contains("270 of its control channel or of its KME, 0 ARP or ND and 0 neither"),
        "{detail}"
    );
    let detail = fixture.detail("no-foreign-frames");
    assert!(detail.contains("of its control channel"), "{detail}");
    // Nothing but the channel is not enough, and one frame of anything else is too much.
    fixture.cipher_link.channel_frames = 300;
    fixture.cipher_link.esp_frames = 0;
    assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
    fixture.cipher_link.channel_frames = 269;
    fixture.cipher_link.esp_frames = 30;
    fixture.cipher_link.other_frames = 1;
    assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
    // Clear-text in a channel is clear-text.
    fixture.cipher_link.other_frames = 0;
    fixture.cipher_link.marker_frames = 1;
    assert_eq!(fixture.failing(), ["no-clear-text"]);

    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.cipher_link.channel_frames = 1;
    fixture.cipher_link.esp_frames = 298;
    assert_eq!(fixture.failing(), ["cipher-link-encrypted"]);
}

#[test]
fn bytes_of_handshakes_are_allowed_for_each_tunnel_and_rekey() {
    let encryptor = Encryptor {
        rekey_every_ns: Some(500 * MS),
        ..Encryptor::new(Suite::Aes256Gcm).with_keys(KeySource::Pqc)
    };
    let slack = |adapter| {
        let mut fixture = Fixture::tcp(adapter, 1);
        let detail = fixture.detail("cipher-link-amount");
        let (_, most) = detail.rsplit_once(" to ").unwrap();
        let most: u64 = most.split_once(' ').unwrap().0.parse().unwrap();
        fixture.counter("gw1/w0").tx_bytes = most;
        assert_eq!(fixture.failing(), Vec::<String>::new());
        fixture.counter("gw1/w0").tx_bytes = most + 1;
        assert_eq!(fixture.failing(), ["cipher-link-amount"]);
        most
    };
    let more = slack(Adapter::Cipherbench(encryptor)) - slack(encrypting());
    // In 1.1 s: one under way and three that come due, and two seconds of being there.
    assert_eq!(more, 4 * (32 << 10) + 2 * (1 << 10));
}

#[test]
fn a_watch_that_does_not_see_clear_text_proves_nothing() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    fixture.cipher_link.marker_frames = 0;
    assert_eq!(fixture.failing(), ["clear-text-visible"]);
    fixture.cipher_link.marker_frames = 10;
    fixture.cipher_link.esp_frames = 1;
    assert_eq!(fixture.failing(), ["clear-text-visible"]);
}

#[test]
fn one_foreign_frame_of_a_million_is_an_objection_and_is_shown() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.watch = CipherWatch {
        foreign_frames: 1,
        marker_frames: 1,
        clear_sealed_frames: 0,
        foreign_bytes: 1428,
        examples: vec!["IPv4 UDP 10.1.0.2:4000 > 10.2.0.2:5201, 1428 B".to_owned()],
        ..CipherWatch::default()
    };
    assert_eq!(fixture.failing(), ["no-foreign-frames"]);
    let detail = fixture.detail("no-foreign-frames");
    assert!(
        detail.starts_with("1 frames") && detail.ends_with("10.2.0.2:5201, 1428 B"),
        "{detail}"
    );
}

#[test]
fn a_watch_that_counts_no_clear_frames_proves_nothing() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    fixture.watch.foreign_frames = 0;
    assert_eq!(fixture.failing(), ["foreign-frames-visible"]);
}

#[test]
fn a_payload_with_no_room_for_a_marker_is_not_looked_for() {
    let mut fixture = Fixture::udp(None);
    fixture.commands.marker.clear();
    assert!(
        !fixture
            .checks()
            .iter()
            .any(|check| check.name == "no-clear-text")
    );
}

#[test]
fn traffic_that_bypassed_the_cipher_link_is_an_objection() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    // Payload in segments of 1460 B, each with 40 B of headers and 34 B of ESP, 28 and 14 around
    // it.
    let least = 999_000_000_u64 + 999_000_000_u64.div_ceil(1460) * 116;
    fixture.counter("gw1/w0").tx_bytes = least - 1;
    assert_eq!(fixture.failing(), ["cipher-link-amount"]);
    let detail = fixture.detail("cipher-link-amount");
    let expected = format!("gw1/w0 sent {} B, of {least} to", least - 1);
    assert!(detail.contains(&expected), "{detail}");
    fixture.counter("gw1/w0").tx_bytes = least;
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

#[test]
fn traffic_on_the_cipher_link_that_no_tool_counted_is_an_objection() {
    for mut fixture in [Fixture::tcp(encrypting(), 1), Fixture::udp(None)] {
        fixture.counter("gw1/w0").tx_bytes += fixture.totals.sent_bytes / 4;
        assert_eq!(fixture.failing(), ["cipher-link-amount"]);
    }
}

#[test]
fn segments_sent_again_explain_more_bytes_than_the_tool_counted() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.counter("gw1/w0").tx_bytes += 300_000_000;
    assert_eq!(fixture.failing(), ["cipher-link-amount"]);
    fixture.totals.retransmits = 300_000_000 / 1448;
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

#[test]
fn a_tool_that_claims_more_than_its_interface_carried_is_an_objection() {
    let mut fixture = Fixture::udp(None);
    fixture.counter("a/a0").tx_bytes = fixture.totals.sent_bytes - 1;
    assert_eq!(fixture.failing(), ["station-interfaces-agree"]);
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    fixture.counter("b/b0").rx_bytes = fixture.totals.received_bytes - 1;
    assert_eq!(fixture.failing(), ["station-interfaces-agree"]);
    fixture.counters.remove("b/b0");
    assert!(
        fixture
            .detail("station-interfaces-agree")
            .contains("b/b0 has no counters")
    );
}

#[test]
fn foreign_traffic_on_a_stations_interface_is_an_objection() {
    let mut fixture = Fixture::ping(Adapter::Direct);
    fixture.counter("a/a0").tx_bytes += 100_000;
    assert_eq!(fixture.failing(), ["station-interfaces-agree"]);
}

#[test]
fn a_dut_whose_counters_did_not_move_did_not_encrypt() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture
        .dut_counters
        .insert("gw1/clear_rx_bytes".to_owned(), 0);
    assert_eq!(fixture.failing(), ["dut-counters"]);
    fixture.dut_counters.clear();
    assert_eq!(fixture.detail("dut-counters"), "gw1 shows no counters");
}

#[test]
fn packets_that_a_dut_cannot_account_for_are_an_objection() {
    let mut fixture = Fixture::udp(None);
    assert!(fixture.detail("dut-counters").contains("send_failed 10000"));
    let reason = "gw1/dropped_packets.send_failed".to_owned();
    // A batch may be counted on one side only while counters are read.
    fixture.dut_counters.insert(reason.clone(), 10_000 - 64);
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture.dut_counters.insert(reason, 10_000 - 65);
    assert_eq!(fixture.failing(), ["dut-counters"]);
}

#[test]
fn a_load_that_was_not_offered_as_intended_is_an_objection() {
    assert_eq!(
        Fixture::udp(Some(815_000_000)).failing(),
        Vec::<String>::new()
    );
    for rate in [820_000_000, 700_000_000] {
        let fixture = Fixture::udp(Some(rate));
        assert_eq!(fixture.failing(), ["offered-as-intended"]);
    }
    let detail = Fixture::udp(Some(1_600_000_000)).detail("offered-as-intended");
    assert!(
        detail.contains("800.000 Mbit/s of 1600.000 Mbit/s intended"),
        "{detail}"
    );
}

#[test]
fn drops_of_a_station_fail_at_a_set_rate_and_are_reported_in_a_flood() {
    let mut fixture = Fixture::udp(Some(800_000_000));
    fixture.station_lost = 100;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture.station_lost = 101;
    assert_eq!(fixture.failing(), ["station-kept-up"]);
    let mut flood = Fixture::udp(None);
    flood.station_lost = 5000;
    assert_eq!(flood.failing(), Vec::<String>::new());
    let detail = flood.detail("station-kept-up");
    assert!(detail.contains("dropped 5000 of 100000"), "{detail}");
}

#[test]
fn offloads_other_than_asked_for_are_an_objection() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    let set = |fixture: &mut Fixture, feature: &str, state: &str| {
        let found = fixture.offloads.get_mut("gw2/b1").unwrap();
        found.insert(feature.to_owned(), state.to_owned());
    };
    for feature in FEATURES {
        set(&mut fixture, feature, "on");
        assert_eq!(fixture.failing(), ["offloads-as-asked"]);
        let detail = fixture.detail("offloads-as-asked");
        let expected = format!("{feature} of gw2/b1 is on");
        assert!(detail.contains(&expected), "{detail}");
        set(&mut fixture, feature, "off");
    }
    fixture.offloads.remove("gw2/b1");
    assert!(fixture.detail("offloads-as-asked").contains("not readable"));

    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    fixture.links.offloads = true;
    assert_eq!(fixture.failing(), ["offloads-as-asked"]);
    fixture.offload();
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

#[test]
fn a_tool_whose_figures_contradict_each_other_is_an_objection() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    fixture.totals.received_summary_bytes = Some(980_000_000);
    assert_eq!(fixture.failing(), ["tool-agrees-with-itself"]);
    fixture.totals.received_summary_bytes = None;
    assert_eq!(fixture.failing(), ["tool-agrees-with-itself"]);
    // Duplicates, or a receiver that counts what is not there.
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    fixture.totals.sent_bytes = fixture.totals.received_bytes - 1;
    assert_eq!(fixture.failing(), ["tool-agrees-with-itself"]);
}

#[test]
fn blocks_that_a_stopped_sender_did_not_count_are_no_objection() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 1);
    fixture.totals.uncounted_bytes = 2 * 131_072;
    fixture.totals.sent_bytes = fixture.totals.received_bytes - 2 * 131_072;
    assert_eq!(fixture.failing(), Vec::<String>::new());
    fixture.totals.sent_bytes -= 1;
    assert_eq!(fixture.failing(), ["tool-agrees-with-itself"]);

    // The last datagram of a stream, counted by its number, may not have been sent.
    let mut fixture = Fixture::udp(None);
    fixture.totals.uncounted_bytes = 1000;
    fixture.counter("a/a0").tx_bytes = 99_999 * 1042;
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

#[test]
fn processes_that_did_not_run_together_are_an_objection() {
    let mut fixture = Fixture::tcp(Adapter::Direct, 2);
    let mut failing = |ends_ms: &[u64]| {
        fixture.client_ends_ns = ends_ms.iter().map(|end| end * MS).collect();
        fixture.failing()
    };
    assert_eq!(failing(&[1000, 1050]), Vec::<String>::new());
    assert_eq!(failing(&[950, 1000]), Vec::<String>::new());
    for ends_ms in [&[990, 1041][..], &[1000, 1051], &[949, 990], &[1000]] {
        assert_eq!(failing(ends_ms), ["processes-in-step"], "{ends_ms:?}");
    }
}

#[test]
fn shared_cores_are_reported() {
    let detail = |cores| Fixture::tcp(Adapter::Direct, cores).detail("cores-of-stations");
    assert_eq!(
        detail(1),
        "station A's tools ran on core 0, station B's on core 1"
    );
    assert!(detail(2).ends_with("they shared core 0, 1"));
}

#[test]
fn a_fragmenting_datagram_may_carry_more_headers() {
    let mut fixture = Fixture::new(encrypting(), 1, udp_of(8000));
    // 6 fragments of up to 1480 B: 5 more Ethernet and IP headers than one packet has.
    fixture.carry(80_000_000, 80_000_000, 8000, 42 + 5 * 34);
    fixture.counter("gw1/w0").tx_bytes += 10_000 * 5 * 64;
    assert_eq!(fixture.failing(), Vec::<String>::new());
}

#[test]
fn objections_name_the_check_and_quote_its_numbers() {
    let mut fixture = Fixture::tcp(encrypting(), 1);
    fixture.cipher_link.marker_frames = 7;
    let objections = objections(&fixture.checks());
    assert_eq!(objections.len(), 1);
    assert!(objections[0].starts_with("no-clear-text: 7 of 300 frames"));
}

/// Packets as the kernel cuts them: each as long as fits, and all but the last a multiple of 8
/// bytes.
fn packets_of(mut left: u64) -> u64 {
    let mut packets = 0;
    while left > 0 {
        let mut bytes = left.min(1480);
        if bytes < left {
            bytes -= bytes % 8;
        }
        left -= bytes;
        packets += 1;
    }
    packets
}

#[test]
fn interfaces_agree_with_packets_of_every_size_around_the_mtu() {
    for payload_bytes in (1400..1500).chain(2900..3000).chain(4400..4480) {
        let mut fixture = Fixture::ping(Adapter::Direct);
        if let Measurement::Ping {
            payload_bytes: of, ..
        } = &mut fixture.cell.measurement
        {
            *of = payload_bytes as u16;
        }
        let headers = 8 + packets_of(payload_bytes + 8) * 34;
        let sent = 1000 * payload_bytes;
        fixture.carry(sent, sent, payload_bytes, headers);
        let failing = fixture.failing();
        assert!(
            !failing.contains(&"station-interfaces-agree".to_owned()),
            "{payload_bytes} B: {failing:?}"
        );
    }
}
