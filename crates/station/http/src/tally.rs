//! Counts of one client thread.

use crate::schedule::Phases;
use hdrhistogram::Histogram;
use journal::record::{HttpFailure, HttpResult, HttpTimes, TimeBucket};
use std::collections::BTreeMap;

/// Decimal digits of the resolution of times.
const DIGITS: u8 = 2;
/// The longest time resolved, in nanoseconds: above any time limit.
const TIME_NS_MAX: u64 = 600_000_000_000;

/// Times of the transactions with objects of one size.
struct Times {
    object_bytes: u64,
    first: Histogram<u64>,
    last: Histogram<u64>,
}

/// The counts of one thread.
pub(crate) struct Tally {
    phases: Phases,
    pub(crate) attempted: u64,
    pub(crate) received_bytes: u64,
    transactions: u64,
    object_bytes: u64,
    connections: u64,
    connections_in_all: u64,
    open: u64,
    open_most: u64,
    failed: BTreeMap<HttpFailure, u64>,
    times: Vec<Times>,
}

impl Tally {
    pub(crate) fn new(phases: Phases, sizes: &[u64]) -> Self {
        let histogram = || {
            Histogram::new_with_bounds(1, TIME_NS_MAX, DIGITS)
                .expect("these bounds and digits are valid")
        };
        let times = sizes.iter().map(|&object_bytes| Times {
            object_bytes,
            first: histogram(),
            last: histogram(),
        });
        Self {
            phases,
            attempted: 0,
            received_bytes: 0,
            transactions: 0,
            object_bytes: 0,
            connections: 0,
            connections_in_all: 0,
            open: 0,
            open_most: 0,
            failed: BTreeMap::new(),
            times: times.collect(),
        }
    }

    /// Counts a successful transaction with this object; times are from the start of the run.
    pub(crate) fn succeeded(&mut self, object: usize, begin_ns: u64, first_ns: u64, last_ns: u64) {
        let sustain = self.phases.sustain();
        let times = &mut self.times[object];
        // The rate counts transactions that ended in the phase and latency
        // transactions that began in it.
        if sustain.contains(&last_ns) {
            self.transactions += 1;
            self.object_bytes += times.object_bytes;
        }
        if sustain.contains(&begin_ns) {
            times
                .first
                .saturating_record(first_ns.saturating_sub(begin_ns).max(1));
            times
                .last
                .saturating_record(last_ns.saturating_sub(begin_ns).max(1));
        }
    }

    pub(crate) fn failed(&mut self, why: HttpFailure) {
        *self.failed.entry(why).or_default() += 1;
    }

    pub(crate) fn connected(&mut self, now_ns: u64) {
        self.connections_in_all += 1;
        self.connections += u64::from(self.phases.sustain().contains(&now_ns));
        self.open += 1;
        self.open_most = self.open_most.max(self.open);
    }

    pub(crate) fn closed(&mut self) {
        self.open = self.open.saturating_sub(1);
    }

    /// Sums the counts of several threads. Peaks of open connections are added even if they were at
    /// different times: each thread has a share of the connections.
    pub(crate) fn result(tallies: Vec<Self>, planned: Option<u64>) -> HttpResult {
        let mut sum = HttpResult {
            planned,
            connections: Some(0),
            connections_most: Some(0),
            ..HttpResult::default()
        };
        let mut times: Vec<Times> = Vec::new();
        for tally in tallies {
            let sustain = tally.phases.sustain();
            sum.duration_ns = sustain.end - sustain.start;
            sum.transactions += tally.transactions;
            sum.object_bytes += tally.object_bytes;
            sum.connections = sum.connections.map(|n| n + tally.connections);
            sum.connections_most = sum.connections_most.map(|n| n + tally.open_most);
            sum.attempted += tally.attempted;
            sum.received_bytes += tally.received_bytes;
            sum.connections_in_all += tally.connections_in_all;
            for (why, count) in tally.failed {
                *sum.failed.entry(why).or_default() += count;
            }
            // All threads fetch the same objects, so the first one has all sizes.
            if times.is_empty() {
                times = tally.times;
                continue;
            }
            for (sum, more) in times.iter_mut().zip(tally.times) {
                sum.first += more.first;
                sum.last += more.last;
            }
        }
        let objects = times.iter().map(|times| HttpTimes {
            object_bytes: times.object_bytes,
            first_byte: buckets(&times.first),
            last_byte: buckets(&times.last),
        });
        sum.objects = objects.collect();
        sum
    }
}

fn buckets(times: &Histogram<u64>) -> Vec<TimeBucket> {
    let recorded = times.iter_recorded();
    recorded
        .map(|bucket| TimeBucket {
            upto_ns: bucket.value_iterated_to(),
            count: bucket.count_at_value(),
        })
        .collect()
}
