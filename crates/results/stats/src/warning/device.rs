//! Crypto devices: wrong results, work that the device is not proven to have done, and misleading
//! figures.

use super::{Warning, WarningKind, about, counted, warning};
use crate::analysis::device::DeviceSeries;
use crate::cell::CellResult;
use crate::figures::device::{
    DeviceSpeedResult, FOUND_MIN, FatigueDevice, KatVerdict, TOGETHER_MIN_RATIO,
};
use crate::figures::repeats::Total;
use journal::record::Proof;

/// A part of the measured time is unsteady if it is farther than this from the mean of all parts,
/// in per cent.
const UNSTEADY_PERCENT: f64 = 25.0;

/// Warnings that only crypto devices give.
pub(crate) fn warnings(cells: &[CellResult], series: &[DeviceSeries]) -> Vec<Warning> {
    let found = [
        wrong_results(cells),
        fatigue_failures(cells),
        equals_cpu(cells, series),
        not_shown(cells),
        failed_operations(cells),
        unchecked(cells),
        few_checked(cells),
        not_together(cells),
        unsteady(cells),
    ];
    found.into_iter().flatten().collect()
}

fn speed(cell: &CellResult) -> Option<&DeviceSpeedResult> {
    cell.device()?.speed()
}

/// Algorithms of a functional trial with a wrong result or an error, and wrong results of a speed
/// trial.
fn bad_results(cell: &CellResult) -> u64 {
    let kat = cell.device().and_then(|found| found.kat());
    let kat = kat.map_or(0, |kat| {
        let algorithms = kat.algorithms.iter();
        algorithms.filter(|one| one.verdict.is_failure()).count() as u64
    });
    kat.saturating_add(speed(cell).map_or(0, |found| found.wrong))
}

fn wrong_results(cells: &[CellResult]) -> Option<Warning> {
    let found: Vec<&CellResult> = cells.iter().filter(|cell| bad_results(cell) > 0).collect();
    let text = |cells: &[&CellResult], _: &str| {
        let algorithms = cells
            .iter()
            .filter_map(|cell| cell.device()?.kat())
            .flat_map(|kat| &kat.algorithms);
        let of = |verdict: KatVerdict| {
            algorithms
                .clone()
                .filter(move |one| one.verdict == verdict)
                .count()
        };
        let speed = cells
            .iter()
            .filter_map(|cell| speed(cell))
            .map(|found| found.wrong)
            .total();
        let parts = [
            (
                of(KatVerdict::Wrong),
                "algorithm with wrong results",
                "algorithms with wrong results",
            ),
            (
                of(KatVerdict::Error),
                "algorithm that could not be tried",
                "algorithms that could not be tried",
            ),
            (
                usize::try_from(speed).unwrap_or(usize::MAX),
                "wrong result or accepted invalid input of a speed trial",
                "wrong results or accepted invalid inputs of speed trials",
            ),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(count, ..)| *count > 0)
            .map(|(count, one, several)| {
                format!("{count} {}", if *count == 1 { one } else { several })
            })
            .collect();
        format!(
            "Devices did not do what they should, in {}: {}.",
            counted(cells.len(), "cell"),
            parts.join(", ")
        )
    };
    let advice = "Protect nothing by these algorithms on these devices; the table of failures has the first wrong byte of each.";
    about(WarningKind::WrongResults, found, text, advice)
}

fn fatigue_failures(cells: &[CellResult]) -> Option<Warning> {
    let devices = |cell: &CellResult| -> Vec<FatigueDevice> {
        let fatigue = cell.device().and_then(|found| found.fatigue());
        fatigue.map_or_else(Vec::new, |found| {
            let failed = found.devices.iter().filter(|device| device.has_failed);
            failed.cloned().collect()
        })
    };
    let found: Vec<&CellResult> = cells
        .iter()
        .filter(|cell| !devices(cell).is_empty())
        .collect();
    let text = |cells: &[&CellResult], _: &str| {
        let failed: Vec<FatigueDevice> = cells.iter().flat_map(|cell| devices(cell)).collect();
        let sum = |of: fn(&FatigueDevice) -> u64| failed.iter().map(of).total();
        let shortest = failed.iter().map(|device| device.without_failure_ns).min();
        format!(
            "{} failed under load, the first after {}: {} wrong results, {} operations that failed, {} invalid inputs \
             that passed, {} processes that died.",
            counted(failed.len(), "device"),
            units::human::duration_ns(shortest.unwrap_or(0) as f64),
            sum(|device| device.counts.wrong),
            sum(|device| device.counts.failed),
            sum(|device| device.counts.passed_invalid),
            sum(|device| device.crashes)
        )
    };
    let advice = "Read why in the table of the fatigue trial; do not use a device that gives wrong results or takes invalid input.";
    about(WarningKind::DeviceFailed, found, text, advice)
}

/// Neither counter nor CPU time shows that a device did the work, or its figures equal the CPU's
/// everywhere.
fn equals_cpu(cells: &[CellResult], series: &[DeviceSeries]) -> Option<Warning> {
    let flagged =
        |cell: &&CellResult| speed(cell).is_some_and(|found| found.proof == Some(Proof::EqualsCpu));
    let by_proof = cells.iter().filter(flagged);
    let by_figures = series.iter().flat_map(|series| {
        let same = series.comparisons.iter().filter(|found| found.equals_cpu);
        same.filter_map(|found| series.curve(&found.dut))
            .flat_map(|curve| curve.points.iter().map(|point| point.cell.as_str()))
    });
    let mut ids: Vec<&str> = by_proof
        .map(|cell| cell.id.as_str())
        .chain(by_figures)
        .collect();
    // Sorted for the binary search below; a cell may be flagged by both.
    ids.sort_unstable();
    ids.dedup();
    let found: Vec<&CellResult> = cells
        .iter()
        // Operations that the device counted are proven to be its work, even at the CPU's speed.
        .filter(|cell| speed(cell).is_some_and(|found| found.proof != Some(Proof::Counted)))
        .filter(|cell| ids.binary_search(&cell.id.as_str()).is_ok())
        .collect();
    about(
        WarningKind::CardEqualsCpu,
        found,
        |_, count| {
            format!(
                "Card equals CPU: in {count} the device is said to spare the CPU, but neither its counter nor the CPU time \
                 says so, or it is as fast as the CPU everywhere."
            )
        },
        "Do not call these figures the device's: find out whether the offload ran (driver, engine, module loaded), and \
         measure again.",
    )
}

fn not_shown(cells: &[CellResult]) -> Option<Warning> {
    let unknown =
        |cell: &&CellResult| speed(cell).is_some_and(|found| found.proof == Some(Proof::Unknown));
    about(
        WarningKind::WorkNotShown,
        cells.iter().filter(unknown),
        |_, count| {
            format!(
                "In {count} it is unknown who did the work: the device does not count, and our own engines do not have the \
                 operation, with which its CPU time could be compared."
            )
        },
        "Read these figures as those of device and CPU together.",
    )
}

fn failed_operations(cells: &[CellResult]) -> Option<Warning> {
    let failed = |cell: &CellResult| speed(cell).map_or(0, |found| found.failed);
    about(
        WarningKind::FailedOperations,
        cells.iter().filter(|cell| failed(cell) > 0),
        |cells, count| {
            let all = cells.iter().map(|cell| failed(cell)).total();
            format!(
                "{} failed, in {count}; no rate includes a failed operation.",
                counted(all, "operation")
            )
        },
        "Look at the device's log; a fatigue trial shows how often and when.",
    )
}

fn unchecked(cells: &[CellResult]) -> Option<Warning> {
    about(
        WarningKind::UncheckedResults,
        cells
            .iter()
            .filter(|cell| speed(cell).is_some_and(|found| found.checked == 0)),
        |_, count| {
            format!("In {count} no result was looked at: a device that does nothing is fast.")
        },
        "Run the functional trial on the same device before you use these figures.",
    )
}

fn few_checked(cells: &[CellResult]) -> Option<Warning> {
    let found = |cell: &CellResult| {
        let speed = speed(cell).filter(|speed| speed.checked > 0)?;
        speed.found_one_in_1000.filter(|&found| found < FOUND_MIN)
    };
    about(
        WarningKind::FewCheckedResults,
        cells.iter().filter(|cell| found(cell).is_some()),
        |cells, count| {
            let least = cells.iter().filter_map(|cell| found(cell));
            format!(
                "In {count} too few results were checked: a device with 1 wrong result in 1000, or with 1 of 1000 invalid \
                 inputs accepted, would have been found with a probability of {:.1} % only, and {:.0} % are required.",
                100.0 * least.fold(1.0, f64::min),
                100.0 * FOUND_MIN
            )
        },
        "The device is slow, or verifying took too long on this CPU: raise `duration`, use fewer parallel programs, or a \
         fatigue trial, which checks each result.",
    )
}

fn not_together(cells: &[CellResult]) -> Option<Warning> {
    let apart = |cell: &&CellResult| {
        speed(cell).is_some_and(|found| found.together_ratio < TOGETHER_MIN_RATIO)
    };
    about(
        WarningKind::NotTogether,
        cells.iter().filter(apart),
        |_, count| {
            format!(
                "In {count} the workers were all at work for less than {:.0} % of the time: they did not work in parallel, and \
                 their rate over the whole time may be too low. No crossover, saturation or gain is derived from them.",
                100.0 * TOGETHER_MIN_RATIO
            )
        },
        "Measure for longer, with threads instead of processes, or on a machine with more cores.",
    )
}

fn unsteady(cells: &[CellResult]) -> Option<Warning> {
    let distance = |cell: &CellResult| speed(cell)?.slice_distance_percent;
    let found: Vec<&CellResult> = cells
        .iter()
        .filter(|cell| distance(cell).is_some_and(|found| found > UNSTEADY_PERCENT))
        .collect();
    let most = found.iter().filter_map(|cell| distance(cell));
    let most = most.reduce(f64::max)?;
    warning(
        WarningKind::UnsteadySpeed,
        found.iter().map(|cell| cell.id.clone()).collect(),
        format!(
            "In {} the speed changed while it was measured: a part of the time lies up to {most:.0} % from the mean.",
            counted(found.len(), "cell")
        ),
        "Close other programs and measure for longer; a device that heats up or fills a queue shows in a fatigue trial.",
    )
}
