//! What is done to a device under a load: which trials each procedure asks for, and what its checks
//! say.

use crate::rig::{MS, SECOND, Simulated, cell, check, checks, search, test, trial};
use journal::record::{AttackTrial, Disturbance, DutEvent, ProcedureRecord, ResetRecord};
use plan::{Attack, BaseLoad, Desync, Disturbed, Event, Failure, Procedure, Reset};
use search::simulate::Behaviour;
use testbed::DutAction::{
    CloseBypass, CutLink, JoinLink, Kill, OpenBypass, Rekey, Restart, SetUp, TakeDown,
};
use testbed::{DutAction, Interrupt, NodeId};
use trial::TrialError;
use trial::frames::{FrameRun, ProcedureResult, Rig, RigLoad, carry_out};
use trial::{HostileLoad, PlannedDisturbance};

const CAPACITY: u64 = 500_000;
const LOAD: u64 = 10_000;
/// What the device takes to take its tunnels down and set them up.
const SETUP_NS: u64 = 300 * MS;

/// A simulated device that things can be done to. It loses a tenth of a second's frames by each.
struct Acted {
    frames: Simulated,
    asked: Vec<(RigLoad, PlannedDisturbance)>,
    at_once: Vec<DutAction>,
    /// Hostile packets of which a device lets one through.
    leaks_one_in: Option<u64>,
    /// Share of the intended hostile packets that are sent, in per cent.
    attacker_percent: u64,
    /// Actions that are done in a trial.
    done: usize,
}

impl Acted {
    fn new(behaviour: Behaviour) -> Self {
        Self {
            frames: Simulated::new(behaviour),
            asked: Vec::new(),
            at_once: Vec::new(),
            leaks_one_in: None,
            attacker_percent: 100,
            done: usize::MAX,
        }
    }

    fn carry_out(&mut self, procedure: Procedure) -> Result<ProcedureResult, TrialError> {
        let test = test(procedure);
        let cell = cell(&test);
        carry_out(&trial(&cell), &test, self, &mut |_| (), &Interrupt::new())
    }

    /// With the trial whose evidence is read.
    fn whole(&mut self, procedure: Procedure) -> ProcedureResult {
        let mut found = self.carry_out(procedure).unwrap();
        let run = self.run(&found.evidence_load, &Interrupt::new()).unwrap();
        found.add_evidence(&run);
        found
    }
}

impl Rig for Acted {
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError> {
        self.frames.run(load, interrupt)
    }

    fn run_disturbed(
        &mut self,
        load: &RigLoad,
        planned: &PlannedDisturbance,
        interrupt: &Interrupt,
    ) -> Result<(FrameRun, Disturbance), TrialError> {
        self.asked.push((*load, planned.clone()));
        let mut run = self.frames.run(load, interrupt)?;
        let lost = load.frames_per_s.unwrap() / 10;
        let done = planned.actions.iter().take(self.done);
        let events = done.map(|planned| DutEvent {
            name: format!("{:?}", planned.action),
            at_ns: planned.at_ns,
            took_ns: MS,
            lost,
            first_ns: Some(100 * MS),
            outage_ns: Some(100 * MS),
            slowest_ns: None,
            reset: reset_of(planned.action),
        });
        let events: Vec<_> = events.collect();
        // A short trial has fewer frames than that.
        let lost = lost * events.len() as u64;
        run.trial.received = run.trial.received.saturating_sub(lost);
        let attack = planned.hostile.map(|hostile| AttackTrial {
            percent: hostile.percent,
            sent: hostile.packets_per_s * load.duration_ns / SECOND * self.attacker_percent / 100,
            elapsed_ns: load.duration_ns,
        });
        if let (Some(attack), Some(one_in)) = (attack, self.leaks_one_in) {
            run.trial.duplicated = attack.sent / one_in;
        }
        let disturbance = Disturbance {
            events,
            attack,
            ..Disturbance::default()
        };
        Ok((run, disturbance))
    }

    fn act(&mut self, actions: &[DutAction]) -> Result<u64, TrialError> {
        self.at_once.extend(actions);
        Ok(SETUP_NS)
    }

    fn line_rate(&self) -> Option<u64> {
        self.frames.line_rate()
    }
}

fn acted() -> Acted {
    Acted::new(Behaviour::Hard { capacity: CAPACITY })
}

fn procedure(event: Event) -> Procedure {
    let load = BaseLoad::Given { frames_per_s: LOAD };
    Procedure::Disturbed(Disturbed { load, event })
}

fn rekey() -> Event {
    Event::Rekey {
        every_ns: SECOND,
        duration_ns: 4 * SECOND,
        throughput: false,
    }
}

fn hostile() -> Event {
    Event::Hostile {
        attack: Attack::Replay,
        percents: vec![1, 200],
        trial_ns: 2 * SECOND,
    }
}

fn failover(failure: Failure) -> Event {
    Event::Failover {
        failure,
        times: 2,
        down_ns: 500 * MS,
        watch_ns: 3 * SECOND,
    }
}

fn reset() -> Event {
    Event::Reset {
        kind: Reset::Process,
        times: 2,
        watch_ns: 3 * SECOND,
    }
}

/// What a reset leaves: another process, and a tenth of a second without a frame.
fn reset_of(action: DutAction) -> Option<ResetRecord> {
    matches!(action, DutAction::Reset(..)).then(|| ResetRecord {
        silent_ns: Some(100 * MS),
        bin_ns: MS,
        before: vec!["pid 1".to_owned()],
        after: vec!["pid 2".to_owned()],
    })
}

fn set_up() -> Event {
    Event::Setup {
        times: 2,
        watch_ns: SECOND,
    }
}

/// Times in milliseconds and what was done, of a trial.
fn plan(planned: &PlannedDisturbance) -> Vec<(u64, DutAction)> {
    let actions = planned.actions.iter();
    actions
        .map(|planned| (planned.at_ns / MS, planned.action))
        .collect()
}

#[test]
fn keys_are_renewed_after_the_same_time_without() {
    let mut rig = acted();
    let found = rig.carry_out(procedure(rekey())).unwrap();
    let [(quiet, nothing), (load, rekeys)] = &rig.asked[..] else {
        panic!("{:?}", rig.asked)
    };
    // Both trials have one load, so that the loss of the second is of its events.
    assert_eq!(quiet, load);
    assert_eq!(
        (load.frames_per_s, load.duration_ns),
        (Some(LOAD), 4 * SECOND)
    );
    assert_eq!(nothing, &PlannedDisturbance::default());
    let expected = [(1000, Rekey), (2000, Rekey), (3000, Rekey)];
    assert_eq!(plan(rekeys), expected);
    let [control, disturbed] = found.result.disturbances() else {
        panic!("{:?}", found.result.disturbances())
    };
    assert_eq!((control.trial, disturbed.trial), (0, 1));
    assert_eq!((control.events.len(), disturbed.events.len()), (0, 3));
    assert_eq!(found.result.trials.len(), 2);
    // The evidence is taken at half of the load, which a recovered device carries without loss.
    assert_eq!(found.evidence_load.frames_per_s, Some(LOAD / 2));
}

#[test]
fn a_part_fails_and_comes_back_again_and_again() {
    for (failure, breaks, mends) in [
        (Failure::Link, CutLink, JoinLink),
        (Failure::Crash, Kill(NodeId::Gw2), Restart(NodeId::Gw2)),
    ] {
        let mut rig = acted();
        rig.carry_out(procedure(failover(failure))).unwrap();
        let [(load, planned)] = &rig.asked[..] else {
            panic!("{:?}", rig.asked)
        };
        let expected = [(1000, breaks), (1500, mends), (4500, breaks), (5000, mends)];
        assert_eq!(plan(planned), expected);
        // However long it takes to break, the time down is whole.
        let pauses = planned.actions.iter().map(|planned| planned.pause_ns / MS);
        assert_eq!(pauses.collect::<Vec<_>>(), [0, 500, 0, 500]);
        // A second before the first, and each watched whole.
        assert_eq!(load.duration_ns, 8 * SECOND);
    }
}

#[test]
fn a_way_past_an_encryptor_is_open_only_while_it_is_killed() {
    let mut rig = acted();
    rig.carry_out(procedure(failover(Failure::Bypass))).unwrap();
    assert_eq!(rig.at_once, [OpenBypass, CloseBypass]);
    let [(_, planned)] = &rig.asked[..] else {
        panic!("{:?}", rig.asked)
    };
    assert!(planned.exposed);
    let [breaks, mends] = [Kill(NodeId::Gw1), Restart(NodeId::Gw1)];
    let expected = [(1000, breaks), (1500, mends), (4500, breaks), (5000, mends)];
    assert_eq!(plan(planned), expected);
}

#[test]
fn a_set_up_is_given_the_time_that_it_takes_without_a_load() {
    let mut rig = acted();
    rig.carry_out(procedure(set_up())).unwrap();
    assert_eq!(rig.at_once, [TakeDown, SetUp]);
    let [(load, planned)] = &rig.asked[..] else {
        panic!("{:?}", rig.asked)
    };
    // Each round: three times the 300 ms, and a second watched.
    let expected = [
        (1000, TakeDown),
        (1000, SetUp),
        (2900, TakeDown),
        (2900, SetUp),
    ];
    assert_eq!(plan(planned), expected);
    assert_eq!(load.duration_ns, 4800 * MS);
}

#[test]
fn hostile_packets_rise_in_share_after_a_trial_without() {
    let mut rig = acted();
    let found = rig.whole(procedure(hostile()));
    let hostile: Vec<_> = rig.asked.iter().map(|(_, asked)| asked.hostile).collect();
    let load = |percent, packets_per_s| {
        Some(HostileLoad {
            attack: Attack::Replay,
            percent,
            packets_per_s,
        })
    };
    assert_eq!(hostile, [None, load(1, 100), load(200, 20_000)]);
    let all = checks(procedure(self::hostile()), &found);
    assert!(all.iter().all(|check| check.passed), "{all:?}");
}

#[test]
fn the_load_may_be_a_share_of_what_is_searched_first() {
    let shared = || {
        Procedure::Disturbed(Disturbed {
            load: BaseLoad::Share {
                percent: 90,
                search: search(),
            },
            event: rekey(),
        })
    };
    let mut rig = acted();
    let found = rig.carry_out(shared()).unwrap();
    let throughput = found.result.throughput.as_ref().unwrap().goals[0].lower;
    let load = throughput.map(|load| load * 90 / 100);
    assert!(
        rig.asked
            .iter()
            .all(|(asked, _)| asked.frames_per_s == load)
    );
    // The search's trials come before the two of the procedure.
    let first = found.result.disturbances()[0].trial;
    assert_eq!(first + 2, found.result.trials.len());

    let mut rig = Acted::new(Behaviour::Hard { capacity: 0 });
    let found = rig.carry_out(shared()).unwrap();
    assert!(rig.asked.is_empty() && found.result.disturbances().is_empty());
    assert!(found.objection.unwrap().contains("lower `min_load`"));
}

#[test]
fn a_rig_that_can_do_nothing_to_a_device_says_so() {
    for event in [rekey(), set_up()] {
        let mut rig = Simulated::new(Behaviour::Hard { capacity: CAPACITY });
        let error = rig.carry_out(procedure(event)).unwrap_err().to_string();
        assert!(error.contains("kind `namespaces`"), "{error}");
    }
}

/// A device that lets hostile packets through is measured all the same: how many is its figure.
#[test]
fn frames_that_an_attack_brings_out_are_counted_and_no_objection() {
    let mut rig = acted();
    rig.leaks_one_in = Some(1000);
    let found = rig.whole(procedure(hostile()));
    let all = checks(procedure(hostile()), &found);
    assert!(all.iter().all(|check| check.passed), "{all:?}");
    let attacked = found.result.disturbances().iter();
    let through = attacked.map(|one| found.result.trials[one.trial].duplicated);
    assert_eq!(through.collect::<Vec<_>>(), [0, 0, 40]);
}

/// A load that was not offered has no figure beside it; what a search tried has none of its own.
#[test]
fn a_load_that_was_not_offered_speaks_against_each_trial_in_the_tables() {
    let mut rig = acted();
    let found = rig.whole(procedure(hostile()));
    let evidence = found.result.evidence_trial.unwrap();
    for index in 0..found.result.trials.len() {
        let mut starved = rig.whole(procedure(hostile()));
        starved.result.trials[index].sent /= 2;
        let offered = check(procedure(hostile()), &starved, "offered-as-intended");
        // Of the trial with the evidence no figure of this procedure is read.
        assert_eq!(offered.passed, index == evidence, "{offered:?}");
    }
}

#[test]
fn a_sender_that_stood_still_may_have_missed_a_failure() {
    let passes = |event: fn() -> Event, late_ns| {
        let mut found = acted().whole(procedure(event()));
        let trial = found.result.disturbances()[0].trial;
        found.result.trials[trial].late_ns_max = late_ns;
        check(procedure(event()), &found, "offered-as-intended").passed
    };
    let crash: fn() -> Event = || failover(Failure::Crash);
    // A quarter of the 500 ms that the failure lasts.
    assert!(passes(crash, 125 * MS));
    assert!(!passes(crash, 125 * MS + 1));
    // A reset is as long as it is measured: a tenth of a second.
    assert!(passes(reset, 25 * MS));
    assert!(!passes(reset, 25 * MS + 1));
    // Of keys that are renewed nothing is down that it could miss.
    assert!(passes(rekey, 125 * MS + 1));
}

#[test]
fn an_attacker_that_was_too_slow_made_another_trial() {
    for (percent, passed) in [(60, true), (40, false), (0, false)] {
        let mut rig = acted();
        rig.attacker_percent = percent;
        let found = rig.whole(procedure(hostile()));
        let found = check(procedure(hostile()), &found, "hostile-packets-sent");
        assert_eq!(found.passed, passed, "{found:?}");
    }
    let mut found = acted().whole(procedure(hostile()));
    let ProcedureRecord::Disturbed(disturbed) = &mut found.result.found else {
        panic!("{found:?}")
    };
    disturbed.disturbances.pop();
    assert!(!check(procedure(hostile()), &found, "hostile-packets-sent").passed);
}

#[test]
fn what_was_not_done_speaks_against_a_failover_and_is_a_fact_of_rekeys() {
    let carried_out = |event: fn() -> Event, done| {
        let mut rig = acted();
        rig.done = done;
        let found = rig.whole(procedure(event()));
        check(procedure(event()), &found, "events-carried-out")
    };
    assert!(carried_out(rekey, 3).detail.starts_with("3 of 3 were done"));
    assert!(carried_out(rekey, 1).passed);
    assert!(!carried_out(rekey, 0).passed);
    assert!(carried_out(set_up, 4).passed);
    assert!(!carried_out(set_up, 3).passed);
    assert!(!carried_out(|| failover(Failure::Link), 2).passed);
}

#[test]
fn a_device_that_does_not_carry_afterwards_has_not_recovered() {
    let mut rig = acted();
    let mut found = rig.whole(procedure(failover(Failure::Crash)));
    let afterwards = |found: &ProcedureResult| {
        check(
            procedure(failover(Failure::Crash)),
            found,
            "carries-afterwards",
        )
        .passed
    };
    assert!(afterwards(&found));
    let evidence = found.result.evidence_trial.unwrap();
    // One in a thousand of the evidence's frames may be lost: five of 5000.
    found.result.trials[evidence].received -= 5;
    assert!(afterwards(&found));
    found.result.trials[evidence].received -= 1;
    assert!(!afterwards(&found));
}

#[test]
fn keys_are_put_out_of_step_after_a_second_of_load_and_each_is_watched() {
    let mut rig = acted();
    let event = Event::Desync {
        cause: Desync::MissedRollover,
        times: 3,
        watch_ns: 2 * SECOND,
    };
    let found = rig.whole(procedure(event.clone()));
    let [(load, planned)] = &rig.asked[..] else {
        panic!("{:?}", rig.asked)
    };
    let action = DutAction::Desync(Desync::MissedRollover);
    let expected = [(1000, action), (3000, action), (5000, action)];
    assert_eq!(plan(planned), expected);
    assert_eq!(load.duration_ns, 7 * SECOND);
    assert!(check(procedure(event.clone()), &found, "events-carried-out").passed);
    rig.done = 2;
    let short = rig.whole(procedure(event.clone()));
    assert!(!check(procedure(event), &short, "events-carried-out").passed);
}

#[test]
fn the_throughput_is_searched_once_more_with_rekeys_in_every_trial() {
    let mut rig = acted();
    let found = rig
        .carry_out(Procedure::Disturbed(Disturbed {
            load: BaseLoad::Share {
                percent: 90,
                search: search(),
            },
            event: Event::Rekey {
                every_ns: 300 * MS,
                duration_ns: SECOND,
                throughput: true,
            },
        }))
        .unwrap();
    let result = &found.result;
    let first = result.throughput.as_ref().unwrap();
    let again = result.rekeyed_throughput().unwrap();
    assert_eq!(again.max_load, first.max_load);
    // Each rekey of this device costs frames, so that no load meets the goal of zero loss.
    assert!(first.goals[0].lower.is_some() && again.goals[0].lower.is_none());
    // Only the quiet and the disturbed trial are recorded as disturbances.
    assert_eq!(result.disturbances().len(), 2);
    let searched = &rig.asked[2..];
    assert!(!searched.is_empty());
    for (load, planned) in searched {
        let times = plan(planned);
        let every = (300 * MS).min(load.duration_ns / 2) / MS;
        assert_eq!(times[0], (every, Rekey), "{load:?}");
        assert_eq!(
            times.len() as u64,
            (load.duration_ns / MS - 1) / every,
            "{load:?}"
        );
    }
}

#[test]
fn a_device_is_reset_on_gw2_once_in_each_watched_time() {
    for kind in [Reset::Process, Reset::Orderly, Reset::Command] {
        let event = Event::Reset {
            kind,
            times: 3,
            watch_ns: 2 * SECOND,
        };
        let mut rig = acted();
        let found = rig.whole(procedure(event.clone()));
        let [(load, planned)] = &rig.asked[..] else {
            panic!("{:?}", rig.asked)
        };
        let action = DutAction::Reset(NodeId::Gw2, kind);
        assert_eq!(
            plan(planned),
            [(1000, action), (3000, action), (5000, action)]
        );
        assert_eq!(load.duration_ns, 7 * SECOND);
        let all = checks(procedure(event.clone()), &found);
        assert!(all.iter().all(|check| check.passed), "{all:?}");
        rig.done = 2;
        let short = rig.whole(procedure(event.clone()));
        assert!(!check(procedure(event), &short, "events-carried-out").passed);
    }
}

/// A device that only said that it restarted, or of which nothing is known, has no reset time.
#[test]
fn a_reset_that_left_the_same_process_is_none() {
    let with = |change: fn(&mut ResetRecord)| {
        let mut found = acted().whole(procedure(reset()));
        let ProcedureRecord::Disturbed(disturbed) = &mut found.result.found else {
            panic!("{found:?}")
        };
        let second = &mut disturbed.disturbances[0].events[1];
        change(second.reset.as_mut().unwrap());
        check(procedure(reset()), &found, "device-restarted")
    };
    assert!(with(|_| ()).passed);
    let same = with(|found| found.after.clone_from(&found.before));
    assert!(!same.passed);
    assert!(
        same.detail.starts_with("1 of 2 resets")
            && same.detail.contains("did not: from pid 1 to pid 1"),
        "{}",
        same.detail
    );
    // One of two processes is the old one.
    assert!(!with(|found| found.after.push("pid 1".to_owned())).passed);
    assert!(!with(|found| found.before.clear()).passed);
    assert!(!with(|found| found.after.clear()).passed);
}
