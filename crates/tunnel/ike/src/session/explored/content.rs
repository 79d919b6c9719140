//! Contents of datagrams, without the values that differ at each run.

use crate::crypto::open;
use crate::message::{Header, Message, Payload, parse_payloads};
use crate::session::channel::Channel;
use crate::session::{Role, Session};
use std::hash::{DefaultHasher, Hash, Hasher};

/// The content of a datagram that one of these sessions sent.
pub(super) fn label(sessions: &[Session], datagram: &[u8]) -> u64 {
    let header = Header::peek(datagram).expect("made by a session");
    let mut channels = sessions.iter().flat_map(|it| &it.channels);
    let sender = channels.find(|it| {
        it.initiator_spi == header.initiator_spi && it.responder_spi == header.responder_spi
    });
    let mut hasher = DefaultHasher::new();
    format!("{header:?}").hash(&mut hasher);
    // Without sender it is the last response of an IKE SA that has ended.
    sender.map(|it| content(it, datagram)).hash(&mut hasher);
    hasher.finish()
}

pub(super) fn content(sender: &Channel, datagram: &[u8]) -> String {
    let message = Message::parse(datagram).expect("made by a session");
    let Some(Payload::Encrypted { first, body }) = message.payloads.first() else {
        return format!("{:?}", shown(&message.payloads));
    };
    let Some(keyed) = &sender.keyed else {
        return String::new();
    };
    let keys = keyed.direction(sender.role == Role::Initiator);
    let inner = open(keyed.suite.cipher, keys, datagram, body.len()).expect("its keys");
    let payloads = parse_payloads(*first, &inner).expect("made by a session");
    format!("{:?}", shown(&payloads))
}

/// Without the values that the library's random numbers determine.
fn shown(payloads: &[Payload]) -> Vec<String> {
    let shown = |payload: &Payload| match payload {
        Payload::KeyExchange { method, .. } => format!("KE {method:?}"),
        Payload::Auth { method, .. } => format!("AUTH {method:?}"),
        other => format!("{other:?}"),
    };
    payloads.iter().map(shown).collect()
}
