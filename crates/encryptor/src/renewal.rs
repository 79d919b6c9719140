//! New keys for SAs that are nearly used up (RFC 4301 §4.4.2.1, lifetime).
//!
//! A lane asks in time, and goes on with the old SA meanwhile; a thread of its own draws the keys, which writes to the
//! disk, and leaves the new SA in the lane's `Mailbox`. The peer learns of the new epoch by the first packet.

use crate::lane::{SharedKeys, lock};
use crate::mailbox::Mailbox;
use dispatch::Dispatch;
use esp::OutboundSa;
use keying::epoch_of;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How often it looks whether an engine has failed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// A new SA for one of a lane's tunnels.
pub(crate) type NewSa = (u16, OutboundSa);

/// The thread that draws keys. It ends, and is waited for, when this is dropped, after the lanes that may ask.
#[derive(Debug)]
pub struct Renewer {
    asked: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
}

/// What a lane asks for.
struct Request {
    keys: SharedKeys,
    selection: Dispatch,
    slot: u16,
    /// The SA that is nearly used up.
    spi: u32,
    tunnel: u16,
    mailbox: Arc<Mailbox<NewSa>>,
}

impl Renewer {
    /// Starts it. It also tells when an engine of `dispatch` failed and was replaced.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(dispatch: &Dispatch) -> io::Result<Self> {
        let (asked, requests) = mpsc::channel();
        let dispatch = dispatch.clone();
        let work = move || {
            let mut told = Vec::new();
            loop {
                match requests.recv_timeout(LOOK_EVERY) {
                    Ok(request) => renew(request),
                    Err(RecvTimeoutError::Timeout) => tell_replaced(&dispatch, &mut told),
                    Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            tell_replaced(&dispatch, &mut told);
        };
        let thread = thread::Builder::new().name("renewer".into()).spawn(work)?;
        Ok(Self {
            asked: Some(asked),
            thread: Some(thread),
        })
    }

    /// A lane's way to ask.
    pub(crate) fn desk(&self, selection: &Dispatch, slots: Vec<Option<(u16, SharedKeys)>>) -> Desk {
        Desk {
            asked: self.asked.clone().expect("it is there until dropped"),
            selection: selection.clone(),
            waiting: vec![false; slots.len()],
            slots,
            mailbox: Arc::new(Mailbox::new()),
        }
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

/// Tells of engines that have failed since the last time.
fn tell_replaced(dispatch: &Dispatch, told: &mut Vec<&'static str>) {
    for replaced in dispatch.replaced() {
        if !told.contains(&replaced.engine) {
            eprintln!(
                "warning: engine {} failed and is used no more: {}",
                replaced.engine, replaced.reason
            );
            told.push(replaced.engine);
        }
    }
}

fn renew(request: Request) {
    let Request {
        keys,
        selection,
        slot,
        spi,
        tunnel,
        mailbox,
    } = request;
    let fresh = lock(&keys).outbound_after(epoch_of(spi), selection.suite(), slot);
    match fresh {
        Ok(fresh) => {
            let transform = selection.sealing(&fresh.keymat);
            mailbox.put((tunnel, OutboundSa::new(fresh.spi, transform)));
        }
        Err(error) => eprintln!(
            "warning: no new keys for tunnel {tunnel}, which stops when its SA is used up: {error}"
        ),
    }
}

/// Where one lane asks, and finds what it asked for.
pub(crate) struct Desk {
    asked: mpsc::Sender<Request>,
    selection: Dispatch,
    /// Slot and keys of each tunnel.
    slots: Vec<Option<(u16, SharedKeys)>>,
    /// Tunnels that have asked.
    waiting: Vec<bool>,
    mailbox: Arc<Mailbox<NewSa>>,
}

impl Desk {
    /// Asks for a new SA of a tunnel, once.
    #[cold]
    pub(crate) fn ask(&mut self, tunnel: u16, spi: u32) {
        let at = usize::from(tunnel);
        if std::mem::replace(&mut self.waiting[at], true) {
            return;
        }
        if let Some((slot, keys)) = &self.slots[at] {
            let request = Request {
                keys: Arc::clone(keys),
                selection: self.selection.clone(),
                slot: *slot,
                spi,
                tunnel,
                mailbox: Arc::clone(&self.mailbox),
            };
            // Without the renewer nobody answers, and the SA stops where it must.
            let _ = self.asked.send(request);
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
