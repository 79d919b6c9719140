//! The channel of the attempt that succeeded last: requests for a new epoch, and whether the peer is there.

use super::attempt::Broken;
use super::{Attempt, Event, Output, Role, Rollover};
use crate::message::{Cause, Message, Refusal};
use std::time::Duration;

/// A channel on which nothing came for so many times the pings' interval is dead.
const PINGS_UNANSWERED: u32 = 3;

/// The channel.
pub(super) struct Standing {
    pub(super) attempt: Attempt,
    /// When anything last came.
    heard: Duration,
    /// When it was last asked whether the peer is there.
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

    /// When there is something to do: ask, or give up.
    pub(super) fn wakes_at(&self, ping_every: Duration) -> Duration {
        self.asks_at(ping_every).min(self.dies_at(ping_every))
    }

    fn asks_at(&self, ping_every: Duration) -> Duration {
        self.heard.max(self.pinged) + ping_every
    }

    fn dies_at(&self, ping_every: Duration) -> Duration {
        self.heard + ping_every * PINGS_UNANSWERED
    }
}

impl Rollover {
    /// A message over the standing channel.
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

    /// Asks whether the peer is there, and notices that it is not.
    pub(super) fn look_at_standing(&mut self, now: Duration, out: &mut Vec<Output>) {
        let ping_every = self.settings.ping_every;
        let Some(standing) = &mut self.standing else {
            return;
        };
        if standing.dies_at(ping_every) <= now {
            let silent = (ping_every * PINGS_UNANSWERED).as_millis();
            let detail = format!(
                "nothing came from {} for {silent} ms",
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

    /// There is no standing channel any more. The keys stay in force: packets may find their way all the same.
    pub(super) fn lost(&mut self, detail: String, out: &mut Vec<Output>) {
        // A listener closes it when it goes over to the new one; `Done` may come a moment later.
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
