//! IKE SAs of one peer as a state machine: datagrams, times and orders go in, outputs come out.
//!
//! ```text
//! initiator                                responder
//!   IKE_SA_INIT: SA, KE, nonce, NAT-D ──────────►        [Gate]: cookies under load
//!   ◄───────────── SA, KE, nonce, NAT-D
//!   IKE_INTERMEDIATE: KE ───────────────────────►        once per additional key exchange
//!   ◄──────────────────────────────── KE
//!   IKE_AUTH: ID, AUTH, SA, TS ─────────────────►        identity and AUTH first,
//!   ◄────────────────── ID, AUTH, SA, TS                 then the child SA
//!   CREATE_CHILD_SA, IKE_FOLLOWUP_KE ◄──────────►        new SAs, and new keys of SAs
//!   INFORMATIONAL ◄─────────────────────────────►        deletes, "do you live?"
//! ```
//!
//! A rekeying replaces the IKE SA of a session. For a while a session has several: the replaced
//! one, and two new ones if both ends began at the same time. Each has its windows; child SAs
//! belong to the session, so the new IKE SA inherits them.
//!
//! Each side has at most one request under way per IKE SA (RFC 7296 section 2.3), repeats it until
//! the response arrives, and repeats its last response when the request is repeated.
//!
//! Errors without authentication change nothing: anybody can send them. They are reported, and the
//! request is repeated until its time is over (RFC 7296 section 2.21.1).

mod answer;
mod auth;
mod certificates;
mod channel;
mod child;
mod compact;
mod create;
#[cfg(test)]
mod explored;
mod followup;
mod fragments;
mod gate;
mod informational;
mod init;
mod intermediate;
mod negotiate;
mod notation;
mod orders;
mod output;
mod ppk;
mod random;
mod refusal;
mod settings;
#[cfg(test)]
mod tests;

pub use certificates::{Authentication, Certificates, Subject, Verifier};
pub use gate::{Gate, HalfOpen, Limits};
pub use notation::NotationError;
pub use output::{ChildSa, Closed, Event, Output, Role};
pub use refusal::Refusal;
pub use settings::{
    ADDITIONAL_MAX, ChildSpis, ChildSuite, IkeSuite, Lifetimes, Path, Ppk, PpkPolicy,
    Retransmission, Settings, Transport,
};

use crate::crypto::{CipherKeys, IkeKeys, PrivateValue, Secret, Transcript};
use crate::message::{Exchange, Header, Notify, NotifyType, Payload, PayloadType, parse_payloads};
use channel::{Channel, Inner, Received, Sealing, Standing, Unsendable};
use child::Child;
use create::Creating;
use followup::Answering;
use fragments::Bounds;
use init::Initiating;
use intermediate::Opening;
use orders::Order;
use random::Random;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// A responder abandons an IKE SA whose IKE_AUTH does not come.
const HALF_OPEN: Duration = Duration::from_secs(30);
/// The end that did not begin a rekeying deletes the replaced SA, if the other does not.
const LINGER: Duration = Duration::from_secs(60);

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
    /// IKE_INTERMEDIATE and IKE_AUTH.
    Opening(Box<Opening>),
    Established,
    Closed,
}

/// The purpose of a request.
#[derive(Clone)]
enum Purpose {
    Initial,
    /// An additional key exchange.
    Intermediate(Box<PrivateValue>),
    Auth,
    /// The check that the peer lives.
    Alive,
    /// A refusal of the peer, after which the session has ended.
    Refusal,
    DeleteIke,
    /// By the SPI to this end.
    DeleteChild(u32),
    Create(Box<Creating>),
}

/// All IKE SAs and child SAs with one peer; see the [module](self).
#[derive(Clone)]
pub struct Session {
    settings: Arc<Settings>,
    random: Random,
    path: Path,
    has_nat: bool,
    /// The peer accepts fragments.
    takes_fragments: bool,
    phase: Phase,
    /// IKE SAs; few.
    channels: Vec<Channel>,
    /// The one for new requests, by this end's SPI.
    current: u64,
    children: Vec<Child>,
    orders: VecDeque<Order>,
    /// Additional key exchanges of the peer's CREATE_CHILD_SA.
    answering: Option<Box<Answering>>,
    /// This end wants the session to end.
    is_leaving: bool,
    /// When the peer was heard last.
    heard: Duration,
    rekey_at: Option<Duration>,
}

impl Session {
    fn new(settings: Arc<Settings>, random: Random, channel: Channel, path: Path) -> Self {
        Self {
            settings,
            random,
            path,
            has_nat: false,
            takes_fragments: false,
            phase: Phase::Closed,
            current: channel.local_spi(),
            channels: vec![channel],
            children: Vec::new(),
            orders: VecDeque::new(),
            answering: None,
            is_leaving: false,
            heard: Duration::ZERO,
            rekey_at: None,
        }
    }

    /// SPIs of the current IKE SA's initiator and responder; the latter is 0 until its response.
    /// Both are 0 when the session has ended.
    #[must_use]
    pub fn spis(&self) -> (u64, u64) {
        self.channel(self.current)
            .map_or((0, 0), |it| (it.initiator_spi, it.responder_spi))
    }

    /// This end's SPIs of all IKE SAs.
    pub fn local_spis(&self) -> impl Iterator<Item = u64> {
        self.channels.iter().map(Channel::local_spi)
    }

    /// Whether a datagram with this header is of one of the IKE SAs.
    #[must_use]
    pub fn owns(&self, header: &Header) -> bool {
        self.channels.iter().any(|it| it.owns(header))
    }

    /// This end's role in the current IKE SA.
    #[must_use]
    pub fn role(&self) -> Role {
        self.channel(self.current)
            .map_or(Role::Initiator, |it| it.role)
    }

    /// Whether the session has ended.
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
    pub fn children(&self) -> impl Iterator<Item = &ChildSa> {
        self.children.iter().map(|it| &it.sa)
    }

    /// Suite and keys of the current IKE SA, for a test bench that decrypts captures.
    #[must_use]
    pub fn keys(&self) -> Option<(IkeSuite, &IkeKeys)> {
        let keyed = self.channel(self.current)?.keyed.as_ref()?;
        Some((keyed.suite, &keyed.keys))
    }

    /// When [`tick`](Self::tick) must be called.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Duration> {
        let expires = match &self.phase {
            Phase::Closed => return None,
            Phase::Opening(it) => it.expires,
            _ => None,
        };
        let channels = self.channels.iter().filter_map(|it| match &it.pending {
            Some(pending) => Some(pending.next_at),
            None => match it.standing {
                Standing::Replaced(until) => Some(until),
                _ => None,
            },
        });
        let timers = self.timers();
        channels.chain(expires).chain(timers).min()
    }

    /// The time of [`wakes_at`](Self::wakes_at) has come.
    pub fn tick(&mut self, now: Duration, out: &mut Vec<Output>) {
        if let Phase::Opening(it) = &self.phase
            && it.expires.is_some_and(|at| now >= at)
        {
            self.close(Closed::Silent(None), out);
        }
        let spis: Vec<u64> = self.local_spis().collect();
        for spi in spis {
            self.tick_channel(spi, now, out);
        }
        self.expire(now);
        self.advance(now, out);
    }

    fn tick_channel(&mut self, spi: u64, now: Duration, out: &mut Vec<Output>) {
        let retransmission = self.settings.retransmission;
        let Some(channel) = self.channel_mut(spi) else {
            return;
        };
        let Some(pending) = &mut channel.pending else {
            if let Standing::Replaced(until) = channel.standing
                && now >= until
            {
                channel.standing = Standing::Leaving;
            }
            return;
        };
        if now < pending.next_at {
            return;
        }
        if pending.repetitions == retransmission.repetitions {
            let is_delete = matches!(pending.purpose, Purpose::DeleteIke);
            let reason = match &self.phase {
                Phase::Initiating(it) => Closed::Silent(it.hint),
                _ if is_delete => Closed::Deleted,
                _ => Closed::Silent(None),
            };
            if spi == self.current {
                self.close(reason, out);
            } else {
                // The peer has forgotten the replaced IKE SA.
                self.drop_channel(spi, out);
            }
            return;
        }
        pending.repetitions += 1;
        pending.next_at = now + retransmission.after(pending.repetitions);
        let datagrams = pending.datagrams.clone();
        out.push(Output::Event(Event::Repeated));
        self.send(datagrams, out);
    }

    /// A datagram arrived, without the marker of port 4500.
    pub fn handle(&mut self, now: Duration, datagram: &[u8], path: Path, out: &mut Vec<Output>) {
        if let Err(reason) = self.accept(now, datagram, path, out) {
            out.push(Output::Event(Event::Ignored(reason)));
        }
        self.advance(now, out);
    }

    fn accept(
        &mut self,
        now: Duration,
        datagram: &[u8],
        path: Path,
        out: &mut Vec<Output>,
    ) -> Result<(), Refusal> {
        let header = Header::peek(datagram)?;
        let owner = self.channels.iter_mut().find(|it| it.owns(&header));
        let channel = owner.ok_or(Refusal::UnknownSpi)?;
        if header.exchange == Exchange::IKE_SA_INIT {
            return self.initial(now, header, datagram, out);
        }
        let bounds = match self.phase {
            Phase::Established => Bounds::PEER,
            _ => Bounds::STRANGER,
        };
        let spi = channel.local_spi();
        let received = channel.receive(header, datagram, bounds)?;
        self.heard = now;
        match received {
            Received::Request(inner) => {
                // A NAT may have changed the peer's address (RFC 7296 section 2.23).
                self.path = path;
                self.confirm_children();
                self.requested(spi, now, &inner, out);
            }
            Received::Response(purpose, inner) => match parsed(&inner) {
                Ok(payloads) => self.responded(spi, now, purpose, &payloads, &inner, out),
                Err((_, reason)) => self.close(Closed::Protocol(reason), out),
            },
            Received::Repeated => {
                let channel = self.channel(spi);
                if let Some(response) = channel.and_then(|it| it.last_response.clone()) {
                    self.send(response, out);
                }
            }
            Received::Partial => {}
        }
        Ok(())
    }

    fn requested(&mut self, spi: u64, now: Duration, inner: &Inner, out: &mut Vec<Output>) {
        let exchange = inner.header.exchange;
        let payloads = match parsed(inner) {
            Ok(payloads) => payloads,
            Err((notify, reason)) => {
                let kind = notify.kind;
                self.respond(spi, now, exchange, &[Payload::Notify(notify)], out);
                // A critical payload only fails its exchange; bad syntax ends the IKE SA.
                if kind == NotifyType::INVALID_SYNTAX || !self.is_established() {
                    self.close(Closed::Refused(kind, reason), out);
                }
                return;
            }
        };
        let is_established = self.is_established();
        match exchange {
            Exchange::IKE_INTERMEDIATE if !is_established => {
                self.intermediate_request(spi, now, &payloads, inner, out);
            }
            Exchange::IKE_AUTH if !is_established => {
                let id = inner.header.message_id;
                self.auth_request(spi, now, &payloads, id, out);
            }
            // The peer is not authenticated: it may only learn that it was heard.
            Exchange::INFORMATIONAL if !is_established => {
                self.respond(spi, now, exchange, &[], out);
            }
            Exchange::INFORMATIONAL => self.informational_request(spi, now, &payloads, out),
            Exchange::CREATE_CHILD_SA if is_established => {
                self.create_request(spi, now, &payloads, out);
            }
            Exchange::IKE_FOLLOWUP_KE if is_established => {
                self.followup_request(spi, now, &payloads, out);
            }
            _ => {
                let refusal = Notify::new(NotifyType::INVALID_SYNTAX, []);
                self.respond(spi, now, exchange, &[Payload::Notify(refusal)], out);
            }
        }
    }

    fn responded(
        &mut self,
        spi: u64,
        now: Duration,
        purpose: Purpose,
        payloads: &[Payload],
        inner: &Inner,
        out: &mut Vec<Output>,
    ) {
        match purpose {
            Purpose::Intermediate(private) => {
                self.intermediate_response(spi, now, &private, payloads, inner, out);
            }
            Purpose::Auth => self.auth_response(spi, now, payloads, out),
            Purpose::DeleteIke if spi == self.current => self.close(Closed::Deleted, out),
            Purpose::DeleteIke => self.drop_channel(spi, out),
            Purpose::DeleteChild(child) => self.child_deleted(child, out),
            Purpose::Create(creating) => {
                self.create_response(spi, now, *creating, payloads, out);
            }
            Purpose::Initial | Purpose::Alive | Purpose::Refusal => {}
        }
    }

    fn channel(&self, spi: u64) -> Option<&Channel> {
        self.channels.iter().find(|it| it.local_spi() == spi)
    }

    fn channel_mut(&mut self, spi: u64) -> Option<&mut Channel> {
        self.channels.iter_mut().find(|it| it.local_spi() == spi)
    }

    fn keyed(&self, spi: u64) -> Option<&Keyed> {
        self.channel(spi)?.keyed.as_ref()
    }

    /// Seals and sends a request, and repeats it until the response comes.
    fn request(
        &mut self,
        spi: u64,
        now: Duration,
        (exchange, purpose): (Exchange, Purpose),
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) -> Option<Inner> {
        let sealed = self.seal(spi, now, |channel, how| {
            channel.request(exchange, payloads, purpose, how)
        });
        let channel = self.channel(spi);
        let pending = channel.and_then(|it| it.pending.as_ref());
        let datagrams = pending.map(|it| it.datagrams.clone());
        self.sealed(sealed, datagrams, out)
    }

    /// Responds to the request that was accepted last.
    fn respond(
        &mut self,
        spi: u64,
        now: Duration,
        exchange: Exchange,
        payloads: &[Payload],
        out: &mut Vec<Output>,
    ) -> Option<Inner> {
        let sealed = self.seal(spi, now, |channel, how| {
            channel.respond(exchange, payloads, how)
        });
        let datagrams = self.channel(spi).and_then(|it| it.last_response.clone());
        self.sealed(sealed, datagrams, out)
    }

    fn seal(
        &mut self,
        spi: u64,
        now: Duration,
        seal: impl FnOnce(&mut Channel, &mut Sealing<'_>) -> Result<Inner, Unsendable>,
    ) -> Result<Inner, Unsendable> {
        let mut channels = self.channels.iter_mut();
        let channel = channels.find(|it| it.local_spi() == spi);
        let mut how = Sealing {
            now,
            random: &mut self.random,
            retransmission: self.settings.retransmission,
            limit: self.settings.datagram.filter(|_| self.takes_fragments),
        };
        seal(channel.ok_or(Unsendable::NoKeys)?, &mut how)
    }

    fn sealed(
        &mut self,
        sealed: Result<Inner, Unsendable>,
        datagrams: Option<Vec<Vec<u8>>>,
        out: &mut Vec<Output>,
    ) -> Option<Inner> {
        match sealed {
            Ok(inner) => {
                self.send(datagrams.unwrap_or_default(), out);
                Some(inner)
            }
            Err(reason) => {
                self.close(Closed::Protocol(reason.to_string()), out);
                None
            }
        }
    }

    fn send(&self, datagrams: Vec<Vec<u8>>, out: &mut Vec<Output>) {
        // The other end of a NAT may have any port.
        let transport = &self.settings.transport;
        let marker = self.path.local.port() == transport.nat_port
            || self.path.remote.port() == transport.peer_nat_port;
        out.extend(datagrams.into_iter().map(|datagram| Output::Send {
            datagram,
            path: self.path,
            marker,
        }));
    }

    /// Adds an IKE SA that a rekeying created.
    fn add_channel(&mut self, channel: Channel, out: &mut Vec<Output>) {
        out.push(Output::IkeUp(channel.local_spi()));
        self.channels.push(channel);
    }

    fn drop_channel(&mut self, spi: u64, out: &mut Vec<Output>) {
        let former = self.channels.len();
        self.channels.retain(|it| it.local_spi() != spi);
        if self.channels.len() < former {
            out.push(Output::IkeDown(spi));
        }
    }

    /// An SPI of a new child SA to this end.
    fn child_spi(&mut self) -> u32 {
        match &self.settings.transport.child_spis {
            Some(spis) => spis.take(),
            None => self.random.child_spi(),
        }
    }

    fn close(&mut self, reason: Closed, out: &mut Vec<Output>) {
        if self.is_closed() {
            return;
        }
        let children = std::mem::take(&mut self.children);
        out.extend(
            children
                .iter()
                .map(|it| Output::ChildDown(it.sa.inbound_spi)),
        );
        self.phase = Phase::Closed;
        self.channels.clear();
        self.orders.clear();
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
fn parsed(inner: &Inner) -> Result<Vec<Payload>, (Notify, String)> {
    let payloads = parse_payloads(inner.first, &inner.bytes).map_err(|error| {
        let notify = Notify::new(NotifyType::INVALID_SYNTAX, []);
        (notify, error.to_string())
    })?;
    match critical(&payloads) {
        None => Ok(payloads),
        Some(kind) => {
            let notify = Notify::new(NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD, [kind.0]);
            Err((notify, Refusal::Critical(kind).to_string()))
        }
    }
}

/// The first payload that is unknown and critical.
fn critical(payloads: &[Payload]) -> Option<PayloadType> {
    payloads.iter().find_map(|payload| match payload {
        Payload::Unknown {
            kind,
            critical: true,
            ..
        } => Some(*kind),
        _ => None,
    })
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

fn notify(kind: NotifyType, data: impl Into<Vec<u8>>) -> Payload {
    Payload::Notify(Notify::new(kind, data))
}
