//! The verdict on a series, in words.

use super::fit::FIT_MIN_POINTS;
use super::point::{ScalingAxis, ScalingPoint};
use super::shape::Shape;
use crate::estimate::LARGE_SPREAD_PERCENT;

/// Why no law is fitted; `None` if one is.
pub(super) fn no_fit(axis: ScalingAxis, figures: usize) -> Option<String> {
    if !axis.adds() {
        return Some("more tunnels are not expected to carry more, which the laws assume".into());
    }
    (figures < FIT_MIN_POINTS).then(|| {
        format!(
            "{figures} points are too few: a law with three parameters fits any three; \
             {FIT_MIN_POINTS} are needed"
        )
    })
}

/// `stops scaling at 14`, `rises to 4, the largest measured`, with the conditions that affect it.
pub(super) fn verdict(axis: ScalingAxis, points: &[ScalingPoint], shape: &Shape) -> String {
    let measured = || points.iter().filter(|point| point.figure.is_some());
    let last = measured().next_back().map_or(0, |point| point.n);
    let mut text = match (axis.adds(), shape.stop, shape.falls_from) {
        (true, None, _) => format!("rises to {last}, the largest measured"),
        (true, Some(stop), _) => format!("stops scaling at {stop}"),
        (false, _, None) => format!("holds to {last}, the largest measured"),
        (false, _, Some(_)) => String::new(),
    };
    if let Some(falls) = shape.falls_from {
        let separator = if text.is_empty() { "" } else { "; " };
        text.push_str(&format!(
            "{separator}falls from {falls} on{}",
            of_peak(points, shape, last)
        ));
    }
    let past = shape.stop.map_or(last, |stop| stop);
    let limit = measured()
        .filter(|point| point.n >= past)
        .find_map(|point| Some((point.n, point.limited_by.as_deref()?)));
    if let Some((n, by)) = limit {
        text.push_str(&format!("; {by}-limited at {n}: the device may do more"));
    }
    let crowded = measured().find(|point| point.crowded);
    if let Some(point) =
        crowded.filter(|_| axis == ScalingAxis::Workers || axis == ScalingAxis::Cores)
    {
        text.push_str(&format!(
            "; from {} on stations and device need more cores than the machine has",
            point.n
        ));
    }
    if has_single(measured()) {
        text.push_str("; a single repeat: spread unknown");
    }
    if let Some(spread) = large_spread(points) {
        text.push_str(&format!(
            "; repeats lie up to {spread:.0} % from their mean: a smaller gain is not detectable"
        ));
    }
    text
}

/// Whether a figure has a single repeat, so that any difference may be chance.
pub(super) fn has_single<'p>(mut points: impl Iterator<Item = &'p ScalingPoint>) -> bool {
    points.any(|point| point.figure.as_ref().is_some_and(|figure| figure.n < 2))
}

/// The largest spread of a figure in per cent; `None` if all are small.
pub(super) fn large_spread(points: &[ScalingPoint]) -> Option<f64> {
    let spreads = points
        .iter()
        .filter_map(|point| point.figure.as_ref()?.largest_distance_percent);
    spreads
        .reduce(f64::max)
        .filter(|spread| *spread > LARGE_SPREAD_PERCENT)
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
