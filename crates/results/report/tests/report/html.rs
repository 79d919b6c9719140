//! The HTML report, read back by a strict parser.

use crate::fixture;
use base64::Engine;
use journal::Journal;
use scraper::{Html, Selector};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

pub(crate) fn parse(journal: &Journal) -> (String, Html) {
    let text = report::build(journal).html;
    let page = Html::parse_document(&text);
    assert_eq!(
        page.errors,
        Vec::<String>::new(),
        "the page is not well-formed"
    );
    (text, page)
}

pub(crate) fn select<'p>(page: &'p Html, selector: &str) -> Vec<scraper::ElementRef<'p>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

pub(crate) fn text(element: scraper::ElementRef<'_>) -> String {
    element.text().collect::<String>()
}

fn samples() -> Vec<Journal> {
    vec![
        fixture::quick(),
        fixture::troubled(),
        fixture::in_progress(),
        fixture::empty(),
        fixture::large(),
        fixture::scaling(),
        fixture::cards(),
        fixture::hostile(),
        fixture::frame_tests(),
        fixture::hostile_frames(),
        fixture::peers(5),
        fixture::peers(1),
        fixture::suites(None),
        fixture::only(true),
        fixture::only(false),
        fixture::limits(),
        fixture::monitored(),
        fixture::services(),
        fixture::disturbed(),
        fixture::soak(),
        fixture::http(),
        fixture::insecure(),
    ]
}

#[test]
fn every_report_is_well_formed() {
    for journal in samples() {
        let (_, page) = parse(&journal);
        assert_eq!(select(&page, "h1").len(), 1);
    }
}

/// Spans included, each row has as many cells as the table has columns: otherwise its figures stand
/// below the headings of other columns.
#[test]
fn each_cell_is_below_its_heading() {
    for journal in samples() {
        let (_, page) = parse(&journal);
        for table in select(&page, "table") {
            let mut width = None;
            // For how many further rows the cell of each column stands.
            let mut spanned: Vec<usize> = Vec::new();
            for row in within(table, "tr") {
                let (mut cells, mut at) = (within(row, "td, th").into_iter(), 0);
                loop {
                    if let Some(rows) = spanned.get_mut(at).filter(|rows| **rows > 0) {
                        *rows -= 1;
                        at += 1;
                        continue;
                    }
                    let Some(cell) = cells.next() else { break };
                    for _ in 0..span(cell, "colspan") {
                        spanned.resize(spanned.len().max(at + 1), 0);
                        spanned[at] = span(cell, "rowspan") - 1;
                        at += 1;
                    }
                }
                let width = *width.get_or_insert(at);
                assert_eq!(at, width, "{}", row.html());
            }
            assert!(spanned.iter().all(|rows| *rows == 0), "{}", table.html());
        }
    }
}

fn within<'p>(element: scraper::ElementRef<'p>, selector: &str) -> Vec<scraper::ElementRef<'p>> {
    element
        .select(&Selector::parse(selector).unwrap())
        .collect()
}

/// Rows or columns of a cell.
fn span(cell: scraper::ElementRef<'_>, name: &str) -> usize {
    cell.value().attr(name).map_or(1, |it| it.parse().unwrap())
}

#[test]
fn the_file_needs_no_other() {
    let (text, page) = parse(&fixture::quick());
    // Links stay in the page, and the only addresses with a scheme are names of formats.
    for link in select(&page, "[href], [src]") {
        let target = link
            .value()
            .attr("href")
            .or_else(|| link.value().attr("src"))
            .unwrap();
        assert!(target.starts_with('#'), "{target}");
    }
    for forbidden in ["link", "img", "iframe", "object", "embed", "form"] {
        assert!(select(&page, forbidden).is_empty(), "<{forbidden}>");
    }
    let without_names = text.replace("http://www.w3.org/2000/svg", "");
    for scheme in ["http:", "https:", "//", "@import"] {
        assert!(!without_names.contains(scheme), "{scheme}");
    }
    let styles = select(&page, "style")
        .into_iter()
        .map(self::text)
        .collect::<String>();
    assert!(!styles.contains("url("));
}

#[test]
fn links_lead_somewhere_and_ids_are_unique() {
    let (_, page) = parse(&fixture::large());
    let ids: Vec<&str> = select(&page, "[id]")
        .into_iter()
        .filter_map(|found| found.value().id())
        .collect();
    let unique: BTreeSet<&str> = ids.iter().copied().collect();
    assert_eq!(unique.len(), ids.len(), "an id is used twice");
    for link in select(&page, "a") {
        let target = link.value().attr("href").unwrap().trim_start_matches('#');
        assert!(unique.contains(target), "no #{target}");
    }
    for svg in select(&page, "svg") {
        for name in svg.value().attr("aria-labelledby").unwrap().split(' ') {
            assert!(unique.contains(name), "no #{name}");
        }
    }
}

#[test]
fn every_section_and_every_fold_has_content() {
    let (_, page) = parse(&fixture::quick());
    for found in select(&page, "section, details.more") {
        let has = |name| {
            found
                .select(&Selector::parse(name).unwrap())
                .next()
                .is_some()
        };
        assert!(has("table, svg, p, dl, ul"), "{}", text(found));
    }
    let links = select(&page, "nav a");
    let links: Vec<_> = links
        .iter()
        .filter_map(|link| link.value().attr("href"))
        .collect();
    assert!(links.contains(&"#tcp"), "{links:?}");
    for absent in ["#monitored", "#captures", "#published"] {
        assert!(
            !links.contains(&absent),
            "{absent}: nothing of the kind was measured"
        );
    }
}

#[test]
fn every_chart_is_described_in_words_and_has_a_table_beside_it() {
    let (_, page) = parse(&fixture::quick());
    let charts = select(&page, "figure svg");
    // Bars, timeline; datagrams, timeline; latency; CPU of three protocols.
    assert_eq!(charts.len(), 8);
    for chart in charts {
        let of = |name| {
            chart
                .select(&Selector::parse(name).unwrap())
                .next()
                .map(text)
                .unwrap()
        };
        assert!(
            of("title").len() > 10 && of("desc").len() > 40,
            "{}",
            of("title")
        );
    }
    for section in select(&page, "section") {
        let has = |name| {
            section
                .select(&Selector::parse(name).unwrap())
                .next()
                .is_some()
        };
        assert!(!has("svg") || has("table"), "a chart without its table");
    }
}

#[test]
fn charts_stand_alone_as_xml() {
    let pages = [fixture::hostile(), fixture::hostile_frames()];
    let html = pages.map(|journal| report::build(&journal).html).concat();
    let mut charts = 0;
    for chart in html.split("<svg").skip(1) {
        let chart = format!("<svg{}</svg>", chart.split("</svg>").next().unwrap());
        roxmltree::Document::parse(&chart).unwrap();
        charts += 1;
    }
    assert!(charts > 4, "{charts}");
}

#[test]
fn whatever_a_journal_holds_is_text() {
    for journal in [fixture::hostile(), fixture::hostile_frames()] {
        let (text, page) = parse(&journal);
        assert_eq!(text.matches("<script").count(), 1, "markup got through");
        assert!(!text.contains('\x1b') && text.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
        assert_eq!(select(&page, "script").len(), 1);
    }
}

/// The page's only script is that of the program, and the page's policy lets a browser run no other
/// one: not one that a journal's text might smuggle in, and no handler in an attribute.
#[test]
fn no_script_can_run_but_our_own() {
    let journals = [
        fixture::hostile(),
        fixture::hostile_frames(),
        fixture::quick(),
    ];
    let own = include_str!("../../src/documents/html/page.js");
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(own));
    for journal in journals {
        let (_, page) = parse(&journal);
        let scripts = select(&page, "script");
        assert_eq!(scripts.len(), 1);
        assert_eq!(text(scripts[0]), own);
        assert_eq!(scripts[0].value().attrs().count(), 0);
        let policies = select(&page, "meta[http-equiv='Content-Security-Policy']");
        assert_eq!(policies.len(), 1);
        let policy = policies[0].value().attr("content").unwrap();
        let scripts: Vec<&str> = policy
            .split("; ")
            .filter(|part| part.starts_with("script-src"))
            .collect();
        assert_eq!(scripts, [format!("script-src 'sha256-{digest}'")]);
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        for element in select(&page, "*") {
            let mut names = element.value().attrs().map(|(name, _)| name);
            assert!(!names.any(|name| name.starts_with("on")), "a handler");
        }
    }
}

#[test]
fn a_cell_without_a_figure_says_so_in_its_place_and_why_once() {
    let (_, page) = parse(&fixture::troubled());
    let reasons: Vec<String> = select(&page, "#tcp td.reason")
        .into_iter()
        .map(text)
        .collect();
    assert_eq!(reasons, ["failed"]);
    // The valid repeats of a cell with an invalid one have their figure, with the check beside it.
    let figures: String = select(&page, "#tcp td").into_iter().map(text).collect();
    assert!(figures.contains("[2 of 3: no-clear-text]"), "{figures}");
    let trouble: String = select(&page, "#trouble").into_iter().map(text).collect();
    assert!(
        trouble.contains("no-clear-text failed: 212 frames ")
            && trouble.contains("the device under test cipherbench died"),
        "{trouble}"
    );
    // The explanation comes first, and the counters are folded.
    let folded: Vec<String> = select(&page, "#trouble details.counters")
        .into_iter()
        .map(text)
        .collect();
    assert_eq!(
        folded,
        [
            "Countersthe stations' marker was seen in clear in 212 of 1000 frames between the gateways"
        ]
    );
    assert!(select(&parse(&fixture::quick()).1, "#trouble").is_empty());
}

#[test]
fn the_headline_says_what_the_device_came_to() {
    let (_, page) = parse(&fixture::quick());
    let facts: Vec<String> = select(&page, "#summary dd strong")
        .into_iter()
        .map(text)
        .collect();
    assert_eq!(facts.len(), 4, "{facts:?}");
    assert!(facts[0].ends_with("× direct"), "{facts:?}");
    let summary = select(&page, "#summary")
        .into_iter()
        .map(text)
        .collect::<String>();
    assert!(summary.contains("All 42 trials were measured"), "{summary}");
}

#[test]
fn commands_and_every_check_are_in_the_page() {
    let journal = fixture::quick();
    let (_, page) = parse(&journal);
    let cells = select(&page, "#cells details.cell");
    assert_eq!(cells.len(), journal.header.plan.cells.len());
    let first = text(cells[1]);
    for wanted in [
        "iperf3 -c 10.77.2.2",
        "no-clear-text",
        "esp-flows",
        "0x10000001",
        "gw1/engine",
    ] {
        assert!(first.contains(wanted), "{wanted} is not in: {first}");
    }
    let json: serde_json::Value = serde_json::from_str(&report::build(&journal).json).unwrap();
    let trials = json["trials"].as_array().unwrap().iter();
    let made: usize = trials
        .map(|trial| trial["checks"].as_array().unwrap().len())
        .sum();
    assert_eq!(select(&page, "#cells ul.checks li").len(), made);
}
