//! Crypto devices: the facts that they report about themselves, and parts that their trials share.

pub(crate) mod columns;
pub(crate) mod fatigue;
pub(crate) mod functional;
pub(crate) mod speed;

use crate::kit::cells::reason_cell;
use crate::kit::chart::curves::distinct_colors;
use crate::kit::fact::{Fact, Subject};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::device::DeviceKind;
use crate::order::{grouped, unique};
use stats::{CellResult, DeviceTestInfo, KatVerdict};

pub(super) const SECTION: Section = Section::result("devices", "Devices", |run, out| {
    out.tables(reported(run));
})
.beside();

/// Facts that each device reports about itself; `None` if there are no facts.
fn reported(run: &Run<'_>) -> Option<Table> {
    let mut table = Table::new("Devices: reported facts", "")
        .labels(["Device"])
        .texts(["Name", "Version", "More"]);
    let found = run.results.cells.iter().filter_map(|cell| cell.device());
    let members = found.flat_map(|found| &found.members);
    for (name, own) in grouped(members.map(|one| (one.member.as_str(), one))) {
        // `grouped` returns no empty group.
        let one = own[0];
        let more: Vec<String> = one
            .more
            .iter()
            .map(|(what, value)| format!("{what}: {value}"))
            .collect();
        table.push(vec![
            Cell::label(name),
            Cell::plain(&one.name),
            Cell::plain(&one.version),
            Cell::plain(more.join("; ")),
        ]);
    }
    table.with_rows()
}

/// The main figure of a cell, in a few words; `None` if absent.
pub(crate) fn figure(cell: &CellResult) -> Option<String> {
    let found = cell.device()?;
    if found.not_offered.is_some() {
        return Some("not offered".into());
    }
    if let Some(kat) = &found.kat() {
        return Some(functional::summary(kat));
    }
    if let Some(speed) = &found.speed() {
        return Some(speed::figure(speed));
    }
    found.fatigue().map(fatigue::summary)
}

/// In place of a figure: that the device does not offer it, or the reason for its absence.
fn without_figure(cell: &CellResult) -> Cell {
    let not_offered = cell.device().and_then(|found| found.not_offered.as_ref());
    match not_offered {
        Some(_) => not_offered_cell(),
        None => reason_cell(cell),
    }
}

fn not_offered_cell() -> Cell {
    Cell::absent("not offered")
}

/// The operations that devices do not offer in the trials of a kind, one row per reason; `None` if
/// they offer everything.
fn not_offered(run: &Run<'_>, kind: DeviceKind) -> Option<Table> {
    let mut found: Vec<((String, String), String)> = Vec::new();
    let mut add = |device: String, why: &str, algorithm: &str, what: String| {
        // Reasons that differ only in the algorithm count as equal.
        let why = match algorithm {
            "" => why.to_owned(),
            algorithm => why.replace(algorithm, "it"),
        };
        found.push(((device, why), what));
    };
    // A cell may not be offered as a whole; of a functional trial, also single cases.
    for (cell, info) in run.device_cells(kind) {
        let Some(found) = cell.device() else { continue };
        if let Some(why) = &found.not_offered {
            let operation = info.operation.clone().unwrap_or_else(|| "all".to_owned());
            // An operation is an algorithm and an action.
            let algorithm = operation.split(' ').next().unwrap_or_default().to_owned();
            add(run.label(&cell.dut), why, &algorithm, operation);
        }
        for one in found.kat().iter().flat_map(|kat| &kat.algorithms) {
            let cases = one.cases.iter();
            for case in cases.filter(|case| case.verdict == KatVerdict::NotOffered) {
                let why = case.detail.as_deref().unwrap_or_default();
                // Without any offered case, the algorithm's name is enough.
                let what = if one.verdict == KatVerdict::NotOffered {
                    one.algorithm.clone()
                } else {
                    format!("{} {}", one.algorithm, case.case)
                };
                let device = device(run, cell, info, &one.member);
                add(device, why, &one.algorithm, what);
            }
        }
    }
    let note = "the reason as the device or its library reports it, or that of this program";
    let mut table = Table::new("Not offered, and why", note)
        .labels(["Device"])
        .texts(["What", "Why"]);
    for ((device, why), what) in grouped(found) {
        table.push(vec![
            Cell::label(device),
            Cell::plain(unique(what.into_iter()).join(", ")),
            Cell::reason(why),
        ]);
    }
    table.with_rows()
}

fn device(run: &Run<'_>, cell: &CellResult, info: &DeviceTestInfo, member: &str) -> String {
    match info.members.as_slice() {
        // A single device has the name of its DUT; in a batch each has its own.
        [_] => run.label(&cell.dut),
        _ => member.to_owned(),
    }
}

/// Results of the functional, speed and fatigue trials.
pub(super) fn facts(of: &Subject<'_>) -> Vec<Fact> {
    let (run, device) = (of.run, of.device);
    let own = |kind| {
        let cells = run.device_cells(kind).map(|(cell, _)| cell);
        cells.filter(move |cell| cell.dut == device)
    };
    let mut facts: Vec<Fact> = own(DeviceKind::Kat).filter_map(functional::fact).collect();
    facts.extend(speed::facts(run, device));
    facts.extend(own(DeviceKind::Fatigue).filter_map(fatigue::fact));
    facts
}

fn colors<'d>(run: &Run<'_>, duts: impl Iterator<Item = &'d String>) -> Vec<usize> {
    distinct_colors(duts.map(|dut| run.color(dut)))
}
