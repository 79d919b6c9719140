//! Single frame trials with their counts, and the parts of a procedure's result.
//!
//! Loads are frames per second in one direction. Sizes include the FCS.

use super::{ClockAgreement, DelayVariation, TrialReadings};
use plan::PortKind;
use search::Counts;
pub use search::{DelayTrend, Outcome as GoalOutcome, Reserve};
use serde::{Deserialize, Serialize};

/// One load for one time, in one direction, or the sum of both directions with `duplex` or if
/// station B reflected the frames.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameTrial {
    /// Intended load; 0: as fast as the generator can.
    pub load: u64,
    /// Intended duration.
    pub duration_ns: u64,
    /// From the first frame's time to the end of the last burst.
    pub elapsed_ns: u64,
    /// Frames of the schedule.
    pub intended: u64,
    /// Frames that left the sender.
    pub sent: u64,
    /// Their bytes on the clear side.
    pub sent_bytes: u64,
    /// Intact frames at the receiver, each once.
    pub received: u64,
    /// Their bytes on the clear side.
    pub received_bytes: u64,
    /// Intact frames that were received before.
    pub duplicated: u64,
    /// Intact frames so far behind the latest of their flow that they may be duplicates. They are
    /// in no other count of received frames.
    #[serde(default)]
    pub too_late: u64,
    /// Frames received after a later one of their flow (RFC 4737 §3).
    pub reordered: u64,
    /// Damaged frames.
    pub corrupted: u64,
    /// Frames that reached the receiving station after the trial's end, before the path was quiet.
    /// They are not inspected, and in no other count of received frames.
    #[serde(default)]
    pub after_end: u64,
    /// Frames that the receiving station's port lost. They are not inspected: duplicates and
    /// foreign frames may be among them.
    pub receiver_dropped: u64,
    /// Frames that the sending station lost before the wire.
    pub sender_dropped: u64,
    /// Largest delay of a burst's departure.
    pub late_ns_max: u64,
    /// Frames that left more than a millisecond late.
    pub late_frames: u64,
    /// The longest time between two polls of the receiver's port, in nanoseconds; 0 in older
    /// journals.
    #[serde(default)]
    pub receiver_stood_ns_max: u64,
    /// Trend of one-way delay over the load's time; for two directions, the trend with more growth.
    /// `None` for a load without a rate or in two parts, if hardly a frame arrived, and in older
    /// journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<DelayTrend>,
    /// Frames that the device accepted above the rate that it held to the end of the trial, by
    /// tokens that a shaper saved and by a queue. `None` for both directions together, if no
    /// reserve showed, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserve: Option<Reserve>,
    /// The same for each direction if both are loaded: from A to B, then from B to A. Counts and
    /// times only; the frames that station B was to reflect are its intended frames. Empty if one
    /// direction is loaded, and in older journals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<Self>,
    /// Counts by links, queues, the device and the machine around the trial; `None` in a lab
    /// without links, and in older journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readings: Option<Box<TrialReadings>>,
}

impl FrameTrial {
    /// Frames sent and not received.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// Whether both directions were loaded and counted separately.
    #[must_use]
    pub const fn loads_both(&self) -> bool {
        self.directions.len() == 2
    }

    /// The loaded directions with separate counts. A single element if one direction is loaded, and
    /// the sum of both in older journals.
    #[must_use]
    pub fn each_direction(&self) -> &[Self] {
        match self.directions.as_slice() {
            // The trial is its only direction.
            [] => std::slice::from_ref(self),
            directions => directions,
        }
    }

    /// Counts for a search: of the direction that forwarded the smaller share, since a load is
    /// carried only if each direction carries it (RFC 2544 §14 loads both at the same rate). Only
    /// received frames count as forwarded. Frames that the receiving station lost are lost, too:
    /// nothing shows that they were test frames, intact and not duplicated. A generator that was
    /// too slow has not offered the load, even if it sent all frames in the end: then received
    /// frames count in proportion to the intended time. Frames that only a growing queue carried
    /// are not forwarded.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.of_worse_direction(|own| {
            own.own_counts_at_last()
                .sustained(own.delay, own.reserve, own.duration_ns)
        })
    }

    /// Frames that were received only because a queue grew until the end of the load's time, in all
    /// loaded directions; 0 if delay did not grow. They count as lost in a search.
    #[must_use]
    pub fn queued(&self) -> u64 {
        // The reserve is left out, since it adds loss without a queue.
        let queued = |own: &Self| {
            let arrived = own.own_counts_at_last();
            let sustained = arrived.sustained(own.delay, None, own.duration_ns);
            arrived.forwarded.saturating_sub(sustained.forwarded)
        };
        // Of an invalid trial the counts are not bounded.
        let each = self.each_direction().iter().map(queued);
        each.fold(0, u64::saturating_add)
    }

    /// As [`counts`](Self::counts), including the frames that a queue carried: for a burst, which
    /// should fill a queue.
    #[must_use]
    pub fn counts_at_last(&self) -> Counts {
        self.of_worse_direction(Self::own_counts_at_last)
    }

    fn of_worse_direction(&self, counts: impl Fn(&Self) -> Counts) -> Counts {
        let all = self.each_direction().iter().map(counts);
        let worse = all.reduce(|one, other| {
            // Shares are compared by cross-multiplication, without rounding.
            let lost_share =
                |of: Counts, by: Counts| u128::from(of.lost()) * u128::from(by.intended.max(1));
            if lost_share(other, one) > lost_share(one, other) {
                other
            } else {
                one
            }
        });
        // Not reached: a trial without directions is its only one.
        worse.unwrap_or(Counts {
            intended: 0,
            forwarded: 0,
        })
    }

    fn own_counts_at_last(&self) -> Counts {
        // A contradictory record may have more received than sent.
        let received = self.received.min(self.sent);
        let forwarded = if self.own_took_too_long() {
            let share = u128::from(received) * u128::from(self.duration_ns);
            // Not a division by zero: a trial that took too long has taken some time.
            u64::try_from(share / u128::from(self.elapsed_ns)).unwrap_or(received)
        } else {
            received
        };
        Counts {
            intended: self.intended,
            forwarded,
        }
    }

    /// Whether sending in any direction took too long to offer a set load: over 2 % and 1 ms more
    /// than intended, with a tenth of the frames more than 1 ms late, since a stall just before the
    /// end delays only a few; or over 2 % and 20 ms more in any case.
    #[must_use]
    pub fn took_too_long(&self) -> bool {
        self.each_direction().iter().any(Self::own_took_too_long)
    }

    const fn own_took_too_long(&self) -> bool {
        // Of an invalid trial the times are not bounded.
        let longest = (self.duration_ns / 100).saturating_mul(102);
        let long = self.elapsed_ns > longest.saturating_add(1_000_000);
        let very_long = self.elapsed_ns > longest.saturating_add(20_000_000);
        let late = self.late_frames > self.sent / 10;
        self.load > 0 && (very_long || long && late)
    }

    /// Whether the load was offered in time with at most this share of it lost, counted as in a
    /// search.
    #[must_use]
    pub fn meets(&self, loss_ratio_ppm: u32) -> bool {
        !self.took_too_long() && !self.counts().is_high_loss(loss_ratio_ppm)
    }

    /// Frames that the receiving station lost, in its port or before it
    /// ([`QueueDrops::station`](super::QueueDrops)).
    #[must_use]
    pub fn station_lost(&self) -> u64 {
        // Older journals have no readings, and lost nothing that is known.
        let before = self.readings.as_ref().map_or(0, |it| it.drops.station);
        self.receiver_dropped.saturating_add(before)
    }

    /// Frames that a full queue of the machine dropped while this trial lost frames, if their owner
    /// is unknown: at most this number of the lost frames may be the tester's loss.
    #[must_use]
    pub fn unattributed_loss(&self) -> u64 {
        let drops = self.readings.as_ref().map_or(0, |it| it.drops.unattributed);
        // Losses that are known to be the station's are not counted a second time.
        drops.min(self.lost().saturating_sub(self.station_lost()))
    }
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchRecord {
    /// Highest possible load.
    pub max_load: u64,
    /// The limit of that load: `line-rate`, `given` or `generator`.
    pub max_load_by: String,
    /// Each goal of the plan, in its order.
    pub goals: Vec<GoalBounds>,
    /// How it ended.
    pub end: SearchEnd,
    /// Duration of the search, including drains.
    pub took_ns: u64,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchEnd {
    /// Every goal's bounds are within its width, or the result is irregular.
    #[default]
    Reached,
    /// Its time was up.
    TimedOut,
}

/// The bounds of one goal's throughput.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GoalBounds {
    /// [`plan::Goal::name`].
    pub goal: String,
    /// Relevant lower bound; `None` if the lowest load does not meet the goal either.
    pub lower: Option<u64>,
    /// Relevant upper bound; `None` when the highest load meets it.
    pub upper: Option<u64>,
    /// Conditional throughput at the lower bound, in frames/s.
    pub conditional_throughput: f64,
    /// Trials at the lower bound.
    pub lower_trials: u32,
    /// Trials at the upper bound.
    pub upper_trials: u32,
    /// Whether the result is regular (RFC 9971, Goal Result), and if not, why; `None` in older
    /// journals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<GoalOutcome>,
}

/// One burst at the highest load.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BurstTrial {
    /// Frames of the burst.
    pub frames: u64,
    /// Of those, lost.
    pub lost: u64,
    /// Whether it is one of the confirming repeats at the found length.
    pub confirming: bool,
}

/// Latency under one load.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyTrial {
    /// In per cent of the throughput; `None` outside a `latency` procedure.
    pub percent: Option<u8>,
    /// Load.
    pub load: u64,
    /// Frames with a latency.
    pub frames: u64,
    /// Frames by latency from the intended send time, in rising order.
    pub histogram: Vec<LatencyBucket>,
    /// The same for each direction, from A to B, then from B to A; empty if one is loaded, for
    /// round trips, and in older journals.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directions: Vec<Vec<LatencyBucket>>,
    /// Delay variation of each loaded direction; empty if it was not measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variation: Vec<DelayVariation>,
    /// Agreement of the clocks of the stations' hosts; `None` on one host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<ClockAgreement>,
    /// Set for round-trip times (RFC 2681), by reflection at station B and the clock of station A
    /// alone; `None` for one-way latencies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip: Option<Reflection>,
}

/// The reflector's residence time, which round-trip times include.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reflection {
    /// Frames by their time at the reflector and by its clock, from arrival until they were handed
    /// over for sending (RFC 8762 §4.3: T3 less T2), in rising order.
    pub residence: Vec<LatencyBucket>,
    /// Whether it starts at the kernel's timestamp of the arrival; otherwise a wait in the
    /// reflector's port is not included.
    pub from_arrival: bool,
}

impl LatencyTrial {
    /// Whether the clocks of two hosts agreed too little for the smallest of these latencies, which
    /// makes all of them inexact.
    #[must_use]
    pub fn is_inexact(&self) -> bool {
        let buckets = self.histogram.iter().filter(|bucket| bucket.frames > 0);
        let least_ns = buckets.map(|bucket| bucket.upto_ns).min();
        match (self.clocks, least_ns) {
            (Some(clocks), Some(least_ns)) => !clocks.is_exact_for(least_ns),
            _ => false,
        }
    }
}

/// Frames with a latency of at most `upto_ns`, and above the bucket before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LatencyBucket {
    /// Highest latency of the bucket.
    pub upto_ns: u64,
    /// Frames in it.
    pub frames: u64,
}

/// Recovery from an overload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecoveryTrial {
    /// Load of the overload.
    pub overload: u64,
    /// Load afterwards.
    pub relief: u64,
    /// From the end of the overload to the last loss; 0: nothing was lost after it.
    pub recovery_ns: u64,
    /// Whether loss had ended when the time was up.
    pub recovered: bool,
    /// Frames lost during the overload.
    pub overload_lost: u64,
    /// Frames lost afterwards.
    pub relief_lost: u64,
}

/// The port of a sending or receiving station.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FramePort {
    /// The kind; `None` if no trial opened a port.
    pub kind: Option<PortKind>,
    /// Mode of an AF_XDP port: the attachment of the receiver's program (`native`: in the driver,
    /// `generic`: after it), and whether the driver used the port's memory (`zero-copy`) or the
    /// kernel copied each frame (`copy`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub xdp_mode: Option<String>,
    /// Why faster kinds, or more threads, were not used, one sentence each.
    pub passed_over: Vec<String>,
    /// Threads.
    pub threads: u16,
    /// Crypto engine, if the station sealed or opened.
    pub engine: Option<String>,
}
