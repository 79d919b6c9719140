//! What the reader guesses, leaves out and reports, and the forms in which it is printed.

use lint::{Checked, Mistakes, Rule};
use serde_json::Value;

fn checked(file: &str, text: &str) -> Checked {
    lint::lint(file, text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

fn remarks(checked: &Checked) -> Vec<&str> {
    checked.remarks.iter().map(|it| it.what.as_str()).collect()
}

/// Names of rows and columns with the figures.
fn cells(file: &str, text: &str) -> Vec<String> {
    let document = lint::read(file, text).unwrap_or_else(|it| panic!("{it}\n{text}"));
    let tables = document.tables.iter();
    tables
        .flat_map(|table| table.cells())
        .map(|cell| {
            format!(
                "{} | {} | {}",
                cell.row.name,
                cell.column.name,
                cell.shown()
            )
        })
        .collect()
}

fn unreadable(file: &str, text: &str) -> Mistakes {
    lint::read(file, text).expect_err("a mistake")
}

#[test]
fn keys_of_a_bare_table_are_guessed_and_stated() {
    let text = "Throughput in Mbit/s, ten runs of 30 s:\n\n| device | 64 | 1518 |\n| --- | --- | --- |\n\
                | **A** | 49.2 | 984 |\n| B | `22.6` |\n";
    let read = checked("t.md", text);
    assert_eq!((read.tables, read.figures), (1, 3));
    assert_eq!(remarks(&read).len(), 1);
    assert!(
        remarks(&read)[0].starts_with(
            "keys of table 1 are guessed from its headings: columns = \"frame\", unit = \"Mbit/s\"; "
        ),
        "{:?}",
        remarks(&read)
    );
    let shown = lint::text(&[read], &[]);
    assert!(
        shown.contains("remark: keys of table 1 are guessed"),
        "{shown}"
    );
    assert_eq!(
        cells("t.md", text),
        [
            "A | 64 | 49.2 Mbit/s",
            "A | 1518 | 984 Mbit/s",
            "B | 64 | 22.6 Mbit/s"
        ]
    );
    // The rules apply as if the keys were stated.
    let risen = "| frame [B] | Mpps | L2 [Mbit/s] |\n| --- | --- | --- |\n| 64 | 1.000 | 612 |\n";
    let rules: Vec<Rule> = checked("t.md", risen)
        .findings
        .iter()
        .map(|it| it.rule)
        .collect();
    assert_eq!(rules, [Rule::LayersDisagree]);
    let stated = "<!-- lint\nunit = \"Mbit/s\"\ncolumns = \"frame\"\n-->\n| d | 64 |\n| --- | --- |\n| A | 1 |\n";
    assert_eq!(remarks(&checked("t.md", stated)), [""; 0]);
}

#[test]
fn tables_of_words_and_skipped_tables_are_not_read() {
    let words = "| tool | can |\n| --- | --- |\n| a | yes |\n| b | no |\n";
    let figures = "| device | 64 |\n| --- | --- |\n| A | 49.2 |\n";
    assert_eq!(checked("t.md", words).tables, 0);
    assert!(lint::read("t.md", figures).is_err());
    for skipped in [
        format!("<!-- lint skip -->\n{figures}"),
        format!("<!-- lint\nskip = true\n-->\n{figures}"),
        format!("```\n{figures}```\n"),
    ] {
        assert_eq!(checked("t.md", &skipped).tables, 0, "{skipped}");
    }
    // The one below is read.
    let two = format!("<!-- lint skip -->\n{figures}\n{figures}");
    assert!(unreadable("t.md", &two).to_string().contains("t.md:6:3"));
    let toml = "[[table]]\nid = \"1\"\nskip = true\nunit = \"Mbit/s\"\nframe = [64]\nfigures = { A = [1] }\n";
    assert_eq!(checked("t.toml", toml).tables, 0);
    let csv = "# skip = true\ndevice,64\nA,49.2\n";
    assert_eq!(checked("t.csv", csv).tables, 0);
}

#[test]
fn a_table_of_settings_is_none_of_rates() {
    let text = "| Key | Range | Default |\n| --- | --- | --- |\n| mtu | 576 B to 9216 B | 1500 B |\n\
                | time | 1 s to 1 h | 10 s |\n| rate | 1 kbit/s to 1 Tbit/s | required |\n| id | 1 to 9 | 4 |\n";
    let read = checked("t.md", text);
    assert_eq!((read.tables, read.figures), (0, 0));
    let years = "| test | 2019 | 2020 |\n| --- | --- | --- |\n| A | 3 | 4 |\n";
    let read = checked("t.md", years);
    assert_eq!(read.tables, 0);
    assert!(
        remarks(&read)[0].contains("not checked: `2019`, `2020`"),
        "{:?}",
        remarks(&read)
    );
    // With half of the cells as rates, the others are mistakes.
    let rates = "| test | result |\n| --- | --- |\n| A | 940 Mbit/s |\n| B | 930 Mbit/s |\n| C | 9,4,1 Mbit/s |\n";
    assert!(
        unreadable("t.md", rates)
            .to_string()
            .contains("`9,4,1 Mbit/s` is no figure")
    );
}

#[test]
fn columns_of_text_may_stand_anywhere() {
    let text = "# unit = \"Mbit/s\"\n# columns = \"frame\"\n\
                device,suite,64,cpu,512,remarks\n\
                A,gcm,49.2,i7-8700,383,none\nA,cbc,22.6,Cortex A53,181,hot\n";
    assert_eq!(
        cells("t.csv", text),
        [
            "A, gcm | 64 | 49.2 Mbit/s",
            "A, gcm | 512 | 383 Mbit/s",
            "A, cbc | 64 | 22.6 Mbit/s",
            "A, cbc | 512 | 181 Mbit/s",
        ]
    );
    let read = checked("t.csv", text);
    assert_eq!(
        remarks(&read),
        [
            "column `cpu` of table 1 holds text, and is not read",
            "column `remarks` of table 1 holds text, and is not read",
        ]
    );
    let text = "# columns = \"columns\"\ndevice,cores,rate [Mbit/s]\nA,4,940\n";
    let read = checked("t.csv", text);
    assert_eq!(read.figures, 1);
    assert!(remarks(&read)[0].contains("column `cores` of table 1 is a count and no rate"));
}

/// Rows of a data sheet are of many kinds: what is not read is named, and hides nothing else.
#[test]
fn what_is_not_read_of_a_data_sheet_is_named() {
    let text = "| Model | CG-100 | CG-500 |\n|---|---|---|\n| VPN | 1.2 Gbps | 650 Gbps |\n\
                | Latency | 4.2 us | 3.1 us |\n| Modes | 200 | 2,000 |\n| Suites | 700 | 3 many |\n";
    let read = checked("t.md", text);
    // VPN and latency of CG-100.
    assert_eq!(read.figures, 2);
    let remarks = remarks(&read);
    let has = |words: &str| remarks.iter().any(|remark| remark.contains(words));
    assert!(
        has("column `CG-500` of table 1 is not checked: `3 many` is no figure"),
        "{remarks:?}"
    );
    assert!(has("are not checked: 2 in `CG-100`"), "{remarks:?}");
}

#[test]
fn a_row_of_another_tunnel_is_compared_with_its_own_overhead() {
    let of = |name: &str| {
        let text = format!(
            "<!-- lint\nlink = \"1 Gbit/s\"\nlayer = \"L2\"\nencapsulation = \"WireGuard\"\n-->\n\
             | Frame size | {name} [Mbit/s] |\n|---|---|\n| 64 B | 550 |\n"
        );
        checked("t.md", &text).findings.len()
    };
    assert_eq!([of("WireGuard"), of("MACsec"), of("none")], [1, 0, 0]);
}

#[test]
fn a_note_that_follows_another_one_explains_its_mark() {
    let of = |note: &str| {
        let text = format!(
            "| Frame size | A [Mbit/s] |\n|---|---|\n| 64 | 412* |\n| 512 | 811¹ |\n\n{note}\n"
        );
        let findings = checked("t.md", &text).findings;
        findings
            .iter()
            .filter(|it| it.rule == Rule::FootnoteMissing)
            .count()
    };
    assert_eq!(of("¹ one tunnel; * typical"), 0);
    assert_eq!(of("¹ one tunnel, and *no* other"), 1);
}

/// Units in the cells are as good as units in the heading.
#[test]
fn frame_rates_with_their_unit_in_each_cell_are_compared_by_size() {
    let rows = [
        ("64 bytes", "371"),
        ("512 bytes", "1929"),
        ("1518 bytes", "7740"),
    ];
    let of = |in_heading: &str, in_cell: &str| {
        let rows = rows.map(|(size, rate)| format!("| {size} | {rate}{in_cell} |\n"));
        let text = format!(
            "| Packet size | Packet rate{in_heading} |\n|---|---|\n{}",
            rows.concat()
        );
        checked("t.md", &text).findings.len()
    };
    assert_eq!(of(" (kpps)", ""), 2);
    assert_eq!(of("", " kpps"), 2);
}

#[test]
fn notes_below_a_table_are_no_rows() {
    let text = "# unit = \"Mbit/s\"\n# columns = \"frame\"\ndevice,64\nA,49.2*\n* with one core\n";
    let read = checked("t.csv", text);
    assert_eq!((read.figures, read.findings.len()), (1, 0));
}

#[test]
fn decimal_marks_are_those_of_the_column_and_then_of_the_table() {
    let table = |keys: &str, rows: &str| {
        format!("# unit = \"Mbit/s\"\n# columns = \"frame\"\n{keys}d;64;512\n{rows}\n")
    };
    let values = |text: &str| -> Vec<String> {
        let document = lint::read("t.csv", text).unwrap_or_else(|it| panic!("{it}"));
        let cells = document.tables[0].cells();
        cells.map(|cell| cell.figure.value.to_string()).collect()
    };
    assert_eq!(values(&table("", "A;49,2;1,234")), ["49.2", "1.234"]);
    assert_eq!(values(&table("", "A;49.2;1,234")), ["49.2", "1234"]);
    assert_eq!(values(&table("", "A;49,2;1.234")), ["49.2", "1234"]);
    assert_eq!(
        values(&table("# decimal = \"point\"\n", "A;1,234;2,345.5")),
        ["1234", "2345.5"]
    );
    assert_eq!(
        values(&table("# decimal = \"comma\"\n", "A;1.234;2.345,5")),
        ["1234", "2345.5"]
    );
    let mistakes = unreadable("t.csv", &table("", "A;1,234;2,345"));
    assert_eq!(mistakes.count(), 2, "{mistakes}");
}

#[test]
fn pairs_without_names_or_of_other_lengths_are_named() {
    let table = |heading: &str, rows: &str| {
        format!("# unit = \"Mbit/s\"\n# columns = \"columns\"\nd,{heading}\n{rows}\n")
    };
    assert_eq!(
        cells("t.csv", &table("rate up/down", "A,533/356")),
        ["A | rate up | 533 Mbit/s", "A | rate down | 356 Mbit/s"]
    );
    assert_eq!(
        cells("t.csv", &table("rate up/down [Gbit/s]", "A,5.33/3.56")),
        [
            "A | rate up [Gbit/s] | 5.33 Gbit/s",
            "A | rate down [Gbit/s] | 3.56 Gbit/s"
        ]
    );
    let mistakes = unreadable("t.csv", &table("rate", "A,533/356"));
    assert!(
        mistakes.to_string().contains("parts = [\"up\", \"down\"]"),
        "{mistakes}"
    );
    let mistakes = unreadable("t.csv", &table("rate up/down", "A,533/356\nB,1/2/3"));
    assert!(
        mistakes
            .to_string()
            .contains("a cell in column `rate up/down` holds 3 figures, and the first one 2"),
        "{mistakes}"
    );
}

#[test]
fn places_that_cannot_be_read_are_in_every_form_and_no_line_says_0_errors() {
    let keys = "# unit = \"Mbit/s\"\n# layer = \"L2\"\n# link = \"1 Gbit/s\"\n# columns = \"frame\"\ndevice,64,1518\n";
    let mistakes = [unreadable(
        "bad.csv",
        &format!("{keys}A,fast,slow\nB,1,2.3.4\n"),
    )];
    assert_eq!(mistakes[0].count(), 3, "{}", mistakes[0]);
    let fast = checked("fast.csv", &format!("{keys}A,49.2,991\n"));
    let good = checked("good.csv", &format!("{keys}A,49.2,984\n"));

    let last = |files: &[Checked]| {
        let text = lint::text(files, &mistakes);
        assert!(!text.contains("0 errors"), "{text}");
        text.lines().last().unwrap().to_owned()
    };
    let none = "not checked: 1 of 1 file, for 3 places that cannot be read";
    assert_eq!(last(&[]), none);
    let good = [good];
    assert_eq!(
        last(&good),
        "not checked: 1 of 2 files, for 3 places that cannot be read; no finding in the others"
    );
    let files = [fast];
    assert_eq!(
        last(&files),
        "not checked: 1 of 2 files, for 3 places that cannot be read; in the others: 1 error"
    );

    let json: Value = serde_json::from_str(&lint::json(&files, &mistakes)).unwrap();
    let first = &json["unreadable"][0];
    assert_eq!(
        (&first["file"], &first["line"], &first["column"]),
        (&"bad.csv".into(), &6.into(), &3.into())
    );
    assert_eq!(first["what"], "`fast` is no figure");
    assert_eq!(json["unreadable"].as_array().unwrap().len(), 3);
    assert_eq!(json["findings"].as_array().unwrap().len(), 1);

    let log: Value = serde_json::from_str(&lint::sarif(&files, &mistakes, "0")).unwrap();
    let run = &log["runs"][0];
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    let results = run["results"].as_array().unwrap();
    let unreadable: Vec<&Value> = results
        .iter()
        .filter(|it| it["ruleId"] == "unreadable")
        .collect();
    assert_eq!(unreadable.len(), 3);
    let place = &unreadable[2]["locations"][0]["physicalLocation"];
    assert_eq!(place["artifactLocation"]["uri"], "bad.csv");
    assert_eq!(
        (
            &place["region"]["startLine"],
            &place["region"]["startColumn"]
        ),
        (&7.into(), &5.into())
    );
    let rules = run["tool"]["driver"]["rules"].as_array().unwrap();
    assert!(rules.iter().any(|it| it["id"] == "unreadable"));
    let log: Value = serde_json::from_str(&lint::sarif(&files, &[], "0")).unwrap();
    assert_eq!(
        log["runs"][0]["invocations"][0]["executionSuccessful"],
        true
    );
}

/// The causes of a table's findings, in words.
fn causes(text: &str) -> Vec<String> {
    let checked = checked("t.csv", text);
    checked
        .causes
        .iter()
        .map(|it| format!("{} {}", it.findings, it.says))
        .collect()
}

#[test]
fn several_findings_that_are_off_alike_have_a_common_cause() {
    let link = "# unit = \"Mbit/s\"\n# layer = \"L2\"\n# link = \"1 Gbit/s\"\n# columns = \"frame\"\nd,64,512,1024,1518\n";
    // Twice the limits 762, 962, 981 and 987.
    let both = causes(&format!("{link}A,1523.8,1924.8,1961.7,1974\n"));
    assert_eq!(both.len(), 1, "{both:?}");
    assert!(
        both[0].starts_with("4 all are off by nearly one factor"),
        "{both:?}"
    );
    assert!(
        both[0].contains("the rates of both directions may be added"),
        "{both:?}"
    );
    let apart = causes(&format!("{link}A,1523.8,1924.8,1100,1974\n"));
    assert_eq!(apart, [""; 0]);
    // L2 without the FCS.
    let rates = "# columns = \"rates\"\nframe,frames/s,L2 [Mbit/s]\n";
    let short = causes(&format!(
        "{rates}64,1000000,480\n512,200000,812.8\n1518,80000,968.96\n"
    ));
    assert_eq!(
        short,
        ["3 each counts 4 B fewer per frame than its layer: the FCS"]
    );
    let two = causes(&format!(
        "{rates}64,1000000,480\n512,200000,812.8\n1518,80000,971.52\n"
    ));
    assert_eq!(two, [""; 0]);
}

#[test]
fn the_statistics_of_a_result_are_checked_and_counted() {
    let result = |most: f64, p99: f64| {
        serde_json::json!({
            "schema": "cipherbench-result/1",
            "cells": [{
                "id": "tcp/direct",
                "bulk": { "payload_throughput_bps": { "n": 3, "mean": 940e6, "median": 941e6, "min": 930e6, "max": most } },
            }, {
                "id": "ping/direct",
                "latency": { "p50_ns": { "n": 3, "mean": 41_000.0, "median": 41_000.0, "min": 40_000.0, "max": 42_000.0 },
                             "p99_ns": { "n": 3, "mean": p99, "median": p99, "min": p99, "max": p99 } },
            }],
        })
        .to_string()
    };
    let right = checked("results.json", &result(949e6, 55_000.0));
    assert_eq!(right.findings, []);
    assert_eq!(
        remarks(&right),
        [
            "of 2 cells, these are checked: 0 rates of frames by layer, and 14 percentiles, extremes and means; nothing \
          else of a run"
        ]
    );
    let wrong = checked("results.json", &result(939e6, 39_000.0));
    let places: Vec<&str> = wrong
        .findings
        .iter()
        .map(|it| it.place.path.as_str())
        .collect();
    assert!(
        wrong
            .findings
            .iter()
            .all(|it| it.rule == Rule::StatisticsOutOfOrder)
    );
    assert_eq!(
        places,
        [
            "cells[0].bulk.payload_throughput_bps.max",
            "cells[0].bulk.payload_throughput_bps.max",
            "cells[1].latency.p99_ns",
        ]
    );
    let nothing = checked(
        "results.json",
        r#"{ "schema": "cipherbench-result/1", "cells": [] }"#,
    );
    let shown = lint::text(&[nothing], &[]);
    assert!(
        shown.contains("remark: of 0 cells, these are checked: 0 rates"),
        "{shown}"
    );
}

/// Rules with the subjects of a Markdown file's findings.
fn found(text: &str) -> Vec<(Rule, String)> {
    let findings = checked("t.md", text).findings.into_iter();
    findings.map(|it| (it.rule, it.subject)).collect()
}

/// A data sheet with frame sizes as rows.
const SHEET: &str = "| Frame size (byte) | CG-200 (Mbit/s) | CG-1000 (Mbit/s) |\n| --- | --- | --- |\n\
                     | 64 | 49.2 | 812 |\n| 512 | 371 | 950 |\n| 1024 | 300 | 961 |\n| 1518 | 940 | 1372 |\n";
const LINK: &str = "layer = \"L2\"\nlink = \"1 Gbit/s\"\n";

#[test]
fn frame_sizes_as_rows_are_checked_with_keys_and_without() {
    let falls = |rule| (rule, "table 1, row 1024, CG-200 (Mbit/s)".to_owned());
    assert_eq!(found(SHEET), [falls(Rule::NotMonotonic)]);
    let bare = checked("t.md", SHEET);
    assert!(
        remarks(&bare)[0].contains("columns = \"devices\"")
            && remarks(&bare)[0].contains("`link ="),
        "{:?}",
        remarks(&bare)
    );
    let all = [
        (
            Rule::ExceedsLink,
            "table 1, row 64, CG-1000 (Mbit/s)".to_owned(),
        ),
        falls(Rule::NotMonotonic),
        // The rate at 1518 B is 77.4 kpps, and at 1024 B 36.6 kpps.
        (
            Rule::FrameRateRises,
            "table 1, row 1518, CG-200 (Mbit/s)".to_owned(),
        ),
        (
            Rule::ExceedsLink,
            "table 1, row 1518, CG-1000 (Mbit/s)".to_owned(),
        ),
    ];
    for columns in ["", "columns = \"devices\"\n"] {
        let mut found = found(&format!("<!-- lint\n{LINK}{columns}-->\n{SHEET}"));
        // The order of two findings of one row does not matter here.
        found.sort_by_key(|(rule, _)| *rule);
        let mut all = all.clone();
        all.sort_by_key(|(rule, _)| *rule);
        assert_eq!(found, all, "{columns}");
    }
    // The unit may be a key, or stand above the table.
    let without = SHEET.replace(" (Mbit/s)", "");
    let keys = format!("<!-- lint\nunit = \"Mbit/s\"\n{LINK}-->\n{without}");
    assert_eq!(found(&keys).len(), 4);
    let above = format!("Throughput, Mbit/s\n\n{without}");
    assert_eq!(found(&above).len(), 1);
    // As TOML.
    let toml = "[[table]]\nunit = \"Mbit/s\"\nlayer = \"L2\"\nlink = \"1 Gbit/s\"\ndevices = [\"A\", \"B\"]\n\
                [table.figures]\n64 = [49.2, 812]\n1518 = [940, 1372]\n";
    assert_eq!(checked("t.toml", toml).findings.len(), 2);
}

#[test]
fn rates_and_frame_rates_of_one_device_are_compared_in_any_usual_heading() {
    let rows = "| 64 | 320 | 625000 |\n| 512 | 940 | 229492 |\n| 1518 | 1240 | 82345 |\n";
    let rules = |keys: &str, headings: &str| -> Vec<Rule> {
        let text = format!("{keys}| Frame size | {headings} |\n| --- | --- | --- |\n{rows}");
        found(&text).into_iter().map(|(rule, _)| rule).collect()
    };
    let keys = |columns: &str| format!("<!-- lint\n{LINK}{columns}-->\n");
    let both = [Rule::LayersDisagree, Rule::ExceedsLink, Rule::ExceedsLink];
    for headings in [
        "Throughput (Mbps) | Packets/s",
        "Throughput L2 (Mbps) | Packets/s",
        "Throughput (Mbit/s, L2) | Frame rate [pps]",
        "L2 rate, Mbit/s | Packets per second",
        "Mbps | fps",
        "CG-1000 Mbps | CG-1000 (pps)",
    ] {
        for columns in ["", "columns = \"devices\"\n", "columns = \"rates\"\n"] {
            assert_eq!(
                rules(&keys(columns), headings),
                both,
                "{headings} {columns}"
            );
        }
    }
    // 1240 Mbit/s are more than 82345 frames/s at any layer.
    let bare = rules("", "Throughput (Mbps) | Packets/s");
    assert_eq!(bare, [Rule::LayersDisagree]);
    // Rates of two devices are not compared.
    assert_eq!(rules("", "A (Mbps) | B (pps)"), []);
}

#[test]
fn frame_sizes_in_another_column_belong_to_the_device_before_them() {
    let text = "| Model | Frame size | Throughput (Mbps) | Packets/s |\n| --- | --- | --- | --- |\n\
                | CG-1 | 64 | 320 | 625000 |\n| | 512 | 940 | 229492 |\n| | 1518 | 1240 | 82345 |\n\
                | CG-2 | 64 | 49 | 95703 |\n| | 512 | 300 | 73242 |\n| | 1518 | 290 | 23880 |\n";
    let mut subjects: Vec<String> = found(text)
        .into_iter()
        .map(|(_, subject)| subject)
        .collect();
    subjects.sort();
    assert_eq!(
        subjects,
        [
            "table 1, row CG-1, 1518, Throughput (Mbps)",
            "table 1, row CG-2, 1518, Packets/s",
        ]
    );
    // Rows of one size are two settings, which no text names: their order is unknown.
    let twice = "| Frame size | Tunnels | Mbit/s |\n| --- | --- | --- |\n| 64 | 1 | 100 |\n| 64 | 8 | 300 |\n\
                 | 512 | 1 | 200 |\n| 512 | 8 | 250 |\n";
    assert_eq!(found(twice), []);
}

#[test]
fn a_table_that_no_rule_can_check_is_remarked() {
    let none = "no rule compares the figures of table 1";
    let has = |file: &str, text: &str| {
        let checked = checked(file, text);
        remarks(&checked).iter().any(|it| it.starts_with(none))
    };
    let named = format!("<!-- lint\n{LINK}columns = \"columns\"\n-->\n{SHEET}");
    assert!(has("t.md", &named));
    assert!(!has("t.md", SHEET));
    let cores = "cores,rate [Gbit/s]\n1,9.4\n2,18.1\n";
    assert!(has("t.csv", cores));
    let claimed = "# columns = \"columns\"\n# [[claim]]\n# says = \"A\"\n# tests = [\"{table 1 | 2 | *} > 10\"]\n";
    assert!(!has("t.csv", &format!("{claimed}{cores}")));
    assert!(!has("t.csv", "of,min [ms],max [ms]\nA,1,2\n"));
    // A text without tables says so as well.
    assert_eq!(
        remarks(&checked("t.md", "just text\n")),
        ["no table of figures is in the file, so nothing is checked"]
    );
}

#[test]
fn a_mix_that_the_file_does_not_describe_is_no_size() {
    let text = "# unit = \"Mbit/s\"\n# columns = \"frame\"\ndevice,64,1518,IMIX\nA,49.2,984,257\n";
    assert_eq!(checked("t.csv", text).findings, []);
}

#[test]
fn an_unknown_key_is_answered_with_the_nearest_one() {
    let text = "# unit = \"Mbit/s\"\n# colums = \"frame\"\ndevice,64\nA,49.2\n";
    let mistakes = unreadable("t.csv", text).to_string();
    assert!(mistakes.contains("did you mean `columns`?"), "{mistakes}");
}

#[test]
fn a_row_may_state_its_unit() {
    let text = "| Metric | 64 B | 1518 B |\n| --- | ---: | ---: |\n| Throughput (kpps) | 1600 | 81 |\n\
                | Throughput [Mbit/s] | 762 | 987 |\n";
    let keys = "<!-- lint\nlink = \"1 Gbit/s\"\nlayer = \"L2\"\n-->\n\n";
    let found = found(&format!("{keys}{text}"));
    // 1 Gbit/s carries 1.488 Mpps of 64 B, and 762 Mbit/s are no 1600 kpps.
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].0, Rule::ExceedsLink, "{found:?}");
    assert_eq!(found[1].0, Rule::LayersDisagree, "{found:?}");
}
