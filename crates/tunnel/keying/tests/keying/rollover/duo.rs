//! Two machines and a network that delivers immediately, one message at a time.

use keying::chain::{Kind, Link};
use keying::message::{Message, Refusal};
use keying::rollover::{Attempt, Event, Input, Output, QkdRequest, Rollover, Settings};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

pub(crate) struct Duo {
    pub(crate) now: Duration,
    pub(crate) sides: [Rollover; 2],
    /// Messages in flight: receiver, its attempt, and the message; `None` is the end of the
    /// connection.
    pub(crate) messages: VecDeque<(usize, Attempt, Option<Message>)>,
    /// Attempts of both sides that are one connection.
    connections: Vec<[Attempt; 2]>,
    pub(crate) keys: u64,
    pub(crate) events: [Vec<Event>; 2],
    /// The connections that each side closed.
    pub(crate) closed: [Vec<Attempt>; 2],
    /// Inbound and outbound epochs, as the machines installed them.
    pub(crate) inbound: [Vec<u32>; 2],
    pub(crate) outbound: [Option<u32>; 2],
    /// When the certificates of new connections expire.
    pub(crate) valid_until: Duration,
    /// Whether connections fail.
    pub(crate) is_cut: bool,
}

impl Duo {
    pub(crate) fn new(settings: [Settings; 2]) -> Self {
        Self {
            now: Duration::from_secs(1),
            sides: settings.map(Rollover::new),
            messages: VecDeque::new(),
            connections: Vec::new(),
            keys: 0,
            events: Default::default(),
            closed: Default::default(),
            inbound: Default::default(),
            outbound: Default::default(),
            valid_until: Duration::MAX,
            is_cut: false,
        }
    }

    pub(crate) fn feed(&mut self, side: usize, input: Input) {
        let mut out = Vec::new();
        self.sides[side].handle(self.now, input, &mut out);
        for output in out {
            match output {
                Output::Connect(attempt) if self.is_cut => {
                    let reason = "no route".to_owned();
                    self.feed(side, Input::Disconnected { attempt, reason });
                }
                Output::Connect(attempt) => {
                    let taken = Attempt(self.connections.len() as u64 + 1);
                    self.connections.push([attempt, taken]);
                    self.connected(1, taken);
                    self.connected(0, attempt);
                }
                Output::Send(attempt, message) => {
                    if let Some(to) = self.across(side, attempt) {
                        self.messages.push_back((1 - side, to, Some(message)));
                    }
                }
                Output::Close(attempt) => {
                    self.closed[side].push(attempt);
                    if let Some(to) = self.across(side, attempt) {
                        // Messages in transit to the closed end are dropped.
                        self.messages
                            .retain(|message| (message.0, message.1) != (side, attempt));
                        self.messages.push_back((1 - side, to, None));
                    }
                }
                Output::FetchQkd(attempt, request) => {
                    let ids = match request {
                        QkdRequest::Named(ids) => ids,
                        QkdRequest::New { .. } => {
                            self.keys += 1;
                            vec![format!("key-{}", self.keys)]
                        }
                    };
                    let key = |id: String| Link {
                        kind: Kind::Qkd,
                        key: Some(Arc::new(Zeroizing::new(id.repeat(10).into_bytes()))),
                        id,
                    };
                    let keys = Ok(ids.into_iter().map(key).collect());
                    self.feed(side, Input::Qkd { attempt, keys });
                }
                Output::InstallInbound(secret) => self.inbound[side].push(secret.epoch()),
                Output::SwitchOutbound(secret) => self.outbound[side] = Some(secret.epoch()),
                Output::RetireInbound(epoch) => self.inbound[side].retain(|live| *live != epoch),
                Output::ExpireOutbound(epoch) => {
                    assert_eq!(self.outbound[side].take(), Some(epoch));
                }
                Output::Event(event) => self.events[side].push(event),
            }
        }
    }

    fn connected(&mut self, side: usize, attempt: Attempt) {
        let exporter = Zeroizing::new([self.connections.len() as u8; 48]);
        let valid_for = self.valid_until.saturating_sub(self.now);
        self.feed(
            side,
            Input::Connected {
                attempt,
                exporter,
                valid_for,
            },
        );
    }

    /// The other end of a connection.
    fn across(&self, side: usize, attempt: Attempt) -> Option<Attempt> {
        let ends = self.connections.iter().find(|ends| ends[side] == attempt)?;
        Some(ends[1 - side])
    }

    /// The latest attempt of a side.
    pub(crate) fn latest(&self, side: usize) -> Attempt {
        self.connections.last().expect("a connection")[side]
    }

    /// Delivers the next message; returns whether there was one.
    pub(crate) fn deliver(&mut self) -> bool {
        let Some((side, attempt, message)) = self.messages.pop_front() else {
            return false;
        };
        let input = match message {
            Some(message) => Input::Received { attempt, message },
            None => {
                let reason = "end of file".to_owned();
                Input::Disconnected { attempt, reason }
            }
        };
        self.feed(side, input);
        true
    }

    /// Delivers all messages and advances the clock until a time.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            while self.deliver() {}
            let wakes = self.sides.each_ref().map(Rollover::wakes_at);
            let Some(at) = wakes.into_iter().flatten().min().filter(|at| *at <= end) else {
                break;
            };
            self.now = self.now.max(at);
            for side in 0..2 {
                self.feed(side, Input::Tick);
            }
        }
        self.now = end;
    }

    pub(crate) fn agrees(&self) -> bool {
        let epoch = self.sides[0].established();
        epoch.is_some() && self.sides[1].established() == epoch && self.outbound == [epoch; 2]
    }

    /// The last failure of a side: the rule, whether the peer refused, and the message.
    pub(crate) fn failure(&self, side: usize) -> Option<(Option<Refusal>, bool, &str)> {
        self.events[side]
            .iter()
            .rev()
            .find_map(|event| match event {
                Event::Failed {
                    refusal,
                    by_peer,
                    detail,
                } => Some((*refusal, *by_peer, &**detail)),
                _ => None,
            })
    }
}
