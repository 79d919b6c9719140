//! One IKE SA as a state machine: datagrams, times and orders go in, outputs come out.
//!
//! ```text
//! initiator                                responder
//!   IKE_SA_INIT: SA, KE, nonce, NAT-D ──────────►        [Gate]: cookies under load
//!   ◄───────────── SA, KE, nonce, NAT-D
//!   IKE_AUTH: ID, AUTH, SA, TS ─────────────────►        identity and AUTH first,
//!   ◄────────────────── ID, AUTH, SA, TS                 then the child SA
//!   INFORMATIONAL ◄────────────────────────────►         delete, "do you live?"
//! ```
//!
//! Each side has at most one request under way (RFC 7296 section 2.3), repeats it until the
//! response arrives, and repeats its last response when the request is repeated.
//!
//! Errors without authentication change nothing: anybody can send them. They are reported, and the
//! request is repeated until its time is over (RFC 7296 section 2.21.1).
//!
//! Not yet here: CREATE_CHILD_SA (requests are answered by NO_ADDITIONAL_SAS), IKE_INTERMEDIATE,
//! fragments, certificates.

mod auth;
mod gate;
mod informational;
mod init;
mod negotiate;
mod output;
mod random;
mod settings;
#[cfg(test)]
mod tests;

pub use gate::Gate;
pub use output::{ChildSa, Closed, Event, Output, Role};
pub use settings::{ChildSuite, IkeSuite, Path, Retransmission, Settings};

use crate::crypto::{CipherKeys, IkeKeys, PrivateValue, Secret, Transcript, open, seal};
use crate::message::{
    Exchange, Header, Message, Notify, NotifyType, Payload, PayloadType, emit_payloads,
    parse_payloads,
};
use random::Random;
use std::sync::Arc;
use std::time::Duration;

/// The port that IKE shares with ESP (RFC 3948).
const NAT_PORT: u16 = 4500;
/// A responder abandons an IKE SA whose IKE_AUTH does not come.
const HALF_OPEN: Duration = Duration::from_secs(30);

/// A request of this end without response.
#[derive(Clone)]
struct Pending {
    exchange: Exchange,
    message_id: u32,
    datagram: Vec<u8>,
    repetitions: u32,
    next_at: Duration,
}

/// Keys of the IKE SA.
#[derive(Clone)]
struct Keyed {
    suite: IkeSuite,
    keys: IkeKeys,
    transcript: Transcript,
}

#[derive(Clone)]
enum Phase {
    /// Initiator: IKE_SA_INIT is sent.
    Initiating(Box<Initiating>),
    /// Initiator: IKE_AUTH is sent. Responder: it is expected.
    Authenticating(Box<Authenticating>),
    Established,
    /// This end's delete is sent.
    Deleting,
    Closed,
}

#[derive(Clone)]
struct Initiating {
    private: PrivateValue,
    public: Vec<u8>,
    nonce: Vec<u8>,
    cookie: Option<Vec<u8>>,
    /// Requests that were repeated with a cookie or another key exchange.
    restarts: u32,
    request: Vec<u8>,
    hint: Option<NotifyType>,
}

#[derive(Clone)]
struct Authenticating {
    /// IKE_SA_INIT, as it was sent and received.
    request: Vec<u8>,
    response: Vec<u8>,
    /// SPI of the first child SA to this end.
    child_spi: u32,
    /// When a responder gives up.
    expires: Option<Duration>,
}

/// One IKE SA; see the [module](self).
#[derive(Clone)]
pub struct Session {
    settings: Arc<Settings>,
    random: Random,
    role: Role,
    path: Path,
    has_nat: bool,
    initiator_spi: u64,
    responder_spi: u64,
    phase: Phase,
    keyed: Option<Keyed>,
    pending: Option<Pending>,
    next_request: u32,
    next_expected: u32,
    last_response: Option<Vec<u8>>,
    sealed: u64,
    heard: Duration,
    children: Vec<ChildSa>,
    is_delete_sent: bool,
}

impl Session {
    fn new(settings: Arc<Settings>, random: Random, role: Role, path: Path, now: Duration) -> Self {
        Self {
            settings,
            random,
            role,
            path,
            has_nat: false,
            initiator_spi: 0,
            responder_spi: 0,
            phase: Phase::Closed,
            keyed: None,
            pending: None,
            next_request: 0,
            next_expected: 0,
            last_response: None,
            sealed: 0,
            heard: now,
            children: Vec::new(),
            is_delete_sent: false,
        }
    }

    /// SPIs of the initiator and the responder; the latter is 0 until its response.
    #[must_use]
    pub const fn spis(&self) -> (u64, u64) {
        (self.initiator_spi, self.responder_spi)
    }

    /// This end's role.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.role
    }

    /// Whether the IKE SA has ended.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(self.phase, Phase::Closed)
    }

    /// Whether both ends are authenticated.
    #[must_use]
    pub const fn is_established(&self) -> bool {
        matches!(self.phase, Phase::Established)
    }

    /// The child SAs.
    #[must_use]
    pub fn children(&self) -> &[ChildSa] {
        &self.children
    }

    /// Suite and keys of the IKE SA, for a test bench that decrypts captures.
    #[must_use]
    pub fn keys(&self) -> Option<(IkeSuite, &IkeKeys)> {
        self.keyed.as_ref().map(|keyed| (keyed.suite, &keyed.keys))
    }

    /// When [`tick`](Self::tick) must be called.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Duration> {
        let expires = match &self.phase {
            Phase::Authenticating(it) => it.expires,
            Phase::Closed => return None,
            _ => None,
        };
        let pending = self.pending.as_ref().map(|it| it.next_at);
        let idle = self
            .is_established()
            .then(|| self.heard + self.settings.idle);
        let other = pending.or(idle);
        match (expires, other) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// The time of [`wakes_at`](Self::wakes_at) has come.
    pub fn tick(&mut self, now: Duration, out: &mut Vec<Output>) {
        if let Phase::Authenticating(it) = &self.phase
            && it.expires.is_some_and(|at| now >= at)
        {
            self.close(Closed::Silent(None), out);
        } else if let Some(pending) = &mut self.pending {
            if now < pending.next_at {
                return;
            }
            if pending.repetitions == self.settings.retransmission.repetitions {
                let hint = match &self.phase {
                    Phase::Initiating(it) => it.hint,
                    _ => None,
                };
                let is_deleting = matches!(self.phase, Phase::Deleting);
                self.close(
                    if is_deleting {
                        Closed::Deleted
                    } else {
                        Closed::Silent(hint)
                    },
                    out,
                );
                return;
            }
            pending.repetitions += 1;
            pending.next_at = now + self.settings.retransmission.after(pending.repetitions);
            let datagram = pending.datagram.clone();
            self.send(datagram, out);
        } else if self.is_established() && now >= self.heard + self.settings.idle {
            self.request(now, Exchange::INFORMATIONAL, &[], out);
        }
    }

    /// Deletes the IKE SA with its child SAs. One that is not established ends without a message.
    pub fn delete(&mut self, now: Duration, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Closed | Phase::Deleting => {}
            Phase::Established => {
                self.phase = Phase::Deleting;
                // After the response to the request that is under way.
                if self.pending.is_none() {
                    self.send_delete(now, out);
                }
            }
            _ => self.close(Closed::Deleted, out),
        }
    }

    /// A datagram arrived, without the marker of port 4500.
    pub fn handle(&mut self, now: Duration, datagram: &[u8], path: Path, out: &mut Vec<Output>) {
        if let Err(reason) = self.accept(now, datagram, path, out) {
            out.push(Output::Event(Event::Ignored(reason)));
        }
    }

    fn accept(
        &mut self,
        now: Duration,
        datagram: &[u8],
        path: Path,
        out: &mut Vec<Output>,
    ) -> Result<(), String> {
        let header = Header::peek(datagram).map_err(|error| error.to_string())?;
        let is_first_response = self.responder_spi == 0;
        let matches = header.initiator_spi == self.initiator_spi
            && (header.responder_spi == self.responder_spi || is_first_response)
            && header.from_initiator == (self.role == Role::Responder);
        if self.is_closed() || !matches {
            return Err("no IKE SA has these SPIs (RFC 7296 section 2.6)".to_owned());
        }
        if header.exchange == Exchange::IKE_SA_INIT {
            return self.initial(now, header, datagram, out);
        }
        let inner = self.opened(datagram)?;
        self.heard = now;
        if header.is_response {
            let pending = self
                .pending
                .take_if(|it| it.message_id == header.message_id && it.exchange == header.exchange);
            if pending.is_none() {
                return Err("a response to no request (RFC 7296 section 2.2)".to_owned());
            }
            match parsed(inner) {
                Ok(payloads) => self.responded(now, header.exchange, &payloads, out),
                Err((_, reason)) => self.close(Closed::Protocol(reason), out),
            }
            return Ok(());
        }
        if header.message_id.wrapping_add(1) == self.next_expected {
            // The response was lost. The same bytes: neither nonces nor keys are used twice.
            if let Some(response) = self.last_response.clone() {
                self.send(response, out);
            }
            return Ok(());
        }
        if header.message_id != self.next_expected {
            return Err("a message ID outside of the window (RFC 7296 section 2.3)".to_owned());
        }
        self.next_expected += 1;
        // A NAT may have changed the peer's address (RFC 7296 section 2.23).
        self.path = path;
        match parsed(inner) {
            Ok(payloads) => self.requested(header.exchange, &payloads, out),
            Err((notify, reason)) => {
                let kind = notify.kind;
                self.respond(header.exchange, &[Payload::Notify(notify)], out);
                // A critical payload only fails its exchange; bad syntax ends the IKE SA.
                if kind == NotifyType::INVALID_SYNTAX || !self.is_established() {
                    self.close(Closed::Refused(kind, reason), out);
                }
            }
        }
        Ok(())
    }

    /// The decrypted payloads of a message, with the type of the first.
    fn opened(&self, datagram: &[u8]) -> Result<(PayloadType, Secret), String> {
        let keyed = self.keyed.as_ref().ok_or("no keys yet")?;
        let message = Message::parse(datagram).map_err(|error| error.to_string())?;
        let [Payload::Encrypted { first, body }] = message.payloads.as_slice() else {
            return Err("the message is not encrypted (RFC 7296 section 3.14)".to_owned());
        };
        let keys = keyed.direction(self.role == Role::Responder);
        let inner = open(keyed.suite.cipher, keys, datagram, body.len());
        Ok((*first, inner.map_err(|error| error.to_string())?))
    }

    fn requested(&mut self, exchange: Exchange, payloads: &[Payload], out: &mut Vec<Output>) {
        match exchange {
            Exchange::IKE_AUTH => self.auth_request(payloads, out),
            Exchange::INFORMATIONAL => {
                self.informational_request(payloads, out);
            }
            Exchange::CREATE_CHILD_SA => {
                let refusal = Notify::new(NotifyType::NO_ADDITIONAL_SAS, []);
                self.respond(exchange, &[Payload::Notify(refusal)], out);
            }
            _ => {
                let refusal = Notify::new(NotifyType::INVALID_SYNTAX, []);
                self.respond(exchange, &[Payload::Notify(refusal)], out);
            }
        }
    }

    fn responded(
        &mut self,
        now: Duration,
        exchange: Exchange,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        match (&self.phase, exchange) {
            (Phase::Authenticating(_), Exchange::IKE_AUTH) => {
                self.auth_response(now, payloads, out)
            }
            (Phase::Deleting, _) if self.is_delete_sent() => {
                self.close(Closed::Deleted, out);
            }
            (Phase::Deleting, _) => self.send_delete(now, out),
            _ => {}
        }
    }

    /// Seals and sends a request, and repeats it until the response comes.
    fn request(
        &mut self,
        now: Duration,
        exchange: Exchange,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) {
        let message_id = self.next_request;
        self.next_request += 1;
        match self.sealed(exchange, message_id, false, payloads) {
            Ok(datagram) => self.sent(now, exchange, message_id, datagram, out),
            Err(reason) => self.close(Closed::Protocol(reason), out),
        }
    }

    fn sent(
        &mut self,
        now: Duration,
        exchange: Exchange,
        message_id: u32,
        datagram: Vec<u8>,
        out: &mut Vec<Output>,
    ) {
        self.pending = Some(Pending {
            exchange,
            message_id,
            datagram: datagram.clone(),
            repetitions: 0,
            next_at: now + self.settings.retransmission.after(0),
        });
        self.send(datagram, out);
    }

    /// Responds to the request that was accepted last.
    fn respond(&mut self, exchange: Exchange, payloads: &[Payload], out: &mut Vec<Output>) {
        let message_id = self.next_expected - 1;
        match self.sealed(exchange, message_id, true, payloads) {
            Ok(datagram) => {
                self.last_response = Some(datagram.clone());
                self.send(datagram, out);
            }
            Err(reason) => self.close(Closed::Protocol(reason), out),
        }
    }

    fn sealed(
        &mut self,
        exchange: Exchange,
        message_id: u32,
        is_response: bool,
        payloads: &[Payload],
    ) -> Result<Vec<u8>, String> {
        let mut inner = Secret::default();
        let first = emit_payloads(payloads, &mut inner).map_err(|error| error.to_string())?;
        let header = Header {
            initiator_spi: self.initiator_spi,
            responder_spi: self.responder_spi,
            exchange,
            from_initiator: self.role == Role::Initiator,
            is_response,
            message_id,
        };
        let keyed = self.keyed.as_ref().ok_or("no keys yet")?;
        let cipher = keyed.suite.cipher;
        self.sealed += 1;
        let iv = if cipher.iv_bytes() == 8 {
            // Unique: the keys of a direction belong to this session alone.
            Secret::new(self.sealed.to_be_bytes().to_vec())
        } else {
            self.random.bytes(cipher.iv_bytes())
        };
        let keys = keyed.direction(self.role == Role::Initiator);
        let sealed = seal(cipher, keys, header, (first, &inner), None, &iv);
        sealed.map_err(|error| error.to_string())
    }

    fn send(&self, datagram: Vec<u8>, out: &mut Vec<Output>) {
        out.push(Output::Send {
            datagram,
            path: self.path,
            // The other end of a NAT may have any port.
            marker: [self.path.local, self.path.remote]
                .iter()
                .any(|it| it.port() == NAT_PORT),
        });
    }

    fn close(&mut self, reason: Closed, out: &mut Vec<Output>) {
        let children = std::mem::take(&mut self.children);
        out.extend(children.iter().map(|it| Output::ChildDown(it.inbound_spi)));
        self.phase = Phase::Closed;
        self.pending = None;
        out.push(Output::Closed(reason));
    }
}

impl Keyed {
    /// Keys of messages of the initiator, or of the responder.
    fn direction(&self, of_initiator: bool) -> CipherKeys<'_> {
        let at = usize::from(!of_initiator);
        CipherKeys {
            encryption: &self.keys.encryption[at],
            integrity: &self.keys.integrity[at],
        }
    }
}

/// The payloads, or the error to respond with.
fn parsed((first, inner): (PayloadType, Secret)) -> Result<Vec<Payload>, (Notify, String)> {
    let payloads = parse_payloads(first, &inner).map_err(|error| {
        let notify = Notify::new(NotifyType::INVALID_SYNTAX, []);
        (notify, error.to_string())
    })?;
    for payload in &payloads {
        if let Payload::Unknown {
            kind,
            critical: true,
            ..
        } = payload
        {
            let notify = Notify::new(NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD, [kind.0]);
            let reason = format!("the critical payload {kind} is unknown (RFC 7296 section 2.5)");
            return Err((notify, reason));
        }
    }
    Ok(payloads)
}

/// The first notification that is an error.
fn error_of(payloads: &[Payload]) -> Option<NotifyType> {
    notifies(payloads)
        .map(|it| it.kind)
        .find(|it| it.is_error())
}

fn notifies(payloads: &[Payload]) -> impl Iterator<Item = &Notify> {
    payloads.iter().filter_map(|payload| match payload {
        Payload::Notify(notify) => Some(notify),
        _ => None,
    })
}
