//! The same transfer by several tools: whether they agree, and if not, a possible reason.
//!
//! Cells that differ only in `tool` are compared. A UDP cell is also compared with each frame test
//! of the same device that has one load, the same offered rate, and frames of the same length as
//! its packets.

use crate::analysis::significance::{Level, Ratio, contrast};
use crate::cell::CellResult;
use crate::figures::estimate::{Estimate, Sample};
use crate::figures::frames::FrameOutcome;
use crate::figures::series::Series;
use plan::{Axis, Plan};
use schemars::JsonSchema;
use serde::Serialize;

/// Figures closer than this, in per cent of the larger, agree for any spread.
pub const ALIKE_PERCENT: f64 = 5.0;
/// A station that uses at least this share of its cores is considered full.
const FULL_RATIO: f64 = 0.9;
/// Minimum ratio between two tools' retransmitted segments to report as a reason.
const RETRANSMITS_FACTOR: f64 = 3.0;
/// Minimum number of retransmitted segments to report as a reason.
const RETRANSMITS_MIN: f64 = 10.0;
/// Loss ratios with a smaller difference agree.
const LOSS_APART: f64 = 0.01;
/// Offered rates with a smaller difference are the same load.
const SAME_LOAD_RATIO: f64 = 0.02;
/// Bytes of a frame besides its datagram: headers of IPv4, UDP and Ethernet, and FCS.
const FRAME_OVERHEAD_BYTES: u32 = 20 + 8 + 14 + 4;

/// One transfer of one device, measured by several tools.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolCheck {
    /// The group without the tool.
    pub question: String,
    /// The device.
    pub dut: String,
    /// The tools' findings, in the plan's order; at least two.
    pub figures: Vec<ToolFigure>,
    /// Distance of the farthest figures, in per cent of the larger: geometric mean over the pairs
    /// of repeats.
    pub difference_percent: f64,
    /// Lower end of its 95 % interval (Student's t on logarithms).
    pub difference_low_percent: Option<f64>,
    /// Upper end.
    pub difference_high_percent: Option<f64>,
    /// Whether no difference of more than 5 % is sure, corrected (Holm) over the run's transfers.
    pub agree: bool,
    /// A possible reason; `null` if no difference is sure, or none was found.
    pub reason: Option<String>,
}

/// One tool's finding.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolFigure {
    /// `iperf3`, `iperf2`, or `frames` for our generator.
    pub tool: String,
    /// Its cell.
    pub cell: String,
    /// Payload received by B.
    pub payload_throughput_bps: Estimate,
}

pub(crate) fn checks(plan: &Plan, cells: &[CellResult]) -> Vec<ToolCheck> {
    let both = plan.cells.iter().zip(cells);
    let questions = Series::all(both.filter(|(_, cell)| cell.bulk().is_some()).map(
        |(planned, cell)| {
            // The group without the tool is the transfer that all of them were asked for.
            let key = (planned.group_without(Axis::Tool), cell.dut.as_str());
            (key, cell)
        },
    ));
    let transfers: Vec<((String, &str), Vec<CellFigure<'_>>)> = questions
        .into_iter()
        .filter_map(|asked| Some((asked.key, findings(&asked.members, cells)?)))
        .collect();
    // All transfers are one question.
    let level = Level::of(transfers.iter().filter_map(|(_, found)| {
        let (least, most) = ends(found)?;
        p_apart(least, most, found.len())
    }));
    let judged = transfers.into_iter();
    judged
        .filter_map(|(key, found)| judge(key, &found, level))
        .collect()
}

/// The tools' figures for one transfer; `None` with fewer than two of them, or without a figure.
fn findings<'c>(alike: &[&'c CellResult], cells: &'c [CellResult]) -> Option<Vec<CellFigure<'c>>> {
    let mut found: Vec<CellFigure<'c>> = Vec::new();
    for &cell in alike {
        // A tool without a figure ends the comparison: agreement among the rest would look like
        // agreement of all.
        found.push((figure(cell)?, cell));
    }
    let frames = cells.iter().filter_map(|cell| {
        let found = alike.iter().find_map(|udp| by_frames(udp, cell))?;
        Some((found, cell))
    });
    found.extend(frames);
    // A single repeat has no spread to compare a difference with.
    found.retain(|(figure, _)| figure.payload_throughput_bps.n > 1);
    (found.len() > 1).then_some(found)
}

/// A tool's finding and its cell.
type CellFigure<'a> = (ToolFigure, &'a CellResult);

/// The lowest and the highest of several findings.
fn ends<'f, 'c>(found: &'f [CellFigure<'c>]) -> Option<(&'f CellFigure<'c>, &'f CellFigure<'c>)> {
    let mean = |one: &&CellFigure<'_>| one.0.payload_throughput_bps.mean;
    let by_mean = |a: &&CellFigure<'_>, b: &&CellFigure<'_>| {
        let by_cell = || a.0.cell.cmp(&b.0.cell);
        // Ties must not depend on the plan's order.
        mean(a).total_cmp(&mean(b)).then_with(by_cell)
    };
    found
        .iter()
        .min_by(by_mean)
        .zip(found.iter().max_by(by_mean))
}

/// The p-value of a difference of more than [`ALIKE_PERCENT`] between the lowest and the highest of
/// several findings, corrected for all pairs that they were chosen from.
fn p_apart(least: &CellFigure<'_>, most: &CellFigure<'_>, findings: usize) -> Option<f64> {
    let (low, high) = (
        &least.0.payload_throughput_bps,
        &most.0.payload_throughput_bps,
    );
    // The farthest two were picked from all pairs, which makes a large distance likelier.
    // Bonferroni's factor corrects for the choice.
    let pairs = findings * (findings - 1) / 2;
    let p = contrast(low, high, 1.0 - ALIKE_PERCENT / 100.0)?.p_below(0.0);
    Some(p * pairs as f64)
}

fn figure(cell: &CellResult) -> Option<ToolFigure> {
    Some(ToolFigure {
        tool: cell.parameters.tool.clone()?,
        cell: cell.id.clone(),
        payload_throughput_bps: cell.throughput_bps()?.clone(),
    })
}

/// A frame test of the same load as a finding, converted to the payload of datagrams of the same
/// length.
fn by_frames(udp: &CellResult, cell: &CellResult) -> Option<ToolFigure> {
    let datagram_bytes = udp.parameters.datagram_bytes?;
    let offered = &udp.bulk()?.datagrams.as_ref()?.offered_datagrams_per_s;
    let traffic = cell.traffic()?;
    let FrameOutcome::Load(load) = &cell.frames()?.found else {
        return None;
    };
    let same_frames = traffic.frame_bytes.map(u32::from)
        == Some(datagram_bytes.saturating_add(FRAME_OVERHEAD_BYTES));
    let mean = load.offered.frames_per_s.mean;
    let same_load = (mean - offered.mean).abs() <= SAME_LOAD_RATIO * offered.mean;
    let same_path = cell.dut == udp.dut && cell.stations?.offloads == udp.stations?.offloads;
    if !(same_frames && same_load && same_path) || traffic.duplex {
        return None;
    }
    let payload = load
        .forwarded
        .frames_per_s
        .values
        .iter()
        .map(|sample| Sample {
            repeat: sample.repeat,
            value: sample.value * f64::from(datagram_bytes) * 8.0,
        });
    Some(ToolFigure {
        tool: "frames".into(),
        cell: cell.id.clone(),
        payload_throughput_bps: Estimate::of(payload.collect())?,
    })
}

/// `None` if the lowest finding is not above 0.
fn judge(
    (question, dut): (String, &str),
    found: &[CellFigure<'_>],
    level: Level,
) -> Option<ToolCheck> {
    let (least, most) = ends(found)?;
    let (low, high) = (
        &least.0.payload_throughput_bps,
        &most.0.payload_throughput_bps,
    );
    let ratio = Ratio::of(low, high)?;
    let below = |share: f64| 100.0 * (1.0 - share);
    let p = p_apart(least, most, found.len());
    let agree = !p.is_some_and(|p| level.allows(p));
    Some(ToolCheck {
        question,
        dut: dut.to_owned(),
        figures: found.iter().map(|(figure, _)| figure.clone()).collect(),
        difference_percent: below(ratio.ratio),
        // The ends swap: the higher ratio of the slower tool is the smaller difference.
        difference_low_percent: ratio.high.map(below),
        difference_high_percent: ratio.low.map(below),
        agree,
        reason: if agree { None } else { reason(least, most) },
    })
}

/// Returns the first possible reason for the slower result.
fn reason(slow: &CellFigure<'_>, fast: &CellFigure<'_>) -> Option<String> {
    let ((slow, at_slow), (fast, at_fast)) = (slow, fast);
    let (tool, other) = (&slow.tool, &fast.tool);
    // From causes in the configuration to symptoms: a tool with other parameters also loses other
    // amounts.
    different_parameters(at_slow, at_fast)
        .or_else(|| full_station(tool, at_slow, at_fast))
        .or_else(|| less_offered(tool, other, at_slow, at_fast))
        .or_else(|| more_lost(tool, at_slow, at_fast))
        .or_else(|| more_again(tool, other, at_slow, at_fast))
}

fn different_parameters(slow: &CellResult, fast: &CellResult) -> Option<String> {
    let (here, there) = (&slow.parameters, &fast.parameters);
    // Frames have other parameters by nature.
    if fast.bulk().is_none() || slow.bulk().is_none() {
        return None;
    }
    let settings = [
        (
            "numbers of streams",
            here.streams.map(u64::from),
            there.streams.map(u64::from),
        ),
        (
            "datagrams in bytes",
            here.datagram_bytes.map(u64::from),
            there.datagram_bytes.map(u64::from),
        ),
        (
            "socket buffers in bytes",
            here.window_bytes,
            there.window_bytes,
        ),
    ];
    settings.into_iter().find_map(|(what, here, there)| {
        // A setting that one tool lacks, such as a window of UDP, is no difference.
        let (here, there) = here.zip(there)?;
        (here != there).then(|| format!("they used {what} of {here} and {there}"))
    })
}

/// A tool with full cores is the bottleneck, unless the other's cores are full too.
fn full_station(tool: &str, slow: &CellResult, fast: &CellResult) -> Option<String> {
    let cores = f64::from(slow.stations?.cores);
    let (here, there) = (slow.cpu.as_ref()?, fast.cpu.as_ref()?);
    let stations = [
        ("A", &here.station_a_cores, &there.station_a_cores),
        ("B", &here.station_b_cores, &there.station_b_cores),
    ];
    let full = |busy: &Estimate| busy.mean >= FULL_RATIO * cores;
    let (name, busy, other) = stations
        .into_iter()
        // A station that only the slower tool filled explains the difference best.
        .find(|(_, here, there)| full(here) && !full(there))
        .or_else(|| stations.into_iter().find(|(_, here, _)| full(here)))?;
    let shared = if full(other) {
        ", as the other tool had; what they do with them differs"
    } else {
        ", and the other tool had not"
    };
    Some(format!(
        "{tool} used up its cores on station {name} ({:.2} of {cores}){shared}: the tool is the bottleneck",
        busy.mean
    ))
}

fn less_offered(tool: &str, other: &str, slow: &CellResult, fast: &CellResult) -> Option<String> {
    let offered = |cell: &CellResult| {
        let bulk = cell.bulk()?;
        // TCP adapts its rate to the path, so only datagrams have an offered rate of interest.
        bulk.datagrams.as_ref()?;
        Some(bulk.offered_payload_bps.median)
    };
    let (here, there) = (offered(slow)?, offered(fast)?);
    (here < there * (1.0 - ALIKE_PERCENT / 100.0)).then(|| {
        format!(
            "{tool} offered {} only, {other} {}: the sender is the bottleneck",
            units::human::bit_rate(here),
            units::human::bit_rate(there)
        )
    })
}

fn more_lost(tool: &str, slow: &CellResult, fast: &CellResult) -> Option<String> {
    let loss = |cell: &CellResult| Some(cell.bulk()?.datagrams.as_ref()?.loss_ratio.mean);
    let there = loss(fast).unwrap_or(0.0);
    let here = loss(slow)?;
    (here - there > LOSS_APART).then(|| {
        format!(
            "{tool} lost {:.1} % of its datagrams, the other {:.1} %: it sends in bursts, or its receiver's \
             socket buffer overran (see `station-kept-up` in the evidence)",
            100.0 * here,
            100.0 * there
        )
    })
}

fn more_again(tool: &str, other: &str, slow: &CellResult, fast: &CellResult) -> Option<String> {
    let again = |cell: &CellResult| Some(cell.bulk()?.retransmits.as_ref()?.mean);
    let here = again(slow)?;
    if here < RETRANSMITS_MIN {
        return None;
    }
    match again(fast) {
        Some(there) => (here > RETRANSMITS_FACTOR * there).then(|| {
            format!("{tool} retransmitted {here:.0} segments, {other} {there:.0}: its streams were held back by loss")
        }),
        None => Some(format!(
            "{tool} retransmitted {here:.0} segments, {other} does not report them: loss may have held its streams back"
        )),
    }
}
