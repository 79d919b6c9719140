//! The spread of the repeats.

use super::Section;
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "spread",
    name: "Spread",
    title: "Spread of the repeats",
    chapter: "Spread",
    answers: false,
    brief: false,
    blocks: |run, out| {
        if !out.is_short() {
            out.tables(tables::spread(run));
        }
    },
};
