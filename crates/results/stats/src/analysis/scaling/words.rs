//! The verdict on a series, in words.

use super::fit::FIT_MIN_POINTS;
use super::point::{ScalingAxis, ScalingPoint};
use super::shape::{FLAT_MAX_PERCENT, Shape, up_to};

/// Why no law is fitted; `None` if one is.
pub(super) fn no_fit(axis: ScalingAxis, figures: usize) -> Option<String> {
    if !axis.adds() {
        return Some("more tunnels are not expected to carry more, which the laws assume".into());
    }
    (figures < FIT_MIN_POINTS).then(|| {
        format!(
            "{FIT_MIN_POINTS} points are needed to fit Amdahl's law, there {} {figures}",
            if figures == 1 { "is" } else { "are" }
        )
    })
}

/// `stops scaling at 14 workers`, `rises to 4 workers, the largest measured`, with the conditions
/// that affect it.
pub(super) fn verdict(axis: ScalingAxis, points: &[ScalingPoint], shape: &Shape) -> String {
    let measured = || points.iter().filter(|point| point.figure.is_some());
    let last = measured().next_back().map_or(0, |point| point.n);
    let mut text = match (axis.adds(), shape.top, shape.falls_from) {
        (true, None, _) => format!("rises to {}, the largest measured", axis.counted(last)),
        (true, Some(top), _) => top.in_words(&axis.counted(top.n)),
        // More tunnels are not meant to carry more, so to hold the rate is the best result.
        (false, _, None) if shape.open_loss_percent <= FLAT_MAX_PERCENT => {
            format!("holds to {}, the largest measured", axis.counted(last))
        }
        (false, _, None) => format!(
            "no certain fall to {last}, the largest measured: {} less is possible",
            up_to(shape.open_loss_percent)
        ),
        (false, _, Some(_)) => String::new(),
    };
    if let Some(falls) = shape.falls_from {
        let separator = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!(
            "{separator}falls from {falls} on{}",
            of_peak(points, shape, last)
        ));
    }
    // Limits below the stop do not matter: the curve went on rising past them.
    let past = shape.top.map_or(last, |top| top.n);
    let limit = measured()
        .filter(|point| point.n >= past)
        .find_map(|point| Some((point.n, point.limited_by.as_deref()?)));
    match limit {
        Some((n, "machine")) => text.push_str(&format!(
            "; machine-limited at {n}: stations and device share cores, or a station has no idle time"
        )),
        Some((n, by)) => {
            text.push_str(&format!("; {by}-limited at {n}: the device may do more"));
        }
        None => {}
    }
    text
}

/// `: 16 carries 82 % of the peak at 4`.
fn of_peak(points: &[ScalingPoint], shape: &Shape, last: u32) -> String {
    let mean = |n: u32| {
        let point = points.iter().find(|point| point.n == n)?;
        Some(point.figure.as_ref()?.mean)
    };
    match mean(last).zip(mean(shape.peak)) {
        Some((last_mean, peak)) if peak > 0.0 => {
            let percent = 100.0 * last_mean / peak;
            format!(
                ": {last} carry {percent:.0} % of the peak at {}",
                shape.peak
            )
        }
        _ => String::new(),
    }
}
