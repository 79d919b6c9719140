//! Rows and columns of data sheets that count something: they are left out, with a remark.

use lint::Checked;

fn checked(file: &str, text: &str) -> Checked {
    lint::lint(file, text).unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

fn remarks(checked: &Checked) -> String {
    let remarks = checked.remarks.iter().map(|it| it.what.as_str());
    remarks.collect::<Vec<_>>().join("\n")
}

const SESSIONS: &str = "row `Sessions` of table 1 is a count and no rate: it is left out";

#[test]
fn a_row_of_a_count_never_takes_the_unit_of_the_table_whatever_its_keys_are() {
    let rows = "| Metric | CG-100 | CG-500 |\n|---|---|---|\n| Firewall | 940 | 1,200.5 |\n| Sessions | 10,000 | 3 Mio |\n";
    for keys in [
        "unit = \"Mbit/s\"\ncolumns = \"columns\"\n",
        "unit = \"Mbit/s\"\n",
        "unit = \"Mbit/s\"\nlink = \"10 Gbit/s\"\n",
        "unit = \"Mbit/s\"\ndecimal = \"point\"\n",
    ] {
        let found = checked("t.md", &format!("<!-- lint\n{keys}-->\n{rows}"));
        assert_eq!(found.figures, 2, "{keys}");
        assert!(
            remarks(&found).contains(SESSIONS),
            "{keys}{}",
            remarks(&found)
        );
    }
    // Sizes as columns, and as rows.
    let columns = "<!-- lint\nunit = \"Mbit/s\"\n-->\n| Metric | 64 | 1518 |\n|---|---|---|\n| A | 49.2 | 984 |\n\
                   | Sessions | 10,000 | unlimited |\n";
    let rates = "<!-- lint\nlayer = \"L2\"\n-->\n| Frame size | CG (Mbit/s) |\n|---|---|\n| 64 | 49.2 |\n| 1518 | 984 |\n\
                 | Sessions | 10,000 |\n";
    for text in [columns, rates] {
        assert!(remarks(&checked("t.md", text)).contains(SESSIONS), "{text}");
    }
    let toml = "[[table]]\nid = \"table 1\"\nunit = \"Mbit/s\"\ncolumns = [\"A\", \"Ports\"]\n[table.figures]\n\
                Firewall = [940, 8]\nSessions = [10000, \"\"]\n";
    let found = checked("t.toml", toml);
    assert_eq!(found.figures, 1);
    let remarks = remarks(&found);
    assert!(
        remarks.contains(SESSIONS) && remarks.contains("column `Ports`"),
        "{remarks}"
    );
}

#[test]
fn a_count_without_keys_is_remarked_and_is_no_evidence_for_decimal_marks() {
    let text = "| Model | Throughput | Concurrent sessions | New sessions/s | Ports |\n|---|---|---|---|---|\n\
                | A | 1,5 Gbit/s | 1,000 | 50,000 | 8 |\n| B | 2,5 Gbit/s | 3 Mio | 1 Mrd | 4 |\n";
    let found = checked("t.md", text);
    assert_eq!(found.figures, 2);
    let remarks = remarks(&found);
    for remark in [
        "column `Concurrent sessions` of table 1 is a count and no rate: it is left out",
        "column `New sessions/s` of table 1 counts events per second, and no bits or frames: it is left out",
        "column `Ports` of table 1 is a count and no rate: it is left out",
    ] {
        assert!(remarks.contains(remark), "{remarks}");
    }
    let csv = "# columns = \"columns\"\ndevice,Ports,rate [Mbit/s]\nA,8,940\n";
    let remarks = self::remarks(&checked("t.csv", csv));
    assert!(
        remarks.contains("column `Ports` of table 1 is a count")
            && !remarks.contains("add one in []"),
        "{remarks}"
    );
}

#[test]
fn rates_at_a_number_of_sessions_are_read() {
    let text = "<!-- lint\nunit = \"Mbit/s\"\ncolumns = \"columns\"\n-->\n| of | rate |\n|---|---|\n| 1 tunnel | 940 |\n\
                | 8 tunnels | 930 |\n| all ports | 920 |\n| Sessions | 910 Mbit/s |\n| Users [kbit/s] | 64 |\n";
    assert_eq!(checked("t.md", text).figures, 5);
}

#[test]
fn words_for_millions_are_prefixes() {
    let text = "# columns = \"columns\"\n# unit = \"pps\"\n# decimal = \"comma\"\nof,rate\nA,3 Mio\nB,\"2,5 Mio. pps\"\n\
                C,1 Mrd bit/s\nD,4 k\n";
    let document = lint::read("t.csv", text).unwrap_or_else(|it| panic!("{it}"));
    let rates = document.tables[0]
        .cells()
        .map(|cell| cell.rate().map(|it| it.middle()));
    assert_eq!(
        rates.collect::<Vec<_>>(),
        [Some(3e6), Some(2.5e6), Some(1e9), Some(4e3)]
    );
}
