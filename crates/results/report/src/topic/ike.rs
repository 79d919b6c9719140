//! IKEv2: set-ups per second, their times and their cost.

pub(crate) mod columns;

use crate::kit::cells::{FORMAT, with_repeats, without_figure};
use crate::kit::chart::bars::{self, Bar, Lying};
use crate::kit::fact::{Fact, Subject};
use crate::kit::format::Scale;
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use maud::Markup;
use plan::{IkeTest, Measurement};
use stats::{CellResult, Estimate, IkeFigures};
use units::human::{data, duration_ns, number};

pub(super) const SECTION: Section = Section::result("ike", "IKEv2 set-ups", |run, out| {
    let how =
        "Solid: set-ups per second that completed in time. Striped: offered ones that did not.";
    out.chart("IKEv2 set-ups per second", how, || chart(run, "ike-rates"));
    out.tables(set_ups(run));
});

/// Every cell; `None` if no set-ups are measured.
fn set_ups(run: &Run<'_>) -> Option<Table> {
    let note = format!(
        "peers beside gw2 set up tunnels to gw1, each its own, at a rate that does not wait for earlier ones; times \
         count from the intended start, and failed set-ups as infinitely long; packets and bytes (contents of UDP) \
         both ways, and CPU time of gw1's processes, by completed set-ups; failures: of all repeats; {FORMAT}"
    );
    let figures = [
        "Rate",
        "In time",
        "p50",
        "p99",
        "Failed",
        "Packets",
        "Bytes",
        "CPU of gw1",
    ];
    let mut table = Table::new("IKEv2 set-ups", note)
        .labels(["Load", "DUT"])
        .figures(figures);
    for cell in &run.results.cells {
        let Some(test) = test_of(run, cell) else {
            continue;
        };
        // Not the plan's name, which lacks the mark of an insecure device.
        let labels = [test.in_words(), run.label(&cell.dut)].map(Cell::label);
        let row = match cell.ike() {
            Some(found) => row(cell, found),
            None => without_figure(cell, figures.len()),
        };
        table.push(labels.into_iter().chain(row).collect());
    }
    table.with_rows()
}

fn test_of<'r>(run: &'r Run<'_>, cell: &CellResult) -> Option<&'r IkeTest> {
    match &run.planned(cell)?.measurement {
        Measurement::Ike(test) => Some(test),
        _ => None,
    }
}

fn rate(found: &IkeFigures) -> String {
    let rate = number(found.offered_per_s.mean);
    // All rates of the search were carried.
    let is_open = found.is_searched && found.refused_per_s.is_none();
    if is_open {
        format!("≥ {rate}/s")
    } else {
        format!("{rate}/s")
    }
}

fn row(cell: &CellResult, found: &IkeFigures) -> Vec<Cell> {
    let time = |estimate: &Option<Estimate>| {
        let mean = estimate.as_ref().map(|it| duration_ns(it.mean));
        Cell::or_missing(mean)
    };
    let failed: u64 = found.failed.values().sum();
    let most = found.failed.iter().max_by_key(|(_, count)| **count);
    let failed = match most {
        None => "0".to_owned(),
        Some((name, _)) => format!("{failed} of {} ({name})", found.intended),
    };
    vec![
        Cell::plain(with_repeats(rate(found), cell)),
        Cell::plain(format!("{} %", number(100.0 * found.in_time_ratio.mean))),
        time(&found.p50_ns),
        time(&found.p99_ns),
        Cell::plain(failed),
        Cell::plain(number(found.datagrams_each.mean)),
        Cell::plain(data(found.bytes_each.mean)),
        time(&found.gateway_cpu_each_ns),
    ]
}

/// `99.8 % in time, 99 % within 51.3 ms`.
fn in_time(found: &IkeFigures) -> String {
    let share = format!("{} % in time", number(100.0 * found.in_time_ratio.mean));
    match &found.p99_ns {
        Some(p99) => format!("{share}, 99 % within {}", duration_ns(p99.mean)),
        None => share,
    }
}

/// The highest rate of a device, over its cells.
pub(super) fn facts(of: &Subject<'_>) -> Vec<Fact> {
    let (run, device) = (of.run, of.device);
    let of_device = run.results.cells.iter().filter(|cell| cell.dut == device);
    let found = of_device.filter_map(CellResult::ike);
    let highest = found.max_by(|one, other| {
        let [one, other] = [one, other].map(|it| it.offered_per_s.mean);
        one.total_cmp(&other)
    });
    let fact = highest.map(|found| Fact {
        label: "IKEv2".to_owned(),
        figure: number(found.offered_per_s.mean),
        unit: "set-ups/s".to_owned(),
        range: String::new(),
        detail: in_time(found),
        brief: String::new(),
    });
    fact.into_iter().collect()
}

/// Offered set-ups per second, and the part in time; `None` without a figure.
fn chart(run: &Run<'_>, id: &str) -> Option<Markup> {
    let cells = run.results.cells.iter();
    let bars = cells.filter_map(|cell| {
        let test = test_of(run, cell)?;
        // Not those completed per second: a schedule of 40 set-ups at 20 per second is over in less
        // than 2 s, so that these exceed the offered ones.
        let figure = cell.ike().map(|found| {
            let (offered, share) = (&found.offered_per_s, found.in_time_ratio.mean);
            Lying {
                value: offered.mean * share,
                repeats: [offered.min * share, offered.max * share],
                offered: Some(offered.mean),
                text: rate(found),
            }
        });
        Some(Bar {
            setting: test.in_words(),
            name: run.label(&cell.dut),
            cell,
            figure,
        })
    });
    let bars: Vec<Bar<'_>> = bars.collect();
    let words = (
        "IKEv2 set-ups per second",
        "set-ups per second",
        "not completed",
    );
    bars::draw(run, id, words, &bars, |_| Scale::plain())
}
