//! The running encryptor against the configured one, and packets that share others.

use super::fixture::reported_facts;
use super::*;
use crate::evidence::gateway::Gateway;
use journal::record::FrameTrial;
use plan::{
    Direction, FrameTest, IpVersion, KeySource, Load as LoadTest, Mode, OpenVpn, Ports, Procedure,
    Traffic,
};
use wire::mix::{Contents, FrameMix, TestFrames};

fn with_engine(engine: &str) -> Encryptor {
    Encryptor {
        engine: engine.parse().unwrap(),
        ..Encryptor::new(Suite::Aes256Gcm)
    }
}

/// Frames of 128 B through an encryptor.
fn frames(encryptor: Encryptor, direction: Direction) -> Cell {
    let traffic = Traffic {
        frames: TestFrames {
            mix: FrameMix::fixed(128),
            flows: 1,
            tunnels: 1,
            contents: Contents::Fixed,
        },
        ip: IpVersion::V4,
        direction,
        duplex: false,
        ports: Ports::default(),
    };
    let procedure = Procedure::Load(LoadTest {
        frames_per_s: None,
        duration_ns: 1000 * MS,
    });
    let measurement = Measurement::Frames(FrameTest { traffic, procedure });
    let mut cell = Fixture::tcp(Adapter::Cipherbench(encryptor), 1).cell;
    cell.measurement = measurement;
    cell
}

/// The check of a frame test that made `sent` frames in a second.
fn asked(cell: &Cell, facts: &[(&str, &str)], counters: &[(&str, u64)], sent: u64) -> Check {
    let mut reported = reported_facts(&cell.dut.adapter);
    reported.extend(
        facts
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned())),
    );
    let counters = counters
        .iter()
        .map(|(name, count)| ((*name).to_owned(), *count));
    let trial = FrameTrial {
        sent,
        duration_ns: 1000 * MS,
        ..FrameTrial::default()
    };
    dut_as_asked(cell, &reported, &counters.collect(), Some(&trial)).unwrap()
}

#[test]
fn the_suite_of_another_encryptor_must_be_reported_and_match() {
    let tunnel = Adapter::OpenVpn(OpenVpn {
        suite: Suite::Aes256Gcm,
    });
    let cell = Fixture::tcp(tunnel, 1).cell;
    let check = |facts: [(&str, &str); 2]| {
        let facts = facts.map(|(key, value)| (key.to_owned(), value.to_owned()));
        dut_as_asked(&cell, &facts.into(), &BTreeMap::new(), None).unwrap()
    };
    assert!(check([("gw1/suite", "aes-256-gcm"), ("gw2/suite", "aes-256-gcm")]).passed);
    let other = check([("gw1/suite", "aes-256-gcm"), ("gw2/suite", "aes-128-gcm")]);
    assert!(!other.passed);
    assert_eq!(
        other.detail,
        "suite of gw2 is aes-128-gcm, and aes-256-gcm was asked for"
    );
    let silent = check([("gw1/suite", "aes-256-gcm"), ("gw2/version", "2.6")]);
    assert!(!silent.passed);
    assert_eq!(silent.detail, "gw2 does not report its suite");

    let nothing = Fixture::tcp(Adapter::Direct, 1).cell;
    assert!(dut_as_asked(&nothing, &BTreeMap::new(), &BTreeMap::new(), None).is_none());
}

#[test]
fn an_encryptor_that_runs_with_other_settings_is_an_objection() {
    for (key, value) in [
        ("gw1/suite", "aes-128-gcm"),
        ("gw2/lanes", "2"),
        ("gw1/tunnels", "1000"),
        ("gw2/mode", "l2"),
        ("gw1/aggregate", "on"),
        ("gw2/busy_poll", "on"),
        ("gw1/engine", "null"),
        ("gw2/keys", "handshake"),
    ] {
        let mut fixture = Fixture::tcp(encrypting(), 1);
        fixture.dut_facts.insert(key.to_owned(), value.to_owned());
        assert_eq!(fixture.failing(), ["dut-as-asked"], "{key}");
        let detail = fixture.detail("dut-as-asked");
        let (gateway, name) = key.split_once('/').unwrap();
        let expected = format!("{name} of {gateway} is {value}, and ");
        assert!(detail.contains(&expected), "{detail}");
        fixture.dut_facts.remove(key);
        assert_eq!(fixture.failing(), ["dut-as-asked"], "{key}");
        let expected = format!("{gateway} does not report its {name}");
        assert!(fixture.detail("dut-as-asked").contains(&expected));
    }
}

#[test]
fn keys_from_elsewhere_than_asked_for_are_an_objection() {
    for keys in KeySource::ALL {
        let encryptor = with_engine("auto").with_keys(keys);
        let cell = frames(encryptor, Direction::Both);
        let right = asked(&cell, &[], &[], 1000);
        assert!(right.passed, "{}", right.detail);
        let wrong: &[(&str, &str)] = match keys {
            KeySource::Static => &[("gw1/keys", "handshake")],
            // A missing PPK, and one that is not configured.
            KeySource::Ppk => &[("gw1/sources", "handshake"), ("gw2/policy", "either")],
            KeySource::Pqc => &[
                ("gw1/sources", "handshake+ppk:lab"),
                ("gw2/kx", "X25519"),
                ("gw2/keys", "static"),
            ],
            KeySource::Ike => &[("gw1/sources", "x25519"), ("gw2/keys", "handshake")],
            KeySource::IkeClassic => &[("gw1/sources", "x25519+mlkem768")],
            KeySource::IkePpk => &[("gw2/sources", "x25519+mlkem768")],
            KeySource::Qkd | KeySource::Both => &[
                ("gw1/policy", "pqc"),
                ("gw2/policy", "either"),
                ("gw2/sources", "handshake"),
            ],
        };
        for fact in wrong {
            let check = asked(&cell, &[*fact], &[], 1000);
            assert!(!check.passed, "{}: {fact:?}", keys.name());
            assert!(check.detail.contains(fact.1), "{}", check.detail);
        }
    }
}

#[test]
fn an_engine_other_than_the_one_named_is_an_objection() {
    let threshold = "{ below: 128 B, use: rustcrypto, else: ipsec-mb }";
    let model = "{ model: { latency: 50 µs, rate: 10 Gbit/s }, else: auto }";
    for (asked_for, found, passes) in [
        ("ipsec-mb", "ipsec-mb", true),
        ("ipsec-mb", "aws-lc", false),
        ("null", "null", true),
        ("null", "ipsec-mb", false),
        ("auto", "auto:-rustcrypto-below-96-B,-ipsec-mb", true),
        ("auto", "none", false),
        (threshold, "rustcrypto-below-128-B,-ipsec-mb", true),
        (threshold, "ipsec-mb", false),
        (model, "model of ipsec-mb", true),
        (model, "null", false),
    ] {
        let cell = frames(with_engine(asked_for), Direction::Encrypt);
        let check = asked(&cell, &[("gw1/engine", found)], &[], 1000);
        assert_eq!(check.passed, passes, "{asked_for}: {found}");
    }
}

#[test]
fn only_gateways_in_the_path_are_asked() {
    let other = |gateway| [(gateway, "2")];
    for (direction, of_gw1, of_gw2) in [
        (Direction::Both, false, false),
        (Direction::Encrypt, false, true),
        (Direction::Decrypt, true, false),
    ] {
        let cell = frames(with_engine("auto"), direction);
        assert_eq!(asked(&cell, &other("gw1/lanes"), &[], 1000).passed, of_gw1);
        assert_eq!(asked(&cell, &other("gw2/lanes"), &[], 1000).passed, of_gw2);
    }
}

#[test]
fn a_pseudowire_without_esp_has_neither_suite_nor_engine() {
    let encryptor = Encryptor {
        mode: Mode::L2tpv3Clear,
        ..with_engine("auto")
    };
    let cell = frames(encryptor, Direction::Encrypt);
    let facts = [
        ("gw1/mode", "l2tpv3"),
        ("gw1/suite", "none"),
        ("gw1/engine", "none"),
    ];
    assert!(asked(&cell, &facts, &[], 1000).passed);
    assert!(!asked(&cell, &facts[..2], &[], 1000).passed);
}

#[test]
fn an_engine_that_was_replaced_is_an_objection_unless_it_was_to_fail() {
    let failing = "{ model: { latency: 50 µs, rate: 10 Gbit/s, errors: 1 % }, else: auto }";
    let steady = "{ model: { latency: 50 µs, rate: 10 Gbit/s }, else: auto }";
    for (engine, sas, passes) in [
        ("auto", 0, true),
        ("auto", 1, false),
        (steady, 1, false),
        (failing, 1, true),
    ] {
        let cell = frames(with_engine(engine), Direction::Both);
        let counters = [("gw2/engine_replaced_sas.model", sas)];
        let check = asked(&cell, &[], &counters, 1000);
        assert_eq!(check.passed, passes, "{engine}: {}", check.detail);
        let is_reported = check.detail.contains("gw2/engine_replaced_sas.model 1");
        assert_eq!(is_reported, sas > 0, "{}", check.detail);
    }
}

#[test]
fn replaced_engines_count_from_the_devices_start() {
    let read = |packets, sas| {
        BTreeMap::from([
            ("gw1/clear_rx_packets".to_owned(), packets),
            ("gw1/engine_replaced_sas.model".to_owned(), sas),
        ])
    };
    // The SAs count in full, although none was replaced between the two readings.
    assert_eq!(counted_since(&read(30, 2), &read(10, 2)), read(20, 2));
}

#[test]
fn a_counter_that_passed_its_end_goes_on_and_one_that_was_cleared_is_named() {
    let read = |count| BTreeMap::from([("gw1/packets".to_owned(), count)]);
    let counted = |before, after| {
        let found = counted_since(&read(after), &read(before));
        (found["gw1/packets"], resets(&read(after), &read(before)))
    };
    // A counter of 32 bits, 6 before its end.
    assert_eq!(counted(4_294_967_290, 13), (19, Vec::new()));
    assert_eq!(counted(100, 1_100), (1_000, Vec::new()));
    let words = "the counter gw1/packets fell from 100000 to 5".to_owned();
    assert_eq!(counted(100_000, 5), (5, vec![words]));
}

#[test]
fn small_packets_at_a_high_load_must_have_joined_others_where_that_was_asked_for() {
    let aggregating = |tunnels| {
        let encryptor = Encryptor {
            aggregate: true,
            tunnels,
            ..with_engine("auto")
        };
        frames(encryptor, Direction::Both)
    };
    let passes = |cell: &Cell, counters: &[(&str, u64)], sent| {
        let on = [("gw1/aggregate", "on"), ("gw2/aggregate", "on")];
        let tunnels = cell.dut.adapter.profile().tunnels.to_string();
        let tunnels = [("gw1/tunnels", &tunnels[..]), ("gw2/tunnels", &tunnels[..])];
        asked(cell, &[on, tunnels].concat(), counters, sent).passed
    };
    let cell = aggregating(1);
    let none = [("gw1/joined_packets", 0)];
    assert!(passes(&cell, &[("gw1/joined_packets", 1)], 200_000));
    assert!(!passes(&cell, &none, 200_000));
    // A slow load may come packet by packet, and neighbours in several tunnels never share.
    assert!(passes(&cell, &none, 199_999));
    assert!(passes(&aggregating(2), &none, 200_000));
    // At any load, a gateway that does not report joined packets shows nothing.
    assert!(!passes(&cell, &[], 1000));
}

#[test]
fn packets_that_share_esp_packets_count_on_both_sides_of_the_balance() {
    // Out: 1000 packets, 920 of which joined others, and 20 ESP packets went on with one of them;
    // in: 100 ESP packets, of which 10 held no whole one.
    let counters = |spoilt: &str| {
        let counters = [
            ("gw1/clear_rx_packets", 1000),
            ("gw1/cipher_tx_packets", 100),
            ("gw1/joined_packets", 920),
            ("gw1/continued_packets", 20),
            ("gw1/cipher_rx_packets", 100),
            ("gw1/absorbed_packets", 10),
            ("gw1/clear_tx_packets", 1000),
            ("gw1/split_packets", 910),
        ];
        let kept = counters.into_iter().filter(|(name, _)| *name != spoilt);
        kept.map(|(name, count)| (name.to_owned(), count)).collect()
    };
    let imbalance =
        |counters: &BTreeMap<String, u64>| Gateway::of(counters, "gw1").unwrap().imbalance();
    let all = counters("");
    assert_eq!(imbalance(&all), None);
    let numbers = Gateway::of(&all, "gw1").unwrap().balance();
    assert!(
        numbers.contains("920 joined others, 20 continued others, 910 came with others"),
        "{numbers}"
    );
    let counted = ["joined", "split"].map(|what| format!("gw1/{what}_packets"));
    for spoilt in &counted {
        assert!(imbalance(&counters(spoilt)).is_some(), "{spoilt}");
    }
    let mut lost: BTreeMap<String, u64> = all.clone();
    // One more than the 64 that may be in flight.
    lost.insert("gw1/absorbed_packets".to_owned(), 10 + 65);
    assert!(imbalance(&lost).is_some());
}
