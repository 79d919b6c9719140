//! Load classification and conditional throughput, as in the appendices of RFC 9971.
//!
//! All sums are whole nanoseconds and all ratios parts per million, so that both sides of each
//! comparison are whole numbers. A trial's effective duration is its intended duration.

use std::cmp::Ordering;

use crate::{Counts, Goal, PPM, Trial};

/// The class of a load by its trials (RFC 9971, Load Classification).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// The load meets the goal, for any result of the remaining trials of the duration sum.
    LowerBound,
    /// The load does not meet the goal, for any result of the remaining trials.
    UpperBound,
    /// More trials are needed.
    Undecided,
}

/// Sums of trial durations at one load, in nanoseconds.
#[derive(Debug, Default, Clone, Copy)]
struct Sums {
    full_low: u128,
    full_high: u128,
    short_low: u128,
    short_high: u128,
}

impl Sums {
    fn of(trials: &[(Trial, Counts)], goal: &Goal) -> Self {
        let mut sums = Self::default();
        let against = |(_, counts): &&(Trial, Counts)| counts.is_high_loss(goal.loss_ratio_ppm);
        // The longest trial with high loss: no shorter one outvotes it.
        let longest_ns = trials
            .iter()
            .filter(against)
            .map(|(trial, _)| trial.duration_ns)
            .max();
        for (trial, counts) in trials {
            let full = is_full_length(*trial, goal);
            let high = counts.is_high_loss(goal.loss_ratio_ppm);
            if full && !high && Some(trial.duration_ns) < longest_ns {
                continue;
            }
            let sum = match (full, high) {
                (true, false) => &mut sums.full_low,
                (true, true) => &mut sums.full_high,
                (false, false) => &mut sums.short_low,
                (false, true) => &mut sums.short_high,
            };
            *sum += u128::from(trial.duration_ns);
        }
        sums
    }
}

pub(crate) const fn is_full_length(trial: Trial, goal: &Goal) -> bool {
    trial.duration_ns >= goal.final_trial_ns
}

/// Classifies a load by all trials made there (RFC 9971, Load Classification Code).
///
/// Short trials count too: high-loss ones in full, as far as low-loss ones do not balance them.
/// Low-loss short trials alone never make a lower bound.
///
/// Beyond the RFC, no shorter trial outvotes a longer one: a full-length low-loss trial that is
/// shorter than a high-loss one at the same load does not count, since a device may carry a load
/// for a short time only. This changes nothing if all full-length trials have the same duration, as
/// in a search.
#[must_use]
pub fn classify(trials: &[(Trial, Counts)], goal: &Goal) -> Class {
    let sums = Sums::of(trials, goal);
    let exceed = u128::from(goal.exceed_ratio_ppm);
    let subceed = u128::from(PPM) - exceed;
    // Times are in units of 1/subceed nanoseconds, so that the balancing sum, a quotient by the
    // subceed ratio, is a whole number.
    let balancing = sums.short_low * exceed;
    let excess = (sums.short_high * subceed).saturating_sub(balancing);
    let high = sums.full_high * subceed + excess;
    let low = sums.full_low * subceed;
    // Trials beyond the duration sum count too.
    let whole = (low + high).max(u128::from(goal.duration_sum_ns) * subceed);
    let tolerated = whole * exceed;
    // All trials that are still missing would have low loss.
    let optimistic = high * u128::from(PPM) <= tolerated;
    // All trials that are still missing would have high loss.
    let pessimistic = (whole - low) * u128::from(PPM) <= tolerated;
    match (optimistic, pessimistic) {
        (true, true) => Class::LowerBound,
        (false, false) => Class::UpperBound,
        _ => Class::Undecided,
    }
}

/// Expected forwarding rate at a load, in frames/s (RFC 9971, Conditional Throughput Code): the
/// load less the loss ratio of the full-length trial at the goal's quantile. The part missing from
/// the duration sum counts as entirely lost.
#[must_use]
pub fn conditional_throughput(load: u64, trials: &[(Trial, Counts)], goal: &Goal) -> f64 {
    let mut full: Vec<_> = trials
        .iter()
        .filter(|(trial, _)| is_full_length(*trial, goal))
        .collect();
    full.sort_by(|(_, one), (_, other)| compare_loss(*one, *other));
    let measured: u128 = full
        .iter()
        .map(|(trial, _)| u128::from(trial.duration_ns))
        .sum();
    let whole = measured.max(u128::from(goal.duration_sum_ns));
    // In units of a millionth of a nanosecond.
    let quantile = whole * u128::from(PPM - goal.exceed_ratio_ppm);
    let mut passed = 0;
    for (trial, counts) in full {
        passed += u128::from(trial.duration_ns) * u128::from(PPM);
        if passed >= quantile {
            return load as f64 * counts.forwarding_ratio();
        }
    }
    // The quantile is in the part that is missing, which counts as lost.
    0.0
}

/// Compares loss ratios exactly.
fn compare_loss(one: Counts, other: Counts) -> Ordering {
    let ratio = |counts: Counts| match counts.intended {
        0 => (1, 1),
        // As fractions, which are compared by cross-multiplication.
        intended => (u128::from(counts.lost()), u128::from(intended)),
    };
    let ((lost, of), (other_lost, other_of)) = (ratio(one), ratio(other));
    (lost * other_of).cmp(&(other_lost * of))
}
