//! The sections that set devices, and suites of one device, beside one another.

use super::parts::{section, table};
use crate::chart;
use crate::layout::Run;
use crate::tables;
use crate::tables::ranking::caption;
use maud::{Markup, html};

/// Id, title and whether it is shown of each section.
pub(super) fn contents(run: &Run<'_>) -> [(&'static str, &'static str, bool); 2] {
    [
        ("ranking", "Ranking", !run.results.rankings.is_empty()),
        ("suites", "Suites", !run.results.suites.is_empty()),
    ]
}

/// Devices in order, group by group; nothing where there are no two.
pub(super) fn ranking(run: &Run<'_>) -> Markup {
    if run.results.rankings.is_empty() {
        return html! {};
    }
    let ranked = tables::ranking::ranked(run);
    let tables = tables::ranking::rankings(run, false);
    let reading = "Bars: mean of the repeats. Lines: its interval; devices whose lines overlap are not told \
                   apart, and the number in front of a name is from the best to the worst rank that it could \
                   have. Outlined: insecure. Without a number: for reference.";
    let content = html! {
        p.note { (reading) }
        @for (index, (found, rows)) in ranked.iter().zip(&tables).enumerate() {
            @let id = format!("ranking-{index}");
            (figure(&chart::ranking::draw(run, found, &id), &caption(found)))
            (table(rows))
        }
    };
    section("ranking", "Ranking", content)
}

/// Suites of one device; nothing where there are no two.
pub(super) fn suites(run: &Run<'_>) -> Markup {
    if run.results.suites.is_empty() {
        return html! {};
    }
    let tables = tables::suites::suites(run, false);
    let reading = "From the oldest to the strongest. Bars: mean of the repeats; whiskers: the farthest repeat; \
                   the line on a bar or behind it: the ceiling that packets of this length leave, where it is \
                   not far above all figures. Beside them, what the suite adds to each packet, and the share of \
                   the ceiling that was reached.";
    let content = html! {
        p.note { (reading) }
        @for (index, (matrix, rows)) in run.results.suites.iter().zip(&tables).enumerate() {
            @let id = format!("suites-{index}");
            @if let Some(chart) = chart::suites::draw(run, matrix, &id) {
                (figure(&chart, &rows.caption))
            }
            (table(rows))
        }
    };
    section("suites", "Suites: cipher by hash", content)
}

/// A chart of many that are read alike: how is said once.
fn figure(chart: &Markup, title: &str) -> Markup {
    html! {
        figure {
            figcaption { span.title { (title) } }
            (chart)
        }
    }
}
