//! Hostile packets at rising shares of the load.

use super::{DisturbedLoad, Trial, forwarded};
use crate::figures::estimate::Estimate;
use crate::figures::frames::rates::Lengths;
use crate::figures::repeats::{Total, per_second};
use journal::record::{FrameResult, FrameTrial};
use plan::Attack;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// A load suffers when more than this share of it is lost, in parts per million.
pub const HOSTILE_LOSS_PPM: u64 = 1_000;

/// The effect of hostile packets on the load.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HostileResult {
    /// Their kind: `bad-icv`, `replay` or `garbage`.
    pub attack: String,
    /// One entry for each share of the load, rising.
    pub shares: Vec<HostileShare>,
    /// Lowest share with a loss of more than 0.1 % of the load, over all repeats; `null` if no
    /// share has this loss, or if the load without hostile packets has it.
    pub suffers_from_percent: Option<u16>,
    /// Forged or replayed frames that the device forwarded, over all shares and repeats; must be 0.
    pub delivered: u64,
}

/// One share of hostile packets.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct HostileShare {
    /// Their intended rate in per cent of the load's.
    pub percent: u16,
    /// Hostile packets sent, over all repeats.
    pub sent: u64,
    /// Intended rate, as a share of the offered load; over the repeats.
    pub intended_packets_per_s: Option<Estimate>,
    /// Sent rate; over the repeats; `null` when a repeat sent fewer than two packets.
    pub packets_per_s: Option<Estimate>,
    /// Received frames of the load, divided by sent frames; over the repeats.
    pub forwarded_ratio: Estimate,
    /// Frames received again, damaged, or so late that they may be duplicates, over all repeats:
    /// the device let these through.
    pub delivered: u64,
    /// The load in the same trials.
    pub disturbed: DisturbedLoad,
}

impl HostileResult {
    pub(super) fn of(
        attack: Attack,
        lengths: &Lengths,
        quiet: &[Trial<'_>],
        trials: &[Trial<'_>],
    ) -> Option<Self> {
        // In rising order, as the smallest share that the load suffers from is reported.
        let mut by_share: BTreeMap<u16, Vec<Trial<'_>>> = BTreeMap::new();
        for trial in trials {
            if let Some(attack) = &trial.disturbance.attack {
                by_share.entry(attack.percent).or_default().push(*trial);
            }
        }
        let of = |(percent, trials): (u16, Vec<_>)| HostileShare::of(percent, lengths, &trials);
        let shares: Vec<HostileShare> = by_share.into_iter().filter_map(of).collect();
        // Without any attack there is no result, and not one of zero shares.
        shares.first()?;
        // If the control lost more than that too, the loss at a share cannot be put down to the
        // attack.
        let calm = DisturbedLoad::of(lengths, quiet).is_none_or(|quiet| !quiet.suffers());
        let first = shares.iter().find(|share| share.disturbed.suffers());
        Some(Self {
            attack: attack.name().into(),
            suffers_from_percent: first.filter(|_| calm).map(|share| share.percent),
            delivered: shares.iter().map(|share| share.delivered).total(),
            shares,
        })
    }
}

impl HostileShare {
    fn of(percent: u16, lengths: &Lengths, trials: &[Trial<'_>]) -> Option<Self> {
        let attacks = trials.iter().filter_map(|found| found.disturbance.attack);
        let over = |value: &dyn Fn(&Trial<'_>) -> Option<f64>| {
            Estimate::of_all(trials.iter().map(|found| (found.repeat, value(found))))
        };
        let intended =
            |found: &Trial<'_>| Some(f64::from(percent) / 100.0 * found.trial.load as f64);
        let reached = |found: &Trial<'_>| {
            let attack = found.disturbance.attack?;
            // The elapsed time is from the first packet to the last, which are one interval fewer
            // than packets.
            per_second(attack.sent.checked_sub(1)?, attack.elapsed_ns)
        };
        Some(Self {
            percent,
            sent: attacks.map(|attack| attack.sent).total(),
            intended_packets_per_s: over(&intended),
            packets_per_s: over(&reached),
            forwarded_ratio: forwarded(trials)?,
            delivered: trials.iter().map(|found| delivered(found.trial)).total(),
            disturbed: DisturbedLoad::of(lengths, trials)?,
        })
    }
}

/// A copy far behind its flow cannot be distinguished from a late frame; it is counted here, since
/// in these trials it is the likelier of the two.
fn delivered(trial: &FrameTrial) -> u64 {
    // Invalid trials are included here, and no bounds of their counts were checked.
    [trial.duplicated, trial.corrupted, trial.too_late]
        .into_iter()
        .total()
}

/// Hostile packets that the device let through in one repeat.
pub(crate) fn hostile_delivered_in(found: &FrameResult) -> u64 {
    let attacked = found
        .disturbances()
        .iter()
        .filter(|one| one.attack.is_some());
    let trials = attacked.filter_map(|one| found.trials.get(one.trial));
    trials.map(delivered).total()
}

impl DisturbedLoad {
    /// Whether more than [`HOSTILE_LOSS_PPM`] of the load was lost, over all repeats.
    #[must_use]
    pub fn suffers(&self) -> bool {
        let (lost, sent) = (self.load.account.lost, self.sent());
        u128::from(lost) * 1_000_000 > u128::from(sent) * u128::from(HOSTILE_LOSS_PPM)
    }
}
