//! Trials of IKEv2: the rate of set-ups, their times and their cost.

use crate::figures::estimate::Estimate;
use crate::figures::repeats::{Total, estimate, per_second, ratio};
use journal::record::{IkeTrial, Measured};
use plan::IkeTest;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Set-ups of IKEv2.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct IkeFigures {
    /// Set-ups offered per second; if the highest rate was searched, that rate.
    pub offered_per_s: Estimate,
    /// Set-ups completed per second, from the first intended start to the last completion.
    pub completed_per_s: Estimate,
    /// Whether the highest rate was searched.
    pub is_searched: bool,
    /// Lowest rate that was not carried; `null` without a search, or if the search of a repeat
    /// found none.
    pub refused_per_s: Option<Estimate>,
    /// Set-ups in time by set-ups intended.
    pub in_time_ratio: Estimate,
    /// Time from the intended start that half of the intended set-ups do not exceed, in
    /// nanoseconds; `null` if fewer completed.
    pub p50_ns: Option<Estimate>,
    /// The same for 99 %.
    pub p99_ns: Option<Estimate>,
    /// Set-ups intended, of all repeats.
    pub intended: u64,
    /// Of these, failed, by reason.
    pub failed: BTreeMap<String, u64>,
    /// Requests that were sent again.
    pub retransmissions: u64,
    /// Cookies that the gateway asked for.
    pub cookies: u64,
    /// Datagrams per completed set-up, both ways.
    pub datagrams_each: Estimate,
    /// Content of these in bytes.
    pub bytes_each: Estimate,
    /// CPU time of the gateway per completed set-up, in nanoseconds; `null` if unknown.
    pub gateway_cpu_each_ns: Option<Estimate>,
    /// CPU time of the generator per completed set-up, in nanoseconds.
    pub generator_cpu_each_ns: Estimate,
}

impl IkeFigures {
    /// `None` if a repeat has no figure, or without repeats.
    pub(crate) fn of(test: &IkeTest, measured: &[(u32, &Measured)]) -> Option<Self> {
        let trials: Vec<(u32, &IkeTrial)> = measured
            .iter()
            .filter_map(|&(repeat, measured)| Some((repeat, measured.ike()?.figures()?)))
            .collect();
        let sum =
            |count: fn(&IkeTrial) -> u64| trials.iter().map(|(_, trial)| count(trial)).total();
        let each = |count: fn(&IkeTrial) -> u64| {
            estimate(&trials, |trial| ratio(count(trial), trial.completed))
        };
        let time = |permille: u16| {
            estimate(&trials, |trial| {
                trial.latency(permille).map(|time| time as f64)
            })
        };
        let mut failed = BTreeMap::new();
        for (name, failure) in trials.iter().flat_map(|(_, trial)| &trial.failed) {
            let count: &mut u64 = failed.entry(name.clone()).or_default();
            *count = count.saturating_add(failure.count);
        }
        let refused: Option<Vec<(u32, u64)>> = measured
            .iter()
            .map(|&(repeat, measured)| Some((repeat, measured.ike()?.search?.upper_per_s?)))
            .collect();
        Some(Self {
            offered_per_s: estimate(&trials, |trial| Some(trial.per_s as f64))?,
            completed_per_s: estimate(&trials, |trial| {
                per_second(trial.completed, trial.elapsed_ns)
            })?,
            is_searched: test.setups_per_s.is_none(),
            refused_per_s: refused.and_then(|all| estimate(&all, |rate| Some(*rate as f64))),
            in_time_ratio: estimate(&trials, |trial| ratio(trial.in_time, trial.intended))?,
            p50_ns: time(500),
            p99_ns: time(990),
            intended: sum(|trial| trial.intended),
            failed,
            retransmissions: sum(|trial| trial.retransmissions),
            cookies: sum(|trial| trial.cookies),
            datagrams_each: each(|trial| trial.sent.saturating_add(trial.received))?,
            bytes_each: each(|trial| trial.sent_bytes.saturating_add(trial.received_bytes))?,
            gateway_cpu_each_ns: estimate(&trials, |trial| {
                ratio(trial.gateway_cpu_ns?, trial.completed)
            }),
            generator_cpu_each_ns: each(|trial| trial.generator_cpu_ns)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use journal::record::{Figures, IkeFailure, IkeResult};

    fn measured(completed: u64) -> Measured {
        let failure = IkeFailure {
            count: 100 - completed,
            example: String::new(),
        };
        let trial = IkeTrial {
            per_s: 50,
            intended: 100,
            started: 100,
            completed,
            in_time: completed,
            failed: [("NO_PROPOSAL_CHOSEN".to_owned(), failure)].into(),
            latency_ns: vec![(500, 2_000_000)],
            elapsed_ns: 2_000_000_000,
            sent: 2 * completed,
            received: 2 * completed,
            sent_bytes: 500 * completed,
            received_bytes: 500 * completed,
            gateway_cpu_ns: Some(1_000_000 * completed),
            ..IkeTrial::default()
        };
        Measured {
            figures: Figures::Ike(Box::new(IkeResult {
                trials: vec![IkeTrial::default(), trial],
                figure: 1,
                search: None,
            })),
            ..Measured::default()
        }
    }

    #[test]
    fn costs_are_of_completed_set_ups_and_shares_of_intended_ones() {
        let test = IkeTest {
            setups_per_s: Some(50),
            ..IkeTest::default()
        };
        let (one, other) = (measured(100), measured(60));
        let found = IkeFigures::of(&test, &[(1, &one), (2, &other)]).unwrap();
        assert!((found.completed_per_s.mean - 40.0).abs() < 1e-9);
        assert!((found.in_time_ratio.mean - 0.8).abs() < 1e-9);
        assert!((found.datagrams_each.mean - 4.0).abs() < 1e-9);
        assert!((found.bytes_each.mean - 1000.0).abs() < 1e-9);
        assert_eq!(found.failed["NO_PROPOSAL_CHOSEN"], 40);
        // 99 % did not complete in any known time.
        assert_eq!(found.p99_ns, None);
        assert_eq!((found.is_searched, found.intended), (false, 200));
    }
}
