//! An authenticated peer that violates the protocol: the refusals, and the bounded cost.

use crate::rollover::duo::Duo;
use crate::rollover::turns::{halfway, offer};
use crate::rollover::{ms, ppk, settings};
use keying::EPOCH_MAX;
use keying::chain::{Kind, Link, Policy};
use keying::message::{Cause, Confirmation, LIVE_MAX, Message, Offer, OfferedPpk, Refusal};
use keying::rollover::{Attempt, INBOUND_MAX, Input, Output, Rollover, Settings};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// A listener alone, and its responses to messages.
struct Alone {
    listener: Rollover,
    now: Duration,
    attempts: u64,
    inbound: Vec<u32>,
}

impl Alone {
    fn new(policy: Policy) -> Self {
        let [_, settings] = settings(policy);
        Self::with(settings)
    }

    fn with(mut settings: Settings) -> Self {
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

    /// A new connection, and its `Open`: the epoch that the listener chooses.
    fn open(&mut self, offer: Offer) -> Result<u32, (Refusal, String)> {
        self.attempts += 1;
        let attempt = Attempt(self.attempts);
        let exporter = Zeroizing::new([self.attempts as u8; 48]);
        self.feed(Input::Connected {
            attempt,
            exporter,
            valid_for: Duration::MAX,
        });
        let cause = Cause::Demand;
        match &self.say(Message::Open { offer, cause })[..] {
            [Message::Accept { epoch, .. }] => Ok(*epoch),
            [Message::Refuse { why, detail }] => Err((*why, detail.clone())),
            other => panic!("{other:?}"),
        }
    }

    /// Over the newest connection.
    fn say(&mut self, message: Message) -> Vec<Message> {
        let attempt = Attempt(self.attempts);
        self.feed(Input::Received { attempt, message })
    }

    /// An attempt without QKD that reaches `Ready`.
    fn attempt(&mut self, offer: Offer) -> Result<u32, (Refusal, String)> {
        let epoch = self.open(offer)?;
        let said = self.say(keys(&[]));
        assert!(matches!(said[..], [Message::Ready { .. }]), "{said:?}");
        Ok(epoch)
    }
}

fn keys(ids: &[&str]) -> Message {
    let qkd = ids.iter().map(|id| (*id).to_owned()).collect();
    Message::Keys { qkd }
}

fn refusal(said: &[Message]) -> Option<Refusal> {
    match said {
        [Message::Refuse { why, .. }] => Some(*why),
        _ => None,
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
fn a_peer_that_never_finishes_an_attempt_fills_no_memory() {
    let mut alone = Alone::new(Policy::Pqc);
    let mut sends_in = None;
    for round in 0..500 {
        let epoch = alone.attempt(pqc(0, Vec::new(), sends_in)).unwrap();
        assert!(alone.inbound.contains(&epoch));
        assert!(alone.inbound.len() <= INBOUND_MAX);
        // Alternately it reports that it seals with the newest epoch, or with none.
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
fn the_epochs_in_a_peers_offer_are_checked() {
    let mut alone = Alone::new(Policy::Pqc);
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
    // The longest list, all of epochs that would be next.
    let half = LIVE_MAX as u32 / 2;
    let live: Vec<u32> = (EPOCH_MAX - half + 1..=EPOCH_MAX).chain(1..=half).collect();
    assert_eq!(live.len(), LIVE_MAX);
    assert_eq!(
        alone.attempt(pqc(EPOCH_MAX - half, live, None)),
        Ok(half + 1)
    );
}

#[test]
fn a_live_epoch_is_never_chosen() {
    let mut alone = Alone::new(Policy::Pqc);
    // Half the circle at a time, the peer leads the listener back to its first epoch.
    for (last, expected) in [
        (0, 1),
        (500_000, 500_001),
        (1_000_000, 1_000_001),
        (EPOCH_MAX, 2),
    ] {
        assert_eq!(alone.attempt(pqc(last, Vec::new(), None)), Ok(expected));
    }
    assert_eq!(alone.inbound, [1, 500_001, 1_000_001, 2]);
}

#[test]
fn a_peer_that_leaves_out_what_is_required_is_refused() {
    // The peer omits PPK `a`, which this side requires, or requires PPK `c`, which this side lacks.
    let required = |id: &str| OfferedPpk {
        id: id.to_owned(),
        required: true,
    };
    let [_, mut own] = settings(Policy::Pqc);
    own.ppks = vec![ppk("a", true), ppk("b", false)];
    for ppks in [
        vec![],
        vec![required("b")],
        vec![required("a"), required("c")],
    ] {
        let mut alone = Alone::with(own.clone());
        let offer = Offer {
            ppks,
            ..pqc(0, Vec::new(), None)
        };
        assert_eq!(alone.open(offer).unwrap_err().0, Refusal::Ppk);
    }
    for policy in [Policy::Qkd, Policy::Both] {
        let mut alone = Alone::new(policy);
        assert_eq!(alone.open(Offer { policy, ..offer() }), Ok(1));
        assert_eq!(refusal(&alone.say(keys(&[]))), Some(Refusal::Qkd));
        assert!(alone.inbound.is_empty());
    }
}

#[test]
fn unexpected_qkd_keys_are_refused() {
    let mut alone = Alone::new(Policy::Pqc);
    assert_eq!(alone.open(pqc(0, Vec::new(), None)), Ok(1));
    assert_eq!(refusal(&alone.say(keys(&["one"]))), Some(Refusal::Protocol));
    assert_eq!(alone.open(pqc(0, Vec::new(), None)), Ok(1));
    assert_eq!(
        refusal(&alone.say(keys(&["one", "one"]))),
        Some(Refusal::Protocol)
    );

    // Missing keys are replaced by none, not by others.
    let policy = Policy::Either;
    let mut alone = Alone::new(policy);
    assert_eq!(alone.open(Offer { policy, ..offer() }), Ok(1));
    assert_eq!(alone.say(keys(&["one"])), []);
    let attempt = Attempt(alone.attempts);
    let missing = Err("400 Bad Request".to_owned());
    let said = alone.feed(Input::Qkd {
        attempt,
        keys: missing,
    });
    assert!(matches!(said[..], [Message::KeysMissing { .. }]));
    assert_eq!(refusal(&alone.say(keys(&["two"]))), Some(Refusal::Protocol));
}

#[test]
fn keys_from_a_kme_are_checked() {
    let link = |id: &str, bytes: usize| Link {
        kind: Kind::Qkd,
        id: id.to_owned(),
        key: Some(Arc::new(Zeroizing::new(vec![5; bytes]))),
    };
    let absent = Link {
        key: None,
        ..link("one", 0)
    };
    let ppk = Link {
        kind: Kind::Ppk,
        ..link("one", 32)
    };
    for given in [
        vec![],
        vec![link("one", 32)],
        vec![link("one", 32), link("one", 32)],
        vec![link("one", 32), link("three", 32)],
        vec![link("one", 32), link("two", 32), link("three", 32)],
        vec![link("one", 16), link("two", 15)],
        vec![link("one", 32), link("two", 65_536)],
        vec![link("one", 32), link("two", 0)],
        vec![absent, link("two", 32)],
        vec![ppk, link("two", 32)],
    ] {
        let policy = Policy::Both;
        let mut alone = Alone::new(policy);
        assert_eq!(alone.open(Offer { policy, ..offer() }), Ok(1));
        assert_eq!(alone.say(keys(&["one", "two"])), []);
        let attempt = Attempt(alone.attempts);
        let name = format!("{given:?}");
        let said = alone.feed(Input::Qkd {
            attempt,
            keys: Ok(given),
        });
        assert_eq!(refusal(&said), Some(Refusal::Qkd), "{name}");
    }
    let policy = Policy::Both;
    let mut alone = Alone::new(policy);
    assert_eq!(alone.open(Offer { policy, ..offer() }), Ok(1));
    assert_eq!(alone.say(keys(&["one", "two"])), []);
    let attempt = Attempt(alone.attempts);
    // In any order, and short ones if they are long enough together.
    let given = Ok(vec![link("two", 16), link("one", 16)]);
    let said = alone.feed(Input::Qkd {
        attempt,
        keys: given,
    });
    assert!(matches!(said[..], [Message::Ready { .. }]));
}

#[test]
fn a_connector_checks_the_offer_itself() {
    type Change = fn(&mut Offer);
    let cases: [(Change, Refusal); 8] = [
        (|offer| offer.version += 1, Refusal::Version),
        (|offer| offer.tunnel += 1, Refusal::Tunnel),
        (|offer| offer.suite = "null".to_owned(), Refusal::Suite),
        (|offer| offer.lanes += 1, Refusal::Lanes),
        (|offer| offer.payload = "l2".to_owned(), Refusal::Payload),
        (|offer| offer.policy = Policy::Pqc, Refusal::Policy),
        (
            |offer| {
                offer.ppks = vec![OfferedPpk {
                    id: "a".to_owned(),
                    required: true,
                }];
            },
            Refusal::Ppk,
        ),
        (|offer| offer.sends_in = Some(0), Refusal::Protocol),
    ];
    for (change, why) in cases {
        let mut duo = halfway(1);
        let (attempt, mut offer, epoch) = accept(&mut duo);
        change(&mut offer);
        let message = Message::Accept { offer, epoch };
        duo.feed(0, Input::Received { attempt, message });
        let (refusal, by_peer, _) = duo.failure(0).unwrap();
        assert_eq!((refusal, by_peer), (Some(why), false));
        assert_eq!(duo.outbound, [Some(1), Some(1)]);
        duo.run(ms(3000));
        assert!(duo.agrees());
    }
}

/// The `Accept` in transit.
fn accept(duo: &mut Duo) -> (Attempt, Offer, u32) {
    match duo.messages.pop_front() {
        Some((0, attempt, Some(Message::Accept { offer, epoch }))) => (attempt, offer, epoch),
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_epoch_that_is_not_the_next_is_refused() {
    for epoch in [0, 1, 3, EPOCH_MAX, EPOCH_MAX + 1] {
        let mut duo = halfway(1);
        let (attempt, offer, chosen) = accept(&mut duo);
        assert_eq!(chosen, 2);
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
fn a_wrong_confirmation_of_either_side_is_reported_to_both() {
    for (delivered, side) in [(3, 0), (4, 1)] {
        let mut duo = halfway(delivered);
        let Some((to, attempt, Some(message))) = duo.messages.pop_front() else {
            panic!("a confirmation is in transit");
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
        assert_eq!(duo.outbound[1], Some(1), "the listener keeps the old keys");
        duo.run(ms(3000));
        assert!(duo.agrees());
    }
}

#[test]
fn a_reflected_confirmation_is_refused() {
    // A reflected confirmation proves nothing.
    let mut duo = halfway(4);
    let Some((1, attempt, Some(Message::Switched { .. }))) = duo.messages.pop_front() else {
        panic!("`Switched` is in transit");
    };
    let mut before = halfway(3);
    let Some((0, _, Some(Message::Ready { confirmation }))) = before.messages.pop_front() else {
        panic!("`Ready` is in transit");
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
