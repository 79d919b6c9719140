//! Claims about a search that found no lower bound in some repeats, and so has no figure.
//!
//! A bound that one repeat proved stays proven. At least two repeats with a lower bound on the
//! right side show that the device does more, if no other repeat speaks against it; upper bounds of
//! all repeats show that it does less, if nothing other than the device explains them.

use super::{ClaimVerdict, printed};
use crate::analysis::cores::Contention;
use crate::analysis::significance::{Level, against};
use crate::analysis::verdict::TESTER_LIMITED_RATIO;
use crate::figures::estimate::Estimate;
use crate::figures::frames::{GoalResult, LayerRates};
use journal::record::GoalOutcome;
use plan::{Bound, Claim};

/// The bounds of a goal without a figure, in the claim's unit.
pub(super) struct BoundsWithoutFigure {
    /// Of the repeats that have one.
    pub(super) lower: Option<Estimate>,
    /// Of the repeats that have one, unless the tester failed there.
    upper: Option<Estimate>,
    /// The same in frames/s.
    upper_frames_per_s: Option<Estimate>,
    /// Repeats.
    repeats: u32,
    /// Whether even the lowest load failed in some repeat.
    failed_lowest: bool,
    /// Why bounds are missing, as sentences.
    why: String,
}

/// A claim about bounds, and everything that its verdict depends on.
pub(super) struct Question<'a> {
    pub(super) claim: &'a Claim,
    pub(super) level: Level,
    /// Why the figure would be one of the whole machine.
    pub(super) contention: Option<Contention>,
    /// The frame rate of the path without a device.
    pub(super) rig: Option<&'a Estimate>,
}

impl BoundsWithoutFigure {
    /// `None` if the goal has a lower bound in every repeat.
    pub(super) fn of(goal: &GoalResult, rate: impl Fn(&LayerRates) -> Estimate) -> Option<Self> {
        goal.lower.is_none().then(|| Self {
            lower: goal.lower_of_some.as_ref().map(&rate),
            upper: goal.known_upper().map(&rate),
            upper_frames_per_s: goal.known_upper().map(|found| found.frames_per_s.clone()),
            repeats: goal.repeats(),
            failed_lowest: goal.has_outcome(GoalOutcome::MinLoadFails),
            why: goal.irregular.join(" "),
        })
    }

    /// The upper bound, if every repeat has one.
    fn whole_upper(&self) -> Option<&Estimate> {
        self.upper.as_ref().filter(|found| found.n == self.repeats)
    }

    /// p-value of the finding that the device is on one side of the claim.
    pub(super) fn p(&self, claimed: f64) -> Option<f64> {
        let above = self
            .lower
            .as_ref()
            .and_then(|found| against(found, claimed));
        let below = self.whole_upper().and_then(|found| against(found, claimed));
        let above = above.map(|found| found.p_above(0.0));
        let below = below.map(|found| found.p_below(0.0));
        above.into_iter().chain(below).reduce(f64::min)
    }

    pub(super) fn decide(&self, question: &Question<'_>) -> (ClaimVerdict, String) {
        let claimed = question.claim.value as f64;
        let found = self.in_words(question.claim);
        let undecided = |why: String| (ClaimVerdict::NotDecided, why);
        let does_more = self.lower.as_ref().is_some_and(|lower| {
            let low = question.level.interval(lower).map(|(low, _)| low);
            low.is_some_and(|low| low >= claimed)
        });
        // A repeat that ended below the claim contradicts the others.
        let is_contradicted =
            self.failed_lowest || self.upper.as_ref().is_some_and(|upper| upper.min < claimed);
        if does_more && !is_contradicted {
            return match question.claim.bound {
                Bound::AtLeast => (ClaimVerdict::Met, found),
                Bound::AtMost => (ClaimVerdict::NotMet, found),
            };
        }
        let below = self.whole_upper().filter(|upper| {
            let interval = question.level.interval(upper);
            // The interval of few repeats may end below one of them.
            interval.is_some_and(|(_, high)| high.max(upper.max) < claimed)
        });
        if below.is_some() {
            return match self.excuse(question) {
                Some(why) => undecided(format!("{found} {why}")),
                None if question.claim.bound == Bound::AtLeast => (ClaimVerdict::NotMet, found),
                None => (ClaimVerdict::Met, found),
            };
        }
        let few = match &self.lower {
            Some(lower) if lower.n == 1 && lower.mean >= claimed && !is_contradicted => {
                " One repeat has no spread."
            }
            _ => "",
        };
        undecided(format!("{found}{few} {}", self.why).trim().to_owned())
    }

    /// What other than the device may explain that every repeat ended below the claim.
    fn excuse(&self, question: &Question<'_>) -> Option<String> {
        if let Some(why) = question.contention {
            return Some(format!("But {}.", why.reason()));
        }
        // The rule of verdicts: a device is the limit only if the tester surely does more alone.
        let upper = self.upper_frames_per_s.as_ref()?;
        let rig = question.rig.filter(|rig| rig.min > 0.0);
        let is_below =
            rig.is_some_and(|rig| question.level.is_below(upper, rig, TESTER_LIMITED_RATIO));
        (!is_below).then(|| "But it is not known whether the tester alone does more.".to_owned())
    }

    /// `Found: lower bound 377 Mbit/s (1 of 2 repeats), upper bound 550 Mbit/s (1 of 2 repeats).`
    fn in_words(&self, claim: &Claim) -> String {
        let words = |what: &str, found: &Option<Estimate>| {
            let found = found.as_ref()?;
            let of = if found.n == self.repeats {
                "mean of all repeats".to_owned()
            } else {
                format!("{} of {} repeats", found.n, self.repeats)
            };
            Some(format!("{what} {} ({of})", printed(claim.unit, found.mean)))
        };
        let parts = [("lower bound", &self.lower), ("upper bound", &self.upper)];
        let parts = parts
            .into_iter()
            .filter_map(|(what, found)| words(what, found));
        let parts: Vec<String> = parts.collect();
        if parts.is_empty() {
            String::new()
        } else {
            format!("Found: {}.", parts.join(", "))
        }
    }
}
