//! New keys for SAs that are nearly used up (RFC 4301 §4.4.2.1, lifetime), for all when somebody asks, and when both sides
//! have agreed on some; and what else must reach the disk.
//!
//! A lane asks in time, and goes on with the old SA meanwhile. For tunnels with static keys a thread of its own draws the
//! next epoch, which writes to the disk, and leaves new SAs in the mailboxes of all lanes and tunnels that have keys of
//! the same file: an epoch is one for all of them, and a peer that comes back knows the newest only. The peer learns of
//! it by the first packet. What cannot be written is tried again; but who asks for new keys asks again.
//!
//! For tunnels with negotiated keys that thread asks the control channel ([`Renewer::set_control`]), which tells when both
//! sides have new ones ([`Switchboard`]).

mod client;
mod desyncs;
mod member;
mod message;
mod state;

pub use client::Switchboard;
pub(crate) use client::{RenewalClient, Reporter};
pub(crate) use member::Renewable;
pub use message::Control;

use crate::config::Fault;
use crate::inbound_keys::Notice;
use crate::mailbox::Mailbox;
use crate::status::Status;
use dispatch::Dispatch;
use member::Member;
use message::{Message, send};
use state::RenewerState;
use std::io;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often it looks whether an engine has failed, and tries again what did not work.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// How often it looks whether all lanes have the keys that somebody asked for.
const LOOK_AT_LANES_EVERY: Duration = Duration::from_millis(1);

/// The thread that draws keys. It ends, and is waited for, when this is dropped, after the lanes that may ask and the
/// control channel that may tell.
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
    /// Asks for a new epoch of every key file, and of every tunnel whose keys are negotiated, and does not wait. What
    /// fails is told on the standard error.
    pub fn ask(&self) {
        self.send(Message::Rekey);
    }

    /// Makes negotiated keys to open with fail, in all tunnels that have some. For tests and measurements of what then
    /// happens.
    pub fn inject(&self, fault: Fault) {
        self.send(Message::Inject(fault));
    }

    /// How often new keys were asked for and are in use: from the moment that a number is up, no lane seals with keys
    /// from before it was asked for. Tunnels that had no keys then do not count.
    #[must_use]
    pub fn rekeys(&self) -> u64 {
        self.rekeys.load(Ordering::Acquire)
    }

    fn send(&self, message: Message) {
        if let Some(asked) = &*self.lock() {
            send(asked, message);
        }
    }

    fn sender(&self) -> mpsc::Sender<Message> {
        self.lock().clone().expect("it is there until dropped")
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<Message>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Renewer {
    /// Starts it. It also tells when an engine of `dispatch` failed and was replaced.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(dispatch: &Dispatch) -> io::Result<Self> {
        Self::start_with(dispatch, Arc::default())
    }

    /// Starts it; what happens to negotiated keys is noted in `status`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(dispatch: &Dispatch, status: Arc<Status>) -> io::Result<Self> {
        let (asked, messages) = mpsc::channel();
        let rekeys = Arc::default();
        let mut state = RenewerState::new(dispatch.clone(), Arc::clone(&rekeys), status);
        let work = move || {
            let mut lanes_are_there = true;
            let mut tried = Instant::now();
            while lanes_are_there {
                let look_every = match state.waits_for_lanes() {
                    false => LOOK_EVERY,
                    true => LOOK_AT_LANES_EVERY,
                };
                match messages.recv_timeout(look_every) {
                    Ok(message) => state.take(message),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => lanes_are_there = false,
                }
                // Neither messages without end nor a look at lanes change how often.
                if tried.elapsed() >= LOOK_EVERY {
                    state.try_again();
                    tried = Instant::now();
                }
                state.look_at_lanes();
                // Also of what failed last.
                state.tell_replaced();
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

    /// Says who is to be asked for new negotiated keys.
    pub fn set_control(&self, control: Control) {
        self.asked.send(Message::Control(control));
    }

    /// What tells the lanes of the tunnels' negotiated keys.
    #[must_use]
    pub fn switchboard(&self) -> Switchboard {
        Switchboard(self.asked.sender())
    }

    /// A lane's way to ask: with what each of its tunnels has that has keys.
    pub(crate) fn client(
        &self,
        selection: &Dispatch,
        tunnels: Vec<Option<Renewable>>,
    ) -> RenewalClient {
        let asked = self.asked.sender();
        let mailbox = Arc::new(Mailbox::new());
        let join = |(tunnel, own): (usize, Option<Renewable>)| {
            let number = self.members.fetch_add(1, Ordering::Relaxed);
            if let Some(own) = own {
                let member = Member {
                    number,
                    own,
                    selection: selection.clone(),
                    tunnel: tunnel as u16,
                    mailbox: Arc::clone(&mailbox),
                };
                send(&asked, Message::Join(member));
            }
            number
        };
        let members: Vec<_> = tunnels.into_iter().enumerate().map(join).collect();
        RenewalClient {
            waiting: vec![false; members.len()],
            members,
            mailbox,
            asked,
        }
    }

    /// Where a lane finds what has happened to the keys that it opens with.
    pub(crate) fn notices(&self) -> Arc<Mailbox<Notice>> {
        let mailbox = Arc::new(Mailbox::new());
        self.asked.send(Message::Notify(Arc::clone(&mailbox)));
        mailbox
    }

    /// A lane's way to tell of what has come.
    pub(crate) fn reporter(&self, lane: u16) -> Reporter {
        Reporter {
            asked: self.asked.sender(),
            lane,
        }
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
