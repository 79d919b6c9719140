//! Runs with one fault or none: the result, and when it is reached.

use crate::rollover::model::count_from;
use crate::rollover::world::{Faults, World};
use crate::rollover::{ms, settings};
use keying::EPOCH_MAX;
use keying::chain::Policy;
use keying::message::{Cause, Message, Refusal};
use keying::rollover::Event;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

fn up(policy: Policy) -> World {
    let mut world = World::new(1, settings(policy));
    let end = world.now + SECOND;
    assert!(world.run_until(end, World::agrees), "keys within a second");
    world.run(ms(200));
    world
}

/// The epochs of a side, in order.
fn epochs(world: &World, side: usize) -> Vec<u32> {
    let epoch = |(_, of, event): &(Duration, usize, Event)| match event {
        Event::Established { epoch, .. } if *of == side => Some(*epoch),
        _ => None,
    };
    world.events.iter().filter_map(epoch).collect()
}

fn causes(world: &World, side: usize) -> Vec<Cause> {
    let cause = |(_, of, event): &(Duration, usize, Event)| match event {
        Event::Established { cause, .. } if *of == side => Some(*cause),
        _ => None,
    };
    world.events.iter().filter_map(cause).collect()
}

/// Whether a side failed for this reason, and who refused.
fn failed(world: &World, side: usize, why: Refusal, peer: bool) -> bool {
    world.events.iter().any(|(_, of, event)| {
        matches!(event, Event::Failed { refusal, by_peer, .. }
            if *of == side && *refusal == Some(why) && *by_peer == peer)
    })
}

fn failures(world: &World) -> usize {
    let failed = |event: &&(Duration, usize, Event)| !matches!(event.2, Event::Established { .. });
    world.events.iter().filter(failed).count()
}

#[test]
fn the_time_limit_creates_one_new_epoch_for_both_sides() {
    let mut world = up(Policy::Pqc);
    let asked = Rc::new(Cell::new(false));
    let notes = Rc::clone(&asked);
    world.hook = Some(Box::new(move |_, message| {
        notes.set(notes.get() || matches!(message, Message::Rekey { .. }));
        false
    }));
    world.run(30 * SECOND);
    let count = epochs(&world, 0).len() as u32;
    assert!(
        (10..=11).contains(&count),
        "every 3 s plus the attempt's duration"
    );
    for side in 0..2 {
        assert_eq!(epochs(&world, side), (1..=count).collect::<Vec<_>>());
        assert_eq!(causes(&world, side)[0], Cause::Start);
        assert!(
            causes(&world, side)[1..]
                .iter()
                .all(|cause| *cause == Cause::Time)
        );
    }
    assert_eq!(failures(&world), 0);
    assert!(world.law.inbound_most <= 2);
    assert!(!asked.get(), "the connector's time comes first");
    // The last may be due for replacement.
    assert!((1..=2).contains(&world.open_ends(0)) && (1..=2).contains(&world.open_ends(1)));
}

#[test]
fn simultaneous_rekeys_of_both_sides_create_one_epoch() {
    for sides in [&[0, 1][..], &[1, 0], &[0], &[1], &[1, 1], &[0, 0, 1]] {
        let mut world = up(Policy::Pqc);
        for side in sides {
            world.rekey(*side, Cause::Demand);
        }
        world.run(SECOND);
        assert_eq!(epochs(&world, 0), [1, 2]);
        assert_eq!(epochs(&world, 1), [1, 2]);
        assert_eq!(causes(&world, 0)[1], Cause::Demand);
        assert_eq!(causes(&world, 1)[1], Cause::Demand);
        assert_eq!(failures(&world), 0);
    }
}

#[test]
fn a_rekey_at_any_time_of_an_attempt_ends_in_that_epoch_or_the_next() {
    for side in 0..2 {
        for after in (0..400).step_by(5) {
            let mut world = up(Policy::Both);
            world.rekey(0, Cause::Demand);
            world.run(ms(after));
            let running = world.established(0) == 1;
            // Keys that are already derived may be the cause.
            let made = world.gateways[side].live().contains_key(&2);
            world.rekey(side, Cause::Desync);
            world.run(SECOND);
            assert!(world.agrees());
            let last = world.established(0);
            assert!(
                last == 3 || (last == 2 && running && !made),
                "{last} after {after} ms"
            );
            assert_eq!(failures(&world), 0);
        }
    }
}

#[test]
fn the_loss_of_any_message_is_recovered() {
    type Kind = fn(&Message) -> bool;
    let kinds: [(&str, Kind); 6] = [
        ("open", |message| matches!(message, Message::Open { .. })),
        ("accept", |message| {
            matches!(message, Message::Accept { .. })
        }),
        ("keys", |message| matches!(message, Message::Keys { .. })),
        ("ready", |message| matches!(message, Message::Ready { .. })),
        ("switched", |message| {
            matches!(message, Message::Switched { .. })
        }),
        ("done", |message| matches!(message, Message::Done)),
    ];
    for policy in Policy::ALL {
        for (name, kind) in kinds {
            // At the start, in a rollover; once, three times in a row.
            for (nth, times) in [(0, 1), (1, 1), (1, 3)] {
                let mut world = World::new(3, settings(policy));
                let seen = Rc::new(Cell::new(0));
                let counter = Rc::clone(&seen);
                world.hook = Some(Box::new(move |_, message| {
                    let Some(at) = kind(message).then(|| counter.replace(counter.get() + 1)) else {
                        return false;
                    };
                    (nth..nth + times).contains(&at)
                }));
                world.run(SECOND);
                let before = world.established(0);
                world.rekey(1, Cause::Demand);
                world.rekey(0, Cause::Demand);
                let end = world.now + 12 * SECOND;
                let fine = |world: &World| {
                    seen.get() >= nth + times && world.agrees() && world.established(0) > before
                };
                assert!(
                    world.run_until(end, fine),
                    "{policy}: lost {name}, {nth}th on"
                );
                assert!(
                    world
                        .events
                        .iter()
                        .any(|(.., event)| matches!(event, Event::Failed { .. }))
                );
                assert!(world.law.inbound_most <= 4);
            }
        }
    }
}

#[test]
fn a_lost_request_is_repeated() {
    let mut world = up(Policy::Pqc);
    let mut lost = false;
    world.hook = Some(Box::new(move |_, message| {
        matches!(message, Message::Rekey { .. }) && !std::mem::replace(&mut lost, true)
    }));
    world.rekey(1, Cause::Bytes);
    world.run(ms(2600));
    assert_eq!(causes(&world, 1), [Cause::Start, Cause::Bytes]);
}

#[test]
fn after_a_restart_of_either_side_there_are_keys_again_within_two_seconds() {
    for side in 0..2 {
        for down in [0, 30, 200, 700, 3000] {
            // The peer learns of the connections' ends when a process dies, but not when a machine
            // dies.
            for reported in [true, false] {
                let mut world = up(Policy::Both);
                let before = world.established(1 - side);
                world.restart(side, ms(down), reported);
                world.run(ms(down));
                let back = world.now;
                let end = back + 2 * SECOND;
                let fine = |world: &World| world.agrees() && world.established(0) > before;
                assert!(
                    world.run_until(end, fine),
                    "gateway {side}, {down} ms, reported: {reported}"
                );
                let lost =
                    |event: &(Duration, usize, Event)| matches!(event.2, Event::PeerLost { .. });
                assert!(
                    world
                        .events
                        .iter()
                        .any(|event| event.1 != side && lost(event))
                );
                // The side that was not restarted retires the old keys.
                world.run(ms(1100));
                assert_eq!(world.gateways[1 - side].live().len(), 1);
            }
        }
    }
}

#[test]
fn a_silent_peer_is_abandoned_and_found_again() {
    let mut world = up(Policy::Pqc);
    let epoch = world.established(0);
    world.hook = Some(Box::new(|_, _| true));
    world.faults.swallowed = 1000;
    world.run(ms(2100));
    let lost = |side| {
        let lost = |(at, of, event): &(Duration, usize, Event)| {
            *of == side && matches!(event, Event::PeerLost { .. }) && world.now - *at < ms(1200)
        };
        world.events.iter().any(lost)
    };
    assert!(lost(0) && lost(1), "{:?}", world.events);
    // Packets may still arrive.
    assert!(world.agrees() && world.established(0) == epoch);
    world.hook = None;
    world.faults.swallowed = 0;
    let end = world.now + 4 * SECOND;
    assert!(world.run_until(end, |world| world.agrees() && world.established(0) > epoch));
}

#[test]
fn different_keys_are_reported_on_both_sides_and_never_used() {
    for policy in [Policy::Qkd, Policy::Both, Policy::Either] {
        let mut world = up(policy);
        let sends_in = world.gateways[0].sends_in();
        world.faults.kme_wrong = 1000;
        world.rekey(1, Cause::Demand);
        world.run(5 * SECOND);
        assert!(failed(&world, 0, Refusal::KeysDiffer, false));
        assert!(failed(&world, 1, Refusal::KeysDiffer, true));
        assert_eq!(
            world.gateways[0].sends_in(),
            sends_in,
            "the old epoch stays in use"
        );
        assert!(world.agrees());
        assert!(world.law.inbound_most <= 3);
        let opened = world.law.packets_opened;
        world.run(SECOND);
        assert!(
            world.law.packets_opened >= opened + 300,
            "packets of both sides"
        );
        world.faults.kme_wrong = 0;
        let end = world.now + 2 * SECOND;
        assert!(world.run_until(end, |world| world.agrees()
            && world.gateways[0].sends_in() != sends_in));
    }
}

#[test]
fn a_policy_that_requires_qkd_has_no_keys_without() {
    for policy in [Policy::Qkd, Policy::Both] {
        // The connector's KME, then the listener's, which delivers keys by their IDs.
        for side in 0..2 {
            let mut world = World::new(5, settings(policy));
            world.kme_down[side] = true;
            world.run(10 * SECOND);
            assert!(epochs(&world, 0).is_empty() && epochs(&world, 1).is_empty());
            assert!(failed(&world, side, Refusal::Qkd, false));
            assert!(failed(&world, 1 - side, Refusal::Qkd, true));
            assert_eq!(
                world.gateways.each_ref().map(|gateway| gateway.sends_in()),
                [None, None]
            );
            world.kme_down[side] = false;
            let end = world.now + 2 * SECOND;
            assert!(
                world.run_until(end, World::agrees),
                "it comes up when the KME does"
            );
        }
    }
}

#[test]
fn policy_either_proceeds_without_qkd_and_reports_it() {
    let silent = Faults {
        kme_silent: 1000,
        ..Faults::default()
    };
    for (down, faults) in [
        ([true, false], Faults::default()),
        ([false, true], Faults::default()),
        ([true, true], Faults::default()),
        ([false, false], silent),
    ] {
        let mut world = World::new(5, settings(Policy::Either));
        world.kme_down = down;
        world.faults = faults;
        let end = world.now + 2 * SECOND;
        assert!(world.run_until(end, World::agrees), "{down:?}");
        for side in 0..2 {
            let without = |(_, of, event): &&(Duration, usize, Event)| {
                *of == side && matches!(event, Event::WithoutQkd { .. })
            };
            assert_eq!(world.events.iter().filter(without).count(), 1);
            let sources = world.events.iter().find_map(|(_, of, event)| match event {
                Event::Established {
                    sources, handshake, ..
                } if *of == side => {
                    assert!(handshake);
                    Some(sources.clone())
                }
                _ => None,
            });
            assert_eq!(sources.unwrap(), ["-qkd:none"]);
        }
        // The next epoch has them again.
        world.kme_down = [false; 2];
        world.faults = Faults::default();
        world.rekey(0, Cause::Demand);
        world.run(SECOND);
        let Some((_, _, Event::Established { sources, .. })) = world.events.last() else {
            panic!("{:?}", world.events);
        };
        assert!(sources[0].starts_with("qkd:"));
    }
}

#[test]
fn a_qkd_key_delivered_twice_is_mixed_in_once() {
    let mut world = up(Policy::Both);
    world.faults.kme_repeats = 1000;
    world.rekey(0, Cause::Demand);
    world.run(SECOND);
    assert!(failed(&world, 0, Refusal::Qkd, false));
    assert_eq!(world.established(0), 1);
    world.faults.kme_repeats = 0;
    world.run(2 * SECOND);
    assert!(world.agrees() && world.established(0) == 2);
}

#[test]
fn policy_pqc_asks_no_kme() {
    let mut world = World::new(5, settings(Policy::Pqc));
    world.faults.kme_fails = 1000;
    world.run(5 * SECOND);
    assert!(world.agrees());
    assert!(!world.faults_done.contains_key("kme fails"));
}

#[test]
fn epoch_numbers_wrap_after_the_last() {
    let mut world = World::new(11, settings(Policy::Pqc));
    count_from(&mut world, EPOCH_MAX - 3);
    world.run(SECOND);
    for _ in 0..4 {
        world.rekey(1, Cause::Demand);
        world.run(ms(600));
    }
    let expected = [EPOCH_MAX - 1, EPOCH_MAX, 1, 2, 3];
    assert_eq!(epochs(&world, 0), expected);
    assert_eq!(epochs(&world, 1), expected);
    // A restarted gateway continues the numbering.
    world.restart(0, Duration::ZERO, true);
    world.run(SECOND);
    assert!(world.agrees() && world.established(0) == 4);
}
