//! Two gateways, the network between them, and their KMEs, with a virtual clock. [`Faults`] sets
//! how often each fault occurs.

use crate::rollover::gateway::{Fate, Gateway, Law, Packet};
use crate::rollover::random::Random;
use keying::chain::{Kind, Link, Secret};
use keying::message::{Cause, Message};
use keying::rollover::{Attempt, Event, Input, Output, QkdRequest, Settings};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Probabilities per mille.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// A connection cannot be opened: reported (`refused`), or not (`swallowed`).
    pub(crate) refused: u64,
    pub(crate) swallowed: u64,
    /// A single message.
    pub(crate) message_lost: u64,
    /// One direction of a connection, from some message on.
    pub(crate) stalled: u64,
    /// A connection fails at a message; each side gets a report with probability 1/2.
    pub(crate) cut: u64,
    /// A message and those behind it are late by up to a second.
    pub(crate) message_late: u64,
    pub(crate) packet_lost: u64,
    pub(crate) packet_twice: u64,
    /// Late by more than the grace period.
    pub(crate) packet_late: u64,
    pub(crate) kme_fails: u64,
    pub(crate) kme_silent: u64,
    pub(crate) kme_wrong: u64,
    pub(crate) kme_repeats: u64,
}

/// A TLS connection; side 0 has made it.
struct Connection {
    exporter: [u8; 48],
    ends: [Option<End>; 2],
    /// Towards a side: when its last message arrives.
    last: [Duration; 2],
    /// Towards a side: nothing arrives any more.
    stalled: [bool; 2],
}

#[derive(Clone, Copy)]
struct End {
    incarnation: u32,
    attempt: Attempt,
    open: bool,
}

enum Happening {
    Wake(usize),
    Up(usize, usize),
    Deliver(usize, usize, Vec<u8>),
    Ended(usize, usize, &'static str),
    Kme(usize, u32, Attempt, Result<Vec<Link>, String>),
    Renew(usize, u32),
    Send(usize),
    Arrive(usize, Packet),
}

struct Scheduled(Duration, u64, Happening);

impl PartialEq for Scheduled {
    fn eq(&self, other: &Self) -> bool {
        (self.0, self.1) == (other.0, other.1)
    }
}
impl Eq for Scheduled {}
impl PartialOrd for Scheduled {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Scheduled {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.0, self.1).cmp(&(other.0, other.1))
    }
}

/// Decides whether a message is lost.
pub(crate) type Hook = Box<dyn FnMut(usize, &Message) -> bool>;

pub(crate) struct World {
    pub(crate) now: Duration,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) gateways: [Gateway; 2],
    pub(crate) law: Law,
    /// Per gateway, since its start.
    pub(crate) events: Vec<(Duration, usize, Event)>,
    /// Messages that are lost in addition to those lost by faults.
    pub(crate) hook: Option<Hook>,
    pub(crate) packets_every: Duration,
    queue: BinaryHeap<Reverse<Scheduled>>,
    scheduled: u64,
    connections: Vec<Connection>,
    /// Per KME.
    store: BTreeMap<String, [u8; 32]>,
    /// A side's KME refuses to deliver.
    pub(crate) kme_down: [bool; 2],
    last_key: Option<String>,
    pub(crate) faults_done: HashMap<&'static str, u64>,
}

/// Maximum transit time of a message, and of a packet that is not late.
pub(crate) const PACKET_DELAY_MAX: Duration = Duration::from_millis(300);
const MESSAGE_DELAY_MIN: Duration = Duration::from_millis(1);
const MESSAGE_DELAY_MAX: Duration = Duration::from_millis(40);
/// How long a lane may seal with the old keys after the control plane has set new ones.
const LANE_LAG_MAX: Duration = Duration::from_millis(20);

impl World {
    pub(crate) fn new(seed: u64, settings: [Settings; 2]) -> Self {
        let mut world = Self {
            now: Duration::from_secs(1),
            random: Random(seed),
            faults: Faults::default(),
            gateways: settings.map(Gateway::new),
            law: Law::default(),
            events: Vec::new(),
            hook: None,
            packets_every: Duration::from_millis(5),
            queue: BinaryHeap::new(),
            scheduled: 0,
            connections: Vec::new(),
            store: BTreeMap::new(),
            kme_down: [false; 2],
            last_key: None,
            faults_done: HashMap::new(),
        };
        for side in 0..2 {
            world.schedule(world.now, Happening::Wake(side));
            world.schedule(world.now, Happening::Send(side));
        }
        world
    }

    /// Runs for a time.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        self.run_until(end, |_| false);
        self.now = end;
    }

    /// Runs until a condition holds or the time is over; returns whether it holds.
    pub(crate) fn run_until(&mut self, end: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        loop {
            if holds(self) {
                return true;
            }
            match self.queue.peek() {
                Some(Reverse(next)) if next.0 <= end => {}
                _ => return false,
            }
            let Some(Reverse(Scheduled(at, _, happening))) = self.queue.pop() else {
                return false;
            };
            self.now = at;
            self.happen(happening);
        }
    }

    /// Both seal with the same keys, and know it.
    pub(crate) fn agrees(&self) -> bool {
        let [one, other] = &self.gateways;
        let epoch = one.rollover.established();
        let sends = one.sends_in();
        epoch.is_some()
            && epoch == other.rollover.established()
            && sends.as_ref().map(|(epoch, _)| *epoch) == epoch
            && sends == other.sends_in()
    }

    pub(crate) fn established(&self, side: usize) -> u32 {
        self.gateways[side].rollover.established().unwrap_or(0)
    }

    /// Connections that a side has open.
    pub(crate) fn open_ends(&self, side: usize) -> usize {
        let open = |connection: &usize| self.end_of(*connection, side).is_some();
        (0..self.connections.len()).filter(open).count()
    }

    pub(crate) fn rekey(&mut self, side: usize, cause: Cause) {
        self.feed(side, Input::Rekey(cause));
    }

    /// A gateway loses its state. The peer's connections end, reported or detected later.
    pub(crate) fn restart(&mut self, side: usize, down: Duration, reported: bool) {
        self.done("restart");
        let incarnation = self.gateways[side].incarnation;
        for connection in 0..self.connections.len() {
            let Some(end) = &mut self.connections[connection].ends[side] else {
                continue;
            };
            if end.incarnation == incarnation && end.open {
                end.open = false;
                if reported {
                    self.end(connection, 1 - side, "connection reset");
                }
            }
        }
        self.gateways[side].restart(self.now + down);
        self.schedule(self.now + down, Happening::Wake(side));
    }

    pub(crate) fn done(&mut self, fault: &'static str) {
        *self.faults_done.entry(fault).or_default() += 1;
    }

    fn is_up(&self, side: usize) -> bool {
        self.gateways[side].down_until <= self.now
    }

    fn chance(&mut self, fault: &'static str, per_mille: u64) -> bool {
        let hit = self.random.chance(per_mille);
        if hit {
            self.done(fault);
        }
        hit
    }

    fn schedule(&mut self, at: Duration, happening: Happening) {
        self.scheduled += 1;
        self.queue
            .push(Reverse(Scheduled(at, self.scheduled, happening)));
    }

    fn message_delay(&mut self) -> Duration {
        let delay = self.random.between(MESSAGE_DELAY_MIN, MESSAGE_DELAY_MAX);
        if self.chance("message late", self.faults.message_late) {
            return delay + self.random.between(Duration::ZERO, Duration::from_secs(1));
        }
        delay
    }

    /// Arrival time of the next message at a side of a connection: after all messages sent before.
    fn arrival(&mut self, connection: usize, to: usize) -> Duration {
        let delay = self.message_delay();
        let last = &mut self.connections[connection].last[to];
        *last = (self.now + delay).max(*last + Duration::from_micros(1));
        *last
    }

    fn end(&mut self, connection: usize, to: usize, why: &'static str) {
        if !self.connections[connection].stalled[to] {
            let at = self.arrival(connection, to);
            self.schedule(at, Happening::Ended(connection, to, why));
        }
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Wake(side) => {
                let due = |at| at <= self.now;
                if self.is_up(side) && self.gateways[side].rollover.wakes_at().is_some_and(due) {
                    self.feed(side, Input::Tick);
                }
            }
            Happening::Up(connection, side) => self.up(connection, side),
            Happening::Deliver(connection, side, bytes) => self.deliver(connection, side, &bytes),
            Happening::Ended(connection, side, why) => {
                if let Some(attempt) = self.close_end(connection, side) {
                    let reason = why.to_owned();
                    self.feed(side, Input::Disconnected { attempt, reason });
                }
            }
            Happening::Kme(side, incarnation, attempt, keys) => {
                if self.gateways[side].incarnation == incarnation {
                    self.feed(side, Input::Qkd { attempt, keys });
                }
            }
            Happening::Renew(side, incarnation) => {
                if self.gateways[side].incarnation == incarnation {
                    self.gateways[side].renew(&mut self.law);
                }
            }
            Happening::Send(side) => {
                self.send_packet(side);
                self.schedule(self.now + self.packets_every, Happening::Send(side));
            }
            Happening::Arrive(side, packet) => self.arrive(side, &packet),
        }
    }

    /// An open end of a connection that belongs to its gateway's current incarnation.
    fn end_of(&self, connection: usize, side: usize) -> Option<Attempt> {
        let end = self.connections[connection].ends[side]?;
        let current = end.incarnation == self.gateways[side].incarnation && self.is_up(side);
        (end.open && current).then_some(end.attempt)
    }

    fn close_end(&mut self, connection: usize, side: usize) -> Option<Attempt> {
        let attempt = self.end_of(connection, side)?;
        self.connections[connection].ends[side].as_mut()?.open = false;
        Some(attempt)
    }

    /// A connection is up on a side.
    fn up(&mut self, connection: usize, side: usize) {
        let exporter = Zeroizing::new(self.connections[connection].exporter);
        if side == 1 {
            if !self.is_up(1) {
                return self.end(connection, 0, "connection refused");
            }
            let gateway = &mut self.gateways[1];
            gateway.taken += 1;
            let attempt = Attempt(gateway.taken);
            let incarnation = gateway.incarnation;
            let end = End {
                incarnation,
                attempt,
                open: true,
            };
            self.connections[connection].ends[1] = Some(end);
        }
        if let Some(attempt) = self.end_of(connection, side) {
            let exporter: Secret = exporter;
            self.feed(
                side,
                Input::Connected {
                    attempt,
                    exporter,
                    valid_for: Duration::MAX,
                },
            );
        }
    }

    fn deliver(&mut self, connection: usize, side: usize, bytes: &[u8]) {
        let Some(attempt) = self.end_of(connection, side) else {
            // A side without this connection responds with a reset.
            if self.is_up(side) {
                self.end(connection, 1 - side, "connection reset");
            }
            return;
        };
        let message = Message::decode(bytes).expect("what was encoded can be decoded");
        self.feed(side, Input::Received { attempt, message });
    }

    pub(crate) fn feed(&mut self, side: usize, input: Input) {
        if !self.is_up(side) {
            return;
        }
        let mut out = Vec::new();
        let rollover = &mut self.gateways[side].rollover;
        rollover.handle(self.now, input, &mut out);
        if let Some(at) = rollover.wakes_at() {
            assert!(at > self.now, "a tick leaves nothing due");
            self.schedule(at, Happening::Wake(side));
        }
        for output in out {
            self.act(side, output);
        }
    }

    fn act(&mut self, side: usize, output: Output) {
        let now = self.now;
        let (own, peer) = {
            let [one, other] = &mut self.gateways;
            if side == 0 {
                (one, other)
            } else {
                (other, one)
            }
        };
        match output {
            Output::Connect(attempt) => self.connect(attempt),
            Output::Send(attempt, message) => self.send(side, attempt, &message),
            Output::Close(attempt) => {
                if let Some(connection) = self.connection_of(side, attempt) {
                    self.close_end(connection, side);
                    self.end(connection, 1 - side, "end of file");
                }
            }
            Output::FetchQkd(attempt, request) => {
                let ids = match request {
                    QkdRequest::New { .. } => None,
                    QkdRequest::Named(ids) => Some(ids),
                };
                self.fetch(side, attempt, ids);
            }
            Output::InstallInbound(secret) => own.install(&secret, peer, &mut self.law),
            Output::SwitchOutbound(secret) => {
                own.switch(&secret);
                let incarnation = own.incarnation;
                let lag = self.random.between(Duration::ZERO, LANE_LAG_MAX);
                self.schedule(now + lag, Happening::Renew(side, incarnation));
            }
            Output::RetireInbound(epoch) => own.retire(epoch),
            Output::ExpireOutbound(epoch) => panic!("epoch {epoch} has no hard lifetime"),
            Output::Event(event) => self.events.push((now, side, event)),
        }
    }

    fn connection_of(&self, side: usize, attempt: Attempt) -> Option<usize> {
        // The latest are at the end.
        (0..self.connections.len())
            .rev()
            .find(|connection| self.end_of(*connection, side) == Some(attempt))
    }

    fn connect(&mut self, attempt: Attempt) {
        let connection = self.connections.len();
        let incarnation = self.gateways[0].incarnation;
        self.connections.push(Connection {
            exporter: self.random.bytes(),
            ends: [
                Some(End {
                    incarnation,
                    attempt,
                    open: true,
                }),
                None,
            ],
            last: [Duration::ZERO; 2],
            stalled: [false; 2],
        });
        if self.chance("refused", self.faults.refused) {
            return self.end(connection, 0, "connection refused");
        }
        if self.chance("swallowed", self.faults.swallowed) {
            return;
        }
        // The client has completed TCP and TLS after three transits, the server after a fourth.
        for _ in 0..3 {
            self.connections[connection].last[0] +=
                self.random.between(MESSAGE_DELAY_MIN, MESSAGE_DELAY_MAX);
        }
        let handshake = self.connections[connection].last[0];
        let at = self.now + handshake;
        self.connections[connection].last[0] = at;
        self.schedule(at, Happening::Up(connection, 0));
        let at = at + self.message_delay();
        self.connections[connection].last[1] = at;
        self.schedule(at, Happening::Up(connection, 1));
    }

    fn send(&mut self, side: usize, attempt: Attempt, message: &Message) {
        let Some(connection) = self.connection_of(side, attempt) else {
            return;
        };
        let to = 1 - side;
        let bytes = message.encode();
        if self.hook.as_mut().is_some_and(|hook| hook(side, message))
            || self.chance("message lost", self.faults.message_lost)
        {
            return;
        }
        if self.chance("stalled", self.faults.stalled) {
            self.connections[connection].stalled[to] = true;
        }
        if self.chance("cut", self.faults.cut) {
            for side in 0..2 {
                if self.random.chance(500) {
                    self.end(connection, side, "connection reset");
                }
                self.connections[connection].stalled[side] = true;
            }
        }
        if !self.connections[connection].stalled[to] {
            let at = self.arrival(connection, to);
            self.schedule(at, Happening::Deliver(connection, to, bytes));
        }
    }

    fn fetch(&mut self, side: usize, attempt: Attempt, ids: Option<Vec<String>>) {
        let link = |id: &String, key: [u8; 32]| Link {
            kind: Kind::Qkd,
            id: id.clone(),
            key: Some(Arc::new(Zeroizing::new(key.to_vec()))),
        };
        let fails = self.chance("kme fails", self.faults.kme_fails);
        let keys = if fails || self.kme_down[side] {
            Err("503 Service Unavailable".to_owned())
        } else if let Some(ids) = ids {
            let wrong = self.chance("kme wrong", self.faults.kme_wrong);
            let key = |id: &String| link(id, self.store[id].map(|byte| byte ^ u8::from(wrong)));
            Ok(ids.iter().map(key).collect())
        } else {
            let repeats = self.chance("kme repeats", self.faults.kme_repeats);
            let last = self.last_key.clone().filter(|_| repeats);
            let count = 1 + self.random.below(3);
            let ids = match last {
                Some(last) => vec![last],
                None => (0..count).map(|_| self.new_key()).collect(),
            };
            self.last_key = ids.last().cloned();
            Ok(ids.iter().map(|id| link(id, self.store[id])).collect())
        };
        if !self.chance("kme silent", self.faults.kme_silent) {
            let at = self.now + self.message_delay();
            let incarnation = self.gateways[side].incarnation;
            self.schedule(at, Happening::Kme(side, incarnation, attempt, keys));
        }
    }

    fn new_key(&mut self) -> String {
        let id = format!("{:016x}-{:04}", self.random.next(), self.store.len());
        let key = self.random.bytes();
        self.store.insert(id.clone(), key);
        id
    }

    fn send_packet(&mut self, side: usize) {
        if !self.is_up(side) {
            return;
        }
        let [one, other] = &mut self.gateways;
        let (own, peer) = if side == 0 {
            (one, other)
        } else {
            (other, one)
        };
        let Some(packet) = own.seal(self.now, peer, &self.law) else {
            return;
        };
        if self.chance("packet lost", self.faults.packet_lost) {
            return;
        }
        let copies = 1 + u64::from(self.chance("packet twice", self.faults.packet_twice));
        for _ in 0..copies {
            let mut at = self.now + self.random.between(Duration::ZERO, PACKET_DELAY_MAX);
            if self.chance("packet late", self.faults.packet_late) {
                at += self.random.between(Duration::ZERO, Duration::from_secs(4));
            }
            self.schedule(at, Happening::Arrive(1 - side, packet.clone()));
        }
    }

    /// Delivers a packet. It must be opened if the receiver took part in its epoch and it was not
    /// in transit for too long.
    fn arrive(&mut self, side: usize, packet: &Packet) {
        if !self.is_up(side) {
            return;
        }
        let gateway = &mut self.gateways[side];
        let epoch = keying::epoch_of(packet.spi);
        let incarnation = self.law.parties[&*packet.identity][side];
        let in_time = packet.sent + PACKET_DELAY_MAX >= self.now;
        let took_part = incarnation == Some(gateway.incarnation);
        let has_keys = gateway.live().get(&epoch) == Some(&*packet.identity);
        let fate = gateway.open(packet, &mut self.law);
        assert!(
            fate != Fate::Lost || !(has_keys || (in_time && took_part)),
            "a packet of epoch {epoch} was {:?} in transit to gateway {side} and is not opened (it has {:?})",
            self.now - packet.sent,
            gateway.live().keys()
        );
    }
}
