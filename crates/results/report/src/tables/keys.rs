//! Costs of key sources relative to static keys, and gains of hybrids over each engine alone.

use crate::format::{counted, ratio_number};
use crate::layout::Run;
use crate::layout::groups::words_of;
use crate::order::grouped;
use crate::table::{Cell, Table};
use stats::{Estimate, HybridGain, KeyCost, Metric};
use units::human::duration_ns;

const NOTE: &str = "each by the same device with static keys in the same repeat: mean of these quotients, and its 95 % \
                    interval (Student's t on logarithms); a difference is shown if chance explains it in less than 5 %, \
                    over all cells by the same quantity (Holm)";

/// Each source in each group; `None` if no source was compared with static keys.
pub(crate) fn keys(run: &Run<'_>) -> Option<Table> {
    let found = &run.results.key_costs;
    if found.is_empty() {
        return None;
    }
    let mut table = Table::new("Sources of keys compared with static keys", NOTE)
        .labels(["Measured", "Quantity", "Keys"])
        .figures(["Ratio to static keys", "95 % interval"])
        .text("Difference");
    let words = run.group_words();
    for ((group, _), own) in grouped(found.iter().map(|cost| ((&cost.group, cost.metric), cost))) {
        for cost in own {
            table.push(row(&words_of(&words, group).name, cost));
        }
    }
    Some(table)
}

const HYBRIDS_NOTE: &str = "each by the same device with that engine alone in the same repeat: mean of these quotients, and its \
                            95 % interval (Student's t on logarithms); a gain counts where chance explains it in less than 5 %, \
                            over all cells by the same quantity (Holm)";

/// Each hybrid compared with each of its engines; `None` without hybrids in the campaign.
pub(crate) fn hybrids(run: &Run<'_>) -> Option<Table> {
    let found = &run.results.hybrid_gains;
    if found.is_empty() {
        return None;
    }
    let mut table = Table::new(
        "Hybrids of engines compared with each engine alone",
        HYBRIDS_NOTE,
    )
    .labels(["Measured", "Quantity", "Hybrid", "Engine alone"])
    .figures(["Ratio to the engine alone", "95 % interval"])
    .text("Gain");
    let words = run.group_words();
    for ((group, _), own) in grouped(found.iter().map(|gain| ((&gain.group, gain.metric), gain))) {
        for gain in own {
            table.push(vec![
                Cell::label(words_of(&words, group).name.clone()),
                Cell::label(quantity(gain.metric)),
                Cell::label(gain.dut.clone()),
                Cell::label(gain.alone.clone()),
                Cell::derived(ratio_text(&gain.ratio)),
                Cell::or_missing(interval(&gain.ratio)),
                verdict(gain),
            ]);
        }
    }
    Some(table)
}

fn verdict(gain: &HybridGain) -> Cell {
    let is_better = match gain.metric {
        Metric::LatencyP50 => gain.ratio.mean < 1.0,
        _ => gain.ratio.mean > 1.0,
    };
    match gain.differs {
        Some(false) => Cell::term("none shown"),
        Some(true) if is_better => Cell::plain("gain"),
        Some(true) => Cell::word("loss"),
        None => Cell::plain(UNDECIDED),
    }
}

fn row(group: &str, cost: &KeyCost) -> Vec<Cell> {
    let every = duration_ns(cost.rekey_every_ns as f64);
    let difference = match cost.differs {
        Some(false) => Cell::term("none shown"),
        Some(true) => Cell::word("shown"),
        None => Cell::plain(UNDECIDED),
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

/// One digit more than other ratios have, as differences are small.
fn ratio_text(ratio: &Estimate) -> String {
    match ratio.mean {
        mean if mean < 2.0 => format!("{mean:.3}"),
        mean => ratio_number(mean),
    }
}

/// The interval; for a single repeat, the number of repeats.
fn interval(ratio: &Estimate) -> Option<String> {
    Some(match ratio.interval_95.ends() {
        Some((low, high)) => format!("{low:.3}–{high:.3}"),
        None => format!("({})", counted(ratio.n, "repeat")),
    })
}

const UNDECIDED: &str = "undecided: one repeat";

const fn quantity(metric: Metric) -> &'static str {
    match metric {
        Metric::PayloadThroughput => "payload throughput",
        Metric::PayloadBitsPerCpuSecond => "payload per CPU-second",
        Metric::LatencyP50 => "median round trip",
        Metric::TransactionsPerSecond => "transactions per second",
        Metric::FrameRate => "frame rate",
    }
}
