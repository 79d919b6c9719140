//! Conditions that a reader should know before using the figures. Every warning ends in advice.
//!
//! To add one: a [`WarningKind`], a function that returns `Option<Warning>`, and its line in
//! [`warnings`].

pub(crate) mod captures;
mod clock;
pub(crate) mod device;
mod directions;
mod disturbed;
mod frames;
mod held;
mod machine;
mod path;
mod run;
mod scaling;
mod tester;
mod tools;
mod weight;

pub use held::HELD_LEAST_NS;
pub(crate) use tools::disagree as tools_disagree;
pub use weight::Weight;

use crate::analysis::compare::Comparison;
use crate::analysis::metric::Metric;
use crate::analysis::scaling::{Scaling, other_workers};
use crate::cell::{CellFigures, CellResult, Progress};
use crate::counts::{was, were};
use crate::figures::estimate::LARGE_SPREAD_PERCENT;
use crate::figures::repeats::Total;
use journal::Journal;
use plan::ImpairProfile;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use units::human::counted;

/// The stations, not the DUT, are the limit from this ratio to the baseline on.
const TESTER_LIMITED_RATIO: f64 = 0.95;
/// A path that loses more of the datagrams than this is at its own limit.
const LOSES_MIN: f64 = 0.001;
/// An offered load below this share of the intended one is a shortfall.
const OFFERED_SHORTFALL_RATIO: f64 = 0.95;
/// Datagram rates that differ by less, over sizes that differ twofold, are the generator's limit.
const SAME_RATE_RATIO: f64 = 1.1;

/// A condition that affects the figures, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Warning {
    /// Its kind.
    pub kind: WarningKind,
    /// Ids of the cells it is about; empty when it is about the whole run.
    pub cells: Vec<String>,
    /// The finding, as a sentence.
    pub text: String,
    /// The advice, as a sentence.
    pub advice: String,
}

/// The kind of a warning. An open enum: kinds will be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WarningKind {
    /// The run is not complete.
    NotEnded,
    /// The last line of the journal was unfinished.
    UnfinishedLine,
    /// The journal's version has no checksums of lines.
    NoChecksums,
    /// A record that is not of a finished trial contradicted itself, and was not used.
    Contradiction,
    /// Invalid trials were repeated.
    #[serde(rename = "made-again")]
    Repeated,
    /// Compared repeats were measured in different sittings.
    SittingsApart,
    /// The run was resumed with another program, kernel or machine.
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
    /// Stations and DUT need more cores than the machine has.
    SharedCores,
    /// Other programs or the hypervisor used the machine during a trial.
    MachineTaken,
    /// The system's clock was set during a trial.
    ClockStepped,
    /// The sending station stalled during a trial that a figure rests on.
    SenderStalled,
    /// The receiver did not look at its port in a trial that a figure rests on.
    ReceiverStalled,
    /// Counters of the path locate lost packets.
    LostAt,
    /// Super-packets cross the links unsegmented.
    SuperPackets,
    /// The machine is virtual.
    VirtualMachine,
    /// The CPU may change its clock frequency.
    Governor,
    /// Repeats fall in two bands.
    TwoBands,
    /// One repeat is far from all others.
    OneApart,
    /// The intervals of one trial have two levels of rate.
    IntervalsApart,
    /// TCP sent more segments again than the path's counters explain.
    UnexplainedRetransmissions,
    /// Echo requests were lost in one direction.
    OneWayLoss,
    /// Datagrams came for longer than they were sent.
    QueueDrained,
    /// Some stations and the DUT share a physical core (SMT).
    SiblingCores,
    /// The result of a search is irregular: the lowest load did not meet a goal, or the highest
    /// did.
    Irregular,
    /// A goal's width is finer than the loss that it allows.
    NarrowGoal,
    /// Goals of one search have trials of different final durations.
    UnequalGoals,
    /// A load lost too little to fail, and only a growing queue carried it.
    CarriedByQueue,
    /// A rate was held for a short time only.
    HeldShortly,
    /// A device counts frames as put out that neither arrived nor were dropped by a queue behind
    /// it.
    CountersDisagree,
    /// Of two loaded directions, one lost more than the other.
    DirectionsApart,
    /// A search ran out of time: a bound is missing, or too far from the other.
    SearchTimedOut,
    /// A group of frame tests without a measurement of the rig.
    NoCalibration,
    /// The frame trial with recorded evidence lost more than the goal allows.
    LossyEvidence,
    /// Frames came out damaged or more than once.
    DamagedFrames,
    /// Forged or replayed frames came out of a device.
    HostileDelivered,
    /// An encryptor let frames pass in clear when it was dead.
    FailsOpen,
    /// After an event, frames were lost until the time was up.
    NotRecovered,
    /// The control of a disturbed load lost frames too.
    QuietLoss,
    /// Fewer hostile packets were sent than configured.
    HostileShortfall,
    /// A device does not protect data.
    Insecure,
    /// The traffic between external devices was not observed.
    NotProven,
    /// Tools use one of a device's tunnels.
    OneTunnel,
    /// A device stops scaling though cores are idle.
    SilentCap,
    /// A device reports another number of threads than configured.
    #[serde(rename = "told-otherwise")]
    OtherWorkers,
    /// Two tools measure different figures for one transfer.
    ToolsDisagree,
    /// A crypto device gave wrong results.
    WrongResults,
    /// A crypto device failed under load.
    DeviceFailed,
    /// A device that is declared to take work off the CPU apparently does not.
    CardEqualsCpu,
    /// It is unknown whether a device or the CPU did the work.
    WorkNotShown,
    /// Operations failed during a speed trial.
    FailedOperations,
    /// No result of a speed trial was checked.
    UncheckedResults,
    /// Too few results of a speed trial were checked to find 1 wrong in 1000.
    FewCheckedResults,
    /// Workers did not work in parallel as planned.
    NotTogether,
    /// A speed changed during its trial.
    UnsteadySpeed,
    /// Frames were captured during a trial, which costs time.
    Captured,
    /// A capture lacks frames or its file.
    CaptureIncomplete,
    /// Keys of tunnels are in the run's folder.
    SecretsKept,
}

pub(crate) fn warnings(
    journal: &Journal,
    cells: &[CellResult],
    comparisons: &[Comparison],
    scalings: &[Scaling],
    progress: &Progress,
) -> Vec<Warning> {
    let [shared_a, shared_b] = machine::each(journal, machine::shared_cores);
    let [virtual_a, virtual_b] = machine::each(journal, machine::virtual_machine);
    let [governor_a, governor_b] = machine::each(journal, machine::governor);
    let [siblings_a, siblings_b] = machine::each(journal, machine::sibling_cores);
    // Within one weight the report keeps this order: `Results::of` sorts stably.
    let found = [
        run::not_ended(progress),
        run::unfinished_line(journal),
        run::no_checksums(journal),
        run::contradiction(journal),
        run::made_again(journal),
        run::sittings_apart(cells),
        run::environment_changed(journal),
        run::few_repeats(journal, progress),
        disturbed::hostile_delivered(journal, cells),
        disturbed::fails_open(cells),
        insecure(cells),
        run::not_proven(journal),
        run::one_tunnel(journal),
        scaling::other_workers(&other_workers(journal)),
        scaling::silent_caps(scalings),
        large_spread(cells),
        lost_ping(cells),
        no_baseline(cells),
        tester_limited(journal, cells, comparisons),
        generator_limited(cells),
        offered_shortfall(cells),
        shared_a,
        shared_b,
        tester::machine_taken(journal),
        clock::stepped(journal),
        tester::sender_stalled(journal),
        tester::receiver_stalled(journal),
        tester::lost_at(journal),
        super_packets(cells),
        virtual_a,
        virtual_b,
        governor_a,
        governor_b,
        two_bands(cells),
        one_apart(cells),
        path::intervals_apart(journal),
        path::unexplained_retransmissions(journal),
        path::one_way_loss(journal),
        path::queue_drained(journal),
        siblings_a,
        siblings_b,
        frames::lowest_load_fails(cells),
        frames::highest_load_meets(cells),
        frames::timed_out(cells),
        frames::narrow_goals(journal),
        frames::unequal_goals(journal),
        frames::carried_by_queue(cells),
        held::held_shortly(journal, cells),
        tester::counters_disagree(journal),
        directions::directions_apart(cells),
        frames::no_calibration(journal),
        frames::tester_limited(cells),
        frames::offered_shortfall(cells),
        frames::lossy_evidence(cells),
        frames::damaged(journal),
        disturbed::not_recovered(cells),
        disturbed::quiet_loss(cells),
        disturbed::hostile_shortfall(cells),
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

/// A warning about those cells, if there are any. `text` also gets their number in words.
fn about<'c>(
    kind: WarningKind,
    cells: impl IntoIterator<Item = &'c CellResult>,
    text: impl FnOnce(&[&CellResult], &str) -> String,
    advice: &str,
) -> Option<Warning> {
    let cells: Vec<&CellResult> = cells.into_iter().collect();
    let ids: Vec<String> = cells.iter().map(|cell| cell.id.clone()).collect();
    (!ids.is_empty()).then_some(())?;
    // The text gets the cells themselves, as it may name the worst of them.
    let text = text(&cells, &counted(cells.len(), "cell"));
    warning(kind, ids, text, advice)
}

fn two_bands(cells: &[CellResult]) -> Option<Warning> {
    let bands = |cell: &&CellResult| cell.figure().is_some_and(|found| found.bands.is_some());
    about(
        WarningKind::TwoBands,
        cells.iter().filter(bands),
        |_, count| {
            format!(
                "In {count} the repeats fall in two bands with nothing between them: the mean describes \
                 neither."
            )
        },
        "Find out what differs between them (core, clock, path of the frames), hold it still, and \
         measure again; until then read the repeats, not the mean.",
    )
}

fn one_apart(cells: &[CellResult]) -> Option<Warning> {
    let is_apart = |cell: &&CellResult| {
        cell.figure().is_some_and(|found| {
            let values: Vec<f64> = found.values.iter().map(|one| one.value).collect();
            crate::figures::bands::one_apart(&values).is_some()
        })
    };
    about(
        WarningKind::OneApart,
        cells.iter().filter(is_apart),
        |_, count| {
            format!(
                "In {count} one repeat lies apart from all others: if some repeats are disturbed, a 95 % interval \
                 holds the mean less often than it says."
            )
        },
        "Find what disturbed that repeat, and measure with more repeats; none is removed from the mean, and the \
         median is less sensitive to it.",
    )
}

/// Each insecure device once, with its reason.
fn insecure(cells: &[CellResult]) -> Option<Warning> {
    let found: Vec<&CellResult> = cells
        .iter()
        .filter(|cell| cell.insecure.is_some())
        .collect();
    let text = |cells: &[&CellResult], _: &str| {
        let mut devices: Vec<(&str, &str)> = Vec::new();
        for cell in cells {
            let device = (
                cell.dut.as_str(),
                cell.insecure.as_deref().unwrap_or_default(),
            );
            // A device is insecure in each of its cells and is named once.
            if !devices.contains(&device) {
                devices.push(device);
            }
        }
        let devices: Vec<String> = devices
            .iter()
            .map(|(dut, why)| format!("`{dut}` ({why})"))
            .collect();
        format!("Insecure: {}.", devices.join(", "))
    };
    let advice = "Use these figures to compare, and the device to protect nothing.";
    about(WarningKind::Insecure, found, text, advice)
}

fn large_spread(cells: &[CellResult]) -> Option<Warning> {
    let wide = |cell: &&CellResult| {
        cell.spread_percent()
            .is_some_and(|found| found > LARGE_SPREAD_PERCENT)
    };
    let worst = |cells: &[&CellResult]| {
        let of = |cell: &&&CellResult| cell.spread_percent().unwrap_or(0.0);
        let worst = cells.iter().max_by(|a, b| of(a).total_cmp(&of(b)));
        worst.map_or_else(String::new, |cell| {
            format!("{}, {:.0} %", cell.id, of(&cell))
        })
    };
    about(
        WarningKind::LargeSpread,
        cells.iter().filter(wide),
        |wide, count| {
            format!(
                "In {count} the repeats lie more than {LARGE_SPREAD_PERCENT:.0} % from their mean \
                 (most: {}).",
                worst(wide)
            )
        },
        "Close other programs, lengthen the trials, add repeats; until then trust no difference \
         below the spread.",
    )
}

fn lost_ping(cells: &[CellResult]) -> Option<Warning> {
    let lost = |cell: &CellResult| cell.latency().map_or(0, |latency| latency.requests_lost);
    about(
        WarningKind::LostPing,
        cells.iter().filter(|cell| lost(cell) > 0),
        |cells, count| {
            let all = cells.iter().map(|cell| lost(cell)).total();
            format!(
                "{} not answered, in {count}; the percentiles are of the answered ones only.",
                were(all, "echo request")
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
    // Frame tests are compared with the rig, and crypto devices with the CPU: neither has a
    // baseline.
    let alone = |cell: &&CellResult| {
        cell.traffic().is_none()
            && cell.device_test().is_none()
            && !compared.contains(cell.group.as_str())
    };
    about(
        WarningKind::NoBaseline,
        cells.iter().filter(alone),
        |_, count| format!("{count} cannot be compared: the campaign measures no baseline there."),
        "Add `direct` to the devices of the campaign: only ratios of one run can be carried to \
         other machines.",
    )
}

fn tester_limited(
    journal: &Journal,
    cells: &[CellResult],
    comparisons: &[Comparison],
) -> Option<Warning> {
    // Nothing but the path limits a sender whose datagrams are lost.
    let loses = |id: &str| {
        let cell = cells.iter().find(|cell| cell.id == id);
        let datagrams = cell.and_then(|cell| cell.bulk()?.datagrams.as_ref());
        datagrams.is_some_and(|found| found.loss_ratio.mean > LOSES_MIN)
    };
    // An impaired path limits both, as the campaign intends.
    let planned = journal.header.plan.cells.iter();
    let impaired: BTreeSet<_> = planned
        .filter(|cell| {
            let profile = cell.impair.as_ref();
            profile.is_some_and(|profile| profile.name != ImpairProfile::NONE)
        })
        .map(|cell| &cell.id)
        .collect();
    let limited: Vec<String> = comparisons
        .iter()
        .filter(|found| {
            found.metric == Metric::PayloadThroughput
                && found.ratio >= TESTER_LIMITED_RATIO
                && !impaired.contains(&found.cell)
                && !loses(&found.cell)
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

/// A datagram rate that does not depend on the size indicates a generator at its limit.
fn generator_limited(cells: &[CellResult]) -> Option<Warning> {
    let mut alike: BTreeMap<_, Vec<(&CellResult, u32, f64)>> = BTreeMap::new();
    for cell in cells.iter().filter(|cell| cell.baseline) {
        let rate = cell.bulk().and_then(|bulk| bulk.datagrams.as_ref());
        if let (Some(rate), Some(bytes)) = (rate, cell.parameters.datagram_bytes) {
            // Only baselines that differ in nothing but the datagram's size can show whether the
            // rate depends on it.
            let key = (
                &cell.dut,
                cell.stations
                    .map(|its| (its.mtu, its.cores, its.offloads, its.overlay, its.dscp)),
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
        // On a path limited by bits, twice the size would halve the datagram rate.
        most >= 2 * least && fastest > 0.0 && fastest / slowest <= SAME_RATE_RATIO
    });
    about(
        WarningKind::GeneratorLimited,
        limited.flatten().map(|(cell, _, _)| cell),
        |_, _| {
            "The baseline's datagram rate hardly depends on the datagram size: the traffic tool \
             is the limit, not the path."
                .into()
        },
        "Read those UDP columns as the tool's limit; give it more streams or cores.",
    )
}

fn offered_shortfall(cells: &[CellResult]) -> Option<Warning> {
    let short = |cell: &&CellResult| match (cell.parameters.intended_payload_bps, cell.bulk()) {
        (Some(intended), Some(bulk)) => {
            bulk.offered_payload_bps.mean < OFFERED_SHORTFALL_RATIO * intended as f64
        }
        _ => false,
    };
    about(
        WarningKind::OfferedShortfall,
        cells.iter().filter(short),
        |_, count| {
            format!(
                "In {count} the stations offered less than {:.0} % of the intended load.",
                100.0 * OFFERED_SHORTFALL_RATIO
            )
        },
        "Read the offered load, not the intended one; give the stations more streams or cores.",
    )
}

fn super_packets(cells: &[CellResult]) -> Option<Warning> {
    about(
        WarningKind::SuperPackets,
        cells.iter().filter(|cell| {
            let is_bulk = matches!(cell.figures, CellFigures::Tcp(_) | CellFigures::Udp(_));
            is_bulk && cell.stations.is_some_and(|stations| stations.offloads)
        }),
        |_, count| {
            format!(
                "In {count} offloads are on: veth hands packets of up to 64 KiB over whole, which no \
                 cable does, and that flatters every throughput here."
            )
        },
        "Measure with `offloads: off` as well before you carry a figure over to real links.",
    )
}
