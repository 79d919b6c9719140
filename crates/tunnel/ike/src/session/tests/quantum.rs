//! Additional key exchanges (RFC 9370), PPKs (RFC 8784) and fragments (RFC 7383).

use super::world::*;
use crate::crypto::{KeMethodKind, Secret};
use crate::message::{Message, NotifyType, Payload};
use crate::session::*;

fn hybrid(settings: &mut [Settings; 2], additional: [Option<KeMethodKind>; ADDITIONAL_MAX]) {
    for settings in settings {
        settings.ike = vec![IkeSuite {
            additional,
            ..gcm()
        }];
        for suite in &mut settings.child {
            suite.exchange = Some(KeMethodKind::X25519);
            suite.additional = additional;
        }
    }
}

const ML_KEM: [Option<KeMethodKind>; ADDITIONAL_MAX] = [
    Some(KeMethodKind::MlKem768),
    Some(KeMethodKind::MlKem1024),
    Some(KeMethodKind::MlKem512),
];

#[test]
fn additional_key_exchanges_precede_authentication_and_follow_rekeyings() {
    for count in 1..=ADDITIONAL_MAX {
        let mut additional = ML_KEM;
        additional[count..].fill(None);
        let mut world = set_up(|settings| hybrid(settings, additional));
        assert_eq!(world.sent, 4 + 2 * count);
        let child = world.check_child();
        let suite = world.initiator.as_ref().unwrap().keys().unwrap().0;
        assert_eq!(suite.additional, additional);
        let sent = world.sent;
        world.order(1, |it, now, out| {
            assert!(it.rekey_child(now, child.outbound_spi, out));
        });
        world.pass(1);
        // CREATE_CHILD_SA, IKE_FOLLOWUP_KE, delete.
        assert_eq!(world.sent, sent + 4 + 2 * count);
        assert_eq!(world.check_child().suite.additional, additional);
        world.order(0, |it, now, out| assert!(it.rekey_ike(now, out)));
        world.pass(1);
        let session = world.initiator.as_ref().unwrap();
        assert_eq!(session.keys().unwrap().0.additional, additional);
        assert_eq!(session.keys(), world.responder.as_ref().unwrap().keys());
    }
}

#[test]
fn rekeyings_with_additional_exchanges_may_meet() {
    for seed in 0..16 {
        for is_ike in [false, true] {
            let mut world = World::new(|settings| hybrid(settings, ML_KEM));
            world.seed = seed;
            world.start(&mut prompt);
            world.pass(1);
            let old = world.check_child();
            let mut state = seed;
            for (at, spi) in [old.inbound_spi, old.outbound_spi].into_iter().enumerate() {
                world.order(at, |it, now, out| {
                    assert!(if is_ike {
                        it.rekey_ike(now, out)
                    } else {
                        it.rekey_child(now, spi, out)
                    });
                });
                let wait = Duration::from_millis(next(&mut state) % 8);
                world.run(world.now + wait, &mut prompt);
            }
            world.pass(20);
            world.check_child();
            let channels = world.ends().map(|it| it.unwrap().channels.len());
            assert_eq!(channels, [1, 1], "seed {seed}, IKE {is_ike}");
        }
    }
}

#[test]
fn a_peer_without_additional_exchanges_gets_a_suite_without_them() {
    let mut world = set_up(|settings| {
        hybrid(settings, ML_KEM);
        settings[0].ike.push(gcm());
        settings[0]
            .child
            .push(settings[1].child[0].without_exchange());
        settings[1].ike = vec![gcm()];
        settings[1].child = vec![settings[1].child[0].without_exchange()];
    });
    assert_eq!(world.sent, 4);
    let child = world.check_child();
    world.order(0, |it, now, out| {
        assert!(it.rekey_child(now, child.inbound_spi, out));
    });
    world.pass(1);
    world.check_child();
}

#[test]
fn lost_messages_of_additional_exchanges_are_repeated() {
    for lost in 0..8 {
        let mut world = World::new(|settings| hybrid(settings, ML_KEM));
        let mut fate = |at: usize| if at == lost { vec![] } else { vec![1, 400] };
        world.start(&mut fate);
        world.run(20 * SECOND, &mut fate);
        world.check_child();
    }
}

fn ppk(identity: &str, key: u8) -> Ppk {
    Ppk {
        identity: identity.as_bytes().to_vec(),
        key: Secret::new(vec![key; 32]),
    }
}

#[test]
fn a_ppk_of_both_ends_enters_the_keys() {
    let plain = set_up(|_| {});
    let mut world = set_up(|settings| {
        settings[0].ppks = vec![ppk("one", 1)];
        settings[1].ppks = vec![ppk("other", 2), ppk("one", 1)];
        for settings in settings {
            settings.ppk_policy = PpkPolicy::Required;
        }
    });
    world.check_child();
    assert!(!world.event(0, &Event::NoPpk));
    // SK_d has the PPK, and so have all later keys.
    world.order(0, |it, now, out| assert!(it.rekey_ike(now, out)));
    world.pass(1);
    world.check_child();
    assert_eq!(plain.sent + 4, world.sent);
}

#[test]
fn without_a_common_ppk_the_policy_decides() {
    type Change = fn(&mut [Settings; 2]);
    let unknown: Change = |settings| {
        settings[0].ppks = vec![ppk("one", 1)];
        settings[1].ppks = vec![ppk("other", 2)];
    };
    let unsupported: Change = |settings| settings[0].ppks = vec![ppk("one", 1)];
    let unused: Change = |settings| settings[1].ppks = vec![ppk("one", 1)];
    for change in [unknown, unsupported, unused] {
        let mut world = set_up(change);
        world.check_child();
        assert!(world.event(0, &Event::NoPpk) || world.event(1, &Event::NoPpk));
        for at in 0..2 {
            let mut world = set_up(|settings| {
                change(settings);
                settings[at].ppk_policy = PpkPolicy::Required;
            });
            world.pass(60);
            let reasons = [world.closed(0), world.closed(1)];
            let named = reasons
                .iter()
                .flatten()
                .any(|it| matches!(it, Closed::Refused(_, reason) if reason.contains("RFC 8784")));
            let is_established = world.outputs[at].contains(&Output::Established);
            assert!(named && !is_established, "{at}: {reasons:?}");
        }
    }
    // The same name of another key.
    let world = set_up(|settings| {
        settings[0].ppks = vec![ppk("one", 1)];
        settings[1].ppks = vec![ppk("one", 2)];
    });
    let failed = NotifyType::AUTHENTICATION_FAILED;
    assert_eq!(world.closed(0), Some(&Closed::RefusedByPeer(failed)));
}

fn fragments(datagrams: &[Output]) -> usize {
    let is_fragment = |it: &&Output| match it {
        Output::Send { datagram, .. } => {
            assert!(datagram.len() <= 576 || !is_encrypted(datagram));
            let message = Message::parse(datagram).unwrap();
            matches!(message.payloads[..], [Payload::Fragment { .. }])
        }
        _ => false,
    };
    datagrams.iter().filter(is_fragment).count()
}

fn is_encrypted(datagram: &[u8]) -> bool {
    Header::peek(datagram).unwrap().exchange != Exchange::IKE_SA_INIT
}

#[test]
fn long_messages_are_fragmented_if_both_ends_support_it() {
    let with = |settings: &mut [Settings; 2]| {
        hybrid(settings, ML_KEM);
        for settings in settings {
            settings.datagram = Some(576);
        }
    };
    let mut world = set_up(with);
    let child = world.check_child();
    assert!(fragments(&world.outputs[0]) >= 3 + 4 + 2);
    assert!(fragments(&world.outputs[1]) >= 3 + 4 + 2);
    world.order(0, |it, now, out| {
        assert!(it.rekey_child(now, child.inbound_spi, out));
    });
    world.pass(1);
    world.check_child();
    let without = |settings: &mut [Settings; 2]| {
        with(settings);
        settings[1].datagram = None;
    };
    let mut world = set_up(without);
    world.check_child();
    let is_long = |it: &Output| matches!(it, Output::Send { datagram, .. } if datagram.len() > 576);
    assert!(world.outputs[0].iter().any(is_long));
}

#[test]
fn lost_reordered_and_repeated_fragments_only_delay() {
    for seed in 0..40 {
        let mut state = seed;
        let mut fate = |_: usize| -> Vec<u32> {
            let delay = (next(&mut state) % 60) as u32;
            match next(&mut state) % 16 {
                0 => vec![],
                1 => vec![delay, 60 - delay],
                _ => vec![delay],
            }
        };
        let mut world = World::new(|settings| {
            hybrid(settings, ML_KEM);
            for settings in settings {
                settings.datagram = Some(700);
            }
        });
        world.start(&mut fate);
        world.run(60 * SECOND, &mut fate);
        world.check_child();
    }
}

#[test]
fn fragments_are_bounded_and_must_fit_together() {
    let mut parts = fragments::Fragments::default();
    let bounds = Bounds {
        fragments: 4,
        bytes: 100,
    };
    let first = PayloadType::NOTIFY;
    let mut add = |id, place, bytes: usize| {
        let part = Secret::new(vec![1; bytes]);
        parts.add(id, place, first, part, bounds)
    };
    assert_eq!(add(1, (1, 5), 10), Err(Refusal::FragmentsTooMany));
    assert_eq!(add(1, (2, 3), 10), Ok(None));
    // The peer repeats the message in more fragments; the former ones are late.
    assert_eq!(add(1, (2, 4), 60), Ok(None));
    assert_eq!(add(1, (3, 3), 10), Err(Refusal::Fragment));
    assert_eq!(add(1, (1, 4), 60), Err(Refusal::FragmentsTooMany));
    // A new message forgets the former.
    assert_eq!(add(2, (2, 2), 10), Ok(None));
    let whole = add(2, (1, 2), 10).unwrap().expect("complete");
    assert_eq!((whole.0, whole.1.len()), (first, 20));
}

#[test]
fn a_changed_intermediate_message_is_noticed() {
    for message in 2..4 {
        let mut world = World::new(|settings| hybrid(settings, ML_KEM));
        let mut count = 0;
        world.start(&mut prompt);
        while count <= message {
            let to = usize::from(count % 2 == 0);
            let (_, mut datagram) = world.under_way[to].pop_front().unwrap();
            if count == message {
                let last = datagram.len() - 20;
                datagram[last] ^= 1;
            }
            world.deliver(to, &datagram, &mut prompt);
            count += 1;
        }
        let at = usize::from(message % 2 == 0);
        let ignored = |it: &Output| matches!(it, Output::Event(Event::Ignored(reason)) if reason.name() == "integrity");
        assert!(world.outputs[at].iter().any(ignored));
        world.pass(5);
        world.check_child();
    }
}
