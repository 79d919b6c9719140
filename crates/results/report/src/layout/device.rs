//! Groups the trials of crypto devices.

use super::Run;
use crate::order::grouped;
use plan::{DeviceTest, Measurement};
use stats::{CellResult, DeviceFigures, DeviceTestInfo, FatigueResult};

/// The kind of trial of crypto devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeviceKind {
    Kat,
    Speed,
    Fatigue,
}

impl DeviceKind {
    const fn of(test: &DeviceTest) -> Self {
        match test {
            DeviceTest::Kat(_) => Self::Kat,
            DeviceTest::Speed(_) => Self::Speed,
            DeviceTest::Fatigue(_) => Self::Fatigue,
        }
    }
}

impl Run<'_> {
    /// Returns the cells of one kind of trial, in the plan's order.
    pub(crate) fn device_cells(
        &self,
        kind: DeviceKind,
    ) -> impl Iterator<Item = (&CellResult, &DeviceTestInfo)> {
        self.results.cells.iter().filter_map(move |cell| {
            let info = cell.device_test()?;
            let Measurement::Device(test) = &self.planned(cell)?.measurement else {
                return None;
            };
            (DeviceKind::of(test) == kind).then_some((cell, info))
        })
    }

    /// The same, with the cells of each group together.
    pub(crate) fn device_groups(
        &self,
        kind: DeviceKind,
    ) -> Vec<Vec<(&CellResult, &DeviceTestInfo)>> {
        let cells = self.device_cells(kind);
        let groups = grouped(cells.map(|found| (&found.0.group, found)));
        groups.into_iter().map(|(_, own)| own).collect()
    }

    /// Whether only crypto devices are measured.
    pub(crate) fn only_devices(&self) -> bool {
        let cells = &self.results.cells;
        !cells.is_empty() && cells.iter().all(|cell| cell.device_test().is_some())
    }
}

/// Returns the figures of a cell, if any.
pub(crate) fn figures(cell: &CellResult) -> Option<&DeviceFigures> {
    cell.device()
}

/// Returns the result of a fatigue cell.
pub(crate) fn fatigue(cell: &CellResult) -> Option<&FatigueResult> {
    figures(cell)?.fatigue()
}
