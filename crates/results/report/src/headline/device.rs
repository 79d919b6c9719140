//! Crypto devices in a few words and numbers.

use super::{Fact, repeats};
use crate::format::{Scale, counted, ratio_number};
use crate::layout::Run;
use crate::layout::device::{DeviceKind, fatigue, figures};
use crate::tables::device::{scale, series_name};
use stats::{CellResult, Course, DeviceAxis, DeviceSeries, KatResult, KatVerdict};
use units::human::duration_ns;

/// A headline shows a ratio to the CPU only within these limits: others are hard to read, and
/// mostly compare a device with a case that it is not made for.
const RATIO_MIN: f64 = 0.1;
const RATIO_MAX: f64 = 100.0;
/// Operations in the summary; the tables have all.
const OPERATIONS_SHOWN: usize = 6;

/// Results of the functional, speed and fatigue trials.
pub(super) fn facts(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let own = |kind| {
        let cells = run.device_cells(kind).map(|(cell, _)| cell);
        cells.filter(move |cell| cell.dut == device)
    };
    let mut facts: Vec<Fact> = own(DeviceKind::Kat).filter_map(functional).collect();
    facts.extend(speeds(run, device));
    facts.extend(own(DeviceKind::Fatigue).filter_map(lasting));
    facts
}

fn functional(cell: &CellResult) -> Option<Fact> {
    let found = figures(cell)?.kat()?;
    let all = found.passed + found.failed + found.not_offered;
    Some(Fact {
        label: "Functional trial".into(),
        figure: format!("{} of {all}", found.passed),
        unit: "algorithms pass".into(),
        range: String::new(),
        detail: failures(found),
    })
}

fn failures(found: &KatResult) -> String {
    let wrong = |verdict: KatVerdict| {
        let mut names: Vec<&str> = found
            .algorithms
            .iter()
            .filter(|one| one.verdict == verdict)
            .map(|one| one.algorithm.as_str())
            .collect();
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

/// The widest series of each operation: over concurrency if measured, over sizes otherwise.
fn speeds(run: &Run<'_>, device: &str) -> Vec<Fact> {
    let mut shown: Vec<&DeviceSeries> = Vec::new();
    let all = || run.results.device_series.iter();
    let by_many = all().filter(|series| series.axis == DeviceAxis::AtOnce);
    let by_other = all().filter(|series| series.axis != DeviceAxis::AtOnce);
    for series in by_many.chain(by_other) {
        let known = shown.iter().any(|one| one.operation == series.operation);
        if !known && series.curve(device).is_some() {
            shown.push(series);
        }
    }
    let facts = shown.into_iter().filter_map(|series| speed(series, device));
    facts.take(OPERATIONS_SHOWN).collect()
}

fn speed(series: &DeviceSeries, device: &str) -> Option<Fact> {
    let curve = series.curve(device)?;
    let peak = curve.peak?;
    let scale = scale(series.unit, peak);
    let label = series_name(series);
    let compared = series.comparisons.iter().find(|found| found.dut == device);
    let gain = series.gains.iter().find(|gain| gain.dut == device);
    let gain = gain.map_or_else(String::new, |gain| format!("; {}", gain.verdict));
    let figures = curve
        .points
        .iter()
        .filter_map(|point| point.figure.as_ref());
    let best = figures.max_by(|a, b| a.mean.total_cmp(&b.mean));
    let range = best.map_or_else(String::new, |best| repeats(best, &scale));
    let has_ratio = |ratio| is_meaningful(ratio, curve.is_model);
    Some(match compared {
        Some(found) if has_ratio(found.crossover.best_ratio) => {
            let cpu = &found.cpu;
            let (unit, range) = match found.crossover.course {
                Course::Same if found.crossover.in_one_repeat() => {
                    (format!("× {cpu}"), format!("{range} decides nothing"))
                }
                Course::Same => (format!("× {cpu}, no difference shown"), range),
                _ => (format!("× {cpu} at best"), range),
            };
            Fact {
                label,
                range,
                figure: ratio_number(found.crossover.best_ratio),
                unit,
                detail: format!("{}; {}{gain}", found.verdict, curve.verdict),
            }
        }
        compared => {
            let compared =
                compared.map_or_else(String::new, |found| format!("{}; ", found.verdict));
            let modelled = if curve.is_model { ", modelled" } else { "" };
            Fact {
                label,
                range,
                figure: scale.number(peak),
                unit: format!("{}{modelled}", scale.unit),
                detail: format!("{compared}{}{gain}", curve.verdict),
            }
        }
    })
}

fn lasting(cell: &CellResult) -> Option<Fact> {
    let found = fatigue(cell)?;
    let (lives, failures) = (found.survival.lives, found.survival.failures);
    let least = found
        .devices
        .iter()
        .map(|one| one.without_failure_ns)
        .min()?;
    let sum = |of: fn(&stats::FatigueDevice) -> u64| found.devices.iter().map(of).sum::<u64>();
    let right = sum(|one| one.counts.right) as f64;
    Some(Fact {
        label: "Fatigue".into(),
        figure: duration_ns(least as f64),
        unit: "without a failure".into(),
        range: String::new(),
        detail: format!(
            "{failures} of {} failed; {} right, {} wrong, {}",
            counted(lives, "device"),
            Scale::si(right, "op").value(right),
            sum(|one| one.counts.wrong),
            counted(sum(|one| one.counts.restarts), "restart")
        ),
    })
}

/// Whether a headline shows this ratio of a device to the CPU. A model has one configured time for
/// all operations, which says nothing about hardware.
fn is_meaningful(ratio: f64, is_model: bool) -> bool {
    !is_model && (RATIO_MIN..=RATIO_MAX).contains(&ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Earlier output: `2104 × cpu at best` for RSA-4096 on a model, and `0.00017 × cpu` for SHA.
    #[test]
    fn a_headline_has_a_ratio_only_where_it_means_something() {
        for ratio in [0.1, 0.9, 3.7, 100.0] {
            assert!(is_meaningful(ratio, false), "{ratio}");
            assert!(!is_meaningful(ratio, true), "{ratio}");
        }
        for ratio in [0.000_17, 0.0, 2104.0, f64::INFINITY, f64::NAN] {
            assert!(!is_meaningful(ratio, false), "{ratio}");
        }
    }
}
