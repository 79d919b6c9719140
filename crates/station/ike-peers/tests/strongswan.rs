//! The generator against strongSwan's charon. Each test runs in separate namespaces, in a process
//! that `unshare` starts.

use ike_peers::{
    Authentication, Behaviour, Hidden, Load, Pem, Progress, Rekeyed, Report, Selectors, Sources,
    Spec, Triggers, run,
};
use pki::{Authority, days_from_now};
use port::Stop;
use testing::charon::{self, Charon, Proof, in_namespaces};

const PEERS: u32 = 40;
const ALL: u64 = 40;
const SECOND_NS: u64 = 1_000_000_000;

fn spec(load: Load) -> Spec {
    let address = |text: &str| text.parse().expect("an address");
    Spec {
        gateway: address("192.0.2.1"),
        port: 500,
        nat_port: 4500,
        peers: PEERS,
        sources: Sources::Addresses {
            first: address("10.9.0.0"),
            count: PEERS,
            port: 500,
            nat_port: 4500,
        },
        identity: "peer-{n}.example".to_owned(),
        gateway_identity: Some("gateway.example".to_owned()),
        authentication: Authentication::SharedKey(Hidden("a secret of tests".to_owned())),
        proposal: "aes256gcm16-prfsha384-x25519".to_owned(),
        ppk: None,
        selectors: Selectors {
            local: address("10.2.0.0"),
            remote_first: address("10.1.0.0"),
            remote_last: address("10.1.255.255"),
        },
        behaviour: Behaviour {
            idle_ns: SECOND_NS,
            ..Behaviour::default()
        },
        load,
        delete_per_s: None,
    }
}

/// Plays the part; `up` is called once all peers are up.
fn play(spec: &Spec, mut up: impl FnMut(u64)) -> Report {
    let [stop, storm] = [(); 2].map(|()| Stop::new().expect("a descriptor"));
    let triggers = Triggers {
        stop: &stop,
        storm: &storm,
    };
    let report = run(spec, triggers, &mut |progress| {
        if let Progress::Up(count) = progress {
            up(count);
            storm.raise();
        }
    });
    report.expect("the spec is possible")
}

fn completed(report: &Report) {
    let setups = &report.setups;
    assert_eq!(setups.completed, ALL, "{setups:?}");
    assert_eq!(setups.failures(), 0);
}

#[test]
fn peers_stand_and_leave() {
    in_namespaces("peers_stand_and_leave", || {
        let charon = Charon::start(&Proof::SharedKey);
        let concurrent = Load::Concurrent {
            per_s: 40,
            hold_ns: 4 * SECOND_NS,
        };
        let spec = Spec {
            delete_per_s: Some(100),
            ..spec(concurrent)
        };
        let all = PEERS as usize;
        let report = play(&spec, |_| assert_eq!(charon.sas(), (all, all)));
        completed(&report);
        let standing = report.standing.expect("they stood");
        assert_eq!((standing.up, standing.left), (40, 40), "{standing:?}");
        assert!(standing.traffic.received >= 2 * ALL);
        assert_eq!(report.deletes.completed, ALL);
        assert_eq!(charon.sas(), (0, 0));
        assert_eq!(report.generator.unsent, 0, "{:?}", report.generator);
    });
}

#[test]
fn a_storm_replaces_what_the_daemon_still_has() {
    in_namespaces("a_storm_replaces_what_the_daemon_still_has", || {
        let charon = Charon::start(&Proof::SharedKey);
        let report = play(
            &spec(Load::Storm {
                after_per_s: Some(100),
            }),
            |count| assert_eq!(count, ALL),
        );
        completed(&report);
        let storm = report.storm.expect("there was one");
        assert!(storm.back.iter().all(|it| it.after_ns.is_some()));
        // INITIAL_CONTACT: the daemon has dropped the former ones.
        assert_eq!(charon.sas(), (40, 40));
    });
}

#[test]
fn peers_rekey_within_a_window() {
    in_namespaces("peers_rekey_within_a_window", || {
        let charon = Charon::start(&Proof::SharedKey);
        for what in [Rekeyed::Ike, Rekeyed::Child] {
            let rekey = Load::Rekey {
                per_s: 100,
                window_ns: SECOND_NS,
                what,
            };
            let spec = Spec {
                delete_per_s: Some(100),
                ..spec(rekey)
            };
            let report = play(&spec, |_| {});
            completed(&report);
            let rekeys = report.rekeys.expect("there were some");
            assert_eq!(rekeys.outcomes.completed, ALL, "{rekeys:?}");
            assert_eq!(rekeys.same_exchanges, ALL);
            assert_eq!(report.deletes.completed, ALL);
            assert_eq!(charon.sas(), (0, 0));
        }
    });
}

#[test]
fn peers_have_certificates() {
    in_namespaces("peers_have_certificates", || {
        let authority = Authority::generate().expect("random numbers");
        let own = authority.issue("gateway.example", days_from_now(1));
        let own = own.expect("random numbers");
        let texts = authority.texts();
        let charon = Charon::start(&Proof::Certificates {
            authority: &texts.certificate,
            certificate: &own.certificate,
            key: &own.key,
        });
        let spec = Spec {
            authentication: Authentication::Certificates {
                authority: Pem {
                    certificate: texts.certificate.clone(),
                    key: Hidden(texts.key.to_string()),
                },
                trusted: texts.certificate.clone(),
            },
            behaviour: Behaviour {
                // Behind a NAT, as far as the daemon can see.
                always_in_udp: true,
                ..Behaviour::default()
            },
            ..spec(Load::Setup { per_s: 40 })
        };
        let report = play(&spec, |_| {});
        completed(&report);
        assert_eq!(charon.sas(), (40, 40));
    });
}

#[test]
fn peers_behind_a_nat_have_one_address_and_many_ports() {
    const NAME: &str = "peers_behind_a_nat_have_one_address_and_many_ports";
    in_namespaces(NAME, || {
        let charon = Charon::start(&Proof::SharedKey);
        if !charon::translate() {
            testing::skip(NAME, "nft, or translation of addresses in this kernel");
            return;
        }
        let concurrent = Load::Concurrent {
            per_s: 40,
            hold_ns: 2 * SECOND_NS,
        };
        let report = play(&spec(concurrent), |_| {});
        completed(&report);
        let standing = report.standing.expect("they stayed up");
        assert_eq!(standing.left, ALL, "{standing:?}");
        assert!(
            charon.is_behind_nat(PEERS),
            "the addresses were not translated"
        );
    });
}

#[test]
fn a_flood_of_first_requests_is_answered_with_cookies() {
    in_namespaces("a_flood_of_first_requests_is_answered_with_cookies", || {
        let _charon = Charon::start(&Proof::SharedKey);
        let flood = Load::HalfOpen {
            per_s: 1000,
            duration_ns: SECOND_NS,
        };
        let report = play(&spec(flood), |_| {});
        let flood = report.flood.expect("there was one");
        assert_eq!(flood.sent, 1000);
        assert!(flood.accepted >= 100 && flood.cookies > 100, "{flood:?}");
    });
}

#[test]
fn a_wrong_key_is_a_failure_with_the_name_of_the_notify() {
    in_namespaces(
        "a_wrong_key_is_a_failure_with_the_name_of_the_notify",
        || {
            let charon = Charon::start(&Proof::SharedKey);
            let spec = Spec {
                authentication: Authentication::SharedKey(Hidden("key of peer {n}".to_owned())),
                ..spec(Load::Setup { per_s: 40 })
            };
            let report = play(&spec, |_| {});
            let failed = &report.setups.failed["AUTHENTICATION_FAILED"];
            assert_eq!(failed.count, ALL);
            assert_eq!(charon.sas(), (0, 0));
        },
    );
}
