//! Counts of one kind of exchange.

use crate::report::{Failure, FirstFailure, Outcomes, Times, Traffic};
use hdrhistogram::Histogram;
use std::collections::BTreeMap;

/// Decimal digits of the resolution of times.
const DIGITS: u8 = 3;
/// The longest time resolved, in nanoseconds.
const TIME_NS_MAX: u64 = 3_600_000_000_000;

/// Counts of set-ups, deletes or rekeyings.
pub(crate) struct Tally {
    counts: Outcomes,
    latency: Histogram<u64>,
    late: Histogram<u64>,
    begin_ns: u64,
}

/// A reason with a sentence about it.
pub(crate) struct Reason {
    pub(crate) name: String,
    pub(crate) sentence: String,
}

impl Tally {
    /// Empty counts; `begin_ns` is the first intended start.
    pub(crate) fn new(begin_ns: u64) -> Self {
        let histogram = || {
            Histogram::new_with_bounds(1, TIME_NS_MAX, DIGITS)
                .expect("these bounds and digits are valid")
        };
        Self {
            counts: Outcomes::default(),
            latency: histogram(),
            late: histogram(),
            begin_ns,
        }
    }

    /// Counts that are simple sums.
    pub(crate) const fn counts(&mut self) -> &mut Outcomes {
        &mut self.counts
    }

    pub(crate) fn started(&mut self, intended_ns: u64, now_ns: u64) {
        self.counts.started += 1;
        let late = now_ns.saturating_sub(intended_ns);
        self.late.saturating_record(late.max(1));
    }

    pub(crate) fn completed(&mut self, intended_ns: u64, now_ns: u64) {
        self.counts.completed += 1;
        let latency = now_ns.saturating_sub(intended_ns);
        self.latency.saturating_record(latency.max(1));
        self.counts.elapsed_ns = now_ns.saturating_sub(self.begin_ns);
    }

    /// A failure, with the number of peers that are up.
    pub(crate) fn failed(&mut self, reason: Reason, now_ns: u64, up: u64) {
        let first = FirstFailure {
            up,
            reason: reason.name.clone(),
            at_ns: now_ns.saturating_sub(self.begin_ns),
        };
        self.counts.first_failure.get_or_insert(first);
        count(&mut self.counts.failed, reason);
    }

    pub(crate) fn outcomes(self) -> Outcomes {
        Outcomes {
            latency: times(&self.latency),
            late: times(&self.late),
            ..self.counts
        }
    }
}

/// Counts a reason; the first one is the example.
pub(crate) fn count(failures: &mut BTreeMap<String, Failure>, reason: Reason) {
    let failure = failures.entry(reason.name).or_default();
    if failure.count == 0 {
        failure.example = reason.sentence;
    }
    failure.count += 1;
}

fn times(histogram: &Histogram<u64>) -> Times {
    let recorded = histogram.iter_recorded();
    Times {
        buckets: recorded
            .map(|it| (it.value_iterated_to(), it.count_at_value()))
            .collect(),
    }
}

impl Traffic {
    pub(crate) const fn add_sent(&mut self, bytes: usize) {
        self.sent += 1;
        self.sent_bytes += bytes as u64;
    }

    pub(crate) const fn add_received(&mut self, bytes: usize) {
        self.received += 1;
        self.received_bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(sentence: &str) -> Reason {
        Reason {
            name: "NAME".to_owned(),
            sentence: sentence.to_owned(),
        }
    }

    #[test]
    fn latency_counts_from_the_intended_time() {
        let mut tally = Tally::new(1000);
        tally.started(2000, 5000);
        tally.completed(2000, 9000);
        tally.failed(reason("first"), 3000, 7);
        tally.failed(reason("second"), 4000, 8);
        let outcomes = tally.outcomes();
        assert_eq!(outcomes.latency.quantile(0.5, 1), Some(7003));
        assert_eq!(outcomes.late.quantile(0.5, 1), Some(3001));
        assert_eq!(outcomes.elapsed_ns, 8000);
        assert_eq!(outcomes.failures(), 2);
        assert_eq!(outcomes.failed["NAME"].example, "first");
        let first = outcomes.first_failure.unwrap();
        assert_eq!((first.up, first.at_ns), (7, 2000));
    }
}
