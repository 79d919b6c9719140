//! Values read from boxes and machines during traffic, and the energy of the traffic.

mod chart;
pub(crate) mod columns;

use crate::kit::format::{Scale, si, time_ns};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::groups::words_of;
use stats::{CellResult, EnergyResult};

/// Maximum number of charts; the tables have all cells.
const CHARTS_MAX: usize = 12;
pub(super) const SECTION: Section = Section::result("monitored", "Boxes and power", |run, out| {
    out.tables(energy(run));
    out.tables(monitored(run));
    let words = run.group_words();
    let cells = run.results.cells.iter();
    let monitored: Vec<&CellResult> = cells.filter(|cell| !cell.monitored.is_empty()).collect();
    for (index, cell) in monitored.iter().take(CHARTS_MAX).enumerate() {
        let group = words_of(&words, &cell.group).name;
        out.folded_chart(
            true,
            format!("{}: {group}", run.label(&cell.dut)),
            reading(monitored.len()),
            || chart::draw(run, cell, &format!("monitored-{index}")),
        );
    }
    out.details("Readings under each load", monitored_loads(run));
});

fn reading(cells: usize) -> String {
    let most = if cells > CHARTS_MAX {
        format!(" The first {CHARTS_MAX} of {cells} measurements have a chart.")
    } else {
        String::new()
    };
    format!("Values over the time of the first measured repeat; grey: traffic flowed.{most}")
}

const NOTE: &str = "readings that began and ended while traffic of the figure's load flowed; mean of the repeats' means, \
                    and the highest reading of all; missed: readings of the whole trial that failed or came too late; the tester's CPU time: of all readings of the \
                    box or machine, with the commands that they started";

const ENERGY_NOTE: &str = "mean power while traffic of the figure's load flowed; energy per traffic: that power by the rate \
                           carried meanwhile in all loaded directions, of payload for tools, of frames with their FCS (L2) \
                           for frame tests; a machine's power is that of the whole machine, stations included";

/// Every value of every cell.
fn monitored(run: &Run<'_>) -> Option<Table> {
    let mut table = Table::new("Read of boxes and machines", NOTE)
        .labels(["Measured", "Device", "Of", "Value"])
        .figures(["Mean", "Highest", "Readings", "Missed", "Tester's CPU time"])
        .texts(["Why missed"]);
    each(run, |measured, cell| {
        for value in &cell.monitored {
            let scale = Scale::of(&value.unit);
            let missed = value.missed_because.clone();
            table.push(vec![
                Cell::label(measured),
                Cell::label(run.label(&cell.dut)),
                Cell::label(&*value.device),
                Cell::label(&*value.name),
                match &value.mean {
                    Some(mean) => Cell::plain(scale.estimate(mean)),
                    // The value was to be read, so its absence is a fault.
                    None => Cell::reason("no reading"),
                },
                Cell::or_missing(value.max.map(|max| scale.value(max))),
                Cell::plain(value.readings.to_string()),
                Cell::plain(value.missed.to_string()),
                Cell::plain(time_ns(value.tester_cpu_ns as f64)),
                Cell::or_missing(missed),
            ]);
        }
    });
    table.with_rows()
}

/// The same by load, for cells with several loads.
fn monitored_loads(run: &Run<'_>) -> Option<Table> {
    let note = "all readings under that load, of all repeats; frames per second of one direction";
    let mut table = Table::new("Read under each load", note)
        .labels(["Measured", "Device", "Of", "Value", "Load"])
        .figures(["Mean", "Highest", "Readings"]);
    each(run, |measured, cell| {
        // With a single load, the table of all values has the same figures.
        let several = cell.monitored.iter().filter(|value| value.loads.len() > 1);
        for value in several {
            for load in &value.loads {
                let scale = Scale::of(&value.unit);
                let name = match load.frames_per_s {
                    Some(0) => "as fast as possible".to_owned(),
                    Some(rate) => si(rate as f64, "pps"),
                    None => "–".to_owned(),
                };
                table.push(vec![
                    Cell::label(measured),
                    Cell::label(run.label(&cell.dut)),
                    Cell::label(&*value.device),
                    Cell::label(&*value.name),
                    Cell::label(name),
                    Cell::plain(scale.value(load.mean)),
                    Cell::plain(scale.value(load.max)),
                    Cell::plain(load.readings.to_string()),
                ]);
            }
        }
    });
    table.with_rows()
}

/// Power and energy of every cell.
fn energy(run: &Run<'_>) -> Option<Table> {
    let mut table = Table::new("Power and energy", ENERGY_NOTE)
        .labels(["Measured", "Device", "Power of"])
        .figures(["Power", "Energy", "Carried", "Energy per traffic"]);
    each(run, |measured, cell| {
        for found in &cell.energy {
            let carried = found.carried_bps.as_ref().map(|bps| {
                let rate = si(bps.mean, "bit/s");
                // Rates of frame tests include headers, the ones of tools only payload.
                match &found.layer {
                    Some(layer) if layer == "l2" => format!("{rate} L2"),
                    _ => format!("{rate} payload"),
                }
            });
            let per_gbit = found.joules_per_gbit.as_ref();
            table.push(vec![
                Cell::label(measured),
                Cell::label(run.label(&cell.dut)),
                Cell::label(whose(found)),
                Cell::plain(Scale::of("W").estimate(&found.power_w)),
                Cell::plain(Scale::of("J").value(found.energy_j.mean)),
                Cell::or_missing(carried),
                Cell::or_missing(per_gbit.map(|found| Scale::of("J/Gbit").estimate(found))),
            ]);
        }
    });
    table.with_rows()
}

fn whose(found: &EnergyResult) -> String {
    let names = found.devices.join(", ");
    match (found.is_machine, found.devices.len()) {
        (true, 1) => "the whole machine, stations included".to_owned(),
        (true, _) => format!("the whole machines, stations included: {names}"),
        (false, 1) => names,
        (false, _) => format!("both boxes: {names}"),
    }
}

/// Calls `row` for each monitored cell, with the words of its group.
fn each(run: &Run<'_>, mut row: impl FnMut(&str, &CellResult)) {
    let words = run.group_words();
    for cell in &run.results.cells {
        if !cell.monitored.is_empty() {
            row(&words_of(&words, &cell.group).name, cell);
        }
    }
}
