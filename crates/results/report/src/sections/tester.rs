//! The tester itself, and the bottleneck of each figure.

use super::{RESULTS, Section};
use crate::tables::frames as tables;

pub(super) const SECTION: Section = Section {
    id: "tester",
    name: "The tester",
    title: "The tester, and what limits each figure",
    chapter: RESULTS,
    answers: false,
    brief: false,
    blocks: |run, out| {
        if run.frame_sets().is_empty() {
            return;
        }
        let mut cells = run.results.cells.iter();
        if !out.is_short() || cells.all(stats::CellResult::measures_rig) {
            out.tables(tables::calibration(run));
        }
        if out.is_short() {
            return;
        }
        out.tables(tables::mixes(run));
        out.tables(tables::ports(run));
        if let Some(verdicts) = tables::verdicts(run) {
            let title = "What limits each figure, and the evidence for it";
            out.details(title, vec![verdicts]);
        }
        if out.is_empty() {
            out.note("No figure yet.");
        }
    },
};
