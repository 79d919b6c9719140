//! When set-ups, deletes and rekeyings begin: on a schedule that no answer delays.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A number of actions in a number of nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rate {
    pub(crate) count: u32,
    pub(crate) in_ns: u64,
}

impl Rate {
    pub(crate) const fn per_s(count: u32) -> Self {
        let in_ns = 1_000_000_000;
        Self { count, in_ns }
    }
}

/// Something that a peer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Action {
    SetUp,
    Delete,
    RekeyIke,
    RekeyChild,
}

/// An action with its time and peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Task {
    pub(crate) at_ns: u64,
    pub(crate) peer: u32,
    pub(crate) action: Action,
}

/// An action of many peers in turn, at a rate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Series {
    pub(crate) action: Action,
    pub(crate) begin_ns: u64,
    /// `None`: all at the same time.
    pub(crate) rate: Option<Rate>,
    pub(crate) count: u64,
    /// The numbers of peers begin again from here.
    pub(crate) peers: u32,
}

impl Series {
    fn at_ns(&self, number: u64) -> u64 {
        let after = |rate: Rate| {
            let after = u128::from(number) * u128::from(rate.in_ns) / u128::from(rate.count.max(1));
            u64::try_from(after).unwrap_or(u64::MAX)
        };
        self.begin_ns.saturating_add(self.rate.map_or(0, after))
    }

    /// When the last one begins.
    pub(crate) fn end_ns(&self) -> u64 {
        self.at_ns(self.count.saturating_sub(1))
    }
}

/// The actions of a phase.
#[derive(Debug)]
pub(crate) struct Agenda {
    series: Series,
    next: u64,
    later: BinaryHeap<Reverse<Task>>,
}

impl Agenda {
    pub(crate) const fn new(series: Series) -> Self {
        Self {
            series,
            next: 0,
            later: BinaryHeap::new(),
        }
    }

    /// Adds an action.
    pub(crate) fn add(&mut self, task: Task) {
        self.later.push(Reverse(task));
    }

    fn of_series(&self) -> Option<Task> {
        (self.next < self.series.count).then(|| Task {
            at_ns: self.series.at_ns(self.next),
            peer: (self.next % u64::from(self.series.peers)) as u32,
            action: self.series.action,
        })
    }

    /// The next action, and whether it is of the series.
    fn first(&self) -> Option<(Task, bool)> {
        let later = self.later.peek().map(|Reverse(task)| (*task, false));
        let series = self.of_series().map(|task| (task, true));
        later.into_iter().chain(series).min()
    }

    /// When the next action begins.
    pub(crate) fn next_at(&self) -> Option<u64> {
        self.first().map(|(task, _)| task.at_ns)
    }

    /// The next action that is due.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<Task> {
        let (task, is_of_series) = self.first().filter(|(task, _)| task.at_ns <= now_ns)?;
        if is_of_series {
            self.next += 1;
        } else {
            self.later.pop();
        }
        Some(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_come_in_the_order_of_their_times() {
        let mut agenda = Agenda::new(Series {
            action: Action::SetUp,
            begin_ns: 100,
            rate: Some(Rate::per_s(3)),
            count: 4,
            peers: 2,
        });
        agenda.add(Task {
            at_ns: 400_000_000,
            peer: 9,
            action: Action::Delete,
        });
        let tasks: Vec<_> = std::iter::from_fn(|| agenda.due(u64::MAX)).collect();
        let times: Vec<_> = tasks.iter().map(|it| (it.at_ns, it.peer)).collect();
        assert_eq!(
            times,
            [
                (100, 0),
                (333_333_433, 1),
                (400_000_000, 9),
                (666_666_766, 0),
                (1_000_000_100, 1)
            ]
        );
        assert_eq!(agenda.next_at(), None);
    }

    #[test]
    fn without_a_rate_all_begin_at_once_and_none_before_its_time() {
        let series = Series {
            action: Action::SetUp,
            begin_ns: 100,
            rate: None,
            count: 3,
            peers: 3,
        };
        let mut agenda = Agenda::new(series);
        assert_eq!((series.end_ns(), agenda.due(99)), (100, None));
        for peer in 0..3 {
            assert_eq!(agenda.due(100).map(|it| it.peer), Some(peer));
        }
    }
}
