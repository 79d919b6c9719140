//! Renewal of keys: when an SA nears its lifetime (RFC 4301 §4.4.2.1), on demand, and when both
//! sides have negotiated new ones. Peers' epochs are written to disk here too, off the packet path.
//!
//! A lane requests new keys in time, and continues with the old SA meanwhile. For tunnels with
//! static keys the renewer's thread draws the next epoch, which writes to disk, and puts new SAs
//! into the mailboxes of all lanes and tunnels with keys from the same file: they share the epoch,
//! because a peer that restarts knows only the newest. The peer learns of the epoch from its first
//! packet. A failed write is retried, except for renewal on demand, which the caller must repeat.
//!
//! For tunnels with negotiated keys the thread asks the control channel ([`Renewer::set_control`]),
//! which reports through the [`Switchboard`] when both sides have new keys.

mod allowance;
mod client;
mod desyncs;
mod member;
mod message;
mod state;

pub use client::{LANES_MAX_WAIT, Switchboard};
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

/// Interval of checks for failed engines, and of retries.
const CHECK_EVERY: Duration = Duration::from_secs(1);

/// Interval of checks whether all lanes have the keys that were requested on demand.
const CHECK_LANES_EVERY: Duration = Duration::from_millis(1);

/// Owner of the thread that renews keys. Dropping it joins the thread, which ends once the lanes
/// and the control channel, which send to it too, are dropped: drop them first.
#[derive(Debug)]
pub struct Renewer {
    asked: Rekeyer,
    members: AtomicUsize,
    thread: Option<JoinHandle<()>>,
}

/// Requests new keys for all tunnels. Clones share one renewer, and do not keep it alive.
#[derive(Debug, Clone, Default)]
pub struct Rekeyer {
    /// `None` when the renewer is gone.
    asked: Arc<Mutex<Option<mpsc::Sender<Message>>>>,
    rekeys: Arc<AtomicU64>,
    /// The control channel, if keys are negotiated.
    control: Option<control::Handle>,
}

impl Rekeyer {
    /// The same handle, which also reaches the control channel.
    #[must_use]
    pub fn with_control(self, control: Option<control::Handle>) -> Self {
        Self { control, ..self }
    }

    /// Reads the certificate of this gateway again, without waiting, and then requests new keys of
    /// every tunnel with negotiated keys. Failures are logged to standard error.
    pub fn reload(&self) {
        if let Some(control) = &self.control {
            control.reload();
        }
    }

    /// Requests a new epoch of every key file and of every tunnel with negotiated keys, without
    /// waiting. Failures are logged to standard error.
    pub fn ask(&self) {
        self.send(Message::Rekey);
    }

    /// Injects a fault into the negotiated inbound keys of all tunnels, for tests and for
    /// measurements of the recovery.
    pub fn inject(&self, fault: Fault) {
        self.send(Message::Inject(fault));
    }

    /// Number of requests that are fulfilled: once the count includes a request, no lane seals with
    /// keys older than that request. Tunnels that had no keys at the time of the request do not
    /// count.
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
        self.lock()
            .clone()
            .expect("the sender exists until the renewer is dropped")
    }

    fn lock(&self) -> MutexGuard<'_, Option<mpsc::Sender<Message>>> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Renewer {
    /// Starts the thread. It also logs when an engine of `dispatch` failed and was replaced.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(dispatch: &Dispatch) -> io::Result<Self> {
        Self::start_with(dispatch, Arc::default())
    }

    /// As [`start`](Self::start), and records events of negotiated keys in `status`.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn start_with(dispatch: &Dispatch, status: Arc<Status>) -> io::Result<Self> {
        // The thread ends when the last sender is dropped, after it has handled all messages.
        let (asked, messages) = mpsc::channel();
        let rekeys = Arc::default();
        let mut state = RenewerState::new(dispatch.clone(), Arc::clone(&rekeys), status);
        let work = move || {
            let mut connected = true;
            let mut tried = Instant::now();
            while connected {
                let check_every = if state.waits_for_lanes() {
                    CHECK_LANES_EVERY
                } else {
                    CHECK_EVERY
                };
                match messages.recv_timeout(check_every) {
                    Ok(message) => state.take(message),
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => connected = false,
                }
                // Neither a flood of messages nor the shorter interval for lanes changes this one.
                if tried.elapsed() >= CHECK_EVERY {
                    state.try_again();
                    tried = Instant::now();
                }
                state.check_lanes();
                // After the last message too, so that the last failure is logged.
                state.log_replaced();
            }
        };
        let thread = thread::Builder::new().name("renewer".into()).spawn(work)?;
        Ok(Self {
            asked: Rekeyer {
                asked: Arc::new(Mutex::new(Some(asked))),
                rekeys,
                control: None,
            },
            members: AtomicUsize::new(0),
            thread: Some(thread),
        })
    }

    /// Returns a handle that requests new keys.
    #[must_use]
    pub fn rekeyer(&self) -> Rekeyer {
        self.asked.clone()
    }

    /// Sets the function that requests new negotiated keys.
    pub fn set_control(&self, control: Control) {
        self.asked.send(Message::Control(control));
    }

    /// Returns the handle that informs lanes of changes to negotiated keys.
    #[must_use]
    pub fn switchboard(&self) -> Switchboard {
        Switchboard(self.asked.sender())
    }

    /// Registers a lane's tunnels, `None` for those without keys, and returns the lane's client.
    pub(crate) fn client(
        &self,
        selection: &Dispatch,
        tunnels: Vec<Option<Renewable>>,
    ) -> RenewalClient {
        let asked = self.asked.sender();
        let mailbox = Arc::new(Mailbox::new());
        let join = |(tunnel, own): (usize, Option<Renewable>)| {
            // A tunnel without keys gets a number too, so that a lane's list has one entry per
            // tunnel.
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

    /// Returns the mailbox for changes to a lane's inbound keys.
    pub(crate) fn notices(&self) -> Arc<Mailbox<Notice>> {
        let mailbox = Arc::new(Mailbox::new());
        self.asked.send(Message::Notify(Arc::clone(&mailbox)));
        mailbox
    }

    /// Returns the handle for a lane's reports on received packets.
    pub(crate) fn reporter(&self, lane: u16) -> Reporter {
        Reporter {
            asked: self.asked.sender(),
            lane,
        }
    }
}

impl Drop for Renewer {
    fn drop(&mut self) {
        // All rekeyers share this sender, so none of them keeps the thread alive.
        *self.asked.lock() = None;
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was printed by the thread.
            let _ = thread.join();
        }
    }
}
