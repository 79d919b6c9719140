//! What an attacker on the path achieves by cutting connections, against the bounds that
//! `docs/security.md` states.

use crate::rollover::duo::Duo;
use crate::rollover::{ms, settings};
use keying::chain::Policy;
use keying::message::{Cause, Message};
use keying::rollover::{Allowance, Event, Input, Rollover, Settings};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Two sides with the budget and the pauses of the encryptor.
fn pair() -> Duo {
    let settings = settings(Policy::Both).map(|settings| Settings {
        every: 3600 * SECOND,
        attempt_limit: 10 * SECOND,
        retry_min: ms(100),
        retry_max: SECOND,
        provoked: Allowance::OF_TUNNEL,
        ping_every: 5 * SECOND,
        ..settings
    });
    let mut duo = Duo::new(settings);
    duo.feed(0, Input::Tick);
    duo
}

/// Ends the newest connection, as a TCP reset does.
fn reset(duo: &mut Duo) {
    duo.messages.clear();
    for side in [0, 1] {
        let (attempt, reason) = (duo.latest(side), "connection reset".to_owned());
        duo.feed(side, Input::Disconnected { attempt, reason });
    }
}

fn established(duo: &Duo) -> usize {
    let events = duo.events[0].iter();
    events
        .filter(|event| matches!(event, Event::Established { .. }))
        .count()
}

/// Delivers messages and lets time pass until a condition holds; whether it does before the end.
fn run_until(duo: &mut Duo, end: Duration, holds: impl Fn(&Duo) -> bool) -> bool {
    while duo.now < end {
        if holds(duo) {
            return true;
        }
        if !duo.deliver() {
            let wakes = duo.sides.each_ref().map(|side| side.wakes_at());
            let next = wakes.into_iter().flatten().min().expect("somebody waits");
            duo.now = duo.now.max(next);
            for side in 0..2 {
                duo.feed(side, Input::Tick);
            }
        }
    }
    false
}

#[test]
fn resets_of_an_established_channel_cost_no_keys() {
    let mut duo = pair();
    duo.run(SECOND);
    assert!(duo.agrees());
    let (end, epochs, keys) = (duo.now + 20 * SECOND, established(&duo), duo.keys);
    let mut resets = 0;
    while duo.now < end {
        reset(&mut duo);
        resets += 1;
        let before = duo.events[0].len();
        let is_back = |event: &Event| matches!(event, Event::PeerBack { .. });
        run_until(&mut duo, end, |duo| {
            duo.events[0][before..].iter().any(is_back)
        });
    }
    assert!(resets > 15, "{resets}");
    testing::attack("connections that resets cause in 20 s", resets, 24);
    assert!(duo.agrees());
    let epochs = established(&duo) - epochs;
    testing::attack(
        "epochs that resets of a standing channel cause in 20 s",
        epochs,
        0,
    );
    let keys = duo.keys - keys;
    testing::attack(
        "QKD keys that resets of a standing channel cost in 20 s",
        keys,
        0,
    );
}

#[test]
fn resets_of_every_attempt_cost_no_more_than_the_budget() {
    // At which message the attacker resets: each costs the defender most at another place.
    type Kind = fn(&Message) -> bool;
    let kinds: [Kind; 5] = [
        |message| matches!(message, Message::Accept { .. }),
        |message| matches!(message, Message::Keys { .. }),
        |message| matches!(message, Message::Ready { .. }),
        |message| matches!(message, Message::Switched { .. }),
        |message| matches!(message, Message::Done),
    ];
    let bound = |seconds: u64| 8 + seconds / 30;
    let mut most = [0, 0];
    for kind in kinds {
        for (which, seconds) in [20, 600].into_iter().enumerate() {
            let mut duo = pair();
            let end = duo.now + seconds * SECOND;
            while run_until(&mut duo, end, |duo| {
                let next = duo
                    .messages
                    .front()
                    .and_then(|(_, _, message)| message.as_ref());
                next.is_some_and(kind)
            }) {
                reset(&mut duo);
            }
            most[which] = most[which].max(duo.keys);
            // When the attacker leaves there are keys within the time for one token.
            duo.run(32 * SECOND);
            assert!(duo.agrees());
        }
    }
    testing::attack("QKD keys per tunnel in 20 s of resets", most[0], bound(20));
    testing::attack(
        "QKD keys per tunnel in 600 s of resets",
        most[1],
        bound(600),
    );
}

#[test]
fn forged_packets_and_resets_share_one_budget() {
    let mut duo = pair();
    let end = duo.now + 60 * SECOND;
    let mut round = 0;
    while duo.now < end {
        round += 1;
        duo.feed(round % 2, Input::Rekey(Cause::Desync));
        duo.run(ms(500));
        reset(&mut duo);
        duo.run(ms(500));
    }
    let epochs = established(&duo);
    testing::attack("epochs in 60 s of forged packets and resets", epochs, 10);
}

#[test]
fn an_operator_does_not_wait_for_what_an_attacker_has_used_up() {
    let mut duo = pair();
    duo.run(SECOND);
    for _ in 0..20 {
        duo.feed(0, Input::Rekey(Cause::Desync));
        duo.run(SECOND);
    }
    duo.feed(0, Input::Rekey(Cause::Desync));
    let before = established(&duo);
    for _ in 0..3 {
        duo.feed(0, Input::Rekey(Cause::Demand));
        duo.run(SECOND);
    }
    assert_eq!(established(&duo), before + 3);
}

#[test]
fn a_peer_that_restarts_often_has_keys_each_time() {
    let mut duo = pair();
    duo.run(SECOND);
    for round in 0..30 {
        assert!(duo.agrees(), "restart {round}");
        let [_, settings] = settings(Policy::Both);
        duo.sides[1] = Rollover::new(settings);
        (duo.inbound[1], duo.outbound[1]) = (Vec::new(), None);
        duo.messages.clear();
        let (attempt, reason) = (duo.latest(0), "connection reset".to_owned());
        duo.feed(0, Input::Disconnected { attempt, reason });
        duo.run(2 * SECOND);
    }
}
