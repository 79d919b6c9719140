//! Hard lifetimes: keys that end although there are no newer ones.

use crate::rollover::duo::Duo;
use crate::rollover::{ms, settings};
use keying::chain::Policy;
use keying::message::Refusal;
use keying::rollover::{Event, Input, Settings};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

/// Two sides with this hard lifetime, which have agreed on epoch 1 at once.
fn agreed(hard: Option<Duration>, valid_for: Duration) -> Duo {
    let settings = settings(Policy::Pqc).map(|settings| Settings { hard, ..settings });
    let mut duo = Duo::new(settings);
    duo.valid_until = duo.now.saturating_add(valid_for);
    duo.feed(0, Input::Tick);
    while duo.deliver() {}
    assert!(duo.agrees());
    duo
}

fn expired(duo: &Duo, side: usize) -> Vec<u32> {
    let epoch = |event: &Event| match event {
        Event::Expired { epoch } => Some(*epoch),
        _ => None,
    };
    duo.events[side].iter().filter_map(epoch).collect()
}

/// Runs without new connections until the keys must end after `time`, and checks that they do then.
fn ends_after(duo: &mut Duo, time: Duration) {
    duo.is_cut = true;
    duo.run(time - ms(1));
    assert_eq!(duo.outbound, [Some(1); 2], "not before");
    assert_eq!(duo.inbound, [[1]; 2]);
    duo.run(ms(1));
    assert_eq!(duo.outbound, [None; 2]);
    assert!(duo.inbound.iter().all(Vec::is_empty));
    for side in 0..2 {
        assert_eq!(expired(duo, side), [1]);
        assert_eq!(duo.sides[side].established(), None);
    }
}

#[test]
fn keys_end_at_the_hard_lifetime_and_not_before() {
    let mut duo = agreed(Some(10 * SECOND), Duration::MAX);
    ends_after(&mut duo, 10 * SECOND);
    duo.run(60 * SECOND);
    assert_eq!(duo.outbound, [None; 2]);
    duo.is_cut = false;
    duo.run(2 * SECOND);
    assert!(duo.agrees(), "new keys as soon as there is a path");
    assert_eq!(duo.outbound, [Some(2); 2]);
}

#[test]
fn keys_end_with_the_certificates() {
    let mut duo = agreed(Some(3600 * SECOND), 2 * SECOND);
    ends_after(&mut duo, 2 * SECOND);
    duo.valid_until = Duration::MAX;
    duo.is_cut = false;
    duo.run(2 * SECOND);
    assert!(duo.agrees());
}

#[test]
fn keys_without_a_hard_lifetime_outlive_the_certificates() {
    let mut duo = agreed(None, 2 * SECOND);
    duo.is_cut = true;
    duo.run(3600 * SECOND);
    assert_eq!(duo.outbound, [Some(1); 2]);
}

#[test]
fn rollovers_in_time_let_no_keys_expire() {
    let mut duo = agreed(Some(4 * SECOND), Duration::MAX);
    for _ in 0..200 {
        duo.run(ms(317));
        assert!(duo.agrees());
    }
    assert_eq!((expired(&duo, 0), expired(&duo, 1)), (vec![], vec![]));
}

#[test]
fn keys_that_expire_before_both_sides_have_them_are_not_used() {
    let settings = settings(Policy::Pqc).map(|settings| Settings {
        hard: Some(SECOND),
        ..settings
    });
    let mut duo = Duo::new(settings);
    duo.feed(0, Input::Tick);
    while duo.inbound[1].is_empty() {
        assert!(duo.deliver());
    }
    duo.now += ms(1500);
    duo.feed(1, Input::Tick);
    assert!(duo.inbound[1].is_empty());
    while duo.outbound[0].is_none() {
        assert!(duo.deliver());
    }
    assert!(duo.deliver(), "`Switched` arrives");
    let (refusal, by_peer, detail) = duo.failure(1).unwrap();
    assert_eq!((refusal, by_peer), (Some(Refusal::Timeout), false));
    assert!(detail.contains("expired"), "{detail}");
    assert_eq!(duo.outbound[1], None);
}
