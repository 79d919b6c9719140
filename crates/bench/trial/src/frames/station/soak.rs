//! Segments of a soak: the device's resources are read at the ends of points, under load.

use super::{Running, StationRig};
use crate::error::TrialError;
use crate::frames::points::{self, DeviceReading};
use crate::frames::rig::Soaked;
use crate::frames::{FrameRun, RigLoad};
use std::time::{Duration, Instant};
use testbed::{Interrupt, LabError};
use traffic_spec::{Clock, Monotonic};

impl StationRig<'_> {
    /// Makes a segment.
    pub(super) fn soak_segment(
        &mut self,
        load: &RigLoad,
        point_ns: u64,
        interrupt: &Interrupt,
    ) -> Result<(FrameRun, Soaked), TrialError> {
        let load = points::with_bins(load, point_ns);
        let mut running = self.start(&load, None)?;
        let mut readings = self.follow(&running, point_ns, interrupt)?;
        let reports = self.collect(&mut running, interrupt)?;
        // The last point's end: `follow` stops before it, since the load ends in between.
        readings.push(self.read_device(&Monotonic::new()));
        let each = reports.iter().map(|(sender, receiver)| (sender, receiver));
        let soaked = points::soaked(self.ways.iter().zip(each), &load, point_ns, &readings);
        let run = self.leave(running, &reports)?;
        Ok((run, soaked))
    }

    /// Reads the device now and at the end of each point, until the load is about to end.
    fn follow(
        &self,
        running: &Running<'_>,
        point_ns: u64,
        interrupt: &Interrupt,
    ) -> Result<Vec<DeviceReading>, TrialError> {
        let clock = Monotonic::new();
        let point_ns = point_ns.max(1);
        let end = running.started + running.load.time();
        let mut readings = vec![self.read_device(&clock)];
        loop {
            let now_ns = clock.now_ns();
            // The next multiple on the clock, as the points of the frames, so that both are of the
            // same time.
            let next_ns = (now_ns / point_ns + 1) * point_ns;
            let next = Instant::now() + Duration::from_nanos(next_ns - now_ns);
            if next >= end {
                return Ok(readings);
            }
            self.sleep_until(running, next, interrupt)?;
            readings.push(self.read_device(&clock));
        }
    }

    /// Reads the device. A value that cannot be read is left out: hours of load are not given up
    /// for it. Whether the device runs is checked separately.
    fn read_device(&self, clock: &impl Clock) -> DeviceReading {
        let at_ns = clock.now_ns();
        let (mut cpu_ns, mut resident_bytes) = (None, None);
        // An external device has no process here, and one of the kernel has none at all.
        if !self.dut.elsewhere && !self.dut.processes.is_empty() {
            (cpu_ns, resident_bytes) = (self.cpu_ns().ok(), self.resident_bytes().ok());
        }
        let counters = self.bench.dut_counters(self.dut).unwrap_or_default();
        DeviceReading {
            at_ns,
            cpu_ns,
            resident_bytes,
            rekeys: points::rekeys(&counters),
            desyncs: points::desyncs(&counters),
        }
    }

    fn cpu_ns(&self) -> Result<u64, LabError> {
        let processes = self.dut.processes.iter();
        let times = processes.map(|&(id, process)| {
            let time = self.bench.node(id).cpu_time(Some(process))?;
            Ok(time.user_ns + time.system_ns)
        });
        times.sum()
    }

    fn resident_bytes(&self) -> Result<u64, LabError> {
        let processes = self.dut.processes.iter();
        let bytes = processes.map(|&(id, process)| self.bench.node(id).resident_bytes(process));
        bytes.sum()
    }
}
