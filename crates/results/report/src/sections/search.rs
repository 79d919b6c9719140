//! Frame tests: bursts and recovery, and functions that all frame sections share.

use super::{Blocks, Section};
use crate::chart::frames::single as chart;
use crate::layout::Run;
use crate::layout::frames::FrameKind::{self, BackToBack, Recovery};
use crate::layout::frames::{FrameSet, settings};
use crate::table::Table;
use crate::tables::frames as tables;

pub(super) const BURSTS: Section = Section::result("bursts", "Back-to-back frames", |run, out| {
    let sets = run.frame_sets_of(BackToBack);
    for (index, set) in sets.iter().enumerate() {
        let how = "Bars: the longest burst without loss at the highest load, mean of the repeats. Whiskers: \
                   the farthest repeat's distance.";
        out.chart(
            format!("Longest burst without loss: {}", set.common),
            how,
            || chart::bursts(run, set, &format!("bursts-{index}")),
        );
    }
    out.tables(joined("Back-to-back frames", &sets, |set| {
        Some(tables::back_to_back(run, set))
    }));
});

pub(super) const RECOVERY: Section = Section::result(
    "recovery",
    "Recovery from overload",
    |run, out| {
        let sets = run.frame_sets_of(Recovery);
        for (index, set) in sets.iter().enumerate() {
            let how = "Bars: from the end of the overload to the last lost frame, mean of the repeats. Whiskers: the \
                       farthest repeat's distance.";
            out.chart(
                format!("Time to the last loss: {}", set.common),
                how,
                || chart::recovery(run, set, &format!("recovery-{index}")),
            );
        }
        out.tables(joined("Recovery", &sets, |set| {
            Some(tables::recovery(run, set))
        }));
        goals(run, out, &sets);
    },
);

/// The sets of these kinds, kind by kind.
pub(super) fn sets_of<'r>(run: &'r Run<'_>, kinds: &[FrameKind]) -> Vec<FrameSet<'r>> {
    let sets = kinds.iter().flat_map(|kind| run.frame_sets_of(*kind));
    sets.collect()
}

/// A table of each set; tables that can be joined become one.
pub(super) fn joined(
    what: &str,
    sets: &[FrameSet<'_>],
    table: impl Fn(&FrameSet<'_>) -> Option<Table>,
) -> Vec<Table> {
    let settings = settings(sets).into_iter().zip(sets);
    let tables = settings.filter_map(|(setting, set)| Some((setting, table(set)?)));
    crate::table::joined(what, tables.collect())
}

/// Appends folded details below the tables of a search.
pub(super) fn goals(run: &Run<'_>, out: &mut Blocks, sets: &[FrameSet<'_>]) {
    let mut found = joined("Search goals", sets, tables::goals);
    if !found.is_empty() {
        let searched: Vec<_> = sets.iter().filter(|set| !set.goals().is_empty()).collect();
        found.extend(searched.iter().map(|set| tables::bounds(run, set)));
        out.details("Search goals, both bounds and trials", found);
    }
}
