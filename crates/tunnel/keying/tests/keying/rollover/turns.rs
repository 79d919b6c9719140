//! Messages that are repeated, out of order or of no connection: one side refuses with a reason,
//! keeps its keys, and both continue.

use crate::rollover::duo::Duo;
use crate::rollover::{ms, settings};
use keying::chain::Policy;
use keying::message::{Cause, Confirmation, Message, Offer, Refusal, VERSION};
use keying::rollover::{Attempt, Event, Input};
use wire::Suite;
use zeroize::Zeroizing;

/// Messages of an attempt with policy `both`.
const MESSAGES: usize = 6;

pub(crate) fn offer() -> Offer {
    Offer {
        version: VERSION,
        tunnel: 7,
        suite: Suite::Aes256Gcm.name().to_owned(),
        lanes: 4,
        payload: "l3".to_owned(),
        policy: Policy::Both,
        ppks: Vec::new(),
        last_epoch: 0,
        live: Vec::new(),
        sends_in: None,
    }
}

/// One of each except `Refuse`, which is always allowed.
fn all() -> Vec<Message> {
    let confirmation = || Confirmation([9; 48]);
    vec![
        Message::Open {
            offer: offer(),
            cause: Cause::Demand,
        },
        Message::Accept {
            offer: offer(),
            epoch: 1,
        },
        Message::Keys {
            qkd: vec!["key-1".to_owned()],
        },
        Message::KeysMissing {
            reason: "none".to_owned(),
        },
        Message::Ready {
            confirmation: confirmation(),
        },
        Message::Switched {
            confirmation: confirmation(),
        },
        Message::Done,
        Message::Rekey {
            cause: Cause::Demand,
        },
        Message::Ping { number: 1 },
        Message::Pong { number: 1 },
    ]
}

/// A rollover of which this many messages are delivered.
pub(crate) fn halfway(delivered: usize) -> Duo {
    let mut duo = Duo::new(settings(Policy::Both));
    duo.feed(0, Input::Tick);
    duo.run(ms(500));
    assert!(duo.agrees());
    duo.feed(0, Input::Rekey(Cause::Demand));
    for _ in 0..delivered {
        assert!(duo.deliver());
    }
    duo
}

/// Whether a side may receive the message after this many messages of the attempt.
fn has_turn(message: &Message, side: usize, delivered: usize) -> bool {
    match (side, message) {
        (0, Message::Accept { .. }) => delivered < 2,
        (0, Message::Ready { .. } | Message::KeysMissing { .. }) => (2..4).contains(&delivered),
        (0, Message::Done) => delivered >= 4,
        (1, Message::Open { .. }) => delivered == 0,
        (1, Message::Keys { .. }) => (1..3).contains(&delivered),
        (1, Message::Switched { .. }) => (3..5).contains(&delivered),
        (1, Message::Ping { .. } | Message::Pong { .. }) => delivered >= 5,
        _ => false,
    }
}

#[test]
fn a_message_out_of_order_is_refused_and_the_old_keys_stay() {
    for delivered in 0..MESSAGES {
        for message in all() {
            for side in 0..2 {
                let mut duo = halfway(delivered);
                let attempt = duo.latest(side);
                if has_turn(&message, side, delivered) {
                    continue;
                }
                // The listener has completed when it sends `Done`: its channel is established.
                let stands = delivered == MESSAGES - 1 && side == 1;
                duo.messages.clear();
                let name = format!("{message:?} to {side} after {delivered}");
                let outbound = duo.outbound;
                let message = message.clone();
                duo.feed(side, Input::Received { attempt, message });
                let refused = |message: &Message| {
                    matches!(
                        message,
                        Message::Refuse {
                            why: Refusal::Protocol,
                            ..
                        }
                    )
                };
                let refusal = duo
                    .messages
                    .iter()
                    .any(|(_, _, sent)| sent.as_ref().is_some_and(refused));
                assert!(refusal, "{name}: {:?}", duo.messages);
                assert!(duo.closed[side].contains(&attempt), "{name}");
                if stands {
                    assert!(matches!(
                        duo.events[side].last(),
                        Some(Event::PeerLost { .. })
                    ));
                } else {
                    let (refusal, by_peer, detail) = duo.failure(side).unwrap();
                    assert_eq!(
                        (refusal, by_peer),
                        (Some(Refusal::Protocol), false),
                        "{name}"
                    );
                    assert!(detail.contains("out of order"), "{detail}");
                }
                assert_eq!(duo.outbound, outbound);
                duo.run(ms(4000));
                assert!(duo.agrees(), "{name}");
            }
        }
    }
}

#[test]
fn a_repeated_message_counts_once() {
    for delivered in 1..=MESSAGES {
        let mut duo = halfway(delivered - 1);
        let (side, attempt, message) = duo.messages.front().cloned().unwrap();
        duo.messages.push_front((side, attempt, message));
        duo.run(ms(5000));
        assert!(duo.agrees());
        for events in &duo.events {
            let mut epochs: Vec<u32> = events
                .iter()
                .filter_map(|event| match event {
                    Event::Established { epoch, .. } => Some(*epoch),
                    _ => None,
                })
                .collect();
            let count = epochs.len();
            epochs.dedup();
            assert_eq!(epochs.len(), count, "no epoch is established twice");
        }
    }
}

#[test]
fn an_invalid_message_ends_the_channel() {
    for delivered in 0..=MESSAGES {
        for side in 0..2 {
            let mut duo = halfway(delivered);
            let attempt = duo.latest(side);
            let detail = "this is no message\u{1b}[2J".to_owned();
            duo.feed(side, Input::Garbled { attempt, detail });
            assert!(duo.closed[side].contains(&attempt));
            let refusal = duo
                .messages
                .iter()
                .find_map(|(_, _, message)| match message {
                    Some(Message::Refuse {
                        why: Refusal::Protocol,
                        detail,
                    }) => Some(detail.clone()),
                    _ => None,
                });
            assert_eq!(
                refusal.unwrap(),
                "this is no message [2J",
                "no control character"
            );
            duo.run(ms(4000));
            assert!(duo.agrees());
        }
    }
}

#[test]
fn messages_of_other_connections_are_ignored() {
    for delivered in 0..=MESSAGES {
        let mut duo = halfway(delivered);
        let before = (duo.events.clone(), duo.closed.clone(), duo.messages.len());
        for side in 0..2 {
            for attempt in [Attempt(0), Attempt(99)] {
                for message in all() {
                    duo.feed(side, Input::Received { attempt, message });
                }
                duo.feed(
                    side,
                    Input::Garbled {
                        attempt,
                        detail: String::new(),
                    },
                );
                duo.feed(
                    side,
                    Input::Disconnected {
                        attempt,
                        reason: String::new(),
                    },
                );
                duo.feed(
                    side,
                    Input::Qkd {
                        attempt,
                        keys: Err(String::new()),
                    },
                );
            }
        }
        assert!(before == (duo.events.clone(), duo.closed.clone(), duo.messages.len()));
        duo.run(ms(500));
        assert!(duo.agrees());
        assert!(duo.failure(0).is_none() && duo.failure(1).is_none());
    }
}

#[test]
fn a_newer_connection_replaces_a_running_attempt() {
    let mut duo = halfway(3);
    let attempt = duo.latest(1);
    let inbound = duo.inbound[1].clone();
    assert_eq!(
        inbound,
        [1, 2],
        "the listener has installed, and waits for `Switched`"
    );
    let newer = Attempt(attempt.0 + 1);
    let exporter = Zeroizing::new([1; 48]);
    duo.feed(
        1,
        Input::Connected {
            attempt: newer,
            exporter,
            valid_for: std::time::Duration::MAX,
        },
    );
    let (refusal, by_peer, _) = duo.failure(1).unwrap();
    assert_eq!((refusal, by_peer), (Some(Refusal::Superseded), false));
    assert!(duo.closed[1].contains(&attempt));
    assert_eq!(duo.inbound[1], inbound, "the peer may seal with either");
    // An older connection is no longer wanted.
    let exporter = Zeroizing::new([1; 48]);
    let older = Attempt(0);
    duo.feed(
        1,
        Input::Connected {
            attempt: older,
            exporter,
            valid_for: std::time::Duration::MAX,
        },
    );
    assert_eq!(duo.closed[1].last(), Some(&older));
    duo.run(ms(6000));
    assert!(duo.agrees());
}

#[test]
fn a_delayed_open_costs_no_keys() {
    let mut duo = halfway(MESSAGES);
    assert_eq!(duo.outbound, [Some(2), Some(2)]);
    let late = Attempt(99);
    let exporter = Zeroizing::new([1; 48]);
    duo.feed(
        1,
        Input::Connected {
            attempt: late,
            exporter,
            valid_for: std::time::Duration::MAX,
        },
    );
    let offer = Offer {
        last_epoch: 1,
        live: vec![1],
        sends_in: Some(1),
        ..offer()
    };
    let message = Message::Open {
        offer,
        cause: Cause::Time,
    };
    duo.feed(
        1,
        Input::Received {
            attempt: late,
            message,
        },
    );
    assert!(duo.inbound[1].contains(&2), "the connector seals with it");
    assert!(duo.sides[1].established() == Some(2));
}
