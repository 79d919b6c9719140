//! Settings that both sides must share, and the PPKs that they mix in.

use crate::rollover::duo::Duo;
use crate::rollover::{ms, ppk, settings};
use keying::chain::Policy;
use keying::message::{Cause, LINKS_MAX, Refusal};
use keying::rollover::{Event, Input, Ppk, Rollover, Settings};
use std::sync::Arc;
use wire::Suite;
use zeroize::Zeroizing;

fn run(settings: [Settings; 2]) -> Duo {
    let mut duo = Duo::new(settings);
    duo.feed(0, Input::Tick);
    duo.run(ms(500));
    duo
}

/// Neither side has keys, and both report the same reason.
fn refused(duo: &Duo, why: Refusal, words: &[&str]) {
    assert!(!duo.agrees());
    assert_eq!(duo.outbound, [None, None]);
    assert!(duo.inbound.iter().all(Vec::is_empty));
    let of = [0, 1].map(|side| duo.failure(side).unwrap());
    assert_eq!(of[0].0, Some(why));
    assert_eq!(of[1].0, Some(why));
    assert_ne!(
        of[0].1, of[1].1,
        "one refuses, the other receives the refusal"
    );
    assert_eq!(of[0].2, of[1].2);
    for part in words {
        assert!(of[0].2.contains(part), "{part} in {}", of[0].2);
    }
}

#[test]
fn different_settings_are_refused_with_both_values() {
    type Change = fn(&mut Settings);
    let cases: [(Change, Refusal, [&str; 2]); 8] = [
        (
            |s| s.tunnel = 8,
            Refusal::Tunnel,
            ["gw1 has 7", "gw2 has 8"],
        ),
        (
            |s| s.suite = Suite::Aes128Gcm,
            Refusal::Suite,
            ["aes-256-gcm", "aes-128-gcm"],
        ),
        (|s| s.lanes = 5, Refusal::Lanes, ["gw1 has 4", "gw2 has 5"]),
        (
            |s| s.payload = "l2".to_owned(),
            Refusal::Payload,
            ["\"l3\"", "\"l2\""],
        ),
        (
            |s| s.payload = "l3 aggregate".to_owned(),
            Refusal::Payload,
            ["\"l3\"", "\"l3 aggregate\""],
        ),
        (
            |s| s.policy = Policy::Pqc,
            Refusal::Policy,
            ["\"both\"", "\"pqc\""],
        ),
        (
            |s| s.policy = Policy::Either,
            Refusal::Policy,
            ["\"both\"", "\"either\""],
        ),
        (
            |s| s.policy = Policy::Qkd,
            Refusal::Policy,
            ["\"both\"", "\"qkd\""],
        ),
    ];
    for (change, why, words) in cases {
        let mut settings = settings(Policy::Both);
        change(&mut settings[1]);
        let duo = run(settings);
        refused(&duo, why, &words);
    }
}

#[test]
fn different_policies_are_refused() {
    for one in Policy::ALL {
        for other in Policy::ALL {
            let mut settings = settings(one);
            settings[1].policy = other;
            let duo = run(settings);
            if one == other {
                assert!(duo.agrees());
            } else {
                refused(&duo, Refusal::Policy, &[one.name(), other.name()]);
            }
        }
    }
}

fn with_ppks(ppks: [Vec<Ppk>; 2]) -> [Settings; 2] {
    let mut settings = settings(Policy::Pqc);
    for (settings, ppks) in settings.iter_mut().zip(ppks) {
        settings.ppks = ppks;
    }
    settings
}

fn sources(duo: &Duo, side: usize) -> Vec<String> {
    duo.events[side]
        .iter()
        .find_map(|event| match event {
            Event::Established { sources, .. } => Some(sources.clone()),
            _ => None,
        })
        .expect("an epoch")
}

#[test]
fn shared_ppks_are_mixed_in_and_an_optional_ppk_of_one_side_is_absent() {
    let cases = [
        ([vec![], vec![]], &[][..]),
        ([vec![ppk("a", true)], vec![ppk("a", true)]], &["ppk:a"]),
        ([vec![ppk("a", false)], vec![ppk("a", true)]], &["ppk:a"]),
        ([vec![ppk("a", false)], vec![ppk("a", false)]], &["ppk:a"]),
        ([vec![ppk("a", false)], vec![]], &["-ppk:a"]),
        ([vec![], vec![ppk("a", false)]], &["-ppk:a"]),
        (
            [
                vec![ppk("c", true), ppk("b", false), ppk("a", true)],
                vec![ppk("a", true), ppk("c", false), ppk("d", false)],
            ],
            &["ppk:a", "-ppk:b", "ppk:c", "-ppk:d"],
        ),
    ];
    for (ppks, expected) in cases {
        let duo = run(with_ppks(ppks));
        assert!(duo.agrees(), "{expected:?}");
        assert_eq!(sources(&duo, 0), expected);
        assert_eq!(sources(&duo, 1), expected);
    }
}

#[test]
fn a_required_ppk_that_the_other_side_lacks_is_refused() {
    for (ppks, words) in [
        (
            [vec![ppk("a", true)], vec![]],
            "gw1 requires it, gw2 does not have it",
        ),
        (
            [vec![], vec![ppk("a", true)]],
            "gw2 requires it, gw1 does not have it",
        ),
        (
            [vec![ppk("b", false)], vec![ppk("a", true), ppk("b", false)]],
            "PPK \"a\": gw2 requires it",
        ),
    ] {
        refused(&run(with_ppks(ppks)), Refusal::Ppk, &[words]);
    }
    // More PPKs of both sides together than an epoch may mix.
    let many = |letter: char| {
        (0..LINKS_MAX)
            .map(|n| ppk(&format!("{letter}{n}"), false))
            .collect()
    };
    refused(
        &run(with_ppks([many('a'), many('b')])),
        Refusal::Ppk,
        &["16 different PPKs"],
    );
}

#[test]
fn a_ppk_with_two_values_makes_no_keys() {
    let other = Ppk {
        key: Arc::new(Zeroizing::new(vec![1; 32])),
        ..ppk("a", true)
    };
    let duo = run(with_ppks([vec![ppk("a", true)], vec![other]]));
    assert_eq!(duo.outbound, [None, None]);
    let (refusal, _, detail) = duo.failure(0).unwrap();
    assert_eq!(refusal, Some(Refusal::KeysDiffer));
    assert!(detail.contains("ppk:a"), "{detail}");
    assert_eq!(duo.failure(1).unwrap().0, Some(Refusal::KeysDiffer));
}

#[test]
#[should_panic(expected = "a valid and unique id")]
fn two_ppks_with_one_id_are_rejected() {
    let [connector, _] = with_ppks([vec![ppk("a", true), ppk("a", false)], vec![]]);
    let _ = Rollover::new(connector);
}

#[test]
fn failed_attempts_are_retried_at_growing_intervals() {
    let mut settings = settings(Policy::Pqc);
    settings[1].lanes = 5;
    let mut duo = Duo::new(settings);
    let mut attempts = Vec::new();
    let start = duo.now;
    while duo.now < start + ms(6000) {
        let before = duo.events[0].len();
        duo.feed(0, Input::Tick);
        while duo.deliver() {}
        if duo.events[0].len() > before {
            attempts.push((duo.now - start).as_millis());
        }
        duo.now = duo.sides[0].wakes_at().unwrap();
    }
    assert_eq!(
        attempts,
        [0, 50, 150, 350, 750, 1550, 2550, 3550, 4550, 5550]
    );
}

#[test]
fn after_a_channel_has_lasted_the_first_pause_is_short_again() {
    let settings = settings(Policy::Pqc).map(|settings| Settings {
        ping_every: ms(60_000),
        ..settings
    });
    let mut duo = Duo::new(settings);
    duo.feed(0, Input::Tick);
    duo.run(ms(2000));
    for round in 0..2 {
        for pause in [50, 100, 200, 400] {
            duo.feed(0, Input::Rekey(Cause::Demand));
            let attempt = duo.latest(0);
            let detail = "this is no message".to_owned();
            duo.feed(0, Input::Garbled { attempt, detail });
            assert!(duo.failure(0).is_some());
            let wakes_at = duo.sides[0].wakes_at().unwrap();
            assert_eq!(wakes_at - duo.now, ms(pause), "round {round}");
            duo.now = wakes_at;
            duo.messages.clear();
            duo.feed(0, Input::Tick);
        }
        // The old keys' grace period is over, and no new ones are due.
        duo.run(ms(2100));
        assert!(duo.agrees());
    }
}
