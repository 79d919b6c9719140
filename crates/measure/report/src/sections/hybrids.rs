//! Gains of hybrid engines over each engine alone.

use super::{COMPARISONS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "hybrids",
    name: "Hybrids",
    title: "Hybrids of engines beside each engine alone",
    chapter: COMPARISONS,
    answers: false,
    blocks: |run, out| out.tables(tables::hybrids(run)),
};
