//! Forms of data sheets that readers of the program met: ranges, parts, footnotes, other columns.

use lint::{Checked, Rule};

fn checked(text: &str) -> Checked {
    lint::lint("t.md", text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

fn refused(text: &str) -> String {
    let Err(mistakes) = lint::lint("t.md", text) else {
        panic!("accepted:\n{text}");
    };
    assert_eq!(mistakes.count(), 1, "{mistakes}");
    mistakes.to_string()
}

fn remarks(checked: &Checked) -> String {
    let remarks = checked.remarks.iter().map(|it| it.what.as_str());
    remarks.collect::<Vec<_>>().join("\n")
}

fn rules(checked: &Checked) -> Vec<Rule> {
    checked.findings.iter().map(|it| it.rule).collect()
}

const LINK: &str = "<!-- lint\nlink = \"1 Gbit/s\"\nlayer = \"L1\"\n-->\n";

#[test]
fn the_upper_end_of_a_range_is_compared_with_the_link() {
    let table = |range: &str| {
        format!("{LINK}| Device | Throughput [Mbit/s] |\n|---|---|\n| A | {range} |\n")
    };
    assert_eq!(rules(&checked(&table("812–1000"))), []);
    let found = checked(&table("812–1021"));
    assert_eq!(rules(&found), [Rule::ExceedsLink]);
    let arithmetic = &found.findings[0].arithmetic;
    let end = "printed 812–1021 Mbit/s (its upper end is at least 1020.5 Mbit/s)";
    assert!(arithmetic.ends_with(end), "{arithmetic}");
    let shown = refused(&table("937–812"));
    assert!(shown.contains("the range `937–812` begins with its higher end"));
}

#[test]
fn a_minimum_printed_above_its_maximum_is_found_whatever_both_were_rounded_to() {
    let table = |min: &str, max: &str| {
        format!("| Device | min | max |\n|---|---|---|\n| A | {min} | {max} |\n")
    };
    assert_eq!(rules(&checked(&table("40 µs", "40 µs"))), []);
    // 100 and 99.6 may both be 99.8.
    assert_eq!(rules(&checked(&table("100 µs", "99.6 µs"))), []);
    for (min, max) in [("50 µs", "40 µs"), ("100 µs", "99 µs")] {
        let found = checked(&table(min, max));
        assert_eq!(rules(&found), [Rule::StatisticsOutOfOrder], "{min} {max}");
    }
}

#[test]
fn columns_that_describe_the_device_stand_among_columns_of_sizes() {
    let table = "| Device | Ports | Link | 64 | 512 | 1518 |\n|---|---|---|---|---|---|\n\
                 | A | 8 | 10 Gbit/s | 100 | 400 | 940 |\n| B | 4 | 10 Gbit/s | 90 | 410 | 960 |\n";
    let above = "Throughput in Mbit/s:\n\n";
    let keys = "<!-- lint\nunit = \"Mbit/s\"\ncolumns = \"frame\"\n-->\n";
    for text in [format!("{above}{table}"), format!("{keys}{table}")] {
        let found = checked(&text);
        assert_eq!((found.figures, rules(&found)), (6, vec![]), "{text}");
        let remarks = remarks(&found);
        for remark in [
            "column `Ports` of table 1 is a count and no rate: it is left out",
            "column `Link` of table 1 has no size as heading",
        ] {
            assert!(remarks.contains(remark), "{remarks}");
        }
    }
    // A size with a wrong letter is a mistake.
    let shown = refused(&format!("{keys}{}", table.replace("1518", "15l8")));
    assert!(shown.contains("column `15l8` is no size"), "{shown}");
}

#[test]
fn parts_of_a_cell_are_sizes_in_the_heading_or_need_names() {
    let named = "| Device | 1518/512/64 B [Gbit/s] |\n|---|---|\n| A | 10/9/7 |\n";
    assert_eq!(checked(named).figures, 3);
    let shown = refused(&named.replace("1518/512/64 B", "1518 B"));
    assert!(shown.contains("a cell holds 3 figures without names"));
    assert!(shown.contains("`parts = [\"up\", \"down\"]`"), "{shown}");
}

/// The names of rows and columns with their figures.
fn cells(text: &str) -> Vec<String> {
    let document = lint::read("t.md", text).unwrap_or_else(|it| panic!("{it}\n{text}"));
    let cells = document.tables[0].cells();
    let shown = cells.map(|cell| {
        format!(
            "{} | {} | {}",
            cell.row.name,
            cell.column.name,
            cell.shown()
        )
    });
    shown.collect()
}

#[test]
fn the_name_of_a_row_or_column_names_the_parts_of_its_cells_in_any_order() {
    for heading in [
        "Latency (min/avg/max) [µs]",
        "Latency min / avg / max (µs)",
        "Latency [µs] min/avg/max",
        "min/avg/max latency in µs",
    ] {
        let found = checked(&format!("| of | {heading} |\n|---|---|\n| A | 5/4/9 |\n"));
        assert_eq!(found.figures, 3, "{heading}");
        // The parts are statistics: a minimum above the mean is found.
        assert_eq!(rules(&found), [Rule::StatisticsOutOfOrder], "{heading}");
    }
    for heading in [
        "Firewall 1518/512/64 byte UDP",
        "Firewall (1518/512/64 byte) [Gbps]",
    ] {
        let text = format!(
            "<!-- lint\nunit = \"Gbps\"\n-->\n| of | {heading} |\n|---|---|\n| A | 10/9/6 |\n"
        );
        let names = cells(&text);
        assert!(names[2].starts_with("A | Firewall 64 byte"), "{names:?}");
    }
    let sheet = "| | A | B |\n|---|---|---|\n| Firewall throughput (1518/512/64 byte UDP) | 10/9/6 Gbps | 20 / 18 / 12 Gbps |\n\
                 | Latency min/max | 4/9 µs | 7 µs |\n| up/down rate [Mbit/s] | 533/356 | - |\n";
    for keys in ["", "<!-- lint\ncolumns = \"columns\"\n-->\n"] {
        assert_eq!(
            cells(&format!("{keys}{sheet}")),
            [
                "Firewall throughput 1518 byte UDP | A | 10 Gbps",
                "Firewall throughput 1518 byte UDP | B | 20 Gbps",
                "Firewall throughput 512 byte UDP | A | 9 Gbps",
                "Firewall throughput 512 byte UDP | B | 18 Gbps",
                "Firewall throughput 64 byte UDP | A | 6 Gbps",
                "Firewall throughput 64 byte UDP | B | 12 Gbps",
                "Latency min/max | B | 7 µs",
                "Latency min | A | 4 µs",
                "Latency max | A | 9 µs",
                "up rate [Mbit/s] | A | 533 Mbit/s",
                "down rate [Mbit/s] | A | 356 Mbit/s",
            ]
        );
    }
    // The heading comes before the row, and a name of another number of parts is none.
    let both = "<!-- lint\nunit = \"Gbps\"\n-->\n| of | up/down |\n|---|---|\n| x/y | 1/2 |\n| x/y/z | 3/4 |\n";
    assert_eq!(
        cells(both),
        [
            "x/y | up | 1 Gbps",
            "x/y | down | 2 Gbps",
            "x/y/z | up | 3 Gbps",
            "x/y/z | down | 4 Gbps"
        ]
    );
}

#[test]
fn a_unit_may_have_a_footnote() {
    let text = "| Device | rate [Mbit/s¹] |\n|---|---|\n| A | 940 |\n\n¹ half duplex\n";
    assert_eq!(checked(text).figures, 1);
}

#[test]
fn the_unit_of_a_row_is_printed_with_its_figures() {
    let text = "<!-- lint\nlink = \"1 Gbit/s\"\ncolumns = \"frame\"\n-->\n\
                | Device | 64 | 1518 |\n|---|---|---|\n| AES (kpps) | 1600 | 81 |\n";
    let found = checked(text);
    assert_eq!(rules(&found), [Rule::ExceedsLink]);
    let arithmetic = &found.findings[0].arithmetic;
    assert!(arithmetic.starts_with("1600 kpps × "), "{arithmetic}");
}

#[test]
fn tables_of_words_count_in_the_names_of_tables() {
    let words = "| Name | Colour |\n|---|---|\n| A | red |\n\n";
    let rates = "| Device | 64 |\n|---|---|\n| A | 1400000 pps |\n";
    let found = checked(&format!("{words}{rates}"));
    assert_eq!((found.tables, found.all_tables), (1, 2));
    assert!(remarks(&found).contains("keys of table 2 are guessed"));
    let shown = lint::text(&[found], &[]);
    assert!(shown.contains("t.md: 1 of 2 tables, 1 figure"), "{shown}");
}

#[test]
fn a_bit_rate_and_a_frame_rate_in_two_rows_of_one_device_must_agree() {
    let table = |keys: &str, bits: &str, frames: &str| {
        format!(
            "<!-- lint\ncolumns = \"frame\"\n{keys}-->\n| of | 64 | 1518 |\n|---|---|---|\n\
             | {bits} | 512 | 940 |\n| {frames} | 1000 | 81 |\n"
        )
    };
    let layer = "layer = \"L2\"\nunit = \"Mbit/s\"\n";
    // 81 kpps of 1518 B are 984 Mbit/s.
    for (bits, frames) in [
        ("Throughput (Mbit/s)", "Frame rate (kpps)"),
        ("CG-200", "CG-200 [kpps]"),
        (
            "CG-200 throughput (Mbit/s)",
            "CG-200 frames per second (kpps)",
        ),
    ] {
        let found = checked(&table(layer, bits, frames));
        assert_eq!(rules(&found), [Rule::LayersDisagree], "{bits} {frames}");
        let finding = &found.findings[0];
        assert!(finding.subject.ends_with("1518 B"), "{}", finding.subject);
        assert!(
            finding
                .arithmetic
                .starts_with("81 kpps × 1518 B × 8 = 984 Mbit/s")
        );
        assert!(
            finding.meaning.ends_with("the other is 81 kpps"),
            "{}",
            finding.meaning
        );
    }
    for (bits, frames) in [
        ("CG-200", "CG-100 [kpps]"),
        ("Throughput, sent (Mbit/s)", "Frame rate, received (kpps)"),
    ] {
        assert_eq!(
            rules(&checked(&table(layer, bits, frames))),
            [],
            "{bits} {frames}"
        );
    }
    // The layer may be in the row. Without one, only a rate above L1 is wrong: a remark says so.
    let in_row = table("", "L1 rate (Mbit/s)", "Rate (kpps)");
    assert_eq!(rules(&checked(&in_row)), [Rule::LayersDisagree; 2]);
    let unstated = table("", "Rate (Mbit/s)", "Rate (kpps)");
    let found = checked(&unstated);
    assert_eq!(rules(&found), []);
    let remark = "512 Mbit/s and 1000 kpps are compared at L1 alone, which counts the most bytes of a frame: state `layer`";
    assert!(remarks(&found).contains(remark), "{}", remarks(&found));
    let above = unstated.replace("| 512 |", "| 712 |");
    assert_eq!(rules(&checked(&above)), [Rule::LayersDisagree]);
    // A mix of unknown size lacks no layer.
    let mix =
        "| of | IMIX | 64 |\n|---|---|---|\n| A (Mbit/s) | 512 | - |\n| A (kpps) | 100 | - |\n";
    assert!(!remarks(&checked(mix)).contains("at L1 alone"));
    // Two rows of one device and quantity are of two settings, which no word names.
    let twice = format!(
        "{}| Rate (kpps) | 500 | 40 |\n",
        table(layer, "Rate (Mbit/s)", "Rate (kpps)")
    );
    assert_eq!(rules(&checked(&twice)), []);
}

/// A data sheet lists tunnels beside clear traffic, watts beside rates, and sizes in its names.
#[test]
fn rows_of_clear_traffic_have_no_encapsulation_and_sizes_of_their_names_count() {
    let table = |keys: &str, rows: &str| {
        format!(
            "<!-- lint\nlink = \"10 Gbit/s\"\nlayer = \"L2\"\n{keys}-->\n| | SG-600 | SG-601 |\n|---|---|---|\n{rows}"
        )
    };
    let clear = "| Firewall throughput 1518 byte UDP | 9.7 Gbps | 9.8 Gbps |\n";
    let tunnel = "| IPsec VPN throughput (512 byte) | 6.1 Gbps | 6.4 Gbps |\n";
    let found = checked(&table(
        "encapsulation = \"ESP\"\n",
        &format!("{clear}{tunnel}"),
    ));
    assert_eq!(rules(&found), []);
    // 84 bytes on the wire for 64: 7.62 Gbit/s.
    let small =
        "| Firewall throughput (1518/512/64 byte UDP) | 9.8/9.6/7.6 Gbps | 9.8/9.6/9.8 Gbps |\n";
    let found = checked(&table("", small));
    assert_eq!(rules(&found), [Rule::ExceedsLink]);
    let arithmetic = &found.findings[0].arithmetic;
    assert!(
        arithmetic.contains("64 B / 84 B on the wire"),
        "{arithmetic}"
    );
    let watts = "| Power consumption [W] | 1,350 | 1,480 |\n| Maximum power | 35–39 W | 40 W |\n";
    let found = checked(&table(
        "unit = \"Mbit/s\"\n",
        &format!("{watts}| Throughput | 9700 | 9800 |\n"),
    ));
    assert_eq!((found.figures, rules(&found)), (2, vec![]));
    let remarks = remarks(&found);
    assert_eq!(
        remarks
            .matches("is a physical quantity and no rate: it is left out")
            .count(),
        2,
        "{remarks}"
    );
}

#[test]
fn a_table_that_is_not_read_although_it_has_rates_is_remarked() {
    let text = "| Property | Value |\n|---|---|\n| Colour | blue |\n| Case | metal |\n| Rate | 16 Mpps |\n| Feet | none |\n";
    let found = checked(text);
    let shown = remarks(&found);
    assert!(
        shown.contains(
            "is not read, because no column is mostly figures, although it has `16 Mpps`"
        ),
        "{shown}"
    );
    let words = "| Property | Value |\n|---|---|\n| Colour | blue |\n";
    assert!(!remarks(&checked(words)).contains("is not read"));
}
