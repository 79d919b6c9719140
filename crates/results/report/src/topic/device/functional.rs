//! The functional trial of crypto devices.

use super::{not_offered, not_offered_cell, without_figure};
use crate::kit::chart::bars::{self, Bar, Lying};
use crate::kit::fact::Fact;
use crate::kit::format::{Scale, counted};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::device::{DeviceKind, figures};
use crate::order::unique;
use maud::Markup;
use stats::{CellResult, DeviceTestInfo, KatAlgorithm, KatCase, KatResult, KatVerdict, family};

pub(crate) const SECTION: Section = Section::result(
    "functional",
    "Functional trial",
    |run, out| {
        let how = "Solid: algorithms that give the right result. Striped: algorithms that fail or are not \
                   offered.";
        out.chart("Algorithms that pass", how, || chart(run, "kat"));
        out.tables(kat(run));
        out.details(
            "Test cases by algorithm",
            groups(run).map(|group| cases(&group)),
        );
    },
);

const NOTE: &str = "pass: every input of every case and repeat gave the right result; wrong: with the offset of the first differing \
                    byte; error: the device reported a failure, or the result is unknown; no vectors: \
                    none are published, so it was tried against the CPU alone";

/// A column: a device, its cell, and its algorithms.
struct Column<'r> {
    name: String,
    cell: &'r CellResult,
    found: Vec<&'r KatAlgorithm>,
}

/// For each group: algorithms by devices, and the failed cases; then the operations not offered.
pub(super) fn kat(run: &Run<'_>) -> Vec<Table> {
    let mut tables = Vec::new();
    for columns in groups(run) {
        tables.push(matrix(&columns));
        tables.extend(failures(&columns));
    }
    tables.extend(not_offered(run, DeviceKind::Kat));
    tables
}

fn groups<'r>(run: &'r Run<'_>) -> impl Iterator<Item = Vec<Column<'r>>> {
    run.device_groups(DeviceKind::Kat).into_iter().map(|group| {
        let columns = group
            .iter()
            .flat_map(|(cell, info)| columns(run, cell, info));
        columns.collect()
    })
}

/// `23 of 25 algorithms pass`.
pub(super) fn summary(found: &KatResult) -> String {
    let all = found.passed + found.failed + found.not_offered;
    format!("{} of {} pass", found.passed, counted(all, "algorithm"))
}

fn columns<'r>(run: &Run<'_>, cell: &'r CellResult, info: &'r DeviceTestInfo) -> Vec<Column<'r>> {
    let found = cell.device().and_then(|found| found.kat());
    let algorithms = found.map_or(&[][..], |found| &found.algorithms);
    let column = |member: &'r String| Column {
        name: match info.members.as_slice() {
            // A single device has the name of its DUT, with any mark.
            [_] => run.label(&cell.dut),
            _ => member.clone(),
        },
        cell,
        found: algorithms
            .iter()
            .filter(|one| one.member == *member)
            .collect(),
    };
    info.members.iter().map(column).collect()
}

/// The names of all algorithms in order, without duplicates.
fn names<'r>(columns: &[Column<'r>]) -> Vec<&'r str> {
    let found = columns.iter().flat_map(|column| &column.found);
    let mut names = unique(found.map(|one| one.algorithm.as_str()));
    // Algorithms of a family are adjacent; families are ordered by their first algorithm.
    let families = unique(names.iter().map(|name| family(name)));
    names.sort_by_key(|name| families.iter().position(|known| *known == family(name)));
    names
}

fn matrix(columns: &[Column<'_>]) -> Table {
    let mut table = Table::new("Functional trial", NOTE)
        .labels(["Type", "Algorithm"])
        .texts(columns.iter().map(|column| &column.name));
    // A device may lack algorithms of the others.
    let names = names(columns);
    for name in &names {
        let mut cells = vec![Cell::label(family(name)), Cell::label(*name)];
        cells.extend(columns.iter().map(|column| {
            let found = column.found.iter().find(|one| one.algorithm == *name);
            match found {
                Some(found) => verdict(found),
                None => without_figure(column.cell),
            }
        }));
        table.push(cells);
    }
    // Without any result, one row contains the reasons.
    if names.is_empty() {
        let mut cells = vec![Cell::label(""), Cell::label("all")];
        cells.extend(columns.iter().map(|column| without_figure(column.cell)));
        table.push(cells);
    }
    table
}

fn verdict(found: &KatAlgorithm) -> Cell {
    match found.verdict {
        KatVerdict::Pass => {
            let has = |verdict| found.cases.iter().any(|case| case.verdict == verdict);
            // Passed as far as it is offered, and as far as vectors are published.
            Cell::term(
                match (has(KatVerdict::NotOffered), has(KatVerdict::NonePublished)) {
                    (true, true) => "pass, in part, no vectors",
                    (true, false) => "pass, in part",
                    (false, true) => "pass, no vectors",
                    (false, false) => "pass",
                },
            )
        }
        KatVerdict::NotOffered | KatVerdict::NonePublished => not_offered_cell(),
        KatVerdict::Error => Cell::word("error"),
        KatVerdict::Wrong => {
            // Of the first wrong case; the table of failures has the others.
            let wrong = |case: &&KatCase| case.verdict == KatVerdict::Wrong;
            let first = found.cases.iter().find(wrong);
            Cell::word(match first.and_then(|case| case.first_differing_byte) {
                Some(byte) => format!("wrong at byte {byte}"),
                None => "wrong".to_owned(),
            })
        }
    }
}

/// The failed cases; `None` if all passed.
fn failures(columns: &[Column<'_>]) -> Option<Table> {
    let mut table = Table::new(
        "Functional trial: what did not pass",
        "the first input with a wrong result of each case; bytes count from 0",
    )
    .labels(["Device", "Algorithm", "Case"])
    .texts(["Input"])
    .figures(["First wrong byte"])
    .texts(["What came"]);
    for column in columns {
        for one in column.found.iter().filter(|one| one.verdict.is_failure()) {
            for case in one.cases.iter().filter(|case| case.verdict.is_failure()) {
                let byte = case.first_differing_byte.map(|byte| byte.to_string());
                table.push(vec![
                    Cell::label(&column.name),
                    Cell::label(&one.algorithm),
                    Cell::label(&case.case),
                    Cell::or_missing(case.input.clone()),
                    Cell::or_missing(byte),
                    Cell::reason(case.detail.as_deref().unwrap_or_default()),
                ]);
            }
        }
    }
    table.with_rows()
}

/// Every case, with the number of inputs tried.
fn cases(columns: &[Column<'_>]) -> Table {
    let mut table = Table::new(
        "Functional trial: inputs",
        "inputs tried in each repeat; the worst repeat's result",
    )
    .labels(["Algorithm", "Case"])
    .figures(columns.iter().map(|column| &column.name));
    for name in names(columns) {
        let of = |column: &Column<'_>| -> Vec<KatCase> {
            let found = column.found.iter().find(|one| one.algorithm == name);
            found.map_or_else(Vec::new, |found| found.cases.clone())
        };
        let all: Vec<Vec<KatCase>> = columns.iter().map(of).collect();
        let different = unique(all.iter().flatten().map(|case| case.case.as_str()));
        for case in different {
            let mut cells = vec![Cell::label(name), Cell::label(case)];
            cells.extend(all.iter().map(|own| {
                let found = own.iter().find(|found| found.case == case);
                found.map_or_else(Cell::missing, tried)
            }));
            table.push(cells);
        }
    }
    table
}

fn tried(case: &KatCase) -> Cell {
    match case.verdict {
        KatVerdict::Pass => Cell::plain(case.tried.to_string()),
        KatVerdict::NotOffered => not_offered_cell(),
        KatVerdict::NonePublished => Cell::absent(case.verdict.name()),
        KatVerdict::Error | KatVerdict::Wrong => {
            Cell::word(format!("{} of {}", case.verdict.name(), case.tried))
        }
    }
}

pub(super) fn fact(cell: &CellResult) -> Option<Fact> {
    let found = figures(cell)?.kat()?;
    let all = found.passed + found.failed + found.not_offered;
    Some(Fact {
        label: "Functional trial".into(),
        figure: format!("{} of {all}", found.passed),
        unit: "algorithms pass".into(),
        range: String::new(),
        detail: failed_names(found),
        brief: String::new(),
    })
}

pub(super) fn failed_names(found: &KatResult) -> String {
    let wrong = |verdict: KatVerdict| {
        let mut names: Vec<&str> = found
            .algorithms
            .iter()
            .filter(|one| one.verdict == verdict)
            .map(|one| one.algorithm.as_str())
            .collect();
        // Results of one algorithm on several devices are adjacent.
        names.dedup();
        names.join(", ")
    };
    let mut parts = Vec::new();
    for (verdict, word) in [(KatVerdict::Wrong, "wrong"), (KatVerdict::Error, "error")] {
        let names = wrong(verdict);
        if !names.is_empty() {
            parts.push(format!("{word}: {names}"));
        }
    }
    parts.push(format!("{} not offered", found.not_offered));
    parts.join("; ")
}

/// The chart of all functional trials; `None` without a figure.
fn chart(run: &Run<'_>, id: &str) -> Option<Markup> {
    let bars = run.device_cells(DeviceKind::Kat).map(|(cell, _)| {
        let found = figures(cell).and_then(|found| found.kat());
        let figure = found.map(|found| {
            let all = found.passed + found.failed + found.not_offered;
            Lying {
                value: found.passed as f64,
                repeats: [found.passed as f64; 2],
                offered: Some(all as f64),
                text: format!("{} of {all} pass", found.passed),
            }
        });
        Bar {
            setting: String::new(),
            name: run.label(&cell.dut),
            cell,
            figure,
        }
    });
    let bars: Vec<Bar<'_>> = bars.collect();
    let title = "Algorithms that pass the functional trial";
    let words = (title, "algorithms", "failed or not offered");
    bars::draw(run, id, words, &bars, |_| Scale::plain())
}
