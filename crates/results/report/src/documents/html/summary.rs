//! The first screen: the findings, and the main figures of each device.

use crate::documents::headline::{FirstScreen, Headline};
use crate::kit::fact::Fact;
use crate::kit::format::counted;
use crate::kit::html::rich;
use crate::layout::Run;
use crate::order::unique;
use maud::{Markup, html};

/// Maximum number of facts shown as cards; more become a table.
const CARDS_MAX: usize = 8;
/// Maximum columns of figures in the table.
const COLUMNS_MAX: usize = 6;
/// Devices in the table; further ones are folded.
const ROWS_MAX: usize = 10;
/// Maximum characters of a condition below its figure.
const DETAIL_MAX: usize = 44;

/// Findings, figures with their ranges, and how far they can be relied on.
pub(super) fn all(run: &Run<'_>) -> Markup {
    let first = FirstScreen::of(run);
    // A device without facts has a card as well, with the reason.
    let facts = first.devices.iter().map(|found| found.facts.len().max(1));
    html! {
        section.summary id="summary" aria-label="Summary" {
            @if let Some(answer) = &first.answer { p.answer { (rich(answer)) } }
            @if !first.findings.is_empty() {
                ul.findings { @for finding in &first.findings { li { (rich(finding)) } } }
            }
            // Cards of many devices would push the ranking off the first screen.
            @if facts.sum::<usize>() <= CARDS_MAX {
                @for found in &first.devices { (card(found)) }
            } @else {
                (table(&first.devices))
            }
            p.soundness {
                (first.soundness) " "
                @let warnings = run.results.warnings.len();
                @if warnings > 0 {
                    a href="#warnings" { (counted(warnings as u64, "warning")) }
                    " to read before using these figures."
                }
            }
        }
    }
}

/// All facts of a device, with their conditions.
fn card(found: &Headline) -> Markup {
    html! {
        div.device {
            h2 { (name(found)) }
            dl.facts {
                @for fact in &found.facts {
                    div {
                        dt { (fact.label) }
                        dd {
                            (figure(fact))
                            @if !fact.range.is_empty() { span.range { (rich(&fact.range)) } }
                            span { (rich(&fact.detail)) }
                        }
                    }
                }
                @if let Some(why) = &found.without { p.note { (rich(why)) } }
            }
            @if !found.doubt.is_empty() { p.doubt { (rich(&found.doubt)) "." } }
        }
    }
}

/// Figures and ranges of all devices, one row per device; transposed if there are many figures.
fn table(headlines: &[Headline]) -> Markup {
    let labels = headlines.iter().flat_map(|found| &found.facts);
    let labels = unique(labels.map(|fact| fact.label.as_str()));
    // Devices without facts have a note below the table instead of an empty row.
    let with_facts: Vec<&Headline> = headlines
        .iter()
        .filter(|found| found.without.is_none())
        .collect();
    // Turned only if this does not result in even more columns.
    let is_turned = labels.len() > COLUMNS_MAX && with_facts.len() <= COLUMNS_MAX.max(labels.len());
    let of = |found: &Headline, label: &str| {
        let fact = found.facts.iter().find(|fact| fact.label == label);
        cell(fact)
    };
    // Builds the table from the columns' headings and the rows, each with its heading and facts.
    let grid = |corner: &str, columns: Vec<Markup>, rows: Vec<(Markup, Vec<Markup>)>| {
        html! {
            div.table {
                table.grid {
                    thead { tr {
                        th.first scope="col" { (corner) }
                        @for heading in columns { th scope="col" { (heading) } }
                    } }
                    tbody {
                        @for (heading, facts) in rows {
                            tr {
                                th.first scope="row" { (heading) }
                                @for fact in facts { (fact) }
                            }
                        }
                    }
                }
            }
        }
    };
    let by_figure = || {
        let columns = with_facts.iter().map(|found| name(found)).collect();
        let row = |label: &&str| {
            let facts = with_facts.iter().map(|found| of(found, label));
            (html! { (label) }, facts.collect())
        };
        grid("Figure", columns, labels.iter().map(row).collect())
    };
    let by_device = |devices: &[&Headline]| {
        let columns = labels.iter().map(|label| html! { (label) }).collect();
        let row = |found: &&Headline| {
            let facts = labels.iter().map(|label| of(found, label));
            (name(found), facts.collect())
        };
        grid("Device", columns, devices.iter().map(row).collect())
    };
    let (first, others) = with_facts.split_at(ROWS_MAX.min(with_facts.len()));
    html! {
        @if is_turned { (by_figure()) } @else { (by_device(first)) }
        @if !is_turned && !others.is_empty() {
            details.more {
                summary { (counted(others.len() as u64, "more device")) }
                (by_device(others))
            }
        }
        @for found in headlines.iter() {
            @if let Some(why) = &found.without { p.note { b { (found.device) } ": " (rich(why)) } }
            @if found.without.is_none() && !found.doubt.is_empty() {
                p.doubt { b { (found.device) } ": " (rich(&found.doubt)) "." }
            }
        }
    }
}

fn cell(fact: Option<&Fact>) -> Markup {
    let Some(fact) = fact else {
        return html! { td.missing { "–" } };
    };
    // The first condition; the sections have the others.
    let condition = fact.detail.split("; ").next().unwrap_or_default();
    html! {
        td {
            (figure(fact))
            span.range {
                @match fact.range.is_empty() {
                    false => (rich(&fact.range)),
                    true if condition.chars().count() <= DETAIL_MAX => (rich(condition)),
                    true => {},
                }
            }
        }
    }
}

fn name(found: &Headline) -> Markup {
    html! { span class=(format!("swatch back-{}", found.color)) {} (found.device) }
}

fn figure(fact: &Fact) -> Markup {
    html! {
        strong {
            (fact.figure)
            @if !fact.unit.is_empty() { " " small { (fact.unit) } }
        }
    }
}
