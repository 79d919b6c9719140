//! Devices under impairments of the path.

use crate::kit::cells::reason_cell;
use crate::kit::format::{Scale, ratio_number};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::order::{grouped, unique};
use plan::{Axis, ImpairProfile};
use stats::{CellResult, Estimate, RankedBy};

pub(super) const SECTION: Section = Section::result("weather", "Impairments", |run, out| {
    out.tables(weather(run));
});

const NOTE: &str = "mean of the repeats";

/// The note if the campaign also measures without an impairment.
const NOTE_PLAIN: &str = "mean of the repeats; in brackets: of the figure without an impairment, on the same path; \
                          devices: the best without an impairment first";

/// Candidate quantities of a table: the first one found in any of its cells is used.
const QUANTITIES: [RankedBy; 4] = [
    RankedBy::PayloadThroughput,
    RankedBy::RoundTripP50,
    RankedBy::FrameRate,
    RankedBy::LatencyP50,
];

/// A cell with the name of its impairment profile.
type Impaired<'r> = (&'r str, &'r CellResult);

/// One table per group of cells measured under several impairments.
fn weather(run: &Run<'_>) -> Vec<Table> {
    let cells = run.plan().cells.iter().zip(&run.results.cells);
    let impaired = cells.filter_map(|(planned, result)| {
        let profile = planned.impair.as_ref()?;
        // Cells that differ in nothing but the impairment answer one question.
        let question = planned.group_without(Axis::Impair);
        Some((question, (profile.name.as_str(), result)))
    });
    let questions = grouped(impaired).into_iter();
    questions
        // A single impairment compares nothing.
        .filter(|(_, cells)| unique(cells.iter().map(|(profile, _)| *profile)).len() > 1)
        .map(|(question, cells)| table(run, &question, &cells))
        .collect()
}

fn table(run: &Run<'_>, question: &str, cells: &[Impaired<'_>]) -> Table {
    let has = |by: &RankedBy| cells.iter().any(|(_, cell)| by.of(cell).is_some());
    let by = QUANTITIES.into_iter().find(has).unwrap_or(QUANTITIES[0]);
    let at = |profile: &str, dut: &str| {
        let mut all = cells.iter();
        all.find(|(name, cell)| *name == profile && cell.dut == dut)
            .map(|(_, cell)| *cell)
    };
    let plain = |dut: &str| by.of(at(ImpairProfile::NONE, dut)?);
    let mut duts = unique(cells.iter().map(|(_, cell)| cell.dut.as_str()));
    // By the unimpaired figure, which is the same in all rows.
    let better = |dut: &str| {
        let mean = plain(dut).map(|found| found.mean);
        let signed = if by.higher_is_better() { -1.0 } else { 1.0 };
        // Devices without a figure come last.
        mean.map_or(f64::INFINITY, |mean| signed * mean)
    };
    duts.sort_by(|one, other| better(one).total_cmp(&better(other)));
    let caption = format!("Under impairments: {question}");
    // There is a figure to compare with only if the path was also measured unimpaired.
    let is_plain_there = cells.iter().any(|(name, _)| *name == ImpairProfile::NONE);
    let note = if is_plain_there { NOTE_PLAIN } else { NOTE };
    let mut table = Table::new(caption, note)
        .labels(["Impairment"])
        .figures(duts.iter().map(|dut| run.label(dut)));
    for profile in unique(cells.iter().map(|(profile, _)| *profile)) {
        let figures = duts.iter().map(|dut| match at(profile, dut) {
            None => Cell::missing(),
            Some(cell) => figure(by, cell, plain(dut).as_ref()),
        });
        let label = Cell::label(profile);
        table.push([label].into_iter().chain(figures).collect());
    }
    table
}

/// `41.2 Mbit/s (0.31)`.
fn figure(by: RankedBy, cell: &CellResult, plain: Option<&Estimate>) -> Cell {
    let Some(found) = by.of(cell) else {
        return reason_cell(cell);
    };
    let scale = match by {
        RankedBy::PayloadThroughput => Scale::si(found.mean, "bit/s"),
        RankedBy::FrameRate => Scale::si(found.mean, "pps"),
        _ => Scale::time(found.mean),
    };
    let value = scale.value(found.mean);
    Cell::plain(match plain.filter(|plain| plain.mean > 0.0) {
        Some(plain) => format!("{value} ({})", ratio_number(found.mean / plain.mean)),
        None => value,
    })
}
