//! When two states are equal: times are relative to now, and fields without effect are left out.

use super::world::{Connection, Gateway, Item, Key, World, key};
use crate::message::Message;
use crate::rollover::Rollover;
use crate::rollover::attempt::{Running, Stage};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

impl PartialEq for World {
    fn eq(&self, other: &Self) -> bool {
        self.digest() == other.digest()
    }
}

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.left.hash(hasher);
        self.opened.hash(hasher);
        self.sealed.hash(hasher);
        self.installed.hash(hasher);
        self.broken.hash(hasher);
        self.repeated.hash(hasher);
        self.excuses.hash(hasher);
        for (side, gateway) in self.gateways.iter().enumerate() {
            hash_gateway(gateway, gateway.clock(self.now), hasher);
            let said = gateway.rollover.said;
            self.unheard(side, gateway.outbound, said).hash(hasher);
        }
        for (side, snapshot) in self.snapshots.iter().enumerate() {
            "snapshot".hash(hasher);
            if let Some((then, gateway)) = snapshot {
                hash_gateway(gateway, gateway.clock(*then), hasher);
                let Rollover { said, heard, .. } = &gateway.rollover;
                let unheard = self.unheard(side, gateway.outbound, *said);
                unheard.max(-1).hash(hasher);
                let peer = &self.gateways[1 - side];
                let is_shared = gateway.outbound == peer.outbound;
                // A restored side has heard less than its peer has said: never too much.
                let is_behind = is_shared && peer.rollover.said >= *heard;
                is_behind.hash(hasher);
            }
        }
        for connection in &self.connections {
            let Connection {
                number,
                ends,
                is_up,
                is_cut,
                queues,
            } = connection;
            (number, ends, is_up, is_cut).hash(hasher);
            for (sender, queue) in [1, 0].into_iter().zip(queues) {
                queue.len().hash(hasher);
                for item in queue {
                    match item {
                        // Numbers of pings are for people.
                        Item::Message(Message::Ping { .. }) => "ping".hash(hasher),
                        Item::Message(Message::Pong { .. }) => "pong".hash(hasher),
                        // The confirmation of a secret that is older than the connection.
                        Item::Message(
                            Message::Keep { confirmation, said }
                            | Message::Kept { confirmation, said },
                        ) => {
                            let seals = self.gateways[sender].outbound;
                            (confirmation.0, self.unheard(sender, seals, *said)).hash(hasher);
                        }
                        // Any other confirmation comes from the connection's only secret.
                        item => format!("{item:?}").hash(hasher),
                    }
                }
            }
        }
    }
}

impl World {
    /// How many messages a side has sent, minus the number that its peer has received: only that
    /// decides whether keys are kept.
    fn unheard(&self, side: usize, seals: Option<Key>, said: u64) -> i64 {
        let peer = &self.gateways[1 - side];
        if seals == peer.outbound {
            said as i64 - peer.rollover.heard as i64
        } else {
            0
        }
    }

    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }
}

fn hash_gateway<H: Hasher>(gateway: &Gateway, clock: Duration, hasher: &mut H) {
    let Gateway {
        rollover,
        incarnation,
        taken,
        outbound,
        inbound,
        ahead: _,
        // The machine's budget already determines further proposals.
        proposals: _,
    } = gateway;
    (incarnation, taken, outbound, inbound).hash(hasher);
    hash_machine(rollover, clock, hasher);
}

/// Hashes a machine without the fields that have no effect here: how often it failed (all pauses
/// are equal), when the next epoch is due and when keys expire (only by a jump of the clock, which
/// exceeds both).
fn hash_machine<H: Hasher>(rollover: &Rollover, clock: Duration, hasher: &mut H) {
    let ahead = |time: Duration| time.saturating_sub(clock);
    let ago = |time: Duration| clock.saturating_sub(time);
    let Rollover {
        settings,
        epochs,
        running,
        standing,
        wanted,
        asked,
        not_before,
        budget,
        is_new_epoch_untried,
        ..
    } = rollover;
    (wanted, asked.map(ago), ahead(*not_before)).hash(hasher);
    (rollover.newest, rollover.established).hash(hasher);
    (budget.level(clock), is_new_epoch_untried).hash(hasher);
    epochs.last().hash(hasher);
    epochs
        .outbound_secret()
        .map(|secret| key(secret))
        .hash(hasher);
    epochs
        .endings()
        .for_each(|(epoch, until)| (epoch, until.map(ahead)).hash(hasher));
    if let Some(running) = running {
        (running.attempt, ago(running.began), ahead(running.ends)).hash(hasher);
        (running.cause, running.is_connected, running.may_keep).hash(hasher);
        hash_stage(running, hasher);
    }
    "standing".hash(hasher);
    if let Some(standing) = standing {
        let [began, heard, pinged] = standing.times();
        // Longer ago than this it counts as lasting.
        let lasts = ago(began).min(settings.attempt_limit);
        (standing.attempt, lasts, ago(heard), ago(pinged)).hash(hasher);
    }
}

fn hash_stage<H: Hasher>(running: &Running, hasher: &mut H) {
    let stage = running.stage();
    std::mem::discriminant(stage).hash(hasher);
    match stage {
        Stage::Opened(offer) => format!("{offer:?}").hash(hasher),
        Stage::Asking(agreed, _)
        | Stage::Proposed(agreed, _)
        | Stage::Answered(agreed, _)
        | Stage::Looking(agreed, ..) => {
            (agreed.epoch, agreed.peer_sends_in, agreed.peer_is_new).hash(hasher);
        }
        Stage::Switched(secret)
        | Stage::Installed(secret)
        | Stage::Keeping(secret)
        | Stage::Kept(secret)
        | Stage::Over(secret) => {
            key(secret).hash(hasher);
        }
        Stage::Connecting | Stage::Accepted => {}
    }
}

impl fmt::Debug for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} {:?} {:?}", self.now, self.left, self.broken)?;
        for gateway in &self.gateways {
            let Gateway {
                outbound, inbound, ..
            } = gateway;
            write!(f, "\n  seals {outbound:x?}, opens {inbound:x?}")?;
        }
        for connection in &self.connections {
            write!(f, "\n  {connection:?}")?;
        }
        Ok(())
    }
}
