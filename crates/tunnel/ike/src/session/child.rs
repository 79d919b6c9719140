//! Child SAs of a session.

use super::{ChildSa, ChildSuite, IkeSuite, Keyed, LINGER, NotifyType, Output, Session};
use crate::crypto::{Secret, child_keymat};
use crate::message::AddressRange;
use std::time::Duration;
use zeroize::Zeroizing;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Up,
    /// Another child SA replaces it. The peer deletes it; if it does not, this end does.
    Replaced(Duration),
    /// An order to delete it waits.
    Leaving,
    /// This end's delete is sent.
    Deleting,
}

#[derive(Clone)]
pub(super) struct Child {
    pub(super) sa: ChildSa,
    pub(super) state: State,
    pub(super) rekey_at: Option<Duration>,
    /// Until then, the peer may not know it: the response may be lost.
    pub(super) known_at: Duration,
}

impl Child {
    /// When a timer acts.
    pub(super) const fn acts_at(&self) -> Option<Duration> {
        match self.state {
            State::Up => self.rekey_at,
            State::Replaced(until) => Some(until),
            State::Leaving | State::Deleting => None,
        }
    }
}

/// What the derivation of a child SA takes from its exchange.
pub(super) struct Material<'a> {
    /// This end began the exchange.
    pub(super) is_initiator: bool,
    /// Nonces of the exchange's initiator and responder.
    pub(super) nonces: (&'a [u8], &'a [u8]),
    /// Secrets of its key exchanges.
    pub(super) secrets: &'a [Secret],
}

/// A child SA that both ends agreed on.
#[derive(Clone)]
pub(super) struct Terms {
    pub(super) suite: ChildSuite,
    pub(super) inbound_spi: u32,
    pub(super) outbound_spi: u32,
    pub(super) local: Vec<AddressRange>,
    pub(super) remote: Vec<AddressRange>,
}

/// The keys of a child SA (RFC 7296 section 2.17).
pub(super) fn derive(
    ike: (IkeSuite, &Keyed),
    terms: Terms,
    material: &Material<'_>,
    replaces: Option<u32>,
    in_udp: bool,
) -> ChildSa {
    let (ike, keyed) = ike;
    let cipher = terms.suite.cipher;
    let bytes = cipher.encryption_key_bytes() + cipher.integrity_key_bytes();
    let derivation = &keyed.keys.derivation;
    let Material {
        nonces, secrets, ..
    } = material;
    let keymat = child_keymat(ike.prf, derivation, secrets, *nonces, 2 * bytes);
    // Keys of the initiator's packets are first.
    let (from_initiator, from_responder) = keymat.split_at(bytes);
    let (inbound, outbound) = if material.is_initiator {
        (from_responder, from_initiator)
    } else {
        (from_initiator, from_responder)
    };
    ChildSa {
        suite: terms.suite,
        inbound_spi: terms.inbound_spi,
        outbound_spi: terms.outbound_spi,
        inbound_keys: Zeroizing::new(inbound.to_vec()),
        outbound_keys: Zeroizing::new(outbound.to_vec()),
        local: terms.local,
        remote: terms.remote,
        in_udp,
        replaces,
        has_peer: material.is_initiator,
    }
}

impl Session {
    /// The child SA of an exchange on an IKE SA with keys.
    pub(super) fn derive_child(
        &self,
        spi: u64,
        terms: Terms,
        material: &Material<'_>,
        replaces: Option<u32>,
    ) -> Option<ChildSa> {
        let keyed = self.keyed(spi)?;
        let ike = (keyed.suite, keyed);
        Some(derive(ike, terms, material, replaces, self.has_nat))
    }

    /// Adds a child SA. The end that began its exchange knows that the other has it.
    pub(super) fn add_child(
        &mut self,
        now: Duration,
        sa: ChildSa,
        is_initiator: bool,
        out: &mut Vec<Output>,
    ) {
        let rekey_at = self.settings.lifetimes.child;
        let rekey_at = rekey_at.map(|it| now + self.early(it));
        out.push(Output::ChildUp(Box::new(sa.clone())));
        self.children.push(Child {
            sa,
            state: State::Up,
            rekey_at,
            known_at: if is_initiator { now } else { now + LINGER },
        });
    }

    /// A new request shows that the peer has received all former responses.
    pub(super) fn confirm_children(&mut self) {
        for child in &mut self.children {
            child.known_at = Duration::ZERO;
        }
    }

    /// From when on the peer knows a child SA for sure.
    pub(super) fn known_at(&self, spi: u32) -> Duration {
        let mut children = self.children.iter();
        let child = children.find(|it| it.sa.inbound_spi == spi);
        child.map_or(Duration::ZERO, |it| it.known_at)
    }

    /// A lifetime less up to a tenth: both ends shall not begin at the same time.
    pub(super) fn early(&mut self, lifetime: Duration) -> Duration {
        lifetime - self.random.below(lifetime / 10)
    }

    pub(super) fn child_mut(&mut self, spi: u32) -> Option<&mut Child> {
        self.children.iter_mut().find(|it| it.sa.inbound_spi == spi)
    }

    /// The peer deletes a child SA that another replaces.
    pub(super) fn replaced(&mut self, now: Duration, spi: u32) {
        if let Some(child) = self.child_mut(spi).filter(|it| it.state == State::Up) {
            child.state = State::Replaced(now + LINGER);
        }
    }

    /// Whether a further child SA is permitted.
    pub(super) fn has_room(&self) -> Result<(), NotifyType> {
        if self.children.len() < self.settings.children_max {
            Ok(())
        } else {
            Err(NotifyType::NO_ADDITIONAL_SAS)
        }
    }
}
