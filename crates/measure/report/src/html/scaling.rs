//! What more of something brings, and what is claimed.

use super::parts::{section, table};
use super::results::figure;
use crate::chart;
use crate::layout::Run;
use crate::tables;
use maud::{Markup, html};
use stats::ScalingAxis;

/// Id, title, and whether there is anything to show.
pub(super) fn contents(run: &Run<'_>) -> [(&'static str, &'static str, bool); 6] {
    [
        ("claims", "Claims", !run.results.claims.is_empty()),
        ("scaling", "Scaling", !run.results.scalings.is_empty()),
        ("keys", "Sources of keys", !run.results.key_costs.is_empty()),
        ("hybrids", "Hybrids", !run.results.hybrid_gains.is_empty()),
        (
            "tools",
            "Cross-check of tools",
            !run.results.tool_checks.is_empty(),
        ),
        (
            "published",
            "Published figures",
            tables::published(run).is_some(),
        ),
    ]
}

/// The claims beside what was measured; nothing when there are none.
pub(super) fn claims(run: &Run<'_>) -> Markup {
    let found = tables::claims(run, false);
    if found.is_empty() {
        return html! {};
    }
    let content = html! { @for one in &found { (table(one)) } };
    section("claims", "Claims beside what was measured", content)
}

/// What sources of keys cost beside static ones; nothing when none was measured so.
pub(super) fn keys(run: &Run<'_>) -> Markup {
    match tables::keys(run) {
        Some(found) => section("keys", "Sources of keys beside static keys", table(&found)),
        None => html! {},
    }
}

/// What hybrids of engines gain over each engine alone; nothing when none was measured so.
pub(super) fn hybrids(run: &Run<'_>) -> Markup {
    match tables::hybrids(run) {
        Some(found) => section(
            "hybrids",
            "Hybrids of engines beside each engine alone",
            table(&found),
        ),
        None => html! {},
    }
}

/// The transfers that several tools made; nothing when there are none.
pub(super) fn tools(run: &Run<'_>) -> Markup {
    match tables::tools(run) {
        Some(found) => section("tools", "Cross-check of tools", table(&found)),
        None => html! {},
    }
}

/// What others have published beside what was measured; nothing when a campaign names nothing.
pub(super) fn published(run: &Run<'_>) -> Markup {
    match tables::published(run) {
        Some(found) => section(
            "published",
            "Published figures beside measured ones",
            table(&found),
        ),
        None => html! {},
    }
}

/// The series: what they do in words, and each measurement with its chart; nothing when there are none.
pub(super) fn scaling(run: &Run<'_>) -> Markup {
    let found = &run.results.scalings;
    if found.is_empty() {
        return html! {};
    }
    let content = html! {
        (table(&tables::scaling::verdicts(run, found, false)))
        @for (index, all) in tables::scaling::measurements(run).into_iter().enumerate() {
            @if let Some(chart) = chart::scaling::draw(run, &all, &format!("scaling-{index}")) {
                @let (axis, series) = (all[0].axis, &all[0].series);
                (figure(&chart, &format!("By {}: {series}", axis.name()), how_to_read(axis)))
            }
            (table(&tables::scaling::figures(run, &all)))
        }
    };
    section("scaling", "Scaling", content)
}

fn how_to_read(axis: ScalingAxis) -> &'static str {
    match axis.adds() {
        true => {
            "Dots: mean of the repeats; whiskers: the farthest repeat's distance. Dotted: one for one, as many times \
                 as much. Line: the law that fits, where one does. Dashed: where more of them bring no more."
        }
        false => {
            "Dots: mean of the repeats; whiskers: the farthest repeat's distance. Dotted: nothing lost. Dashed: where \
                  it falls."
        }
    }
}
