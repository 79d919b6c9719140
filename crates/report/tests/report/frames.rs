//! What documents say of frame tests.

use crate::fixture;
use crate::html::{parse, select, text};
use crate::machine::{json, rows};
use std::collections::BTreeSet;

/// The rows of the first table whose caption begins so, each cell's text.
fn table(page: &scraper::Html, caption: &str) -> Vec<Vec<String>> {
    let all = select(page, "table");
    let found = all.iter().find(|table| {
        let title = scraper::Selector::parse("caption .title").unwrap();
        let title = table.select(&title).next().map(text).unwrap_or_default();
        title.starts_with(caption)
    });
    let found = found.unwrap_or_else(|| panic!("no table {caption}"));
    let row = scraper::Selector::parse("tr").unwrap();
    let cell = scraper::Selector::parse("th, td").unwrap();
    let cells = |row: scraper::ElementRef<'_>| row.select(&cell).map(text).collect();
    found.select(&row).map(cells).collect()
}

fn row<'t>(table: &'t [Vec<String>], label: &str) -> &'t [String] {
    let found = table.iter().find(|row| row[0].starts_with(label));
    found.unwrap_or_else(|| panic!("no row {label} in {table:?}"))
}

#[test]
fn the_vendors_table_has_a_column_per_size_and_marks_what_is_not_the_devices_limit() {
    let (_, page) = parse(&fixture::frame_tests());
    let found = table(&page, "Throughput by frame size in kpps, both");
    let head = [
        "Device",
        "64 B",
        "256 B",
        "512 B",
        "1024 B",
        "1518 B",
        "imix",
        "Mean frame rate",
    ];
    assert_eq!(found[0], head);
    let ours = row(&found, "cipherbench");
    assert_eq!(ours[1], "402 ± 1");
    assert_eq!((ours[3].as_str(), ours[6].as_str()), ("invalid", "none"));
    assert!(ours[4].ends_with(" L"), "{ours:?}");
    // The mean of 64 and 256 B alone: the other sizes are told in the note.
    assert_eq!(ours[7], "401 kpps");
    assert!(row(&found, "router")[1].ends_with(" T"), "{found:?}");
    let null = row(&found, "null");
    assert_eq!(null[0], "null (control: no encryption)");
    assert!(
        null[3].ends_with(" ?"),
        "two bands are inconclusive: {null:?}"
    );
    assert_eq!(row(&found, "straight")[0], "straight (tester alone)");
}

#[test]
fn every_verdict_has_its_sentence_and_every_figure_a_verdict() {
    let journal = fixture::frame_tests();
    let result = json(&journal);
    let mut limits = BTreeSet::new();
    for cell in result["cells"].as_array().unwrap() {
        assert_eq!(
            cell["frames"].is_null(),
            cell["verdict"].is_null(),
            "{}",
            cell["id"]
        );
        if let Some(reason) = cell["verdict"]["reason"].as_str() {
            assert!(reason.len() > 30 && reason.ends_with('.'), "{reason}");
            limits.insert(cell["verdict"]["limit"].as_str().unwrap().to_owned());
        }
    }
    let all = [
        "dut-limited",
        "inconclusive",
        "link-limited",
        "tester-limited",
    ];
    assert_eq!(limits, all.map(str::to_owned).into());
    let (_, page) = parse(&journal);
    let told = table(&page, "What limits each figure");
    assert_eq!(
        told.len() - 1,
        journal.header.plan.cells.len() - 1,
        "all but the invalid one"
    );
}

#[test]
fn calibration_ports_goals_and_mixes_are_shown() {
    let (_, page) = parse(&fixture::frame_tests());
    let groups: BTreeSet<String> = table(&page, "Calibration")
        .into_iter()
        .skip(1)
        .map(|row| row[0].clone())
        .collect();
    assert_eq!(groups.len(), 12);
    let ports = table(&page, "Ports of the tester");
    let receiver = row(&ports, "receiver");
    assert_eq!(receiver[1], "AF_PACKET");
    assert!(receiver[5].starts_with("AF_XDP needs"), "{receiver:?}");
    assert_eq!(row(&table(&page, "Search goals"), "pdr")[1], "0.5 %");
    let imix = table(&page, "Mixes of frame sizes");
    assert_eq!(imix[1][1..], ["7×64, 4×594, 1×1518", "361.8 B"]);
}

#[test]
fn too_few_repeats_for_an_interval_are_said_where_it_would_be() {
    let mut journal = fixture::frame_tests();
    journal.header.plan.repeats = 3;
    journal.trials.retain(|trial| trial.repeat <= 3);
    let (_, page) = parse(&journal);
    let bounds = table(&page, "Relevant bounds, both");
    let cell = &bounds[1][5];
    assert_eq!(cell, "n = 3: too few for an interval", "{:?}", bounds[1]);
}

#[test]
fn each_chart_of_frames_has_a_table_beside_it() {
    let (_, page) = parse(&fixture::frame_tests());
    for (section, charts) in [("frames", 2), ("frame-loss", 1), ("frame-latency", 1)] {
        let found = select(&page, &format!("#{section} figure svg"));
        assert_eq!(found.len(), charts, "{section}");
        assert!(!select(&page, &format!("#{section} table")).is_empty());
    }
}

#[test]
fn csv_has_a_row_per_goal_load_and_figure() {
    let journal = fixture::frame_tests();
    let rows = rows(&report::build(&journal).csv);
    let column = |key: &str| rows[0].iter().position(|found| found == key).unwrap();
    let (cell, repeat, figure) = (column("cell"), column("repeat"), column("figure"));
    let of = |id: &str| -> Vec<&Vec<String>> {
        let own = |row: &&Vec<String>| row[cell] == id && row[repeat] == "3";
        rows.iter().filter(own).collect()
    };
    let kinds = |id: &str| -> Vec<&str> { of(id).iter().map(|row| row[figure].as_str()).collect() };
    let throughput = "throughput/frame=64/direction=both/cipherbench";
    assert_eq!(kinds(throughput), ["goal", "goal"]);
    let (lower, upper) = (column("lower_frames_per_s"), column("upper_frames_per_s"));
    let number = |row: &[String], at: usize| row[at].parse::<u64>().unwrap();
    for row in of(throughput) {
        assert!(number(row, lower) < number(row, upper));
        assert_eq!(row[column("verdict")], "dut-limited");
    }
    let latency = kinds("latency/frame=64/direction=both/null");
    assert_eq!(
        latency,
        ["goal", "goal", "latency", "latency", "latency", "latency"]
    );
    assert_eq!(
        kinds("back-to-back/frame=64/direction=both/null"),
        ["burst"]
    );
    assert_eq!(
        kinds("recovery/frame=64/direction=both/null"),
        ["goal", "goal", "recovery"]
    );
    let loads = of("loss-curve/frame=64/direction=both/null");
    assert_eq!(loads.len(), 8);
    for row in loads {
        let [sent, received, lost] =
            ["frames_sent", "frames_received", "frames_lost"].map(|key| number(row, column(key)));
        assert_eq!(sent, received + lost);
    }
    // The invalid trial has its row and no figure.
    assert_eq!(
        kinds("throughput/frame=512/direction=both/cipherbench"),
        [""]
    );
    // An irregular goal leaves its bound empty.
    let irregular = of("throughput/frame=imix/direction=both/cipherbench");
    assert_eq!(
        (irregular[0][lower].as_str(), irregular[1][lower].is_empty()),
        ("", false)
    );
}
