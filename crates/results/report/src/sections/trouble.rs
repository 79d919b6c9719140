//! Cells without a figure, listed before any figure.

use super::{RESULTS, Section};
use crate::tables;
use maud::html;
use stats::Status;
use units::human::counted;

pub(super) const SECTION: Section = Section {
    id: "trouble",
    name: "",
    title: "Trials without a figure",
    chapter: RESULTS,
    answers: true,
    // The short form prints these reasons in another form.
    brief: false,
    blocks: |run, out| {
        let reasons = tables::reasons(run);
        if reasons.rows.is_empty() {
            return;
        }
        let cells = &run.results.cells;
        let count = |status: Status| cells.iter().filter(|cell| cell.status == status).count();
        out.html(html! {
            p {
                (count(Status::Invalid)) " of " (counted(cells.len(), "cell")) " invalid, " (count(Status::Failed))
                " failed. Where a cell has no figure, the tables below say so in its place. "
                code { "cipherbench resume RUN --invalid" } " repeats these trials."
            }
        });
        out.table(reasons);
    },
};
