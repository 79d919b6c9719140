//! First requests to a responder: cookies under load (RFC 7296 section 2.6), and sessions.

use super::init::InitialRefusal;
use super::random::Random;
use super::{Event, Output, Path, Refusal, Session, Settings, notifies};
use crate::crypto::{Prf, Secret};
use crate::message::{Exchange, Header, Message, Notify, NotifyType, Payload};
use aws_lc_rs::constant_time;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Lifetime of a secret of cookies. The former one is still accepted.
const COOKIE_SECRET: Duration = Duration::from_secs(30);
const COOKIE_BYTES: usize = 16;
/// A first request is kept until authentication. One with ML-KEM-1024 and 32 proposals has half of
/// this.
const FIRST_BYTES_MAX: usize = 8 << 10;

/// Limits of sessions without authentication, which strangers can cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// From this number on, peers must prove their address.
    pub cookies_from: usize,
    /// No more than this.
    pub half_open: usize,
    /// No more than this of one address.
    pub of_address: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            cookies_from: 32,
            half_open: 4096,
            of_address: 64,
        }
    }
}

/// Sessions without authentication, when a first request arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HalfOpen {
    /// All.
    pub all: usize,
    /// Those of the request's address.
    pub of_address: usize,
}

/// The entrance of a responder. It has no state per peer: spoofed requests cost a hash each.
pub struct Gate {
    settings: Arc<Settings>,
    random: Random,
    limits: Limits,
    secrets: [Secret; 2],
    renewed: Duration,
}

impl Gate {
    /// A gate for peers with these settings. `seed` is secret and never used again.
    #[must_use]
    pub fn new(settings: Arc<Settings>, seed: Secret, limits: Limits, now: Duration) -> Self {
        let mut random = Random::new(seed);
        let secrets = [random.bytes(32), random.bytes(32)];
        Self {
            settings,
            random,
            limits,
            secrets,
            renewed: now,
        }
    }

    /// A datagram whose SPIs are of no session: a new session if it is an acceptable first request.
    /// `half_open` counts the sessions without authentication.
    ///
    /// A request that is repeated has the initiator's SPI of a session that exists; the caller
    /// passes it to that session.
    pub fn admit(
        &mut self,
        now: Duration,
        datagram: &[u8],
        path: Path,
        half_open: HalfOpen,
        out: &mut Vec<Output>,
    ) -> Option<Session> {
        match self.examine(now, datagram, path, half_open, out) {
            Ok(session) => session,
            Err(reason) => {
                out.push(Output::Event(Event::Ignored(reason)));
                None
            }
        }
    }

    fn examine(
        &mut self,
        now: Duration,
        datagram: &[u8],
        path: Path,
        half_open: HalfOpen,
        out: &mut Vec<Output>,
    ) -> Result<Option<Session>, Refusal> {
        let header = Header::peek(datagram)?;
        let is_first = header.exchange == Exchange::IKE_SA_INIT
            && header.from_initiator
            && !header.is_response
            && header.message_id == 0
            && header.responder_spi == 0
            && header.initiator_spi != 0;
        if !is_first {
            return Err(Refusal::UnknownSpi);
        }
        if datagram.len() > FIRST_BYTES_MAX {
            return Err(Refusal::FirstTooLong(datagram.len()));
        }
        let message = Message::parse(datagram)?;
        if let Some(kind) = message.unsupported() {
            let notify = Notify::new(NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD, [kind.0]);
            self.refuse(header, notify, path, out);
            return Ok(None);
        }
        let nonce = message.payloads.iter().find_map(|payload| match payload {
            Payload::Nonce(nonce) => Some(nonce),
            _ => None,
        });
        let nonce = nonce.ok_or(Refusal::Incomplete)?;
        if half_open.all >= self.limits.cookies_from && !self.has_cookie(now, &message, nonce, path)
        {
            let cookie = self.cookie(0, header.initiator_spi, nonce, path.remote.ip());
            self.respond(header, Notify::new(NotifyType::COOKIE, cookie), path, out);
            return Ok(None);
        }
        // With a cookie, or few sessions: addresses of others cannot be used up.
        if half_open.all >= self.limits.half_open {
            return Err(Refusal::HalfOpen);
        }
        if half_open.of_address >= self.limits.of_address {
            return Err(Refusal::HalfOpenOfAddress);
        }
        let request = (header, message.payloads.as_slice(), datagram);
        let seed = self.random.bytes(32);
        let settings = Arc::clone(&self.settings);
        match Session::answer(settings, seed, path, now, request, out) {
            Ok(session) => Ok(Some(session)),
            Err(InitialRefusal::Ignored(reason)) => Err(reason),
            Err(InitialRefusal::Notify(notify)) => {
                self.refuse(header, notify, path, out);
                Ok(None)
            }
        }
    }

    /// A function of a secret and the request's address, SPI and nonce: nothing is stored.
    fn cookie(&self, secret: usize, spi: u64, nonce: &[u8], address: IpAddr) -> Vec<u8> {
        let octets = match address {
            IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
            IpAddr::V6(ip) => ip.octets(),
        };
        let parts: [&[u8]; 3] = [nonce, &octets, &spi.to_be_bytes()];
        let full = Prf::HmacSha256.compute(&self.secrets[secret], &parts);
        full[..COOKIE_BYTES].to_vec()
    }

    fn has_cookie(&mut self, now: Duration, message: &Message, nonce: &[u8], path: Path) -> bool {
        if now >= self.renewed + COOKIE_SECRET {
            self.secrets.swap(0, 1);
            self.secrets[0] = self.random.bytes(32);
            self.renewed = now;
        }
        let spi = message.header.initiator_spi;
        let Some(sent) = notifies(&message.payloads).find(|it| it.kind == NotifyType::COOKIE)
        else {
            return false;
        };
        let is_ours = |secret| {
            let cookie = self.cookie(secret, spi, nonce, path.remote.ip());
            constant_time::verify_slices_are_equal(&cookie, &sent.data).is_ok()
        };
        is_ours(0) || is_ours(1)
    }

    /// Responds with an error.
    fn refuse(&self, header: Header, notify: Notify, path: Path, out: &mut Vec<Output>) {
        out.push(Output::Event(Event::FirstRefused(notify.kind)));
        self.respond(header, notify, path, out);
    }

    /// Responds with a notification, without state (RFC 7296 section 2.6.1: the responder's SPI is
    /// 0).
    fn respond(&self, header: Header, notify: Notify, path: Path, out: &mut Vec<Output>) {
        let message = Message {
            header: Header {
                from_initiator: false,
                is_response: true,
                ..header
            },
            payloads: vec![Payload::Notify(notify)],
        };
        let mut datagram = Vec::new();
        message.emit(&mut datagram).expect("one short notification");
        out.push(Output::Send {
            datagram,
            path,
            marker: path.local.port() == self.settings.transport.nat_port,
        });
    }
}
