//! Simulated devices to which something happens, and their hours under one load.
//!
//! Frames are lost one by one, by their intended times; what an action did is kept as the truth.
//! What follows from it is evaluated by the instrument's own code.

use crate::device::{COPIES_S, Course, PATH_S, Simulated, latency};
use journal::record::{
    AttackTrial, DevicePoint, Disturbance, FrameTrial, LatencyBucket, SoakPoint, TimeBin,
};
use std::collections::BTreeMap;
use testbed::DutAction;
use trial::PlannedDisturbance;
use trial::frames::{Bins, ExecutedAction, FrameRun, Rig, RigLoad, Soaked};

const NS: f64 = 1e9;
const MS: u64 = 1_000_000;
/// Width of the bins, and the most of them with this width.
const BIN_NS: u64 = MS;
const BINS_MAX: u64 = 60_000;
/// An action begins so late at most.
const LATE_S: f64 = 0.002;
/// What a device reports an action done after.
const DONE_S: f64 = 0.005;
/// Resident memory of a fresh device, and the cores that it keeps busy.
const MEMORY_BYTES: f64 = 64e6;
const CORES: f64 = 0.5;

/// What actions and hostile packets do to a device. Times are in seconds, from the action's begin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Events {
    /// It loses all frames for so long after new keys.
    pub(crate) rekey_s: f64,
    /// Until it carries after a restart, or with its link up again.
    pub(crate) recovers_s: f64,
    /// Until all tunnels are up; one comes up after the other.
    pub(crate) set_up_s: f64,
    /// Tunnels, to which frames go in turn.
    pub(crate) tunnels: u32,
    /// Until it finds that its keys are out of step, and has new ones.
    pub(crate) finds_desync_s: f64,
    /// Standard deviation of these times, as a share.
    pub(crate) spread: f64,
    /// Work for a hostile packet, as a share of that for a frame.
    pub(crate) hostile_cost: f64,
    /// One hostile packet in this many comes through.
    pub(crate) lets_through_one_in: Option<u64>,
    /// One frame in this many is lost at any time.
    pub(crate) loses_one_in: Option<f64>,
}

impl Default for Events {
    fn default() -> Self {
        Self {
            rekey_s: 0.0,
            recovers_s: 0.25,
            set_up_s: 0.2,
            tunnels: 1,
            finds_desync_s: 0.8,
            spread: 0.0,
            hostile_cost: 0.0,
            lets_through_one_in: None,
            loses_one_in: None,
        }
    }
}

/// What one disturbance did.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Happened {
    /// From the beginning of the failure to the end of loss.
    pub(crate) outage_s: f64,
    /// From the beginning of the action that ended it, or of the only one.
    pub(crate) after_s: f64,
}

/// A time in which a device loses the frames of a tunnel, or of all.
struct Outage {
    from_ns: u64,
    to_ns: u64,
    tunnel: Option<u32>,
}

impl Simulated {
    /// A time of an event, with its spread.
    fn spread(&mut self, time_s: f64) -> f64 {
        time_s * (1.0 + self.model.events.spread * self.random.normal()).max(0.1)
    }

    /// Carries out the actions from `start_ns` on: what was done, and what it costs.
    fn carry_out(
        &mut self,
        planned: &PlannedDisturbance,
        start_ns: u64,
        end_ns: u64,
    ) -> (Vec<ExecutedAction>, Vec<Outage>) {
        let (mut done, mut outages): (Vec<ExecutedAction>, Vec<Outage>) = (Vec::new(), Vec::new());
        let (mut done_at_ns, mut broken_ns) = (start_ns, start_ns);
        let events = self.model.events;
        for action in &planned.actions {
            let late_ns = (LATE_S * NS * self.random.uniform()) as u64;
            // As the rig carries them out.
            let at_ns = (start_ns + action.at_ns).max(done_at_ns + action.pause_ns) + late_ns;
            if at_ns >= end_ns {
                break;
            }
            let name = match action.action {
                DutAction::Rekey => "rekey",
                DutAction::Kill(_) => "crash",
                DutAction::Restart(_) => "restart",
                DutAction::Reset(_, reset) => reset.name(),
                DutAction::CutLink => "link-down",
                DutAction::JoinLink => "link-up",
                DutAction::OpenBypass | DutAction::CloseBypass => {
                    unreachable!("never under a load")
                }
                DutAction::TakeDown => "take-down",
                DutAction::SetUp => "set-up",
                DutAction::Desync(cause) => cause.name(),
            };
            // How long after the action frames are lost; `None`: until another action.
            let lasts_s = match action.action {
                DutAction::Rekey => Some(events.rekey_s),
                DutAction::Kill(_) | DutAction::CutLink | DutAction::TakeDown => None,
                DutAction::Restart(_) | DutAction::Reset(..) | DutAction::JoinLink => {
                    Some(events.recovers_s)
                }
                DutAction::SetUp => Some(events.set_up_s),
                DutAction::OpenBypass | DutAction::CloseBypass => Some(0.0),
                DutAction::Desync(_) => Some(events.finds_desync_s),
            };
            let is_alone = matches!(
                action.action,
                DutAction::Rekey | DutAction::Reset(..) | DutAction::Desync(_)
            );
            // An action that ends a failure has its outage counted from the action that began it.
            if is_alone || lasts_s.is_none() {
                broken_ns = at_ns;
            }
            if let Some(lasts_s) = lasts_s {
                let lasts_s = self.spread(lasts_s);
                let tunnels = match action.action {
                    DutAction::SetUp => events.tunnels,
                    _ => 1,
                };
                outages.extend((0..tunnels).map(|tunnel| {
                    let share = f64::from(tunnel + 1) / f64::from(tunnels);
                    Outage {
                        from_ns: broken_ns,
                        to_ns: at_ns + (lasts_s * share * NS) as u64,
                        tunnel: (tunnels > 1).then_some(tunnel),
                    }
                }));
                self.happened.push(Happened {
                    outage_s: (at_ns - broken_ns) as f64 / NS + lasts_s,
                    after_s: lasts_s,
                });
            }
            let took_ns = (DONE_S * NS) as u64;
            done.push(ExecutedAction {
                name,
                at_ns,
                took_ns,
            });
            done_at_ns = at_ns + took_ns;
        }
        (done, outages)
    }

    /// A trial with a disturbance.
    pub(crate) fn disturbed(
        &mut self,
        load: &RigLoad,
        planned: &PlannedDisturbance,
    ) -> (FrameRun, Disturbance) {
        let events = self.model.events;
        let rate = load.frames_per_s.unwrap_or(1) as f64;
        let width_ns = BIN_NS * load.duration_ns.div_ceil(BIN_NS * BINS_MAX).max(1);
        // The schedule begins at any time within a bin.
        let start_ns = self.now_unix_ns() + (width_ns as f64 * self.random.uniform()) as u64;
        let end_ns = start_ns + load.duration_ns;
        let (done, outages) = self.carry_out(planned, start_ns, end_ns);
        let hostile = planned.hostile.map_or(0.0, |it| it.packets_per_s as f64);
        let work = rate + events.hostile_cost * hostile;
        // What is too much is lost of frames and hostile packets alike.
        let overload = (1.0 - self.model.capacity / work).max(0.0);
        let at_random = events.loses_one_in.map_or(0.0, f64::recip);
        let lost_share = 1.0 - (1.0 - overload) * (1.0 - at_random);
        let first = start_ns / width_ns;
        let mut bins = vec![TimeBin::default(); (end_ns / width_ns - first) as usize + 1];
        let (mut intended, mut received) = (0, 0);
        for frame in 0..load.intended() {
            let at_ns = start_ns + (frame as f64 / rate * NS) as u64;
            let tunnel = (frame % u64::from(events.tunnels.max(1))) as u32;
            let is_out = outages.iter().any(|outage| {
                (outage.from_ns..outage.to_ns).contains(&at_ns)
                    && outage.tunnel.is_none_or(|own| own == tunnel)
            });
            let is_lost = is_out || lost_share > 0.0 && self.random.uniform() < lost_share;
            let bin = &mut bins[(at_ns / width_ns - first) as usize];
            bin.intended += 1;
            intended += 1;
            if !is_lost {
                bin.received += 1;
                bin.latency_ns_max = (PATH_S * NS) as u64;
                received += 1;
            }
        }
        let bins = Bins {
            width_ns,
            first,
            bins,
            start_ns,
            late_ns: 0,
        };
        let attack = planned.hostile.map(|hostile| AttackTrial {
            percent: hostile.percent,
            sent: hostile.packets_per_s * load.duration_ns / 1_000_000_000,
            elapsed_ns: load.duration_ns,
        });
        let through = attack.zip(events.lets_through_one_in);
        let trial = FrameTrial {
            duplicated: through.map_or(0, |(attack, one_in)| attack.sent / one_in),
            ..self.counted(load, intended, received)
        };
        self.loaded_s += load.duration_ns as f64 / NS;
        let latency = vec![LatencyBucket {
            upto_ns: (PATH_S * NS) as u64,
            frames: received,
        }];
        let disturbance = Disturbance {
            trial: 0,
            events: bins.events(&done),
            attack,
            timeline: bins.timeline(),
            histogram: latency.clone(),
            dut_counters: BTreeMap::new(),
        };
        let run = self.run_of(trial, latency, None, load.drain_ns as f64 / NS);
        (run, disturbance)
    }

    /// A trial whose frames were all sent in time.
    fn counted(&self, load: &RigLoad, intended: u64, received: u64) -> FrameTrial {
        FrameTrial {
            load: load.frames_per_s.unwrap_or(0),
            duration_ns: load.duration_ns,
            elapsed_ns: load.duration_ns,
            intended,
            sent: intended,
            sent_bytes: intended * self.frame_bytes,
            received,
            received_bytes: received * self.frame_bytes,
            ..FrameTrial::default()
        }
    }

    /// Time of actions without a load.
    pub(crate) fn acted(&mut self, actions: &[DutAction]) -> u64 {
        let time_s = actions.iter().map(|action| match action {
            DutAction::SetUp => self.model.events.set_up_s,
            _ => DONE_S,
        });
        let time_s: f64 = time_s.sum();
        self.clock_s += time_s;
        (time_s * NS) as u64
    }

    /// A segment of a soak, point by point.
    pub(crate) fn soaked(&mut self, load: &RigLoad, point_ns: u64) -> (FrameRun, Soaked) {
        let started_unix_ns = self.now_unix_ns();
        let factor = 1.0 + self.model.noise * self.random.normal();
        let rate = load.frames_per_s.unwrap_or(0);
        let (mut points, mut histogram) = (Vec::new(), BTreeMap::<u64, u64>::new());
        let (mut intended, mut received, mut at_ns) = (0, 0, 0);
        let (mut queue, mut silent_s) = (0.0, 0.0);
        while at_ns < load.duration_ns {
            let width_ns = point_ns.min(load.duration_ns - at_ns);
            // Not yet, before this point: the device finds it in the point that its time falls
            // into.
            let desynced = self.loaded_s < self.model.desyncs_at_s;
            let mut course = Course {
                queue,
                silent_s,
                ..Course::default()
            };
            let width_s = width_ns as f64 / NS;
            self.load(&mut course, rate as f64, width_s, factor);
            (queue, silent_s) = (course.queue, course.silent_s);
            let frames = RigLoad::new(Some(rate), width_ns, 0).intended();
            let own = frames - frames.min((course.lost + 0.5).floor() as u64);
            let latency = latency(&course);
            for bucket in &latency {
                *histogram.entry(bucket.upto_ns).or_default() += bucket.frames;
            }
            let desyncs = desynced && self.loaded_s >= self.model.desyncs_at_s;
            let memory = MEMORY_BYTES * (1.0 + self.model.leaks_per_s * self.loaded_s);
            let cores = CORES * (1.0 + 0.02 * self.random.normal());
            points.push(SoakPoint {
                at_ns,
                intended: frames,
                received: own,
                silent_ns: (course.longest_silent_s * NS) as u64,
                p50_ns: percentile(&latency, 0.5),
                p99_ns: percentile(&latency, 0.99),
                max_ns: latency.last().map_or(0, |bucket| bucket.upto_ns),
                device: Some(DevicePoint {
                    wall_ns: width_ns,
                    cpu_ns: Some((cores * width_ns as f64) as u64),
                    // Allocations come and go.
                    resident_bytes: Some((memory * (1.0 + 0.002 * self.random.normal())) as u64),
                    rekeys: None,
                    desyncs: Some(u64::from(desyncs)),
                }),
            });
            (intended, received) = (intended + frames, received + own);
            at_ns += width_ns;
        }
        let trial = self.counted(load, intended, received);
        let histogram = histogram.into_iter();
        let histogram = histogram
            .map(|(upto_ns, frames)| LatencyBucket { upto_ns, frames })
            .collect();
        let run = self.run_of(trial, histogram, None, COPIES_S);
        let soaked = Soaked {
            started_unix_ns,
            points,
        };
        (run, soaked)
    }
}

/// Nearest rank.
fn percentile(latency: &[LatencyBucket], share: f64) -> Option<u64> {
    let frames: u64 = latency.iter().map(|bucket| bucket.frames).sum();
    let mut left = (frames as f64 * share).ceil() as u64;
    let reaches = |bucket: &&LatencyBucket| {
        left = left.saturating_sub(bucket.frames);
        left == 0
    };
    latency.iter().find(reaches).map(|bucket| bucket.upto_ns)
}
