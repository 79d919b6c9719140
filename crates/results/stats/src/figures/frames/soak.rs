//! Hours under one load: its outcome, and whether anything drifted.
//!
//! A soak is `stable` only with evidence: the whole time was measured, no more was lost than
//! allowed, nothing stalled, keys stayed in step, and the intervals of rate, latency and memory are
//! within their bounds. Evidence against it makes it `unstable`; without evidence either way it is
//! `inconclusive`.

use super::Repeats;
use super::latency::{self, LoadLatency};
use super::loads::{self, LoadResult};
use super::loss::LossAccount;
use super::rates::Lengths;
use crate::figures::drift::{Drift, DriftJudgement, Point};
use crate::figures::repeats::{Total, ratio};
use journal::record::{
    DevicePoint, FrameResult, FrameTrial, LatencyBucket, LatencyTrial, SoakPoint, SoakProbe,
    SoakSegment,
};
use plan::Soak;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A stall: no frame was received for this long, or a received one was this late.
pub const STALL_NS: u64 = 100_000_000;
/// Maximum number of listed stalls.
const STALLS_LISTED: usize = 20;
/// Minimum number of probes for a verdict on the capacity: with fewer, an interval of 95 % would
/// be wider than from the lowest slope to the highest.
pub const CAPACITY_MIN_PROBES: usize = 5;
/// A probe that carries at least this share of its frames shows the tester's capacity, not the
/// device's.
const LOSSLESS_RATIO: f64 = 0.999;
/// Share of the configured time that must have been measured.
const MEASURED_RATIO: f64 = 0.99;
const NS_PER_HOUR: f64 = 3.6e12;

/// The result of a soak.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SoakResult {
    /// The worst of the repeats.
    pub verdict: SoakVerdict,
    /// Configured time under load.
    pub asked_ns: u64,
    /// Counts and rates over the whole time; over the repeats.
    pub load: LoadResult,
    /// Latency over the whole time; `null` when a repeat timed no frame.
    pub latency: Option<LoadLatency>,
    /// Each repeat.
    pub runs: Vec<SoakRun>,
}

/// Whether a soak was stable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SoakVerdict {
    /// Every condition is shown.
    Stable,
    /// No evidence against it, but not every condition is shown.
    Inconclusive,
    /// There is evidence against it.
    Unstable,
}

impl SoakVerdict {
    /// For tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stable => "stable",
            Self::Inconclusive => "inconclusive",
            Self::Unstable => "unstable",
        }
    }
}

/// One repeat of a soak.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct SoakRun {
    /// From 1.
    pub repeat: u32,
    /// The verdict.
    pub verdict: SoakVerdict,
    /// Reasons why it is not stable, as sentences; reasons that make it unstable come first.
    pub reasons: Vec<String>,
    /// Time under load.
    pub measured_ns: u64,
    /// Points of the timeline.
    pub points: u32,
    /// Parts without a pause.
    pub segments: u32,
    /// Starts of the device: more than one if the run was interrupted.
    pub starts: u32,
    /// Time between segments, without load.
    pub pauses_ns: u64,
    /// The longest of these.
    pub longest_pause_ns: u64,
    /// Frames sent.
    pub sent: u64,
    /// Of those, not received.
    pub lost: u64,
    /// Of those lost, frames that the receiving station lost itself.
    pub lost_in_station: u64,
    /// The counts to which the bound of loss applies: with two loaded directions, the counts of the
    /// direction that lost the larger share.
    pub judged_loss: LossAccount,
    /// Forwarding rate over the time under load, in frames/s and direction.
    pub frames_per_s: f64,
    /// Times that no frame was received for 100 ms, or that a received one was that late.
    pub stalls: u32,
    /// The first of them.
    pub first_stalls: Vec<SoakStall>,
    /// Longest time without received frames.
    pub longest_silence_ns: u64,
    /// Forwarding rate, in frames/s and direction.
    pub rate_drift: Option<Drift>,
    /// Median latency, in nanoseconds.
    pub latency_drift: Option<Drift>,
    /// Resident memory of the device's processes, in bytes; `null` if unknown.
    pub memory_drift: Option<Drift>,
    /// CPU time of the device's processes by time, as cores; `null` if unknown, or without a bound.
    pub cpu_drift: Option<Drift>,
    /// Capacity by the probes, in frames/s and direction; `null` without probes, or if they are
    /// only a lower bound.
    pub capacity_drift: Option<Drift>,
    /// Forwarding rate at the maximum offered load (RFC 2285 §3.6.2), before each segment and after
    /// the last one.
    pub capacity: Vec<SoakCapacity>,
    /// Whether the device carried all that the tester could send in each probe, so that its
    /// capacity is at least that.
    pub capacity_at_least: bool,
    /// Key changes by the device's counters; `null` without these counters.
    pub rekeys: Option<u64>,
    /// Times that it found its keys out of step, likewise.
    pub desyncs: Option<u64>,
    /// Cores that its processes kept busy; `null` if unknown.
    pub cpu_cores: Option<f64>,
    /// Peak resident memory of its processes.
    pub resident_bytes_max: Option<u64>,
}

/// The capacity in one probe.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct SoakCapacity {
    /// From the soak's first frame on; below 0 for the probe before it.
    pub at_s: f64,
    /// Frames/s and direction that the device forwarded.
    pub frames_per_s: f64,
    /// Frames/s and direction that were offered.
    pub offered_per_s: f64,
}

/// A period without received frames, or with frames held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SoakStall {
    /// Its point's time from the soak's first frame, pauses included.
    pub at_ns: u64,
    /// Its length.
    pub ns: u64,
}

impl SoakResult {
    /// `None` when nothing was recorded.
    pub(super) fn of(plan: &Soak, lengths: &Lengths, repeats: &Repeats<'_>) -> Option<Self> {
        let repeats: Vec<(u32, Segments<'_>)> = repeats
            .iter()
            .filter_map(|(repeat, found)| Some((*repeat, Segments::of(found)?)))
            .collect();
        let sums: Vec<(u32, FrameTrial, LatencyTrial)> = repeats
            .iter()
            .map(|(repeat, found)| (*repeat, found.counts(), found.latency()))
            .collect();
        let counted: Vec<(u32, &FrameTrial)> = sums.iter().map(|one| (one.0, &one.1)).collect();
        let timed: Vec<(u32, &LatencyTrial)> = sums.iter().map(|one| (one.0, &one.2)).collect();
        let runs: Vec<SoakRun> = repeats
            .iter()
            .map(|(repeat, found)| SoakRun::of(plan, *repeat, found, lengths.directions as f64))
            .collect();
        Some(Self {
            verdict: runs.iter().map(|run| run.verdict).max()?,
            asked_ns: plan.duration_ns,
            load: loads::result(lengths, None, &counted)?,
            latency: latency::result(None, &timed),
            runs,
        })
    }
}

/// The segments of a repeat, at least one, each with its counts.
struct Segments<'a>(Vec<(&'a SoakSegment, &'a FrameTrial)>);

/// A point with its segment.
struct Placed<'a> {
    /// From the soak's first frame on.
    at_ns: u64,
    start: u32,
    trial: &'a FrameTrial,
    width_ns: u64,
    point: &'a SoakPoint,
}

impl<'a> Segments<'a> {
    fn of(found: &'a FrameResult) -> Option<Self> {
        let own = |segment: &'a SoakSegment| Some((segment, found.trials.get(segment.trial)?));
        let segments: Vec<_> = found.soak().iter().filter_map(own).collect();
        (!segments.is_empty()).then_some(Self(segments))
    }

    fn trials(&self) -> impl Iterator<Item = &'a FrameTrial> {
        self.0.iter().map(|(_, trial)| *trial)
    }

    fn points(&self) -> impl Iterator<Item = Placed<'a>> {
        let first_ns = self.0.first().map_or(0, |(first, _)| first.started_unix_ns);
        self.0.iter().copied().flat_map(move |(segment, trial)| {
            let since = segment.started_unix_ns.saturating_sub(first_ns);
            segment.points.iter().map(move |point| Placed {
                at_ns: since.saturating_add(point.at_ns),
                start: segment.start,
                trial,
                width_ns: segment.point_ns,
                point,
            })
        })
    }

    fn devices(&self) -> impl Iterator<Item = DevicePoint> {
        self.points().filter_map(|placed| placed.point.device)
    }

    /// Times between segments, without load.
    fn pauses_ns(&self) -> impl Iterator<Item = u64> {
        self.0.windows(2).map(|pair| {
            let (segment, trial) = pair[0];
            let began = pair[1].0.started_unix_ns;
            let after = began.saturating_sub(segment.started_unix_ns);
            after.saturating_sub(trial.elapsed_ns.max(trial.duration_ns))
        })
    }

    /// The whole soak as one trial; its time is the time under load.
    fn counts(&self) -> FrameTrial {
        let sum = |of: fn(&FrameTrial) -> u64| self.trials().map(of).total();
        let late = self.trials().map(|trial| trial.late_ns_max);
        FrameTrial {
            load: self.trials().last().map_or(0, |trial| trial.load),
            duration_ns: sum(|trial| trial.duration_ns),
            elapsed_ns: sum(|trial| trial.elapsed_ns),
            intended: sum(|trial| trial.intended),
            sent: sum(|trial| trial.sent),
            sent_bytes: sum(|trial| trial.sent_bytes),
            received: sum(|trial| trial.received),
            received_bytes: sum(|trial| trial.received_bytes),
            duplicated: sum(|trial| trial.duplicated),
            too_late: sum(|trial| trial.too_late),
            reordered: sum(|trial| trial.reordered),
            corrupted: sum(|trial| trial.corrupted),
            after_end: sum(|trial| trial.after_end),
            receiver_dropped: sum(FrameTrial::station_lost),
            sender_dropped: sum(|trial| trial.sender_dropped),
            late_frames: sum(|trial| trial.late_frames),
            late_ns_max: late.max().unwrap_or(0),
            ..FrameTrial::default()
        }
    }

    fn latency(&self) -> LatencyTrial {
        let buckets = self.0.iter().flat_map(|(segment, _)| &segment.histogram);
        let all = latency::pooled(buckets);
        LatencyTrial {
            load: self.trials().next().map_or(0, |trial| trial.load),
            frames: all.iter().map(|(_, frames)| *frames).total(),
            histogram: all
                .into_iter()
                .map(|(upto_ns, frames)| LatencyBucket { upto_ns, frames })
                .collect(),
            ..LatencyTrial::default()
        }
    }

    /// Probes of the capacity, each with the start of the device.
    fn capacity(&self, directions: f64) -> Vec<(u32, SoakCapacity)> {
        let first_ns = self.0.first().map_or(0, |(first, _)| first.started_unix_ns);
        let probes = self.0.iter();
        let probes =
            probes.flat_map(|(segment, _)| segment.probes.iter().map(|it| (segment.start, it)));
        let capacity = |(start, probe): (u32, &SoakProbe)| {
            let trial = &probe.trial;
            let time_s = trial.elapsed_ns.max(trial.duration_ns) as f64 / 1e9;
            // The device also forwarded the frames that the receiving station lost.
            let forwarded = (trial.received + trial.receiver_dropped).min(trial.sent);
            let rate = |frames: u64| frames as f64 / time_s / directions;
            let found = SoakCapacity {
                at_s: (i128::from(probe.at_unix_ns) - i128::from(first_ns)) as f64 / 1e9,
                frames_per_s: rate(forwarded),
                offered_per_s: rate(trial.sent),
            };
            (trial.sent > 0 && time_s > 0.0).then_some((start, found))
        };
        probes.filter_map(capacity).collect()
    }

    /// Values of whole points, grouped by start of the device.
    fn series(&self, value: impl Fn(&Placed<'a>) -> Option<f64>) -> Vec<Vec<Point>> {
        by_start(self.points().filter_map(|placed| {
            let at = placed.at_ns as f64 / NS_PER_HOUR;
            Some((placed.start, (at, value(&placed)?)))
        }))
    }

    /// Each stall. Adjacent points of one silence are one stall.
    fn stalls(&self) -> Vec<SoakStall> {
        let mut stalls: Vec<SoakStall> = Vec::new();
        let mut goes_on = false;
        for placed in self.points() {
            let silent = placed.point.silent_ns;
            // A late generator held the frames back itself.
            let held = placed.point.max_ns.saturating_sub(placed.trial.late_ns_max);
            let ns = silent.max(held);
            let stalled = ns >= STALL_NS;
            // Only silence continues from point to point. Frames that were held back arrive
            // within their point, so the next one begins a stall.
            match stalls.last_mut().filter(|_| goes_on && silent >= STALL_NS) {
                Some(last) => last.ns = last.ns.max(ns),
                None if stalled => stalls.push(SoakStall {
                    at_ns: placed.at_ns,
                    ns,
                }),
                None => {}
            }
            goes_on = silent >= STALL_NS;
        }
        stalls
    }
}

impl Placed<'_> {
    /// Whether it is at least half a point long: a segment's ends cut its first and last point,
    /// which then have too few frames.
    fn is_whole(&self) -> bool {
        let trial = self.trial;
        let time_ns = u128::from(trial.duration_ns.max(1));
        let whole = u128::from(trial.intended) * u128::from(self.width_ns.min(trial.duration_ns));
        u128::from(self.point.intended) * time_ns * 2 >= whole
    }

    fn frames_per_s(&self) -> Option<f64> {
        let share = ratio(self.point.received, self.point.intended)?;
        Some(share * self.trial.load as f64)
    }
}

impl SoakRun {
    fn of(plan: &Soak, repeat: u32, found: &Segments<'_>, directions: f64) -> Self {
        let counts = found.counts();
        let hours = plan.duration_ns as f64 / NS_PER_HOUR;
        let drift =
            |series: Vec<Vec<Point>>, ppm: u32| Drift::of(&series, hours, f64::from(ppm) / 1e6);
        let whole = |value: fn(&Placed<'_>) -> Option<f64>| {
            found.series(move |placed| placed.is_whole().then(|| value(placed))?)
        };
        let stalls = found.stalls();
        let total = |of: fn(&DevicePoint) -> Option<u64>| {
            let values: Vec<u64> = found.devices().filter_map(|device| of(&device)).collect();
            (!values.is_empty()).then(|| values.into_iter().total())
        };
        let spent = found
            .devices()
            .filter_map(|one| Some((one.cpu_ns?, one.wall_ns)));
        let (cpu, wall): (Vec<u64>, Vec<u64>) = spent.unzip();
        let spent = (cpu.into_iter().total(), wall.into_iter().total());
        let time_s = counts.elapsed_ns.max(counts.duration_ns) as f64 / 1e9;
        let probed = found.capacity(directions);
        let capacity: Vec<SoakCapacity> = probed.iter().map(|(_, one)| *one).collect();
        // A probe that was carried shows the load that was offered, and not the capacity.
        let lossless = |one: &SoakCapacity| one.frames_per_s >= LOSSLESS_RATIO * one.offered_per_s;
        let capacity_at_least = !capacity.is_empty() && capacity.iter().all(lossless);
        let mut run = Self {
            repeat,
            verdict: SoakVerdict::Stable,
            reasons: Vec::new(),
            measured_ns: counts.duration_ns,
            points: u32::try_from(found.points().count()).unwrap_or(u32::MAX),
            segments: u32::try_from(found.0.len()).unwrap_or(u32::MAX),
            starts: found.0.last().map_or(0, |(last, _)| last.start),
            pauses_ns: found.pauses_ns().total(),
            longest_pause_ns: found.pauses_ns().max().unwrap_or(0),
            sent: counts.sent,
            lost: counts.lost(),
            lost_in_station: counts.receiver_dropped.min(counts.lost()),
            // A sum of both directions would hide a lossy one behind the other.
            judged_loss: LossAccount::of_worse_direction(found.trials(), |own| own.lost)
                .unwrap_or_else(|| LossAccount::of(found.trials())),
            // Without any time nothing was received, and 0 by 0 would be no number.
            frames_per_s: counts.received as f64 / time_s.max(1e-9) / directions,
            stalls: u32::try_from(stalls.len()).unwrap_or(u32::MAX),
            first_stalls: stalls.iter().take(STALLS_LISTED).copied().collect(),
            longest_silence_ns: found
                .points()
                .map(|placed| placed.point.silent_ns)
                .max()
                .unwrap_or(0),
            rate_drift: drift(whole(|placed| placed.frames_per_s()), plan.drift.rate_ppm),
            latency_drift: drift(
                whole(|placed| Some(placed.point.p50_ns? as f64)),
                plan.drift.latency_ppm,
            ),
            memory_drift: drift(
                whole(|placed| Some(placed.point.device?.resident_bytes? as f64)),
                plan.drift.memory_ppm,
            ),
            // Older plans have no bound of CPU time.
            cpu_drift: plan.drift.cpu_ppm.and_then(|ppm| {
                let cores = |placed: &Placed<'_>| {
                    let device = placed.point.device?;
                    ratio(device.cpu_ns?, device.wall_ns)
                };
                drift(whole(cores), ppm)
            }),
            capacity_drift: plan
                .drift
                .capacity_ppm
                .filter(|_| !capacity_at_least)
                .and_then(|ppm| {
                    let point = |one: &SoakCapacity| (one.at_s / 3600.0, one.frames_per_s);
                    let points = probed.iter().map(|(start, one)| (*start, point(one)));
                    let bound = f64::from(ppm) / 1e6;
                    Drift::of_at_least(CAPACITY_MIN_PROBES, &by_start(points), hours, bound)
                }),
            capacity,
            capacity_at_least,
            rekeys: total(|device| device.rekeys),
            desyncs: total(|device| device.desyncs),
            cpu_cores: ratio(spent.0, spent.1),
            resident_bytes_max: found.devices().filter_map(|one| one.resident_bytes).max(),
        };
        let (against, open) = (run.against(plan), run.open(plan));
        // What was shown against it is final, even if other conditions could not be examined.
        run.verdict = match (against.is_empty(), open.is_empty()) {
            (false, _) => SoakVerdict::Unstable,
            (true, false) => SoakVerdict::Inconclusive,
            (true, true) => SoakVerdict::Stable,
        };
        run.reasons = against.into_iter().chain(open).collect();
        run
    }

    /// The drifts that the verdict considers, each with its name.
    fn drifts(&self) -> [(&'static str, Option<&Drift>); 5] {
        [
            ("the rate", self.rate_drift.as_ref()),
            ("the median latency", self.latency_drift.as_ref()),
            ("the device's memory", self.memory_drift.as_ref()),
            ("the device's CPU time", self.cpu_drift.as_ref()),
            (CAPACITY, self.capacity_drift.as_ref()),
        ]
    }

    /// Whether `lost` exceeds the allowed share of sent frames.
    fn lost_too_many(&self, plan: &Soak, lost: u64) -> bool {
        u128::from(lost) * 1_000_000
            > u128::from(plan.loss_ppm) * u128::from(self.judged_loss.sent())
    }

    /// Reasons against stability.
    fn against(&self, plan: &Soak) -> Vec<String> {
        let mut reasons = Vec::new();
        let (lost, sent) = (self.judged_loss.lost_on_the_way(), self.judged_loss.sent());
        if self.lost_too_many(plan, lost) {
            reasons.push(format!(
                "{lost} of {sent} frames {} lost on the way, of {} allowed",
                crate::counts::was(lost),
                u128::from(plan.loss_ppm) * u128::from(sent) / 1_000_000
            ));
        }
        if let Some(first) = self.first_stalls.first() {
            let longest = self.first_stalls.iter().map(|stall| stall.ns).max();
            reasons.push(format!(
                "it stalled {}, first after {}, for {} at most",
                times(self.stalls.into()),
                time(first.at_ns),
                time(longest.unwrap_or(0))
            ));
        }
        if let Some(found @ 1..) = self.desyncs {
            reasons.push(format!("its keys fell out of step {}", times(found)));
        }
        for (name, drift) in self.drifts() {
            let drifts = |drift: &&Drift| drift.judged == DriftJudgement::Drifts;
            reasons.extend(drift.filter(drifts).map(|drift| {
                format!(
                    "{name} drifted by {} over the whole time (95 %: {} to {}, p {}), of ±{} allowed",
                    percent(drift.change_ratio),
                    percent(drift.change_low),
                    percent(drift.change_high),
                    p_text(drift.p),
                    plain_percent(drift.bound_ratio)
                )
            }));
        }
        reasons
    }

    /// Conditions that could not be shown.
    fn open(&self, plan: &Soak) -> Vec<String> {
        let mut reasons = Vec::new();
        // Pauses are not measured: a soak that was interrupted for hours had no load meanwhile.
        if (self.measured_ns as f64) < MEASURED_RATIO * plan.duration_ns as f64 {
            reasons.push(format!(
                "only {} of {} has been measured",
                time(self.measured_ns),
                time(plan.duration_ns)
            ));
        }
        let (lost, on_the_way) = (self.judged_loss.lost, self.judged_loss.lost_on_the_way());
        // Only if the frames that the station itself lost make the difference. Loss on the way
        // that is too much by itself is among the reasons against stability.
        if self.lost_too_many(plan, lost) && !self.lost_too_many(plan, on_the_way) {
            reasons.push(format!(
                "the receiving station lost {} itself, so it is unknown whether the device lost any of them",
                units::human::counted(self.judged_loss.receiver_dropped, "frame")
            ));
        }
        for (name, drift) in self.drifts() {
            match drift {
                // The others may be unknown; without a rate or a latency nothing is shown.
                None if ["the rate", "the median latency"].contains(&name) => {
                    reasons.push(format!("{name} is unknown"));
                }
                None => {}
                Some(drift) if drift.judged == DriftJudgement::Unclear => {
                    let (what, needed) = if name == CAPACITY {
                        ("probes", CAPACITY_MIN_PROBES)
                    } else {
                        ("points", crate::figures::drift::DRIFT_MIN_POINTS)
                    };
                    reasons.push(if (drift.points as usize) < needed { format!(
                            "{} {what} are too few to decide whether {name} drifts: {needed} are needed",
                            drift.points,
                        ) } else { format!(
                            "{name} may have drifted by {} to {} over the whole time, of ±{} allowed: the {what} differ \
                             too much to tell",
                            percent(drift.change_low),
                            percent(drift.change_high),
                            plain_percent(drift.bound_ratio)
                        ) });
                }
                Some(_) => {}
            }
        }
        reasons
    }
}

/// The name of what probes measure.
const CAPACITY: &str = "the capacity";

/// Groups points by start of the device: a restart may change a level at once, which is no drift.
fn by_start(points: impl Iterator<Item = (u32, Point)>) -> Vec<Vec<Point>> {
    let mut starts = BTreeMap::<u32, Vec<Point>>::new();
    for (start, point) in points {
        starts.entry(start).or_default().push(point);
    }
    starts.into_values().collect()
}

/// `once`, `3 times`.
fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

fn time(ns: u64) -> String {
    units::human::duration_ns(ns as f64)
}

/// `+1.2 %`, `-0.03 %`.
fn percent(ratio: f64) -> String {
    let percent = 100.0 * ratio;
    let sign = if percent > 0.0 { "+" } else { "" };
    match percent.abs() {
        small if small < 0.01 => "0.00 %".to_owned(),
        large if large >= 10.0 => format!("{sign}{percent:.0} %"),
        _ => format!("{sign}{percent:.2} %"),
    }
}

fn plain_percent(ratio: f64) -> String {
    format!("{} %", units::human::number(100.0 * ratio))
}

fn p_text(p: f64) -> String {
    if p < 0.001 {
        "below 0.001".to_owned()
    } else {
        format!("{p:.3}")
    }
}
