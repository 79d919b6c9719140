//! Loads: offered, received and lost frames.

use super::Repeats;
use super::loss::{DirectionLoss, LossAccount};
use super::rates::{LayerRates, Lengths};
use crate::figures::estimate::Estimate;
use crate::figures::repeats::{Total, per_second, ratio};
use journal::record::{FrameResult, FrameTrial};
use plan::LossCurve;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The outcome of a load, in one direction. Ratios are in parts per million of the frames sent.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct LoadResult {
    /// In per cent of the highest load, for `loss-curve`.
    pub percent: Option<u32>,
    /// Intended load in frames/s; `null`: as fast as the generator can.
    pub intended_frames_per_s: Option<Estimate>,
    /// Offered load: frames that left the sender.
    pub offered: LayerRates,
    /// Forwarding rate: frames received intact, divided by the time during which they were offered.
    pub forwarded: LayerRates,
    /// Lost (RFC 1242 §3.6): sent and not received. A repeat's value is the mean of its trials'
    /// ratios.
    pub lost_ppm: Estimate,
    /// Received after a later frame of their flow (RFC 4737 §3).
    pub reordered_ppm: Estimate,
    /// Received again.
    pub duplicated_ppm: Estimate,
    /// Received damaged.
    pub corrupted_ppm: Estimate,
    /// Counts over all repeats. Zero loss is `lost` being 0, never a ratio.
    pub account: LossAccount,
    /// Each direction if both are loaded; empty for one, and for older journals.
    pub directions: Vec<DirectionLoss>,
}

impl LoadResult {
    /// The share of the offered load that the mean forwarding rate lacks, in parts per million. The
    /// mean of the repeats' shares (`lost_ppm`) differs from it if their loads differ, and beside
    /// both rates it would contradict them.
    #[must_use]
    pub fn not_forwarded_ppm(&self) -> f64 {
        let offered = self.offered.frames_per_s.mean;
        if offered <= 0.0 {
            return 0.0;
        }
        1e6 * (1.0 - self.forwarded.frames_per_s.mean / offered).max(0.0)
    }
}

/// The trials of the procedure itself, then the one for the evidence; without the one that found
/// the highest load.
fn own_first(found: &FrameResult) -> impl Iterator<Item = &FrameTrial> {
    let evidence = found
        .evidence_trial
        .filter(|_| found.evidence_trial != found.flood_trial);
    own(found).chain(evidence.and_then(|place| found.trials.get(place)))
}

/// Forwarding rate of one repeat in one direction, in frames/s, and the share of its frames that
/// was lost, in per cent: at the load with the highest rate, as the mean of its trials. A trial
/// outside the procedure counts only if there is no other. `None` if nothing was sent.
#[must_use]
pub fn fastest_load(found: &FrameResult) -> Option<(f64, f64)> {
    let mut loads: BTreeMap<u64, Vec<&FrameTrial>> = BTreeMap::new();
    for trial in own(found) {
        loads.entry(trial.load).or_default().push(trial);
    }
    if loads.is_empty() {
        let last = found.trials.last()?;
        loads.insert(last.load, vec![last]);
    }
    let of_load = |trials: Vec<&FrameTrial>| {
        let directions = |trial: &FrameTrial| trial.directions.len().max(1) as f64;
        let rates = trials
            .iter()
            .map(|trial| per_direction(trial, trial.received, directions(trial)));
        let sum: f64 = rates.sum::<Option<f64>>()?;
        let all = |count: fn(&FrameTrial) -> u64| trials.iter().map(|trial| count(trial)).total();
        let lost = ratio(all(FrameTrial::lost), all(|trial| trial.sent))?;
        Some((sum / trials.len() as f64, 100.0 * lost))
    };
    let loads = loads.into_values().filter_map(of_load);
    loads.max_by(|one, other| one.0.total_cmp(&other.0))
}

/// Frames of a trial per second in one of its directions.
pub(super) fn per_direction(trial: &FrameTrial, frames: u64, directions: f64) -> Option<f64> {
    let all = per_second(frames, trial.elapsed_ns.max(trial.duration_ns))?;
    Some(all / directions)
}

/// The trials of the procedure itself.
pub(super) fn own(found: &FrameResult) -> impl Iterator<Item = &FrameTrial> {
    // The trial with the evidence is at the load of a figure and is reported apart; the flood warms
    // the device up and is in no figure.
    let others = [found.evidence_trial, found.flood_trial];
    let trials = found.trials.iter().enumerate();
    let own = trials.filter(move |(place, _)| !others.contains(&Some(*place)));
    own.map(|(_, trial)| trial)
}

/// Both directions over all trials but the one that found the highest load.
pub(super) fn directions(repeats: &Repeats<'_>) -> Vec<DirectionLoss> {
    let mut trials: Vec<(u32, &FrameTrial)> = Vec::new();
    for (repeat, found) in repeats {
        let own = found.trials.iter().enumerate();
        let own = own.filter(|(place, _)| found.flood_trial != Some(*place));
        trials.extend(own.map(|(_, trial)| (*repeat, trial)));
    }
    DirectionLoss::of(&trials)
}

/// The trial of each repeat of a `load` procedure.
pub(super) fn single(lengths: &Lengths, repeats: &Repeats<'_>) -> Option<LoadResult> {
    let trials: Vec<(u32, &FrameTrial)> = repeats
        .iter()
        .filter_map(|(repeat, found)| Some((*repeat, own_first(found).next()?)))
        .collect();
    result(lengths, None, &trials)
}

/// The trials of a loss curve, grouped by share of the highest load.
///
/// They are grouped by share and not by load, because the highest load may be the generator's
/// limit, which differs between repeats. At a share, the curve's trial counts, not the evidence
/// trial.
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
            // Rounded to the nearest whole per cent in integers.
            // 200 times the largest load that a journal may have exceeds 64 bits.
            let (load, highest) = (u128::from(trial.load), u128::from(highest));
            let percent = (200 * load + highest) / (2 * highest.max(1));
            let percent = u32::try_from(percent).unwrap_or(u32::MAX);
            let repeats = shares.entry(percent).or_default();
            // The curve's trials come before the one with the evidence, so the first of a share is
            // the curve's.
            repeats.entry(*repeat).or_insert(trial);
        }
    }
    let of = |(percent, trials): (u32, BTreeMap<u32, &FrameTrial>)| {
        let trials: Vec<(u32, &FrameTrial)> = trials.into_iter().collect();
        result(lengths, Some(percent), &trials)
    };
    shares.into_iter().rev().filter_map(of).collect()
}

/// The trials with recorded evidence.
pub(super) fn at_evidence(lengths: &Lengths, repeats: &Repeats<'_>) -> Option<LoadResult> {
    let trials: Vec<(u32, &FrameTrial)> = repeats
        .iter()
        .filter_map(|(repeat, found)| Some((*repeat, found.trials.get(found.evidence_trial?)?)))
        .collect();
    result(lengths, None, &trials)
}

/// Sums up the trials at one load; `None` without trials, or if one sent nothing. A repeat with
/// several trials, which follow each other, counts with their mean.
pub(super) fn result(
    lengths: &Lengths,
    percent: Option<u32>,
    trials: &[(u32, &FrameTrial)],
) -> Option<LoadResult> {
    let estimate = |value: &dyn Fn(&FrameTrial) -> Option<f64>| {
        let repeats = trials.chunk_by(|one, next| one.0 == next.0);
        let samples = repeats.map(|own| {
            let values = own.iter().map(|(_, trial)| value(trial));
            // One trial without a value leaves the load without a figure, since a mean over the
            // others would be of other trials.
            let sum = values.sum::<Option<f64>>();
            (own[0].0, sum.map(|sum| sum / own.len() as f64))
        });
        Estimate::of_all(samples)
    };
    let rate = |count: fn(&FrameTrial) -> u64| {
        let per_direction =
            |trial: &FrameTrial| per_direction(trial, count(trial), lengths.directions_of(trial));
        Some(lengths.rates(estimate(&per_direction)?))
    };
    let ppm = |count: fn(&FrameTrial) -> u64| {
        estimate(&|trial| ratio(count(trial), trial.sent).map(|share| 1e6 * share))
    };
    Some(LoadResult {
        percent,
        // A load of 0 is as fast as the generator can, which intends no rate.
        intended_frames_per_s: estimate(&|trial| (trial.load > 0).then_some(trial.load as f64)),
        offered: rate(|trial| trial.sent)?,
        forwarded: rate(|trial| trial.received)?,
        lost_ppm: ppm(FrameTrial::lost)?,
        reordered_ppm: ppm(|trial| trial.reordered)?,
        duplicated_ppm: ppm(|trial| trial.duplicated)?,
        corrupted_ppm: ppm(|trial| trial.corrupted)?,
        account: LossAccount::of(trials.iter().map(|(_, trial)| *trial)),
        directions: DirectionLoss::of(trials),
    })
}
