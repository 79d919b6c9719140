//! All peers: their sessions, timers and counts.

use crate::agenda::{Action, Task};
use crate::credentials::Credentials;
use crate::peer::{Peer, Stage, ended, reason, refused};
use crate::report::{Failure, Traffic};
use crate::sockets::Sockets;
use crate::sources::Places;
use crate::tally::{Reason, Tally, count};
use crate::timers::Timers;
use aws_lc_rs::rand;
use ike::crypto::Secret;
use ike::message::{Header, NotifyType};
use ike::session::{ChildSa, Closed, Event, IkeSuite, Output, Path, Session};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// On the shared port messages have this marker (RFC 3948 section 2.2).
pub(crate) const MARKER: [u8; 4] = [0; 4];
const SEED_BYTES: usize = 32;
/// Place of the version in a message of IKE, after the SPIs and the type of the first payload. Its
/// upper half is the major version (RFC 7296 section 3.1).
const VERSION_AT: usize = 17;
/// Timers of peers that are up end together within this time: their checks then share system calls.
const GATHERED_NS: u64 = 5_000_000;

/// A session that has not sent its first request.
type Prepared = (Box<Session>, Vec<Output>);

/// All peers of a gateway.
pub(crate) struct Engine {
    start: Instant,
    places: Places,
    credentials: Credentials,
    /// The gateway's port that IKE shares with ESP.
    marked_port: u16,
    is_childless: bool,
    wanted: IkeSuite,
    peers: Vec<Peer>,
    prepared: Vec<Option<Prepared>>,
    /// The peer of each SPI.
    owners: HashMap<u64, u32>,
    pub(crate) timers: Timers,
    /// Peers with an exchange under way.
    pub(crate) busy: u64,
    /// Peers with their SAs.
    pub(crate) up: u64,
    /// Time from a set-up to its delete, in a churn.
    pub(crate) lifetime_ns: Option<u64>,
    /// Peers are set up again, and keep their certificates.
    pub(crate) sets_up_again: bool,
    /// Actions that follow from others.
    pub(crate) follow: Vec<Task>,
    pub(crate) setups: Tally,
    pub(crate) deletes: Tally,
    pub(crate) rekeys: Tally,
    /// New SAs with all key exchanges of the proposal, and others.
    pub(crate) exchanges: [u64; 2],
    pub(crate) lost: BTreeMap<String, Failure>,
    pub(crate) checks_repeated: u64,
    /// Datagrams of peers that are up.
    pub(crate) standing: Traffic,
    pub(crate) traffic: Traffic,
    pub(crate) ignored: BTreeMap<String, u64>,
    out: Vec<Output>,
}

/// The outputs of one step that matter for the peer's stage.
#[derive(Default)]
struct Seen {
    is_established: bool,
    is_renewed: bool,
    child: Option<Box<ChildSa>>,
    has_lost_child: bool,
    child_refused: Option<NotifyType>,
    rekey_refused: Option<NotifyType>,
    closed: Option<Closed>,
}

impl Engine {
    pub(crate) fn new(
        (peers, marked_port, is_childless): (u32, u16, bool),
        places: Places,
        credentials: Credentials,
    ) -> Self {
        let wanted = credentials.shared().ike[0];
        Self {
            start: Instant::now(),
            places,
            credentials,
            marked_port,
            is_childless,
            wanted,
            peers: (0..peers).map(|_| Peer::ABSENT).collect(),
            prepared: Vec::new(),
            owners: HashMap::new(),
            timers: Timers::default(),
            busy: 0,
            up: 0,
            lifetime_ns: None,
            sets_up_again: false,
            follow: Vec::new(),
            setups: Tally::new(0),
            deletes: Tally::new(0),
            rekeys: Tally::new(0),
            exchanges: [0; 2],
            lost: BTreeMap::new(),
            checks_repeated: 0,
            standing: Traffic::default(),
            traffic: Traffic::default(),
            ignored: BTreeMap::new(),
            out: Vec::new(),
        }
    }

    pub(crate) const fn peer_count(&self) -> u32 {
        self.peers.len() as u32
    }

    /// Nanoseconds since the start.
    pub(crate) fn now_ns(&self) -> u64 {
        u64::try_from(self.start.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn now(&self) -> Duration {
        self.start.elapsed()
    }

    fn ignore(&mut self, name: &str) {
        match self.ignored.get_mut(name) {
            Some(count) => *count += 1,
            None => _ = self.ignored.insert(name.to_owned(), 1),
        }
    }

    fn enter(&mut self, number: u32, stage: Stage) {
        let former = std::mem::replace(&mut self.peers[number as usize].stage, stage);
        let change = |count: &mut u64, was: bool, is: bool| {
            *count = *count + u64::from(is) - u64::from(was);
        };
        change(&mut self.busy, former.is_busy(), stage.is_busy());
        change(&mut self.up, former.is_up(), stage.is_up());
    }

    /// Makes the first requests of all peers, for a start at this time.
    pub(crate) fn prepare(&mut self, at_ns: u64) {
        let at = Duration::from_nanos(at_ns);
        self.prepared = (0..self.peer_count())
            .map(|number| self.initiate(number, at))
            .collect();
    }

    fn initiate(&self, number: u32, at: Duration) -> Option<Prepared> {
        let mut seed = Secret::new(vec![0; SEED_BYTES]);
        rand::fill(&mut seed).ok()?;
        let settings = self.credentials.of(number);
        let path = self.places.path(number);
        let mut out = Vec::new();
        let session = Session::initiate(settings, seed, path, at, &mut out)?;
        Some((Box::new(session), out))
    }

    /// Carries out an action that is due.
    pub(crate) fn act(&mut self, task: Task, sockets: &mut Sockets) {
        let stage = self.peers[task.peer as usize].stage;
        match task.action {
            Action::SetUp => self.set_up(task, sockets),
            Action::Delete if stage == Stage::Up => self.leave(task, sockets),
            Action::Delete => {}
            Action::RekeyIke | Action::RekeyChild => self.rekey(task, sockets),
        }
    }

    fn set_up(&mut self, task: Task, sockets: &mut Sockets) {
        let (number, up) = (task.peer, self.up);
        let now_ns = self.now_ns();
        if self.peers[number as usize].stage != Stage::Absent {
            let sentence = "the peer's former IKE SA is not deleted yet: more peers, or a shorter lifetime, are needed";
            self.setups
                .failed(reason("no free peer", sentence), now_ns, up);
            return;
        }
        let prepared = self.prepared.get_mut(number as usize);
        let prepared = prepared.and_then(Option::take);
        let Some((session, out)) = prepared.or_else(|| self.initiate(number, self.now())) else {
            let failed = reason("no random numbers", "the random number generator failed");
            self.setups.failed(failed, now_ns, up);
            return;
        };
        let spi = session.spis().0;
        self.owners.insert(spi, number);
        let peer = &mut self.peers[number as usize];
        peer.session = Some(session);
        peer.spi = spi;
        peer.intended_ns = task.at_ns;
        self.enter(number, Stage::SettingUp);
        self.setups.started(task.at_ns, now_ns);
        self.out = out;
        self.execute(number, sockets);
    }

    fn leave(&mut self, task: Task, sockets: &mut Sockets) {
        let (now, now_ns) = (self.now(), self.now_ns());
        let peer = &mut self.peers[task.peer as usize];
        peer.intended_ns = task.at_ns;
        self.enter(task.peer, Stage::Leaving);
        self.deletes.counts().intended += 1;
        self.deletes.started(task.at_ns, now_ns);
        self.order(task.peer, sockets, |session, out| session.delete(now, out));
    }

    fn rekey(&mut self, task: Task, sockets: &mut Sockets) {
        let (now, now_ns) = (self.now(), self.now_ns());
        let peer = &mut self.peers[task.peer as usize];
        let child = peer.session.as_ref().and_then(|it| {
            let child = it.children().next();
            child.map(|it| it.inbound_spi)
        });
        let stage = match task.action {
            Action::RekeyIke => Stage::RekeyingIke,
            _ => Stage::RekeyingChild,
        };
        let is_possible = stage == Stage::RekeyingIke || child.is_some();
        if peer.stage != Stage::Up || !is_possible {
            let sentence = "the peer has no SA to rekey: its set-up failed, or the SA was lost";
            self.rekeys
                .failed(reason("not up", sentence), now_ns, self.up);
            return;
        }
        peer.intended_ns = task.at_ns;
        self.enter(task.peer, stage);
        self.rekeys.started(task.at_ns, now_ns);
        self.order(task.peer, sockets, |session, out| {
            // Both are possible, as it is up and nothing else is under way.
            let _ = match child.filter(|_| stage == Stage::RekeyingChild) {
                Some(child) => session.rekey_child(now, child, out),
                None => session.rekey_ike(now, out),
            };
        });
    }

    fn order(
        &mut self,
        number: u32,
        sockets: &mut Sockets,
        order: impl FnOnce(&mut Session, &mut Vec<Output>),
    ) {
        let mut out = std::mem::take(&mut self.out);
        if let Some(session) = &mut self.peers[number as usize].session {
            order(session, &mut out);
        }
        self.out = out;
        self.execute(number, sockets);
    }

    /// A peer's time has come, or a former one of it.
    pub(crate) fn tick(&mut self, number: u32, sockets: &mut Sockets) {
        let now = self.now();
        self.order(number, sockets, |session, out| {
            if session.wakes_at().is_some_and(|at| at <= now) {
                session.tick(now, out);
            }
        });
    }

    /// A datagram of the gateway, or of somebody else.
    pub(crate) fn receive(
        &mut self,
        datagram: &[u8],
        (local, remote): (SocketAddr, SocketAddr),
        sockets: &mut Sockets,
    ) {
        self.traffic.add_received(datagram.len());
        let message = if remote.port() == self.marked_port {
            datagram.strip_prefix(&MARKER)
        } else {
            Some(datagram)
        };
        let Some(message) = message else {
            // ESP, or a keep-alive.
            return self.ignore("no_ike");
        };
        let Ok(header) = Header::peek(message) else {
            let version = message.get(VERSION_AT).map(|it| it >> 4);
            let name = if version == Some(1) {
                "ikev1"
            } else {
                "malformed"
            };
            return self.ignore(name);
        };
        let own = if header.from_initiator {
            header.responder_spi
        } else {
            header.initiator_spi
        };
        let Some(&number) = self.owners.get(&own) else {
            return self.ignore("unknown_spi");
        };
        if let Some(traffic) = self.traffic_of(number) {
            traffic.add_received(datagram.len());
        }
        let now = self.now();
        self.order(number, sockets, |session, out| {
            session.handle(now, message, Path { local, remote }, out);
        });
    }

    fn traffic_of(&mut self, number: u32) -> Option<&mut Traffic> {
        Some(match self.peers[number as usize].stage {
            Stage::Absent | Stage::Failed => return None,
            Stage::SettingUp => &mut self.setups.counts().traffic,
            Stage::Up => &mut self.standing,
            Stage::RekeyingIke | Stage::RekeyingChild => &mut self.rekeys.counts().traffic,
            Stage::Leaving => &mut self.deletes.counts().traffic,
        })
    }

    /// Carries out the outputs of a session.
    fn execute(&mut self, number: u32, sockets: &mut Sockets) {
        let mut seen = Seen::default();
        let mut out = std::mem::take(&mut self.out);
        for output in out.drain(..) {
            match output {
                Output::Send {
                    datagram,
                    path,
                    marker,
                } => {
                    let marker: &[u8] = if marker { &MARKER } else { &[] };
                    let bytes = marker.len() + datagram.len();
                    self.traffic.add_sent(bytes);
                    if let Some(traffic) = self.traffic_of(number) {
                        traffic.add_sent(bytes);
                    }
                    sockets.push([marker, &datagram], path.local, path.remote);
                }
                Output::Established => seen.is_established = true,
                Output::InitialContact => {}
                Output::IkeUp(spi) => {
                    self.owners.insert(spi, number);
                    self.peers[number as usize].more_spis.push(spi);
                    seen.is_renewed = true;
                }
                Output::IkeDown(spi) => {
                    self.owners.remove(&spi);
                    let peer = &mut self.peers[number as usize];
                    peer.more_spis.retain(|it| *it != spi);
                }
                Output::ChildUp(child) => seen.child = Some(child),
                Output::ChildDown(_) => seen.has_lost_child = true,
                Output::Event(event) => self.event(number, &event, &mut seen),
                Output::Closed(reason) => seen.closed = Some(reason),
            }
        }
        self.out = out;
        self.settle(number, seen, sockets);
        let peer = &self.peers[number as usize];
        let wakes = peer.session.as_ref().and_then(|it| it.wakes_at());
        let wakes_ns = wakes.map(nanos).map(|at| match peer.stage {
            Stage::Up => at.checked_next_multiple_of(GATHERED_NS).unwrap_or(at),
            _ => at,
        });
        self.timers.set(number, wakes_ns);
    }

    fn event(&mut self, number: u32, event: &Event, seen: &mut Seen) {
        let stage = self.peers[number as usize].stage;
        match event {
            Event::Ignored(reason) => self.ignore(reason.name()),
            Event::Hint(kind) => self.ignore(&kind.to_string()),
            Event::Cookie => self.setups.counts().cookies += 1,
            Event::NoPpk => self.setups.counts().without_ppk += 1,
            Event::Repeated => match stage {
                Stage::SettingUp => self.setups.counts().retransmissions += 1,
                Stage::Up => self.checks_repeated += 1,
                Stage::RekeyingIke | Stage::RekeyingChild => {
                    self.rekeys.counts().retransmissions += 1;
                }
                Stage::Leaving => self.deletes.counts().retransmissions += 1,
                Stage::Absent | Stage::Failed => {}
            },
            Event::ChildRefused(kind) => seen.child_refused = Some(*kind),
            Event::RekeyRefused(kind) => seen.rekey_refused = Some(*kind),
            Event::FirstRefused(_) | Event::Identity(_) => {}
        }
    }

    /// The peer's next stage.
    fn settle(&mut self, number: u32, seen: Seen, sockets: &mut Sockets) {
        let stage = self.peers[number as usize].stage;
        if let Some(closed) = &seen.closed {
            return self.closed(number, stage, closed);
        }
        match stage {
            Stage::SettingUp if seen.is_established => match (seen.child, seen.child_refused) {
                (None, Some(kind)) => {
                    let refused = Reason {
                        name: format!("{kind} (child SA)"),
                        ..refused(kind)
                    };
                    self.setups.failed(refused, self.now_ns(), self.up);
                    self.abandon(number, sockets);
                }
                (None, None) if !self.is_childless => {}
                _ => self.is_set_up(number),
            },
            Stage::RekeyingIke if seen.is_renewed => {
                let session = self.peers[number as usize].session.as_ref();
                let suite = session.and_then(|it| it.keys()).map(|(suite, _)| suite);
                let exchanges = suite.map(|it| (Some(it.exchange), it.additional));
                self.renewed(number, exchanges);
            }
            Stage::RekeyingChild if seen.child.is_some() => {
                let suite = seen.child.map(|it| it.suite);
                self.renewed(number, suite.map(|it| (it.exchange, it.additional)));
            }
            Stage::RekeyingIke | Stage::RekeyingChild => {
                let refusals = [seen.rekey_refused, seen.child_refused];
                if let Some(kind) = refusals.into_iter().flatten().find(|it| !is_temporary(*it)) {
                    self.rekeys.failed(refused(kind), self.now_ns(), self.up);
                    self.enter(number, Stage::Up);
                }
            }
            Stage::Up if seen.has_lost_child && !self.is_childless => {
                let session = self.peers[number as usize].session.as_ref();
                if session.is_some_and(|it| it.children().next().is_none()) {
                    let sentence = "the gateway deleted the child SA";
                    count(&mut self.lost, reason("child SA deleted", sentence));
                    self.abandon(number, sockets);
                }
            }
            _ => {}
        }
    }

    fn is_set_up(&mut self, number: u32) {
        let now_ns = self.now_ns();
        let peer = &mut self.peers[number as usize];
        if let Some(session) = &mut peer.session {
            session.compact(self.credentials.shared());
        }
        self.setups.completed(peer.intended_ns, now_ns);
        self.enter(number, Stage::Up);
        if !self.sets_up_again {
            self.credentials.forget(number);
        }
        self.follow.extend(self.lifetime_ns.map(|lifetime_ns| Task {
            at_ns: now_ns + lifetime_ns,
            peer: number,
            action: Action::Delete,
        }));
    }

    fn renewed(&mut self, number: u32, exchanges: Option<Exchanges>) {
        let now_ns = self.now_ns();
        let peer = &mut self.peers[number as usize];
        if let Some(session) = &mut peer.session {
            session.compact(self.credentials.shared());
        }
        self.rekeys.completed(peer.intended_ns, now_ns);
        let wanted = (Some(self.wanted.exchange), self.wanted.additional);
        self.exchanges[usize::from(exchanges != Some(wanted))] += 1;
        self.enter(number, Stage::Up);
    }

    /// Deletes the rest of the SAs after a failure.
    fn abandon(&mut self, number: u32, sockets: &mut Sockets) {
        self.enter(number, Stage::Failed);
        let now = self.now();
        self.order(number, sockets, |session, out| session.delete(now, out));
    }

    fn closed(&mut self, number: u32, stage: Stage, closed: &Closed) {
        let now_ns = self.now_ns();
        let intended_ns = self.peers[number as usize].intended_ns;
        match stage {
            Stage::SettingUp => self.setups.failed(ended(closed), now_ns, self.up),
            Stage::Up => count(&mut self.lost, ended(closed)),
            Stage::RekeyingIke | Stage::RekeyingChild => {
                self.rekeys.failed(ended(closed), now_ns, self.up);
            }
            Stage::Leaving if *closed == Closed::Deleted => {
                self.deletes.completed(intended_ns, now_ns);
            }
            Stage::Leaving => self.deletes.failed(ended(closed), now_ns, self.up),
            Stage::Absent | Stage::Failed => {}
        }
        self.forget(number);
    }

    /// Drops a peer's IKE SA without a message.
    fn forget(&mut self, number: u32) {
        self.enter(number, Stage::Absent);
        let peer = &mut self.peers[number as usize];
        peer.session = None;
        self.owners.remove(&peer.spi);
        for spi in std::mem::take(&mut peer.more_spis) {
            self.owners.remove(&spi);
        }
    }

    /// Drops all IKE SAs, as after a restart of the gateway.
    pub(crate) fn forget_all(&mut self) {
        (0..self.peer_count()).for_each(|number| self.forget(number));
    }

    /// Exchanges that are still under way have failed.
    pub(crate) fn give_up(&mut self) {
        let now_ns = self.now_ns();
        for number in 0..self.peer_count() {
            let stage = self.peers[number as usize].stage;
            if !stage.is_busy() {
                continue;
            }
            let late = reason(
                "unfinished",
                "the exchange was not over at the end of the measurement",
            );
            match stage {
                Stage::SettingUp => self.setups.failed(late, now_ns, self.up),
                Stage::Leaving => self.deletes.failed(late, now_ns, self.up),
                Stage::RekeyingIke | Stage::RekeyingChild => {
                    self.rekeys.failed(late, now_ns, self.up);
                }
                Stage::Absent | Stage::Up | Stage::Failed => {}
            }
            self.forget(number);
        }
    }
}

type Exchanges = (
    Option<ike::crypto::KeMethodKind>,
    [Option<ike::crypto::KeMethodKind>; ike::session::ADDITIONAL_MAX],
);

/// The session tries again by itself.
fn is_temporary(kind: NotifyType) -> bool {
    matches!(
        kind,
        NotifyType::TEMPORARY_FAILURE | NotifyType::CHILD_SA_NOT_FOUND
    )
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
