//! What the renewer's thread is sent.

use super::member::Member;
use crate::config::Fault;
use crate::desync::Desync;
use crate::inbound_keys::Notice;
use crate::mailbox::Mailbox;
use crate::shared_keys::SharedKeys;
use esp::Limits;
use keying::message::Cause;
use std::sync::{Arc, mpsc};

/// Asks for new negotiated keys of a tunnel, or of all, and does not wait.
pub type Control = Box<dyn Fn(Option<u16>, Cause) + Send>;

/// What lanes, the control channel, and who asks for new keys say.
pub(super) enum Message {
    Join(Member),
    /// A lane looks there for notices.
    Notify(Arc<Mailbox<Notice>>),
    /// Who is to be asked for new negotiated keys.
    Control(Control),
    /// The SA of that member, of that epoch, is nearly used up.
    Renew {
        member: usize,
        epoch: u32,
        sealed: Limits,
    },
    /// New keys for all.
    Rekey,
    /// A tunnel's ring has another epoch to seal in.
    Switched(u16),
    /// For all lanes.
    Notice(Notice),
    /// A packet of the peer's epoch was authentic: a restart must know.
    Record(SharedKeys, u32),
    /// Of a tunnel, from a lane.
    Desync(u16, u16, Desync),
    Inject(Fault),
}

/// Without the renewer nobody answers, and SAs stop where they must.
pub(super) fn send(asked: &mpsc::Sender<Message>, message: Message) {
    let _ = asked.send(message);
}
