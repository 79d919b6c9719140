//! Limits of losses.
//!
//! A share of lost frames is no quantity on a logarithmic scale: it may be 0. Two models bound it,
//! and both must agree: Student's t over the repeats' shares, and Poisson's distribution of the
//! frames lost, without which repeats that all lost nothing would have no error.
//!
//! `loss = 0` is about the frames that were sent: one lost frame violates it. No number of frames
//! shows that none is ever lost, so that the reason has the share that they exclude.

use super::loads::loads_at;
use super::{ExpectedCell, words};
use crate::analysis::change::REPEATS_MAX;
use crate::analysis::gate::{Gate, GateLoad, GateUnit, LimitOutcome};
use crate::analysis::significance::Level;
use crate::cell::CellResult;
use crate::figures::estimate::Estimate;
use crate::figures::student::{INTERVAL_MIN_REPEATS, Student};
use statrs::distribution::{ContinuousCDF, Gamma};
use statrs::function::gamma::{checked_gamma_lr, checked_gamma_ur};

/// Above this number of lost frames their count adds nothing to the scatter of the repeats.
const COUNTED_MAX: f64 = 1e4;

/// Frames lost at one load, over all repeats.
pub(super) struct Loss {
    /// Share of the frames sent, in each repeat.
    pub(super) share: Estimate,
    /// Frames sent.
    sent: u64,
    /// Frames that the receiving station itself lost.
    by_tester: u64,
    /// The largest share; `None`: no frame may be lost.
    pub(super) limit: Option<f64>,
}

/// The same up to a look.
pub(super) struct Seen {
    share: Estimate,
    sent: f64,
    by_tester: u64,
    limit: Option<f64>,
}

impl Loss {
    /// The losses of a cell that a limit is about, in words and numbers.
    pub(super) fn all(
        cell: &CellResult,
        at: Option<GateLoad>,
        limit: Option<f64>,
    ) -> Vec<(String, Self)> {
        let datagrams = cell.bulk().and_then(|bulk| bulk.datagrams.as_ref());
        let datagrams = datagrams.filter(|_| at.is_none()).map(|found| Self {
            share: found.loss_ratio.clone(),
            sent: found.sent,
            by_tester: 0,
            limit,
        });
        let of_tools = datagrams.map(|loss| (Gate::LOSS.to_owned(), loss));
        let loads = loads_at(cell, at).into_iter().map(|load| {
            let words = match load.percent {
                Some(percent) => format!("{} at {percent} %", Gate::LOSS),
                None => Gate::LOSS.to_owned(),
            };
            let loss = Self {
                share: load.lost_ppm.scaled(1e-6),
                sent: load.account.sent(),
                by_tester: load.account.receiver_dropped,
                limit,
            };
            (words, loss)
        });
        of_tools.into_iter().chain(loads).collect()
    }

    /// Up to a look: the repeats' shares.
    pub(super) fn seen(&self, share: Estimate) -> Seen {
        // Repeats of one cell send the same number of frames.
        let part = f64::from(share.n) / f64::from(self.share.n.max(1));
        Seen {
            sent: self.sent as f64 * part,
            by_tester: self.by_tester,
            limit: self.limit,
            share,
        }
    }
}

impl Seen {
    fn lost(&self) -> f64 {
        (self.share.mean * self.sent).round()
    }

    fn student(&self) -> Option<Student> {
        let values: Vec<f64> = self.share.values.iter().map(|one| one.value).collect();
        Student::of(&values)
    }

    /// The p-values of the findings that the share is below the limit, and above it.
    fn p_beyond(limit: f64, student: Student, (lost, sent): (f64, f64)) -> (f64, f64) {
        let expected = limit * sent;
        // Twice the one-sided values, as those of Student's t.
        let (fewer, more) = if lost > COUNTED_MAX || expected <= 0.0 {
            (0.0, 0.0)
        } else {
            let fewer = checked_gamma_ur(lost + 1.0, expected).unwrap_or(1.0);
            let more = if lost > 0.0 {
                checked_gamma_lr(lost, expected).unwrap_or(1.0)
            } else {
                1.0
            };
            (2.0 * fewer, 2.0 * more)
        };
        (
            student.p_below(limit).max(fewer),
            student.p_above(limit).max(more),
        )
    }

    /// The p-value of the finding that the share is on one side of its limit.
    pub(super) fn p(&self) -> Option<f64> {
        let (below, above) = Self::p_beyond(self.limit?, self.student()?, self.counts());
        Some(below.min(above))
    }

    fn counts(&self) -> (f64, f64) {
        (self.lost(), self.sent)
    }

    /// The largest share that the number of lost frames allows.
    fn most(&self, alpha: f64) -> f64 {
        let lost = self.lost();
        if self.sent <= 0.0 {
            return 1.0;
        }
        let counted = (lost <= COUNTED_MAX)
            .then(|| Gamma::new(lost + 1.0, 1.0).ok())
            .flatten();
        let most = counted.map_or(lost, |found| found.inverse_cdf(1.0 - alpha / 2.0));
        (most / self.sent).min(1.0)
    }

    /// The outcome at a level; `scale`: the level of the next look by that of this one.
    pub(super) fn result(
        &self,
        blank: ExpectedCell,
        (level, scale): (Level, f64),
        looks_again: bool,
    ) -> ExpectedCell {
        let repeats = self.share.n;
        let blank = ExpectedCell {
            figure: Some(self.share.mean),
            repeats,
            is_repeatable: true,
            ..blank
        };
        let Some(student) = self.student() else {
            return ExpectedCell {
                reason: words::no_scatter(repeats, looks_again),
                ..blank
            };
        };
        let (low, high) = student.interval(level.alpha());
        let most = self.most(level.alpha());
        let (low, high) = (low.max(0.0), high.max(most).min(1.0));
        let (outcome, reason) = match self.limit {
            None => self.without_loss(most, level.alpha()),
            Some(limit) => {
                let (below, above) = Self::p_beyond(limit, student, self.counts());
                let outcome = match () {
                    () if level.allows(below) => LimitOutcome::Met,
                    () if level.allows(above) => LimitOutcome::Violated,
                    () => LimitOutcome::Undecided,
                };
                let figures = (self.share.mean, low, high);
                let unit = (Some(GateUnit::Share), &blank, "");
                (outcome, words::measured(figures, level.alpha(), unit))
            }
        };
        let blank = ExpectedCell {
            low: Some(low),
            high: Some(high),
            ..blank
        };
        match outcome {
            LimitOutcome::Violated if self.by_tester > 0 => ExpectedCell {
                outcome: LimitOutcome::Undecided,
                reason: format!(
                    "{reason} But the receiving station itself dropped {} frames.",
                    self.by_tester
                ),
                ..blank
            },
            LimitOutcome::Undecided => {
                let alpha = scale * level.alpha();
                let more = self
                    .limit
                    .and_then(|limit| self.needed(limit, student, alpha));
                let advice = words::more(repeats, more, looks_again);
                ExpectedCell {
                    reason: format!("{reason} The limit lies within; {advice}."),
                    more_repeats: more,
                    ..blank
                }
            }
            outcome => ExpectedCell {
                reason: match outcome {
                    LimitOutcome::Violated => reason + words::VIOLATED,
                    _ => reason,
                },
                outcome,
                is_repeatable: false,
                ..blank
            },
        }
    }

    /// Of a limit of 0.
    fn without_loss(&self, most: f64, alpha: f64) -> (LimitOutcome, String) {
        let repeats = self.share.n;
        if self.share.max > 0.0 {
            let reason = format!(
                "Lost {} of the frames, in the worst of {} {}.",
                GateUnit::Share.print(self.share.mean),
                units::human::counted(repeats, "repeat"),
                GateUnit::Share.print(self.share.max)
            );
            return (LimitOutcome::Violated, reason);
        }
        let reason = format!(
            "None of {} frames in {} was lost: with {} % certainty less than {} are.",
            units::human::number(self.sent),
            units::human::counted(repeats, "repeat"),
            words::certainty(alpha),
            GateUnit::Share.print(most)
        );
        (LimitOutcome::Met, reason)
    }

    /// Further repeats with which a limit would be decided, if they lose as many.
    fn needed(&self, limit: f64, student: Student, alpha: f64) -> Option<u32> {
        let now = self.share.n;
        if now < INTERVAL_MIN_REPEATS {
            return None;
        }
        let decides = |all: &u32| {
            let scale = f64::from(*all) / f64::from(now);
            let counts = ((self.lost() * scale).round(), self.sent * scale);
            let (below, above) = Self::p_beyond(limit, student.with_repeats(now, *all), counts);
            below.min(above) <= alpha
        };
        (now + 1..=REPEATS_MAX).find(decides).map(|all| all - now)
    }
}
