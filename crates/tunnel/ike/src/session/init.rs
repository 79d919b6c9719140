//! IKE_SA_INIT (RFC 7296 section 1.2), with cookies (2.6), another key exchange (2.7) and the
//! detection of NATs (2.23).

use super::certificates::hashes_of;
use super::channel::Channel;
use super::intermediate::{Opening, Support};
use super::negotiate::{choose_ike, chosen_ike, offer_ike};
use super::{
    Event, IkeSuite, Keyed, Output, Path, Phase, Purpose, Random, Refusal, Role, Session, Settings,
    Transport, error_of, notifies, notify,
};
use crate::crypto::{IkeKeys, KeMethodKind, PrivateValue, Secret, Transcript, respond};
use crate::message::{Exchange, Header, KeMethod, Message, Notify, NotifyType, Payload, Proposal};
use aws_lc_rs::digest;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub(super) const NONCE_BYTES: usize = 32;
/// Cookies and other key exchanges that an initiator accepts until it is established: anybody can
/// send them.
const RESTARTS_MAX: u32 = 8;
const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// An initiator without response.
#[derive(Clone)]
pub(super) struct Initiating {
    private: PrivateValue,
    public: Vec<u8>,
    nonce: Vec<u8>,
    cookie: Option<Vec<u8>>,
    /// Requests that were repeated with a cookie or another key exchange.
    restarts: u32,
    request: Vec<u8>,
    /// The last error that somebody sent.
    pub(super) hint: Option<NotifyType>,
}

impl Session {
    /// An initiator, which sends its first request. `seed` is secret and never used again: nonces
    /// and SPIs come from it.
    ///
    /// # Panics
    /// When the settings have no suite.
    #[must_use]
    pub fn initiate(
        settings: Arc<Settings>,
        seed: Secret,
        path: Path,
        now: Duration,
        out: &mut Vec<Output>,
    ) -> Option<Self> {
        let mut random = Random::new(seed);
        let spi = random.ike_spi();
        let nonce = random.bytes(NONCE_BYTES).to_vec();
        let first = settings.ike.first().expect("settings have a suite");
        // Only a failed random number generator prevents this.
        let (private, public) = PrivateValue::generate(first.exchange).ok()?;
        let mut channel = Channel::new(Role::Initiator, spi, 0);
        channel.next_request = 1;
        let mut session = Self::new(settings, random, channel, path);
        session.heard = now;
        let initiating = Initiating {
            private,
            public,
            nonce,
            cookie: None,
            restarts: 0,
            request: Vec::new(),
            hint: None,
        };
        session.send_initial(now, initiating, out);
        Some(session)
    }

    fn send_initial(&mut self, now: Duration, mut initiating: Initiating, out: &mut Vec<Output>) {
        let spi = self.current;
        let mut payloads = Vec::new();
        let cookie = initiating.cookie.clone();
        payloads.extend(cookie.map(|it| notify(NotifyType::COOKIE, it)));
        payloads.push(Payload::Sa(offer_ike(&self.settings.ike, &[])));
        payloads.push(Payload::KeyExchange {
            method: initiating.private.method().id(),
            data: initiating.public.clone(),
        });
        payloads.push(Payload::Nonce(initiating.nonce.clone()));
        payloads.extend(nat_detection(spi, 0, self.path, &self.settings.transport));
        payloads.extend(Support::of_settings(&self.settings).payloads());
        payloads.extend(self.settings.authentication.initial_payloads(false));
        let exchange = Exchange::IKE_SA_INIT;
        let message = Message {
            header: Header {
                initiator_spi: spi,
                responder_spi: 0,
                exchange,
                from_initiator: true,
                is_response: false,
                message_id: 0,
            },
            payloads,
        };
        let mut request = Vec::new();
        message.emit(&mut request).expect("at most a KiB per suite");
        initiating.request.clone_from(&request);
        self.phase = Phase::Initiating(Box::new(initiating));
        let retransmission = self.settings.retransmission;
        if let Some(channel) = self.channel_mut(spi) {
            let datagrams = vec![request.clone()];
            let purpose = Purpose::Initial;
            channel.await_response(now, retransmission, exchange, 0, datagrams, purpose);
        }
        self.send(vec![request], out);
    }

    /// A message of IKE_SA_INIT.
    pub(super) fn initial(
        &mut self,
        now: Duration,
        header: Header,
        datagram: &[u8],
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let initiating = match &self.phase {
            Phase::Initiating(initiating) => initiating,
            // The same request again: its response was lost.
            Phase::Opening(it) if !header.is_response && it.request == datagram => {
                self.send(vec![it.response.clone()], out);
                return Ok(());
            }
            _ if header.is_response => return Err(Refusal::LateFirst),
            _ => return Err(Refusal::KnownSpi),
        };
        if !header.is_response || header.message_id != 0 {
            return Err(Refusal::NotFirst);
        }
        let message = Message::parse(datagram)?;
        if let Some(kind) = message.unsupported() {
            return Err(Refusal::Critical(kind));
        }
        let initiating = initiating.as_ref().clone();
        let mut notified = notifies(&message.payloads);
        if let Some(cookie) = notified.find(|it| it.kind == NotifyType::COOKIE) {
            out.push(Output::Event(Event::Cookie));
            return self.restart(now, initiating, out, |it| {
                it.cookie = Some(cookie.data.clone());
                Ok(())
            });
        }
        if let Some(error) = error_of(&message.payloads) {
            return self.initial_error(now, error, initiating, &message.payloads, out);
        }
        self.initial_response(now, header, initiating, &message.payloads, datagram, out)
    }

    fn initial_error(
        &mut self,
        now: Duration,
        error: NotifyType,
        mut initiating: Initiating,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        if error == NotifyType::INVALID_KE_PAYLOAD {
            let wanted = notifies(payloads).find(|it| it.kind == error);
            let wanted = wanted.and_then(|it| it.data.first_chunk()).copied();
            let method = KeMethod(u16::from_be_bytes(wanted.unwrap_or_default()));
            let is_offered = |kind| self.settings.ike.iter().any(|it| it.exchange == kind);
            let kind = KeMethodKind::of(method).filter(|kind| is_offered(*kind));
            let kind = kind.filter(|kind| *kind != initiating.private.method());
            let kind = kind.ok_or(Refusal::UnofferedMethod(method))?;
            return self.restart(now, initiating, out, |it| {
                (it.private, it.public) = PrivateValue::generate(kind)?;
                Ok(())
            });
        }
        // Anybody can send this: a genuine response may follow.
        initiating.hint = Some(error);
        self.phase = Phase::Initiating(Box::new(initiating));
        out.push(Output::Event(Event::Hint(error)));
        Ok(())
    }

    fn restart(
        &mut self,
        now: Duration,
        mut initiating: Initiating,
        out: &mut Vec<Output>,
        change: impl FnOnce(&mut Initiating) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        initiating.restarts += 1;
        if initiating.restarts > RESTARTS_MAX {
            return Err(Refusal::Restarts);
        }
        change(&mut initiating)?;
        self.send_initial(now, initiating, out);
        Ok(())
    }

    fn initial_response(
        &mut self,
        now: Duration,
        header: Header,
        initiating: Initiating,
        payloads: &[Payload],
        datagram: &[u8],
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let Offered {
            proposals,
            method,
            public,
            nonce,
        } = offered(payloads)?;
        if header.responder_spi == 0 {
            return Err(Refusal::ZeroSpi);
        }
        let peer = Support::of_payloads(payloads).and(Support::of_settings(&self.settings));
        let suite = chosen_ike(&self.settings.ike, proposals)
            .filter(|suite| suite.additional[0].is_none() || peer.intermediate)
            .ok_or(Refusal::UnofferedProposal)?;
        let sent = initiating.private.method();
        if method != suite.exchange.id() || sent != suite.exchange {
            return Err(Refusal::OtherMethod(method));
        }
        let shared = initiating.private.finish(public)?;
        let (initiator_spi, responder_spi) = (header.initiator_spi, header.responder_spi);
        let transcript = Transcript {
            initiator_nonce: initiating.nonce,
            responder_nonce: nonce.to_vec(),
            initiator_spi,
            responder_spi,
        };
        let keys = IkeKeys::initial(suite.prf, suite.cipher, &transcript, &shared);
        if let Some(channel) = self.channel_mut(initiator_spi) {
            channel.responder_spi = responder_spi;
            channel.pending = None;
            channel.keyed = Some(Keyed {
                suite,
                keys,
                transcript,
            });
        }
        self.heard = now;
        self.takes_fragments = peer.fragments;
        let transport = &self.settings.transport;
        let spis = (initiator_spi, responder_spi);
        self.has_nat = has_nat(payloads, spis, self.path, transport);
        if self.has_nat {
            // Both ports change (RFC 7296 section 2.23). A port of the caller's choice is kept.
            let float = |address: &mut SocketAddr, nat_port| {
                if address.port() == transport.port {
                    address.set_port(nat_port);
                }
            };
            float(&mut self.path.local, transport.nat_port);
            float(&mut self.path.remote, transport.peer_nat_port);
        }
        let child_spi = self.child_spi();
        self.phase = Phase::Opening(Box::new(Opening {
            request: initiating.request,
            response: datagram.to_vec(),
            child_spi,
            expires: None,
            rest: suite.additional.into_iter().flatten().collect(),
            authenticated: None,
            auth_id: 0,
            peer,
            hashes: hashes_of(payloads),
        }));
        self.proceed(now, out);
        Ok(())
    }

    /// A responder, from a request that the [`Gate`](super::Gate) admits; or the response to it.
    pub(super) fn answer(
        settings: Arc<Settings>,
        seed: Secret,
        path: Path,
        now: Duration,
        request: (Header, &[Payload], &[u8]),
        out: &mut Vec<Output>,
    ) -> Result<Self, InitialRefusal> {
        let (header, payloads, datagram) = request;
        let offered = offered(payloads)?;
        let peer = Support::of_payloads(payloads).and(Support::of_settings(&settings));
        // Additional key exchanges need IKE_INTERMEDIATE (RFC 9370 section 2.2.1).
        let possible = settings.ike.iter().copied();
        let possible = possible.filter(|it| it.additional[0].is_none() || peer.intermediate);
        let suites: Vec<IkeSuite> = possible.collect();
        let (suite, proposal) = choose_ike(&suites, offered.proposals)
            .ok_or_else(|| Notify::new(NotifyType::NO_PROPOSAL_CHOSEN, []))?;
        if offered.method != suite.exchange.id() {
            let wanted = suite.exchange.id().0.to_be_bytes();
            return Err(Notify::new(NotifyType::INVALID_KE_PAYLOAD, wanted).into());
        }
        let (public, shared) = respond(suite.exchange, offered.public).map_err(Refusal::from)?;
        let mut random = Random::new(seed);
        let nonce = random.bytes(NONCE_BYTES).to_vec();
        let (initiator_spi, responder_spi) = (header.initiator_spi, random.ike_spi());
        let mut answer = vec![
            Payload::Sa(vec![proposal]),
            Payload::KeyExchange {
                method: suite.exchange.id(),
                data: public,
            },
            Payload::Nonce(nonce.clone()),
        ];
        let transport = &settings.transport;
        answer.extend(nat_detection(initiator_spi, responder_spi, path, transport));
        answer.extend(peer.payloads());
        answer.extend(settings.authentication.initial_payloads(true));
        let message = Message {
            header: Header {
                responder_spi,
                from_initiator: false,
                is_response: true,
                ..header
            },
            payloads: answer,
        };
        let mut response = Vec::new();
        message
            .emit(&mut response)
            .expect("one proposal, a public value and hashes of authorities");
        let transcript = Transcript {
            initiator_nonce: offered.nonce.to_vec(),
            responder_nonce: nonce,
            initiator_spi,
            responder_spi,
        };
        let keys = IkeKeys::initial(suite.prf, suite.cipher, &transcript, &shared);
        let mut channel = Channel::new(Role::Responder, initiator_spi, responder_spi);
        channel.keyed = Some(Keyed {
            suite,
            keys,
            transcript,
        });
        channel.next_expected = 1;
        let has_nat = has_nat(payloads, (initiator_spi, 0), path, transport);
        let marker = path.local.port() == transport.nat_port;
        let mut session = Self::new(settings, random, channel, path);
        session.heard = now;
        session.takes_fragments = peer.fragments;
        session.has_nat = has_nat;
        let child_spi = session.child_spi();
        session.phase = Phase::Opening(Box::new(Opening {
            request: datagram.to_vec(),
            response: response.clone(),
            child_spi,
            expires: Some(now + super::HALF_OPEN),
            rest: suite.additional.into_iter().flatten().collect(),
            authenticated: None,
            auth_id: 0,
            peer,
            hashes: hashes_of(payloads),
        }));
        // Port 500 until the peer changes to the other.
        out.push(Output::Send {
            datagram: response,
            path,
            marker,
        });
        Ok(session)
    }
}

/// Why a first request creates no session.
#[derive(Debug)]
pub(super) enum InitialRefusal {
    /// Responded to.
    Notify(Notify),
    Ignored(Refusal),
}

impl From<Notify> for InitialRefusal {
    fn from(notify: Notify) -> Self {
        Self::Notify(notify)
    }
}

impl From<Refusal> for InitialRefusal {
    fn from(refusal: Refusal) -> Self {
        Self::Ignored(refusal)
    }
}

struct Offered<'a> {
    proposals: &'a [Proposal],
    method: KeMethod,
    public: &'a [u8],
    nonce: &'a [u8],
}

/// The three payloads of both messages, each of which occurs once.
fn offered(payloads: &[Payload]) -> Result<Offered<'_>, Refusal> {
    let mut proposals = None;
    let mut exchange = None;
    let mut nonce = None;
    let mut twice = false;
    for payload in payloads {
        match payload {
            Payload::Sa(list) => twice |= proposals.replace(list).is_some(),
            Payload::KeyExchange { method, data } => {
                twice |= exchange.replace((*method, data)).is_some();
            }
            Payload::Nonce(value) => twice |= nonce.replace(value).is_some(),
            _ => {}
        }
    }
    match (proposals, exchange, nonce) {
        (Some(proposals), Some((method, public)), Some(nonce)) if !twice => Ok(Offered {
            proposals,
            method,
            public,
            nonce,
        }),
        _ => Err(Refusal::Incomplete),
    }
}

fn nat_hash(initiator_spi: u64, responder_spi: u64, address: SocketAddr) -> Vec<u8> {
    let mut context = digest::Context::new(&digest::SHA1_FOR_LEGACY_USE_ONLY);
    context.update(&initiator_spi.to_be_bytes());
    context.update(&responder_spi.to_be_bytes());
    match address.ip() {
        IpAddr::V4(ip) => context.update(&ip.octets()),
        IpAddr::V6(ip) => context.update(&ip.octets()),
    }
    context.update(&address.port().to_be_bytes());
    context.finish().as_ref().to_vec()
}

fn nat_detection(
    initiator_spi: u64,
    responder_spi: u64,
    path: Path,
    transport: &Transport,
) -> [Payload; 2] {
    let source = if transport.always_in_udp {
        // The address of no sender: the peer finds a NAT in front of this end.
        NOWHERE
    } else {
        path.local
    };
    [
        (NotifyType::NAT_DETECTION_SOURCE_IP, source),
        (NotifyType::NAT_DETECTION_DESTINATION_IP, path.remote),
    ]
    .map(|(kind, address)| {
        let hash = nat_hash(initiator_spi, responder_spi, address);
        Payload::Notify(Notify::new(kind, hash))
    })
}

/// Whether the peer's hashes differ from the addresses of its message, or this end claims a NAT. A
/// peer without hashes does not know NATs.
fn has_nat(
    payloads: &[Payload],
    (initiator_spi, responder_spi): (u64, u64),
    path: Path,
    transport: &Transport,
) -> bool {
    let of = |kind| notifies(payloads).filter(move |it| it.kind == kind);
    let differs = |kind, address| {
        let hash = nat_hash(initiator_spi, responder_spi, address);
        let claims_nat = transport.always_in_udp;
        of(kind).next().is_some() && (claims_nat || of(kind).all(|it| it.data != hash))
    };
    differs(NotifyType::NAT_DETECTION_SOURCE_IP, path.remote)
        || differs(NotifyType::NAT_DETECTION_DESTINATION_IP, path.local)
}
