//! Costs of key sources relative to static keys.

use super::{RESULTS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "keys",
    name: "Sources of keys",
    title: "Sources of keys compared with static keys",
    chapter: RESULTS,
    answers: true,
    brief: true,
    blocks: |run, out| out.tables(tables::keys(run)),
};
