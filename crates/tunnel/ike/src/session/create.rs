//! CREATE_CHILD_SA by this end: new child SAs, and new keys of child SAs and of the IKE SA, also
//! while the peer does the same (RFC 7296 sections 1.3, 2.8 and 2.25).

use super::channel::{Channel, Standing};
use super::child::{Material, State, Terms};
use super::init::NONCE_BYTES;
use super::negotiate::{chosen_child, chosen_ike, offer_child, offer_ike, selectors, within};
use super::orders::Action;
use super::{
    ChildSa, Closed, Event, Exchange, IkeSuite, Keyed, LINGER, NotifyType, Output, Purpose, Role,
    Session, error_of, notifies,
};
use crate::crypto::{KeMethodKind, PrivateValue, Secret, Transcript};
use crate::message::{
    AddressRange, ChildSpi, KeMethod, Notify, Payload, Proposal, Protocol, Selector,
};
use std::collections::VecDeque;
use std::time::Duration;

type Selectors = (Vec<AddressRange>, Vec<AddressRange>);

/// A request of this end, until its SA exists.
#[derive(Clone)]
pub(super) struct Creating {
    pub(super) subject: Subject,
    pub(super) nonce: Vec<u8>,
    /// The value of the key exchange under way.
    pub(super) private: Option<PrivateValue>,
    /// The peer surely knew the child SA when its rekeying was sent.
    pub(super) is_known: bool,
    /// The SA of the peer's rekeying of the same SA.
    pub(super) rival: Option<Rival>,
    /// Additional key exchanges are left.
    pub(super) followup: Option<Box<Followup>>,
}

/// The additional key exchanges that are left, at the end that began.
#[derive(Clone)]
pub(super) struct Followup {
    pub(super) completed: Completed,
    /// The first one is under way.
    pub(super) rest: VecDeque<KeMethodKind>,
}

#[derive(Clone)]
pub(super) enum Subject {
    Child {
        /// SPIs to this end.
        replaces: Option<u32>,
        spi: u32,
        selectors: Selectors,
    },
    /// SPI of the new IKE SA.
    Ike { spi: u64 },
}

/// The SA that the peer's simultaneous rekeying created.
#[derive(Clone)]
pub(super) struct Rival {
    /// SPI to this end: of a child SA 4 bytes.
    pub(super) spi: u64,
    /// The lower nonce of its exchange.
    pub(super) lowest: Vec<u8>,
}

impl Creating {
    /// The IKE SA that the peer created in the meantime.
    pub(super) fn rival_ike(&self) -> Option<u64> {
        match self.subject {
            Subject::Ike { .. } => self.rival.as_ref().map(|it| it.spi),
            Subject::Child { .. } => None,
        }
    }
}

/// The payloads of CREATE_CHILD_SA; of repeated ones the last counts.
#[derive(Default)]
pub(super) struct Claims<'a> {
    pub(super) proposals: &'a [Proposal],
    pub(super) nonce: Option<&'a [u8]>,
    pub(super) exchange: Option<(KeMethod, &'a [u8])>,
    pub(super) initiator_selectors: &'a [Selector],
    pub(super) responder_selectors: &'a [Selector],
}

impl<'a> Claims<'a> {
    pub(super) fn of(payloads: &'a [Payload]) -> Self {
        let mut claims = Self::default();
        for payload in payloads {
            match payload {
                Payload::Sa(proposals) => claims.proposals = proposals,
                Payload::Nonce(nonce) => claims.nonce = Some(nonce),
                Payload::KeyExchange { method, data } => claims.exchange = Some((*method, data)),
                Payload::InitiatorSelectors(list) => claims.initiator_selectors = list,
                Payload::ResponderSelectors(list) => claims.responder_selectors = list,
                _ => {}
            }
        }
        claims
    }
}

/// The lower one of an exchange's nonces (RFC 7296 section 2.8).
pub(super) fn lowest(one: &[u8], other: &[u8]) -> Vec<u8> {
    one.min(other).to_vec()
}

impl Session {
    pub(super) fn send_create_child(
        &mut self,
        now: Duration,
        replaces: Option<u32>,
        selectors: Selectors,
        method: Option<KeMethodKind>,
        out: &mut Vec<Output>,
    ) {
        let spi = self.child_spi();
        let mut payloads = Vec::new();
        payloads.extend(replaces.map(|spi| {
            Payload::Notify(Notify {
                kind: NotifyType::REKEY_SA,
                sa: Some(ChildSpi {
                    protocol: Protocol::ESP,
                    spi,
                }),
                data: Vec::new(),
            })
        }));
        payloads.push(Payload::Sa(offer_child(&self.settings.child, spi)));
        let first = self.settings.child.first().and_then(|it| it.exchange);
        let subject = Subject::Child {
            replaces,
            spi,
            selectors,
        };
        self.send_create(now, subject, method.or(first), payloads, out);
    }

    pub(super) fn send_rekey_ike(
        &mut self,
        now: Duration,
        method: Option<KeMethodKind>,
        out: &mut Vec<Output>,
    ) {
        let spi = self.random.ike_spi();
        let offer = offer_ike(&self.settings.ike, &spi.to_be_bytes());
        let first = self.settings.ike.first().map(|it| it.exchange);
        let payloads = vec![Payload::Sa(offer)];
        self.send_create(now, Subject::Ike { spi }, method.or(first), payloads, out);
    }

    fn send_create(
        &mut self,
        now: Duration,
        subject: Subject,
        method: Option<KeMethodKind>,
        mut payloads: Vec<Payload>,
        out: &mut Vec<Output>,
    ) {
        let nonce = self.random.bytes(NONCE_BYTES).to_vec();
        payloads.push(Payload::Nonce(nonce.clone()));
        let mut private = None;
        if let Some(method) = method {
            match PrivateValue::generate(method) {
                Ok((value, data)) => {
                    private = Some(value);
                    let method = method.id();
                    payloads.push(Payload::KeyExchange { method, data });
                }
                Err(error) => {
                    self.close(Closed::Protocol(error.to_string()), out);
                    return;
                }
            }
        }
        if let Subject::Child {
            selectors: (local, remote),
            ..
        } = &subject
        {
            payloads.extend([
                Payload::InitiatorSelectors(selectors(local)),
                Payload::ResponderSelectors(selectors(remote)),
            ]);
        }
        let is_known = match &subject {
            Subject::Child {
                replaces: Some(old),
                ..
            } => self.known_at(*old) <= now,
            _ => true,
        };
        let purpose = Purpose::Create(Box::new(Creating {
            subject,
            nonce,
            private,
            is_known,
            rival: None,
            followup: None,
        }));
        let exchange = (Exchange::CREATE_CHILD_SA, purpose);
        self.request(self.current, now, exchange, &payloads, out);
    }

    /// The response to CREATE_CHILD_SA or IKE_FOLLOWUP_KE.
    pub(super) fn create_response(
        &mut self,
        spi: u64,
        now: Duration,
        creating: Creating,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        if let Some(error) = error_of(payloads) {
            let wanted = notifies(payloads)
                .find(|it| it.kind == NotifyType::INVALID_KE_PAYLOAD)
                .and_then(|it| it.data.first_chunk().copied());
            let wanted = wanted.map(|it| KeMethod(u16::from_be_bytes(it)));
            self.refused(spi, now, creating, (error, wanted), out);
            return;
        }
        if creating.followup.is_some() {
            self.followup_response(spi, now, creating, payloads, out);
            return;
        }
        let claims = Claims::of(payloads);
        if let Err(reason) = self.agreed(spi, now, creating, &claims, payloads, out) {
            self.close(Closed::Protocol(reason.to_owned()), out);
        }
    }

    /// Takes the peer's choice; the response violates the protocol if that is not possible.
    fn agreed(
        &mut self,
        spi: u64,
        now: Duration,
        mut creating: Creating,
        claims: &Claims<'_>,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) -> Result<(), &'static str> {
        const CHOICE: &str =
            "the peer chose a proposal that was not offered (RFC 7296 section 2.7)";
        const EXCHANGE: &str =
            "the peer's key exchange does not fit its proposal (RFC 7296 section 1.3)";
        let nonce = claims.nonce.ok_or("no nonce (RFC 7296 section 1.3)")?;
        let (agreed, exchange, additional) = match &creating.subject {
            Subject::Child {
                spi,
                selectors: (local, remote),
                ..
            } => {
                let chosen = chosen_child(&self.settings.child, claims.proposals);
                let (suite, peer) = chosen.ok_or(CHOICE)?;
                let local = within(claims.initiator_selectors, local);
                let remote = within(claims.responder_selectors, remote);
                let (Some(local), Some(remote)) = (local, remote) else {
                    return Err("the peer widened the selectors (RFC 7296 section 2.9)");
                };
                let terms = Terms {
                    suite,
                    inbound_spi: *spi,
                    outbound_spi: peer,
                    local,
                    remote,
                };
                (Agreed::Child(terms), suite.exchange, suite.additional)
            }
            Subject::Ike { spi } => {
                let suite = chosen_ike(&self.settings.ike, claims.proposals).ok_or(CHOICE)?;
                let peer = claims.proposals.first().and_then(|it| it.spi.first_chunk());
                let peer = u64::from_be_bytes(*peer.ok_or(CHOICE)?);
                if peer == 0 {
                    return Err("the new SPI is 0 (RFC 7296 section 3.1)");
                }
                let agreed = Agreed::Ike {
                    suite,
                    spis: (*spi, peer),
                    role: Role::Initiator,
                };
                (agreed, Some(suite.exchange), suite.additional)
            }
        };
        let mut secrets = Vec::new();
        match (exchange, creating.private.take(), claims.exchange) {
            (None, _, _) => {}
            (Some(kind), Some(private), Some((method, public)))
                if private.method() == kind && method == kind.id() =>
            {
                secrets.push(private.finish(public).map_err(|_| EXCHANGE)?);
            }
            _ => return Err(EXCHANGE),
        }
        let completed = Completed {
            agreed,
            nonces: (creating.nonce.clone(), nonce.to_vec()),
            secrets,
        };
        let rest = additional.into_iter().flatten().collect();
        let followup = Followup { completed, rest };
        self.followup_or_complete(spi, now, creating, followup, payloads, out)
    }

    /// All key exchanges of this end's request are over.
    pub(super) fn created(
        &mut self,
        spi: u64,
        now: Duration,
        creating: Creating,
        completed: Completed,
        out: &mut Vec<Output>,
    ) {
        // The peer's exchanges that are not over concern what this replaces.
        self.answering = None;
        let lowest = lowest(&completed.nonces.0, &completed.nonces.1);
        let Creating { subject, rival, .. } = creating;
        let replaces = match subject {
            Subject::Child { replaces, .. } => replaces,
            Subject::Ike { .. } => None,
        };
        match self.derived(spi, completed, true, replaces) {
            Some(Derived::Child(sa)) => self.child_created(now, sa, rival, &lowest, out),
            Some(Derived::Ike(channel)) => {
                self.ike_created(spi, now, *channel, rival, &lowest, out);
            }
            None => {}
        }
    }

    fn child_created(
        &mut self,
        now: Duration,
        sa: ChildSa,
        rival: Option<Rival>,
        lowest: &[u8],
        out: &mut Vec<Output>,
    ) {
        let (own, replaces) = (sa.inbound_spi, sa.replaces);
        self.add_child(now, sa, true, out);
        let Some(old) = replaces else { return };
        if let Some(child) = self.child_mut(old) {
            child.known_at = now;
        }
        // A peer that has already deleted its SA gave way.
        let rival = rival.filter(|it| self.child_mut(it.spi as u32).is_some());
        match rival {
            // The SA of the exchange with the lowest nonce is deleted by the end that created it
            // (RFC 7296 section 2.8.1).
            Some(rival) if *lowest < *rival.lowest => {
                self.replaced(now, old);
                self.leave_child(now, own);
            }
            Some(rival) => {
                self.replaced(now, rival.spi as u32);
                self.leave_child(now, old);
            }
            None => {
                self.leave_child(now, old);
            }
        }
    }

    fn ike_created(
        &mut self,
        old: u64,
        now: Duration,
        channel: Channel,
        rival: Option<Rival>,
        lowest: &[u8],
        out: &mut Vec<Output>,
    ) {
        let own = channel.local_spi();
        self.add_channel(channel, out);
        let rival = rival.filter(|it| self.channel(it.spi).is_some());
        let leaving = match rival {
            Some(rival) if *lowest < *rival.lowest => {
                self.switch(rival.spi, now);
                own
            }
            rival => {
                self.switch(own, now);
                if let Some(rival) = rival {
                    self.replace_channel(rival.spi, now);
                }
                old
            }
        };
        if let Some(channel) = self.channel_mut(leaving) {
            channel.standing = Standing::Leaving;
        }
    }

    /// Another IKE SA becomes the current one; the peer deletes the former.
    pub(super) fn switch(&mut self, spi: u64, now: Duration) {
        let former = std::mem::replace(&mut self.current, spi);
        self.replace_channel(former, now);
        let lifetime = self.settings.lifetimes.ike;
        self.rekey_at = lifetime.map(|it| now + self.early(it));
    }

    fn replace_channel(&mut self, spi: u64, now: Duration) {
        if let Some(channel) = self.channel_mut(spi) {
            channel.standing = Standing::Replaced(now + LINGER);
        }
    }

    /// The peer refused this end's request.
    fn refused(
        &mut self,
        spi: u64,
        now: Duration,
        creating: Creating,
        (error, wanted): (NotifyType, Option<KeMethod>),
        out: &mut Vec<Output>,
    ) {
        // Another method of a suite of ours, once per request.
        let method = wanted.and_then(KeMethodKind::of).filter(|method| {
            let former = creating.private.as_ref().map(PrivateValue::method);
            former != Some(*method) && creating.followup.is_none()
        });
        let is_temporary = matches!(
            error,
            NotifyType::TEMPORARY_FAILURE | NotifyType::STATE_NOT_FOUND
        );
        match creating.subject {
            Subject::Ike { .. } => {
                let rival = creating.rival.filter(|it| self.channel(it.spi).is_some());
                let offered = self.settings.ike.iter();
                let method = method.filter(|it| offered.clone().any(|own| own.exchange == *it));
                match (rival, method) {
                    (Some(rival), _) => self.switch(rival.spi, now),
                    // The peer has replaced this IKE SA meanwhile, or deletes it.
                    _ if spi != self.current => {}
                    (None, Some(method)) => self.send_rekey_ike(now, Some(method), out),
                    (None, None) if is_temporary => self.retry(now, Action::RekeyIke),
                    (None, None) => out.push(Output::Event(Event::RekeyRefused(error))),
                }
            }
            Subject::Child {
                replaces,
                selectors,
                ..
            } => {
                let rival = creating.rival;
                let rival = rival.filter(|it| self.child_mut(it.spi as u32).is_some());
                if let (Some(old), Some(_)) = (replaces, rival) {
                    self.replaced(now, old);
                    return;
                }
                let old = replaces.and_then(|old| self.child_mut(old));
                let old = old.filter(|it| it.state == State::Up);
                if replaces.is_some() && old.is_none() {
                    // Deleted by the peer meanwhile.
                    return;
                }
                let offered = self.settings.child.iter();
                let method =
                    method.filter(|it| offered.clone().any(|own| own.exchange == Some(*it)));
                // The request may have overtaken the response that announced it.
                let is_known = creating.is_known;
                let is_temporary =
                    is_temporary || error == NotifyType::CHILD_SA_NOT_FOUND && !is_known;
                if let Some(method) = method {
                    self.send_create_child(now, replaces, selectors, Some(method), out);
                } else if let Some(old) = replaces
                    && error == NotifyType::CHILD_SA_NOT_FOUND
                    && is_known
                {
                    // The peer lost it: a new one takes its place (RFC 7296 section 2.25).
                    self.child_deleted(old, out);
                    let (local, remote) = selectors;
                    self.enqueue(now, Action::CreateChild { local, remote });
                } else if is_temporary {
                    let (local, remote) = selectors;
                    let create = Action::CreateChild { local, remote };
                    self.retry(now, replaces.map_or(create, Action::RekeyChild));
                } else {
                    out.push(Output::Event(Event::ChildRefused(error)));
                }
            }
        }
    }

    /// The SA of a completed exchange on an IKE SA.
    pub(super) fn derived(
        &self,
        spi: u64,
        completed: Completed,
        is_initiator: bool,
        replaces: Option<u32>,
    ) -> Option<Derived> {
        let Completed {
            agreed,
            nonces,
            secrets,
        } = completed;
        match agreed {
            Agreed::Child(terms) => {
                let material = Material {
                    is_initiator,
                    nonces: (&nonces.0, &nonces.1),
                    secrets: &secrets,
                };
                let sa = self.derive_child(spi, terms, &material, replaces)?;
                Some(Derived::Child(sa))
            }
            Agreed::Ike { suite, spis, role } => {
                let old = self.keyed(spi)?;
                let (initiator_spi, responder_spi) = match role {
                    Role::Initiator => spis,
                    Role::Responder => (spis.1, spis.0),
                };
                let transcript = Transcript {
                    initiator_nonce: nonces.0,
                    responder_nonce: nonces.1,
                    initiator_spi,
                    responder_spi,
                };
                let new = (suite.prf, suite.cipher);
                let keys = old.keys.rekeyed(old.suite.prf, new, &transcript, &secrets);
                let mut channel = Channel::new(role, initiator_spi, responder_spi);
                channel.keyed = Some(Keyed {
                    suite,
                    keys,
                    transcript,
                });
                Some(Derived::Ike(Box::new(channel)))
            }
        }
    }
}

/// An SA that both ends agreed on.
#[derive(Clone)]
pub(super) enum Agreed {
    Child(Terms),
    Ike {
        suite: IkeSuite,
        /// This end's and the peer's.
        spis: (u64, u64),
        role: Role,
    },
}

/// The inputs of an SA's keys.
#[derive(Clone)]
pub(super) struct Completed {
    pub(super) agreed: Agreed,
    /// Of the exchange's initiator and responder.
    pub(super) nonces: (Vec<u8>, Vec<u8>),
    pub(super) secrets: Vec<Secret>,
}

/// A new SA.
pub(super) enum Derived {
    Child(ChildSa),
    Ike(Box<Channel>),
}
