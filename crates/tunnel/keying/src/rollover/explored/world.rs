//! Two gateways, their connections, and the events that the environment decides.

use super::Budget;
use crate::Side;
use crate::chain::{EpochSecret, Policy};
use crate::message::{Cause, Message};
use crate::rollover::{Allowance, Attempt, Event, Input, Output, Role, Rollover, Settings};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use wire::Suite;
use zeroize::Zeroizing;

/// More events than an undisturbed pair ever needs until it agrees: each timeout, and two attempts.
const SETTLES_WITHIN: usize = 400;
/// Hard lifetime of keys, and how far a suspended machine's clock jumps: further than that.
const HARD: Duration = Duration::from_secs(500_000);
const SUSPENDED_FOR: Duration = Duration::from_secs(600_000);
/// Small, so that it is used up.
pub(super) const PROVOKED: Allowance = Allowance {
    burst: 2,
    refill: Duration::from_millis(40),
};

/// A secret, by the first bytes of its confirmation.
pub(super) type Key = u64;

pub(super) fn key(secret: &EpochSecret) -> Key {
    let confirmation = secret.confirmation(Side::A).0;
    u64::from_be_bytes(confirmation[..8].try_into().expect("it has 48 bytes"))
}

/// One of the two gateways, as its packets see it.
#[derive(Clone)]
pub(super) struct Gateway {
    pub(super) rollover: Rollover,
    pub(super) incarnation: u8,
    /// Connections that it was given a number for.
    pub(super) taken: u64,
    /// The key that it seals with.
    pub(super) outbound: Option<Key>,
    /// The keys that it opens with, by the number of the epoch.
    pub(super) inbound: BTreeMap<u32, Key>,
    /// How far its clock is ahead of the world's, in nanoseconds; behind after it was
    /// restored.
    pub(super) ahead: i128,
    /// Attempts of this incarnation that made new keys.
    pub(super) proposals: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    Message(Message),
    /// The connection has ended; nothing follows.
    End,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Connection {
    /// Its number and, repeated, its exported secret.
    pub(super) number: u8,
    /// Its name on each side, while that side keeps it.
    pub(super) ends: [Option<Attempt>; 2],
    pub(super) is_up: [bool; 2],
    /// No message passes any more.
    pub(super) is_cut: bool,
    /// Towards each side.
    pub(super) queues: [VecDeque<Item>; 2],
}

/// A state of everything.
#[derive(Clone)]
pub(super) struct World {
    pub(super) now: Duration,
    pub(super) gateways: [Gateway; 2],
    pub(super) connections: Vec<Connection>,
    /// Connections so far; each has a different secret.
    pub(super) opened: u8,
    pub(super) left: Budget,
    /// Every key that a side ever sealed with.
    pub(super) sealed: [BTreeSet<Key>; 2],
    /// The incarnation of each side that installed a key.
    pub(super) installed: BTreeMap<Key, [Option<u8>; 2]>,
    /// Copies of the sides, to which they may be restored, with the time of each.
    pub(super) snapshots: [Option<(Duration, Gateway)>; 2],
    /// The key that a restored side reuses: it sealed with this key before the restoration too.
    pub(super) repeated: [Option<Key>; 2],
    /// Requests and restarts so far: each may lead to keys that take nothing from the budget.
    pub(super) excuses: u8,
    /// Nothing but cuts and delays: shared keys are never replaced.
    only_cuts: bool,
    /// The first rule that was broken on the way here.
    pub(super) broken: Option<&'static str>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Happening {
    /// A connection is up for a side.
    Up(u8, usize),
    /// The next message of a connection arrives at a side.
    Deliver(u8, usize),
    /// A connection is cut; which sides learn of it.
    Cut(u8, [bool; 2]),
    /// The next deadline of either side comes.
    Tick,
    Demand(usize),
    /// A copy of a side is made.
    Snapshot(usize),
    /// A side returns to its copy; whether the other side's connections end visibly.
    Restore(usize, bool),
    /// A side sleeps, while the other side's clock does not advance.
    Suspend(usize),
    /// A side restarts; whether the other side's connections end visibly.
    Restart(usize, bool),
}

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn settings(side: usize) -> Settings {
    let (role, own, peer) = match side {
        0 => (Role::Connector, "gw1", "gw2"),
        _ => (Role::Listener, "gw2", "gw1"),
    };
    Settings {
        role,
        own_name: own.to_owned(),
        peer_name: peer.to_owned(),
        tunnel: 7,
        lanes: 1,
        suite: Suite::Aes256Gcm,
        payload: "l3".to_owned(),
        policy: Policy::Pqc,
        ppks: Vec::new(),
        // Epochs are requested by `Happening::Demand` only.
        every: Duration::from_secs(1_000_000),
        hard: Some(HARD),
        grace: ms(20),
        attempt_limit: ms(20),
        retry_min: ms(20),
        retry_max: ms(20),
        provoked: PROVOKED,
        ping_every: ms(20),
    }
}

impl Gateway {
    fn new(side: usize, incarnation: u8) -> Self {
        Self {
            rollover: Rollover::new(settings(side)),
            incarnation,
            taken: 0,
            outbound: None,
            inbound: BTreeMap::new(),
            ahead: 0,
            proposals: 0,
        }
    }

    /// Its clock.
    pub(super) fn clock(&self, now: Duration) -> Duration {
        shifted(now, self.ahead)
    }

    /// When its machine is to be woken, by the world's clock.
    fn wakes_at(&self) -> Option<Duration> {
        Some(shifted(self.rollover.wakes_at()?, -self.ahead))
    }
}

fn nanos(time: Duration) -> i128 {
    i128::try_from(time.as_nanos()).expect("it is short")
}

fn shifted(time: Duration, nanos: i128) -> Duration {
    let shifted = self::nanos(time) + nanos;
    let shifted = u64::try_from(shifted.max(0)).expect("it is short");
    Duration::from_nanos(shifted)
}

impl World {
    pub(super) fn new(budget: Budget) -> Self {
        let mut world = Self {
            now: Duration::ZERO,
            gateways: [0, 1].map(|side| Gateway::new(side, 0)),
            connections: Vec::new(),
            opened: 0,
            left: budget,
            sealed: [BTreeSet::new(), BTreeSet::new()],
            installed: BTreeMap::new(),
            snapshots: [None, None],
            repeated: [None, None],
            excuses: 0,
            only_cuts: (budget.demands, budget.restarts) == (0, 0)
                && (budget.snapshots, budget.suspends) == (0, 0),
            broken: None,
        };
        world.feed(0, Input::Tick);
        world
    }

    fn break_rule(&mut self, rule: &'static str) {
        self.broken.get_or_insert(rule);
    }

    fn feed(&mut self, side: usize, input: Input) {
        let mut outputs = Vec::new();
        let gateway = &mut self.gateways[side];
        let now = gateway.clock(self.now);
        gateway.rollover.handle(now, input, &mut outputs);
        for output in outputs {
            self.put_out(side, output);
        }
        self.connections.retain_mut(|connection| {
            for side in 0..2 {
                // A side that has closed its end reads nothing more.
                if connection.is_up[side] && connection.ends[side].is_none() {
                    connection.queues[side].clear();
                }
            }
            // The connector may have closed a connection that the listener has not seen yet.
            let comes = connection.is_up == [true, false] && !connection.is_cut;
            comes || connection.ends.iter().any(Option::is_some)
        });
    }

    fn put_out(&mut self, side: usize, output: Output) {
        match output {
            Output::Connect(attempt) => {
                self.connections.push(Connection {
                    number: self.opened,
                    ends: [Some(attempt), None],
                    is_up: [false, false],
                    is_cut: false,
                    queues: [VecDeque::new(), VecDeque::new()],
                });
                self.opened += 1;
            }
            Output::Send(attempt, message) => {
                if matches!(message, Message::Keys { .. }) {
                    self.count_proposal(side);
                }
                self.send(side, attempt, Item::Message(message));
            }
            Output::Close(attempt) => {
                self.send(side, attempt, Item::End);
                if let Some(at) = self.named(side, attempt) {
                    self.connections[at].ends[side] = None;
                }
            }
            Output::InstallInbound(secret) => self.install(side, &secret),
            Output::SwitchOutbound(secret) => self.switch(side, &secret),
            Output::RetireInbound(epoch) => {
                if self.gateways[side].inbound.remove(&epoch).is_none() {
                    self.break_rule("an epoch is retired that is not installed");
                }
            }
            Output::ExpireOutbound(_) => self.gateways[side].outbound = None,
            Output::FetchQkd(..) => self.break_rule("a KME is asked, which the policy excludes"),
            Output::Event(Event::PeerBack { .. }) => {
                let [a, b] = &self.gateways;
                let differ = a.outbound != b.outbound;
                let have_keys = a.outbound.is_some() && b.outbound.is_some();
                if differ && have_keys && self.stands_with_peer(side) {
                    self.break_rule("different keys are kept");
                }
            }
            Output::Event(_) => {}
        }
    }

    /// Whether the peer still has its end of a side's standing channel. A peer that was restored
    /// after its last message does not: the side learns of that, and both agree again.
    fn stands_with_peer(&self, side: usize) -> bool {
        let standing = self.gateways[side].rollover.standing.as_ref();
        let at = standing.and_then(|standing| self.named(side, standing.attempt));
        at.is_some_and(|at| self.connections[at].ends[1 - side].is_some())
    }

    /// The connector makes new keys.
    fn count_proposal(&mut self, side: usize) {
        let gateway = &mut self.gateways[side];
        gateway.proposals += 1;
        // Tokens that were refilled since the start of this incarnation.
        let age = gateway.clock(self.now).as_nanos() / PROVOKED.refill.as_nanos();
        let most = u128::from(PROVOKED.burst + u32::from(self.excuses)) + age;
        let is_over = u128::from(gateway.proposals) > most;
        let [a, b] = &self.gateways;
        let is_shared = a.outbound.is_some() && a.outbound == b.outbound;
        if is_over {
            self.break_rule("a network provokes more keys than the budget allows");
        }
        if is_shared && self.only_cuts {
            self.break_rule("keys that both sides have are replaced");
        }
    }

    fn named(&self, side: usize, attempt: Attempt) -> Option<usize> {
        let is_it = |connection: &Connection| connection.ends[side] == Some(attempt);
        self.connections.iter().position(is_it)
    }

    fn numbered(&self, number: u8) -> usize {
        let is_it = |connection: &Connection| connection.number == number;
        let found = self.connections.iter().position(is_it);
        found.expect("happenings are of connections that there are")
    }

    fn send(&mut self, side: usize, attempt: Attempt, item: Item) {
        if let Some(at) = self.named(side, attempt) {
            let connection = &mut self.connections[at];
            if !connection.is_cut {
                connection.queues[1 - side].push_back(item);
            }
        }
    }

    fn install(&mut self, side: usize, secret: &Arc<EpochSecret>) {
        let (key, gateway) = (key(secret), &mut self.gateways[side]);
        let known = gateway.inbound.insert(secret.epoch(), key);
        let by = &mut self.installed.entry(key).or_default()[side];
        if known.is_some() || by.replace(gateway.incarnation).is_some() {
            self.break_rule("an epoch is installed twice");
        }
    }

    fn switch(&mut self, side: usize, secret: &Arc<EpochSecret>) {
        let key = key(secret);
        self.gateways[side].outbound = Some(key);
        if !self.sealed[side].insert(key) {
            self.break_rule("a key is sealed with for a second time: nonces repeat");
        }
        let parties = self.installed.get(&key).copied().unwrap_or_default();
        if parties[side].is_none() || parties[1 - side].is_none() {
            self.break_rule("a key is sealed with that the peer has not confirmed");
        }
    }

    /// Whether each side can open the other's current packets, unless it has restarted since it
    /// could.
    pub(super) fn is_open(&self) -> bool {
        (0..2).all(|side| {
            let (own, peer) = (&self.gateways[side], &self.gateways[1 - side]);
            // A restored side seals with keys that its peer may have retired since.
            let current = own.outbound.filter(|key| self.repeated[side] != Some(*key));
            current.is_none_or(|key| {
                let by = self.installed[&key][1 - side];
                by != Some(peer.incarnation) || peer.inbound.values().any(|other| *other == key)
            })
        })
    }

    /// Whether both seal and open with the same newest epoch, and know it.
    pub(super) fn agrees(&self) -> bool {
        let [a, b] = &self.gateways;
        a.outbound.is_some()
            && a.outbound == b.outbound
            && a.rollover.established() == b.rollover.established()
            && a.rollover.running.is_none()
            && b.rollover.running.is_none()
            && a.rollover.standing.is_some()
    }

    pub(super) fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Up(number, side) => {
                let at = self.numbered(number);
                let gateway = &mut self.gateways[side];
                let connection = &mut self.connections[at];
                connection.is_up[side] = true;
                if side == 1 {
                    gateway.taken += 1;
                    connection.ends[1] = Some(Attempt(gateway.taken));
                }
                let attempt = connection.ends[side].expect("only its own connection comes up");
                let exporter = Zeroizing::new([number; 48]);
                let connected = Input::Connected {
                    attempt,
                    exporter,
                    valid_for: Duration::MAX,
                };
                self.feed(side, connected);
            }
            Happening::Deliver(number, side) => {
                let at = self.numbered(number);
                let item = self.connections[at].queues[side].pop_front();
                let Some(attempt) = self.connections[at].ends[side] else {
                    return;
                };
                match item.expect("something is on its way") {
                    Item::Message(message) => self.feed(side, Input::Received { attempt, message }),
                    Item::End => {
                        self.connections[at].ends[side] = None;
                        let reason = "end of file".to_owned();
                        self.feed(side, Input::Disconnected { attempt, reason });
                    }
                }
            }
            Happening::Cut(number, told) => {
                self.left.cuts -= 1;
                let at = self.numbered(number);
                let connection = &mut self.connections[at];
                connection.is_cut = true;
                for (queue, is_told) in connection.queues.iter_mut().zip(told) {
                    queue.clear();
                    if is_told {
                        queue.push_back(Item::End);
                    }
                }
            }
            Happening::Tick => {
                if self.deliveries().next().is_some() {
                    self.left.delays = self.left.delays.saturating_sub(1);
                }
                let due = |side: usize| self.gateways[side].wakes_at();
                let dues = [due(0), due(1)];
                let next = dues.into_iter().flatten().min();
                // The clock of a side may have jumped, so that its deadline is in the past.
                self.now = self.now.max(next.expect("somebody waits"));
                for (side, due) in dues.into_iter().enumerate() {
                    if due.is_some_and(|due| due <= self.now) {
                        self.feed(side, Input::Tick);
                    }
                }
            }
            Happening::Demand(side) => {
                self.left.demands -= 1;
                self.excuses += 1;
                self.feed(side, Input::Rekey(Cause::Demand));
            }
            Happening::Restart(side, told) => {
                self.left.restarts -= 1;
                self.excuses += 1;
                self.cut_off(side, told);
                let mut fresh = Gateway::new(side, self.gateways[side].incarnation + 1);
                // The clock of a fresh process begins with zero.
                fresh.ahead = -nanos(self.now);
                self.gateways[side] = fresh;
                self.repeated[side] = None;
                self.feed(side, Input::Tick);
            }
            Happening::Snapshot(side) => {
                self.left.snapshots -= 1;
                self.snapshots[side] = Some((self.now, self.gateways[side].clone()));
            }
            Happening::Restore(side, told) => {
                self.excuses += 1;
                self.cut_off(side, told);
                let copied = self.snapshots[side].take();
                let (then, mut copied) = copied.expect("only copies are restored");
                copied.incarnation = self.gateways[side].incarnation + 1;
                // The copy's clock goes on from the time of the copy.
                copied.ahead -= nanos(self.now) - nanos(then);
                self.repeated[side] = copied.outbound;
                self.gateways[side] = copied;
                self.feed(side, Input::Tick);
            }
            Happening::Suspend(side) => {
                self.left.suspends -= 1;
                self.excuses += 1;
                let gateway = &mut self.gateways[side];
                gateway.ahead += nanos(SUSPENDED_FOR);
                // As after a restart: its keys have expired, so it need not open its peer's
                // packets.
                gateway.incarnation += 1;
                self.feed(side, Input::Tick);
                if self.gateways[side].outbound.is_some() {
                    self.break_rule("keys are used beyond their hard lifetime");
                }
            }
        }
    }

    /// All connections of a side end, as far as the other side learns of it.
    fn cut_off(&mut self, side: usize, told: bool) {
        for connection in &mut self.connections {
            if connection.ends[side].take().is_some() && !connection.is_cut {
                connection.is_cut = true;
                connection.queues[side].clear();
                if told {
                    connection.queues[1 - side].push_back(Item::End);
                }
            }
        }
    }

    /// The deliveries and connection events that need no fault.
    pub(super) fn deliveries(&self) -> impl Iterator<Item = Happening> + '_ {
        self.connections.iter().flat_map(|connection| {
            let number = connection.number;
            let ups = (0..2).filter_map(move |side| {
                // A server's handshake ends with the client's last message.
                let is_next = [connection.ends[0].is_some(), connection.is_up[0]][side];
                (is_next && !connection.is_up[side] && !connection.is_cut)
                    .then_some(Happening::Up(number, side))
            });
            let arrivals = (0..2).filter_map(move |side| {
                // The end of a connection that never came up is seen too.
                let hears = connection.is_up[side] || connection.is_cut;
                let waits = connection.ends[side].is_some() && hears;
                (waits && !connection.queues[side].is_empty())
                    .then_some(Happening::Deliver(number, side))
            });
            ups.chain(arrivals)
        })
    }

    /// Lets everything arrive and time pass, without further faults, until both agree.
    pub(super) fn settles(mut self) -> bool {
        self.settle()
    }

    pub(super) fn settle(&mut self) -> bool {
        for _ in 0..SETTLES_WITHIN {
            if self.agrees() {
                return true;
            }
            self.proceed();
        }
        false
    }

    /// Lets the next message arrive, or else time pass.
    pub(super) fn proceed(&mut self) {
        let next = self.deliveries().next().unwrap_or(Happening::Tick);
        self.happen(next);
    }
}
