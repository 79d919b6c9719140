//! A rig of known truth: a simulated device between a tester that may have flaws of its own.

use journal::record::{
    Check, ClockAgreement, DelayVariation, FrameTrial, LatencyBucket, Reflection, SoakPoint,
    TrialReadings,
};
use plan::{
    Adapter, Cell, Criteria, Direction, Dut, FrameTest, Goal, IpVersion, Measurement, Ports,
    Procedure, Profile, Stations, ThroughputSearch, Traffic,
};
use search::Trial;
use search::simulate::{Behaviour, Device};
use testbed::{Interrupt, Links};
use trial::TrialError;
use trial::frames::{
    FrameObserved, FrameRun, ProcedureResult, Relief, Rig, RigLoad, Soaked, carry_out, frame_checks,
};
use wire::mix::{Contents, FrameMix, TestFrames};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1000 * MS;
/// What the generator of every rig reaches, in frames/s, unless it is slower.
pub(crate) const CEILING: u64 = 2_000_000;
const FRAME_BYTES: u64 = 64;

/// What the tester itself does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Flaws {
    /// Highest rate at which it sends; it sends all, but takes longer.
    pub(crate) slow_sender: Option<u64>,
    /// Highest rate at which it sends; it leaves out the rest.
    pub(crate) lossy_sender: Option<u64>,
    /// Highest rate at which it receives; it loses the rest and knows.
    pub(crate) lossy_receiver: Option<u64>,
}

/// What the device does beside losing frames, in parts per million of those forwarded.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Damage {
    pub(crate) duplicated_ppm: u64,
    pub(crate) reordered_ppm: u64,
    pub(crate) corrupted_ppm: u64,
}

/// The rig.
pub(crate) struct Simulated {
    device: Device,
    pub(crate) flaws: Flaws,
    pub(crate) damage: Damage,
    pub(crate) line_rate: Option<u64>,
    /// Whether the test loads both directions, which are equal but for `back_lost_ppm`.
    pub(crate) duplex: bool,
    /// Frames that are lost from B to A only, in parts per million of those forwarded.
    pub(crate) back_lost_ppm: u64,
    /// From the end of an overload to the last loss.
    pub(crate) recovers_in_ns: u64,
    /// Whether it forwards nothing any more after an overload: then there is no gap to see.
    pub(crate) dies: bool,
    /// Capacities from the trials with samples on, one after the other.
    pub(crate) when_sampled: Vec<u64>,
    /// Set in the trial of that number, from 1.
    pub(crate) interrupt_in: Option<usize>,
    /// How well the clocks of its stations agreed in each trial one way, in nanoseconds; the last
    /// of them also in those that follow. Empty: they have one clock.
    pub(crate) clocks_within_ns: Vec<u64>,
    /// Whether it can reflect frames.
    pub(crate) reflects: bool,
    /// The requested loads so far.
    pub(crate) loads: Vec<RigLoad>,
}

impl Simulated {
    pub(crate) fn new(behaviour: Behaviour) -> Self {
        Self {
            device: Device::new(behaviour, 7),
            flaws: Flaws::default(),
            damage: Damage::default(),
            line_rate: None,
            duplex: false,
            back_lost_ppm: 0,
            recovers_in_ns: 0,
            dies: false,
            when_sampled: Vec::new(),
            interrupt_in: None,
            clocks_within_ns: Vec::new(),
            reflects: true,
            loads: Vec::new(),
        }
    }

    /// Carries a procedure out.
    pub(crate) fn carry_out(
        &mut self,
        procedure: Procedure,
    ) -> Result<ProcedureResult, TrialError> {
        let mut test = test(procedure);
        test.traffic.duplex = self.duplex;
        let cell = cell(&test);
        carry_out(&trial(&cell), &test, self, &mut |_| (), &Interrupt::new())
    }

    /// What it counts of a load at a rate for a time.
    fn measure(&mut self, load: u64, duration_ns: u64) -> FrameTrial {
        let frames =
            |rate: u64| (u128::from(rate) * u128::from(duration_ns) / 1_000_000_000) as u64;
        let intended = frames(load);
        let sent = self
            .flaws
            .lossy_sender
            .map_or(intended, |rate| intended.min(frames(rate)));
        let slowest = self.flaws.slow_sender.unwrap_or(u64::MAX).min(load).max(1);
        let elapsed_ns = (u128::from(duration_ns) * u128::from(load) / u128::from(slowest)) as u64;
        // The device is loaded at the rate at which frames come, for as long as they do.
        let offered = (u128::from(sent) * 1_000_000_000).div_ceil(elapsed_ns.into()) as u64;
        let (counts, delay) = self.device.observe(Trial {
            load: offered,
            duration_ns: elapsed_ns,
        });
        let forwarded = sent.saturating_sub(counts.lost());
        // The receiver's loss comes behind the device, which does not notice it.
        let kept = self
            .flaws
            .lossy_receiver
            .map_or(forwarded, |rate| forwarded.min(frames(rate)));
        let share = |ppm: u64| kept * ppm / 1_000_000;
        let corrupted = share(self.damage.corrupted_ppm);
        FrameTrial {
            load,
            duration_ns,
            elapsed_ns,
            intended,
            sent,
            sent_bytes: sent * FRAME_BYTES,
            received: kept - corrupted,
            received_bytes: (kept - corrupted) * FRAME_BYTES,
            duplicated: share(self.damage.duplicated_ppm),
            too_late: 0,
            reordered: share(self.damage.reordered_ppm),
            corrupted,
            after_end: 0,
            receiver_stood_ns_max: 0,
            receiver_dropped: forwarded - kept,
            sender_dropped: intended - sent,
            late_ns_max: elapsed_ns.saturating_sub(duration_ns),
            late_frames: late_frames(sent, elapsed_ns.saturating_sub(duration_ns)),
            delay,
            reserve: self.device.reserve(),
            directions: Vec::new(),
            readings: None,
        }
    }
}

impl Simulated {
    /// Notes how the clocks agreed in a trial.
    fn with_clocks(&mut self, mut run: FrameRun) -> FrameRun {
        let within_ns = match self.clocks_within_ns.len() {
            0 => return run,
            // The last one stays for all later trials.
            1 => self.clocks_within_ns[0],
            _ => self.clocks_within_ns.remove(0),
        };
        let clocks = ClockAgreement {
            within_ns,
            ..ClockAgreement::default()
        };
        run.trial.readings = Some(Box::new(TrialReadings {
            clocks: Some(clocks),
            ..TrialReadings::default()
        }));
        run
    }
}

impl Rig for Simulated {
    fn run(&mut self, load: &RigLoad, interrupt: &Interrupt) -> Result<FrameRun, TrialError> {
        self.loads.push(*load);
        if self.interrupt_in == Some(self.loads.len()) {
            interrupt.set();
        }
        interrupt.check()?;
        // The device's capacity changes right when a search is confirmed.
        if load.sampled && !self.when_sampled.is_empty() {
            let capacity = self.when_sampled.remove(0);
            self.device = Device::new(Behaviour::Hard { capacity }, 7);
        }
        let ceiling = self
            .flaws
            .slow_sender
            .or(self.flaws.lossy_sender)
            .unwrap_or(CEILING);
        let rate = load.frames_per_s.unwrap_or(ceiling);
        let mut trial = self.measure(rate, load.duration_ns);
        // 0 in records means as fast as possible.
        trial.load = load.frames_per_s.unwrap_or(0);
        let relief = load.then.map(|then| {
            let after = self.measure(then.frames_per_s, then.duration_ns);
            // What it still loses on the way back, frame by frame.
            let lost_ns = if self.dies {
                then.duration_ns
            } else {
                self.recovers_in_ns.min(then.duration_ns)
            };
            let lost = (u128::from(then.frames_per_s) * u128::from(lost_ns) / 1_000_000_000) as u64;
            trial.intended += after.intended;
            trial.sent += after.sent;
            trial.received += after.received - lost;
            trial.duration_ns += after.duration_ns;
            trial.elapsed_ns += after.elapsed_ns;
            Relief {
                sent: after.sent,
                received: after.received - lost,
                last_loss_ns: if self.dies { 0 } else { lost_ns },
                last_received_ns: if self.dies { 0 } else { then.duration_ns },
            }
        });
        // The latency identifies the load.
        let latency = vec![LatencyBucket {
            upto_ns: 1000 + rate / 1000,
            frames: trial.received,
        }];
        let took_ns = trial.elapsed_ns + load.drain_ns;
        let run = FrameRun {
            trial,
            latency,
            variation: vec![DelayVariation::default(); load.variation.into()],
            relief,
            took_ns,
            ..FrameRun::default()
        };
        if load.reflected {
            let back = FrameRun {
                reflection: Some(Reflection::default()),
                ..run.clone()
            };
            return Ok(run.and(&back));
        }
        if !self.duplex {
            return Ok(self.with_clocks(run));
        }
        let mut back = run.clone();
        let lost = back.trial.received * self.back_lost_ppm / 1_000_000;
        back.trial.received -= lost;
        back.trial.received_bytes -= lost * FRAME_BYTES;
        Ok(run.and(&back))
    }

    /// One point of all.
    fn soak(
        &mut self,
        load: &RigLoad,
        point_ns: u64,
        interrupt: &Interrupt,
    ) -> Result<(FrameRun, Soaked), TrialError> {
        let run = self.run(load, interrupt)?;
        let soaked = Soaked {
            started_unix_ns: self.loads.len() as u64 * 1000 * SECOND,
            points: vec![SoakPoint {
                intended: run.trial.intended,
                received: run.trial.received,
                max_ns: point_ns,
                ..SoakPoint::default()
            }],
        };
        Ok((run, soaked))
    }

    fn has_two_clocks(&self) -> bool {
        !self.clocks_within_ns.is_empty()
    }

    fn reflects(&self) -> bool {
        self.reflects
    }

    fn line_rate(&self) -> Option<u64> {
        self.line_rate
    }
}

/// A frame test of one-way traffic in frames of 64 B.
pub(crate) fn test(procedure: Procedure) -> FrameTest {
    FrameTest {
        traffic: Traffic {
            frames: TestFrames {
                mix: FrameMix::fixed(64),
                flows: 1,
                tunnels: 1,
                contents: Contents::Fixed,
            },
            ip: IpVersion::V4,
            direction: Direction::Both,
            duplex: false,
            ports: Ports::default(),
        },
        procedure,
    }
}

pub(crate) fn cell(test: &FrameTest) -> Cell {
    Cell {
        id: "cell".to_owned(),
        group: "group".to_owned(),
        coordinates: Vec::new(),
        dut: Dut::new("simulated", Adapter::Direct),
        stations: Some(Stations {
            mtu: 1500,
            cores: 1,
            offloads: false,
            overlay: plan::Overlay::None,
            dscp: None,
        }),
        measurement: Measurement::Frames(test.clone()),
        impair: None,
        tune: false,
        estimate_ns: 0,
        calibration: false,
    }
}

/// The first trial of a cell.
pub(crate) fn trial(cell: &Cell) -> trial::Trial<'_> {
    let links = Links {
        mtu: 1500,
        cipher_mtu: 1500,
        offloads: false,
        rate_bps: None,
    };
    trial::Trial::of(cell, 1, links)
}

/// Zero loss and half a per cent, within half a per cent, in trials from 50 ms to 1 s.
pub(crate) fn search() -> ThroughputSearch {
    let goal = |name: &str, loss_ratio_ppm| Goal {
        name: name.to_owned(),
        criteria: Criteria {
            loss_ratio_ppm,
            exceed_ratio_ppm: 500_000,
            initial_trial_ns: 50 * MS,
            final_trial_ns: SECOND,
            duration_sum_ns: 2 * SECOND,
            width_ppm: 5000,
        },
    };
    ThroughputSearch {
        profile: Profile::Fast,
        goals: vec![goal("ndr", 0), goal("pdr", 5000)],
        max_load: None,
        min_load: 1000,
        drain_ns: 20 * MS,
        timeout_ns: 600 * SECOND,
    }
}

/// The checks of a procedure's frame trials.
pub(crate) fn checks(procedure: Procedure, found: &ProcedureResult) -> Vec<Check> {
    frame_checks(&FrameObserved {
        test: &test(procedure),
        result: &found.result,
        strays: &found.strays,
        seen: None,
    })
}

/// The check of that name.
pub(crate) fn check(procedure: Procedure, found: &ProcedureResult, name: &str) -> Check {
    let mut checks = checks(procedure, found).into_iter();
    checks.find(|check| check.name == name).unwrap()
}

/// Frames that leave more than 1 ms late when lateness grows evenly up to `late_ns`.
fn late_frames(sent: u64, late_ns: u64) -> u64 {
    match late_ns.checked_sub(MS) {
        Some(beyond) => (u128::from(sent) * u128::from(beyond) / u128::from(late_ns)) as u64,
        None => 0,
    }
}
