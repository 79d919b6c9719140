//! Keys that several kinds of frame trials have.

use crate::axis::RUN_MAX;
use crate::frames::rate::{self, Rate};
use std::time::Duration;
use units::Ratio;
use wire::mix::FrameMix;
use yaml::{Map, Node, Reported, Spanned};

const TRIAL_MIN: Duration = Duration::from_millis(10);
const DRAIN_MAX: Duration = Duration::from_secs(60);

/// Highest load; `None`: the line rate, or the generator's maximum.
pub(super) fn max_load(map: &Map<'_>) -> Result<Option<Spanned<Rate>>, Reported> {
    map.with_default("max_load", None, |node| {
        let rate = node.word_or("auto", rate::read)?;
        Ok(rate.map(|rate| node.spanned(rate)))
    })
}

/// Time after the last frame while stragglers still count.
pub(super) fn drain(map: &Map<'_>, default: Duration) -> Result<Duration, Reported> {
    map.with_default("drain", default, |node| {
        node.duration(Duration::ZERO..=DRAIN_MAX)
    })
}

/// Whether a trial is too short for one frame.
pub(super) fn is_empty(frames_per_s: u64, trial: Duration) -> bool {
    // Frames per second × nanoseconds below 10⁹ are less than one frame; a division would round.
    u128::from(frames_per_s) * trial.as_nanos() < Duration::from_secs(1).as_nanos()
}

/// Reports a load without a frame in a trial of this time, for some mix.
pub(super) fn check_for_frames(
    node: Node<'_>,
    load: &Spanned<Rate>,
    trial: Duration,
    mixes: &[&FrameMix],
    help: &str,
) {
    let least = mixes.iter().map(|mix| load.value.frames_per_s(mix)).min();
    if least.is_some_and(|least| is_empty(least, trial)) {
        let time = units::time::print(trial);
        let what = format!("in {time} at {} there is no frame", load.value);
        node.mistake_at(&load.place, what, help);
    }
}

pub(super) fn trial_time(node: Node<'_>) -> Result<Duration, Reported> {
    node.duration(TRIAL_MIN..=RUN_MAX)
}

pub(super) fn whole_percent(
    node: Node<'_>,
    range: std::ops::RangeInclusive<u16>,
) -> Result<u16, Reported> {
    let percent = |percent: &u16| Ratio::from_percent((*percent).into());
    let ratio = node.ratio(percent(range.start())..=percent(range.end()))?;
    match ratio.percent() {
        // In range, so it fits.
        Some(percent) => Ok(percent as u16),
        None => Err(node.mistake(
            format!("{ratio} is not a whole number of per cent"),
            "write whole per cent",
        )),
    }
}
