//! Tables as people publish them, in `tests/published`: their figures are facts of public tables,
//! their names are replaced.

use lint::{Checked, Document, Rule};
use std::fs;
use std::path::Path;

/// A fixture's text.
fn text(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/published")
        .join(name);
    fs::read_to_string(path).unwrap()
}

fn checked(name: &str, text: &str) -> Checked {
    lint::lint(name, text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn document(name: &str) -> Document {
    lint::read(name, &text(name)).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

/// Rules with the subjects of their findings.
fn found(checked: &Checked) -> Vec<(Rule, &str)> {
    let findings = checked.findings.iter();
    findings.map(|it| (it.rule, it.subject.as_str())).collect()
}

/// The rates of a table in bits per second, row by row.
fn bits(document: &Document) -> Vec<f64> {
    let cells = document.tables[0].cells();
    cells
        .map(|cell| cell.bit_rate().expect("a bit rate").middle().round())
        .collect()
}

/// Puts a key into the comment of a Markdown table, or above a CSV table.
fn with_key(name: &str, key: &str) -> String {
    let text = text(name);
    if name.ends_with(".md") {
        text.replacen("-->", &format!("{key}\n-->"), 1)
    } else {
        format!("# {key}\n{text}")
    }
}

#[test]
fn frame_rates_that_fall_with_the_size_are_no_finding() {
    let checked = checked("frame-rates-by-size.csv", &text("frame-rates-by-size.csv"));
    assert_eq!(checked.figures, 28);
    assert_eq!(found(&checked), []);
    // The row of the line rate is exact: one frame per second more is too much.
    let faster =
        text("frame-rates-by-size.csv").replace("line rate,1488095,", "line rate,1488097,");
    let checked = self::checked("t.csv", &faster);
    assert_eq!(
        found(&checked),
        [(Rule::ExceedsLink, "table 1, row line rate, 64 B")]
    );
}

#[test]
fn a_frame_rate_above_the_link_is_an_error() {
    let checked = checked(
        "frame-rate-above-link.csv",
        &text("frame-rate-above-link.csv"),
    );
    let arithmetic: Vec<&str> = checked
        .findings
        .iter()
        .filter(|it| it.rule == Rule::ExceedsLink)
        .map(|it| it.arithmetic.as_str())
        .collect();
    assert_eq!(
        arithmetic,
        [
            "381781 pps × (512 + 20) B × 8 = 1.625 Gbit/s at L1, and 1 Gbit/s carries 234962 frames/s of that size",
            "349314 pps × (1518 + 20) B × 8 = 4.3 Gbit/s at L1, and 1 Gbit/s carries 81274 frames/s of that size",
        ]
    );
}

#[test]
fn a_mix_as_row_is_read_and_checked_once_its_size_is_known() {
    let bare = checked("mix-as-row.csv", &text("mix-as-row.csv"));
    assert_eq!((bare.figures, found(&bare)), (2, vec![]));
    assert!(
        bare.remarks[0]
            .what
            .starts_with("row `IMIX` is read, and not checked"),
        "{:?}",
        bare.remarks
    );
    let with = |more: &str| {
        let text = text("mix-as-row.csv");
        let (keys, table) = text.split_once('\n').unwrap();
        checked(
            "t.csv",
            &format!("{keys}\n# [[mix]]\n# name = \"IMIX\"\n{more}\n{table}"),
        )
    };
    // 8.86 Gbit/s / 8 / 3.07 Mpps.
    let right = with("# mean = 361");
    assert_eq!((found(&right), right.remarks.len()), (vec![], 0));
    let wrong = with("# frame = [64, 570, 1518]\n# weights = [7, 4, 1]");
    assert_eq!(
        found(&wrong),
        [(Rule::LayersDisagree, "table 1, row IMIX, L2 [Gbit/s]")]
    );
}

#[test]
fn tcp_through_a_tunnel_is_compared_with_what_the_encapsulation_leaves() {
    let bare = checked("tunnel.md", &text("tunnel.md"));
    assert_eq!(found(&bare), []);
    assert!(
        bare.remarks[0]
            .what
            .contains("add `encapsulation = \"WireGuard\"`"),
        "{:?}",
        bare.remarks
    );
    let stated = with_key("tunnel.md", "encapsulation = \"WireGuard\"");
    let stated = checked("t.md", &stated);
    assert_eq!(
        found(&stated),
        [(Rule::ExceedsLink, "table 1, row wireguard, tcp")]
    );
    assert_eq!(
        stated.findings[0].arithmetic,
        "1 Gbit/s × 1380 B / 1518 B on the wire with WireGuard = 909 Mbit/s at most, printed 943 Mbit/s (at least \
         942.5 Mbit/s)"
    );
    assert_eq!(stated.remarks, []);
    // The same figure of the link alone, in the table of a tunnel.
    for name in ["direct", "No encryption", "plain (L3)"] {
        let text =
            with_key("tunnel.md", "encapsulation = \"WireGuard\"").replace("wireguard", name);
        assert_eq!(found(&checked("t.md", &text)), [], "{name}");
    }
}

#[test]
fn the_separator_line_of_a_spreadsheet_is_read() {
    let mistakes = lint::read("t.csv", &text("separator-line.csv")).expect_err("no unit");
    assert_eq!(mistakes.count(), 1, "{mistakes}");
    assert!(
        mistakes.to_string().contains("figures have no unit"),
        "{mistakes}"
    );
    let keys = "# unit = \"Mbit/s\"\n";
    for whole in [
        format!("{keys}{}", text("separator-line.csv")),
        text("separator-line.csv").replacen('\n', &format!("\n{keys}"), 1),
    ] {
        let document = lint::read("t.csv", &whole).unwrap_or_else(|it| panic!("{it}"));
        assert_eq!(bits(&document), [49.2e6, 383e6]);
        assert!(
            document.remarks[0].what.contains("columns = \"frame\""),
            "{:?}",
            document.remarks
        );
    }
}

#[test]
fn two_different_marks_in_a_number_are_not_ambiguous() {
    for name in ["thousands.csv", "thousands-with-decimal.csv"] {
        assert_eq!(
            bits(&document(name)),
            [1049.2e6, 2383e6, 9870.5e6],
            "{name}"
        );
    }
}

#[test]
fn markup_limits_and_words_for_no_figure_are_understood() {
    let document = document("markup.md");
    assert_eq!(
        bits(&document),
        [
            941.43e6, 939.4e6, 895e6, 899.5e6, 4.2e9, 9.25e9, 1.2e9, 9.35e9
        ]
    );
    let rules: Vec<Rule> = lint::check(&document).iter().map(|it| it.rule).collect();
    assert_eq!(rules, [Rule::UnitsMixed, Rule::FootnoteMissing]);
}

#[test]
fn pairs_are_read_when_the_heading_or_a_key_names_their_parts() {
    let mistakes = lint::read("t.md", &text("pairs-without-names.md")).expect_err("no names");
    assert_eq!(mistakes.count(), 4, "{mistakes}");
    assert!(
        mistakes
            .iter()
            .all(|it| it.what == "a cell holds 2 figures without names"),
        "{mistakes}"
    );
    let named = with_key("pairs-without-names.md", "parts = [\"up\", \"down\"]");
    let document = lint::read("t.md", &named).unwrap_or_else(|it| panic!("{it}"));
    let shown: Vec<String> = document.tables[0]
        .cells()
        .map(|cell| format!("{} {}: {}", cell.row.name, cell.column.name, cell.shown()))
        .collect();
    assert_eq!(
        shown,
        [
            "board a D2E: 923 Mbit/s",
            "board a E2E: 837 Mbit/s",
            "board a WG D2E: 895 Mbit/s",
            "board b D2E up: 533 Mbit/s",
            "board b D2E down: 356 Mbit/s",
            "board b E2E up: 750 Mbit/s",
            "board b E2E down: 510 Mbit/s",
            "board c D2E: 931 Mbit/s",
            "board c E2E up: 335 Mbit/s",
            "board c E2E down: 403 Mbit/s",
            "board c WG D2E up: 213 Mbit/s",
            "board c WG D2E down: 335 Mbit/s",
        ]
    );
    let document = self::document("parts-in-the-heading.md");
    let names: Vec<&str> = document.tables[0]
        .columns
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(
        names,
        ["firewall 1518", "firewall 512", "firewall 64", "IPsec 512"]
    );
    assert_eq!(bits(&document), [10e9, 10e9, 6e9, 6.5e9]);
}

#[test]
fn binary_prefixes_and_prefixes_alone_are_read() {
    let mib = 8.0 * 1_048_576.0;
    let expected = [1783.8, 6707.3, 5346.1, 5346.6].map(|it: f64| (it * mib).round());
    assert_eq!(bits(&document("binary-prefixes.csv")), expected);
    let speed = document("prefix-alone.csv");
    assert_eq!(bits(&speed)[..2], [743_221.38 * 8e3, 779_174.02 * 8e3]);
    let sizes: Vec<Option<f64>> = speed.tables[0].columns.iter().map(|it| it.size).collect();
    let expected = [16.0, 64.0, 256.0, 1024.0, 8192.0, 16_384.0].map(Some);
    assert_eq!(sizes, expected);
    assert_eq!(lint::check(&speed), []);
}

#[test]
fn a_device_that_is_faster_by_little_is_a_note() {
    let checked = checked("faster-by-little.toml", &text("faster-by-little.toml"));
    assert_eq!(
        found(&checked),
        [(Rule::FasterByLittle, "tunnel a, row speed, download")]
    );
    assert_eq!(Rule::FasterByLittle.severity().name(), "note");
}

#[test]
fn a_row_or_column_of_the_bare_link_is_the_baseline_of_its_table() {
    let row = "| path | 512 B [Mbit/s] | 1518 B [Mbit/s] |\n|---|---|---|\n| plain | 610 | 930 |\n\
               | box | 640 | 900 |\n| plain OpenVPN | 300 | 320 |\n";
    let faster = checked("t.md", row);
    assert_eq!(
        found(&faster),
        [(Rule::FasterWithDevice, "table 1, row box, 512 B")]
    );
    assert!(
        faster.findings[0]
            .arithmetic
            .contains("640 Mbit/s with the device, 610 Mbit/s without it in row plain"),
        "{}",
        faster.findings[0].arithmetic
    );
    let column = "| test | no VPN [Mbit/s] | VPN [Mbit/s] |\n|---|---|---|\n| down | 610 | 640 |\n| up | 610 | 500 |\n";
    assert_eq!(
        found(&checked("t.md", column)),
        [(Rule::FasterWithDevice, "table 1, row down, VPN [Mbit/s]")]
    );
    let mtu = "<!-- lint\nunit = \"Mbit/s\"\ncolumns = \"mtu\"\n-->\n| Setup | 1500 | 9000 |\n|---|---|---|\n\
               | plain | 938.2 | 941.5 |\n| WireGuard | 912.7 | 992.8 |\n";
    assert_eq!(
        found(&checked("t.md", mtu)),
        [(Rule::FasterWithDevice, "table 1, row WireGuard, MTU 9000")]
    );
    let words = "| VPN | Download | Upload |\n|---|---|---|\n| no VPN | 940 Mbps | 938 Mbps |\n\
                 | WireGuard | 990 Mbps | 800 Mbps |\n";
    let by_words = checked("t.md", words);
    assert_eq!(
        found(&by_words),
        [(Rule::FasterWithDevice, "table 1, row WireGuard, Download")]
    );
    // The rule compares its figures.
    let unchecked = by_words
        .remarks
        .iter()
        .filter(|it| it.what.contains("no rule"));
    assert_eq!(unchecked.count(), 0, "{:?}", by_words.remarks);
    // Neither two bare rows nor other quantities are compared.
    let others = "| path | rate |\n|---|---|\n| plain | 610 Mbit/s |\n| box | 640 kpps |\n";
    assert_eq!(found(&checked("t.md", others)), []);
}

#[test]
fn a_dagger_at_the_name_of_a_row_needs_its_note() {
    let table = "| model | rate [Mbit/s] |\n|---|---|\n| A‡ | 610 |\n| B | 930 |\n";
    let without = checked("t.md", table);
    assert_eq!(
        found(&without),
        [(Rule::FootnoteMissing, "table 1, mark `‡`")]
    );
    let with = format!("{table}\n‡ With a licence.\n");
    assert_eq!(found(&checked("t.md", &with)), []);
}

#[test]
fn repeats_of_our_own_results_are_no_copies() {
    let row = "mrr/frame=64/x,mrr/frame=64,x,1.5,2.25,3.75,4.125\n";
    let text = format!("cell,group,dut,a_bps,b_bps,c_bps,d_bps\n{row}{row}{row}");
    let own = checked("results.csv", &text);
    assert_eq!((own.figures, found(&own)), (0, vec![]));
    assert!(
        own.remarks[0].what.contains("`results.json`"),
        "{:?}",
        own.remarks
    );
}

#[test]
fn percentiles_and_extremes_out_of_order_are_errors() {
    let checked = checked("percentiles.csv", &text("percentiles.csv"));
    assert_eq!(checked.figures, 21);
    let arithmetic: Vec<&str> = checked
        .findings
        .iter()
        .map(|it| it.arithmetic.as_str())
        .collect();
    assert_eq!(
        arithmetic,
        [
            "p50_ms 18.87 ms is above p95_ms 7.89 ms",
            "p99_ms 8.45 ms is above max_ms 5.2 ms",
            "min_ms 6.01 ms is above max_ms 5.2 ms",
            "avg_ms 17.03 ms is above max_ms 5.2 ms",
        ]
    );
    assert!(
        checked
            .findings
            .iter()
            .all(|it| it.rule == Rule::StatisticsOutOfOrder)
    );
}

#[test]
fn every_fixture_is_tested() {
    let source =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lint/published.rs"));
    let source = source.unwrap();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/published");
    let mut count = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(
            source.contains(&format!("\"{name}\"")),
            "no test reads {name}"
        );
        count += 1;
    }
    assert_eq!(count, 14);
}
