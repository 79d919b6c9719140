//! Published reports next to the measured figures.

use super::{Block, RESULTS, Section, has_section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "published",
    name: "Published figures",
    title: "Beside the published report",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| {
        if out.is_short() {
            return;
        }
        out.tables(tables::published_overview(run));
        // Their columns are the report's, even without figures here.
        out.found
            .extend(tables::beside(run).into_iter().map(Block::Table));
        out.tables(tables::drawings(run, |id| has_section(run, id)));
        out.tables(tables::published(run));
    },
};
