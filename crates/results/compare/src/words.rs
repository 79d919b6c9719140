//! Changes in words, with the digits that their intervals support.

use crate::CellChange;

/// The change of a ratio in per cent.
fn percent_of(ratio: f64) -> f64 {
    100.0 * (ratio - 1.0)
}

/// An interval from half to twice the figure, or wider, does not show the direction of a change.
const WIDE: f64 = 2.0;
/// A ratio from which on it is printed as such and not in per cent.
const TIMES_MIN: f64 = 10.0;

/// A ratio with two digits: `0.034`, `1.5`, `33`. Of an interval that reaches further than these
/// bounds, as that of two repeats does, digits have no meaning.
fn times(ratio: f64) -> String {
    const LEAST: f64 = 0.001;
    const MOST: f64 = 1000.0;
    if ratio > MOST {
        return format!("over {MOST}");
    }
    if ratio < LEAST {
        return format!("under {LEAST}");
    }
    let decimals = (1.0 - ratio.log10().floor()).max(0.0);
    let decimals = if decimals.is_nan() { 0.0 } else { decimals };
    format!("{ratio:.0$}", decimals as usize)
}

/// `+1.2`, `-12`, `0.0`.
fn signed(percent: f64, decimals: usize) -> String {
    let text = format!("{percent:+.decimals$}");
    // A sign would be a direction without a change.
    if text.bytes().any(|c| (b'1'..=b'9').contains(&c)) {
        text
    } else {
        text[1..].to_owned()
    }
}

impl CellChange {
    /// The larger of the distances of the change from the ends of its interval, in per cent; `None`
    /// if the interval is unknown or has no such end.
    pub(crate) fn reach_percent(&self) -> Option<f64> {
        let (low, high) = self.interval()?;
        let ends = [low, high].map(|end| (percent_of(end) - percent_of(self.ratio)).abs());
        let reach = ends[0].max(ends[1]);
        (low > 0.0 && reach.is_finite()).then_some(reach)
    }

    /// The change with its interval, all with equal decimals: `-6.2 % (-8.1 to -4.2 %)`. They are
    /// no more than the interval supports, except as far as needed to show on which side of no
    /// change, and of a bound in per cent, its ends are.
    pub(crate) fn in_words_at(&self, bound_percent: Option<f64>) -> String {
        const DECIMALS_MAX: usize = 4;
        let change = percent_of(self.ratio);
        let ends = self
            .interval()
            .map(|(low, high)| [low, high].map(percent_of));
        let least = match self.reach_percent() {
            Some(reach) if reach < 0.05 => 2,
            Some(reach) if reach < 5.0 => 1,
            // One decimal of a change from 9.95 on would be a third digit.
            None if change.abs() < 9.95 => 1,
            _ => 0,
        };
        let marks = [Some(0.0), bound_percent];
        let shows = |decimals: &usize| {
            let shown = |value: f64| signed(value, *decimals);
            let ends = ends.iter().flatten().filter(|end| end.is_finite());
            let mut pairs =
                ends.flat_map(|end| marks.iter().flatten().map(move |mark| (end, mark)));
            // Equal numbers remain equal with any decimals.
            pairs.all(|(end, mark)| end.total_cmp(mark).is_eq() || shown(*end) != shown(*mark))
        };
        let decimals = (least..=DECIMALS_MAX).find(shows).unwrap_or(least);
        let text = |percent: f64| signed(percent, decimals);
        let change = text(change);
        match (self.interval(), ends) {
            // A search may have found no upper bound of one side or of both.
            (Some((low, high)), _) if low <= 0.0 && high.is_infinite() => {
                format!("{change} % (not bounded)")
            }
            (Some((low, _)), Some([_, high])) if low <= 0.0 => {
                format!("{change} % ({} % or less)", text(high))
            }
            (Some((_, high)), Some([low, _])) if high.is_infinite() => {
                format!("{change} % ({} % or more)", text(low))
            }
            (Some((low, high)), _) if low <= 1.0 / WIDE && high >= WIDE => {
                let ends = [low, high].map(times);
                format!(
                    "{change} % (too wide to tell: {} to {} times)",
                    ends[0], ends[1]
                )
            }
            // Beyond some times, per cent are digits without a meaning.
            (Some((_, high)), Some([low, _])) if high >= TIMES_MIN => {
                format!("{change} % ({} % to {} times)", text(low), times(high))
            }
            (_, Some([low, high])) => format!("{change} % ({} to {} %)", text(low), text(high)),
            (_, None) => format!("{change} % (unknown scatter)"),
        }
    }

    /// Significant digits of both means: as many as the reader needs to find the change again.
    pub(crate) fn digits(&self) -> usize {
        match self.reach_percent() {
            Some(reach) if reach >= 5.0 => 3,
            Some(reach) if reach < 0.5 => 5,
            _ => 4,
        }
    }
}

/// A bound in per cent: `-5`, `+2.5`.
pub(crate) fn bound_in_words(bound: f64) -> String {
    let percent = percent_of(bound);
    let decimals = (0..4).find(|decimals| {
        let scale = 10_f64.powi(*decimals);
        // A bound is written with a few decimals; more are an error of the subtraction.
        ((percent * scale).round() - percent * scale).abs() < 1e-6
    });
    signed(
        percent,
        decimals.map_or(4, |decimals| decimals.unsigned_abs() as usize),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_have_two_digits() {
        let text = [0.021, 0.5, 1.0, 9.94, 33.21, 1e-9, 38_974_269.0].map(times);
        let expected = [
            "0.021",
            "0.50",
            "1.0",
            "9.9",
            "33",
            "under 0.001",
            "over 1000",
        ];
        assert_eq!(text, expected);
    }
}
