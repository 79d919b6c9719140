//! Figures over the last runs.

use super::Fault;
use crate::shelf::Shelf;
use axum::http::StatusCode;
use journal::Journal;
use maud::{Markup, PreEscaped, html};
use page::parts::encoded;
use session::runs::Run;

/// The last runs, which are read: all of a large folder would take minutes.
const RUNS_MAX: usize = 50;

pub(super) fn of(shelf: &Shelf) -> Result<Markup, Fault> {
    let all = shelf.list()?;
    // One damaged journal would fail the whole page.
    let readable: Vec<&Run> = all.iter().filter(|run| !run.is_damaged()).collect();
    let left_out = readable.len().saturating_sub(RUNS_MAX);
    let runs: Vec<(&Run, Journal)> = readable
        .into_iter()
        .take(RUNS_MAX)
        .map(|run| Ok((run, shelf.journal(run)?)))
        .collect::<Result<_, Fault>>()?;
    if runs.len() < 2 {
        return Ok(html! {
            section { p { "A history needs at least two runs, and shows changes from four on." } }
        });
    }
    let compared: Vec<compare::Run<'_>> = runs
        .iter()
        .map(|(run, journal)| compare::Run {
            name: &run.name,
            journal,
        })
        .collect();
    let history = compare::history(&compared).map_err(|error| Fault {
        status: StatusCode::UNPROCESSABLE_ENTITY,
        text: format!("error: {error}"),
    })?;
    Ok(html! {
        (PreEscaped(compare::history_html(&history)))
        section {
            h2 { "Runs" }
            @if left_out > 0 { p.note { "The last " (RUNS_MAX) " runs; " (left_out) " older ones are left out." } }
            ul.what {
                @for (run, _) in &runs {
                    li { a href={ "/run/" (encoded(&run.name)) } { (run.name) } " " (run.began()) }
                }
            }
            p.note { "In a terminal: " code { "cipherbench history" } }
        }
    })
}
