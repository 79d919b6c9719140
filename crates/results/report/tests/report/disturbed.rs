//! What documents say of loads under which something happens to a device.

use crate::fixture;
use crate::golden::assert_golden;
use crate::html::{parse, select, text};
use crate::machine::{json, rows};

/// Texts of the cells of the first table whose caption begins so, its head first. A label that
/// spans rows is in each of them.
fn table(page: &scraper::Html, caption: &str) -> Vec<Vec<String>> {
    let selector = |text| scraper::Selector::parse(text).unwrap();
    let (title, row, cell) = (
        selector("caption .title"),
        selector("tr"),
        selector("th, td"),
    );
    let all = select(page, "table");
    let found = all.iter().find(|table| {
        let title = table.select(&title).next().map(text);
        title.is_some_and(|title| title.starts_with(caption))
    });
    let found = found.unwrap_or_else(|| panic!("no table {caption}"));
    let cells = |row: scraper::ElementRef<'_>| row.select(&cell).map(text).collect();
    let mut rows: Vec<Vec<String>> = found.select(&row).map(cells).collect();
    for at in 1..rows.len() {
        let spanned = rows[0].len() - rows[at].len();
        let labels: Vec<String> = rows[at - 1][..spanned].to_vec();
        rows[at].splice(..0, labels);
    }
    rows
}

/// The rows of one setting, with the head.
fn of_setting(table: Vec<Vec<String>>, setting: &str) -> Vec<Vec<String>> {
    let mut rows = table.into_iter();
    let head = rows.next();
    let own = rows.filter(|row| row[0] == setting);
    head.into_iter().chain(own).collect()
}

/// The figure of a device and column.
fn figure(table: &[Vec<String>], device: &str, column: &str) -> String {
    let at = table[0].iter().position(|title| title == column);
    let at = at.unwrap_or_else(|| panic!("no column {column} in {:?}", table[0]));
    let found = table
        .iter()
        .find(|cells| cells.iter().any(|cell| cell == device));
    found.unwrap_or_else(|| panic!("no row {device}"))[at].clone()
}

#[test]
fn the_text_documents_are_as_they_were() {
    let journal = fixture::disturbed();
    let path = |name: &str| format!("crates/results/report/tests/golden/{name}");
    assert_golden(&path("disturbed.md"), &report::build(&journal).markdown);
    let terminal = crate::terminal(&journal, None, 100, false);
    assert_golden(&path("disturbed.txt"), &terminal);
}

#[test]
fn each_section_has_its_charts_and_is_in_the_contents() {
    let (_, page) = parse(&fixture::disturbed());
    for (section, charts) in [
        ("rekeys", 1),
        ("failover", 6),
        ("reset", 2),
        ("setup", 2),
        ("hostile", 2),
    ] {
        let found = select(&page, &format!("#{section} figure svg"));
        assert_eq!(found.len(), charts, "{section}");
        assert_eq!(select(&page, &format!("nav a[href='#{section}']")).len(), 1);
    }
}

#[test]
fn an_outage_without_an_end_has_no_longest_and_is_named_in_a_table_of_its_own() {
    let (_, page) = parse(&fixture::disturbed());
    let outages = of_setting(table(&page, "Failover"), "Failover, encryptor killed");
    assert_eq!(figure(&outages, "strongswan", "Longest"), "no end");
    assert_eq!(figure(&outages, "strongswan", "Without recovery"), "1 of 9");
    assert_eq!(figure(&outages, "boringtun", "Without recovery"), "0");
    let named = table(&page, "Failover, encryptor killed: without recovery");
    assert_eq!(named[1][..3], ["strongswan", "crash no. 3", "2"]);
    // The repeat in which it happened is the one that is drawn.
    let charts = select(&page, "#failover figure svg");
    let drawn = charts.iter().map(|chart| text(*chart)).collect::<String>();
    assert!(drawn.contains("strongswan, repeat 2") && drawn.contains("boringtun, repeat 1"));
    assert!(drawn.contains("1 of 9 no end"));
}

#[test]
fn resets_whose_two_times_differ_are_marked_and_listed() {
    let (_, page) = parse(&fixture::disturbed());
    let resets = table(&page, "Reset, process killed, frames");
    assert_eq!(figure(&resets, "cipherbench", "Differing"), "0");
    assert_eq!(figure(&resets, "boringtun", "Differing"), "9 of 9");
    assert_eq!(figure(&resets, "boringtun", "Without recovery"), "0");
    let listed = table(&page, "Reset, process killed: the two methods differ");
    assert_eq!(listed.len(), 1 + 9);
    assert_eq!(listed[1][..3], ["boringtun", "reset no. 1", "1"]);
    let summary = text(select(&page, "#summary")[0]);
    assert!(
        summary.contains("the methods differ in 9 of 9"),
        "{summary}"
    );
}

#[test]
fn delivered_hostile_packets_are_in_table_chart_headline_and_warning() {
    let (_, page) = parse(&fixture::disturbed());
    let shares = table(&page, "Hostile packets: forwarded");
    let shares = of_setting(shares, "Load beside replayed packets");
    assert_eq!(figure(&shares, "strongswan", "Came through"), "36");
    assert_eq!(figure(&shares, "cipherbench", "Came through"), "0");
    assert_eq!(figure(&shares, "cipherbench", "Suffers from"), "200 %");
    let cells = select(&page, "#hostile td.word");
    assert!(cells.iter().any(|cell| text(*cell) == "36"));
    let charts = select(&page, "#hostile figure svg");
    assert!(text(charts[0]).contains("36 came through"));
    let summary = text(select(&page, "#summary")[0]);
    assert!(
        summary.contains("36 hostile packets CAME THROUGH"),
        "{summary}"
    );
    let warnings = text(select(&page, "#warnings")[0]);
    assert!(
        warnings
            .trim_start()
            .contains("Hostile packets came through")
    );
}

#[test]
fn a_load_that_suffers_without_hostile_packets_has_no_share() {
    let (_, page) = parse(&fixture::disturbed());
    let shares = table(&page, "Hostile packets: forwarded");
    let shares = of_setting(shares, "Load beside forged packets (bad ICV)");
    assert_eq!(figure(&shares, "strongswan", "Suffers from"), "without any");
    let warnings = text(select(&page, "#warnings")[0]);
    assert!(warnings.contains("before anything happened"), "{warnings}");
}

#[test]
fn one_of_the_five_kinds_of_figures_is_in_each_cell_for_machines() {
    let result = json(&fixture::disturbed());
    for cell in result["cells"].as_array().unwrap() {
        let found = &cell["frames"]["disturbance"];
        let kinds = ["rekey", "failover", "reset", "setup", "hostile"];
        let there = kinds.map(|kind| !found[kind].is_null());
        let own = kinds.map(|kind| cell["protocol"] == kind);
        assert_eq!(there, own, "{}", cell["id"]);
        let controlled = own[0] || own[4];
        assert_eq!(!found["quiet"].is_null(), controlled, "{}", cell["id"]);
        assert!(cell["verdict"].is_null());
    }
}

#[test]
fn csv_has_a_row_per_frame_trial_and_one_per_event() {
    let rows = rows(&report::build(&fixture::disturbed()).csv);
    let column = |key: &str| rows[0].iter().position(|found| found == key).unwrap();
    let (cell, repeat, kind) = (column("cell"), column("repeat"), column("figure"));
    let of = |id: &str| -> Vec<&Vec<String>> {
        let own = |row: &&Vec<String>| row[cell] == id && row[repeat] == "2";
        rows.iter().filter(own).collect()
    };
    let rekey = of("rekey/frame=512/direction=both/strongswan");
    let kinds: Vec<&str> = rekey.iter().map(|row| row[kind].as_str()).collect();
    assert_eq!(kinds[..3], ["quiet", "disturbed", "event"]);
    assert_eq!(kinds.len(), 2 + 24);
    assert!(!rekey[1][column("latency_p99_ns")].is_empty());
    let crash = of("failover/frame=512/direction=both/crash/strongswan");
    let events: Vec<(&str, bool)> = crash[1..]
        .iter()
        .map(|row| {
            let endless = row[column("event_outage_ns")].is_empty();
            (row[column("event")].as_str(), endless)
        })
        .collect();
    let mended = ("restart", false);
    let broke = ("crash", true);
    assert_eq!(
        events,
        [broke, mended, broke, mended, broke, ("restart", true)]
    );
    let hostile = of("hostile/frame=512/direction=both/replay/cipherbench");
    let percents: Vec<&str> = hostile
        .iter()
        .map(|row| row[column("hostile_percent")].as_str())
        .collect();
    assert_eq!(percents, ["", "10", "50", "100", "200"]);
    for row in hostile {
        let number = |key: &str| row[column(key)].parse::<u64>().unwrap();
        let lost = number("frames_sent") - number("frames_received");
        assert_eq!(lost, number("frames_lost"));
    }
}

#[test]
fn no_cell_of_a_disturbed_plan_is_left_out_of_the_tables() {
    let journal = fixture::disturbed();
    let (_, page) = parse(&journal);
    let devices = |caption: &str| table(&page, caption).len() - 1;
    let tables = [
        ("Rekeys under load, frames", 2),
        ("Rekeys under load: loss and latency", 4),
        ("Failover", 6),
        ("Reset, process killed, frames", 3),
        ("Tunnels set up under load, frames", 3),
        ("Hostile packets: forwarded", 6),
        ("Hostile packets: loss and latency", 30),
    ];
    for (caption, rows) in tables {
        assert_eq!(devices(caption), rows, "{caption}");
    }
}
