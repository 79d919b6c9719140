//! Orders of the caller and of timers. They wait until the window of the IKE SA permits.

use super::channel::Standing;
use super::child::{Child, State};
use super::{Exchange, Output, Phase, Purpose, Session};
use crate::message::{AddressRange, Delete, Payload, Protocol};
use std::time::Duration;

/// Most orders that wait, without those that existing SAs limit.
const ORDERS_MAX: usize = 1024;
/// After TEMPORARY_FAILURE: both ends add an uneven part of it (RFC 7296 section 2.25).
const RETRY: Duration = Duration::from_secs(2);

/// Something to request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) action: Action,
    /// Not before this time.
    pub(super) at: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Action {
    Alive,
    CreateChild {
        local: Vec<AddressRange>,
        remote: Vec<AddressRange>,
    },
    /// By the SPI to this end.
    RekeyChild(u32),
    /// By the SPI to this end.
    DeleteChild(u32),
    RekeyIke,
}

impl Session {
    /// Creates a further child SA for these packets, or for all that the settings have.
    ///
    /// Like all orders it waits for the response to the request that is under way. `false`: too
    /// many orders wait, or the session is not established.
    pub fn create_child(
        &mut self,
        now: Duration,
        selectors: Option<(Vec<AddressRange>, Vec<AddressRange>)>,
        out: &mut Vec<Output>,
    ) -> bool {
        let settings = &self.settings;
        let all = || (settings.local.clone(), settings.remote.clone());
        let (local, remote) = selectors.unwrap_or_else(all);
        self.order(now, Action::CreateChild { local, remote }, out)
    }

    /// Replaces the child SA with this SPI to this end.
    pub fn rekey_child(&mut self, now: Duration, spi: u32, out: &mut Vec<Output>) -> bool {
        self.order(now, Action::RekeyChild(spi), out)
    }

    /// Deletes the child SA with this SPI to this end.
    pub fn delete_child(&mut self, now: Duration, spi: u32, out: &mut Vec<Output>) -> bool {
        self.leave_child(now, spi) && {
            self.advance(now, out);
            true
        }
    }

    /// Replaces the IKE SA; the child SAs remain.
    pub fn rekey_ike(&mut self, now: Duration, out: &mut Vec<Output>) -> bool {
        self.order(now, Action::RekeyIke, out)
    }

    /// Asks whether the peer lives.
    pub fn probe(&mut self, now: Duration, out: &mut Vec<Output>) -> bool {
        self.order(now, Action::Alive, out)
    }

    /// Deletes the IKE SA with its child SAs. One that is not established ends without a message.
    pub fn delete(&mut self, now: Duration, out: &mut Vec<Output>) {
        if self.is_established() {
            self.is_leaving = true;
            // After the response to the request that is under way.
            self.advance(now, out);
        } else {
            self.close(super::Closed::Deleted, out);
        }
    }

    fn order(&mut self, now: Duration, action: Action, out: &mut Vec<Output>) -> bool {
        let is_accepted = self.enqueue(now, action);
        self.advance(now, out);
        is_accepted
    }

    pub(super) fn enqueue(&mut self, at: Duration, action: Action) -> bool {
        // Other actions occur once per SA.
        let is_creation = matches!(action, Action::CreateChild { .. });
        let is_full = is_creation && self.orders.len() >= ORDERS_MAX;
        if !self.is_established() || is_full {
            return false;
        }
        if is_creation || self.orders.iter().all(|it| it.action != action) {
            self.orders.push_back(Order { action, at });
        }
        true
    }

    /// Repeats an action that collided with one of the peer.
    pub(super) fn retry(&mut self, now: Duration, action: Action) {
        let uneven = self.random.below(RETRY);
        self.enqueue(now + RETRY + uneven, action);
    }

    /// Marks a child SA for deletion.
    pub(super) fn leave_child(&mut self, now: Duration, spi: u32) -> bool {
        let child = self.children.iter_mut().find(|it| it.sa.inbound_spi == spi);
        let Some(child) = child.filter(|it| it.state != State::Deleting) else {
            return false;
        };
        child.state = State::Leaving;
        self.enqueue(now, Action::DeleteChild(spi))
    }

    /// Times of orders, of lifetimes and of the check that the peer lives.
    pub(super) fn timers(&self) -> impl Iterator<Item = Duration> {
        let is_free = self.is_established() && self.is_free();
        let children = self.children.iter().filter_map(Child::acts_at);
        let orders = self.orders.iter().map(|it| self.possible_at(it));
        let idle = self.heard + self.settings.idle;
        let all = children.chain(orders).chain([idle]).chain(self.rekey_at);
        // A response will come, or not: then these are looked at again.
        all.filter(move |_| is_free)
    }

    fn possible_at(&self, order: &Order) -> Duration {
        match order.action {
            // The peer would keep a child SA that it does not know yet.
            Action::DeleteChild(spi) => order.at.max(self.known_at(spi)),
            _ => order.at,
        }
    }

    fn is_free(&self) -> bool {
        self.channel(self.current)
            .is_some_and(|it| it.pending.is_none())
    }

    /// Orders of the timers that are due.
    pub(super) fn expire(&mut self, now: Duration) {
        if !matches!(self.phase, Phase::Established) {
            return;
        }
        for at in 0..self.children.len() {
            let child = &mut self.children[at];
            if child.acts_at().is_none_or(|at| now < at) {
                continue;
            }
            let spi = child.sa.inbound_spi;
            child.rekey_at = None;
            if child.state == State::Up {
                self.enqueue(now, Action::RekeyChild(spi));
            } else {
                self.leave_child(now, spi);
            }
        }
        if self.rekey_at.is_some_and(|at| now >= at) {
            self.rekey_at = None;
            self.enqueue(now, Action::RekeyIke);
        }
        if now >= self.heard + self.settings.idle && self.is_free() {
            self.enqueue(now, Action::Alive);
        }
    }

    /// Sends what the windows permit.
    pub(super) fn advance(&mut self, now: Duration, out: &mut Vec<Output>) {
        let leaving = |it: &&super::Channel| it.standing == Standing::Leaving;
        let leaving = self.channels.iter().filter(leaving);
        let leaving: Vec<u64> = leaving
            .filter(|it| it.pending.is_none())
            .map(super::Channel::local_spi)
            .collect();
        for spi in leaving {
            self.send_delete_ike(spi, now, out);
        }
        while self.is_established() && self.is_free() {
            if self.is_leaving {
                self.send_delete_ike(self.current, now, out);
                return;
            }
            let mut orders = self.orders.iter();
            let due = orders.position(|it| self.possible_at(it) <= now);
            let Some(order) = due.and_then(|at| self.orders.remove(at)) else {
                return;
            };
            self.execute(now, order.action, out);
        }
    }

    fn execute(&mut self, now: Duration, action: Action, out: &mut Vec<Output>) {
        let spi = self.current;
        match action {
            Action::Alive => {
                let purpose = (Exchange::INFORMATIONAL, Purpose::Alive);
                self.request(spi, now, purpose, &[], out);
            }
            Action::DeleteChild(child) => {
                let mut children = self.children.iter_mut();
                let Some(found) = children.find(|it| it.sa.inbound_spi == child) else {
                    return;
                };
                found.state = State::Deleting;
                let delete = Payload::Delete(Delete::Child {
                    protocol: Protocol::ESP,
                    spis: vec![child],
                });
                let purpose = (Exchange::INFORMATIONAL, Purpose::DeleteChild(child));
                self.request(spi, now, purpose, &[delete], out);
            }
            Action::CreateChild { local, remote } => {
                self.send_create_child(now, None, (local, remote), None, out);
            }
            Action::RekeyChild(child) => {
                let mut children = self.children.iter();
                let found = children.find(|it| it.sa.inbound_spi == child);
                // The peer may have replaced or deleted it meanwhile.
                if let Some(found) = found.filter(|it| it.state == State::Up) {
                    let selectors = (found.sa.local.clone(), found.sa.remote.clone());
                    self.send_create_child(now, Some(child), selectors, None, out);
                }
            }
            Action::RekeyIke => self.send_rekey_ike(now, None, out),
        }
    }

    fn send_delete_ike(&mut self, spi: u64, now: Duration, out: &mut Vec<Output>) {
        if let Some(channel) = self.channel_mut(spi) {
            channel.standing = Standing::Deleting;
        }
        let purpose = (Exchange::INFORMATIONAL, Purpose::DeleteIke);
        let delete = Payload::Delete(Delete::Ike);
        self.request(spi, now, purpose, &[delete], out);
    }
}
