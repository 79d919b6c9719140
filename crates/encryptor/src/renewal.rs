//! New keys for SAs that are nearly used up (RFC 4301 §4.4.2.1, lifetime), and what else must reach the disk.
//!
//! A lane asks in time, and goes on with the old SA meanwhile; a thread of its own draws the next epoch, which writes to
//! the disk, and leaves new SAs in the mailboxes of all lanes and tunnels that have keys of the same file: an epoch
//! is one for all of them, and a peer that comes back knows the newest only. The peer learns of it by the first packet.
//! What cannot be written is tried again.

use crate::lane::{SharedKeys, lock};
use crate::mailbox::Mailbox;
use dispatch::Dispatch;
use esp::OutboundSa;
use keying::{KeyError, epoch_of};
use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often it looks whether an engine has failed, and tries again what did not work.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A new SA for one of a lane's tunnels.
pub(crate) type NewSa = (u16, OutboundSa);

/// The thread that draws keys. It ends, and is waited for, when this is dropped, after the lanes that may ask.
#[derive(Debug)]
pub struct Renewer {
    asked: Option<mpsc::Sender<Message>>,
    members: AtomicUsize,
    thread: Option<JoinHandle<()>>,
}

/// An SA that may have to be renewed.
struct Member {
    number: usize,
    keys: SharedKeys,
    selection: Dispatch,
    slot: u16,
    /// Of the SA that its lane has, or finds next.
    epoch: u32,
    tunnel: u16,
    mailbox: Arc<Mailbox<NewSa>>,
}

/// What lanes say.
enum Message {
    Join(Member),
    /// The SA of that member, of that epoch, is nearly used up.
    Renew(usize, u32),
    /// A packet of the peer's epoch was authentic: a restart must know.
    Record(SharedKeys, u32),
}

impl Renewer {
    /// Starts it. It also tells when an engine of `dispatch` failed and was replaced.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(dispatch: &Dispatch) -> io::Result<Self> {
        let (asked, messages) = mpsc::channel();
        let mut desk = Back {
            dispatch: dispatch.clone(),
            told: Vec::new(),
            members: Vec::new(),
            again: Vec::new(),
        };
        let work = move || {
            let mut lanes_are_there = true;
            while lanes_are_there {
                match messages.recv_timeout(LOOK_EVERY) {
                    Ok(message) => desk.take(message),
                    Err(RecvTimeoutError::Timeout) => desk.try_again(),
                    Err(RecvTimeoutError::Disconnected) => lanes_are_there = false,
                }
                // Also of what failed last.
                desk.tell_replaced();
            }
        };
        let thread = thread::Builder::new().name("renewer".into()).spawn(work)?;
        Ok(Self {
            asked: Some(asked),
            members: AtomicUsize::new(0),
            thread: Some(thread),
        })
    }

    /// A lane's way to ask: with slot, keys and SPI of each of its tunnels that has keys.
    pub(crate) fn desk(
        &self,
        selection: &Dispatch,
        tunnels: Vec<Option<(u16, SharedKeys, u32)>>,
    ) -> Desk {
        let asked = self.asked.clone().expect("it is there until dropped");
        let mailbox = Arc::new(Mailbox::new());
        let join = |(tunnel, own): (usize, Option<(u16, SharedKeys, u32)>)| {
            let number = self.members.fetch_add(1, Ordering::Relaxed);
            if let Some((slot, keys, spi)) = own {
                let member = Member {
                    number,
                    keys,
                    selection: selection.clone(),
                    slot,
                    epoch: epoch_of(spi),
                    tunnel: tunnel as u16,
                    mailbox: Arc::clone(&mailbox),
                };
                send(&asked, Message::Join(member));
            }
            number
        };
        let members: Vec<_> = tunnels.into_iter().enumerate().map(join).collect();
        Desk {
            waiting: vec![false; members.len()],
            members,
            mailbox,
            asked,
        }
    }

    /// A lane's way to have peers' epochs recorded.
    pub(crate) fn recorder(&self) -> Recorder {
        Recorder(self.asked.clone().expect("it is there until dropped"))
    }
}

impl Drop for Renewer {
    fn drop(&mut self) {
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            // A panic there was told there.
            let _ = thread.join();
        }
    }
}

/// Without the renewer nobody answers, and SAs stop where they must.
fn send(asked: &mpsc::Sender<Message>, message: Message) {
    let _ = asked.send(message);
}

/// Tells people; a log that nobody reads any more must not end a thread.
pub(crate) fn warn(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "warning: {text}");
}

/// The thread's side.
struct Back {
    dispatch: Dispatch,
    /// Engines whose failure was told.
    told: Vec<&'static str>,
    members: Vec<Member>,
    /// What could not be done yet.
    again: Vec<Message>,
}

impl Back {
    fn take(&mut self, message: Message) {
        let done = match &message {
            Message::Renew(number, epoch) => self.renew(*number, *epoch),
            Message::Record(keys, epoch) => lock(keys).record_peer_epoch(*epoch),
            Message::Join(_) => Ok(()),
        };
        match (message, done) {
            (Message::Join(member), _) => self.members.push(member),
            (_, Ok(())) => {}
            (message, Err(error)) => {
                warn(format_args!("{error}; it is tried again"));
                self.again.push(message);
            }
        }
    }

    fn try_again(&mut self) {
        for message in std::mem::take(&mut self.again) {
            self.take(message);
        }
    }

    /// Draws an epoch, and gives SAs of it to all that have keys of the same file; to the one that asks last, so that
    /// the peer hears of the epoch when all have it.
    fn renew(&mut self, number: usize, epoch: u32) -> Result<(), KeyError> {
        let asking = self
            .members
            .iter()
            .position(|member| member.number == number);
        let Some(asking) = asking.filter(|at| self.members[*at].epoch <= epoch) else {
            return Ok(());
        };
        let keys = Arc::clone(&self.members[asking].keys);
        let epoch = lock(&keys).draw_epoch()?;
        let others = (0..self.members.len()).filter(|at| *at != asking);
        for at in others.chain([asking]) {
            let member = &mut self.members[at];
            if Arc::ptr_eq(&member.keys, &keys) {
                member.renew(epoch);
            }
        }
        Ok(())
    }

    /// Tells of engines that have failed since the last time.
    fn tell_replaced(&mut self) {
        for replaced in self.dispatch.replaced() {
            if !self.told.contains(&replaced.engine) {
                warn(format_args!(
                    "engine {} failed and is used no more: {}",
                    replaced.engine, replaced.reason
                ));
                self.told.push(replaced.engine);
            }
        }
    }
}

impl Member {
    fn renew(&mut self, epoch: u32) {
        let fresh = lock(&self.keys).outbound(self.selection.suite(), self.slot);
        let transform = self.selection.sealing(&fresh.keymat);
        self.epoch = epoch;
        self.mailbox
            .put((self.tunnel, OutboundSa::new(fresh.spi, transform)));
    }
}

/// Has the epochs of peers recorded, off the packet path.
pub(crate) struct Recorder(mpsc::Sender<Message>);

impl Recorder {
    pub(crate) fn record(&self, keys: &SharedKeys, epoch: u32) {
        send(&self.0, Message::Record(Arc::clone(keys), epoch));
    }
}

/// Where one lane asks, and finds what it asked for.
pub(crate) struct Desk {
    asked: mpsc::Sender<Message>,
    /// Of each tunnel.
    members: Vec<usize>,
    /// Tunnels that have asked.
    waiting: Vec<bool>,
    mailbox: Arc<Mailbox<NewSa>>,
}

impl Desk {
    /// Asks for a new SA of a tunnel, once.
    #[cold]
    pub(crate) fn ask(&mut self, tunnel: u16, spi: u32) {
        let at = usize::from(tunnel);
        if !std::mem::replace(&mut self.waiting[at], true) {
            send(&self.asked, Message::Renew(self.members[at], epoch_of(spi)));
        }
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
