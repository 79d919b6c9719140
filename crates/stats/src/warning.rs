//! What a reader should know before using the figures. Every warning ends in advice.
//!
//! To add one: a [`WarningKind`], a function that returns `Option<Warning>`, and its line in
//! [`warnings`].

use crate::Progress;
use crate::cell::CellResult;
use crate::compare::{Comparison, Metric};
use campaign::plan::{Adapter, Cell};
use journal::Journal;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A mean whose farthest repeat is farther than this, in per cent, is called widely spread.
pub const LARGE_SPREAD_PERCENT: f64 = 10.0;
/// From this share of the baseline on, the stations and not the DUT are taken to be the limit.
const TESTER_LIMITED_RATIO: f64 = 0.95;
/// An offered load below this share of the intended one is a shortfall.
const OFFERED_SHORTFALL_RATIO: f64 = 0.95;
/// Datagram rates that differ by less, over sizes that differ twofold, are the generator's own.
const SAME_RATE_RATIO: f64 = 1.1;
/// Fewer repeats than the source reports made.
const FEW_REPEATS: u32 = 3;

/// Something that bears on the figures, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// What it is about.
    pub kind: WarningKind,
    /// Ids of the cells it is about; empty when it is about the whole run.
    pub cells: Vec<String>,
    /// What was found: a sentence.
    pub text: String,
    /// What to do: a sentence.
    pub advice: String,
}

/// What a warning is about. Open: more will come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum WarningKind {
    /// The run did not come to its end.
    NotEnded,
    /// The last line of the journal was unfinished.
    UnfinishedLine,
    /// The run was taken up again on another program, kernel or machine.
    EnvironmentChanged,
    /// Fewer than three repeats.
    FewRepeats,
    /// Repeats differ widely.
    LargeSpread,
    /// Echo requests without a reply.
    LostPing,
    /// A group without a baseline cell.
    NoBaseline,
    /// The DUT was as fast as the baseline: the stations limit both.
    TesterLimited,
    /// The datagram rate does not depend on the size: the generator limits it.
    GeneratorLimited,
    /// The offered load fell short of the intended load.
    OfferedShortfall,
    /// Stations and DUT want more cores than there are.
    SharedCores,
    /// Super-packets pass the links whole.
    SuperPackets,
    /// The machine is virtual.
    VirtualMachine,
    /// The CPU may change its clock.
    Governor,
}

pub(crate) fn warnings(
    journal: &Journal,
    cells: &[CellResult],
    comparisons: &[Comparison],
    progress: &Progress,
) -> Vec<Warning> {
    let found = [
        not_ended(progress),
        unfinished_line(journal),
        environment_changed(journal),
        few_repeats(journal),
        large_spread(cells),
        lost_ping(cells),
        no_baseline(cells),
        tester_limited(comparisons),
        generator_limited(cells),
        offered_shortfall(cells),
        shared_cores(journal),
        super_packets(cells),
        virtual_machine(journal),
        governor(journal),
    ];
    found.into_iter().flatten().collect()
}

fn warning(kind: WarningKind, cells: Vec<String>, text: String, advice: &str) -> Option<Warning> {
    Some(Warning {
        kind,
        cells,
        text,
        advice: advice.into(),
    })
}

/// A warning about those cells, if there are any.
fn about(
    kind: WarningKind,
    cells: Vec<&CellResult>,
    text: impl FnOnce(&[&CellResult]) -> String,
    advice: &str,
) -> Option<Warning> {
    if cells.is_empty() {
        return None;
    }
    let text = text(&cells);
    warning(
        kind,
        cells.into_iter().map(|cell| cell.id.clone()).collect(),
        text,
        advice,
    )
}

/// `1 cell`, `2 cells`.
fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

fn not_ended(progress: &Progress) -> Option<Warning> {
    let (made, planned) = (
        progress.trials_planned - progress.trials_not_run,
        progress.trials_planned,
    );
    if progress.ended && made == planned {
        return None;
    }
    warning(
        WarningKind::NotEnded,
        vec![],
        format!("The run did not come to its end: {made} of {planned} trials were made."),
        "Go on with it: cipherbench resume RUN.",
    )
}

fn unfinished_line(journal: &Journal) -> Option<Warning> {
    let text = journal.warnings.first()?.to_string();
    warning(
        WarningKind::UnfinishedLine,
        vec![],
        format!("{}{}.", text[..1].to_uppercase(), &text[1..]),
        "Nothing is lost but the trial that was going on: cipherbench resume RUN makes it again.",
    )
}

fn environment_changed(journal: &Journal) -> Option<Warning> {
    let header = &journal.header;
    let changed = journal.resumed.iter().any(|resumed| {
        let (then, now) = (&header.environment, &resumed.environment);
        resumed.program != header.program
            || (&now.cpu_model, now.cpus, &now.kernel) != (&then.cpu_model, then.cpus, &then.kernel)
    });
    changed.then_some(())?;
    warning(
        WarningKind::EnvironmentChanged,
        vec![],
        "The run was taken up again with another program revision, kernel or machine: its trials \
         were not all made under the same conditions."
            .into(),
        "Make a new run where that matters.",
    )
}

fn few_repeats(journal: &Journal) -> Option<Warning> {
    let repeats = journal.header.plan.repeats;
    (repeats < FEW_REPEATS).then_some(())?;
    warning(
        WarningKind::FewRepeats,
        vec![],
        format!(
            "Each cell was measured {}: the spread says little.",
            times(repeats)
        ),
        "Use at least 3 repeats; from 5 on a 95 % interval is given.",
    )
}

fn times(count: u32) -> String {
    match count {
        1 => "once".into(),
        2 => "twice".into(),
        _ => format!("{count} times"),
    }
}

/// The figure that a cell is there for: its spread, in per cent.
fn spread_percent(cell: &CellResult) -> Option<f64> {
    let figure = cell
        .throughput_bps()
        .or_else(|| cell.latency.as_ref().map(|latency| &latency.p50_ns))?;
    figure.largest_distance_percent
}

fn large_spread(cells: &[CellResult]) -> Option<Warning> {
    let wide =
        |cell: &&CellResult| spread_percent(cell).is_some_and(|found| found > LARGE_SPREAD_PERCENT);
    let worst = |cells: &[&CellResult]| {
        let of = |cell: &&&CellResult| spread_percent(cell).unwrap_or(0.0);
        let worst = cells.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
        worst.map_or_else(String::new, |cell| {
            format!("{}, {:.0} %", cell.id, of(&cell))
        })
    };
    about(
        WarningKind::LargeSpread,
        cells.iter().filter(wide).collect(),
        |wide| {
            format!(
                "In {} the repeats lie more than {LARGE_SPREAD_PERCENT:.0} % from their mean \
                 (most: {}).",
                counted(wide.len(), "cell"),
                worst(wide)
            )
        },
        "Close other programs, lengthen the trials, add repeats; until then trust no difference \
         below the spread.",
    )
}

fn lost_ping(cells: &[CellResult]) -> Option<Warning> {
    let lost = |cell: &CellResult| {
        cell.latency
            .as_ref()
            .map_or(0, |latency| latency.requests_lost)
    };
    about(
        WarningKind::LostPing,
        cells.iter().filter(|cell| lost(cell) > 0).collect(),
        |cells| {
            let all: u64 = cells.iter().map(|cell| lost(cell)).sum();
            let echo = if all == 1 {
                "echo request was"
            } else {
                "echo requests were"
            };
            format!(
                "{all} {echo} not answered, in {}; the percentiles are of the answered ones only.",
                counted(cells.len(), "cell")
            )
        },
        "Look at the DUT's drop counters in the evidence; an idle path should lose nothing.",
    )
}

fn no_baseline(cells: &[CellResult]) -> Option<Warning> {
    let compared: BTreeSet<&str> = cells
        .iter()
        .filter(|cell| cell.baseline)
        .map(|cell| cell.group.as_str())
        .collect();
    let alone = |cell: &&CellResult| !compared.contains(cell.group.as_str());
    about(
        WarningKind::NoBaseline,
        cells.iter().filter(alone).collect(),
        |cells| {
            format!(
                "{} cannot be compared: the campaign measures no baseline there.",
                counted(cells.len(), "cell")
            )
        },
        "Add `direct` to the devices of the campaign: only ratios of one run can be carried to \
         other machines.",
    )
}

fn tester_limited(comparisons: &[Comparison]) -> Option<Warning> {
    let limited: Vec<String> = comparisons
        .iter()
        .filter(|found| {
            found.metric == Metric::PayloadThroughput && found.ratio >= TESTER_LIMITED_RATIO
        })
        .map(|found| found.cell.clone())
        .collect();
    (!limited.is_empty()).then_some(())?;
    let text = format!(
        "In {} the device was as fast as the path without it (at least {:.0} %): the stations or \
         the offered load are the limit there, and the figure is a lower bound.",
        counted(limited.len(), "cell"),
        100.0 * TESTER_LIMITED_RATIO
    );
    let advice = "Raise the load or give the stations more cores; compare payload bits per \
                  CPU-second instead.";
    warning(WarningKind::TesterLimited, limited, text, advice)
}

/// A constant datagram rate whatever the size is what a generator at its limit looks like.
fn generator_limited(cells: &[CellResult]) -> Option<Warning> {
    let mut alike: BTreeMap<_, Vec<(&CellResult, u32, f64)>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.baseline) {
        let rate = cell.bulk.as_ref().and_then(|bulk| bulk.datagrams.as_ref());
        if let (Some(rate), Some(bytes)) = (rate, cell.parameters.datagram_bytes) {
            let key = (
                &cell.dut,
                cell.mtu_bytes,
                cell.cores_per_station,
                cell.offloads,
                cell.parameters.streams,
            );
            alike
                .entry(key)
                .or_default()
                .push((cell, bytes, rate.offered_datagrams_per_s.mean));
        }
    }
    let limited = alike.into_values().filter(|found| {
        let bytes = || found.iter().map(|(_, bytes, _)| *bytes);
        let rates = || found.iter().map(|(_, _, rate)| *rate);
        let (least, most) = (bytes().min().unwrap_or(0), bytes().max().unwrap_or(0));
        let (slowest, fastest) = (
            rates().fold(f64::INFINITY, f64::min),
            rates().fold(0.0, f64::max),
        );
        most >= 2 * least && fastest > 0.0 && fastest / slowest <= SAME_RATE_RATIO
    });
    about(
        WarningKind::GeneratorLimited,
        limited.flatten().map(|(cell, _, _)| cell).collect(),
        |_| {
            "The baseline's datagram rate hardly depends on the datagram size: the traffic tool \
             is the limit, not the path."
                .into()
        },
        "Read those UDP columns as what the tool can send; give it more streams or cores.",
    )
}

fn offered_shortfall(cells: &[CellResult]) -> Option<Warning> {
    let short = |cell: &&CellResult| match (cell.parameters.intended_payload_bps, &cell.bulk) {
        (Some(intended), Some(bulk)) => {
            bulk.offered_payload_bps.mean < OFFERED_SHORTFALL_RATIO * intended as f64
        }
        _ => false,
    };
    about(
        WarningKind::OfferedShortfall,
        cells.iter().filter(short).collect(),
        |cells| {
            format!(
                "In {} the stations offered less than {:.0} % of the intended load.",
                counted(cells.len(), "cell"),
                100.0 * OFFERED_SHORTFALL_RATIO
            )
        },
        "Read the offered load, not the intended one; give the stations more streams or cores.",
    )
}

/// Cores that the tools and the DUT of a cell would use if each had its own.
fn cores_wanted(cell: &Cell) -> u32 {
    let workers = match cell.dut.adapter {
        Adapter::Cipherbench { workers, .. } => u32::from(workers),
        _ => 0,
    };
    2 * u32::from(cell.cores_per_station) + 2 * workers
}

fn shared_cores(journal: &Journal) -> Option<Warning> {
    let cpus = journal.header.environment.cpus;
    let crowded: Vec<&Cell> = journal
        .header
        .plan
        .cells
        .iter()
        .filter(|cell| cores_wanted(cell) > cpus)
        .collect();
    let most = crowded
        .iter()
        .map(|cell| cores_wanted(cell))
        .max()
        .filter(|_| cpus > 0)?;
    let text = format!(
        "Stations and gateways share this machine's {}: {} would need up to {most} for each to \
         have its own, so they take time from one another.",
        counted(cpus as usize, "core"),
        counted(crowded.len(), "cell")
    );
    let advice = "Read ratios and bits per CPU-second, not absolute rates, or use a machine with \
                  more cores.";
    warning(
        WarningKind::SharedCores,
        crowded.into_iter().map(|cell| cell.id.clone()).collect(),
        text,
        advice,
    )
}

fn super_packets(cells: &[CellResult]) -> Option<Warning> {
    about(
        WarningKind::SuperPackets,
        cells
            .iter()
            .filter(|cell| cell.offloads && cell.protocol != "ping")
            .collect(),
        |cells| {
            format!(
                "In {} offloads are on: veth hands packets of up to 64 KiB over whole, which no \
                 cable does, and that flatters every throughput here.",
                counted(cells.len(), "cell")
            )
        },
        "Measure with `offloads: off` as well before you carry a figure over to real links.",
    )
}

fn virtual_machine(journal: &Journal) -> Option<Warning> {
    let hypervisor = &journal.header.environment.hypervisor;
    (!hypervisor.is_empty()).then_some(())?;
    warning(
        WarningKind::VirtualMachine,
        vec![],
        format!(
            "This machine is virtual ({hypervisor}): neighbours may take its cores at any time."
        ),
        "Repeat the run at another hour, and on bare metal before you publish absolute figures.",
    )
}

fn governor(journal: &Journal) -> Option<Warning> {
    let governor = &journal.header.environment.governor;
    (!governor.is_empty() && governor != "performance").then_some(())?;
    warning(
        WarningKind::Governor,
        vec![],
        format!(
            "The frequency governor is `{governor}`: the cores' clock may change during a trial."
        ),
        "Set it to `performance`: cipherbench doctor --apply.",
    )
}
