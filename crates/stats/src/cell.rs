//! The result of one cell: its status, and its figures if it has any.

use crate::estimate::{Estimate, Sample};
use crate::latency::LatencyResult;
use campaign::plan::{Adapter, Cell, Measurement};
use journal::Journal;
use journal::record::{Latency, Measured, Outcome, ToolParameters, Transfer};
use schemars::JsonSchema;
use serde::Serialize;

const NANOS_PER_SECOND: f64 = 1e9;

/// What the trials of a cell say together.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CellResult {
    /// The cell's id in the plan.
    pub id: String,
    /// The id without the DUT: cells of one group are compared with one another.
    pub group: String,
    /// The DUT's name.
    pub dut: String,
    /// Whether this is the baseline: nothing is encrypted.
    pub baseline: bool,
    /// `tcp`, `udp` or `ping`.
    pub protocol: String,
    /// IP MTU of the stations' interfaces, in bytes.
    pub mtu_bytes: u16,
    /// Cores that each station's tools may use.
    pub cores_per_station: u16,
    /// Whether TSO, GSO and GRO are on at the links' ends.
    pub offloads: bool,
    /// Tool parameters in force.
    pub parameters: Parameters,
    /// Whether there is a figure, and why not.
    pub status: Status,
    /// Why trials are invalid or failed, in the order of the repeats.
    pub reasons: Vec<Reason>,
    /// What became of the repeats.
    pub repeats: Repeats,
    /// Bulk transfer, for `tcp` and `udp`; `null` when the cell has no figure.
    pub bulk: Option<Bulk>,
    /// Round-trip times, for `ping`; `null` when the cell has no figure.
    pub latency: Option<LatencyResult>,
    /// CPU by role; `null` when the cell has no figure.
    pub cpu: Option<CpuResult>,
}

/// Tool parameters; `null` where one does not apply or is the tool's own choice.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Parameters {
    /// Parallel streams over all processes (`-P`).
    pub streams: Option<u16>,
    /// Socket buffer (`-w`).
    pub window_bytes: Option<u64>,
    /// UDP payload (`-l`), or ICMP payload of a ping.
    pub datagram_bytes: Option<u32>,
    /// Intended load (`-b`): payload bits per second.
    pub intended_payload_bps: Option<u64>,
    /// Whether they were searched for before the first trial.
    pub tuned: bool,
}

/// Whether a cell has a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// Every repeat was measured, and every check passed.
    Measured,
    /// Some repeats were measured, the others failed or were not run. The figure is of those
    /// measured.
    Partly,
    /// Evidence speaks against at least one repeat: no figure.
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
    /// A sentence for people.
    pub text: String,
}

/// What became of the repeats of a cell.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Repeats {
    /// By the plan.
    pub planned: u32,
    /// Measured, all checks passed.
    pub measured: u32,
    /// Measured, but evidence speaks against it.
    pub invalid: u32,
    /// Could not be measured.
    pub failed: u32,
    /// Not tried.
    pub not_run: u32,
}

/// A bulk transfer from A to B. Rates are of payload: what the tool's sockets carried, without any
/// header.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bulk {
    /// Payload received by B.
    pub payload_throughput_bps: Estimate,
    /// Offered load: payload that A handed to its sockets.
    pub offered_payload_bps: Estimate,
    /// TCP segments sent again in one trial, where the tool tells.
    pub retransmits: Option<Estimate>,
    /// Datagrams, for UDP.
    pub datagrams: Option<Datagrams>,
}

/// Datagrams of a UDP transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Datagrams {
    /// Sent by A, over all repeats.
    pub sent: u64,
    /// Of those, not seen by B. Zero loss is this being 0, never a ratio.
    pub lost: u64,
    /// Lost by sent.
    pub loss_ratio: Estimate,
    /// Sent by A per second.
    pub offered_datagrams_per_s: Estimate,
    /// Received by B per second.
    pub received_datagrams_per_s: Estimate,
    /// Out of order at B by sent.
    pub out_of_order_ratio: Estimate,
    /// Mean jitter as the tool computes it.
    pub jitter_ns: Estimate,
}

/// CPU by role, as cores kept busy: CPU-seconds per second.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CpuResult {
    /// Both stations' tools.
    pub stations_cores: Estimate,
    /// Station A's tools.
    pub station_a_cores: Estimate,
    /// Station B's tools.
    pub station_b_cores: Estimate,
    /// The DUT's processes on both gateways.
    pub dut_cores: Estimate,
    /// The rest: softirq, kernel threads, the tester itself.
    pub kernel_cores: Estimate,
    /// All of it.
    pub busy_cores: Estimate,
    /// Payload bits received per CPU-second of the whole machine; `null` for a ping.
    pub payload_bits_per_cpu_s: Option<Estimate>,
    /// Payload bits received per CPU-second of the DUT; `null` for a ping and where the DUT has no
    /// process.
    pub payload_bits_per_dut_cpu_s: Option<Estimate>,
}

impl CellResult {
    /// The cell's throughput, if it has one.
    #[must_use]
    pub fn throughput_bps(&self) -> Option<&Estimate> {
        self.bulk.as_ref().map(|bulk| &bulk.payload_throughput_bps)
    }
}

/// What one repeat comes to.
enum Repeat<'a> {
    Measured(u32, &'a Measured),
    Invalid,
    Failed,
    NotRun,
}

pub(crate) fn results(journal: &Journal) -> Vec<CellResult> {
    let trials = journal.latest_trials();
    let plan = &journal.header.plan;
    let of_cell = |cell: &Cell| {
        let outcomes: Vec<_> = (1..=plan.repeats)
            .map(|repeat| {
                let outcome = trials
                    .get(&(cell.id.as_str(), repeat))
                    .map(|trial| &trial.outcome);
                (repeat, outcome)
            })
            .collect();
        let tuned = journal.tuned(&cell.id).map(|tuned| &tuned.best);
        result(cell, tuned, &outcomes)
    };
    plan.cells.iter().map(of_cell).collect()
}

fn result(
    cell: &Cell,
    tuned: Option<&ToolParameters>,
    outcomes: &[(u32, Option<&Outcome>)],
) -> CellResult {
    let mut reasons = Vec::new();
    let repeats: Vec<Repeat<'_>> = outcomes
        .iter()
        .map(|&(repeat, outcome)| classify(cell, repeat, outcome, &mut reasons))
        .collect();
    let counts = count(&repeats);
    let status = status(&counts);
    // An invalid cell has no number, not even from those repeats that passed.
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
    let in_force = measured.last().and_then(|(_, last)| last.transfer.as_ref());
    let latencies: Vec<(u32, &Latency)> = measured
        .iter()
        .filter_map(|&(repeat, measured)| Some((repeat, measured.latency.as_ref()?)))
        .collect();
    CellResult {
        id: cell.id.clone(),
        group: cell.group.clone(),
        dut: cell.dut.name.clone(),
        baseline: matches!(cell.dut.adapter, Adapter::Direct),
        protocol: cell.measurement.name().into(),
        mtu_bytes: cell.mtu,
        cores_per_station: cell.cores_per_station,
        offloads: cell.offloads,
        parameters: parameters(
            cell,
            in_force.map(|transfer| &transfer.parameters).or(tuned),
            tuned.is_some(),
        ),
        status,
        reasons,
        repeats: counts,
        bulk: Bulk::of(&measured),
        latency: LatencyResult::of(&latencies),
        cpu: CpuResult::of(&measured),
    }
}

/// Sorts a repeat by its outcome, and notes why it has no figure.
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
        })
    };
    match outcome {
        None => Repeat::NotRun,
        Some(Outcome::Measured(measured)) => match missing(cell, measured) {
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

/// What keeps a trial that counts as measured from having a figure.
fn missing(cell: &Cell, measured: &Measured) -> Option<&'static str> {
    match cell.measurement {
        Measurement::Ping { .. } => match &measured.latency {
            Some(latency) if !latency.round_trips_ns.is_empty() => None,
            Some(_) => Some("no echo request was answered"),
            None => Some("the record holds no round-trip times"),
        },
        _ => match &measured.transfer {
            Some(transfer) if transfer.duration_ns > 0 => None,
            Some(_) => Some("the record's measured time is zero"),
            None => Some("the record holds no transfer"),
        },
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
        }
    }
    counts
}

fn status(counts: &Repeats) -> Status {
    if counts.invalid > 0 {
        Status::Invalid
    } else if counts.measured == counts.planned {
        Status::Measured
    } else if counts.measured > 0 {
        Status::Partly
    } else if counts.failed > 0 {
        Status::Failed
    } else {
        Status::NotRun
    }
}

/// The parameters in force where they are known, else those of the plan.
fn parameters(cell: &Cell, known: Option<&ToolParameters>, tuned: bool) -> Parameters {
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
    match known {
        None => Parameters { tuned, ..planned },
        Some(known) => Parameters {
            streams: known.streams.or(planned.streams),
            window_bytes: known.window_bytes.or(planned.window_bytes),
            datagram_bytes: known.datagram_bytes.or(planned.datagram_bytes),
            intended_payload_bps: known.rate_bps.or(planned.intended_payload_bps),
            tuned,
        },
    }
}

/// An estimate of `value` over those repeats; `None` when one of them has no such value.
fn estimate<T>(repeats: &[(u32, T)], value: impl Fn(&T) -> Option<f64>) -> Option<Estimate> {
    let samples = repeats.iter().map(|(repeat, found)| {
        value(found).map(|value| Sample {
            repeat: *repeat,
            value,
        })
    });
    samples.collect::<Option<Vec<_>>>().and_then(Estimate::of)
}

fn per_second(count: u64, duration_ns: u64) -> Option<f64> {
    (duration_ns > 0).then(|| count as f64 * NANOS_PER_SECOND / duration_ns as f64)
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn received_bps(transfer: &Transfer) -> Option<f64> {
    per_second(transfer.received_bytes, transfer.duration_ns).map(|bytes| 8.0 * bytes)
}

impl Bulk {
    fn of(measured: &[(u32, &Measured)]) -> Option<Self> {
        let transfers: Vec<(u32, &Transfer)> = measured
            .iter()
            .filter_map(|&(repeat, measured)| Some((repeat, measured.transfer.as_ref()?)))
            .collect();
        Some(Self {
            payload_throughput_bps: estimate(&transfers, |transfer| received_bps(transfer))?,
            offered_payload_bps: estimate(&transfers, |transfer| {
                per_second(transfer.sent_bytes, transfer.duration_ns).map(|bytes| 8.0 * bytes)
            })?,
            retransmits: estimate(&transfers, |transfer| {
                transfer.retransmits.map(|count| count as f64)
            }),
            datagrams: Datagrams::of(&transfers),
        })
    }
}

impl Datagrams {
    fn of(transfers: &[(u32, &Transfer)]) -> Option<Self> {
        let counted: Vec<_> = transfers
            .iter()
            .map(|&(repeat, transfer)| Some((repeat, (transfer.datagrams?, transfer.duration_ns))))
            .collect::<Option<_>>()?;
        Some(Self {
            sent: counted
                .iter()
                .map(|(_, (datagrams, _))| datagrams.sent)
                .sum(),
            lost: counted
                .iter()
                .map(|(_, (datagrams, _))| datagrams.lost)
                .sum(),
            loss_ratio: estimate(&counted, |(datagrams, _)| {
                ratio(datagrams.lost, datagrams.sent)
            })?,
            offered_datagrams_per_s: estimate(&counted, |(datagrams, duration_ns)| {
                per_second(datagrams.sent, *duration_ns)
            })?,
            received_datagrams_per_s: estimate(&counted, |(datagrams, duration_ns)| {
                per_second(datagrams.sent.saturating_sub(datagrams.lost), *duration_ns)
            })?,
            out_of_order_ratio: estimate(&counted, |(datagrams, _)| {
                ratio(datagrams.out_of_order, datagrams.sent)
            })?,
            jitter_ns: estimate(&counted, |(datagrams, _)| Some(datagrams.jitter_ns as f64))?,
        })
    }
}

impl CpuResult {
    fn of(measured: &[(u32, &Measured)]) -> Option<Self> {
        let cores = |time_ns: fn(&Measured) -> u64| {
            estimate(measured, |trial| ratio(time_ns(trial), trial.cpu.wall_ns))
        };
        // Both are rates over their own measured time, so that a different window does not matter.
        let bits_per_cpu_s = |time_ns: fn(&Measured) -> u64| {
            estimate(measured, |trial| {
                let cores =
                    ratio(time_ns(trial), trial.cpu.wall_ns).filter(|cores| *cores > 0.0)?;
                Some(received_bps(trial.transfer.as_ref()?)? / cores)
            })
        };
        Some(Self {
            stations_cores: cores(|trial| trial.cpu.stations_ns)?,
            station_a_cores: cores(|trial| trial.cpu.station_a_ns)?,
            station_b_cores: cores(|trial| trial.cpu.station_b_ns)?,
            dut_cores: cores(|trial| trial.cpu.dut_ns)?,
            kernel_cores: cores(|trial| trial.cpu.kernel_ns)?,
            busy_cores: cores(|trial| trial.cpu.busy_ns)?,
            payload_bits_per_cpu_s: bits_per_cpu_s(|trial| trial.cpu.busy_ns),
            payload_bits_per_dut_cpu_s: bits_per_cpu_s(|trial| trial.cpu.dut_ns),
        })
    }
}
