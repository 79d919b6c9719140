//! Messages of a peer that has the keys, and violates the protocol: no panic, no SA that only one
//! end has, and bounded memory.

use super::world::*;
use crate::crypto::{KeMethodKind, open};
use crate::message::{Message, Payload, parse_payloads};
use crate::oracle;
use crate::session::*;
use arbitrary::Unstructured;

/// The payloads of a datagram that an end sent.
fn content(session: &Session, datagram: &[u8]) -> Vec<Payload> {
    let message = Message::parse(datagram).unwrap();
    let Payload::Encrypted { first, body } = &message.payloads[0] else {
        panic!("{message:?}")
    };
    let channel = session
        .channels
        .iter()
        .find(|it| it.initiator_spi == message.header.initiator_spi);
    let channel = channel.unwrap();
    let keyed = channel.keyed.as_ref().unwrap();
    let keys = keyed.direction(channel.role == Role::Initiator);
    let inner = open(keyed.suite.cipher, keys, datagram, body.len()).unwrap();
    parse_payloads(*first, &inner).unwrap()
}

/// Variants of payloads: without one, with one twice, in another order, with another type or with
/// invented ones.
fn changed(payloads: &[Payload], state: &mut u64) -> Vec<Payload> {
    let mut changed = payloads.to_vec();
    let bytes: Vec<u8> = (0..512).map(|_| next(state) as u8).collect();
    let invented = oracle::payloads(&mut Unstructured::new(&bytes)).unwrap_or_default();
    let at = next(state) as usize % payloads.len().max(1);
    match next(state) % 6 {
        _ if payloads.is_empty() => changed = invented,
        0 => drop(changed.remove(at)),
        1 => changed.push(payloads[at].clone()),
        2 => changed.reverse(),
        3 => changed = invented,
        4 => changed.extend(invented),
        _ => match &mut changed[at] {
            Payload::Nonce(nonce) => nonce.truncate(16),
            Payload::KeyExchange { data, .. } => data.truncate(7),
            Payload::Sa(proposals) => {
                proposals[0].spi.fill(0);
                proposals[0].transforms.pop();
            }
            Payload::Notify(notify) => notify.kind = NotifyType(next(state) as u16 % 50),
            Payload::InitiatorSelectors(selectors) | Payload::ResponderSelectors(selectors) => {
                selectors.truncate(0);
                let all = range("0.0.0.0", "255.255.255.255");
                selectors.push(crate::message::Selector::Range(all));
            }
            Payload::Delete(delete) => *delete = crate::message::Delete::Ike,
            _ => {}
        },
    }
    changed
}

fn order(world: &mut World, at: usize, kind: u64) {
    world.order(at, |it, now, out| {
        let spi = it.children().next().map(|it| it.inbound_spi);
        let _accepted = match (kind, spi) {
            (0, _) => it.rekey_ike(now, out),
            (1, Some(spi)) => it.rekey_child(now, spi, out),
            (2, _) => it.create_child(now, None, out),
            (3, Some(spi)) => it.delete_child(now, spi, out),
            _ => it.probe(now, out),
        };
    });
}

fn hybrid(settings: &mut [Settings; 2]) {
    for settings in settings {
        let suite = &mut settings.child[0];
        suite.exchange = Some(KeMethodKind::X25519);
        suite.additional[0] = Some(KeMethodKind::MlKem512);
    }
}

/// The first end is genuine, the second one answers and asks with changed payloads.
#[test]
fn authenticated_nonsense_is_refused_without_a_panic() {
    for seed in 0..400u64 {
        let mut state = seed;
        let mut world = set_up(|settings| {
            if seed % 2 == 0 {
                hybrid(settings);
            }
        });
        let kind = next(&mut state) % 5;
        let is_response = next(&mut state).is_multiple_of(2);
        order(&mut world, if is_response { 0 } else { 1 }, kind);
        for _ in 0..8 {
            let Some(to) = (0..2).find(|to| !world.under_way[*to].is_empty()) else {
                break;
            };
            let (_, datagram) = world.under_way[to].pop_front().unwrap();
            if to == 1 {
                world.deliver(1, &datagram, &mut prompt);
                continue;
            }
            let header = Header::peek(&datagram).unwrap();
            let Some(session) = world.responder.as_mut() else {
                break;
            };
            let known = session.channels.iter().find(|it| {
                it.initiator_spi == header.initiator_spi && it.responder_spi == header.responder_spi
            });
            let Some(spi) = known.map(Channel::local_spi) else {
                break;
            };
            let payloads = changed(&content(session, &datagram), &mut state);
            let mut out = Vec::new();
            let exchange = header.exchange;
            if header.is_response {
                session.respond(spi, world.now, exchange, &payloads, &mut out);
            } else {
                // With the message ID of the genuine request.
                let channel = session.channel_mut(spi).unwrap();
                channel.next_request = header.message_id;
                let purpose = (exchange, Purpose::Alive);
                session.request(spi, world.now, purpose, &payloads, &mut out);
            }
            let sent = out.iter().find_map(|it| match it {
                Output::Send { datagram, .. } => Some(datagram.clone()),
                _ => None,
            });
            world.deliver(0, &sent.unwrap_or(datagram), &mut prompt);
        }
        let [Some(genuine), _] = world.ends() else {
            panic!("a session")
        };
        assert!(genuine.children().count() <= 3, "seed {seed}");
        assert!(genuine.channels.len() <= 3, "seed {seed}");
        for child in genuine.children() {
            // The policy holds whatever the peer asks for.
            let policy = range("10.1.0.0", "10.1.255.255");
            let is_within =
                |it: &&crate::message::AddressRange| it.intersect(&policy).as_ref() == Some(*it);
            assert!(child.local.iter().all(|it| is_within(&it)), "{child:?}");
        }
    }
}
