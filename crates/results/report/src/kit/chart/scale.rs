//! Axes: map values to positions, with ticks at round numbers.

use crate::kit::format::Scale;

/// If the values' ratio is at least this, bars from 0 would hide the small ones.
const LOG_RATIO: f64 = 30.0;

/// A scale of values with ticks.
pub(crate) trait Axis {
    /// Maps a value to a share, from 0 at the beginning of the axis to 1 at its end.
    fn share(&self, value: f64) -> f64;

    /// Returns ascending values and their labels.
    fn ticks(&self) -> Vec<(f64, String)>;
}

/// An axis with equal steps.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Linear {
    low: f64,
    high: f64,
    step: f64,
    scale: Scale,
}

impl Linear {
    /// From 0 to a round number of at least `max`, in about `ticks` steps, with numbers in the
    /// scale's unit.
    pub(crate) fn new(max: f64, ticks: f64, scale: Scale) -> Self {
        // If all figures are 0, the axis covers one unit.
        let max = if max > 0.0 && max.is_finite() {
            max
        } else {
            scale.divisor
        };
        let axis = Self::between(0.0, max, ticks, scale);
        Self {
            high: (max / axis.step).ceil() * axis.step,
            ..axis
        }
    }

    /// Ends at `max` exactly instead of the next round number, for time axes.
    pub(crate) fn ending_at(max: f64, ticks: f64, scale: Scale) -> Self {
        let axis = Self::new(max, ticks, scale);
        Self {
            high: if max > 0.0 { max } else { axis.high },
            ..axis
        }
    }

    /// Exactly from `low` to `high`: for marks, not for bars, the length of which would mislead.
    pub(super) fn between(low: f64, high: f64, ticks: f64, scale: Scale) -> Self {
        // Equal values need a range, or `share` divides by 0.
        let high = if high > low {
            high
        } else {
            low + scale.divisor
        };
        // Rounded in the unit in which the ticks are printed.
        let step = round_step((high - low) / ticks / scale.divisor) * scale.divisor;
        Self {
            low,
            high,
            step,
            scale,
        }
    }

    /// With an SI prefix of `unit`.
    pub(crate) fn si(max: f64, ticks: f64, unit: &str) -> Self {
        Self::new(max, ticks, Scale::si(max, unit))
    }

    /// The unit of the numbers.
    pub(crate) fn unit(&self) -> &str {
        &self.scale.unit
    }
}

impl Axis for Linear {
    fn share(&self, value: f64) -> f64 {
        // Nothing that is drawn is below 0, but a mean less the farthest repeat's distance may be:
        // its whisker ends at the axis.
        ((value - self.low) / (self.high - self.low)).max(0.0)
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        // The axis may begin anywhere, but its first tick is a round number.
        let first = (self.low / self.step).ceil();
        // The end is a multiple of the step only up to rounding, and `floor` must not drop its
        // tick.
        let count = ((self.high / self.step + 1e-6).floor() - first) as u32;
        let step = self.step / self.scale.divisor;
        // All ticks have the decimals that the step needs.
        let decimals = (-step.log10()).ceil().max(0.0) as usize;
        let tick = |index: u32| {
            let value = first + f64::from(index);
            (value * self.step, format!("{:.decimals$}", value * step))
        };
        (0..=count).map(tick).collect()
    }
}

/// The smallest of 1, 2 or 5 times a power of ten that is at least `step`.
fn round_step(step: f64) -> f64 {
    let power = 10_f64.powf(step.log10().floor());
    // Tolerance for rounding: 0.2 / 0.1 must not become 5.
    let factor = [1.0, 2.0, 5.0]
        .into_iter()
        .find(|factor| factor * power >= step * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// A logarithmic axis between two values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Log {
    low: f64,
    high: f64,
}

impl Log {
    /// From the round number (1, 2, 5 · 10ⁿ) below `min` to the one above `max`; both positive.
    pub(crate) fn new(min: f64, max: f64) -> Self {
        let min = if min > 0.0 { min } else { 1.0 };
        let high = round_step(max.max(min));
        // Downwards, round by the inverse, to get the same steps.
        let low = 1.0 / round_step(1.0 / min);
        Self {
            low,
            // Equal ends would make `share` divide by 0.
            high: if high > low { high } else { 10.0 * low },
        }
    }

    /// Exactly from `low` to `high`; both positive and different.
    pub(crate) const fn between(low: f64, high: f64) -> Self {
        Self { low, high }
    }

    /// Maps a value to a share, from 0 at the beginning of the axis to 1 at its end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Round values; only powers of ten if the axis spans more than four.
    pub(crate) fn values(&self) -> Vec<f64> {
        let factors: &[f64] = if self.high / self.low > 10_000.0 {
            &[1.0]
        } else {
            &[1.0, 2.0, 5.0]
        };
        // Up to one power too many at both ends; the filter below removes values off the axis.
        let (first, last) = (
            self.low.log10().floor() as i32,
            self.high.log10().ceil() as i32,
        );
        let values = (first..=last).flat_map(|power| {
            factors
                .iter()
                .map(move |factor| factor * 10_f64.powi(power))
        });
        // Ends were rounded with the same tolerance.
        values
            .filter(|value| *value >= self.low * 0.999 && *value <= self.high * 1.001)
            .collect()
    }
}

/// An axis of values: linear from 0, or logarithmic if they span decades.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Values {
    Linear(Linear),
    Log(Log, Scale),
}

impl Values {
    /// For values from `low` (the smallest above 0) to `high`, with numbers in the scale's unit.
    pub(crate) fn spanning((low, high): (f64, f64), ticks: f64, scale: Scale) -> Self {
        if low > 0.0 && high / low >= LOG_RATIO {
            // Even a round lowest value must be above the beginning of the axis, or its bar has no
            // length.
            Self::Log(Log::new(0.9 * low, high), scale)
        } else {
            // Bars from 0 can be compared by their lengths, so this is preferred.
            Self::Linear(Linear::new(high, ticks, scale))
        }
    }

    pub(crate) const fn is_log(&self) -> bool {
        matches!(self, Self::Log(..))
    }

    /// The unit of the numbers.
    pub(crate) fn unit(&self) -> &str {
        match self {
            Self::Linear(axis) => axis.unit(),
            Self::Log(_, scale) => &scale.unit,
        }
    }

    /// The name of a quantity with the unit, marked if the axis is logarithmic.
    pub(crate) fn title(&self, quantity: &str) -> String {
        let unit = self.unit();
        if self.is_log() {
            format!("{quantity}, {unit}, logarithmic")
        } else {
            format!("{quantity}, {unit}")
        }
    }
}

impl Axis for Values {
    fn share(&self, value: f64) -> f64 {
        match self {
            Self::Linear(axis) => axis.share(value),
            // Zero has no logarithm, so it is drawn at the beginning of the axis.
            Self::Log(axis, _) => axis.share(value.max(axis.low)),
        }
    }

    fn ticks(&self) -> Vec<(f64, String)> {
        match self {
            Self::Linear(axis) => axis.ticks(),
            Self::Log(axis, scale) => {
                let label = |value: f64| {
                    let number = value / scale.divisor;
                    // As many decimals as the first digit needs: 0.02, 0.5, 10.
                    let decimals = (-number.log10().floor()).max(0.0) as usize;
                    (value, format!("{number:.decimals$}"))
                };
                axis.values().into_iter().map(label).collect()
            }
        }
    }
}

/// A round time, without decimals.
pub(crate) fn short_time(value_ns: f64) -> String {
    match value_ns {
        // Ticks are products of powers of ten, so a round one may be slightly too small.
        value if value >= 0.999e9 => format!("{:.0} s", value / 1e9),
        value if value >= 0.999e6 => format!("{:.0} ms", value / 1e6),
        value if value >= 0.999e3 => format!("{:.0} µs", value / 1e3),
        value => format!("{value:.0} ns"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(max: f64) -> Vec<String> {
        Linear::si(max, 5.0, "bit/s")
            .ticks()
            .into_iter()
            .map(|(_, label)| label)
            .collect()
    }

    #[test]
    fn ticks_are_round_numbers_in_the_axis_unit() {
        assert_eq!(labels(38.9e9), ["0", "10", "20", "30", "40"]);
        assert_eq!(labels(1.0e9), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(0.73e6), ["0", "200", "400", "600", "800"]);
        assert_eq!(labels(0.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(Linear::si(38.9e9, 5.0, "bit/s").unit(), "Gbit/s");
    }

    #[test]
    fn an_axis_can_end_where_the_values_do() {
        let axis = Linear::ending_at(2.003, 4.0, Scale::plain());
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["0", "1", "2"]);
        assert!((axis.share(2.003) - 1.0).abs() < 1e-9);
        assert!(axis.share(-1.0).abs() < 1e-9);
    }

    #[test]
    fn a_part_of_the_values_has_round_ticks_within_it() {
        let axis = Linear::between(98.3e6, 102.2e6, 4.0, Scale::si(1e8, "pps"));
        let labels: Vec<String> = axis.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels, ["99", "100", "101", "102"]);
        assert!(axis.share(98.3e6).abs() < 1e-9 && (axis.share(102.2e6) - 1.0).abs() < 1e-9);
        assert!(
            Linear::between(0.0, 0.0, 4.0, Scale::plain())
                .share(0.0)
                .is_finite()
        );
    }

    #[test]
    fn the_largest_value_lies_on_the_axis() {
        for max in [1e-3, 0.9, 1.0, 1.1, 4.9, 5.0, 5.1, 99.0, 123_456.0, 9.99e11] {
            for ticks in [2.0, 4.0, 6.0] {
                let axis = Linear::si(max, ticks, "");
                assert!(
                    axis.share(max) <= 1.0 + 1e-9 && axis.share(max) > 0.45,
                    "{max}: {axis:?}"
                );
            }
        }
    }

    #[test]
    fn logarithmic_ticks_run_from_below_to_above() {
        let axis = Log::new(4_300.0, 1_270_000.0);
        let ticks = axis.values();
        assert!(
            (ticks[0] - 2e3).abs() < 1.0 && (ticks[ticks.len() - 1] - 2e6).abs() < 1.0,
            "{ticks:?}"
        );
        assert!(axis.share(4_300.0) > 0.0 && axis.share(1_270_000.0) < 1.0);
        assert!(Log::new(1.0, 1e9).values().len() <= 11);
        assert!(Log::new(0.0, 0.0).share(1.0).is_finite());
    }

    #[test]
    fn values_over_decades_are_on_a_logarithmic_axis() {
        let gbit = || Scale::si(1e9, "bit/s");
        let near = Values::spanning((1e9, 9e9), 5.0, gbit());
        assert_eq!(near.title("rate"), "rate, Gbit/s");
        let far = Values::spanning((4e7, 9e9), 5.0, gbit());
        assert_eq!(far.title("rate"), "rate, Gbit/s, logarithmic");
        let labels: Vec<String> = far.ticks().into_iter().map(|(_, label)| label).collect();
        assert_eq!(labels[..5], ["0.02", "0.05", "0.1", "0.2", "0.5"]);
        assert_eq!(labels.last().unwrap(), "10");
        assert!(far.share(0.0).abs() < 1e-9 && far.share(9e9) < 1.0);
    }
}
