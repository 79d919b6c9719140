//! Which cells are compared, and what else differs.

use crate::made::{Noise, SECOND_NS, cell, journal, measured, record};
use compare::{CompareError, Comparison, Detail, Difference, Direction, Options, Run, compare};
use journal::Journal;
use journal::record::Outcome;
use plan::{Adapter, Cell, Encryptor, Measurement, Software};
use stats::{Results, Standing};
use std::collections::BTreeMap;
use wire::Suite;

/// Three repeats of each cell, the megabytes of the first.
fn run(second: u64, cells: Vec<(Cell, u64)>) -> Journal {
    let planned = cells.iter().map(|(cell, _)| cell.clone()).collect();
    let mut run = journal(planned, 3, second);
    for (cell, value) in &cells {
        for repeat in 1..=3 {
            let bytes = value * 1_000_000 * (1000 + u64::from(repeat)) / 1000;
            record(&mut run, &cell.id, repeat, measured(bytes));
        }
    }
    run
}

fn compared(runs: &[&Journal], matches: &[&str]) -> Result<Comparison, CompareError> {
    let options = Options {
        matches: matches.iter().map(|text| text.parse().unwrap()).collect(),
        ..Options::default()
    };
    let names = ["runs/a", "runs/b", "runs/c"];
    let runs = names.iter().zip(runs);
    let runs: Vec<Run<'_>> = runs.map(|(name, journal)| Run { name, journal }).collect();
    compare(&runs, &options)
}

#[test]
fn what_is_common_is_compared_and_the_rest_is_listed() {
    let base = run(
        1,
        vec![
            (cell("tcp/mtu=1500", "x"), 100),
            (cell("tcp/mtu=9000", "x"), 100),
        ],
    );
    let other = run(
        2,
        vec![
            (cell("tcp/mtu=1500", "x"), 50),
            (cell("tcp/mtu=1500", "y"), 90),
        ],
    );
    let found = compared(&[&base, &other], &[]).unwrap();
    let pair = &found.pairs[0];
    assert_eq!(pair.changes.len(), 1);
    let change = &pair.changes[0];
    assert_eq!(
        (&*change.cell, change.direction),
        ("tcp/mtu=1500/x", Direction::Regression)
    );
    assert!((change.ratio - 0.5).abs() < 1e-6 && !change.paired);
    assert_eq!(pair.only_in_base, ["tcp/mtu=9000/x"]);
    assert_eq!(pair.only_in_other, ["tcp/mtu=1500/y"]);
    // A third run is compared with the first too.
    let third = run(3, vec![(cell("tcp/mtu=9000", "x"), 100)]);
    let found = compared(&[&base, &other, &third], &[]).unwrap();
    assert_eq!(found.pairs.len(), 2);
    assert_eq!(
        (found.pairs[1].run, &*found.pairs[1].changes[0].cell),
        (2, "tcp/mtu=9000/x")
    );
    assert_eq!(found.intervals, 2, "both are one question");
}

#[test]
fn a_cell_is_found_by_its_values_where_the_other_campaign_names_other_axes() {
    // The base varies the streams, the other does not, and runs as many.
    let base = run(1, vec![(cell("tcp/mtu=1500/streams=4", "x"), 100)]);
    let other = run(2, vec![(cell("tcp/mtu=1500", "x"), 100)]);
    let found = compared(&[&base, &other], &[]).unwrap();
    let change = &found.pairs[0].changes[0];
    assert_eq!(change.other_cell.as_deref(), Some("tcp/mtu=1500/x"));
    let mut eight = cell("tcp/mtu=1500", "x");
    if let Measurement::Tcp { streams, .. } = &mut eight.measurement {
        *streams = 8;
    }
    let found = compared(&[&base, &run(2, vec![(eight, 100)])], &[]).unwrap();
    assert!(found.is_empty(), "eight streams are another cell");
}

#[test]
fn devices_of_other_names_are_matched_between_runs_and_within_one() {
    let base = run(1, vec![(cell("tcp", "old fw"), 100)]);
    let other = run(2, vec![(cell("tcp", "new=fw"), 150)]);
    assert!(compared(&[&base, &other], &[]).unwrap().is_empty());
    let found = compared(&[&base, &other], &["old fw=new=fw"]).unwrap();
    assert_eq!(found.pairs[0].changes[0].direction, Direction::Improvement);

    let one = run(
        1,
        vec![
            (cell("tcp", "x"), 100),
            (cell("tcp", "y"), 102),
            (cell("tcp/mtu=1300", "x"), 1),
        ],
    );
    let found = compared(&[&one], &["x=y"]).unwrap();
    let change = &found.pairs[0].changes[0];
    assert!(change.paired && change.other_cell.as_deref() == Some("tcp/y"));
    // The same scatter in each block cancels.
    assert!((change.ratio - 1.02).abs() < 1e-6, "{change:?}");
    assert_eq!(found.pairs[0].only_in_base, ["tcp/mtu=1300/x"]);
}

#[test]
fn bad_input_is_an_error_that_names_the_run() {
    let base = run(1, vec![(cell("tcp", "x"), 100)]);
    let same = compared(&[&base, &base.clone()], &[])
        .unwrap_err()
        .to_string();
    assert!(
        same.starts_with("runs/a and runs/b are the same run: both began at 1970"),
        "{same}"
    );
    // Also where one of them goes on: its journal was copied in between.
    let mut cut = base.clone();
    cut.trials.truncate(1);
    cut.end = None;
    assert!(matches!(
        compared(&[&cut, &base], &[]),
        Err(CompareError::SameRun { .. })
    ));
    let one = compared(&[&base], &[]).unwrap_err().to_string();
    assert!(
        one.contains("runs/a is the only run") && one.contains("`x`"),
        "{one}"
    );
    let other = run(2, vec![(cell("tcp", "y"), 100)]);
    let unknown = compared(&[&base, &other], &["x=z"])
        .unwrap_err()
        .to_string();
    assert!(
        unknown.contains("runs/b has no device `z`") && unknown.contains("has `y`"),
        "{unknown}"
    );
    assert!(compared(&[&base], &["x=x"]).is_err());
    assert_eq!(compared(&[], &[]), Err(CompareError::NoRun));
}

#[test]
fn an_unfinished_run_is_compared_with_a_warning() {
    let base = run(1, vec![(cell("tcp", "x"), 100)]);
    let mut other = run(2, vec![(cell("tcp", "x"), 100)]);
    other.trials.truncate(2);
    other.end = None;
    let found = compared(&[&base, &other], &[]).unwrap();
    assert_eq!(found.pairs[0].changes[0].other_repeats, 2);
    let warning = &found.runs[1].warnings[0];
    assert!(warning.contains("1 of 3 trials was not run"), "{warning}");
}

#[test]
fn what_differs_besides_the_figures_is_listed() {
    let base = run(1, vec![(cell("tcp", "x"), 100), (cell("udp", "x"), 100)]);
    let mut cells = vec![(cell("tcp", "x"), 100), (cell("udp", "x"), 100)];
    for (cell, _) in &mut cells {
        if let Measurement::Tcp { duration_ns, .. } = &mut cell.measurement {
            *duration_ns = 10 * SECOND_NS;
        }
    }
    let mut other = run(2, cells);
    other.header.environment.kernel = "Linux 6.12".into();
    let tools = &mut other.header.environment.tools;
    tools.insert("iperf3".into(), "3.18".into());
    for (place, trial) in other.trials.iter_mut().enumerate() {
        if let Outcome::Measured(measured) = &mut trial.outcome {
            let facts = &mut measured.evidence.dut_facts;
            facts.insert("gw1/version".into(), format!("2.{}", place / 3));
        }
    }
    let found = compared(&[&base, &other], &[]).unwrap();
    let difference = |what: &str, other: &str, cells| Difference {
        what: what.into(),
        base: String::new(),
        other: other.into(),
        cells,
    };
    assert_eq!(
        found.pairs[0].environment,
        [
            difference("environment.kernel", "Linux 6.12", None),
            difference("environment.tools.iperf3", "3.18", None)
        ]
    );
    let mut expected = difference("measurement.duration_ns", "10000000000", Some(2));
    expected.base = "2000000000".into();
    // A base without facts shows them as added.
    let settings: BTreeMap<_, _> = found.pairs[0]
        .settings
        .iter()
        .map(|one| (&*one.what, one))
        .collect();
    assert_eq!(settings["measurement.duration_ns"], &expected);
    assert_eq!(settings["x: gw1/version"].cells, Some(1));
}

/// Two groups of four devices, whose throughputs differ by little more than repeats scatter.
fn rivals(seed: u64) -> Journal {
    let devices = [("w", 1.0), ("x", 1.012), ("y", 1.02), ("z", 1.05)];
    let groups = ["tcp/streams=1", "tcp/streams=2"];
    let cells = groups
        .iter()
        .flat_map(|group| devices.map(|(name, _)| cell(group, name)));
    let mut run = journal(cells.collect(), 5, 1);
    let mut noise = Noise(seed);
    for repeat in 1..=5 {
        for group in groups {
            for (name, level) in devices {
                let bytes = 1e9 * level * (0.01 * noise.normal()).exp();
                record(
                    &mut run,
                    &format!("{group}/{name}"),
                    repeat,
                    measured(bytes as u64),
                );
            }
        }
    }
    run
}

#[test]
fn a_ranking_and_a_comparison_of_two_devices_within_the_run_find_the_same() {
    let mut decided = [0, 0];
    for seed in 0..30 {
        let run = rivals(seed);
        let results = Results::of(&run);
        assert_eq!(results.rankings.len(), 2);
        for ranking in &results.rankings {
            let mut places = ranking.places.iter();
            let best = places
                .find(|place| place.ratio_to_best == Some(1.0))
                .unwrap();
            for (own, other) in pairs(&ranking.places) {
                let found = compared(&[&run], &[&format!("{}={}", own.dut, other.dut)]).unwrap();
                let mut changes = found.pairs[0].changes.iter();
                let change = changes.find(|change| change.cell == own.cell).unwrap();
                let (own_rank, other_rank) = (own.rank.unwrap(), other.rank.unwrap());
                match change.direction {
                    Direction::Regression => assert!(own_rank < other_rank, "{change:?}"),
                    Direction::Improvement => assert!(own_rank > other_rank, "{change:?}"),
                    Direction::Undecided | Direction::Unchanged => assert!(
                        own_rank.first <= other_rank.last && other_rank.first <= own_rank.last,
                        "{own:?} {other:?} {change:?}"
                    ),
                }
                let is_sure = change
                    .interval()
                    .is_some_and(|(low, high)| low > 1.0 || high < 1.0);
                decided[usize::from(is_sure)] += 1;
                if own.cell == best.cell {
                    let near =
                        |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-9;
                    assert!(near(other.ratio_to_best, Some(change.ratio)));
                    assert!(
                        near(other.ratio_to_best_low, change.low),
                        "{other:?} {change:?}"
                    );
                    assert!(near(other.ratio_to_best_high, change.high));
                }
            }
        }
    }
    assert!(decided[0] > 30 && decided[1] > 30, "{decided:?}");
}

fn pairs(places: &[Standing]) -> impl Iterator<Item = (&Standing, &Standing)> {
    let of = |own| places.iter().map(move |other| (own, other));
    places
        .iter()
        .flat_map(of)
        .filter(|(own, other)| own.dut != other.dut)
}

#[test]
fn valid_repeats_are_compared_and_the_invalid_one_is_named_with_its_run_and_device() {
    let mut one = run(1, vec![(cell("tcp", "x"), 100), (cell("tcp", "y"), 102)]);
    let Outcome::Measured(figures) = measured(1_000_000) else {
        unreachable!("it is measured");
    };
    let reasons = vec!["machine-was-ours: other programs had 40 % of it".to_owned()];
    record(
        &mut one,
        "tcp/y",
        3,
        Outcome::Invalid {
            reasons,
            measured: figures,
        },
    );
    let found = compared(&[&one], &["x=y"]).unwrap();
    let pair = &found.pairs[0];
    assert!(pair.without_change.is_empty(), "{pair:?}");
    let change = &pair.changes[0];
    assert_eq!(
        (
            change.base_repeats,
            change.other_repeats,
            change.other_planned
        ),
        (2, 2, 3)
    );
    assert!((change.ratio - 1.02).abs() < 1e-6, "{change:?}");
    let [partly] = &pair.partly[..] else {
        panic!("{:?}", pair.partly);
    };
    assert_eq!(
        (partly.run, &*partly.cell, partly.measured, partly.planned),
        (0, "tcp/y", 2, 3)
    );
    let text = compare::text(&found, Detail::Short);
    let doubt = "runs/a: tcp/y [2 of 3]: of 3 repeats 1 is invalid: machine-was-ours: other programs had 40 % of it; repeat it \
                 while nothing else uses the machine: `cipherbench resume runs/a --invalid`";
    assert!(text.contains(doubt), "{text}");
    // Both means are of the two repeats that both have.
    assert!(text.contains(" [2 of 3] → "), "{text}");

    // Without any, the device is named, and not "the other run".
    let failed = || Outcome::Failed {
        reason: "it died".into(),
    };
    (1..=3).for_each(|repeat| record(&mut one, "tcp/y", repeat, failed()));
    let found = compared(&[&one], &["x=y"]).unwrap();
    let without = &found.pairs[0].without_change[0];
    assert_eq!(without.reason, "y: it failed: it died");
    assert_eq!(
        without.help,
        "remove the cause and repeat it: `cipherbench resume runs/a`"
    );
}

/// A cell of a version, as a campaign with several names it.
fn of_version(group: &str, workers: u16, version: &str) -> Cell {
    let mut cell = cell(group, &format!("w{workers} {version}"));
    cell.dut.adapter = Adapter::Cipherbench(Encryptor {
        workers,
        ..Encryptor::new(Suite::Aes256Gcm)
    });
    cell.dut.software = Software {
        version: Some(version.to_owned()),
        program: Some(format!("./{version}")),
        ..Software::default()
    };
    cell
}

#[test]
fn versions_of_one_run_are_compared_as_two_runs_are() {
    let one = run(
        1,
        vec![
            (of_version("tcp/mtu=1500", 1, "old"), 100),
            (of_version("tcp/mtu=1500", 1, "new"), 50),
            (of_version("tcp/mtu=1500", 1, "newer"), 110),
            (of_version("tcp/mtu=1500", 2, "old"), 200),
            (of_version("tcp/mtu=1500", 2, "new"), 200),
        ],
    );
    let changes = |matches: &[&str]| -> Vec<(String, String)> {
        let found = compared(&[&one], matches).unwrap();
        let mut changes: Vec<_> = found.pairs[0]
            .changes
            .iter()
            .map(|change| {
                assert!(change.paired);
                let other = change.other_cell.clone().unwrap_or_default();
                (change.cell.clone(), other)
            })
            .collect();
        changes.sort();
        changes
    };
    let pair = |workers: u16, old: &str, new: &str| {
        let id = |version: &str| format!("tcp/mtu=1500/w{workers} {version}");
        (id(old), id(new))
    };
    let old_new = [pair(1, "old", "new"), pair(2, "old", "new")];
    assert_eq!(changes(&["old=new"]), old_new);
    // Without a match each version with the first one.
    let all = [
        pair(1, "old", "new"),
        pair(1, "old", "newer"),
        pair(2, "old", "new"),
    ];
    assert_eq!(changes(&[]), all);
    assert_eq!(changes(&["new=newer"]), [pair(1, "new", "newer")]);
    // Devices still have names.
    assert_eq!(changes(&["w2 old=w2 new"]), [pair(2, "old", "new")]);
    let error = compared(&[&one], &["old=newest"]).unwrap_err().to_string();
    assert!(error.contains("has no device"), "{error}");
}

#[test]
fn a_version_of_one_run_is_compared_with_another_of_the_next() {
    let base = run(1, vec![(of_version("tcp/mtu=1500", 1, "v1"), 100)]);
    let other = run(2, vec![(of_version("tcp/mtu=1500", 1, "v2"), 50)]);
    let found = compared(&[&base, &other], &["v1=v2"]).unwrap();
    assert_eq!(found.pairs[0].changes.len(), 1);
    let differs = &found.pairs[0].settings;
    let program = |it: &Difference| it.what == "dut.software.program";
    assert!(differs.iter().any(program), "{differs:?}");
}
