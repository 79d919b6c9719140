//! The same transfer by several tools: whether they agree, and if not, a possible reason.
//!
//! Cells that differ only in `tool` are compared. A UDP cell is also compared with each frame test
//! of the same device with one load at the same offered rate, whose frames are as long as its
//! packets.

use crate::cell::CellResult;
use crate::estimate::{Estimate, Sample};
use crate::frames::FrameOutcome;
use campaign::Plan;
use campaign::plan::Axis;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Medians closer than this, in per cent of the larger, agree for any spread.
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
    /// Distance of the farthest medians, in per cent of the larger.
    pub difference_percent: f64,
    /// The distance up to which they agree: the sum of their spreads, at least 5.
    pub allowed_percent: f64,
    /// Whether they agree: within that distance, or their repeats overlap.
    pub agree: bool,
    /// A possible reason; `null` if they agree, or none was found.
    pub reason: Option<String>,
}

/// One tool's finding.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ToolFigure {
    /// `iperf3`, `iperf2`, or `frames` for our own generator.
    pub tool: String,
    /// Its cell.
    pub cell: String,
    /// Payload received by B.
    pub payload_throughput_bps: Estimate,
}

pub(crate) fn checks(plan: &Plan, cells: &[CellResult]) -> Vec<ToolCheck> {
    let mut questions: BTreeMap<(String, &str), Vec<&CellResult>> = BTreeMap::new();
    let mut order = Vec::new();
    let bulk = |(_, cell): &(_, &CellResult)| cell.bulk().is_some();
    for (planned, cell) in plan.cells.iter().zip(cells).filter(bulk) {
        let key = (planned.group_without(Axis::Tool), cell.dut.as_str());
        let alike = questions.entry(key.clone()).or_default();
        if alike.is_empty() {
            order.push(key);
        }
        alike.push(cell);
    }
    let check = |key: (String, &str)| {
        let alike = questions.get(&key)?;
        let mut found: Vec<(ToolFigure, &CellResult)> = Vec::new();
        for &cell in alike {
            found.push((figure(cell)?, cell));
        }
        let frames = cells.iter().filter_map(|cell| {
            let found = alike.iter().find_map(|udp| by_frames(udp, cell))?;
            Some((found, cell))
        });
        found.extend(frames);
        // A single repeat has no spread to compare a difference with.
        found.retain(|(figure, _)| figure.payload_throughput_bps.n > 1);
        (found.len() > 1).then(|| judge(key, &found))
    };
    order.into_iter().filter_map(check).collect()
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
    let same_frames =
        traffic.frame_bytes.map(u32::from) == Some(datagram_bytes + FRAME_OVERHEAD_BYTES);
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

fn judge((question, dut): (String, &str), found: &[(ToolFigure, &CellResult)]) -> ToolCheck {
    let median = |one: &&(ToolFigure, &CellResult)| one.0.payload_throughput_bps.median;
    let by_median = |a: &&(ToolFigure, &CellResult), b: &&(ToolFigure, &CellResult)| {
        let by_cell = || a.0.cell.cmp(&b.0.cell);
        // Ties must not depend on the plan's order.
        median(a).total_cmp(&median(b)).then_with(by_cell)
    };
    // Both exist: `found` has at least two elements.
    let least = found.iter().min_by(by_median);
    let most = found.iter().max_by(by_median);
    let mut difference_percent = 0.0;
    let mut allowed_percent = ALIKE_PERCENT;
    let mut agree = true;
    let mut why = None;
    if let (Some(least), Some(most)) = (least, most) {
        let (low, high) = (
            &least.0.payload_throughput_bps,
            &most.0.payload_throughput_bps,
        );
        if high.median > 0.0 {
            difference_percent = 100.0 * (high.median - low.median) / high.median;
        }
        let spread = |of: &Estimate| of.largest_distance_percent.unwrap_or(0.0);
        allowed_percent = allowed_percent.max(spread(low) + spread(high));
        agree = difference_percent <= allowed_percent || low.max >= high.min;
        if !agree {
            why = reason(least, most);
        }
    }
    ToolCheck {
        question,
        dut: dut.to_owned(),
        figures: found.iter().map(|(figure, _)| figure.clone()).collect(),
        difference_percent,
        allowed_percent,
        agree,
        reason: why,
    }
}

/// Returns the first possible reason for the slower result.
fn reason(slow: &(ToolFigure, &CellResult), fast: &(ToolFigure, &CellResult)) -> Option<String> {
    let ((slow, at_slow), (fast, at_fast)) = (slow, fast);
    let (tool, other) = (&slow.tool, &fast.tool);
    different_parameters(at_slow, at_fast)
        .or_else(|| full_station(tool, at_slow, at_fast))
        .or_else(|| less_offered(tool, other, at_slow, at_fast))
        .or_else(|| more_lost(tool, at_slow, at_fast))
        .or_else(|| more_again(tool, other, at_slow, at_fast))
}

fn different_parameters(slow: &CellResult, fast: &CellResult) -> Option<String> {
    let (here, there) = (&slow.parameters, &fast.parameters);
    if fast.bulk().is_none() || slow.bulk().is_none() {
        return None;
    }
    let said =
        |what: &str, here: u64, there: u64| format!("they used {what} of {here} and {there}");
    match (here.streams, there.streams) {
        (Some(here), Some(there)) if here != there => {
            return Some(said("numbers of streams", here.into(), there.into()));
        }
        _ => {}
    }
    match (here.datagram_bytes, there.datagram_bytes) {
        (Some(here), Some(there)) if here != there => {
            return Some(said("datagrams in bytes", here.into(), there.into()));
        }
        _ => {}
    }
    match (here.window_bytes, there.window_bytes) {
        (Some(here), Some(there)) if here != there => {
            Some(said("socket buffers in bytes", here, there))
        }
        _ => None,
    }
}

/// A tool whose cores are full is the bottleneck, unless the other's are full too.
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
        .find(|(_, here, there)| full(here) && !full(there))
        .or_else(|| stations.into_iter().find(|(_, here, _)| full(here)))?;
    let shared = match full(other) {
        true => ", as the other tool had; what they do with them differs",
        false => ", and the other tool had not",
    };
    Some(format!(
        "{tool} used up its cores on station {name} ({:.2} of {cores}){shared}: the tool is the bottleneck",
        busy.mean
    ))
}

fn less_offered(tool: &str, other: &str, slow: &CellResult, fast: &CellResult) -> Option<String> {
    let offered = |cell: &CellResult| {
        let bulk = cell.bulk()?;
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
