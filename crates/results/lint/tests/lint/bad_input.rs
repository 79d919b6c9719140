//! Files that cannot be read as tables: one clear mistake at its place.

/// Asserts that a file has this one mistake: its text, with the place, and words of its help.
fn refused(file: &str, text: &str, what: &str, place: &str, help: &str) {
    let Err(mistakes) = lint::read(file, text) else {
        panic!("{file} was accepted:\n{text}");
    };
    let shown = mistakes.to_string();
    let place = format!("--> {file}{place}");
    let line_ends = shown.lines().any(|line| {
        let line = line.trim_start();
        line == place || line.starts_with(&format!("{place} "))
    });
    assert!(
        shown.contains(what) && line_ends && shown.contains(help),
        "{shown}"
    );
    assert_eq!(mistakes.count(), 1, "{shown}");
}

const KEYS: &str = "# unit = \"Mbit/s\"\n# columns = \"frame\"\n";

#[test]
fn a_table_without_units_is_refused() {
    let csv = "# columns = \"frame\"\ndevice,64,128\nA,49.2,99.8\n";
    refused(
        "t.csv",
        csv,
        "figures of table `table 1` have no unit",
        ":3:3",
        "unit = \"Mbit/s\"",
    );
    let toml = "[[table]]\nid = \"1\"\nframe = [64]\n[table.figures]\nA = [49.2]\n";
    refused(
        "t.toml",
        toml,
        "figures of table `1` have no unit",
        ":5:6",
        "unit = \"Mbit/s\"",
    );
    let markdown = "text\n\n| device | 64 |\n| --- | --- |\n| A | 49.2 |\n";
    refused(
        "t.md",
        markdown,
        "does not state what it holds",
        ":3:3",
        "<!-- lint",
    );
}

#[test]
fn rows_of_another_length_are_refused() {
    let csv = format!("{KEYS}device,64,128\nA,49.2\nB,1,2\n");
    refused(
        "t.csv",
        &csv,
        "row `A` of table `table 1` has 2 cells, and its heading 3",
        ":4:1",
        "merged",
    );
    let csv = format!("{KEYS}device,64,128\nA,49.2,99.8,195\n");
    refused("t.csv", &csv, "has 4 cells", ":4:1", "quotes");
    let markdown = "<!-- lint\nunit = \"Mbit/s\"\ncolumns = \"frame\"\n-->\n| device | 64 |\n|---|---|\n| A | 1 | 2 |\n";
    refused(
        "t.md",
        markdown,
        "has 3 cells, and its heading 2",
        ":7:3",
        "merged",
    );
    let toml = "[[table]]\nid = \"1\"\nunit = \"Mbit/s\"\nframe = [64, 128]\n[table.figures]\nA = [49.2]\n";
    refused(
        "t.toml",
        toml,
        "row `A` has 1 cells, and the table 2 columns",
        ":6:5",
        "\"\"",
    );
}

#[test]
fn a_decimal_comma_is_read_where_it_is_certain_and_asked_for_elsewhere() {
    let table = |cells: [&str; 2]| format!("{KEYS}device;64\nA;{}\nB;{}\n", cells[0], cells[1]);
    let values = |text: &str| -> Vec<f64> {
        let document = lint::read("t.csv", text).unwrap_or_else(|it| panic!("{it}"));
        document.tables[0]
            .cells()
            .map(|cell| cell.figure.value * 1000.0)
            .collect()
    };
    assert_eq!(values(&table(["49,2", "1,234"])), [49_200.0, 1_234.0]);
    assert_eq!(values(&table(["0,234", "0,235"])), [234.0, 235.0]);
    let thousands = table(["1,234", "2,345"]);
    refused(
        "t.csv",
        &thousands,
        "the comma of `1,234` in column `64` is ambiguous",
        ":4:3",
        "decimal = \"comma\"",
    );
    assert_eq!(
        values(&format!("# decimal = \"comma\"\n{thousands}")),
        [1_234.0, 2_345.0]
    );
    refused(
        "t.csv",
        &table(["49,2", "1.5"]),
        "column `64` has two decimal marks: the comma of `49,2` and the point of `1.5`",
        ":4:3",
        "decimal",
    );
    let as_points = format!("# decimal = \"point\"\n{}", table(["49,2", "1,5"]));
    assert!(lint::read("t.csv", &as_points).is_err());
}

#[test]
fn quoted_cells_and_other_separators_are_read_with_their_places() {
    let text = format!("{KEYS}device\t64\n\"A, old\"\t49.2\n");
    let document = lint::read("t.csv", &text).unwrap_or_else(|it| panic!("{it}"));
    assert_eq!(document.tables[0].rows[0].name, "A, old");
    let text = format!("{KEYS}device,64\n\"A, old\",fast\n");
    refused("t.csv", &text, "`fast` is no figure", ":4:10", "14.0");
    // A byte order mark, as spreadsheets write it.
    let text = format!("\u{feff}{KEYS}device,64\nA,fast\n");
    refused("t.csv", &text, "`fast` is no figure", ":4:3", "14.0");
}

#[test]
fn names_that_are_not_there_are_refused() {
    let table =
        "[[table]]\nid = \"1\"\nunit = \"Mbit/s\"\nframe = [64]\nfigures = { A = [49.2] }\n";
    let with = |more: &str| format!("{table}{more}");
    refused(
        "t.toml",
        &with("baseline = \"2\"\n"),
        "`2` is no other table",
        ":6:12",
        "tables are 1",
    );
    refused(
        "t.toml",
        &with("layer = \"L7\"\n"),
        "`L7` is not known here",
        ":6:9",
        "L1, L2, IP",
    );
    refused(
        "t.toml",
        &with("units = \"Mbit/s\"\n"),
        "unknown key `units`",
        ":6:1",
        "did you mean `unit`?",
    );
    refused(
        "t.toml",
        &with("link = \"1000\"\n"),
        "bit rate `1000` has no unit",
        ":6:8",
        "Mbit/s",
    );
    let claim = |test: &str| {
        with(&format!(
            "[[claim]]\nsays = \"fast\"\ntests = [\"{test}\"]\n"
        ))
    };
    refused(
        "t.toml",
        &claim("{1 | B | 64} > 1"),
        "table `1` has no figure at `B`, `64`",
        ":6:1",
        "{table",
    );
    refused(
        "t.toml",
        &claim("{1 | A | 64}"),
        "the test compares nothing",
        ":8:10",
        "{table",
    );
    refused(
        "t.toml",
        &claim("{1 | A | 64} > fast"),
        "begins with neither number nor cell",
        ":8:10",
        "{table",
    );
    let mixed = "[[table]]\nid = \"2\"\nunit = \"Gbit/s\"\nframe = [64]\nfigures = { A = [1] }\n";
    let text = format!("{}{mixed}", claim("{1 | A | 64} > {2 | A | 64}"));
    refused(
        "t.toml",
        &text,
        "the test mixes Mbit/s and Gbit/s",
        ":6:1",
        "",
    );
}

#[test]
fn tables_to_which_no_rule_could_be_applied_are_refused() {
    let csv = "# columns = \"rates\"\nframe,frames/s,L2 [Mbit/s]\nfast,1000,0.512\n";
    refused("t.csv", csv, "row `fast` is no size", ":3:1", "frame sizes");
    let csv = "# columns = \"mtu\"\n# unit = \"Mbit/s\"\n# mean_frame_rate = \"mean\"\nd,1500,mean\nA,100,9\n";
    refused(
        "t.csv",
        csv,
        "has a mean frame rate, and no frame sizes",
        ":5:7",
        "frame sizes",
    );
    let csv = "# columns = \"columns\"\n# unit = \"Mbit/s\"\n# mtu = \"big\"\nd,rate\nA,100\n";
    refused("t.csv", csv, "`big` is no MTU", ":3:9", "1500");
    let table = |id: &str, row: &str, more: &str| {
        format!(
            "[[table]]\nid = \"{id}\"\n{more}unit = \"Mbit/s\"\nframe = [64]\nfigures = {{ {row} }}\n"
        )
    };
    let first = table("1", "A = [49.2]", "");
    let other = format!("{first}{}", table("2", "B = [49.2]", "baseline = \"1\"\n"));
    refused(
        "t.toml",
        &other,
        "`2` and `1` have no cell in common",
        ":8:12",
        "same names",
    );
    let more = format!(
        "{first}{}",
        table("2", "A = [49.2], B = [1]", "repeats = \"1\"\n")
    );
    refused(
        "t.toml",
        &more,
        "`2, row B, 64 B` is not in the table that this one repeats",
        ":11:30",
        "names",
    );
}

#[test]
fn other_files_are_refused() {
    refused("t.pdf", "", "does not end in .toml", "", "results.json");
    refused("t.json", "{}", "`schema` is ``", "", "results.json");
    refused(
        "t.json",
        r#"{ "schema": "cipherbench-result/9" }"#,
        "`schema` is `cipherbench-result/9`",
        "",
        "`cipherbench report .`",
    );
    refused("t.json", "{", "no JSON", "", "cipherbench report");
    refused("t.toml", "[[table]\n", "no TOML", ":1:9", "toml");
    refused("t.csv", KEYS, "no table", ":1:1", "rows");
    refused(
        "t.md",
        "<!-- lint\n",
        "the comment has no end",
        ":1:1",
        "-->",
    );
    let long = " ".repeat((1 << 20) + 1);
    refused("t.toml", &long, "longer than 1 MiB", "", "split");
}

#[test]
fn two_units_in_one_cell_are_refused_with_one_mistake() {
    for cell in ["1.2 Gbit/s / 1780 kpps", "1.2 Gbit/s (1780 kpps)"] {
        let what = format!("`{cell}` holds two figures with units");
        let csv = format!("# columns = \"rates\"\nframe,throughput\n64,{cell}\n");
        refused("t.csv", &csv, &what, ":3:4", "a column or a row of its own");
    }
}

#[test]
fn a_prefix_without_its_unit_gets_units_of_every_kind() {
    let csv = "# columns = \"columns\"\nsystem,rate\nA,743.2k\n";
    refused("t.csv", csv, "743.2k", ":3:3", "`unit = \"frames/s\"`");
    let csv = "# unit = \"k\"\n# columns = \"frame\"\nsystem,64\nA,743.2\n";
    let mistakes = lint::read("t.csv", csv).expect_err("a prefix alone");
    let shown = mistakes.to_string();
    assert!(shown.contains("`k` is a prefix alone"), "{shown}");
}

#[test]
fn a_comment_with_a_name_like_ours_is_no_comment_to_pass_over() {
    let table = "| device | 64 |\n|---|---|\n| A | 49.2 Mbit/s |\n";
    for (comment, what) in [
        (
            "<!-- cipherbench-lint\nunit = \"Mbit/s\"\n-->",
            "the comment `cipherbench-lint` is not read",
        ),
        (
            "<!-- cipherbench lint skip -->",
            "the comment `cipherbench` is not read",
        ),
        (
            "<!-- Lint\nunit = \"Mbit/s\"\n-->",
            "the comment `Lint` is not read",
        ),
        (
            "<!--lint\nunit = \"Mbit/s\"\n-->",
            "the comment `lint` is not read",
        ),
        (
            "<!-- lint: unit = \"Mbit/s\" -->",
            "the comment `lint:` is not read",
        ),
        (
            "<!-- lints\ncolumns = \"frame\"\n-->",
            "the comment `lints` is not read",
        ),
        (
            "<!-- lnit unit = \"Mbit/s\" -->",
            "the comment `lnit` is not read",
        ),
        (
            "<!--\nunit = \"Mbit/s\"\n-->",
            "the comment has keys of a table and no name",
        ),
    ] {
        refused(
            "t.md",
            &format!("{comment}\n{table}"),
            what,
            ":1:1",
            "a line `<!-- lint`",
        );
    }
    for comment in [
        "<!-- linting is done by CI -->",
        "<!-- a list\nof | words -->",
        "<!-- lint disable no-html -->",
        "<!--lint disable no-html-->",
        "<!-- markdownlint-disable -->",
    ] {
        let text = format!("{comment}\n{table}");
        assert!(lint::read("t.md", &text).is_ok(), "{comment}");
    }
}

#[test]
fn keys_above_no_table_are_reported_as_that() {
    let what = "no table follows the comment with the key `unit`";
    let keys = "<!-- lint\nunit = \"Mbit/s\"\nlink = \"1 Gbit/s\"\n-->\n";
    let help = "directly above the table";
    refused("t.md", &format!("{keys}just text\n"), what, ":2:1", help);
    refused(
        "t.md",
        &format!("{keys}```\n| a | b |\n|---|---|\n```\n"),
        what,
        ":2:1",
        help,
    );
    let statement = "<!-- lint\n[[mix]]\nname = \"IMIX\"\nmean = 353.8\n-->\n";
    assert!(lint::read("t.md", statement).is_ok());
}
