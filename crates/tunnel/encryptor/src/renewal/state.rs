//! The state of the renewer's thread, and how it handles messages.

use super::desyncs::Desyncs;
use super::member::{Member, NewSa};
use super::message::{Control, Message};
use crate::config::Fault;
use crate::desync::Desync;
use crate::inbound_keys::Notice;
use crate::log::warn;
use crate::mailbox::Mailbox;
use crate::shared_keys::{SharedKeys, lock};
use crate::status::Status;
use dispatch::Dispatch;
use esp::Limits;
use keying::KeyError;
use keying::message::Cause;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The thread's state.
pub(super) struct RenewerState {
    dispatch: Dispatch,
    /// Engines with a logged failure.
    logged: Vec<&'static str>,
    members: Vec<Member>,
    notified: Vec<Arc<Mailbox<Notice>>>,
    control: Option<Control>,
    /// Failed messages, to be retried.
    retries: Vec<Message>,
    /// Mailboxes of lanes that may still seal with keys older than a demand for new ones.
    lanes_behind: Vec<Arc<Mailbox<NewSa>>>,
    /// Tunnels without newer negotiated keys since the demand, with their epoch at that time.
    tunnels_behind: BTreeMap<u16, u32>,
    /// Number of demands that are not fulfilled yet.
    rekeying: u64,
    rekeys: Arc<AtomicU64>,
    desyncs: Desyncs,
    /// The last problem that was logged.
    problem: Option<String>,
}

impl RenewerState {
    pub(super) fn new(dispatch: Dispatch, rekeys: Arc<AtomicU64>, status: Arc<Status>) -> Self {
        Self {
            dispatch,
            logged: Vec::new(),
            members: Vec::new(),
            notified: Vec::new(),
            control: None,
            retries: Vec::new(),
            lanes_behind: Vec::new(),
            tunnels_behind: BTreeMap::new(),
            rekeying: 0,
            rekeys,
            desyncs: Desyncs::new(status),
            problem: None,
        }
    }

    pub(super) fn take(&mut self, message: Message) {
        // By reference: a message that fails is kept for a retry.
        let done = match &message {
            Message::Renew {
                member,
                spi,
                sealed,
            } => self.renew(*member, *spi, *sealed),
            Message::Record(keys, epoch) => lock(keys).record_peer_epoch(*epoch),
            Message::Rekey => self.rekey(),
            Message::Switched(tunnel, done) => {
                self.desyncs.repaired(*tunnel);
                self.renew_tunnel(*tunnel);
                // The control channel waits no longer than it can.
                let _ = done.send(());
                Ok(())
            }
            Message::Expired(tunnel) => {
                self.renew_tunnel(*tunnel);
                self.notify(Notice::Expired(*tunnel));
                Ok(())
            }
            Message::Notice(notice) => {
                self.notify(*notice);
                Ok(())
            }
            Message::Desync(tunnel, lane, news) => {
                self.desync(*tunnel, *lane, *news);
                Ok(())
            }
            Message::Inject(fault) => {
                self.inject(*fault);
                Ok(())
            }
            Message::Join(_) | Message::Notify(_) | Message::Control(_) => Ok(()),
        };
        match (message, done) {
            (Message::Join(member), _) => self.members.push(member),
            (Message::Notify(mailbox), _) => self.notified.push(mailbox),
            (Message::Control(control), _) => self.control = Some(control),
            (_, Ok(())) => {}
            (Message::Rekey, Err(error)) => warn(format_args!("keys are not renewed: {error}")),
            (message, Err(error)) => {
                let problem = error.to_string();
                // It is retried each second.
                if self.problem.replace(problem.clone()) != Some(problem) {
                    warn(format_args!("{error}; retrying"));
                }
                self.retries.push(message);
            }
        }
    }

    pub(super) fn try_again(&mut self) {
        self.desyncs.flush_log();
        for message in std::mem::take(&mut self.retries) {
            self.take(message);
        }
    }

    /// Whether a demand for new keys is not fulfilled yet.
    pub(super) const fn waits_for_lanes(&self) -> bool {
        self.rekeying > 0
    }

    /// Draws an epoch, and gives SAs of it to all members with keys from the same file: to the
    /// requesting one last, so that the peer learns of the epoch when all have it. For negotiated
    /// keys, requests a new epoch.
    fn renew(&mut self, number: usize, spi: u32, sealed: Limits) -> Result<(), KeyError> {
        let asking = self
            .members
            .iter()
            .position(|member| member.number == number);
        // Another lane's request may have renewed the keys since this one was sent.
        let Some(asking) = asking.filter(|at| self.members[*at].own.spi == spi) else {
            return Ok(());
        };
        let keys = Arc::clone(&self.members[asking].own.keys);
        match lock(&keys).as_static() {
            // On disk before a packet is sealed with it: after a crash no epoch is used twice.
            Some(file) => file.draw_epoch()?,
            None => {
                let member = &self.members[asking];
                self.ask_control(Some(member.tunnel), member.cause(sealed));
                return Ok(());
            }
        };
        let others = (0..self.members.len()).filter(|at| *at != asking);
        for at in others.chain([asking]) {
            let member = &mut self.members[at];
            if Arc::ptr_eq(&member.own.keys, &keys) {
                member.renew();
            }
        }
        Ok(())
    }

    fn ask_control(&self, tunnel: Option<u16>, cause: Cause) {
        if let Some(control) = &self.control {
            control(tunnel, cause);
        }
    }

    /// Draws an epoch of each key file, and gives SAs of it to all members; requests new epochs of
    /// negotiated keys.
    fn rekey(&mut self) -> Result<(), KeyError> {
        let mut drawn: Vec<SharedKeys> = Vec::new();
        let mut negotiated = false;
        for member in &mut self.members {
            let mut keys = lock(&member.own.keys);
            let Some(file) = keys.as_static() else {
                negotiated = true;
                if let Some(epoch) = keys.outbound_epoch() {
                    self.tunnels_behind.entry(member.tunnel).or_insert(epoch);
                }
                continue;
            };
            // Lanes and tunnels with one file share its epoch.
            if !drawn.iter().any(|of| Arc::ptr_eq(of, &member.own.keys)) {
                file.draw_epoch()?;
                drawn.push(Arc::clone(&member.own.keys));
            }
            drop(keys);
            member.renew();
            put_behind(&mut self.lanes_behind, &member.mailbox);
        }
        if negotiated {
            self.ask_control(None, Cause::Demand);
        }
        // Counted only if all have been renewed: the caller repeats a demand that fails.
        self.rekeying += 1;
        Ok(())
    }

    /// Gives SAs of a tunnel's new epoch to all lanes, or takes the SAs away if it has no epoch.
    fn renew_tunnel(&mut self, tunnel: u16) {
        // A demand may be open for this tunnel. It ends for a lane that has any other epoch,
        // including none.
        let behind = self.tunnels_behind.get(&tunnel).copied();
        let mut is_behind = false;
        for member in &mut self.members {
            if member.tunnel != tunnel {
                continue;
            }
            member.renew();
            if let Some(epoch) = behind {
                is_behind = member.own.epoch == epoch;
                put_behind(&mut self.lanes_behind, &member.mailbox);
            }
        }
        if !is_behind {
            self.tunnels_behind.remove(&tunnel);
        }
    }

    /// Counts the demands as fulfilled when no lane is behind.
    pub(super) fn check_lanes(&mut self) {
        self.lanes_behind.retain(|lane| !lane.is_up_to_date());
        if self.lanes_behind.is_empty() && self.tunnels_behind.is_empty() {
            let done = std::mem::take(&mut self.rekeying);
            // Pairs with the load in `rekeys`: a caller that sees the count sees the lanes' new
            // SAs.
            self.rekeys.fetch_add(done, Ordering::Release);
        }
    }

    fn notify(&self, notice: Notice) {
        for mailbox in &self.notified {
            mailbox.put(notice, |other| *other == notice);
        }
    }

    fn desync(&mut self, tunnel: u16, lane: u16, news: Desync) {
        // Without outbound keys this side has just started, and its peer does not know yet.
        let has_keys = self
            .members
            .iter()
            .find(|member| member.tunnel == tunnel)
            .is_some_and(|member| lock(&member.own.keys).outbound_epoch().is_some());
        if has_keys && self.desyncs.take(tunnel, lane, news, Instant::now()) {
            self.ask_control(Some(tunnel), Cause::Desync);
        }
    }

    /// Injects a fault into the inbound keys of each tunnel with negotiated keys.
    fn inject(&self, fault: Fault) {
        let mut done: Vec<u16> = Vec::new();
        for member in &self.members {
            if done.contains(&member.tunnel) {
                continue;
            }
            done.push(member.tunnel);
            let mut keys = lock(&member.own.keys);
            let epoch = keys.outbound_epoch();
            let (Some(ring), Some(epoch)) = (keys.as_ring(), epoch) else {
                continue;
            };
            match fault {
                Fault::WrongKeys => ring.spoil_inbound(),
                Fault::MissedRollover => ring.retire_inbound(epoch),
            }
            // The lanes lock the keys when they handle the notice.
            drop(keys);
            self.notify(Notice::Spoiled(member.tunnel));
        }
    }

    /// Logs engines that have failed since the last call.
    pub(super) fn log_replaced(&mut self) {
        for replaced in self.dispatch.replaced() {
            if !self.logged.contains(&replaced.engine) {
                warn(format_args!(
                    "engine {} failed and is no longer used: {}",
                    replaced.engine, replaced.reason
                ));
                self.logged.push(replaced.engine);
            }
        }
    }
}

/// Adds a lane to `lanes`, which are behind, unless it is there already.
fn put_behind(lanes: &mut Vec<Arc<Mailbox<NewSa>>>, lane: &Arc<Mailbox<NewSa>>) {
    if !lanes.iter().any(|it| Arc::ptr_eq(it, lane)) {
        lanes.push(Arc::clone(lane));
    }
}
