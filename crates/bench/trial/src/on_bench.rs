//! Trials on a lab of stations.

use crate::counters::nodes;
use crate::event::EventSink;
use crate::measurer::{Measurer, Trial, boot_id, hello, record};
use crate::tool_trial::attempt;
use crate::{frames, ike};
use journal::record::{Outcome, TrialRecord};
use plan::Measurement;
use std::path::Path;
use testbed::{Bench, Interrupt, LabError, NodeId, machine};

/// Measures on a lab of stations, for example `NamespaceLab`.
pub struct OnBench<'a> {
    /// The lab.
    pub bench: &'a mut dyn Bench,
    /// The run's folder, for captures; `None`: nothing is captured.
    pub folder: Option<&'a Path>,
}

impl Measurer for OnBench<'_> {
    fn measure(
        &mut self,
        trial: &Trial<'_>,
        events: EventSink<'_>,
        interrupt: &Interrupt,
    ) -> Result<TrialRecord, LabError> {
        let trial = &Trial {
            folder: self.folder,
            ..trial.clone()
        };
        let mut record = record(trial, |words| match &trial.cell.measurement {
            Measurement::Frames(test) => {
                frames::attempt(self.bench, (trial, test), events, interrupt, words)
            }
            Measurement::Ike(test) => ike::attempt(self.bench, (trial, test), interrupt, words),
            _ => attempt(self.bench, trial, interrupt, words),
        })?;
        match &mut record.outcome {
            // The failure may be the loss of a station. That ends the run, since all later trials
            // would fail too.
            Outcome::Failed { .. } => expect_stations(self.bench)?,
            // The programs are this machine's, and the path may be on another.
            Outcome::Measured(measured) | Outcome::Invalid { measured, .. } => {
                let taken_by = &mut measured.evidence.taken_by;
                if !taken_by.is_empty() {
                    let there = boot_id(self.bench.node(NodeId::A)).ok();
                    if there != Some(machine::boot_id()) {
                        taken_by.clear();
                    }
                }
            }
        }
        Ok(record)
    }
}

/// Makes a trial on a lab of stations, without progress reporting.
///
/// # Errors
/// As [`Measurer::measure`].
pub fn measure(
    bench: &mut dyn Bench,
    trial: &Trial<'_>,
    interrupt: &Interrupt,
) -> Result<TrialRecord, LabError> {
    OnBench {
        bench,
        folder: trial.folder,
    }
    .measure(trial, &mut |_| (), interrupt)
}

/// Checks that every station responds.
fn expect_stations(bench: &dyn Bench) -> Result<(), LabError> {
    for id in nodes(bench) {
        hello(bench.node(id))?;
    }
    Ok(())
}
