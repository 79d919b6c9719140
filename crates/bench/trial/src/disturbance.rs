//! The plan of a disturbance of a DUT in a frame trial.

use plan::Attack;
use testbed::DutAction;

/// Actions on a DUT and hostile packets in one frame trial; by default none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlannedDisturbance {
    /// In the order of their times.
    pub actions: Vec<PlannedAction>,
    /// Hostile packets, from the first frame to the last.
    pub hostile: Option<HostileLoad>,
    /// Whether a route leads past the DUT: packets in clear are then its result, not a fault of the
    /// trial.
    pub exposed: bool,
}

/// An action on a DUT. The next one waits until it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlannedAction {
    /// From the start of the load, in nanoseconds.
    pub at_ns: u64,
    /// At least this long after the previous one was done, in nanoseconds.
    pub pause_ns: u64,
    /// The action.
    pub action: DutAction,
}

/// Hostile packets in addition to a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostileLoad {
    /// The kind of packets.
    pub attack: Attack,
    /// Rate in per cent of the load's.
    pub percent: u16,
    /// The same rate in packets per second.
    pub packets_per_s: u64,
}
