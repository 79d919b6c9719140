//! What more of something brings, and what is claimed, in every document.

use crate::fixture;
use crate::html::{parse, select, text};
use crate::machine::{json, rows};
use scraper::Selector;

#[test]
fn the_stop_is_named_in_words_in_every_document() {
    let journal = fixture::scaling();
    let documents = report::build(&journal);
    let shown = crate::terminal(&journal, None, 140, false);
    for document in [
        &documents.html,
        &documents.markdown,
        &documents.json,
        &shown,
    ] {
        for words in [
            "stops scaling at 14",
            "stops scaling at 4 workers; falls from 8 on",
        ] {
            assert!(document.contains(words), "{words}");
        }
        assert!(document.contains("is capped: in"));
    }
}

#[test]
fn a_chart_shows_points_and_their_stop_for_each_measurement_of_three_numbers() {
    let (_, page) = parse(&fixture::scaling());
    let charts = select(&page, "#scaling figure svg");
    // Two measurements by workers; two numbers of cores make no curve.
    assert_eq!(charts.len(), 2);
    let count = |class: &str| {
        let selector = Selector::parse(class).unwrap();
        charts[0].select(&selector).count()
    };
    // A mark for each figure, and one for each device in the legend.
    assert_eq!(count("path"), 10 + 2);
    assert_eq!(count("polyline.ideal"), 2);
    assert_eq!(count("line.stop"), 2);
    // The one that is capped is described by no law.
    assert_eq!(count("polyline.fit"), 1);
    let words = text(charts[0]);
    assert!(
        words.contains("20: 3.31 Gbit/s; stops scaling at 14"),
        "{words}"
    );
    assert_eq!(["path.fill-1", "path.fill-7"].map(count), [6 + 1, 4 + 1]);
}

#[test]
fn series_and_claims_are_in_the_result_for_machines() {
    let result = json(&fixture::scaling());
    let series = result["scalings"].as_array().unwrap();
    let ours = series
        .iter()
        .find(|found| found["axis"] == "workers" && found["dut"] == "cipherbench")
        .unwrap();
    assert_eq!((&ours["stop_n"], &ours["base_n"]), (&14.into(), &1.into()));
    assert_eq!(ours["cap"]["from_n"], 14);
    assert_eq!(ours["fits"].as_array().unwrap().len(), 2);
    let verdicts: Vec<_> = result["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| claim["verdict"].as_str().unwrap().to_owned())
        .collect();
    let (met, missed, open) = ("met", "not-met", "not-decided");
    assert_eq!(verdicts, [missed, met, open, met, missed, open, open, met]);
}

#[test]
fn every_claim_stands_with_source_and_both_conditions() {
    let journal = fixture::scaling();
    let (_, page) = parse(&journal);
    let section: String = select(&page, "#claims").into_iter().map(text).collect();
    assert_eq!(section.matches("data sheet X, 2025").count(), 8);
    assert_eq!(section.matches("not stated").count(), 7);
    assert!(
        section.contains("packets of 1500\u{a0}B, 14 cores of 2.7 GHz")
            || section.contains("packets of 1500 B, 14 cores of 2.7 GHz")
    );
    assert!(section.contains("14 workers per gateway"));
    let shown = crate::terminal(&journal, None, 260, false);
    assert_eq!(shown.matches("data sheet X, 2025").count(), 8);
    // The first screen has the source in the reason.
    let brief = crate::brief(&journal, None, 500, false);
    assert!(brief.contains("Claimed by data sheet X, 2025."), "{brief}");
}

#[test]
fn csv_has_workers_and_claims_with_each_trial_of_their_cell() {
    let rows = rows(&report::build(&fixture::scaling()).csv);
    let column = |key: &str| rows[0].iter().position(|found| found == key).unwrap();
    let (cell, workers) = (column("cell"), column("dut_workers"));
    let (claims, verdicts) = (column("claims"), column("claim_verdicts"));
    let of = |id: &str| rows.iter().find(|row| row[cell] == id).unwrap();
    let w14 = of("tcp/mtu=1500/cores=1/offloads=off/cipherbench-w14");
    assert_eq!(w14[workers], "14");
    assert_eq!(w14[verdicts], "met; not decided");
    assert!(w14[claims].starts_with("tcp: at least 3 Gbit/s payload by data sheet X, 2025; "));
    let direct = of("tcp/mtu=1500/cores=1/offloads=off/direct");
    assert!(direct[workers].is_empty() && direct[claims].is_empty());
}

#[test]
fn a_run_without_series_or_claims_has_no_such_section() {
    let journal = fixture::tunnels(&["direct", "openvpn"]);
    let (_, page) = parse(&journal);
    assert!(select(&page, "#scaling, #claims").is_empty());
}
