//! What people want to know of negotiated keys: counters for the metrics, and lines on the standard error.
//!
//! A tunnel tells when it gets its first keys, when it loses its peer, when an attempt fails for another reason than the
//! last, and when its peer has other keys. Rollovers that succeed are counted, not told. All tunnels together tell
//! [`LINES_PER_SECOND`] lines at most; how many more there were is told in their place.

mod lines;

use keying::chain::Policy;
use keying::message::{Cause, Refusal, for_people};
use keying::rollover::Event;
use lines::Lines;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use lines::LINES_PER_SECOND;

/// Every cause of an epoch, with its name in metrics, in the order of [`Status`]'s counters.
const CAUSES: [(Cause, &str); 7] = [
    (Cause::Start, "start"),
    (Cause::Time, "time"),
    (Cause::Bytes, "bytes"),
    (Cause::Packets, "packets"),
    (Cause::Demand, "demand"),
    (Cause::Desync, "desync"),
    (Cause::Retry, "retry"),
];

/// Every reason of a failed handshake. Without a rule it was the connection, TLS, or a certificate.
const REASONS: [(Option<Refusal>, &str); 13] = [
    (None, "connection"),
    (Some(Refusal::Version), "version"),
    (Some(Refusal::Tunnel), "tunnel"),
    (Some(Refusal::Suite), "suite"),
    (Some(Refusal::Lanes), "lanes"),
    (Some(Refusal::Payload), "payload"),
    (Some(Refusal::Policy), "policy"),
    (Some(Refusal::Ppk), "ppk"),
    (Some(Refusal::Qkd), "qkd"),
    (Some(Refusal::KeysDiffer), "keys_differ"),
    (Some(Refusal::Protocol), "protocol"),
    (Some(Refusal::Timeout), "timeout"),
    (Some(Refusal::Superseded), "superseded"),
];

/// What has become of negotiated keys; of all tunnels.
#[derive(Debug, Default)]
pub struct Status {
    tunnels: Vec<Tunnel>,
    /// In the order of [`CAUSES`].
    established: [AtomicU64; CAUSES.len()],
    /// In the order of [`REASONS`].
    failed: [AtomicU64; REASONS.len()],
    refused: AtomicU64,
    peers_lost: AtomicU64,
    without_qkd: AtomicU64,
    desyncs: AtomicU64,
    desync_packets: AtomicU64,
    desync_microseconds: AtomicU64,
    lines: Mutex<Lines>,
}

/// A tunnel whose keys are negotiated.
#[derive(Debug)]
pub struct Tunnel {
    /// Its place among all tunnels of the process.
    pub place: u16,
    /// Its number, the same on both sides.
    pub id: u16,
    /// Name of the peer.
    pub peer: String,
    /// What its keys must come from.
    pub policy: Policy,
    state: State,
}

/// What changes of a tunnel.
#[derive(Debug, Default)]
struct State {
    /// 0: none yet.
    epoch: AtomicU32,
    /// 1 while the channel to the peer stands.
    stands: AtomicU32,
    /// What is in its keys, and what was told of it last.
    text: Mutex<Text>,
}

#[derive(Debug, Default)]
struct Text {
    sources: String,
    told: String,
}

/// The standing of a tunnel, for the metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Of the tunnel.
    pub id: u16,
    /// Of the peer.
    pub peer: String,
    /// In force.
    pub policy: Policy,
    /// That both sides seal with; 0: none yet.
    pub epoch: u32,
    /// Whether there are keys, and the channel to the peer stands.
    pub is_established: bool,
    /// What is in its keys, `handshake+ppk:alpha+qkd`; an absent one has `-` in front. Empty while there are none.
    pub sources: String,
}

impl Tunnel {
    /// One that has no keys yet.
    #[must_use]
    pub fn new(place: u16, id: u16, peer: String, policy: Policy) -> Self {
        Self {
            place,
            id,
            peer,
            policy,
            state: State::default(),
        }
    }

    fn standing(&self) -> Standing {
        let epoch = self.state.epoch.load(Relaxed);
        Standing {
            id: self.id,
            peer: self.peer.clone(),
            policy: self.policy,
            epoch,
            is_established: epoch > 0 && self.state.stands.load(Relaxed) > 0,
            sources: lock(&self.state.text).sources.clone(),
        }
    }
}

impl Status {
    /// Of these tunnels, in the order in which the control channel numbers them.
    #[must_use]
    pub fn new(tunnels: Vec<Tunnel>) -> Self {
        Self {
            tunnels,
            ..Self::default()
        }
    }

    /// Whether any tunnel has negotiated keys.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tunnels.is_empty()
    }

    /// All tunnels, as they are now.
    pub fn standings(&self) -> impl Iterator<Item = Standing> + '_ {
        self.tunnels.iter().map(Tunnel::standing)
    }

    /// Epochs that both sides have switched to, by cause.
    pub fn epochs_established(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        named(CAUSES.map(|(_, name)| name), &self.established)
    }

    /// Attempts that failed, by reason.
    pub fn handshakes_failed(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        named(REASONS.map(|(_, name)| name), &self.failed)
    }

    /// What has no label, with its meaning.
    #[must_use]
    pub fn counters(&self) -> [(&'static str, &'static str, u64); 5] {
        [
            (
                "connections_refused",
                "Connections to the control port that were refused before they told their tunnel.",
                self.refused.load(Relaxed),
            ),
            (
                "peers_lost",
                "Times that a control channel that stood was lost.",
                self.peers_lost.load(Relaxed),
            ),
            (
                "epochs_without_qkd",
                "Attempts that went on without QKD keys, as policy `either` allows.",
                self.without_qkd.load(Relaxed),
            ),
            (
                "desyncs",
                "Times that a tunnel's packets could not be opened, one after the other.",
                self.desyncs.load(Relaxed),
            ),
            (
                "desync_lost_packets",
                "Packets that could not be opened from then until they could again.",
                self.desync_packets.load(Relaxed),
            ),
        ]
    }

    /// Seconds from the first packet that could not be opened to the first that could; of all times together.
    #[must_use]
    pub fn desync_outage(&self) -> Duration {
        Duration::from_micros(self.desync_microseconds.load(Relaxed))
    }

    /// Takes an event of a tunnel, by its number in the control channel.
    pub fn event(&self, number: usize, event: &Event) {
        let tunnel = &self.tunnels[number];
        match event {
            Event::Established {
                epoch,
                cause,
                took,
                sources,
                handshake,
            } => {
                let at = CAUSES.iter().position(|(known, _)| known == cause);
                count(&self.established, at);
                tunnel.state.epoch.store(*epoch, Relaxed);
                tunnel.state.stands.store(1, Relaxed);
                let sources = summary(*handshake, sources);
                let mut text = lock(&tunnel.state.text);
                let is_news = !text.told.is_empty() || text.sources.is_empty();
                text.sources.clone_from(&sources);
                text.told.clear();
                drop(text);
                if is_news {
                    let took = milliseconds(*took);
                    self.tell(
                        tunnel,
                        format_args!("has keys, epoch {epoch}, of {sources}, after {took} ms"),
                    );
                }
            }
            Event::Failed {
                refusal,
                by_peer,
                detail,
            } => {
                let at = REASONS.iter().position(|(known, _)| known == refusal);
                count(&self.failed, at);
                let who = if *by_peer {
                    "the peer refuses"
                } else {
                    "no keys"
                };
                let reason = at.map_or("connection", |at| REASONS[at].1);
                self.tell_news(tunnel, format!("{who} ({reason}): {}", for_people(detail)));
            }
            Event::PeerLost { detail } => {
                self.peers_lost.fetch_add(1, Relaxed);
                tunnel.state.stands.store(0, Relaxed);
                let detail = for_people(detail);
                self.tell_news(tunnel, format!("lost its peer: {detail}"));
            }
            Event::WithoutQkd { detail } => {
                self.without_qkd.fetch_add(1, Relaxed);
                let detail = for_people(detail);
                self.tell_news(tunnel, format!("goes on without QKD: {detail}"));
            }
        }
    }

    /// Somebody was turned away who did not tell which tunnel he wants.
    pub fn refused(&self, from: std::net::SocketAddr, reason: &str) {
        self.refused.fetch_add(1, Relaxed);
        let reason = for_people(reason);
        lock(&self.lines).tell(format_args!(
            "control channel: connection from {from} refused: {reason}"
        ));
    }

    /// A tunnel's packets cannot be opened; by its place.
    pub(crate) fn desync_begins(&self, place: u16, packets: u64) {
        self.desyncs.fetch_add(1, Relaxed);
        if let Some(tunnel) = self.at(place) {
            self.tell(
                tunnel,
                format_args!(
                    "desync: {packets} packets in a row cannot be opened; asking for new keys"
                ),
            );
        }
    }

    /// They can again.
    pub(crate) fn desync_ends(&self, place: u16, packets: u64, outage: Duration) {
        self.desync_packets.fetch_add(packets, Relaxed);
        let microseconds = u64::try_from(outage.as_micros()).unwrap_or(u64::MAX);
        self.desync_microseconds.fetch_add(microseconds, Relaxed);
        if let Some(tunnel) = self.at(place) {
            let outage = milliseconds(outage);
            self.tell(
                tunnel,
                format_args!("desync over: {packets} packets lost in {outage} ms"),
            );
        }
    }

    fn at(&self, place: u16) -> Option<&Tunnel> {
        self.tunnels.iter().find(|tunnel| tunnel.place == place)
    }

    /// Tells what is another text than the last.
    fn tell_news(&self, tunnel: &Tunnel, news: String) {
        let mut text = lock(&tunnel.state.text);
        if text.told == news {
            return;
        }
        self.tell(tunnel, format_args!("{news}"));
        text.told = news;
    }

    fn tell(&self, tunnel: &Tunnel, what: std::fmt::Arguments<'_>) {
        let Tunnel { id, peer, .. } = tunnel;
        lock(&self.lines).tell(format_args!("tunnel {id} with {peer}: {what}"));
    }
}

fn named<const N: usize>(
    names: [&'static str; N],
    counters: &[AtomicU64; N],
) -> impl Iterator<Item = (&'static str, u64)> {
    let values = counters.iter().map(|counter| counter.load(Relaxed));
    names.into_iter().zip(values)
}

fn count(counters: &[AtomicU64], at: Option<usize>) {
    if let Some(counter) = at.and_then(|at| counters.get(at)) {
        counter.fetch_add(1, Relaxed);
    }
}

/// What keys were made of, without the ids of QKD keys, of which each is used once.
fn summary(handshake: bool, sources: &[String]) -> String {
    let mut parts = Vec::new();
    if handshake {
        parts.push("handshake");
    }
    for source in sources {
        let part = match source.as_str() {
            qkd if qkd.starts_with("qkd:") => "qkd",
            absent if absent.starts_with("-qkd:") => "-qkd",
            other => other,
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join("+")
}

/// With three digits behind the point.
fn milliseconds(time: Duration) -> String {
    format!("{:.3}", time.as_secs_f64() * 1e3)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        Status::new(vec![Tunnel::new(3, 7, "gw2".to_owned(), Policy::Either)])
    }

    fn established(epoch: u32, cause: Cause) -> Event {
        Event::Established {
            epoch,
            cause,
            took: Duration::from_micros(3_200),
            sources: ["ppk:alpha", "-ppk:beta", "qkd:1", "qkd:2"]
                .map(str::to_owned)
                .into(),
            handshake: true,
        }
    }

    fn told(status: &Status) -> Vec<String> {
        lock(&status.lines).heard()
    }

    #[test]
    fn every_cause_and_refusal_has_a_name_of_its_own() {
        let names = |names: Vec<&str>| {
            let many = names.len();
            let set: std::collections::BTreeSet<_> = names.into_iter().collect();
            assert_eq!(set.len(), many);
        };
        names(CAUSES.map(|(_, name)| name).into());
        names(REASONS.map(|(_, name)| name).into());
        // As it is said on the wire.
        for (cause, name) in CAUSES {
            assert_eq!(format!("{cause:?}").to_lowercase(), name);
        }
    }

    #[test]
    fn the_first_keys_are_told_and_rollovers_only_counted() {
        let status = status();
        assert!(!status.standings().next().unwrap().is_established);
        status.event(0, &established(1, Cause::Start));
        for epoch in 2..9 {
            status.event(0, &established(epoch, Cause::Time));
        }
        assert_eq!(
            told(&status),
            [
                "tunnel 7 with gw2: has keys, epoch 1, of handshake+ppk:alpha+-ppk:beta+qkd, after 3.200 ms"
            ]
        );
        let standing = status.standings().next().unwrap();
        assert_eq!((standing.epoch, standing.is_established), (8, true));
        let counts: Vec<_> = status
            .epochs_established()
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counts, [("start", 1), ("time", 7)]);
    }

    #[test]
    fn what_fails_again_and_again_is_told_once() {
        let status = status();
        let failed = |refusal, detail: &str| Event::Failed {
            refusal,
            by_peer: true,
            detail: detail.to_owned(),
        };
        for _ in 0..5 {
            status.event(0, &failed(Some(Refusal::Policy), "pqc here, both there"));
        }
        status.event(0, &failed(None, "connection refused"));
        status.event(0, &established(1, Cause::Retry));
        let detail = "it is gone".to_owned();
        status.event(0, &Event::PeerLost { detail });
        let heard = told(&status);
        assert_eq!(heard.len(), 4, "{heard:?}");
        assert_eq!(
            heard[0],
            "tunnel 7 with gw2: the peer refuses (policy): pqc here, both there"
        );
        assert_eq!(heard[3], "tunnel 7 with gw2: lost its peer: it is gone");
        assert!(!status.standings().next().unwrap().is_established);
        let counts: Vec<_> = status
            .handshakes_failed()
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counts, [("connection", 1), ("policy", 5)]);
    }

    #[test]
    fn a_desync_has_its_cost() {
        let status = status();
        status.desync_begins(3, 32);
        status.desync_ends(3, 1234, Duration::from_micros(56_789));
        assert_eq!(
            told(&status),
            [
                "tunnel 7 with gw2: desync: 32 packets in a row cannot be opened; asking for new keys",
                "tunnel 7 with gw2: desync over: 1234 packets lost in 56.789 ms",
            ]
        );
        assert_eq!(status.desync_outage(), Duration::from_micros(56_789));
    }
}
