//! Claims of data sheets next to measured figures.

pub(crate) mod columns;

use crate::kit::format::{Scale, counted, ratio_number};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::frames::frames_in_words;
use stats::{ClaimResult, ClaimVerdict};

pub(super) const SECTION: Section =
    Section::result("claims", "Claims and measured figures", |run, out| {
        out.tables(claims(run, out.is_short()))
    })
    .named("Claims");

/// The claims of a run with their verdicts, and unless `short` their conditions.
fn claims(run: &Run<'_>, short: bool) -> Vec<Table> {
    let found = &run.results.claims;
    match (found.is_empty(), short) {
        (true, _) => Vec::new(),
        (false, true) => vec![verdicts(run, true)],
        (false, false) => vec![verdicts(run, false), conditions(found)],
    }
}

const NOTE: &str = "measured: mean ± largest distance from it; ratio: measured by claimed; met or not met: the whole \
                    interval of the figure is on one side of the claim (Student's t on logarithms, 5 % over all claims, Holm), else not decided; numbers are those of the \
                    table of sources";

fn verdicts(run: &Run<'_>, short: bool) -> Table {
    let note = if short { "" } else { NOTE };
    let table = Table::new("Claims and measured figures", note).labels(["No.", "Device"]);
    // The last columns of the short form may not fit, and the verdict is the answer.
    let mut table = if short {
        table.texts(["Verdict", "Claim", "Why"])
    } else {
        let table = table.texts(["Claim"]).figures(["Measured", "Ratio"]);
        table.texts(["Verdict", "Why"])
    };
    for (index, claim) in run.results.claims.iter().enumerate() {
        let device = run.cell(&claim.cell).map_or(&claim.dut, |cell| &cell.dut);
        let number = Cell::label((index + 1).to_string());
        let device = Cell::label(device);
        let text = Cell::plain(format!("{}: {}", measure(run, claim), claim.claim));
        let verdict = claim.verdict.name();
        let verdict = match claim.verdict {
            ClaimVerdict::Met => Cell::term(verdict),
            ClaimVerdict::NotMet | ClaimVerdict::NotDecided => Cell::word(verdict),
        };
        table.push(if short {
            // The reason contains the measured figure.
            let why = format!("{} Claimed by {}.", claim.reason, claim.source);
            vec![number, device, verdict, text, Cell::plain(why)]
        } else {
            let measured = Cell::or_missing(measured(claim));
            let ratio = Cell::derived_or_missing(claim.ratio.map(ratio_number));
            let why = Cell::plain(claim.reason.clone());
            vec![number, device, text, measured, ratio, verdict, why]
        });
    }
    table
}

/// The measured quantity, with the frames of its cell: a data sheet has a claim for each size.
fn measure(run: &Run<'_>, claim: &ClaimResult) -> String {
    let frames = run.cell(&claim.cell).and_then(|cell| cell.frame_cell());
    match frames {
        Some(found) => format!("{}, {}", claim.measure, frames_in_words(&found.traffic)),
        None => claim.measure.clone(),
    }
}

fn measured(claim: &ClaimResult) -> Option<String> {
    let found = claim.measured.as_ref()?;
    let scale = match claim.unit.as_str() {
        "ns" => Scale::time(found.mean),
        "frames_per_s" => Scale::si(found.mean, "pps"),
        _ => Scale::si(found.mean, "bit/s"),
    };
    Some(scale.estimate(found))
}

/// The source of each claim, its stated conditions, and the conditions of the measurement.
fn conditions(found: &[ClaimResult]) -> Table {
    let mut table = Table::new("Claims: sources and conditions", "")
        .labels(["No."])
        .texts(["Source", "Conditions there", "Cell", "Conditions here"]);
    for (index, claim) in found.iter().enumerate() {
        let there = match &claim.conditions {
            Some(stated) => Cell::plain(stated),
            None => Cell::absent("not stated"),
        };
        table.push(vec![
            Cell::label((index + 1).to_string()),
            Cell::plain(&claim.source),
            there,
            Cell::plain(&claim.cell),
            Cell::plain(&claim.conditions_here),
        ]);
    }
    table
}

pub(crate) fn finding(run: &Run<'_>) -> Vec<String> {
    let all = &run.results.claims;
    if all.is_empty() {
        return Vec::new();
    }
    let count = |verdict| all.iter().filter(|one| one.verdict == verdict).count();
    vec![format!(
        "Of {}, {} met, {} not met, {} not decided.",
        counted(all.len() as u64, "claim"),
        count(ClaimVerdict::Met),
        count(ClaimVerdict::NotMet),
        count(ClaimVerdict::NotDecided)
    )]
}
