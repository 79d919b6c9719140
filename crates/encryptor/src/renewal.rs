//! New keys for SAs that are nearly used up (RFC 4301 §4.4.2.1, lifetime) and for all when somebody asks, and what else
//! must reach the disk.
//!
//! A lane asks in time, and goes on with the old SA meanwhile; a thread of its own draws the next epoch, which writes to
//! the disk, and leaves new SAs in the mailboxes of all lanes and tunnels that have keys of the same file: an epoch
//! is one for all of them, and a peer that comes back knows the newest only. The peer learns of it by the first packet.
//! What cannot be written is tried again; but who asks for new keys asks again.

use crate::lane::{SharedKeys, lock};
use crate::mailbox::Mailbox;
use dispatch::Dispatch;
use esp::OutboundSa;
use keying::{KeyError, epoch_of};
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often it looks whether an engine has failed, and tries again what did not work.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often it looks whether all lanes have the keys that somebody asked for.
const LOOK_AT_LANES_EVERY: Duration = Duration::from_millis(1);

/// A new SA for one of a lane's tunnels.
pub(crate) type NewSa = (u16, OutboundSa);

/// The thread that draws keys. It ends, and is waited for, when this is dropped, after the lanes that may ask.
#[derive(Debug)]
pub struct Renewer {
    asked: Rekeyer,
    members: AtomicUsize,
    thread: Option<JoinHandle<()>>,
}

/// A way to ask for new keys for all tunnels; clones are the same. It keeps nothing alive.
#[derive(Debug, Clone, Default)]
pub struct Rekeyer {
    /// `None` when the renewer is gone.
    asked: Arc<Mutex<Option<mpsc::Sender<Message>>>>,
    rekeys: Arc<AtomicU64>,
}

impl Rekeyer {
    /// Asks for a new epoch of every key file, and does not wait. What fails is told on the standard error.
    pub fn ask(&self) {
        if let Some(asked) = &*self.lock() {
            send(asked, Message::Rekey);
        }
    }

    /// How often that was done: from the moment that a number is up, no lane seals with keys from before it was asked
    /// for.
    #[must_use]
    pub fn rekeys(&self) -> u64 {
        self.rekeys.load(Ordering::Acquire)
    }

    fn sender(&self) -> mpsc::Sender<Message> {
        self.lock().clone().expect("it is there until dropped")
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<Message>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
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

/// What lanes say, and who asks for new keys.
enum Message {
    Join(Member),
    /// The SA of that member, of that epoch, is nearly used up.
    Renew(usize, u32),
    /// New keys for all.
    Rekey,
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
            lanes_behind: Vec::new(),
            rekeying: 0,
            rekeys: Arc::default(),
        };
        let rekeys = Arc::clone(&desk.rekeys);
        let work = move || {
            let mut lanes_are_there = true;
            let mut tried = Instant::now();
            while lanes_are_there {
                let look_every = match desk.rekeying {
                    0 => LOOK_EVERY,
                    _ => LOOK_AT_LANES_EVERY,
                };
                match messages.recv_timeout(look_every) {
                    Ok(message) => desk.take(message),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => lanes_are_there = false,
                }
                // Neither messages without end nor a look at lanes change how often.
                if tried.elapsed() >= LOOK_EVERY {
                    desk.try_again();
                    tried = Instant::now();
                }
                desk.look_at_lanes();
                // Also of what failed last.
                desk.tell_replaced();
            }
        };
        let thread = thread::Builder::new().name("renewer".into()).spawn(work)?;
        Ok(Self {
            asked: Rekeyer {
                asked: Arc::new(Mutex::new(Some(asked))),
                rekeys,
            },
            members: AtomicUsize::new(0),
            thread: Some(thread),
        })
    }

    /// A way to ask for new keys.
    #[must_use]
    pub fn rekeyer(&self) -> Rekeyer {
        self.asked.clone()
    }

    /// A lane's way to ask: with slot, keys and SPI of each of its tunnels that has keys.
    pub(crate) fn desk(
        &self,
        selection: &Dispatch,
        tunnels: Vec<Option<(u16, SharedKeys, u32)>>,
    ) -> Desk {
        let asked = self.asked.sender();
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
        Recorder(self.asked.sender())
    }
}

impl Drop for Renewer {
    fn drop(&mut self) {
        *self.asked.lock() = None;
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
    /// Mailboxes of lanes that may seal with keys from before somebody asked for new ones.
    lanes_behind: Vec<Arc<Mailbox<NewSa>>>,
    /// How often that was asked for, and is not done.
    rekeying: u64,
    rekeys: Arc<AtomicU64>,
}

impl Back {
    fn take(&mut self, message: Message) {
        let done = match &message {
            Message::Renew(number, epoch) => self.renew(*number, *epoch),
            Message::Record(keys, epoch) => lock(keys).record_peer_epoch(*epoch),
            Message::Join(_) => Ok(()),
            Message::Rekey => self.rekey(),
        };
        match (message, done) {
            (Message::Join(member), _) => self.members.push(member),
            (_, Ok(())) => {}
            (Message::Rekey, Err(error)) => warn(format_args!("keys are not renewed: {error}")),
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

    /// Draws an epoch of each key file, and gives SAs of it to all.
    fn rekey(&mut self) -> Result<(), KeyError> {
        let mut drawn: Vec<(SharedKeys, u32)> = Vec::new();
        for member in &mut self.members {
            let known = drawn
                .iter()
                .find(|(of, _)| Arc::ptr_eq(of, &member.keys))
                .map(|(_, epoch)| *epoch);
            let epoch = match known {
                Some(epoch) => epoch,
                None => {
                    let epoch = lock(&member.keys).draw_epoch()?;
                    drawn.push((Arc::clone(&member.keys), epoch));
                    epoch
                }
            };
            member.renew(epoch);
            let mailbox = &member.mailbox;
            let mut behind = self.lanes_behind.iter();
            if !behind.any(|it| Arc::ptr_eq(it, mailbox)) {
                self.lanes_behind.push(Arc::clone(mailbox));
            }
        }
        self.rekeying += 1;
        Ok(())
    }

    /// Counts what was asked for as done when no lane is behind.
    fn look_at_lanes(&mut self) {
        self.lanes_behind.retain(|lane| !lane.is_up_to_date());
        if self.lanes_behind.is_empty() {
            let done = std::mem::take(&mut self.rekeying);
            self.rekeys.fetch_add(done, Ordering::Release);
        }
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
