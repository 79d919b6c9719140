//! The SAs that may have to be renewed.

use crate::mailbox::Mailbox;
use crate::shared_keys::{SharedKeys, lock};
use dispatch::Dispatch;
use esp::{Limits, OutboundSa};
use keying::message::Cause;
use std::sync::Arc;

/// A new SA for one of a lane's tunnels.
pub(crate) type NewSa = (u16, OutboundSa);

/// A tunnel's SA in one lane, for which new ones are to be made.
pub(crate) struct Renewable {
    pub slot: u16,
    pub keys: SharedKeys,
    /// Of the SA that the lane has; 0: none.
    pub epoch: u32,
    /// As [`LaneTunnel::lifetime`](crate::lane::LaneTunnel::lifetime).
    pub lifetime: Limits,
}

/// An SA that may have to be renewed.
pub(super) struct Member {
    pub number: usize,
    /// Its epoch is that of the SA that its lane has, or finds next.
    pub own: Renewable,
    pub selection: Dispatch,
    pub tunnel: u16,
    pub mailbox: Arc<Mailbox<NewSa>>,
}

impl Member {
    /// Leaves its lane an SA of the epoch that its keys are to seal in, unless it has one.
    pub(super) fn renew(&mut self) {
        let mut keys = lock(&self.own.keys);
        let Some(epoch) = keys.outbound_epoch().filter(|new| *new != self.own.epoch) else {
            return;
        };
        let Some(fresh) = keys.outbound(self.selection.suite(), self.own.slot) else {
            return;
        };
        drop(keys);
        self.own.epoch = epoch;
        let transform = self.selection.sealing(&fresh.keymat);
        let sa = OutboundSa::new(fresh.spi, transform).with_lifetime(self.own.lifetime);
        let tunnel = self.tunnel;
        self.mailbox
            .put((tunnel, sa), |(other, _)| *other == tunnel);
    }

    /// Why new keys are asked for when it has sealed so much.
    pub(super) fn cause(&self, sealed: Limits) -> Cause {
        let of_cipher = Limits::of(self.selection.suite()).bytes / 2;
        if sealed.bytes >= self.own.lifetime.bytes.min(of_cipher) {
            Cause::Bytes
        } else {
            Cause::Packets
        }
    }
}
