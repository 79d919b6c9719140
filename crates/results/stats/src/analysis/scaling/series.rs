//! Finds cells that differ in one number only.

use super::point::ScalingAxis;
use crate::figures::series::Series;
use plan::{Axis, Cell, Common, Dimension, Measurement, Plan, Setting, Value};

/// The dimensions that can raise the figure.
const DIMENSIONS: [(ScalingAxis, Dimension); 6] = [
    (ScalingAxis::Cores, Dimension::Axis(Axis::Cores)),
    (ScalingAxis::Streams, Dimension::Axis(Axis::Streams)),
    (ScalingAxis::Flows, Dimension::Axis(Axis::Flows)),
    (ScalingAxis::Tunnels, Dimension::Axis(Axis::Tunnels)),
    (ScalingAxis::Workers, Dimension::Setting(Setting::Workers)),
    (ScalingAxis::Tunnels, Dimension::Setting(Setting::Tunnels)),
];

/// Cells in rising order of their number: numbers, and the cells' indices in the plan.
pub(super) type Numbered = Series<(ScalingAxis, Common), (u32, usize)>;

/// All series of two numbers or more, in the plan's order.
pub(super) fn all(plan: &Plan) -> Vec<Numbered> {
    let cells = plan.cells.iter().enumerate();
    let measured = cells.filter(|(_, cell)| !cell.calibration && is_at_its_most(cell));
    let members = measured.flat_map(|(place, cell)| {
        let all = DIMENSIONS.into_iter();
        all.filter_map(move |(axis, dimension)| {
            let (n, common) = number(cell, dimension)?;
            Some(((axis, common), (n, place)))
        })
    });
    // Of two cells with one number, neither is the better member.
    let mut found = Series::unless(members, |(known, _), (n, _)| known == n);
    found.retain(|series| series.members.len() > 1);
    for series in &mut found {
        series.members.sort_unstable();
    }
    found
}

/// Whether a cell measures how much is carried, and not the outcome of a configured load.
fn is_at_its_most(cell: &Cell) -> bool {
    match &cell.measurement {
        Measurement::Tcp { .. } => true,
        Measurement::Udp { rate_bps, .. } => rate_bps.is_none(),
        Measurement::Frames(test) => test.procedure.plan().is_at_its_most(),
        _ => false,
    }
}

/// The number of a cell in a dimension, and all that its series shares.
fn number(cell: &Cell, dimension: Dimension) -> Option<(u32, Common)> {
    // Tools use one tunnel only.
    let spreads = matches!(cell.measurement, Measurement::Frames(_));
    if dimension == Dimension::Setting(Setting::Tunnels) && !spreads {
        return None;
    }
    let (Value::Number(n), common) = cell.along(dimension)? else {
        return None;
    };
    Some((u32::try_from(n).ok()?, common))
}

/// The common part of the names of a series' devices; the first name in the plan without a common
/// part.
pub(super) fn dut(plan: &Plan, series: &Numbered) -> String {
    let mut places: Vec<usize> = series.members.iter().map(|(_, place)| *place).collect();
    // In the plan's order again, as the members are sorted by number.
    places.sort_unstable();
    let name = |place: &usize| plan.cells.get(*place).map(|cell| cell.dut.name.as_str());
    let names: Vec<&str> = places.iter().filter_map(name).collect();
    let in_all = |word: &&str| names.iter().all(|name| name.split(' ').any(|w| w == *word));
    let first = names.first().copied().unwrap_or_default();
    let words: Vec<&str> = first.split(' ').filter(in_all).collect();
    if words.is_empty() {
        first.to_owned()
    } else {
        words.join(" ")
    }
}
