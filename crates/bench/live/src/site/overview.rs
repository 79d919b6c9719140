//! The list of runs.

use maud::{Markup, html};
use page::lists::{List, ListRow, ROOM, chars, lists};
use page::parts::{SHORT, encoded, shortened};
use session::runs::Run;
use std::path::Path;

/// The runs in progress come first.
pub(super) fn all(runs: &[Run], root: &Path) -> Markup {
    if runs.is_empty() {
        return html! {
            section {
                h2 { "No run yet" }
                p { "The folder " code { (root.display()) } " has no run. " code { "cipherbench run" } " makes one; it \
                     then appears here." }
            }
        };
    }
    let (running, others): (Vec<&Run>, Vec<&Run>) = runs.iter().partition(|run| run.is_running());
    let running = List {
        id: "running",
        title: "Under way".to_owned(),
        noun: "run",
        none: None,
        heads: &["Run", "Began (UTC)", "State", "Campaign"],
        rows: running.into_iter().map(under_way).collect(),
        note: None,
    };
    let recorded = List {
        id: "recorded",
        title: "Recorded".to_owned(),
        noun: "run",
        none: Some("No run has ended yet."),
        heads: &["Run", "Began (UTC)", "State", "Result", ""],
        rows: others.into_iter().map(recorded).collect(),
        note: None,
    };
    lists(&[running, recorded], ROOM)
}

fn under_way(run: &Run) -> ListRow {
    let state = run.state();
    let campaign = run.campaign().unwrap_or_default();
    let cells = html! {
        th { a href={ "/progress/" (encoded(&run.name)) } { (run.name) } }
        td.when data-is="Began" { (run.began()) }
        td.own { span.free { (state) } }
        td data-is="Campaign" { (campaign) }
    };
    let heights = [
        chars(&run.name) + chars("Began: 2026-11-20 11:30"),
        chars(&state),
        chars("Campaign: ") + chars(campaign),
    ];
    ListRow::new(cells, &heights)
}

fn recorded(run: &Run) -> ListRow {
    let (state, result, name) = (run.state(), run.result(), encoded(&run.name));
    let is_damaged = run.is_damaged();
    let cells = html! {
        th { @if is_damaged { (run.name) } @else { a href={ "/run/" (name) } { (run.name) } } }
        td.when data-is="Began" { (run.began()) }
        td { @if state == "finished" { (state) } @else { span.gone { (state) } } }
        td.own { (shortened(&format!("result-{name}"), result)) }
        td { @if !is_damaged { a href={ "/compare/" (name) } { "compare" } } }
    };
    let heights = [
        chars(&run.name),
        chars("Began: 2026-11-20 11:30") + chars(&state),
        chars(result).min(SHORT),
        chars("compare"),
    ];
    ListRow::new(cells, &heights)
}
