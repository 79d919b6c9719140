//! The generator against our own responder, over loopback.

mod common;

use common::{HYBRID, classic, gateway, play, play_against, spec};
use ike::crypto::Secret;
use ike::message::AddressRange;
use ike::session::{Authentication as Proof, Limits};
use ike_peers::{
    Authentication, Behaviour, Hidden, Load, Pem, Ppk, Rekeyed, Report, Sources, Spec, Traffic,
};
use pki::{Authority, days_from_now};
use port::Stop;
use std::io::{BufRead, BufReader, Write};

const SECOND_NS: u64 = 1_000_000_000;

#[test]
fn every_peer_is_set_up_once_with_its_own_address_and_identity() {
    let spec = Spec {
        load: Load::Setup { per_s: 500 },
        delete_per_s: Some(2000),
        ..spec(300)
    };
    let (report, counts) = play(&spec);
    let setups = &report.setups;
    assert_eq!((setups.intended, setups.started), (300, 300));
    assert_eq!(
        (setups.completed, setups.failures()),
        (300, 0),
        "{setups:?}"
    );
    assert_eq!(setups.latency.count(), 300);
    assert_eq!(setups.late.count(), 300);
    // Four datagrams, and none lost on loopback.
    assert_eq!(setups.traffic.sent, 600 + setups.retransmissions);
    // The last one begins 299/500 s after the first.
    assert!(setups.elapsed_ns >= 598_000_000, "{}", setups.elapsed_ns);
    assert_eq!((counts.established, counts.children), (300, 300));
    assert_eq!((report.deletes.completed, counts.deleted), (300, 300));
    assert_eq!(counts.left, 0);
    assert_eq!(report.generator.unsent, 0, "{:?}", report.generator);
}

#[test]
fn ports_stand_for_peers_behind_a_nat() {
    let first = common::free_ports(40);
    let spec = Spec {
        sources: Sources::Ports {
            address: "127.0.0.9".parse().unwrap(),
            addresses: 2,
            first,
            count: 40,
        },
        load: Load::Setup { per_s: 400 },
        ..spec(80)
    };
    let (report, counts) = play(&spec);
    assert_eq!(report.setups.completed, 80, "{:?}", report.setups);
    assert_eq!(counts.left, 80);
}

#[test]
fn peers_have_ports_of_an_ipv6_address() {
    let address = "::1".parse().unwrap();
    if std::net::UdpSocket::bind((address, 0)).is_err() {
        println!("skipped: this host has no IPv6");
        return;
    }
    let spec = Spec {
        gateway: address,
        sources: Sources::Ports {
            address,
            addresses: 1,
            first: common::free_ports(20),
            count: 20,
        },
        load: Load::Setup { per_s: 400 },
        ..spec(20)
    };
    let (report, _) = play(&spec);
    assert_eq!(report.setups.completed, 20, "{:?}", report.setups);
}

#[test]
fn the_delays_of_a_gateway_that_starts_late_are_in_the_latency() {
    let spec = Spec {
        behaviour: Behaviour {
            repeat_first_ns: SECOND_NS / 4,
            ..Behaviour::default()
        },
        load: Load::Setup { per_s: 1000 },
        ..spec(50)
    };
    // It starts once all requests have been lost.
    let (report, counts) = common::play_late(&spec, 50);
    let setups = &report.setups;
    assert_eq!(
        (setups.completed, counts.established),
        (50, 50),
        "{setups:?}"
    );
    assert!(setups.retransmissions >= 50);
    let fastest = setups.latency.quantile(0.0, 50).unwrap();
    assert!(fastest >= SECOND_NS / 4, "{fastest}");
}

#[test]
fn key_exchanges_ppks_and_the_shared_port_are_negotiated() {
    let spec = Spec {
        proposal: HYBRID.to_owned(),
        ppk: Some(Ppk {
            identity: "one".to_owned(),
            key: Hidden("a key of tests".to_owned()),
            required: true,
        }),
        behaviour: Behaviour {
            always_in_udp: true,
            ..Behaviour::default()
        },
        load: Load::Setup { per_s: 200 },
        ..spec(60)
    };
    let (report, _) = play(&spec);
    assert_eq!(report.setups.completed, 60, "{:?}", report.setups);
    assert_eq!(report.setups.without_ppk, 0);
    // IKE_SA_INIT, IKE_INTERMEDIATE in two fragments, IKE_AUTH.
    assert_eq!(
        report.setups.traffic.sent,
        60 * 4 + report.setups.retransmissions
    );
}

#[test]
fn certificates_are_issued_to_each_peer_and_verified_by_both_ends() {
    let authority = Authority::generate().unwrap();
    let own = authority
        .issue("gateway.example", days_from_now(1))
        .unwrap();
    let texts = authority.texts();
    let spec = Spec {
        authentication: Authentication::Certificates {
            authority: Pem {
                certificate: texts.certificate.clone(),
                key: Hidden(texts.key.to_string()),
            },
            trusted: texts.certificate.clone(),
        },
        load: Load::Setup { per_s: 100 },
        ..spec(40)
    };
    let (report, counts) = play_against(&spec, gateway(&spec, Some(&own)));
    assert_eq!(report.setups.completed, 40, "{:?}", report.setups);
    assert_eq!(counts.established, 40);
    // The gateway's certificate of another authority.
    let other = Authority::generate().unwrap();
    let foreign = other.issue("gateway.example", days_from_now(1)).unwrap();
    let spec = Spec { peers: 3, ..spec };
    let (report, _) = play_against(&spec, gateway(&spec, Some(&foreign)));
    let failed = &report.setups.failed["AUTHENTICATION_FAILED by the peer"];
    assert_eq!(failed.count, 3);
    assert!(failed.example.contains("certificate"), "{}", failed.example);
}

#[test]
fn a_storm_brings_all_peers_at_once_and_tells_when_they_are_back() {
    let storm = Load::Storm { after_per_s: None };
    let spec = Spec {
        load: storm,
        ..spec(400)
    };
    let (report, counts) = play(&spec);
    assert_eq!(report.setups.completed, 400, "{:?}", report.setups);
    assert_eq!(counts.established, 400);
    let back = report.storm.unwrap().back;
    let percents: Vec<u8> = back.iter().map(|it| it.percent).collect();
    assert_eq!(percents, [50, 90, 99, 100]);
    let times: Vec<u64> = back.iter().map(|it| it.after_ns.unwrap()).collect();
    assert!(times.is_sorted() && times[0] > 0, "{times:?}");
}

#[test]
fn after_a_restart_peers_stand_until_the_storm_begins() {
    let spec = Spec {
        load: Load::Storm {
            after_per_s: Some(1000),
        },
        ..spec(200)
    };
    let (report, counts) = play(&spec);
    let before = report.storm.unwrap().before.unwrap();
    assert_eq!((before.completed, report.setups.completed), (200, 200));
    assert_eq!(counts.established, 400);
    // The gateway was not restarted here, and has both sessions of each peer.
    assert_eq!(counts.left, 400);
}

#[test]
fn peers_that_are_up_check_that_the_gateway_lives() {
    let spec = Spec {
        behaviour: Behaviour {
            idle_ns: SECOND_NS / 2,
            ..Behaviour::default()
        },
        load: Load::Concurrent {
            per_s: 1000,
            hold_ns: 2 * SECOND_NS,
        },
        ..spec(200)
    };
    let (report, counts) = play(&spec);
    let standing = report.standing.unwrap();
    assert_eq!((standing.up, standing.left), (200, 200));
    assert!(standing.lost.is_empty());
    // Three checks of each in the time, two at least. Some may be under way at the end.
    let Traffic { sent, received, .. } = standing.traffic;
    assert!(received >= 400 && received + 200 >= sent, "{standing:?}");
    assert_eq!(counts.left, 200);
    assert_eq!(report.memory.unwrap().peers, 200);
}

#[test]
fn a_gateway_that_disappears_is_noticed() {
    let behaviour = Behaviour {
        idle_ns: SECOND_NS / 4,
        repeat_first_ns: SECOND_NS / 10,
        repetitions: 2,
        ..Behaviour::default()
    };
    let spec = Spec {
        behaviour,
        load: Load::Concurrent {
            per_s: 1000,
            hold_ns: 4 * SECOND_NS,
        },
        ..spec(20)
    };
    let report = common::play_until_up(&spec, gateway(&spec, None));
    let standing = report.standing.unwrap();
    assert_eq!((standing.up, standing.left), (20, 0));
    assert_eq!(standing.lost["no response"].count, 20);
    assert_eq!(standing.retransmissions, 40);
}

#[test]
fn a_stopped_load_deletes_its_sas() {
    let rekey = Load::Rekey {
        per_s: 500,
        window_ns: SECOND_NS,
        what: Rekeyed::Ike,
    };
    let storm = Load::Storm {
        after_per_s: Some(500),
    };
    let concurrent = Load::Concurrent {
        per_s: 500,
        hold_ns: 60 * SECOND_NS,
    };
    for load in [concurrent, rekey, storm] {
        let spec = Spec {
            load,
            delete_per_s: Some(1),
            ..spec(30)
        };
        let (report, counts) = common::play_and_stop(&spec);
        assert!(report.is_partial);
        assert_eq!(
            (report.setups.completed, report.deletes.completed),
            (30, 30)
        );
        assert_eq!((counts.deleted, counts.left), (30, 0), "{:?}", spec.load);
    }
}

#[test]
fn failures_are_counted_by_the_notify_and_name_a_remedy() {
    let spec = Spec {
        load: Load::Setup { per_s: 100 },
        ..spec(5)
    };
    let wrong = gateway(&spec, None).with(|it| {
        it.authentication = Proof::SharedKey(Secret::new(b"another key".to_vec()));
    });
    let (report, _) = play_against(&spec, wrong);
    let failed = &report.setups.failed["AUTHENTICATION_FAILED"];
    assert_eq!(failed.count, 5);
    assert!(
        failed.example.contains("RFC 7296 section 2.21.2"),
        "{}",
        failed.example
    );
    let first = report.setups.first_failure.unwrap();
    assert_eq!(
        (first.up, first.reason.as_str()),
        (0, "AUTHENTICATION_FAILED")
    );

    let elsewhere = gateway(&spec, None).with(|it| {
        let address = "203.0.113.1".parse().unwrap();
        it.local = vec![AddressRange::any(address..=address)];
    });
    let (report, counts) = play_against(&spec, elsewhere);
    assert_eq!(report.setups.failed["TS_UNACCEPTABLE (child SA)"].count, 5);
    // The IKE SAs without child SA are deleted.
    assert_eq!((counts.established, counts.left), (5, 0));

    let classic = gateway(&spec, None).with(|it| it.ike = vec![classic("aes128-sha256-ecp256")]);
    let hasty = Spec {
        behaviour: Behaviour {
            repeat_first_ns: SECOND_NS / 10,
            repetitions: 2,
            ..Behaviour::default()
        },
        ..spec
    };
    let (report, counts) = play_against(&hasty, classic);
    assert_eq!(report.setups.failed["NO_PROPOSAL_CHOSEN"].count, 5);
    assert_eq!(report.setups.retransmissions, 10);
    assert_eq!(report.ignored["NO_PROPOSAL_CHOSEN"], 15);
    assert_eq!(counts.refused["NO_PROPOSAL_CHOSEN"], 15);
}

#[test]
fn a_gateway_of_ikev1_is_named() {
    let hasty = Behaviour {
        repeat_first_ns: SECOND_NS / 20,
        repetitions: 1,
        ..Behaviour::default()
    };
    let spec = Spec {
        behaviour: hasty,
        ..spec(3)
    };
    // A notification of IKEv1: SPIs, payload, version 1.0, informational, no flags, no message ID.
    let head = [11, 0x10, 5, 0, 0, 0, 0, 0, 0, 0, 0, 28];
    let answer = move |request: &[u8]| [&request[..16], &head].concat();
    let report = common::play_with_answer(&spec, answer);
    assert_eq!(report.ignored["ikev1"], 6);
    let failed = &report.setups.failed["no response"];
    assert_eq!(failed.count, 3);
    assert!(failed.example.contains("speak IKEv2"), "{}", failed.example);
}

#[test]
fn a_part_is_played_over_two_streams() {
    let spec = Spec {
        load: Load::Storm {
            after_per_s: Some(500),
        },
        ..spec(10)
    };
    let gateway = common::Apart::start(&spec);
    let (input, mut commands) = std::io::pipe().unwrap();
    let (output, report) = std::io::pipe().unwrap();
    let player = std::thread::spawn(move || {
        let stop = Stop::new().unwrap();
        ike_peers::play(BufReader::new(input), report, &stop)
    });
    writeln!(commands, "{}", serde_json::to_string(&spec).unwrap()).unwrap();
    let mut lines = BufReader::new(output).lines().map(Result::unwrap);
    assert_eq!(lines.next().as_deref(), Some("ready"));
    assert_eq!(lines.next().as_deref(), Some("up 10"));
    writeln!(commands, "storm").unwrap();
    let report: Report = serde_json::from_str(&lines.next().unwrap()).unwrap();
    assert_eq!(report.setups.completed, 10);
    player.join().unwrap().unwrap();
    drop(gateway);
    // The example in the document, here on loopback.
    let document = include_str!("../../../../docs/ike.md");
    let (_, example) = document.split_once("```json\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let documented: Spec = serde_json::from_str(example).unwrap();
    assert_eq!((documented.port, documented.peers), (500, 1000));
    let unread = ike_peers::play(&b"{}\n"[..], Vec::new(), &Stop::new().unwrap()).unwrap_err();
    assert!(unread.to_string().contains("missing field"), "{unread}");
}

#[test]
fn cookies_are_returned_and_counted() {
    let spec = Spec {
        load: Load::Storm { after_per_s: None },
        ..spec(100)
    };
    let limits = Limits {
        cookies_from: 0,
        ..Limits::default()
    };
    let (report, _) = play_against(&spec, gateway(&spec, None).with_limits(limits));
    assert_eq!((report.setups.completed, report.setups.cookies), (100, 100));
}

#[test]
fn half_open_requests_are_counted_by_their_answers() {
    let spec = Spec {
        load: Load::HalfOpen {
            per_s: 1000,
            duration_ns: SECOND_NS / 2,
        },
        ..spec(50)
    };
    let limits = Limits {
        cookies_from: 100,
        ..Limits::default()
    };
    let (report, counts) = play_against(&spec, gateway(&spec, None).with_limits(limits));
    let flood = report.flood.unwrap();
    assert_eq!((flood.intended, flood.sent), (500, 500));
    assert_eq!((flood.accepted, flood.cookies), (100, 400), "{flood:?}");
    assert_eq!((counts.established, counts.left), (0, 100));
}

#[test]
fn a_churn_deletes_each_peer_after_its_lifetime() {
    let spec = Spec {
        load: Load::Churn {
            per_s: 100,
            duration_ns: 2 * SECOND_NS,
            lifetime_ns: SECOND_NS / 2,
        },
        ..spec(100)
    };
    let (report, counts) = play(&spec);
    assert_eq!(
        (report.setups.intended, report.setups.completed),
        (200, 200)
    );
    assert_eq!(report.deletes.completed, 200);
    assert_eq!((counts.established, counts.left), (200, 0));
}

#[test]
fn rekeyings_keep_all_key_exchanges() {
    for what in [Rekeyed::Ike, Rekeyed::Child] {
        let spec = Spec {
            proposal: HYBRID.to_owned(),
            load: Load::Rekey {
                per_s: 200,
                window_ns: SECOND_NS,
                what,
            },
            ..spec(50)
        };
        let (report, counts) = play(&spec);
        let rekeys = report.rekeys.unwrap();
        assert_eq!(rekeys.outcomes.completed, 50, "{what:?} {rekeys:?}");
        assert_eq!((rekeys.same_exchanges, rekeys.fewer_exchanges), (50, 0));
        assert_eq!(counts.left, 50);
    }
}

#[test]
fn an_impossible_spec_is_refused_with_a_remedy() {
    let too_many = Spec {
        peers: 10,
        sources: Sources::Addresses {
            first: "127.0.0.2".parse().unwrap(),
            count: 9,
            port: 0,
            nat_port: 0,
        },
        ..spec(1)
    };
    let foreign = Spec {
        sources: Sources::Addresses {
            first: "192.0.2.1".parse().unwrap(),
            count: 10,
            port: 0,
            nat_port: 0,
        },
        ..spec(10)
    };
    let unknown = Spec {
        proposal: "aes256gcm16-prfsha384".to_owned(),
        ..spec(1)
    };
    let churn = Spec {
        load: Load::Churn {
            per_s: 10,
            duration_ns: SECOND_NS,
            lifetime_ns: 10 * SECOND_NS,
        },
        ..spec(50)
    };
    let with_port = Spec {
        sources: Sources::Ports {
            address: "127.0.0.9".parse().unwrap(),
            addresses: 1,
            first: 40_000,
            count: 50,
        },
        port: 40_020,
        ..spec(50)
    };
    for (spec, parts) in [
        (with_port, ["40000 to 40049", "the gateway's port 40020"]),
        (too_many, ["10 peers need as many pairs", "there are 9"]),
        (foreign, ["192.0.2.1", "ip route add local"]),
        (unknown, ["aes256gcm16-prfsha384", "has no key exchange"]),
        (churn, ["more than 100 peers", "there are 50"]),
    ] {
        let error = common::error_of(&spec);
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
    }
}

#[test]
fn an_idle_peer_takes_less_than_four_kib() {
    const PEERS: u32 = 1000;
    let spec = Spec {
        load: Load::Setup { per_s: 1000 },
        ..spec(PEERS)
    };
    // In a process of its own: its memory must not count as that of the peers.
    let gateway = common::Apart::start(&spec);
    let play = common::apart(&spec);
    drop(gateway);
    let memory = play.memory.expect("Linux reports it");
    assert_eq!(memory.peers, u64::from(PEERS), "{:?}", play.setups);
    assert!(memory.bytes_per_peer <= 4096, "{memory:?}");
}

/// A process of its own, if another test has started it as such.
#[test]
fn plays_apart() {
    common::play_apart();
}
