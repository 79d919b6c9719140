//! All findings in the five published reports. Each was checked by hand against the report.
//! `UPDATE_GOLDEN=1` rewrites them.

use lint::{Checked, Rule};
use std::fs;
use std::path::{Path, PathBuf};

const REPORTS: [&str; 5] = [
    "baikal-gost",
    "crypto-card",
    "lancom-lcos",
    "vipnet-scaling",
    "vut-fekt-100g",
];

fn folder(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(below)
}

fn checked(name: &str) -> Checked {
    let file = format!("reference/{name}.toml");
    let text = fs::read_to_string(folder("../../..").join(&file)).unwrap();
    lint::lint(&file, &text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

#[test]
fn the_five_reports_have_these_findings() {
    let text = lint::text(&REPORTS.map(checked), &[]);
    let path = folder("tests/golden/reports.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expected,
        "tests/golden/reports.txt differs; UPDATE_GOLDEN=1 rewrites it\n{text}"
    );
}

#[test]
fn their_counts_are_documented() {
    let all = REPORTS.map(checked);
    let page = fs::read_to_string(folder("../../../docs/lint.md")).unwrap();
    let findings = || all.iter().flat_map(|one| &one.findings);
    let mut wanted = vec![format!("has {} findings in the five", findings().count())];
    for (name, one) in REPORTS.iter().zip(&all) {
        wanted.push(format!("{name} {}", one.findings.len()));
    }
    for found in findings() {
        let same = findings().filter(|other| other.rule == found.rule).count();
        wanted.push(format!("| {} | {same} |", found.rule.id()));
    }
    for words in wanted {
        assert!(page.contains(&words), "docs/lint.md lacks `{words}`");
    }
}

#[test]
fn every_file_in_reference_is_among_them() {
    let entries = fs::read_dir(folder("../../../reference")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "toml"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, REPORTS);
}

#[test]
fn what_the_reports_have_right_is_no_finding() {
    let subjects = |name: &str, rule: Rule| -> Vec<String> {
        let found = checked(name)
            .findings
            .into_iter()
            .filter(|it| it.rule == rule);
        found.map(|it| it.subject).collect()
    };
    // 987 Mbit/s at 1518 B is the most that 1G carries.
    assert_eq!(
        subjects("lancom-lcos", Rule::ExceedsLink),
        ["9, row ISG-1000, WLC-1000, rate"]
    );
    // A tester's constant frame rate is the device's cost per packet.
    assert_eq!(subjects("lancom-lcos", Rule::ConstantFrameRate), [""; 0]);
    // Weights of mixes, and the headers of ESP.
    assert_eq!(subjects("lancom-lcos", Rule::SumDiffers), [""; 0]);
    assert_eq!(subjects("crypto-card", Rule::SumDiffers), [""; 0]);
    // Table 2.10 repeats others in per cent, and rows of table 2.11 are at the limit of the link.
    assert_eq!(subjects("vut-fekt-100g", Rule::RepeatDiffers), [""; 0]);
    assert_eq!(subjects("vut-fekt-100g", Rule::PastedRow), [""; 0]);
    assert_eq!(subjects("vut-fekt-100g", Rule::PastedTable), ["2.8"]);
}
