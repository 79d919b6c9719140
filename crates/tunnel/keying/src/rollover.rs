//! One tunnel's epochs: when a new one is due, what is said to the peer, which keys are in force. Without I/O and clock:
//! inputs and the time go in, outputs come out.
//!
//! One *attempt* is one TLS connection, made by the side that connects, and one epoch. The connection of the attempt that succeeded
//! last stays open, to ask for the next and to notice that the peer is gone.
//!
//! ```text
//! connector                     listener
//!    Open ─────────────────────────►          offers are checked by both
//!    ◄──────────────────────── Accept         epoch
//!    Keys ─────────────────────────►          QKD key ids, if any
//!                                             install inbound
//!    ◄───────────────────────── Ready         confirmation
//!    install inbound, switch outbound
//!    Switched ─────────────────────►          confirmation
//!                                             switch outbound; older inbound: grace
//!    ◄────────────────────────── Done
//!    older inbound: grace
//! ```
//!
//! Nobody seals with keys that the other side has not proven to have and to open with. Whatever message is lost: the side
//! that misses it gives the attempt up after a time, keeps what its peer may still seal with, and a new attempt is made.
//! What the peer still seals with is in its next offer. The listener heeds that only once `Keys` has come, which answers its
//! own `Accept`: an `Open` alone may be one that was long under way.
//!
//! The connector alone makes attempts, one at a time, and after one that failed always another. So the listener never waits
//! for more than to be connected to; when it wants a new epoch it asks for it (`Rekey`).
//!
//! What it deliberately does not do: it does not know whether the peer's name is right (TLS does), and it never goes on
//! with less than the policy says.

mod attempt;
mod connector;
mod listener;
mod live;
mod offer;
mod qkd;
mod standing;

use crate::chain::{EpochSecret, Link, Policy, Secret};
use crate::message::{Cause, Message, Refusal};
use attempt::{Broken, Running, Step};
use live::Epochs;
pub use live::INBOUND_MAX;
use qkd::Spent;
use standing::Standing;
use std::sync::Arc;
use std::time::Duration;
use wire::Suite;

/// Which side of a tunnel's control channel this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Connects: side a.
    Connector,
    /// Listens: side b.
    Listener,
}

/// A TLS connection of one tunnel, as its own side numbers them; never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

/// What does not change.
#[derive(Clone)]
pub struct Settings {
    /// Side.
    pub role: Role,
    /// Own name, as the certificate has it.
    pub own_name: String,
    /// The peer's name, as its certificate must have it.
    pub peer_name: String,
    /// Number of the tunnel.
    pub tunnel: u16,
    /// Lanes.
    pub lanes: u16,
    /// ESP suite.
    pub suite: Suite,
    /// [`Offer::payload`](crate::message::Offer::payload).
    pub payload: String,
    /// What keys must come from.
    pub policy: Policy,
    /// PPKs that this side has, each id once.
    pub ppks: Vec<Ppk>,
    /// A new epoch is due this long after the last; both sides look, whoever is first asks.
    pub every: Duration,
    /// How long the old inbound keys live on after both sides have switched.
    pub grace: Duration,
    /// How long an attempt may take. With [`Policy::Either`] a KME has a third of it to answer.
    pub attempt_limit: Duration,
    /// The first pause after a failed attempt; it doubles up to [`retry_max`](Self::retry_max). Attempts that are asked for
    /// one after the other begin so far apart, too.
    pub retry_min: Duration,
    /// The longest pause.
    pub retry_max: Duration,
    /// How often the peer is asked whether it is there; a channel on which nothing came for three times that is closed.
    pub ping_every: Duration,
}

/// A pre-shared key of this side.
#[derive(Clone)]
pub struct Ppk {
    /// Id, the same on both sides.
    pub id: String,
    /// Key.
    pub key: Arc<zeroize::Zeroizing<Vec<u8>>>,
    /// No keys without it.
    pub required: bool,
}

/// What happened.
pub enum Input {
    /// Nothing; the time that [`Rollover::wakes_at`] told has come.
    Tick,
    /// A new epoch is wanted.
    Rekey(Cause),
    /// A connection with the right peer is up: that asked for by [`Output::Connect`], or one that the listener took.
    Connected {
        /// Which.
        attempt: Attempt,
        /// From its exporter.
        exporter: Secret,
    },
    /// A connection has failed or ended; not told for those closed by [`Output::Close`].
    Disconnected {
        /// Which.
        attempt: Attempt,
        /// Why, for people.
        reason: String,
    },
    /// It came.
    Received {
        /// On which.
        attempt: Attempt,
        /// What.
        message: Message,
    },
    /// What was received is no message.
    Garbled {
        /// On which.
        attempt: Attempt,
        /// What is wrong with it, for people.
        detail: String,
    },
    /// The answer to [`Output::FetchQkd`].
    Qkd {
        /// For which.
        attempt: Attempt,
        /// The keys, as links; or why there are none, for people.
        keys: Result<Vec<Link>, String>,
    },
}

/// What is to be done, in this order.
pub enum Output {
    /// Connect to the peer.
    Connect(Attempt),
    /// Send.
    Send(Attempt, Message),
    /// Send what was to be sent, and close. Nothing more is told of it.
    Close(Attempt),
    /// Ask the KME: for new keys (`None`), or for those with these ids.
    FetchQkd(Attempt, Option<Vec<String>>),
    /// Open what comes in this epoch from now on.
    InstallInbound(Arc<EpochSecret>),
    /// Seal with this epoch from now on; its inbound side is installed.
    SwitchOutbound(Arc<EpochSecret>),
    /// Open nothing of this epoch any more.
    RetireInbound(u32),
    /// For logs, metrics and timelines.
    Event(Event),
}

/// What people want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Both sides seal with a new epoch.
    Established {
        /// Number.
        epoch: u32,
        /// Why there is a new one.
        cause: Cause,
        /// From the attempt's start until now.
        took: Duration,
        /// Ids of what was mixed in: `ppk:alpha`, `qkd:550e8400-…`; an absent one has `-` in front.
        sources: Vec<String>,
        /// Whether the handshake's secret is in.
        handshake: bool,
    },
    /// An attempt failed; `refusal` where one side said why.
    Failed {
        /// Rule, where there is one.
        refusal: Option<Refusal>,
        /// Whether it was the peer who refused.
        by_peer: bool,
        /// For people.
        detail: String,
    },
    /// The channel that stood is gone: peer restarted, path broken.
    PeerLost {
        /// For people.
        detail: String,
    },
    /// An attempt failed for want of QKD keys and goes on without, as policy `either` allows.
    WithoutQkd {
        /// For people.
        detail: String,
    },
}

/// The machine; see the [module](self).
pub struct Rollover {
    settings: Settings,
    epochs: Epochs,
    running: Option<Box<Running>>,
    /// The channel of the attempt that succeeded last.
    standing: Option<Standing>,
    /// A new epoch is wanted, and no attempt that runs makes one.
    wanted: Option<Cause>,
    /// Listener: when it last asked for it.
    asked: Option<Duration>,
    /// Connector: no attempt begins before.
    not_before: Duration,
    /// Connector: attempts that failed in a row.
    failures: u32,
    /// When the epoch is old.
    due: Option<Duration>,
    /// The highest number of an attempt so far.
    newest: u64,
    established: Option<u32>,
    spent: Spent,
}

impl Rollover {
    /// One without keys. The connector wants some: [`wakes_at`](Self::wakes_at) is in the past.
    ///
    /// # Panics
    /// When two PPKs have the same id, or one has none.
    #[must_use]
    pub fn new(mut settings: Settings) -> Self {
        let ppks = &mut settings.ppks;
        ppks.sort_by(|one, other| one.id.as_bytes().cmp(other.id.as_bytes()));
        assert!(
            ppks.is_sorted_by(|one, other| one.id != other.id)
                && ppks.iter().all(|ppk| crate::chain::is_id(&ppk.id)),
            "each PPK has an id of its own"
        );
        Self {
            wanted: (settings.role == Role::Connector).then_some(Cause::Start),
            settings,
            epochs: Epochs::default(),
            running: None,
            standing: None,
            asked: None,
            not_before: Duration::ZERO,
            failures: 0,
            due: None,
            newest: 0,
            established: None,
            spent: Spent::default(),
        }
    }

    /// Takes in what happened, and adds to `out` what is to be done. `now` is since any start, and never goes back.
    ///
    /// What is told of connections that are closed already is ignored.
    pub fn handle(&mut self, now: Duration, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Tick => {}
            Input::Rekey(cause) => self.want(cause),
            Input::Connected { attempt, exporter } => self.connected(now, attempt, exporter, out),
            Input::Disconnected { attempt, reason } => {
                if self.is_running(attempt) {
                    self.fail(now, Broken::gone(reason), out);
                } else if self.is_standing(attempt) {
                    self.standing = None;
                    self.lost(reason, out);
                }
            }
            Input::Received { attempt, message } => match message.check() {
                Ok(()) if self.is_running(attempt) => {
                    self.step(now, Step::Message(message), out);
                }
                Ok(()) if self.is_standing(attempt) => self.hear(now, message, out),
                Ok(()) => {}
                Err(garbled) => self.garbled(now, attempt, garbled.to_string(), out),
            },
            Input::Garbled { attempt, detail } => self.garbled(now, attempt, detail, out),
            Input::Qkd { attempt, keys } => {
                if self.is_running(attempt) {
                    self.step(now, Step::Qkd(keys), out);
                }
            }
        }
        self.look_at_clock(now, out);
    }

    /// When [`Input::Tick`] is to come, if nothing else happens before; `None`: not by itself.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Duration> {
        let running = self.running.as_deref().map(Running::wakes_at);
        let standing = self.standing.as_ref();
        let wanted = match self.settings.role {
            _ if self.running.is_some() => None,
            Role::Connector if self.wanted.is_some() => Some(self.not_before),
            Role::Connector => self.due,
            Role::Listener if standing.is_none() => None,
            Role::Listener if self.wanted.is_some() => {
                self.asked.map(|asked| asked + self.settings.attempt_limit)
            }
            Role::Listener => self.due,
        };
        let standing = standing.map(|standing| standing.wakes_at(self.settings.ping_every));
        [running, standing, wanted, self.epochs.next()]
            .into_iter()
            .flatten()
            .min()
    }

    /// The newest epoch that both sides seal with, as far as this side knows; stays while the peer cannot be reached.
    #[must_use]
    pub fn established(&self) -> Option<u32> {
        self.established
    }

    fn is_running(&self, attempt: Attempt) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.attempt == attempt)
    }

    fn is_standing(&self, attempt: Attempt) -> bool {
        self.standing
            .as_ref()
            .is_some_and(|standing| standing.attempt == attempt)
    }

    /// What came is no message: the channel is given up.
    fn garbled(&mut self, now: Duration, attempt: Attempt, detail: String, out: &mut Vec<Output>) {
        let broken = Broken::refuse(Refusal::Protocol, detail);
        if self.is_running(attempt) {
            self.fail(now, broken, out);
        } else if self.is_standing(attempt) {
            self.drop_standing(broken, out);
        }
    }

    /// A new epoch is wanted. One that is in the making will do, as long as its keys are not made.
    fn want(&mut self, cause: Cause) {
        let in_the_making = self
            .running
            .as_ref()
            .is_some_and(|running| !running.has_keys());
        if !in_the_making {
            self.wanted.get_or_insert(cause);
        }
    }

    /// Does all that is due.
    fn look_at_clock(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.epochs.retire(now, out);
        if let Some(running) = &self.running {
            if running.ends <= now {
                let detail = running.late();
                self.fail(now, Broken::refuse(Refusal::Timeout, detail), out);
            } else if running.wakes_at() <= now {
                self.step(now, Step::KmeLate, out);
            }
        }
        self.look_at_standing(now, out);
        if self.running.is_some() {
            return;
        }
        if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.want(Cause::Time);
        }
        match self.settings.role {
            Role::Connector => self.begin(now, out),
            Role::Listener => self.ask(now, out),
        }
        debug_assert!(
            self.settings.role == Role::Listener
                || self.running.is_some()
                || self.standing.is_some()
                || self.wanted.is_some(),
            "a connector is never left with nothing to wait for"
        );
    }
}
