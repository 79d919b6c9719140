//! Costs of key sources relative to static keys, and gains of hybrid engines over each engine
//! alone.

use crate::kit::format::{counted, ratio_number};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::groups::words_of;
use crate::order::grouped;
use stats::{Estimate, HybridGain, KeyCost, Metric};
use units::human::duration_ns;

pub(super) const HYBRIDS: Section = Section::result(
    "hybrids",
    "Hybrids of engines compared with each engine alone",
    |run, out| out.tables(hybrids(run)),
)
.named("Hybrids");

pub(super) const KEYS: Section = Section::result(
    "keys",
    "Sources of keys compared with static keys",
    |run, out| out.tables(keys(run)),
)
.named("Sources of keys");

const NOTE: &str = "each by the same device with static keys in the same repeat: mean of these quotients, and its 95 % \
                    interval (Student's t on logarithms); a difference is shown if chance explains it in less than 5 %, \
                    over all cells by the same quantity (Holm)";

/// Each source in each group; `None` if no source was compared with static keys.
fn keys(run: &Run<'_>) -> Option<Table> {
    let found = &run.results.key_costs;
    if found.is_empty() {
        return None;
    }
    let mut table = Table::new("Sources of keys compared with static keys", NOTE)
        .labels(["Measured", "Quantity", "Keys"])
        .figures(["Ratio to static keys", "95 % interval"])
        .text("Difference");
    let words = run.group_words();
    // Rows of one group and quantity are adjacent, so that their labels merge.
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
fn hybrids(run: &Run<'_>) -> Option<Table> {
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

pub(crate) fn keys_finding(run: &Run<'_>) -> Option<String> {
    let costs = run.results.key_costs.iter();
    let ratios = costs.map(|cost| (&cost.ratio, cost.differs));
    compared("Sources of keys compared with static keys", ratios)
}

pub(crate) fn hybrids_finding(run: &Run<'_>) -> Option<String> {
    let gains = run.results.hybrid_gains.iter();
    let ratios = gains.map(|gain| (&gain.ratio, gain.differs));
    compared("Hybrids compared with each engine alone", ratios)
}

/// The joint result of comparisons of one kind, from their ratios and whether each shows a
/// difference; `None` without any.
fn compared<'e>(
    what: &str,
    ratios: impl Iterator<Item = (&'e Estimate, Option<bool>)> + Clone,
) -> Option<String> {
    let range = range(ratios.clone())?;
    let differences = differences(ratios.map(|(_, differs)| differs));
    Some(format!("{what}: {differences} ({range})."))
}

/// `no difference shown in 16 comparisons`.
fn differences(all: impl Iterator<Item = Option<bool>>) -> String {
    let all: Vec<Option<bool>> = all.collect();
    let comparisons = counted(all.len() as u64, "comparison");
    let shown = all.iter().filter(|one| **one == Some(true)).count();
    let undecided = all.iter().filter(|one| one.is_none()).count();
    match (shown, undecided) {
        (0, 0) => format!("no difference shown in {comparisons}"),
        // If nothing is decided, `no difference shown` would be wrong.
        (_, undecided) if undecided == all.len() => {
            format!("one repeat decides none of {comparisons}")
        }
        (shown, 0) => format!("a difference shown in {shown} of {comparisons}"),
        (shown, undecided) => {
            format!("a difference shown in {shown} of {comparisons}, {undecided} undecided")
        }
    }
}

/// `ratios 0.988–1.005, 95 % intervals 0.970–1.020`.
fn range<'e>(ratios: impl Iterator<Item = (&'e Estimate, Option<bool>)>) -> Option<String> {
    let ratios: Vec<&Estimate> = ratios.map(|(ratio, _)| ratio).collect();
    let least = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::min);
    let most = |values: &mut dyn Iterator<Item = f64>| values.reduce(f64::max);
    let means = || ratios.iter().map(|ratio| ratio.mean);
    let mut text = format!(
        "ratios {:.3}–{:.3}",
        least(&mut means())?,
        most(&mut means())?
    );
    let ends = || ratios.iter().filter_map(|ratio| ratio.interval_95.ends());
    let low = least(&mut ends().map(|(low, _)| low));
    let high = most(&mut ends().map(|(_, high)| high));
    if let Some((low, high)) = low.zip(high) {
        text.push_str(&format!(", 95 % intervals {low:.3}–{high:.3}"));
    }
    Some(text)
}
