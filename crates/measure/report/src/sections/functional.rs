//! The functional trial of crypto devices.

use super::Section;
use crate::tables;

pub(super) const SECTION: Section =
    Section::result("functional", "Functional trial", |run, out| {
        out.tables(tables::device::kat(run));
        let cases = tables::device::kat_cases(run);
        if !cases.is_empty() {
            out.details("Test cases by algorithm", cases);
        }
    });
