//! The same transfers measured by several tools.

use super::{RESULTS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "tools",
    name: "Cross-check of tools",
    title: "Cross-check of tools",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| out.tables(tables::tools(run)),
};
