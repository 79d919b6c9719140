//! What documents say of soaks, and of keys put out of step.

use crate::fixture;
use crate::golden::assert_golden;
use crate::html::{parse, select, text};
use crate::machine::{json, rows};

#[test]
fn the_text_documents_are_as_they_were() {
    let journal = fixture::soak();
    let path = |name: &str| format!("crates/results/report/tests/golden/{name}");
    assert_golden(&path("soak.md"), &report::build(&journal).markdown);
    let terminal = crate::terminal(&journal, None, 100, false);
    assert_golden(&path("soak.txt"), &terminal);
}

#[test]
fn each_section_has_its_charts_and_is_in_the_contents() {
    let (_, page) = parse(&fixture::soak());
    for (section, charts) in [("soak", 1), ("desync", 2)] {
        let found = select(&page, &format!("#{section} figure svg"));
        assert_eq!(found.len(), charts, "{section}");
        assert_eq!(select(&page, &format!("nav a[href='#{section}']")).len(), 1);
    }
    let chart = text(select(&page, "#soak figure svg")[0]);
    for words in [
        "static, repeat 1: stable",
        "pqc, repeat 1: unstable",
        "qkd, repeat 1: unstable",
        "memory of the device, MiB",
        "cores that it keeps busy",
        "latency: p50, p99, max",
    ] {
        assert!(chart.contains(words), "{words}: {chart}");
    }
}

#[test]
fn each_verdict_has_its_reasons_and_each_drift_its_interval() {
    let (_, page) = parse(&fixture::soak());
    let section = text(select(&page, "#soak")[0]);
    for words in [
        "15000 of",
        "it stalled once, first after",
        "its keys fell out of step once",
        "the device's memory drifted by",
    ] {
        assert!(section.contains(words), "{words}: {section}");
    }
    let summary = text(select(&page, "#summary")[0]);
    assert!(summary.contains("unstable"), "{summary}");
}

#[test]
fn machines_read_the_verdict_and_what_it_stands_on() {
    let result = json(&fixture::soak());
    let cells = result["cells"].as_array().unwrap();
    let verdicts: Vec<&str> = cells
        .iter()
        .filter_map(|cell| cell["frames"]["soak"]["verdict"].as_str())
        .collect();
    assert_eq!(verdicts, ["stable", "unstable", "unstable"]);
    let runs = |cell: usize| &cells[cell]["frames"]["soak"]["runs"][0];
    assert_eq!(runs(0)["memory_drift"]["judged"], "steady");
    assert_eq!(runs(1)["memory_drift"]["judged"], "drifts");
    // Its capacity falls.
    assert_eq!(runs(2)["capacity_drift"]["judged"], "drifts");
    assert_eq!(runs(2)["starts"], 2);
    assert!(runs(2)["longest_pause_ns"].as_u64() > Some(7_000_000_000_000));
    assert_eq!(runs(0)["points"], 240);
    let desync = &cells[3]["frames"]["disturbance"]["desync"];
    assert_eq!(desync["told"]["desyncs"], 3);
}

#[test]
fn csv_has_a_row_for_each_segment_and_one_for_each_point() {
    let rows = rows(&report::build(&fixture::soak()).csv);
    let column = |key: &str| rows[0].iter().position(|found| found == key).unwrap();
    let own = |row: &&Vec<String>| row[column("protocol")] == "soak" && row[column("dut")] == "pqc";
    let own: Vec<&Vec<String>> = rows.iter().filter(own).collect();
    let of = |kind: &str| -> Vec<&&Vec<String>> {
        own.iter()
            .filter(|row| row[column("figure")] == kind)
            .collect()
    };
    let (segments, points) = (of("segment"), of("point"));
    assert_eq!((segments.len(), points.len(), own.len()), (12, 240, 252));
    let sum = |rows: &[&&Vec<String>], key: &str| -> u64 {
        rows.iter()
            .map(|row| row[column(key)].parse::<u64>().unwrap())
            .sum()
    };
    for key in ["frames_intended", "frames_received", "frames_lost"] {
        assert_eq!(sum(&segments, key), sum(&points, key), "{key}");
    }
    assert_eq!(sum(&points, "device_desyncs"), 1);
    assert!(
        own.iter()
            .all(|row| row[column("soak_verdict")] == "unstable")
    );
    assert!(
        points
            .iter()
            .all(|row| !row[column("device_resident_bytes")].is_empty())
    );
}
