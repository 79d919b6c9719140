//! IKE_FOLLOWUP_KE: additional key exchanges after CREATE_CHILD_SA (RFC 9370 section 2.2.4).

use super::create::{Completed, Creating, Followup};
use super::{Closed, Exchange, NotifyType, Output, Purpose, Session, notifies, notify};
use crate::crypto::{KeMethodKind, PrivateValue, respond};
use crate::message::{KeMethod, Payload};
use std::collections::VecDeque;
use std::time::Duration;

const LINK_BYTES: usize = 8;

/// The additional key exchanges that are left, at the end that did not begin.
#[derive(Clone)]
pub(super) struct Answering {
    /// The channel on which the exchanges run.
    pub(super) spi: u64,
    pub(super) completed: Completed,
    pub(super) replaces: Option<u32>,
    rest: VecDeque<KeMethodKind>,
    link: Vec<u8>,
}

fn link_of(payloads: &[Payload]) -> Option<&[u8]> {
    notifies(payloads)
        .find(|it| it.kind == NotifyType::ADDITIONAL_KEY_EXCHANGE)
        .map(|it| it.data.as_slice())
}

fn exchange_of(payloads: &[Payload]) -> Option<(KeMethod, &[u8])> {
    payloads.iter().find_map(|payload| match payload {
        Payload::KeyExchange { method, data } => Some((*method, data.as_slice())),
        _ => None,
    })
}

impl Session {
    /// Begins the next additional key exchange, or creates the SA.
    pub(super) fn followup_or_complete(
        &mut self,
        spi: u64,
        now: Duration,
        mut creating: Creating,
        followup: Followup,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) -> Result<(), &'static str> {
        let Followup { completed, rest } = followup;
        let Some(method) = rest.front().copied() else {
            self.created(spi, now, creating, completed, out);
            return Ok(());
        };
        let link = link_of(payloads).ok_or(
            "no ADDITIONAL_KEY_EXCHANGE, though key exchanges are left (RFC 9370 section 2.2.4)",
        )?;
        let generated = PrivateValue::generate(method);
        let (private, data) = generated.map_err(|_| "no random numbers")?;
        creating.private = Some(private);
        creating.followup = Some(Box::new(Followup { completed, rest }));
        let method = method.id();
        let payloads = [
            Payload::KeyExchange { method, data },
            notify(NotifyType::ADDITIONAL_KEY_EXCHANGE, link),
        ];
        let purpose = Purpose::Create(Box::new(creating));
        let exchange = (Exchange::IKE_FOLLOWUP_KE, purpose);
        self.request(spi, now, exchange, &payloads, out);
        Ok(())
    }

    pub(super) fn followup_response(
        &mut self,
        spi: u64,
        now: Duration,
        mut creating: Creating,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        let (Some(followup), Some(private)) = (creating.followup.take(), creating.private.take())
        else {
            return;
        };
        let mut followup = *followup;
        let exchange = exchange_of(payloads);
        let public = exchange.filter(|(method, _)| *method == private.method().id());
        let secret = public.and_then(|(_, public)| private.finish(public).ok());
        let finished = match secret {
            Some(secret) => {
                followup.completed.secrets.push(secret);
                followup.rest.pop_front();
                self.followup_or_complete(spi, now, creating, followup, payloads, out)
            }
            None => {
                Err("an additional key exchange without a valid value (RFC 9370 section 2.2.4)")
            }
        };
        if let Err(reason) = finished {
            self.close(Closed::Protocol(reason.to_owned()), out);
        }
    }

    /// The link to the next additional key exchange, if one is left.
    pub(super) fn await_followup(
        &mut self,
        spi: u64,
        completed: Completed,
        replaces: Option<u32>,
        rest: VecDeque<KeMethodKind>,
    ) -> Payload {
        let link = self.random.bytes(LINK_BYTES).to_vec();
        let payload = notify(NotifyType::ADDITIONAL_KEY_EXCHANGE, link.clone());
        self.answering = Some(Box::new(Answering {
            spi,
            completed,
            replaces,
            rest,
            link,
        }));
        payload
    }

    pub(super) fn followup_request(
        &mut self,
        spi: u64,
        now: Duration,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        let exchange = Exchange::IKE_FOLLOWUP_KE;
        let link = link_of(payloads);
        let known = self.answering.take();
        let known = known.filter(|it| it.spi == spi && Some(it.link.as_slice()) == link);
        let Some(mut answering) = known else {
            let refusal = notify(NotifyType::STATE_NOT_FOUND, []);
            self.respond(spi, now, exchange, &[refusal], out);
            return;
        };
        let wanted = answering.rest.pop_front();
        let value = exchange_of(payloads);
        let answered = match (wanted, value) {
            (Some(kind), Some((method, public))) if kind.id() == method => {
                respond(kind, public).ok().map(|it| (method, it))
            }
            _ => None,
        };
        let Some((method, (data, secret))) = answered else {
            let refusal = notify(NotifyType::INVALID_SYNTAX, []);
            self.respond(spi, now, exchange, &[refusal], out);
            return;
        };
        let Answering {
            mut completed,
            replaces,
            rest,
            ..
        } = *answering;
        completed.secrets.push(secret);
        let mut answer = vec![Payload::KeyExchange { method, data }];
        if rest.is_empty() {
            self.respond(spi, now, exchange, &answer, out);
            self.answered(spi, now, completed, replaces, out);
        } else {
            answer.push(self.await_followup(spi, completed, replaces, rest));
            self.respond(spi, now, exchange, &answer, out);
        }
    }
}
