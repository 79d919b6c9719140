//! The state of negotiated keys: counters for the metrics, and log lines on standard error.
//!
//! A tunnel logs its first keys, the loss of its peer, an attempt that fails for another reason
//! than the last one, and desynchronised keys. Rollovers that succeed are counted, not logged. The
//! `journal` limits the lines, so that no flood of one event hides another. Connections of
//! strangers have a separate limit: they must not hide the tunnels' events.

mod ikev2;
mod journal;

use crate::lines::Lines;
use crate::shared_keys::lock;
use control::CertificateEvent;
use journal::{Journal, Kind};
use keying::chain::Policy;
use keying::message::{Cause, Refusal, for_people};
use keying::rollover::Event;
use std::iter;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, UNIX_EPOCH};

pub use crate::lines::LINES_PER_SECOND;
pub(crate) use ikev2::{Agreed, IkeStatus};

/// The name of a failure of the connection, of TLS, or of a certificate.
const CONNECTION: &str = "connection";

/// The state of the negotiated keys of all tunnels.
#[derive(Debug, Default)]
pub struct Status {
    tunnels: Vec<Tunnel>,
    /// In the order of [`Cause::ALL`].
    established: [AtomicU64; Cause::ALL.len()],
    /// In the order of [`Refusal::ALL`], behind failures of the connection.
    failed: [AtomicU64; 1 + Refusal::ALL.len()],
    refused: AtomicU64,
    peers_lost: AtomicU64,
    keys_expired: AtomicU64,
    /// When this gateway's certificate expires, in seconds since 1970; 0: not known yet.
    certificate_expiry: AtomicU64,
    without_qkd: AtomicU64,
    desyncs: AtomicU64,
    desync_packets: AtomicU64,
    desync_microseconds: AtomicU64,
    journal: Mutex<Journal>,
    /// Lines on connections that did not identify a tunnel.
    strangers: Mutex<Lines>,
    ike: IkeStatus,
}

/// A tunnel with negotiated keys.
#[derive(Debug)]
pub struct Tunnel {
    /// Index among all tunnels of the process.
    pub place: u16,
    /// Tunnel number, equal on both sides.
    pub id: u16,
    /// Name of the peer.
    pub peer: String,
    /// Key sources that its keys must combine.
    pub policy: Policy,
    state: State,
}

/// The state of a tunnel that changes.
#[derive(Debug, Default)]
struct State {
    /// 0: none yet.
    epoch: AtomicU32,
    /// 1 while the channel to the peer is up.
    channel_up: AtomicU32,
    /// Sources of its keys, and the last problem that is logged.
    text: Mutex<Text>,
}

#[derive(Debug, Default)]
struct Text {
    sources: String,
    /// Empty if the last line that was written was on keys.
    problem: String,
    has_told_keys: bool,
}

/// A snapshot of a tunnel, for the metrics.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TunnelSnapshot {
    /// Tunnel number.
    pub id: u16,
    /// Name of the peer.
    pub peer: String,
    /// Policy in force.
    pub policy: Policy,
    /// Epoch that both sides seal with; 0: none yet.
    pub epoch: u32,
    /// Whether there are keys and the channel to the peer is up.
    pub is_established: bool,
    /// Sources of its keys, as in `handshake+ppk:alpha+qkd`; an absent one is prefixed with `-`.
    /// Empty while there are no keys.
    pub sources: String,
}

impl Tunnel {
    /// A tunnel that has no keys yet.
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

    fn snapshot(&self) -> TunnelSnapshot {
        let epoch = self.state.epoch.load(Relaxed);
        TunnelSnapshot {
            id: self.id,
            peer: self.peer.clone(),
            policy: self.policy,
            epoch,
            is_established: epoch > 0 && self.state.channel_up.load(Relaxed) > 0,
            sources: lock(&self.state.text).sources.clone(),
        }
    }
}

impl Status {
    /// The status of these tunnels, in the order of their numbers in the control channel.
    #[must_use]
    pub fn new(tunnels: Vec<Tunnel>) -> Self {
        Self {
            tunnels,
            ..Self::default()
        }
    }

    /// The state of IKE.
    pub(crate) const fn ike(&self) -> &IkeStatus {
        &self.ike
    }

    /// Whether any tunnel has keys by the handshake.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.tunnels.is_empty()
    }

    /// Returns a snapshot of each tunnel.
    pub fn snapshots(&self) -> impl Iterator<Item = TunnelSnapshot> + '_ {
        self.tunnels.iter().map(Tunnel::snapshot)
    }

    /// Epochs that both sides have switched to, by cause.
    pub fn epochs_established(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        named(
            Cause::ALL.iter().map(|cause| cause.name()),
            &self.established,
        )
    }

    /// Attempts that failed, by reason.
    pub fn handshakes_failed(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let refusals = Refusal::ALL.iter().map(|refusal| refusal.name());
        named(iter::once(CONNECTION).chain(refusals), &self.failed)
    }

    /// Returns name, help text and value of the counters without labels.
    #[must_use]
    pub fn counters(&self) -> [(&'static str, &'static str, u64); 6] {
        [
            (
                "connections_refused",
                "Connections to the control port that were refused before they identified their tunnel.",
                self.refused.load(Relaxed),
            ),
            (
                "peers_lost",
                "Times that an established control channel was lost.",
                self.peers_lost.load(Relaxed),
            ),
            (
                "keys_expired",
                "Times that the hard lifetime of a tunnel's keys was over before there were new ones.",
                self.keys_expired.load(Relaxed),
            ),
            (
                "epochs_without_qkd",
                "Attempts that continued without QKD keys, as policy `either` allows.",
                self.without_qkd.load(Relaxed),
            ),
            (
                "desyncs",
                "Times that a tunnel's keys were out of step: packets in a row could not be opened.",
                self.desyncs.load(Relaxed),
            ),
            (
                "desync_lost_packets",
                "Packets that could not be opened until a tunnel's keys matched again.",
                self.desync_packets.load(Relaxed),
            ),
        ]
    }

    /// Total time from the first packet that could not be opened to the first that could.
    #[must_use]
    pub fn desync_outage(&self) -> Duration {
        Duration::from_micros(self.desync_microseconds.load(Relaxed))
    }

    /// When this gateway's certificate expires, in seconds since 1970.
    #[must_use]
    pub fn certificate_expiry(&self) -> u64 {
        self.certificate_expiry.load(Relaxed)
    }

    /// Records an event of this gateway's certificate. The first use is not logged.
    pub fn certificate(&self, event: &CertificateEvent) {
        if let CertificateEvent::InUse { not_after } = event {
            let since_1970 = not_after.duration_since(UNIX_EPOCH).unwrap_or_default();
            // 0 before the first use, at the start, which needs no line.
            let before = self.certificate_expiry.swap(since_1970.as_secs(), Relaxed);
            if before == 0 {
                return;
            }
        }
        let what = event.to_string();
        let what = for_people(&what);
        let line = format!("the certificate of this gateway {what}");
        lock(&self.journal).log(None, Kind::Certificate, line);
    }

    /// Records an event of a tunnel, given by its number in the control channel.
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
                self.established[*cause as usize].fetch_add(1, Relaxed);
                tunnel.state.epoch.store(*epoch, Relaxed);
                tunnel.state.channel_up.store(1, Relaxed);
                let sources = summary(*handshake, sources);
                let mut text = lock(&tunnel.state.text);
                // The state changed from no keys, or from a problem that is in the log. A rollover
                // is no news.
                let is_news = !text.problem.is_empty() || !text.has_told_keys;
                text.problem.clear();
                if is_news {
                    let took = milliseconds(*took);
                    text.has_told_keys = true;
                    self.log(
                        tunnel,
                        Kind::Keys,
                        format_args!("has keys, epoch {epoch}, of {sources}, after {took} ms"),
                    );
                }
                text.sources = sources;
            }
            Event::Failed {
                refusal,
                by_peer,
                detail,
            } => {
                let at = refusal.map_or(0, |refusal| 1 + refusal as usize);
                self.failed[at].fetch_add(1, Relaxed);
                let who = if *by_peer {
                    "the peer refuses"
                } else {
                    "no keys"
                };
                let reason = refusal.map_or(CONNECTION, Refusal::name);
                let what = format!("{who} ({reason}): {}", for_people(detail));
                self.log_problem(tunnel, Kind::Failed, what);
            }
            Event::Expired { epoch } => {
                self.keys_expired.fetch_add(1, Relaxed);
                // The metrics then show the tunnel as one without keys.
                tunnel.state.epoch.store(0, Relaxed);
                lock(&tunnel.state.text).sources.clear();
                let what = format!(
                    "the hard lifetime of its keys, epoch {epoch}, is over: its packets are dropped until there are new ones"
                );
                self.log_problem(tunnel, Kind::Expired, what);
            }
            Event::PeerBack { epoch } => {
                tunnel.state.channel_up.store(1, Relaxed);
                let mut text = lock(&tunnel.state.text);
                // Without a problem the loss was not logged, so its end is not either.
                if !text.problem.is_empty() {
                    text.problem.clear();
                    let what = format_args!("has its peer again, and both keep epoch {epoch}");
                    self.log(tunnel, Kind::Back, what);
                }
            }
            Event::PeerLost { detail } => {
                self.peers_lost.fetch_add(1, Relaxed);
                tunnel.state.channel_up.store(0, Relaxed);
                let detail = for_people(detail);
                self.log_problem(tunnel, Kind::Lost, format!("lost its peer: {detail}"));
            }
            Event::WithoutQkd { detail } => {
                self.without_qkd.fetch_add(1, Relaxed);
                let detail = for_people(detail);
                let what = format!("continues without QKD: {detail}");
                self.log_problem(tunnel, Kind::WithoutQkd, what);
            }
        }
    }

    /// Counts a connection that was refused before it identified its tunnel.
    pub(crate) fn count_refused(&self) {
        self.refused.fetch_add(1, Relaxed);
    }

    /// Logs a connection that was refused before it identified its tunnel.
    pub fn refused(&self, from: std::net::SocketAddr, reason: &str) {
        let reason = for_people(reason);
        lock(&self.strangers).log(format_args!(
            "control channel: connection from {from} refused: {reason}"
        ));
    }

    /// Records that packets of the tunnel at `place` cannot be opened, and whether new keys are
    /// requested now.
    pub(crate) fn desync_begins(&self, place: u16, packets: u64, may_ask: bool) {
        self.desyncs.fetch_add(1, Relaxed);
        if let Some(tunnel) = self.at(place) {
            let then = if may_ask {
                "requesting new keys"
            } else {
                "new keys were requested often enough of late, so not now"
            };
            self.log(
                tunnel,
                Kind::Desync,
                format_args!("desync: {packets} packets in a row cannot be opened; {then}"),
            );
        }
    }

    /// Records that they can be opened again.
    pub(crate) fn desync_ends(&self, place: u16, packets: u64, outage: Duration) {
        self.desync_packets.fetch_add(packets, Relaxed);
        let microseconds = u64::try_from(outage.as_micros()).unwrap_or(u64::MAX);
        self.desync_microseconds.fetch_add(microseconds, Relaxed);
        if let Some(tunnel) = self.at(place) {
            let outage = milliseconds(outage);
            self.log(
                tunnel,
                Kind::DesyncOver,
                format_args!("desync over: {packets} packets lost in {outage} ms"),
            );
        }
    }

    fn at(&self, place: u16) -> Option<&Tunnel> {
        // Not an index: tunnels with static keys have places too, but no status.
        self.tunnels.iter().find(|tunnel| tunnel.place == place)
    }

    /// Logs a problem, unless it is the last one that was logged for the tunnel.
    fn log_problem(&self, tunnel: &Tunnel, kind: Kind, news: String) {
        let mut text = lock(&tunnel.state.text);
        if text.problem != news {
            self.log(tunnel, kind, format_args!("{news}"));
            text.problem = news;
        }
    }

    /// Logs a line on a tunnel, as soon as there is room for it.
    fn log(&self, tunnel: &Tunnel, kind: Kind, what: std::fmt::Arguments<'_>) {
        let Tunnel { id, peer, .. } = tunnel;
        let line = format!("tunnel {id} with {peer}: {what}");
        lock(&self.journal).log(Some(tunnel.place), kind, line);
    }

    /// Writes lines that were held back by a limit; called once a second.
    pub(crate) fn flush(&self) {
        lock(&self.journal).flush();
    }
}

fn named(
    names: impl Iterator<Item = &'static str>,
    counters: &[AtomicU64],
) -> impl Iterator<Item = (&'static str, u64)> {
    let values = counters.iter().map(|counter| counter.load(Relaxed));
    names.zip(values)
}

/// Sources of keys, without the ids of QKD keys, because each id is used only once.
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

    fn logged(status: &Status) -> Vec<String> {
        lock(&status.journal).written()
    }

    #[test]
    fn every_cause_and_refusal_has_a_distinct_name() {
        let status = Status::default();
        let names = |names: Vec<&str>| {
            let many = names.len();
            let set: std::collections::BTreeSet<_> = names.into_iter().collect();
            assert_eq!(set.len(), many);
        };
        names(status.epochs_established().map(|(name, _)| name).collect());
        names(status.handshakes_failed().map(|(name, _)| name).collect());
        // The serialised name is the one sent to the peer.
        for cause in Cause::ALL {
            assert_eq!(format!("{cause:?}").to_lowercase(), cause.name());
        }
    }

    #[test]
    fn the_first_keys_are_logged_and_rollovers_only_counted() {
        let status = status();
        assert!(!status.snapshots().next().unwrap().is_established);
        status.event(0, &established(1, Cause::Start));
        for epoch in 2..9 {
            status.event(0, &established(epoch, Cause::Time));
        }
        assert_eq!(
            logged(&status),
            [
                "tunnel 7 with gw2: has keys, epoch 1, of handshake+ppk:alpha+-ppk:beta+qkd, after 3.200 ms"
            ]
        );
        let snapshot = status.snapshots().next().unwrap();
        assert_eq!((snapshot.epoch, snapshot.is_established), (8, true));
        let counts: Vec<_> = status
            .epochs_established()
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counts, [("start", 1), ("time", 7)]);
    }

    #[test]
    fn a_repeated_failure_is_logged_once() {
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
        let heard = logged(&status);
        assert_eq!(heard.len(), 4, "{heard:?}");
        assert_eq!(
            heard[0],
            "tunnel 7 with gw2: the peer refuses (policy): pqc here, both there"
        );
        assert_eq!(heard[3], "tunnel 7 with gw2: lost its peer: it is gone");
        assert!(!status.snapshots().next().unwrap().is_established);
        let counts: Vec<_> = status
            .handshakes_failed()
            .filter(|(_, count)| *count > 0)
            .collect();
        assert_eq!(counts, [("connection", 1), ("policy", 5)]);
    }

    #[test]
    fn strangers_hide_nothing_and_what_was_left_out_is_told_later() {
        let status = status();
        let from = "192.0.2.9:1".parse().unwrap();
        for _ in 0..100 {
            status.refused(from, "no certificate");
        }
        let failed = |detail: &str| Event::Failed {
            refusal: Some(Refusal::Policy),
            by_peer: true,
            detail: detail.to_owned(),
        };
        status.event(0, &failed("first"));
        let line = "tunnel 7 with gw2: the peer refuses (policy): ";
        assert_eq!(logged(&status), [format!("{line}first")]);
        // Failures use up their lines, and no others.
        for number in 0..40 {
            status.event(0, &failed(&format!("{number}")));
        }
        status.event(0, &failed("last"));
        status.event(0, &established(1, Cause::Start));
        let told = |what: &str| logged(&status).iter().any(|line| line.contains(what));
        assert!(told("has keys, epoch 1") && !told("last"));
        lock(&status.journal).skip(Duration::from_secs(5));
        assert!(told(": last (") && told("earlier events of this kind were not logged"));
        let strangers = lock(&status.strangers).heard();
        assert!(strangers.iter().all(|line| line.contains("refused")));
    }

    #[test]
    fn a_desync_is_logged_with_its_cost() {
        let status = status();
        status.desync_begins(3, 32, true);
        status.desync_ends(3, 1234, Duration::from_micros(56_789));
        assert_eq!(
            logged(&status),
            [
                "tunnel 7 with gw2: desync: 32 packets in a row cannot be opened; requesting new keys",
                "tunnel 7 with gw2: desync over: 1234 packets lost in 56.789 ms",
            ]
        );
        assert_eq!(status.desync_outage(), Duration::from_micros(56_789));
    }
}
