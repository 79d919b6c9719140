//! What sources of keys cost beside static ones.

use crate::format::{counted, ratio_number};
use crate::layout::Run;
use crate::layout::groups::words_of;
use crate::table::{Cell, Table};
use stats::{Estimate, Interval95, KeyCost, Metric};
use units::human::duration_ns;

const NOTE: &str = "each by the same device with static keys in the same repeat: mean of these quotients, and its 95 % \
                    bootstrap interval; where the interval has 1 in it, no difference was measured, and a difference \
                    beyond the interval would have been";

/// Each source in each group; `None` where none was measured beside static keys.
pub(crate) fn keys(run: &Run<'_>) -> Option<Table> {
    let found = &run.results.key_costs;
    if found.is_empty() {
        return None;
    }
    let mut table = Table::new("Sources of keys beside static keys", NOTE)
        .label("Measured")
        .label("Quantity")
        .label("Keys")
        .figure("By static keys")
        .figure("95 % interval")
        .text("Difference");
    let words = run.group_words();
    let mut groups: Vec<(&str, Metric)> = Vec::new();
    for cost in found {
        let group = (cost.group.as_str(), cost.metric);
        if !groups.contains(&group) {
            groups.push(group);
        }
    }
    for (group, metric) in groups {
        let own = found
            .iter()
            .filter(|cost| cost.group == group && cost.metric == metric);
        for cost in own {
            table.push(row(&words_of(&words, group).name, cost));
        }
    }
    Some(table)
}

fn row(group: &str, cost: &KeyCost) -> Vec<Cell> {
    let every = duration_ns(cost.rekey_every_ns as f64);
    let difference = match cost.differs {
        Some(false) => Cell::term("none measured"),
        Some(true) => Cell::word("measured"),
        None => Cell::plain("too few repeats"),
    };
    vec![
        Cell::label(group),
        Cell::label(quantity(cost.metric)),
        Cell::label(format!("{}, new ones every {every}", cost.keys)),
        Cell::derived(ratio_text(&cost.ratio)),
        Cell::or_missing(interval(&cost.ratio)),
        difference,
    ]
}

/// Differences are small: one digit more than other ratios have.
fn ratio_text(ratio: &Estimate) -> String {
    match ratio.mean {
        mean if mean < 2.0 => format!("{mean:.3}"),
        mean => ratio_number(mean),
    }
}

/// The interval, or of how few repeats there is none.
fn interval(ratio: &Estimate) -> Option<String> {
    match ratio.interval_95 {
        Interval95::Bootstrap { low, high } => Some(format!("{low:.3}–{high:.3}")),
        Interval95::TooFewRepeats { .. } => {
            Some(format!("({})", counted(ratio.n.into(), "repeat")))
        }
    }
}

const fn quantity(metric: Metric) -> &'static str {
    match metric {
        Metric::PayloadThroughput => "payload throughput",
        Metric::PayloadBitsPerCpuSecond => "payload per CPU-second",
        Metric::LatencyP50 => "median round trip",
        Metric::FrameRate => "frame rate",
    }
}
