//! INFORMATIONAL, repetitions and windows.

use super::world::*;
use crate::message::Identity;
use crate::session::*;

#[test]
fn a_delete_ends_both_ends_and_a_silent_peer_is_noticed() {
    let mut world = set_up(|_| {});
    let spi = world.check_child().inbound_spi;
    world.order(0, |it, now, out| it.delete(now, out));
    world.pass(1);
    assert_eq!(world.closed(0), Some(&Closed::Deleted));
    assert_eq!(world.closed(1), Some(&Closed::ByPeer));
    assert!(world.outputs[0].contains(&Output::ChildDown(spi)));

    let mut world = set_up(|_| {});
    let sent = world.sent;
    world.run(100 * SECOND, &mut prompt);
    assert!(world.sent > sent + 4, "both ask whether the peer lives");
    world.check_child();
    world.responder = None;
    world.run(300 * SECOND, &mut prompt);
    assert_eq!(world.closed(0), Some(&Closed::Silent(None)));
}

#[test]
fn compact_sessions_replace_all_their_sas() {
    let mut world = set_up(|settings| {
        for it in settings {
            it.ike.truncate(1);
            it.child[0].exchange = Some(it.ike[0].exchange);
        }
    });
    let child = world.check_child();
    for at in 0..2 {
        // One value for many sessions: identities and keys of the set-up are not needed.
        let mut shared = world.settings[at].clone();
        shared.identity = Identity::fqdn("somebody.example");
        shared.authentication = Authentication::SharedKey(Secret::default());
        let shared = Arc::new(shared);
        world.order(at, |it, _, _| it.compact(&shared));
    }
    world.order(0, |it, now, out| assert!(it.rekey_ike(now, out)));
    world.pass(1);
    world.order(1, |it, now, out| {
        assert!(it.rekey_child(now, child.outbound_spi, out));
    });
    world.pass(1);
    let renewed = world.check_child();
    assert_ne!(renewed.inbound_spi, child.inbound_spi);
    assert_eq!(renewed.inbound_keys.len(), 36);
    world.pass(100);
    world.order(0, |it, now, out| it.delete(now, out));
    world.pass(1);
    assert_eq!(world.closed(0), Some(&Closed::Deleted));
    assert_eq!(world.closed(1), Some(&Closed::ByPeer));
}

#[test]
fn a_deleted_child_sa_is_answered_with_the_other_half() {
    let mut world = set_up(|_| {});
    let child = world.check_child();
    world.order(0, |it, now, out| {
        assert!(it.delete_child(now, child.inbound_spi, out));
        // It is being deleted.
        assert!(!it.delete_child(now, child.inbound_spi, out));
    });
    world.pass(1);
    assert!(world.outputs[0].contains(&Output::ChildDown(child.inbound_spi)));
    assert!(world.outputs[1].contains(&Output::ChildDown(child.outbound_spi)));
    assert_eq!(world.children(), [0, 0]);
    assert_eq!((world.closed(0), world.closed(1)), (None, None));
}

#[test]
fn both_ends_may_delete_the_same_sa_at_once() {
    let mut world = set_up(|_| {});
    let child = world.check_child();
    world.order(0, |it, now, out| {
        assert!(it.delete_child(now, child.inbound_spi, out));
    });
    world.order(1, |it, now, out| {
        assert!(it.delete_child(now, child.outbound_spi, out));
    });
    world.pass(1);
    assert_eq!(world.children(), [0, 0]);
    for at in 0..2 {
        let down = |it: &&Output| matches!(it, Output::ChildDown(_));
        assert_eq!(world.outputs[at].iter().filter(down).count(), 1);
    }
    world.order(0, |it, now, out| it.delete(now, out));
    world.order(1, |it, now, out| it.delete(now, out));
    world.pass(1);
    for at in 0..2 {
        assert_eq!(world.closed(at), Some(&Closed::Deleted));
    }
}

#[test]
fn a_request_is_repeated_with_back_off_and_the_same_bytes() {
    let mut world = set_up(|_| {});
    world.responder = None;
    world.outputs = Default::default();
    world.order(0, |it, now, out| assert!(it.probe(now, out)));
    let mut lost = |_: usize| Vec::new();
    let mut times = vec![world.now];
    while world.closed(0).is_none() {
        let at = world.initiator.as_ref().unwrap().wakes_at().unwrap();
        let sent = world.sent;
        world.run(at, &mut lost);
        times.extend((world.sent > sent).then_some(at));
    }
    let pauses = times.windows(2).map(|it| (it[1] - it[0]).as_millis());
    let pauses: Vec<_> = pauses.collect();
    assert_eq!(pauses, [500, 1000, 2000, 4000, 8000, 16000, 16000]);
    let mut sent = world.outputs[0].iter().filter_map(|it| match it {
        Output::Send { datagram, .. } => Some(datagram),
        _ => None,
    });
    let first = sent.next().unwrap();
    assert!(sent.all(|it| it == first));
    assert_eq!(world.closed(0), Some(&Closed::Silent(None)));
}

#[test]
fn a_window_has_one_request_and_others_wait() {
    let mut world = set_up(|_| {});
    let sent = world.sent;
    for _ in 0..3 {
        world.order(0, |it, now, out| assert!(it.create_child(now, None, out)));
    }
    assert_eq!(world.sent, sent + 1);
    world.pass(1);
    assert_eq!(world.children(), [4, 4]);
    assert_eq!(world.sent, sent + 6);
}

#[test]
fn repeated_requests_get_the_same_response_and_old_ones_none() {
    let mut world = set_up(|_| {});
    world.order(0, |it, now, out| assert!(it.probe(now, out)));
    let (_, request) = world.under_way[1][0].clone();
    world.pass(1);
    world.outputs = Default::default();
    for _ in 0..2 {
        world.deliver(1, &request, &mut prompt);
    }
    let [
        Output::Send { datagram: one, .. },
        Output::Send { datagram: two, .. },
    ] = world.outputs[1].as_slice()
    else {
        panic!("{:?}", world.outputs[1])
    };
    assert_eq!(one, two);
    // The initiator needs no second response.
    world.pass(1);
    assert!(world.event(0, &Event::Ignored(Refusal::UnexpectedResponse)));
    world.order(0, |it, now, out| assert!(it.probe(now, out)));
    world.pass(1);
    world.deliver(1, &request, &mut prompt);
    assert!(world.event(1, &Event::Ignored(Refusal::MessageId)));
}

#[test]
fn a_restarted_initiator_replaces_its_former_sessions() {
    let world = set_up(|_| {});
    assert!(world.outputs[1].contains(&Output::InitialContact));
    let world = set_up(|settings| settings[0].initial_contact = false);
    assert!(!world.outputs[1].contains(&Output::InitialContact));
}

#[test]
fn the_reasons_of_ignored_datagrams_have_distinct_names() {
    let mut world = set_up(|_| {});
    let (initiator_spi, responder_spi) = world.initiator.as_ref().unwrap().spis();
    let header = Header {
        initiator_spi,
        responder_spi,
        exchange: Exchange::INFORMATIONAL,
        from_initiator: true,
        is_response: false,
        message_id: 7,
    };
    let plain = crate::message::Message {
        header,
        payloads: Vec::new(),
    };
    let mut datagram = Vec::new();
    plain.emit(&mut datagram).unwrap();
    world.deliver(1, &datagram, &mut prompt);
    assert!(world.event(1, &Event::Ignored(Refusal::NotEncrypted)));
    world.deliver(1, &datagram[..20], &mut prompt);
    let malformed = world.outputs[1].iter().any(
        |it| matches!(it, Output::Event(Event::Ignored(reason)) if reason.name() == "malformed"),
    );
    assert!(malformed, "{:?}", world.outputs[1]);
}
