//! The result of one cell: its status, and its figures if it has any.

mod figures;
mod json;
mod progress;

pub use figures::CellFigures;
pub use progress::Progress;

use crate::figures::bulk::CpuResult;
use crate::figures::estimate::Estimate;
use crate::figures::monitored::{self, EnergyResult, MonitoredValue};
use crate::figures::overhead::{Ceiling, Overhead};
use crate::figures::packet_cost::PacketCost;
use crate::figures::parameters::Parameters;
use crate::figures::repeats::Total;
use figures::FiguresInfo;
use journal::Journal;
use journal::record::{
    Explanation, FatigueProgress, Measured, Outcome, SoakProgress, ToolParameters, in_brief,
};
use json::StationsInfo;
use plan::{Adapter, Cell, Measurement, Role, Stations};
use schemars::JsonSchema;
use serde::Serialize;

/// Results of a cell over its trials.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellResult {
    /// The cell's id in the plan.
    pub id: String,
    /// The id without the DUT: cells of one group are compared with each other.
    pub group: String,
    /// The DUT's name.
    pub dut: String,
    /// Whether this is the baseline: nothing is encrypted.
    pub baseline: bool,
    /// Whether it measures the tester, not a DUT of the campaign.
    pub calibration: bool,
    /// The kind of control, if it is one.
    pub control: Option<Control>,
    /// Why this DUT must not protect data; `null` if it may, or is not meant to.
    pub insecure: Option<String>,
    /// `tcp`, `udp` or `ping`; of a frame test, its procedure; of crypto devices `kat`, `speed` or
    /// `fatigue`.
    pub protocol: String,
    /// Settings of the stations; `None` for crypto devices.
    #[serde(flatten, serialize_with = "json::stations")]
    #[schemars(with = "StationsInfo")]
    pub stations: Option<Stations>,
    /// Tool parameters in force.
    pub parameters: Parameters,
    /// Whether there is a figure, and why not.
    pub status: Status,
    /// Why trials are invalid or failed, in the order of the repeats.
    pub reasons: Vec<Reason>,
    /// Counts of the repeats by outcome.
    pub repeats: Repeats,
    /// Repeats that were measured in a later sitting (after a resume) than the same repeat of
    /// another cell of the group, so that the two are no pair of one time.
    pub late_repeats: Vec<LateRepeat>,
    /// The figures, by kind.
    #[serde(flatten, serialize_with = "figures::json")]
    #[schemars(with = "FiguresInfo<'_>")]
    pub figures: CellFigures,
    /// CPU by role; `null` when the cell has no figure.
    pub cpu: Option<CpuResult>,
    /// Cycles and instructions per packet; `null` if the processor's counters were not available or
    /// packets are not counted (TCP, ping), and for a DUT on other machines.
    pub packet_cost: Option<PacketCost>,
    /// Values of boxes and machines that were read while traffic flowed; empty without readings.
    pub monitored: Vec<MonitoredValue>,
    /// Power and energy of boxes and of machines; empty if no power was read.
    pub energy: Vec<EnergyResult>,
    /// Bytes that the device adds to each packet, for `tcp`, `udp` and `throughput`; `null` without
    /// encryption, with fragmented packets, and if they depend on more than the packet.
    pub overhead: Option<Overhead>,
    /// Highest rate of these packets on the path, for the same measurements; `null` if neither line
    /// rate nor baseline is known.
    pub ceiling: Option<Ceiling>,
}

/// A cell that measures the rig without a part of the DUT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Control {
    /// The encryptor with the null engine: everything but the cipher.
    NoEncryption,
    /// The stations joined by a link: nothing is in the path.
    NoDevice,
}

impl Control {
    /// The kind of control that a DUT is; `None` if it is none.
    #[must_use]
    pub fn of(adapter: &Adapter) -> Option<Self> {
        match adapter.encryptor() {
            Some(encryptor) if encryptor.is_null() => Some(Self::NoEncryption),
            _ => (adapter.profile().role == Role::Rig).then_some(Self::NoDevice),
        }
    }

    /// For tables: `control: no encryption`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoEncryption => "control: no encryption",
            Self::NoDevice => "control: no device",
        }
    }
}

/// Whether a cell has a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every repeat was measured, and every check passed.
    Measured,
    /// Some repeats were measured, the others are invalid, failed or were not run. The figure is
    /// from the measured ones; `reasons` explain the others.
    Partly,
    /// Evidence speaks against every repeat that was measured: no figure.
    Invalid,
    /// No repeat could be measured, and at least one was tried: no figure.
    Failed,
    /// No repeat was tried: no figure.
    NotRun,
}

/// Why a repeat has no figure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Reason {
    /// From 1.
    pub repeat: u32,
    /// A sentence for people; of a failed check its name and its counters.
    pub text: String,
    /// Explanation of a failed check; `null` for other reasons, and in older journals.
    pub explanation: Option<Explanation>,
}

impl Reason {
    /// In a clause: of a failed check its name and the difference, else the first line of the
    /// whole text, with those that its brackets go on to.
    #[must_use]
    pub fn in_short(&self) -> String {
        match &self.explanation {
            Some(explanation) => format!(
                "{} failed: {}",
                in_brief(&self.text),
                explanation.difference
            ),
            None => first_sentence(&self.text),
        }
    }

    /// Whether the remedy is to change the settings, so that the same trial would fail again.
    #[must_use]
    pub fn recurs(&self) -> bool {
        let advice = self.explanation.as_ref().map(|found| &found.advice);
        // Advice that names a repetition first is for causes that may go away.
        advice
            .is_some_and(|advice| advice.contains("in a new run") && !advice.contains("resume RUN"))
    }
}

/// The first line of a text, and those after it until its brackets are closed: a cause in brackets
/// may have the commands that failed, a line each. Brackets that are never closed have no effect.
fn first_sentence(text: &str) -> String {
    let mut open = 0;
    let mut kept = Vec::new();
    for line in text.lines() {
        kept.push(line.trim());
        open += line.matches('(').count();
        open = open.saturating_sub(line.matches(')').count());
        if open == 0 {
            return kept.join(" ");
        }
    }
    kept.first().copied().unwrap_or_default().to_owned()
}

/// A repeat that was measured in a later sitting than the same repeat of another cell of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LateRepeat {
    /// From 1.
    pub repeat: u32,
    /// Longest time from the beginning of an earlier one to the beginning of this one, in
    /// nanoseconds.
    pub later_ns: u64,
}

/// Counts of a cell's repeats by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repeats {
    /// Planned.
    pub planned: u32,
    /// Measured, all checks passed.
    pub measured: u32,
    /// Measured, but evidence speaks against it.
    pub invalid: u32,
    /// Could not be measured.
    pub failed: u32,
    /// Not run.
    pub not_run: u32,
    /// Left out, because the machine has fewer cores than the cell needs and the campaign says
    /// `missing_cores: skip`.
    pub skipped: u32,
}

impl CellResult {
    /// Whether no repeat of it can be measured on this machine, as the campaign expects.
    #[must_use]
    pub fn is_skipped(&self) -> bool {
        self.repeats.skipped > 0 && self.repeats.skipped == self.repeats.planned
    }

    /// Its main figure.
    #[must_use]
    pub fn figure(&self) -> Option<&Estimate> {
        let frames = self.frames();
        let burst = frames.and_then(|found| found.back_to_back());
        let device = self.device().and_then(|found| found.speed());
        self.throughput_bps()
            .or_else(|| device.map(|found| found.figure()))
            .or_else(|| self.latency().map(|latency| &latency.p50_ns))
            .or_else(|| burst.map(|found| &found.burst_frames))
            .or_else(|| self.frame_rate())
    }

    /// The spread of its main figure over the repeats, in per cent.
    #[must_use]
    pub fn spread_percent(&self) -> Option<f64> {
        self.figure()?.largest_distance_percent
    }

    /// The cell's throughput, if it has one.
    #[must_use]
    pub fn throughput_bps(&self) -> Option<&Estimate> {
        Some(&self.bulk()?.payload_throughput_bps)
    }

    /// The main figure of a frame test, in frames/s: the relevant lower bound of the first goal, or
    /// the highest forwarding rate.
    #[must_use]
    pub fn frame_rate(&self) -> Option<&Estimate> {
        self.frames()?.frame_rate()
    }

    /// The carried rate: the throughput in bit/s, or the frame rate of a frame test.
    #[must_use]
    pub fn rate(&self) -> Option<&Estimate> {
        self.throughput_bps().or_else(|| self.frame_rate())
    }

    /// Whether it measures the rig and so bounds the verdicts of its group: a calibration, or a
    /// frame test with nothing in the path.
    #[must_use]
    pub fn measures_rig(&self) -> bool {
        let nothing = self.control == Some(Control::NoDevice);
        self.frame_cell().is_some() && (self.calibration || nothing)
    }
}

/// The outcome of one repeat.
enum Repeat<'a> {
    Measured(u32, &'a Measured),
    Invalid,
    Failed,
    NotRun,
    Skipped,
}

pub(crate) fn results(journal: &Journal) -> Vec<CellResult> {
    let trials = journal.latest_trials();
    let plan = &journal.header.plan;
    let of_cell = |cell: &Cell| {
        let repeats = plan.repeats_of(&cell.id);
        let outcomes: Vec<_> = (1..=repeats)
            .map(|repeat| {
                let outcome = trials
                    .get(&(cell.id.as_str(), repeat))
                    .map(|trial| &trial.outcome);
                (repeat, outcome)
            })
            .collect();
        let tuned = journal.tuned(&cell.id).map(|tuned| &tuned.best);
        let mut found = result(
            cell,
            tuned,
            &outcomes,
            journal.header.lacks_cores(cell).is_some(),
        );
        for repeat in 1..=repeats {
            found
                .reasons
                // Long trials are recorded in segments. A run that was interrupted in one has no
                // outcome of it, but its progress.
                .extend(broken_off(journal.unfinished_soak(&cell.id, repeat)));
            found.reasons.extend(broken_off_fatigue(
                journal.unfinished_fatigue(&cell.id, repeat),
            ));
        }
        found
    };
    plan.cells.iter().map(of_cell).collect()
}

fn result(
    cell: &Cell,
    tuned: Option<&ToolParameters>,
    outcomes: &[(u32, Option<&Outcome>)],
    lacks_cores: bool,
) -> CellResult {
    let mut reasons = Vec::new();
    let repeats: Vec<Repeat<'_>> = outcomes
        .iter()
        .map(|&(repeat, outcome)| match outcome {
            // The trial failed because the machine is too small, which the plan allowed: no fault
            // of the device.
            Some(Outcome::Failed { .. }) if lacks_cores => Repeat::Skipped,
            outcome => classify(cell, repeat, outcome, &mut reasons),
        })
        .collect();
    let counts = count(&repeats);
    let status = status(&counts);
    // The figure uses only repeats that passed. Their number is reported, so the reader can decide.
    let measured: Vec<(u32, &Measured)> = match status {
        Status::Measured | Status::Partly => repeats
            .iter()
            .filter_map(|repeat| match repeat {
                Repeat::Measured(repeat, measured) => Some((*repeat, *measured)),
                _ => None,
            })
            .collect(),
        Status::Invalid | Status::Failed | Status::NotRun => Vec::new(),
    };
    // The parameters of the last repeat represent all.
    let in_force = measured.last().and_then(|(_, last)| last.transfer());
    let parameters = parameters(
        cell,
        in_force.map(|transfer| &transfer.parameters).or(tuned),
        tuned.is_some(),
    );
    CellResult {
        id: cell.id.clone(),
        group: cell.group.clone(),
        dut: cell.dut.name.clone(),
        baseline: cell.dut.adapter.profile().role == Role::Baseline,
        calibration: cell.calibration,
        control: Control::of(&cell.dut.adapter),
        insecure: cell.dut.adapter.insecure().map(str::to_owned),
        protocol: cell.measurement.name().into(),
        stations: cell.stations,
        // By the parameters in force: a tuned cell has other packets than the plan.
        overhead: Overhead::of(cell, &parameters),
        ceiling: None,
        parameters,
        status,
        reasons,
        repeats: counts,
        late_repeats: Vec::new(),
        figures: CellFigures::of(cell, &measured),
        cpu: match cell.measurement {
            // The workers' CPU time is in their figures: there are no stations.
            Measurement::Device(_) => None,
            _ => CpuResult::of(&measured),
        },
        packet_cost: PacketCost::of(&measured),
        monitored: monitored::values(&measured),
        energy: EnergyResult::of(cell, &measured),
    }
}

/// Progress of a soak when the run was interrupted.
fn broken_off<'s>(segments: impl Iterator<Item = &'s SoakProgress>) -> Option<Reason> {
    let segments: Vec<&SoakProgress> = segments.collect();
    let measured_ns = segments.iter().map(|one| one.trial.duration_ns).total();
    let lost = segments.iter().map(|one| one.trial.lost()).total();
    Some(Reason {
        repeat: segments.first()?.repeat,
        text: format!(
            "it broke off after {}, with {} lost until then: `cipherbench resume` goes on from there",
            units::human::duration_ns(measured_ns as f64),
            units::human::counted(lost, "frame")
        ),
        explanation: None,
    })
}

/// Progress of a fatigue trial when the run was interrupted.
fn broken_off_fatigue<'s>(segments: impl Iterator<Item = &'s FatigueProgress>) -> Option<Reason> {
    let segments: Vec<&FatigueProgress> = segments.collect();
    let parts = || segments.iter().flat_map(|one| &one.segment.devices);
    let longest_ns = segments
        .iter()
        // Devices of one segment run in parallel, so the longest of them is the segment's time.
        .filter_map(|one| one.segment.devices.iter().map(|part| part.elapsed_ns).max())
        .total();
    let bad = parts().map(|part| part.counts.bad().saturating_add(part.crashes));
    let bad = bad.total();
    Some(Reason {
        repeat: segments.first()?.repeat,
        text: format!(
            "it broke off after {} under load, with {bad} failure{} until then: `cipherbench resume` goes on from there",
            units::human::duration_ns(longest_ns as f64),
            if bad == 1 { "" } else { "s" }
        ),
        explanation: None,
    })
}

/// Sorts a repeat by its outcome, and records why it has no figure.
fn classify<'a>(
    cell: &Cell,
    repeat: u32,
    outcome: Option<&'a Outcome>,
    reasons: &mut Vec<Reason>,
) -> Repeat<'a> {
    let mut note = |text: &str| {
        reasons.push(Reason {
            repeat,
            text: text.to_owned(),
            explanation: outcome
                .and_then(|outcome| outcome.explanation(text))
                .cloned(),
        })
    };
    match outcome {
        None => Repeat::NotRun,
        Some(Outcome::Measured(measured)) => match figures::missing(cell, measured) {
            None => Repeat::Measured(repeat, measured),
            Some(reason) => {
                note(reason);
                Repeat::Failed
            }
        },
        Some(Outcome::Invalid { reasons, .. }) => {
            reasons.iter().for_each(|reason| note(reason));
            Repeat::Invalid
        }
        Some(Outcome::Failed { reason }) => {
            note(reason);
            Repeat::Failed
        }
    }
}

fn count(repeats: &[Repeat<'_>]) -> Repeats {
    let mut counts = Repeats::default();
    for repeat in repeats {
        counts.planned += 1;
        match repeat {
            Repeat::Measured(..) => counts.measured += 1,
            Repeat::Invalid => counts.invalid += 1,
            Repeat::Failed => counts.failed += 1,
            Repeat::NotRun => counts.not_run += 1,
            Repeat::Skipped => counts.skipped += 1,
        }
    }
    counts
}

fn status(counts: &Repeats) -> Status {
    if counts.measured == counts.planned {
        Status::Measured
    } else if counts.measured > 0 {
        Status::Partly
    // Without any figure the gravest reason counts: evidence against a repeat before a failure, and
    // a failure before a trial that is missing.
    } else if counts.invalid > 0 {
        Status::Invalid
    } else if counts.failed > 0 {
        Status::Failed
    } else {
        Status::NotRun
    }
}

/// The parameters in force if they are known, else the planned ones.
fn parameters(cell: &Cell, known: Option<&ToolParameters>, tuned: bool) -> Parameters {
    let tool = cell.measurement.tool().map(|tool| tool.name().to_owned());
    let planned = match cell.measurement {
        Measurement::Tcp {
            streams,
            window_bytes,
            ..
        } => Parameters {
            streams: Some(streams),
            window_bytes,
            ..Parameters::default()
        },
        Measurement::Udp {
            datagram_bytes,
            rate_bps,
            streams,
            ..
        } => Parameters {
            streams: Some(streams),
            datagram_bytes,
            intended_payload_bps: rate_bps,
            ..Parameters::default()
        },
        Measurement::Ping { payload_bytes, .. } => Parameters {
            datagram_bytes: Some(payload_bytes.into()),
            ..Parameters::default()
        },
        _ => Parameters::default(),
    };
    let known = known.cloned().unwrap_or_default();
    Parameters {
        tool,
        streams: known.streams.or(planned.streams),
        window_bytes: known.window_bytes.or(planned.window_bytes),
        datagram_bytes: known.datagram_bytes.or(planned.datagram_bytes),
        intended_payload_bps: known.rate_bps.or(planned.intended_payload_bps),
        tuned,
    }
}

#[cfg(test)]
mod tests {
    use super::first_sentence;

    #[test]
    fn a_sentence_ends_with_its_brackets() {
        let of = first_sentence;
        assert_eq!(of(""), "");
        assert_eq!(of("it died\nhelp: repeat"), "it died");
        assert_eq!(
            of("it died (`x` with\ny\n failed)\nhelp"),
            "it died (`x` with y failed)"
        );
        assert_eq!(of("it died :(\nmany\nlines of a log"), "it died :(");
    }
}
