//! The functional trial of crypto devices.

use super::{RESULTS, Section};
use crate::tables;

pub(super) const SECTION: Section = Section {
    id: "functional",
    name: "Functional trial",
    title: "Functional trial",
    chapter: RESULTS,
    blocks: |run, out| {
        out.tables(tables::device::kat(run));
        let cases = tables::device::kat_cases(run);
        if !cases.is_empty() {
            out.details("What was tried of each algorithm", cases);
        }
    },
};
