//! Runs on a machine that has other work.

use crate::bench::{ping, plan};
use journal::record::{Outcome, Record, TrialRecord};
use plan::Adapter;
use std::convert::Infallible;
use testbed::{Interrupt, LabError};
use trial::{Conclusion, Done, EventSink, Measurer, Trial, run};

/// Makes trials that other work spoils, except these, by number from 1.
struct Busy {
    valid: &'static [usize],
    made: usize,
}

impl Measurer for Busy {
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        _events: EventSink<'_>,
        _interrupt: &Interrupt,
    ) -> Result<TrialRecord, LabError> {
        self.made += 1;
        let reasons = vec![
            "packets-not-lost: 3 packets are missing".to_owned(),
            "machine-was-ours: other programs took 900 ms".to_owned(),
        ];
        let outcome = if self.valid.contains(&self.made) {
            Outcome::Measured(Box::default())
        } else {
            Outcome::Invalid {
                reasons,
                measured: Box::default(),
            }
        };
        Ok(TrialRecord {
            cell: trial.cell.id.clone(),
            repeat: trial.repeat,
            started_unix_ns: 1,
            duration_ns: 1,
            clock_step_ns: 0,
            commands: Vec::new(),
            outcome,
        })
    }
}

/// How a run of 15 trials ends, with the number of its records.
fn ended(valid: &'static [usize], repeats: u32, done: &Done) -> (Conclusion, usize) {
    let plan = plan(vec![ping(Adapter::Direct)], repeats);
    let mut measurer = Busy { valid, made: 0 };
    let mut records = 0;
    let mut sink = |_: &Record| {
        records += 1;
        Ok::<_, Infallible>(())
    };
    let interrupt = Interrupt::new();
    let conclusion = run(
        &plan,
        &mut measurer,
        done,
        &mut sink,
        &mut |_| {},
        &interrupt,
    )
    .unwrap();
    (conclusion, records)
}

#[test]
fn a_run_ends_early_when_other_work_spoils_its_first_ten_trials() {
    let none = Done::default();
    assert_eq!(ended(&[], 15, &none), (Conclusion::Busy { trials: 10 }, 10));
    let finished = |measured, invalid| Conclusion::Finished {
        measured,
        invalid,
        failed: 0,
    };
    // One valid trial shows that the machine can measure.
    assert_eq!(ended(&[2], 15, &none), (finished(1, 14), 16));
    assert_eq!(ended(&[10], 15, &none), (finished(1, 14), 16));
    // With nothing left to save time on, the run is finished as usual.
    assert_eq!(ended(&[], 10, &none), (finished(0, 10), 11));
    // A start that goes on has been told.
    let mut told = Done::default();
    told.trials.insert(("ping/cores=1/direct".to_owned(), 1));
    assert_eq!(ended(&[], 15, &told), (finished(0, 14), 15));
}
