//! The fatigue trial of crypto devices.

mod chart;

use super::{not_offered, without_figure};
use crate::kit::fact::Fact;
use crate::kit::format::{bytes, counted, percent, si};
use crate::kit::section::Section;
use crate::kit::table::{Cell, Table};
use crate::layout::Run;
use crate::layout::device::{self, DeviceKind};
use crate::order::grouped;
use crate::topic::published::is_share;
use stats::{CellResult, FatigueBatch, FatigueClass, FatigueDevice, FatigueResult, Survival};
use std::time::Duration;
use units::human::duration_ns;

pub(crate) const SECTION: Section = Section::result("fatigue", "Fatigue trial", |run, out| {
        out.chart(
            "Survival: share of devices that work for longer",
            "Line: Kaplan-Meier estimate, until the first failure of each device. Shaded: its 95 % interval. \
             Ticks: devices without a failure when the trial was over.",
            || chart::survival(run, "fatigue-survival"),
        );
        for (index, batch) in run.results.fatigue_batches.iter().enumerate() {
            out.chart(
                format!(
                    "Time without failure over the batch: {}",
                    batch_name(run, batch)
                ),
                "Devices by their time under load until the first failure, or until the end of the trial.",
                || chart::batch(run, batch, &format!("fatigue-batch-{index}")),
            );
        }
        out.tables(fatigue(run, out.is_short()));
    }).named("Fatigue");

/// Maximum steps of a survival curve; longer curves print evenly spaced steps, and their number.
const STEPS_PRINTED: usize = 40;
/// Maximum rows of a batch at the end of a run; larger batches print only failed devices.
const BATCH_PRINTED: usize = 12;

/// Result of each device, the batch, and the failures; unless `short`, also the curves' steps.
pub(super) fn fatigue(run: &Run<'_>, short: bool) -> Vec<Table> {
    if run.device_cells(DeviceKind::Fatigue).next().is_none() {
        return Vec::new();
    }
    let mut tables = vec![devices(run, short)];
    tables.extend(
        run.results
            .fatigue_batches
            .iter()
            .map(|one| batch(run, one)),
    );
    if !short {
        tables.extend(survival(run));
    }
    tables.extend(reasons(run));
    tables.extend(not_offered(run, DeviceKind::Fatigue));
    tables
}

/// `4 h without a failure`, `2 of 3 devices failed, the first after 12 min`.
pub(super) fn summary(found: &FatigueResult) -> String {
    // A device that was restarted after a failure still counts as failed.
    let failed = found.devices.iter().filter(|device| device.has_failed);
    let first = failed.clone().map(|device| device.without_failure_ns).min();
    match first {
        None => {
            // The shortest time applies to every device.
            let least = found.devices.iter().map(|device| device.without_failure_ns);
            format!("{} without a failure", time(least.min().unwrap_or(0)))
        }
        Some(first) => format!(
            "{} of {} failed, the first after {}",
            failed.count(),
            found.devices.len(),
            time(first)
        ),
    }
}

/// Name of a batch: the devices of its cells.
fn batch_name(run: &Run<'_>, batch: &FatigueBatch) -> String {
    let names = batch.cells.iter().filter_map(|id| run.cell(id));
    let names: Vec<&str> = names.map(|cell| cell.dut.as_str()).collect();
    names.join(", ")
}

/// `3 h to 6 h`, `over 400 h`.
fn class_name(class: &FatigueClass) -> String {
    // The limits of classes are exact, so they are printed without rounding.
    let exact = |ns: u64| units::time::print(Duration::from_nanos(ns));
    match (class.from_ns, class.to_ns) {
        (0, Some(to)) => format!("under {}", exact(to)),
        (from, Some(to)) => format!("{} to {}", exact(from), exact(to)),
        (from, None) => format!("{} and more", exact(from)),
    }
}

fn time(ns: u64) -> String {
    duration_ns(ns as f64)
}

/// One row per device and repeat; with `short`, a large batch lists only failed devices.
fn devices(run: &Run<'_>, short: bool) -> Table {
    let cells = run.device_cells(DeviceKind::Fatigue);
    let all = cells.filter_map(|(cell, _)| Some(device::fatigue(cell)?.devices.len()));
    // In a large batch the devices without a failure all say the same.
    let only_failed = short && all.sum::<usize>() > BATCH_PRINTED;
    let note = "without failure: time under load until the first one; right: operations with a right result; refused: \
                invalid inputs refused, as required; let in: invalid inputs accepted; crashes: its process died or hung; ≥: operations of a \
                process between its last report and its death are not counted; \
                memory: most of its processes in RAM";
    let title = if only_failed {
        "Fatigue: devices that failed"
    } else {
        "Fatigue"
    };
    let mut table = Table::new(title, note)
        .labels(["Device"])
        .texts(["Repeat", "Result"])
        .figures(["Threads", "Under load", "Without failure", "Right"])
        .figures(["Rate", "Wrong", "Failed", "Refused", "Let in"])
        .figures(["Restarts", "Crashes", "Memory"]);
    for (cell, info) in run.device_cells(DeviceKind::Fatigue) {
        let found = device::fatigue(cell).map_or(&[][..], |found| &found.devices);
        if found.is_empty() {
            let mut row = vec![Cell::label(run.label(&cell.dut)), Cell::missing()];
            row.push(without_figure(cell));
            // As many as the cells of a device after its result.
            row.extend((0..12).map(|_| Cell::missing()));
            table.push(row);
        }
        for device in found.iter().filter(|one| one.has_failed || !only_failed) {
            let name = match info.members.as_slice() {
                [_] => run.label(&cell.dut),
                _ => device.member.clone(),
            };
            let mut row = vec![Cell::label(name), Cell::plain(device.repeat.to_string())];
            row.extend(device_cells(device));
            table.push(row);
        }
    }
    table
}

fn device_cells(found: &FatigueDevice) -> [Cell; 13] {
    let without = time(found.without_failure_ns);
    [
        if found.has_failed {
            Cell::word("failed")
        } else {
            Cell::term("no failure")
        },
        Cell::plain(found.threads.to_string()),
        Cell::plain(match found.starts {
            0 | 1 => time(found.elapsed_ns),
            starts => format!("{} in {starts} parts", time(found.elapsed_ns)),
        }),
        // A device without a failure was only observed until then.
        Cell::plain(if found.has_failed {
            without
        } else {
            format!("≥ {without}")
        }),
        Cell::plain(match found.unreported_ns {
            0 => found.counts.right.to_string(),
            _ => format!("≥ {}", found.counts.right),
        }),
        Cell::plain(si(found.operations_per_s, "op/s")),
        Cell::faults(found.counts.wrong),
        Cell::faults(found.counts.failed),
        Cell::plain(found.counts.refused.to_string()),
        Cell::faults(found.counts.passed_invalid),
        Cell::plain(found.counts.restarts.to_string()),
        Cell::faults(found.crashes),
        Cell::plain(bytes(found.resident_bytes_max as f64)),
    ]
}

fn batch(run: &Run<'_>, found: &FatigueBatch) -> Table {
    let all = &found.survival;
    let note = format!(
        "{}, {} of them failed; without failure: under load until the first one, or the end of the trial; mean \
         time between failures: at least {} with 95 % confidence, if they come at a constant rate",
        counted(all.lives, "device"),
        all.failures,
        duration_ns(all.mean_between_failures_low_ns)
    );
    let title = format!(
        "Time without failure over the batch: {}",
        batch_name(run, found)
    );
    let mut table = Table::new(title, note)
        .labels(["Time without failure"])
        .figures(["Devices", "Share", "Of those, failed"]);
    let published = published(run, found);
    table = table.figures(
        published
            .iter()
            .map(|(system, _)| format!("Published: {system}")),
    );
    for class in &found.classes {
        let mut row = vec![
            Cell::label(class_name(class)),
            Cell::plain(class.devices.to_string()),
            Cell::derived(percent(100.0 * class.ratio)),
            Cell::faults(class.failed.into()),
        ];
        // Both names come from the limits of the class, so they are equal if the classes are.
        let name = class_name(class);
        row.extend(published.iter().map(|(_, shares)| {
            // A published share names its class in the same words.
            let share = shares.iter().find(|(what, _)| *what == name);
            Cell::or_missing(share.map(|(_, share)| percent(*share)))
        }));
        table.push(row);
    }
    table
}

/// A system, with the per cent of its devices by class.
type Shares<'r> = (&'r str, Vec<(&'r str, f64)>);

/// Published shares of devices by time without failure.
fn published<'r>(run: &'r Run<'_>, batch: &FatigueBatch) -> Vec<Shares<'r>> {
    let own = run.results.published.iter().filter(|one| is_share(one));
    let own = own.filter(|one| batch.cells.contains(&one.cell));
    grouped(own.map(|one| (one.system.as_str(), (one.what.as_str(), one.published))))
}

/// The curve of each device, and of its starts if there were several; `None` if nothing failed.
fn survival(run: &Run<'_>) -> Option<Table> {
    let note = "share of the devices that works for longer; Kaplan-Meier estimate, with Greenwood's 95 % interval; first failure: each \
                device of each repeat once; each start: restarts as well; n of m times: n of the m times of failures, evenly \
                spaced; failures between them have no row";
    let mut table = Table::new("Survival", note)
        .labels(["Device", "Of", "After"])
        .figures(["At risk", "Failed", "Survives", "95 % interval"]);
    for (cell, _) in run.device_cells(DeviceKind::Fatigue) {
        let Some(found) = device::fatigue(cell) else {
            continue;
        };
        let curves = [
            ("first failure".to_owned(), Some(&found.survival)),
            (each_start(found), found.lives.as_ref()),
        ];
        for (of, curve) in &curves {
            let steps = curve.map_or_else(Vec::new, printed);
            // Steps that the statistics left out count as well.
            let all = curve.map_or(0, |curve| curve.steps.len() + curve.steps_left_out as usize);
            let of = part_of(of, steps.len(), all);
            for step in steps {
                let interval = step.low.zip(step.high).map(|(low, high)| {
                    format!("{} to {}", percent(100.0 * low), percent(100.0 * high))
                });
                table.push(vec![
                    Cell::label(run.label(&cell.dut)),
                    Cell::label(of.as_str()),
                    Cell::label(time(step.at_ns)),
                    Cell::plain(step.at_risk.to_string()),
                    Cell::plain(step.failed.to_string()),
                    Cell::derived(percent(100.0 * step.survives)),
                    Cell::or_missing(interval),
                ]);
            }
        }
    }
    table.with_rows()
}

/// `first failure`, `first failure, 34 of 100 times`.
fn part_of(of: &str, printed: usize, all: usize) -> String {
    if printed < all {
        format!("{of}, {printed} of {all} times")
    } else {
        of.to_owned()
    }
}

/// `each start`, `each start, first 1000 of 123456`.
fn each_start(found: &FatigueResult) -> String {
    let sum = |of: fn(&FatigueDevice) -> u64| found.devices.iter().map(of).sum::<u64>();
    let kept = sum(|device| device.lives_kept);
    match sum(|device| device.lives_left_out) {
        0 => "each start".to_owned(),
        left_out => format!("each start, first {kept} of {}", kept + left_out),
    }
}

/// Evenly spaced steps, the last one included.
fn printed(curve: &Survival) -> Vec<stats::SurvivalStep> {
    let all = &curve.steps;
    // At least 1, as a curve may have no steps.
    let every = all.len().div_ceil(STEPS_PRINTED).max(1);
    let last = all.len().saturating_sub(1);
    let kept = all
        .iter()
        .enumerate()
        // Counted from the end, so that the last step is kept.
        .filter(|(place, _)| (last - place).is_multiple_of(every));
    kept.map(|(_, step)| *step).collect()
}

fn reasons(run: &Run<'_>) -> Option<Table> {
    let mut table = Table::new(
        "Fatigue: first failures",
        "as the device reports it, at most 20 of each",
    )
    .labels(["Device", "Repeat"])
    .texts(["What"]);
    for (cell, _) in run.device_cells(DeviceKind::Fatigue) {
        let found = device::fatigue(cell).map_or(&[][..], |found| &found.devices);
        for device in found {
            for reason in &device.reasons {
                table.push(vec![
                    Cell::label(&device.member),
                    Cell::label(device.repeat.to_string()),
                    Cell::reason(reason),
                ]);
            }
        }
    }
    table.with_rows()
}

pub(super) fn fact(cell: &CellResult) -> Option<Fact> {
    let found = device::fatigue(cell)?;
    let (lives, failures) = (found.survival.lives, found.survival.failures);
    let least = found
        .devices
        .iter()
        .map(|one| one.without_failure_ns)
        .min()?;
    let sum = |of: fn(&FatigueDevice) -> u64| found.devices.iter().map(of).sum::<u64>();
    let right = sum(|one| one.counts.right) as f64;
    Some(Fact {
        label: "Fatigue".into(),
        figure: duration_ns(least as f64),
        unit: "without a failure".into(),
        range: String::new(),
        detail: format!(
            "{failures} of {} failed; {} right, {} wrong, {}",
            counted(lives, "device"),
            si(right, "op"),
            sum(|one| one.counts.wrong),
            counted(sum(|one| one.counts.restarts), "restart")
        ),
        brief: String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use stats::SurvivalStep;

    fn curve(steps: u32) -> Survival {
        let step = |failed: u32| SurvivalStep {
            at_ns: u64::from(failed),
            at_risk: steps - failed,
            failed: 1,
            survives: 0.5,
            low: None,
            high: None,
        };
        Survival {
            lives: steps,
            failures: steps,
            total_ns: 1,
            longest_ns: 1,
            steps: (0..steps).map(step).collect(),
            steps_left_out: 0,
            median_ns: None,
            mean_between_failures_ns: None,
            mean_between_failures_low_ns: 1.0,
        }
    }

    /// Earlier output: 9 of 17 steps, without a note.
    #[test]
    fn every_failure_is_printed_or_the_number_left_out_is_said() {
        assert_eq!(printed(&curve(17)).len(), 17);
        assert_eq!(part_of("each start", 17, 17), "each start");
        for all in [41, 100, 400] {
            let some = printed(&curve(all));
            assert!((20..=STEPS_PRINTED).contains(&some.len()), "{all}");
            assert_eq!(some.last().map(|step| step.at_ns), Some(u64::from(all) - 1));
        }
        assert_eq!(
            part_of("first failure", 34, 100),
            "first failure, 34 of 100 times"
        );
    }
}
