//! The time left, as a run's progress has it.

use crate::bench::{ESTIMATE_NS, ping, plan};
use journal::record::{FrameTrial, Outcome, Record, SoakProgress, SoakSegment, TrialRecord};
use plan::Adapter;
use std::convert::Infallible;
use std::thread::sleep;
use std::time::Duration;
use testbed::{Interrupt, LabError};
use trial::{Done, EventSink, Measurer, Progress, RunEvent, Trial, TrialEvent, run};

/// Makes trials of several steps, with a moment before each.
struct Stepwise;

impl Measurer for Stepwise {
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        events: EventSink<'_>,
        _interrupt: &Interrupt,
    ) -> Result<TrialRecord, LabError> {
        for _ in 0..3 {
            sleep(Duration::from_millis(2));
            let step = SoakProgress {
                cell: trial.cell.id.clone(),
                repeat: trial.repeat,
                load: 5,
                throughput: None,
                trial: FrameTrial::default(),
                segment: SoakSegment::default(),
            };
            events(TrialEvent::Checkpoint(&step.into()));
        }
        Ok(TrialRecord {
            cell: trial.cell.id.clone(),
            repeat: trial.repeat,
            started_unix_ns: 1,
            duration_ns: ESTIMATE_NS,
            clock_step_ns: 0,
            commands: Vec::new(),
            outcome: Outcome::Measured(Box::default()),
        })
    }
}

#[test]
fn the_time_left_moves_on_in_a_trial_and_never_below_that_of_the_others() {
    let plan = plan(vec![ping(Adapter::Direct)], 2);
    let mut left: Vec<Duration> = Vec::new();
    let mut progress = |progress: Progress<'_>| {
        if matches!(progress.event, RunEvent::InTrial(..)) {
            left.push(progress.left);
        }
    };
    let mut sink = |_: &Record| Ok::<_, Infallible>(());
    let done = Done::default();
    let interrupt = Interrupt::new();
    run(
        &plan,
        &mut Stepwise,
        &done,
        &mut sink,
        &mut progress,
        &interrupt,
    )
    .unwrap();
    let (first, second) = left.split_at(3);
    let one = Duration::from_nanos(ESTIMATE_NS);
    assert!(first[0] > first[1] && first[1] > first[2], "{first:?}");
    assert!(
        first.iter().all(|left| (one..2 * one).contains(left)),
        "{first:?}"
    );
    assert!(second[0] > second[2] && second[0] < one, "{second:?}");
}
