//! Messages that come twice, out of turn or from nobody: one side refuses, says why, keeps its keys, and both go on.

use crate::duo::Duo;
use crate::{ms, settings};
use keying::EPOCH_MAX;
use keying::chain::Policy;
use keying::message::{Cause, Confirmation, LIVE_MAX, Message, Offer, Refusal, VERSION};
use keying::rollover::{Attempt, Event, INBOUND_MAX, Input, Output, Rollover};
use std::time::Duration;
use wire::Suite;
use zeroize::Zeroizing;

/// Messages of an attempt with policy `both`.
const MESSAGES: usize = 6;

fn offer() -> Offer {
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

/// One of each, but for `Refuse`, which always has its turn.
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

/// A rollover, of whose messages so many are delivered.
fn halfway(delivered: usize) -> Duo {
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

/// Whether a side may be told that when so many messages of the attempt were delivered.
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
fn a_message_out_of_turn_is_refused_and_the_old_keys_go_on() {
    for delivered in 0..MESSAGES {
        for message in all() {
            for side in 0..2 {
                let mut duo = halfway(delivered);
                let attempt = duo.latest(side);
                if has_turn(&message, side, delivered) {
                    continue;
                }
                // The listener is done when it says `Done`: its channel stands.
                let stands = delivered == MESSAGES - 1 && side == 1;
                duo.messages.clear();
                let name = format!("{message:?} to {side} after {delivered}");
                let outbound = duo.outbound;
                let message = message.clone();
                duo.feed(side, Input::Received { attempt, message });
                let refused = |told: &Message| {
                    matches!(
                        told,
                        Message::Refuse {
                            why: Refusal::Protocol,
                            ..
                        }
                    )
                };
                let told = duo
                    .messages
                    .iter()
                    .any(|(_, _, told)| told.as_ref().is_some_and(refused));
                assert!(told, "{name}: {:?}", duo.messages);
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
                    assert!(detail.contains("out of turn"), "{detail}");
                }
                assert_eq!(duo.outbound, outbound);
                duo.run(ms(4000));
                assert!(duo.agrees(), "{name}");
            }
        }
    }
}

#[test]
fn a_message_that_comes_twice_does_not_count_twice() {
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
fn what_is_no_message_ends_the_channel() {
    for delivered in 0..=MESSAGES {
        for side in 0..2 {
            let mut duo = halfway(delivered);
            let attempt = duo.latest(side);
            let detail = "this is no message\u{1b}[2J".to_owned();
            duo.feed(side, Input::Garbled { attempt, detail });
            assert!(duo.closed[side].contains(&attempt));
            let told = duo
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
                told.unwrap(),
                "this is no message [2J",
                "no control character"
            );
            duo.run(ms(4000));
            assert!(duo.agrees());
        }
    }
}

#[test]
fn messages_of_other_connections_are_nothing() {
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
fn a_newer_connection_takes_the_place_of_an_attempt_that_runs() {
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
        },
    );
    let (refusal, by_peer, _) = duo.failure(1).unwrap();
    assert_eq!((refusal, by_peer), (Some(Refusal::Superseded), false));
    assert!(duo.closed[1].contains(&attempt));
    assert_eq!(duo.inbound[1], inbound, "the peer may seal with either");
    // An older one is not wanted any more.
    let exporter = Zeroizing::new([1; 48]);
    let older = Attempt(0);
    duo.feed(
        1,
        Input::Connected {
            attempt: older,
            exporter,
        },
    );
    assert_eq!(duo.closed[1].last(), Some(&older));
    duo.run(ms(6000));
    assert!(duo.agrees());
}

#[test]
fn an_open_that_was_long_under_way_costs_no_keys() {
    let mut duo = halfway(MESSAGES);
    assert_eq!(duo.outbound, [Some(2), Some(2)]);
    let late = Attempt(99);
    let exporter = Zeroizing::new([1; 48]);
    duo.feed(
        1,
        Input::Connected {
            attempt: late,
            exporter,
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

/// A listener alone, and what it says to one message after the other.
struct Alone {
    listener: Rollover,
    now: Duration,
    attempts: u64,
    inbound: Vec<u32>,
}

impl Alone {
    fn new() -> Self {
        let [_, mut settings] = settings(Policy::Pqc);
        settings.ping_every = Duration::from_secs(3600);
        Self {
            listener: Rollover::new(settings),
            now: Duration::from_secs(1),
            attempts: 0,
            inbound: Vec::new(),
        }
    }

    fn feed(&mut self, input: Input) -> Vec<Message> {
        let mut out = Vec::new();
        self.listener.handle(self.now, input, &mut out);
        let mut said = Vec::new();
        for output in out {
            match output {
                Output::Send(_, message) => said.push(message),
                Output::InstallInbound(secret) => {
                    assert!(!self.inbound.contains(&secret.epoch()));
                    self.inbound.push(secret.epoch());
                }
                Output::RetireInbound(epoch) => self.inbound.retain(|live| *live != epoch),
                _ => {}
            }
        }
        said
    }

    /// An attempt that comes as far as `Ready`: its epoch.
    fn attempt(&mut self, offer: Offer) -> Result<u32, (Refusal, String)> {
        self.attempts += 1;
        let attempt = Attempt(self.attempts);
        let exporter = Zeroizing::new([self.attempts as u8; 48]);
        self.feed(Input::Connected { attempt, exporter });
        let message = Message::Open {
            offer,
            cause: Cause::Demand,
        };
        let epoch = match &self.feed(Input::Received { attempt, message })[..] {
            [Message::Accept { epoch, .. }] => *epoch,
            [Message::Refuse { why, detail }] => return Err((*why, detail.clone())),
            other => panic!("{other:?}"),
        };
        let message = Message::Keys { qkd: Vec::new() };
        let said = self.feed(Input::Received { attempt, message });
        assert!(matches!(said[..], [Message::Ready { .. }]), "{said:?}");
        Ok(epoch)
    }
}

fn pqc(last_epoch: u32, live: Vec<u32>, sends_in: Option<u32>) -> Offer {
    Offer {
        policy: Policy::Pqc,
        last_epoch,
        live,
        sends_in,
        ..offer()
    }
}

#[test]
fn a_peer_that_never_comes_to_an_end_fills_no_memory() {
    let mut alone = Alone::new();
    let mut sends_in = None;
    for round in 0..500 {
        let epoch = alone.attempt(pqc(0, Vec::new(), sends_in)).unwrap();
        assert!(alone.inbound.contains(&epoch));
        assert!(alone.inbound.len() <= INBOUND_MAX);
        // Now it says that it seals with the newest, now that it does not.
        if round % 3 != 0 {
            sends_in = Some(epoch);
        }
        assert!(sends_in.is_none_or(|epoch| alone.inbound.contains(&epoch)));
    }
    alone.now += Duration::from_secs(2);
    alone.feed(Input::Tick);
    assert!(alone.inbound.len() <= 2, "{:?}", alone.inbound);
}

#[test]
fn what_a_peer_says_of_its_epochs_is_checked() {
    let mut alone = Alone::new();
    for offer in [
        pqc(EPOCH_MAX + 1, Vec::new(), None),
        pqc(u32::MAX, Vec::new(), None),
        pqc(0, vec![0], None),
        pqc(0, vec![EPOCH_MAX + 1], None),
        pqc(0, (1..=LIVE_MAX as u32 + 1).collect(), None),
        pqc(0, Vec::new(), Some(0)),
        pqc(0, Vec::new(), Some(u32::MAX)),
    ] {
        let (why, _) = alone.attempt(offer).unwrap_err();
        assert_eq!(why, Refusal::Protocol);
        assert!(alone.inbound.is_empty());
    }
    // As long a list as there may be, and all in the way.
    let half = LIVE_MAX as u32 / 2;
    let live: Vec<u32> = (EPOCH_MAX - half + 1..=EPOCH_MAX).chain(1..=half).collect();
    assert_eq!(live.len(), LIVE_MAX);
    assert_eq!(
        alone.attempt(pqc(EPOCH_MAX - half, live, None)),
        Ok(half + 1)
    );
}

#[test]
fn an_epoch_that_is_not_the_next_is_refused() {
    for epoch in [0, 1, 3, EPOCH_MAX, EPOCH_MAX + 1] {
        let mut duo = halfway(1);
        let Some((0, attempt, Some(Message::Accept { offer, epoch: 2 }))) =
            duo.messages.pop_front()
        else {
            panic!("the listener chooses epoch 2");
        };
        duo.feed(
            0,
            Input::Received {
                attempt,
                message: Message::Accept { offer, epoch },
            },
        );
        let (refusal, by_peer, _) = duo.failure(0).unwrap();
        assert_eq!((refusal, by_peer), (Some(Refusal::Protocol), false));
        duo.run(ms(3000));
        assert!(duo.agrees());
    }
}

#[test]
fn a_wrong_confirmation_of_either_side_is_told_to_both() {
    for (delivered, side) in [(3, 0), (4, 1)] {
        let mut duo = halfway(delivered);
        let Some((to, attempt, Some(message))) = duo.messages.pop_front() else {
            panic!("a confirmation is under way");
        };
        assert_eq!(to, side);
        let confirmation = Confirmation([0; 48]);
        let message = match message {
            Message::Ready { .. } => Message::Ready { confirmation },
            Message::Switched { .. } => Message::Switched { confirmation },
            other => panic!("{other:?}"),
        };
        duo.feed(side, Input::Received { attempt, message });
        while duo.deliver() {}
        for of in 0..2 {
            let (refusal, by_peer, detail) = duo.failure(of).unwrap();
            assert_eq!((refusal, by_peer), (Some(Refusal::KeysDiffer), of != side));
            assert!(detail.contains("different keys of epoch 2"), "{detail}");
        }
        assert_eq!(
            duo.outbound[1],
            Some(1),
            "the listener goes on with the old keys"
        );
        duo.run(ms(3000));
        assert!(duo.agrees());
    }
}

#[test]
fn confirmations_of_one_side_are_not_those_of_the_other() {
    // Whoever sends back what it was shown proves nothing.
    let mut duo = halfway(4);
    let Some((1, attempt, Some(Message::Switched { .. }))) = duo.messages.pop_front() else {
        panic!("`Switched` is under way");
    };
    let mut before = halfway(3);
    let Some((0, _, Some(Message::Ready { confirmation }))) = before.messages.pop_front() else {
        panic!("`Ready` is under way");
    };
    duo.feed(
        1,
        Input::Received {
            attempt,
            message: Message::Switched { confirmation },
        },
    );
    assert_eq!(duo.failure(1).unwrap().0, Some(Refusal::KeysDiffer));
}
