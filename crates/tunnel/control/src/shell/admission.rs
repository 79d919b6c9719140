//! Limits on concurrent connections that have not completed the handshake, with eviction of the
//! oldest.
//!
//! A legitimate peer completes the handshake within a few round trips; a hostile connection stalls.
//! So at a limit the oldest is evicted: an address that fills the table with silent connections
//! evicts only these.

use super::LinkId;
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Maximum pending connections of one address.
pub const PENDING_PER_ADDRESS_MAX: usize = 128;
/// Maximum pending connections in total.
pub const PENDING_MAX: usize = 1024;

/// The pending connections by address, oldest first.
#[derive(Default)]
pub(super) struct Admission {
    pending: HashMap<IpAddr, VecDeque<LinkId>>,
    total: usize,
}

impl Admission {
    /// Admits a connection. Returns the connection to close in exchange, if a limit is reached.
    pub(super) fn enter(&mut self, from: IpAddr, link: LinkId) -> Option<LinkId> {
        let of_address = self.pending.get(&from).map_or(0, VecDeque::len);
        // The limit of the address first: it must not push out connections of others.
        let leaver = if of_address >= PENDING_PER_ADDRESS_MAX {
            self.oldest(from)
        } else if self.total >= PENDING_MAX {
            // Evict from the address with the most connections; searched only at the total limit.
            let heaviest = self.pending.iter().max_by_key(|(_, links)| links.len());
            heaviest
                .map(|(address, _)| *address)
                .and_then(|address| self.oldest(address))
        } else {
            None
        };
        self.pending.entry(from).or_default().push_back(link);
        self.total += 1;
        leaver
    }

    /// Removes a connection that completed the handshake or ended. Does nothing if it was evicted.
    pub(super) fn leave(&mut self, from: IpAddr, link: LinkId) {
        let Some(links) = self.pending.get_mut(&from) else {
            return;
        };
        // The oldest come first, and usually complete first.
        if let Some(place) = links.iter().position(|other| *other == link) {
            links.remove(place);
            self.total -= 1;
            if links.is_empty() {
                self.pending.remove(&from);
            }
        }
    }

    fn oldest(&mut self, from: IpAddr) -> Option<LinkId> {
        let link = *self.pending.get(&from)?.front()?;
        // Through `leave`, so that the total and the lists stay equal.
        self.leave(from, link);
        Some(link)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn address(number: u8) -> IpAddr {
        Ipv4Addr::new(10, 0, 0, number).into()
    }

    #[test]
    fn an_address_at_its_limit_evicts_its_own_oldest() {
        let mut admission = Admission::default();
        assert_eq!(admission.enter(address(1), LinkId(9999)), None);
        for link in 0..PENDING_PER_ADDRESS_MAX as u64 {
            assert_eq!(admission.enter(address(2), LinkId(link)), None);
        }
        assert_eq!(admission.enter(address(2), LinkId(1000)), Some(LinkId(0)));
        // `leave` after eviction does nothing.
        admission.leave(address(2), LinkId(0));
        assert_eq!(admission.enter(address(2), LinkId(1001)), Some(LinkId(1)));
        // A completed handshake frees a place.
        admission.leave(address(2), LinkId(7));
        assert_eq!(admission.enter(address(2), LinkId(1002)), None);
        assert_eq!(admission.total, PENDING_PER_ADDRESS_MAX + 1);
    }

    #[test]
    fn at_the_total_limit_the_address_with_the_most_connections_loses_one() {
        let mut admission = Admission::default();
        let mut link = 0;
        let full = PENDING_MAX / PENDING_PER_ADDRESS_MAX;
        for from in 0..full as u8 {
            let one_less = usize::from(from != 3);
            for _ in 0..PENDING_PER_ADDRESS_MAX - one_less {
                assert_eq!(admission.enter(address(from), LinkId(link)), None);
                link += 1;
            }
        }
        for from in 100..100 + (full - 1) as u8 {
            assert_eq!(admission.enter(address(from), LinkId(link)), None);
            link += 1;
        }
        assert_eq!(admission.total, PENDING_MAX);
        let oldest_of_3 = 3 * (PENDING_PER_ADDRESS_MAX as u64 - 1);
        let leaver = admission.enter(address(200), LinkId(link));
        assert_eq!(leaver, Some(LinkId(oldest_of_3)));
        assert_eq!(admission.total, PENDING_MAX);
    }

    #[test]
    fn no_entry_remains_after_all_left() {
        let mut admission = Admission::default();
        for link in 0..10 {
            admission.enter(address(1), LinkId(link));
        }
        for link in (0..10).rev() {
            admission.leave(address(1), LinkId(link));
            admission.leave(address(1), LinkId(link));
        }
        assert!(admission.pending.is_empty());
        assert_eq!(admission.total, 0);
    }
}
