//! Tables as programs and spreadsheets write them: `openssl speed`, figures that are cut off,
//! points before thousands, and reports of this program.

use lint::{Checked, Rule};

fn checked(file: &str, text: &str) -> Checked {
    lint::lint(file, text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

fn remarks(checked: &Checked) -> String {
    let all = checked.remarks.iter().map(|it| it.what.as_str());
    all.collect::<Vec<_>>().join("\n")
}

/// Rules with the arithmetic of their findings.
fn found(checked: &Checked) -> Vec<(Rule, &str)> {
    let findings = checked.findings.iter();
    findings
        .map(|it| (it.rule, it.arithmetic.as_str()))
        .collect()
}

/// The table of `openssl speed`, with a slip in its last figure.
const SPEED: &str = "version: 3.0.11\nThe 'numbers' are in 1000s of bytes per second processed.\n\
    type             16 bytes   1024 bytes  16384 bytes\n\
    AES-256-GCM     421374.88k  3391283.20k  4211212.29k\n\
    aes-256 cbc      51234.11k   574839.47k    67217.08k\n";
/// The same as the option `-mr` prints it.
const MACHINE: &str = "+DT:AES-256-GCM:1:16\n+R:26335930:AES-256-GCM:1.000000\n+H:16:1024:16384\n\
    +F:25:AES-256-GCM:421374880.00:3391283200.00:4211212290.00\n\
    +F:26:aes-256 cbc:51234110.00:574839470.00:67217080.00\n";
const FALLS: (Rule, &str) = (
    Rule::NotMonotonic,
    "574839.47k at 1024 B, 67217.08k at 16384 B (−88.3 %), beyond rounding and deviations",
);

#[test]
fn the_output_of_openssl_speed_is_read_in_every_file() {
    let spaced = SPEED.lines().skip(2).map(|line| {
        let name = line.replace("aes-256 cbc", "aes-256-cbc");
        let name = name.replace(" bytes", "_bytes");
        let cells: Vec<&str> = name.split_whitespace().collect();
        cells.join(",").replace('_', " ")
    });
    let comma: String = spaced.map(|line| line + "\n").collect();
    for (file, text) in [
        ("t.txt", SPEED.to_owned()),
        ("t.csv", SPEED.to_owned()),
        ("t.csv", format!("# system = \"card\"\n{SPEED}")),
        ("t.md", SPEED.to_owned()),
        ("t.md", format!("# Speed\n\n```text\n{SPEED}```\n\nDone.\n")),
        ("t.csv", comma),
    ] {
        let read = checked(file, &text);
        assert_eq!((read.tables, read.figures), (1, 6), "{text}");
        assert_eq!(found(&read), [FALLS], "{text}");
        let remarks = remarks(&read);
        for words in [
            "`openssl speed`, where `k` is 1000 bytes per second",
            "columns = \"bytes\", unit = \"B/s\"",
        ] {
            assert!(remarks.contains(words), "{remarks}");
        }
    }
    for file in ["t.txt", "t.csv", "t.md"] {
        let read = checked(file, MACHINE);
        assert_eq!((read.tables, read.figures), (1, 6), "{file}");
        assert_eq!(read.findings.len(), 1, "{:?}", read.findings);
        assert_eq!(
            read.findings[0].subject,
            "table 1, row aes-256 cbc, 16384 B"
        );
    }
    let document = lint::read("t.csv", SPEED).unwrap();
    let bits: Vec<f64> = document.tables[0]
        .cells()
        .map(|cell| cell.bit_rate().unwrap().middle().round())
        .collect();
    assert_eq!(bits[..2], [421_374_880.0 * 8.0, 3_391_283_200.0 * 8.0]);
    // The place is that of the figure.
    let spot = &document.tables[0].cells().next().unwrap().figure.place.spot;
    let spot = spot.as_ref().unwrap();
    assert_eq!((spot.line, spot.column, spot.length), (4, 17, 10));
    // An example of a table in a block is no output, and two outputs are two tables.
    assert_eq!(
        checked("t.md", &format!("```\n{SPEED}\n{SPEED}```\n")).tables,
        2
    );
    let skipped = format!("<!-- lint skip -->\n```\n{SPEED}```\n");
    assert_eq!(checked("t.md", &skipped).tables, 0);
    let other = lint::read("t.txt", "device 64 1518\nA 49.2 984\n").expect_err("no output");
    assert!(
        other.to_string().contains("no table of `openssl speed`"),
        "{other}"
    );
}

#[test]
fn prefixes_without_a_unit_are_one_mistake_with_a_fitting_remedy() {
    let text = "# columns = \"columns\"\ntype,small,large\nA,421.1k,1106.2k\nB,236.3k,451.4k\n";
    let mistakes = lint::read("t.csv", text).expect_err("no unit");
    assert_eq!(mistakes.count(), 1, "{mistakes}");
    let shown = mistakes.to_string();
    assert!(
        shown.contains(
            "4 figures of table `table 1` have the prefix of a unit that is not stated, as `421.1k`"
        ),
        "{shown}"
    );
    assert!(
        shown.contains("`unit = \"B/s\"` for a table of `openssl speed`"),
        "{shown}"
    );
}

#[test]
fn equal_mistakes_of_cells_with_two_figures_are_printed_once() {
    let text = "# unit = \"Mbit/s\"\n# columns = \"columns\"\nd,up,down\nA,1/2,3/4\nB,5/6,7/8\n";
    let mistakes = lint::read("t.csv", text).expect_err("no names");
    assert_eq!(mistakes.count(), 4);
    let shown = mistakes.to_string();
    assert_eq!(
        shown.matches("holds 2 figures without names").count(),
        1,
        "{shown}"
    );
    assert!(
        shown.contains("also: t.csv:4:7, t.csv:5:3, t.csv:5:7"),
        "{shown}"
    );
}

#[test]
fn a_rate_above_the_link_is_found_without_a_layer_and_the_missing_keys_are_named() {
    let table = |keys: &str, rate: &str| {
        format!(
            "<!-- lint\ncolumns = \"columns\"\nparts = [\"up\", \"down\"]\nunit = \"Mbit/s\"\nlink = \"1 Gbit/s\"\n\
             {keys}-->\n| device | D2E | E2E |\n| --- | --- | --- |\n| a | 923 | 837 |\n| b | {rate}/356 | 750/510 |\n"
        )
    };
    for (keys, missing) in [
        ("", "state `layer`, `mtu`, and"),
        ("layer = \"payload\"\n", "state `mtu`, `transport`, and"),
    ] {
        let right = checked("t.md", &table(keys, "533"));
        assert_eq!(found(&right), [], "{keys}");
        assert!(remarks(&right).contains(missing), "{}", remarks(&right));
        let wrong = checked("t.md", &table(keys, "1533"));
        assert_eq!(
            found(&wrong),
            [(
                Rule::ExceedsLink,
                "1 Gbit/s at most at any layer, printed 1533 Mbit/s (at least 1532.5 Mbit/s)"
            )],
            "{keys}"
        );
    }
    let all = "layer = \"payload\"\ntransport = \"TCP\"\nmtu = 1500\n";
    assert_eq!(remarks(&checked("t.md", &table(all, "533"))), "");
    assert_eq!(found(&checked("t.md", &table(all, "960"))).len(), 1);
    // Sizes without a layer, and frame rates without a size.
    let sizes = "# link = \"1 Gbit/s\"\nFrame size;Rate (Mbit/s)\n64;1200\n1518;990\n";
    let sizes = checked("t.csv", sizes);
    assert_eq!(sizes.findings[0].subject, "table 1, row 64, Rate (Mbit/s)");
    assert!(
        remarks(&sizes).contains("state `layer`"),
        "{}",
        remarks(&sizes)
    );
    let frames =
        "# link = \"1 Gbit/s\"\n# columns = \"columns\"\ndevice,rate [kpps]\nA,1488\nB,1489\n";
    assert_eq!(
        found(&checked("t.csv", frames)),
        [(
            Rule::ExceedsLink,
            "1 Gbit/s carries 1488095 frames/s of 64 B, the shortest, at most, printed 1489 kpps"
        )]
    );
}

#[test]
fn points_that_may_separate_thousands_are_asked_for_or_remarked() {
    let table = |mark: char, keys: &str| {
        let text = format!(
            "# link = \"1 Gbit/s\"\n{keys}Frame size (B);Frame rate (fps)\n64;844.594\n512;234.962\n1518;181.274\n"
        );
        text.replace(';', &mark.to_string())
    };
    let mistakes = lint::read("t.csv", &table(';', "")).expect_err("ambiguous");
    assert_eq!(mistakes.count(), 1, "{mistakes}");
    let shown = mistakes.to_string();
    assert!(
        shown.contains("the point of `844.594` in column `Frame rate (fps)` is ambiguous"),
        "{shown}"
    );
    assert!(shown.contains("decimal = \"comma\""), "{shown}");
    let comma = checked("t.csv", &table(';', "# decimal = \"comma\"\n"));
    assert_eq!(comma.findings[0].rule, Rule::ExceedsLink);
    assert_eq!(
        comma.findings[0].subject,
        "table 1, row 1518, Frame rate (fps)"
    );
    let point = checked("t.csv", &table(';', "# decimal = \"point\"\n"));
    assert!(!remarks(&point).contains("points"), "{}", remarks(&point));
    // A comma separates cells where the point is the decimal mark.
    let read = checked("t.csv", &table(',', ""));
    assert!(
        remarks(&read)
            .contains("the points of table 1, as in `844.594`, are read as decimal marks"),
        "{}",
        remarks(&read)
    );
    // Another number decides.
    for row in ["1280;96.1", "1280;98765", "1280;0.961"] {
        let text = format!("{}{row}\n", table(';', ""));
        let read = checked("t.csv", &text);
        assert!(
            !remarks(&read).contains("points"),
            "{row}: {}",
            remarks(&read)
        );
    }
}

#[test]
fn figures_that_are_cut_off_are_a_note() {
    let table = |rate: &str| {
        format!(
            "# layer = \"L2\"\n# link = \"1 Gbit/s\"\nFrame size (B),Throughput (Mbit/s),Frame rate (fps)\n\
             64,761.9,1488095\n128,{rate},844594\n256,927.5,452898\n1518,986.9,81274\n"
        )
    };
    // 864.864 and 986.990 Mbit/s.
    let cut = checked("t.csv", &table("864.8"));
    assert_eq!(
        found(&cut),
        [(
            Rule::LayersImprecise,
            "844594 fps × 128 B × 8 = 864.864 Mbit/s, printed 864.8 Mbit/s, and 1 figure of the table alike"
        )]
    );
    assert_eq!(Rule::LayersImprecise.severity().name(), "note");
    let wrong = checked("t.csv", &table("863.8"));
    let rules: Vec<Rule> = wrong.findings.iter().map(|it| it.rule).collect();
    assert_eq!(rules, [Rule::LayersDisagree, Rule::LayersImprecise]);
}

#[test]
fn units_of_different_scale_in_headings_are_found() {
    let sizes = "sep=;\n\"Cipher\";\"16 bytes [MiB/s]\";\"1024 bytes [MB/s]\"\n\
                 \"aes-256-gcm\";\"421,4\";\"3.391,3\"\n\"sha256\";\"51,2\";\"574,8\"\n";
    let sizes = checked("t.csv", sizes);
    assert_eq!(
        found(&sizes),
        [(Rule::UnitsMixed, "16 B is in MiB/s and 1024 B is in MB/s")]
    );
    let devices = |second: &str, third: &str| {
        format!(
            "<!-- lint\nlayer = \"L2\"\n-->\n| Frame size | Box B (MB/s) | {second} |\n| --- | --- | --- |\n\
             | 64 | 37.5 | 35.8 |\n| 512 | 112.5 | {third} |\n| 1518 | 122.5 | 116.8 |\n"
        )
    };
    // One rate in two units.
    assert_eq!(
        found(&checked("t.md", &devices("Box B (MiB/s)", "107.3"))),
        []
    );
    assert_eq!(
        found(&checked("t.md", &devices("Box B (MiB/s)", "117.9"))),
        [(
            Rule::LayersDisagree,
            "112.5 MB/s = 107.288 MiB/s, printed 117.9 MiB/s (+9.89 %)"
        )]
    );
    // Two devices.
    let mixed = checked("t.md", &devices("Box C (MiB/s)", "107.3"));
    assert_eq!(
        found(&mixed),
        [(Rule::UnitsMixed, "`Box B (MB/s)` and `Box C (MiB/s)`")]
    );
    assert_eq!(
        found(&checked("t.md", &devices("Box C (Mbit/s)", "107.3"))),
        []
    );
    let old = devices("Box B (old) [MiB/s]", "117.9").replace("Box B (MB/s)", "Box B (new) [MB/s]");
    let rules: Vec<Rule> = checked("t.md", &old)
        .findings
        .iter()
        .map(|it| it.rule)
        .collect();
    assert_eq!(rules, [Rule::UnitsMixed]);
}

#[test]
fn a_frame_rate_that_falls_too_fast_is_printed_with_its_bit_rate() {
    let text = "# link = \"10 Gbit/s\"\nframe size,rate [fps]\n512,284962\n1024,119731\n";
    assert_eq!(
        found(&checked("t.csv", text)),
        [(
            Rule::NotMonotonic,
            "284962 fps at 512 B: 1.167 Gbit/s at L2, 119731 fps at 1024 B: 981 Mbit/s at L2 (−15.97 %), beyond \
             rounding and deviations"
        )]
    );
}

#[test]
fn a_report_of_this_program_is_read_without_mistakes() {
    let text = include_str!("report.md");
    let read = checked("report.md", text);
    assert_eq!(found(&read), []);
    assert_eq!(
        (read.tables, read.remarks.len()),
        (3, 1),
        "{}",
        remarks(&read)
    );
    assert!(
        remarks(&read).contains("`results.json`"),
        "{}",
        remarks(&read)
    );
    let document = lint::read("report.md", text).unwrap();
    let shown: Vec<String> = document
        .tables
        .iter()
        .flat_map(|table| table.cells())
        .map(|cell| cell.shown())
        .collect();
    for figure in ["442 ± 70 kpps (16 %)", "1517 ± 4 kpps"] {
        assert!(shown.iter().any(|it| it == figure), "{shown:?}");
    }
}
