//! IKE_SA_INIT (RFC 7296 section 1.2), with cookies (2.6), another key exchange (2.7) and the
//! detection of NATs (2.23).

use super::negotiate::{choose_ike, chosen_ike, offer_ike};
use super::{
    Authenticating, Event, Initiating, Keyed, NAT_PORT, Output, Path, Phase, Random, Role, Session,
    Settings, error_of, notifies,
};
use crate::crypto::{IkeKeys, KeMethodKind, PrivateValue, Secret, Transcript, respond};
use crate::message::{Exchange, Header, KeMethod, Message, Notify, NotifyType, Payload, Proposal};
use aws_lc_rs::digest;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

const NONCE_BYTES: usize = 32;
/// Cookies and other key exchanges that an initiator accepts until it is established: anybody can
/// send them.
const RESTARTS_MAX: u32 = 8;
const IKE_PORT: u16 = 500;

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
        let mut session = Self::new(settings, random, Role::Initiator, path, now);
        session.initiator_spi = spi;
        let initiating = Initiating {
            private,
            public,
            nonce,
            cookie: None,
            restarts: 0,
            request: Vec::new(),
            hint: None,
        };
        session.next_request = 1;
        session.send_initial(now, initiating, out);
        Some(session)
    }

    fn send_initial(&mut self, now: Duration, mut initiating: Initiating, out: &mut Vec<Output>) {
        let mut payloads = Vec::new();
        let cookie = initiating.cookie.clone();
        payloads.extend(cookie.map(|it| Payload::Notify(Notify::new(NotifyType::COOKIE, it))));
        payloads.push(Payload::Sa(offer_ike(&self.settings.ike)));
        payloads.push(Payload::KeyExchange {
            method: initiating.private.method().id(),
            data: initiating.public.clone(),
        });
        payloads.push(Payload::Nonce(initiating.nonce.clone()));
        payloads.extend(nat_detection(self.initiator_spi, 0, self.path));
        let message = Message {
            header: Header {
                initiator_spi: self.initiator_spi,
                responder_spi: 0,
                exchange: Exchange::IKE_SA_INIT,
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
        self.sent(now, Exchange::IKE_SA_INIT, 0, request, out);
    }

    /// A message of IKE_SA_INIT.
    pub(super) fn initial(
        &mut self,
        now: Duration,
        header: Header,
        datagram: &[u8],
        out: &mut Vec<Output>,
    ) -> Result<(), String> {
        if self.role == Role::Responder {
            // The same request again: its response was lost.
            return match &self.phase {
                Phase::Authenticating(it) if it.request == datagram => {
                    self.send(it.response.clone(), out);
                    Ok(())
                }
                _ => Err("a first request to a known IKE SA (RFC 7296 section 2.1)".to_owned()),
            };
        }
        let Phase::Initiating(initiating) = &self.phase else {
            return Err("a first response that is late (RFC 7296 section 2.1)".to_owned());
        };
        if !header.is_response || header.message_id != 0 {
            return Err("no response to the first request (RFC 7296 section 2.2)".to_owned());
        }
        let message = Message::parse(datagram).map_err(|error| error.to_string())?;
        if let Some(kind) = message.unsupported() {
            return Err(format!(
                "the critical payload {kind} is unknown (RFC 7296 section 2.5)"
            ));
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
    ) -> Result<(), String> {
        if error == NotifyType::INVALID_KE_PAYLOAD {
            let wanted = notifies(payloads).find(|it| it.kind == error);
            let wanted = wanted.and_then(|it| it.data.first_chunk()).copied();
            let method = KeMethod(u16::from_be_bytes(wanted.unwrap_or_default()));
            let is_offered = |kind| self.settings.ike.iter().any(|it| it.exchange == kind);
            let kind = KeMethodKind::of(method).filter(|kind| is_offered(*kind));
            let kind = kind.filter(|kind| *kind != initiating.private.method());
            let kind = kind.ok_or_else(|| {
                format!("the peer wants {method}, which was not offered (RFC 7296 section 2.7)")
            })?;
            return self.restart(now, initiating, out, |it| {
                let generated = PrivateValue::generate(kind).map_err(|error| error.to_string())?;
                (it.private, it.public) = generated;
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
        change: impl FnOnce(&mut Initiating) -> Result<(), String>,
    ) -> Result<(), String> {
        initiating.restarts += 1;
        if initiating.restarts > RESTARTS_MAX {
            return Err(format!(
                "more than {RESTARTS_MAX} cookies and key exchanges were asked for"
            ));
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
    ) -> Result<(), String> {
        let Offered {
            proposals,
            method,
            public,
            nonce,
        } = offered(payloads)?;
        if header.responder_spi == 0 {
            return Err("the responder's SPI is 0 (RFC 7296 section 3.1)".to_owned());
        }
        let suite = chosen_ike(&self.settings.ike, proposals).ok_or_else(|| {
            "the peer chose a proposal that was not offered (RFC 7296 section 2.7)".to_owned()
        })?;
        let sent = initiating.private.method();
        if method != suite.exchange.id() || sent != suite.exchange {
            return Err(format!(
                "a key exchange {method} does not fit the proposal (RFC 7296 section 1.2)"
            ));
        }
        let shared = initiating
            .private
            .finish(public)
            .map_err(|error| error.to_string())?;
        self.responder_spi = header.responder_spi;
        let transcript = Transcript {
            initiator_nonce: initiating.nonce,
            responder_nonce: nonce.to_vec(),
            initiator_spi: self.initiator_spi,
            responder_spi: self.responder_spi,
        };
        let keys = IkeKeys::initial(suite.prf, suite.cipher, &transcript, &shared);
        self.keyed = Some(Keyed {
            suite,
            keys,
            transcript,
        });
        self.pending = None;
        self.heard = now;
        self.has_nat = has_nat(
            payloads,
            header.initiator_spi,
            header.responder_spi,
            self.path,
        );
        if self.has_nat {
            // Both ports change (RFC 7296 section 2.23). A port of the caller's choice is kept.
            let float = |address: &mut SocketAddr| {
                if address.port() == IKE_PORT {
                    address.set_port(NAT_PORT);
                }
            };
            float(&mut self.path.local);
            float(&mut self.path.remote);
        }
        let authenticating = Authenticating {
            request: initiating.request,
            response: datagram.to_vec(),
            child_spi: self.random.child_spi(),
            expires: None,
        };
        self.send_auth(now, authenticating, out);
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
        let offered = offered(payloads).map_err(InitialRefusal::Ignored)?;
        let no_proposal = || Notify::new(NotifyType::NO_PROPOSAL_CHOSEN, []);
        let (suite, proposal) = choose_ike(&settings.ike, offered.proposals)
            .ok_or_else(|| InitialRefusal::Notify(no_proposal()))?;
        if offered.method != suite.exchange.id() {
            let wanted = suite.exchange.id().0.to_be_bytes();
            let notify = Notify::new(NotifyType::INVALID_KE_PAYLOAD, wanted);
            return Err(InitialRefusal::Notify(notify));
        }
        let (public, shared) = respond(suite.exchange, offered.public)
            .map_err(|error| InitialRefusal::Ignored(error.to_string()))?;
        let mut random = Random::new(seed);
        let nonce = random.bytes(NONCE_BYTES).to_vec();
        let child_spi = random.child_spi();
        let mut session = Self::new(settings, random, Role::Responder, path, now);
        session.initiator_spi = header.initiator_spi;
        session.responder_spi = session.random.ike_spi();
        session.has_nat = has_nat(payloads, header.initiator_spi, 0, path);
        let (initiator_spi, responder_spi) = session.spis();
        let mut answer = vec![
            Payload::Sa(vec![proposal]),
            Payload::KeyExchange {
                method: suite.exchange.id(),
                data: public,
            },
            Payload::Nonce(nonce.clone()),
        ];
        answer.extend(nat_detection(initiator_spi, responder_spi, path));
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
            .expect("one proposal and a public value");
        let transcript = Transcript {
            initiator_nonce: offered.nonce.to_vec(),
            responder_nonce: nonce,
            initiator_spi,
            responder_spi,
        };
        let keys = IkeKeys::initial(suite.prf, suite.cipher, &transcript, &shared);
        session.keyed = Some(Keyed {
            suite,
            keys,
            transcript,
        });
        session.next_expected = 1;
        session.phase = Phase::Authenticating(Box::new(Authenticating {
            request: datagram.to_vec(),
            response: response.clone(),
            child_spi,
            expires: Some(now + super::HALF_OPEN),
        }));
        // Port 500 until the peer changes to the other.
        out.push(Output::Send {
            datagram: response,
            path,
            marker: path.local.port() == NAT_PORT,
        });
        Ok(session)
    }
}

/// Why a first request creates no session.
pub(super) enum InitialRefusal {
    Notify(Notify),
    Ignored(String),
}

struct Offered<'a> {
    proposals: &'a [Proposal],
    method: KeMethod,
    public: &'a [u8],
    nonce: &'a [u8],
}

/// The three payloads of both messages, each of which occurs once.
fn offered(payloads: &[Payload]) -> Result<Offered<'_>, String> {
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
        _ => Err("SA, KE and nonce must occur once each (RFC 7296 section 1.2)".to_owned()),
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

fn nat_detection(initiator_spi: u64, responder_spi: u64, path: Path) -> [Payload; 2] {
    [
        (NotifyType::NAT_DETECTION_SOURCE_IP, path.local),
        (NotifyType::NAT_DETECTION_DESTINATION_IP, path.remote),
    ]
    .map(|(kind, address)| {
        let hash = nat_hash(initiator_spi, responder_spi, address);
        Payload::Notify(Notify::new(kind, hash))
    })
}

/// Whether the peer's hashes differ from the addresses of its message. A peer without hashes does
/// not know NATs.
fn has_nat(payloads: &[Payload], initiator_spi: u64, responder_spi: u64, path: Path) -> bool {
    let of = |kind| notifies(payloads).filter(move |it| it.kind == kind);
    let differs = |kind, address| {
        let hash = nat_hash(initiator_spi, responder_spi, address);
        of(kind).next().is_some() && of(kind).all(|it| it.data != hash)
    };
    differs(NotifyType::NAT_DETECTION_SOURCE_IP, path.remote)
        || differs(NotifyType::NAT_DETECTION_DESTINATION_IP, path.local)
}
