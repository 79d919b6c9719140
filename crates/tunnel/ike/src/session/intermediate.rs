//! Between IKE_SA_INIT and IKE_AUTH: additional key exchanges (RFC 9370) in IKE_INTERMEDIATE (RFC
//! 9242).

use super::channel::Inner;
use super::{Closed, Exchange, NotifyType, Output, Phase, Purpose, Role, Session, notify};
use crate::crypto::{KeMethodKind, PrivateValue, Secret, intermediate_auth, respond};
use crate::message::{KeMethod, Message, Payload, SignatureHash};
use std::collections::VecDeque;
use std::time::Duration;

/// An IKE SA without authentication.
#[derive(Clone)]
pub(super) struct Opening {
    /// IKE_SA_INIT, as it was sent and received.
    pub(super) request: Vec<u8>,
    pub(super) response: Vec<u8>,
    /// SPI of the first child SA to this end.
    pub(super) child_spi: u32,
    /// When a responder gives up.
    pub(super) expires: Option<Duration>,
    /// Additional key exchanges that are left.
    pub(super) rest: VecDeque<KeMethodKind>,
    /// `IntAuth_i` and `IntAuth_r` so far.
    pub(super) authenticated: Option<[Secret; 2]>,
    /// The message ID of IKE_AUTH.
    pub(super) auth_id: u32,
    /// What the peer supports.
    pub(super) peer: Support,
    /// Hashes in signatures that both ends accept.
    pub(super) hashes: Vec<SignatureHash>,
}

/// A notification, and the support that it announces.
type Announced = (NotifyType, fn(&mut Support) -> &mut bool);

/// Support that notifications of IKE_SA_INIT announce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Support {
    pub(super) ppk: bool,
    pub(super) intermediate: bool,
    pub(super) fragments: bool,
    pub(super) childless: bool,
}

impl Support {
    const TYPES: [Announced; 4] = [
        (NotifyType::USE_PPK, |it| &mut it.ppk),
        (NotifyType::INTERMEDIATE_EXCHANGE_SUPPORTED, |it| {
            &mut it.intermediate
        }),
        (NotifyType::IKEV2_FRAGMENTATION_SUPPORTED, |it| {
            &mut it.fragments
        }),
        (NotifyType::CHILDLESS_IKEV2_SUPPORTED, |it| {
            &mut it.childless
        }),
    ];

    pub(super) fn of_settings(settings: &super::Settings) -> Self {
        Self {
            ppk: !settings.ppks.is_empty(),
            intermediate: settings.ike.iter().any(|it| it.additional[0].is_some()),
            fragments: settings.datagram.is_some(),
            childless: settings.childless,
        }
    }

    pub(super) fn of_payloads(payloads: &[Payload]) -> Self {
        let mut support = Self::default();
        for notify in super::notifies(payloads) {
            if let Some((_, of)) = Self::TYPES.iter().find(|(kind, _)| *kind == notify.kind) {
                *of(&mut support) = true;
            }
        }
        support
    }

    pub(super) fn and(mut self, mut other: Self) -> Self {
        for (_, of) in Self::TYPES {
            *of(&mut self) &= *of(&mut other);
        }
        self
    }

    pub(super) fn payloads(mut self) -> Vec<Payload> {
        let types = Self::TYPES.into_iter();
        types
            .filter(|(_, of)| *of(&mut self))
            .map(|(kind, _)| notify(kind, []))
            .collect()
    }
}

impl Opening {
    /// `IntAuth` of both AUTH payloads (RFC 9242 section 3.3.2).
    pub(super) fn int_auth(&self) -> Secret {
        let mut bytes = Secret::default();
        if let Some(both) = &self.authenticated {
            let id = self.auth_id.to_be_bytes();
            *bytes = [both[0].as_slice(), &both[1], &id].concat();
        }
        bytes
    }
}

fn exchange_of(payloads: &[Payload]) -> Option<(KeMethod, &[u8])> {
    payloads.iter().find_map(|payload| match payload {
        Payload::KeyExchange { method, data } => Some((*method, data.as_slice())),
        _ => None,
    })
}

impl Session {
    fn opening_mut(&mut self) -> Option<&mut Opening> {
        match &mut self.phase {
            Phase::Opening(opening) => Some(opening),
            _ => None,
        }
    }

    /// The initiator's next request: a key exchange, or IKE_AUTH.
    pub(super) fn proceed(&mut self, now: Duration, out: &mut Vec<Output>) {
        let spi = self.current;
        let rest = self.opening_mut().and_then(|it| it.rest.front().copied());
        let Some(method) = rest else {
            self.send_auth(now, out);
            return;
        };
        let (private, data) = match PrivateValue::generate(method) {
            Ok(generated) => generated,
            Err(error) => {
                self.close(Closed::Protocol(error.to_string()), out);
                return;
            }
        };
        let method = method.id();
        let payloads = [Payload::KeyExchange { method, data }];
        let purpose = Purpose::Intermediate(Box::new(private));
        let exchange = (Exchange::IKE_INTERMEDIATE, purpose);
        if let Some(inner) = self.request(spi, now, exchange, &payloads, out) {
            self.authenticate(spi, &inner, Role::Initiator);
        }
    }

    /// Adds a message to `IntAuth`, by the keys that protected it.
    fn authenticate(&mut self, spi: u64, inner: &Inner, sender: Role) {
        let Some(keyed) = self.keyed(spi) else { return };
        let at = usize::from(sender == Role::Responder);
        let (prf, key) = (keyed.suite.prf, keyed.keys.auth[at].clone());
        let message = Message {
            header: inner.header,
            payloads: vec![Payload::Encrypted {
                first: inner.first,
                body: Vec::new(),
            }],
        };
        let Some(opening) = self.opening_mut() else {
            return;
        };
        let both = opening.authenticated.get_or_insert_default();
        // A reassembled message is at most as long as the limits of its fragments.
        if let Ok(next) = intermediate_auth(prf, &key, &both[at], &message, &inner.bytes) {
            both[at] = next;
        }
    }

    fn mix(&mut self, spi: u64, secret: &[u8]) {
        if let Some(opening) = self.opening_mut() {
            opening.rest.pop_front();
        }
        let Some(channel) = self.channel_mut(spi) else {
            return;
        };
        let Some(keyed) = &mut channel.keyed else {
            return;
        };
        let former = keyed.clone();
        let (prf, cipher) = (keyed.suite.prf, keyed.suite.cipher);
        let keys = &former.keys;
        keyed.keys = keys.after_exchange(prf, cipher, &keyed.transcript, secret);
        // A repetition of this request is protected by the former keys.
        channel.former = Some(Box::new(former));
    }

    pub(super) fn intermediate_request(
        &mut self,
        spi: u64,
        now: Duration,
        payloads: &[Payload],
        inner: &Inner,
        out: &mut Vec<Output>,
    ) {
        let exchange = Exchange::IKE_INTERMEDIATE;
        let wanted = self.opening_mut().and_then(|it| it.rest.front().copied());
        let answered = match (wanted, exchange_of(payloads)) {
            (Some(kind), Some((method, public))) if kind.id() == method => {
                respond(kind, public).map_err(|error| error.to_string())
            }
            (Some(kind), _) => Err(format!(
                "no value of {} in IKE_INTERMEDIATE (RFC 9370 section 2.2.2)",
                kind.id()
            )),
            (None, _) => Err("IKE_INTERMEDIATE without a purpose (RFC 9242 section 3.1)".into()),
        };
        let (data, secret) = match answered {
            Ok(answered) => answered,
            Err(reason) => {
                let kind = NotifyType::INVALID_SYNTAX;
                self.respond(spi, now, exchange, &[notify(kind, [])], out);
                self.close(Closed::Refused(kind, reason), out);
                return;
            }
        };
        self.authenticate(spi, inner, Role::Initiator);
        let method = wanted.map_or(KeMethod::NONE, KeMethodKind::id);
        let answer = [Payload::KeyExchange { method, data }];
        if let Some(inner) = self.respond(spi, now, exchange, &answer, out) {
            self.authenticate(spi, &inner, Role::Responder);
            self.mix(spi, &secret);
        }
    }

    pub(super) fn intermediate_response(
        &mut self,
        spi: u64,
        now: Duration,
        private: &PrivateValue,
        payloads: &[Payload],
        inner: &Inner,
        out: &mut Vec<Output>,
    ) {
        if let Some(error) = super::error_of(payloads) {
            self.close(Closed::RefusedByPeer(error), out);
            return;
        }
        let exchange = exchange_of(payloads);
        let public = exchange.filter(|(method, _)| *method == private.method().id());
        match public.and_then(|(_, public)| private.finish(public).ok()) {
            Some(secret) => {
                self.authenticate(spi, inner, Role::Responder);
                self.mix(spi, &secret);
                self.proceed(now, out);
            }
            None => {
                let reason = "no valid public value in IKE_INTERMEDIATE (RFC 9370 section 2.2.2)";
                self.close(Closed::Protocol(reason.to_owned()), out);
            }
        }
    }
}
