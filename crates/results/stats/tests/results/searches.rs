//! Outcomes of searches, loads that a queue carried, and goals that do not fit together.

use crate::fixture::{SECOND_NS, journal};
use crate::frame_fixture::{
    RIG, add, cell, found, kinds, limit, search, searched, throughput, trial,
};
use crate::null_run::Noise;
use journal::record::{DelayTrend, Figures, FrameResult, GoalOutcome, Outcome, SearchEnd};
use plan::{
    Adapter, Cell, Dut, Encryptor, Goal, KeySource, Load, Procedure, Software, ThroughputSearch,
};
use stats::{
    Bound, CONTRASTS, Comparison, GoalResult, Limit, Metric, OutcomeRepeats, Results, WarningKind,
};
use wire::Suite;

fn goal(results: &Results, cell: usize) -> &GoalResult {
    let frames = results.cells[cell].frames().unwrap();
    &frames.throughput.as_ref().unwrap().goals[0]
}

/// A difference of 0.2 % is shown by no comparison if each search left 0.5 % between its bounds,
/// whatever number of repeats agrees; one of 1 % is.
#[test]
fn a_difference_within_the_width_of_the_searches_is_shown_by_no_comparison() {
    let device = |name: &str, change: &dyn Fn(&mut Encryptor)| {
        let mut cell = throughput("auto", 64);
        let mut encryptor = Encryptor::new(Suite::Aes256Gcm);
        change(&mut encryptor);
        cell.id = format!("{}/{name}", cell.group);
        cell.dut = Dut::new(name, Adapter::Cipherbench(encryptor));
        cell
    };
    let engine = |name: &'static str| {
        device(name, &|of: &mut Encryptor| {
            of.engine = name.parse().unwrap()
        })
    };
    let version = |name: &str| {
        let mut cell = device(name, &|of| of.workers = 3);
        cell.dut.software = Software {
            version: Some(name.to_owned()),
            program: Some(format!("./{name}")),
            ..Software::default()
        };
        cell
    };
    let hybrid = "{ below: 128 B, use: rustcrypto, else: aws-lc }";
    // Each twin before the device that is compared with it.
    let cells = [
        device("static", &|_| ()),
        device("qkd", &|of| *of = of.clone().with_keys(KeySource::Qkd)),
        engine("aws-lc"),
        device("hybrid", &|of| of.engine = hybrid.parse().unwrap()),
        version("old"),
        version("new"),
    ];
    let shown = |share: f64| {
        let mut random = Noise(48);
        let mut run = journal(cells.to_vec(), 10, 8);
        for repeat in 1..=10 {
            for cell in &cells {
                let is_changed = ["qkd", "hybrid", "new"].contains(&&*cell.dut.name);
                let factor = if is_changed { share } else { 1.0 };
                let rate = 400_000.0 * factor * (1.0 + 1e-4 * random.normal());
                let bounds = found(Some(rate as u64), Some((1.005 * rate) as u64));
                add(&mut run, cell, repeat, bounds);
            }
        }
        let results = Results::of(&run);
        let rates = |metric| metric == Metric::FrameRate;
        let mut found: Vec<(&'static str, Option<bool>)> = results
            .contrasts
            .iter()
            .filter(|one| rates(one.metric))
            .map(|one| (one.contrast, one.differs))
            .collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), CONTRASTS.len(), "{found:?}");
        found
    };
    let found = shown(0.998);
    assert!(
        found.iter().all(|(_, differs)| *differs == Some(false)),
        "{found:?}"
    );
    let found = shown(0.99);
    assert!(
        found.iter().all(|(_, differs)| *differs == Some(true)),
        "{found:?}"
    );
}

fn outcomes(found: &[(GoalOutcome, u32)]) -> Vec<OutcomeRepeats> {
    let of = |&(outcome, repeats)| OutcomeRepeats { outcome, repeats };
    found.iter().map(of).collect()
}

#[test]
fn the_outcome_of_an_older_search_follows_from_its_bounds() {
    let journal = searched(&[
        (throughput("auto", 64), &[(Some(400_000), Some(401_000)); 3]),
        (
            throughput("auto", 128),
            &[
                (None, Some(1_000)),
                (Some(1_500_000), None),
                (Some(400_000), Some(401_000)),
            ],
        ),
    ]);
    let results = Results::of(&journal);
    assert!(goal(&results, 0).is_regular());
    let regular = outcomes(&[(GoalOutcome::Regular, 3)]);
    assert_eq!(goal(&results, 0).outcomes, regular);
    assert!(!goal(&results, 1).is_regular());
    let mixed = outcomes(&[
        (GoalOutcome::Regular, 1),
        (GoalOutcome::MaxLoadMeets, 1),
        (GoalOutcome::MinLoadFails, 1),
    ]);
    assert_eq!(goal(&results, 1).outcomes, mixed);
}

/// Both bounds are known, and yet the result is not regular.
#[test]
fn bounds_that_are_too_far_apart_are_irregular() {
    let planned = throughput("auto", 64);
    let mut run = journal(vec![planned.clone()], 3, 8);
    for repeat in 1..=3 {
        let mut wide = found(Some(400_000), Some(500_000));
        let throughput = wide.throughput.as_mut().unwrap();
        throughput.end = SearchEnd::TimedOut;
        if repeat == 2 {
            throughput.goals[0].outcome = Some(GoalOutcome::Unfinished);
        }
        add(&mut run, &planned, repeat, wide);
    }
    let results = Results::of(&run);
    let goal = goal(&results, 0);
    assert_eq!(goal.outcomes, outcomes(&[(GoalOutcome::Unfinished, 3)]));
    assert_eq!(
        goal.irregular,
        [
            "The bounds are farther apart than the goal's width in every repeat: the search's time was up."
        ]
    );
    assert_eq!(goal.time_was_up, 0);
    assert!(kinds(&results).contains(&WarningKind::SearchTimedOut));
    assert!(!kinds(&results).contains(&WarningKind::Irregular));
}

/// A trial that lost nothing, at a fifth more than the device sustains.
fn queued(load: u64) -> journal::record::FrameTrial {
    journal::record::FrameTrial {
        delay: Some(DelayTrend {
            growth_ns: SECOND_NS.cast_signed() / 5,
            ..DelayTrend::default()
        }),
        ..trial(load, load)
    }
}

#[test]
fn an_upper_bound_that_a_queue_carried_is_the_devices() {
    let (rig, planned) = (throughput("straight", 64), throughput("auto", 64));
    let mut run = searched(&[(rig, &RIG)]);
    run.header.plan.cells.push(planned.clone());
    for repeat in 1..=3 {
        let mut found = found(Some(400_000), Some(480_000));
        found.trials[1] = queued(480_000);
        // The tester left out one frame, too.
        found.trials[1].sent -= 1;
        found.trials[1].received -= 1;
        add(&mut run, &planned, repeat, found);
    }
    let results = Results::of(&run);
    let account = goal(&results, 1).upper_account.unwrap();
    assert_eq!((account.lost, account.not_sent), (0, 3));
    assert_eq!(account.queued, 3 * (479_999 - 400_000));
    assert_eq!(account.not_carried(), account.queued);
    assert_eq!(limit(&results.cells[1]), Limit::DutLimited);
}

fn warned(cell: Cell, found: FrameResult) -> Vec<WarningKind> {
    let mut run = journal(vec![cell.clone()], 1, 8);
    add(&mut run, &cell, 1, found);
    kinds(&Results::of(&run))
}

#[test]
fn a_load_that_a_queue_carried_is_warned_about() {
    let load = |trial| {
        let procedure = Procedure::Load(Load {
            frames_per_s: Some(480_000),
            duration_ns: SECOND_NS,
        });
        let found = FrameResult {
            trials: vec![trial],
            ..FrameResult::default()
        };
        warned(cell("auto", 64, procedure), found)
    };
    let kind = WarningKind::CarriedByQueue;
    assert!(load(queued(480_000)).contains(&kind));
    assert!(!load(trial(480_000, 480_000)).contains(&kind));
}

#[test]
fn goals_that_do_not_fit_together_are_warned_about() {
    let with = |change: fn(&mut Goal)| {
        let mut other = search().goals[0].clone();
        other.name = "other".into();
        change(&mut other);
        let plan = ThroughputSearch {
            goals: vec![search().goals[0].clone(), other],
            ..search()
        };
        let planned = cell("auto", 64, Procedure::Throughput(plan));
        warned(planned, found(Some(400_000), Some(401_000)))
    };
    let (narrow, unequal) = (WarningKind::NarrowGoal, WarningKind::UnequalGoals);
    let none = with(|goal| goal.criteria.loss_ratio_ppm = 5_000);
    assert!(!none.contains(&narrow) && !none.contains(&unequal));
    assert!(with(|goal| goal.criteria.loss_ratio_ppm = 5_001).contains(&narrow));
    assert!(with(|goal| goal.criteria.final_trial_ns *= 2).contains(&unequal));
}

#[test]
fn a_rate_that_was_held_for_a_short_time_is_warned_about() {
    let held = |duration_ns: u64, lost: u64| {
        let mut found = found(Some(400_000), Some(401_000));
        // The trial at the lower bound.
        found.trials[0].duration_ns = duration_ns;
        found.trials[0].elapsed_ns = duration_ns;
        found.trials[0].received -= lost;
        let planned = throughput("auto", 64);
        let mut run = journal(vec![planned.clone()], 1, 8);
        add(&mut run, &planned, 1, found);
        let results = Results::of(&run);
        let kind = WarningKind::HeldShortly;
        let warning = results.warnings.iter().find(|found| found.kind == kind);
        let text = warning.map(|warning| warning.text.clone());
        (goal(&results, 0).held_ns, text)
    };
    let (time_ns, text) = held(SECOND_NS, 0);
    assert_eq!(time_ns, Some(SECOND_NS));
    let text = text.unwrap();
    assert!(
        text.starts_with(
            "In 1 cell the rate was held for less than 60 s at a time (least: `throughput/"
        ),
        "{text}"
    );
    assert!(text.contains("auto`, 1 s): it is not known"), "{text}");
    // A minute is long enough; a load that was not carried was not held.
    assert_eq!(held(60 * SECOND_NS, 0), (Some(60 * SECOND_NS), None));
    assert_eq!(held(60 * SECOND_NS, 1), (None, None));
    // Other rates rest on the time of their trials.
    let load = |seconds: u64| {
        let procedure = Procedure::Load(Load {
            frames_per_s: Some(480_000),
            duration_ns: seconds * SECOND_NS,
        });
        let found = FrameResult {
            trials: vec![trial(480_000, 480_000)],
            ..FrameResult::default()
        };
        warned(cell("auto", 64, procedure), found).contains(&WarningKind::HeldShortly)
    };
    assert!(load(59) && !load(60));
    // The rig is no device.
    let rig = warned(throughput("straight", 64), found(Some(400_000), None));
    assert!(!rig.contains(&WarningKind::HeldShortly));
}

/// The only ratio of a run with these bounds of the router, which is the baseline, and of a device.
fn ratio(router: [(Option<u64>, Option<u64>); 3], device: u64, given: bool) -> Comparison {
    let device = [(Some(device), Some(device + 1_000)); 3];
    let mut planned = throughput("router", 64);
    planned.dut.adapter = Adapter::Direct;
    let mut run = searched(&[
        (planned.clone(), &router),
        (throughput("auto", 64), &device),
    ]);
    for trial in run.trials.iter_mut().filter(|it| it.cell == planned.id) {
        let Outcome::Measured(measured) = &mut trial.outcome else {
            continue;
        };
        let Figures::Frames(frames) = &mut measured.figures else {
            continue;
        };
        if given {
            frames.throughput.as_mut().unwrap().max_load_by = "given".into();
        }
    }
    Results::of(&run).comparisons.remove(0)
}

#[test]
fn a_ratio_to_a_lower_bound_is_an_upper_bound() {
    let regular = [(Some(1_000_000), Some(1_001_000)); 3];
    let open = [(Some(1_500_000), None); 3];
    assert_eq!(ratio(regular, 400_000, true).bound, None);
    // The line carries no more: it is the baseline's figure.
    assert_eq!(ratio(open, 400_000, false).bound, None);
    let slower = ratio(open, 400_000, true);
    assert_eq!(slower.bound, Some(Bound::AtMost));
    assert_eq!(slower.differs, Some(true));
    // That the device is faster than the least that the baseline does shows nothing.
    let faster = ratio(open, 1_600_000, true);
    assert_eq!(faster.bound, Some(Bound::AtMost));
    assert_eq!(faster.differs, Some(false));
    let unfinished = [(Some(300_000), None); 3];
    let found = ratio(unfinished, 400_000, true);
    assert_eq!(found.bound, Some(Bound::AtMost));
}

#[test]
fn each_irregular_outcome_has_a_warning_and_advice_of_its_own() {
    let run = searched(&[
        (throughput("auto", 64), &[(None, Some(1_000)); 3]),
        (throughput("auto", 128), &[(Some(1_500_000), None); 3]),
        (throughput("auto", 256), &[(Some(2_000), None); 3]),
    ]);
    let results = Results::of(&run);
    let about = |kind: WarningKind| {
        let all = results.warnings.iter();
        let own = all.filter(move |warning| warning.kind == kind);
        own.map(|found| (found.cells.len(), found.advice.as_str()))
            .collect::<Vec<_>>()
    };
    // The line rate bounds the second, which no campaign can raise.
    let irregular = about(WarningKind::Irregular);
    assert_eq!(irregular.len(), 1, "{irregular:?}");
    assert!(
        irregular[0].1.starts_with("Lower `min_load`"),
        "{irregular:?}"
    );
    let late = about(WarningKind::SearchTimedOut);
    assert_eq!(late.len(), 1, "{late:?}");
    assert!(late[0].1.contains("`timeout`"), "{late:?}");
}

#[test]
fn what_spoils_a_figure_comes_before_what_qualifies_it() {
    let run = searched(&[(throughput("auto", 64), &[(None, Some(1_000)); 1])]);
    let weights: Vec<_> = Results::of(&run)
        .warnings
        .iter()
        .map(|warning| warning.kind.weight())
        .collect();
    assert!(weights.is_sorted(), "{weights:?}");
    assert!(weights.len() > 1);
}
