//! The functional trial of crypto devices.

use super::Section;
use crate::{chart, tables};

pub(super) const SECTION: Section = Section::result(
    "functional",
    "Functional trial",
    |run, out| {
        let how = "Solid: algorithms that give the right result. Striped: algorithms that fail or are not \
                   offered.";
        out.chart("Algorithms that pass", how, || {
            chart::device::kat::draw(run, "kat")
        });
        out.tables(tables::device::kat(run));
        let cases = tables::device::kat_cases(run);
        if !cases.is_empty() {
            out.details("Test cases by algorithm", cases);
        }
    },
);
