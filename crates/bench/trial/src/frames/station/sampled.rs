//! A frame trial with samples of the cipher link and CPU time by role.

use super::StationRig;
use crate::counters::Counters;
use crate::error::TrialError;
use crate::frames::{FrameRun, RigLoad};
use crate::timing::Timing;
use crate::watch::{Sample, WatchResult, Watcher};
use testbed::Interrupt;

/// Readings before, during and after a trial.
pub(in crate::frames) struct Sampled {
    pub(in crate::frames) before: Counters,
    pub(in crate::frames) after: Counters,
    pub(in crate::frames) seen: WatchResult,
}

impl StationRig<'_> {
    /// Makes a trial with samples, and keeps them.
    pub(super) fn run_sampled(
        &mut self,
        load: &RigLoad,
        interrupt: &Interrupt,
    ) -> Result<FrameRun, TrialError> {
        let before = Counters::read(self.bench, self.dut)?;
        let running = self.start(load, None)?;
        let watch = Watcher {
            bench: self.bench,
            dut: self.dut,
            timing: Timing::of_frames(load.duration_ns),
            look: self.look,
            sample: Sample::BULK.of_packets_by(&self.ways[0].cell.dut.adapter),
            receiver: None,
            interrupt,
        };
        let mut seen = watch.follow(running.started, running.programs())?;
        let mut run = self.finish(running, interrupt)?;
        let after = Counters::read(self.bench, self.dut)?;
        // Its probes are not of the trial.
        self.compare_clocks(&mut run)?;
        self.sampled_programs = self.programs.clone();
        seen.open_samples(self.dut)?;
        self.sampled = Some(Sampled {
            before,
            after,
            seen,
        });
        Ok(run)
    }
}
