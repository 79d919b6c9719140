//! What a run knows to its own disadvantage stands in every document.

use crate::fixture;
use crate::machine::rows;
use journal::Journal;
use journal::record::*;
use plan::{Published, PublishedAt, PublishedUnit, RateBasis, RateDirection, RateKind, RateLayer};
use serde_json::{Value, json};

/// A published figure of TCP, which these cells measure.
fn published(direction: RateDirection, at: Option<PublishedAt>, cells: Vec<String>) -> Published {
    Published {
        source: "a report".into(),
        system: "a box".into(),
        what: "TCP".into(),
        value: 419_000_000,
        unit: PublishedUnit::BitsPerS,
        counts: Some(RateBasis {
            kind: RateKind::Goodput,
            layer: RateLayer::Payload,
            direction,
        }),
        at,
        cells,
    }
}

/// A run of every kind, disturbed in the trials of one cell of each.
fn disturbed() -> [(Journal, &'static str, Vec<&'static str>); 2] {
    let mut quick = fixture::quick();
    for trial in &mut quick.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else {
            continue;
        };
        let encrypts = !measured.evidence.dut_counters.is_empty();
        if measured.transfer().is_some() && encrypts && trial.repeat == 2 {
            measured.cpu.foreign_ns = measured.cpu.wall_ns * 92 / 100;
            measured.evidence.lost_at = vec![LostAt {
                places: vec![PathPlace::CipherLink],
                before: PathCount {
                    at: "gw1/cipher_tx_packets".into(),
                    packets: 20_000,
                },
                behind: PathCount {
                    at: "gw2/cipher_rx_packets".into(),
                    packets: 19_801,
                },
                dropped: 0,
            }];
        }
    }
    let mut frames = fixture::frame_tests();
    for trial in &mut frames.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else {
            continue;
        };
        let Figures::Frames(found) = &mut measured.figures else {
            continue;
        };
        for trial in found.trials.iter_mut().filter(|trial| trial.load > 0) {
            trial.late_ns_max = 293_000_000;
            trial.late_frames = 57_571;
        }
    }
    [
        (
            quick,
            "machine-taken",
            vec![
                "92 % of one core",
                "between gw1 and gw2: 199 of 20000 (20000 by gw1/cipher_tx_packets, 19801 by gw2/cipher_rx_packets)",
            ],
        ),
        (
            frames,
            "sender-stalled",
            vec!["stood still for 293 ms", "57571 of "],
        ),
    ]
}

/// A document's words, without the breaks and marks that each sets in its own way.
fn plain(document: &str) -> String {
    let document = document
        .replace("<code>", "")
        .replace("</code>", "")
        .replace(['`', '\\'], "")
        .replace('\u{a0}', " ");
    document.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn every_document_has_the_words_of_every_disturbance() {
    for (journal, kind, wanted) in disturbed() {
        let documents = report::build(&journal);
        let terminal = crate::terminal(&journal, None, 4_000, false);
        let all = [
            ("HTML", &documents.html),
            ("Markdown", &documents.markdown),
            ("JSON", &documents.json),
            ("terminal", &terminal),
        ];
        for (name, document) in all {
            let document = plain(document);
            for words in &wanted {
                assert!(document.contains(words), "{name}: {words}");
            }
        }
        let result: Value = serde_json::from_str(&documents.json).unwrap();
        let warnings = result["warnings"].as_array().unwrap();
        let own = warnings.iter().find(|found| found["kind"] == kind);
        let cells = own.unwrap()["cells"].as_array().unwrap();
        assert!(!cells.is_empty());
        // CSV has the kinds, in the rows of these cells.
        let rows = rows(&documents.csv);
        let column = |key: &str| rows[0].iter().position(|found| found == key).unwrap();
        let (cell, warned) = (column("cell"), column("warnings"));
        for row in &rows[1..] {
            let is_about = cells.iter().any(|id| *id == row[cell]);
            let says = row[warned].split(' ').any(|word| word == kind);
            assert_eq!(says, is_about, "{row:?}");
        }
    }
}

#[test]
fn a_published_sum_beside_one_direction_is_refused_with_the_reason() {
    let mut journal = fixture::quick();
    let plan = &mut journal.header.plan;
    let cells: Vec<String> = plan
        .cells
        .iter()
        .filter(|cell| cell.measurement.name() == "tcp")
        .map(|cell| cell.id.clone())
        .collect();
    let figure = |direction| published(direction, None, cells.clone());
    plan.published = vec![
        figure(RateDirection::OneWay),
        figure(RateDirection::SumOfBoth),
    ];
    let documents = report::build(&journal);
    let words = "not comparable: published is goodput of payload, sum of both directions; \
                 measured is goodput of payload, one direction";
    for document in [&documents.html, &documents.markdown] {
        assert!(plain(document).contains(words));
    }
    let result: Value = serde_json::from_str(&documents.json).unwrap();
    let schema: Value = serde_json::from_str(&report::json_schema()).unwrap();
    assert!(
        jsonschema::validator_for(&schema)
            .unwrap()
            .is_valid(&result)
    );
    for one in result["published"].as_array().unwrap() {
        let is_sum = one["counts"] == "goodput of payload, sum of both directions";
        assert_eq!(one["ratio"].is_null(), is_sum, "{one}");
        assert_eq!(one["refused"].is_null(), !is_sum, "{one}");
    }
}

#[test]
fn a_published_table_has_the_measured_figure_beside_each_and_the_reason_without_a_ratio() {
    let mut journal = fixture::quick();
    let plan = &mut journal.header.plan;
    let cell = plan.cells.iter().find(|it| it.measurement.name() == "tcp");
    let cell = cell.unwrap().id.clone();
    let figure = |row: &str, direction| {
        let at = PublishedAt {
            table: "1".into(),
            row: row.into(),
            column: "rate".into(),
        };
        published(direction, Some(at), vec![cell.clone()])
    };
    plan.published = vec![
        figure("1", RateDirection::OneWay),
        figure("2", RateDirection::SumOfBoth),
    ];
    let printed =
        |text: &str, unit: &str, scale: u64| json!({ "text": text, "unit": unit, "scale": scale });
    let row = |name: &str| {
        let cells = [printed("419", "Mbit/s", 1_000_000), printed("25", "%", 1)];
        json!({ "name": name, "cells": cells })
    };
    let rows = ["1", "2", "4"].map(row);
    let table = json!({
        "id": "1",
        "title": "a box",
        "rows_by": "cores",
        "elsewhere": [["load", "its load is `elsewhere`"]],
        "columns": ["rate", "load"],
        "rows": rows,
    });
    let published = json!({ "source": "a report", "short": true, "tables": [table] });
    plan.reports = vec![serde_json::from_value(published).unwrap()];
    let documents = report::build(&journal);
    assert!(
        documents
            .markdown
            .contains("| Cores | Measured here | rate | load |")
    );
    let cells = |row: &str| {
        let mut lines = documents.markdown.lines();
        let line =
            lines.find(|line| line.starts_with(&format!("| {row} |")) && line.contains("419"));
        let cells = line.unwrap().split(" | ").map(str::to_owned);
        let figures = cells
            .skip(2)
            .map(|cell| cell.trim_end_matches(" |").to_owned());
        figures.collect::<Vec<_>>()
    };
    let parts = |text: &str| text.split(" / ").map(str::to_owned).collect::<Vec<_>>();
    let (like, unlike, none) = (cells("1"), cells("2"), cells("4"));
    let (like_rate, unlike_rate) = (parts(&like[0]), parts(&unlike[0]));
    assert_eq!(like_rate[..2], unlike_rate[..2]);
    assert!(like_rate[1].parse::<f64>().unwrap() > 0.0, "{like:?}");
    assert!(like_rate[2].parse::<f64>().unwrap() > 0.0, "{like:?}");
    assert_eq!(unlike_rate[2], r"– \[2\]");
    assert_eq!(none[0], r"419 Mbit/s / – / – \[3\]");
    assert!(like[1].ends_with(r"– / – \[1\]"), "{like:?}");
    for reason in [
        r"\[1\] its load is `elsewhere`",
        r"\[2\] not comparable: published is goodput of payload, sum of both directions; measured is goodput of payload, one direction",
        r"\[3\] no cell of the short form measures it; the whole campaign may",
    ] {
        assert!(documents.markdown.contains(reason), "{reason}");
    }
    // The remarks of the overview too.
    assert!(
        documents
            .html
            .contains("its load is <code>elsewhere</code>")
    );
    assert!(documents.markdown.contains("| its load is `elsewhere` |"));
    // The answer first: how many figures, and how far apart.
    let ratio = &like_rate[2];
    let sentence =
        format!("Of 6 published figures 1 has a ratio, {ratio} times as high here as published.");
    assert!(documents.markdown.contains(&sentence), "{sentence}");
    let overview = format!("| 1 | a box | 6 | 1 | {ratio} |");
    assert!(documents.markdown.contains(&overview), "{overview}");
}
