//! The state machine of one tunnel's epochs: when a new one is due, the messages to the peer, and
//! the active keys. It has no I/O and no clock: inputs and the time go in, outputs come out.
//!
//! One *attempt* is one TLS connection, opened by the connector, and one epoch. The connection of
//! the last successful attempt stays open, to request the next epoch and to detect the loss of the
//! peer.
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
//! Neither side seals with keys before the other has proven that it has them and opens packets.
//! When the channel is lost and both sides still seal with the same epoch, they keep it: after the
//! offers they prove to each other, bound to the new connection, that they have its keys (`Keep`,
//! `Kept`). A new epoch that a network can provoke takes a token from a [`Budget`].
//!
//! If any message is lost, the side that misses it abandons the attempt after a timeout, keeps the
//! keys that its peer may still seal with, and a new attempt follows. The peer's next offer
//! contains the epoch that it still seals with. The listener acts on that only after `Keys`, which
//! responds to the listener's `Accept`: an `Open` alone may be old and delayed.
//!
//! Only the connector starts attempts, one at a time, and always another after a failed one. So the
//! listener only ever waits for a connection; when it wants a new epoch it requests it (`Rekey`).
//!
//! Deliberately left out: it does not verify the peer's name (TLS does). It never proceeds with
//! less than the policy requires.

mod attempt;
mod budget;
mod connector;
#[cfg(test)]
mod explored;
mod listener;
mod live;
mod offer;
mod qkd;
mod standing;

use crate::chain::{EpochSecret, Link, Policy, Secret};
use crate::message::{Cause, Message, Refusal};
use attempt::{Broken, Running, Step};
pub use budget::{Allowance, Budget};
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

/// Number of a TLS connection of one tunnel, assigned by this side; never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(pub u64);

/// Configuration of a [`Rollover`].
#[derive(Clone)]
pub struct Settings {
    /// This side's role.
    pub role: Role,
    /// This side's name, as in its certificate.
    pub own_name: String,
    /// The peer's name, which its certificate must have.
    pub peer_name: String,
    /// Number of the tunnel.
    pub tunnel: u16,
    /// Number of lanes.
    pub lanes: u16,
    /// ESP suite.
    pub suite: Suite,
    /// [`Offer::payload`](crate::message::Offer::payload).
    pub payload: String,
    /// The required key sources.
    pub policy: Policy,
    /// This side's PPKs, with distinct IDs.
    pub ppks: Vec<Ppk>,
    /// A new epoch is due this long after the last; the first side that notices requests it.
    pub every: Duration,
    /// Hard lifetime of an epoch (RFC 4301 §4.4.2.1), also ended by the certificates that its
    /// handshake used: neither side uses its keys any longer, even if there are no others. `None`:
    /// until a newer epoch replaces it.
    pub hard: Option<Duration>,
    /// How long old inbound keys live after both sides have switched.
    pub grace: Duration,
    /// Time limit of an attempt. With [`Policy::Either`] the KME has a third of it.
    pub attempt_limit: Duration,
    /// The first pause after a failed attempt; it doubles up to [`retry_max`](Self::retry_max).
    /// Also the minimum time between the starts of requested attempts.
    pub retry_min: Duration,
    /// The longest pause.
    pub retry_max: Duration,
    /// How many epochs a network may provoke. Of effect for the connector, which starts all
    /// attempts.
    pub provoked: Allowance,
    /// Interval of pings to the peer; a channel without input for three intervals is closed.
    pub ping_every: Duration,
}

/// A pre-shared key of this side.
#[derive(Clone)]
pub struct Ppk {
    /// ID, the same on both sides.
    pub id: String,
    /// Key.
    pub key: Arc<zeroize::Zeroizing<Vec<u8>>>,
    /// Whether there are no keys without it.
    pub required: bool,
}

/// An input of the state machine.
pub enum Input {
    /// The time of [`Rollover::wakes_at`] has come.
    Tick,
    /// A new epoch is wanted.
    Rekey(Cause),
    /// A connection with the right peer is up: requested by [`Output::Connect`], or accepted by the
    /// listener.
    Connected {
        /// The connection.
        attempt: Attempt,
        /// The connection's exported secret.
        exporter: Secret,
        /// Time until a certificate of either side expires.
        valid_for: Duration,
    },
    /// A connection failed or ended, other than by [`Output::Close`].
    Disconnected {
        /// The connection.
        attempt: Attempt,
        /// The reason, for messages.
        reason: String,
    },
    /// A message arrived.
    Received {
        /// The connection.
        attempt: Attempt,
        /// The message.
        message: Message,
    },
    /// Received data is not a valid message.
    Garbled {
        /// The connection.
        attempt: Attempt,
        /// The mistake in it, for messages.
        detail: String,
    },
    /// The result of [`Output::FetchQkd`].
    Qkd {
        /// The attempt.
        attempt: Attempt,
        /// The keys as links, or the reason for their absence.
        keys: Result<Vec<Link>, String>,
    },
}

/// An output of the state machine. The caller executes outputs in order.
pub enum Output {
    /// Connect to the peer.
    Connect(Attempt),
    /// Send a message.
    Send(Attempt, Message),
    /// Send queued messages and close the connection. No further input of it is expected.
    Close(Attempt),
    /// Fetch keys from the KME.
    FetchQkd(Attempt, QkdRequest),
    /// Open inbound packets of this epoch from now on.
    InstallInbound(Arc<EpochSecret>),
    /// Seal outbound packets with this epoch from now on; its inbound side is installed.
    SwitchOutbound(Arc<EpochSecret>),
    /// Stop opening inbound packets of this epoch.
    RetireInbound(u32),
    /// Stop sealing outbound packets with this epoch: its hard lifetime is over.
    ExpireOutbound(u32),
    /// Report an event for logs, metrics and timelines.
    Event(Event),
}

/// The keys to fetch from the KME.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QkdRequest {
    /// New ones.
    New {
        /// Whether a network may have caused the attempt.
        provoked: bool,
    },
    /// Those with these IDs, which the peer has fetched.
    Named(Vec<String>),
}

/// An event for logs, metrics and timelines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Both sides seal with a new epoch.
    Established {
        /// Number of the epoch.
        epoch: u32,
        /// Why it was negotiated.
        cause: Cause,
        /// Time since the attempt's start.
        took: Duration,
        /// IDs of the mixed keys: `ppk:alpha`, `qkd:550e8400-…`; an absent key has the prefix `-`.
        sources: Vec<String>,
        /// Whether the handshake's secret is mixed in.
        handshake: bool,
    },
    /// An attempt failed.
    Failed {
        /// The violated rule, if one side refused.
        refusal: Option<Refusal>,
        /// Whether the peer refused.
        by_peer: bool,
        /// The reason, for messages.
        detail: String,
    },
    /// The hard lifetime of the epoch that this side seals with is over: there are no keys.
    Expired {
        /// Number of the epoch.
        epoch: u32,
    },
    /// The standing channel is lost: the peer restarted, or the path failed.
    PeerLost {
        /// The reason, for messages.
        detail: String,
    },
    /// There is a channel to the peer again, and both sides have kept the keys.
    PeerBack {
        /// Number of the epoch.
        epoch: u32,
    },
    /// QKD keys are unavailable; the attempt proceeds without, as policy `either` allows.
    WithoutQkd {
        /// The reason, for messages.
        detail: String,
    },
}

/// The state machine; see the [module](self).
#[cfg_attr(test, derive(Clone))]
pub struct Rollover {
    settings: Settings,
    epochs: Epochs,
    running: Option<Box<Running>>,
    /// The channel of the last successful attempt.
    standing: Option<Standing>,
    /// A new epoch is wanted that the running attempt, if any, does not provide.
    wanted: Option<Cause>,
    /// Listener: when it last requested a new epoch.
    asked: Option<Duration>,
    /// Connector: earliest start of the next attempt.
    not_before: Duration,
    /// Connector: failed attempts and lost channels since a channel has lasted.
    failures: u32,
    /// Connector: the attempts that a network may still provoke.
    budget: Budget,
    /// Connector: no attempt has made new keys since the last epoch was established.
    is_new_epoch_untried: bool,
    /// Messages sent and received over the established channels of the epoch that is sealed with.
    said: u64,
    heard: u64,
    /// When the next epoch is due.
    due: Option<Duration>,
    /// The highest attempt number so far.
    newest: u64,
    established: Option<u32>,
    spent: Spent,
}

impl Rollover {
    /// Creates a machine without keys. For the connector, [`wakes_at`](Self::wakes_at) is
    /// immediately due.
    ///
    /// # Panics
    /// If two PPKs have the same ID, or an ID is invalid.
    #[must_use]
    pub fn new(mut settings: Settings) -> Self {
        let ppks = &mut settings.ppks;
        // In the order that a valid offer must have.
        ppks.sort_by(|one, other| one.id.as_bytes().cmp(other.id.as_bytes()));
        assert!(
            ppks.is_sorted_by(|one, other| one.id != other.id)
                && ppks.iter().all(|ppk| crate::chain::is_id(&ppk.id)),
            "each PPK has a valid and unique id"
        );
        Self {
            wanted: (settings.role == Role::Connector).then_some(Cause::Start),
            budget: Budget::new(settings.provoked),
            is_new_epoch_untried: false,
            said: 0,
            heard: 0,
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

    /// Handles an input and appends the resulting outputs to `out`. `now` counts from an arbitrary
    /// start and never decreases.
    ///
    /// Inputs for connections that are already closed are ignored.
    pub fn handle(&mut self, now: Duration, input: Input, out: &mut Vec<Output>) {
        match input {
            Input::Tick => {}
            Input::Rekey(cause) => self.want(cause),
            Input::Connected {
                attempt,
                exporter,
                valid_for,
            } => {
                let valid_until = now.saturating_add(valid_for);
                self.connected(now, attempt, exporter, valid_until, out);
            }
            Input::Disconnected { attempt, reason } => {
                if self.is_running(attempt) {
                    self.fail(now, Broken::gone(reason), out);
                } else if let Some(standing) = self
                    .standing
                    .take_if(|standing| standing.attempt == attempt)
                {
                    self.lost(now, &standing, reason, out);
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
        // After the input: a message that arrives at the last moment still counts.
        self.look_at_clock(now, out);
    }

    /// The time of the next [`Input::Tick`] if no other input arrives before; `None` if none is
    /// needed.
    #[must_use]
    pub fn wakes_at(&self) -> Option<Duration> {
        let running = self.running.as_deref().map(Running::wakes_at);
        let standing = self.standing.as_ref();
        let wanted = match self.settings.role {
            // An attempt has a deadline, and nothing else begins before it ends.
            _ if self.running.is_some() => None,
            Role::Connector => [self.begins_at(), self.due].into_iter().flatten().min(),
            // Without a channel there is nobody to ask: the connector makes the next attempt.
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

    /// The newest epoch that both sides seal with, as far as this side knows. It stays while the
    /// peer is unreachable, until its hard lifetime is over.
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

    /// Received data is not a valid message: abandons the channel.
    fn garbled(&mut self, now: Duration, attempt: Attempt, detail: String, out: &mut Vec<Output>) {
        let broken = Broken::refuse(Refusal::Protocol, detail);
        if self.is_running(attempt) {
            self.fail(now, broken, out);
        } else if self.is_standing(attempt) {
            self.drop_standing(now, broken, out);
        }
    }

    /// Requests a new epoch. A running attempt satisfies it unless its keys are already derived.
    fn want(&mut self, cause: Cause) {
        let running = self.running.as_mut();
        if running.is_some_and(|running| running.takes(cause)) {
            return;
        }
        let wanted = self.wanted.get_or_insert(cause);
        // A demand of an operator does not wait for the budget of provoked epochs.
        if cause == Cause::Demand && wanted.is_provoked() {
            *wanted = cause;
        }
    }

    /// Executes everything that is due.
    fn look_at_clock(&mut self, now: Duration, out: &mut Vec<Output>) {
        self.epochs.retire(now, out);
        if let Some(epoch) = self.epochs.expire(now, out) {
            // Not a provoked cause: the configuration sets the lifetime, so no budget delays the
            // new keys.
            self.established = None;
            out.push(Output::Event(Event::Expired { epoch }));
            self.want(Cause::Time);
        }
        if let Some(running) = &self.running {
            // The attempt's deadline before the KME's: both may have passed.
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
        // Only between attempts: one that runs may provide the new epoch, and then sets the next
        // time.
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
                || self.begins_at().is_some(),
            "a connector always waits for something"
        );
    }
}
