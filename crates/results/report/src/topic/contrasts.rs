//! DUTs compared with twins that differ in one setting: a section for each comparison that `stats`
//! declares.

use crate::kit::format::{counted, ratio_number};
use crate::kit::section::{Blocks, Section};
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::groups::words_of;
use crate::order::grouped;
use stats::{CONTRASTS, Columns, Contrast, ContrastResult, Estimate, Meaning, Metric};

pub(super) const SECTIONS: &[Section] = &{
    let mut sections = [const { section(&CONTRASTS[0]) }; CONTRASTS.len()];
    let mut at = 1;
    // Iterators cannot be used in constants.
    while at < CONTRASTS.len() {
        sections[at] = section(&CONTRASTS[at]);
        at += 1;
    }
    sections
};

const fn section(contrast: &'static Contrast) -> Section {
    Section::result(contrast.id, contrast.title, blocks).named(contrast.name)
}

fn blocks(run: &Run<'_>, out: &mut Blocks) {
    let id = out.section();
    let contrast = CONTRASTS.iter().find(|contrast| contrast.id == id);
    out.tables(contrast.and_then(|contrast| table(run, contrast)));
}

/// The results of one comparison.
fn results<'r>(
    run: &'r Run<'_>,
    contrast: &Contrast,
) -> impl Iterator<Item = &'r ContrastResult> + Clone {
    let id = contrast.id;
    let all = run.results.contrasts.iter();
    all.filter(move |one| one.contrast == id)
}

/// Each DUT compared with its twin; `None` without any.
fn table(run: &Run<'_>, contrast: &Contrast) -> Option<Table> {
    let found = results(run, contrast);
    found.clone().next()?;
    let (heading, counts) = match contrast.meaning {
        Meaning::Difference => ("Difference", "a difference is shown if"),
        Meaning::Gain => ("Gain", "a gain counts where"),
        Meaning::Change => ("Change", "a change is shown if"),
    };
    // Otherwise an interval that excludes 1 would contradict the verdict next to it.
    let is_searched = found.clone().any(|one| one.metric == Metric::FrameRate);
    let width = if is_searched {
        "; a difference of searched rates that is within the searches' width is not shown"
    } else {
        ""
    };
    let note = format!(
        "each by the same device with {} in the same repeat; mean of these quotients, and its 95 % \
         interval (Student's t on logarithms); {counts} chance explains it in less than 5 %, over all \
         cells {} (Holm){width}",
        contrast.twin,
        if contrast.is_search {
            "and quantities"
        } else {
            "by the same quantity"
        }
    );
    let names = match contrast.columns {
        Columns::Setting(setting) => vec![setting],
        Columns::Names(both) => both.to_vec(),
    };
    let mut table = Table::new(contrast.title, note)
        .labels(["Measured", "Quantity"].into_iter().chain(names))
        .figures([contrast.ratio, "95 % interval"])
        .texts([heading]);
    let words = run.group_words();
    // Rows of one group and quantity are adjacent, so that their labels merge.
    for ((group, metric), own) in grouped(found.map(|one| ((&one.group, one.metric), one))) {
        for one in own {
            let names = match contrast.columns {
                Columns::Setting(_) => vec![&one.setting],
                Columns::Names(_) => vec![&one.dut, &one.twin],
            };
            let group = words_of(&words, group).name;
            let mut row = vec![Cell::label(group), Cell::label(quantity(metric))];
            row.extend(names.into_iter().map(Cell::label));
            row.extend([
                Cell::derived(ratio_text(&one.ratio)),
                Cell::or_missing(interval(&one.ratio)),
                verdict(contrast.meaning, one),
            ]);
            table.push(row);
        }
    }
    Some(table)
}

fn verdict(meaning: Meaning, found: &ContrastResult) -> Cell {
    let is_better = match found.metric {
        Metric::LatencyP50 => found.ratio.mean < 1.0,
        _ => found.ratio.mean > 1.0,
    };
    match (found.differs, meaning) {
        (None, _) => Cell::plain("undecided: one repeat"),
        (Some(false), _) => Cell::term("none shown"),
        (Some(true), Meaning::Difference) => Cell::word("shown"),
        (Some(true), Meaning::Gain) if is_better => Cell::plain("gain"),
        (Some(true), Meaning::Gain) => Cell::word("loss"),
        (Some(true), Meaning::Change) if is_better => Cell::plain("improvement"),
        (Some(true), Meaning::Change) => Cell::word("regression"),
    }
}

/// One digit more than other ratios have, as differences are small.
fn ratio_text(ratio: &Estimate) -> String {
    in_digits_of(ratio, ratio.mean)
}

/// A number with the digits of a ratio.
fn in_digits_of(ratio: &Estimate, number: f64) -> String {
    match ratio.mean {
        mean if mean < 2.0 => format!("{number:.3}"),
        _ => ratio_number(number),
    }
}

/// The interval; for a single repeat, the number of repeats.
fn interval(ratio: &Estimate) -> Option<String> {
    Some(match ratio.interval_95.ends() {
        Some((low, high)) => {
            let [low, high] = [low, high].map(|end| in_digits_of(ratio, end));
            format!("{low}–{high}")
        }
        None => format!("({})", counted(ratio.n, "repeat")),
    })
}

const fn quantity(metric: Metric) -> &'static str {
    match metric {
        Metric::PayloadThroughput => "payload throughput",
        Metric::PayloadBitsPerCpuSecond => "payload per CPU-second",
        Metric::LatencyP50 => "median round trip",
        Metric::TransactionsPerSecond => "transactions per second",
        Metric::FrameRate => "frame rate",
    }
}

/// A sentence for each comparison with results.
pub(crate) fn findings(run: &Run<'_>) -> impl Iterator<Item = String> {
    CONTRASTS.iter().filter_map(|contrast| {
        let found = results(run, contrast);
        let range = range(found.clone().map(|one| &one.ratio))?;
        let differences = differences(found.map(|one| one.differs));
        Some(format!("{}: {differences} ({range}).", contrast.subject))
    })
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
fn range<'e>(ratios: impl Iterator<Item = &'e Estimate>) -> Option<String> {
    let ratios: Vec<&Estimate> = ratios.collect();
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
