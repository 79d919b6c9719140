//! The outbound SAs that the renewer replaces.

use crate::mailbox::Mailbox;
use crate::shared_keys::{SharedKeys, lock};
use crate::transforms::sealing;
use dispatch::Dispatch;
use esp::{Limits, OutboundSa};
use keying::message::Cause;
use std::sync::Arc;

/// A lane's tunnel, and its new SA; `None`: its SA has expired.
pub(crate) type NewSa = (u16, Option<OutboundSa>);

/// A tunnel's outbound SA in one lane, as the lane registers it.
pub(crate) struct Renewable {
    pub slot: u16,
    pub keys: SharedKeys,
    /// Epoch of the lane's SA; 0: none.
    pub epoch: u32,
    /// SPI of the lane's SA; 0: none.
    pub spi: u32,
    /// As [`LaneTunnel::lifetime`](crate::lane::LaneTunnel::lifetime).
    pub lifetime: Limits,
}

/// A registered SA.
pub(super) struct Member {
    pub number: usize,
    /// The SA parameters, with the epoch of the newest SA that the lane has or finds in its
    /// mailbox.
    pub own: Renewable,
    pub selection: Dispatch,
    pub tunnel: u16,
    pub mailbox: Arc<Mailbox<NewSa>>,
}

impl Member {
    /// Puts an SA of the keys' outbound epoch into the lane's mailbox, or `None` if no epoch is
    /// left, unless the lane already has it.
    pub(super) fn renew(&mut self) {
        let mut keys = lock(&self.own.keys);
        let epoch = keys.outbound_epoch().unwrap_or(0);
        // Not an optimization only: a slot gets the keys of an epoch once, because a second SA
        // would repeat nonces.
        if epoch == self.own.epoch {
            return;
        }
        let fresh = keys.outbound(self.selection.suite(), self.own.slot);
        // All lanes share the lock, and a key schedule takes longer than it should be held.
        drop(keys);
        self.own.epoch = epoch;
        self.own.spi = fresh.as_ref().map_or(0, |fresh| fresh.spi);
        let sa = fresh.map(|fresh| {
            let transform = sealing(&self.selection, &fresh);
            OutboundSa::new(fresh.spi, transform).with_lifetime(self.own.lifetime)
        });
        let tunnel = self.tunnel;
        self.mailbox
            .put((tunnel, sa), |(other, _)| *other == tunnel);
    }

    /// The limit that makes new keys due for an SA that has sealed this much.
    pub(super) fn cause(&self, sealed: Limits) -> Cause {
        let of_cipher = Limits::of(self.selection.suite()).bytes / 2;
        if sealed.bytes >= self.own.lifetime.bytes.min(of_cipher) {
            Cause::Bytes
        } else {
            Cause::Packets
        }
    }
}
