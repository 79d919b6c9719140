//! What lanes and the control channel send to the renewer's thread.

use super::member::NewSa;
use super::message::{Message, send};
use crate::desync::Desync;
use crate::inbound_keys::Notice;
use crate::mailbox::Mailbox;
use crate::shared_keys::SharedKeys;
use esp::OutboundSa;
use keying::epoch_of;
use std::sync::{Arc, mpsc};

/// Tells all lanes what has happened to a tunnel's ring ([`keying::KeyRing`]), after it has. Does not wait for them.
#[derive(Debug, Clone)]
pub struct Switchboard(pub(super) mpsc::Sender<Message>);

impl Switchboard {
    /// The tunnel is to seal in another epoch.
    pub fn switched(&self, tunnel: u16) {
        send(&self.0, Message::Switched(tunnel));
    }

    /// The peer sends in some epoch no more.
    pub fn retired(&self, tunnel: u16) {
        send(&self.0, Message::Notice(Notice::Retired(tunnel)));
    }
}

/// Where a lane tells of packets that have come.
pub(crate) struct Reporter {
    pub(super) asked: mpsc::Sender<Message>,
    pub(super) lane: u16,
}

impl Reporter {
    /// Has the epoch of a peer recorded, off the packet path.
    pub(crate) fn record(&self, keys: &SharedKeys, epoch: u32) {
        send(&self.asked, Message::Record(Arc::clone(keys), epoch));
    }

    /// Tells of a peer that has other keys.
    pub(crate) fn desync(&self, tunnel: u16, news: Desync) {
        send(&self.asked, Message::Desync(tunnel, self.lane, news));
    }
}

/// Where one lane asks, and finds what it asked for.
pub(crate) struct RenewalClient {
    pub(super) asked: mpsc::Sender<Message>,
    /// Of each tunnel.
    pub(super) members: Vec<usize>,
    /// Tunnels that have asked.
    pub(super) waiting: Vec<bool>,
    pub(super) mailbox: Arc<Mailbox<NewSa>>,
}

impl RenewalClient {
    /// Asks for a new SA of a tunnel, in place of this one, once.
    #[cold]
    pub(crate) fn ask(&mut self, tunnel: u16, sa: &OutboundSa) {
        let at = usize::from(tunnel);
        if !std::mem::replace(&mut self.waiting[at], true) {
            let message = Message::Renew {
                member: self.members[at],
                epoch: epoch_of(sa.spi()),
                sealed: sa.sealed(),
            };
            send(&self.asked, message);
        }
    }

    /// The lane goes to wait for packets: it will [wake](Self::wake), and look here, before it seals any.
    pub(crate) fn rest(&self) {
        self.mailbox.rest();
    }

    /// The lane has waited.
    pub(crate) fn wake(&self) {
        self.mailbox.wake();
    }

    /// What has come since the last time.
    #[inline]
    pub(crate) fn collect(&mut self) -> Vec<NewSa> {
        let come = self.mailbox.take();
        for (tunnel, _) in &come {
            self.waiting[usize::from(*tunnel)] = false;
        }
        come
    }
}
