//! Copied rows, columns and devices, and equal ones that are no copies.

use lint::Rule;

fn found(text: &str) -> Vec<String> {
    let checked = lint::lint("t.md", text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"));
    let copies = checked
        .findings
        .iter()
        .filter(|it| it.rule == Rule::PastedRow);
    copies
        .map(|it| format!("{}: {}", it.subject, it.arithmetic))
        .collect()
}

const KEYS: &str = "<!-- lint\nunit = \"Mbit/s\"\ncolumns = \"columns\"\n-->\n";

#[test]
fn a_row_of_a_table_without_sizes_is_a_copy_under_any_name() {
    let table = |names: [&str; 2], cells: &str| {
        format!(
            "{KEYS}| of | GCM | CBC | CTR | none |\n|---|---|---|---|---|\n| {} | {cells} |\n| {} | {cells} |\n",
            names[0], names[1]
        )
    };
    let cells = "812 | 415 | 633 | 940";
    assert_eq!(
        found(&table(["A", "B"], cells)),
        ["table 1, row B: all 4 figures are those of row A, digit for digit"]
    );
    assert_eq!(found(&table(["A", "A"], cells)).len(), 1);
    // Two ends of one transfer, and two statistics of one repeat.
    for names in [["sender", "receiver"], ["A, rx", "A, tx"], ["min", "max"]] {
        assert_eq!(found(&table(names, cells)), [""; 0], "{names:?}");
    }
    // Round figures, the limit of one link, and too few different figures.
    for cells in [
        "800 | 400 | 630 | 940",
        "941 | 939 | 935 | 942",
        "812 | 812 | 415 | 415",
    ] {
        assert_eq!(found(&table(["A", "B"], cells)), [""; 0], "{cells}");
    }
}

#[test]
fn a_column_of_a_table_without_sizes_is_a_copy() {
    let table = |names: &str| {
        format!(
            "{KEYS}| suite | {names} | C |\n|---|---|---|---|\n| GCM | 812 | 812 | 700 |\n| CBC | 415 | 415 | 300 |\n\
                 | CTR | 633 | 633 | 500 |\n"
        )
    };
    assert_eq!(
        found(&table("A | B")),
        ["table 1, column B: all 3 figures are those of column A, digit for digit"]
    );
    assert_eq!(found(&table("sent | received")), [""; 0]);
    assert_eq!(found(&table("rate min | rate max")), [""; 0]);
}

#[test]
fn a_copied_device_is_one_finding_of_all_its_columns() {
    let rows = "| 64 | 320 | 62500 | 320 | 62500 |\n| 512 | 640 | 15625 | 640 | 15625 |\n| 1518 | 940 | 77404 | 940 | 77404 |\n";
    let heading =
        "| Frame size | A (Mbit/s) | A [pps] | B (Mbit/s) | B [pps] |\n|---|---|---|---|---|\n";
    assert_eq!(
        found(&format!("{heading}{rows}")),
        [
            "table 1, columns B (Mbit/s), B [pps]: all 6 figures are those of columns A (Mbit/s), A [pps], digit for digit"
        ]
    );
    // One column of two.
    let one = rows.replace("| 320 | 62500 |\n", "| 320 | 62600 |\n");
    assert_eq!(
        found(&format!("{heading}{one}")),
        [
            "table 1, column B (Mbit/s): all 3 figures are those of column A (Mbit/s), digit for digit"
        ]
    );
    let models = "| Model | Frame size | Mbit/s | Latency [µs] |\n|---|---|---|---|\n\
                  | A | 64 | 320 | 12.5 |\n| | 512 | 640 | 13.7 |\n| | 1518 | 940 | 19.1 |\n\
                  | B | 64 | 320 | 12.5 |\n| | 512 | 640 | 13.7 |\n| | 1518 | 940 | 19.1 |\n";
    assert_eq!(
        found(models),
        ["table 1, B: all 6 figures are those of A, digit for digit"]
    );
}

#[test]
fn a_row_of_one_size_that_is_printed_twice_is_a_copy() {
    let text = "| Frame size | A (Mbit/s) | B (Mbit/s) | C (Mbit/s) |\n|---|---|---|---|\n| 64 | 121 | 305 | 49.2 |\n\
                | 512 | 371 | 812 | 383 |\n| 512 | 371 | 812 | 383 |\n";
    assert_eq!(
        found(text),
        ["table 1, row 512: all 3 figures are those of row 512, digit for digit"]
    );
}
