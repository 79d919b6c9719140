//! CREATE_CHILD_SA by the peer (RFC 7296 section 1.3), with the collisions of section 2.25.

use super::channel::Standing;
use super::child::{State, Terms};
use super::create::{Agreed, Claims, Completed, Derived, Rival, Subject, lowest};
use super::init::NONCE_BYTES;
use super::negotiate::{choose_child, choose_ike, narrow, selectors};
use super::{Creating, Exchange, NotifyType, Output, Purpose, Role, Session, notifies};
use crate::crypto::{KeMethodKind, Secret, respond};
use crate::message::{ChildSpi, KeMethod, Notify, Payload, Proposal, Protocol};
use std::time::Duration;

/// Why a request is refused.
struct Refused(Notify);

impl From<NotifyType> for Refused {
    fn from(kind: NotifyType) -> Self {
        Self(Notify::new(kind, []))
    }
}

/// An accepted request.
struct Accepted {
    agreed: Agreed,
    proposal: Proposal,
    exchange: Option<KeMethodKind>,
    additional: Vec<KeMethodKind>,
    replaces: Option<u32>,
}

impl Session {
    pub(super) fn create_request(
        &mut self,
        spi: u64,
        now: Duration,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        let exchange = Exchange::CREATE_CHILD_SA;
        // A peer that begins another exchange has given up the one before.
        self.answering = None;
        let answered = self.examine(spi, payloads).and_then(|accepted| {
            let claims = Claims::of(payloads);
            self.answer_create(spi, accepted, &claims)
        });
        match answered {
            Err(Refused(refusal)) => {
                self.respond(spi, now, exchange, &[Payload::Notify(refusal)], out);
            }
            Ok((answer, complete)) => {
                self.respond(spi, now, exchange, &answer, out);
                if let Some((completed, replaces)) = complete {
                    self.answered(spi, now, completed, replaces, out);
                }
            }
        }
    }

    /// This end's request under way on an IKE SA.
    fn pending_create(&mut self, spi: u64) -> Option<&mut Creating> {
        let pending = self.channel_mut(spi)?.pending.as_mut()?;
        match &mut pending.purpose {
            Purpose::Create(creating) => Some(creating),
            _ => None,
        }
    }

    fn examine(&mut self, spi: u64, payloads: &[Payload]) -> Result<Accepted, Refused> {
        let claims = Claims::of(payloads);
        let standing = self.channel(spi).map(|it| it.standing);
        if self.is_leaving || standing != Some(Standing::Live) {
            return Err(NotifyType::TEMPORARY_FAILURE.into());
        }
        let protocol = claims.proposals.first().map(|it| it.protocol);
        if protocol == Some(Protocol::IKE) {
            self.examine_ike(spi, &claims)
        } else {
            self.examine_child(spi, &claims, payloads)
        }
    }

    fn examine_ike(&mut self, spi: u64, claims: &Claims<'_>) -> Result<Accepted, Refused> {
        let pending = self.channel(spi).and_then(|it| it.pending.as_ref());
        let changes_children = match pending.map(|it| &it.purpose) {
            Some(Purpose::Create(it)) => {
                matches!(it.subject, Subject::Child { .. }) || it.rival.is_some()
            }
            Some(Purpose::DeleteChild(_)) => true,
            _ => false,
        };
        // Until this end's rekeying of the former IKE SA is over, the new one may be redundant.
        if changes_children || spi != self.current {
            return Err(NotifyType::TEMPORARY_FAILURE.into());
        }
        let chosen = choose_ike(&self.settings.ike, claims.proposals);
        let (suite, mut proposal) = chosen.ok_or(NotifyType::NO_PROPOSAL_CHOSEN)?;
        let peer = proposal.spi.first_chunk().copied();
        let peer = u64::from_be_bytes(peer.ok_or(NotifyType::INVALID_SYNTAX)?);
        if peer == 0 {
            return Err(NotifyType::INVALID_SYNTAX.into());
        }
        let own = self.random.ike_spi();
        proposal.spi = own.to_be_bytes().to_vec();
        Ok(Accepted {
            agreed: Agreed::Ike {
                suite,
                spis: (own, peer),
                role: Role::Responder,
            },
            proposal,
            exchange: Some(suite.exchange),
            additional: suite.additional.into_iter().flatten().collect(),
            replaces: None,
        })
    }

    fn examine_child(
        &mut self,
        spi: u64,
        claims: &Claims<'_>,
        payloads: &[Payload],
    ) -> Result<Accepted, Refused> {
        let pending = self.pending_create(spi);
        if pending.is_some_and(|it| matches!(it.subject, Subject::Ike { .. })) {
            return Err(NotifyType::TEMPORARY_FAILURE.into());
        }
        let rekeyed = notifies(payloads).find(|it| it.kind == NotifyType::REKEY_SA);
        let rekeyed = rekeyed.and_then(|it| it.sa);
        let mut replaces = None;
        match rekeyed {
            None => self.has_room()?,
            Some(sa) => {
                let mut children = self.children.iter();
                let found = children
                    .find(|it| it.sa.outbound_spi == sa.spi && sa.protocol == Protocol::ESP)
                    .ok_or_else(|| not_found(sa))?;
                if found.state != State::Up {
                    return Err(NotifyType::TEMPORARY_FAILURE.into());
                }
                replaces = Some(found.sa.inbound_spi);
            }
        }
        let chosen = choose_child(&self.settings.child, claims.proposals);
        let (suite, mut proposal) = chosen.ok_or(NotifyType::NO_PROPOSAL_CHOSEN)?;
        let peer = proposal.spi.first_chunk().copied();
        let peer = u32::from_be_bytes(peer.ok_or(NotifyType::INVALID_SYNTAX)?);
        let remote = narrow(claims.initiator_selectors, &self.settings.remote);
        let local = narrow(claims.responder_selectors, &self.settings.local);
        if remote.is_empty() || local.is_empty() {
            return Err(NotifyType::TS_UNACCEPTABLE.into());
        }
        let own = self.child_spi();
        proposal.spi = own.to_be_bytes().to_vec();
        Ok(Accepted {
            agreed: Agreed::Child(Terms {
                suite,
                inbound_spi: own,
                outbound_spi: peer,
                local,
                remote,
            }),
            proposal,
            exchange: suite.exchange,
            additional: suite.additional.into_iter().flatten().collect(),
            replaces,
        })
    }

    /// The answer, and the SA's inputs if no additional key exchange is left.
    #[expect(clippy::type_complexity, reason = "used once")]
    fn answer_create(
        &mut self,
        spi: u64,
        accepted: Accepted,
        claims: &Claims<'_>,
    ) -> Result<(Vec<Payload>, Option<(Completed, Option<u32>)>), Refused> {
        let peer_nonce = claims.nonce.ok_or(NotifyType::INVALID_SYNTAX)?;
        let (exchange, secrets) = answer_exchange(accepted.exchange, claims.exchange)?;
        let nonce = self.random.bytes(NONCE_BYTES).to_vec();
        let mut answer = vec![
            Payload::Sa(vec![accepted.proposal]),
            Payload::Nonce(nonce.clone()),
        ];
        answer.extend(exchange);
        if let Agreed::Child(terms) = &accepted.agreed {
            answer.extend([
                Payload::InitiatorSelectors(selectors(&terms.remote)),
                Payload::ResponderSelectors(selectors(&terms.local)),
            ]);
        }
        let completed = Completed {
            agreed: accepted.agreed,
            nonces: (peer_nonce.to_vec(), nonce),
            secrets,
        };
        let replaces = accepted.replaces;
        if accepted.additional.is_empty() {
            return Ok((answer, Some((completed, replaces))));
        }
        let rest = accepted.additional.into();
        answer.push(self.await_followup(spi, completed, replaces, rest));
        Ok((answer, None))
    }

    /// All key exchanges of the peer's request are over.
    pub(super) fn answered(
        &mut self,
        spi: u64,
        now: Duration,
        completed: Completed,
        replaces: Option<u32>,
        out: &mut Vec<Output>,
    ) {
        let lowest = lowest(&completed.nonces.0, &completed.nonces.1);
        match self.derived(spi, completed, false, replaces) {
            Some(Derived::Child(sa)) => {
                let new = sa.inbound_spi;
                self.add_child(now, sa, false, out);
                let Some(old) = replaces else { return };
                let pending = self.pending_create(spi);
                let is_same = |it: &&mut Creating| matches!(it.subject, Subject::Child { replaces, .. } if replaces == Some(old));
                match pending.filter(is_same) {
                    Some(creating) => creating.rival = Some(Rival::new(new.into(), lowest)),
                    None => self.replaced(now, old),
                }
            }
            Some(Derived::Ike(channel)) => {
                let new = channel.local_spi();
                self.add_channel(*channel, out);
                let pending = self.pending_create(spi);
                match pending.filter(|it| matches!(it.subject, Subject::Ike { .. })) {
                    Some(creating) => creating.rival = Some(Rival::new(new, lowest)),
                    None => self.switch(new, now),
                }
            }
            None => {}
        }
    }
}

impl Rival {
    const fn new(spi: u64, lowest: Vec<u8>) -> Self {
        Self { spi, lowest }
    }
}

fn not_found(sa: ChildSpi) -> Refused {
    Refused(Notify {
        kind: NotifyType::CHILD_SA_NOT_FOUND,
        sa: Some(sa),
        data: Vec::new(),
    })
}

/// This end's public value, and the secret, if the suite has a key exchange.
fn answer_exchange(
    wanted: Option<KeMethodKind>,
    offered: Option<(KeMethod, &[u8])>,
) -> Result<(Option<Payload>, Vec<Secret>), Refused> {
    let Some(kind) = wanted else {
        return Ok((None, Vec::new()));
    };
    let method = kind.id();
    let Some((_, public)) = offered.filter(|(it, _)| *it == method) else {
        let wanted = method.0.to_be_bytes();
        return Err(Refused(Notify::new(NotifyType::INVALID_KE_PAYLOAD, wanted)));
    };
    let answered = respond(kind, public).map_err(|_| NotifyType::INVALID_SYNTAX)?;
    let (data, secret) = answered;
    Ok((Some(Payload::KeyExchange { method, data }), vec![secret]))
}
