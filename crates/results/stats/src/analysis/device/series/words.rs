//! Findings of series of devices, in words.

use super::{DeviceAxis, DeviceCurve, DeviceGain, DeviceUnit};
use crate::analysis::device::curve::{Course, Crossover, DeviceStanding};
use crate::analysis::scaling::Top;

/// The fixed settings of a series: `1408 B, 40 in parallel, threads`; a depth of 1 is left out.
pub(super) fn common(
    bytes: Option<u32>,
    concurrency: Option<u32>,
    depth: Option<u32>,
    workers: &str,
) -> String {
    let parts = [
        bytes.map(|bytes| format!("{bytes} B")),
        concurrency.map(|n| format!("{n} in parallel")),
        depth
            .filter(|depth| *depth > 1)
            .map(|depth| format!("queue depth {depth}")),
        (concurrency != Some(1)).then(|| workers.to_owned()),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    parts.join(", ")
}

/// A number of an axis: `30 in parallel`, `128 B`, `a depth of 4`.
fn number(axis: DeviceAxis, n: impl std::fmt::Display) -> String {
    match axis {
        DeviceAxis::Bytes => format!("{n} B"),
        DeviceAxis::AtOnce => format!("{n} in parallel"),
        DeviceAxis::Depth => format!("a depth of {n}"),
    }
}

/// The name of a measured number: `every size measured`.
const fn measured(axis: DeviceAxis) -> &'static str {
    match axis {
        DeviceAxis::Bytes => "size measured",
        DeviceAxis::AtOnce => "parallelism measured",
        DeviceAxis::Depth => "queue depth measured",
    }
}

const fn plural(axis: DeviceAxis) -> &'static str {
    match axis {
        DeviceAxis::Bytes => "sizes",
        DeviceAxis::AtOnce => "levels of parallelism",
        DeviceAxis::Depth => "queue depths",
    }
}

/// An interpolated number, rounded to two digits.
fn about(n: f64) -> u64 {
    let step = 10_f64.powf((n.max(1.0).log10().floor() - 1.0).max(0.0));
    ((n / step).round() * step) as u64
}

fn rate(unit: DeviceUnit, value: f64) -> String {
    // The bounds allow for rounding: 999.5 k would be printed as 1000 k.
    let (value, prefix) = match value {
        high if high >= 999.5e6 => (high / 1e9, "G"),
        high if high >= 999.5e3 => (high / 1e6, "M"),
        high if high >= 999.5 => (high / 1e3, "k"),
        low => (low, ""),
    };
    let decimals = match value {
        low if low < 9.995 => 2,
        low if low < 99.95 => 1,
        _ => 0,
    };
    let unit = match unit {
        DeviceUnit::BytesPerS => "B/s",
        DeviceUnit::OperationsPerS => "op/s",
    };
    format!("{value:.decimals$} {prefix}{unit}")
}

fn times(ratio: f64) -> String {
    // Three significant digits after rounding.
    let decimals = match ratio {
        ratio if ratio >= 99.95 => 0,
        ratio if ratio >= 9.995 => 1,
        ratio if ratio >= 0.0995 => 2,
        _ => 3,
    };
    format!("{ratio:.decimals$} times")
}

/// The course of a curve: `highest at 500 in parallel (12.3 kop/s); stops scaling at 110 in
/// parallel; falls from 1000 on`.
pub(super) fn curve(
    axis: DeviceAxis,
    unit: DeviceUnit,
    found: &DeviceCurve,
    top: Option<Top>,
) -> String {
    let figures = found.figures();
    let (Some(peak_n), Some(peak), Some(first), Some(last)) =
        (found.peak_n, found.peak, figures.first(), figures.last())
    else {
        return "no figure".into();
    };
    let mut words = format!("highest at {} ({})", number(axis, peak_n), rate(unit, peak));
    // Over sizes a curve approaches a rate: it neither saturates nor falls by more work in
    // parallel.
    if axis == DeviceAxis::Bytes {
        if peak > 0.0 && first.n != peak_n {
            let share = 100.0 * first.estimate.mean / peak;
            let decimals = usize::from(share < 9.95);
            words.push_str(&format!(
                "; {share:.decimals$} % of that at {}",
                number(axis, first.n)
            ));
        }
        return words;
    }
    if figures.len() < 2 {
        return words;
    }
    match top {
        Some(top) => words.push_str(&format!("; {}", top.in_words(&number(axis, top.n)))),
        None => words.push_str(&format!("; not saturated at {}", last.n)),
    }
    if let Some(n) = found.falls_from_n {
        words.push_str(&format!("; falls from {n} on"));
    }
    words
}

/// Describes the range over which a device is faster than the CPU.
pub(super) fn crossover(
    axis: DeviceAxis,
    cpu: &str,
    found: &Crossover,
    equals_cpu: bool,
) -> String {
    let ratios = || found.points.iter().map(|point| point.ratio);
    let (low, high) = (
        ratios().fold(f64::INFINITY, f64::min),
        ratios().fold(0.0, f64::max),
    );
    let last = found.points.last();
    let at_last = last.map_or_else(String::new, |last| {
        format!("{} at {}", times(last.ratio), number(axis, last.n))
    });
    // A single number has no course.
    let (at_all, at_none) = match found.points.as_slice() {
        [only] => {
            let only = format!("at {}", number(axis, only.n));
            (only.clone(), only)
        }
        _ => {
            let noun = measured(axis);
            (format!("at every {noun}"), format!("at any {noun}"))
        }
    };
    let range = if times(low) == times(high) {
        times(low)
    } else {
        format!(
            "{} to {}",
            times(low).trim_end_matches(" times"),
            times(high)
        )
    };
    match (found.course, found.crosses_at) {
        _ if equals_cpu => {
            format!("equals {cpu} {at_all}, as if the CPU did the work: {range}")
        }
        (Course::Faster, _) => format!("faster than {cpu} {at_all}: {range}"),
        (Course::Slower, _) => format!("slower than {cpu} {at_all}: {range}"),
        (Course::Same, _) if found.in_one_repeat() => {
            format!("{range} the rate of {cpu}, in one repeat")
        }
        (Course::Same, _) => {
            format!("not distinguishable from {cpu} {at_none}: {range}")
        }
        (Course::FasterFrom, Some(at)) => {
            let from = found.faster_from.unwrap_or(0);
            let before = found.points.iter().rev().find(|point| point.n < from);
            let (before, not) = before.map_or((0, "not"), |point| {
                let not = match point.standing {
                    DeviceStanding::Slower => "slower",
                    _ => "not distinguishable",
                };
                (point.n, not)
            });
            format!(
                "faster than {cpu} from about {} on: {not} at {before}, faster at {from} and more; {at_last}",
                number(axis, about(at))
            )
        }
        (Course::FasterUntil, Some(at)) => {
            let until = found.faster_until.unwrap_or(0);
            format!(
                "faster than {cpu} up to about {}: at {until} and fewer; {at_last}",
                number(axis, about(at))
            )
        }
        // A ratio may be on the other side of 1, within the spread of the repeats.
        (Course::NotFaster, _) if high > 1.0 => {
            format!("not distinguishably faster than {cpu} {at_none}: {range}")
        }
        (Course::NotFaster, _) => format!("not faster than {cpu} {at_none}: {range}"),
        (Course::NotSlower, _) if low < 1.0 => {
            format!("not distinguishably slower than {cpu} {at_none}: {range}")
        }
        (Course::NotSlower, _) => format!("not slower than {cpu} {at_none}: {range}"),
        _ => {
            let noun = plural(axis);
            format!("faster than {cpu} at some {noun} and slower at others: {range}")
        }
    }
}

/// The gain of several devices over fewer.
pub(super) fn gain(
    axis: DeviceAxis,
    found: &DeviceGain,
    more: &DeviceCurve,
    fewer: &DeviceCurve,
) -> String {
    let at = |curve: &DeviceCurve| number(axis, curve.peak_n.unwrap_or(0));
    let peaks = if more.peak_n == fewer.peak_n {
        format!("both at {}", at(more))
    } else {
        format!("at {} against {}", at(more), at(fewer))
    };
    let what = format!("{} devices beside {}", found.devices, found.of_devices);
    if found.gains {
        format!(
            "{what}: {} the peak of {} ({peaks})",
            times(found.peak_ratio),
            found.of
        )
    } else {
        format!(
            "{what}: no certain gain over {}: {} its peak ({peaks})",
            found.of,
            times(found.peak_ratio)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpolated_numbers_have_two_digits() {
        let rounded = [3.4, 30.3, 31.7, 126.0, 1499.0, 0.2].map(about);
        assert_eq!(rounded, [3, 30, 32, 130, 1500, 0]);
    }

    #[test]
    fn rates_and_ratios_are_as_tables_print_them() {
        assert_eq!(rate(DeviceUnit::BytesPerS, 453_872_000.0), "454 MB/s");
        assert_eq!(rate(DeviceUnit::OperationsPerS, 12.34), "12.3 op/s");
        assert_eq!(rate(DeviceUnit::OperationsPerS, 999_600.0), "1.00 Mop/s");
        assert_eq!(times(1.966), "1.97 times");
        assert_eq!(times(0.05), "0.050 times");
    }

    #[test]
    fn a_depth_of_one_is_left_out() {
        assert_eq!(common(Some(64), None, Some(1), "threads"), "64 B, threads");
        assert_eq!(common(None, Some(1), Some(1), "threads"), "1 in parallel");
        assert_eq!(
            common(Some(64), Some(40), None, "processes"),
            "64 B, 40 in parallel, processes"
        );
        assert_eq!(
            common(None, Some(2), Some(8), "threads"),
            "2 in parallel, queue depth 8, threads"
        );
    }
}
