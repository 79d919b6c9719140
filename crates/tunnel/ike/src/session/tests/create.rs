//! CREATE_CHILD_SA: new SAs, new keys, and the collisions of RFC 7296 section 2.25.

use super::world::*;
use crate::crypto::{Cipher, KeMethodKind};
use crate::message::NotifyType;
use crate::session::*;

/// Both ends agree on everything, and nothing is left over.
fn check(world: &mut World, children: usize) {
    let [Some(one), Some(other)] = world.ends() else {
        panic!("two sessions")
    };
    assert_eq!(one.spis(), other.spis());
    assert_eq!((one.channels.len(), other.channels.len()), (1, 1));
    assert_ne!(one.role(), other.role());
    assert_eq!(one.keys(), other.keys());
    assert_eq!(one.children().count(), children);
    assert_eq!(other.children().count(), children);
    for child in one.children() {
        let mut children = other.children();
        let half = children.find(|it| it.outbound_spi == child.inbound_spi);
        let half = half.expect("the other half");
        assert_eq!(child.outbound_spi, half.inbound_spi);
        assert_eq!(child.inbound_keys, half.outbound_keys);
        assert_eq!(child.outbound_keys, half.inbound_keys);
        assert_eq!((&child.local, &child.remote), (&half.remote, &half.local));
        assert_eq!(child.suite, half.suite);
    }
}

fn with_exchange(settings: &mut [Settings; 2], exchange: KeMethodKind) {
    for settings in settings {
        settings.child[0].exchange = Some(exchange);
    }
}

#[test]
fn several_child_sas_are_created_with_narrowed_selectors() {
    let mut world = set_up(|settings| with_exchange(settings, KeMethodKind::X25519));
    let narrow = (
        vec![range("10.1.7.0", "10.1.7.255")],
        vec![range("10.2.0.0", "10.3.255.255")],
    );
    world.order(0, |it, now, out| {
        assert!(it.create_child(now, Some(narrow), out));
    });
    world.pass(1);
    check(&mut world, 2);
    let child = world.initiator.as_ref().unwrap().children().nth(1).unwrap();
    assert_eq!(child.local, [range("10.1.7.0", "10.1.7.255")]);
    // The responder's policy ends earlier.
    assert_eq!(child.remote, [range("10.2.0.0", "10.2.255.255")]);
    let foreign = vec![range("192.168.0.0", "192.168.0.255")];
    world.order(1, |it, now, out| {
        assert!(it.create_child(now, Some((foreign.clone(), foreign)), out));
    });
    world.pass(1);
    let refused = Event::ChildRefused(NotifyType::TS_UNACCEPTABLE);
    assert!(world.event(1, &refused));
    for _ in 0..7 {
        world.order(1, |it, now, out| assert!(it.create_child(now, None, out)));
    }
    world.pass(1);
    // The settings permit eight.
    check(&mut world, 8);
    let refused = Event::ChildRefused(NotifyType::NO_ADDITIONAL_SAS);
    assert!(world.event(1, &refused));
}

#[test]
fn a_child_sa_is_rekeyed_by_either_end() {
    for exchange in [None, Some(KeMethodKind::P256)] {
        for at in 0..2 {
            let mut world = set_up(|settings| {
                if let Some(exchange) = exchange {
                    with_exchange(settings, exchange);
                }
            });
            let old = world.check_child();
            let spi = [old.inbound_spi, old.outbound_spi][at];
            world.order(at, |it, now, out| assert!(it.rekey_child(now, spi, out)));
            world.pass(1);
            check(&mut world, 1);
            let new = world.check_child();
            assert_ne!(new.inbound_spi, old.inbound_spi);
            assert_ne!(new.inbound_keys, old.inbound_keys);
            assert_eq!(new.local, old.local);
            assert_eq!(new.replaces, Some(old.inbound_spi));
            // The new one exists before the old one ends.
            for at in 0..2 {
                let outputs = &world.outputs[at];
                let up = |it: &Output| matches!(it, Output::ChildUp(it) if it.replaces.is_some());
                let up = outputs.iter().position(up).unwrap();
                let down = |it: &Output| matches!(it, Output::ChildDown(_));
                assert!(up < outputs.iter().position(down).unwrap());
            }
        }
    }
}

#[test]
fn the_ike_sa_is_rekeyed_by_either_end_and_keeps_its_child_sas() {
    for at in 0..2 {
        let mut world = set_up(|_| {});
        let child = world.check_child();
        let spis = world.initiator.as_ref().unwrap().spis();
        world.order(at, |it, now, out| assert!(it.rekey_ike(now, out)));
        world.pass(1);
        check(&mut world, 1);
        assert_eq!(world.check_child(), child);
        let session = world.ends()[at].as_ref().unwrap().spis();
        assert_ne!(session, spis);
        assert_eq!(world.ends()[at].as_ref().unwrap().role(), Role::Initiator);
        // The new IKE SA works in both directions, and once more.
        for at in 0..2 {
            world.order(at, |it, now, out| assert!(it.create_child(now, None, out)));
            world.pass(1);
            world.order(at, |it, now, out| assert!(it.rekey_ike(now, out)));
            world.pass(1);
        }
        check(&mut world, 3);
        world.order(at, |it, now, out| it.delete(now, out));
        world.pass(1);
        assert_eq!(world.closed(1 - at), Some(&Closed::ByPeer));
    }
}

#[test]
fn both_ends_may_rekey_the_same_child_sa_at_once() {
    for seed in 0..16 {
        let mut world = World::new(|_| {});
        world.seed = seed;
        world.start(&mut prompt);
        world.pass(1);
        let old = world.check_child();
        for (at, spi) in [old.inbound_spi, old.outbound_spi].into_iter().enumerate() {
            world.order(at, |it, now, out| assert!(it.rekey_child(now, spi, out)));
        }
        world.pass(1);
        check(&mut world, 1);
        for at in 0..2 {
            let up = |it: &&Output| matches!(it, Output::ChildUp(it) if it.replaces.is_some());
            assert_eq!(world.outputs[at].iter().filter(up).count(), 2);
        }
    }
}

#[test]
fn both_ends_may_rekey_the_ike_sa_at_once() {
    let mut winners = [0, 0];
    for seed in 0..16 {
        let mut world = World::new(|_| {});
        world.seed = seed;
        world.start(&mut prompt);
        world.pass(1);
        for at in 0..2 {
            world.order(at, |it, now, out| assert!(it.rekey_ike(now, out)));
        }
        world.pass(1);
        check(&mut world, 1);
        let role = world.initiator.as_ref().unwrap().role();
        winners[usize::from(role == Role::Responder)] += 1;
    }
    assert!(winners.iter().all(|it| *it > 0), "{winners:?}");
}

#[test]
fn a_rekeying_that_meets_a_delete_gives_way() {
    let mut world = set_up(|_| {});
    let old = world.check_child();
    let spi = old.outbound_spi;
    world.order(0, |it, now, out| {
        assert!(it.delete_child(now, old.inbound_spi, out));
    });
    world.order(1, |it, now, out| assert!(it.rekey_child(now, spi, out)));
    world.pass(10);
    check(&mut world, 0);
    // The same with IKE SAs.
    let mut world = set_up(|_| {});
    world.order(0, |it, now, out| it.delete(now, out));
    world.order(1, |it, now, out| assert!(it.rekey_ike(now, out)));
    world.pass(10);
    assert_eq!(world.closed(0), Some(&Closed::Deleted));
    assert_eq!(world.closed(1), Some(&Closed::ByPeer));
}

#[test]
fn exchanges_that_exclude_each_other_are_tried_again() {
    let mut world = set_up(|_| {});
    world.order(0, |it, now, out| assert!(it.rekey_ike(now, out)));
    world.order(1, |it, now, out| assert!(it.create_child(now, None, out)));
    world.pass(20);
    check(&mut world, 2);
    let renewed = |it: &&Output| matches!(it, Output::IkeUp(_));
    assert_eq!(world.outputs[0].iter().filter(renewed).count(), 1);
}

#[test]
fn a_child_sa_that_the_peer_lost_is_created_anew() {
    let mut world = set_up(|_| {});
    let old = world.check_child();
    world.responder.as_mut().unwrap().children.clear();
    world.order(0, |it, now, out| {
        assert!(it.rekey_child(now, old.inbound_spi, out));
    });
    world.pass(1);
    check(&mut world, 1);
    assert_eq!(world.check_child().replaces, None);
}

#[test]
fn lifetimes_replace_all_sas_without_an_order() {
    let lifetimes = Lifetimes {
        ike: Some(100 * SECOND),
        child: Some(40 * SECOND),
    };
    let mut world = set_up(|settings| {
        for settings in settings {
            settings.lifetimes = lifetimes;
        }
    });
    world.pass(1000);
    let count = |world: &World, is: fn(&Output) -> bool| {
        world.outputs[0].iter().filter(|it| is(it)).count()
    };
    assert!(count(&world, |it| matches!(it, Output::ChildUp(_))) >= 25);
    assert!(count(&world, |it| matches!(it, Output::IkeUp(_))) >= 10);
    // Nothing remains twice.
    let children = world.children();
    assert!(
        children.iter().all(|it| (1..=2).contains(it)),
        "{children:?}"
    );
}

#[test]
fn the_end_that_was_rekeyed_removes_what_its_peer_left() {
    let mut world = set_up(|_| {});
    world.order(0, |it, now, out| assert!(it.rekey_ike(now, out)));
    let mut sent = 0;
    // The delete of the old IKE SA and everything after it is lost for a while.
    let until = world.now + 50 * SECOND;
    world.run(until, &mut |_| {
        sent += 1;
        if sent > 1 { vec![] } else { vec![1] }
    });
    world.pass(200);
    let ends = world.ends().map(|it| it.map(|it| it.channels.len()));
    assert!(ends.iter().flatten().all(|it| *it <= 1), "{ends:?}");
}

#[test]
fn another_key_exchange_is_taken_if_the_peer_wants_it() {
    let mut world = set_up(|settings| {
        let cipher = Cipher::AesGcm16 { key_bits: 256 };
        let suites = [KeMethodKind::X25519, KeMethodKind::P384].map(|it| ChildSuite {
            cipher,
            esn: false,
            exchange: Some(it),
            additional: [None; ADDITIONAL_MAX],
        });
        settings[0].child = suites.to_vec();
        settings[1].child = vec![suites[1]];
        settings[0].ike = vec![gcm(), cbc()];
        settings[1].ike = vec![cbc()];
    });
    let old = world.check_child();
    world.order(0, |it, now, out| {
        assert!(it.rekey_child(now, old.inbound_spi, out));
    });
    world.pass(1);
    assert_eq!(world.check_child().suite.exchange, Some(KeMethodKind::P384));
    world.order(0, |it, now, out| assert!(it.rekey_ike(now, out)));
    world.pass(1);
    check(&mut world, 1);
    assert_eq!(world.initiator.as_ref().unwrap().keys().unwrap().0, cbc());
}

#[test]
fn an_ike_sa_may_begin_without_a_child_sa() {
    let childless = |settings: &mut [Settings; 2]| {
        for settings in settings {
            settings.childless = true;
        }
    };
    let mut world = set_up(childless);
    check(&mut world, 0);
    world.order(1, |it, now, out| assert!(it.create_child(now, None, out)));
    world.pass(1);
    check(&mut world, 1);
    // The responder does not support it: the child SA is created at once.
    let mut world = set_up(|settings| settings[0].childless = true);
    check(&mut world, 1);
}
