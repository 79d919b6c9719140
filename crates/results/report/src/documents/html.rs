//! The report as one HTML file, without external fonts, images or requests. It is readable on
//! screen, light or dark, and in print. An embedded script sorts, filters and selects rows of
//! tables; without it the page has the same content.

mod cells;
mod screens;
mod summary;

use super::text::{command, folder, provenance, with_folder};
use crate::kit::chart;
use crate::kit::format::counted;
use crate::kit::html::{breakable, figure, rich, table};
use crate::kit::section::{Block, Document, Section};
use crate::layout::Run;
use crate::topic;
use crate::{CSV_NAME, JSON_NAME, MARKDOWN_NAME};
use guard::visible_lines;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use screens::{Parts, chosen};

/// The style sheet of the page.
pub(crate) const STYLE: &str = include_str!("html/style.css");
const SCRIPT: &str = include_str!("html/page.js");

/// Makes the browser block everything outside the file, and every script but ours. The script is
/// identified by its hash, which a test prints after a change.
pub(crate) const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; \
                      script-src 'sha256-bdznurL7JGZr/C2udsOo1HIOm6BmzhjDfIbVrF7JaIE='";

/// Writes the whole document.
pub(super) fn write(run: &Run<'_>) -> String {
    let title = run.title();
    // Built once, for the contents and the page, as charts are drawn on the way.
    let sections = topic::sections(run, Document::Html);
    let generator = format!("cipherbench {}", run.journal.header.program);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                // The first 1024 bytes of the file must contain the encoding.
                meta charset="utf-8";
                // The policy applies only to the elements below it.
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(generator);
                title { (title) " – cipherbench" }
                style { (PreEscaped(STYLE)) (PreEscaped(chart::STYLE)) }
            }
            body {
                (masthead(run, &sections))
                main { (content(run, &sections)) }
                (footer(run))
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    // Last, as the placeholder may be anywhere in the page, and the folder needs no escaping.
    with_folder(run, printable(page.into_string()))
}

/// Replaces characters that HTML forbids even when escaped, or that reorder or hide text, by `�`;
/// they can only come from a journal's texts.
fn printable(page: String) -> String {
    // Noncharacters of Unicode: U+FDD0 to U+FDEF, and the last two of each plane.
    let forbidden = |c: char| {
        c == '\t' || (0xFDD0..=0xFDEF).contains(&u32::from(c)) || u32::from(c) & 0xFFFE == 0xFFFE
    };
    let page = visible_lines(&page);
    // Hardly any page contains one, so most are not copied.
    if !page.contains(forbidden) {
        return page.into_owned();
    }
    page.chars()
        .map(|c| if forbidden(c) { '\u{fffd}' } else { c })
        .collect()
}

fn masthead(run: &Run<'_>, sections: &[(&Section, Vec<Block>)]) -> Markup {
    let kind = if run.only_devices() {
        "Crypto device measurement report"
    } else {
        "Encryptor measurement report"
    };
    html! {
        header {
            p.kind { (kind) }
            h1 { (run.title()) }
            p.provenance { (provenance(run)) }
            nav aria-label="Contents" {
                (links(sections, true))
                span.note { "Details: " }
                (links(sections, false))
            }
        }
    }
}

fn links(sections: &[(&Section, Vec<Block>)], answers: bool) -> Markup {
    let all = sections.iter().map(|(section, _)| section);
    let own = all.filter(|one| one.answers == answers && !one.name.is_empty());
    html! {
        @for section in own { a href=(format!("#{}", section.id)) { (section.name) } " " }
    }
}

/// The summary and all sections: first the sections that answer the campaign's question, then,
/// folded, the sections about how the figures came about.
fn content(run: &Run<'_>, sections: &[(&'static Section, Vec<Block>)]) -> Markup {
    html! {
        (summary::all(run))
        @for (found, parts) in sections.iter().zip(chosen(sections)) {
            @if found.0.answers { (section(run, found.0, parts)) } @else { (folded(run, found)) }
        }
    }
}

fn section(run: &Run<'_>, section: &Section, (main, more): Parts<'_>) -> Markup {
    // The style sheet highlights this section.
    let class = (section.id == "trouble").then_some("trouble");
    html! {
        section class=[class] id=(section.id) {
            h2 { (section.title) }
            @for found in main { (block(run, found)) }
            @if !more.is_empty() {
                details.more {
                    summary { (contents(&more)) }
                    @for found in more { (block(run, found)) }
                }
            }
        }
    }
}

/// A folded section. Its anchor is inside, so that a link to it unfolds the section.
fn folded(run: &Run<'_>, (section, blocks): &(&Section, Vec<Block>)) -> Markup {
    html! {
        details.part {
            summary { h2 { (section.title) } }
            section id=(section.id) {
                @for found in blocks { (block(run, found)) }
            }
        }
    }
}

/// Maximum titles in the line of a fold; beyond that, their number.
const TITLES_MAX: usize = 3;

/// The contents of a fold: `Details: 4 charts, 3 tables: Over time; CPU by role; …`.
fn contents(blocks: &[&Block]) -> Markup {
    let mut titles: Vec<&str> = Vec::new();
    let (mut charts, mut tables) = (0, 0);
    for block in blocks {
        match block {
            Block::Chart { title, .. } => {
                charts += 1;
                titles.push(title);
            }
            Block::Table(table) => {
                tables += 1;
                titles.push(&table.caption);
            }
            Block::Details { title, tables: own } => {
                tables += own.len() as u64;
                titles.push(title);
            }
            // All other blocks are never folded, see `chosen`.
            _ => {}
        }
    }
    let counts = [(charts, "chart"), (tables, "table")].into_iter();
    let counts = counts.filter(|(count, _)| *count > 0);
    let counts: Vec<String> = counts.map(|(count, what)| counted(count, what)).collect();
    let left = titles.len().saturating_sub(TITLES_MAX);
    titles.truncate(TITLES_MAX);
    html! {
        "Details: " (counts.join(", "))
        span.note {
            ": " (titles.join("; "))
            @if left > 0 { "; …" }
        }
    }
}

fn block(run: &Run<'_>, block: &Block) -> Markup {
    match block {
        Block::Table(found) => table(found),
        Block::Chart {
            drawing,
            title,
            how_to_read,
            ..
        } => figure(drawing, title, how_to_read),
        Block::Details { tables, .. } => html! { @for found in tables { (table(found)) } },
        Block::Html(markup) => markup.clone(),
        Block::Warnings => warnings(run),
        Block::Cells => cells::all(run),
        Block::Prose(paragraphs) => html! {
            dl.prose {
                @for (name, text) in paragraphs { div { dt { (name) } dd { (rich(text)) } } }
            }
        },
    }
}

fn warnings(run: &Run<'_>) -> Markup {
    html! {
        ul.warnings {
            @for warning in &run.results.warnings {
                li {
                    p { (rich(&warning.text)) }
                    p.advice { (rich(&warning.advice)) }
                    // A warning about all cells needs no list of them.
                    @if !warning.cells.is_empty() && warning.cells.len() < run.results.cells.len() {
                        details {
                            summary { (counted(warning.cells.len() as u64, "cell")) }
                            ul.plain { @for cell in &warning.cells { li { code { (breakable(cell)) } } } }
                        }
                    }
                }
            }
        }
    }
}

fn footer(run: &Run<'_>) -> Markup {
    html! {
        footer {
            p { "Made by" }
            pre { code { (command(run)) } }
            p {
                "Rebuilt from the run's journal alone: " code { "cipherbench report RUN" } ". "
                (folder(run)) ". "
                "Beside this file: " code { (MARKDOWN_NAME) } ", " code { (CSV_NAME) }
                ", " code { (JSON_NAME) } ", " code { (journal::FILE_NAME) } "."
            }
            p {
                "To verify that every figure here agrees with the journal: "
                code { "cipherbench verify RUN" } ". If the run is signed, "
                code { "SHA256SUMS.minisig" } " is beside this file: "
                code { "cipherbench verify RUN --key KEY.pub" } " with the signer's public key."
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_html_forbids_are_replaced() {
        assert_eq!(
            printable("a\u{1b}b\u{0}c\nd\u{fffe}e\u{7f}é".to_owned()),
            "a\u{fffd}b\u{fffd}c\nd\u{fffd}e\u{fffd}é"
        );
    }
}
