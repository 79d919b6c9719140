//! Limits of a campaign on figures of known size.

use crate::fixture::*;
use crate::frame_fixture::{self, Bounds, searched, throughput};
use crate::null_run::Noise;
use journal::Journal;
use journal::record::{Added, Outcome, Record};
use plan::{Expectation, Load, Procedure, StoredFigure, StoredRun};
use stats::{Expected, ExpectedCell, LimitOutcome, Results};

fn expected(mut journal: Journal, limits: &[&str]) -> Expected {
    let limits = limits.iter().map(|limit| Expectation {
        limit: (*limit).to_owned(),
        stored: None,
    });
    journal.header.plan.expect.limits = limits.collect();
    Results::of(&journal).expect.expect("it has limits")
}

fn only(journal: Journal, limit: &str) -> ExpectedCell {
    let mut found = expected(journal, &[limit]);
    assert_eq!(found.limits[0].cells.len(), 1, "{found:?}");
    found.limits.remove(0).cells.remove(0)
}

/// TCP of the device at these megabytes in two seconds, and of the path without it at 500 or so.
/// 250 are 1 Gbit/s.
fn tcp_run(megabytes: &[u64]) -> Journal {
    let repeats = megabytes.len() as u32;
    let mut run = journal(vec![tcp("direct"), tcp("cipherbench")], repeats, 8);
    for (repeat, megabytes) in (1..).zip(megabytes) {
        // The machine drifts: both are faster in each repeat.
        let base = 500 + u64::from(repeat);
        record(&mut run, "tcp/direct", repeat, measured(transfer(base)));
        let own = measured(transfer(*megabytes));
        record(&mut run, "tcp/cipherbench", repeat, own);
    }
    run
}

#[test]
fn a_figure_is_met_or_violated_only_with_its_whole_interval() {
    let run = || tcp_run(&[246, 250, 254]);
    for (limit, outcome) in [
        (
            "dut=cipherbench throughput >= 900 Mbit/s",
            LimitOutcome::Met,
        ),
        (
            "dut=cipherbench throughput >= 1 Gbit/s",
            LimitOutcome::Undecided,
        ),
        (
            "dut=cipherbench throughput >= 1.1 Gbit/s",
            LimitOutcome::Violated,
        ),
        (
            "dut=cipherbench throughput <= 1.1 Gbit/s",
            LimitOutcome::Met,
        ),
        (
            "dut=cipherbench throughput <= 900 Mbit/s",
            LimitOutcome::Violated,
        ),
        ("throughput >= 40 % of baseline", LimitOutcome::Met),
        ("throughput >= 60 % of dut=direct", LimitOutcome::Violated),
        (
            "dut=cipherbench throughput drops > 40 % against baseline",
            LimitOutcome::Violated,
        ),
    ] {
        let found = only(run(), limit);
        assert_eq!(found.outcome, outcome, "{limit}: {found:?}");
    }
    let found = only(run(), "dut=cipherbench throughput >= 900 Mbit/s");
    assert_eq!(
        found.reason,
        "Measured 1 Gbit/s, with 95 % certainty from 961 Mbit/s to 1.04 Gbit/s."
    );
    assert_eq!((found.unit, found.decided_after_rounds), ("bps", Some(0)));
    let found = only(run(), "throughput >= 40 % of baseline");
    assert_eq!(found.reference.as_deref(), Some("tcp/direct"));
    assert!(
        found.reason.starts_with("Measured 49.8 % of tcp/direct"),
        "{}",
        found.reason
    );
}

#[test]
fn a_limit_that_few_repeats_leave_open_says_how_many_more_would_decide() {
    let found = only(
        tcp_run(&[240, 250, 258]),
        "dut=cipherbench throughput >= 970 Mbit/s",
    );
    assert_eq!(found.outcome, LimitOutcome::Undecided);
    let more = found.more_repeats.unwrap();
    let words = format!(
        "{more} more repeats would probably decide (`run CAMPAIGN --repeats {}`",
        3 + more
    );
    assert!(found.reason.contains(&words), "{}", found.reason);
    // With as many repeats that scatter as these do, it is decided.
    let all: Vec<u64> = [240, 250, 258]
        .into_iter()
        .cycle()
        .take(3 + more as usize)
        .collect();
    let found = only(tcp_run(&all), "dut=cipherbench throughput >= 970 Mbit/s");
    assert_ne!(found.outcome, LimitOutcome::Undecided, "{found:?}");
    for few in [&[250][..], &[250, 250, 250]] {
        let found = only(tcp_run(few), "dut=cipherbench throughput >= 500 Mbit/s");
        assert_eq!(found.outcome, LimitOutcome::Undecided);
        assert!(
            found.reason.contains("how the figure scatters"),
            "{}",
            found.reason
        );
    }
}

/// 960 and 1120 Mbit/s, of 2 Gbit/s without the device.
#[test]
fn two_bands_decide_a_limit_that_is_far_from_both() {
    let bands = [240, 241, 242, 280, 281, 282];
    for (limit, outcome) in [
        ("throughput >= 500 Mbit/s", LimitOutcome::Met),
        ("throughput >= 5 Gbit/s", LimitOutcome::Violated),
        ("throughput <= 500 Mbit/s", LimitOutcome::Violated),
        ("throughput >= 20 % of baseline", LimitOutcome::Met),
        ("throughput >= 95 % of baseline", LimitOutcome::Violated),
        // Nearer than the bands are to each other, or between them.
        ("throughput >= 900 Mbit/s", LimitOutcome::Undecided),
        ("throughput <= 1.2 Gbit/s", LimitOutcome::Undecided),
        ("throughput >= 1 Gbit/s", LimitOutcome::Undecided),
        ("throughput >= 52 % of baseline", LimitOutcome::Undecided),
    ] {
        let found = only(tcp_run(&bands), &format!("dut=cipherbench {limit}"));
        assert_eq!(found.outcome, outcome, "{limit}: {found:?}");
        assert!(found.reason.contains("two bands"), "{}", found.reason);
    }
}

#[test]
fn evidence_against_one_repeat_leaves_a_limit_undecided() {
    let mut run = tcp_run(&[246, 250, 254]);
    let reasons = vec!["machine-was-ours: other programs had 40 % of it".to_owned()];
    let outcome = Outcome::Invalid {
        reasons,
        measured: Box::new(transfer(250)),
    };
    record(&mut run, "tcp/cipherbench", 2, outcome);
    let found = only(run, "dut=cipherbench throughput >= 500 Mbit/s");
    assert_eq!(found.outcome, LimitOutcome::Undecided);
    assert_eq!(
        found.reason,
        "1 repeat of 3 without a figure: machine-was-ours: other programs had 40 % of it; \
         `cipherbench resume RUN --invalid` repeats invalid and failed trials."
    );
    // A limit on a cell without any figure, and one on no cell.
    let none = journal(vec![tcp("cipherbench")], 3, 8);
    let found = expected(
        none,
        &["throughput >= 1 Gbit/s", "ping p50 <= 1 ms", "nonsense"],
    );
    assert_eq!(found.outcome, LimitOutcome::Undecided);
    assert!(
        found.limits[0].cells[0]
            .reason
            .starts_with("The cell was not run")
    );
    assert!(found.limits[1].cells.is_empty() && found.limits[2].cells.is_empty());
}

#[test]
fn a_search_is_bounded_from_both_sides() {
    let bounds: [Bounds; 3] = [(Some(300_000), Some(310_000)); 3];
    let run = || searched(&[(throughput("router", 64), &bounds)]);
    for (limit, outcome) in [
        ("throughput throughput >= 290 kpps", LimitOutcome::Met),
        ("throughput throughput >= 305 kpps", LimitOutcome::Undecided),
        ("throughput throughput >= 311 kpps", LimitOutcome::Violated),
        // 64 B are 84 B on the line.
        ("throughput throughput >= 200 Mbit/s L1", LimitOutcome::Met),
        (
            "throughput throughput >= 210 Mbit/s L1",
            LimitOutcome::Violated,
        ),
        (
            "throughput throughput >= 180 Mbit/s L2",
            LimitOutcome::Violated,
        ),
    ] {
        assert_eq!(only(run(), limit).outcome, outcome, "{limit}");
    }
    let within = only(run(), "throughput throughput >= 305 kpps");
    assert!(
        within.reason.contains("narrow the searches"),
        "{}",
        within.reason
    );
    assert_eq!(within.more_repeats, None);
    let open: [Bounds; 3] = [(Some(300_000), None); 3];
    let mut run = searched(&[(throughput("router", 64), &open)]);
    for trial in &mut run.trials {
        let Outcome::Measured(measured) = &mut trial.outcome else {
            unreachable!("all are measured");
        };
        if let journal::record::Figures::Frames(frames) = &mut measured.figures {
            // At the line rate the device could not carry more.
            let search = frames.throughput.as_mut().expect("it has searched");
            search.max_load_by = "generator".into();
        }
    }
    let found = only(run, "throughput throughput >= 400 kpps");
    assert_eq!(found.outcome, LimitOutcome::Undecided, "{found:?}");
}

#[test]
fn a_repair_of_one_cell_changes_no_level_of_another() {
    let limits = [
        "dut=cipherbench throughput >= 990 Mbit/s",
        "dut=direct throughput >= 2 Gbit/s",
    ];
    let of = |broken: &[u32]| {
        let mut run = tcp_run(&[240, 250, 258]);
        for trial in &mut run.trials {
            if trial.cell == "tcp/direct" && broken.contains(&trial.repeat) {
                trial.outcome = Outcome::Failed {
                    reason: "x".to_owned(),
                };
            }
        }
        expected(run, &limits)
    };
    let whole = of(&[]);
    for broken in [&[1][..], &[1, 2, 3]] {
        let found = of(broken);
        let own = &found.limits[0].cells[0];
        assert_eq!(own.low, whole.limits[0].cells[0].low, "{broken:?}");
        let other = &found.limits[1].cells[0];
        assert_eq!(other.outcome, LimitOutcome::Undecided);
        let remedy = "`cipherbench resume RUN --invalid` repeats invalid and failed trials.";
        assert!(other.reason.ends_with(remedy), "{}", other.reason);
    }
}

/// Loads of 1 Mpps of which these many frames arrive.
fn load_run(received: &[u64]) -> Journal {
    let load = Procedure::Load(Load {
        frames_per_s: Some(1_000_000),
        duration_ns: SECOND_NS,
    });
    let cell = frame_fixture::cell("router", 64, load);
    let mut run = journal(vec![cell.clone()], received.len() as u32, 8);
    for (repeat, received) in (1..).zip(received) {
        let trial = frame_fixture::trial(1_000_000, *received);
        let frames = journal::record::FrameResult {
            trials: vec![trial],
            evidence_trial: Some(0),
            ..Default::default()
        };
        frame_fixture::add(&mut run, &cell, repeat, frames);
    }
    run
}

#[test]
fn a_single_lost_frame_violates_a_loss_of_zero_and_few_frames_meet_no_tight_limit() {
    const ALL: u64 = 1_000_000;
    let of = |received: &[u64], limit: &str| only(load_run(received), limit);
    let none = of(&[ALL; 3], "loss at 1 Mpps = 0");
    assert_eq!(none.outcome, LimitOutcome::Met);
    assert!(
        none.reason
            .starts_with("None of 3000000 frames in 3 repeats was lost"),
        "{}",
        none.reason
    );
    let one = of(&[ALL, ALL, ALL - 1], "loss at 1 Mpps = 0");
    assert_eq!(one.outcome, LimitOutcome::Violated);
    let single = of(&[ALL], "loss at 1 Mpps = 0");
    assert_eq!(single.outcome, LimitOutcome::Undecided);
    // 3.7 lost frames of 3 millions are excluded: 1.23 ppm.
    assert_eq!(
        of(&[ALL; 3], "loss at 1 Mpps <= 1.3 ppm").outcome,
        LimitOutcome::Met
    );
    let tight = of(&[ALL; 3], "loss at 1 Mpps <= 1 ppm");
    assert_eq!(tight.outcome, LimitOutcome::Undecided);
    assert_eq!(tight.more_repeats, Some(1));
    let lossy = [ALL - 9_900, ALL - 10_000, ALL - 10_100];
    assert_eq!(
        of(&lossy, "loss at 1 Mpps <= 2 %").outcome,
        LimitOutcome::Met
    );
    assert_eq!(
        of(&lossy, "loss at 1 Mpps <= 0.5 %").outcome,
        LimitOutcome::Violated
    );
    assert_eq!(
        of(&lossy, "loss at 1 Mpps <= 1 %").outcome,
        LimitOutcome::Undecided
    );
}

#[test]
fn a_stored_run_is_no_pair_and_another_machine_is_named() {
    let mut run = tcp_run(&[246, 250, 254]);
    let figure = |values: &[u64]| StoredFigure {
        cell: "tcp/cipherbench".into(),
        quantity: "payload_throughput_bps".into(),
        load_percent: None,
        round_trip: None,
        values: values.iter().map(|mbit| mbit * 1_000_000_000).collect(),
        upper: Vec::new(),
        is_open: false,
    };
    let stored = |values: &[u64]| StoredRun {
        folder: "old".into(),
        started_unix_ns: 1,
        program: "0.1.0".into(),
        machine: "a large one".into(),
        figures: vec![figure(values)],
        without: [("tcp/direct".to_owned(), "it has no such cell".to_owned())].into(),
    };
    let mut outcome = |values: &[u64], limit: &str| {
        run.header.plan.expect.limits = vec![Expectation {
            limit: limit.to_owned(),
            stored: Some(stored(values)),
        }];
        let found = Results::of(&run).expect.unwrap();
        found.limits[0].cells.clone()
    };
    let limit = "dut=cipherbench throughput drops > 10 % against run=old";
    let same = outcome(&[984, 1000, 1016], limit);
    assert_eq!(same[0].outcome, LimitOutcome::Met, "{same:?}");
    assert!(
        same[0]
            .reason
            .contains("made on another machine: a large one")
    );
    let faster = outcome(&[1284, 1300, 1316], limit);
    assert_eq!(faster[0].outcome, LimitOutcome::Violated, "{faster:?}");
    let lacking = outcome(&[984], "dut=direct throughput drops > 10 % against run=old");
    assert_eq!(lacking[0].reason, "Run old: it has no such cell.");
}

/// Rounds of added repeats: a limit keeps the answer of the look that decided it, at that look's
/// level.
#[test]
fn looks_at_the_figures_share_the_chance_of_a_false_answer() {
    let limit = "dut=cipherbench throughput >= 970 Mbit/s";
    // Decided with one look at 5 %, and not with a first look at 2.5 %.
    let few = [247, 250, 253];
    assert_eq!(only(tcp_run(&few), limit).outcome, LimitOutcome::Met);
    let mut run = tcp_run(&few);
    run.header.plan.expect.until_decided_ns = Some(60 * SECOND_NS);
    let first = only(run.clone(), limit);
    assert_eq!(first.outcome, LimitOutcome::Undecided, "{first:?}");
    run.header.plan.expect.limits = vec![Expectation {
        limit: limit.to_owned(),
        stored: None,
    }];
    let next = |run: &Journal| {
        let results = Results::of(run);
        let expected = results.expect.as_ref().unwrap();
        expected.next_round(run, &results)
    };
    let round = next(&run).expect("it is undecided");
    assert_eq!((round.repeats, round.cells.len()), (5, 1));
    run.accept(Record::Added(Added {
        at_unix_ns: 1,
        repeats: round.repeats,
        cells: round.cells.clone(),
    }))
    .unwrap();
    // While the round is not complete, the first look stands, and the run is not done.
    record(&mut run, &round.cells[0], 4, measured(transfer(251)));
    let between = only(run.clone(), limit);
    assert_eq!(between.outcome, LimitOutcome::Undecided);
    record(&mut run, &round.cells[0], 5, measured(transfer(249)));
    let second = only(run.clone(), limit);
    assert_eq!(second.outcome, LimitOutcome::Met, "{second:?}");
    assert_eq!((second.repeats, second.decided_after_rounds), (5, Some(1)));
    let results = Results::of(&run);
    let found = results.expect.as_ref().unwrap();
    assert_eq!((found.rounds, found.trials_added), (1, 2));
    assert_eq!(next(&run), None);
    assert_eq!(results.progress.trials_planned, 8);
    // A figure that the searches' bounds leave open gets no repeat.
    let bounds: [Bounds; 3] = [(Some(300_000), Some(310_000)); 3];
    let mut run = searched(&[(throughput("router", 64), &bounds)]);
    run.header.plan.expect.until_decided_ns = Some(60 * SECOND_NS);
    run.header.plan.expect.limits = vec![Expectation {
        limit: "throughput throughput >= 305 kpps".into(),
        stored: None,
    }];
    assert_eq!(next(&run), None);
}

#[test]
fn a_ratio_repeats_both_of_its_cells_while_time_is_left() {
    let mut run = tcp_run(&[240, 250, 262]);
    run.header.plan.expect.limits = vec![Expectation {
        limit: "throughput >= 49.5 % of baseline".into(),
        stored: None,
    }];
    for trial in &mut run.trials {
        trial.duration_ns = SECOND_NS;
    }
    let mut round = |left_s: u64| {
        run.header.plan.expect.until_decided_ns = Some(left_s * SECOND_NS);
        let results = Results::of(&run);
        let expected = results.expect.as_ref().unwrap();
        expected.next_round(&run, &results)
    };
    let wide = round(60).unwrap();
    assert_eq!(wide.cells, ["tcp/direct", "tcp/cipherbench"]);
    assert_eq!(wide.repeats, 5);
    // Two seconds are one repeat of both.
    assert_eq!(round(2).unwrap().repeats, 4);
    assert_eq!(round(1), None);
}

/// The answers of runs in which the truth is exactly the limit: every answer is false on one side.
#[test]
fn at_most_five_per_cent_of_runs_decide_a_limit_that_is_the_truth() {
    let mut noise = Noise(1);
    let mut figure = || {
        // In bytes, so that rounding does not matter.
        (250_000_000.0 * (0.03 * noise.normal()).exp()) as u64
    };
    let transfer = |bytes: u64| {
        let mut made = transfer(1);
        if let journal::record::Figures::Transfer(transfer) = &mut made.figures {
            transfer.sent_bytes = bytes;
            transfer.received_bytes = bytes;
        }
        measured(made)
    };
    for until_decided in [false, true] {
        let (mut met, mut violated) = (0, 0);
        for _ in 0..200 {
            let mut run = journal(vec![tcp("cipherbench")], 3, 8);
            run.header.plan.expect.until_decided_ns = until_decided.then_some(SECOND_NS << 20);
            run.header.plan.expect.limits = vec![Expectation {
                limit: "tcp throughput >= 1 Gbit/s".into(),
                stored: None,
            }];
            let id = "tcp/cipherbench";
            for repeat in 1..=3 {
                record(&mut run, id, repeat, transfer(figure()));
            }
            let outcome = loop {
                let results = Results::of(&run);
                let expected = results.expect.as_ref().unwrap();
                let Some(round) = expected.next_round(&run, &results) else {
                    break expected.outcome;
                };
                let before = run.header.plan.repeats_of(id);
                run.accept(Record::Added(Added {
                    at_unix_ns: 1,
                    repeats: round.repeats,
                    cells: round.cells,
                }))
                .unwrap();
                for repeat in before + 1..=round.repeats {
                    record(&mut run, id, repeat, transfer(figure()));
                }
            };
            met += u32::from(outcome == LimitOutcome::Met);
            violated += u32::from(outcome == LimitOutcome::Violated);
        }
        // 2.5 % each, and three standard deviations of 200 runs.
        println!("until decided {until_decided}: {met} met, {violated} violated of 200");
        assert!(
            met <= 11 && violated <= 11,
            "{until_decided}: {met}, {violated}"
        );
    }
}
