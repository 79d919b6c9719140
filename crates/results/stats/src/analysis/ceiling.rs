//! The ceiling of each cell: the most that the line or the baseline allows a device that adds
//! bytes.

use crate::cell::{CellFigures, CellResult};
use crate::figures::bulk::BulkDirection;
use crate::figures::overhead::{Ceiling, CeilingBasis, Packets, carrier};
use crate::figures::rfc6349::Ideal;
use journal::Journal;
use plan::{Cell, Measurement, Plan};

/// Sets the ceiling of each cell that has one.
pub(crate) fn set_ceilings(journal: &Journal, cells: &mut [CellResult]) {
    let plan = &journal.header.plan;
    let ceilings: Vec<Option<Ceiling>> = plan
        .cells
        .iter()
        .zip(cells.iter())
        .map(|(planned, cell)| ceiling(plan, planned, cell, cells))
        .collect();
    for (cell, ceiling) in cells.iter_mut().zip(ceilings) {
        cell.ceiling = ceiling;
    }
}

fn ceiling(plan: &Plan, planned: &Cell, cell: &CellResult, all: &[CellResult]) -> Option<Ceiling> {
    let packets = Packets::of(planned, &cell.parameters)?;
    let clear_bits = packets.line_bits(|packet| packet);
    let carrier = carrier(&planned.dut.adapter);
    let cipher_bits = carrier.map(|_| packets.line_bits(planned.carried_bytes()));
    let figure = figure(cell);
    let (basis, baseline_cell, most) = match plan.lab.link_bps {
        // Without a known overhead there is no ceiling.
        Some(_) if carrier.is_none() && !planned.dut.adapter.profile().is_clear() => return None,
        Some(link_bps) => {
            // The fuller of the two links bounds the path.
            let packets_per_s = link_bps as f64 / cipher_bits.unwrap_or(clear_bits).max(clear_bits);
            let each = packets
                .payload_bytes
                .map_or(1.0, |bytes| 8.0 * bytes as f64);
            // The line has this rate each way.
            let direction = planned.measurement.transfer_direction();
            let ways = direction.unwrap_or_default().ways().len();
            (
                CeilingBasis::LineRate,
                None,
                packets_per_s * each * ways as f64,
            )
        }
        None if has_given_load(planned) => return None,
        None => {
            let same = |other: &&CellResult| other.baseline && other.group == cell.group;
            let baseline = all.iter().find(same)?;
            // As if the baseline had filled a line: the same bits, divided among longer packets.
            let most = self::figure(baseline)? * clear_bits / cipher_bits?;
            (CeilingBasis::Baseline, Some(baseline.id.clone()), most)
        }
    };
    let is_payload = packets.payload_bytes.is_some();
    Some(Ceiling {
        basis,
        baseline_cell,
        payload_bps: is_payload.then_some(most),
        frames_per_s: (!is_payload).then_some(most),
        reached: figure.filter(|_| most > 0.0).map(|figure| figure / most),
    })
}

/// Whether a configured load bounds the baseline, which then does not show the path's capacity.
fn has_given_load(cell: &Cell) -> bool {
    matches!(
        &cell.measurement,
        Measurement::Udp {
            rate_bps: Some(_),
            ..
        }
    )
}

/// The figure that a ceiling is compared with.
fn figure(cell: &CellResult) -> Option<f64> {
    Some(cell.rate()?.mean)
}

/// Sets the ideal transfer of each way of each TCP cell that has a [ceiling](CellResult::ceiling).
pub(crate) fn set_ideals(cells: &mut [CellResult]) {
    // Computed for all cells before any is changed, as one may be the baseline of another.
    let ideals: Vec<Vec<Option<Ideal>>> = cells.iter().map(|cell| ideals(cell, cells)).collect();
    for (cell, ideals) in cells.iter_mut().zip(ideals) {
        let CellFigures::Tcp(Some(bulk)) = &mut cell.figures else {
            continue;
        };
        for (way, ideal) in bulk.directions.iter_mut().zip(ideals) {
            if let Some(figures) = &mut way.rfc6349 {
                figures.ideal = ideal;
            }
        }
    }
}

/// The ideal transfer of each way of a cell.
fn ideals(cell: &CellResult, all: &[CellResult]) -> Vec<Option<Ideal>> {
    let Some(bulk) = cell.bulk() else {
        return Vec::new();
    };
    let ways = bulk.directions.iter().enumerate();
    let of = |(at, way): (usize, &BulkDirection)| {
        let ceiling = cell.ceiling.as_ref()?;
        let most = ceiling.payload_bps?;
        // A transfer both ways has one ceiling, the sum. A line gives both ways the same part, and
        // a baseline the part that it carried each way.
        let share = match &ceiling.baseline_cell {
            None => 1.0 / bulk.directions.len() as f64,
            // Compared with itself, a transfer would always be ideal.
            Some(id) if *id == cell.id => return None,
            Some(id) => {
                let baseline = all.iter().find(|other| other.id == *id)?.bulk()?;
                let of_way = &baseline.directions.get(at)?.payload_throughput_bps;
                of_way.mean / baseline.payload_throughput_bps.mean
            }
        };
        way.rfc6349.as_ref()?.ideal(ceiling.basis, most * share)
    };
    ways.map(of).collect()
}
