//! What is printed of a comparison.

use crate::made::{cell, journal, measured, record};
use compare::{Options, Run, compare, junit, markdown, text};
use journal::Journal;

/// Eight repeats of three cells: megabytes by per mille.
fn run(second: u64, values: [u64; 3]) -> Journal {
    let groups = ["tcp/streams=1", "tcp/streams=2", "tcp/streams=4"];
    let mut run = journal(
        groups.map(|group| cell(group, "a|b <c>")).to_vec(),
        8,
        second,
    );
    for (group, value) in groups.iter().zip(values) {
        for repeat in 1..=8 {
            let bytes = value * (1_000_000 + 10_000 * u64::from(repeat % 4));
            record(
                &mut run,
                &format!("{group}/a|b <c>"),
                repeat,
                measured(bytes),
            );
        }
    }
    run
}

fn comparison() -> compare::Comparison {
    let (base, mut other) = (run(1, [1000, 1000, 1000]), run(2, [1000, 900, 1100]));
    other.header.environment.kernel = "Linux 6.12".into();
    let gates = [
        "tcp throughput drops > 5 %",
        "streams=1 throughput drops > 5 %",
        "ping p50 rises > 5 %",
    ];
    let options = Options {
        gates: gates.map(|gate| gate.parse().unwrap()).to_vec(),
        ..Options::default()
    };
    let runs = [("runs/a", &base), ("runs/b", &other)].map(|(name, journal)| Run { name, journal });
    compare(&runs, &options).unwrap()
}

#[test]
fn the_text_has_the_environment_first_and_then_regressions() {
    let text = text(&comparison());
    let places = [
        "A  runs/a: test",
        "B compared with A",
        "environment.kernel",
        "Regressions (1)",
        "Improvements (1)",
        "No change beyond 5 % (1)",
        "3 gates: 1 violated, 1 undecided, 1 passed",
    ]
    .map(|words| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}:\n{text}"))
    });
    assert!(places.is_sorted(), "{text}");
    for gate in [
        "violated: tcp throughput drops > 5 % (3 cells): a change is surely beyond the bound",
        "passed: streams=1 throughput drops > 5 % (1 cell): every change is surely within the bound",
        "undecided: ping p50 rises > 5 % (0 cells): it applies to no cell that both runs have: compare its filters with",
    ] {
        assert!(text.contains(gate), "{gate}:\n{text}");
    }
    let regression = text
        .lines()
        .skip_while(|line| !line.starts_with("Regressions"))
        .nth(1);
    let expected = "  tcp/streams=2/a|b <c>  throughput  4.06 Gbit/s → 3.65 Gbit/s  -10 % (";
    assert!(regression.unwrap().starts_with(expected), "{text}");
}

#[test]
fn markdown_escapes_names_and_has_its_rows_whole() {
    let text = markdown(&comparison());
    assert!(
        text.starts_with("## Comparison of runs: **violated**\n"),
        "{text}"
    );
    let mut columns = 0;
    for line in text.lines() {
        let cells = line.replace("\\|", "").matches('|').count();
        if columns > 0 && cells > 0 {
            assert_eq!(cells, columns, "{line}");
        }
        columns = cells;
    }
    assert!(text.contains("tcp/streams=2/a\\|b &lt;c&gt;"), "{text}");
}

#[test]
fn junit_is_xml_in_which_nothing_undecided_has_passed() {
    let text = junit(&comparison());
    let document =
        roxmltree::Document::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let suites: Vec<_> = document
        .descendants()
        .filter(|node| node.has_tag_name("testsuite"))
        .collect();
    let counts = |name: &str| -> Vec<&str> {
        suites
            .iter()
            .map(|suite| suite.attribute(name).unwrap())
            .collect()
    };
    assert_eq!(counts("tests"), ["3", "1", "1"]);
    assert_eq!(counts("failures"), ["1", "0", "0"]);
    assert_eq!(counts("errors"), ["0", "0", "1"]);
    let failure = document
        .descendants()
        .find(|node| node.has_tag_name("failure"))
        .unwrap();
    let case = failure.parent().unwrap();
    assert_eq!(
        case.attribute("name"),
        Some("B tcp/streams=2/a|b <c> throughput")
    );
    for suite in suites {
        let of = |tag: &str| {
            suite
                .descendants()
                .filter(|node| node.has_tag_name(tag))
                .count()
        };
        assert_eq!(
            of("testcase").to_string(),
            suite.attribute("tests").unwrap()
        );
        assert_eq!(of("error").to_string(), suite.attribute("errors").unwrap());
    }
}

#[test]
fn json_has_its_version_and_every_change() {
    let json: serde_json::Value = serde_json::from_str(&comparison().json()).unwrap();
    assert_eq!(json["schema"], "cipherbench-compare/1");
    assert_eq!(json["pairs"][0]["changes"].as_array().unwrap().len(), 3);
    assert_eq!(json["pairs"][0]["changes"][0]["direction"], "regression");
    assert_eq!(json["gates"][0]["outcome"], "violated");
}
