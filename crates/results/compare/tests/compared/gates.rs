//! Gates on comparisons.

use crate::made::{cell, journal, measured, record};
use compare::{Comparison, Options, Outcome, Run, compare};
use journal::Journal;
use journal::record::{Cpu, Outcome as Recorded};
use plan::{Cell, Measurement};
use std::fs;
use std::path::Path;

/// A run of those cells with these repeats, in megabytes.
pub(crate) fn run(second: u64, cells: &[(&str, &[u64])]) -> Journal {
    let planned: Vec<Cell> = cells.iter().map(|(group, _)| cell(group, "x")).collect();
    let repeats = cells
        .iter()
        .map(|(_, values)| values.len())
        .max()
        .unwrap_or(1);
    let mut run = journal(planned, repeats as u32, second);
    for (group, values) in cells {
        for (repeat, value) in (1..).zip(*values) {
            record(
                &mut run,
                &format!("{group}/x"),
                repeat,
                measured(value * 1_000_000),
            );
        }
    }
    run
}

fn judged(base: &Journal, other: &Journal, gate: &str) -> Comparison {
    let options = Options {
        gates: vec![gate.parse().unwrap()],
        ..Options::default()
    };
    let runs = [("a", base), ("b", other)].map(|(name, journal)| Run { name, journal });
    compare(&runs, &options).unwrap()
}

fn outcome(base: &Journal, other: &Journal, gate: &str) -> Outcome {
    judged(base, other, gate).outcome()
}

/// Scatter of about 1 %; five per cent less than `BASE`.
pub(crate) const BASE: &[u64] = &[990, 1000, 1010, 1000, 1005, 995, 1000, 1008];
pub(crate) const LESS: &[u64] = &[940, 950, 960, 950, 955, 945, 950, 958];

#[test]
fn an_interval_beyond_the_bound_violates_and_one_that_crosses_it_is_undecided() {
    let (base, less) = (run(1, &[("tcp", BASE)]), run(2, &[("tcp", LESS)]));
    for (gate, expected) in [
        ("throughput drops > 2 %", Outcome::Violated),
        ("tcp throughput drops > 5 %", Outcome::Undecided),
        ("throughput drops > 10 %", Outcome::Passed),
        ("throughput rises > 0 %", Outcome::Passed),
        ("udp throughput drops > 10 %", Outcome::Undecided),
        ("dut=y throughput drops > 10 %", Outcome::Undecided),
        ("dut=x mtu=1500 throughput drops > 10 %", Outcome::Passed),
        ("mtu=1300 throughput drops > 10 %", Outcome::Undecided),
        // TCP has none.
        ("p99 rises > 10 %", Outcome::Undecided),
    ] {
        assert_eq!(outcome(&base, &less, gate), expected, "{gate}");
    }
    assert_eq!(
        outcome(&less, &base, "throughput rises > 2 %"),
        Outcome::Violated
    );
    assert_eq!(
        outcome(&less, &base, "throughput drops > 2 %"),
        Outcome::Passed
    );
}

#[test]
fn a_figure_that_has_gone_is_not_passed() {
    let base = run(1, &[("tcp", BASE), ("tcp/streams=2", BASE)]);
    let mut other = run(2, &[("tcp", BASE), ("tcp/streams=2", &[])]);
    let failed = Recorded::Failed {
        reason: "the device died (`ip -batch -` with\nlink add wg0\n failed)\nhelp: repeat".into(),
    };
    record(&mut other, "tcp/streams=2/x", 1, failed);
    let comparison = judged(&base, &other, "tcp throughput drops > 50 %");
    assert_eq!(comparison.outcome(), Outcome::Undecided);
    let without = &comparison.pairs[0].without_change;
    assert_eq!(without.len(), 1);
    // A bracket is not left open.
    assert_eq!(
        without[0].reason,
        "b: it failed: the device died (`ip -batch -` with link add wg0 failed)"
    );
    // A gate on other cells does not know of it.
    assert_eq!(
        outcome(&base, &other, "streams=4 throughput drops > 50 %"),
        Outcome::Passed
    );
}

/// The throughput of a cell is compared; only one run, or neither, has its CPU time.
#[test]
fn a_quantity_that_has_gone_from_a_compared_cell_is_not_passed() {
    let without = run(1, &[("tcp", BASE), ("tcp/streams=2", BASE)]);
    let mut with = run(2, &[("tcp", BASE), ("tcp/streams=2", BASE)]);
    let streams = with.trials.iter_mut();
    for trial in streams.filter(|trial| trial.cell == "tcp/streams=2/x") {
        let Recorded::Measured(measured) = &mut trial.outcome else {
            unreachable!("all are measured");
        };
        measured.cpu = Cpu {
            wall_ns: 2_000_000_000,
            busy_ns: 1_000_000_000,
            dut_ns: Some(0),
            ..Cpu::default()
        };
    }
    let gate = "tcp efficiency drops > 50 %";
    for (base, other, lacking) in [(&with, &without, "b"), (&without, &with, "a")] {
        let comparison = judged(base, other, gate);
        assert_eq!(comparison.outcome(), Outcome::Undecided);
        let cells = &comparison.gates[0].cells;
        let words = format!("{lacking} has no figure of it, though");
        let is_lacking = |cell: &compare::GateCell| cell.reason.starts_with(&words);
        assert!(cells.iter().all(is_lacking), "{cells:#?}");
        assert_eq!(cells[0].cell, "tcp/streams=2/x");
        let text = compare::text(&comparison, compare::Detail::Short);
        assert!(
            text.contains("Quantities that cannot be compared ("),
            "{text}"
        );
        assert_eq!(
            outcome(base, other, "throughput drops > 50 %"),
            Outcome::Passed
        );
    }
    let neither = run(3, &[("tcp", BASE), ("tcp/streams=2", BASE)]);
    let comparison = judged(&without, &neither, gate);
    assert_eq!(comparison.outcome(), Outcome::Undecided);
    let cells = &comparison.gates[0].cells;
    assert_eq!(cells.len(), 2);
    let expected = "this cell has no such quantity; it has `throughput`";
    assert!(
        cells.iter().all(|cell| cell.reason == expected),
        "{cells:#?}"
    );
    let said = comparison.gates[0].in_words();
    assert_eq!(said, "no cell that it applies to has its quantity");
    assert_eq!(
        outcome(&with, &without, "streams=2 efficiency drops > 50 %"),
        Outcome::Undecided
    );
}

#[test]
fn one_repeat_and_equal_repeats_are_undecided() {
    let base = run(1, &[("tcp", BASE)]);
    for few in [&[500][..], &[1000, 1000, 1000]] {
        let few = run(2, &[("tcp", few)]);
        let against = run(3, &[("tcp", &[900, 900, 900])]);
        assert_eq!(
            outcome(&few, &against, "throughput drops > 1 %"),
            Outcome::Undecided
        );
    }
    let single = run(2, &[("tcp", &[500])]);
    assert_eq!(
        outcome(&base, &single, "throughput drops > 1 %"),
        Outcome::Undecided
    );
}

/// What an undecided gate says of the repeats that would decide it, decides it.
#[test]
fn an_undecided_gate_says_how_many_repeats_would_do() {
    let gate = "throughput drops > 5 %";
    let run_of = |second, values: &[u64], times: usize| {
        let values: Vec<u64> = values.iter().copied().cycle().take(times).collect();
        run(second, &[("tcp", &values)])
    };
    let judged_with = |times| {
        let (base, other) = (&[960, 1040], &[940, 1020]);
        judged(&run_of(1, base, times), &run_of(2, other, times), gate)
    };
    let few = judged_with(4);
    assert_eq!(few.outcome(), Outcome::Undecided);
    let reason = &few.gates[0].cells[0].reason;
    let words: Vec<&str> = reason.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| *word == "about")
        .expect(reason);
    let repeats: usize = words[at + 1].parse().expect(reason);
    assert!(
        reason.contains(&format!("`run CAMPAIGN --repeats {repeats}`")),
        "{reason}"
    );
    assert_eq!(
        judged_with(repeats.next_multiple_of(2)).outcome(),
        Outcome::Passed
    );

    let single = |second| run(second, &[("tcp", &[1000])]);
    let one = judged(&single(1), &single(2), gate);
    let reason = &one.gates[0].cells[0].reason;
    assert!(
        reason.contains("measure both runs again with `run CAMPAIGN --repeats 5`"),
        "{reason}"
    );
}

/// The reason of the only cell of a gate, as it is printed.
fn printed(base: &Journal, other: &Journal, gate: &str) -> String {
    let comparison = judged(base, other, gate);
    assert_eq!(comparison.gates[0].cells.len(), 1);
    let text = compare::text(&comparison, compare::Detail::Short);
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("1 gate: "));
    let line = lines.take_while(|line| !line.is_empty()).last();
    let line = line.unwrap().trim().to_owned();
    match comparison.outcome() {
        Outcome::Passed => comparison.gates[0].cells[0].reason.clone(),
        _ => line,
    }
}

#[test]
fn each_outcome_says_what_to_do() {
    let of = |second, values: &[u64]| run(second, &[("tcp", values)]);
    let (base, less) = (of(1, BASE), of(2, LESS));
    assert_eq!(
        printed(&base, &less, "throughput drops > 10 %"),
        "-5.0 % (-5.7 to -4.3 %) is within the bound of -10 %"
    );
    assert_eq!(
        printed(&base, &less, "throughput drops > 2 %"),
        "violated: tcp/x throughput: -5.0 % (-5.7 to -4.3 %) is beyond the bound of -2 %; look for the cause in what \
         differs between the runs, or change the gate if this change is intended"
    );
    let crosses = "undecided: tcp/x throughput: -5.0 % (-5.7 to -4.3 %) ";
    let found = printed(&base, &less, "throughput drops > 5.5 %");
    assert!(
        found.starts_with(&format!(
            "{crosses}crosses the bound of -5.5 %; measure both runs again with about "
        )),
        "{found}"
    );
    let found = printed(&base, &less, "throughput drops > 5 %");
    assert_eq!(
        found,
        format!(
            "{crosses}is so near the bound of -5 % that more than 100 repeats would be needed; choose another bound"
        )
    );
    let equal = [1000; 8];
    assert_eq!(
        printed(&of(1, &equal), &of(2, &equal), "throughput drops > 5 %"),
        "undecided: tcp/x throughput: 0.0 % (unknown scatter): repeats that are all equal do not show how the figure \
         scatters; measure both runs again with longer trials, or with `run CAMPAIGN --repeats 16` or more"
    );
}

/// A lab in memory has no check that finds other programs: their repeats scatter.
#[test]
fn repeats_that_scatter_much_ask_for_an_idle_machine_first() {
    let wide = |second| run(second, &[("tcp", &[700, 1300, 800, 1200, 1000])]);
    let found = printed(&wide(1), &wide(2), "throughput drops > 10 %");
    let asked = "crosses the bound of -10 %, because repeats scatter by 25 %; measure both runs again while nothing else \
                 uses the machine, or with about ";
    assert!(found.contains(asked), "{found}");
    let found = printed(&wide(1), &wide(2), "throughput drops > 0.1 %");
    assert!(
        found.ends_with("as they are, more than 100 repeats would be needed"),
        "{found}"
    );
}

#[test]
fn a_machine_that_was_not_idle_is_named_with_the_command_that_repeats() {
    let spoilt = |second, repeat| {
        let mut run = run(second, &[("tcp", BASE)]);
        let Recorded::Measured(measured) = measured(1_000_000) else {
            unreachable!("it is measured");
        };
        let reasons = vec!["machine-was-ours: other programs had 40 % of it".to_owned()];
        record(
            &mut run,
            "tcp/x",
            repeat,
            Recorded::Invalid { reasons, measured },
        );
        run
    };
    let idle = run(1, &[("tcp", BASE)]);
    assert_eq!(
        printed(&idle, &spoilt(2, 3), "throughput drops > 5 %"),
        "undecided: tcp/x throughput: -0.1 % (-0.8 to +0.6 %), without the invalid repeats; b: of 8 repeats 1 is \
         invalid: machine-was-ours: other programs had 40 % of it; repeat it while nothing else uses the machine: \
         `cipherbench resume b --invalid`"
    );
    let both = printed(&spoilt(1, 2), &spoilt(2, 3), "throughput drops > 5 %");
    for part in [
        "`cipherbench resume a --invalid`; b: ",
        "`cipherbench resume b --invalid`",
    ] {
        assert!(both.contains(part), "{both}");
    }
    // Nothing is added to a run in an archive.
    let (other, options) = (
        spoilt(2, 3),
        Options {
            gates: vec!["throughput drops > 5 %".parse().unwrap()],
            ..Options::default()
        },
    );
    let runs = [("a", &idle), ("fleet:17", &other)].map(|(name, journal)| Run { name, journal });
    let comparison = compare(&runs, &options).unwrap();
    let reason = &comparison.gates[0].cells[0].reason;
    assert!(
        reason.ends_with("repeat it while nothing else uses the machine, in a new run"),
        "{reason}"
    );
    let two = |second, more: &[u64]| run(second, &[("tcp", BASE), ("tcp/streams=2", more)]);
    let found = printed(
        &two(1, BASE),
        &two(2, &[]),
        "streams=2 throughput drops > 5 %",
    );
    assert!(
        found.ends_with("b: it was not run; finish the run: `cipherbench resume b`"),
        "{found}"
    );
}

#[test]
fn every_kind_of_trial_is_known() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../campaigns");
    let host = campaign::HostFacts { cores: 64 };
    let mut found = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "yaml") {
            continue;
        }
        let campaign = campaign::load(&path, &host).unwrap();
        // Some need a lab of their own.
        let Ok(plan) = campaign.plan(&campaign.usual_lab(), &host) else {
            continue;
        };
        for cell in plan.cells {
            let name = cell.measurement.name();
            assert!(Measurement::kinds().any(|kind| kind == name), "{name}");
            found += 1;
        }
    }
    assert!(found > 100, "{found}");
}

/// A gate of the documents, given to runs of another campaign.
#[test]
fn a_gate_that_applies_to_no_cell_says_what_the_runs_have() {
    let cells = [("tcp", BASE), ("tcp/streams=2", BASE)];
    let (base, other) = (run(1, &cells), run(2, &cells));
    let said = |gate: &str| {
        let comparison = judged(&base, &other, gate);
        assert_eq!(comparison.outcome(), Outcome::Undecided, "{gate}");
        comparison.gates[0].in_words().to_owned()
    };
    assert_eq!(
        said("mrr throughput drops > 20 %"),
        "the base has no mrr cell; it has tcp: try `tcp throughput drops > 20 %`"
    );
    assert_eq!(
        said("tcp dut=y throughput drops > 2.5 %"),
        "the base has no cell with dut=y; it has dut=x: try `tcp dut=x throughput drops > 2.5 %`"
    );
    // No other kind has the quantity, or two filters exclude each other.
    assert_eq!(
        said("ping p99 rises > 5 %"),
        "the base has no ping cell; it has tcp: compare the gate's filters with the names of the cells"
    );
    let both = "mrr dut=y throughput drops > 20 %";
    assert!(said(both).ends_with("compare the gate's filters with the names of the cells"));
    // What is suggested is a gate, also with blanks in a name.
    let named: compare::Gate = "dut=\"a b\" throughput drops > 5 %".parse().unwrap();
    let again = judged(&base, &other, &named.text).gates[0]
        .in_words()
        .to_owned();
    assert!(again.contains("dut=\"a b\""), "{again}");
}

/// Of two devices of one run there is one run to be measured again.
#[test]
fn a_gate_between_devices_of_one_run_names_the_device_and_one_run() {
    let mut one = journal(vec![cell("tcp", "x"), cell("tcp", "y")], 4, 1);
    let values = [
        ("tcp/x", [960, 1040, 980, 1020]),
        ("tcp/y", [1000, 940, 1020, 960]),
    ];
    for (id, values) in values {
        for (repeat, value) in (1..).zip(values) {
            record(&mut one, id, repeat, measured(value * 1_000_000));
        }
    }
    let options = Options {
        gates: vec!["throughput drops > 5 %".parse().unwrap()],
        matches: vec!["x=y".parse().unwrap()],
        ..Options::default()
    };
    let runs = [Run {
        name: "a",
        journal: &one,
    }];
    let found = compare(&runs, &options).unwrap();
    let reason = &found.gates[0].cells[0].reason;
    assert!(reason.starts_with("`tcp/y` differs by -2 % ("), "{reason}");
    assert!(
        reason.contains(" %), which crosses the bound of -5 %; measure again with about "),
        "{reason}"
    );
    assert!(!reason.contains("each"), "{reason}");
}

/// A run of two devices, in megabytes.
fn two_devices(x: &[u64], y: &[u64]) -> Journal {
    let planned = vec![cell("tcp", "x"), cell("tcp", "y")];
    let mut run = journal(planned, x.len() as u32, 1);
    for (id, values) in [("tcp/x", x), ("tcp/y", y)] {
        for (repeat, value) in (1..).zip(values) {
            record(&mut run, id, repeat, measured(value * 1_000_000));
        }
    }
    run
}

fn judged_alone(run: &Journal, matches: &[&str], gate: &str) -> Comparison {
    let options = Options {
        gates: vec![gate.parse().unwrap()],
        matches: matches.iter().map(|one| one.parse().unwrap()).collect(),
        ..Options::default()
    };
    let runs = [Run {
        name: "a",
        journal: run,
    }];
    compare(&runs, &options).unwrap()
}

#[test]
fn a_filter_of_the_other_device_within_one_run_gets_the_one_that_applies() {
    let run = two_devices(BASE, LESS);
    let found = judged_alone(&run, &["x=y"], "tcp dut=y throughput drops > 10 %");
    assert_eq!(found.outcome(), Outcome::Undecided);
    let expected = "filters are about the device before the `=` of `--match`: try `tcp dut=x throughput drops > 10 %`";
    assert_eq!(found.gates[0].in_words(), expected);
    let found = judged_alone(&run, &["x=y"], "tcp dut=x throughput drops > 10 %");
    assert_eq!(found.outcome(), Outcome::Passed);
}

#[test]
fn a_limit_on_the_figures_of_a_single_run_needs_no_devices() {
    let run = two_devices(BASE, LESS);
    let found = judged_alone(&run, &[], "tcp throughput >= 1 Gbit/s");
    assert_eq!(found.outcome(), Outcome::Passed);
    assert!(!found.is_empty());
    let text = compare::text(&found, compare::Detail::Short);
    assert!(text.contains("1 gate: 1 passed"), "{text}");
    assert!(!text.contains("can be compared"), "{text}");
    let change = Options {
        gates: vec!["throughput drops > 5 %".parse().unwrap()],
        ..Options::default()
    };
    let runs = [Run {
        name: "a",
        journal: &run,
    }];
    let error = compare(&runs, &change).unwrap_err().to_string();
    assert!(
        error.contains("gates on figures alone need neither"),
        "{error}"
    );
}

/// The ratio of a repeat of 0 is not known, and the reader must see of which run.
#[test]
fn a_repeat_of_zero_is_named_where_a_ratio_is_missing() {
    let base = run(
        1,
        &[
            ("tcp", &[1000, 0, 1000]),
            ("tcp/streams=2", &[1000, 1010, 990]),
        ],
    );
    let other = run(
        2,
        &[
            ("tcp", &[1000, 1001, 999]),
            ("tcp/streams=2", &[1000, 1010, 990]),
        ],
    );
    let found = judged(&base, &other, "throughput drops > 5 %");
    assert_eq!(found.outcome(), Outcome::Undecided);
    let text = compare::text(&found, compare::Detail::Short);
    let reason = "a repeat of a is 0, which has no ratio";
    let listed = found.pairs.iter().flat_map(|pair| &pair.without_ratio);
    let cells = found.pairs.iter().flat_map(|pair| &pair.without_change);
    let (listed, cells) = (listed.count(), cells.count());
    assert!(listed + cells > 0, "{text}");
    assert!(text.contains(reason), "{text}");
}
