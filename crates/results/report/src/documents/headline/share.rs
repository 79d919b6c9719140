//! A device's share of the baseline, in words.

use super::Headline;
use crate::kit::format::{percent, ratio_number};
use crate::layout::{Protocol, Run};
use plan::{Coordinate, Procedure};
use stats::{Bound, CellResult, Comparison, Estimate, Metric};
use units::human::counted;

/// Maximum number of settings named with a ratio; more say little.
const SETTINGS_MAX: usize = 2;

/// Quantities compared with a baseline, by priority: the first one found is the answer.
pub(super) const COMPARED: [(Metric, Option<Protocol>, &str); 4] = [
    (
        Metric::PayloadThroughput,
        Some(Protocol::Tcp),
        "TCP payload",
    ),
    (
        Metric::PayloadThroughput,
        Some(Protocol::Udp),
        "UDP payload",
    ),
    (Metric::TransactionsPerSecond, None, "transactions"),
    (Metric::FrameRate, None, "frames"),
];

/// The figure that a metric compares.
pub(super) fn compared(cell: &CellResult, metric: Metric) -> Option<&Estimate> {
    match metric {
        Metric::PayloadThroughput => cell.throughput_bps(),
        Metric::TransactionsPerSecond => cell.transactions_per_s(),
        Metric::FrameRate => cell.frame_rate(),
        _ => None,
    }
}

/// A device with its ratios to the baseline.
pub(super) struct Share<'r> {
    pub(crate) device: String,
    pub(crate) comparisons: Vec<(&'r CellResult, &'r Comparison)>,
}

impl<'r> Share<'r> {
    pub(crate) fn of(
        run: &'r Run<'_>,
        device: &Headline,
        metric: Metric,
        protocol: Option<Protocol>,
    ) -> Self {
        let is_of = |cell: &&CellResult| {
            // Results name protocols in lower case.
            let name = protocol.map(|protocol| protocol.name().to_lowercase());
            run.label(&cell.dut) == device.device && name.is_none_or(|name| cell.protocol == name)
        };
        // Devices that lose nothing of a fixed load have equal rates, whatever they could carry.
        let is_fixed = |cell: &&CellResult| {
            let planned = run.planned(cell);
            let test = planned.and_then(|cell| cell.measurement.frames());
            test.is_some_and(|test| matches!(test.procedure, Procedure::Load(_)))
        };
        let cells = run.results.cells.iter().filter(is_of);
        let cells = cells.filter(|cell| !is_fixed(cell));
        let compared = cells.filter_map(|cell| Some((cell, run.comparison(cell, metric)?)));
        Self {
            device: device.device.clone(),
            comparisons: compared.collect(),
        }
    }

    /// The share in the settings that another device has a figure of.
    pub(crate) fn alike(&self, other: &Self) -> Self {
        let has = |group: &str| other.comparisons.iter().any(|(_, one)| one.group == group);
        let own = self.comparisons.iter().copied();
        Self {
            device: self.device.clone(),
            comparisons: own.filter(|(_, found)| has(&found.group)).collect(),
        }
    }

    /// The setting of a single figure, if other devices have figures of further settings: ` with
    /// offloads=off`.
    pub(crate) fn setting(&self, run: &Run<'_>, all: &[Self]) -> String {
        let [(cell, own)] = self.comparisons.as_slice() else {
            return String::new();
        };
        let others = all.iter().flat_map(|other| &other.comparisons);
        let mut others = others.filter(|(_, other)| other.group != own.group);
        let differs = others.find_map(|(other, _)| settings(run, cell, other));
        differs.map_or_else(String::new, |(here, _)| format!(" with {here}"))
    }

    /// How many repeats the ratios are of, if the figures are of more: ` in the one repeat that
    /// both have`.
    pub(crate) fn in_common(&self, metric: Metric) -> String {
        let fewest = self
            .comparisons
            .iter()
            .filter(|(cell, found)| compared(cell, metric).is_some_and(|own| own.n > found.pairs))
            .map(|(_, found)| found.pairs)
            .min();
        match fewest {
            None | Some(0) => String::new(),
            Some(1) => " in the one repeat that both have".to_owned(),
            Some(pairs) => format!(" in the {pairs} repeats that both have"),
        }
    }

    pub(crate) fn protects(&self) -> bool {
        let mut cells = self.comparisons.iter().map(|(cell, _)| cell);
        cells.all(|cell| cell.insecure.is_none() && cell.control.is_none())
    }

    pub(crate) fn highest(&self) -> f64 {
        self.end(|a, b| a > b).map_or(0.0, |(_, found)| found.ratio)
    }

    /// The comparison that `wins` over all others.
    fn end(&self, wins: impl Fn(f64, f64) -> bool) -> Option<(&'r CellResult, &'r Comparison)> {
        let all = self.comparisons.iter().copied();
        all.reduce(|a, b| if wins(b.1.ratio, a.1.ratio) { b } else { a })
    }

    /// `49 %`, `1.17 times`; for several settings `42 % (mtu=1500) to 49 % (mtu=9000)`.
    pub(crate) fn words(&self, run: &Run<'_>) -> String {
        let Some((low, high)) = self.end(|a, b| a < b).zip(self.end(|a, b| a > b)) else {
            return String::new();
        };
        // Both ends have the same unit: per cent only if no ratio exceeds 1.
        let is_times = high.1.ratio > 1.0;
        let number = |ratio: f64| {
            if is_times {
                ratio_number(ratio)
            } else {
                percent(100.0 * ratio).trim_end_matches(" %").to_owned()
            }
        };
        let unit = if is_times { "times" } else { "%" };
        let (least, most) = (number(low.1.ratio), number(high.1.ratio));
        let bound = self.bound().map_or("", |bound| match bound {
            Bound::AtMost => "at most ",
            Bound::AtLeast => "at least ",
            Bound::Neither => "",
        });
        // Compared as printed, or the range could consist of two equal numbers.
        if least == most {
            return format!("{bound}{most} {unit}");
        }
        // Without the settings of its ends, a range would look like the interval of one figure.
        match settings(run, low.0, high.0) {
            Some((at_low, at_high)) => {
                format!("{bound}{least} {unit} ({at_low}) to {most} {unit} ({at_high})")
            }
            None => format!("{bound}{least} to {most} {unit}, which depends on the setting,"),
        }
    }

    /// The kind of bound, if all ratios are the same kind.
    fn bound(&self) -> Option<Bound> {
        let first = self.comparisons.first()?.1.bound?;
        let mut all = self.comparisons.iter();
        all.all(|(_, found)| found.bound == Some(first))
            .then_some(first)
    }

    /// Why ratios are only bounds: `, whose search ended without an upper bound`; may be empty.
    pub(crate) fn bound_words(&self) -> String {
        let open = self.comparisons.iter();
        let open = open.filter(|(_, found)| found.bound.is_some()).count();
        if open == 0 {
            return String::new();
        }
        match self.bound() {
            Some(Bound::AtMost) => ", whose search ended without an upper bound".to_owned(),
            Some(Bound::AtLeast) => "; its own search ended without an upper bound".to_owned(),
            Some(Bound::Neither) => {
                "; both searches ended without an upper bound, so that the ratio says little"
                    .to_owned()
            }
            None => format!(
                "; in {open} of {} a search ended without an upper bound, so that the ratio is a bound \
                 too",
                counted(self.comparisons.len(), "setting")
            ),
        }
    }
}

/// The coordinates in which two cells differ, for each cell; `None` if there are none or too many.
fn settings(run: &Run<'_>, a: &CellResult, b: &CellResult) -> Option<(String, String)> {
    let (a, b) = (run.planned(a)?, run.planned(b)?);
    let own = |of: &[Coordinate], other: &[Coordinate]| {
        let own = of.iter().filter(|at| !other.contains(at));
        let own: Vec<String> = own.map(ToString::to_string).collect();
        // None at all means that the cells differ in something that is no coordinate.
        (1..=SETTINGS_MAX)
            .contains(&own.len())
            .then(|| own.join(", "))
    };
    Some((
        own(&a.coordinates, &b.coordinates)?,
        own(&b.coordinates, &a.coordinates)?,
    ))
}

/// Whether the answer is the first ranking: no device is compared with a baseline.
pub(super) fn is_ranking(run: &Run<'_>) -> bool {
    let mut cells = run.results.cells.iter();
    !cells.any(|cell| {
        let mut metrics = COMPARED.iter().map(|(metric, ..)| *metric);
        metrics.any(|metric| run.comparison(cell, metric).is_some())
    })
}
