//! All mistakes of a file are listed at once, whatever their kinds.

fn mistakes(file: &str, text: &str) -> Vec<String> {
    let mistakes = lint::read(file, text).expect_err(text);
    let shown = |it: &yaml::Mistake| {
        let spot = it
            .place
            .spot
            .as_ref()
            .map_or((0, 0), |spot| (spot.line, spot.column));
        format!("{}:{} {}", spot.0, spot.1, it.what)
    };
    mistakes.iter().map(shown).collect()
}

#[test]
fn commas_parts_units_and_texts_are_reported_together() {
    let csv = "# columns = \"columns\"\ndevice;up;both;down;rate\nA;1,234;533/356;5;fast\nB;2,345;1/2/3;x1;1,2\nC;3,456;8;7;9.5\n";
    let expected = [
        "3:3 the comma of `1,234` in column `up` is ambiguous: it may separate thousands",
        "3:3 figures of table `table 1` have no unit",
        "3:9 a cell holds 2 figures without names",
        "3:19 `fast` is no figure",
        "4:9 a cell in column `both` holds 3 figures, and the first one 2",
        "4:15 `x1` is no figure",
        "4:18 column `rate` has two decimal marks: the comma of `1,2` and the point of `9.5`",
    ];
    assert_eq!(mistakes("t.csv", csv), expected);
    // A table without keys.
    let bare = "| device | up [Mbit/s] | both [Mbit/s] |\n|---|---|---|\n| A | 1,234 | 533/356 |\n| B | 2,345 | 7 |\n";
    assert_eq!(
        mistakes("t.md", bare),
        [
            "3:7 the comma of `1,234` in column `up [Mbit/s]` is ambiguous: it may separate thousands",
            "3:15 a cell holds 2 figures without names",
        ]
    );
    // Figures without any unit are not checked there, and refuse no file.
    let counts = "| of | frobs |\n|---|---|\n| A | 1,234 |\n| B | 3/12/2026 |\n\n| of | rate |\n|---|---|\n| A | 940 Mbit/s |\n";
    let found = lint::lint("t.md", counts).unwrap_or_else(|it| panic!("{it}"));
    assert_eq!(found.figures, 1);
}

#[test]
fn a_column_that_cannot_be_used_hides_no_mistake_of_its_cells_or_of_others() {
    let csv = "# columns = \"frame\"\n# unit = \"Mbit/s\"\ndevice,15l8,64\nA,fast,49.2\nB,1,slow\n";
    assert_eq!(
        mistakes("t.csv", csv),
        [
            "3:8 column `15l8` is no size",
            "4:3 `fast` is no figure",
            "5:3 `slow` is no figure",
        ]
        .map(|it| it.replace("5:3 `slow`", "5:5 `slow`"))
    );
    let csv = "# columns = \"columns\"\n# unit = \"Mbit/s\"\nof,both,rate\nA,1.2 Gbit/s / 1780 kpps,fast\nB,none here,5\n";
    assert_eq!(
        mistakes("t.csv", csv),
        [
            "4:3 `1.2 Gbit/s / 1780 kpps` holds two figures with units",
            "4:26 `fast` is no figure",
            "5:3 `none here` is no figure",
        ]
    );
    let toml = "[[table]]\nid = \"1\"\nunit = \"Mbit/s\"\nframe = [\"big\", 64]\nfigures = { A = [\"fast\", 49.2] }\n";
    assert_eq!(
        mistakes("t.toml", toml),
        ["4:10 column `big` is no size", "5:18 `fast` is no figure"]
    );
}

#[test]
fn keys_that_are_no_toml_hide_no_mistake_of_cells_and_cause_no_other() {
    let text = "<!-- lint\nid = \"clear\"\nunit = Mbit/s\ncolumns = frame\n-->\n| of | 64 | 512 |\n|---|---|---|\n\
                | A | fast | 1,234 |\n| B | 49.2 |\n\n\
                <!-- lint\nunit = \"Mbit/s\"\nbaseline = \"clear\"\n-->\n| of | 64 |\n|---|---|\n| A | slow |\n";
    let shown = mistakes("t.md", text);
    let places: Vec<&str> = shown
        .iter()
        .map(|it| it.split(' ').next().unwrap_or_default())
        .collect();
    assert_eq!(places, ["3:8", "4:11", "8:7", "9:3", "17:7"], "{shown:?}");
    assert!(
        shown[0].contains("no TOML") && shown[2].contains("`fast` is no figure"),
        "{shown:?}"
    );
}
