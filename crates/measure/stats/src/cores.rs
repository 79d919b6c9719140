//! Cores that a cell needs.

use campaign::plan::{Cell, Direction, Measurement};

/// Cores that the tools and the DUT of a cell would use if each had its own.
pub(crate) fn cores_wanted(cell: &Cell) -> u32 {
    // Crypto devices have no stations, and are meant to work in parallel beyond the number of
    // cores.
    let Some(stations) = cell.stations else {
        return 0;
    };
    // With one loaded gateway, a station replaces the other one.
    let gateways = match &cell.measurement {
        Measurement::Frames(test) if test.traffic.direction != Direction::Both => 1,
        _ => 2,
    };
    2 * u32::from(stations.cores) + gateways * cell.dut.adapter.profile().gateway_cores
}
