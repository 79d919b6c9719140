//! The checks of the evidence, counted.

use super::Section;
use crate::tables;
use maud::html;

pub(super) const SECTION: Section = Section {
    id: "evidence",
    name: "Evidence",
    title: "Evidence",
    chapter: "Evidence",
    answers: false,
    brief: false,
    blocks: |run, out| {
        out.html(html! {
            p.note {
                "Every check of every trial, with the numbers that decided it, is under "
                a href="#cells" { "Cells and commands" } "."
            }
        });
        out.table(tables::evidence(run));
        if let Some(coverage) = tables::coverage(run).with_rows() {
            out.table(coverage);
        }
        if !out.is_short() {
            out.tables(tables::frames::directions(run));
        }
    },
};
