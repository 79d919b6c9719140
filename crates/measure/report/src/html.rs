//! The report as one HTML file: no script, no font, no image, no request. It reads on screen, light
//! or dark, and in print.

mod cells;
mod parts;
mod summary;

use crate::chart;
use crate::headline;
use crate::layout::Run;
use crate::sections::{self, Block, Document, Section};
use crate::text;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use parts::{details, figure, rich, table};

const STYLE: &str = include_str!("html/style.css");
/// Asks the browser itself to refuse whatever is not in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
/// More devices than this have short cards.
const MAX_TALL_CARDS: usize = 3;

/// Writes the whole document.
pub(crate) fn write(run: &Run<'_>) -> String {
    let title = run.title();
    let sections = sections::of(run, Document::Html);
    let generator = format!("cipherbench {}", run.journal.header.program);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
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
            }
        }
    };
    printable(&page.into_string())
}

/// Characters that HTML forbids even when escaped become `�`; they can only come from a journal's
/// texts.
fn printable(page: &str) -> String {
    let forbidden = |c: char| {
        (c.is_control() && c != '\n')
            || (0xFDD0..=0xFDEF).contains(&u32::from(c))
            || u32::from(c) & 0xFFFE == 0xFFFE
    };
    page.chars()
        .map(|c| if forbidden(c) { '\u{fffd}' } else { c })
        .collect()
}

fn masthead(run: &Run<'_>, sections: &[(&Section, Vec<Block>)]) -> Markup {
    let kind = match run.only_devices() {
        true => "Crypto device measurement report",
        false => "Encryptor measurement report",
    };
    html! {
        header {
            p.kind { (kind) }
            h1 { (run.title()) }
            p.provenance { (text::provenance(run)) }
            nav aria-label="Contents" {
                @for (section, _) in sections {
                    @if !section.name.is_empty() {
                        a href=(format!("#{}", section.id)) { (section.name) } " "
                    }
                }
            }
        }
    }
}

/// The summary and all sections. Cards of more devices than fit on a screen come behind the
/// ranking.
fn content(run: &Run<'_>, sections: &[(&Section, Vec<Block>)]) -> Markup {
    let headlines = headline::headlines(run);
    let ranking = sections.iter().position(|(one, _)| one.id == "ranking");
    match ranking.filter(|_| headlines.len() > MAX_TALL_CARDS) {
        Some(ranking) => html! {
            p.soundness { (headline::soundness(run)) }
            @for found in &sections[..=ranking] { (section(run, found)) }
            (summary::short(&headlines))
            @for found in &sections[ranking + 1..] { (section(run, found)) }
        },
        None => html! {
            (summary::tall(run, &headlines))
            @for found in sections { (section(run, found)) }
        },
    }
}

fn section(run: &Run<'_>, (section, blocks): &(&Section, Vec<Block>)) -> Markup {
    let class = (section.id == "trouble").then_some("trouble");
    html! {
        section class=[class] id=(section.id) {
            h2 { (section.title) }
            @for found in blocks { (block(run, found)) }
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
        } => figure(drawing, title, how_to_read),
        Block::Details { title, tables } => details(title, tables),
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
                    @if !warning.cells.is_empty() && warning.cells.len() < run.results.cells.len() {
                        details {
                            summary { (crate::format::counted(warning.cells.len() as u64, "cell")) }
                            ul.plain { @for cell in &warning.cells { li { code { (cell) } } } }
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
            pre { code { (text::command(run)) } }
            p {
                "Rebuilt from the run's journal alone: " code { "cipherbench report RUN" } ". "
                "Beside this file: " code { (crate::MARKDOWN_NAME) } ", " code { (crate::CSV_NAME) }
                ", " code { (crate::JSON_NAME) } ", " code { (journal::FILE_NAME) } "."
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
            printable("a\u{1b}b\u{0}c\nd\u{fffe}e\u{7f}é"),
            "a\u{fffd}b\u{fffd}c\nd\u{fffd}e\u{fffd}é"
        );
    }
}
