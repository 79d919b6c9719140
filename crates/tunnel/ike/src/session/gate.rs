//! First requests to a responder: cookies under load (RFC 7296 section 2.6), and sessions.

use super::init::InitialRefusal;
use super::random::Random;
use super::{Event, NAT_PORT, Output, Path, Session, Settings, notifies};
use crate::crypto::{Prf, Secret};
use crate::message::{Exchange, Header, Message, Notify, NotifyType, Payload};
use aws_lc_rs::constant_time;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// Lifetime of a secret of cookies. The former one is still accepted.
const COOKIE_SECRET: Duration = Duration::from_secs(30);
const COOKIE_BYTES: usize = 16;

/// The entrance of a responder. It has no state per peer: spoofed requests cost a hash each.
pub struct Gate {
    settings: Arc<Settings>,
    random: Random,
    /// Sessions without authentication from which on cookies are asked for.
    threshold: usize,
    secrets: [Secret; 2],
    renewed: Duration,
}

impl Gate {
    /// A gate for peers with these settings. `seed` is secret and never used again. From
    /// `threshold` sessions without authentication on, peers must prove their address.
    #[must_use]
    pub fn new(settings: Arc<Settings>, seed: Secret, threshold: usize, now: Duration) -> Self {
        let mut random = Random::new(seed);
        let secrets = [random.bytes(32), random.bytes(32)];
        Self {
            settings,
            random,
            threshold,
            secrets,
            renewed: now,
        }
    }

    /// A datagram whose SPIs are of no session: a new session if it is an acceptable first request.
    /// `half_open` is the number of sessions without authentication.
    ///
    /// A request that is repeated has the initiator's SPI of a session that exists; the caller
    /// passes it to that session.
    pub fn admit(
        &mut self,
        now: Duration,
        datagram: &[u8],
        path: Path,
        half_open: usize,
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
        half_open: usize,
        out: &mut Vec<Output>,
    ) -> Result<Option<Session>, String> {
        let header = Header::peek(datagram).map_err(|error| error.to_string())?;
        let is_first = header.exchange == Exchange::IKE_SA_INIT
            && header.from_initiator
            && !header.is_response
            && header.message_id == 0
            && header.responder_spi == 0
            && header.initiator_spi != 0;
        if !is_first {
            return Err("no IKE SA has these SPIs (RFC 7296 section 2.21.4)".to_owned());
        }
        let message = Message::parse(datagram).map_err(|error| error.to_string())?;
        if let Some(kind) = message.unsupported() {
            let notify = Notify::new(NotifyType::UNSUPPORTED_CRITICAL_PAYLOAD, [kind.0]);
            refuse(header, notify, path, out);
            return Ok(None);
        }
        let nonce = message.payloads.iter().find_map(|payload| match payload {
            Payload::Nonce(nonce) => Some(nonce),
            _ => None,
        });
        let nonce = nonce.ok_or("the request has no nonce (RFC 7296 section 1.2)")?;
        if half_open >= self.threshold && !self.has_cookie(now, &message, nonce, path) {
            let cookie = self.cookie(0, header.initiator_spi, nonce, path.remote.ip());
            refuse(header, Notify::new(NotifyType::COOKIE, cookie), path, out);
            return Ok(None);
        }
        let request = (header, message.payloads.as_slice(), datagram);
        let seed = self.random.bytes(32);
        let settings = Arc::clone(&self.settings);
        match Session::answer(settings, seed, path, now, request, out) {
            Ok(session) => Ok(Some(session)),
            Err(InitialRefusal::Ignored(reason)) => Err(reason),
            Err(InitialRefusal::Notify(notify)) => {
                refuse(header, notify, path, out);
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
}

/// Responds with a notification, without state (RFC 7296 section 2.6.1: the responder's SPI is 0).
fn refuse(header: Header, notify: Notify, path: Path, out: &mut Vec<Output>) {
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
    let marker = path.local.port() == NAT_PORT;
    out.push(Output::Send {
        datagram,
        path,
        marker,
    });
}
