//! When two states are equal: times are relative to now, and random numbers without effect are left
//! out. Public values, and so keys, differ at each run.

use super::content::content;
use super::world::World;
use crate::session::channel::{Channel, Pending, Standing};
use crate::session::child::State;
use crate::session::create::Subject;
use crate::session::{Phase, Purpose, Role, Session};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        let digests = [self, other].map(|world| {
            let mut hasher = DefaultHasher::new();
            world.hash(&mut hasher);
            hasher.finish()
        });
        digests[0] == digests[1]
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.left.hash(hasher);
        (self.begun, self.is_interrupted, self.is_over).hash(hasher);
        self.broken.hash(hasher);
        for sessions in &self.ends {
            sessions.len().hash(hasher);
            for session in sessions {
                hash_session(session, self.now, hasher);
            }
        }
        // Any may arrive next: their order has no effect.
        let mut flying: Vec<_> = self.flying.iter().map(|it| (it.to, it.label)).collect();
        flying.sort_unstable();
        flying.hash(hasher);
    }
}

fn hash_session<H: Hasher>(session: &Session, now: Duration, hasher: &mut H) {
    let ahead = |time: Duration| time.saturating_sub(now);
    std::mem::discriminant(&session.phase).hash(hasher);
    if let Phase::Opening(it) = &session.phase {
        it.expires.map(ahead).hash(hasher);
    }
    session.current.hash(hasher);
    (session.is_leaving, session.random.used()).hash(hasher);
    now.saturating_sub(session.heard).hash(hasher);
    for channel in &session.channels {
        let Channel {
            initiator_spi,
            responder_spi,
            next_request,
            next_expected,
            ..
        } = channel;
        (channel.role == Role::Initiator).hash(hasher);
        (initiator_spi, responder_spi, next_request, next_expected).hash(hasher);
        match channel.standing {
            Standing::Replaced(until) => ahead(until).hash(hasher),
            other => format!("{other:?}").hash(hasher),
        }
        if let Some(pending) = &channel.pending {
            hash_pending(pending, now, hasher);
        }
        let response = channel.last_response.as_ref();
        let response = response.and_then(|it| it.first());
        response.map(|it| content(channel, it)).hash(hasher);
    }
    for child in &session.children {
        (child.sa.inbound_spi, child.sa.outbound_spi).hash(hasher);
        ahead(child.known_at).hash(hasher);
        match child.state {
            State::Replaced(until) => ahead(until).hash(hasher),
            other => format!("{other:?}").hash(hasher),
        }
    }
    for order in &session.orders {
        (ahead(order.at), format!("{:?}", order.action)).hash(hasher);
    }
}

fn hash_pending<H: Hasher>(pending: &Pending, now: Duration, hasher: &mut H) {
    (pending.exchange.0, pending.message_id, pending.repetitions).hash(hasher);
    pending.next_at.saturating_sub(now).hash(hasher);
    std::mem::discriminant(&pending.purpose).hash(hasher);
    match &pending.purpose {
        Purpose::DeleteChild(spi) => spi.hash(hasher),
        Purpose::Create(creating) => {
            match &creating.subject {
                Subject::Child { replaces, spi, .. } => (replaces, spi).hash(hasher),
                Subject::Ike { spi } => spi.hash(hasher),
            }
            creating.is_known.hash(hasher);
            let rival = creating.rival.as_ref();
            rival.map(|it| (it.spi, &it.lowest)).hash(hasher);
        }
        _ => {}
    }
}
