//! IKE_AUTH (RFC 7296 section 1.2): identities, authentication, the first child SA.

use super::negotiate::{choose_child, chosen_child, narrow, offer_child, selectors, within};
use super::{
    Authenticating, ChildSa, ChildSuite, Closed, Event, Keyed, Output, Phase, Role, Session,
    error_of,
};
use crate::crypto::{SignedOctets, child_keymat, shared_key_code, verify_shared_key};
use crate::message::{
    AddressRange, AuthMethod, Exchange, Identity, Notify, NotifyType, Payload, Proposal, Selector,
};
use std::time::Duration;
use zeroize::Zeroizing;

/// The peer's payloads of IKE_AUTH; of repeated ones the last counts.
#[derive(Default)]
struct Claims<'a> {
    initiator: Option<&'a Identity>,
    responder: Option<&'a Identity>,
    auth: Option<(AuthMethod, &'a [u8])>,
    proposals: Option<&'a [Proposal]>,
    initiator_selectors: &'a [Selector],
    responder_selectors: &'a [Selector],
}

impl<'a> Claims<'a> {
    fn of(payloads: &'a [Payload]) -> Self {
        let mut claims = Self::default();
        for payload in payloads {
            match payload {
                Payload::InitiatorId(identity) => claims.initiator = Some(identity),
                Payload::ResponderId(identity) => claims.responder = Some(identity),
                Payload::Auth { method, data } => claims.auth = Some((*method, data)),
                Payload::Sa(proposals) => claims.proposals = Some(proposals),
                Payload::InitiatorSelectors(list) => claims.initiator_selectors = list,
                Payload::ResponderSelectors(list) => claims.responder_selectors = list,
                _ => {}
            }
        }
        claims
    }
}

impl Authenticating {
    /// What `signer` authenticates.
    fn octets<'a>(
        &'a self,
        keyed: &'a Keyed,
        signer: Role,
        identity: &'a [u8],
    ) -> SignedOctets<'a> {
        let transcript = &keyed.transcript;
        let (message, peer_nonce, key) = match signer {
            Role::Initiator => (
                &self.request,
                &transcript.responder_nonce,
                &keyed.keys.auth[0],
            ),
            Role::Responder => (
                &self.response,
                &transcript.initiator_nonce,
                &keyed.keys.auth[1],
            ),
        };
        SignedOctets {
            message,
            peer_nonce,
            key,
            identity,
            intermediate: &[],
        }
    }
}

impl Session {
    pub(super) fn send_auth(
        &mut self,
        now: Duration,
        authenticating: Authenticating,
        out: &mut Vec<Output>,
    ) {
        let settings = &self.settings;
        let payloads = [
            Payload::InitiatorId(settings.identity.clone()),
            Payload::ResponderId(settings.peer_identity.clone()),
            self.auth_payload(&authenticating),
            Payload::Notify(Notify::new(NotifyType::INITIAL_CONTACT, [])),
            Payload::Sa(offer_child(&settings.child, authenticating.child_spi)),
            Payload::InitiatorSelectors(selectors(&settings.local)),
            Payload::ResponderSelectors(selectors(&settings.remote)),
        ];
        self.phase = Phase::Authenticating(Box::new(authenticating));
        self.request(now, Exchange::IKE_AUTH, &payloads, out);
    }

    /// This end's AUTH payload.
    fn auth_payload(&self, authenticating: &Authenticating) -> Payload {
        let keyed = self.keyed.as_ref().expect("IKE_SA_INIT is over");
        let identity = self.settings.identity.body();
        let octets = authenticating.octets(keyed, self.role, &identity);
        let code = shared_key_code(keyed.suite.prf, &self.settings.shared_key, &octets);
        Payload::Auth {
            method: AuthMethod::SHARED_KEY,
            data: code.to_vec(),
        }
    }

    /// Whether the peer is the configured one; otherwise the reason.
    fn verify(
        &self,
        authenticating: &Authenticating,
        identity: Option<&Identity>,
        auth: Option<(AuthMethod, &[u8])>,
    ) -> Result<(), String> {
        let keyed = self.keyed.as_ref().expect("IKE_SA_INIT is over");
        let (Some(identity), Some((method, code))) = (identity, auth) else {
            return Err("the peer sent no identity or no AUTH (RFC 7296 section 1.2)".to_owned());
        };
        if method != AuthMethod::SHARED_KEY {
            return Err(format!(
                "the peer authenticates by {method}, a shared key is configured (RFC 7296 section 2.15)"
            ));
        }
        let body = identity.body();
        let peer = match self.role {
            Role::Initiator => Role::Responder,
            Role::Responder => Role::Initiator,
        };
        let octets = authenticating.octets(keyed, peer, &body);
        let is_right = verify_shared_key(keyed.suite.prf, &self.settings.shared_key, &octets, code);
        if !is_right {
            return Err("the peer has another shared key (RFC 7296 section 2.15)".to_owned());
        }
        // After the key: strangers learn nothing about the configured identity.
        if *identity != self.settings.peer_identity {
            return Err(format!(
                "the peer's identity is {identity}, not {} (RFC 7296 section 3.5)",
                self.settings.peer_identity
            ));
        }
        Ok(())
    }

    pub(super) fn auth_request(&mut self, payloads: &[Payload], out: &mut Vec<Output>) {
        let exchange = Exchange::IKE_AUTH;
        let Phase::Authenticating(authenticating) = &self.phase else {
            let refusal = Notify::new(NotifyType::INVALID_SYNTAX, []);
            self.respond(exchange, &[Payload::Notify(refusal)], out);
            return;
        };
        let authenticating = authenticating.as_ref().clone();
        let claims = Claims::of(payloads);
        if let Err(reason) = self.verify(&authenticating, claims.initiator, claims.auth) {
            let kind = NotifyType::AUTHENTICATION_FAILED;
            self.respond(exchange, &[Payload::Notify(Notify::new(kind, []))], out);
            self.close(Closed::Refused(kind, reason), out);
            return;
        }
        let mut answer = vec![
            Payload::ResponderId(self.settings.identity.clone()),
            self.auth_payload(&authenticating),
        ];
        let child = self.answer_child(&claims, authenticating.child_spi);
        match &child {
            Ok((child, proposal)) => answer.extend([
                Payload::Sa(vec![proposal.clone()]),
                Payload::InitiatorSelectors(selectors(&child.remote)),
                Payload::ResponderSelectors(selectors(&child.local)),
            ]),
            Err(kind) => answer.push(Payload::Notify(Notify::new(*kind, []))),
        }
        self.phase = Phase::Established;
        self.respond(exchange, &answer, out);
        self.established(child.map(|(child, _)| child), out);
    }

    /// The child SA of a request, with the chosen proposal.
    fn answer_child(
        &self,
        claims: &Claims<'_>,
        spi: u32,
    ) -> Result<(ChildSa, Proposal), NotifyType> {
        let offers = claims.proposals.unwrap_or_default();
        let (suite, mut proposal) =
            choose_child(&self.settings.child, offers).ok_or(NotifyType::NO_PROPOSAL_CHOSEN)?;
        let peer = proposal.spi.as_slice().try_into();
        let peer = u32::from_be_bytes(peer.map_err(|_| NotifyType::INVALID_SYNTAX)?);
        proposal.spi = spi.to_be_bytes().to_vec();
        let remote = narrow(claims.initiator_selectors, &self.settings.remote);
        let local = narrow(claims.responder_selectors, &self.settings.local);
        if remote.is_empty() || local.is_empty() {
            return Err(NotifyType::TS_UNACCEPTABLE);
        }
        Ok((self.child(suite, (spi, peer), local, remote), proposal))
    }

    pub(super) fn auth_response(
        &mut self,
        now: Duration,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        let Phase::Authenticating(authenticating) = &self.phase else {
            return;
        };
        let authenticating = authenticating.as_ref().clone();
        let claims = Claims::of(payloads);
        // Without AUTH the error concerns the IKE SA, with it the child SA alone.
        let error = error_of(payloads);
        if let (None, Some(error)) = (claims.auth, error) {
            self.close(Closed::RefusedByPeer(error), out);
            return;
        }
        if let Err(reason) = self.verify(&authenticating, claims.responder, claims.auth) {
            // The peer believes in this IKE SA, and learns that there is none (section 2.21.2).
            let kind = NotifyType::AUTHENTICATION_FAILED;
            let notify = Payload::Notify(Notify::new(kind, []));
            self.request(now, Exchange::INFORMATIONAL, &[notify], out);
            self.close(Closed::Refused(kind, reason), out);
            return;
        }
        self.phase = Phase::Established;
        let child = match error {
            Some(error) => Err(error),
            None => self.accepted_child(&claims, authenticating.child_spi),
        };
        self.established(child, out);
    }

    fn accepted_child(&self, claims: &Claims<'_>, spi: u32) -> Result<ChildSa, NotifyType> {
        let answer = claims.proposals.unwrap_or_default();
        let (suite, peer) =
            chosen_child(&self.settings.child, answer).ok_or(NotifyType::NO_PROPOSAL_CHOSEN)?;
        let local = within(claims.initiator_selectors, &self.settings.local);
        let remote = within(claims.responder_selectors, &self.settings.remote);
        match (local, remote) {
            (Some(local), Some(remote)) if !local.is_empty() && !remote.is_empty() => {
                Ok(self.child(suite, (spi, peer), local, remote))
            }
            _ => Err(NotifyType::TS_UNACCEPTABLE),
        }
    }

    fn child(
        &self,
        suite: ChildSuite,
        (inbound_spi, outbound_spi): (u32, u32),
        local: Vec<AddressRange>,
        remote: Vec<AddressRange>,
    ) -> ChildSa {
        let keyed = self.keyed.as_ref().expect("IKE_SA_INIT is over");
        let bytes = suite.cipher.encryption_key_bytes() + suite.cipher.integrity_key_bytes();
        let nonces = (
            keyed.transcript.initiator_nonce.as_slice(),
            keyed.transcript.responder_nonce.as_slice(),
        );
        let derivation = &keyed.keys.derivation;
        let keymat = child_keymat(keyed.suite.prf, derivation, &[], nonces, 2 * bytes);
        // Keys of the initiator's packets are first (RFC 7296 section 2.17).
        let (from_initiator, from_responder) = keymat.split_at(bytes);
        let (inbound, outbound) = match self.role {
            Role::Initiator => (from_responder, from_initiator),
            Role::Responder => (from_initiator, from_responder),
        };
        ChildSa {
            suite,
            inbound_spi,
            outbound_spi,
            inbound_keys: Zeroizing::new(inbound.to_vec()),
            outbound_keys: Zeroizing::new(outbound.to_vec()),
            local,
            remote,
            in_udp: self.has_nat,
        }
    }

    fn established(&mut self, child: Result<ChildSa, NotifyType>, out: &mut Vec<Output>) {
        out.push(Output::Established);
        match child {
            Ok(child) => {
                self.children.push(child.clone());
                out.push(Output::ChildUp(Box::new(child)));
            }
            Err(kind) => out.push(Output::Event(Event::ChildRefused(kind))),
        }
    }
}
