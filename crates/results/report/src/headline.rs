//! The run in a few words and numbers.

mod answer;
mod applications;
mod device;
mod disturbed;
mod findings;
mod frames;
mod loads;
mod ratios;
mod share;
mod soak;

pub(crate) use answer::answer;
pub(crate) use findings::findings;

use crate::evidence::Summary;
use crate::format::{self, Scale, counted};
use crate::layout::{Point, Protocol, Run, Set, payload_name};
use crate::order::unique;
use crate::table::Cell;
use plan::Measurement;
use stats::{CellResult, Estimate, LARGE_SPREAD_PERCENT, Metric, Status};

/// Summary of a device.
pub(crate) struct Headline {
    /// Its name.
    pub(crate) device: String,
    /// Its index in the palette.
    pub(crate) color: usize,
    /// The facts, most important first.
    pub(crate) facts: Vec<Fact>,
    /// Without facts: the reason.
    pub(crate) without: Option<String>,
    /// Reasons to doubt its figures; may be empty.
    pub(crate) doubt: String,
}

/// One fact: `TCP throughput: 0.49–0.62 × direct; repeats 0.47–0.65; at most 12.3 ± 0.4 Gbit/s (3
/// %), MTU 9000 B, 2 cores`.
pub(crate) struct Fact {
    pub(crate) label: String,
    /// The figure to remember.
    pub(crate) figure: String,
    /// Unit, if it is not part of the figure: `× direct`.
    pub(crate) unit: String,
    /// The smallest and the largest repeat or event, and their meaning; may be empty.
    pub(crate) range: String,
    /// Conditions and further figures.
    pub(crate) detail: String,
}

impl Fact {
    /// `0.49–0.62 × direct; repeats 0.47–0.65; at most 12.3 Gbit/s`.
    pub(crate) fn sentence(&self) -> String {
        let figure = format!("{} {}", self.figure, self.unit);
        let parts = [figure.trim_end(), self.range.as_str(), self.detail.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        parts.join("; ")
    }
}

/// Returns the headlines of all devices but baselines; if there are only baselines, those.
pub(crate) fn headlines(run: &Run<'_>) -> Vec<Headline> {
    let cells = &run.results.cells;
    let only_baselines = cells
        .iter()
        .all(|cell| cell.baseline || cell.measures_rig());
    let counts = |cell: &&CellResult| only_baselines || !(cell.baseline || cell.measures_rig());
    let names = unique(cells.iter().filter(counts).map(|cell| cell.dut.as_str()));
    let sets = run.sets();
    let headline = |name: &str| {
        let of = |protocol: Protocol| sets.iter().filter(move |set| set.protocol == protocol);
        let mut facts: Vec<Fact> = Vec::new();
        for protocol in [Protocol::Tcp, Protocol::Udp] {
            let all: Vec<&Set<'_>> = of(protocol).collect();
            facts.extend(
                all.iter()
                    .filter_map(|set| throughput(run, name, set, &all)),
            );
        }
        facts.extend(of(Protocol::Ping).find_map(|set| latency(run, name, set)));
        facts.extend(efficiency(run, name));
        facts.extend(applications::facts(run, name));
        facts.extend(frames::facts(run, name));
        facts.extend(loads::facts(run, name));
        facts.extend(disturbed::facts(run, name));
        facts.extend(soak::facts(run, name));
        facts.extend(device::facts(run, name));
        Headline {
            device: run.label(name),
            color: run.color(name),
            without: facts.is_empty().then(|| without(run, name)),
            doubt: if facts.is_empty() {
                String::new()
            } else {
                doubt(run, name)
            },
            facts,
        }
    };
    names.into_iter().map(headline).collect()
}

/// Why a device has no figure: the result of its searches, or the first reason recorded by any of
/// its trials; and the number of further reasons.
fn without(run: &Run<'_>, device: &str) -> String {
    let cells = || run.results.cells.iter().filter(|cell| cell.dut == device);
    let searches = unique(cells().filter_map(frames::without));
    if let [first, others @ ..] = searches.as_slice() {
        return format!("No figure: {first}{}", and_more(others.len()));
    }
    let all = cells().flat_map(|cell| &cell.reasons);
    let all = unique(all.map(|reason| match reason.explanation {
        Some(_) => reason.in_short(),
        None => reason.text.clone(),
    }));
    match all.as_slice() {
        [first, others @ ..] => {
            let first = Cell::reason(format!("No figure: {first}")).text;
            first + &and_more(others.len())
        }
        [] if run.results.progress.ended => {
            "No figure: no trial gave one; the tables say why.".to_owned()
        }
        [] => "No figure yet.".to_owned(),
    }
}

/// ` (and 2 more reasons in the tables)`; may be empty.
fn and_more(reasons: usize) -> String {
    match reasons {
        0 => String::new(),
        _ => format!(
            " (and {} in the tables)",
            counted(reasons as u64, "more reason")
        ),
    }
}

/// Reasons to doubt the figures of one device: cells without a figure, and scattered repeats.
fn doubt(run: &Run<'_>, device: &str) -> String {
    let own = || run.results.cells.iter().filter(|cell| cell.dut == device);
    let mut parts = Vec::new();
    // Cells yet to be measured are no reason for doubt.
    let ended = run.results.progress.ended;
    let without = own().filter(|cell| match cell.status {
        Status::Invalid | Status::Failed => true,
        Status::NotRun => ended && !cell.is_skipped(),
        Status::Measured | Status::Partly => false,
    });
    let without = without.count();
    if without > 0 {
        parts.push(format!(
            "no figure in {without} of {}",
            counted(own().count() as u64, "cell")
        ));
    }
    let partly = own().filter(|cell| cell.status == Status::Partly).count();
    if partly > 0 && ended {
        let cells = counted(partly as u64, "cell");
        parts.push(format!("repeats are invalid or missing in {cells}"));
    }
    let spreads = own().filter_map(|cell| Some((cell, cell.spread_percent()?)));
    let widest = spreads.max_by(|(_, a), (_, b)| a.total_cmp(b));
    if let Some((cell, spread)) = widest.filter(|(_, spread)| *spread > LARGE_SPREAD_PERCENT) {
        let whose = match own().count() {
            1 => String::new(),
            _ => format!(" (`{}`)", cell.id),
        };
        parts.push(format!(
            "repeats are up to {} from their mean{whose}",
            format::percent(spread)
        ));
    }
    if parts.is_empty() {
        String::new()
    } else {
        format!("Doubtful: {}", parts.join(", "))
    }
}

/// How far the run can be relied on: `All 42 trials were measured, and all 378 checks passed.`
pub(crate) fn soundness(run: &Run<'_>) -> String {
    let progress = &run.results.progress;
    let checks = Summary::total(run);
    let trials = match progress.trials_planned - progress.trials_skipped {
        1 if progress.trials_measured == 1 => "The one trial was measured".to_owned(),
        planned if planned == progress.trials_measured => {
            format!("All {} were measured", counted(planned, "trial"))
        }
        planned => {
            let mut parts = vec![format!(
                "Of {}, {} were measured",
                counted(planned, "trial"),
                progress.trials_measured
            )];
            for (count, what) in [
                (progress.trials_invalid, "found invalid"),
                (progress.trials_failed, "failed"),
                (progress.trials_not_run, "not run"),
            ] {
                if count > 0 {
                    parts.push(format!("{count} {what}"));
                }
            }
            parts.join(", ")
        }
    };
    let bad = match progress.trials_with_bad_device {
        0 => String::new(),
        bad => format!(
            " In {} of them a device failed or gave a wrong result.",
            counted(bad, "trial")
        ),
    };
    let checked = match (checks.checks, checks.passed) {
        (0, _) => format!("{trials}."),
        (1, 1) => format!("{trials}, and the one check of the evidence passed."),
        (made, passed) if made == passed => {
            format!(
                "{trials}, and all {} of the evidence passed.",
                counted(made as u64, "check")
            )
        }
        (made, passed) => format!("{trials}; {passed} of {made} checks of the evidence passed."),
    };
    checked + &bad + &without_bounds(run) + &left_out(run)
}

/// ` The searches of 2 cells gave no figure; the tables say why.`; may be empty.
fn without_bounds(run: &Run<'_>) -> String {
    let cells = run.results.cells.iter();
    match cells.filter(|cell| frames::without(cell).is_some()).count() {
        0 => String::new(),
        1 => " The search of one cell gave no figure; the tables say why.".to_owned(),
        cells => format!(" The searches of {cells} cells gave no figure; the tables say why."),
    }
}

/// One line for trials beyond the machine's means: ` 84 trials need up to 128 cores per station;
/// this machine has 2, so they were left out.`
fn left_out(run: &Run<'_>) -> String {
    let skipped = run.results.progress.trials_skipped;
    if skipped == 0 {
        return String::new();
    }
    let cells = run.results.cells.iter().filter(|cell| cell.is_skipped());
    let most = cells.filter_map(|cell| Some(cell.stations?.cores)).max();
    format!(
        " {} need up to {} per station; this machine has {}, so they were left out.",
        counted(skipped, "more trial"),
        counted(most.unwrap_or(0), "core"),
        run.cpus().unwrap_or(0)
    )
}

/// The best throughput of a device in a set, and its ratio to the baseline over the whole set.
/// `all` are the sets of the same protocol.
fn throughput(run: &Run<'_>, device: &str, set: &Set<'_>, all: &[&Set<'_>]) -> Option<Fact> {
    let cells: Vec<(&Point<'_>, &CellResult)> = set
        .points
        .iter()
        .filter_map(|point| Some((point, point.cell(device)?)))
        .collect();
    let (point, best) = cells
        .iter()
        .filter_map(|(point, cell)| Some((point, cell.throughput_bps()?)))
        .max_by(|(_, a), (_, b)| a.mean.total_cmp(&b.mean))?;
    let mut label = vec![format!("{} throughput", set.protocol.name())];
    label.extend(set.own_words(all).map(str::to_owned));
    let label = label.join(", ");
    let mut words = vec![format!("MTU {} B", point.mtu), counted(point.cores, "core")];
    if set.protocol == Protocol::Udp {
        words.insert(0, format!("datagrams of {}", payload_name(point.payload)));
    }
    let words = words.join(", ");
    let own: Vec<&CellResult> = cells.iter().map(|(_, cell)| *cell).collect();
    let metric = Metric::PayloadThroughput;
    let mut fact = rate(run, (label, words), &own, metric, best);
    if set.protocol == Protocol::Udp {
        // A ratio above 1 may come at the price of loss.
        let lost = answer::lost(own.into_iter()).unwrap_or_else(|| "none".to_owned());
        fact.unit.push_str(&format!(", {lost} lost"));
    }
    Some(fact)
}

/// The highest bit rate of some cells, with its conditions in words, and the ratios of all these
/// cells to their baseline by `metric`, if any.
fn rate(
    run: &Run<'_>,
    (label, words): (String, String),
    cells: &[&CellResult],
    metric: Metric,
    best: &Estimate,
) -> Fact {
    let at_most = |before: &'static str| if cells.len() > 1 { before } else { "" };
    match ratios::of(run, cells.iter().copied(), metric) {
        Some(found) => {
            let rate = format::bit_rate(best);
            let of = match metric {
                Metric::TransactionsPerSecond => " of objects",
                _ => "",
            };
            found.fact(label, format!("{}{rate}{of}: {words}", at_most("at most ")))
        }
        None => {
            let scale = Scale::si(best.mean, "bit/s");
            Fact {
                label,
                figure: scale.number(best.mean),
                range: repeats(best, &scale),
                unit: scale.unit,
                detail: format!("{}{words}", at_most("at most: ")),
            }
        }
    }
}

/// `repeats 6.88–7.20 Gbit/s`: the smallest and the largest repeat.
fn repeats(estimate: &Estimate, scale: &Scale) -> String {
    let (low, high) = (scale.number(estimate.min), scale.number(estimate.max));
    let value = if low == high {
        scale.value(estimate.max)
    } else {
        format!("{low}–{}", scale.value(estimate.max))
    };
    match estimate.n {
        1 => "one repeat".to_owned(),
        2 => format!("two repeats {value}"),
        _ => format!("repeats {value}"),
    }
}

/// TCP payload per CPU-second of the whole machine, relative to the baseline.
fn efficiency(run: &Run<'_>, device: &str) -> Option<Fact> {
    let cells = || {
        run.results
            .cells
            .iter()
            .filter(|cell| cell.dut == device && is_tcp(run, cell))
    };
    let found = ratios::of(run, cells(), Metric::PayloadBitsPerCpuSecond)?;
    let best = cells()
        .filter_map(|cell| cell.cpu.as_ref()?.payload_bits_per_cpu_s.as_ref())
        .max_by(|a, b| a.mean.total_cmp(&b.mean))?;
    let detail = format!(
        "at most {} of the whole machine",
        format::bits_per_cpu_s(best)
    );
    Some(found.fact("TCP payload per CPU-second".into(), detail))
}

fn is_tcp(run: &Run<'_>, cell: &CellResult) -> bool {
    run.planned(cell)
        .is_some_and(|planned| matches!(planned.measurement, Measurement::Tcp { .. }))
}

/// The first median of a set, and its difference from the baseline's.
fn latency(run: &Run<'_>, device: &str, set: &Set<'_>) -> Option<Fact> {
    let cell = set
        .points
        .iter()
        .find_map(|point| point.cell(device).filter(|cell| cell.latency().is_some()))?;
    let median = |cell: &CellResult| Some(cell.latency()?.p50_ns.mean);
    let own = &cell.latency()?.p50_ns;
    let baseline = run
        .comparison(cell, Metric::LatencyP50)
        .and_then(|found| Some((&found.baseline, median(run.cell(&found.baseline_cell)?)?)));
    let detail = match baseline {
        Some((name, other)) if own.mean >= other => {
            format!(
                "median, {} more than {name} ({})",
                format::time_ns(own.mean - other),
                format::time_ns(other)
            )
        }
        Some((name, other)) => format!("median; {name}: {}", format::time_ns(other)),
        None => "median".into(),
    };
    let scale = Scale::time(own.mean);
    Some(Fact {
        label: "Round trip".into(),
        figure: scale.number(own.mean),
        range: repeats(own, &scale),
        unit: scale.unit,
        detail,
    })
}
