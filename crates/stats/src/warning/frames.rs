//! What bears on frame tests.

use super::{Warning, WarningKind, about, counted};
use crate::cell::CellResult;
use crate::frames::{FrameFigures, LossAccount};
use crate::verdict::{Limit, TESTER_LIMITED_RATIO};
use std::collections::BTreeSet;

fn with(cells: &[CellResult], found: impl Fn(&FrameFigures) -> bool) -> Vec<&CellResult> {
    let is = |cell: &&CellResult| cell.frames.as_ref().is_some_and(&found);
    cells.iter().filter(is).collect()
}

/// Without a lower bound there is no figure; without an upper one the figure is a least one.
pub(super) fn irregular(cells: &[CellResult]) -> Option<Warning> {
    let irregular = with(cells, |frames| {
        let goals = frames.throughput.iter().flat_map(|found| &found.goals);
        goals.into_iter().any(|goal| !goal.irregular.is_empty())
    });
    about(
        WarningKind::Irregular,
        irregular,
        |cells| {
            format!(
                "In {} a search lacks a bound: the lowest load did not meet a goal, or the highest \
                 did.",
                counted(cells.len(), "cell")
            )
        },
        "Lower the least load, or raise the highest where the line and the generator allow; the \
         tables say which bound is missing and why.",
    )
}

pub(super) fn timed_out(cells: &[CellResult]) -> Option<Warning> {
    let late = with(cells, |frames| {
        frames
            .throughput
            .as_ref()
            .is_some_and(|found| found.timed_out > 0)
    });
    about(
        WarningKind::SearchTimedOut,
        late,
        |cells| {
            format!(
                "In {} a search ran out of time: its bounds are wider apart than asked.",
                counted(cells.len(), "cell")
            )
        },
        "Give the search more time, or ask for a wider goal.",
    )
}

pub(super) fn no_calibration(cells: &[CellResult]) -> Option<Warning> {
    let groups: BTreeSet<&str> = cells
        .iter()
        .filter(|cell| cell.measures_rig())
        .map(|cell| cell.group.as_str())
        .collect();
    let alone =
        |cell: &&CellResult| cell.traffic.is_some() && !groups.contains(cell.group.as_str());
    about(
        WarningKind::NoCalibration,
        cells.iter().filter(alone).collect(),
        |cells| {
            format!(
                "{} cannot be told from the tester's own limit: nothing measures the rig without a \
                 device there.",
                counted(cells.len(), "cell")
            )
        },
        "Leave `calibrate` on in the campaign, or add `straight` to its devices.",
    )
}

pub(super) fn tester_limited(cells: &[CellResult]) -> Option<Warning> {
    let limited = |cell: &&CellResult| {
        let limit = cell.verdict.as_ref().map(|verdict| verdict.limit);
        limit == Some(Limit::TesterLimited) && !cell.measures_rig()
    };
    about(
        WarningKind::TesterLimited,
        cells.iter().filter(limited).collect(),
        |cells| {
            format!(
                "In {} the tester is the limit (at least {:.0} % of what it does without a device, \
                 or loss of its own): the figure is a lower bound of the device's.",
                counted(cells.len(), "cell"),
                100.0 * TESTER_LIMITED_RATIO
            )
        },
        "Give the stations more cores or a faster port before you compare devices by these figures.",
    )
}

/// A search treats what was not offered as lost, so that it cannot hide there; a load does not.
pub(super) fn offered_shortfall(cells: &[CellResult]) -> Option<Warning> {
    let short = |account: &LossAccount| 20 * account.not_sent > account.intended;
    let found = with(cells, |frames| {
        frames.loads.iter().any(|load| short(&load.account))
    });
    about(
        WarningKind::OfferedShortfall,
        found,
        |cells| {
            format!(
                "In {} the generator sent less than 95 % of the frames that a load asked for.",
                counted(cells.len(), "cell")
            )
        },
        "Read the offered load, not the intended one; give the stations more cores.",
    )
}
