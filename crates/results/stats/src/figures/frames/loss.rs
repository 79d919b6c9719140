//! Frames sent, received and lost, over several trials.

use crate::figures::direction::DirectionName;
use crate::figures::estimate::Estimate;
use crate::figures::repeats::ratio;
use journal::record::FrameTrial;
use schemars::JsonSchema;
use serde::Serialize;

/// Frames over several trials and all loaded directions. `intended` is the sum of `not_sent`,
/// `received` and `lost`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LossAccount {
    /// Trials.
    pub trials: u64,
    /// Frames of the schedule.
    pub intended: u64,
    /// Of those, frames that never left the sender.
    pub not_sent: u64,
    /// Frames that left after the load's time, in trials with a generator that took more than 2 %
    /// and a millisecond too long: they were offered, but not at that load.
    pub too_late: u64,
    /// Of those intended, frames that arrived intact, each counted once.
    pub received: u64,
    /// Of the received, frames that were not carried at that load: a queue that grew until the
    /// load's end held them. A search counts them as lost.
    pub queued: u64,
    /// Of those intended, frames that left the sender and did not arrive.
    pub lost: u64,
    /// Of the lost, frames that reached the receiving station and were lost in it.
    pub receiver_dropped: u64,
    /// Frames received again.
    pub duplicated: u64,
    /// Frames that arrived after a later one of their flow.
    pub reordered: u64,
    /// Frames that arrived damaged.
    pub corrupted: u64,
    /// Frames that left more than a millisecond late.
    pub late: u64,
}

impl LossAccount {
    pub(super) fn add(&mut self, trial: &FrameTrial) {
        // For an unpaced generator, the intended frames are the sent ones.
        let intended = trial.intended.max(trial.sent);
        self.trials += 1;
        for (sum, count) in [
            (&mut self.intended, intended),
            (&mut self.not_sent, intended - trial.sent),
            (&mut self.too_late, too_late(trial)),
            (&mut self.received, trial.received),
            (&mut self.queued, trial.queued()),
            (&mut self.lost, trial.lost()),
            (
                &mut self.receiver_dropped,
                trial.station_lost().min(trial.lost()),
            ),
            (&mut self.duplicated, trial.duplicated),
            (&mut self.reordered, trial.reordered),
            (&mut self.corrupted, trial.corrupted),
            (&mut self.late, trial.late_frames),
        ] {
            // Each count is bounded when a journal is read, but not the number of trials.
            *sum = sum.saturating_add(count);
        }
    }

    /// Adds one direction of a trial that loads both. Which direction's frames found a queue before
    /// the receiving station's port full is not known: it may have been this one's.
    fn add_direction(&mut self, trial: &FrameTrial, own: &FrameTrial) {
        // `station_lost` is `receiver_dropped` and the queue before the port, so it is not less.
        let before_port = trial.station_lost() - trial.receiver_dropped;
        let known = self.receiver_dropped;
        self.add(own);
        // Drops before the port may count in both directions: to name too many frames as the
        // station's is the safe error, as it never blames the device.
        let in_station = own.receiver_dropped.saturating_add(before_port);
        self.receiver_dropped = known.saturating_add(in_station.min(own.lost()));
    }

    /// The account of the direction with the larger share of `failed` frames, over several trials;
    /// `None` if only one direction is loaded, and in older journals.
    pub(super) fn of_worse_direction<'a>(
        trials: impl Iterator<Item = &'a FrameTrial>,
        failed: fn(&Self) -> u64,
    ) -> Option<Self> {
        let [there, back] = of_directions(trials)?;
        // Shares are compared by cross multiplication, without a division that could round two of
        // them to one.
        let share = |of: &Self, by: &Self| u128::from(failed(of)) * u128::from(by.intended.max(1));
        Some(if share(&back, &there) > share(&there, &back) {
            back
        } else {
            there
        })
    }

    /// Frames that left the sender.
    #[must_use]
    pub const fn sent(&self) -> u64 {
        self.intended - self.not_sent
    }

    /// Frames that count as lost in a search, except frames that left too late.
    pub(super) const fn not_forwarded(&self) -> u64 {
        (self.intended - self.received).saturating_add(self.queued)
    }

    pub(super) fn of<'a>(trials: impl Iterator<Item = &'a FrameTrial>) -> Self {
        let mut sum = Self::default();
        trials.for_each(|trial| sum.add(trial));
        sum
    }

    /// Frames lost between the stations: sent by the one, and not dropped by the other.
    #[must_use]
    pub const fn lost_on_the_way(&self) -> u64 {
        self.lost.saturating_sub(self.receiver_dropped)
    }

    /// Frames that the path did not carry at the load: lost on the way, or held by a growing queue
    /// until the load was over.
    #[must_use]
    pub const fn not_carried(&self) -> u64 {
        self.lost_on_the_way().saturating_add(self.queued)
    }

    /// Frames that the stations themselves did not offer or did not count.
    #[must_use]
    pub const fn lost_by_tester(&self) -> u64 {
        let not_offered = self.not_sent.saturating_add(self.too_late);
        not_offered.saturating_add(self.receiver_dropped)
    }
}

/// One of both loaded directions. Ratios are in parts per million of the frames sent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct DirectionLoss {
    /// The direction.
    pub direction: DirectionName,
    /// Lost (RFC 1242 §3.6): sent and not received. The value of a repeat is over all of its
    /// trials.
    pub lost_ppm: Estimate,
    /// Counts over all repeats.
    pub account: LossAccount,
}

impl DirectionLoss {
    /// Both directions of these trials, each with its repeat, in the order of repeats; empty if a
    /// trial does not count the directions separately.
    pub(super) fn of(trials: &[(u32, &FrameTrial)]) -> Vec<Self> {
        let repeats = trials.chunk_by(|one, next| one.0 == next.0);
        let own =
            |trials: &[(u32, &FrameTrial)]| of_directions(trials.iter().map(|(_, trial)| *trial));
        let Some(all) = own(trials) else {
            return Vec::new();
        };
        let of = |(place, direction): (usize, DirectionName)| {
            // Over all trials of the repeat, so that each repeat counts as one value, for any
            // number of trials.
            let lost_ppm = |trials: &[(u32, &FrameTrial)]| {
                let account = own(trials)?[place];
                Some(1e6 * ratio(account.lost, account.sent())?)
            };
            let samples = repeats
                .clone()
                .map(|trials| (trials[0].0, lost_ppm(trials)));
            Some(Self {
                direction,
                lost_ppm: Estimate::of_all(samples)?,
                account: all[place],
            })
        };
        let both = DirectionName::BOTH.into_iter().enumerate().map(of);
        both.collect::<Option<_>>().unwrap_or_default()
    }
}

/// The account of each direction; `None` without trials, and if one does not count the directions
/// separately.
fn of_directions<'a>(trials: impl Iterator<Item = &'a FrameTrial>) -> Option<[LossAccount; 2]> {
    let mut sums = [LossAccount::default(); 2];
    for trial in trials {
        // One trial without both directions ends the sum: its frames would be missing from both.
        let [there, back] = trial.directions.as_slice() else {
            return None;
        };
        sums[0].add_direction(trial, there);
        sums[1].add_direction(trial, back);
    }
    (sums[0].trials > 0).then_some(sums)
}

/// Frames that left after the load's time, assuming that they left evenly.
fn too_late(trial: &FrameTrial) -> u64 {
    if !trial.took_too_long() {
        return 0;
    }
    let in_time = u128::from(trial.sent) * u128::from(trial.duration_ns);
    // Not more than were sent, so the cast is lossless.
    let in_time = (in_time / u128::from(trial.elapsed_ns)) as u64;
    trial.sent.saturating_sub(in_time)
}
