//! IKE_AUTH (RFC 7296 section 1.2): identities, authentication, PPKs, the first child SA.

use super::certificates::{Authentication, Certificates, chain_of};
use super::child::{Material, Terms};
use super::intermediate::Opening;
use super::negotiate::{choose_child, chosen_child, narrow, offer_child, selectors, within};
use super::ppk::{self, Named};
use super::{
    ChildSa, ChildSuite, Closed, Event, Keyed, Output, Phase, PpkPolicy, Purpose, Role, Session,
    error_of, notifies, notify,
};
use crate::crypto::{IkeKeys, SignedOctets, shared_key_code, verify_shared_key, verify_signature};
use crate::message::{AuthMethod, Exchange, Identity, NotifyType, Payload, Proposal, Selector};
use std::time::Duration;

/// Method and data of an AUTH payload.
type Code<'a> = (AuthMethod, &'a [u8]);

/// The peer's payloads of IKE_AUTH; of repeated ones the last counts.
#[derive(Default)]
struct Claims<'a> {
    initiator: Option<&'a Identity>,
    responder: Option<&'a Identity>,
    auth: Option<Code<'a>>,
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

/// The code of one end: what it authenticates, by these keys.
fn with_octets<T>(
    opening: &Opening,
    keyed: &Keyed,
    keys: &IkeKeys,
    signer: Role,
    identity: &Identity,
    use_octets: impl FnOnce(&SignedOctets<'_>) -> T,
) -> T {
    let transcript = &keyed.transcript;
    let (message, peer_nonce, key) = match signer {
        Role::Initiator => (&opening.request, &transcript.responder_nonce, &keys.auth[0]),
        Role::Responder => (
            &opening.response,
            &transcript.initiator_nonce,
            &keys.auth[1],
        ),
    };
    use_octets(&SignedOctets {
        message,
        peer_nonce,
        key,
        identity: &identity.body(),
        intermediate: &opening.int_auth(),
    })
}

/// Whether a certified key of this identity has signed; otherwise the reason.
fn certified(
    certificates: &Certificates,
    identity: &Identity,
    (method, signature): Code<'_>,
    octets: &[u8],
    payloads: &[Payload],
) -> Result<(), String> {
    if method == AuthMethod::SHARED_KEY {
        return Err(
            "the peer authenticates by a shared key, certificates are configured (RFC 7296 section 2.15)"
                .to_owned(),
        );
    }
    let subject = certificates
        .verifier
        .verify(&chain_of(payloads)?)
        .map_err(|reason| format!("the peer's certificate: {reason}"))?;
    // Before the names: strangers learn nothing about them.
    if !verify_signature(method, &subject.public_key, octets, signature) {
        return Err(format!(
            "the peer's signature, {method}, is not that of its certificate (RFC 7296 section 2.15)"
        ));
    }
    if !subject.is(identity) {
        let names: Vec<_> = subject.identities.iter().map(Identity::to_string).collect();
        return Err(format!(
            "the peer's certificate is not that of {identity}, but of {} (RFC 4945 section 3.1)",
            names.join(", ")
        ));
    }
    Ok(())
}

const FAILED: NotifyType = NotifyType::AUTHENTICATION_FAILED;

impl Session {
    pub(super) fn send_auth(&mut self, now: Duration, out: &mut Vec<Output>) {
        let spi = self.current;
        let next = self.channel(spi).map(|it| it.next_request);
        let (Phase::Opening(opening), Some(auth_id)) = (&mut self.phase, next) else {
            return;
        };
        opening.auth_id = auth_id;
        let opening = opening.as_ref().clone();
        let settings = self.settings.clone();
        let ppk = settings.ppks.first().filter(|_| opening.peer.ppk);
        if ppk.is_none() && settings.ppk_policy == PpkPolicy::Required {
            let reason =
                "the peer supports no PPK, which the settings require (RFC 8784 section 3)";
            self.close(Closed::Refused(FAILED, reason.to_owned()), out);
            return;
        }
        let Some(keyed) = self.keyed(spi).cloned() else {
            return;
        };
        let mixed = ppk.map(|it| keyed.keys.with_ppk(keyed.suite.prf, &it.key));
        let keys = mixed.as_ref().unwrap_or(&keyed.keys);
        // Without the PPK too, for a responder that does not have it (RFC 8784 section 3).
        let is_optional = ppk.is_some() && settings.ppk_policy == PpkPolicy::Optional;
        let code = |keys| self.code(&opening, &keyed, keys, Role::Initiator);
        let codes = code(keys).and_then(|with| {
            let without = is_optional.then(|| code(&keyed.keys)).transpose()?;
            Ok((with, without))
        });
        let (code, code_without) = match codes {
            Ok(codes) => codes,
            Err(reason) => {
                self.close(Closed::Refused(FAILED, reason), out);
                return;
            }
        };
        let mut payloads = vec![Payload::InitiatorId(settings.identity.clone())];
        if let Some(certificates) = settings.authentication.certificates() {
            payloads.extend(certificates.payloads());
            payloads.extend(certificates.request());
        }
        let peer = settings.peer_identity.clone();
        payloads.extend(peer.map(Payload::ResponderId));
        payloads.push(self.auth_payload(code));
        if settings.initial_contact {
            payloads.push(notify(NotifyType::INITIAL_CONTACT, []));
        }
        if let Some(ppk) = ppk {
            payloads.push(ppk::named(ppk));
            payloads.extend(code_without.map(|it| notify(NotifyType::NO_PPK_AUTH, it)));
        }
        if !(settings.childless && opening.peer.childless) {
            payloads.extend([
                Payload::Sa(offer_child(&self.first_suites(), opening.child_spi)),
                Payload::InitiatorSelectors(selectors(&settings.local)),
                Payload::ResponderSelectors(selectors(&settings.remote)),
            ]);
        }
        let exchange = (Exchange::IKE_AUTH, Purpose::Auth);
        self.request(spi, now, exchange, &payloads, out);
    }

    /// Suites of the first child SA.
    fn first_suites(&self) -> Vec<ChildSuite> {
        let suites = self.settings.child.iter();
        suites.map(|it| it.without_exchange()).collect()
    }

    /// The data of this end's AUTH payload.
    fn code(
        &self,
        opening: &Opening,
        keyed: &Keyed,
        keys: &IkeKeys,
        role: Role,
    ) -> Result<Vec<u8>, String> {
        let (prf, identity) = (keyed.suite.prf, &self.settings.identity);
        with_octets(opening, keyed, keys, role, identity, |octets| {
            let signer = match &self.settings.authentication {
                Authentication::SharedKey(key) => {
                    return Ok(shared_key_code(prf, key, octets).to_vec());
                }
                Authentication::Certificates(certificates) => &certificates.signer,
            };
            if opening.hashes.is_empty() {
                return Err(
                    "the peer accepts no signatures: it has a shared key, or does not know RFC 7427"
                        .to_owned(),
                );
            }
            let signer = signer.accepted(&opening.hashes).ok_or_else(|| {
                format!(
                    "the peer does not accept {} in signatures (RFC 7427 section 4)",
                    signer.scheme().hash()
                )
            })?;
            let signature = signer.sign(&octets.bytes(prf));
            signature.ok_or_else(|| "the random number generator failed".to_owned())
        })
    }

    /// This end's AUTH payload.
    fn auth_payload(&self, data: Vec<u8>) -> Payload {
        let method = match self.settings.authentication {
            Authentication::SharedKey(_) => AuthMethod::SHARED_KEY,
            Authentication::Certificates(_) => AuthMethod::DIGITAL_SIGNATURE,
        };
        Payload::Auth { method, data }
    }

    /// Whether the peer is the configured one; otherwise the reason.
    fn verify(
        &self,
        opening: &Opening,
        (keyed, keys): (&Keyed, &IkeKeys),
        role: Role,
        (identity, auth): (Option<&Identity>, Option<Code<'_>>),
        payloads: &[Payload],
    ) -> Result<(), String> {
        let (Some(identity), Some((method, code))) = (identity, auth) else {
            return Err("the peer sent no identity or no AUTH (RFC 7296 section 1.2)".to_owned());
        };
        with_octets(opening, keyed, keys, role, identity, |octets| {
            match &self.settings.authentication {
                Authentication::SharedKey(_) if method != AuthMethod::SHARED_KEY => Err(format!(
                    "the peer authenticates by {method}, a shared key is configured (RFC 7296 section 2.15)"
                )),
                Authentication::SharedKey(key)
                    if verify_shared_key(keyed.suite.prf, key, octets, code) =>
                {
                    Ok(())
                }
                Authentication::SharedKey(_) => {
                    Err("the peer has another shared key (RFC 7296 section 2.15)".to_owned())
                }
                Authentication::Certificates(certificates) => {
                    let octets = octets.bytes(keyed.suite.prf);
                    certified(certificates, identity, (method, code), &octets, payloads)
                }
            }
        })?;
        // After the key: strangers learn nothing about the configured identity.
        match &self.settings.peer_identity {
            Some(wanted) if wanted != identity => Err(format!(
                "the peer's identity is {identity}, not {wanted} (RFC 7296 section 3.5)"
            )),
            _ => Ok(()),
        }
    }

    /// The keys and code by which an initiator is verified, and whether a PPK is in them.
    fn keys_of_request<'a>(
        &self,
        opening: &Opening,
        keyed: &Keyed,
        payloads: &'a [Payload],
        auth: Option<Code<'a>>,
    ) -> Result<(IkeKeys, Option<Code<'a>>, bool), String> {
        const REQUIRED: &str = "which the settings require (RFC 8784 section 3)";
        let is_required = self.settings.ppk_policy == PpkPolicy::Required;
        let plain = || keyed.keys.clone();
        match ppk::named_in(payloads) {
            Named::Some(data) if opening.peer.ppk => {
                if let Some(mixed) = ppk::mixed(&self.settings, keyed, data) {
                    return Ok((mixed, auth, true));
                }
                match ppk::code_without(payloads) {
                    Some(code) if !is_required => {
                        Ok((plain(), auth.map(|(method, _)| (method, code)), false))
                    }
                    Some(_) => Err(format!(
                        "the peer names a PPK that is unknown here, {REQUIRED}"
                    )),
                    None => Err(
                        "the peer requires a PPK that is unknown here (RFC 8784 section 3)"
                            .to_owned(),
                    ),
                }
            }
            _ if is_required => Err(format!("the peer uses no PPK, {REQUIRED}")),
            _ => Ok((plain(), auth, false)),
        }
    }

    pub(super) fn auth_request(
        &mut self,
        spi: u64,
        now: Duration,
        payloads: &[Payload],
        id: u32,
        out: &mut Vec<Output>,
    ) {
        let exchange = Exchange::IKE_AUTH;
        let Phase::Opening(opening) = &mut self.phase else {
            return;
        };
        opening.auth_id = id;
        let opening = opening.as_ref().clone();
        let Some(keyed) = self.keyed(spi).cloned() else {
            return;
        };
        let claims = Claims::of(payloads);
        let verified = if opening.rest.is_empty() {
            self.keys_of_request(&opening, &keyed, payloads, claims.auth)
                .and_then(|(keys, auth, has_ppk)| {
                    let by = (&keyed, &keys);
                    let claimed = (claims.initiator, auth);
                    self.verify(&opening, by, Role::Initiator, claimed, payloads)?;
                    let code = self.code(&opening, &keyed, &keys, Role::Responder)?;
                    Ok((keys, has_ppk, code))
                })
        } else {
            Err("additional key exchanges are missing (RFC 9370 section 2.2.2)".to_owned())
        };
        let (keys, has_ppk, code) = match verified {
            Ok(verified) => verified,
            Err(reason) => {
                self.respond(spi, now, exchange, &[notify(FAILED, [])], out);
                self.close(Closed::Refused(FAILED, reason), out);
                return;
            }
        };
        let mut answer = vec![Payload::ResponderId(self.settings.identity.clone())];
        let certificates = self.settings.authentication.certificates();
        answer.extend(certificates.into_iter().flat_map(Certificates::payloads));
        answer.push(self.auth_payload(code));
        if has_ppk {
            answer.push(notify(NotifyType::PPK_IDENTITY, []));
        }
        self.take_keys(spi, keys);
        let child = self.answer_first(spi, &claims, opening.child_spi);
        match &child {
            Ok(Some((child, proposal))) => answer.extend([
                Payload::Sa(vec![proposal.clone()]),
                Payload::InitiatorSelectors(selectors(&child.remote)),
                Payload::ResponderSelectors(selectors(&child.local)),
            ]),
            Ok(None) => {}
            Err(kind) => answer.push(notify(*kind, [])),
        }
        self.phase = Phase::Established;
        self.respond(spi, now, exchange, &answer, out);
        let is_only = notifies(payloads).any(|it| it.kind == NotifyType::INITIAL_CONTACT);
        self.established(now, claims.initiator, has_ppk, out);
        if is_only {
            out.push(Output::InitialContact);
        }
        self.first_child(now, child.map(|it| it.map(|(child, _)| child)), out);
    }

    fn take_keys(&mut self, spi: u64, keys: IkeKeys) {
        let channel = self.channel_mut(spi);
        if let Some(keyed) = channel.and_then(|it| it.keyed.as_mut()) {
            keyed.keys = keys;
        }
    }

    /// The child SA of a request, with the chosen proposal; `None` if the peer wants none.
    fn answer_first(
        &self,
        spi: u64,
        claims: &Claims<'_>,
        inbound_spi: u32,
    ) -> Result<Option<(ChildSa, Proposal)>, NotifyType> {
        if claims.proposals.is_none() && self.settings.childless {
            return Ok(None);
        }
        let offers = claims.proposals.unwrap_or_default();
        let chosen = choose_child(&self.first_suites(), offers);
        let (suite, mut proposal) = chosen.ok_or(NotifyType::NO_PROPOSAL_CHOSEN)?;
        let peer = proposal.spi.first_chunk().copied();
        let outbound_spi = u32::from_be_bytes(peer.ok_or(NotifyType::INVALID_SYNTAX)?);
        proposal.spi = inbound_spi.to_be_bytes().to_vec();
        let remote = narrow(claims.initiator_selectors, &self.settings.remote);
        let local = narrow(claims.responder_selectors, &self.settings.local);
        if remote.is_empty() || local.is_empty() {
            return Err(NotifyType::TS_UNACCEPTABLE);
        }
        let terms = Terms {
            suite,
            inbound_spi,
            outbound_spi,
            local,
            remote,
        };
        let child = self.derive_first(spi, terms)?;
        Ok(Some((child, proposal)))
    }

    fn derive_first(&self, spi: u64, terms: Terms) -> Result<ChildSa, NotifyType> {
        let keyed = self.keyed(spi).ok_or(NotifyType::INVALID_SYNTAX)?;
        let material = Material {
            is_initiator: self.role() == Role::Initiator,
            nonces: (
                &keyed.transcript.initiator_nonce,
                &keyed.transcript.responder_nonce,
            ),
            secrets: &[],
        };
        let child = self.derive_child(spi, terms, &material, None);
        child.ok_or(NotifyType::INVALID_SYNTAX)
    }

    pub(super) fn auth_response(
        &mut self,
        spi: u64,
        now: Duration,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        let Phase::Opening(opening) = &self.phase else {
            return;
        };
        let opening = opening.as_ref().clone();
        let Some(keyed) = self.keyed(spi).cloned() else {
            return;
        };
        let claims = Claims::of(payloads);
        // Without AUTH the error concerns the IKE SA, with it the child SA alone.
        let error = error_of(payloads);
        if let (None, Some(error)) = (claims.auth, error) {
            self.close(Closed::RefusedByPeer(error), out);
            return;
        }
        let verified =
            self.keys_of_response(&opening, &keyed, payloads)
                .and_then(|(keys, has_ppk)| {
                    let by = (&keyed, &keys);
                    let claimed = (claims.responder, claims.auth);
                    self.verify(&opening, by, Role::Responder, claimed, payloads)?;
                    Ok((keys, has_ppk))
                });
        let (keys, has_ppk) = match verified {
            Ok(verified) => verified,
            Err(reason) => {
                // The peer believes in this IKE SA, and learns that there is none (section 2.21.2).
                let exchange = (Exchange::INFORMATIONAL, Purpose::Refusal);
                self.request(spi, now, exchange, &[notify(FAILED, [])], out);
                self.close(Closed::Refused(FAILED, reason), out);
                return;
            }
        };
        self.take_keys(spi, keys);
        self.phase = Phase::Established;
        let is_childless = self.settings.childless && opening.peer.childless;
        let child = match error {
            Some(error) => Err(error),
            None if is_childless => Ok(None),
            None => self
                .accepted_first(spi, &claims, opening.child_spi)
                .map(Some),
        };
        self.established(now, claims.responder, has_ppk, out);
        self.first_child(now, child, out);
    }

    /// The keys by which a responder is verified, and whether a PPK is in them.
    fn keys_of_response(
        &self,
        opening: &Opening,
        keyed: &Keyed,
        payloads: &[Payload],
    ) -> Result<(IkeKeys, bool), String> {
        let is_used = ppk::named_in(payloads) != Named::None;
        let ppk = self.settings.ppks.first().filter(|_| opening.peer.ppk);
        match (ppk, is_used) {
            (Some(ppk), true) => Ok((keyed.keys.with_ppk(keyed.suite.prf, &ppk.key), true)),
            (None, true) => {
                Err("the peer uses a PPK that was not named (RFC 8784 section 3)".into())
            }
            (_, false) if self.settings.ppk_policy == PpkPolicy::Required => {
                Err("the peer uses no PPK, which the settings require (RFC 8784 section 3)".into())
            }
            (_, false) => Ok((keyed.keys.clone(), false)),
        }
    }

    fn accepted_first(
        &self,
        spi: u64,
        claims: &Claims<'_>,
        inbound_spi: u32,
    ) -> Result<ChildSa, NotifyType> {
        let answer = claims.proposals.unwrap_or_default();
        let chosen = chosen_child(&self.first_suites(), answer);
        let (suite, outbound_spi) = chosen.ok_or(NotifyType::NO_PROPOSAL_CHOSEN)?;
        let local = within(claims.initiator_selectors, &self.settings.local);
        let remote = within(claims.responder_selectors, &self.settings.remote);
        match (local, remote) {
            (Some(local), Some(remote)) if !local.is_empty() && !remote.is_empty() => {
                let terms = Terms {
                    suite,
                    inbound_spi,
                    outbound_spi,
                    local,
                    remote,
                };
                self.derive_first(spi, terms)
            }
            _ => Err(NotifyType::TS_UNACCEPTABLE),
        }
    }

    fn established(
        &mut self,
        now: Duration,
        peer: Option<&Identity>,
        has_ppk: bool,
        out: &mut Vec<Output>,
    ) {
        let lifetime = self.settings.lifetimes.ike;
        self.rekey_at = lifetime.map(|it| now + self.early(it));
        let peer = peer.filter(|_| self.settings.peer_identity.is_none());
        out.extend(peer.map(|it| Output::Event(Event::Identity(it.clone()))));
        out.push(Output::Established);
        if !has_ppk && !self.settings.ppks.is_empty() {
            out.push(Output::Event(Event::NoPpk));
        }
    }

    fn first_child(
        &mut self,
        now: Duration,
        child: Result<Option<ChildSa>, NotifyType>,
        out: &mut Vec<Output>,
    ) {
        match child {
            Ok(Some(child)) => {
                let is_initiator = self.role() == Role::Initiator;
                self.add_child(now, child, is_initiator, out);
            }
            Ok(None) => {}
            Err(kind) => out.push(Output::Event(Event::ChildRefused(kind))),
        }
    }
}
