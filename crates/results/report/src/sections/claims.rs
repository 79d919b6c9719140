//! Claims of data sheets next to measured figures.

use super::{RESULTS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "claims",
    name: "Claims",
    title: "Claims and measured figures",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| out.tables(tables::claims(run, out.is_short())),
};
