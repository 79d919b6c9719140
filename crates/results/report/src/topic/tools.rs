//! The same transfers measured by several tools.

use crate::kit::format::{bit_rate, counted, percent};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::order::grouped;
use stats::ToolCheck;

pub(super) const SECTION: Section = Section::result("tools", "Cross-check of tools", |run, out| {
    out.tables(tools(run))
});

const NOTE: &str = "payload received: mean ± largest distance from it; difference: of the farthest figures, in per cent of \
                    the larger, paired by repeat, with its 95 % interval (Student's t on logarithms); frames: our own generator at the same load; \
                    tools disagree if more than 5 % are sure (5 % over all transfers, Holm)";

/// The result of each tool, for transfers measured by several tools; `None` without any.
fn tools(run: &Run<'_>) -> Option<Table> {
    let found = &run.results.tool_checks;
    if found.is_empty() {
        return None;
    }
    let mut table = Table::new("Cross-check of tools", NOTE)
        .labels(["Transfer", "Device", "Tool"])
        .figures(["Received", "Difference"])
        .texts(["Tools", "Likely reason"]);
    found.iter().for_each(|check| rows(&mut table, check));
    Some(table)
}

fn rows(table: &mut Table, check: &ToolCheck) {
    for (index, figure) in check.figures.iter().enumerate() {
        let is_first = index == 0;
        // These columns are about the transfer, not about a single tool.
        let once = |cell: Cell| if is_first { cell } else { Cell::plain("") };
        let (word, reason) = match (check.agree, &check.reason) {
            (true, _) => (Cell::term("no difference shown"), Cell::plain("")),
            (false, Some(reason)) => (Cell::word("disagree"), Cell::plain(reason)),
            (false, None) => (Cell::word("disagree"), Cell::plain("none found")),
        };
        table.push(vec![
            Cell::label(&check.question),
            Cell::label(&check.dut),
            Cell::label(&figure.tool),
            Cell::or_missing(Some(bit_rate(&figure.payload_throughput_bps))),
            once(Cell::derived(difference(check))),
            once(word),
            once(reason),
        ]);
    }
}

/// `6.0 % (2.1–9.8 %)`. Below 0, the other tool may be slower.
fn difference(check: &ToolCheck) -> String {
    let middle = percent(check.difference_percent);
    match (check.difference_low_percent, check.difference_high_percent) {
        (Some(low), Some(high)) => format!("{middle} ({low:.1} to {high:.1} %)"),
        _ => middle,
    }
}

pub(crate) fn finding(run: &Run<'_>) -> Option<String> {
    let checks = &run.results.tool_checks;
    if checks.is_empty() {
        return None;
    }
    let by_agreement = grouped(checks.iter().map(|check| (check.agree, check)));
    let disagree = by_agreement.iter().find(|(agree, _)| !agree);
    let disagree = disagree.map_or(0, |(_, some)| some.len());
    let widest = checks.iter().map(|check| check.difference_percent);
    // The largest in either direction, with its sign.
    let widest = widest.fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    Some(format!(
        "Tools disagree in {disagree} of {}; the largest difference is {widest:.1} %.",
        counted(checks.len() as u64, "transfer")
    ))
}
