//! Key agreement, rekeying, and key agreement after a restart.

use crate::support::{Gateway, Pair, listener, ppk, settings, tunnel};
use keying::message::Cause;
use keying::rollover::{Event, Role};
use std::net::TcpListener;
use std::time::{Duration, Instant};

/// Time limit for new keys after a restart of either side.
const RESTART_LIMIT: Duration = Duration::from_secs(2);

#[test]
fn both_sides_agree_on_the_same_keys() {
    let pair = Pair::start();
    let epoch = pair.connector.established(1);
    assert_eq!(pair.listener.established(1), epoch);
    pair.assert_same_keys(epoch);
    for gateway in [&pair.connector, &pair.listener] {
        gateway.log.with(|state| {
            let Some((
                0,
                Event::Established {
                    cause,
                    sources,
                    handshake,
                    ..
                },
            )) = state.events.last()
            else {
                panic!("the only event: {:?}", state.events);
            };
            assert_eq!((cause, sources.len(), *handshake), (&Cause::Start, 0, true));
            assert!(state.refused.is_empty(), "{:?}", state.refused);
        });
    }
}

#[test]
fn keys_are_changed_fifty_times_at_either_sides_request() {
    const ROUNDS: usize = 50;
    let pair = Pair::start();
    let mut before = pair.connector.established(1);
    pair.listener.established(1);
    pair.assert_same_keys(before);
    for round in 2..=ROUNDS + 1 {
        let asking = if round % 2 == 0 {
            &pair.connector
        } else {
            &pair.listener
        };
        asking.handle().rekey(Some(0), Cause::Demand);
        let epoch = pair.connector.established(round);
        assert_eq!(pair.listener.established(round), epoch);
        assert!(epoch > before, "{epoch} after {before}");
        pair.assert_same_keys(epoch);
        before = epoch;
    }
    for gateway in [&pair.connector, &pair.listener] {
        // Old keys are retired.
        gateway.log.wait("one epoch", |state| {
            (state.rings[0].inbound_epochs().collect::<Vec<_>>() == [before]).then_some(())
        });
        gateway.log.with(|state| {
            let failed = |event: &Event| !matches!(event, Event::Established { .. });
            let failed: Vec<_> = state.events.iter().filter(|(_, e)| failed(e)).collect();
            assert!(failed.is_empty(), "{failed:?}");
        });
    }
}

#[test]
fn both_sides_may_request_keys_simultaneously() {
    let pair = Pair::start();
    pair.connector.established(1);
    pair.listener.established(1);
    for round in 1..=10 {
        pair.connector.handle().rekey(None, Cause::Demand);
        pair.listener.handle().rekey(None, Cause::Demand);
        pair.connector.established(1 + round);
        pair.listener.established(1 + round);
    }
    // The two requests may have been merged or not; both sides must end in the same epoch.
    let last = |gateway: &Gateway| gateway.log.with(|state| state.rings[0].outbound_epoch());
    pair.connector.log.wait("the same epoch", |state| {
        (state.rings[0].outbound_epoch() == last(&pair.listener)).then_some(())
    });
}

#[test]
fn pre_shared_keys_are_mixed_in_and_reported() {
    let keys = || vec![ppk("alpha", 1, true), ppk("beta", 2, false)];
    let pair = Pair::with(
        |settings| settings.ppks = keys(),
        |settings| settings.ppks = keys(),
    );
    let epoch = pair.connector.established(1);
    pair.assert_same_keys(epoch);
    pair.listener.established(1);
    for gateway in [&pair.connector, &pair.listener] {
        gateway.log.with(|state| {
            let Some((_, Event::Established { sources, .. })) = state.events.last() else {
                panic!("{:?}", state.events);
            };
            assert_eq!(sources, &["ppk:alpha", "ppk:beta"]);
        });
    }
}

#[test]
fn a_listener_that_restarts_has_new_keys_soon() {
    let Pair {
        site,
        connector,
        listener,
        address,
    } = Pair::start();
    let first = connector.established(1);
    listener.established(1);
    drop(listener);
    let began = Instant::now();
    let bound = TcpListener::bind(address).expect("the same port");
    let listens = settings(Role::Listener, "gw2", "gw1", 0);
    let restarted = Gateway::start(site.identity("gw2"), bound, vec![tunnel(listens, address)]);
    let second = restarted.established(1);
    assert_eq!(connector.established(2), second);
    assert!(began.elapsed() < RESTART_LIMIT, "{:?}", began.elapsed());
    assert_ne!(first, second, "a number is not used again while it lives");
    let pair = Pair {
        site,
        connector,
        listener: restarted,
        address,
    };
    pair.assert_same_keys(second);
}

#[test]
fn a_connector_that_restarts_has_new_keys_soon() {
    let Pair {
        site,
        connector,
        listener: listening,
        address,
    } = Pair::start();
    let first = connector.established(1);
    listening.established(1);
    drop(connector);
    let began = Instant::now();
    let connects = settings(Role::Connector, "gw1", "gw2", 0);
    let restarted = Gateway::start(
        site.identity("gw1"),
        listener().0,
        vec![tunnel(connects, address)],
    );
    let second = restarted.established(1);
    assert_eq!(listening.established(2), second);
    assert!(began.elapsed() < RESTART_LIMIT, "{:?}", began.elapsed());
    assert_ne!(first, second, "a number is not used again while it lives");
    let pair = Pair {
        site,
        connector: restarted,
        listener: listening,
        address,
    };
    pair.assert_same_keys(second);
}

#[test]
fn a_lost_peer_is_detected_at_once() {
    let Pair {
        connector,
        listener,
        ..
    } = Pair::start();
    connector.established(1);
    listener.established(1);
    drop(listener);
    connector.log.wait("the peer's loss", |state| {
        let lost = |(_, event): &(usize, Event)| matches!(event, Event::PeerLost { .. });
        state.events.iter().any(lost).then_some(())
    });
    connector.says("nobody listens there");
}
