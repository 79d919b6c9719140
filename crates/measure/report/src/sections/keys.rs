//! Costs of key sources relative to static keys.

use super::{COMPARISONS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "keys",
    name: "Sources of keys",
    title: "Sources of keys beside static keys",
    chapter: COMPARISONS,
    answers: false,
    blocks: |run, out| out.tables(tables::keys(run)),
};
