//! The report as one HTML file: no script, no font, no image, no request. It reads on screen, light
//! or dark, and in print.

mod cells;
mod compared;
mod device;
mod disturbed;
mod frames;
mod parts;
mod results;
mod scaling;
mod summary;

use crate::headline;
use crate::layout::{Protocol, Run};
use crate::{prose, tables, text};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use parts::{rich, section, table};
use stats::Status;

const STYLE: &str = include_str!("html/style.css");
/// Asks the browser itself to refuse whatever is not in the file.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";
/// More devices than this have short cards.
const MAX_TALL_CARDS: usize = 3;

/// Writes the whole document.
pub(crate) fn write(run: &Run<'_>) -> String {
    let title = run.title();
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
                style { (PreEscaped(STYLE)) }
            }
            body {
                (masthead(run))
                main {
                    (overview(run))
                    (compared::suites(run))
                    (scaling::claims(run))
                    (device::sections(run))
                    (results::sections(run))
                    (scaling::keys(run))
                    (scaling::hybrids(run))
                    (scaling::tools(run))
                    (scaling::published(run))
                    (evidence(run))
                    (warnings(run))
                    (environment(run))
                    (cells::all(run))
                    (method(run))
                }
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

fn masthead(run: &Run<'_>) -> Markup {
    let frames =
        frames::SECTIONS.map(|(id, title, kinds)| (id, title, frames::is_shown(run, kinds)));
    let has_frames = frames.iter().any(|(.., shown)| *shown);
    let bulk = [
        ("tcp", "TCP", !run.sets_of(Protocol::Tcp).is_empty()),
        ("udp", "UDP", !run.sets_of(Protocol::Udp).is_empty()),
        (
            "latency",
            "Latency",
            !run.sets_of(Protocol::Ping).is_empty(),
        ),
    ];
    let rest = [
        ("tester", "The tester", has_frames),
        ("spread", "Spread", tables::spread(run).is_some()),
        ("cpu", "CPU", results::has_cpu(run)),
        ("evidence", "Evidence", true),
        ("warnings", "Warnings", !run.results.warnings.is_empty()),
        ("environment", "Environment", true),
        ("cells", "Cells and commands", true),
        ("method", "Method and limits", true),
    ];
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
                @let compared = compared::contents(run).into_iter();
                @let [claims, scaling, keys, hybrids, tools, published] = scaling::contents(run);
                @for (id, name, shown) in compared.chain([claims]).chain(device::contents(run)).chain(bulk).chain(frames).chain([scaling, keys, hybrids, tools, published]).chain(rest) {
                    @if shown { a href=(format!("#{id}")) { (name) } " " }
                }
            }
        }
    }
}

/// What to read first: what each device came to, and their order. The cards of more devices than fit on a screen come
/// behind it.
fn overview(run: &Run<'_>) -> Markup {
    let headlines = headline::headlines(run);
    let ranking = compared::ranking(run);
    if headlines.len() > MAX_TALL_CARDS && !run.results.rankings.is_empty() {
        return html! {
            p.soundness { (headline::soundness(run)) }
            (trouble(run))
            (ranking)
            (summary::short(&headlines))
        };
    }
    html! {
        (summary::tall(run, &headlines))
        (trouble(run))
        (ranking)
    }
}

/// Cells without a figure, told before any figure is read.
fn trouble(run: &Run<'_>) -> Markup {
    let reasons = tables::reasons(run);
    let count = |status: Status| {
        run.results
            .cells
            .iter()
            .filter(|cell| cell.status == status)
            .count()
    };
    let (invalid, failed) = (count(Status::Invalid), count(Status::Failed));
    html! {
        @if !reasons.rows.is_empty() {
            section.trouble id="trouble" {
                h2 { "Trials without a figure" }
                p {
                    (invalid) " of " (run.results.cells.len()) " cells invalid, " (failed)
                    " failed. Where a cell has no figure, the tables below say so in its place. "
                    code { "cipherbench resume RUN --invalid" } " makes these trials again."
                }
                (table(&reasons))
            }
        }
    }
}

fn evidence(run: &Run<'_>) -> Markup {
    let content = html! {
        p.note {
            "Every check of every trial, with the numbers that decided it, is under "
            a href="#cells" { "Cells and commands" } "."
        }
        (table(&tables::evidence(run)))
    };
    section("evidence", "Evidence", content)
}

fn warnings(run: &Run<'_>) -> Markup {
    let found = &run.results.warnings;
    let content = html! {
        ul.warnings {
            @for warning in found {
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
    };
    if found.is_empty() {
        html! {}
    } else {
        section("warnings", "Before you use these figures", content)
    }
}

fn environment(run: &Run<'_>) -> Markup {
    section(
        "environment",
        "Environment",
        table(&tables::environment(run)),
    )
}

fn method(run: &Run<'_>) -> Markup {
    let list = |items: &[(&str, &str)]| {
        html! {
            dl.prose {
                @for (name, text) in items { div { dt { (name) } dd { (rich(text)) } } }
            }
        }
    };
    html! {
        (section("method", "Method", list(&prose::method(run))))
        (section("limits", "What these figures do not mean", list(&prose::limits(run))))
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
