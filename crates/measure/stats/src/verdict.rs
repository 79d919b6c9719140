//! What limits a figure: the device, the tester, the link, or unknown.
//!
//! One pure function from a [`Question`] to a [`Verdict`]. Its rules, the first that applies:
//!
//! 1. No lower bound, two bands, or few repeats far apart: *inconclusive*.
//! 2. A link is filled to [`LINK_LIMITED_RATIO`] of its rate: *link-limited*.
//! 3. No upper bound: what bounded the load is the limit; *inconclusive* if that was the campaign,
//!    the search's time, or a generator that does more without the device.
//! 4. No device is in the path: *tester-limited*.
//! 5. Without the stations' own losses, the load that failed would have met the goal:
//!    *tester-limited*.
//! 6. The rig's own figure is not known: *inconclusive*.
//! 7. The figure is at least [`TESTER_LIMITED_RATIO`] of the rig's: *tester-limited*.
//! 8. So is the upper bound, but not the figure: *inconclusive*.
//! 9. A station seals or opens by a suite that may be slower than the rig's: *inconclusive*.
//! 10. Else *dut-limited*.

use crate::estimate::{BOOTSTRAP_MIN_REPEATS, Estimate, LARGE_SPREAD_PERCENT};
use crate::frames::LossAccount;
use schemars::JsonSchema;
use serde::Serialize;
use units::human::{bit_rate, frame_rate};
use wire::Suite;

/// Minimum ratio of a figure to the rig's own at which the tester is considered the limit.
pub const TESTER_LIMITED_RATIO: f64 = 0.95;
/// Minimum ratio of a figure to a link's rate at which the link is considered the limit.
pub const LINK_LIMITED_RATIO: f64 = 0.99;

/// Minimum ratio at which the excess over a link's rate is explained.
const SHAPER_EXCESS_RATIO: f64 = 1.005;

/// What limits the figure of a frame test, with the numbers that show it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Verdict {
    /// The limit.
    pub limit: Limit,
    /// A sentence with the numbers.
    pub reason: String,
    /// The figure, in frames/s; in frames for `back-to-back`.
    pub figure: Option<f64>,
    /// Its upper bound, in the same unit.
    pub upper: Option<f64>,
    /// Id of the cell that measured the rig.
    pub rig_cell: Option<String>,
    /// The rig's figure, in the same unit.
    pub rig: Option<f64>,
    /// Ratio of the figure to the rig's.
    pub of_rig: Option<f64>,
    /// Bit rate on the fuller link, preamble and gap included.
    pub l1_bps: Option<f64>,
    /// Rate of the links.
    pub link_bps: Option<u64>,
    /// Ratio of these two.
    pub of_link: Option<f64>,
}

/// What limits a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// The device.
    DutLimited,
    /// The stations: the device may do more.
    TesterLimited,
    /// A link.
    LinkLimited,
    /// Undecided.
    Inconclusive,
}

impl Limit {
    /// The name in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DutLimited => "dut-limited",
            Self::TesterLimited => "tester-limited",
            Self::LinkLimited => "link-limited",
            Self::Inconclusive => "inconclusive",
        }
    }
}

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
    /// The fuller link, where links have a rate.
    pub(crate) link: Option<Link>,
    /// The rig's figure.
    pub(crate) rig: Rig<'a>,
    /// The suite with which a station seals or opens, if that may be slower than the rig's work.
    pub(crate) slower_suite: Option<Suite>,
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
    /// Its own figure.
    Known(&'a str, f64),
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

/// Returns the verdict, by the rules of this module.
pub(crate) fn judge(question: &Question<'_>) -> Verdict {
    let (limit, reason) = decide(question);
    let mean = |estimate: Option<&Estimate>| estimate.map(|found| found.mean);
    let rig = match question.rig {
        Rig::Known(cell, value) => Some((cell, value)),
        _ => None,
    };
    let divide = |part: Option<f64>, whole: Option<f64>| {
        let whole = whole.filter(|whole| *whole > 0.0)?;
        Some(part? / whole)
    };
    let figure = mean(question.figure);
    Verdict {
        limit,
        reason,
        figure,
        upper: mean(question.upper),
        rig_cell: rig.map(|(cell, _)| cell.to_owned()),
        rig: rig.map(|(_, value)| value),
        of_rig: divide(figure, rig.map(|(_, value)| value)),
        l1_bps: question.link.map(|link| link.l1_bps),
        link_bps: question.link.map(|link| link.link_bps),
        of_link: question.link.map(Link::share),
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
    unsteady(question, figure)
        .map(|reason| (Limit::Inconclusive, reason))
        .or_else(|| Some((Limit::LinkLimited, full_link(question, figure)?)))
        .or_else(|| unbounded(question, figure))
        .or_else(|| Some((Limit::TesterLimited, tester_alone(question, figure)?)))
        .or_else(|| Some((Limit::TesterLimited, tester_loss(question)?)))
        .unwrap_or_else(|| against_rig(question, figure))
}

/// Why the figure is too unsteady for a verdict.
fn unsteady(question: &Question<'_>, figure: &Estimate) -> Option<String> {
    let text = |value: f64| question.unit.text(value);
    if let Some(bands) = figure.bands {
        return Some(format!(
            "The repeats fall in two bands, {} of {} to {} and {} of {} to {}: the mean describes \
             neither.",
            bands.low.n,
            text(bands.low.min),
            text(bands.low.max),
            bands.high.n,
            text(bands.high.min),
            text(bands.high.max),
        ));
    }
    let spread = figure.largest_distance_percent?;
    let few = (figure.n as usize) < BOOTSTRAP_MIN_REPEATS;
    (few && spread > LARGE_SPREAD_PERCENT).then(|| {
        format!(
            "The {} repeats differ by up to {spread:.0} % from their mean: too few to decide what \
             limits it.",
            figure.n
        )
    })
}

fn full_link(question: &Question<'_>, figure: &Estimate) -> Option<String> {
    let link = question.link?;
    let share = link.share();
    // A short trial can exceed the path's rate: the shaper's bucket adds a burst, and frames still
    // queued at the trial's end leave afterwards, within the drain time.
    let burst = match share > SHAPER_EXCESS_RATIO {
        true => {
            " at length (in a short trial its shaper lets a burst through, and queues on the path hold the rest \
             until the trial is over)"
        }
        false => "",
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
            "No device is in the path: {} are what the tester itself does.",
            question.unit.text(figure.mean)
        )
    })
}

/// The verdict if the device's own part of the loss is within the goal.
fn tester_loss(question: &Question<'_>) -> Option<String> {
    let failed = question
        .failed
        .filter(|failed| failed.lost_by_tester() > 0)?;
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
             when its time was over, and {} were lost in the receiving station; {} were lost on \
             the way: without the tester's part {passed} would have passed.",
            failed.intended,
            failed.not_sent,
            failed.too_late,
            failed.receiver_dropped,
            failed.lost_on_the_way()
        )
    })
}

/// The verdict if the highest load passed.
fn unbounded(question: &Question<'_>, figure: &Estimate) -> Option<(Limit, String)> {
    if question.upper.is_some() {
        return None;
    }
    let held_up = match question.rig {
        Rig::Known(_, rig) if figure.mean < TESTER_LIMITED_RATIO * rig => {
            Some(question.unit.text(rig))
        }
        _ => None,
    };
    let figure = question.unit.text(figure.mean);
    Some(match question.bounded {
        // The device shares the generator's cores, so the lower rate may be due to either.
        Bounded::Generator if held_up.is_some() => (
            Limit::Inconclusive,
            format!(
                "The generator reaches {figure} beside the device, and all of it was carried; without \
                 the device it reaches {}. They share cores: give the device cores of its own.",
                held_up.unwrap_or_default()
            ),
        ),
        Bounded::Generator => (
            Limit::TesterLimited,
            format!("The most that the generator reaches was carried, {figure}."),
        ),
        Bounded::Line => (
            Limit::LinkLimited,
            format!("The line rate was carried, {figure}."),
        ),
        Bounded::Time => (
            Limit::Inconclusive,
            "The search's time was up before a load failed.".into(),
        ),
        Bounded::Given => (
            Limit::Inconclusive,
            format!(
                "The highest load that was asked for was carried, {figure}: no limit was reached."
            ),
        ),
    })
}

fn against_rig(question: &Question<'_>, figure: &Estimate) -> (Limit, String) {
    let text = |value: f64| question.unit.text(value);
    let rig = match question.rig {
        Rig::Known(_, rig) if rig > 0.0 => rig,
        Rig::NoFigure(cell) | Rig::Known(cell, _) => {
            let reason = format!("The rig's own limit is not known: `{cell}` has no figure.");
            return (Limit::Inconclusive, reason);
        }
        Rig::Unknown | Rig::Itself => {
            let reason = "The rig's own limit is not known: no cell of this group measures it \
                          without a device.";
            return (Limit::Inconclusive, reason.into());
        }
    };
    let upper = question.upper.map_or(figure.mean, |upper| upper.mean);
    let share = figure.mean / rig;
    if share >= TESTER_LIMITED_RATIO {
        let reason = format!(
            "The device carries {}, {} of the {} that the tester does without it: the device may \
             do more.",
            text(figure.mean),
            percent(share),
            text(rig)
        );
        return (Limit::TesterLimited, reason);
    }
    if upper / rig >= TESTER_LIMITED_RATIO {
        let reason = format!(
            "The tester does {} without the device, between its bounds of {} and {} or too near \
             to them: a longer search would tell.",
            text(rig),
            text(figure.mean),
            text(upper)
        );
        return (Limit::Inconclusive, reason);
    }
    if let Some(suite) = question.slower_suite {
        let reason = format!(
            "The device carries {}, beside a station that works by {suite}: the tester alone, by {}, \
             does {}, and may do less by that.",
            text(figure.mean),
            Suite::Aes256Gcm,
            text(rig)
        );
        return (Limit::Inconclusive, reason);
    }
    let reason = format!(
        "The tester does {} without the device, {:.2} times the {} that the device does at \
         most.",
        text(rig),
        rig / upper,
        text(upper)
    );
    (Limit::DutLimited, reason)
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

#[cfg(test)]
mod tests;
