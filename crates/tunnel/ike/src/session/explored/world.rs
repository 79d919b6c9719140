//! Two ends, the datagrams between them, and the events that the environment decides.

use super::Budget;
use super::content::label;
use crate::crypto::Secret;
use crate::message::Header;
use crate::session::channel::Standing;
use crate::session::child::State;
use crate::session::tests::world::{path, settings};
use crate::session::{
    Closed, Gate, HalfOpen, Limits, Output, Phase, Retransmission, Session, Settings,
};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
/// More events than an undisturbed pair ever needs until it agrees.
const SETTLES_WITHIN: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happening {
    /// The datagram at this place arrives.
    Deliver(usize),
    Lose(usize),
    /// It arrives, and will arrive again.
    Duplicate(usize),
    /// The next deadline of either end comes.
    Tick,
    RekeyChild(usize),
    RekeyIke(usize),
    Create(usize),
    DeleteChild(usize),
    End(usize),
    Restart(usize),
}

/// A datagram on its way.
#[derive(Clone)]
pub(super) struct Flying {
    pub(super) to: usize,
    datagram: Vec<u8>,
    /// Its content without random numbers.
    pub(super) label: u64,
}

/// A state of everything.
#[derive(Clone)]
pub(super) struct World {
    pub(super) now: Duration,
    /// More than one after a restart.
    pub(super) ends: [Vec<Session>; 2],
    pub(super) flying: Vec<Flying>,
    pub(super) left: Budget,
    settings: [Arc<Settings>; 2],
    /// Sessions so far: each has a different seed.
    pub(super) begun: u8,
    seed: u64,
    /// An end restarted, or the session was ended: no child SA is expected for a while.
    pub(super) is_interrupted: bool,
    /// Somebody ended the session for good.
    pub(super) is_over: bool,
    /// A delete of a child SA was ordered.
    may_be_empty: bool,
    pub(super) broken: Option<String>,
}

impl World {
    pub(super) fn new(budget: Budget, seed: u64) -> Self {
        let settings = [0, 1].map(|side| {
            Arc::new(Settings {
                retransmission: Retransmission {
                    first: SECOND,
                    longest: SECOND,
                    repetitions: 3,
                },
                idle: 10 * SECOND,
                ..settings(side)
            })
        });
        let mut world = Self {
            now: Duration::ZERO,
            ends: [Vec::new(), Vec::new()],
            flying: Vec::new(),
            left: Budget::default(),
            settings,
            begun: 0,
            seed,
            is_interrupted: true,
            is_over: false,
            may_be_empty: budget.deleted > 0,
            broken: None,
        };
        world.begin();
        assert!(world.settle(), "{world:?}");
        world.is_interrupted = false;
        world.left = budget;
        world
    }

    fn seed(&mut self) -> Secret {
        self.begun += 1;
        let mut seed = self.seed.to_be_bytes().to_vec();
        seed.push(self.begun);
        Secret::new(seed)
    }

    /// The first end is the initiator whenever there is no session.
    fn begin(&mut self) {
        let seed = self.seed();
        let mut out = Vec::new();
        let settings = Arc::clone(&self.settings[0]);
        let session = Session::initiate(settings, seed, path(0), self.now, &mut out);
        self.ends[0].push(session.expect("random numbers"));
        self.carry(0, None, out);
    }

    fn carry(&mut self, from: usize, session: Option<u64>, out: Vec<Output>) {
        for output in out {
            match output {
                Output::Send { datagram, .. } => {
                    let label = label(&self.ends[from], &datagram);
                    self.flying.push(Flying {
                        to: 1 - from,
                        datagram,
                        label,
                    });
                }
                Output::InitialContact => {
                    self.ends[from].retain(|it| session.is_some_and(|spi| it.spis().0 == spi));
                }
                Output::Closed(reason) => {
                    let is_expected =
                        matches!(reason, Closed::Deleted | Closed::ByPeer | Closed::Silent(_));
                    if !is_expected {
                        self.broken = Some(format!("closed: {reason:?}"));
                    }
                    self.is_interrupted = true;
                }
                _ => {}
            }
        }
        self.ends[from].retain(|it| !it.is_closed());
        if self.ends[0].is_empty() && !self.is_over && self.begun > 0 && from == 0 {
            self.begin();
        }
    }

    fn deliver(&mut self, flying: &Flying) {
        let Flying { to, datagram, .. } = flying;
        let (to, now) = (*to, self.now);
        let mut out = Vec::new();
        let header = Header::peek(datagram).expect("made by a session");
        let is_first = header.responder_spi == 0;
        let owner = self.ends[to]
            .iter_mut()
            .find(|it| it.owns(&header) || is_first && it.spis().0 == header.initiator_spi);
        if let Some(session) = owner {
            session.handle(now, datagram, path(to), &mut out);
            let spi = session.spis().0;
            self.carry(to, Some(spi), out);
        } else if to == 1 {
            let seed = self.seed();
            let settings = Arc::clone(&self.settings[1]);
            let mut gate = Gate::new(settings, seed, Limits::default(), now);
            let half_open = HalfOpen::default();
            let admitted = gate.admit(now, datagram, path(1), half_open, &mut out);
            if admitted.is_none() {
                self.begun -= 1;
            }
            self.ends[1].extend(admitted);
            self.carry(1, None, out);
        }
    }

    fn wakes_at(&self) -> Option<Duration> {
        let sessions = self.ends.iter().flatten();
        sessions.filter_map(Session::wakes_at).min()
    }

    fn tick(&mut self) {
        if let Some(at) = self.wakes_at() {
            self.now = self.now.max(at);
        }
        for side in 0..2 {
            for at in (0..self.ends[side].len()).rev() {
                let now = self.now;
                let mut out = Vec::new();
                if let Some(session) = self.ends[side].get_mut(at)
                    && session.wakes_at().is_some_and(|at| at <= now)
                {
                    session.tick(now, &mut out);
                    self.carry(side, None, out);
                }
            }
        }
    }

    fn order(&mut self, side: usize, order: impl FnOnce(&mut Session, Duration, &mut Vec<Output>)) {
        let mut out = Vec::new();
        let now = self.now;
        // The newest one, if there are several.
        if let Some(session) = self.ends[side].last_mut() {
            order(session, now, &mut out);
        }
        self.carry(side, None, out);
    }

    pub(super) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Deliver(at) => {
                let flying = self.flying.remove(at);
                self.deliver(&flying);
            }
            Happening::Lose(at) => {
                self.left.losses -= 1;
                self.flying.remove(at);
            }
            Happening::Duplicate(at) => {
                self.left.duplicates -= 1;
                let flying = self.flying[at].clone();
                self.deliver(&flying);
            }
            Happening::Tick => {
                if !self.flying.is_empty() {
                    self.left.delays -= 1;
                }
                self.tick();
            }
            Happening::RekeyChild(side) => {
                self.left.rekeyed_children -= 1;
                self.order(side, |it, now, out| {
                    if let Some(spi) = newest_child(it) {
                        it.rekey_child(now, spi, out);
                    }
                });
            }
            Happening::RekeyIke(side) => {
                self.left.rekeyed_ikes -= 1;
                self.order(side, |it, now, out| {
                    it.rekey_ike(now, out);
                });
            }
            Happening::Create(side) => {
                self.left.created -= 1;
                self.order(side, |it, now, out| {
                    it.create_child(now, None, out);
                });
            }
            Happening::DeleteChild(side) => {
                self.left.deleted -= 1;
                self.order(side, |it, now, out| {
                    if let Some(spi) = newest_child(it) {
                        it.delete_child(now, spi, out);
                    }
                });
            }
            Happening::End(side) => {
                self.left.ended -= 1;
                self.is_interrupted = true;
                self.is_over = true;
                self.order(side, |it, now, out| it.delete(now, out));
            }
            Happening::Restart(side) => {
                self.left.restarts -= 1;
                self.is_interrupted = true;
                self.ends[side].clear();
                if side == 0 && !self.is_over {
                    self.begin();
                }
            }
        }
    }

    /// Nothing will happen but checks that the peer lives.
    pub(super) fn is_calm(&self) -> bool {
        let sessions = self.ends.iter().flatten();
        self.flying.is_empty() && sessions.clone().all(is_settled)
    }

    /// Both ends have the same SAs, and no remains of others.
    pub(super) fn agree(&self) -> bool {
        let (one, other) = match (self.ends[0].as_slice(), self.ends[1].as_slice()) {
            ([], []) => return self.is_over,
            ([one], [other]) => (one, other),
            _ => return false,
        };
        let children = one.children().count();
        let expected = self.may_be_empty || children > 0;
        let halves = one.children().filter(|it| has_half(it, other)).count();
        self.is_calm()
            && expected
            && one.spis() == other.spis()
            && one.keys() == other.keys()
            && children == other.children().count()
            && children == halves
    }

    /// Both ends have a child SA in common: new ones exist before old ones end.
    pub(super) fn is_open(&self) -> bool {
        if self.is_interrupted || self.may_be_empty {
            return true;
        }
        let children = self.ends[0].iter().flat_map(|it| &it.children);
        let usable = |it: &State| matches!(it, State::Up | State::Replaced(_));
        children
            .filter(|it| usable(&it.state))
            .any(|it| self.ends[1].iter().any(|other| has_half(&it.sa, other)))
    }

    /// Continues without faults until both ends agree.
    pub(super) fn settle(&mut self) -> bool {
        for _ in 0..SETTLES_WITHIN {
            if self.broken.is_some() || self.agree() {
                return self.broken.is_none();
            }
            if self.flying.is_empty() {
                self.tick();
            } else {
                let flying = self.flying.remove(0);
                self.deliver(&flying);
            }
        }
        false
    }

    /// Like [`settle`](Self::settle), with one child SA for each that was created.
    pub(super) fn settles(&mut self) -> bool {
        let created = self.ends[0].iter().map(|it| it.children.len()).max();
        self.settle() && {
            // A rekeying neither multiplies child SAs nor loses one.
            let now = self.ends[0].iter().map(|it| it.children.len()).max();
            self.is_interrupted || now <= created.map(|it| it.max(1) + 1)
        }
    }
}

fn newest_child(session: &Session) -> Option<u32> {
    session.children().last().map(|it| it.inbound_spi)
}

fn is_settled(session: &Session) -> bool {
    let channels = &session.channels;
    matches!(session.phase, Phase::Established)
        && channels.len() == 1
        && channels[0].pending.is_none()
        && channels[0].standing == Standing::Live
        && session.orders.is_empty()
        && !session.is_leaving
        && session.children.iter().all(|it| it.state == State::Up)
}

fn has_half(child: &crate::session::ChildSa, other: &Session) -> bool {
    other.children().any(|it| {
        it.outbound_spi == child.inbound_spi
            && it.inbound_spi == child.outbound_spi
            && it.outbound_keys == child.inbound_keys
            && it.inbound_keys == child.outbound_keys
    })
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.now, self.left, self.broken)?;
        for (side, session) in self
            .ends
            .iter()
            .enumerate()
            .flat_map(|(side, sessions)| sessions.iter().map(move |session| (side, session)))
        {
            write!(f, "\n  {side}: current {:x}", session.current)?;
            for channel in &session.channels {
                let pending = channel.pending.as_ref();
                let pending = pending.map(|it| (it.exchange, it.message_id, it.repetitions));
                let (spi, standing) = (channel.local_spi(), channel.standing);
                write!(f, " [{spi:x} {standing:?} {pending:?}]")?;
            }
            for child in &session.children {
                let (spi, peer) = (child.sa.inbound_spi, child.sa.outbound_spi);
                write!(f, " ({spi:x} {peer:x} {:?})", child.state)?;
            }
            write!(f, " {:?}", session.orders)?;
        }
        for flying in &self.flying {
            let header = Header::peek(&flying.datagram);
            write!(f, "\n  to {}: {header:?}", flying.to)?;
        }
        Ok(())
    }
}
