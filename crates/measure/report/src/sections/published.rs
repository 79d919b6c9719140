//! Published figures beside measured ones.

use super::{COMPARISONS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "published",
    name: "Published figures",
    title: "Published figures beside measured ones",
    chapter: COMPARISONS,
    answers: true,
    blocks: |run, out| {
        if !out.is_short() {
            out.tables(tables::published(run));
        }
    },
};
