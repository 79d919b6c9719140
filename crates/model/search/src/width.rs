//! Distances between loads, and loads at a distance.
//!
//! Whether two loads are close enough is decided in whole numbers. The next load is computed on a
//! logarithmic scale, so that a width means the same at every load; an error of one frame/s there
//! costs a trial at worst, never a wrong bound.

use crate::PPM;

/// Steps are this share of the width, so that rounding to whole frames/s does not leave an interval
/// slightly over it.
const SLACK: f64 = 0.99;

/// Whether bounds are as close as a width requires: (upper - lower) / upper <= width. Loads one
/// frame/s apart always are.
pub(crate) const fn is_narrow(lower: u64, upper: u64, width_ppm: u32) -> bool {
    let distance = upper.saturating_sub(lower);
    // Multiplied out: a division would round, and a bound would depend on it.
    distance <= 1 || distance as u128 * PPM as u128 <= upper as u128 * width_ppm as u128
}

/// The width that two successive intervals of this width have together.
pub(crate) const fn doubled(width_ppm: u32) -> u32 {
    let (whole, left) = (PPM as u64, (PPM - width_ppm) as u64);
    // 1 - (1 - w)²; under a million since w is.
    let width = (whole * whole - left * left) / whole;
    if width < whole { width as u32 } else { PPM - 1 }
}

/// A width as a distance on the logarithmic scale, slightly reduced.
pub(crate) fn step(width_ppm: u32) -> f64 {
    -SLACK * (-f64::from(width_ppm) / f64::from(PPM)).ln_1p()
}

/// The distance between two loads on the logarithmic scale.
pub(crate) fn distance(lower: u64, upper: u64) -> f64 {
    (upper as f64 / lower as f64).ln()
}

/// The load this far above; at least one frame/s.
pub(crate) fn above(load: u64, distance: f64) -> u64 {
    // Towards the load in both directions, so that the step is never over the width.
    ((load as f64 * distance.exp()) as u64).max(load.saturating_add(1))
}

/// The load this far below; at least one frame/s.
pub(crate) fn below(load: u64, distance: f64) -> u64 {
    ((load as f64 * (-distance).exp()).ceil() as u64).min(load.saturating_sub(1))
}

/// A load that splits the interval between two loads that are not narrow.
///
/// One part is a power of two times the width, so that later halves come out even. The lower part
/// is the smaller one: a trial there is more likely to pass, and an error there is safe.
pub(crate) fn split(lower: u64, upper: u64, width_ppm: u32) -> u64 {
    let (whole, unit) = (distance(lower, upper), step(width_ppm));
    let units = whole / unit;
    let part = if units <= 2.0 {
        whole / 2.0
    } else {
        // The largest power of two that is at most half, or the rest that the next power leaves if
        // that splits more evenly.
        let power = (units / 2.0).log2().floor().exp2();
        unit * power.max(units - 2.0 * power)
    };
    // Of two adjacent loads there is no middle; callers split no narrow interval.
    let load = (lower as f64 * part.exp()).round() as u64;
    load.clamp(lower + 1, upper - 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn widths_are_decided_in_whole_numbers() {
        assert!(is_narrow(995, 1000, 5_000));
        assert!(!is_narrow(994, 1000, 5_000));
        assert!(is_narrow(1, 2, 1));
        assert!(!is_narrow(1, u64::MAX, 999_999));
    }

    #[test]
    fn two_widths_double() {
        assert_eq!(doubled(500_000), 750_000);
        assert_eq!(doubled(5_000), 9_975);
        assert_eq!(doubled(999_999), 999_999);
    }

    proptest! {
        #[test]
        fn steps_stay_within_the_width(load in 1_u64..100_000_000_000, width in 1_u32..999_999) {
            prop_assert!(is_narrow(load, above(load, step(width)), width));
            let lower = below(load, step(width));
            prop_assert!(lower < load && is_narrow(lower, load, width));
        }

        #[test]
        fn a_split_is_inside_and_no_part_is_over_three_quarters(
            lower in 1_u64..1_000_000_000,
            distance in 2_u64..1_000_000_000,
            width in 1_u32..999_999,
        ) {
            let upper = lower + distance;
            let load = split(lower, upper, width);
            prop_assert!(lower < load && load < upper);
            // Rounding to whole loads may shift small intervals.
            if distance > 1_000 && !is_narrow(lower, upper, width) {
                let part = super::distance(lower, load) / super::distance(lower, upper);
                prop_assert!((0.24..0.56).contains(&part), "{part}");
            }
        }
    }
}
