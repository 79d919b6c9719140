//! The standing channel, of the last successful attempt: requests for a new epoch, and liveness of
//! the peer.

use super::attempt::Broken;
use super::{Attempt, Event, Output, Role, Rollover};
use crate::message::{Cause, Message, Refusal};
use std::time::Duration;

/// A channel without input for this many ping intervals is dead.
const PINGS_UNANSWERED: u32 = 3;

/// The standing channel.
#[cfg_attr(test, derive(Clone))]
pub(super) struct Standing {
    pub(super) attempt: Attempt,
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
            heard: now,
            pinged: now,
            pings: 0,
        }
    }

    /// When the next ping or the timeout is due.
    pub(super) fn wakes_at(&self, ping_every: Duration) -> Duration {
        self.asks_at(ping_every).min(self.dies_at(ping_every))
    }

    /// When it last heard from the peer, and pinged it.
    #[cfg(test)]
    pub(super) fn times(&self) -> (Duration, Duration) {
        (self.heard, self.pinged)
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
        standing.heard = now;
        match message {
            Message::Ping { number } => {
                out.push(Output::Send(standing.attempt, Message::Pong { number }));
            }
            Message::Pong { .. } => {}
            Message::Rekey { cause } if self.settings.role == Role::Connector => self.want(cause),
            Message::Refuse { why, detail } => {
                self.drop_standing(Broken::refused(why, &detail), out);
            }
            message => self.drop_standing(Broken::out_of_turn(&message), out),
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
            self.drop_standing(Broken::refuse(Refusal::Timeout, detail), out);
        } else if standing.asks_at(ping_every) <= now {
            standing.pinged = now;
            standing.pings += 1;
            let number = standing.pings;
            out.push(Output::Send(standing.attempt, Message::Ping { number }));
        }
    }

    /// Closes the standing channel.
    pub(super) fn drop_standing(&mut self, broken: Broken, out: &mut Vec<Output>) {
        if let Some(standing) = self.standing.take() {
            broken.close(standing.attempt, out);
            self.lost(broken.detail, out);
        }
    }

    /// Handles the loss of the standing channel. The keys stay in use, since packets may still
    /// pass.
    pub(super) fn lost(&mut self, detail: String, out: &mut Vec<Output>) {
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
            self.wanted.get_or_insert(Cause::Start);
        }
    }
}
