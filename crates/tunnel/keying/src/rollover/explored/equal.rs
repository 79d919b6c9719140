//! When two states are equal: times are relative to now, and fields without effect are left out.

use super::super::Rollover;
use super::super::attempt::{Running, Stage};
use super::{Connection, Gateway, Item, World, key};
use crate::message::Message;
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
        for gateway in &self.gateways {
            let Gateway {
                rollover,
                incarnation,
                taken,
                outbound,
                inbound,
            } = gateway;
            (incarnation, taken, outbound, inbound).hash(hasher);
            self.hash_machine(rollover, hasher);
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
            for queue in queues {
                queue.len().hash(hasher);
                for item in queue {
                    match item {
                        // Numbers of pings are for people.
                        Item::Message(Message::Ping { .. }) => "ping".hash(hasher),
                        Item::Message(Message::Pong { .. }) => "pong".hash(hasher),
                        // A confirmation is that of the connection's only secret.
                        item => format!("{item:?}").hash(hasher),
                    }
                }
            }
        }
    }
}

impl World {
    pub(super) fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        hasher.finish()
    }

    /// Without what has no effect here: how often it failed (all pauses are equal), and when the
    /// next epoch is due (never).
    fn hash_machine<H: Hasher>(&self, rollover: &Rollover, hasher: &mut H) {
        let ahead = |time: Duration| time.saturating_sub(self.now);
        let ago = |time: Duration| self.now.saturating_sub(time);
        let Rollover {
            epochs,
            running,
            standing,
            wanted,
            asked,
            not_before,
            ..
        } = rollover;
        (wanted, asked.map(ago), ahead(*not_before)).hash(hasher);
        (rollover.newest, rollover.established).hash(hasher);
        epochs.last().hash(hasher);
        epochs.outbound().hash(hasher);
        epochs
            .endings()
            .for_each(|(epoch, until)| (epoch, until.map(ahead)).hash(hasher));
        if let Some(running) = running {
            (running.attempt, ago(running.began), ahead(running.ends)).hash(hasher);
            (running.cause, running.is_connected).hash(hasher);
            hash_stage(running, hasher);
        }
        "standing".hash(hasher);
        if let Some(standing) = standing {
            let (heard, pinged) = standing.times();
            (standing.attempt, ago(heard), ago(pinged)).hash(hasher);
        }
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
        Stage::Switched(secret) | Stage::Installed(secret) | Stage::Over(secret) => {
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
