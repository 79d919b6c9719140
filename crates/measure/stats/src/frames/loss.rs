//! Frames sent, received and lost, over several trials.

use journal::record::FrameTrial;
use schemars::JsonSchema;
use serde::Serialize;

/// Frames over several trials, both directions where both are loaded. `intended` is `not_sent` and
/// `received` and `lost`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LossAccount {
    /// Trials.
    pub trials: u64,
    /// Frames of the schedule.
    pub intended: u64,
    /// Of those, frames that never left the sender.
    pub not_sent: u64,
    /// Frames that left after the load's time, in trials whose generator took more than 2 % and a
    /// millisecond too long: they were offered, but not at that load.
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
        self.intended += intended;
        self.not_sent += intended - trial.sent;
        self.too_late += too_late(trial);
        self.received += trial.received;
        self.queued += trial.queued();
        self.lost += trial.lost();
        self.receiver_dropped += trial.station_lost().min(trial.lost());
        self.duplicated += trial.duplicated;
        self.reordered += trial.reordered;
        self.corrupted += trial.corrupted;
        self.late += trial.late_frames;
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
        self.lost_on_the_way() + self.queued
    }

    /// Frames that the stations themselves did not offer or did not count.
    #[must_use]
    pub const fn lost_by_tester(&self) -> u64 {
        self.not_sent + self.too_late + self.receiver_dropped
    }
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
