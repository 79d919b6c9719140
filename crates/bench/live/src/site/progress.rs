//! A run in progress.

use maud::{Markup, html};
use page::parts::{encoded, table};
use session::progress::{Now, Phase, ResultKind, Row, State, TrialResult};
use session::runs::Run;
use std::time::Instant;

/// Results of a cell that are shown, the newest ones.
const RESULTS_MAX: usize = 10;

pub(super) fn of(state: &State, run: &Run, is_running: bool, now: Instant) -> Markup {
    let name = encoded(&run.name);
    let far = state.far(now).join(", ");
    let rows: Vec<Markup> = state.rows.iter().map(|row| cell(row, state)).collect();
    let rows: Vec<&Markup> = rows.iter().collect();
    html! {
        section #state {
            @if !state.title.is_empty() { p.answer { (state.title) } }
            p {
                progress max=(state.trials) value=(state.made()) {}
                (far)
            }
            @match (&state.phase, is_running) {
                (Phase::Ended(reason), _) => { p { "This run has ended: " (reason) "." } },
                (_, false) => {
                    p { "No process continues this run. " code { "cipherbench resume" } " does." }
                },
                (Phase::Waiting(reason), true) => { p.gone { "It waits: " (reason) } },
                (Phase::Measuring, true) => { @if let Some(trial) = &state.now { (in_progress(trial, now)) } },
            }
            p.note {
                "Run " code { (run.name) } " in lab " (state.lab) ". "
                a href={ "/run/" (name) } { @if is_running { "Report so far" } @else { "Report" } }
                @if !is_running { ", " a href={ "/compare/" (name) } { "compare" } }
            }
        }
        section #cells {
            h2 { "Cells" }
            (table(&["Cell", "Repeats", "Results, the newest last"], &rows))
        }
    }
}

fn in_progress(trial: &Now, now: Instant) -> Markup {
    html! {
        p #now {
            b { (trial.cell) }
            @if let Some(repeat) = trial.repeat { ", repeat " (repeat) }
            ", " (trial.time(now))
        }
        @if !trial.facts.is_empty() { p #so-far { (trial.facts.join(", ")) } }
    }
}

fn cell(row: &Row, state: &State) -> Markup {
    let is_current = state.now.as_ref().is_some_and(|now| now.cell == row.cell);
    let left_out = row.results.len().saturating_sub(RESULTS_MAX);
    html! {
        th { code { (row.cell) } @if is_current { " " span.free { "measured now" } } }
        td.right data-is="Repeats" { (row.results.len()) " of " (row.repeats) }
        td.own {
            @if left_out > 0 { "… " }
            @for (at, one) in row.results.values().skip(left_out).enumerate() {
                @if at > 0 { " · " }
                (result(one))
            }
        }
    }
}

fn result(result: &TrialResult) -> Markup {
    match result.kind {
        ResultKind::Measured | ResultKind::Skipped => html! { (result.text) },
        ResultKind::Invalid | ResultKind::Failed => html! { span.gone { (result.text) } },
    }
}
