//! First requests alone: each leaves an IKE SA half-open at the gateway, or is refused.
//!
//! The requests are of one initiator with ever new SPIs and nonces: a flood costs its sender no key
//! exchange. Cookies are counted, not returned.

use crate::agenda::{Action, Agenda, Rate, Series};
use crate::credentials::Credentials;
use crate::engine::MARKER;
use crate::error::PeersError;
use crate::report::{Flood, Report, Traffic};
use crate::sockets::Sockets;
use crate::sources::Places;
use crate::spec::Spec;
use crate::triggers::Triggers;
use aws_lc_rs::rand;
use ike::crypto::Secret;
use ike::message::{Exchange, Header, Message, NotifyType, Payload};
use ike::session::{Output, Session};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Requests in a row, before responses are read.
const ROW: usize = 64;
/// Time for responses after the last request.
const LAST: Duration = Duration::from_millis(500);
const SPI_BYTES: usize = 8;

/// A first request; each peer gets another SPI and nonce.
struct Request {
    bytes: Vec<u8>,
    nonce: std::ops::Range<usize>,
}

impl Request {
    /// The request that a session of a peer would send.
    fn new(places: &Places, credentials: &Credentials) -> Option<Self> {
        let mut seed = Secret::new(vec![0; 32]);
        rand::fill(&mut seed).ok()?;
        let mut out = Vec::new();
        let path = places.path(0);
        Session::initiate(credentials.of(0), seed, path, Duration::ZERO, &mut out)?;
        let bytes = out.into_iter().find_map(|it| match it {
            Output::Send { datagram, .. } => Some(datagram),
            _ => None,
        })?;
        let message = Message::parse(&bytes).ok()?;
        let nonce = message.payloads.iter().find_map(|it| match it {
            Payload::Nonce(nonce) => Some(nonce.clone()),
            _ => None,
        })?;
        let at = bytes.windows(nonce.len()).position(|it| it == nonce)?;
        let nonce = at..at + nonce.len();
        Some(Self { bytes, nonce })
    }

    /// The request of another initiator.
    fn renew(&mut self) -> Result<(), PeersError> {
        let failed = |_| PeersError::Random;
        rand::fill(&mut self.bytes[..SPI_BYTES]).map_err(failed)?;
        rand::fill(&mut self.bytes[self.nonce.clone()]).map_err(failed)
    }
}

/// Sends requests at a rate per second, for a time in nanoseconds.
pub(crate) fn run(
    spec: &Spec,
    places: &Places,
    credentials: &Credentials,
    sockets: &mut Sockets,
    (per_s, duration_ns): (u32, u64),
    triggers: Triggers<'_>,
) -> Result<Report, PeersError> {
    let mut request = Request::new(places, credentials).ok_or(PeersError::Random)?;
    let count = u128::from(per_s) * u128::from(duration_ns) / 1_000_000_000;
    let mut flood = Flood {
        intended: u64::try_from(count).unwrap_or(u64::MAX),
        ..Flood::default()
    };
    let mut traffic = Traffic::default();
    let start = Instant::now();
    let elapsed = || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let series = Series {
        action: Action::SetUp,
        begin_ns: 0,
        rate: Some(Rate::per_s(per_s)),
        count: flood.intended,
        peers: spec.peers,
    };
    let end_ns = series.end_ns() + LAST.as_nanos() as u64;
    let mut agenda = Agenda::new(series);
    while !triggers.stop.is_raised() && elapsed() < end_ns {
        let now_ns = elapsed();
        for _ in 0..ROW {
            let Some(task) = agenda.due(now_ns) else {
                break;
            };
            request.renew()?;
            let path = places.path(task.peer);
            sockets.push([&[], &request.bytes], path.local, path.remote);
            traffic.add_sent(request.bytes.len());
            flood.sent += 1;
        }
        sockets.flush();
        let next_ns = agenda.next_at().unwrap_or(end_ns);
        let wait = Duration::from_nanos(next_ns.saturating_sub(elapsed()));
        sockets.wait(Some(wait), &[triggers.stop.as_fd()])?;
        sockets.receive(|_, datagram, _, _| {
            traffic.add_received(datagram.len());
            flood.response(datagram);
        });
    }
    Ok(Report {
        is_partial: elapsed() < end_ns,
        flood: Some(flood),
        traffic,
        ..Report::default()
    })
}

impl Flood {
    fn response(&mut self, datagram: &[u8]) {
        let datagram = datagram.strip_prefix(&MARKER).unwrap_or(datagram);
        let Ok(message) = Message::parse(datagram) else {
            self.other += 1;
            return;
        };
        let Header {
            exchange,
            is_response,
            responder_spi,
            ..
        } = message.header;
        let mut notifies = message.payloads.iter().filter_map(|it| match it {
            Payload::Notify(notify) => Some(notify.kind),
            _ => None,
        });
        let answer = notifies.find(|it| it.is_error() || *it == NotifyType::COOKIE);
        match answer {
            _ if exchange != Exchange::IKE_SA_INIT || !is_response => self.other += 1,
            Some(NotifyType::COOKIE) => self.cookies += 1,
            Some(kind) => *self.refused.entry(kind.to_string()).or_default() += 1,
            None if responder_spi != 0 => self.accepted += 1,
            None => self.other += 1,
        }
    }
}
