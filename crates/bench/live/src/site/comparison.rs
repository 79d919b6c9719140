//! Two runs compared.

use compare::{CompareError, Options};
use journal::Journal;
use maud::{Markup, PreEscaped, html};
use page::parts::{encoded, list};
use session::runs::Run;

/// The runs that a run may be compared with, as the base: runs of the same campaign first.
pub(super) fn choice(run: &Run, runs: &[Run]) -> Markup {
    let is_other = |other: &&Run| other.name != run.name && !other.is_damaged();
    let (same, others): (Vec<&Run>, Vec<&Run>) = runs
        .iter()
        .filter(is_other)
        .partition(|other| other.campaign() == run.campaign());
    let row = |other: &&Run| {
        html! {
            th { a href={ "/compare/" (encoded(&other.name)) "/" (encoded(&run.name)) } { (other.name) } }
            td.when data-is="Began" { (other.began()) }
            td { (other.state()) }
            td.own { (other.result()) }
        }
    };
    let heads = ["Base", "Began (UTC)", "State", "Result"];
    let rows = |runs: &[&Run]| runs.iter().map(row).collect::<Vec<_>>();
    html! {
        section {
            p.answer { "Choose the run that " code { (run.name) } " is compared with." }
            @if same.is_empty() && others.is_empty() { p.note { "There is no other run." } }
        }
        @if !same.is_empty() { (list("same", "Of the same campaign", &heads, &rows(&same))) }
        @if !others.is_empty() { (list("others", "Of other campaigns", &heads, &rows(&others))) }
    }
}

pub(super) fn of(runs: &[Run; 2], journals: &[Journal; 2]) -> Result<Markup, CompareError> {
    let [base, other] = [0, 1].map(|at| compare::Run {
        name: &runs[at].name,
        journal: &journals[at],
    });
    let comparison = compare::compare(&[base, other], &Options::default())?;
    let link = |at: usize| {
        let run = &runs[at];
        html! { a href={ "/run/" (encoded(&run.name)) } { (run.name) } }
    };
    let [base, other] = [encoded(&runs[0].name), encoded(&runs[1].name)];
    Ok(html! {
        section {
            p.note {
                "Base " (link(0)) ", other run " (link(1)) ". "
                a href={ "/compare/" (other) "/" (base) } { "Swap" }
                ". In a terminal: " code { "cipherbench compare" }
            }
        }
        // It escapes names and texts of journals itself.
        (PreEscaped(compare::html(&comparison)))
    })
}
