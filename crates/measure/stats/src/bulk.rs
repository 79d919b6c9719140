//! Bulk transfers and their CPU time.

use crate::estimate::{Estimate, Sample};
use crate::goodput::{self, GoodputDrift};
use journal::record::{Measured, Transfer};
use schemars::JsonSchema;
use serde::Serialize;

const NANOS_PER_SECOND: f64 = 1e9;

/// A bulk transfer from A to B. Rates are of payload: bytes of the tool's sockets, without any
/// header.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bulk {
    /// Payload received by B.
    pub payload_throughput_bps: Estimate,
    /// Offered load: payload that A handed to its sockets.
    pub offered_payload_bps: Estimate,
    /// TCP segments retransmitted in one trial, if the tool reports them.
    pub retransmits: Option<Estimate>,
    /// Datagrams, for UDP.
    pub datagrams: Option<Datagrams>,
    /// Drift of the goodput over the intervals of a TCP transfer of a minute or more, of each
    /// repeat; empty for others.
    pub goodput_drift: Vec<GoodputDrift>,
}

/// Datagrams of a UDP transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Datagrams {
    /// Sent by A, over all repeats.
    pub sent: u64,
    /// Of those, not received by B. Zero loss means that this is 0, never a ratio.
    pub lost: u64,
    /// Lost by sent.
    pub loss_ratio: Estimate,
    /// Sent by A per second.
    pub offered_datagrams_per_s: Estimate,
    /// Received by B per second.
    pub received_datagrams_per_s: Estimate,
    /// Out of order at B by sent.
    pub out_of_order_ratio: Estimate,
    /// Interarrival jitter by RFC 3550 §6.4.1, as iperf computes it: the difference of the transit
    /// times of successive datagrams, smoothed by 1/16; the mean over the streams at their end.
    pub rfc3550_jitter_ns: Estimate,
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
    /// The DUT's processes on both gateways; `null` for a DUT on other machines.
    pub dut_cores: Option<Estimate>,
    /// The rest: softirq, kernel threads, the tester itself.
    pub kernel_cores: Estimate,
    /// All of it.
    pub busy_cores: Estimate,
    /// Payload bits received per CPU-second of the whole machine; `null` for a ping, and if the
    /// DUT's is unknown.
    pub payload_bits_per_cpu_s: Option<Estimate>,
    /// Payload bits received per CPU-second of the DUT; `null` for a ping, and for a DUT without
    /// processes or on other machines.
    pub payload_bits_per_dut_cpu_s: Option<Estimate>,
}

/// An estimate of `value` over those repeats; `None` if a repeat has no value.
pub(crate) fn estimate<T>(
    repeats: &[(u32, T)],
    value: impl Fn(&T) -> Option<f64>,
) -> Option<Estimate> {
    let samples = repeats.iter().map(|(repeat, found)| {
        value(found).map(|value| Sample {
            repeat: *repeat,
            value,
        })
    });
    samples.collect::<Option<Vec<_>>>().and_then(Estimate::of)
}

pub(crate) fn per_second(count: u64, duration_ns: u64) -> Option<f64> {
    (duration_ns > 0).then(|| count as f64 * NANOS_PER_SECOND / duration_ns as f64)
}

pub(crate) fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn received_bps(transfer: &Transfer) -> Option<f64> {
    per_second(transfer.received_bytes, transfer.duration_ns).map(|bytes| 8.0 * bytes)
}

impl Bulk {
    pub(crate) fn of(measured: &[(u32, &Measured)]) -> Option<Self> {
        let transfers: Vec<(u32, &Transfer)> = measured
            .iter()
            .filter_map(|&(repeat, measured)| Some((repeat, measured.transfer()?)))
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
            goodput_drift: goodput::drifts(&transfers),
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
            rfc3550_jitter_ns: estimate(&counted, |(datagrams, _)| {
                Some(datagrams.jitter_ns as f64)
            })?,
        })
    }
}

impl CpuResult {
    pub(crate) fn of(measured: &[(u32, &Measured)]) -> Option<Self> {
        let cores = |time_ns: fn(&Measured) -> u64| {
            estimate(measured, |trial| ratio(time_ns(trial), trial.cpu.wall_ns))
        };
        // Both are rates over their own measured time, so that a different window does not matter.
        let bits_per_cpu_s = |time_ns: fn(&Measured) -> Option<u64>| {
            estimate(measured, |trial| {
                let cores =
                    ratio(time_ns(trial)?, trial.cpu.wall_ns).filter(|cores| *cores > 0.0)?;
                Some(received_bps(trial.transfer()?)? / cores)
            })
        };
        Some(Self {
            stations_cores: cores(|trial| trial.cpu.stations_ns)?,
            station_a_cores: cores(|trial| trial.cpu.station_a_ns)?,
            station_b_cores: cores(|trial| trial.cpu.station_b_ns)?,
            dut_cores: estimate(measured, |trial| {
                ratio(trial.cpu.dut_ns?, trial.cpu.wall_ns)
            }),
            kernel_cores: cores(|trial| trial.cpu.kernel_ns)?,
            busy_cores: cores(|trial| trial.cpu.busy_ns)?,
            payload_bits_per_cpu_s: bits_per_cpu_s(|trial| {
                // CPU time of a DUT on other machines would be missing.
                trial.cpu.dut_ns.map(|_| trial.cpu.busy_ns)
            }),
            payload_bits_per_dut_cpu_s: bits_per_cpu_s(|trial| trial.cpu.dut_ns),
        })
    }
}
