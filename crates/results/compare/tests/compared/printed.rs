//! What is printed of a comparison.

use crate::made::{cell, journal, measured, record};
use compare::{Detail, Options, Run, compare, junit, markdown, text, text_within};
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
fn the_text_has_the_answer_first_then_the_doubts_and_then_the_settings() {
    let text = text(&comparison(), Detail::Short);
    let answer = "runs/b compared with runs/a, 3 quantities: 1 regression, 1 improvement, 1 without a change beyond 5 %.\n";
    assert!(text.starts_with(answer), "{text}");
    let places = [
        "3 gates: 1 violated, 1 undecided, 1 passed",
        "Regressions (1)",
        "Improvements (1)",
        "No change beyond 5 % (1): a change outside the interval is excluded",
        "Runs\n",
        "A  runs/a: test",
        "Environment that differs (1)",
        "environment.kernel",
        "The change is the ratio of the two geometric means less 1",
    ]
    .map(|words| {
        text.find(words)
            .unwrap_or_else(|| panic!("{words}:\n{text}"))
    });
    assert!(places.is_sorted(), "{text}");
    for gate in [
        "violated: tcp throughput drops > 5 % (3 cells): a change is surely beyond the bound",
        "passed: streams=1 throughput drops > 5 % (1 cell): every change is surely within the bound",
        "undecided: ping p50 rises > 5 % (0 cells): the base has no ping cell; it has tcp: compare the gate's filters with",
    ] {
        assert!(text.contains(gate), "{gate}:\n{text}");
    }
    let mut lines = text
        .lines()
        .skip_while(|line| !line.starts_with("Regressions"));
    let heading = lines.nth(1).unwrap();
    let columns = [
        "Cell",
        "Quantity",
        "Geometric means",
        "Ratio - 1 (interval)",
    ];
    assert!(
        columns.iter().all(|column| heading.contains(column)),
        "{heading}"
    );
    let expected = "  tcp/streams=2/a|b <c>  throughput  4.060 → 3.654 Gbit/s  -10.0 % (";
    assert!(lines.next().unwrap().starts_with(expected), "{text}");
}

/// A narrow terminal gets every figure that a wide one gets, and no line is wider.
#[test]
fn tables_fit_the_terminal_and_lose_no_figure() {
    let comparison = comparison();
    let words = |text: &str| -> Vec<String> {
        let mut words: Vec<_> = text.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words
    };
    let wide = text(&comparison, Detail::Full);
    for width in [60, 80, 120] {
        let narrow = text_within(&comparison, Detail::Full, width);
        assert_eq!(words(&narrow), words(&wide));
        let rows = narrow
            .lines()
            .skip_while(|line| !line.starts_with("Regressions"))
            .take_while(|line| !line.starts_with("The change"))
            .filter(|line| line.starts_with("  ") && !line.starts_with("  - "))
            .filter(|line| !line.contains(" trials measured"));
        for row in rows {
            assert!(row.chars().count() <= width, "{width}: {row}");
        }
    }
}

/// Of means that a reader divides, the printed change is the result.
#[test]
fn the_printed_change_follows_from_the_printed_means() {
    // Repeats that scatter widely, so that the geometric mean is far from the arithmetic one.
    let run = |second, values: [u64; 4]| {
        let mut run = journal(vec![cell("tcp", "x")], 4, second);
        for (repeat, value) in (1..).zip(values) {
            record(&mut run, "tcp/x", repeat, measured(value * 1_000_000));
        }
        run
    };
    let (base, other) = (run(1, [100, 900, 1000, 1000]), run(2, [700, 750, 720, 730]));
    let runs = [("runs/a", &base), ("runs/b", &other)].map(|(name, journal)| Run { name, journal });
    let found = compare(&runs, &Options::default()).unwrap();
    for text in [text(&found, Detail::Short), markdown(&found)] {
        let line = text.lines().find(|line| line.contains(" → ")).unwrap();
        let (means, change) = line.split_once(" → ").unwrap();
        let number = |word: &str| word.parse::<f64>().unwrap();
        // Both are in one unit, which follows the second.
        let from = number(means.split_whitespace().last().unwrap());
        let words: Vec<&str> = change
            .split([' ', '|'])
            .filter(|word| !word.is_empty())
            .collect();
        let to = number(words[0]);
        let percent = number(words[2]);
        assert!(
            (100.0 * (to / from - 1.0) - percent).abs() <= 0.51,
            "{line}"
        );
    }
}

#[test]
fn an_undecided_change_states_what_it_excludes_and_what_would_decide() {
    let run = |second, more: u64| {
        let mut run = journal(vec![cell("tcp", "x")], 3, second);
        for (repeat, value) in (1..).zip([960, 1000, 1040]) {
            record(
                &mut run,
                "tcp/x",
                repeat,
                measured((value + more) * 1_000_000),
            );
        }
        run
    };
    let (base, other) = (run(1, 0), run(2, 5));
    let runs = [("runs/a", &base), ("runs/b", &other)].map(|(name, journal)| Run { name, journal });
    let text = text(&compare(&runs, &Options::default()).unwrap(), Detail::Short);
    let title = "Undecided (1): no change (0 %) and changes beyond 5 % are both possible; a change outside the interval is \
                 excluded; repeats are for 5 %";
    assert!(text.contains(title), "{text}");
    let row = text.lines().find(|line| line.contains(" → ")).unwrap();
    assert!(
        row.contains(" %) ")
            && row.contains("  about ")
            && row.contains("repeats would decide (`run CAMPAIGN --repeats "),
        "{row}"
    );
    // The bound of a gate needs another number, which its line states.
    let options = Options {
        gates: vec!["throughput drops > 3 %".parse().unwrap()],
        ..Options::default()
    };
    let text = compare::text(&compare(&runs, &options).unwrap(), Detail::Short);
    let row = text.lines().find(|line| line.contains(" → ")).unwrap();
    assert!(row.ends_with("as its gate states"), "{text}");
    assert_eq!(text.matches("would decide").count(), 1, "{text}");
}

/// Two repeats show one difference, from which neither an end of an interval nor a small number of
/// repeats follows.
#[test]
fn the_interval_of_two_repeats_has_no_digits_without_a_meaning() {
    let run = |second, values: [u64; 2]| {
        let mut run = journal(vec![cell("tcp", "x")], 2, second);
        for (repeat, value) in (1..).zip(values) {
            record(&mut run, "tcp/x", repeat, measured(value * 1_000_000));
        }
        run
    };
    let (base, other) = (run(1, [1000, 3000]), run(2, [3000, 1000]));
    let runs = [("runs/a", &base), ("runs/b", &other)].map(|(name, journal)| Run { name, journal });
    let text = text(&compare(&runs, &Options::default()).unwrap(), Detail::Short);
    assert!(text.contains("(too wide to tell: "), "{text}");
    let (base, other) = (run(1, [1000, 1001]), run(2, [2000, 9000]));
    let runs = [("runs/a", &base), ("runs/b", &other)].map(|(name, journal)| Run { name, journal });
    let text = compare::text(&compare(&runs, &Options::default()).unwrap(), Detail::Short);
    assert!(text.contains("under 0.001 to over 1000 times"), "{text}");
    let row = text.lines().find(|line| line.contains(" → ")).unwrap();
    let repeats: Vec<u32> = row
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    assert!(repeats.iter().all(|repeats| *repeats >= 5), "{row}");
}

#[test]
fn warnings_of_the_runs_are_shown_once_with_their_names() {
    let run = |second, repeats: u32| {
        let cells = ["tcp/streams=1", "tcp/streams=2"].map(|group| cell(group, "x"));
        let mut run = journal(cells.to_vec(), repeats, second);
        for repeat in 1..=repeats {
            for group in ["tcp/streams=1", "tcp/streams=2"] {
                record(
                    &mut run,
                    &format!("{group}/x"),
                    repeat,
                    measured(u64::from(1000 + repeat) * 1_000_000),
                );
            }
        }
        run
    };
    let (base, other, third) = (run(1, 2), run(2, 2), run(3, 3));
    let runs = [("runs/a", &base), ("runs/b", &other), ("runs/c", &third)];
    let found = compare(
        &runs.map(|(name, journal)| Run { name, journal }),
        &Options::default(),
    )
    .unwrap();
    let doubt = "runs/a and runs/b: Each cell was measured twice: the spread says little.";
    let short = text(&found, Detail::Short);
    assert_eq!(short.matches("was measured twice").count(), 1, "{short}");
    assert!(short.contains(doubt), "{short}");
    assert!(markdown(&found).contains(doubt), "{}", markdown(&found));
    let all = "all runs: 2 cells cannot be compared: the campaign measures no baseline there.";
    assert!(short.contains(all), "{short}");
}

#[test]
fn of_many_differences_the_short_text_has_a_few_and_the_full_one_all() {
    let base = run(1, [1000, 1000, 1000]);
    let mut other = run(2, [1000, 1000, 1000]);
    for trial in &mut other.trials {
        if let journal::record::Outcome::Measured(measured) = &mut trial.outcome {
            let facts = &mut measured.evidence.dut_facts;
            facts.extend((0..60).map(|n| (format!("gw1/fact {n}"), "x".repeat(150))));
        }
    }
    let runs = [("runs/a", &base), ("runs/b", &other)].map(|(name, journal)| Run { name, journal });
    let found = compare(&runs, &Options::default()).unwrap();
    let (short, full) = (text(&found, Detail::Short), text(&found, Detail::Full));
    assert_eq!(short.matches("gw1/fact").count(), 8, "{short}");
    assert!(short.contains("52 more differences: `--full`"), "{short}");
    assert_eq!(full.matches("gw1/fact").count(), 60, "{full}");
    assert!(!full.contains('…'), "values are whole");
    assert!(
        !full.contains("environment."),
        "what is equal is not listed: {full}"
    );
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
