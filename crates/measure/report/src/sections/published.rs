//! Published figures beside measured ones.

use super::{RESULTS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "published",
    name: "Published figures",
    title: "Published figures beside measured ones",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| {
        if !out.is_short() {
            out.tables(tables::published(run));
        }
    },
};
