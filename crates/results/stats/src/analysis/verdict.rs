//! What limits a figure: the device, the tester, the link, the machine, or unknown.
//!
//! One pure function from a [`Question`] to a [`Verdict`]. Its rules, the first that applies:
//!
//! 1. No lower bound, or two bands: *inconclusive*.
//! 2. A link is filled to [`LINK_LIMITED_RATIO`] of its rate: *link-limited*.
//! 3. The highest load passed, and the campaign or the search's time bounded it: *inconclusive*;
//!    the line rate bounded it: *link-limited*.
//! 4. No device is in the path: *tester-limited*.
//! 5. Stations and device share cores: *machine-limited*.
//! 6. The highest load passed, and the generator bounded it: *tester-limited*; *inconclusive* if it
//!    surely does more without the device.
//! 7. Without the stations' own losses, the load that failed would have met the goal:
//!    *tester-limited*.
//! 8. The figure is surely at least [`TESTER_LIMITED_RATIO`] of the rig's: *tester-limited*.
//! 9. A station had no idle time: *machine-limited*.
//! 10. The rig's figure is not known, or falls in two bands: *inconclusive*.
//! 11. The upper bound is not surely below [`TESTER_LIMITED_RATIO`] of the rig's: *inconclusive*.
//! 12. A station seals or opens by a suite that may be slower than the rig's: *inconclusive*.
//! 13. Else *dut-limited*.
//!
//! One repeat decides nothing: *inconclusive* replaces *tester-limited* and *dut-limited*. *Surely*
//! is by [`super::significance`].

mod question;

pub(crate) use question::judge_all;

use crate::analysis::cores::Contention;
use crate::analysis::significance::{Level, Ratio, contrast};
use crate::figures::bands::TwoBands;
use crate::figures::estimate::Estimate;
use crate::figures::frames::{Limit, LossAccount, Verdict};
use units::human::{bit_rate, frame_rate};
use wire::Suite;

/// The tester is the limit if a figure is at least this share of the rig's figure.
pub const TESTER_LIMITED_RATIO: f64 = 0.95;
/// The link is the limit if a figure is at least this share of the link's rate.
pub const LINK_LIMITED_RATIO: f64 = 0.99;

/// An excess over a link's rate is explained from this ratio on.
const SHAPER_EXCESS_RATIO: f64 = 1.005;

/// Everything that a verdict depends on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Question<'a> {
    /// The figure.
    pub(crate) figure: Option<&'a Estimate>,
    /// Its upper bound.
    pub(crate) upper: Option<&'a Estimate>,
    /// Why there is no bound.
    pub(crate) irregular: &'a [String],
    /// What bounded the highest load.
    pub(crate) bounded: Bounded,
    /// The figure as printed: `402 kpps`.
    pub(crate) unit: Unit,
    /// Frames of the trials that did not meet the goal.
    pub(crate) failed: Option<LossAccount>,
    /// Loss that the goal allows.
    pub(crate) allowed_ppm: u32,
    /// The fuller link, if links have a rate.
    pub(crate) link: Option<Link>,
    /// The rig's figure.
    pub(crate) rig: Rig<'a>,
    /// The suite that a station uses to seal or open, and the rig's suite, if the station's may be
    /// slower.
    pub(crate) slower_suite: Option<[Suite; 2]>,
    /// Why the figure is one of the whole machine.
    pub(crate) contention: Option<Contention>,
    /// Significance level of the comparison with the rig.
    pub(crate) level: Level,
}

/// What bounded the highest load tried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Bounded {
    /// The campaign.
    #[default]
    Given,
    /// The generator.
    Generator,
    /// The line rate.
    Line,
    /// Nothing: the search timed out before.
    Time,
}

/// Unit of a figure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Frames per second.
    #[default]
    Rate,
    /// Frames in a burst.
    Burst,
}

/// How full a link is at the figure.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Link {
    /// `clear` or `cipher`.
    pub(crate) side: &'static str,
    /// L1 rate on it.
    pub(crate) l1_bps: f64,
    /// Its rate.
    pub(crate) link_bps: u64,
}

/// The figure of the rig without a device.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Rig<'a> {
    /// Unknown: no cell measured it.
    #[default]
    Unknown,
    /// Unknown: the cell that measures it has no figure.
    NoFigure(&'a str),
    /// The cell that measured it, and the figure.
    Known(&'a str, &'a Estimate),
    /// This cell measures it.
    Itself,
}

impl Unit {
    fn text(self, value: f64) -> String {
        match self {
            Self::Rate => frame_rate(value),
            Self::Burst => format!("{value:.0} frames"),
        }
    }
}

impl Question<'_> {
    /// The p-value of the finding that the figure is on one side of the rig's; `None` if they are
    /// not compared.
    pub(crate) fn p(&self) -> Option<f64> {
        // With shared cores the verdict is known without the rig. A comparison that decides nothing
        // must not take significance from the others of the question.
        if self.contention.is_some_and(|why| why.is_shared()) {
            return None;
        }
        let (_, rig) = self.known_rig()?;
        let figure = self.figure?;
        let upper = self.upper.unwrap_or(figure);
        let above = contrast(figure, rig, TESTER_LIMITED_RATIO)?.p_above(0.0);
        // A figure can be found on one side only, so the smaller p-value is the one of the finding.
        Some(above.min(contrast(upper, rig, TESTER_LIMITED_RATIO)?.p_below(0.0)))
    }

    const fn known_rig(&self) -> Option<(&str, &Estimate)> {
        match self.rig {
            // A rig that carried nothing in one repeat has no ratio to anything.
            Rig::Known(cell, figure) if figure.min > 0.0 => Some((cell, figure)),
            _ => None,
        }
    }

    /// Whether a figure is surely at the rig's limit.
    fn reaches_rig(&self, figure: &Estimate, rig: &Estimate) -> bool {
        self.level.is_above(figure, rig, TESTER_LIMITED_RATIO)
    }

    /// Whether a figure is surely below the rig's limit.
    fn is_below_rig(&self, figure: &Estimate, rig: &Estimate) -> bool {
        self.level.is_below(figure, rig, TESTER_LIMITED_RATIO)
    }
}

/// Returns the verdict, by the rules of this module.
pub(crate) fn judge(question: &Question<'_>) -> Verdict {
    let (limit, reason) = one_repeat_decides_nothing(question, decide(question));
    let mean = |estimate: Option<&Estimate>| estimate.map(|found| found.mean);
    let rig = question.known_rig();
    let of_rig = question
        .figure
        .zip(rig)
        .and_then(|(figure, (_, rig))| Ratio::of(figure, rig));
    Verdict {
        limit,
        reason,
        figure: mean(question.figure),
        upper: mean(question.upper),
        rig_cell: rig.map(|(cell, _)| cell.to_owned()),
        rig: rig.map(|(_, figure)| figure.mean),
        of_rig: of_rig.map(|found| found.ratio),
        of_rig_low: of_rig.and_then(|found| found.low),
        of_rig_high: of_rig.and_then(|found| found.high),
        l1_bps: question.link.map(|link| link.l1_bps),
        link_bps: question.link.map(|link| link.link_bps),
        of_link: question.link.map(Link::share),
        shared_cores_wanted: match question.contention {
            Some(Contention::Shared { wanted, .. }) => Some(wanted),
            _ => None,
        },
    }
}

/// One repeat suffices to show that a link is full, that no device is in the path, or that cores
/// are shared.
fn one_repeat_decides_nothing(
    question: &Question<'_>,
    (limit, reason): (Limit, String),
) -> (Limit, String) {
    let is_known = match limit {
        Limit::MachineLimited => question.contention.is_some_and(|why| why.is_shared()),
        Limit::TesterLimited => matches!(question.rig, Rig::Itself),
        Limit::LinkLimited | Limit::Inconclusive => true,
        Limit::DutLimited => false,
    };
    match question.figure {
        Some(figure) if figure.n < 2 && !is_known => (
            Limit::Inconclusive,
            format!(
                "One repeat decides nothing; by it {}: {reason}",
                limit.name()
            ),
        ),
        _ => (limit, reason),
    }
}

impl Link {
    fn share(self) -> f64 {
        self.l1_bps / self.link_bps.max(1) as f64
    }
}

fn decide(question: &Question<'_>) -> (Limit, String) {
    let Some(figure) = question.figure else {
        let why = question.irregular.join(" ");
        let why = if why.is_empty() {
            "There is no figure to judge.".into()
        } else {
            why
        };
        return (Limit::Inconclusive, why);
    };
    // Before all limits: they compare the mean, which describes neither band.
    if let Some(bands) = figure.bands {
        return (Limit::Inconclusive, in_bands(question, "The", bands));
    }
    // In the order of the rules at the top of this file: findings that need no figure of the rig
    // come before the comparison with it.
    full_link(question, figure)
        .map(|reason| (Limit::LinkLimited, reason))
        .or_else(|| no_limit_reached(question, figure))
        .or_else(|| Some((Limit::TesterLimited, tester_alone(question, figure)?)))
        .or_else(|| Some((Limit::MachineLimited, shared(question, figure)?)))
        .or_else(|| full_generator(question, figure))
        .or_else(|| Some((Limit::TesterLimited, tester_loss(question)?)))
        .unwrap_or_else(|| against_rig(question, figure))
}

fn in_bands(question: &Question<'_>, whose: &str, bands: TwoBands) -> String {
    let text = |value: f64| question.unit.text(value);
    format!(
        "{whose} repeats fall in two bands, {} of {} to {} and {} of {} to {}: the mean describes \
         neither.",
        bands.low.n,
        text(bands.low.min),
        text(bands.low.max),
        bands.high.n,
        text(bands.high.min),
        text(bands.high.max),
    )
}

/// The verdict if stations and device share cores.
fn shared(question: &Question<'_>, figure: &Estimate) -> Option<String> {
    let why = question.contention.filter(Contention::is_shared)?;
    Some(by_machine(question, figure, why))
}

fn by_machine(question: &Question<'_>, figure: &Estimate, why: Contention) -> String {
    format!(
        "{} are what stations and device do together: {}.",
        question.unit.text(figure.mean),
        why.reason()
    )
}

fn full_link(question: &Question<'_>, figure: &Estimate) -> Option<String> {
    let link = question.link?;
    let share = link.share();
    // A short trial can exceed the path's rate: the shaper's bucket adds a burst, and frames still
    // queued at the trial's end leave afterwards, within the drain time.
    let burst = if share > SHAPER_EXCESS_RATIO {
        " at length (in a short trial its shaper lets a burst through, and queues on the path hold the rest \
             until the trial is over)"
    } else {
        ""
    };
    (share >= LINK_LIMITED_RATIO).then(|| {
        format!(
            "{} are {} on the {} side's line, {} of the {} that the link carries{burst}.",
            question.unit.text(figure.mean),
            bit_rate(link.l1_bps),
            link.side,
            percent(share),
            bit_rate(link.link_bps as f64)
        )
    })
}

fn tester_alone(question: &Question<'_>, figure: &Estimate) -> Option<String> {
    matches!(question.rig, Rig::Itself).then(|| {
        format!(
            "No device is in the path: {} are the tester's own rate.",
            question.unit.text(figure.mean)
        )
    })
}

/// The verdict if the device's part of the loss is within the goal.
fn tester_loss(question: &Question<'_>) -> Option<String> {
    let failed = question
        .failed
        // A loss that is within the goal without any part of the tester says nothing about the
        // tester.
        .filter(|failed| failed.lost_by_tester() > 0)?;
    // In integers: `u128` holds the product of any counts, and a float could round a loss at the
    // limit to the other side.
    let own = u128::from(failed.not_carried()) * 1_000_000;
    let allowed = u128::from(failed.intended) * u128::from(question.allowed_ppm);
    let what = match question.unit {
        Unit::Rate => "at the load that failed",
        Unit::Burst => "in the shortest bursts that failed",
    };
    let passed = match question.unit {
        Unit::Rate => "the load",
        Unit::Burst => "the burst",
    };
    (own <= allowed).then(|| {
        format!(
            "Of {} frames intended {what}, {} never left the generator, {} left \
             when its time was over, and the receiving station lost {}; lost on the way: {} \
             frames; without the tester's part {passed} would have passed.",
            failed.intended,
            failed.not_sent,
            failed.too_late,
            failed.receiver_dropped,
            failed.lost_on_the_way()
        )
    })
}

/// The verdict if the highest load passed, and no device was asked for more.
fn no_limit_reached(question: &Question<'_>, figure: &Estimate) -> Option<(Limit, String)> {
    if question.upper.is_some() {
        return None;
    }
    let figure = question.unit.text(figure.mean);
    match question.bounded {
        // `full_generator` decides this case, after the rules about shared cores.
        Bounded::Generator => None,
        Bounded::Line => Some((
            Limit::LinkLimited,
            format!("The line rate was carried, {figure}."),
        )),
        Bounded::Time => Some((
            Limit::Inconclusive,
            "The search's time was up before a load failed.".into(),
        )),
        Bounded::Given => Some((
            Limit::Inconclusive,
            format!(
                "The highest load that was asked for was carried, {figure}: no limit was reached."
            ),
        )),
    }
}

/// The verdict if the highest load passed, and the generator bounded it.
fn full_generator(question: &Question<'_>, figure: &Estimate) -> Option<(Limit, String)> {
    if question.upper.is_some() {
        return None;
    }
    let text = |value: f64| question.unit.text(value);
    let faster = question
        .known_rig()
        .filter(|(_, rig)| question.is_below_rig(figure, rig));
    Some(match faster {
        // Something other than the generator takes its time.
        Some((_, rig)) => (
            Limit::Inconclusive,
            format!(
                "The generator reaches {} beside the device, and all of it was carried; without \
                 the device it reaches {}: what holds it back is not known.",
                text(figure.mean),
                text(rig.mean)
            ),
        ),
        None => (
            Limit::TesterLimited,
            format!(
                "The most that the generator reaches was carried, {}.",
                text(figure.mean)
            ),
        ),
    })
}

fn against_rig(question: &Question<'_>, figure: &Estimate) -> (Limit, String) {
    let text = |value: f64| question.unit.text(value);
    let rig = question.known_rig().map(|(_, rig)| rig);
    // A rig in two bands has no mean to compare with.
    let steady = rig.filter(|rig| rig.bands.is_none());
    if let Some(rig) = steady.filter(|rig| question.reaches_rig(figure, rig)) {
        let reason = format!(
            "The device carries {}, {} of the {} that the tester does without it: the device may \
             do more.",
            text(figure.mean),
            share(question, figure, rig),
            text(rig.mean)
        );
        return (Limit::TesterLimited, reason);
    }
    // Only a station without idle time is left here. The rig comes first: at its limit the figure
    // is the tester's, for any reason.
    if let Some(why) = question.contention {
        return (Limit::MachineLimited, by_machine(question, figure, why));
    }
    let Some(rig) = steady else {
        return (Limit::Inconclusive, unknown_rig(question));
    };
    // The device may carry anything up to the upper bound, so that bound must be below the rig's
    // rate. Without one the figure is a measured rate and not the end of a search.
    let upper = question.upper.unwrap_or(figure);
    if !question.is_below_rig(upper, rig) {
        return (
            Limit::Inconclusive,
            too_near(question, (figure, upper), rig),
        );
    }
    if let Some([suite, rigs]) = question.slower_suite {
        let reason = format!(
            "The device carries {}, beside a station that works by {suite}: the tester alone, by {rigs}, \
             does {}, and may do less by that.",
            text(figure.mean),
            text(rig.mean)
        );
        return (Limit::Inconclusive, reason);
    }
    // At the level of the question, so that the printed factor does not claim more than the
    // verdict.
    let times = Ratio::at(rig, upper, question.level.alpha());
    let times = times.map_or_else(String::new, |found| {
        let at_least = found.low.map_or_else(String::new, |low| {
            format!(" (at least {low:.2} by the spread of both)")
        });
        format!("{:.2} times{at_least}", found.ratio)
    });
    let reason = format!(
        "The tester does {} without the device, {times} the {} that the device does at most.",
        text(rig.mean),
        text(upper.mean)
    );
    (Limit::DutLimited, reason)
}

/// Why the rig's figure is no measure.
fn unknown_rig(question: &Question<'_>) -> String {
    match question.rig {
        Rig::Known(cell, figure) => match figure.bands {
            Some(bands) => in_bands(question, "The rig's own", bands),
            None => format!("The rig's own limit is not known: `{cell}` has no figure."),
        },
        Rig::NoFigure(cell) => {
            format!("The rig's own limit is not known: `{cell}` has no figure.")
        }
        // `Itself` does not get here: `tester_alone` decides it.
        Rig::Unknown | Rig::Itself => "The rig's own limit is not known: no cell of this group \
                                       measures it without a device."
            .into(),
    }
}

/// Why a figure is neither surely at the rig's limit nor surely below it.
fn too_near(
    question: &Question<'_>,
    (figure, upper): (&Estimate, &Estimate),
    rig: &Estimate,
) -> String {
    let text = |value: f64| question.unit.text(value);
    if contrast(upper, rig, 1.0).is_none() {
        return "One repeat decides nothing: the spread of the device or of the tester is not known."
            .into();
    }
    format!(
        "The tester does {} without the device, and the device between {} and {}, {} of it: the \
         repeats do not decide which of them is the limit.",
        text(rig.mean),
        text(figure.mean),
        text(upper.mean),
        share(question, figure, rig)
    )
}

/// `96.4 % (95.9 to 96.8 %)`, at the level of the verdict.
fn share(question: &Question<'_>, figure: &Estimate, rig: &Estimate) -> String {
    let Some(found) = Ratio::at(figure, rig, question.level.alpha()) else {
        return percent(0.0);
    };
    match found.low.zip(found.high) {
        Some((low, high)) => format!(
            "{} ({:.1} to {})",
            percent(found.ratio),
            100.0 * low,
            percent(high)
        ),
        None => percent(found.ratio),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests;
