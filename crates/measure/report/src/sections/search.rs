//! Frame tests: bursts and recovery, and what all frame sections share.

use super::{Blocks, Section};
use crate::layout::Run;
use crate::layout::frames::FrameKind::{self, BackToBack, Recovery};
use crate::layout::frames::FrameSet;
use crate::tables::frames as tables;

pub(super) const BURSTS: Section = Section::result("bursts", "Back-to-back frames", |run, out| {
    each(run, out, "bursts", &[BackToBack], |out, set, _| {
        out.table(tables::back_to_back(run, set));
    });
});

pub(super) const RECOVERY: Section =
    Section::result("recovery", "Recovery from overload", |run, out| {
        each(run, out, "recovery", &[Recovery], |out, set, _| {
            out.table(tables::recovery(run, set));
            goals(run, out, set);
        });
    });

/// Appends each set of these kinds, kind by kind; `content` gets the id for the set's charts.
pub(super) fn each(
    run: &Run<'_>,
    out: &mut Blocks,
    id: &str,
    kinds: &[FrameKind],
    content: impl Fn(&mut Blocks, &FrameSet<'_>, &str),
) {
    let sets = kinds.iter().flat_map(|kind| run.frame_sets_of(*kind));
    for (index, set) in sets.enumerate() {
        content(out, &set, &format!("{id}-{index}"));
    }
}

/// Folded details under the tables of a search.
pub(super) fn goals(run: &Run<'_>, out: &mut Blocks, set: &FrameSet<'_>) {
    if let Some(goals) = tables::goals(set) {
        let tables = vec![goals, tables::bounds(run, set)];
        out.details("Search goals, both bounds and trials", tables);
    }
}
