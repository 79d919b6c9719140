//! Loads: what was offered, what arrived, and where the rest went.

use super::Repeats;
use super::rates::{LayerRates, Lengths};
use crate::bulk::{per_second, ratio};
use crate::estimate::{Estimate, Sample};
use campaign::plan::LossCurve;
use journal::record::{FrameResult, FrameTrial};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What became of a load, in one direction. Ratios are in parts per million of the frames sent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadResult {
    /// In per cent of the highest load, for `loss-curve`.
    pub percent: Option<u32>,
    /// Intended load in frames/s; `null`: as fast as the generator can.
    pub intended_frames_per_s: Option<Estimate>,
    /// Offered load: what left the sender.
    pub offered: LayerRates,
    /// Forwarding rate: what arrived intact, by the time in which it was offered.
    pub forwarded: LayerRates,
    /// Lost (RFC 1242 §3.6): sent and not received.
    pub lost_ppm: Estimate,
    /// Came after a later one of their flow (RFC 4737 §3).
    pub reordered_ppm: Estimate,
    /// Came again.
    pub duplicated_ppm: Estimate,
    /// Came damaged.
    pub corrupted_ppm: Estimate,
    /// Counts over all repeats. Zero loss is `lost` being 0, never a ratio.
    pub account: LossAccount,
}

/// Frames over several trials, both directions where both are loaded. `intended` is `not_sent` and
/// `received` and `lost`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LossAccount {
    /// Trials.
    pub trials: u64,
    /// Frames that the schedule asked for.
    pub intended: u64,
    /// Of those, frames that never left the sender.
    pub not_sent: u64,
    /// Frames that left only when the load's time was over, of trials whose generator took more
    /// than 2 % and a millisecond longer than it should: they were offered, but not at that load.
    pub too_late: u64,
    /// Of those intended, frames that arrived intact, each counted once.
    pub received: u64,
    /// Of those intended, frames that left the sender and did not arrive.
    pub lost: u64,
    /// Of the lost, frames that reached the receiving station and were lost in it.
    pub receiver_dropped: u64,
    /// Frames that arrived again.
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
        // An unpaced generator intends what it sends.
        let intended = trial.intended.max(trial.sent);
        self.trials += 1;
        self.intended += intended;
        self.not_sent += intended - trial.sent;
        self.too_late += too_late(trial);
        self.received += trial.received;
        self.lost += trial.lost();
        self.receiver_dropped += trial.receiver_dropped.min(trial.lost());
        self.duplicated += trial.duplicated;
        self.reordered += trial.reordered;
        self.corrupted += trial.corrupted;
        self.late += trial.late_frames;
    }

    fn of<'a>(trials: impl Iterator<Item = &'a FrameTrial>) -> Self {
        let mut sum = Self::default();
        trials.for_each(|trial| sum.add(trial));
        sum
    }

    /// Frames lost between the stations: neither kept back by the one nor dropped by the other.
    #[must_use]
    pub const fn lost_on_the_way(&self) -> u64 {
        self.lost.saturating_sub(self.receiver_dropped)
    }

    /// Frames that the stations themselves did not offer or did not count.
    #[must_use]
    pub const fn lost_by_tester(&self) -> u64 {
        self.not_sent + self.too_late + self.receiver_dropped
    }
}

/// Frames that left after the load's time, as if they had left evenly.
fn too_late(trial: &FrameTrial) -> u64 {
    if !trial.took_too_long() {
        return 0;
    }
    let in_time = u128::from(trial.sent) * u128::from(trial.duration_ns);
    // No more than were sent, which fits.
    let in_time = (in_time / u128::from(trial.elapsed_ns)) as u64;
    trial.sent.saturating_sub(in_time)
}

/// The trials of the procedure itself, and then the one that was made for the evidence; not that by
/// which the highest load was found.
fn own_first(found: &FrameResult) -> impl Iterator<Item = &FrameTrial> {
    let is_evidence = |place: usize| found.evidence_trial == Some(place);
    let is_flood = |place: usize| found.flood_trial == Some(place);
    let trials = move || {
        let trials = found.trials.iter().enumerate();
        trials.filter(move |(place, _)| !is_flood(*place))
    };
    let own = trials().filter(move |(place, _)| !is_evidence(*place));
    let evidence = trials().filter(move |(place, _)| is_evidence(*place));
    own.chain(evidence).map(|(_, trial)| trial)
}

/// The trial of each repeat of a `load` procedure.
pub(super) fn single(lengths: &Lengths, repeats: &Repeats<'_>) -> Option<LoadResult> {
    let trials: Vec<(u32, &FrameTrial)> = repeats
        .iter()
        .filter_map(|(repeat, found)| Some((*repeat, own_first(found).next()?)))
        .collect();
    result(lengths, None, &trials)
}

/// The trials of a loss curve, those at the same share of the highest load together.
///
/// Shares and not loads, because the highest load may be what the generator reached, which differs
/// between repeats. The curve's own trial at a share counts, not that of the evidence.
pub(super) fn curve(
    curve: &LossCurve,
    lengths: &Lengths,
    repeats: &Repeats<'_>,
) -> Vec<LoadResult> {
    let mut shares: BTreeMap<u32, BTreeMap<u32, &FrameTrial>> = BTreeMap::new();
    for (repeat, found) in repeats {
        let paced = || own_first(found).filter(|trial| trial.load > 0);
        let tried = paced().map(|trial| trial.load).max();
        let Some(highest) = curve.max_load.or(tried) else {
            continue;
        };
        for trial in paced() {
            let percent = (200 * trial.load + highest) / (2 * highest.max(1));
            let percent = u32::try_from(percent).unwrap_or(u32::MAX);
            let repeats = shares.entry(percent).or_default();
            repeats.entry(*repeat).or_insert(trial);
        }
    }
    let of = |(percent, trials): (u32, BTreeMap<u32, &FrameTrial>)| {
        let trials: Vec<(u32, &FrameTrial)> = trials.into_iter().collect();
        result(lengths, Some(percent), &trials)
    };
    shares.into_iter().rev().filter_map(of).collect()
}

/// The trials whose evidence is recorded.
pub(super) fn at_evidence(lengths: &Lengths, repeats: &Repeats<'_>) -> Option<LoadResult> {
    let trials: Vec<(u32, &FrameTrial)> = repeats
        .iter()
        .filter_map(|(repeat, found)| Some((*repeat, found.trials.get(found.evidence_trial?)?)))
        .collect();
    result(lengths, None, &trials)
}

/// What trials at one load come to; `None` when there is none, or one sent nothing.
pub(super) fn result(
    lengths: &Lengths,
    percent: Option<u32>,
    trials: &[(u32, &FrameTrial)],
) -> Option<LoadResult> {
    let estimate = |value: &dyn Fn(&FrameTrial) -> Option<f64>| {
        let samples = trials.iter().map(|(repeat, trial)| {
            value(trial).map(|value| Sample {
                repeat: *repeat,
                value,
            })
        });
        Estimate::of(samples.collect::<Option<Vec<_>>>()?)
    };
    let rate = |count: fn(&FrameTrial) -> u64| {
        let per_direction = |trial: &FrameTrial| {
            let all = per_second(count(trial), trial.elapsed_ns.max(trial.duration_ns))?;
            Some(all / lengths.directions as f64)
        };
        Some(lengths.rates(estimate(&per_direction)?))
    };
    let ppm = |count: fn(&FrameTrial) -> u64| {
        estimate(&|trial| ratio(count(trial), trial.sent).map(|share| 1e6 * share))
    };
    Some(LoadResult {
        percent,
        intended_frames_per_s: estimate(&|trial| (trial.load > 0).then_some(trial.load as f64)),
        offered: rate(|trial| trial.sent)?,
        forwarded: rate(|trial| trial.received)?,
        lost_ppm: ppm(FrameTrial::lost)?,
        reordered_ppm: ppm(|trial| trial.reordered)?,
        duplicated_ppm: ppm(|trial| trial.duplicated)?,
        corrupted_ppm: ppm(|trial| trial.corrupted)?,
        account: LossAccount::of(trials.iter().map(|(_, trial)| *trial)),
    })
}
