//! Gains of hybrid engines over each engine alone.

use super::{RESULTS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "hybrids",
    name: "Hybrids",
    title: "Hybrids of engines compared with each engine alone",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| out.tables(tables::hybrids(run)),
};
