//! The check of latencies between two hosts.

use super::{FrameObserved, every};
use crate::evidence::{check, then_repeat};
use journal::record::{Check, ClockAgreement, Explanation};
use units::human::duration_ns;

/// Checks latencies across two hosts: they rest on the hosts' clocks, which were compared around
/// every trial.
pub(super) fn clocks_compared(observed: &FrameObserved<'_>) -> Option<Check> {
    let agreements: Vec<_> = every::read(observed)
        .filter_map(|read| read.2.clocks)
        .collect();
    let worst = agreements.iter().max_by_key(|clocks| clocks.within_ns)?;
    let latencies = || observed.result.latencies();
    // Only latencies that are stated can fail it. Other trials may be inexact.
    let inexact = latencies().find(|latency| latency.is_inexact());
    let failure = inexact.and_then(|latency| {
        let within = known_to(latency.clocks?);
        let least = latency.histogram.first()?;
        Some(Explanation::new(
            format!(
                "the clocks of the two hosts were {within}, and the smallest latency is {}",
                duration_ns(least.upto_ns as f64)
            ),
            "probes between the hosts take long, or a clock is being corrected",
            then_repeat("let chrony or ptp4l discipline both clocks, and keep the hosts idle"),
        ))
    });
    let mut detail = format!(
        "the clocks of the two hosts were compared before and after each of {} trials, and were {} at worst, {} at the latencies \
         that are stated ({}); a tenth of the smallest latency is allowed, or 1 us",
        agreements.len(),
        known_to(*worst),
        latencies()
            .filter_map(|latency| latency.clocks)
            .max_by_key(|clocks| clocks.within_ns)
            .map_or_else(|| "not needed".to_owned(), known_to),
        latencies().count()
    );
    let round_trips = latencies().filter(|latency| latency.round_trip.is_some());
    let round_trips = round_trips.count();
    if round_trips > 0 {
        detail += &format!(
            "; {round_trips} of these are of round trips, which station A's clock alone times"
        );
    }
    check("clocks-compared", failure, detail)
}

fn known_to(clocks: ClockAgreement) -> String {
    match clocks.within_ns {
        ClockAgreement::UNKNOWN_NS => "not known".to_owned(),
        within_ns => format!("known to {}", duration_ns(within_ns as f64)),
    }
}
