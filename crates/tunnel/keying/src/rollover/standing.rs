//! The standing channel, of the last successful attempt: requests for a new epoch, and liveness of
//! the peer.

use super::attempt::Broken;
use super::{Attempt, Event, Output, Role, Rollover};
use crate::message::{Message, Refusal};
use std::time::Duration;

/// A channel without input for this many ping intervals is dead.
const PINGS_UNANSWERED: u32 = 3;

/// The standing channel.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Standing {
    pub(super) attempt: Attempt,
    began: Duration,
    /// Whether earlier failures no longer count, since it has lasted.
    has_forgiven: bool,
    /// Time of the last input.
    heard: Duration,
    /// Time of the last ping.
    pinged: Duration,
    pings: u64,
}

impl Standing {
    pub(super) fn new(attempt: Attempt, now: Duration) -> Self {
        Self {
            attempt,
            began: now,
            has_forgiven: false,
            heard: now,
            pinged: now,
            pings: 0,
        }
    }

    /// When the next ping or the timeout is due.
    pub(super) fn wakes_at(&self, ping_every: Duration) -> Duration {
        self.asks_at(ping_every).min(self.dies_at(ping_every))
    }

    /// When it was established, last heard from the peer, and pinged it.
    #[cfg(test)]
    pub(super) fn times(&self) -> [Duration; 3] {
        [self.began, self.heard, self.pinged]
    }

    /// Whether it has lasted: only then do failures before it count no more.
    pub(super) fn has_lasted(&self, now: Duration, attempt_limit: Duration) -> bool {
        now.saturating_sub(self.began) >= attempt_limit
    }

    /// Whether it has lasted, once.
    pub(super) fn forgives(&mut self, now: Duration, attempt_limit: Duration) -> bool {
        let forgives = !self.has_forgiven && self.has_lasted(now, attempt_limit);
        self.has_forgiven |= forgives;
        forgives
    }

    fn asks_at(&self, ping_every: Duration) -> Duration {
        self.heard.max(self.pinged) + ping_every
    }

    fn dies_at(&self, ping_every: Duration) -> Duration {
        self.heard + ping_every * PINGS_UNANSWERED
    }
}

impl Rollover {
    /// Handles a message on the standing channel.
    pub(super) fn hear(&mut self, now: Duration, message: Message, out: &mut Vec<Output>) {
        let Some(standing) = &mut self.standing else {
            return;
        };
        // Any message shows that the peer lives, not only a `Pong`.
        standing.heard = now;
        // The channel of the epoch before does not count.
        let counts = u64::from(self.epochs.outbound() == self.established);
        if let Message::Ping { .. } | Message::Pong { .. } | Message::Rekey { .. } = message {
            self.heard += counts;
        }
        match message {
            Message::Ping { number } => {
                self.said += counts;
                out.push(Output::Send(standing.attempt, Message::Pong { number }));
            }
            Message::Pong { .. } => {}
            Message::Rekey { cause } if self.settings.role == Role::Connector => {
                // The peer repeats its request until a new epoch exists: a repetition does not
                // change the cause of a provoked request.
                if self.wanted.is_none() {
                    self.want(cause);
                }
            }
            Message::Refuse { why, detail } => {
                self.drop_standing(now, Broken::refused(why, &detail), out);
            }
            message => self.drop_standing(now, Broken::out_of_turn(&message), out),
        }
    }

    /// Sends due pings, and closes the channel if the peer does not respond.
    pub(super) fn look_at_standing(&mut self, now: Duration, out: &mut Vec<Output>) {
        let ping_every = self.settings.ping_every;
        let Some(standing) = &mut self.standing else {
            return;
        };
        if standing.dies_at(ping_every) <= now {
            let silent = (ping_every * PINGS_UNANSWERED).as_millis();
            let detail = format!(
                "nothing received from {} for {silent} ms",
                self.settings.peer_name
            );
            self.drop_standing(now, Broken::refuse(Refusal::Timeout, detail), out);
        } else if standing.asks_at(ping_every) <= now {
            // Whether the ping is answered shows only in `heard`; its number is for logs.
            standing.pinged = now;
            standing.pings += 1;
            let number = standing.pings;
            self.said += u64::from(self.epochs.outbound() == self.established);
            out.push(Output::Send(standing.attempt, Message::Ping { number }));
        }
    }

    /// Closes the standing channel.
    pub(super) fn drop_standing(&mut self, now: Duration, broken: Broken, out: &mut Vec<Output>) {
        if let Some(standing) = self.standing.take() {
            broken.close(standing.attempt, out);
            self.lost(now, &standing, broken.detail, out);
        }
    }

    /// Handles the loss of the standing channel. The keys stay in use, since packets may still
    /// pass; the connector makes another connection.
    pub(super) fn lost(
        &mut self,
        now: Duration,
        standing: &Standing,
        detail: String,
        out: &mut Vec<Output>,
    ) {
        // A listener closes the old channel when it switches to the new one, possibly before `Done`
        // arrives.
        let replaced = self
            .running
            .as_ref()
            .is_some_and(|running| running.has_keys());
        if !replaced {
            out.push(Output::Event(Event::PeerLost { detail }));
        }
        if self.settings.role == Role::Connector && self.running.is_none() {
            if !standing.has_lasted(now, self.settings.attempt_limit) {
                self.pause(now);
            } else if !standing.has_forgiven {
                self.failures = 0;
            }
        }
    }
}
