//! Cells that a machine has too few cores for.

use crate::{Cell, LabPlan};
use std::fmt;
use units::human::counted;

/// Cores that a cell needs and a machine lacks. A plan has such cells only if its campaign says
/// `missing_cores: skip`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LackingCores {
    /// Cores per station.
    pub wanted: u16,
    /// Cores of the machine.
    pub present: u32,
}

impl LackingCores {
    /// `None` if the machine has enough, or if the stations are on other hosts, whose cores are not
    /// known.
    #[must_use]
    pub fn of(cell: &Cell, lab: &LabPlan, present: u32) -> Option<Self> {
        let wanted = cell.stations?.cores;
        (u32::from(wanted) > present && lab.hosts.is_none()).then_some(Self { wanted, present })
    }
}

/// `needs 128 cores per station, this machine has 2`.
impl fmt::Display for LackingCores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "needs {} per station, this machine has {}",
            counted(self.wanted, "core"),
            self.present
        )
    }
}
