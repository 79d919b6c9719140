//! Bulk transfers and their CPU time.

use crate::figures::direction::DirectionName;
use crate::figures::estimate::Estimate;
use crate::figures::goodput::{self, GoodputDrift};
use crate::figures::repeats::{Total, estimate, per_second, ratio};
use crate::figures::rfc6349::Rfc6349;
use journal::record::{Measured, Transfer};
use plan::{FlowDirection, TransferDirection};
use schemars::JsonSchema;
use serde::Serialize;

/// A bulk transfer. Rates are of payload: bytes of the tool's sockets, without any header. Of a
/// duplex transfer the figures are the sums of both ways, which [`directions`](Self::directions)
/// has apart.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Bulk {
    /// Payload received.
    pub payload_throughput_bps: Estimate,
    /// Offered load: payload that the senders handed to their sockets.
    pub offered_payload_bps: Estimate,
    /// TCP segments retransmitted in one trial, if the tool reports them.
    pub retransmits: Option<Estimate>,
    /// Datagrams, for UDP.
    pub datagrams: Option<Datagrams>,
    /// Drift of the goodput over the intervals of a TCP transfer of a minute or more, of each
    /// repeat; empty for others. Of a duplex transfer from A to B.
    pub goodput_drift: Vec<GoodputDrift>,
    /// Each way that carried payload: one, or of a duplex transfer A to B and B to A.
    pub directions: Vec<BulkDirection>,
}

/// One way of a bulk transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct BulkDirection {
    /// The way.
    pub direction: DirectionName,
    /// Payload received by the station at its end.
    pub payload_throughput_bps: Estimate,
    /// Offered load: payload that the sender handed to its sockets.
    pub offered_payload_bps: Estimate,
    /// TCP segments retransmitted in one trial, if the tool reports them.
    pub retransmits: Option<Estimate>,
    /// Datagrams, for UDP.
    pub datagrams: Option<Datagrams>,
    /// Figures of RFC 6349, for TCP; `null` in journals of versions that did not record them.
    pub rfc6349: Option<Rfc6349>,
}

/// Datagrams of a UDP transfer.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Datagrams {
    /// Sent, over all repeats.
    pub sent: u64,
    /// Of those, not received by the other station. Zero loss means that this is 0, never a ratio.
    pub lost: u64,
    /// Lost by sent.
    pub loss_ratio: Estimate,
    /// Sent per second.
    pub offered_datagrams_per_s: Estimate,
    /// Received per second.
    pub received_datagrams_per_s: Estimate,
    /// Out of order at the receiver by sent.
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
    /// All of it, by the machine's counters, but at least what stations and DUT used: ticks of
    /// the machine's counters are coarser than those of processes.
    pub busy_cores: Estimate,
    /// The part of it on host b, in a lab of two hosts.
    #[serde(skip)]
    pub(crate) host_b_cores: Option<Estimate>,
    /// Payload bits received per CPU-second of the whole machine; `null` for a ping, and if the
    /// DUT's is unknown.
    pub payload_bits_per_cpu_s: Option<Estimate>,
    /// Payload bits received per CPU-second of the DUT; `null` for a ping, and for a DUT without
    /// processes or on other machines.
    pub payload_bits_per_dut_cpu_s: Option<Estimate>,
}

/// Busy time of every machine: the record has that of a second host apart.
fn busy_ns(trial: &Measured) -> u64 {
    let cpu = &trial.cpu;
    let on_b = cpu.machine_b.map_or(0, |host| host.busy_ns);
    let all = cpu.busy_ns.saturating_add(on_b);
    // The kernel counts a machine's time by sampled ticks and a process's time exactly. In a short
    // trial the ticks may miss most of it, and a whole is never less than its known parts.
    let known = cpu.stations_ns.saturating_add(cpu.dut_ns.unwrap_or(0));
    all.max(known)
}

/// Payload received, the sum of both ways of a duplex transfer.
pub(crate) fn received_bps(transfer: &Transfer) -> Option<f64> {
    sum_bps(transfer.each_way(), received)
}

/// Payload bytes received, and the duration.
const fn received(transfer: &Transfer) -> (u64, u64) {
    (transfer.received_bytes, transfer.duration_ns)
}

fn sum_bps<'t>(
    ways: impl Iterator<Item = &'t Transfer>,
    bytes_in_time: fn(&Transfer) -> (u64, u64),
) -> Option<f64> {
    let rates = ways.map(|one| {
        let (bytes, time_ns) = bytes_in_time(one);
        // Each way has its duration: bytes of both by one of the times would be another rate.
        per_second(bytes, time_ns)
    });
    let sum: Option<f64> = rates.sum();
    sum.map(|bytes| 8.0 * bytes)
}

/// Figures of some ways of the repeats, each with the sum over those ways.
struct Sums {
    payload_throughput_bps: Estimate,
    offered_payload_bps: Estimate,
    retransmits: Option<Estimate>,
    datagrams: Option<Datagrams>,
}

impl Sums {
    fn of(repeats: &[(u32, Vec<&Transfer>)]) -> Option<Self> {
        let bps = |bytes_in_time: fn(&Transfer) -> (u64, u64)| {
            estimate(repeats, |ways| sum_bps(ways.iter().copied(), bytes_in_time))
        };
        Some(Self {
            payload_throughput_bps: bps(received)?,
            offered_payload_bps: bps(Transfer::offered)?,
            retransmits: estimate(repeats, |ways| {
                let counts = ways.iter().map(|one| one.retransmits);
                counts.sum::<Option<u64>>().map(|count| count as f64)
            }),
            datagrams: Datagrams::of(repeats),
        })
    }
}

impl Bulk {
    pub(crate) fn of(direction: TransferDirection, measured: &[(u32, &Measured)]) -> Option<Self> {
        let transfers: Vec<(u32, &Transfer)> = measured
            .iter()
            .filter_map(|&(repeat, measured)| Some((repeat, measured.transfer()?)))
            .collect();
        let all = transfers.iter();
        let all: Vec<_> = all
            .map(|&(repeat, transfer)| (repeat, transfer.each_way().collect()))
            .collect();
        let ways = direction.ways().iter().enumerate();
        let directions = ways.map(|(at, way)| BulkDirection::of(*way, at, &transfers));
        let sums = Sums::of(&all)?;
        Some(Self {
            payload_throughput_bps: sums.payload_throughput_bps,
            offered_payload_bps: sums.offered_payload_bps,
            retransmits: sums.retransmits,
            datagrams: sums.datagrams,
            goodput_drift: goodput::drifts(&transfers),
            directions: directions.collect::<Option<_>>()?,
        })
    }
}

impl BulkDirection {
    /// `at`: the way's place among the ways of a transfer.
    fn of(way: FlowDirection, at: usize, transfers: &[(u32, &Transfer)]) -> Option<Self> {
        let ways = transfers.iter();
        let ways: Vec<(u32, &Transfer)> = ways
            .map(|&(repeat, transfer)| Some((repeat, transfer.each_way().nth(at)?)))
            .collect::<Option<_>>()?;
        let each: Vec<_> = ways
            .iter()
            .map(|&(repeat, transfer)| (repeat, vec![transfer]))
            .collect();
        let sums = Sums::of(&each)?;
        Some(Self {
            direction: way.into(),
            payload_throughput_bps: sums.payload_throughput_bps,
            offered_payload_bps: sums.offered_payload_bps,
            retransmits: sums.retransmits,
            datagrams: sums.datagrams,
            rfc6349: Rfc6349::of(&ways),
        })
    }
}

/// The datagrams of some ways of one repeat, and its duration.
struct Counted {
    sent: u64,
    lost: u64,
    out_of_order: u64,
    jitter_ns: f64,
    duration_ns: u64,
    /// Datagrams that the senders offered, and the duration.
    offered: (u64, u64),
}

impl Counted {
    fn of(ways: &[&Transfer]) -> Option<Self> {
        let found: Vec<_> = ways
            .iter()
            .map(|way| way.datagrams)
            .collect::<Option<_>>()?;
        let jitter_ns = found.iter().map(|way| way.jitter_ns).total();
        Some(Self {
            sent: found.iter().map(|way| way.sent).total(),
            lost: found.iter().map(|way| way.lost).total(),
            out_of_order: found.iter().map(|way| way.out_of_order).total(),
            // Jitter of two ways is no sum: the mean.
            jitter_ns: jitter_ns as f64 / found.len().max(1) as f64,
            // Both ways run at the same time, so their durations do not add up.
            duration_ns: ways.iter().map(|way| way.duration_ns).max()?,
            offered: (
                found
                    .iter()
                    // With a queue that drained, `sent` covers the receiver's longer time, and the
                    // offered load is over the sender's.
                    .map(|way| way.drain.map_or(way.sent, |drain| drain.offered))
                    .total(),
                ways.iter().map(|way| way.offered().1).max()?,
            ),
        })
    }
}

impl Datagrams {
    fn of(repeats: &[(u32, Vec<&Transfer>)]) -> Option<Self> {
        let counted = repeats.iter();
        let counted: Vec<(u32, Counted)> = counted
            .map(|(repeat, ways)| Some((*repeat, Counted::of(ways)?)))
            .collect::<Option<_>>()?;
        Some(Self {
            sent: counted.iter().map(|(_, found)| found.sent).total(),
            lost: counted.iter().map(|(_, found)| found.lost).total(),
            loss_ratio: estimate(&counted, |found| ratio(found.lost, found.sent))?,
            offered_datagrams_per_s: estimate(&counted, |found| {
                per_second(found.offered.0, found.offered.1)
            })?,
            received_datagrams_per_s: estimate(&counted, |found| {
                per_second(found.sent.saturating_sub(found.lost), found.duration_ns)
            })?,
            out_of_order_ratio: estimate(&counted, |found| ratio(found.out_of_order, found.sent))?,
            rfc3550_jitter_ns: estimate(&counted, |found| Some(found.jitter_ns))?,
        })
    }
}

impl CpuResult {
    pub(crate) fn of(measured: &[(u32, &Measured)]) -> Option<Self> {
        let cores = |time_ns: fn(&Measured) -> u64| {
            estimate(measured, |trial| ratio(time_ns(trial), trial.cpu.wall_ns))
        };
        // Each is a rate over its measured time, so that a different window does not matter.
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
            busy_cores: cores(busy_ns)?,
            host_b_cores: estimate(measured, |trial| {
                ratio(trial.cpu.machine_b?.busy_ns, trial.cpu.wall_ns)
            }),
            payload_bits_per_cpu_s: bits_per_cpu_s(|trial| {
                // CPU time of a DUT on other machines would be missing.
                trial.cpu.dut_ns.map(|_| busy_ns(trial))
            }),
            payload_bits_per_dut_cpu_s: bits_per_cpu_s(|trial| trial.cpu.dut_ns),
        })
    }
}
