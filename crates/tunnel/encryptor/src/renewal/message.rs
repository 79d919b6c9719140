//! Messages to the renewer's thread.

use super::member::Member;
use crate::config::Fault;
use crate::desync::Desync;
use crate::inbound_keys::Notice;
use crate::mailbox::Mailbox;
use crate::shared_keys::SharedKeys;
use esp::Limits;
use keying::message::Cause;
use std::sync::{Arc, mpsc};

/// Requests new negotiated keys of one tunnel, or of all tunnels for `None`, without waiting.
pub type Control = Box<dyn Fn(Option<u16>, Cause) + Send>;

/// A message from a lane, the control channel or a [`Rekeyer`](super::Rekeyer).
pub(super) enum Message {
    Join(Member),
    /// A lane's mailbox for notices.
    Notify(Arc<Mailbox<Notice>>),
    /// The function that requests new negotiated keys.
    Control(Control),
    /// The member's SA with this SPI has sealed this much, and nears its lifetime.
    Renew {
        member: usize,
        spi: u32,
        sealed: Limits,
    },
    /// Renew all keys.
    Rekey,
    /// A tunnel's ring has a new epoch to seal in. The sender waits until all lanes were given it.
    Switched(u16, mpsc::Sender<()>),
    /// A tunnel's ring has no outbound epoch left.
    Expired(u16),
    /// A notice for all lanes.
    Notice(Notice),
    /// A packet of the peer's epoch was authentic; record the epoch for a restart.
    Record(SharedKeys, u32),
    /// A report on a tunnel, the first number, from a lane, the second.
    Desync(u16, u16, Desync),
    Inject(Fault),
}

/// Sends a message. Without the renewer it is dropped, and SAs stop at their limits.
pub(super) fn send(asked: &mpsc::Sender<Message>, message: Message) {
    let _ = asked.send(message);
}
