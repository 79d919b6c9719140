//! Checks of the impaired path between the gateways.

use super::failure::{count, nothing_seen, then_repeat_or};
use super::{ObservedPath, check};
use impair::{Counts, Impaired, Profile};
use journal::record::{Check, Explanation};
use units::human::duration_ns;

/// Delay beyond the model's that 99 of 100 frames may always have, in nanoseconds.
const ADDED_NS_MAX: u64 = 50_000;
/// The same in per cent of the model's delays of a round trip; the larger one applies.
const ADDED_PERCENT_MAX: u64 = 1;

/// The applicable checks of the impaired path.
pub(crate) fn checks(path: &ObservedPath<'_>) -> Vec<Option<Check>> {
    vec![kept_up(path), lets_through(path)]
}

/// Checks that the path applied the model's decisions to frames, and nothing beyond: it lost none
/// itself, and sent each when it was due.
fn kept_up(path: &ObservedPath<'_>) -> Option<Check> {
    let impaired = path.impaired?;
    let ways = [("A to B", impaired.a_to_b), ("B to A", impaired.b_to_a)];
    let profile = path.cell.impair.as_ref();
    let name = profile.map_or("", |profile| &profile.name);
    let delay_ns = profile.map_or(0, Profile::round_trip_ns);
    // A fixed delay that is large on a short path is nothing on one of 100 ms.
    let allowed_ns = (delay_ns / 100 * ADDED_PERCENT_MAX).max(ADDED_NS_MAX);
    let words: Vec<String> = ways
        .iter()
        .map(|(way, counts)| words(way, counts))
        .collect();
    // One direction is enough: many loads leave the other one idle.
    let came = ways.iter().map(|(_, counts)| counts.received).max();
    let failure = ways
        .into_iter()
        .find_map(|(way, counts)| fault(way, &counts, allowed_ns));
    let detail = format!(
        "profile `{name}`: {}; {} us are allowed at the 99th percentile",
        words.join("; "),
        allowed_ns / 1000
    );
    let empty = || nothing_seen(came.unwrap_or(0), "frame came to the impaired path");
    check("impair-kept-up", failure.or_else(empty), detail)
}

fn words(way: &str, counts: &Counts) -> String {
    let Counts {
        received,
        sent,
        lost_by_model,
        lost_by_queue,
        lost_by_tester,
        duplicated,
        reordered,
        corrupted,
        waiting,
        added_ns_p50,
        added_ns_p99,
        added_ns_max,
    } = counts;
    format!(
        "from {way} {received} frames came and {sent} left; lost by the model: {lost_by_model}, by its queue: \
         {lost_by_queue}, by the tester: {lost_by_tester}; doubled: {duplicated}, held back: {reordered}, damaged: \
         {corrupted}, under way at the end: {waiting}; they left later than the model says by {} us \
         in the median, {} us at the 99th percentile and {} us at most",
        added_ns_p50 / 1000,
        added_ns_p99 / 1000,
        added_ns_max / 1000
    )
}

fn fault(way: &str, counts: &Counts, allowed_ns: u64) -> Option<Explanation> {
    let difference = if counts.lost_by_tester > 0 {
        let lost = count(counts.lost_by_tester, counts.received, "frame");
        format!("the impaired path itself lost {lost} from {way}, beyond its model")
    } else if counts.added_ns_p99 > allowed_ns {
        let late = duration_ns(counts.added_ns_p99 as f64);
        format!(
            "one frame in 100 from {way} left the impaired path {late} later than its model says, or more"
        )
    // Last, since the other two explain a difference better.
    } else if !counts.balances() {
        format!("the impaired path did not count what became of every frame from {way}")
    } else {
        return None;
    };
    Some(Explanation::new(
        difference,
        "its program waited for a core, or the load is more than it carries",
        then_repeat_or(
            "stop what else uses this machine",
            "ask for less, or measure on a machine with more cores, in a new run",
        ),
    ))
}

/// A path that lets nothing through measures no device.
fn lets_through(path: &ObservedPath<'_>) -> Option<Check> {
    let direction = blocked(path.impaired?);
    let detail = match direction {
        None => {
            "the impaired path let frames through in each direction in which any came".to_owned()
        }
        Some(direction) => format!("the impaired path lost every frame {direction}"),
    };
    let failure = direction.map(|direction| {
        Explanation::new(
            format!("the impairment let no frame through {direction}"),
            "its loss, its rate or its queue makes the trial impossible",
            "choose a milder profile, in a new run",
        )
    });
    check("impaired-path-passes", failure, detail)
}

/// The direction in which the model's losses took every frame, if there is one.
pub(crate) fn blocked(impaired: &Impaired) -> Option<&'static str> {
    let ways = [
        (impaired.a_to_b, "from A to B"),
        (impaired.b_to_a, "from B to A"),
    ];
    // A direction that no frame came to has lost none, and is not blocked.
    let mut blocked = ways
        .into_iter()
        .filter(|(counts, _)| counts.sent == 0 && counts.lost_as_intended() > 0);
    blocked.next().map(|(_, direction)| direction)
}
