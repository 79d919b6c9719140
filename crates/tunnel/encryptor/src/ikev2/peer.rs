//! One peer: its IKE SA, attempts to create one, and the change to a newer one.

use super::advice;
use super::children::Children;
use super::order::Order;
use crate::config::IkeRole;
use crate::status::{Agreed, IkeStatus, Status};
use ike::crypto::Secret;
use ike::message::{Header, NotifyType};
use ike::session::{
    ChildSa, Closed, Event, Gate, HalfOpen, Limits, Output, Path, Session, Settings,
};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// IKE SAs without authentication that strangers with the peer's address can cause.
const LIMITS: Limits = Limits {
    cookies_from: 4,
    half_open: 16,
    of_address: 16,
};
/// Under [`IkeRole::Auto`] the side with the higher address begins after this time.
const PATIENCE: Duration = Duration::from_secs(2);
/// While an attempt of this side is so young, the peer's is not answered: two IKE SAs would
/// replace each other.
const CROSSING: Duration = Duration::from_secs(3);
/// The first pause after a failed attempt, and the longest.
const PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(30)];
/// Time until new keys that the peer refused are requested again.
const RETRY_REKEY: Duration = Duration::from_secs(30);

/// Sends datagrams.
pub(super) trait Wire {
    fn send(&mut self, datagram: &[u8], path: Path, marker: bool);
}

/// Number, role and addresses of a peer.
pub(super) struct Wanted {
    /// Its number in the status.
    pub(super) number: usize,
    pub(super) role: IkeRole,
    /// The path of first messages.
    pub(super) path: Path,
}

pub(super) struct Peer {
    wanted: Wanted,
    settings: Arc<Settings>,
    gate: Gate,
    sessions: Vec<Tracked>,
    next_id: u64,
    children: Children,
    /// When this side begins.
    attempt_at: Option<Duration>,
    pause: Duration,
    retry_rekey: Option<Duration>,
    /// The child SA that was reported last.
    reported: Option<(u64, u32)>,
    status: Arc<Status>,
}

/// A session with what this side knows of it.
struct Tracked {
    id: u64,
    session: Session,
    began: Duration,
    /// This side sent the first message.
    is_own: bool,
    has_ppk: bool,
    was_established: bool,
    is_ending: bool,
}

fn seed() -> Option<Secret> {
    let mut seed = Secret::new(vec![0; 32]);
    aws_lc_rs::rand::fill(&mut seed).ok()?;
    Some(seed)
}

impl Peer {
    /// A peer without IKE SA; `None` without random numbers.
    pub(super) fn new(
        wanted: Wanted,
        settings: Settings,
        children: Children,
        status: Arc<Status>,
    ) -> Option<Self> {
        let settings = Arc::new(settings);
        let gate = Gate::new(Arc::clone(&settings), seed()?, LIMITS, Duration::ZERO);
        let mut peer = Self {
            wanted,
            settings,
            gate,
            sessions: Vec::new(),
            next_id: 0,
            children,
            attempt_at: None,
            pause: PAUSES[0],
            retry_rekey: None,
            reported: None,
            status,
        };
        peer.attempt_in(Duration::ZERO);
        Some(peer)
    }

    fn status(&self) -> &IkeStatus {
        self.status.ike()
    }

    pub(super) fn ignore(&self, name: &'static str) {
        self.status().count_ignored_as(name);
    }

    /// The path of first messages.
    pub(super) const fn path(&self) -> Path {
        self.wanted.path
    }

    /// The peer's address at the port that it shares with ESP.
    pub(super) fn shared_remote(&self) -> SocketAddr {
        let port = self.settings.transport.peer_nat_port;
        SocketAddr::new(self.wanted.path.remote.ip(), port)
    }

    /// Whether this side's attempt goes on if both begin at the same time.
    fn is_first(&self) -> bool {
        let Path { local, remote } = self.wanted.path;
        local.ip() < remote.ip()
    }

    /// Plans an attempt, if this side begins.
    fn attempt_in(&mut self, at: Duration) {
        self.attempt_at = match self.wanted.role {
            IkeRole::Respond => None,
            IkeRole::Auto if !self.is_first() => Some(at + PATIENCE),
            IkeRole::Auto | IkeRole::Initiate => Some(at),
        };
    }

    pub(super) fn owns(&self, header: &Header) -> bool {
        self.sessions.iter().any(|it| it.session.owns(header))
    }

    fn tracked(&mut self, id: u64) -> Option<&mut Tracked> {
        self.sessions.iter_mut().find(|it| it.id == id)
    }

    pub(super) fn wakes_at(&self) -> Option<Duration> {
        let sessions = self.sessions.iter();
        let sessions = sessions.filter_map(|it| it.session.wakes_at());
        let others = [self.attempt_at, self.retry_rekey, self.children.wakes_at()];
        sessions.chain(others.into_iter().flatten()).min()
    }

    pub(super) fn tick(&mut self, now: Duration, wire: &mut impl Wire) {
        self.children.tick(now);
        let ids: Vec<u64> = self.sessions.iter().map(|it| it.id).collect();
        for id in ids {
            let mut out = Vec::new();
            if let Some(it) = self.tracked(id)
                && it.session.wakes_at().is_some_and(|at| at <= now)
            {
                it.session.tick(now, &mut out);
            }
            self.execute(now, id, out, wire);
        }
        if self.retry_rekey.take_if(|at| *at <= now).is_some() {
            self.order(now, Order::Rekey, wire);
        }
        if self.attempt_at.take_if(|at| *at <= now).is_some() {
            self.attempt(now, wire);
        }
    }

    /// Begins, unless the peer does.
    fn attempt(&mut self, now: Duration, wire: &mut impl Wire) {
        if let Some(other) = self.sessions.iter().find(|it| !it.is_ending) {
            // An IKE SA of the peer's making may come to nothing.
            if !other.session.is_established() && !other.is_own {
                self.attempt_at = Some(now + PATIENCE);
            }
            return;
        }
        let mut out = Vec::new();
        let settings = Arc::clone(&self.settings);
        let path = self.wanted.path;
        let session = seed().and_then(|it| Session::initiate(settings, it, path, now, &mut out));
        match session {
            Some(session) => {
                let id = self.track(now, session, true);
                self.execute(now, id, out, wire);
            }
            None => self.attempt_at = Some(now + self.pause),
        }
    }

    fn track(&mut self, now: Duration, session: Session, is_own: bool) -> u64 {
        self.next_id += 1;
        self.sessions.push(Tracked {
            id: self.next_id,
            session,
            began: now,
            is_own,
            has_ppk: !self.settings.ppks.is_empty(),
            was_established: false,
            is_ending: false,
        });
        self.next_id
    }

    /// A message of the peer, or of somebody with its address. `may_begin`: it may be a first one.
    pub(super) fn receive(
        &mut self,
        now: Duration,
        message: &[u8],
        path: Path,
        may_begin: bool,
        wire: &mut impl Wire,
    ) {
        let mut out = Vec::new();
        let header = Header::peek(message).ok();
        let mut owners = self.sessions.iter_mut();
        let owner = header.and_then(|header| owners.find(|it| it.session.owns(&header)));
        if let Some(it) = owner {
            it.session.handle(now, message, path, &mut out);
            let id = it.id;
            return self.execute(now, id, out, wire);
        }
        if !may_begin {
            return self.ignore("unknown_spi");
        }
        if self.crosses(now) {
            return self.ignore("crossing");
        }
        let strangers = |it: &&Tracked| !it.is_own && !it.session.is_established();
        let count = self.sessions.iter().filter(strangers).count();
        let half_open = HalfOpen {
            all: count,
            of_address: count,
        };
        let session = self.gate.admit(now, message, path, half_open, &mut out);
        let id = match session {
            Some(session) => self.track(now, session, false),
            None => 0,
        };
        self.execute(now, id, out, wire);
    }

    /// Whether both sides have just begun, and this one's attempt goes on.
    fn crosses(&self, now: Duration) -> bool {
        let mut sessions = self.sessions.iter();
        let is_young = |it: &Tracked| it.is_own && !it.was_established && now < it.began + CROSSING;
        self.is_first() && sessions.any(is_young)
    }

    pub(super) fn order(&mut self, now: Duration, order: Order, wire: &mut impl Wire) {
        let Some((id, spi)) = self.children.sending() else {
            return;
        };
        let mut out = Vec::new();
        if let Some(it) = self.tracked(id) {
            match order {
                Order::Rekey => it.session.rekey_child(now, spi, &mut out),
                Order::Probe | Order::Stop => it.session.probe(now, &mut out),
            };
        }
        self.execute(now, id, out, wire);
    }

    /// Deletes the IKE SAs, without waiting for answers.
    pub(super) fn stop(&mut self, now: Duration, wire: &mut impl Wire) {
        for it in &mut self.sessions {
            let mut out = Vec::new();
            it.session.delete(now, &mut out);
            for output in out {
                if let Output::Send {
                    datagram,
                    path,
                    marker,
                } = output
                {
                    wire.send(&datagram, path, marker);
                }
            }
        }
    }

    fn execute(&mut self, now: Duration, id: u64, out: Vec<Output>, wire: &mut impl Wire) {
        let mut unusable = None;
        // Before anything is sent: the peer may use a child SA as soon as it hears of it.
        for output in &out {
            match output {
                Output::ChildUp(child) => match self.check(child) {
                    Ok(()) => self.child_up(id, child),
                    Err(reason) => unusable = Some(reason),
                },
                Output::ChildDown(spi) => self.children.down(now, *spi),
                _ => {}
            }
        }
        for output in out {
            match output {
                Output::Send {
                    datagram,
                    path,
                    marker,
                } => wire.send(&datagram, path, marker),
                Output::Established => self.established(now, id, wire),
                Output::InitialContact => self.forget_others(now, id),
                Output::IkeUp(_) => self.status().count_ike_rekey(),
                Output::IkeDown(_) | Output::ChildUp(_) | Output::ChildDown(_) => {}
                Output::Event(event) => self.event(now, id, &event, wire),
                Output::Closed(reason) => self.closed(now, id, &reason),
            }
        }
        self.report();
        if let Some(reason) = unusable {
            self.fail(now, id, &reason, wire);
        }
    }

    /// Reports whether there is a child SA to send with, and what protects its keys.
    fn report(&mut self) {
        let number = self.wanted.number;
        let sending = self.children.sending();
        if self.reported == sending {
            return;
        }
        self.reported = sending;
        let tracked = sending.and_then(|(id, _)| self.sessions.iter().find(|it| it.id == id));
        let agreed = tracked.and_then(|it| {
            let (suite, _) = it.session.keys()?;
            Some(Agreed::new(&suite, it.has_ppk))
        });
        match agreed {
            Some(agreed) => self.status().up(number, agreed),
            None => self.status().down(number),
        }
    }

    /// Whether the lane can use a child SA; otherwise the reason.
    fn check(&self, child: &ChildSa) -> Result<(), String> {
        if !child.in_udp {
            return Err(
                "the peer does not know NATs (RFC 7296 section 2.23), so that it would not encapsulate ESP in UDP: \
                 enable NAT traversal there"
                    .to_owned(),
            );
        }
        let settings = &self.settings;
        let sorted = |ranges: &[ike::message::AddressRange]| {
            let mut ranges = ranges.to_vec();
            ranges.sort_unstable_by_key(|it| (it.first, it.last, it.protocol, it.ports));
            ranges.dedup();
            ranges
        };
        // Networks of this side that are not restricted here may be restricted there.
        let is_any = settings.local.iter().all(|it| it.first.is_unspecified());
        if sorted(&child.remote) != sorted(&settings.remote)
            || (!is_any && sorted(&child.local) != sorted(&settings.local))
        {
            return Err(format!(
                "the peer has narrowed the traffic selectors (RFC 7296 section 2.9): make `routes` and `local` here and \
                 the networks there the same; it accepts {} here and {} there",
                list(&child.local),
                list(&child.remote)
            ));
        }
        Ok(())
    }

    fn child_up(&mut self, id: u64, child: &ChildSa) {
        self.children.up(id, child);
        self.pause = PAUSES[0];
        self.retry_rekey = None;
        if child.replaces.is_some() {
            self.status().count_child_rekey();
        }
    }

    fn established(&mut self, now: Duration, id: u64, wire: &mut impl Wire) {
        self.status().count_established();
        self.attempt_at = None;
        if let Some(it) = self.tracked(id) {
            it.was_established = true;
        }
        // Attempts of this side that nobody needs any more; strangers' end by themselves.
        self.sessions
            .retain(|it| it.id == id || !it.is_own || it.session.is_established());
        let others = self.sessions.iter().filter(|it| it.id != id);
        let others = others.filter(|it| it.session.is_established() && !it.is_ending);
        let others: Vec<u64> = others.map(|it| it.id).collect();
        for other in others {
            self.end(now, other, wire);
        }
    }

    /// The peer has no other IKE SA.
    fn forget_others(&mut self, now: Duration, id: u64) {
        let is_other = |it: &Tracked| it.id != id && it.session.is_established();
        let others = self.sessions.iter().filter(|it| is_other(it));
        let others: Vec<u64> = others.map(|it| it.id).collect();
        for other in others {
            self.children.session_down(now, other);
        }
        self.sessions.retain(|it| !is_other(it));
    }

    /// Deletes an IKE SA. Its child SAs end now.
    fn end(&mut self, now: Duration, id: u64, wire: &mut impl Wire) {
        self.children.session_down(now, id);
        let mut out = Vec::new();
        if let Some(it) = self.tracked(id) {
            it.is_ending = true;
            it.session.delete(now, &mut out);
        }
        self.execute(now, id, out, wire);
    }

    /// Deletes an IKE SA that is of no use, and tries again later.
    fn fail(&mut self, now: Duration, id: u64, reason: &str, wire: &mut impl Wire) {
        self.status().problem(self.wanted.number, reason);
        self.end(now, id, wire);
        self.try_later(now);
    }

    fn try_later(&mut self, now: Duration) {
        self.attempt_in(now + self.pause);
        self.pause = (self.pause * 2).min(PAUSES[1]);
    }

    fn event(&mut self, now: Duration, id: u64, event: &Event, wire: &mut impl Wire) {
        let number = self.wanted.number;
        match event {
            Event::Ignored(reason) => self.status().count_ignored(reason),
            Event::Cookie | Event::Repeated | Event::Identity(_) => {}
            Event::NoPpk => {
                if let Some(it) = self.tracked(id) {
                    it.has_ppk = false;
                }
            }
            Event::Hint(kind) => {
                self.ignore("unauthenticated_error");
                let what = format!("somebody, perhaps the peer, answers {}", advice::on(*kind));
                self.status().problem(number, &what);
            }
            Event::FirstRefused(kind) => {
                self.status().count_ended(kind.to_string());
                // Another key exchange is asked for: that is no failure.
                if *kind != NotifyType::INVALID_KE_PAYLOAD {
                    let what = format!("a first message is refused with {}", advice::on(*kind));
                    self.status().problem(number, &what);
                }
            }
            Event::ChildRefused(kind) => {
                self.status().count_ended(kind.to_string());
                let what = format!("no child SA: {}", advice::on(*kind));
                if !self.children.has_of(id) {
                    let is_ending = self.tracked(id).is_none_or(|it| it.is_ending);
                    if !is_ending {
                        self.fail(now, id, &what, wire);
                    }
                } else if !is_temporary(*kind) {
                    self.status()
                        .problem(number, &format!("keeps its keys, {what}"));
                    self.retry_rekey = Some(now + RETRY_REKEY);
                }
            }
            Event::RekeyRefused(kind) => {
                self.status().count_ended(kind.to_string());
                if !is_temporary(*kind) {
                    let what = format!("keeps its IKE SA: {}", advice::on(*kind));
                    self.status().problem(number, &what);
                }
            }
        }
    }

    fn closed(&mut self, now: Duration, id: u64, reason: &Closed) {
        self.children.session_down(now, id);
        let at = self.sessions.iter().position(|it| it.id == id);
        let Some(it) = at.map(|at| self.sessions.remove(at)) else {
            return;
        };
        if it.is_ending {
            return;
        }
        self.status().count_ended(advice::name(reason));
        // A half-open one that its initiator left is no news.
        let is_left = !it.is_own && !it.was_established && matches!(reason, Closed::Silent(_));
        if is_left {
            return;
        }
        if let Some(what) = advice::on_end(reason) {
            self.status().problem(self.wanted.number, &what);
        }
        if (it.is_own || it.was_established) && self.sessions.iter().all(|it| it.is_ending) {
            self.try_later(now);
        }
    }
}

/// The session tries again by itself.
fn is_temporary(kind: NotifyType) -> bool {
    matches!(
        kind,
        NotifyType::TEMPORARY_FAILURE | NotifyType::CHILD_SA_NOT_FOUND
    )
}

fn list(ranges: &[ike::message::AddressRange]) -> String {
    let texts: Vec<_> = ranges
        .iter()
        .map(|it| format!("{}-{}", it.first, it.last))
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests;
