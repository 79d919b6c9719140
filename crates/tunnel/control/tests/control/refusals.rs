//! Pairs of gateways that must not agree on keys: both sides report the reason, and there are no
//! keys.

use crate::support::{Gateway, Pair, Site, listener, ppk, settings, tunnel};
use control::Identity;
use keying::chain::Policy;
use keying::message::{Cause, Refusal};
use keying::rollover::{Role, Settings};
use pki::{Authority, days_from_now};
use std::fs;
use std::time::{Duration, SystemTime};
use wire::Suite;

type Change = fn(&mut Settings);

#[test]
fn different_settings_are_reported_on_both_sides() {
    let cases: [(Refusal, Change, Change); 6] = [
        (
            Refusal::Suite,
            |_| {},
            |other| {
                other.suite = Suite::ChaCha20Poly1305;
            },
        ),
        (Refusal::Lanes, |_| {}, |other| other.lanes = 3),
        (
            Refusal::Payload,
            |_| {},
            |other| {
                other.payload = "l2".to_owned();
            },
        ),
        (
            Refusal::Ppk,
            |one| one.ppks = vec![ppk("alpha", 1, true)],
            |_| {},
        ),
        (
            Refusal::Ppk,
            |_| {},
            |other| {
                other.ppks = vec![ppk("alpha", 1, true)];
            },
        ),
        (
            Refusal::KeysDiffer,
            |one| one.ppks = vec![ppk("alpha", 1, true)],
            |other| other.ppks = vec![ppk("alpha", 2, true)],
        ),
    ];
    for (refusal, of_connector, of_listener) in cases {
        let pair = Pair::with(of_connector, of_listener);
        let (by_listener, one) = pair.connector.fails(refusal);
        let (by_connector, other) = pair.listener.fails(refusal);
        assert!(by_listener || by_connector, "{refusal:?}: {one} | {other}");
        assert_no_keys(&[&pair.connector, &pair.listener]);
    }
}

#[test]
fn a_policy_that_needs_qkd_does_not_start_without_a_kme() {
    let site = Site::new();
    let (bound, address) = listener();
    let mut listens = settings(Role::Listener, "gw2", "gw1", 0);
    listens.policy = Policy::Both;
    let setup = control::Setup {
        identity: site.identity("gw2"),
        qkd: None,
        tunnels: vec![tunnel(listens, address)],
    };
    let error = control::start(setup, bound, NoLanes)
        .err()
        .expect("refused");
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    assert!(error.to_string().contains("needs QKD"), "{error}");
}

#[test]
fn each_side_refuses_a_certificate_of_another_authority() {
    let (ours, theirs) = (Site::new(), Site::new());
    let (connector, listener) = meet(ours.identity("gw1"), theirs.identity("gw2"));
    connector
        .says("the peer's certificate: it is not signed by the authority that this side trusts");
    listener.says("the peer refuses our certificate");
    assert_no_keys(&[&connector, &listener]);
}

#[test]
fn a_listener_refuses_a_certificate_of_another_authority() {
    let (ours, theirs) = (Site::new(), Site::new());
    // gw1 trusts both authorities, gw2 only its own.
    let both = [ours.authority.certificate(), theirs.authority.certificate()].concat();
    fs::write(ours.path("ca.pem"), both).expect("a file");
    let (connector, listener) = meet(ours.identity("gw1"), theirs.identity("gw2"));
    listener
        .says("the peer's certificate: it is not signed by the authority that this side trusts");
    connector.says("the peer refuses our certificate: it is not signed by the authority");
    assert_no_keys(&[&connector, &listener]);
}

#[test]
fn an_expired_certificate_gets_no_more_keys() {
    for (expiring, lasting) in [("gw1", "gw2"), ("gw2", "gw1")] {
        let site = Site::new();
        let now = SystemTime::now();
        let soon = now - Duration::from_secs(60)..now + Duration::from_secs(3);
        let texts = site.authority.issue(expiring, soon).expect("a certificate");
        let expires = site.identity_of(expiring, &texts);
        let lasts = site.identity(lasting);
        let (gw1, gw2) = match expiring {
            "gw1" => (expires, lasts),
            _ => (lasts, expires),
        };
        let (connector, listener) = meet(gw1, gw2);
        let (own, peer) = match expiring {
            "gw1" => (&connector, &listener),
            _ => (&listener, &connector),
        };
        // Requests keys until the certificate expires.
        let says = |gateway: &Gateway, words: &str| {
            gateway.log.wait(words, |state| {
                connector.handle().rekey(Some(0), Cause::Demand);
                let refused = state.refused.iter().any(|reason| reason.contains(words));
                let failed = format!("{:?}", state.events).contains(words);
                (refused || failed).then_some(())
            });
        };
        says(peer, "the peer's certificate: it expired");
        says(own, "the peer refuses our certificate: it expired");
    }
}

#[test]
fn a_certificate_of_another_name_is_refused() {
    let site = Site::new();
    // The listener has another name than the connector expects.
    let (connector, listener) = meet(site.identity("gw1"), site.identity("gw3"));
    connector.says("it is not that of gw2, but of gw3");
    listener.says("the peer refuses our certificate");
    assert_no_keys(&[&connector, &listener]);
    // The connector has another name than the listener expects.
    let (connector, listener) = meet(site.identity("gw9"), site.identity("gw2"));
    let (by_peer, detail) = connector.fails(Refusal::Tunnel);
    assert!(by_peer && detail.contains("not with gw9"), "{detail}");
    listener.says("gw9: tunnel 0 is not with gw9");
    assert_no_keys(&[&connector, &listener]);
}

#[test]
fn a_tunnel_unknown_to_the_listener_is_refused() {
    let pair = Pair::with(|connects| connects.tunnel = 7, |_| {});
    let (by_peer, detail) = pair.connector.fails(Refusal::Tunnel);
    assert!(by_peer && detail.contains("no tunnel 7"), "{detail}");
    pair.listener.says("gw1: no tunnel 7");
}

#[test]
fn an_identity_that_contradicts_the_tunnels_does_not_start() {
    let site = Site::new();
    let start = |change: Change| {
        let (bound, address) = listener();
        let mut one = settings(Role::Connector, "gw1", "gw2", 0);
        change(&mut one);
        let setup = control::Setup {
            identity: site.identity("gw1"),
            qkd: None,
            tunnels: vec![
                tunnel(settings(Role::Connector, "gw1", "gw2", 1), address),
                tunnel(one, address),
            ],
        };
        control::start(setup, bound, NoLanes).map(drop)
    };
    start(|_| {}).expect("the configuration is valid");
    let cases: [(Change, &str); 4] = [
        (|one| one.own_name = "gw5".to_owned(), "that of gw1"),
        (|one| one.peer_name = "gw1".to_owned(), "the same name"),
        (|one| one.peer_name = "GW2".to_owned(), "small letters"),
        (|one| one.tunnel = 1, "twice"),
    ];
    for (change, words) in cases {
        let error = start(change).expect_err(words);
        assert!(error.to_string().contains(words), "{error}");
    }
}

/// The first connects and expects gw2, the second listens and expects gw1, whatever their own names
/// are.
fn meet(connects: Identity, listens: Identity) -> (Gateway, Gateway) {
    let (bound, address) = listener();
    let (unused, from) = listener();
    let of_listener = settings(Role::Listener, listens.name(), "gw1", 0);
    let of_connector = settings(Role::Connector, connects.name(), "gw2", 0);
    let listener = Gateway::start(listens, bound, vec![tunnel(of_listener, from)]);
    let connector = Gateway::start(connects, unused, vec![tunnel(of_connector, address)]);
    (connector, listener)
}

fn assert_no_keys(gateways: &[&Gateway]) {
    for gateway in gateways {
        gateway.log.with(|state| {
            assert_eq!(state.rings[0].outbound_epoch(), None);
            assert!(state.epochs(0).is_empty());
        });
    }
}

/// Lanes that ignore all events.
struct NoLanes;

impl control::Lanes for NoLanes {
    fn install_inbound(&mut self, _: usize, _: &std::sync::Arc<keying::chain::EpochSecret>) {}
    fn switch_outbound(&mut self, _: usize, _: &std::sync::Arc<keying::chain::EpochSecret>) {}
    fn retire_inbound(&mut self, _: usize, _: u32) {}
    fn expire_outbound(&mut self, _: usize, _: u32) {}
    fn event(&mut self, _: usize, _: &keying::rollover::Event) {}
}

/// Certificates of an authority that differs from another only in its key.
#[test]
fn authorities_have_distinct_names() {
    let texts = |authority: &Authority| authority.issue("gw1", days_from_now(1));
    let (one, other) = (Site::new(), Site::new());
    let stranger = texts(&other.authority).expect("a certificate");
    let [certificate, key] = one.write("stranger", &stranger);
    let error = Identity::load(&certificate, &key, &one.path("ca.pem")).expect_err("foreign");
    assert!(error.to_string().contains("has not signed it"), "{error}");
}
