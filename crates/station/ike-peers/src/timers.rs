//! Timers: one per peer.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

const NEVER: u64 = u64::MAX;

/// The next time of each peer. If it moves to a later one, the entry is left: the peer wakes up
/// early once, and is entered again.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<(u64, u32)>>,
    /// The valid entry of each peer.
    entered: Vec<u64>,
}

impl Timers {
    /// Wakes a peer no later than this.
    pub(crate) fn set(&mut self, peer: u32, at: Option<u64>) {
        let (at, place) = (at.unwrap_or(NEVER), peer as usize);
        if self.entered.len() <= place {
            self.entered.resize(place + 1, NEVER);
        }
        if at < self.entered[place] {
            self.entered[place] = at;
            self.heap.push(Reverse((at, peer)));
        }
    }

    /// The next peer that is due.
    pub(crate) fn due(&mut self, now: u64) -> Option<u32> {
        while let Some(Reverse((at, peer))) = self.heap.peek().copied() {
            let is_valid = self.entered[peer as usize] == at;
            if is_valid && at > now {
                return None;
            }
            self.heap.pop();
            if is_valid {
                self.entered[peer as usize] = NEVER;
                return Some(peer);
            }
        }
        None
    }

    /// When the first one comes, or a former time of it.
    pub(crate) fn next(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_peer_wakes_once_at_its_earliest_time() {
        let mut timers = Timers::default();
        timers.set(3, Some(30));
        timers.set(1, Some(20));
        timers.set(1, Some(10));
        timers.set(3, Some(40));
        timers.set(2, None);
        assert_eq!(timers.next(), Some(10));
        assert_eq!(timers.due(9), None);
        assert_eq!(timers.due(25), Some(1));
        assert_eq!(timers.due(25), None);
        assert_eq!(timers.due(100), Some(3));
        assert_eq!((timers.due(100), timers.next()), (None, None));
        // Again after it fired.
        timers.set(1, Some(50));
        assert_eq!(timers.due(100), Some(1));
    }
}
