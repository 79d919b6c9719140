//! Cores that a cell wants.

use campaign::plan::{Cell, Direction, Measurement};

/// Cores that the tools and the DUT of a cell would use if each had its own.
pub(crate) fn cores_wanted(cell: &Cell) -> u32 {
    // Crypto devices have no stations; more work in parallel than there are cores is what they are
    // asked for.
    let Some(stations) = cell.stations else {
        return 0;
    };
    // A station replaces the other gateway where only one is loaded.
    let gateways = match &cell.measurement {
        Measurement::Frames(test) if test.traffic.direction != Direction::Both => 1,
        _ => 2,
    };
    2 * u32::from(stations.cores) + gateways * cell.dut.adapter.profile().gateway_cores
}
