//! A queue of the machine that overflows now and then: its loss is not the device's.

use crate::rig::{MS, Simulated, cell, search, test, trial};
use journal::record::{FrameTrial, GoalBounds, QueueDrops, TrialReadings};
use plan::Procedure;
use search::simulate::Behaviour;
use std::collections::BTreeMap;
use testbed::Interrupt;
use trial::TrialError;
use trial::frames::{FrameRun, Rig, RigLoad, carry_out};

const CAPACITY: u64 = 777_777;

/// A rig whose machine loses a frame in each of the first `spills` trials at a load and duration.
struct Spilling {
    rig: Simulated,
    spills: u32,
    made: BTreeMap<(u64, u64), u32>,
}

impl Rig for Spilling {
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError> {
        let mut run = self.rig.run(load, interrupt)?;
        let key = (run.trial.load, run.trial.duration_ns);
        let made = self.made.entry(key).or_default();
        *made += 1;
        let unattributed = u64::from(*made <= self.spills && load.frames_per_s.is_some());
        run.trial.received -= unattributed;
        run.trial.readings = Some(Box::new(TrialReadings {
            drops: QueueDrops {
                unattributed,
                ..QueueDrops::default()
            },
            ..TrialReadings::default()
        }));
        run.took_ns = load.duration_ns;
        Ok(run)
    }

    fn line_rate(&self) -> Option<u64> {
        None
    }
}

/// The bounds of the first goal, and the trials of the search.
fn searched(spills: u32) -> (GoalBounds, Vec<FrameTrial>, u64) {
    let mut rig = Spilling {
        rig: Simulated::new(Behaviour::Hard { capacity: CAPACITY }),
        spills,
        made: BTreeMap::new(),
    };
    let test = test(Procedure::Throughput(search()));
    let cell = cell(&test);
    let found = carry_out(
        &trial(&cell),
        &test,
        &mut rig,
        &mut |_| (),
        &Interrupt::new(),
    );
    let result = found.unwrap().result;
    let found = result.throughput.unwrap();
    (
        found.goals[0].clone(),
        result.trials[1..].to_vec(),
        found.took_ns,
    )
}

#[test]
fn a_trial_whose_loss_may_be_the_testers_is_repeated_and_its_time_counts() {
    let (expected, clean, _) = searched(0);
    let (found, trials, took_ns) = searched(1);
    assert_eq!((found.lower, found.upper), (expected.lower, expected.upper));
    assert!(trials.len() > clean.len(), "{trials:?}");
    let all_ns: u64 = trials.iter().map(|trial| trial.duration_ns).sum();
    assert_eq!(took_ns, all_ns);
    assert!(all_ns > 100 * MS);
}

#[test]
fn a_queue_that_always_overflows_ends_the_repeats() {
    let (found, trials, _) = searched(u32::MAX);
    // Not one load is free of loss.
    assert_eq!(found.lower, None);
    for thrice in trials.chunks(3) {
        assert!(thrice.len() == 3 && thrice.iter().all(|one| one.load == thrice[0].load));
    }
}
