//! Sessions against strongSwan's charon, in both roles. Each test runs in separate namespaces, in a
//! process that `unshare` starts, so charon has port 500 and disturbs nothing.

mod charon;
mod host;

use charon::{Charon, in_namespaces};
use host::{Host, LIMIT, gcm, hybrid_settings, settings};
use ike::crypto::{Cipher, Integrity, KeMethodKind, Prf, Secret};
use ike::message::NotifyType;
use ike::session::{
    ADDITIONAL_MAX, Authentication, ChildSuite, Closed, Event, IkeSuite, Output, Ppk, PpkPolicy,
    Settings,
};

/// The configuration of charon, without a post-quantum pre-shared key.
const PLAIN: &str = "";
const PPK_REQUIRED: &str = "ppk_id = one\nppk_required = yes";
const PPK_OPTIONAL: &str = "ppk_id = one";

fn established(settings: Settings, connection: &str) -> (Charon, Host) {
    let charon = Charon::start(connection);
    let mut host = Host::new(settings);
    host.initiate();
    host.until("a child SA", |host| host.children() == 1);
    (charon, host)
}

fn is_up(output: &Output) -> bool {
    matches!(output, Output::ChildUp(_))
}

#[test]
fn an_initiator_creates_rekeys_and_deletes_all_kinds_of_sas() {
    in_namespaces(
        "an_initiator_creates_rekeys_and_deletes_all_kinds_of_sas",
        || {
            let (charon, mut host) = established(settings(), PLAIN);
            assert_eq!(charon.child_sas(), 1);
            host.order(|it, now, out| assert!(it.create_child(now, None, out)));
            host.until("a second child SA", |host| host.children() == 2);
            let first = host.child_spis()[0];
            host.outputs.clear();
            host.order(|it, now, out| assert!(it.rekey_child(now, first, out)));
            host.until("a new child SA in place of the first", |host| {
                host.outputs.contains(&Output::ChildDown(first))
            });
            assert_eq!(host.children(), 2);
            let former = host.session().spis();
            host.order(|it, now, out| assert!(it.rekey_ike(now, out)));
            host.until("a new IKE SA", |host| {
                host.session().spis() != former && host.session().local_spis().count() == 1
            });
            host.order(|it, now, out| assert!(it.probe(now, out)));
            host.settle();
            assert_eq!(charon.child_sas(), 2);
            let spi = host.child_spis()[0];
            host.order(|it, now, out| assert!(it.delete_child(now, spi, out)));
            host.until("one child SA", |host| host.children() == 1);
            assert_eq!(charon.child_sas(), 1);
            host.check_keys(&charon);
            host.order(|it, now, out| it.delete(now, out));
            host.until("the end", |host| host.closed().is_some());
            assert_eq!(host.closed(), Some(&Closed::Deleted));
            assert_eq!(charon.child_sas(), 0);
            assert_eq!(host.ignored(), Vec::<String>::new());
        },
    );
}

#[test]
fn a_responder_follows_what_the_peer_orders() {
    in_namespaces("a_responder_follows_what_the_peer_orders", || {
        let charon = Charon::start(PLAIN);
        let mut host = Host::new(settings());
        let mut initiated = charon.order(&["--initiate", "--child", "net"]);
        host.until("a child SA", |host| host.children() == 1);
        charon::finished(&mut initiated);
        let former = host.session().spis();
        charon.swanctl(&["--rekey", "--ike", "main"], &mut host);
        host.until("a new IKE SA", |host| {
            host.session().spis() != former && host.session().local_spis().count() == 1
        });
        let former = host.child_spis();
        charon.swanctl(&["--rekey", "--child", "net"], &mut host);
        host.until("a new child SA", |host| {
            host.children() == 1 && host.child_spis() != former
        });
        host.settle();
        assert_eq!(charon.child_sas(), 1);
        host.check_keys(&charon);
        charon.swanctl(&["--terminate", "--ike", "main"], &mut host);
        host.until("the end", |host| host.closed().is_some());
        assert_eq!(host.closed(), Some(&Closed::ByPeer));
        assert_eq!(host.ignored(), Vec::<String>::new());
    });
}

#[test]
fn both_ends_may_rekey_at_once() {
    in_namespaces("both_ends_may_rekey_at_once", || {
        let (charon, mut host) = established(settings(), PLAIN);
        for round in 0..6 {
            let is_ike = round % 2 == 0;
            let (kind, name) = if is_ike {
                ("--ike", "main")
            } else {
                ("--child", "net")
            };
            let mut ordered = charon.order(&["--rekey", kind, name]);
            host.pause(5 * round);
            let spi = host.child_spis()[0];
            host.order(|it, now, out| {
                let is_accepted = if is_ike {
                    it.rekey_ike(now, out)
                } else {
                    it.rekey_child(now, spi, out)
                };
                assert!(is_accepted);
            });
            host.pause(300);
            charon::finished(&mut ordered);
            host.settle();
            host.until("one SA of each kind", |host| {
                host.children() == 1 && host.session().local_spis().count() == 1
            });
            host.until("one child SA at charon", |_| charon.child_sas() == 1);
            // Both have the same one.
            let spi = host.child_spis()[0];
            assert!(
                charon.sas().contains(&format!("{spi:08x}")),
                "{}",
                charon.sas()
            );
        }
        assert_eq!(host.closed(), None);
    });
}

#[test]
fn every_suite_that_charon_has_is_negotiated() {
    in_namespaces("every_suite_that_charon_has_is_negotiated", || {
        let cbc = Cipher::AesCbc {
            key_bits: 128,
            integrity: Integrity::HmacSha256,
        };
        let suites = [
            (gcm(), Prf::HmacSha384, KeMethodKind::X25519),
            (
                Cipher::ChaCha20Poly1305,
                Prf::HmacSha256,
                KeMethodKind::P256,
            ),
            (cbc, Prf::HmacSha256, KeMethodKind::P384),
            (cbc, Prf::HmacSha512, KeMethodKind::P521),
        ];
        let charon = Charon::start(PLAIN);
        for (cipher, prf, exchange) in suites {
            let mut settings = settings();
            settings.ike = vec![IkeSuite {
                cipher,
                prf,
                exchange,
                additional: [None; ADDITIONAL_MAX],
            }];
            settings.child = vec![ChildSuite {
                cipher,
                esn: false,
                exchange: Some(exchange),
                additional: [None; ADDITIONAL_MAX],
            }];
            let mut host = Host::new(settings);
            host.initiate();
            host.until("a child SA", |host| host.children() == 1);
            let spi = host.child_spis()[0];
            host.order(|it, now, out| assert!(it.rekey_child(now, spi, out)));
            host.until("new keys", |host| {
                host.children() == 1 && host.child_spis()[0] != spi
            });
            assert_eq!(charon.child_sas(), 1);
            host.check_keys(&charon);
            host.order(|it, now, out| it.delete(now, out));
            host.until("the end", |host| host.closed().is_some());
        }
    });
}

#[test]
fn a_wrong_key_is_refused_in_both_roles() {
    in_namespaces("a_wrong_key_is_refused_in_both_roles", || {
        let charon = Charon::start(PLAIN);
        let mut settings = settings();
        settings.authentication =
            Authentication::SharedKey(Secret::new(b"another secret".to_vec()));
        let failed = NotifyType::AUTHENTICATION_FAILED;
        let mut host = Host::new(settings.clone());
        host.initiate();
        host.until("the end", |host| host.closed().is_some());
        assert_eq!(host.closed(), Some(&Closed::RefusedByPeer(failed)));
        drop(host);
        let mut host = Host::new(settings);
        let ordered = charon.order(&["--initiate", "--child", "net"]);
        host.until("the end", |host| host.closed().is_some());
        host.output_of(ordered);
        let reason = host.closed();
        assert!(
            matches!(reason, Some(Closed::Refused(kind, _)) if *kind == failed),
            "{reason:?}"
        );
        assert_eq!(charon.child_sas(), 0);
    });
}

#[test]
fn without_a_common_proposal_there_is_a_hint_and_no_sa() {
    in_namespaces(
        "without_a_common_proposal_there_is_a_hint_and_no_sa",
        || {
            let charon = Charon::start(PLAIN);
            let mut settings = settings();
            settings.ike[0].prf = Prf::HmacSha1;
            let mut host = Host::new(settings.clone());
            host.initiate();
            let hint = Output::Event(Event::Hint(NotifyType::NO_PROPOSAL_CHOSEN));
            host.until("a hint", |host| host.outputs.contains(&hint));
            assert_eq!(host.closed(), None);
            drop(host);
            // As responder it refuses, and keeps nothing.
            let mut host = Host::new(settings);
            let ordered = charon.order(&["--initiate", "--child", "net"]);
            let printed = host.output_of(ordered);
            assert!(printed.contains("NO_PROPOSAL_CHOSEN"), "{printed}");
            assert!(!host.has_session());
            drop(host);
            // An IKE SA without child SA: the proposal of the child SA does not fit.
            let mut settings = host::settings();
            settings.child[0].cipher = Cipher::AesGcm16 { key_bits: 192 };
            let mut host = Host::new(settings);
            host.initiate();
            let refused = Output::Event(Event::ChildRefused(NotifyType::NO_PROPOSAL_CHOSEN));
            host.until("a refusal", |host| host.outputs.contains(&refused));
            assert!(host.outputs.contains(&Output::Established));
        },
    );
}

fn with_ppk(key: &[u8], policy: PpkPolicy) -> Settings {
    let mut settings = settings();
    settings.ppks = vec![Ppk {
        identity: b"one".to_vec(),
        key: Secret::new(key.to_vec()),
    }];
    settings.ppk_policy = policy;
    settings
}

#[test]
fn a_ppk_is_used_in_both_roles() {
    in_namespaces("a_ppk_is_used_in_both_roles", || {
        let settings = with_ppk(charon::PPK, PpkPolicy::Required);
        let (charon, mut host) = established(settings.clone(), PPK_REQUIRED);
        assert!(!host.outputs.contains(&Output::Event(Event::NoPpk)));
        let former = host.session().spis();
        host.order(|it, now, out| assert!(it.rekey_ike(now, out)));
        host.until("a new IKE SA", |host| host.session().spis() != former);
        host.settle();
        host.order(|it, now, out| it.delete(now, out));
        host.until("the end", |host| host.closed().is_some());
        drop(host);
        let mut host = Host::new(settings);
        let mut ordered = charon.order(&["--initiate", "--child", "net"]);
        host.until("a child SA", |host| host.children() == 1);
        charon::finished(&mut ordered);
        let spi = host.child_spis()[0];
        charon.swanctl(&["--rekey", "--child", "net"], &mut host);
        host.until("new keys", |host| {
            host.children() == 1 && host.child_spis()[0] != spi
        });
        host.check_keys(&charon);
    });
}

#[test]
fn an_optional_ppk_is_left_out_and_a_required_one_refused() {
    in_namespaces(
        "an_optional_ppk_is_left_out_and_a_required_one_refused",
        || {
            let (_charon, host) = established(settings(), PPK_OPTIONAL);
            assert_eq!(host.children(), 1);
            drop(host);
            let mut host = Host::new(with_ppk(b"another key", PpkPolicy::Required));
            host.initiate();
            host.until("the end", |host| host.closed().is_some());
            let failed = NotifyType::AUTHENTICATION_FAILED;
            assert_eq!(host.closed(), Some(&Closed::RefusedByPeer(failed)));
        },
    );
}

#[test]
fn long_messages_are_fragmented() {
    in_namespaces("long_messages_are_fragmented", || {
        let settings = hybrid_settings();
        let (charon, mut host) = established(settings, "fragmentation = yes");
        assert!(host.longest <= LIMIT, "{}", host.longest);
        assert!(host.fragments[0] > 1, "{:?}", host.fragments);
        let former = host.child_spis();
        host.order(|it, now, out| assert!(it.rekey_child(now, former[0], out)));
        host.until("new keys", |host| {
            host.children() == 1 && host.child_spis() != former
        });
        charon.swanctl(&["--rekey", "--child", "net"], &mut host);
        host.settle();
        assert!(host.fragments[1] > 1, "{:?}", host.fragments);
        assert_eq!(host.outputs.iter().filter(|it| is_up(it)).count(), 3);
    });
}
