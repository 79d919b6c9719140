//! Handles of lanes and the control channel to the renewer's thread.

use super::member::NewSa;
use super::message::{Message, send};
use crate::desync::Desync;
use crate::inbound_keys::Notice;
use crate::mailbox::Mailbox;
use crate::shared_keys::SharedKeys;
use esp::OutboundSa;
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// How long the control channel waits for the SAs of all lanes: usually some microseconds, longer
/// while the renewer writes an epoch file.
pub const LANES_MAX_WAIT: Duration = Duration::from_millis(200);

/// Informs all lanes of a change to a tunnel's [`keying::KeyRing`]; called after the change.
#[derive(Debug, Clone)]
pub struct Switchboard(pub(super) mpsc::Sender<Message>);

impl Switchboard {
    /// The tunnel now seals in another epoch. Returns when each lane finds its SA before it seals
    /// the next packets, or after [`LANES_MAX_WAIT`].
    pub fn switched(&self, tunnel: u16) {
        let (done, is_done) = mpsc::channel();
        send(&self.0, Message::Switched(tunnel, done));
        // Without the renewer there are no lanes either.
        let _ = is_done.recv_timeout(LANES_MAX_WAIT);
    }

    /// The hard lifetime of the tunnel's epoch is over.
    pub fn expired(&self, tunnel: u16) {
        send(&self.0, Message::Expired(tunnel));
    }

    /// The peer no longer sends in some epoch.
    pub fn retired(&self, tunnel: u16) {
        send(&self.0, Message::Notice(Notice::Retired(tunnel)));
    }
}

/// A lane's reports on received packets.
pub(crate) struct Reporter {
    pub(super) asked: mpsc::Sender<Message>,
    pub(super) lane: u16,
}

impl Reporter {
    /// Records the epoch of a peer, off the packet path.
    pub(crate) fn record(&self, keys: &SharedKeys, epoch: u32) {
        send(&self.asked, Message::Record(Arc::clone(keys), epoch));
    }

    /// Reports that a peer has other keys, or the same again.
    pub(crate) fn desync(&self, tunnel: u16, news: Desync) {
        send(&self.asked, Message::Desync(tunnel, self.lane, news));
    }
}

/// A lane's requests for new outbound SAs, and the mailbox that receives the SAs.
pub(crate) struct RenewalClient {
    pub(super) asked: mpsc::Sender<Message>,
    /// Member number of each tunnel.
    pub(super) members: Vec<usize>,
    /// Whether each tunnel has a pending request.
    pub(super) waiting: Vec<bool>,
    pub(super) mailbox: Arc<Mailbox<NewSa>>,
}

impl RenewalClient {
    /// Requests a new SA of a tunnel in place of `sa`, unless a request is pending.
    #[cold]
    pub(crate) fn ask(&mut self, tunnel: u16, sa: &OutboundSa) {
        let at = usize::from(tunnel);
        // Every packet beyond the limit asks; one message is enough.
        if !std::mem::replace(&mut self.waiting[at], true) {
            let message = Message::Renew {
                member: self.members[at],
                spi: sa.spi(),
                sealed: sa.sealed(),
            };
            send(&self.asked, message);
        }
    }

    /// Marks the lane as waiting for packets: before it seals one, it calls [`wake`](Self::wake)
    /// and then [`collect`](Self::collect).
    pub(crate) fn rest(&self) {
        self.mailbox.rest();
    }

    /// Marks the lane as running.
    pub(crate) fn wake(&self) {
        self.mailbox.wake();
    }

    /// Returns the SAs that arrived since the last call.
    #[inline]
    pub(crate) fn collect(&mut self) -> Vec<NewSa> {
        let come = self.mailbox.take();
        for (tunnel, _) in &come {
            self.waiting[usize::from(*tunnel)] = false;
        }
        come
    }
}
