//! Warnings about the tester itself, from its readings of the machine, its sender and the path
//! during the trials.
//!
//! Each covers every trial that counts, including trials that are invalid for another reason.

use super::{Warning, WarningKind, counted, warning};
use crate::figures::repeats::Total;
use journal::Journal;
use journal::record::{
    Cpu, FrameResult, FrameTrial, LostAt, Measured, Outcome, TakenBy, TrialRecord,
};
use plan::Measurement;
use std::collections::BTreeSet;
use units::human::{duration_ns, frame_rate};

/// Cells that a warning describes one by one.
const DESCRIBED: usize = 3;
/// Tolerated excess of a device's output counter over the frames that arrived or were dropped
/// behind it: one in `COUNTED_ONE_IN`, plus `COUNTED_FRAMES`. Counters are not read at one instant.
const COUNTED_ONE_IN: u64 = 100;
const COUNTED_FRAMES: u64 = 64;
/// Ethernet header and FCS.
const AROUND_IP_BYTES: u64 = 14 + 4;

/// The trials that count, each with its measurement, in the order they were made.
fn readings(journal: &Journal) -> Vec<(&TrialRecord, &Measured)> {
    let latest = journal.latest_trials();
    let counts = |trial: &&TrialRecord| {
        // The trial itself and not an equal one: an attempt that was repeated does not count.
        let last = latest.get(&(trial.cell.as_str(), trial.repeat));
        last.is_some_and(|last| std::ptr::eq(*last, *trial))
    };
    let trials = journal.trials.iter().filter(counts);
    let read = trials.filter_map(|trial| match &trial.outcome {
        Outcome::Measured(measured) | Outcome::Invalid { measured, .. } => {
            Some((trial, measured.as_ref()))
        }
        Outcome::Failed { .. } => None,
    });
    read.collect()
}

/// A finding of one trial: its cell, how much it is, and the words.
struct Finding<'a> {
    cell: &'a str,
    much: u64,
    words: String,
}

impl<'a> Finding<'a> {
    /// `words` follow the cell and the repeat.
    fn of(record: &'a TrialRecord, much: u64, words: impl std::fmt::Display) -> Self {
        Self {
            cell: &record.cell,
            much,
            words: format!("`{}`, repeat {}{words}", record.cell, record.repeat),
        }
    }
}

/// The cells of the findings in the order made, each once, and the worst findings in words: one of
/// each cell.
fn worst(mut findings: Vec<Finding<'_>>) -> Option<(Vec<String>, String)> {
    findings.first()?;
    let mut cells: Vec<String> = Vec::new();
    for found in &findings {
        if cells.iter().all(|known| known != found.cell) {
            cells.push(found.cell.to_owned());
        }
    }
    findings.sort_by_key(|found| std::cmp::Reverse(found.much));
    let mut described = BTreeSet::new();
    // Sorted before, so the worst finding of a cell is the one that stays.
    findings.retain(|found| described.insert(found.cell));
    let words: Vec<&str> = findings
        .iter()
        .take(DESCRIBED)
        .map(|found| found.words.as_str())
        .collect();
    let mut words = words.join("; ");
    if let Some(more) = findings
        .len()
        .checked_sub(DESCRIBED)
        .filter(|more| *more > 0)
    {
        words += &format!("; and {} more", counted(more, "cell"));
    }
    Some((cells, words))
}

/// What others took of the machine, in per cent of one core.
struct CpuContention {
    percent: u64,
    hypervisor_percent: u64,
    idle_cores: Option<f64>,
}

impl CpuContention {
    /// From the CPU times while tools ran, or during a sampled trial.
    fn of(cpu: &Cpu) -> Option<Self> {
        // Of two hosts the one that lost more time: the path waits for the slower.
        let (_, cpu) = cpu.most_taken();
        Some(Self {
            percent: cpu.taken_percent()?,
            hypervisor_percent: cpu.steal_ns.saturating_mul(100) / cpu.wall_ns,
            idle_cores: cpu
                .idle_ns
                .map(|idle_ns| idle_ns as f64 / cpu.wall_ns as f64),
        })
    }

    /// From the readings of a frame trial; `None` if it was too short.
    fn in_trial(trial: &FrameTrial) -> Option<Self> {
        let readings = trial.readings.as_deref()?;
        let most = readings.most_taken();
        let cpu = Cpu {
            wall_ns: readings.wall_ns,
            steal_ns: most.steal_ns,
            foreign_ns: most.foreign_ns.unwrap_or(0),
            ..Cpu::default()
        };
        Self::of(&cpu).map(|taken| Self {
            idle_cores: None,
            ..taken
        })
    }

    fn words(&self) -> String {
        let Self {
            percent,
            hypervisor_percent,
            idle_cores,
        } = self;
        let idle = match idle_cores {
            Some(cores) => format!(", with {cores:.1} cores idle"),
            None => String::new(),
        };
        format!("{percent} % of one core, of which the hypervisor {hypervisor_percent} %{idle}")
    }
}

/// Others used the machine while a figure was measured.
pub(super) fn machine_taken(journal: &Journal) -> Option<Warning> {
    let found = readings(journal).into_iter().filter_map(|(record, read)| {
        // The reading of the whole measurement, and of frame tests each trial that a figure rests
        // on: a burst of another program vanishes in the mean over minutes.
        let taken = CpuContention::of(&read.cpu).into_iter();
        let in_trials = read.frames().into_iter().flat_map(bearing);
        // The worst of all decides, as two readings may cover the same time and must not add up.
        let all = taken.chain(in_trials.filter_map(CpuContention::in_trial));
        let worst = all.max_by_key(|taken| taken.percent)?;
        (worst.percent > Cpu::TAKEN_PERCENT).then(|| {
            let by = named(&read.evidence.taken_by);
            Finding::of(record, worst.percent, format!(": {}{by}", worst.words()))
        })
    });
    let (cells, words) = worst(found.collect())?;
    let text = format!(
        "In {} other programs or the hypervisor took more than {} % of one core while the figure was \
         measured: {words}.",
        counted(cells.len(), "cell"),
        Cpu::TAKEN_PERCENT
    );
    let advice = "End the other programs, or use a machine that does nothing else, and measure again: \
                  what they took, the path did not have.";
    warning(WarningKind::MachineTaken, cells, text, advice)
}

/// ` (most by rustc, 96 % over the whole trial, process 4711)`.
fn named(programs: &[TakenBy]) -> String {
    programs.first().map_or_else(String::new, |most| {
        format!(
            " (most by {}, {} % over the whole trial, process {})",
            most.name, most.percent, most.process
        )
    })
}

/// Our encryptor counts as put out what never arrived, although no queue behind it was full. Taken
/// over all frame trials of a record: a deep queue may hold frames until the next one.
pub(super) fn counters_disagree(journal: &Journal) -> Option<Warning> {
    let found = readings(journal).into_iter().filter_map(|(record, read)| {
        let [_, header_bytes] = header_bytes(journal, record)?;
        let trials = read.frames()?.trials.iter();
        // Summed over the trials of a repeat: packets that are sent and not counted yet at one
        // reading are counted in a later trial.
        let known = trials.filter_map(|trial| PutOut::of(trial, header_bytes));
        let sum = known.fold(PutOut::default(), |sum, more| PutOut {
            counted_bytes: sum.counted_bytes.saturating_add(more.counted_bytes),
            arrived_bytes: sum.arrived_bytes.saturating_add(more.arrived_bytes),
            frame_bytes: sum.frame_bytes.max(more.frame_bytes),
        });
        let apart = COUNTED_FRAMES.saturating_mul(sum.frame_bytes);
        let allowed = (sum.arrived_bytes / COUNTED_ONE_IN).saturating_add(apart);
        let beyond = sum.counted_bytes.saturating_sub(sum.arrived_bytes);
        (beyond > allowed).then(|| {
            let words = format!(
                ": {} B counted, {} B arrived or found a queue full",
                sum.counted_bytes, sum.arrived_bytes
            );
            Finding::of(record, beyond, words)
        })
    });
    let (cells, words) = worst(found.collect())?;
    let text = format!(
        "In {} the device counts as put out over {} % more than arrived, and no queue behind it dropped \
         that: {words}.",
        counted(cells.len(), "cell"),
        100 / COUNTED_ONE_IN
    );
    let advice = "The figures count what arrived. Where frames were lost is unknown: either the device's \
                  counters are wrong, or something behind the device drops frames and does not count them.";
    warning(WarningKind::CountersDisagree, cells, text, advice)
}

/// Least and most header bytes per frame that the device of a frame test counts. A device that
/// carries whole frames counts the Ethernet header, without and with a VLAN tag.
fn header_bytes(journal: &Journal, record: &TrialRecord) -> Option<[u64; 2]> {
    let mut cells = journal.header.plan.cells.iter();
    let cell = cells.find(|cell| cell.id == record.cell)?;
    let (least, most) = cell.dut.adapter.profile().frame_bytes;
    matches!(cell.measurement, Measurement::Frames(_)).then_some([least as u64, most as u64])
}

/// Bytes in clear of these frames as the device counts them.
const fn clear_bytes(bytes: u64, frames: u64, header_bytes: u64) -> u64 {
    // The device counts packets by its form of frames, and the stations count whole frames.
    let ip_bytes = bytes.saturating_sub(frames.saturating_mul(AROUND_IP_BYTES));
    ip_bytes.saturating_add(frames.saturating_mul(header_bytes))
}

/// Frames of mean size that were lost outside the gateways, according to the device's counters. A
/// loss is 0 unless it exceeds the drops that queues there counted and the possible difference of
/// two readings.
struct LostOutside {
    /// Between the generator and the device's input counter.
    before: u64,
    /// Between its gateways.
    between: u64,
    /// Between the device's output counter and the analyser.
    behind: u64,
}

impl LostOutside {
    /// `None` without counters of our gateways.
    fn of(trial: &FrameTrial, [least, most]: [u64; 2]) -> Option<Self> {
        let readings = trial.readings.as_deref()?;
        let (work, drops) = (readings.dut?, &readings.drops);
        // The least length on the sending side and the most on the arriving side: every uncertainty
        // makes the loss smaller.
        let sent_bytes = clear_bytes(trial.sent_bytes, trial.sent, least);
        let mean = sent_bytes.div_ceil(trial.sent.max(1)).max(1);
        let others = [
            trial.duplicated,
            trial.too_late,
            trial.corrupted,
            trial.after_end,
        ];
        let others = others.into_iter().total();
        let arrived_bytes = clear_bytes(trial.received_bytes, trial.received, most)
            .saturating_add(others.saturating_mul(mean));
        let beyond = |lost: u64, dropped: u64| {
            let apart = [LostAt::APART_PACKETS, drops.device, dropped];
            let apart = apart.into_iter().total();
            // Frames that a queue of the device dropped are explained already.
            let is_clear = LostAt::is_clear(lost, trial.sent, apart);
            if is_clear { lost } else { 0 }
        };
        let taken_in = work.taken_in_bytes.unwrap_or(sent_bytes);
        let put_out = work.put_out_bytes.unwrap_or(0);
        // Drops of no known interface may have been behind the device, so they explain a loss
        // there.
        let behind_dropped = [trial.receiver_dropped, drops.station, drops.unattributed];
        let behind_dropped = behind_dropped.into_iter().total();
        Some(Self {
            before: beyond(sent_bytes.saturating_sub(taken_in) / mean, 0),
            between: beyond(work.lost_between_packets.unwrap_or(0), drops.device_sockets),
            behind: beyond(put_out.saturating_sub(arrived_bytes) / mean, behind_dropped),
        })
    }

    fn most(&self) -> u64 {
        self.before.max(self.between).max(self.behind)
    }
}

/// Cleartext bytes that the far gateway counts as put out, and how many of them arrived.
#[derive(Default)]
struct PutOut {
    counted_bytes: u64,
    /// Arrived at the receiving station, or found a queue behind the device full.
    arrived_bytes: u64,
    /// Of a frame, on average.
    frame_bytes: u64,
}

impl PutOut {
    /// `None` unless a gateway of ours counts its output.
    fn of(trial: &FrameTrial, header_bytes: u64) -> Option<Self> {
        let readings = trial.readings.as_ref()?;
        let drops = &readings.drops;
        let frames = [
            trial.received,
            trial.duplicated,
            trial.too_late,
            trial.corrupted,
            trial.after_end,
            trial.station_lost(),
            drops.station_sockets,
            drops.device,
            drops.unattributed,
        ];
        // All frames that the device may have put out: arrived in any state, or dropped at a known
        // place behind it.
        let frames = frames.into_iter().fold(0, u64::saturating_add);
        let frame_bytes = clear_bytes(trial.sent_bytes, trial.sent, header_bytes);
        let frame_bytes = frame_bytes.div_ceil(trial.sent.max(1));
        Some(Self {
            counted_bytes: readings.dut?.put_out_bytes?,
            arrived_bytes: frames.saturating_mul(frame_bytes),
            frame_bytes,
        })
    }
}

/// The trials that a figure rests on: a search's trials at its bounds, and after a search the
/// trials at the timed loads; for other procedures all but the trial that found the highest load.
fn bearing(found: &FrameResult) -> impl Iterator<Item = &FrameTrial> {
    let bounds = found.throughput.iter().flat_map(|search| &search.goals);
    let mut loads: Vec<u64> = bounds
        .flat_map(|goal| [goal.lower, goal.upper])
        .flatten()
        .collect();
    loads.extend(found.latency.iter().map(|timed| timed.load));
    // A search also tries loads that are in no figure. Without one every trial but the flood
    // counts.
    let searched = found.throughput.is_some();
    let trials = found.trials.iter().enumerate();
    trials
        .filter(move |(place, trial)| {
            found.flood_trial != Some(*place) && (!searched || loads.contains(&trial.load))
        })
        .map(|(_, trial)| trial)
}

/// The paced trials at loads that the device is reported to carry: the trials that a figure rests
/// on, without loads above a search's figure, which are lost somewhere by definition.
fn supporting(found: &FrameResult) -> impl Iterator<Item = &FrameTrial> {
    let bounds = found.throughput.iter().flat_map(|search| &search.goals);
    // At an upper bound the device loses frames by definition.
    let too_high: Vec<u64> = bounds.filter_map(|goal| goal.upper).collect();
    bearing(found).filter(move |trial| trial.load > 0 && !too_high.contains(&trial.load))
}

/// The longest stall of a station in each record, by `ns`, among the trials that a figure rests on.
fn stalls(
    journal: &Journal,
    is_stalled: fn(&FrameTrial) -> bool,
    ns: fn(&FrameTrial) -> u64,
    words: fn(&FrameTrial) -> String,
) -> Vec<Finding<'_>> {
    let found = readings(journal).into_iter().filter_map(|(record, read)| {
        let frames = read.frames()?;
        let stalled = bearing(frames).filter(|trial| is_stalled(trial));
        let trial = stalled.max_by_key(|trial| ns(trial))?;
        let of_evidence = frames.evidence_trial.and_then(|at| frames.trials.get(at));
        // Its duration and load may be others than those of the procedure's trials, by which a
        // reader would look for it.
        let which = if of_evidence.is_some_and(|own| std::ptr::eq(own, trial)) {
            " (the trial for the evidence)"
        } else {
            ""
        };
        let words = format!(": {}{which}", words(trial));
        Some(Finding::of(record, ns(trial), words))
    });
    found.collect()
}

/// The stall's length, the trial's duration and its load. A stall may last beyond the planned end.
fn still(ns: u64, trial: &FrameTrial) -> String {
    let [shown, of_ns] = [ns, trial.duration_ns].map(|ns| duration_ns(ns as f64));
    let load = rate(trial.load);
    // A pause that is longer than the trial was planned did not happen within it.
    if ns <= trial.duration_ns {
        format!("for {shown} in {of_ns} at {load}")
    } else {
        format!("for {shown}, beyond the planned {of_ns}, at {load}")
    }
}

/// A sender stalled, and its frames came in bursts afterwards.
pub(super) fn sender_stalled(journal: &Journal) -> Option<Warning> {
    let words = |trial: &FrameTrial| {
        let still = still(trial.late_ns_max, trial);
        let (late, sent) = (trial.late_frames, trial.sent);
        format!("it stood still {still}, and {late} of {sent} frames left more than 1 ms late")
    };
    let found = stalls(
        journal,
        FrameTrial::sender_stalled,
        |trial| trial.late_ns_max,
        words,
    );
    let (cells, words) = worst(found)?;
    let text = format!(
        "In {} the sending station stood still for {} or more, or sent over {} % of its frames late, in a \
         trial that a figure or its evidence rests on: {words}.",
        counted(cells.len(), "cell"),
        duration_ns(FrameTrial::STALL_NS as f64),
        FrameTrial::LATE_PERCENT
    );
    let advice = "Loss and the upper percentiles of latency there are in part the tester's: measure on a \
                  machine that does nothing else, or give the stations more cores.";
    warning(WarningKind::SenderStalled, cells, text, advice)
}

/// A receiver stalled, and frames waited for it.
pub(super) fn receiver_stalled(journal: &Journal) -> Option<Warning> {
    let stood_ns = |trial: &FrameTrial| trial.receiver_stood_ns_max;
    let words = |trial: &FrameTrial| still(trial.receiver_stood_ns_max, trial);
    let found = stalls(journal, FrameTrial::receiver_stalled, stood_ns, words);
    let (cells, words) = worst(found)?;
    let text = format!(
        "In {} the receiving station did not look at its port for {} or more in a trial that a figure or its \
         evidence rests on: {words}.",
        counted(cells.len(), "cell"),
        duration_ns(FrameTrial::STALL_NS as f64)
    );
    let advice = "Frames waited in its buffer meanwhile: what did not fit is in no figure of the device's, but \
                  where the kernel notes no arrival times the latency is too long. Measure on a machine that \
                  does nothing else, or give the stations more cores.";
    warning(WarningKind::ReceiverStalled, cells, text, advice)
}

/// A load in words.
fn rate(load: u64) -> String {
    match load {
        0 => "full speed".to_owned(),
        load => frame_rate(load as f64),
    }
}

/// Counters locate lost packets: counters of the whole path in the trial with recorded evidence,
/// and the device's counters in every frame trial that a figure rests on.
pub(super) fn lost_at(journal: &Journal) -> Option<Warning> {
    let found = readings(journal).into_iter().filter_map(|(record, read)| {
        let lost = &read.evidence.lost_at;
        let mut most = lost.iter().map(LostAt::packets).max();
        let mut words: Vec<String> = lost.iter().map(LostAt::words).collect();
        let outside = read.frames().into_iter().flat_map(supporting);
        let header_bytes = header_bytes(journal, record).unwrap_or_default();
        let outside =
            outside.filter_map(|trial| Some((trial, LostOutside::of(trial, header_bytes)?)));
        // One trial of a repeat is described: the one that lost most.
        let outside = outside.max_by_key(|(_, lost)| lost.most());
        if let Some((trial, outside)) = outside {
            let places = [
                (
                    outside.before,
                    "between the sending station and the device's input",
                ),
                (outside.between, "between the gateways"),
                (
                    outside.behind,
                    "between the device's output and the receiving station",
                ),
            ];
            for (frames, place) in places.into_iter().filter(|(frames, _)| *frames > 0) {
                most = most.max(Some(frames));
                words.push(format!(
                    "{place}: {frames} of {} frames at {}",
                    trial.sent,
                    rate(trial.load)
                ));
            }
        }
        let words = format!(", {}", words.join(" and "));
        Some(Finding::of(record, most?, words))
    });
    let (cells, words) = worst(found.collect())?;
    let text = format!(
        "In {} counters of the path or of the device show the place of lost packets: {words}.",
        counted(cells.len(), "cell")
    );
    let advice = "What was lost inside a gateway, or in the queue of an interface that leads to it, is the \
                  device's; what was lost between them, or inside a station, is not.";
    warning(WarningKind::LostAt, cells, text, advice)
}
