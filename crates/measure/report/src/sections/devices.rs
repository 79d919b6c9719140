//! What the crypto devices report about themselves.

use super::{RESULTS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "devices",
    name: "Devices",
    title: "Devices",
    chapter: RESULTS,
    blocks: |run, out| {
        if !out.is_short() {
            out.tables(tables::device::facts(run));
        }
    },
};
